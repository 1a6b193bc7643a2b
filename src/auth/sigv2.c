/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of version 2 in the query of a URL and in a form: HMAC-SHA1 with the secret itself, as boto3 and
 * AWS CLI 1 make them by default for us-east-1.  Called by auth.c where auth.sigv2 allows it.
 *
 * Such a signature covers method, Content-MD5, Content-Type, the time until which it is good, all x-amz-*
 * fields, path and some parameters.  What it does not cover is not acted on: bytes of objects alone are moved
 * by it, over HTTP, and a request that says anything to us elsewhere is refused.  Its text has the values of
 * parameters as they are, so one that reads as two parameters is refused as well: a text means one request.
 */
#include "auth/auth_int.h"

#include "base/base64.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <errno.h>

#define MAC_LEN 20
#define TEXT_MAX (16u << 10)

/* Parameters that say something to an operation served here; the signature covers them. */
static const char *const covered[] = {
	"partNumber",
	"response-cache-control",
	"response-content-disposition",
	"response-content-encoding",
	"response-content-language",
	"response-content-type",
	"response-expires",
	"uploadId",
	"versionId",
};

struct sigv2 {
	struct span access_key, expires, token; /* token: len 0 for none */
	uint64_t expires_s;
	uint8_t mac[MAC_LEN];
	const char *text; /* that is signed */
	size_t text_len;
};

bool
sigv2_concerns(const struct auth_env *env, const struct dialect_in *in)
{
	if (!env->sigv2 || dialect_field(in, "authorization", NULL))
		return false;
	for (int i = 0; i < in->uri->param_nr; i++) {
		if (sigv2_is_key(uri_name(in->uri, i)))
			return true;
	}
	return false;
}

/* ---- as it came ---- */

/* A plus that was sent as it is came out of the query as a blank, which base64 has none of. */
static int
mac_parse(struct span text, uint8_t out[MAC_LEN])
{
	char copy[BASE64_LEN(MAC_LEN)];
	size_t len = 0;

	if (text.len != sizeof copy)
		return -EINVAL;
	for (size_t i = 0; i < sizeof copy; i++)
		copy[i] = (char)(text.p[i] == ' ' ? '+' : text.p[i]);
	return base64_decode(copy, sizeof copy, (char *)out, MAC_LEN, &len) == 0 && len == MAC_LEN ? 0
												   : -EINVAL;
}

static enum fault
scan(const struct uri *uri, struct sigv2 *s, const char **ret_why)
{
	struct span mac = { NULL, 0 };

	memset(s, 0, sizeof *s);
	for (int i = 0; i < uri->param_nr; i++) {
		struct span name = uri_name(uri, i), value = uri_value(uri, i);

		if (span_is(name, "AWSAccessKeyId"))
			s->access_key = value;
		else if (span_is(name, "Signature"))
			mac = value;
		else if (span_is(name, "Expires"))
			s->expires = value;
		else if (span_is_nocase(name, "x-amz-security-token"))
			s->token = value;
		else if (span_is(name, "X-Amz-Signature") || span_is(name, "X-Amz-Credential") ||
			 span_is(name, "X-Amz-Algorithm"))
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "The request is signed twice: by version 2 and by version 4.");
	}
	if (!s->access_key.len || !mac.p || !s->expires.p)
		return refuse(ret_why, FAULT_AUTH_QUERY,
			      "A URL signed by version 2 needs AWSAccessKeyId, Signature and Expires.");
	if (mac_parse(mac, s->mac) < 0)
		return refuse(ret_why, FAULT_AUTH_QUERY, "Signature is not base64 of 20 bytes.");
	if (span_decimal(s->expires, &s->expires_s) < 0)
		return refuse(ret_why, FAULT_AUTH_QUERY, "Expires is not a number of seconds since 1970.");
	return FAULT_NONE;
}

static enum fault
check_time(const struct auth_env *env, const struct sigv2 *s, uint64_t now_s, const char **ret_why)
{
	if (now_s >= s->expires_s)
		return refuse(ret_why, FAULT_ACCESS_DENIED, "The URL has expired.");
	if (s->expires_s > now_s + env->skew_s + AUTH_EXPIRES_MAX_S)
		return refuse(ret_why, FAULT_AUTH_QUERY, "Expires is more than a week ahead.");
	return FAULT_NONE;
}

/* ---- what is not covered ---- */

static bool
is_covered(struct span name)
{
	for (size_t i = 0; i < sizeof covered / sizeof *covered; i++) {
		if (span_is(name, covered[i]))
			return true;
	}
	return false;
}

/* Does a value read as if another parameter followed it? */
static bool
reads_as_two(struct span value)
{
	const char *amp;

	while ((amp = memchr(value.p, '&', value.len))) {
		struct span rest, piece;

		value = (struct span){ amp + 1, value.len - (size_t)(amp - value.p) - 1 };
		rest = value;
		piece = span_cut(&rest, '&');
		if (is_covered(span_cut(&piece, '=')))
			return true;
	}
	return false;
}

