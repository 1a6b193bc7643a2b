/* SPDX-License-Identifier: Apache-2.0 */
/* Asking auth_check() about the requests of AWS's published examples.  Included once per program. */
#ifndef GANTRY_TESTS_AUTH_ASK_H
#define GANTRY_TESTS_AUTH_ASK_H

#include "sig.h"

static inline enum fault
ask_at(struct rq *r, const struct auth_env *env, uint64_t now_s, struct identity *id)
{
	enum fault f;

	rq_read(r);
	/* What is wrong with the target dialect_parse() says, before anybody is asked who they are. */
	f = r->uri.fault;
	if (f != FAULT_NONE) {
		r->why = r->uri.why;
		memset(id, 0, sizeof *id);
		return f;
	}
	f = auth_check(env, &r->in, &r->t, now_s, id, &r->why);
	assert_true(f == FAULT_NONE ? id->keys == env->keys && id->entry : strlen(r->why) > 10);
	assert_true(f == FAULT_NONE || (!id->entry && !id->keys && !id->anonymous));
	return f;
}

static inline enum fault
ask(struct rq *r)
{
	struct auth_env env = example_env();
	struct identity id;
	enum fault f = ask_at(r, &env, DAY_S, &id);

	identity_put(&id);
	return f;
}

static inline struct rq *
for_op(struct rq *r, enum op op)
{
	memset(&r->t, 0, sizeof r->t);
	r->t.op = op;
	return r;
}

#define AUTHORIZATION(list, sig)                                                                             \
	"AWS4-HMAC-SHA256 Credential=" AK "/20130524/us-east-1/s3/aws4_request,SignedHeaders=" list          \
	",Signature=" sig

static inline struct rq *
example(const char *method, const char *target, const char *hash, const char *authorization)
{
	return rq_with(rq_bare(DIALECT_S3, method, target), "Host", "examplebucket.s3.amazonaws.com",
		       "x-amz-date", STAMP, "x-amz-content-sha256", hash, "Authorization", authorization,
		       NULL);
}

static inline struct rq *
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

static inline struct rq *
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

static inline struct rq *
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

static inline bool
refused(struct rq *r)
{
	enum fault f = ask(r);
	int status = fault_info(f)->status;

	return f != FAULT_NONE && (status == 400 || status == 403 || status == 501);
}

static inline struct rq *
plain_get(const struct signer *s)
{
	struct rq *r = for_op(
		rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", EMPTY, "x-amz-date", s->stamp, NULL),
		OP_GET_OBJECT);

	return sign(r, s);
}

#endif
