/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures in the header and in the query: when, where and for which key they hold,
 * and for many at once. */
#include "ask.h"

#include <pthread.h>
#include <time.h>

/* ---- time, place, key ---- */

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

/* Of another region: where any is fine, and where none is named; the key is that of the region that is. */
static void
regions(void **state)
{
	static const char long_one[] = "a234567890123456789012345678901234567890123456789012345678901234";
	static const struct {
		const char *ours, *signed_for;
		enum fault f;
	} cases[] = {
		{ "us-east-1", "us-east-1", FAULT_NONE },
		{ "us-east-1", "", FAULT_NONE },
		{ "us-east-1", "eu-west-1", FAULT_AUTH_HEADER },
		{ "us-east-1", "US-EAST-1", FAULT_AUTH_HEADER },
		{ "us-east-1", "any", FAULT_AUTH_HEADER },
		{ "any", "any", FAULT_NONE },
		{ "any", "", FAULT_NONE },
		{ "any", "eu-west-1", FAULT_NONE },
		{ "any", "127.0.0.1", FAULT_NONE },
		{ "any", long_one + 1, FAULT_NONE },
		{ "any", long_one, FAULT_AUTH_HEADER },
	};
	struct signer s = example_signer();

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		/* Twice: derived, and out of the cache. */
		for (int again = 0; again < 2; again++) {
			struct auth_env env = example_env();
			struct identity id;
			enum fault f;

			env.region = cases[i].ours;
			s.region = cases[i].signed_for;
			f = ask_at(plain_get(&s), &env, DAY_S, &id);
			if (f != cases[i].f)
				fail_msg("%s for %s: fault %d", cases[i].signed_for, cases[i].ours, f);
			identity_put(&id);
		}
	}
	/* A key that is kept for one region is not that of another. */
	s.region = "eu-west-1";
	for (int i = 0; i < 2; i++) {
		struct auth_env env = example_env();
		struct identity id;
		struct rq *r = plain_get(&s);
		char value[512];

		env.region = "any";
		snprintf(value, sizeof value, "%s", r->fields[3].value);
		memcpy(strstr(value, "eu-west-1"), i ? "eu-west-2" : "eu-west-1", 9);
		r->fields[3].value = value;
		assert_fault(ask_at(r, &env, DAY_S, &id), i ? FAULT_SIGNATURE : FAULT_NONE);
		identity_put(&id);
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
		r->target = target;
		r->target_len = strlen(target);
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
			to->in.uri = &to->uri;
			rq_read(to);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks),        cmocka_unit_test(credentials),
		cmocka_unit_test(date_header),   cmocka_unit_test(regions),
		cmocka_unit_test(malformed),     cmocka_unit_test(presigned_bounds),
		cmocka_unit_test(session_token), cmocka_unit_test(rotation),
		cmocka_unit_test(many_days),     cmocka_unit_test(many_cores),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	auth_keys_put(example_keys());
	return r;
}
