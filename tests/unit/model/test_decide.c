/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the object model: every act against every state that matters, with a view of a few records. */
#include "model/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/crc64.h"

#include <errno.h>
#include <string.h>

#define PARTS 4

struct records {
	struct model_view view;
	bool has[5]; /* by kind; of parts: has_part */
	struct model_record of[5];
	bool has_part[PARTS + 1];
	struct model_record part[PARTS + 1];
	int objects, uploads; /* has_any() */
	int error[5], any_error;
	uint32_t last_number;
};

static int
find(struct model_view *v, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	struct records *r = (struct records *)v;

	if (r->error[kind])
		return r->error[kind];
	if (kind == MODEL_PART) {
		assert_true(number >= r->last_number && number <= PARTS);
		r->last_number = number;
		*ret_record = r->part[number];
		return r->has_part[number];
	}
	if (r->has[kind])
		*ret_record = r->of[kind];
	return r->has[kind];
}

static int
has_any(struct model_view *v, enum model_kind kind, uint64_t after)
{
	struct records *r = (struct records *)v;

	if (r->any_error)
		return r->any_error;
	return kind == MODEL_OBJECT ? r->objects > 0 : r->uploads > 0 && r->of[MODEL_UPLOAD].version > after;
}

static struct store_etag
etag(uint8_t byte)
{
	return (struct store_etag){ .sum = { byte } };
}

/* A bucket of version 10 with an object of 100 bytes, an upload with two parts, and attributes. */
static struct records
full(void)
{
	struct records r = { .view = { find, has_any } };

	r.has[MODEL_BUCKET] = r.has[MODEL_OBJECT] = r.has[MODEL_UPLOAD] = r.has[MODEL_BUCKET_ATTRS] = true;
	r.of[MODEL_BUCKET] = (struct model_record){ .version = 10, .copies = 1 };
	r.of[MODEL_BUCKET_ATTRS] = (struct model_record){ .version = 11 };
	r.of[MODEL_OBJECT] = (struct model_record){ .version = 20, .size_bytes = 100, .etag = etag(1) };
	r.of[MODEL_UPLOAD] = (struct model_record){ .version = 21 };
	r.has_part[1] = r.has_part[3] = true;
	r.part[1] = (struct model_record){
		.version = 22, .size_bytes = 5, .crc64 = crc64_nvme(0, "hello", 5), .etag = etag(2)
	};
	r.part[3] = (struct model_record){
		.version = 23, .size_bytes = 3, .crc64 = crc64_nvme(0, "you", 3), .etag = etag(3)
	};
	r.objects = r.uploads = 1;
	return r;
}

static struct records
bare(void)
{
	struct records r = { .view = { find, has_any } };

	r.has[MODEL_BUCKET] = true;
	r.of[MODEL_BUCKET] = (struct model_record){ .version = 10, .copies = 1 };
	return r;
}

/* Decides; WANT 1: records change; else the result. */
static struct model_answer
decide(struct records r, struct model_op op, int want)
{
	struct model_answer a;
	bool changes;

	memset(&a, 0xa5, sizeof a);
	changes = model_decide(&op, &r.view, &a);
	assert_int_equal(changes ? 1 : a.result, want);
	if (!changes) {
		assert_int_equal(a.usage.objects, 0);
		assert_int_equal(a.usage.bytes, 0);
		assert_int_equal(a.usage.uploads, 0);
	}
	return a;
}

static void
assert_usage(const struct model_answer *a, int64_t objects, int64_t bytes, int64_t uploads)
{
	assert_int_equal(a->usage.objects, objects);
	assert_int_equal(a->usage.bytes, bytes);
	assert_int_equal(a->usage.uploads, uploads);
}

static int
judge(const struct store_pre *pre, const struct model_record *there)
{
	struct records r = bare();
	struct model_answer a;

	r.has[MODEL_OBJECT] = there;
	if (there)
		r.of[MODEL_OBJECT] = *there;
	model_decide(&(struct model_op){ .act = MODEL_PUT, .pre = pre }, &r.view, &a);
	return a.result;
}

