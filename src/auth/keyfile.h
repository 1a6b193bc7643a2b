/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits a credentials file (auth.credentials_file): adds and removes access keys, and leaves the rest of the
 * file unchanged, byte for byte. Used by `gantry key` and `gantryd --format`, each in one thread.
 *
 * The text is not generated again: an entry is inserted, or cut out, at the position at which the scanner
 * of the YAML library finds the entries. The daemon's own parser reads the new text, and the keys are
 * compared with the previous ones before the file is replaced.
 */
#ifndef GANTRY_AUTH_KEYFILE_H
#define GANTRY_AUTH_KEYFILE_H

#include "auth/keys.h"

/* ---- new keys ---- */

struct key_pair {
	char access_key[20 + 1];
	char secret[40 + 1];
};

/* The rights of a new access key. If all fields are zero, it has every right. */
struct key_wish {
	const char *const *bucket; /* names, beginnings of names with *, or *; NULL: all buckets */
	int bucket_nr;
	const char *prefix; /* beginning of the keys that may be used in these buckets; NULL: all keys */
	bool read_only, no_delete, no_overwrite;
	const char *expires;     /* time at which the key expires, in the form of the file; NULL: never */
	const char *const *from; /* addresses and blocks from which it may be used; NULL: anywhere */
	int from_nr;
	/* Quotas of the key's buckets, in the form of the file; NULL: no limit. */
	const char *max_objects, *max_bytes, *max_uploads, *max_buckets;
};

/* Returns true if the text is valid for the `bucket` of a struct key_wish. */
bool key_wish_bucket(const char *text);
/* Returns true if the text is a valid limit; is_bytes: of max_bytes, with a unit, otherwise of a number. */
bool key_wish_bound(const char *text, bool is_bytes);
/* Returns true if the text is a valid prefix. */
bool key_wish_prefix(const char *text);
/* Returns true if the text is a valid address or block. */
bool key_wish_from(const char *text);
/* Returns true if the text is a valid time, and stores it in *ret_s, seconds since 1970. */
bool key_wish_expires(const char *text, uint64_t *ret_s);

/* ---- text ---- */

/* Appends an entry with that pair to the text of a list. Returns 0 and the new text, which belongs to the
 * caller; or -ENOMEM or -EINVAL, after writing the reason to err. source: name of the text in messages. */
int keyfile_add(const char *text, size_t len, const char *source, const struct key_pair *pair,
		const struct key_wish *wish, char **ret_text, size_t *ret_len, FILE *err);
/* Removes every entry of the access key, of which the text has at least one. Results are those of
 * keyfile_add(). */
int keyfile_cut(const char *text, size_t len, const char *source, const char *access_key, char **ret_text,
		size_t *ret_len, FILE *err);

/* ---- files ---- */

struct keyfile;
/*
 * Opens and reads a file. change: it is locked against other editors until keyfile_close(), and need not
 * exist. like: a file whose owner a new file gets when root creates it; NULL: the owner of the folder.
 * Returns 0, or the -errno of the failed system call, -EINVAL for bad content, or -ENOMEM, after writing the
 * reason to err.
 */
int keyfile_open(const char *path, bool change, const char *like, struct keyfile **ret, FILE *err);
/* Closes the file and wipes its contents in memory; NULL is allowed. */
void keyfile_close(struct keyfile *f);
/* Returns the path of the file, with symbolic links resolved. */
const char *keyfile_path(const struct keyfile *f);
/* Returns the keys of the file, without a reference; never NULL. */
struct auth_keys *keyfile_keys(const struct keyfile *f);

/* Adds a new pair, and creates the file if it does not exist. After a crash at any moment the disk has the
 * previous file or the complete new one. Returns 0, -ENOSPC if the file is full, or the -errno of writing
 * it, after writing the reason to err. */
int keyfile_new(struct keyfile *f, const struct key_wish *wish, struct key_pair *ret_pair, FILE *err);
/* Removes an access key, with the same guarantee after a crash as keyfile_new(). Returns 0, -ENOENT if it
 * does not exist, or the -errno of writing the file, after writing the reason to err. */
int keyfile_revoke(struct keyfile *f, const char *access_key, FILE *err);

#endif
