/* Signatures in the header and in the query: AWS's published examples, and everything that must not pass. */
#include "sig.h"

#include <pthread.h>
#include <time.h>

static enum fault
ask_at(struct rq *r, const struct auth_env *env, uint64_t now_s, struct identity *id)
{
	enum fault f = auth_check(env, &r->in, &r->t, now_s, id, &r->why);

	assert_true(f == FAULT_NONE ? id->keys == env->keys && id->entry : strlen(r->why) > 10);
	assert_true(f == FAULT_NONE || (!id->entry && !id->keys && !id->anonymous));
	return f;
}

static enum fault
ask(struct rq *r)
{
	struct auth_env env = example_env();
	struct identity id;
	enum fault f = ask_at(r, &env, DAY_S, &id);

	identity_put(&id);
	return f;
}

static struct rq *
for_op(struct rq *r, enum op op)
{
	memset(&r->t, 0, sizeof r->t);
	r->t.op = op;
	return r;
}

#define AUTHORIZATION(list, sig)                                                                             \
	"AWS4-HMAC-SHA256 Credential=" AK "/20130524/us-east-1/s3/aws4_request,SignedHeaders=" list          \
	",Signature=" sig

static struct rq *
example(const char *method, const char *target, const char *hash, const char *authorization)
{
	return rq_with(rq_bare(DIALECT_S3, method, target), "Host", "examplebucket.s3.amazonaws.com",
		       "x-amz-date", STAMP, "x-amz-content-sha256", hash, "Authorization", authorization,
		       NULL);
}

static struct rq *
example_get(void)
{
	return for_op(
		rq_with(example("GET", "/test.txt", EMPTY,
				AUTHORIZATION("host;range;x-amz-content-sha256;x-amz-date",
					      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb"
					      "41")),
			"Range", "bytes=0-9", NULL),
		OP_GET_OBJECT);
}

static struct rq *
example_put(void)
{
	struct rq *r = for_op(
		rq_with(example("PUT", "/test%24file.text",
				"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
				AUTHORIZATION("date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
					      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108"
					      "bd")),
			"Date", "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class", "REDUCED_REDUNDANCY",
			NULL),
		OP_PUT_OBJECT);

	r->t.have_content_length = true;
	r->t.content_length = 21;
	return r;
}

static struct rq *
example_presigned(void)
{
	return for_op(rq_with(rq_bare(DIALECT_S3, "GET",
				      "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" AK
				      "%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=" STAMP
				      "&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
				      "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"),
			      "Host", "examplebucket.s3.amazonaws.com", NULL),
		      OP_GET_OBJECT);
}

/* item 81 */
static void
published(void **state)
{
	struct auth_env env = example_env();
	struct identity id;
	struct rq *r;

	assert_fault(ask_at(example_get(), &env, DAY_S, &id), FAULT_NONE);
	assert_int_equal(id.payload, PAYLOAD_EMPTY);
	assert_string_equal(identity_name(&id), AK);
	assert_false(id.anonymous || id.presigned);
	identity_put(&id);
	assert_fault(ask_at(example_put(), &env, DAY_S, &id), FAULT_NONE);
	assert_int_equal(id.payload, PAYLOAD_HASH);
	identity_put(&id);
	r = for_op(example("GET", "/?lifecycle", EMPTY,
			   AUTHORIZATION("host;x-amz-content-sha256;x-amz-date",
					 "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")),
		   OP_GET_BUCKET_LIFECYCLE);
	assert_fault(ask(r), FAULT_NONE);
	r = for_op(example("GET", "/?max-keys=2&prefix=J", EMPTY,
			   AUTHORIZATION("host;x-amz-content-sha256;x-amz-date",
					 "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")),
		   OP_LIST_OBJECTS);
	assert_fault(ask(r), FAULT_NONE);
	/* The order on the wire does not matter. */
	r->in.target = "/?prefix=J&max-keys=2";
	assert_fault(ask(r), FAULT_NONE);
	assert_fault(ask_at(example_presigned(), &env, DAY_S, &id), FAULT_NONE);
	assert_int_equal(id.payload, PAYLOAD_UNSIGNED);
	assert_true(id.presigned);
	identity_put(&id);
}

/* ---- tampering ---- */

static bool
refused(struct rq *r)
{
	enum fault f = ask(r);
	int status = fault_info(f)->status;

	return f != FAULT_NONE && (status == 400 || status == 403 || status == 501);
}

