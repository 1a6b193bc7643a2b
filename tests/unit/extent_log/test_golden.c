/* SPDX-License-Identifier: Apache-2.0 */
/* Records of every kind are, byte for byte, those that a disk of format version 3 has. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "extent/log/rec_codec.h"
#include "extent/log/usage.h"
#include "tests/fixtures/golden.h"

static const struct golden rows[] = {
#include "tests/fixtures/golden_disk.def"
};

static const uint8_t id[CHUNK_ID_BYTES] = { 0x80, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static struct geometry geo;
static _Alignas(8) uint8_t buf[REC_BYTES_MAX];

static void
expect(const char *name, const struct rec_view *v)
{
	static _Alignas(8) uint8_t again[REC_BYTES_MAX];
	size_t n = rec_encode(buf, v);
	struct rec_view w;

	golden_expect(rows, sizeof rows / sizeof *rows, name, buf, n);
	assert_int_equal(rec_decode(buf, n, &geo, &w), n);
	memset(again, 0xee, sizeof again);
	assert_int_equal(rec_encode(again, &w), n);
	assert_memory_equal(again, buf, n);
}

static struct rec_view
view_of(const uint8_t *key, int key_len)
{
	struct rec_view v = { .op = REC_PUT,
			      .key = key,
			      .key_len = (uint16_t)key_len,
			      .version = 0x0000070000000123,
			      .mtime_ns = 0x1122334455667788,
			      .crc64 = 0x99aabbccddeeff00,
			      .etag = { .parts = 3 } };

	assert_true(key_len > 0);
	for (uint8_t i = 0; i < 16; i++)
		v.etag.sum[i] = (uint8_t)(0xe0 + i);
	return v;
}

static void
test_objects(void **state)
{
	struct store_key k = { "bucket", "some/key", 6, 8 };
	uint8_t key[KEY_BYTES_MAX];
	uint64_t ext[3] = { ext_make(1, 2), ext_make(0x1234, 1), ext_make(0x100, 4) },
		 place = place_make(7, 9);
	struct chunk_ref ch[2] = { { .index = 1, .len_bytes = FMT_CHUNK_BYTES, .crc64 = 21 },
				   { .index = 2, .len_bytes = 5, .crc64 = 22 } };
	struct rec_view v = view_of(key, key_object(key, &k));

	memcpy(ch[0].id, id, sizeof id);
	memcpy(ch[1].id, id, sizeof id);
	v.op = REC_DELETE;
	expect("delete", &v);
	v.op = REC_PUT;
	v.body = BODY_INLINE;
	v.inline_data = "inline bytes";
	v.size_bytes = v.inline_len = 12;
	v.attrs = "some attributes";
	v.attrs_len = 15;
	expect("object, inline", &v);
	v.flags = REC_EXPIRES;
	v.expires_ns = 0x0102030405060708;
	expect("object, expires", &v);
	v.sums = (const uint8_t *)"checksums";
	v.sums_len = 9;
	v.flags = REC_SHARED | REC_EXPIRES;
	v.data_version = 0x0000060000000001;
	expect("object, shared", &v);
	v = view_of(key, key_object(key, &k));
	v.body = BODY_INLINE;
	expect("object, empty", &v);
	v.body = BODY_EXTENTS;
	v.entries = ext;
	v.entry_nr = 3;
	v.size_bytes = 100000;
	expect("object, extents", &v);
	v.body = BODY_PACKED;
	v.flags = REC_FLUSHED | REC_SHARED;
	v.data_version = 12;
	v.entries = &place;
	v.entry_nr = 1;
	v.size_bytes = 1001;
	v.attrs = "a";
	v.attrs_len = 1;
	expect("object, packed", &v);
	v = view_of(key, key_object(key, &k));
	v.body = BODY_MANIFEST;
	v.flags = REC_FLUSHED;
	v.entries = ch;
	v.entry_nr = 2;
	v.size_bytes = FMT_CHUNK_BYTES + 5;
	expect("object, manifest", &v);
	v.body = BODY_PARTS;
	expect("object, parts", &v);
	v.flags = REC_FLUSHED | REC_MAPPED;
	v.map = (struct map_ref){ .ext = ext, .nr = 1, .len_bytes = 100 * sizeof *ch, .crc64 = 77 };
	v.entry_nr = 100;
	v.attrs = "some attributes";
	v.attrs_len = 15;
	expect("object, map", &v);
	v.flags |= REC_MAP_LIST;
	v.map.nr = 3;
	expect("object, map in pieces", &v);
	k.copies = 2;
	v = view_of(key, key_object(key, &k));
	v.body = BODY_INLINE;
	v.inline_data = "x";
	v.size_bytes = v.inline_len = 1;
	expect("object with two copies", &v);
}

static void
test_uploads(void **state)
{
	struct store_key k = { "bucket", "some/key", 6, 8 };
	uint8_t key[KEY_BYTES_MAX], owner[KEY_BYTES_MAX];
	uint64_t ext = ext_make(3, 4);
	struct chunk_ref ch = { .index = 0, .len_bytes = 5, .crc64 = 23 };
	struct rec_view v = view_of(key, key_upload(key, &k, id));

	memcpy(ch.id, id, sizeof id);
	v.attrs = "some attributes";
	v.attrs_len = 15;
	expect("upload", &v);
	k.copies = 2;
	v = view_of(key, key_upload(key, &k, id));
	expect("upload with two copies", &v);
	k.copies = 1;
	v = view_of(key, key_part(key, id, 258));
	v.owner = owner;
	v.owner_len = (uint16_t)key_upload(owner, &k, id);
	v.body = BODY_MANIFEST;
	v.flags = REC_FLUSHED;
	v.entries = &ch;
	v.entry_nr = 1;
	v.size_bytes = 5;
	v.attrs = "of the part";
	v.attrs_len = 11;
	expect("part", &v);
	v = view_of(key, key_chunk(key, id, 513));
	v.owner = owner;
	v.owner_len = (uint16_t)key_object(owner, &k);
	v.body = BODY_EXTENTS;
	v.flags = REC_FLUSHED;
	v.entries = &ext;
	v.entry_nr = 1;
	v.size_bytes = 20000;
	expect("chunk", &v);
}

static void
test_buckets(void **state)
{
	static const char *const names[] = { "bucket", "bucket, one copy", "bucket, two copies" };
	struct store_use max = { 5, 0x123456789a, STORE_UNBOUNDED };
	uint8_t bucket[KEY_BYTES_MAX], key[KEY_BYTES_MAX], bound[USE_BYTES];
	int len = key_bucket(bucket, "some-bucket", 11);
	struct rec_view v = view_of(bucket, len);

	for (uint8_t i = 0; i < 3; i++) {
		v.copies = i;
		expect(names[i], &v);
	}
	v = view_of(key, key_battrs(key, "some-bucket", 11, 1));
	v.attrs = "documents";
	v.attrs_len = 9;
	expect("documents of a bucket", &v);
	v = view_of(key, key_battrs(key, "some-bucket", 11, BATTRS_QUOTA));
	use_move(&max, bound, true);
	v.attrs = bound;
	v.attrs_len = sizeof bound;
	expect("quota of a bucket", &v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_uploads),
		cmocka_unit_test(test_buckets),
	};

	if (geo_choose((uint64_t)1 << 30, 0, &geo) < 0)
		return 1;
	return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