static void
preconditions(void **state)
{
	const struct model_record there = { .version = 7, .etag = etag(1) };
	static const struct {
		enum store_pre_kind kind;
		uint8_t etag;
		uint64_t version;
		bool keep;
		int with, without;
	} row[] = {
		{ PRE_NONE, 0, 0, false, 0, 0 },
		{ PRE_NONE, 0, 0, true, -EPERM, 0 },
		{ PRE_ABSENT, 0, 0, false, -EEXIST, 0 },
		{ PRE_ABSENT, 0, 0, true, -EEXIST, 0 },
		{ PRE_MATCH_ANY, 0, 0, false, 0, -ENOENT },
		{ PRE_MATCH_ANY, 0, 0, true, -EPERM, -ENOENT },
		{ PRE_MATCH, 1, 0, false, 0, -ENOENT },
		{ PRE_MATCH, 2, 0, false, -ESTALE, -ENOENT },
		{ PRE_MATCH, 2, 0, true, -ESTALE, -ENOENT },
		{ PRE_NONE_MATCH, 1, 0, false, -EEXIST, 0 },
		{ PRE_NONE_MATCH, 2, 0, false, 0, 0 },
		{ PRE_NONE_MATCH, 2, 0, true, -EPERM, 0 },
		{ PRE_VERSION, 0, 7, false, 0, -ENOENT },
		{ PRE_VERSION, 0, 6, false, -ESTALE, -ENOENT },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct store_pre pre = { .kind = row[i].kind,
					 .etags = { etag(9), etag(row[i].etag) },
					 .etag_nr = 2,
					 .keep = row[i].keep,
					 .version = row[i].version };

		assert_int_equal(judge(&pre, &there), row[i].with);
		assert_int_equal(judge(&pre, NULL), row[i].without);
	}
	/* The number of parts is part of an ETag. */
	assert_int_equal(
		judge(&(struct store_pre){ .kind = PRE_MATCH, .etags = { { { 1 }, 2 } }, .etag_nr = 1 },
		      &there),
		-ESTALE);
}

static void
objects(void **state)
{
	const struct store_pre absent = { .kind = PRE_ABSENT };
	struct model_answer a;
	struct records none = bare(), gone = { .view = { find, has_any } };

	a = decide(none, (struct model_op){ .act = MODEL_PUT, .size_bytes = 7 }, 1);
	assert_usage(&a, 1, 7, 0);
	assert_false(a.replaces);
	a = decide(full(), (struct model_op){ .act = MODEL_PUT, .size_bytes = 7 }, 1);
	assert_usage(&a, 0, -93, 0);
	assert_true(a.replaces);
	assert_int_equal(a.old.version, 20);
	decide(full(), (struct model_op){ .act = MODEL_PUT, .pre = &absent }, -EEXIST);
	decide(gone, (struct model_op){ .act = MODEL_PUT, .pre = &absent }, -ENXIO);

	a = decide(full(), (struct model_op){ .act = MODEL_DELETE }, 1);
	assert_usage(&a, -1, -100, 0);
	decide(none, (struct model_op){ .act = MODEL_DELETE }, 0);
	decide(gone, (struct model_op){ .act = MODEL_DELETE }, -ENXIO);
	decide(full(), (struct model_op){ .act = MODEL_DELETE, .pre = &(struct store_pre){ .keep = true } },
	       -EPERM);

	a = decide(full(), (struct model_op){ .act = MODEL_SET_ATTRS }, 1);
	assert_usage(&a, 0, 0, 0);
	decide(full(), (struct model_op){ .act = MODEL_SET_ATTRS, .version = 20 }, 1);
	decide(full(), (struct model_op){ .act = MODEL_SET_ATTRS, .version = 19 }, -ESTALE);
	decide(none, (struct model_op){ .act = MODEL_SET_ATTRS, .version = 19 }, -ENOENT);
}

static void
copies(void **state)
{
	struct records two = full();

	two.of[MODEL_BUCKET].copies = 2;
	for (enum model_act act = MODEL_PUT; act < MODEL_MAKE_BUCKET; act++) {
		bool removes = act == MODEL_DELETE || act == MODEL_ABORT;
		struct model_op op = { .act = act, .part_number = 1, .copies = 1 };

		decide(full(), op, 1);
		decide(two, op, removes ? 1 : -EAGAIN);
		op.copies = 2;
		decide(two, op, 1);
		decide(full(), op, removes ? 1 : -EAGAIN);
		op.copies = 0;
		decide(two, op, 1);
	}
}

