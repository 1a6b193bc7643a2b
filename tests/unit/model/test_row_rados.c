/* SPDX-License-Identifier: Apache-2.0 */
/* One more row of record.def is one more field of records on RADOS; all others have the bytes that they had. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define RECORD_DEF_MORE "tests/unit/model/row.def"
#include "rados/io/codec_key.c"
#include "rados/io/codec_record.c"
#include "rados/io/codec_store.c"
#include "tests/fixtures/golden.h"

static const struct golden rows[] = {
#include "tests/fixtures/golden_rados.def"
};

static const struct record sample = { .kind = REC_INLINE,
				      .version = 9,
				      .size_bytes = 5,
				      .inline_data = "bytes",
				      .attrs = "attributes",
				      .attrs_len = 10 };

static void
seal(uint8_t *value, size_t len)
{
	uint64_t crc = crc64_nvme(0, value, len - 8);

	memcpy(value + len - 8, &crc, 8);
}

static void
test_record(void **state)
{
	uint8_t bytes[256], plain[256];
	struct record r = sample, got;
	size_t n = record_bytes(&r);

	record_encode(plain, &r);
	assert_int_equal(record_decode(plain, n, &got), 0);
	assert_true(got.lock_ns == 0);
	r.lock_ns = 0x0102030405060708;
	assert_int_equal(record_bytes(&r), n + 8);
	record_encode(bytes, &r);
	assert_int_equal(bytes[2], 2); /* the flag */
	assert_memory_equal(bytes + 4, plain + 4, n - 12);
	assert_memory_equal(bytes + n - 8, &r.lock_ns, 8);
	assert_int_equal(record_decode(bytes, n + 8, &got), 0);
	assert_true(got.lock_ns == r.lock_ns && got.version == 9);
	assert_memory_equal(got.inline_data, "bytes", 5);
	bytes[2] = 0; /* bytes without their flag */
	seal(bytes, n + 8);
	assert_int_equal(record_decode(bytes, n + 8, &got), -EBADMSG);
	bytes[2] = 6; /* a flag that is not known */
	seal(bytes, n + 8);
	assert_int_equal(record_decode(bytes, n + 8, &got), -EBADMSG);
	plain[2] = 2; /* a flag without its bytes */
	seal(plain, n);
	assert_int_equal(record_decode(plain, n, &got), -EBADMSG);
	r.lock_ns = 0;
	record_encode(bytes, &r);
	bytes[2] = 2; /* a field that is there, and 0 */
	memset(bytes + n - 8, 0, 8);
	seal(bytes, n + 8);
	assert_int_equal(record_decode(bytes, n + 8, &got), -EBADMSG);
}

static void
test_others(void **state)
{
	static const char *const names[] = { "object, inline", "object, data", "object, parts",
					     "object, map of parts" };
	static uint8_t bytes[GOLDEN_BYTES], again[GOLDEN_BYTES];
	struct record r;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t n = golden_bytes(rows, sizeof rows / sizeof *rows, names[i], bytes);

		assert_int_equal(record_decode(bytes, n, &r), 0);
		assert_int_equal(record_bytes(&r), n);
		record_encode(again, &r);
		assert_memory_equal(again, bytes, n);
	}
}

/* The row names version 3, which a record with the field needs: pools of versions 1 and 2 are still read, and gateways
 * without the row refuse pools of version 3. */
static void
test_format(void **state)
{
	uint8_t bytes[STORE_FORMAT_BYTES];
	struct store_format_row f = { .version = 3, .object_bytes = 4 << 20 }, got;
	struct record r = sample;

	assert_int_equal(STORE_FORMAT_VERSION, 3);
	assert_int_equal(record_version(&r), 1);
	r.lock_ns = 1;
	assert_int_equal(record_version(&r), 3);
	format_encode(bytes, &f);
	assert_int_equal(bytes[4], 3);
	assert_int_equal(format_decode(bytes, sizeof bytes, &got), 0);
	for (uint8_t version = 0; version < 5; version++) {
		bytes[4] = version;
		seal(bytes, sizeof bytes);
		assert_int_equal(format_decode(bytes, sizeof bytes, &got),
				 version >= 1 && version <= 3 ? 0 : -EPROTONOSUPPORT);
		assert_int_equal(got.version, version);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_format),
	};

	return cmocka_run_group_tests_name("row_rados", tests, NULL, NULL);
}