/* Every byte of text, with several others in its place. */
static void
tamper_text(struct rq *r, char *text, size_t len, const char *what, size_t from)
{
	static const unsigned char flips[] = { 0x01, 0x02, 0x20, 0x10, 0x80 };

	for (size_t i = from; i < len; i++) {
		for (size_t k = 0; k < sizeof flips; k++) {
			char was = text[i];

			text[i] = (char)(was ^ flips[k]);
			if (text[i] && !refused(r))
				fail_msg("%s: byte %zu changed from %c to %c passes", what, i, was, text[i]);
			text[i] = was;
		}
	}
}

static void
tamper(struct rq *r)
{
	const char *old_method = r->in.method, *old_target = r->in.target;
	char method[16], target[1024];

	assert_fault(ask(r), FAULT_NONE);
	snprintf(method, sizeof method, "%s", r->in.method);
	snprintf(target, sizeof target, "%s", r->in.target);
	r->in.method = method;
	tamper_text(r, method, strlen(method), "method", 0);
	r->in.target = target;
	tamper_text(r, target, r->in.target_len, "target", 0);
	for (int i = 0; i < r->in.field_nr; i++) {
		struct field *f = &r->fields[i];
		char name[64], value[1024];
		const char *was = f->value, *named = f->name;

		snprintf(value, sizeof value, "%s", f->value);
		f->value = value;
		tamper_text(r, value, f->value_len, f->name, 0);
		f->value = was;
		/* Under another name it is missing. */
		snprintf(name, sizeof name, "%s", f->name);
		f->name = name;
		for (size_t k = 0; k < f->name_len; k++) {
			name[k] ^= 1;
			assert_true(refused(r) || strcasecmp(named, "authorization") == 0);
			name[k] ^= 1;
		}
		f->name = named;
	}
	r->in.method = old_method;
	r->in.target = old_target;
	assert_fault(ask(r), FAULT_NONE);
}

static void
every_byte(void **state)
{
	struct signer s = example_signer();
	struct rq *r = example_get();

	/* Without Authorization it is an anonymous request, which this listener does not serve. */
	r->listen.anonymous = false;
	tamper(r);
	r = example_put();
	r->listen.anonymous = false;
	tamper(r);
	r = example_presigned();
	r->listen.anonymous = false;
	tamper(r);
	/* item 81: all headers signed, a port in Host; a descriptor */
	r = for_op(rq_with(s3("PUT", "/bkt/a%20b+c?x-id=PutObject&partNumber=1"), "content-length", "0",
			   "user-agent", "x  y   z", "x-amz-content-sha256", "UNSIGNED-PAYLOAD", "x-amz-date",
			   STAMP, "x-amz-rdma-token", DC81, "x-amz-meta-a", "1", NULL),
		   OP_PUT_OBJECT);
	r->fields[2].value = "x y z"; /* as the signer has to write it */
	r->fields[2].value_len = 5;
	r->t.wire = WIRE_AMZ;
	sign(r, &s);
	r->listen.anonymous = false;
	tamper(r);
	r->fields[2].value = "x  y   z";
	r->fields[2].value_len = 8;
	assert_fault(ask(r), FAULT_NONE);
}

/* ---- what must be signed ---- */

static struct rq *
unsigned_extra(const char *name, const char *value)
{
	struct signer s = example_signer();
	struct rq *r = for_op(rq_with(s3("PUT", "/bkt/obj"), "content-length", "0", "x-amz-content-sha256",
				      "UNSIGNED-PAYLOAD", "x-amz-date", STAMP, NULL),
			      OP_PUT_OBJECT);

	sign(r, &s);
	rq_field(r, name, value);
	return r;
}