static void
uploads(void **state)
{
	struct records none = bare(), older = full();
	struct model_answer a;

	a = decide(none, (struct model_op){ .act = MODEL_CREATE_UPLOAD }, 1);
	assert_usage(&a, 0, 0, 1);
	decide(none, (struct model_op){ .act = MODEL_CREATE_UPLOAD, .version = 10 }, 1);
	decide(none, (struct model_op){ .act = MODEL_CREATE_UPLOAD, .version = 9 }, -ESTALE);
	a = decide(full(), (struct model_op){ .act = MODEL_PUT_PART, .part_number = 2, .size_bytes = 40000 },
		   1);
	assert_usage(&a, 0, 40000, 0);
	/* A part counts as at least one unit, the replaced one too. */
	a = decide(full(), (struct model_op){ .act = MODEL_PUT_PART, .part_number = 1, .size_bytes = 40000 },
		   1);
	assert_usage(&a, 0, 40000 - (int64_t)QUOTA_PART_BYTES, 0);
	decide(none, (struct model_op){ .act = MODEL_PUT_PART, .part_number = 1 }, -ENOENT);
	decide(none, (struct model_op){ .act = MODEL_COMPLETE }, -ENOENT);
	decide(none, (struct model_op){ .act = MODEL_ABORT }, -ENOENT);
	a = decide(full(), (struct model_op){ .act = MODEL_ABORT }, 1);
	assert_usage(&a, 0, 0, -1);
	/* An upload of an earlier bucket of the name. */
	older.of[MODEL_BUCKET].version = 21;
	decide(older, (struct model_op){ .act = MODEL_PUT_PART, .part_number = 1 }, -ENOENT);
	decide(older, (struct model_op){ .act = MODEL_COMPLETE }, -ENOENT);
	decide(older, (struct model_op){ .act = MODEL_ABORT }, -ENOENT);
	older.of[MODEL_BUCKET].version = 20;
	decide(older, (struct model_op){ .act = MODEL_ABORT }, 1);
}

static void
completions(void **state)
{
	struct store_part_ref refs[2] = { { .number = 1, .etag = etag(2) },
					  { .number = 3, .etag = etag(3), .version = 23 } };
	struct store_complete c = { .parts = refs, .part_nr = 2 };
	const struct model_op op = { .act = MODEL_COMPLETE, .complete = &c, .adds_crc = true, .pre = &c.pre };
	struct records counted = full();
	struct model_answer a;

	counted.of[MODEL_UPLOAD].size_bytes = 32768;
	a = decide(counted, op, 1);
	assert_int_equal(a.size_bytes, 8);
	assert_int_equal(a.crc64, crc64_nvme(0, "helloyou", 8));
	assert_usage(&a, 0, 8 - 32768 - 100, -1);

	refs[1].version = 22;
	assert_int_equal(decide(full(), op, -EBADR).bad, 1);
	refs[1].version = 0;
	refs[0].etag = etag(7);
	assert_int_equal(decide(full(), op, -EBADR).bad, 0);
	refs[0].etag = etag(2);
	refs[1].number = 4;
	assert_int_equal(decide(full(), op, -EBADR).bad, 1);
	refs[1].number = 3;
	/* The last part may have any size. */
	c.part_min_bytes = 5;
	decide(full(), op, 1);
	c.part_min_bytes = 6;
	assert_int_equal(decide(full(), op, -EMSGSIZE).bad, 0);
	c.part_min_bytes = 0;
	c.have_expect_size = true;
	c.expect_size_bytes = 8;
	decide(full(), op, 1);
	c.expect_size_bytes = 9;
	decide(full(), op, -ERANGE);
	c.have_expect_size = false;
	c.have_expect_crc64 = true;
	decide(full(), op, -EILSEQ);
	/* The precondition precedes the list. */
	c.pre.kind = PRE_ABSENT;
	decide(full(), op, -EEXIST);
}

static void
lists(void **state)
{
	struct store_part_ref refs[3] = { { .number = 1 }, { .number = 2 }, { .number = STORE_PART_NR_MAX } };
	struct store_complete c = { .parts = refs, .part_nr = 3 };

	assert_int_equal(model_check_list(&c), 0);
	refs[1].number = 1;
	assert_int_equal(model_check_list(&c), -EINVAL);
	assert_int_equal(c.bad, 1);
	refs[1].number = 2;
	refs[2].number = STORE_PART_NR_MAX + 1;
	assert_int_equal(model_check_list(&c), -EINVAL);
	assert_int_equal(c.bad, 2);
	refs[0].number = 0;
	assert_int_equal(model_check_list(&c), -EINVAL);
	assert_int_equal(c.bad, 0);
	c.part_nr = 0;
	assert_int_equal(model_check_list(&c), -EINVAL);
	c = (struct store_complete){ .parts = refs, .part_nr = 1, .meta.attrs_len = STORE_ATTRS_MAX + 1 };
	refs[0].number = 1;
	assert_int_equal(model_check_list(&c), -EINVAL);
	c.meta.attrs_len = STORE_ATTRS_MAX;
	assert_int_equal(model_check_list(&c), 0);
	c.pre.etag_nr = STORE_PRE_ETAGS + 1;
	assert_int_equal(model_check_list(&c), -EINVAL);
}

