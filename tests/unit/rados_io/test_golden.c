/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of every kind are, byte for byte, those of the index on RADOS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rados/io/codec.h"
#include "tests/fixtures/golden.h"

static const struct golden rows[] = {
#include "tests/fixtures/golden_rados.def"
};

static const struct rid some_id = { 7, 0x123456789abc }, other_id = { 0x90000009, 3 };
static const uint8_t upload_id[STORE_UPLOAD_ID_BYTES] = { 0x01, 0xff, 0x10, 4,  5,  6,  7,  8,
							  9,    10,   11,   12, 13, 14, 15, 16 };
static uint8_t buf[GOLDEN_BYTES];

static void
expect(const char *name, size_t len)
{
	golden_expect(rows, sizeof rows / sizeof *rows, name, buf, len);
	memset(buf, 0xee, sizeof buf);
}

static void
expect_record(const char *name, const struct record *r)
{
	static uint8_t again[GOLDEN_BYTES];
	size_t len = record_bytes(r);
	struct record got;

	record_encode(buf, r);
	assert_int_equal(record_decode(buf, len, &got), 0);
	assert_int_equal(record_bytes(&got), len);
	record_encode(again, &got);
	assert_memory_equal(again, buf, len);
	expect(name, len);
}

static void
test_records(void **state)
{
	uint8_t crcs[24];
	const struct record part = { .number = 258,
				     .size_bytes = 7,
				     .crc64 = 5,
				     .mtime_ns = 6,
				     .version = 9,
				     .etag = { { 1, 2, 3 }, 4 },
				     .kind = REC_INLINE,
				     .inline_data = "in line",
				     .attrs = "a part",
				     .attrs_len = 6 };
	struct record other = part;
	uint8_t parts[512];
	struct record r = { .kind = REC_INLINE,
			    .version = 0x0102030405060708,
			    .size_bytes = 12,
			    .crc64 = 0x1122334455667788,
			    .mtime_ns = 0x99aabbccddeeff00,
			    .id = some_id,
			    .etag = { { 1, 2, 3 }, 4 },
			    .attrs = "attributes",
			    .attrs_len = 10,
			    .inline_data = "inline bytes" };

	for (uint8_t i = 0; i < sizeof crcs; i++)
		crcs[i] = (uint8_t)(0x40 + i);
	expect_record("object, inline", &r);
	r.expires_ns = 0x0a0b0c0d0e0f1011;
	expect_record("object, expires", &r);
	r.expires_ns = 0;
	r.kind = REC_DATA;
	r.replaced = other_id;
	r.data = some_id;
	r.size_bytes = 3 * STORE_GRANULE - 5;
	r.crcs = crcs;
	r.crc_nr = 3;
	expect_record("object, data", &r);
	r.size_bytes = 5ull << 40;
	r.crc_nr = 0;
	expect_record("object, data with trailers", &r);
	other.number++;
	other.kind = REC_DATA;
	other.size_bytes = 100000;
	other.data = other_id;
	other.crcs = crcs;
	other.crc_nr = 2;
	r.kind = REC_PARTS;
	r.upload_id = upload_id;
	r.part_nr = 2;
	r.parts = parts;
	r.parts_len = (uint32_t)part_encode(parts, &part);
	r.parts_len += (uint32_t)part_encode(parts + r.parts_len, &other);
	expect_record("object, parts", &r);
	r.kind = REC_MAP;
	r.part_nr = STORE_PART_NR_MAX;
	r.data = other_id;
	r.parts_len = 12345;
	r.parts_crc64 = 0x0a0b0c0d01020304;
	expect_record("object, map of parts", &r);
}

static void
test_rows(void **state)
{
	struct upload u = { .ctime_ns = 0x0102030405060708, .attrs = "attributes", .attrs_len = 10 };
	const struct bucket_row b = { .state = BUCKET_THERE,
				      .uid = other_id,
				      .shards = 32,
				      .instance = 4,
				      .ctime_ns = 6,
				      .version = 7 };
	const struct counter counter = { { 5, -70000000000, 1 }, 9 };
	const struct store_use max = { 3, STORE_UNBOUNDED, 0 };
	const struct garbage_data data[2] = { { some_id, 10 }, { other_id, 20 } };

	memcpy(u.id, upload_id, sizeof u.id);
	upload_encode(buf, &u);
	expect("upload", upload_bytes(&u));
	u.closer = 3;
	u.close = some_id;
	u.attrs_len = 0;
	upload_encode(buf, &u);
	expect("upload, closed", upload_bytes(&u));
	bucket_encode(buf, &b);
	expect("bucket", BUCKET_ROW_BYTES);
	battrs_encode(buf, &(struct battrs){ .version = 42, .attrs = "documents", .attrs_len = 9 });
	expect("documents of a bucket", battrs_bytes(9));
	counter_encode(buf, &counter);
	expect("counter", COUNTER_BYTES);
	bound_encode(buf, &max);
	expect("quota of a bucket", BOUND_BYTES);
	garbage_encode(buf, data, 2, NULL);
	expect("garbage", garbage_bytes(2));
	garbage_encode(buf, NULL, 0, &other_id);
	expect("garbage, a map", garbage_bytes(0));
}

static void
test_gateways(void **state)
{
	const struct gateway_row g = { .beats = 1,
				       .epoch = 2,
				       .first = 3,
				       .last = 4,
				       .since_ns = 5,
				       .host = "here",
				       .addrs = "127.0.0.1:0/1" };
	const struct gateway_addrs a = { .nr = 2, .addr = { "127.0.0.1:0/1", "127.0.0.1:0/2" } };
	struct store_format_row f = { .version = 1, .object_bytes = 4 << 20 };
	uint8_t trailer[8 * 2 + 8] = { 1, 2, 3 };

	gateway_encode(buf, &g);
	expect("gateway", GATEWAY_ROW_BYTES);
	gateway_addrs_encode(buf, &a);
	expect("addresses of a gateway", GATEWAY_ADDRS_BYTES);
	memcpy(f.uuid, upload_id, sizeof f.uuid);
	format_encode(buf, &f);
	expect("format", STORE_FORMAT_BYTES);
	trailer_seal(trailer, 100000, some_id, 2);
	memcpy(buf, trailer, sizeof trailer);
	expect("trailer", sizeof trailer);
}

static void
test_keys(void **state)
{
	char *key = (char *)buf;

	expect("key of an object", key_object(key, "some\1key", 8));
	expect("key of an upload", key_upload(key, "some\1key", 8, upload_id));
	expect("key of an upload, without an id", key_upload(key, "some\1key", 8, NULL));
	expect("key of uploads", key_upload_prefix(key, "some\1key", 8));
	expect("key of a part", key_part(key, upload_id, 258));
	expect("key of all parts", key_part(key, upload_id, 0));
	expect("key of garbage", key_garbage(key, 0x123, some_id));
	strcpy(key, key_counter(258).text);
	expect("key of a counter", strlen(key));
	strcpy(key, rid_text(some_id).text);
	expect("id", strlen(key) + 1);
	strcpy(key, data_name(some_id, 258).text);
	expect("name of data", strlen(key) + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_gateways),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
