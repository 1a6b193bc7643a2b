/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is asking, see auth.h.  Called by req/ on a core's thread.
 *
 * The order decides what an outsider can learn: nothing but that an access key exists, as on S3.
 */
#include "auth/auth_int.h"

#include "base/hex.h"

#include <openssl/crypto.h>

void
identity_init(struct identity *id)
{
	memset(id, 0, sizeof *id);
}

void
identity_put(struct identity *id)
{
	/* Without an entry of the keys there is no signing key. */
	if (!id->keys)
		return;
	auth_keys_put(id->keys);
	explicit_bzero(id, sizeof *id);
}

/* ---- unsigned ---- */

static enum fault
check_unsigned(const struct dialect_in *in, const struct target *t, struct identity *id, const char **ret_why)
{
	const struct field *hash;
	int hash_nr;

	if (in->listen->dialect == DIALECT_SCALITY) {
		id->anonymous = true;
		return FAULT_NONE;
	}
	/* A form has a signature of its own in its fields: it may nothing until that is known.  What anybody may do
	 * needs none. */
	if (!in->listen->anonymous && !(t && op_info[t->op].right == RIGHT_ANYBODY))
		return refuse(ret_why, FAULT_ACCESS_DENIED,
			      "This listener does not serve unsigned requests.");
	id->anonymous = in->listen->anonymous;
	hash = dialect_payload_hash(in, &hash_nr);
	return !t ? FAULT_NONE : payload_find(hash, hash_nr, t, false, id, ret_why);
}

/* ---- signed ---- */

static enum fault
check_time(const struct auth_env *env, const struct sigv4 *s, uint64_t now_s, const char **ret_why)
{
	if (s->time_s > now_s + env->skew_s)
		return s->presigned ? refuse(ret_why, FAULT_ACCESS_DENIED, "The URL is not valid yet.")
				    : refuse(ret_why, FAULT_SKEWED,
					     "The time of the request is too far from the server's.");
	if (s->presigned && now_s >= s->time_s + s->expires_s)
		return refuse(ret_why, FAULT_ACCESS_DENIED, "The URL has expired.");
	if (!s->presigned && now_s > s->time_s + env->skew_s)
		return refuse(ret_why, FAULT_SKEWED, "The time of the request is too far from the server's.");
	return FAULT_NONE;
}

/* What a key that is derived for a day signs. */
struct claim {
	const struct sigv4 *s;
	const char *text;
	size_t len;
};

static bool
is_signed_v4(struct auth_entry *e, const void *what, struct identity *id)
{
	const struct claim *c = what;
	const struct sigv4 *s = c->s;
	union signing_words key;
	uint8_t signature[32];
	bool kept = signing_key(e, s->stamp, s->region, &key), same;

	hmac256(&key.k.hmac, c->text, c->len, signature);
	same = CRYPTO_memcmp(signature, s->signature, 32) == 0;
	if (same) {
		if (!kept)
			signing_key_keep(e, &key);
		memcpy(id->signing_key, key.k.key, sizeof key.k.key);
	}
	explicit_bzero(&key, sizeof key);
	return same;
}

#define ALGORITHM "AWS4-HMAC-SHA256"
/* The longest string to sign, with a NUL. */
#define TO_SIGN_MAX (sizeof((struct auth_explained *)NULL)->to_sign)

static char *
put(char *to, const char *p, size_t len)
{
	memcpy(to, p, len);
	to[len] = '\n';
	return to + len + 1;
}

/* Writes the string to sign of a request, which is hashed in one call, and returns its end. */
static char *
string_to_sign(const struct sigv4 *s, const uint8_t hash[32], char out[TO_SIGN_MAX])
{
	char *p = put(out, ALGORITHM, sizeof ALGORITHM - 1);

	p = put(p, s->stamp, AUTH_STAMP_LEN);
	p = put(p, s->scope, strlen(s->scope));
	hex_write(p, hash, 32);
	return p + 64;
}

static bool
is_signed(const struct dialect_in *in, bool *ret_in_header)
{
	bool s3 = in->listen->dialect == DIALECT_S3;

	*ret_in_header = s3 && dialect_field(in, "authorization", NULL);
	return *ret_in_header || (s3 && dialect_query_signed(in));
}

/* Finds the signature, of which there is one, in the header or in the query. */
static enum fault
scan(const struct auth_env *env, const struct dialect_in *in, bool in_header, struct sigv4 *s,
     const char **ret_why)
{
	s->presigned = false;
	s->token.len = 0;
	s->signed_headers.len = 0;
	s->expires_s = 0;
	if (in_header && dialect_query_signed(in))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "The request is signed twice: in Authorization and in the query.");
	return in_header ? scan_header(in, env->region, s, ret_why) : scan_query(in, env->region, s, ret_why);
}

/* The end of the canonical request.  curl --aws-sigv4 leaves x-amz-content-sha256 out, and signs the hash of
 * nothing. */
static struct span
payload_text(const struct field *hash, bool presigned)
{
	if (hash)
		return field_text(hash);
	return span_of(presigned ? "UNSIGNED-PAYLOAD" : HASH_OF_EMPTY);
}

