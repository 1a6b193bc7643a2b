/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits a credentials file (auth.credentials_file): access keys are added and removed, and the rest of the
 * file stays unchanged, byte for byte. For `gantry key` and `gantryd --format`, one thread.
 *
 * The text is not generated again: an entry is inserted, or cut out, at the positions at which the scanner of
 * the YAML library finds the entries. The daemon's own parser reads the result, which is compared with the
 * previous contents before the file is replaced.
 */
#ifndef GANTRY_AUTH_KEYFILE_H
#define GANTRY_AUTH_KEYFILE_H

#include "auth/keys.h"

/* ---- new keys ---- */

struct key_pair {
	char access_key[20 + 1];
	char secret[40 + 1];
};

/* The rights of a new key; all zeroes: every right. */
struct key_wish {
	const char *const *bucket; /* names, beginnings with *, or *; none: all */
	int bucket_nr;
	const char *prefix; /* only keys in these buckets; NULL: all keys */
	bool read_only, no_delete, no_overwrite;
	const char *expires;     /* a time in the form of the file; NULL: never */
	const char *const *from; /* addresses and blocks; none: anywhere */
	int from_nr;
	/* Quotas of those buckets, in the form of the file; NULL: no limit. */
	const char *max_objects, *max_bytes, *max_uploads, *max_buckets;
};

/* Returns true if the text is valid for that field of struct key_wish. */
bool key_wish_bucket(const char *text);
/* Returns true if the text is a valid limit. */
bool key_wish_bound(const char *text, bool is_bytes);
/* Returns true if the text is a valid prefix. */
bool key_wish_prefix(const char *text);
/* Returns true if the text is a valid address or block. */
bool key_wish_from(const char *text);
/* Returns true if the text is a valid time, and gives it in seconds since 1970. */
bool key_wish_expires(const char *text, uint64_t *ret_s);

/* ---- text ---- */

/* Appends an entry with that pair to a list. 0, with the new text, which belongs to the caller; or -errno,
 * which was written to err. source names the text in messages. */
int keyfile_add(const char *text, size_t len, const char *source, const struct key_pair *pair,
		const struct key_wish *wish, char **ret_text, size_t *ret_len, FILE *err);
/* Removes every entry of the access key; there is at least one. */
int keyfile_cut(const char *text, size_t len, const char *source, const char *access_key, char **ret_text,
		size_t *ret_len, FILE *err);

/* ---- files ---- */

struct keyfile;
/*
 * Reads a file. change: it is locked against other editors until keyfile_close(), and need not exist. like:
 * the file whose owner a new file gets if root makes it; NULL: its folder. 0 or -errno, which was written to
 * err.
 */
int keyfile_open(const char *path, bool change, const char *like, struct keyfile **ret, FILE *err);
/* Closes the file and wipes its contents in memory; NULL is allowed. */
void keyfile_close(struct keyfile *f);
/* Returns the path of the file after following symbolic links. */
const char *keyfile_path(const struct keyfile *f);
/* Returns the keys of the file, without a reference; never NULL. */
struct auth_keys *keyfile_keys(const struct keyfile *f);

/* Adds a new pair, and creates the file if necessary. At any moment the disk has the previous file or,
 * durably, the new one. 0 or -errno, which was written to err. */
int keyfile_new(struct keyfile *f, const struct key_wish *wish, struct key_pair *ret_pair, FILE *err);
/* Removes an access key in the same way. 0, -ENOENT if it does not exist, or -errno, which was written to
 * err. */
int keyfile_revoke(struct keyfile *f, const char *access_key, FILE *err);

#endif
