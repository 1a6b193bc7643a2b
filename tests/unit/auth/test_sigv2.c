/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim TM91: signatures of version 2 in URLs and forms: what they cover is served, nothing else is acted on.
 * What is signed is spelled out here, and signed by OpenSSL.
 */
#include "ask.h"

#include "base/base64.h"
#include "base/log.h"
#include "dialect/query_keys.h"

#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#define NOW 1175136000ull
#define UNTIL "1175139620" /* an hour later */

static struct auth_env
env_v2(void)
{
	struct auth_env env = example_env();

	env.sigv2 = true;
	return env;
}

/* As it stands in a URL: of base64 '+', '/' and '=' are encoded. */
static void
sign_text(const char *secret, const char *text, char out[128], bool encode)
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	char plain[64];
	unsigned len = 0;
	int n = 0;

	assert_non_null(HMAC(EVP_sha1(), secret, (int)strlen(secret), (const unsigned char *)text,
			     strlen(text), mac, &len));
	plain[EVP_EncodeBlock((unsigned char *)plain, mac, (int)len)] = 0;
	for (const char *p = plain; *p; p++)
		n += encode && strchr("+/=", *p) ? sprintf(out + n, "%%%02X", (unsigned char)*p)
						 : sprintf(out + n, "%c", *p);
	out[n] = 0;
}

/* A request with that target, signed over that text. */
static struct rq *
signed_by(const char *secret, const char *method, const char *target, const char *text)
{
	static char whole[4096];
	char signature[128];

	sign_text(secret, text, signature, true);
	snprintf(whole, sizeof whole, "%s%cAWSAccessKeyId=" AK "&Expires=" UNTIL "&Signature=%s", target,
		 strchr(target, '?') ? '&' : '?', signature);
	return s3(method, whole);
}

static enum fault
check(struct rq *r, const struct auth_env *env, uint64_t now_s, struct identity *id)
{
	enum fault f = rq_parse(r);

	memset(id, 0, sizeof *id);
	if (f != FAULT_NONE)
		return f;
	f = auth_check(env, &r->in, &r->t, now_s, id, &r->why);
	assert_true(f == FAULT_NONE ? id->entry && id->presigned && !id->anonymous : !id->entry && !id->keys);
	return f;
}

static enum fault
check_at(struct rq *r, uint64_t now_s)
{
	struct auth_env env = env_v2();
	struct identity id;
	enum fault f = check(r, &env, now_s, &id);

	identity_put(&id);
	return f;
}

/* The example of the S3 developer guide, "Authenticating requests (signature version 2)". */
static void
published(void **state)
{
	static struct conf_s3 conf = { .domains = { (char *)"s3.amazonaws.com" }, .domain_nr = 1 };
	struct rq *r = rq_with(rq_bare(DIALECT_S3, "GET",
				       "/photos/puppy.jpg?AWSAccessKeyId=" AK
				       "&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620"),
			       "Host", "johnsmith.s3.amazonaws.com", NULL);

	r->in.s3 = &conf;
	assert_fault(check_at(r, NOW), FAULT_NONE);
	r->target = "/photos/puppy.jpg?Expires=1175139620&AWSAccessKeyId=" AK
		    "&Signature=NpgCjnDzrM+WFzoENXmpNDUsSn8=";
	r->target_len = strlen(r->target);
	assert_fault(check_at(r, NOW), FAULT_NONE);
	r->target = "/photos/puppy.jpg?Expires=1175139621&AWSAccessKeyId=" AK
		    "&Signature=NpgCjnDzrM+WFzoENXmpNDUsSn8=";
	assert_fault(check_at(r, NOW), FAULT_SIGNATURE);
}

