/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials: the access keys of a credentials file, their secrets and their rights. A part of auth.h, for
 * code that handles keys and no requests.
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
#define AUTH_KEYS_MAX 4096 /* entries of a credentials file */
#define AUTH_GRANTS_MAX 64 /* of one entry */
#define AUTH_GIDS_MAX 64   /* of one entry */
#define AUTH_FROM_MAX 64   /* of one entry */
#define AUTH_PREFIX_MAX 1024

/* An immutable set of credentials; counted, shared by all threads.  Secrets are wiped when the last reference
 * goes, and never printed. */
struct auth_keys;
struct auth_entry;

/*
 * Reads the file (main thread). It must be a regular file of the daemon's user or root, without access for
 * others. 0, or -EINVAL (bad content or mode), -ENOMEM, -errno of opening it; every error is a line in err.
 */
int auth_keys_load(const char *path, struct auth_keys **ret_keys, FILE *err);
/* Reads credentials from memory, as auth_keys_load() does from a file; source names them in errors. */
int auth_keys_parse(const char *text, size_t len, const char *source, struct auth_keys **ret_keys, FILE *err);

#define AUTH_UNBOUNDED UINT64_MAX /* of a grant's quota: no limit */

struct auth_grant {
	char bucket[64]; /* without the '*' */
	uint8_t bucket_len;
	bool any_suffix; /* "name*" and "*" */
	bool read_only, no_delete, no_overwrite;
	uint16_t prefix_len;
	char *prefix; /* NULL: none */
	/* Limits on the buckets that it names, together, for all writers; AUTH_UNBOUNDED: no limit. */
	uint64_t max_objects, max_bytes, max_uploads, max_buckets;
};

/* The members of an entry that are not secret. */
struct auth_key_info {
	const char *access_key;
	bool session_token; /* the key has a session token */
	bool read_only, no_delete, no_overwrite, have_expires;
	uint64_t expires_s;
	const struct auth_grant *grant; /* none: every right */
	int grant_nr;
	const struct conf_net *gid; /* none: those of rdma.allow */
	int gid_nr;
	const struct conf_net *from; /* none: any address */
	int from_nr;
};
/* Returns the number of entries; NULL: 0. */
int auth_keys_nr(const struct auth_keys *keys);
/* Fills in the data of entry i, by access key; false: there is no such entry. Valid as long as keys. */
bool auth_keys_info(const struct auth_keys *keys, int i, struct auth_key_info *ret);
/* Takes another reference; NULL is allowed.  Any thread. */
struct auth_keys *auth_keys_get(struct auth_keys *keys);
void auth_keys_put(struct auth_keys *keys);

#endif
