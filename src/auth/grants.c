/* What an access key may do, see auth.h.  Pure; any thread. */
#include "auth/auth_int.h"

static bool
grant_has_bucket(const struct auth_grant *g, const char *bucket, size_t len)
{
	if (len < g->bucket_len || memcmp(bucket, g->bucket, g->bucket_len) != 0)
		return false;
	return g->any_suffix || len == g->bucket_len;
}

static bool
grant_has(const struct auth_grant *g, enum auth_right right, const char *bucket, size_t bucket_len,
	  const char *key, size_t key_len)
{
	if (!grant_has_bucket(g, bucket, bucket_len))
		return false;
	if ((right == AUTH_WRITE || right == AUTH_BUCKET) && g->read_only)
		return false;
	/* A bucket as a whole belongs to who may use all of it. */
	if (right == AUTH_BUCKET)
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
	if (e->read_only && (right == AUTH_WRITE || right == AUTH_BUCKET))
		return false;
	for (int i = 0; i < e->grant_nr; i++) {
		if (grant_has(&e->grant[i], right, bucket, bucket_len, key, key_len))
			return true;
	}
	return e->grant_nr == 0;
}

static bool
may_list(const struct identity *id, const struct target *t)
{
	return auth_may(id, AUTH_LIST, t->bucket, t->bucket_len, t->list.prefix, t->list.prefix_len);
}

static bool
may_copy(const struct identity *id, const struct target *t)
{
	return auth_may(id, AUTH_READ, t->copy.bucket, t->copy.bucket_len, t->copy.key, t->copy.key_len) &&
	       auth_may(id, AUTH_WRITE, t->bucket, t->bucket_len, t->key, t->key_len);
}

bool
auth_allows(const struct identity *id, const struct target *t)
{
	switch (t->op) {
	case OP_OPTIONS:     /* says what the bucket's CORS rules say, as S3 does to everybody */
	case OP_POST_OBJECT: /* asked again for the form's key, with who signed it */
		return true;
	case OP_LIST_BUCKETS:
		return id->anonymous || id->entry;
	case OP_HEAD_BUCKET:
	case OP_GET_BUCKET_LOCATION:
	case OP_DELETE_OBJECTS: /* asked again for each key */
		return auth_may(id, AUTH_LIST, t->bucket, t->bucket_len, NULL, 0);
	case OP_LIST_OBJECTS:
	case OP_LIST_OBJECTS_V2:
	case OP_LIST_OBJECT_VERSIONS:
	case OP_LIST_MULTIPART_UPLOADS:
		return may_list(id, t);
	case OP_COPY_OBJECT:
	case OP_UPLOAD_PART_COPY:
		return may_copy(id, t);
	case OP_GET_OBJECT:
	case OP_HEAD_OBJECT:
	case OP_GET_OBJECT_ATTRIBUTES:
	case OP_GET_OBJECT_TAGGING:
	case OP_GET_OBJECT_ACL:
	case OP_LIST_PARTS:
		return auth_may(id, AUTH_READ, t->bucket, t->bucket_len, t->key, t->key_len);
	case OP_PUT_OBJECT:
	case OP_DELETE_OBJECT:
	case OP_PUT_OBJECT_TAGGING:
	case OP_DELETE_OBJECT_TAGGING:
	case OP_PUT_OBJECT_ACL:
	case OP_CREATE_MULTIPART_UPLOAD:
	case OP_UPLOAD_PART:
	case OP_COMPLETE_MULTIPART_UPLOAD:
	case OP_ABORT_MULTIPART_UPLOAD:
		return auth_may(id, AUTH_WRITE, t->bucket, t->bucket_len, t->key, t->key_len);
	case OP_GET_BUCKET_CORS:
	case OP_GET_BUCKET_LIFECYCLE:
	case OP_GET_BUCKET_TAGGING:
	case OP_GET_BUCKET_ACL:
	case OP_GET_BUCKET_VERSIONING:
	case OP_GET_BUCKET_POLICY:
	case OP_GET_BUCKET_POLICY_STATUS:
	case OP_GET_BUCKET_ENCRYPTION:
	case OP_GET_PUBLIC_ACCESS_BLOCK:
	case OP_GET_OWNERSHIP_CONTROLS:
	case OP_GET_BUCKET_LOGGING:
	case OP_GET_BUCKET_REQUEST_PAYMENT:
	case OP_GET_BUCKET_WEBSITE:
	case OP_GET_BUCKET_NOTIFICATION:
	case OP_GET_BUCKET_REPLICATION:
	case OP_GET_BUCKET_ACCELERATE:
	case OP_GET_OBJECT_LOCK: /* the bucket's configuration */
		return auth_may(id, AUTH_LIST, t->bucket, t->bucket_len, "", 0);
	default:
		/* What makes or changes a bucket; also whatever is added and forgotten here. */
		return auth_may(id, AUTH_BUCKET, t->bucket, t->bucket_len, NULL, 0);
	}
}
