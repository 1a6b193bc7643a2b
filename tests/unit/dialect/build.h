/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for the tests of dialect/ and auth/: a listener, a method, a target, fields one by one. */
#ifndef GANTRY_TESTS_DIALECT_BUILD_H
#define GANTRY_TESTS_DIALECT_BUILD_H

#include "dialect/dialect.h"
#include "dialect/text.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define DC81 "000073967e5ff000:00400000:01f2e973:0000:007a03:1:00000000000000000000ffff0f0f0fdf"
#define DC115 DC81 ":000073967e5ff000:0000000000400000"
#define HIP88 "012a00000000000000000000000000ffff0a000005efbeadde00100000007f00000010000000000000010000"
#define HIP122 HIP88 ":00007f0000001000:0000000000001000"
#define SHIM "rc:03b1c6f0a4e84d1796c2e5f70b8d9a1e:00007f0000200000:00100000:0001a2b3"
#define SCAL_RC "10.0.0.5:18515:0x00007f0000001000:0x00100000:0x01f2e973"

struct rq {
	struct conf_listen listen;
	struct conf_rdma rdma;
	struct field fields[DIALECT_FIELDS_MAX + 8];
	struct dialect_in in;
	const char *target; /* as it is sent */
	size_t target_len;
	struct uri uri;
	char text[DIALECT_TARGET_MAX + 64]; /* that it is decoded in */
	struct target t;
	unsigned parts, parts_not; /* that were got; that there are none of */
	unsigned char attrs[DIALECT_ATTRS_MAX];
	struct copy_source copy;
	struct list_query list;
	const char *why;
};

static inline void *
rq_part(void *cookie, enum target_part part)
{
	struct rq *r = cookie;

	/* Each of them once, and only where there is use for it. */
	assert_false(r->parts & part);
	if (r->parts_not & part)
		return NULL;
	r->parts |= part;
	return part == TARGET_ATTRS  ? (void *)r->attrs
	       : part == TARGET_COPY ? (void *)&r->copy
				     : (void *)&r->list;
}

static inline void
rq_field(struct rq *r, const char *name, const char *value)
{
	r->fields[r->in.field_nr++] =
		(struct field){ name, value, (uint32_t)strlen(name), (uint32_t)strlen(value) };
	r->in.absent_lengths &= ~(UINT64_C(1) << strlen(name) % 64);
}

/* A request without fields; there is one in the whole test program. */
static inline struct rq *
rq_bare(enum conf_dialect d, const char *method, const char *target)
{
	static struct rq r;

	memset(&r, 0, sizeof r);
	r.listen = (struct conf_listen){
		.dialect = d, .anonymous = true, .bucket = (char *)".scality", .decode = true
	};
	r.in = (struct dialect_in){ .listen = &r.listen,
				    .rdma = &r.rdma,
				    .method = method,
				    .uri = &r.uri,
				    .fields = r.fields,
				    .absent_lengths = UINT64_MAX,
				    .parts = { rq_part, &r } };
	r.target = target;
	r.target_len = strlen(target);
	return &r;
}

static inline struct rq *
rq_new(enum conf_dialect d, const char *method, const char *target)
{
	struct rq *r = rq_bare(d, method, target);

	rq_field(r, "Host", "10.0.0.9:9000");
	return r;
}

/* Name, value, ..., NULL. */
__attribute__((sentinel)) static inline struct rq *
rq_with(struct rq *r, ...)
{
	const char *name;
	va_list ap;

	va_start(ap, r);
	while ((name = va_arg(ap, const char *)))
		rq_field(r, name, va_arg(ap, const char *));
	va_end(ap);
	return r;
}

/* What is sent, decoded again.  What lies behind it is not touched. */
static inline void
rq_read(struct rq *r)
{
	size_t behind = r->target_len + 1;

	assert_true(r->target_len < sizeof r->text - 32);
	memset(r->text, 0x5a, sizeof r->text);
	memcpy(r->text, r->target, r->target_len);
	r->text[r->target_len] = 0;
	dialect_read_target(&r->in, r->text, r->target_len, &r->uri);
	assert_int_equal(r->text[r->target_len], 0);
	assert_int_equal(r->text[behind], 0x5a);
	/* The other bytes equal their neighbours: this takes a hundredth of the time of a look at each. */
	assert_memory_equal(r->text + behind + 1, r->text + behind, sizeof r->text - behind - 1);
}

static inline enum fault
rq_parse(struct rq *r)
{
	enum fault f;

	rq_read(r);
	memset(&r->t, 0x5a, sizeof r->t);
	memset(r->attrs, 0x5a, sizeof r->attrs);
	memset(&r->copy, 0x5a, sizeof r->copy);
	memset(&r->list, 0x5a, sizeof r->list);
	r->parts = 0;
	r->why = NULL;
	f = dialect_parse(&r->in, &r->t, &r->why);
	assert_non_null(r->why);
	/* Whatever is refused is explained. */
	assert_true(f == FAULT_NONE || strlen(r->why) > 10);
	return f;
}

/* Both halves. */
static inline enum fault
rq_token(struct rq *r)
{
	enum fault f = rq_parse(r);

	return f ? f : dialect_token(&r->in, &r->t, &r->why);
}

/* What was written, as a string. */
static inline const char *
text_of(struct text *x)
{
	assert_true(text_ok(x));
	text_put(x, "", 1);
	x->len--;
	return x->p;
}

#define s3(method, target) rq_new(DIALECT_S3, method, target)
#define scality(method, target) rq_new(DIALECT_SCALITY, method, target)
#define put_dc() rq_with(s3("PUT", "/bkt/obj"), "x-amz-rdma-token", DC81, "content-length", "0", NULL)
#define put_body() rq_with(s3("PUT", "/bkt/obj"), "content-length", "5", NULL)

#define assert_fault(got, want)                                                                              \
	do {                                                                                                 \
		enum fault got_ = (got);                                                                     \
		if (got_ != (want))                                                                          \
			fail_msg("fault %d (%s), not %d", got_, fault_info(got_)->code, (want));             \
	} while (0)

#endif