static void
buckets(void **state)
{
	struct records none = { .view = { find, has_any } }, r = full();

	decide(none, (struct model_op){ .act = MODEL_MAKE_BUCKET }, 1);
	decide(bare(), (struct model_op){ .act = MODEL_MAKE_BUCKET }, -EEXIST);
	for (enum model_act act = MODEL_REMOVE_BUCKET; act < MODEL_ACTS; act++)
		decide(none, (struct model_op){ .act = act }, -ENXIO);

	decide(bare(), (struct model_op){ .act = MODEL_REMOVE_BUCKET }, 1);
	decide(r, (struct model_op){ .act = MODEL_REMOVE_BUCKET }, -ENOTEMPTY);
	decide(r, (struct model_op){ .act = MODEL_CLOSE_BUCKET }, -ENOTEMPTY);
	decide(r, (struct model_op){ .act = MODEL_SET_COPIES, .copies = 2 }, -ENOTEMPTY);
	decide(r, (struct model_op){ .act = MODEL_SET_COPIES, .copies = 1 }, 0);
	r.objects = 0; /* an upload alone */
	decide(r, (struct model_op){ .act = MODEL_REMOVE_BUCKET }, 1);
	decide(r, (struct model_op){ .act = MODEL_CLOSE_BUCKET }, 0);
	decide(r, (struct model_op){ .act = MODEL_CLOSE_BUCKET, .is_alone = true }, -ENOTEMPTY);
	decide(r, (struct model_op){ .act = MODEL_SET_COPIES, .copies = 2 }, -ENOTEMPTY);
	r.of[MODEL_UPLOAD].version = 10; /* of an earlier bucket */
	decide(r, (struct model_op){ .act = MODEL_CLOSE_BUCKET, .is_alone = true }, 0);
	decide(r, (struct model_op){ .act = MODEL_SET_COPIES, .copies = 2 }, 1);

	r = full();
	decide(r, (struct model_op){ .act = MODEL_SET_BUCKET_ATTRS, .version = 11 }, 1);
	decide(r, (struct model_op){ .act = MODEL_SET_BUCKET_ATTRS, .version = STORE_VERSION_ANY }, 1);
	decide(r, (struct model_op){ .act = MODEL_SET_BUCKET_ATTRS, .version = 0 }, -ESTALE);
	decide(r, (struct model_op){ .act = MODEL_SET_BUCKET_ATTRS, .version = 11, .removes = true }, 1);
	decide(bare(), (struct model_op){ .act = MODEL_SET_BUCKET_ATTRS, .removes = true }, 0);
	decide(bare(), (struct model_op){ .act = MODEL_SET_BUCKET_ATTRS, .version = 11 }, -ESTALE);
	r.of[MODEL_BUCKET_ATTRS].version = 9; /* of an earlier bucket */
	decide(r, (struct model_op){ .act = MODEL_SET_BUCKET_ATTRS, .version = 9 }, -ESTALE);
	decide(r, (struct model_op){ .act = MODEL_SET_BUCKET_ATTRS, .version = 0 }, 1);
}