static const struct {
	const char *method, *target, *text;
	const char *fields[12];
} good[] = {
	{ "GET", "/bkt/k", "GET\n\n\n" UNTIL "\n/bkt/k", { NULL } },
	{ "HEAD", "/bkt/k", "HEAD\n\n\n" UNTIL "\n/bkt/k", { NULL } },
	{ "PUT", "/bkt/k", "PUT\n\n\n" UNTIL "\n/bkt/k", { "content-length", "5", NULL } },
	{ "PUT",
	  "/bkt/k",
	  "PUT\n1B2M2Y8AsgTpgAmY7PhCfg==\ntext/plain; a=b\n" UNTIL "\nx-amz-acl:private\nx-amz-meta-a:1,2\n"
	  "x-amz-meta-b:x  y\n/bkt/k",
	  { "X-Amz-Meta-B", "x  y", "content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==", "Content-Type",
	    " text/plain; a=b ", "x-amz-meta-a", "1", "content-length", "0", NULL } },
	/* The path as it is encoded in the one way there is. */
	{ "GET", "/bkt/a%20b/%C3%BC+~=%2F", "GET\n\n\n" UNTIL "\n/bkt/a%20b/%C3%BC%2B~%3D/", { NULL } },
	{ "GET", "/bkt/a%20b/\xc3\xbc%2b%7e%3d/", "GET\n\n\n" UNTIL "\n/bkt/a%20b/%C3%BC%2B~%3D/", { NULL } },
	/* Parameters in order, values as they are; what is nobody's is not signed. */
	{ "GET",
	  "/bkt/"
	  "k?versionId=null&response-content-type=a%2Fb+c&response-content-disposition=x%26y%3D%22z%22&v=7&x-"
	  "id=GetObject",
	  "GET\n\n\n" UNTIL "\n/bkt/k?response-content-disposition=x&y=\"z\"&response-content-type=a/b c"
	  "&versionId=null",
	  { NULL } },
	{ "GET", "/bkt/k?partNumber=3", "GET\n\n\n" UNTIL "\n/bkt/k?partNumber=3", { NULL } },
	{ "PUT",
	  "/bkt/k?partNumber=3&uploadId=0123456789abcdef0123456789abcdef",
	  "PUT\n\n\n" UNTIL "\n/bkt/k?partNumber=3&uploadId=0123456789abcdef0123456789abcdef",
	  { "content-length", "5", NULL } },
	/* botocore writes what the user of the URL has to send into it. */
	{ "PUT",
	  "/bkt/k?content-type=a%2Fb",
	  "PUT\n\na/b\n" UNTIL "\n/bkt/k",
	  { "content-type", "a/b", "content-length", "5", NULL } },
	{ "GET",
	  "/bkt/k",
	  "GET\n\n\n" UNTIL "\n/bkt/k",
	  { "range", "bytes=0-1", "if-match", "\"x\"", NULL } },
};

static struct rq *
good_one(size_t i, const char *secret)
{
	struct rq *r = signed_by(secret, good[i].method, good[i].target, good[i].text);

	for (int f = 0; good[i].fields[f]; f += 2) {
		rq_field(r, good[i].fields[f], good[i].fields[f + 1]);
		if (strcmp(good[i].fields[f], "x-amz-meta-a") == 0)
			rq_with(r, "x-amz-meta-a", "2", "x-amz-acl", "private", NULL);
	}
	return r;
}

static void
signed_well(void **state)
{
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		enum fault f = check_at(good_one(i, SK), NOW);
		struct rq *r;

		if (f != FAULT_NONE)
			fail_msg("%s %s: %s", good[i].method, good[i].target, fault_info(f)->code);
		assert_fault(check_at(good_one(i, SK "x"), NOW), FAULT_SIGNATURE);
		/* What it covers cannot be changed, and no x-amz-* be added. */
		assert_fault(check_at(rq_with(good_one(i, SK), "x-amz-meta-z", "1", NULL), NOW),
			     FAULT_SIGNATURE);
		r = good_one(i, SK);
		r->in.method = strcmp(good[i].method, "GET") == 0 ? "HEAD" : "GET";
		f = check_at(r, NOW);
		assert_true(f == FAULT_SIGNATURE || f == FAULT_BAD_REQUEST || f == FAULT_NOT_IMPLEMENTED);
		/* A type counts also where it means nothing. */
		r = good_one(i, SK);
		if (!dialect_field(&r->in, "content-type", NULL))
			assert_fault(check_at(rq_with(r, "content-type", "a", NULL), NOW), FAULT_SIGNATURE);
	}
}

static void
times(void **state)
{
	assert_fault(check_at(good_one(0, SK), 1175139619), FAULT_NONE);
	assert_fault(check_at(good_one(0, SK), 1175139620), FAULT_ACCESS_DENIED);
	/* No later than in a week, as far as clocks agree. */
	assert_fault(check_at(good_one(0, SK), 1175139620 - 7 * 86400 - 900), FAULT_NONE);
	assert_fault(check_at(good_one(0, SK), 1175139620 - 7 * 86400 - 901), FAULT_AUTH_QUERY);
}