/* item 82 */
static void
unsigned_headers(void **state)
{
	static const char *const names[] = { "x-amz-rdma-token",   "X-Amz-Rdma-Token",   "x-rdma-info",
					     "x-cuobj-rdma-descr", "x-amz-meta-a",       "x-amz-copy-source",
					     "X-AMZ-ACL",          "x-cuobj-new-header", "x-amz-rdma-agent" };
	struct auth_env env = example_env();
	struct identity id;
	struct rq *r;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		r = unsigned_extra(names[i], DC81);
		assert_fault(ask(r), FAULT_ACCESS_DENIED);
		assert_int_equal(fault_info(FAULT_ACCESS_DENIED)->status, 403);
	}
	env.relax = true;
	assert_fault(ask_at(unsigned_extra("x-rdma-info", DC81), &env, DAY_S, &id), FAULT_NONE);
	identity_put(&id);
	assert_fault(ask_at(unsigned_extra("x-amz-rdma-token", DC81), &env, DAY_S, &id), FAULT_ACCESS_DENIED);
	assert_fault(ask(unsigned_extra("range", "bytes=0-1")), FAULT_NONE);
	/* A second one of a signed header is part of what is signed. */
	assert_fault(ask(unsigned_extra("x-amz-date", STAMP)), FAULT_ACCESS_DENIED);
	assert_fault(ask(unsigned_extra("content-length", "0")), FAULT_SIGNATURE);
	/* A presigned URL: the token only as a signed header. */
	r = rq_with(example_presigned(), "x-amz-rdma-token", DC81, NULL);
	assert_fault(ask(r), FAULT_ACCESS_DENIED);
	/* Host is not signed. */
	r = for_op(rq_with(rq_bare(DIALECT_S3, "GET", "/bkt/obj"), "x-amz-date", STAMP,
			   "x-amz-content-sha256", EMPTY, NULL),
		   OP_GET_OBJECT);
	sign(r, &(struct signer){ AK, SK, "us-east-1", "s3", STAMP });
	rq_field(r, "Host", "x");
	assert_fault(ask(r), FAULT_ACCESS_DENIED);
}

/* ---- time, place, key ---- */

static struct rq *
plain_get(const struct signer *s)
{
	struct rq *r = for_op(
		rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", EMPTY, "x-amz-date", s->stamp, NULL),
		OP_GET_OBJECT);

	return sign(r, s);
}

static void
clocks(void **state)
{
	struct auth_env env = example_env();
	struct signer s = example_signer();
	struct identity id;

	for (int off = -901; off <= 901; off += 1802)
		assert_fault(ask_at(plain_get(&s), &env, DAY_S + (uint64_t)off, &id), FAULT_SKEWED);
	for (int off = -900; off <= 900; off += 1800) {
		assert_fault(ask_at(plain_get(&s), &env, DAY_S + (uint64_t)off, &id), FAULT_NONE);
		identity_put(&id);
	}
	assert_fault(ask_at(example_presigned(), &env, DAY_S + 86399, &id), FAULT_NONE);
	identity_put(&id);
	assert_fault(ask_at(example_presigned(), &env, DAY_S + 86400, &id), FAULT_ACCESS_DENIED);
	assert_fault(ask_at(example_presigned(), &env, DAY_S - 901, &id), FAULT_ACCESS_DENIED);
}

static void
credentials(void **state)
{
	struct signer s = example_signer();

	s.region = "eu-west-1";
	assert_fault(ask(plain_get(&s)), FAULT_AUTH_HEADER);
	s = example_signer();
	s.service = "ec2";
	assert_fault(ask(plain_get(&s)), FAULT_AUTH_HEADER);
	s = example_signer();
	s.access_key = "AKIAIOSFODNN7EXAMPLF";
	assert_fault(ask(plain_get(&s)), FAULT_ACCESS_KEY);
	s = example_signer();
	s.secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEZ";
	assert_fault(ask(plain_get(&s)), FAULT_SIGNATURE);
	assert_int_equal(fault_info(FAULT_SIGNATURE)->status, 403);
	s = example_signer();
	for (int i = 0; i < 2; i++) {
		struct auth_env env = example_env();
		struct identity id;
		struct rq *r = plain_get(&s);

		/* No credentials at all; also where an unsigned request would be served. */
		env.keys = NULL;
		r->listen.anonymous = i;
		assert_fault(ask_at(r, &env, DAY_S, &id), FAULT_ACCESS_KEY);
	}
}

/* The date alone, in both of its forms. */
static void
date_header(void **state)
{
	struct signer s = example_signer();
	struct rq *r;

	for (int i = 0; i < 2; i++) {
		r = for_op(rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", EMPTY, "Date",
				   i ? STAMP : "Fri, 24 May 2013 00:00:00 GMT", NULL),
			   OP_GET_OBJECT);
		assert_fault(ask(sign(r, &s)), FAULT_NONE);
	}
	r = for_op(rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", EMPTY, NULL), OP_GET_OBJECT);
	sign(r, &s);
	rq_field(r, "Date", STAMP);
	assert_fault(ask(r), FAULT_ACCESS_DENIED);
}

