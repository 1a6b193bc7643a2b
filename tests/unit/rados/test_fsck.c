/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a bucket's counters, one of which is damaged or wrong: fsck reports the counter, and only a
 * repair corrects it. The check of data without an owner, of a gateway whose row is damaged: the data may
 * be in use, and remains as long as the row exists. The check of a bucket whose row is damaged, or of which a shard is missing:
 * no data is removed, and everything is there again with the row. A damaged generation of a shard, damaged documents
 * and a damaged quota: only a repair changes them. */
#include "tests/fake/diff.h"
#include "tests/fake/librados.h"
#include "tests/unit/rados/past.h"

#include "base/log.h"
#include "rados/io/codec.h"
#include "rados/io/pool.h"
#include "rados/io/rows.h"

#include <errno.h>
#include <stdio.h>

#define SHARDS 2 /* of the bucket */
#define SIZE 10u

static struct bufpool bufs;
static struct diff_end *end;
static char told[2048];

static void
on_line(void *cookie, const char *line)
{
	size_t len = strlen(told);

	snprintf(told + len, sizeof told - len, "%s\n", line);
}

static int
check_all(enum fsck_mode mode)
{
	struct store_conf conf = fake_rados_conf("diff", SHARDS);

	told[0] = 0;
	return store_fsck(&conf, mode, on_line, NULL);
}

static void
does(enum diff_kind kind, unsigned key)
{
	const struct diff_op op = { .kind = kind, .key = key, .nr = key + 1, .size = SIZE, .rides = true };

	diff_do(end, &op);
	assert_null(strstr(end->own.text, "=-"));
}

/* Returns the sum of the objects in the counters of all shards, and copies the name of a shard with
 * objects (NULL: not wanted). */
static uint64_t
counted(char shard[64])
{
	rados_list_ctx_t list;
	const char *name;
	uint64_t objects = 0;

	assert_int_equal(rados_nobjects_list_open(meta, &list), 0);
	while (rados_nobjects_list_next(list, &name, NULL, NULL) == 0) {
		char key[80], val[64];
		struct counter c;

		if (strncmp(name, "idx.", 4) != 0)
			continue;
		/* After a repair this is row 0, otherwise the row of the only gateway that has changed the
		 * shard. */
		assert_int_equal(counter_decode(val, first_row(name, "c", key, val), &c), 0);
		objects += (uint64_t)c.sum.objects;
		if (shard && c.sum.objects)
			snprintf(shard, 64, "%s", name);
	}
	rados_nobjects_list_close(list);
	return objects;
}

static void
mends(const char *shard, const char *key, const void *val, size_t len, const char *says)
{
	set_row(shard, key, val, len);
	assert_int_equal(check_all(FSCK_LOOK), -ENOTRECOVERABLE);
	assert_non_null(strstr(told, says));
	assert_null(strstr(told, "mended"));
	assert_int_equal(check_all(FSCK_REPAIR), 1);
	assert_non_null(strstr(told, "mended"));
	assert_int_equal(check_all(FSCK_LOOK), 0);
	assert_string_equal(told, "");
	assert_int_equal(counted(NULL), DIFF_KEYS);
}

static void
test_counters(void **state)
{
	const struct counter wrong = { { 1000, 5, 7 }, 0 };
	char shard[64] = "", key[80], val[64];
	uint8_t bytes[COUNTER_BYTES];

	end = diff_rados_end(&bufs);
	diff_clock_all();
	diff_start(&end, 1);
	fake_rados_tune(&(struct fake_rados_tuning){ .seed = 1 });
	open_pool();
	does(OP_BUCKET_CREATE, 0);
	for (unsigned i = 0; i < DIFF_KEYS; i++)
		does(OP_PUT, i);
	end->stop(end);
	assert_int_equal(check_all(FSCK_LOOK), 0);
	assert_int_equal(counted(shard), DIFF_KEYS);
	first_row(shard, "c", key, val);
	mends(shard, key, "damaged", 7, "one of its counters is damaged, and has ");
	counter_encode(bytes, &wrong);
	mends(shard, key_counter(0).text, bytes, sizeof bytes,
	      " counts 1000 objects, 5 bytes, 7 uploads, and has ");
	mends(shard, key_counter(4000000000).text, bytes, sizeof bytes, " uploads, and has ");
	/* Later changes are added to the corrected counters. */
	end->start(end, false);
	for (unsigned i = 0; i < DIFF_KEYS; i++)
		does(OP_DELETE, i);
	does(OP_BUCKET_DELETE, 0);
	close_pool();
	end->stop(end);
}

static void
test_gateway(void **state)
{
	static const char *const kinds = "ix";
	const struct label name = data_name((struct rid){ 1, 5 }, 0);
	rados_ioctx_t data;
	uint64_t size;
	time_t mtime;

	end = diff_rados_end(&bufs);
	diff_start(&end, 1);
	fake_rados_tune(&(struct fake_rados_tuning){ .seed = 1 });
	open_pool();
	check(rados_ioctx_create(cluster, "gantry.data", &data) == 0);
	rados_ioctx_set_namespace(data, "diff");
	end->stop(end);
	for (const char *kind = kinds; *kind; kind++) {
		const struct label row = gateway_key(*kind, 1);
		rados_write_op_t op = op_new_object(XATTR_OWNER, "b", 1);

		assert_int_equal(rados_write_op_operate(op, data, name.text, NULL, 0), 0);
		rados_release_write_op(op);
		set_row("gantry", row.text, "damaged", 7);
		assert_int_equal(check_all(FSCK_REPAIR), -ENOTRECOVERABLE);
		assert_non_null(strstr(told, "gateway 1: its row is damaged"));
		assert_int_equal(rados_stat(data, name.text, &size, &mtime), 0);
		set_row("gantry", row.text, NULL, 0);
		assert_int_equal(check_all(FSCK_REPAIR), 1);
		assert_int_equal(rados_stat(data, name.text, &size, &mtime), -ENOENT);
	}
	rados_ioctx_destroy(data);
	close_pool();
}

