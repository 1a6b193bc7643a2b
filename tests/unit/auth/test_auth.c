/* SPDX-License-Identifier: Apache-2.0 */
/* Unsigned requests, and which requests are taken for signed: auth.c. */
#include "tests/unit/dialect/build.h"

#include "auth/auth.h"

static enum fault
ask(struct rq *r)
{
	struct auth_env env = { .region = "us-east-1", .skew_s = 900 };
	struct identity id;
	enum fault f;

	assert_fault(rq_parse(r), FAULT_NONE);
	f = auth_check(&env, &r->in, &r->t, 0, &id, &r->why);
	assert_int_equal(id.anonymous, f == FAULT_NONE);
	assert_true(f == FAULT_NONE || strlen(r->why) > 10);
	assert_int_equal(auth_allows(&id, &r->t), f == FAULT_NONE);
	identity_put(&id);
	return f;
}

static void
unsigned_requests(void **state)
{
	struct rq *r = put_dc();

	assert_fault(ask(r), FAULT_NONE);
	r->listen.anonymous = false;
	assert_fault(ask(r), FAULT_ACCESS_DENIED);
	/* A bad descriptor makes no difference to who may not ask (protocol.md 4.5). */
	r = rq_with(s3("PUT", "/bkt/obj"), "x-amz-rdma-token", "rubbish", NULL);
	r->listen.anonymous = false;
	assert_fault(ask(r), FAULT_ACCESS_DENIED);
}

/* Never served as if they were anonymous. */
static void
signed_requests(void **state)
{
	static const char *const targets[] = { "/bkt/obj?X-Amz-Signature=0",
					       "/bkt/obj?X-Amz-Algorithm=AWS4-HMAC-SHA256",
					       "/bkt/obj?x-id=GetObject&X-Amz-Credential=a",
					       "/bkt/obj?X-Amz-Date=1",
					       "/bkt/obj?X-Amz-Expires=1",
					       "/bkt/obj?X-Amz-SignedHeaders=host",
					       "/bkt/obj?X-Amz-Security-Token=t",
					       "/bkt/obj?AWSAccessKeyId=a&Expires=1&Signature=s",
					       "http://10.0.0.9:9000/bkt/obj?X-Amz-Signature=0" };
	struct rq *r;

	for (int anonymous = 0; anonymous < 2; anonymous++) {
		r = rq_with(s3("GET", "/bkt/obj"), "Authorization", "AWS4-HMAC-SHA256 Credential=a", NULL);
		r->listen.anonymous = anonymous;
		assert_fault(ask(r), FAULT_AUTH_HEADER);
		r = rq_with(s3("GET", "/"), "authorization", "", NULL);
		r->listen.anonymous = anonymous;
		assert_fault(ask(r), FAULT_AUTH_HEADER);
		for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
			r = s3("GET", targets[i]);
			r->listen.anonymous = anonymous;
			assert_true(fault_info(ask(r))->status == 400);
		}
	}
}

/* Signed chunks have nothing to chain from; unsigned ones are an anonymous SDK's way to send a checksum. */
static void
streaming(void **state)
{
	struct auth_env env = { .region = "us-east-1", .skew_s = 900 };
	struct identity id;
	struct rq *r = rq_with(s3("PUT", "/bkt/obj"), "x-amz-content-sha256",
			       "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", NULL);

	memset(&r->t, 0, sizeof r->t);
	r->t.op = OP_PUT_OBJECT;
	r->t.have_decoded_length = r->t.have_content_length = r->t.aws_chunked = true;
	r->t.content_length = 7;
	assert_fault(auth_check(&env, &r->in, &r->t, 0, &id, &r->why), FAULT_ACCESS_DENIED);
	r->fields[1].value = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
	r->fields[1].value_len = 34;
	assert_fault(auth_check(&env, &r->in, &r->t, 0, &id, &r->why), FAULT_NONE);
	assert_int_equal(id.payload, PAYLOAD_STREAM_UNSIGNED_TRAILER);
	r->in.field_nr = 1;
	assert_fault(auth_check(&env, &r->in, &r->t, 0, &id, &r->why), FAULT_NONE);
	assert_int_equal(id.payload, PAYLOAD_STREAM_UNSIGNED_TRAILER);
	r->t.have_decoded_length = false;
	assert_fault(auth_check(&env, &r->in, &r->t, 0, &id, &r->why), FAULT_LENGTH_REQUIRED);
	assert_fault(ask(rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", "UNSIGNED-PAYLOAD", NULL)),
		     FAULT_NONE);
}

static void
scality_has_none(void **state)
{
	struct rq *r = rq_with(scality("GET", "/k?X-Amz-Signature=0"), "authorization", "x", "x-scal-rdma",
			       DC81, NULL);

	r->listen.anonymous = false;
	assert_fault(ask(r), FAULT_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsigned_requests),
		cmocka_unit_test(signed_requests),
		cmocka_unit_test(streaming),
		cmocka_unit_test(scality_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
