/* Who may ask, as long as signatures are not served: auth.c. */
#include "../dialect/build.h"

#include "auth/auth.h"

static enum fault
ask(struct rq *r)
{
	struct identity id = { 0 };
	enum fault f;

	assert_fault(rq_parse(r), FAULT_NONE);
	f = auth_check(&(struct auth_env){ .region = "us-east-1" }, &r->in, &r->t, 0, &id, &r->why);
	assert_int_equal(id.anonymous, f == FAULT_NONE);
	assert_true(f == FAULT_NONE || strlen(r->why) > 10);
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
					       "http://h/bkt/obj?X-Amz-Signature=0" };
	struct rq *r;

	for (int anonymous = 0; anonymous < 2; anonymous++) {
		r = rq_with(s3("GET", "/bkt/obj"), "Authorization", "AWS4-HMAC-SHA256 Credential=a", NULL);
		r->listen.anonymous = anonymous;
		assert_fault(ask(r), FAULT_SIGNATURE);
		r = rq_with(s3("GET", "/"), "authorization", "", NULL);
		r->listen.anonymous = anonymous;
		assert_fault(ask(r), FAULT_SIGNATURE);
		for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
			r = s3("GET", targets[i]);
			r->listen.anonymous = anonymous;
			assert_fault(ask(r), FAULT_SIGNATURE);
		}
	}
	assert_int_equal(fault_info(FAULT_SIGNATURE)->status, 403);
}

static void
streaming(void **state)
{
	assert_fault(ask(rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256",
				 "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", NULL)),
		     FAULT_NOT_IMPLEMENTED);
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
