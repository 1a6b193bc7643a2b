/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits a credentials file (auth.credentials_file): adds and removes access keys, and leaves the rest of the
 * file unchanged, byte for byte. Used by `gantry key` and `gantryd --format`, each in one thread.
 *
 * The text is not generated again: the scanner of the YAML library finds the positions of the entries, and
 * one entry is inserted or cut out there. Before the file is replaced, the daemon's parser reads the new
 * text, and its keys are compared with those of the previous text.
 */
#ifndef GANTRY_AUTH_KEYFILE_H
#define GANTRY_AUTH_KEYFILE_H

#include "auth/keys.h"

/* ---- new keys ---- */

struct key_pair {
	char access_key[AUTH_ACCESS_KEY_MAX + 1];
	char secret[40 + 1];
	char secret_id[AUTH_SECRET_ID_LEN + 1];
};

/* The rights of a new access key. If all fields are zero, it has every right. */
struct key_wish {
	/* array of bucket names; "x*": all names that begin with x; "*": all names; NULL: all buckets */
	const char *const *bucket;
	int bucket_nr;
	const char *prefix; /* beginning of the keys that may be used in these buckets; NULL: all keys */
	bool read_only, no_delete, no_overwrite;
	const char *expires; /* time at which the key expires, in the form of the file; NULL: never */
	/* addresses and address blocks from which the key may be used; NULL: all addresses */
	const char *const *from;
	int from_nr;
	/* Quotas of the key's buckets, in the form of the file; NULL: no limit. */
	const char *max_objects, *max_bytes, *max_uploads, *max_buckets;
	const char *comment; /* text of the operator; NULL: none */
	/* time at which the secret was made, in the form of the file; NULL: not written. keyfile_new() writes the
	 * current time. */
	const char *made;
};

/* Returns true if the text is valid for the `bucket` of a struct key_wish. */
bool key_wish_bucket(const char *text);
/* Returns true if the text is a valid quota. is_bytes: true: a size with a unit, for max_bytes; false: a
 * plain number, for the other quotas. */
bool key_wish_bound(const char *text, bool is_bytes);
/* Returns true if the text is valid for the `prefix` of a struct key_wish. */
bool key_wish_prefix(const char *text);
/* Returns true if the text is a valid address or address block, for the `from` of a struct key_wish. */
bool key_wish_from(const char *text);
/* Returns true if the text is valid for the `comment` of a struct key_wish. */
bool key_wish_comment(const char *text);
/* Returns true if the text is a valid time, and stores it in *ret_s, seconds since 1970. */
bool key_wish_expires(const char *text, uint64_t *ret_s);

/* ---- text ---- */

/* Appends an entry for `pair` with the rights of `wish` to the text of a credentials file. Returns 0 and the
 * new text, which belongs to the caller; or -ENOMEM or -EINVAL, after writing the reason to err. source: name
 * of the text in messages. */
int keyfile_add(const char *text, size_t len, const char *source, const struct key_pair *pair,
		const struct key_wish *wish, char **ret_text, size_t *ret_len, FILE *err);
/* Removes the entries of the access key from the text of a credentials file; the text has at least one. id: only those
 * of the secret with this id; NULL: all of them. Returns 0 and the new text, which belongs to the caller; or -ENOMEM or -EINVAL, after writing the reason to
 * err. */
int keyfile_cut(const char *text, size_t len, const char *source, const char *access_key, const char *id,
		char **ret_text, size_t *ret_len, FILE *err);

/* A second secret for an access key. */
struct key_turn {
	const struct key_pair *pair; /* access key, new secret and its id */
	const char *old_id;          /* id of the previous secret */
	/* end of the previous secret and time at which the new one was made, seconds since 1970; until_s UINT64_MAX:
	 * the previous secret keeps its end */
	uint64_t until_s, made_s;
};
/* Adds an entry to the text of a credentials file that differs from the entry of the previous secret only by the secret
 * and the time at which it was made; and gives the previous entry an end, unless it has an earlier one. The text has one
 * entry of the previous secret. Returns 0 and the new text, which belongs to the caller; or -ENOMEM or -EINVAL, after
 * writing the reason to err. */
int keyfile_turn(const char *text, size_t len, const char *source, const struct key_turn *t, char **ret_text,
		 size_t *ret_len, FILE *err);

/* ---- files ---- */

struct keyfile;
/* The end of a secret that was replaced. */
struct key_end {
	char secret_id[AUTH_SECRET_ID_LEN + 1];
	bool ends;
	uint64_t expires_s; /* time of the end, seconds since 1970 */
};
/*
 * Opens and reads a credentials file. change: true: for editing; the file need not exist, and is locked
 * against other editors until keyfile_close(). like: path of another file; a credentials file that root
 * creates gets the owner of this other file; NULL: the owner of its folder. Returns 0, or the -errno of the
 * failed system call, -EINVAL for invalid content, or -ENOMEM, after writing the reason to err.
 */
int keyfile_open(const char *path, bool change, const char *like, struct keyfile **ret, FILE *err);
/* Closes the file and wipes its contents in memory; NULL is allowed. */
void keyfile_close(struct keyfile *f);
/* Returns the path of the file, with symbolic links resolved. */
const char *keyfile_path(const struct keyfile *f);
/* Returns the keys of the file, without a reference; never NULL. */
struct auth_keys *keyfile_keys(const struct keyfile *f);

/* Generates a key pair and adds it to the file, which is created if it does not exist. After a crash at any
 * moment the disk has the previous file or the complete new one. Returns 0, -ENOSPC if the file has no room
 * for another entry, or the -errno of writing it, after writing the reason to err. */
int keyfile_new(struct keyfile *f, const struct key_wish *wish, struct key_pair *ret_pair, FILE *err);
/* Removes an access key from the file; id: only its secret with this id; NULL: all of its secrets. After a crash at any
 * moment the disk has the previous file or the complete new one. Returns 0, -ENOENT if the file has no such access key
 * or secret, or the -errno of writing it, after writing the reason to err. */
int keyfile_revoke(struct keyfile *f, const char *access_key, const char *id, FILE *err);
/* Generates a second secret for an access key, whose other secret ends at until_s (seconds since 1970; UINT64_MAX: it
 * keeps its end); and removes the secrets of the key that have ended. Returns 0, the new secret in *ret_pair and the
 * end of the other one in *ret_old (expires_s, secret_id); -ENOENT if the file has no such access key; -EBUSY if it has
 * several secrets that have not ended, -EKEYEXPIRED if it has none, or the -errno of writing the file, after writing
 * the reason to err. */
int keyfile_rotate(struct keyfile *f, const char *access_key, uint64_t until_s, struct key_pair *ret_pair,
		   struct key_end *ret_old, FILE *err);

#endif
