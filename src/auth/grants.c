/* SPDX-License-Identifier: Apache-2.0 */
/* What an access key may do, see auth.h.  Pure; any thread. */
#include "auth/auth_int.h"

static bool
grant_has_bucket(const struct auth_grant *g, const char *bucket, size_t len)
{
	if (len < g->bucket_len || memcmp(bucket, g->bucket, g->bucket_len) != 0)
		return false;
	return g->any_suffix || len == g->bucket_len;
}

/* Does one of these conditions, of an entry or of a grant, speak against it? */
static bool
is_against(enum auth_right right, bool read_only, bool no_delete, bool no_overwrite)
{
	switch (right) {
	case AUTH_READ:
	case AUTH_LIST:
		return false;
	case AUTH_DELETE:
	case AUTH_DELETE_BUCKET:
		return read_only || no_delete;
	case AUTH_REPLACE:
		return read_only || no_overwrite;
	default:
		return read_only;
	}
}

static bool
grant_has(const struct auth_grant *g, enum auth_right right, const char *bucket, size_t bucket_len,
	  const char *key, size_t key_len)
{
	if (!grant_has_bucket(g, bucket, bucket_len))
		return false;
	if (is_against(right, g->read_only, g->no_delete, g->no_overwrite))
		return false;
	/* A bucket as a whole belongs to who may use all of it. */
	if (right == AUTH_BUCKET || right == AUTH_DELETE_BUCKET)
		return g->prefix_len == 0;
	if (right == AUTH_LIST && !key)
		return true;
	return key_len >= g->prefix_len && (g->prefix_len == 0 || memcmp(key, g->prefix, g->prefix_len) == 0);
}

bool
auth_may(const struct identity *id, enum auth_right right, const char *bucket, size_t bucket_len,
	 const char *key, size_t key_len)
{
	const struct auth_entry *e = id->entry;

	if (!e)
		return id->anonymous;
	if (is_against(right, e->read_only, e->no_delete, e->no_overwrite))
		return false;
	for (int i = 0; i < e->grant_nr; i++) {
		if (grant_has(&e->grant[i], right, bucket, bucket_len, key, key_len))
			return true;
	}
	return e->grant_nr == 0;
}

bool
auth_gid_allowed(const struct identity *id, const uint8_t *gid)
{
	const struct auth_entry *e = id->entry;
	struct in6_addr a;

	if (!e || e->gid_nr == 0)
		return true;
	if (!gid)
		return false;
	memcpy(&a, gid, sizeof a);
	return conf_nets_have(e->gid, e->gid_nr, &a);
}

static bool
may_bucket(const struct identity *id, enum auth_right right, const struct target *t)
{
	return auth_may(id, right, t->bucket, t->bucket_len, NULL, 0);
}

static bool
may_key(const struct identity *id, enum auth_right right, const struct target *t)
{
	return auth_may(id, right, t->bucket, t->bucket_len, t->key, t->key_len);
}

/* An expiry is a deletion that is asked for in advance. */
static bool
may_write(const struct identity *id, const struct target *t)
{
	return may_key(id, AUTH_WRITE, t) && (!t->ttl_s || may_key(id, AUTH_DELETE, t));
}

bool
auth_allows(const struct identity *id, const struct target *t)
{
	switch (op_info[t->op].right) {
	case RIGHT_ANYBODY:
		return true;
	case RIGHT_KNOWN:
		return id->anonymous || id->entry;
	case RIGHT_SEE_BUCKET:
		return may_bucket(id, AUTH_LIST, t);
	case RIGHT_LIST_PREFIX:
		if (!t->list)
			break;
		return auth_may(id, AUTH_LIST, t->bucket, t->bucket_len, t->list->prefix,
				t->list->prefix_len);
	case RIGHT_LIST_BUCKET:
		return auth_may(id, AUTH_LIST, t->bucket, t->bucket_len, "", 0);
	case RIGHT_READ_KEY:
		return may_key(id, AUTH_READ, t);
	case RIGHT_COPY:
		if (!t->copy)
			break;
		return auth_may(id, AUTH_READ, t->copy->bucket, t->copy->bucket_len, t->copy->key,
				t->copy->key_len) &&
		       may_write(id, t);
	case RIGHT_WRITE_KEY:
		return may_write(id, t);
	case RIGHT_REPLACE_KEY:
		return may_key(id, AUTH_REPLACE, t);
	case RIGHT_DELETE_KEY:
		return may_key(id, AUTH_DELETE, t);
	case RIGHT_DELETE_BUCKET:
		return may_bucket(id, AUTH_DELETE_BUCKET, t);
	case RIGHT_BUCKET:
		break;
	}
	/* Also for whatever is added and forgotten here, and for a target that was not parsed to its end. */
	return may_bucket(id, AUTH_BUCKET, t);
}

enum fault
auth_denial(const struct identity *id, enum auth_right right, const char *bucket, size_t bucket_len,
	    const char *key, size_t key_len)
{
	switch (right) {
	case AUTH_DELETE:
	case AUTH_REPLACE:
		if (auth_may(id, AUTH_WRITE, bucket, bucket_len, key, key_len))
			return right == AUTH_DELETE ? FAULT_NO_DELETE : FAULT_NO_OVERWRITE;
		return FAULT_ACCESS_DENIED;
	case AUTH_DELETE_BUCKET:
		return auth_may(id, AUTH_BUCKET, bucket, bucket_len, NULL, 0) ? FAULT_NO_DELETE
									      : FAULT_ACCESS_DENIED;
	default:
		return FAULT_ACCESS_DENIED;
	}
}

enum fault
auth_denial_of(const struct identity *id, const struct target *t)
{
	enum op_right right = op_info[t->op].right;

	return auth_denial(id,
			   right == RIGHT_DELETE_KEY      ? AUTH_DELETE
			   : right == RIGHT_REPLACE_KEY   ? AUTH_REPLACE
			   : right == RIGHT_DELETE_BUCKET ? AUTH_DELETE_BUCKET
			   : t->ttl_s                     ? AUTH_DELETE
							  : AUTH_WRITE,
			   t->bucket, t->bucket_len, t->key, t->key_len);
}
