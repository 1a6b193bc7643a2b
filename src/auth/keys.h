/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials: the access keys of a credentials file, their secrets and what each may do.  A part of auth.h, for those
 * who handle keys and no requests.
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
#define AUTH_GIDS_MAX 64   /* likewise */
#define AUTH_FROM_MAX 64   /* likewise */
#define AUTH_PREFIX_MAX 1024

/* An immutable set of credentials; counted, shared by all threads.  Secrets are wiped when the last reference
 * goes, and never printed. */
struct auth_keys;
struct auth_entry;

/*
 * Reads the file (main thread).  It must be a regular file of the daemon's user or root and give nobody else
 * any access.  0, or -EINVAL (bad content or mode), -ENOMEM, -errno of opening it; every error is a line in
 * err.
 */
int auth_keys_load(const char *path, struct auth_keys **ret_keys, FILE *err);
/* Reads credentials from memory, as auth_keys_load() does from a file; source names them in errors. */
int auth_keys_parse(const char *text, size_t len, const char *source, struct auth_keys **ret_keys, FILE *err);

#define AUTH_UNBOUNDED UINT64_MAX /* of a grant's quota: no bound */

struct auth_grant {
	char bucket[64]; /* without the '*' */
	uint8_t bucket_len;
	bool any_suffix; /* "name*" and "*" */
	bool read_only, no_delete, no_overwrite;
	uint16_t prefix_len;
	char *prefix; /* NULL: none */
	/* What the buckets that it names may hold, together, whoever writes; AUTH_UNBOUNDED: as much as there is room for. */
	uint64_t max_objects, max_bytes, max_uploads;
};

/* Says what stands in an entry, but for what is secret. */
struct auth_key_info {
	const char *access_key;
	bool session_token; /* has one */
	bool read_only, no_delete, no_overwrite, have_expires;
	uint64_t expires_s;
	const struct auth_grant *grant; /* none: everything */
	int grant_nr;
	const struct conf_net *gid; /* none: what rdma.allow says */
	int gid_nr;
	const struct conf_net *from; /* none: anywhere */
	int from_nr;
};
/* Returns how many entries there are; NULL: none. */
int auth_keys_nr(const struct auth_keys *keys);
/* Fills in what entry i has, by access key; false: there are no more.  It lives as long as keys. */
bool auth_keys_info(const struct auth_keys *keys, int i, struct auth_key_info *ret);
/* Takes another reference; NULL is fine.  Any thread. */
struct auth_keys *auth_keys_get(struct auth_keys *keys);
void auth_keys_put(struct auth_keys *keys);

#endif
