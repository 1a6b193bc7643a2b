/*
 * Who is asking, see auth.h.  Called by req/ between dialect_parse() and dialect_token(), so that who may not
 * ask learns nothing about a descriptor (protocol.md 4.5).
 */
#include "auth/auth.h"

#include <string.h>
#include <strings.h>

static bool
is_streaming(const struct dialect_in *in)
{
	const struct field *hash = dialect_field(in, "x-amz-content-sha256", NULL);

	return hash && hash->value_len >= 10 && strncasecmp(hash->value, "STREAMING-", 10) == 0;
}

void
identity_init(struct identity *id)
{
	memset(id, 0, sizeof *id);
}

void
identity_put(struct identity *id)
{
	identity_init(id);
}

bool
auth_allows(const struct identity *id, const struct target *t)
{
	return id->anonymous;
}

bool
auth_may(const struct identity *id, enum auth_right right, const char *bucket, size_t bucket_len,
	 const char *key, size_t key_len)
{
	return id->anonymous;
}

enum fault
auth_check(const struct auth_env *env, const struct dialect_in *in, const struct target *t, uint64_t now_s,
	   struct identity *ret_id, const char **ret_why)
{
	*ret_why = "";
	identity_init(ret_id);
	if (in->listen->dialect == DIALECT_SCALITY) {
		ret_id->anonymous = true;
		return FAULT_NONE;
	}
	if (dialect_field(in, "authorization", NULL) || dialect_query_signed(in)) {
		*ret_why = "The request is signed, and this server does not verify signatures yet.";
		return FAULT_SIGNATURE;
	}
	if (is_streaming(in)) {
		*ret_why = "x-amz-content-sha256: streaming signatures are not implemented.";
		return FAULT_NOT_IMPLEMENTED;
	}
	if (!in->listen->anonymous) {
		*ret_why = "This listener does not serve unsigned requests.";
		return FAULT_ACCESS_DENIED;
	}
	ret_id->anonymous = true;
	return FAULT_NONE;
}
