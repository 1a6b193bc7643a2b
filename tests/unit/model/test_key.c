/* SPDX-License-Identifier: Apache-2.0 */
/* Keys are read as they are written, and their order is that of the names in them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "model/key.h"

#include <errno.h>

static const uint8_t id[STORE_UPLOAD_ID_BYTES] = { 0x80, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static const struct disk_key parts = {
	.bucket = "bucket", .key = "some/key", .bucket_len = 6, .key_len = 8, .id = id, .number = 3
};

/* Of each type: all parts come back, and no other length is a key. */
static void
test_disk_keys(void **state)
{
	static const struct {
		uint8_t type;
		int kind;
	} rows[] = {
#define DISK_KEY(name, type, kind, copies, parts) { type, MODEL_##kind },
#include "model/record.def"
	};
	uint8_t key[DISK_KEY_MAX + 1], again[DISK_KEY_MAX];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int n = disk_key_write(key, rows[i].type, &parts);
		struct disk_key got = { 0 };

		assert_true(n > 1);
		assert_int_equal(disk_key_read(key, (size_t)n, &got), rows[i].kind);
		assert_int_equal(disk_key_write(again, rows[i].type, &got), n);
		assert_memory_equal(again, key, n);
		assert_int_equal(disk_key_read(key, 0, &got), -EBADMSG);
		assert_int_equal(disk_key_read(key, 1, &got), -EBADMSG);
		key[n] = 0;
		assert_true(rows[i].kind == MODEL_BUCKET || disk_key_read(key, (size_t)n + 1, &got) < 0);
		key[0] ^= 0x80;
		assert_int_equal(disk_key_read(key, (size_t)n, &got), -EBADMSG);
	}
}

/* Every type is found by its kind, in ascending order, and only types of objects and uploads stand for a number of copies. */
static void
test_traits(void **state)
{
	int types = 0, named = 0;

	for (int kind = MODEL_BUCKET; kind <= MODEL_CHUNK; kind++) {
		for (uint8_t type = 0, last = 0; (type = disk_key_next((enum model_kind)kind, type));
		     last = type) {
			const struct key_traits t = disk_key_traits(type);
			bool is_named = kind == MODEL_OBJECT || kind == MODEL_UPLOAD;

			assert_true(type > last && t.kind == kind && (t.copies != 0) == is_named);
			types++;
			named += (int)t.copies;
		}
	}
	assert_int_equal(types, 8);
	assert_int_equal(named, 2 * (1 + 2));
	assert_int_equal(disk_key_traits('s').kind, MODEL_NONE);
	assert_int_equal(disk_key_traits('s').copies, 0);
	assert_int_equal(rados_key_traits('p').kind, MODEL_PART);
	assert_int_equal(rados_key_traits('g').kind, MODEL_NONE);
	assert_int_equal(rados_key_traits('x').kind, MODEL_NONE);
}

static void
test_names(void **state)
{
	static char longest[STORE_KEY_MAX + 1];
	uint8_t key[DISK_KEY_MAX];
	struct disk_key k = parts;

	memset(longest, 'x', sizeof longest);
	k.key = longest;
	k.key_len = STORE_KEY_MAX;
	assert_true(disk_key_write(key, 'o', &k) > 0);
	k.key_len++;
	assert_int_equal(disk_key_write(key, 'o', &k), -ENAMETOOLONG);
	k.key_len = 0;
	assert_int_equal(disk_key_write(key, 'o', &k), -EINVAL);
	k = parts;
	k.bucket = "b\0ck";
	k.bucket_len = 4;
	assert_int_equal(disk_key_write(key, 'b', &k), -EINVAL);
	k.bucket = longest;
	k.bucket_len = STORE_BUCKET_MAX + 1;
	assert_int_equal(disk_key_write(key, 'u', &k), -ENAMETOOLONG);
}

static void
test_rados_keys(void **state)
{
	static const char types[] = {
#define RADOS_KEY(name, type, kind, parts) type,
#include "model/record.def"
	};
	char text[RADOS_KEY_MAX], again[RADOS_KEY_MAX], room[STORE_KEY_MAX];
	uint8_t id_room[STORE_UPLOAD_ID_BYTES];

	for (size_t i = 0; i < sizeof types; i++) {
		const struct rados_key k = {
			.key = "a\1b", .key_len = 3, .id = id, .number = 3, .epoch = 0xfeed, .rid = { 7, 9 }
		};
		size_t n = rados_key_write(text, types[i], &k);
		struct rados_key got = { .key_room = room, .id_room = id_room };

		assert_int_equal(strlen(text), n);
		assert_int_equal(rados_key_read(text, n, types[i], &got), 0);
		got.rid = k.rid; /* which readers do not need */
		assert_int_equal(rados_key_write(again, types[i], &got), n);
		assert_string_equal(again, text);
		assert_int_equal(rados_key_read(text, n, types[i] == 'o' ? 'u' : 'o', &got), -EBADMSG);
		if (types[i] != 'o')
			assert_int_equal(rados_key_read(text, n - 1, types[i], &got), -EBADMSG);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disk_keys),
		cmocka_unit_test(test_traits),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_rados_keys),
	};

	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
