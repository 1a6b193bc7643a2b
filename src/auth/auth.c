/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is asking, see auth.h.  Called by req/ on a core's thread.
 *
 * The order decides what an outsider can learn: nothing but that an access key exists, as on S3.
 */
#include "auth/auth_int.h"

#include "base/address.h"
#include "base/hex.h"

#include <openssl/crypto.h>

static const uint8_t hash_of_empty[32] = { 0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4,
					   0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b,
					   0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55 };

void
identity_init(struct identity *id)
{
	memset(id, 0, sizeof *id);
}

void
identity_put(struct identity *id)
{
	auth_keys_put(id->keys);
	OPENSSL_cleanse(id, sizeof *id);
}

/* ---- the body ---- */

static bool
has_body(const struct target *t)
{
	return t->chunked || (t->have_content_length && t->content_length > 0);
}

static enum fault
check_stream(const struct target *t, bool is_signed, enum auth_payload p, const char **ret_why)
{
	if (t->wire != WIRE_NONE)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "A streaming x-amz-content-sha256 and an RDMA descriptor came together.");
	if (!op_pulls(t->op) && op_info[t->op].body != BODY_TEXT)
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "aws-chunked bodies are taken for objects, parts and XML only.");
	if (!is_signed && p != PAYLOAD_STREAM_UNSIGNED_TRAILER)
		return refuse(ret_why, FAULT_ACCESS_DENIED, "Signed chunks came in an unsigned request.");
	if (p == PAYLOAD_STREAM_SIGNED && t->have_trailer)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "x-amz-trailer came with an x-amz-content-sha256 that has no trailer.");
	if (!t->have_decoded_length)
		return refuse(ret_why, FAULT_LENGTH_REQUIRED,
			      "An aws-chunked body needs x-amz-decoded-content-length.");
	return FAULT_NONE;
}

/* What x-amz-content-sha256 says about the body (protocol.md 4.5; item 47). */
static enum fault
find_payload(const struct dialect_in *in, const struct target *t, bool is_signed, struct identity *id,
	     struct span *ret_text, const char **ret_why)
{
	static const struct {
		const char *text;
		enum auth_payload p;
	} streams[] = {
		{ "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", PAYLOAD_STREAM_SIGNED },
		{ "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", PAYLOAD_STREAM_SIGNED_TRAILER },
		{ "STREAMING-UNSIGNED-PAYLOAD-TRAILER", PAYLOAD_STREAM_UNSIGNED_TRAILER },
	};
	const struct field *f;
	int nr;

	f = dialect_payload_hash(in, &nr);
	if (nr > 1)
		return refuse(ret_why, FAULT_BAD_REQUEST, "x-amz-content-sha256 came more than once.");
	*ret_text = f ? field_text(f) : span_of("UNSIGNED-PAYLOAD");
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
		if (span_is(*ret_text, streams[i].text)) {
			id->payload = streams[i].p;
			return check_stream(t, is_signed, streams[i].p, ret_why);
		}
	}
	if (span_is(*ret_text, "UNSIGNED-PAYLOAD")) {
		id->payload = PAYLOAD_UNSIGNED;
		/* SDKs that do not sign send their trailers so. */
		if (t->aws_chunked && has_body(t)) {
			id->payload = PAYLOAD_STREAM_UNSIGNED_TRAILER;
			return check_stream(t, is_signed, id->payload, ret_why);
		}
		return FAULT_NONE;
	}
	if (span_begins(*ret_text, "STREAMING-"))
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "x-amz-content-sha256: this streaming form is not implemented.");
	if (ret_text->len != 64 || hex_bytes(ret_text->p, id->payload_hash, 32) < 0)
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "x-amz-content-sha256 is neither UNSIGNED-PAYLOAD, a STREAMING- form, nor 64 "
			      "hexadecimal digits.");
	id->payload = memcmp(id->payload_hash, hash_of_empty, 32) == 0 ? PAYLOAD_EMPTY : PAYLOAD_HASH;
	if (t->aws_chunked && has_body(t))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "An aws-chunked body needs a STREAMING- x-amz-content-sha256.");
	if (id->payload == PAYLOAD_HASH && !has_body(t))
		return refuse(ret_why, FAULT_SHA_MISMATCH,
			      "x-amz-content-sha256 is of a body, and the request has none.");
	return FAULT_NONE;
}

/* ---- unsigned ---- */