static void
malformed(void **state)
{
	static const char *const bad[] = {
		"",
		"AWS4-HMAC-SHA256",
		"AWS4-HMAC-SHA256 ",
		"Bearer abc",
		"Basic YTpi",
		"AWS4-HMAC-SHA256 Credential=" AK "/20130524/us-east-1/s3/aws4_request",
		"AWS4-HMAC-SHA256 Credential=" AK
		"/20130524/us-east-1/s3,SignedHeaders=host,Signature=" EMPTY,
		"AWS4-HMAC-SHA256 Credential=" AK
		"/20130524/us-east-1/s3/aws4_request/x,SignedHeaders=host,Signature=" EMPTY,
		"AWS4-HMAC-SHA256 "
		"Credential=/20130524/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=" EMPTY,
		"AWS4-HMAC-SHA256 Credential=" AK
		"/20130525/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=" EMPTY,
		"AWS4-HMAC-SHA256 Credential=" AK
		"/2013/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=" EMPTY,
		AUTHORIZATION("Host;x-amz-content-sha256;x-amz-date", EMPTY),
		AUTHORIZATION("x-amz-date;host", EMPTY),
		AUTHORIZATION("host;host", EMPTY),
		AUTHORIZATION("host;", EMPTY),
		AUTHORIZATION(";host", EMPTY),
		AUTHORIZATION("host;x-amz-content-sha256;x-amz-date", "abc"),
		AUTHORIZATION("host;x-amz-content-sha256;x-amz-date", EMPTY ",Signature=" EMPTY),
		AUTHORIZATION("host;x-amz-content-sha256;x-amz-date", EMPTY ",Extra=1"),
	};
	struct rq *r;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		r = for_op(example("GET", "/test.txt", EMPTY, bad[i]), OP_GET_OBJECT);
		if (ask(r) != FAULT_AUTH_HEADER)
			fail_msg("%s", bad[i]);
	}
	assert_fault(ask(for_op(example("GET", "/t", EMPTY, "AWS AK:c2ln"), OP_GET_OBJECT)),
		     FAULT_BAD_REQUEST);
	assert_fault(ask(for_op(example("GET", "/t", EMPTY, "AWS4-ECDSA-P256-SHA256 Credential=a"),
				OP_GET_OBJECT)),
		     FAULT_NOT_IMPLEMENTED);
	assert_fault(ask(for_op(s3("GET", "/bkt/obj?AWSAccessKeyId=a&Expires=1&Signature=s"), OP_GET_OBJECT)),
		     FAULT_BAD_REQUEST);
	assert_fault(ask(for_op(s3("GET", "/bkt/obj?X-Amz-Signature=0"), OP_GET_OBJECT)), FAULT_AUTH_QUERY);
	/* Both at once. */
	r = example_presigned();
	rq_field(r, "Authorization", AUTHORIZATION("host", EMPTY));
	assert_fault(ask(r), FAULT_BAD_REQUEST);
	r = example_get();
	rq_field(r, "Authorization", r->fields[3].value);
	assert_fault(ask(r), FAULT_AUTH_HEADER);
}

static void
presigned_bounds(void **state)
{
	static const char *const bad[] = { "0", "604801", "", "-1", "1e3", "01", "99999999999" };
	static char target[1024];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct rq *r = example_presigned();

		snprintf(target, sizeof target,
			 "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" AK
			 "%%2F20130524%%2Fus-east-1%%2Fs3%%2Faws4_request&X-Amz-Date=" STAMP
			 "&X-Amz-Expires=%s&X-Amz-SignedHeaders=host&X-Amz-Signature=" EMPTY,
			 bad[i]);
		r->in.target = target;
		r->in.target_len = strlen(target);
		assert_fault(ask(r), FAULT_AUTH_QUERY);
	}
}

/* ---- session tokens, rotation ---- */

