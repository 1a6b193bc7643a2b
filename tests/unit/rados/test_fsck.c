/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a bucket's counters, one of which is damaged or wrong: fsck reports the counter, and only a
 * repair corrects it. The check of data without an owner, of a gateway whose row is damaged: the data may
 * be in use, and remains as long as the row exists. */
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

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_counters), cmocka_unit_test(test_gateway) };

	log_init(LOG_PLAIN, LOG_ERROR);
	check(bufpool_init(&bufs, 8 << 20) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