static enum fault
check_signed(const struct auth_env *env, const struct dialect_in *in, bool in_header, const struct target *t,
	     uint64_t now_s, struct identity *id, const char **ret_why)
{
	int payload_nr;
	const struct field *payload = dialect_payload_hash(in, &payload_nr);
	struct sigv4 s;
	uint8_t hash[32];
	char text[TO_SIGN_MAX];
	enum fault f = scan(env, in, in_header, &s, ret_why);

	if (f == FAULT_NONE && t && !s.presigned && !payload && has_body(t))
		f = refuse(ret_why, FAULT_BAD_REQUEST,
			   "A signed request with a body needs x-amz-content-sha256.");
	if (f == FAULT_NONE)
		f = canon_check_headers(in, &s, env->relax, ret_why);
	if (f == FAULT_NONE && t && has_descriptor(t))
		f = canon_check_beside(in, &s, t->wire, env->relax, ret_why);
	if (f == FAULT_NONE)
		f = check_time(env, &s, now_s, ret_why);
	if (f == FAULT_NONE && t)
		f = payload_find(payload, payload_nr, t, true, id, ret_why);
	if (f != FAULT_NONE)
		return f;
	canon_hash(in, &s, payload_text(payload, s.presigned), hash);
	f = entries_try(env, s.access_key, s.token, now_s, is_signed_v4,
			&(struct claim){ &s, text, (size_t)(string_to_sign(&s, hash, text) - text) }, id,
			ret_why);
	if (f != FAULT_NONE)
		return f;
	id->presigned = s.presigned;
	memcpy(id->signature, s.signature, sizeof s.signature);
	memcpy(id->stamp, s.stamp, sizeof s.stamp);
	memcpy(id->scope, s.scope, sizeof s.scope);
	return !t ? FAULT_NONE
		  : replay_check(env, s.signature, s.time_s + (s.presigned ? s.expires_s : env->skew_s), t,
				 now_s, id, ret_why);
}

bool
auth_explain(const struct auth_env *env, const struct dialect_in *in, struct auth_explained *out)
{
	struct sigv4 s;
	const char *why;
	struct span payload;
	uint8_t hash[32];
	bool in_header;

	if (!is_signed(in, &in_header) || sigv2_concerns(env, in) ||
	    scan(env, in, in_header, &s, &why) != FAULT_NONE)
		return false;
	payload = payload_text(dialect_payload_hash(in, NULL), s.presigned);
	canon_hash(in, &s, payload, hash);
	*string_to_sign(&s, hash, out->to_sign) = 0;
	out->canonical_len = canon_text(in, &s, payload, out->canonical, sizeof out->canonical);
	return out->canonical_len > 0;
}

enum fault
auth_check(const struct auth_env *env, const struct dialect_in *in, const struct target *t, uint64_t now_s,
	   struct identity *out, const char **ret_why)
{
	enum fault f;
	bool in_header;

	*ret_why = "";
	identity_init(out);
	/* A preflight changes and shows nothing, and what it says of a signature is of the request to come:
	 * the rules of the bucket alone answer it. */
	if (t && t->op == OP_OPTIONS)
		return FAULT_NONE;
	if (is_signed(in, &in_header))
		f = sigv2_concerns(env, in) ? sigv2_check(env, in, t, now_s, out, ret_why)
					    : check_signed(env, in, in_header, t, now_s, out, ret_why);
	else
		f = check_unsigned(in, t, out, ret_why);
	if (f != FAULT_NONE) {
		identity_put(out);
		identity_init(out);
	}
	return f;
}

/* ---- forms ---- */

enum fault
auth_check_form(const struct auth_env *env, const struct auth_form *form, uint64_t now_s,
		struct identity *out, const char **ret_why)
{
	struct sigv4 s;
	enum fault f;

	*ret_why = "";
	/* The form's own signature counts, no matter which identity signed the request itself. */
	identity_put(out);
	identity_init(out);
	if (form->access_key && !form->algorithm && !form->credential)
		return sigv2_check_form(env, form, now_s, out, ret_why);
	if (!form->policy || !form->algorithm || !form->credential || !form->date || !form->signature)
		return refuse(ret_why, FAULT_ACCESS_DENIED,
			      "A signed form needs policy, x-amz-algorithm, -credential, -date, -signature.");
	if (!span_is((struct span){ form->algorithm, form->algorithm_len }, "AWS4-HMAC-SHA256"))
		return refuse(ret_why, FAULT_AUTH_QUERY, "x-amz-algorithm is not AWS4-HMAC-SHA256.");
	f = scan_credential((struct span){ form->credential, form->credential_len }, env->region,
			    FAULT_AUTH_QUERY, &s, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (stamp_parse((struct span){ form->date, form->date_len }, s.stamp, &s.time_s) < 0 ||
	    memcmp(s.scope, s.stamp, 8) != 0)
		return refuse(ret_why, FAULT_AUTH_QUERY,
			      "x-amz-date is not like 20130524T000000Z, or not the credential's day.");
	if (signature_parse((struct span){ form->signature, form->signature_len }, s.signature) < 0)
		return refuse(ret_why, FAULT_AUTH_QUERY, "x-amz-signature is not 64 hexadecimal digits.");
	s.token = (struct span){ form->security_token, form->security_token ? form->security_token_len : 0 };
	if (s.time_s > now_s + env->skew_s)
		return refuse(ret_why, FAULT_ACCESS_DENIED, "The form is not valid yet.");
	return entries_try(env, s.access_key, s.token, now_s, is_signed_v4,
			   &(struct claim){ &s, form->policy, form->policy_len }, out, ret_why);
}