static enum fault
check_unsigned(const struct dialect_in *in, const struct target *t, struct identity *id, const char **ret_why)
{
	struct span text;

	if (in->listen->dialect == DIALECT_SCALITY) {
		id->anonymous = true;
		return FAULT_NONE;
	}
	/* A form has a signature of its own in its fields: it may nothing until that is known. */
	if (!in->listen->anonymous && !(t && t->op == OP_POST_OBJECT))
		return refuse(ret_why, FAULT_ACCESS_DENIED,
			      "This listener does not serve unsigned requests.");
	id->anonymous = in->listen->anonymous;
	return !t ? FAULT_NONE : find_payload(in, t, false, id, &text, ret_why);
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

/* What the credential itself asks for, once it is known that its holder speaks. */
static enum fault
check_entry(const struct auth_env *env, const struct auth_entry *e, const struct sigv4 *s, uint64_t now_s,
	    const char **ret_why)
{
	struct in6_addr from;

	if (e->token && !s->token.len)
		return refuse(ret_why, FAULT_ACCESS_KEY, "This access key is used with a security token.");
	if (s->token.len && (!e->token || e->token_len != s->token.len ||
			     CRYPTO_memcmp(e->token, s->token.p, s->token.len) != 0))
		return refuse(ret_why, FAULT_SECURITY_TOKEN,
			      "The security token is not that of the access key.");
	if (e->have_expires && now_s >= e->expires_s)
		return e->token ? refuse(ret_why, FAULT_EXPIRED_TOKEN, "The security token has expired.")
				: refuse(ret_why, FAULT_ACCESS_KEY, "The access key has expired.");
	/* A peer without an address is in no list. */
	if (e->from_nr && (!address_in6(env->peer, &from) || !conf_nets_have(e->from, e->from_nr, &from)))
		return refuse(ret_why, FAULT_ACCESS_DENIED,
			      "The access key is not good from this address (from).");
	return FAULT_NONE;
}

/*
 * Every secret of the access key is tried (rotation): does one give the signature over what `sign` says?  The
 * answer is of the best one: good, or at least signed well.
 */
static enum fault
try_entries(const struct auth_env *env, const struct sigv4 *s, uint64_t now_s,
	    void (*sign)(const uint8_t key[32], const struct sigv4 *s, const void *what, uint8_t out[32]),
	    const void *what, struct identity *id, const char **ret_why)
{
	enum fault result =
		refuse(ret_why, FAULT_SIGNATURE,
		       "The signature is not the one that the canonical request and the secret key give.");
	struct auth_entry *e = NULL;
	int nr = 0;

	if (auth_keys_nr(env->keys) == 0)
		return refuse(ret_why, FAULT_ACCESS_KEY,
			      "This server has no access keys: `gantry key new` makes one there.  Without a "
			      "signature it serves "
			      "who comes to a listener that is anonymous.");
	e = keys_find(env->keys, s->access_key, &nr);
	if (!e)
		return refuse(ret_why, FAULT_ACCESS_KEY, "The access key is not known.");
	for (int i = 0; i < nr; i++) {
		uint8_t key[32], signature[32];
		bool kept = signing_key(&e[i], s->stamp, s->region, key);
		enum fault f;

		sign(key, s, what, signature);
		if (CRYPTO_memcmp(signature, s->signature, 32) != 0)
			continue;
		if (!kept)
			signing_key_keep(&e[i], s->stamp, s->region, key);
		f = check_entry(env, &e[i], s, now_s, ret_why);
		if (f == FAULT_NONE) {
			id->entry = &e[i];
			id->keys = auth_keys_get(env->keys);
			memcpy(id->signing_key, key, sizeof key);
			OPENSSL_cleanse(key, sizeof key);
			return FAULT_NONE;
		}
		result = f;
	}
	return result;
}

#define ALGORITHM "AWS4-HMAC-SHA256"

static void
sign_request(const uint8_t key[32], const struct sigv4 *s, const void *hash, uint8_t out[32])
{
	struct hmac256 m;
	char hex[64];

	hex_write(hex, hash, 32);
	hmac256_begin(&m, key, 32);
	hmac256_add(&m, ALGORITHM "\n", sizeof ALGORITHM);
	hmac256_add(&m, s->stamp, AUTH_STAMP_LEN);
	hmac256_add(&m, "\n", 1);
	hmac256_add(&m, s->scope, strlen(s->scope));
	hmac256_add(&m, "\n", 1);
	hmac256_add(&m, hex, sizeof hex);
	hmac256_end(&m, out);
}

/* Finds the signature, of which there is one, in the header or in the query. */
static enum fault
scan(const struct auth_env *env, const struct dialect_in *in, struct sigv4 *s, const char **ret_why)
{
	bool in_header = dialect_field(in, "authorization", NULL) != NULL;

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
payload_text(const struct dialect_in *in, bool presigned)
{
	const struct field *f = dialect_payload_hash(in, NULL);

	if (f)
		return field_text(f);
	return span_of(presigned ? "UNSIGNED-PAYLOAD"
				 : "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* Will bytes move between our memory and a client's? */
static bool
has_descriptor(const struct target *t)
{
	return t->wire != WIRE_NONE && op_moves(t->op);
}

/* A request that was captured and is sent again; one with a descriptor reads or writes a client's memory. */
static enum fault
check_replay(const struct auth_env *env, const struct sigv4 *s, const struct target *t, uint64_t now_s,
	     const struct identity *id, const char **ret_why)
{
	bool once = env->replay_mode == REPLAY_ONCE;

	if (!env->replay || (!has_descriptor(t) && env->replay_mode != REPLAY_REJECT))
		return FAULT_NONE;
	if (auth_replay_fresh(env->replay, id->entry->access_key, s->signature, env->peer, once, now_s,
			      s->time_s + (s->presigned ? s->expires_s : env->skew_s)))
		return FAULT_NONE;
	auth_replay_refused(env->replay, id->entry->access_key, env->peer);
	if (!has_descriptor(t))
		return refuse(ret_why, FAULT_ACCESS_DENIED,
			      "The signature was used before, from another address.");
	/* Not 403: a client that repeats itself honestly does so with a new date. */
	return refuse(ret_why, FAULT_REPLAYED,
		      once ? "The signature was used before: sign the request anew."
			   : "The signature was used before, from another address: sign the request anew.");
}

static enum fault
check_signed(const struct auth_env *env, const struct dialect_in *in, const struct target *t, uint64_t now_s,
	     struct identity *id, const char **ret_why)
{
	struct sigv4 s;
	struct span payload;
	uint8_t hash[32];
	enum fault f = scan(env, in, &s, ret_why);
	bool no_hash = f == FAULT_NONE && !s.presigned && !dialect_field(in, "x-amz-content-sha256", NULL);

	if (f == FAULT_NONE && t && no_hash && has_body(t))
		f = refuse(ret_why, FAULT_BAD_REQUEST,
			   "A signed request with a body needs x-amz-content-sha256.");
	if (f == FAULT_NONE)
		f = canon_check_headers(in, &s, env->relax, ret_why);
	if (f == FAULT_NONE && t && has_descriptor(t))
		f = canon_check_beside(in, &s, t->wire, env->relax, ret_why);
	if (f == FAULT_NONE)
		f = check_time(env, &s, now_s, ret_why);
	if (f == FAULT_NONE && t)
		f = find_payload(in, t, true, id, &payload, ret_why);
	if (f != FAULT_NONE)
		return f;
	payload = payload_text(in, s.presigned);
	canon_hash(in, &s, payload, hash);
	f = try_entries(env, &s, now_s, sign_request, hash, id, ret_why);
	if (f != FAULT_NONE)
		return f;
	id->presigned = s.presigned;
	memcpy(id->signature, s.signature, sizeof s.signature);
	memcpy(id->stamp, s.stamp, sizeof s.stamp);
	memcpy(id->scope, s.scope, sizeof s.scope);
	return t ? check_replay(env, &s, t, now_s, id, ret_why) : FAULT_NONE;
}

bool
auth_explain(const struct auth_env *env, const struct dialect_in *in, struct auth_explained *out)
{
	struct sigv4 s;
	const char *why;
	struct span payload;
	uint8_t hash[32];
	char hex[65];

	if (in->listen->dialect != DIALECT_S3 ||
	    !(dialect_field(in, "authorization", NULL) || dialect_query_signed(in)) ||
	    scan(env, in, &s, &why) != FAULT_NONE)
		return false;
	payload = payload_text(in, s.presigned);
	canon_hash(in, &s, payload, hash);
	hex_write(hex, hash, 32);
	hex[64] = 0;
	snprintf(out->to_sign, sizeof out->to_sign, ALGORITHM "\n%s\n%s\n%s", s.stamp, s.scope, hex);
	out->canonical_len = canon_text(in, &s, payload, out->canonical, sizeof out->canonical);
	return out->canonical_len > 0;
}

enum fault
auth_check(const struct auth_env *env, const struct dialect_in *in, const struct target *t, uint64_t now_s,
	   struct identity *out, const char **ret_why)
{
	enum fault f;

	*ret_why = "";
	identity_init(out);
	/* A preflight changes and shows nothing, and what it says of a signature is of the request to come:
	 * the rules of the bucket alone answer it. */
	if (t && t->op == OP_OPTIONS)
		return FAULT_NONE;
	if (in->listen->dialect == DIALECT_S3 &&
	    (dialect_field(in, "authorization", NULL) || dialect_query_signed(in)))
		f = check_signed(env, in, t, now_s, out, ret_why);
	else
		f = check_unsigned(in, t, out, ret_why);
	if (f != FAULT_NONE) {
		identity_put(out);
		identity_init(out);
	}
	return f;
}

/* ---- forms ---- */

static void
sign_policy(const uint8_t key[32], const struct sigv4 *s, const void *what, uint8_t out[32])
{
	const struct auth_form *form = what;

	hmac256_of(key, 32, form->policy, form->policy_len, out);
}

enum fault
auth_check_form(const struct auth_env *env, const struct auth_form *form, uint64_t now_s,
		struct identity *out, const char **ret_why)
{
	struct sigv4 s;
	enum fault f;

	*ret_why = "";
	/* Whoever signed the request itself: the form's own signature counts. */
	identity_put(out);
	identity_init(out);
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
	return try_entries(env, &s, now_s, sign_policy, form, out, ret_why);
}