static void
malformed(void **state)
{
	static const struct {
		const char *query;
		enum fault f;
	} cases[] = {
		{ "AWSAccessKeyId=" AK, FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=" AK "&Expires=" UNTIL, FAULT_AUTH_QUERY },
		{ "Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=" UNTIL, FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=&Expires=" UNTIL "&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D",
		  FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=" AK "&Expires=" UNTIL "&Signature=", FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=" AK "&Expires=" UNTIL "&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8",
		  FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=" AK "&Expires=" UNTIL "&Signature=!pgCjnDzrM%2BWFzoENXmpNDUsSn8%3D",
		  FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=" AK "&Expires=-1&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D",
		  FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=" AK "&Expires=1e9&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D",
		  FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=" AK "&Expires=&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D",
		  FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=" AK
		  "&Expires=18446744073709551616&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D",
		  FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=" AK
		  "&Expires=18446744073709551615&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D",
		  FAULT_AUTH_QUERY },
		{ "AWSAccessKeyId=NOBODY&Expires=" UNTIL "&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D",
		  FAULT_ACCESS_KEY },
		{ "AWSAccessKeyId=" AK "&Expires=" UNTIL
		  "&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Signature=x",
		  FAULT_BAD_ARGUMENT },
		{ "awsaccesskeyid=" AK "&Expires=" UNTIL "&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D",
		  FAULT_BAD_ARGUMENT },
		{ "AWSAccessKeyId=" AK "&Expires=" UNTIL
		  "&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&X-Amz-Signature=0",
		  FAULT_BAD_REQUEST },
		{ "AWSAccessKeyId=" AK "&Expires=" UNTIL
		  "&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&X-Amz-Algorithm=AWS4-HMAC-SHA256",
		  FAULT_BAD_REQUEST },
	};
	char target[512];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int anonymous = 0; anonymous < 2; anonymous++) {
			struct rq *r;
			enum fault f;

			snprintf(target, sizeof target, "/bkt/k?%s", cases[i].query);
			r = s3("GET", target);
			r->listen.anonymous = anonymous;
			f = check_at(r, NOW);
			if (f != cases[i].f)
				fail_msg("%s: %s, %s", target, fault_info(f)->code, r->why);
		}
	}
	/* Two signatures, in Authorization and in the URL. */
	assert_fault(check_at(rq_with(good_one(0, SK), "authorization", "AWS " AK ":x", NULL), NOW),
		     FAULT_BAD_REQUEST);
}

/* Where it is off, and in Authorization always, the refusal says what helps. */
static void
switched_off(void **state)
{
	static const char *const help[] = { "Config(signature_version=\"s3v4\")",
					    "s3.signature_version = s3v4" };
	struct auth_env env = example_env();
	struct auth_form form = { .access_key = AK,
				  .access_key_len = sizeof AK - 1,
				  .signature2 = "x",
				  .signature2_len = 1,
				  .policy = "e30=",
				  .policy_len = 4 };
	struct identity id;
	struct rq *r;

	for (size_t i = 0; i < 2; i++) {
		r = good_one(0, SK);
		assert_fault(check(r, &env, NOW, &id), FAULT_BAD_REQUEST);
		assert_non_null(strstr(r->why, help[i]));
		env.sigv2 = true;
		r = rq_with(s3("GET", "/bkt/k"), "authorization", "AWS " AK ":x", NULL);
		assert_fault(check(r, &env, NOW, &id), FAULT_BAD_REQUEST);
		assert_non_null(strstr(r->why, help[i]));
		env.sigv2 = false;
		identity_init(&id);
		assert_fault(auth_check_form(&env, &form, NOW, &id, &r->why), FAULT_BAD_REQUEST);
		assert_non_null(strstr(r->why, help[i]));
	}
}