/* Starts with a bucket of a few objects with data, and returns the number of objects in both pools. */
static unsigned
start_bucket(void)
{
	struct diff_op op = { .kind = OP_PUT, .size = 100000 };

	end = diff_rados_end(&bufs);
	diff_clock_all();
	diff_start(&end, 1);
	fake_rados_tune(&(struct fake_rados_tuning){ .seed = 1 });
	open_pool();
	does(OP_BUCKET_CREATE, 0);
	for (op.key = 0; op.key < DIFF_KEYS; op.key++) {
		op.nr = op.key + 1;
		diff_do(end, &op);
		assert_null(strstr(end->own.text, "=-"));
	}
	end->stop(end);
	assert_int_equal(check_all(FSCK_LOOK), 0);
	return fake_rados_objects();
}

static void
stop_bucket(void)
{
	assert_int_equal(check_all(FSCK_LOOK), 0);
	end->start(end, false);
	for (unsigned i = 0; i < DIFF_KEYS; i++)
		does(OP_DELETE, i);
	does(OP_BUCKET_DELETE, 0);
	close_pool();
	end->stop(end);
}

static void
test_bucket_row(void **state)
{
	unsigned objects = start_bucket();
	char key[80], val[64], says[100];
	const struct label removed = doomed_key((struct rid){ 1, 1 });
	size_t len = first_row("buckets", "b", key, val);
	struct bucket_row row;

	snprintf(says, sizeof says, "bucket %s: its row is damaged: objects without an owner are left out",
		 key + 1);
	set_row("buckets", key, "damaged", 7);
	assert_int_equal(check_all(FSCK_LOOK), -ENOTRECOVERABLE);
	assert_int_equal(check_all(FSCK_REPAIR), -ENOTRECOVERABLE);
	assert_non_null(strstr(told, says));
	assert_null(strstr(told, "has no owner"));
	assert_int_equal(fake_rados_objects(), objects);
	set_row("buckets", key, val, len);
	/* A removed bucket. */
	set_row("buckets", removed.text, "damaged", 7);
	assert_int_equal(check_all(FSCK_REPAIR), -ENOTRECOVERABLE);
	assert_non_null(strstr(told, "removed bucket 00000001.0000000000000001: its row is damaged"));
	set_row("buckets", removed.text, NULL, 0);
	/* A shard without which the data of its objects seems to have no owner. */
	assert_int_equal(check_all(FSCK_LOOK), 0);
	assert_int_equal(bucket_decode(val, len, &row), 0);
	assert_int_equal(rados_remove(meta, shard_name(row.uid, 0).text), 0);
	assert_int_equal(check_all(FSCK_REPAIR), -ENOTRECOVERABLE);
	assert_non_null(strstr(told, " of its index is missing: objects without an owner are left out"));
	assert_int_equal(fake_rados_objects(), objects - 1);
	close_pool();
}

static void
test_generation(void **state)
{
	char key[80], val[64], says[200], was[8];
	struct bucket_row row;
	const char *shard;
	struct label name;

	start_bucket();
	assert_int_equal(bucket_decode(val, first_row("buckets", "b", key, val), &row), 0);
	name = shard_name(row.uid, 1);
	shard = name.text;
	snprintf(says, sizeof says, "bucket %s: the generation of %s is damaged", key + 1, shard);
	for (size_t len = 0; len <= 1000; len += len < 9 ? 3 : 991) {
		uint64_t now;
		char bytes[1000] = "";
		rados_write_op_t op = rados_create_write_op();

		rados_write_op_setxattr(op, XATTR_GENERATION, bytes, len);
		assert_int_equal(rados_write_op_operate(op, meta, shard, NULL, 0), 0);
		rados_release_write_op(op);
		assert_int_equal(check_all(FSCK_LOOK), -ENOTRECOVERABLE);
		assert_non_null(strstr(told, says));
		assert_int_equal(check_all(FSCK_PREVIEW), 1);
		assert_int_equal(check_all(FSCK_REPAIR), 1);
		assert_non_null(strstr(told, says));
		assert_int_equal(rados_getxattr(meta, shard, XATTR_GENERATION, was, sizeof was), 8);
		memcpy(&now, was, sizeof now);
		assert_true(now > 1000000 && !(now & GENERATION_CLOSED));
	}
	stop_bucket();
}

static void
test_settings(void **state)
{
	static const char *const says[] = { "a: its documents (CORS, lifecycle and others) are damaged",
					    "q: its quota is damaged" };
	char row[80], key[80], val[64];

	start_bucket();
	first_row("buckets", "b", key, val);
	for (int i = 0; i < 2; i++) {
		snprintf(row, sizeof row, "%c%s", says[i][0], key + 1);
		set_row("buckets", row, "damaged", 7);
		assert_int_equal(check_all(FSCK_LOOK), -ENOTRECOVERABLE);
		assert_non_null(strstr(told, says[i] + 1));
		assert_non_null(strstr(told, key + 1));
		assert_int_equal(check_all(FSCK_REPAIR), 1);
		assert_non_null(strstr(told, "removed"));
		assert_int_equal(check_all(FSCK_LOOK), 0);
	}
	stop_bucket();
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_counters), cmocka_unit_test(test_gateway),
					    cmocka_unit_test(test_bucket_row),
					    cmocka_unit_test(test_generation),
					    cmocka_unit_test(test_settings) };

	log_init(LOG_PLAIN, LOG_ERROR);
	check(bufpool_init(&bufs, 8 << 20) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
