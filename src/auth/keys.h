/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials: the access keys of a credentials file, their secrets and their rights. A part of auth.h,
 * for code that handles access keys but no requests.
 */
#ifndef GANTRY_AUTH_KEYS_H
#define GANTRY_AUTH_KEYS_H

#include "conf/rdma.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define AUTH_ACCESS_KEY_MAX 128
#define AUTH_SECRET_MAX 256
#define AUTH_TOKEN_MAX 4096
#define AUTH_KEYS_MAX 4096 /* largest number of entries in a credentials file */
#define AUTH_GRANTS_MAX 64 /* largest number of grants of one entry */
#define AUTH_GIDS_MAX 64   /* largest number of addresses that tokens of one entry may name */
#define AUTH_FROM_MAX 64   /* largest number of source addresses of one entry */
#define AUTH_PREFIX_MAX 1024
#define AUTH_COMMENT_MAX 200 /* length of the longest comment of an entry, bytes */
/* Length of the id of a secret, hexadecimal digits. The id names a secret in the log and in lists: the first digits of
 * the SHA-256 of a fixed tag, the access key and the secret, so every gateway computes the same id. A reader of the id
 * can test a guess of the secret without the server, and one wrong guess in 2^32 passes the test. This reveals nothing
 * about a generated secret (238 random bits), but confirms the guess of a word that a person chose; a captured signed
 * request permits the same test. */
#define AUTH_SECRET_ID_LEN 8

/* An immutable set of credentials, with a count of references; all threads share it. Secrets are never
 * printed, and are wiped when the last reference is released. */
struct auth_keys;
struct auth_entry;

/*
 * Reads a credentials file; called by the main thread. The file must be a regular file that the daemon's user
 * or root owns, and that other users cannot access. Returns 0; or -EINVAL for invalid content, owner or mode,
 * -ENOMEM, or the -errno of opening it, after writing a line for every error to err.
 */
int auth_keys_load(const char *path, struct auth_keys **ret_keys, FILE *err);
/* Parses credentials in memory, with the results of auth_keys_load(). source: name of the text in
 * messages. */
int auth_keys_parse(const char *text, size_t len, const char *source, struct auth_keys **ret_keys, FILE *err);

#define AUTH_UNBOUNDED UINT64_MAX /* value of a quota of a grant: no limit */

struct auth_grant {
	char bucket[64]; /* name of the bucket, or its beginning, without the '*' */
	uint8_t bucket_len;
	bool any_suffix; /* true for "name*" and "*" */
	bool read_only, no_delete, no_overwrite;
	uint16_t prefix_len;
	char *prefix; /* beginning of the allowed keys; NULL: all keys */
	/* Quotas for all buckets of the grant together; contents of other writers count as well.
	 * AUTH_UNBOUNDED: no limit. */
	uint64_t max_objects, max_bytes, max_uploads, max_buckets;
};

#define AUTH_TIME_BYTES 32 /* size of the text of a time, such as "2026-12-31T23:59:59Z" */
/* Writes a time, in seconds since 1970, in the form of the file. Returns out. Pure function. */
const char *auth_time_text(uint64_t s, char out[AUTH_TIME_BYTES]);

/* The members of an entry that are not secret. */
struct auth_key_info {
	const char *access_key;
	const char *secret_id; /* id of the secret */
	const char *comment;   /* text of the operator; NULL: none */
	bool session_token;    /* true: requests with this key need a session token */
	bool read_only, no_delete, no_overwrite, have_expires, have_made;
	/* times in seconds since 1970: the end of the secret, and the time at which the secret was made */
	uint64_t expires_s, made_s;
	/* time of the last valid signature of the secret, seconds since 1970; 0: none since the keys were read
	 * first */
	uint64_t last_used_s;
	const struct auth_grant *grant; /* rights; NULL: every right */
	int grant_nr;
	const struct conf_net *gid; /* addresses that tokens may name; NULL: all those of rdma.allow */
	int gid_nr;
	const struct conf_net *from; /* addresses from which requests may come; NULL: any */
	int from_nr;
};
/* Makes the entries of `keys` continue the records of the last use of the entries of `before` with the same access key,
 * secret and session token. Called before other threads have `keys`; either may be NULL. */
void auth_keys_inherit(struct auth_keys *keys, struct auth_keys *before);
/* Returns the number of entries; 0 if keys is NULL. */
int auth_keys_nr(const struct auth_keys *keys);
/* Fills in *ret with entry i in the order of the access keys; its pointers are valid as long as keys. Returns
 * false if there are at most i entries. */
bool auth_keys_info(const struct auth_keys *keys, int i, struct auth_key_info *ret);
/* Returns true if entry i of a and entry j of b are equal, secrets included. Both entries exist. */
bool auth_keys_same(const struct auth_keys *a, int i, const struct auth_keys *b, int j);
/* Takes another reference and returns keys; NULL is allowed. Any thread may call this function. */
struct auth_keys *auth_keys_get(struct auth_keys *keys);
void auth_keys_put(struct auth_keys *keys);

#endif