static const struct query_shape shapes[OP_NR] = {
#define OP(id, name, start, method, level, body, writes, right, ok, parts, needs_, may_)                     \
	[OP_##id] = { needs_, may_ },
#include "dialect/op.def"
};
static const char *const keys[] = {
#define QUERY(id, key, ...) key,
#include "dialect/query.def"
};
static const char *const methods[] = {
	[METHOD_PUT] = "PUT",       [METHOD_GET] = "GET",   [METHOD_HEAD] = "HEAD",
	[METHOD_DELETE] = "DELETE", [METHOD_POST] = "POST", [METHOD_OPTIONS] = "OPTIONS"
};

/* Every operation but those of an object's bytes is refused, whoever signed it. */
static void
operations(void **state)
{
	struct auth_env env = env_v2();

	for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
		bool served = op == OP_GET_OBJECT || op == OP_HEAD_OBJECT || op == OP_PUT_OBJECT ||
			      op == OP_UPLOAD_PART;
		struct rq *r = good_one(0, SK);
		struct identity id;
		enum fault f;

		if (op == OP_OPTIONS)
			continue; /* is nobody's */
		rq_read(r);
		memset(&r->t, 0, sizeof r->t);
		r->t.op = op;
		f = auth_check(&env, &r->in, &r->t, NOW, &id, &r->why);
		identity_put(&id);
		assert_fault(f, served ? FAULT_NONE : FAULT_ACCESS_DENIED);
		assert_true(served || strstr(r->why, "s3v4"));
	}
}

/* A parameter that one of those operations takes is signed, or has no effect: with another value the
 * signature does not hold. */
static void
parameters(void **state)
{
	for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
		if (op != OP_GET_OBJECT && op != OP_HEAD_OBJECT && op != OP_PUT_OBJECT &&
		    op != OP_UPLOAD_PART)
			continue;
		for (enum param p = 0; p < P_NR; p++) {
			const char *method = methods[op_info[op].method];
			char target[256], text[256];
			struct rq *r;
			bool both = op == OP_UPLOAD_PART;

			if (!((shapes[op].needs | shapes[op].may) & BIT(p)) || p == P_ID)
				continue;
			snprintf(target, sizeof target, "/bkt/k?%s%s=%s",
				 both ? p == P_UPLOAD_ID ? "partNumber=1&"
							 : "uploadId=0123456789abcdef0123456789abcdef&"
				      : "",
				 keys[p],
				 p == P_VERSION_ID  ? "null"
				 : p == P_UPLOAD_ID ? "0123456789abcdef0123456789abcdef"
						    : "1");
			snprintf(text, sizeof text, "%s\n\n\n" UNTIL "\n/bkt/k", method);
			r = rq_with(signed_by(SK, method, target, text), "content-length", "0", NULL);
			assert_fault(check_at(r, NOW), FAULT_SIGNATURE);
		}
	}
	/* response-* of an upload are signed as well, though nothing is made of them. */
	assert_fault(check_at(rq_with(signed_by(SK, "PUT", "/bkt/k?response-expires=a",
						"PUT\n\n\n" UNTIL "\n/bkt/k?response-expires=a"),
				      "content-length", "0", NULL),
			      NOW),
		     FAULT_NONE);
}

/* One text, two requests: a value that has a parameter in it. */
static void
two_readings(void **state)
{
	static const char text[] =
		"GET\n\n\n" UNTIL "\n/bkt/k?response-content-disposition=a&response-content-type=b";

	assert_fault(
		check_at(signed_by(SK, "GET", "/bkt/k?response-content-disposition=a&response-content-type=b",
				   text),
			 NOW),
		FAULT_NONE);
	assert_fault(
		check_at(signed_by(SK, "GET",
				   "/bkt/k?response-content-disposition=a%26response-content-type%3Db", text),
			 NOW),
		FAULT_ACCESS_DENIED);
	assert_fault(
		check_at(signed_by(SK, "GET", "/bkt/k?response-content-disposition=a%26x%26versionId",
				   "GET\n\n\n" UNTIL "\n/bkt/k?response-content-disposition=a&x&versionId"),
			 NOW),
		FAULT_ACCESS_DENIED);
	assert_fault(
		check_at(signed_by(SK, "GET", "/bkt/k?response-content-disposition=a%26b%26versionIdx%3D1%26",
				   "GET\n\n\n" UNTIL
				   "\n/bkt/k?response-content-disposition=a&b&versionIdx=1&"),
			 NOW),
		FAULT_NONE);
}