/* item 81 */
static void
session_token(void **state)
{
	struct auth_keys *keys =
		keys_from("- { access_key: " AK ", secret_key: \"" SK "\", session_token: tok/en+1=, "
			  "expires: 2013-05-24T00:10:00Z }\n");
	struct auth_env env = { .keys = keys, .region = "us-east-1", .skew_s = 900 };
	struct signer s = example_signer();
	static const char *const tokens[] = { "tok/en+1=", "tok/en+1", NULL };
	static const enum fault want[] = { FAULT_NONE, FAULT_SECURITY_TOKEN, FAULT_ACCESS_KEY };
	struct identity id;

	for (int i = 0; i < 3; i++) {
		struct rq *r = for_op(rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", EMPTY,
					      "x-amz-date", STAMP, NULL),
				      OP_GET_OBJECT);

		if (tokens[i])
			rq_field(r, "x-amz-security-token", tokens[i]);
		sign(r, &s);
		assert_fault(ask_at(r, &env, DAY_S, &id), want[i]);
		identity_put(&id);
		if (i == 0)
			assert_fault(ask_at(r, &env, DAY_S + 600, &id), FAULT_EXPIRED_TOKEN);
	}
	auth_keys_put(keys);
	/* A token with a key that has none; an unsigned one. */
	{
		struct rq *r = for_op(rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", EMPTY,
					      "x-amz-date", STAMP, "x-amz-security-token", "t", NULL),
				      OP_GET_OBJECT);

		assert_fault(ask(sign(r, &s)), FAULT_SECURITY_TOKEN);
	}
}

static void
rotation(void **state)
{
	struct auth_keys *keys = keys_from("- { access_key: " AK ", secret_key: old-secret-1 }\n"
					   "- { access_key: other, secret_key: old-secret-3 }\n"
					   "- { access_key: " AK ", secret_key: new-secret-2 }\n");
	struct auth_env env = { .keys = keys, .region = "us-east-1", .skew_s = 900 };
	static const char *const secrets[] = { "old-secret-1", "new-secret-2", "old-secret-3" };

	for (int i = 0; i < 3; i++) {
		/* Twice: derived, and out of the cache. */
		for (int again = 0; again < 2; again++) {
			struct signer s = { AK, secrets[i], "us-east-1", "s3", STAMP };
			struct identity id;

			assert_fault(ask_at(plain_get(&s), &env, DAY_S, &id),
				     i < 2 ? FAULT_NONE : FAULT_SIGNATURE);
			identity_put(&id);
		}
	}
	auth_keys_put(keys);
}

/* A derived key of one day is not used for the other. */
static void
many_days(void **state)
{
	struct auth_env env = example_env();

	for (uint64_t day = 0; day < 70; day++) {
		uint64_t now = DAY_S + day * 86400;
		struct signer s = example_signer();
		struct identity id;
		time_t t = (time_t)now;

		strftime(s.stamp, sizeof s.stamp, "%Y%m%dT%H%M%SZ", gmtime(&t));
		assert_fault(ask_at(plain_get(&s), &env, now, &id), FAULT_NONE);
		identity_put(&id);
	}
}

/* Two days that share a place in the cache of derived keys, and cores that ask for both at once. */
struct asker {
	struct rq rq[2];
	uint64_t now[2];
	int good;
};

static void *
ask_often(void *arg)
{
	struct asker *a = arg;
	struct auth_env env = example_env();

	for (int i = 0; i < 4000; i++) {
		struct rq *r = &a->rq[i & 1];
		struct identity id;
		const char *why;

		a->good += auth_check(&env, &r->in, &r->t, a->now[i & 1], &id, &why) == FAULT_NONE;
		identity_put(&id);
	}
	return NULL;
}