/* An error of the view ends each decision that needs the record. */
static void
errors(void **state)
{
	struct store_part_ref ref = { .number = 1, .etag = etag(2) };
	struct store_complete c = { .parts = &ref, .part_nr = 1 };
	static const struct {
		enum model_act act;
		enum model_kind kind;
	} row[] = {
		{ MODEL_PUT, MODEL_BUCKET },         { MODEL_PUT, MODEL_OBJECT },
		{ MODEL_DELETE, MODEL_OBJECT },      { MODEL_SET_ATTRS, MODEL_OBJECT },
		{ MODEL_PUT_PART, MODEL_UPLOAD },    { MODEL_PUT_PART, MODEL_PART },
		{ MODEL_COMPLETE, MODEL_UPLOAD },    { MODEL_COMPLETE, MODEL_OBJECT },
		{ MODEL_COMPLETE, MODEL_PART },      { MODEL_ABORT, MODEL_UPLOAD },
		{ MODEL_MAKE_BUCKET, MODEL_BUCKET }, { MODEL_SET_BUCKET_ATTRS, MODEL_BUCKET_ATTRS },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct records r = full();

		r.error[row[i].kind] = -EBADMSG;
		decide(r, (struct model_op){ .act = row[i].act, .part_number = 1, .complete = &c }, -EBADMSG);
	}
	for (enum model_act act = MODEL_REMOVE_BUCKET; act < MODEL_ACTS; act++) {
		struct records r = full();

		r.any_error = -EINPROGRESS;
		if (act != MODEL_SET_BUCKET_ATTRS)
			decide(r, (struct model_op){ .act = act, .copies = 2 }, -EINPROGRESS);
	}
}

static void
usage(void **state)
{
	const uint64_t small = 5, large = 100000;
	struct quota_change c = model_usage(MODEL_OBJECT, &small, &large);

	assert_true(c.objects == 0 && c.bytes == 5 - 100000 && c.uploads == 0);
	c = model_usage(MODEL_PART, &small, &large);
	assert_true(c.objects == 0 && c.bytes == (int64_t)QUOTA_PART_BYTES - 100000 && c.uploads == 0);
	c = model_usage(MODEL_UPLOAD, NULL, &large);
	assert_true(c.objects == 0 && c.bytes == -100000 && c.uploads == -1);
	c = model_usage(MODEL_OBJECT, NULL, NULL);
	assert_false(quota_is_any(&c));
	assert_true(model_is_of(11, 10) && !model_is_of(10, 10));
}

/* An object whose time has passed is absent for conditions and attributes; it counts until it is replaced. */
static void
gone(void **state)
{
	const struct store_pre absent = { .kind = PRE_ABSENT }, there = { .kind = PRE_MATCH_ANY },
			       keep = { .keep = true };
	struct store_pre expired = { .kind = PRE_EXPIRED };
	struct records r = full(), none = bare();
	struct model_answer a;

	decide(none, (struct model_op){ .act = MODEL_DELETE, .pre = &expired }, -ENOENT);
	expired.expired_ns = UINT64_MAX;
	decide(r, (struct model_op){ .act = MODEL_DELETE, .pre = &expired }, -ESTALE);
	r.of[MODEL_OBJECT].expires_ns = 1000;
	for (uint64_t now_ns = 999; now_ns < 1002; now_ns++) {
		expired.expired_ns = now_ns;
		bool is_there = now_ns < 1000;
		struct model_op op = { .act = MODEL_PUT, .size_bytes = 7, .now_ns = now_ns };

		assert_int_equal(model_is_there(&r.of[MODEL_OBJECT], now_ns), is_there);
		op.pre = &absent;
		a = decide(r, op, is_there ? -EEXIST : 1);
		if (!is_there) {
			assert_true(a.replaces);
			assert_usage(&a, 0, 7 - 100, 0);
		}
		op.pre = &there;
		decide(r, op, is_there ? 1 : -ENOENT);
		op.pre = &keep;
		decide(r, op, is_there ? -EPERM : 1);
		op = (struct model_op){ .act = MODEL_SET_ATTRS, .now_ns = now_ns };
		decide(r, op, is_there ? 1 : -ENOENT);
		op = (struct model_op){ .act = MODEL_DELETE, .now_ns = now_ns };
		a = decide(r, op, 1);
		assert_int_equal(a.result, is_there);
		assert_usage(&a, -1, -100, 0);
		op.pre = &expired;
		a = decide(r, op, is_there ? -ESTALE : 1);
		assert_int_equal(a.result, is_there ? -ESTALE : 1);
		/* The record has to be removed before its bucket. */
		op = (struct model_op){ .act = MODEL_REMOVE_BUCKET, .now_ns = now_ns };
		decide(r, op, -ENOTEMPTY);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usage),  cmocka_unit_test(preconditions), cmocka_unit_test(objects),
		cmocka_unit_test(copies), cmocka_unit_test(uploads),       cmocka_unit_test(completions),
		cmocka_unit_test(lists),  cmocka_unit_test(buckets),       cmocka_unit_test(errors),
		cmocka_unit_test(gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