/* Headers in the query, descriptors, and what version 4 would have had to sign. */
static void
nothing_uncovered(void **state)
{
	static const char *const headers[] = {
#define TAKEN(name, ...) "x-amz-" name,
#define REFUSED(name, ...) "x-amz-" name,
#include "dialect/header.def"
	};
	static const struct {
		enum conf_dialect dialect;
		const char *header;
	} wires[] = {
#define WIRE(id, header, dialect, ...) { DIALECT_##dialect, header },
#include "dialect/wire.def"
	};
	char target[256], text[256];
	struct rq *r;

	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		enum fault f;

		snprintf(target, sizeof target, "/bkt/k?%s=", headers[i]);
		r = rq_with(signed_by(SK, "PUT", target, "PUT\n\n\n" UNTIL "\n/bkt/k"), "content-length", "5",
			    NULL);
		f = check_at(r, NOW);
		if (strcmp(headers[i], "x-amz-security-token") == 0)
			assert_fault(f, FAULT_NONE); /* an empty one is none */
		else if (f == FAULT_NONE)
			fail_msg("%s in the query is not refused", headers[i]);
	}
	assert_fault(check_at(rq_with(signed_by(SK, "PUT", "/bkt/k?X-Amz-Meta-A=1",
						"PUT\n\n\n" UNTIL "\nx-amz-meta-a:1\n/bkt/k"),
				      "content-length", "5", NULL),
			      NOW),
		     FAULT_ACCESS_DENIED);
	for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
		const char *value = strstr(wires[i].header, "meta") ? "a" : DC81;

		/* Also one that is signed. */
		snprintf(text, sizeof text, "GET\n\n\n" UNTIL "\n%s%s%s%s/bkt/k",
			 strncmp(wires[i].header, "x-amz-", 6) == 0 ? wires[i].header : "",
			 strncmp(wires[i].header, "x-amz-", 6) == 0 ? ":" : "",
			 strncmp(wires[i].header, "x-amz-", 6) == 0 ? value : "",
			 strncmp(wires[i].header, "x-amz-", 6) == 0 ? "\n" : "");
		r = rq_with(signed_by(SK, "GET", "/bkt/k", text), wires[i].header, value, NULL);
		assert_fault(check_at(r, NOW),
			     wires[i].dialect == DIALECT_S3 ? FAULT_ACCESS_DENIED : FAULT_BAD_REQUEST);
	}
	assert_fault(check_at(rq_with(good_one(0, SK), "x-gantry-copies", "1", NULL), NOW),
		     FAULT_ACCESS_DENIED);
	assert_fault(check_at(rq_with(signed_by(SK, "PUT", "/bkt/k",
						"PUT\n\n\n" UNTIL "\nx-amz-copy-source:a/b\n/bkt/k"),
				      "content-length", "0", "x-amz-copy-source", "bkt/x", NULL),
			      NOW),
		     FAULT_ACCESS_DENIED);
	/* Nothing of it could sign chunks. */
	assert_fault(check_at(rq_with(signed_by(SK, "PUT", "/bkt/k",
						"PUT\n\n\n" UNTIL
						"\nx-amz-content-sha256:STREAMING-AWS4-HMAC-SHA256-PAYLOAD\n"
						"x-amz-decoded-content-length:5\n/bkt/k"),
				      "content-length", "100", "x-amz-content-sha256",
				      "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "x-amz-decoded-content-length",
				      "5", NULL),
			      NOW),
		     FAULT_ACCESS_DENIED);
}

/* Session tokens, several secrets, keys that are over, addresses. */
static void
entries(void **state)
{
	static struct auth_keys *several;
	struct auth_env env = env_v2();
	struct identity id;
	const char *text = "GET\n\n\n" UNTIL "\nx-amz-security-token:to/k+n\n/bkt/k";

	if (!several)
		several = keys_from(
			"- { access_key: " AK ", secret_key: first-secret }\n"
			"- { access_key: " AK ", secret_key: second-secret, session_token: to/k+n }\n"
			"- { access_key: " AK ", secret_key: third-secret, expires: 2007-01-01T00:00:00Z }\n"
			"- { access_key: " AK ", secret_key: fourth-secret, from: [10.1.0.0/16] }\n");
	env.keys = several;
	assert_fault(check(good_one(0, "first-secret"), &env, NOW, &id), FAULT_NONE);
	identity_put(&id);
	assert_fault(check(good_one(0, "second-secret"), &env, NOW, &id), FAULT_ACCESS_KEY);
	assert_fault(check(signed_by("second-secret", "GET", "/bkt/k?x-amz-security-token=to%2Fk%2Bn", text),
			   &env, NOW, &id),
		     FAULT_NONE);
	identity_put(&id);
	assert_fault(check(signed_by("second-secret", "GET", "/bkt/k?x-amz-security-token=to%2Fk%2Bm",
				     "GET\n\n\n" UNTIL "\nx-amz-security-token:to/k+m\n/bkt/k"),
			   &env, NOW, &id),
		     FAULT_SECURITY_TOKEN);
	assert_fault(check(good_one(0, "third-secret"), &env, NOW, &id), FAULT_ACCESS_KEY);
	assert_fault(check(good_one(0, "fourth-secret"), &env, NOW, &id), FAULT_ACCESS_DENIED);
	assert_fault(check(good_one(0, "fifth-secret"), &env, NOW, &id), FAULT_SIGNATURE);
	/* In the letters of version 2 it is no part of version 4. */
	assert_fault(check(s3("GET", "/bkt/k?X-Amz-Signature=0&x-amz-security-token=a"), &env, NOW, &id),
		     FAULT_BAD_ARGUMENT);
}