static void
many_cores(void **state)
{
	static struct asker a[4];
	pthread_t thread[4];
	char *header[8];
	int headers = 0;

	for (int i = 0; i < 4; i++) {
		for (int day = 0; day < 2; day++) {
			struct signer s = example_signer();
			struct rq *to = &a[i].rq[day], *r;

			s.stamp[7] = day ? '6' : '4';
			r = plain_get(&s);
			*to = *r;
			to->in.fields = to->fields;
			to->in.listen = &to->listen;
			to->in.rdma = &to->rdma;
			header[headers] = strdup(r->fields[3].value);
			to->fields[3].value = header[headers++];
			/* The stamp was the signer's. */
			to->fields[2].value = day ? "20130526T000000Z" : STAMP;
			a[i].now[day] = DAY_S + (uint64_t)day * 2 * 86400;
		}
		assert_int_equal(pthread_create(&thread[i], NULL, ask_often, &a[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(a[i].good, 4000);
	}
	for (int i = 0; i < headers; i++)
		free(header[i]);
}

/* ---- the body ---- */

static enum fault
ask_hash(const char *hash, enum op op, enum wire_form wire, bool body)
{
	struct signer s = example_signer();
	struct rq *r = for_op(s3("PUT", "/bkt/obj"), op);

	r->t.wire = wire;
	r->t.have_content_length = true;
	r->t.content_length = body ? 5 : 0;
	r->t.have_decoded_length = true;
	rq_with(r, "x-amz-date", STAMP, NULL);
	if (hash)
		rq_field(r, "x-amz-content-sha256", hash);
	return ask(sign(r, &s));
}

/* item 47 */
static void
payload(void **state)
{
	static const char other[] = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";

	assert_fault(ask_hash("UNSIGNED-PAYLOAD", OP_PUT_OBJECT, WIRE_AMZ, false), FAULT_NONE);
	assert_fault(ask_hash(EMPTY, OP_PUT_OBJECT, WIRE_AMZ, false), FAULT_NONE);
	assert_fault(ask_hash(other, OP_PUT_OBJECT, WIRE_AMZ, false), FAULT_SHA_MISMATCH);
	assert_fault(ask_hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", OP_PUT_OBJECT, WIRE_AMZ, false),
		     FAULT_BAD_REQUEST);
	assert_fault(ask_hash("STREAMING-UNSIGNED-PAYLOAD-TRAILER", OP_PUT_OBJECT, WIRE_AMZ, false),
		     FAULT_BAD_REQUEST);
	assert_fault(ask_hash(other, OP_GET_OBJECT, WIRE_NONE, false), FAULT_SHA_MISMATCH);
	assert_fault(ask_hash(other, OP_PUT_OBJECT, WIRE_NONE, true), FAULT_NONE);
	assert_fault(ask_hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", OP_PUT_OBJECT, WIRE_NONE, true),
		     FAULT_NONE);
	assert_fault(ask_hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", OP_DELETE_OBJECTS, WIRE_NONE, true),
		     FAULT_NONE);
	assert_fault(ask_hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", OP_DELETE_BUCKET, WIRE_NONE, true),
		     FAULT_NOT_IMPLEMENTED);
	assert_fault(ask_hash("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", OP_PUT_OBJECT, WIRE_NONE, true),
		     FAULT_NOT_IMPLEMENTED);
	assert_fault(ask_hash("rubbish", OP_PUT_OBJECT, WIRE_NONE, true), FAULT_BAD_ARGUMENT);
	assert_fault(ask_hash(NULL, OP_PUT_OBJECT, WIRE_NONE, true), FAULT_BAD_REQUEST);
	/* Without a body some leave it out and sign the hash of nothing. */
	assert_fault(ask_hash(NULL, OP_GET_OBJECT, WIRE_NONE, false), FAULT_NONE);
}

/* ---- forms ---- */

static void
forms(void **state)
{
	static const char policy[] = "eyJleHBpcmF0aW9uIjogIjIwMTMtMDUtMjRUMDA6MDA6MDBaIn0=";
	static const char credential[] = AK "/20130524/us-east-1/s3/aws4_request";
	struct signer s = example_signer();
	struct auth_env env = example_env();
	struct auth_form form = { policy, "AWS4-HMAC-SHA256", credential, STAMP, NULL, NULL, strlen(policy),
				  16,     strlen(credential), 16,         64,    0 };
	struct identity id;
	uint8_t key[32], mac[32];
	char hex[65], changed[sizeof policy];
	const char *why;

	sg_key(&s, key);
	sg_mac(key, 32, policy, strlen(policy), mac);
	sg_hex(mac, 32, hex);
	form.signature = hex;
	identity_init(&id);
	assert_fault(auth_check_form(&env, &form, DAY_S, &id, &why), FAULT_NONE);
	assert_string_equal(identity_name(&id), AK);
	identity_put(&id);
	for (size_t i = 0; i < strlen(policy); i++) {
		memcpy(changed, policy, sizeof policy);
		changed[i] ^= 1;
		form.policy = changed;
		assert_fault(auth_check_form(&env, &form, DAY_S, &id, &why), FAULT_SIGNATURE);
	}
	form.policy = NULL;
	assert_fault(auth_check_form(&env, &form, DAY_S, &id, &why), FAULT_ACCESS_DENIED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published),
		cmocka_unit_test(every_byte),
		cmocka_unit_test(unsigned_headers),
		cmocka_unit_test(clocks),
		cmocka_unit_test(credentials),
		cmocka_unit_test(date_header),
		cmocka_unit_test(malformed),
		cmocka_unit_test(presigned_bounds),
		cmocka_unit_test(session_token),
		cmocka_unit_test(rotation),
		cmocka_unit_test(many_days),
		cmocka_unit_test(payload),
		cmocka_unit_test(forms),
		cmocka_unit_test(many_cores),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	auth_keys_put(example_keys());
	return r;
}
