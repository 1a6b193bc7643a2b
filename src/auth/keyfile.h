/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing a credentials file (auth.credentials_file): access keys are made and removed, and all else that stands in
 * it stays as it is, byte for byte.  For `gantry key` and `gantryd --format`, one thread.
 *
 * The text is not written anew: an entry is put in, or cut out, where the scanner of the YAML library says that
 * entries begin and end.  What comes out is read by the daemon's own parser and held against what was there, before
 * anybody else gets to see it.
 */
#ifndef GANTRY_AUTH_KEYFILE_H
#define GANTRY_AUTH_KEYFILE_H

#include "auth/keys.h"

/* ---- what is made ---- */

struct key_pair {
	char access_key[20 + 1];
	char secret[40 + 1];
};

/* What a new key may do; all zeroes: everything. */
struct key_wish {
	const char *const *bucket; /* names, beginnings with *, or *; none: all */
	int bucket_nr;
	const char *prefix; /* of keys in these; NULL: any */
	bool read_only, no_delete, no_overwrite;
	const char *expires;     /* a time as the file has it; NULL: never */
	const char *const *from; /* addresses and blocks; none: anywhere */
	int from_nr;
	/* What those buckets may hold: texts as the file has them; NULL: no bound. */
	const char *max_objects, *max_bytes, *max_uploads;
};

/* Tells whether the text is good for that field of struct key_wish. */
bool key_wish_bucket(const char *text);
/* Tells it of a bound. */
bool key_wish_bound(const char *text, bool is_bytes);
/* Tells it of a prefix. */
bool key_wish_prefix(const char *text);
/* Tells it of an address or block. */
bool key_wish_from(const char *text);
/* Tells it of a time, and gives it in seconds since 1970. */
bool key_wish_expires(const char *text, uint64_t *ret_s);

/* ---- text ---- */

/* Puts an entry with that pair at the end of a list.  0, with the new text, which is the caller's; or -errno, which
 * was written to err.  source names the text there. */
int keyfile_add(const char *text, size_t len, const char *source, const struct key_pair *pair,
		const struct key_wish *wish, char **ret_text, size_t *ret_len, FILE *err);
/* Cuts every entry of the access key out; there is one. */
int keyfile_cut(const char *text, size_t len, const char *source, const char *access_key, char **ret_text,
		size_t *ret_len, FILE *err);

/* ---- files ---- */

struct keyfile;
/*
 * Reads a file.  change: it is locked against others who do the same until keyfile_close(), and need not be there.
 * like: whose owner a file gets that root makes; NULL: its folder's.  0 or -errno, which was written to err.
 */
int keyfile_open(const char *path, bool change, const char *like, struct keyfile **ret, FILE *err);
/* Closes it and wipes what was read; NULL is fine. */
void keyfile_close(struct keyfile *f);
/* Returns where the file is, symbolic links followed. */
const char *keyfile_path(const struct keyfile *f);
/* Returns what stands in it, without a reference; never NULL. */
struct auth_keys *keyfile_keys(const struct keyfile *f);

/* Adds a new pair, and makes the file where it is not there.  On the disk there is the file from before, or, durably,
 * the new one, at any moment.  0 or -errno, which was written to err. */
int keyfile_new(struct keyfile *f, const struct key_wish *wish, struct key_pair *ret_pair, FILE *err);
/* Removes an access key in the same way.  0, -ENOENT when there is no such, or -errno, which was written to err. */
int keyfile_revoke(struct keyfile *f, const char *access_key, FILE *err);

#endif