/* auth.replay: reject: the same URL from another address. */
static void
replays(void **state)
{
	struct auth_env env = env_v2();
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { 1 } },
			   b = { .sin_family = AF_INET, .sin_addr = { 2 } };
	struct identity id;

	log_set_level((enum log_level) - 1);
	assert_int_equal(auth_replay_new(1 << 16, &env.replay), 0);
	env.replay_mode = REPLAY_REJECT;
	env.peer = (const struct sockaddr *)&a;
	for (int i = 0; i < 2; i++) {
		assert_fault(check(good_one(0, SK), &env, NOW, &id), FAULT_NONE);
		identity_put(&id);
	}
	env.peer = (const struct sockaddr *)&b;
	assert_fault(check(good_one(0, SK), &env, NOW, &id), FAULT_ACCESS_DENIED);
	assert_fault(check(good_one(1, SK), &env, NOW, &id), FAULT_NONE);
	identity_put(&id);
	auth_replay_free(env.replay);
}

static void
forms(void **state)
{
	static const char policy[] = "eyJleHBpcmF0aW9uIjogIjIwMTUifQ==";
	struct auth_env env = env_v2();
	char signature[128];
	struct auth_form form = { .policy = policy,
				  .policy_len = sizeof policy - 1,
				  .access_key = AK,
				  .access_key_len = sizeof AK - 1,
				  .signature2 = signature };
	const char *why;
	struct identity id;

	sign_text(SK, policy, signature, false);
	form.signature2_len = strlen(signature);
	identity_init(&id);
	assert_fault(auth_check_form(&env, &form, NOW, &id, &why), FAULT_NONE);
	assert_string_equal(identity_access_key(&id), AK);
	form.policy_len--;
	assert_fault(auth_check_form(&env, &form, NOW, &id, &why), FAULT_SIGNATURE);
	assert_null(id.entry);
	form.policy_len++;
	form.security_token = "tok";
	form.security_token_len = 3;
	assert_fault(auth_check_form(&env, &form, NOW, &id, &why), FAULT_SECURITY_TOKEN);
	form.security_token = NULL;
	signature[3] = signature[3] == 'a' ? 'b' : 'a';
	assert_fault(auth_check_form(&env, &form, NOW, &id, &why), FAULT_SIGNATURE);
	form.signature2_len--;
	assert_fault(auth_check_form(&env, &form, NOW, &id, &why), FAULT_AUTH_QUERY);
	form.signature2 = NULL;
	assert_fault(auth_check_form(&env, &form, NOW, &id, &why), FAULT_ACCESS_DENIED);
	/* Fields of version 4 beside it: they count. */
	form.credential = "a";
	form.credential_len = 1;
	assert_fault(auth_check_form(&env, &form, NOW, &id, &why), FAULT_ACCESS_DENIED);
	identity_put(&id);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published),
		cmocka_unit_test(signed_well),
		cmocka_unit_test(times),
		cmocka_unit_test(malformed),
		cmocka_unit_test(switched_off),
		cmocka_unit_test(operations),
		cmocka_unit_test(parameters),
		cmocka_unit_test(two_readings),
		cmocka_unit_test(entries),
		cmocka_unit_test(replays),
		cmocka_unit_test(nothing_uncovered),
		cmocka_unit_test(forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