static enum fault
check_params(const struct uri *uri, const char **ret_why)
{
	for (int i = 0; i < uri->param_nr; i++) {
		struct span name = uri_name(uri, i);

		if (span_begins_nocase(name, "x-amz-") && !span_is_nocase(name, "x-amz-security-token"))
			return refuse(ret_why, FAULT_ACCESS_DENIED,
				      "A URL signed by version 2 has no header in its query: " SIGV2_HELP);
		if (is_covered(name) && reads_as_two(uri_value(uri, i)))
			return refuse(
				ret_why, FAULT_ACCESS_DENIED,
				"A parameter has a value that version 2 does not tell from two: " SIGV2_HELP);
	}
	return FAULT_NONE;
}

/* Fields that say something to us and are not x-amz-*. */
static enum fault
check_fields(const struct dialect_in *in, const char **ret_why)
{
	for (int i = 0; i < in->field_nr; i++) {
		struct span name = { in->fields[i].name, in->fields[i].name_len };

		if (dialect_is_wire_header(name))
			return refuse(ret_why, FAULT_ACCESS_DENIED,
				      "A request with a token is not signed by version 2: " SIGV2_HELP);
		if (dialect_must_sign(name, false) && !span_begins_nocase(name, "x-amz-") &&
		    !span_is_nocase(name, "host"))
			return refuse(
				ret_why, FAULT_ACCESS_DENIED,
				"A header that must be signed is not covered by version 2: " SIGV2_HELP);
	}
	return FAULT_NONE;
}

static enum fault
check_covered(const struct dialect_in *in, const struct target *t, const char **ret_why)
{
	enum fault f;

	switch (t->op) {
	case OP_GET_OBJECT:
	case OP_HEAD_OBJECT:
	case OP_PUT_OBJECT:
	case OP_UPLOAD_PART:
		break;
	default:
		return refuse(
			ret_why, FAULT_ACCESS_DENIED,
			"Signatures of version 2 are for GET, HEAD and PUT of objects alone: " SIGV2_HELP);
	}
	f = check_params(in->uri, ret_why);
	return f == FAULT_NONE ? check_fields(in, ret_why) : f;
}

/* ---- what is signed ---- */

struct writer {
	size_t len; /* more than TEXT_MAX: there was no room */
	char text[TEXT_MAX];
};

static void
put(struct writer *w, const char *p, size_t len)
{
	if (len && w->len <= TEXT_MAX && len <= TEXT_MAX - w->len)
		memcpy(w->text + w->len, p, len);
	else if (len)
		w->len = TEXT_MAX;
	w->len += len;
}

static void
put_str(struct writer *w, const char *s)
{
	put(w, s, strlen(s));
}

/* A line of its own; empty where there is no such field. */
static enum fault
put_line(struct writer *w, const struct dialect_in *in, const char *name, const char **ret_why)
{
	int nr;
	const struct field *f = dialect_field(in, name, &nr);

	if (nr > 1)
		return refuse(ret_why, FAULT_BAD_REQUEST, "Content-MD5 or Content-Type came more than once.");
	if (f)
		put(w, field_text(f).p, field_text(f).len);
	put(w, "\n", 1);
	return FAULT_NONE;
}

