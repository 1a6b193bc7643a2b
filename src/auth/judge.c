/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What signatures of every version share: what a request says of its body, whose secret signed it, and whether it
 * came before.  Called by auth.c and sigv2.c; a core's thread.
 */
#include "auth/auth_int.h"

#include "base/address.h"
#include "base/hex.h"

#include <openssl/crypto.h>

/* ---- the body ---- */

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
enum fault
payload_find(const struct field *hash, int nr, const struct target *t, bool is_signed, struct identity *id,
	     const char **ret_why)
{
	static const struct {
		const char *text;
		enum auth_payload p;
	} streams[] = {
		{ "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", PAYLOAD_STREAM_SIGNED },
		{ "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", PAYLOAD_STREAM_SIGNED_TRAILER },
		{ "STREAMING-UNSIGNED-PAYLOAD-TRAILER", PAYLOAD_STREAM_UNSIGNED_TRAILER },
	};
	uint8_t ignored[32]; /* dialect/ keeps it */
	struct span text = hash ? field_text(hash) : span_of("UNSIGNED-PAYLOAD");

	if (nr > 1)
		return refuse(ret_why, FAULT_BAD_REQUEST, "x-amz-content-sha256 came more than once.");
	if (span_is(text, "UNSIGNED-PAYLOAD")) {
		id->payload = PAYLOAD_UNSIGNED;
		/* SDKs that do not sign send their trailers so. */
		if (t->aws_chunked && has_body(t)) {
			id->payload = PAYLOAD_STREAM_UNSIGNED_TRAILER;
			return check_stream(t, is_signed, id->payload, ret_why);
		}
		return FAULT_NONE;
	}
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
		if (span_is(text, streams[i].text)) {
			id->payload = streams[i].p;
			return check_stream(t, is_signed, streams[i].p, ret_why);
		}
	}
	if (span_begins(text, "STREAMING-"))
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "x-amz-content-sha256: this streaming form is not implemented.");
	if (span_is_nocase(text, HASH_OF_EMPTY))
		id->payload = PAYLOAD_EMPTY;
	else if (text.len == 64 && hex_bytes(text.p, ignored, 32) == 0)
		id->payload = PAYLOAD_HASH;
	else
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "x-amz-content-sha256 is neither UNSIGNED-PAYLOAD, a STREAMING- form, nor 64 "
			      "hexadecimal digits.");
	if (t->aws_chunked && has_body(t))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "An aws-chunked body needs a STREAMING- x-amz-content-sha256.");
	if (id->payload == PAYLOAD_HASH && !has_body(t))
		return refuse(ret_why, FAULT_SHA_MISMATCH,
			      "x-amz-content-sha256 is of a body, and the request has none.");
	return FAULT_NONE;
}

/* ---- who signed ---- */

/* What the credential itself asks for, once it is known that its holder speaks. */
static enum fault
check_entry(const struct auth_env *env, const struct auth_entry *e, struct span token, uint64_t now_s,
	    const char **ret_why)
{
	struct in6_addr from;

	if (e->token && !token.len)
		return refuse(ret_why, FAULT_ACCESS_KEY, "This access key is used with a security token.");
	if (token.len &&
	    (!e->token || e->token_len != token.len || CRYPTO_memcmp(e->token, token.p, token.len) != 0))
		return refuse(ret_why, FAULT_SECURITY_TOKEN,
			      "The security token is not that of the access key.");
	if (e->have_expires && now_s >= e->expires_s)
		return e->token ? refuse(ret_why, FAULT_EXPIRED_TOKEN, "The security token has expired.")
				: refuse(ret_why, FAULT_ACCESS_KEY,
					 "This secret of the access key has expired.");
	/* A peer without an address is in no list. */
	if (e->from_nr && (!address_in6(env->peer, &from) || !conf_nets_have(e->from, e->from_nr, &from)))
		return refuse(ret_why, FAULT_ACCESS_DENIED,
			      "The access key is not good from this address (from).");
	return FAULT_NONE;
}

/* Every secret of the access key is tried (rotation). */
enum fault
entries_try(const struct auth_env *env, struct span access_key, struct span token, uint64_t now_s,
	    entry_signed_fn is_signed, const void *what, struct identity *id, const char **ret_why)
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
	e = keys_find(env->keys, access_key, &nr);
	if (!e)
		return refuse(ret_why, FAULT_ACCESS_KEY, "The access key is not known.");
	for (int i = 0; i < nr; i++) {
		enum fault f;

		if (!is_signed(&e[i], what, id))
			continue;
		f = check_entry(env, &e[i], token, now_s, ret_why);
		if (f == FAULT_NONE) {
			usage_mark(&e[i], now_s);
			id->entry = &e[i];
			id->keys = auth_keys_get(env->keys);
			return FAULT_NONE;
		}
		explicit_bzero(id->signing_key, sizeof id->signing_key);
		result = f;
	}
	return result;
}

/* A request that was captured and is sent again; one with a descriptor reads or writes a client's memory. */
enum fault
replay_check(const struct auth_env *env, const uint8_t signature[32], uint64_t until_s,
	     const struct target *t, uint64_t now_s, const struct identity *id, const char **ret_why)
{
	bool once = env->replay_mode == REPLAY_ONCE;

	if (!env->replay || (!has_descriptor(t) && env->replay_mode != REPLAY_REJECT))
		return FAULT_NONE;
	if (auth_replay_fresh(env->replay, id->entry->access_key, signature, env->peer, once, now_s, until_s))
		return FAULT_NONE;
	auth_replay_refused(env->replay, id->entry->access_key, env->peer);
	if (!has_descriptor(t))
		return refuse(ret_why, FAULT_ACCESS_DENIED,
			      "The signature was used before, from another address.");
	/* Not 403: a client that repeats itself honestly does so with a new date. */
	return refuse(ret_why, FAULT_REPLAYED,
		      once ? "The signature was used before: sign the request again."
			   : "The signature was used before, from another address: sign the request again.");
}
