/* SPDX-License-Identifier: Apache-2.0 */
/* One more row of record.def is one more field of disk records, encoded, decoded and in memory; all others have the
 * bytes that they had. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define RECORD_DEF_MORE "tests/unit/model/row.def"
#include "extent/log/rec_codec.c"
#include "extent/log/rec_mem.c"
#include "tests/fixtures/golden.h"

static const struct golden rows[] = {
#include "tests/fixtures/golden_disk.def"
};

static struct geometry geo;
static _Alignas(8) uint8_t buf[REC_BYTES_MAX];
static struct store_key k = { "bucket", "some/key", 6, 8 };
static uint64_t ext[2];

static struct rec_view
sample(uint8_t *key)
{
	return (struct rec_view){ .op = REC_PUT,
				  .body = BODY_EXTENTS,
				  .flags = REC_LOCK,
				  .key = key,
				  .key_len = (uint16_t)key_object(key, &k),
				  .version = 9,
				  .size_bytes = 40000,
				  .entries = ext,
				  .entry_nr = 2,
				  .attrs = "attributes",
				  .attrs_len = 10,
				  .lock_ns = 0x0102030405060708 };
}

static void
test_codec(void **state)
{
	uint8_t key[KEY_BYTES_MAX];
	struct rec_view v = sample(key), w;
	size_t n = rec_encode(buf, &v);

	assert_int_equal(n, rec_encoded_bytes(&v));
	assert_int_equal(buf[6], REC_LOCK); /* a flag that versions without the row refuse */
	assert_memory_equal(buf + REC_HEAD_BYTES, &v.lock_ns, 8);
	assert_int_equal(rec_decode(buf, n, &geo, &w), n);
	assert_true(w.lock_ns == v.lock_ns && w.flags == REC_LOCK);
	assert_memory_equal(w.entries, ext, sizeof ext);
	assert_memory_equal(w.attrs, v.attrs, v.attrs_len);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(rec_decode(buf, cut, &geo, &w), -EBADMSG);
	v.lock_ns = 0; /* the flag, and no value */
	assert_int_equal(rec_decode(buf, rec_encode(buf, &v), &geo, &w), -EBADMSG);
	v = sample(key);
	v.flags = 0;
	assert_int_equal(rec_encode(buf, &v), n - 8);
	assert_int_equal(rec_decode(buf, n - 8, &geo, &w), n - 8);
	assert_true(w.lock_ns == 0);
	v.flags = REC_LOCK; /* a kind of record without this field */
	v.body = BODY_NONE;
	v.size_bytes = v.entry_nr = 0;
	v.key_len = (uint16_t)key_bucket(key, "bucket", 6);
	assert_int_equal(rec_decode(buf, rec_encode(buf, &v), &geo, &w), -EBADMSG);
}

/* Records in memory: in the place of the tree's, which need a tree. */
void *
tree_rec_alloc(struct tree *t, size_t size)
{
	return malloc(size);
}

void
tree_rec_free(struct tree *t, void *r)
{
	free(r);
}

static void
test_memory(void **state)
{
	uint8_t key[KEY_BYTES_MAX];
	struct rec_view v = sample(key), w;
	struct rec *r;

	v.flags |= REC_SHARED;
	v.data_version = 5;
	r = rec_new(NULL, &v, v.entries);
	assert_non_null(r);
	rec_view_of(r, key, v.key_len, &w);
	assert_true(w.lock_ns == v.lock_ns && w.data_version == 5 && w.flags == v.flags);
	assert_memory_equal(w.entries, ext, sizeof ext);
	assert_memory_equal(w.attrs, v.attrs, v.attrs_len);
	assert_true(rec_show(r).lock_ns == v.lock_ns && rec_view_show(&w).lock_ns == v.lock_ns);
	rec_drop(NULL, r);
}

/* The superblocks need the version of the row for records with the field, and for no others. */
static void
test_version(void **state)
{
	assert_int_equal(FMT_VERSION_MAX, 7);
	assert_int_equal(rec_version(REC_LOCK | REC_SHARED), 7);
	assert_int_equal(rec_version(REC_SHARED | REC_FLUSHED), FMT_VERSION);
}

/* Records without the field are those of the versions before. */
static void
test_others(void **state)
{
	static const char *const names[] = { "object, shared", "object, packed", "object, map in pieces",
					     "part",           "chunk",          "bucket, two copies" };
	struct rec_view v;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		static _Alignas(8) uint8_t bytes[GOLDEN_BYTES];
		size_t n = golden_bytes(rows, sizeof rows / sizeof *rows, names[i], bytes);

		assert_int_equal(rec_decode(bytes, n, &geo, &v), n);
		assert_int_equal(rec_encode(buf, &v), n);
		assert_memory_equal(buf, bytes, n);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codec),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_others),
	};

	ext[0] = ext_make(1, 2);
	ext[1] = ext_make(0x1234, 1);
	if (geo_choose((uint64_t)1 << 30, 0, &geo) < 0)
		return 1;
	return cmocka_run_group_tests_name("row", tests, NULL, NULL);
}
