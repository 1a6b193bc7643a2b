/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The removal of garbage, where the row of one bucket in the table of buckets is damaged, or a row in a shard of a removed bucket: the
 * garbage and the shards of all other buckets go all the same, and those of the bucket after the repair.
 */
#include "tests/fake/diff.h"
#include "tests/fake/librados.h"
#include "tests/unit/rados/past.h"

#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SHARDS 2 /* of each bucket */
#define TURNS 20 /* more than the epochs for which garbage is kept */
#define PART "p00112233445566778899aabbccddeeff00001"

static struct bufpool bufs;
static struct diff_end *end;

/* Counts the shards, and copies the name of the first. */
static unsigned
shards(char first[64])
{
	rados_list_ctx_t list;
	const char *name;
	unsigned nr = 0;

	first[0] = 0;
	assert_int_equal(rados_nobjects_list_open(meta, &list), 0);
	while (rados_nobjects_list_next(list, &name, NULL, NULL) == 0) {
		if (strncmp(name, "idx.", 4) != 0)
			continue;
		nr++;
		if (!first[0] || strcmp(name, first) < 0)
			snprintf(first, 64, "%s", name);
	}
	rados_nobjects_list_close(list);
	return nr;
}

/* ---- tests ---- */

static void
does(enum diff_kind kind, uint32_t bucket)
{
	const struct diff_op op = { .kind = kind, .bucket = bucket, .nr = 1, .size = 100000, .rides = true };

	diff_do(end, &op);
	assert_null(strstr(end->own.text, "=-"));
}

static void
turn(void)
{
	for (int i = 0; i < TURNS; i++)
		fake_rados_turn_helpers();
}

static void
start(void)
{
	end = diff_rados_end(&bufs);
	diff_clock_all();
	diff_start(&end, 1);
	fake_rados_tune(&(struct fake_rados_tuning){ .seed = 1 });
	open_pool();
	for (uint32_t i = 0; i < 2; i++)
		does(OP_BUCKET_CREATE, i);
	turn();
}

static void
stop(void)
{
	char name[64];

	turn();
	assert_int_equal(shards(name), 0);
	close_pool();
	end->stop(end);
}

static void
test_there(void **state)
{
	char key[80], val[64];
	unsigned first, before;
	size_t len;

	start();
	len = first_row("buckets", "b", key, val);
	first = strcmp(key + 1, diff_bucket(0)) != 0;
	does(OP_PUT, !first);
	does(OP_DELETE, !first);
	before = fake_rados_objects();
	end->stop(end);
	set_row("buckets", key, "damaged", 7);
	end->start(end, false);
	turn();
	assert_true(fake_rados_objects() < before);
	set_row("buckets", key, val, len);
	for (uint32_t i = 0; i < 2; i++)
		does(OP_BUCKET_DELETE, i);
	stop();
}

static void
test_removed(void **state)
{
	char key[80], val[64], name[64];
	size_t len;

	start();
	does(OP_BUCKET_DELETE, 0);
	len = first_row("buckets", "d", key, val);
	set_row("buckets", key, "damaged", 7);
	does(OP_BUCKET_DELETE, 1);
	assert_int_equal(shards(name), 2 * SHARDS);
	turn();
	assert_int_equal(shards(name), SHARDS);
	set_row("buckets", key, val, len);
	stop();
}

static void
test_shard(void **state)
{
	char name[64], left[64];

	start();
	assert_int_equal(shards(name), 2 * SHARDS);
	set_row(name, PART, "damaged", 7);
	does(OP_BUCKET_DELETE, 0);
	does(OP_BUCKET_DELETE, 1);
	turn();
	assert_int_equal(shards(left), SHARDS);
	assert_string_equal(left, name);
	set_row(name, PART, NULL, 0);
	stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_there), cmocka_unit_test(test_removed),
					    cmocka_unit_test(test_shard) };

	log_init(LOG_PLAIN, LOG_ERROR);
	check(bufpool_init(&bufs, 8 << 20) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