static int
compare(const struct field *a, const struct field *b)
{
	int c = strncasecmp(a->name, b->name, a->name_len < b->name_len ? a->name_len : b->name_len);

	return c ? c : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

/* All x-amz-* fields by name, values of one name joined; a security token may have come in the query. */
static void
put_fields(struct writer *w, const struct dialect_in *in, const struct sigv2 *s)
{
	const struct field *sorted[DIALECT_FIELDS_MAX + 1];
	struct field token = { "x-amz-security-token", s->token.p, sizeof "x-amz-security-token" - 1,
			       (uint32_t)s->token.len };
	int nr = 0;

	for (int i = -1; i < in->field_nr; i++) {
		const struct field *f = i < 0 ? &token : &in->fields[i];
		int at = nr;

		if (i < 0 ? !s->token.len : !name_begins(f, "x-amz-"))
			continue;
		while (at > 0 && compare(sorted[at - 1], f) > 0) {
			sorted[at] = sorted[at - 1];
			at--;
		}
		sorted[at] = f;
		nr++;
	}
	for (int i = 0; i < nr; i++) {
		bool again = i > 0 && compare(sorted[i - 1], sorted[i]) == 0;

		for (uint32_t k = 0; !again && k < sorted[i]->name_len; k++) {
			char c = sorted[i]->name[k];

			put(w, &(char){ (char)(c >= 'A' && c <= 'Z' ? c + 32 : c) }, 1);
		}
		put(w, again ? "," : ":", 1);
		put(w, field_text(sorted[i]).p, field_text(sorted[i]).len);
		if (i + 1 == nr || compare(sorted[i], sorted[i + 1]) != 0)
			put(w, "\n", 1);
	}
}

/* "/bucket/key?name=value": the path encoded, values as they are.  Parameters are in order already. */
static void
put_resource(struct writer *w, const struct dialect_in *in, const struct target *t)
{
	static const char digits[] = "0123456789ABCDEF";
	struct span path = in->uri->path;
	const char *sep = "?";

	if (t && t->virtual_host) {
		put(w, "/", 1);
		put(w, t->bucket, t->bucket_len);
	}
	for (size_t i = 0; i < path.len; i++) {
		unsigned char c = (unsigned char)path.p[i];

		if (uri_unreserved[c] || c == '/')
			put(w, path.p + i, 1);
		else
			put(w, (char[]){ '%', digits[c >> 4], digits[c & 15] }, 3);
	}
	for (int i = 0; i < in->uri->param_nr; i++) {
		struct span name = uri_name(in->uri, i), value = uri_value(in->uri, i);

		if (!is_covered(name))
			continue;
		put(w, sep, 1);
		sep = "&";
		put(w, name.p, name.len);
		put(w, "=", 1);
		put(w, value.p, value.len);
	}
}

static enum fault
write_text(struct writer *w, const struct dialect_in *in, const struct target *t, const struct sigv2 *s,
	   const char **ret_why)
{
	enum fault f;

	w->len = 0;
	put_str(w, in->method);
	put(w, "\n", 1);
	f = put_line(w, in, "content-md5", ret_why);
	if (f == FAULT_NONE)
		f = put_line(w, in, "content-type", ret_why);
	if (f != FAULT_NONE)
		return f;
	put(w, s->expires.p, s->expires.len);
	put(w, "\n", 1);
	put_fields(w, in, s);
	put_resource(w, in, t);
	return w->len <= TEXT_MAX
		       ? FAULT_NONE
		       : refuse(ret_why, FAULT_BAD_REQUEST, "The signed text exceeds 16 KiB: " SIGV2_HELP);
}

/* ---- who signed ---- */

static bool
is_signed_v2(struct auth_entry *e, const void *what, struct identity *id)
{
	const struct sigv2 *s = what;
	uint8_t mac[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	/* The secret after the "AWS4" that version 4 begins with. */
	if (!HMAC(EVP_sha1(), e->secret + SECRET_BEGINS, (int)e->secret_len - SECRET_BEGINS,
		  (const unsigned char *)s->text, s->text_len, mac, &len) ||
	    len != MAC_LEN)
		return false;
	return CRYPTO_memcmp(mac, s->mac, MAC_LEN) == 0;
}

enum fault
sigv2_check(const struct auth_env *env, const struct dialect_in *in, const struct target *t, uint64_t now_s,
	    struct identity *id, const char **ret_why)
{
	struct sigv2 s;
	struct writer w;
	int payload_nr;
	const struct field *payload = dialect_payload_hash(in, &payload_nr);
	enum fault f = scan(in->uri, &s, ret_why);

	if (f == FAULT_NONE && t)
		f = check_covered(in, t, ret_why);
	if (f == FAULT_NONE)
		f = check_time(env, &s, now_s, ret_why);
	/* Nothing of it could sign chunks. */
	if (f == FAULT_NONE && t)
		f = payload_find(payload, payload_nr, t, false, id, ret_why);
	if (f == FAULT_NONE)
		f = write_text(&w, in, t, &s, ret_why);
	if (f != FAULT_NONE)
		return f;
	s.text = w.text;
	s.text_len = w.len;
	f = entries_try(env, s.access_key, s.token, now_s, is_signed_v2, &s, id, ret_why);
	if (f != FAULT_NONE)
		return f;
	id->presigned = true;
	/* As many bytes as those of version 4, of which the table of signatures takes some here and there. */
	memcpy(id->signature, s.mac, MAC_LEN);
	memcpy(id->signature + MAC_LEN, s.mac, sizeof id->signature - MAC_LEN);
	return t ? replay_check(env, id->signature, s.expires_s, t, now_s, id, ret_why) : FAULT_NONE;
}

enum fault
sigv2_check_form(const struct auth_env *env, const struct auth_form *form, uint64_t now_s,
		 struct identity *id, const char **ret_why)
{
	struct sigv2 s = { .access_key = { form->access_key, form->access_key_len },
			   .token = { form->security_token,
				      form->security_token ? form->security_token_len : 0 },
			   .text = form->policy,
			   .text_len = form->policy_len };

	if (!env->sigv2)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "Forms signed by version 2 are not served (auth.sigv2): " SIGV2_HELP);
	if (!form->policy || !form->signature2)
		return refuse(ret_why, FAULT_ACCESS_DENIED,
			      "A form signed by version 2 needs policy, AWSAccessKeyId and signature.");
	if (mac_parse((struct span){ form->signature2, form->signature2_len }, s.mac) < 0)
		return refuse(ret_why, FAULT_AUTH_QUERY, "signature is not base64 of 20 bytes.");
	return entries_try(env, s.access_key, s.token, now_s, is_signed_v2, &s, id, ret_why);
}
