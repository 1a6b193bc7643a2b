/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The removal of garbage if a bucket's row in the table of buckets is damaged, or a row in a shard of a
 * removed bucket: the garbage and the shards of all other buckets are removed, and those of this bucket after
 * the repair.
 *
 * The clean-up after a dead gateway if such a row, a row in a shard, the generation of a shard, or the row of
 * another dead gateway is damaged: only the data and the bucket that the damage concerns remain until the
 * repair, with the row of the dead gateway. The attempts are rare while the damage lasts.
 *
 * The damaged row of a gateway that may run: no garbage is removed, and nothing of this gateway; all else continues.
 *
 * The log has a line about a lasting problem once in ten minutes, with the bucket and the shard.
 */
#include "tests/fake/diff.h"
#include "tests/fake/librados.h"
#include "tests/unit/rados/past.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "base/log.h"
#include "rados/io/codec.h"
#include "rados/io/pool.h"
#include "rados/io/rows.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SHARDS 2 /* of each bucket */
#define TURNS 20 /* more than the number of epochs for which garbage is kept */
#define PART "p00112233445566778899aabbccddeeff00001"

static struct bufpool bufs;
static struct diff_end *end;

/* Returns the number of shards, and copies the name of the first one. */
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
	for (int i = 0; i < TURNS; i++) {
		diff_pass(NS_PER_US);
		fake_rados_turn_helpers();
	}
}

/* Runs the helpers after the longest pause between two attempts. */
static void
turn_later(void)
{
	diff_pass(600 * NS_PER_S);
	turn();
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
	turn_later();
	stop();
}

/* ---- a dead gateway ---- */

static rados_ioctx_t data;
static struct gateway_row row; /* row of the gateway that dies */
static uint32_t instance;

/* A bucket, and its undamaged row in the table of buckets. */
static struct one_bucket {
	uint32_t number; /* number for diff_bucket() */
	char key[80], val[64];
	size_t len;
	struct bucket_row row;
} first, second;

static bool
is_dead_there(void)
{
	char key[80], val[GATEWAY_ROW_BYTES];

	return look_for_row("gantry", gateway_key('x', instance).text, key, val, sizeof val) > 0;
}

static bool
is_data_there(uint64_t counter)
{
	uint64_t size;
	time_t mtime;

	return rados_stat(data, data_name((struct rid){ instance, counter }, 0).text, &size, &mtime) == 0;
}

/* Writes a data object that the gateway had in progress, with the n-th last of its ids. Returns the
 * counter of the id. */
static uint64_t
leave_data(unsigned n, uint32_t bucket, const char *key)
{
	const struct rid id = { instance, row.last - n };
	char owner[128];
	int len = snprintf(owner, sizeof owner, "%s%c%s", diff_bucket(bucket), 0, key);
	rados_write_op_t op = op_new_object(XATTR_OWNER, owner, (size_t)len);

	assert_int_equal(rados_write_op_operate(op, data, data_name(id, 0).text, NULL, 0), 0);
	rados_release_write_op(op);
	return id.counter;
}

static void
read_bucket(struct one_bucket *b, uint32_t number)
{
	char key[80];

	b->number = number;
	snprintf(key, sizeof key, "b%s", diff_bucket(number));
	b->len = first_row("buckets", key, b->key, b->val);
	assert_int_equal(bucket_decode(b->val, b->len, &b->row), 0);
}

static enum bucket_state
state_of(const struct one_bucket *b)
{
	struct one_bucket now;

	read_bucket(&now, b->number);
	return now.row.state;
}

/* Sets the row of the bucket as if the gateway was removing the bucket. */
static void
set_ending(struct one_bucket *b)
{
	uint8_t bytes[BUCKET_ROW_BYTES];

	b->row.state = BUCKET_ENDING;
	b->row.instance = instance;
	bucket_encode(bytes, &b->row);
	memcpy(b->val, bytes, b->len = sizeof bytes);
	set_row("buckets", b->key, b->val, b->len);
}

static struct label
shard_of(const struct one_bucket *b, const char *key)
{
	return shard_name(b->row.uid, (uint32_t)(crc64_nvme(0, key, strlen(key)) >> 32) % b->row.shards);
}

static void
start_dying(void)
{
	char key[80], val[GATEWAY_ROW_BYTES];
	bool is_less;
	size_t len;

	start();
	check(rados_ioctx_create(cluster, "gantry.data", &data) == 0);
	rados_ioctx_set_namespace(data, "diff");
	len = look_for_row("gantry", "i", key, val, sizeof val);
	assert_int_equal(gateway_decode(val, len, &row), 0);
	instance = (uint32_t)strtoul(key + 1, NULL, 10);
	is_less = strcmp(diff_bucket(0), diff_bucket(1)) < 0;
	read_bucket(&first, !is_less);
	read_bucket(&second, is_less);
}

static void
stop_dead(void)
{
	assert_false(is_dead_there());
	for (uint32_t i = 0; i < 2; i++)
		does(OP_BUCKET_DELETE, i);
	rados_ioctx_destroy(data);
	stop();
}

static void
test_dead_bucket(void **state)
{
	uint64_t left, gone;

	start_dying();
	left = leave_data(2, first.number, "a");
	gone = leave_data(1, second.number, "a");
	set_row("buckets", first.key, "damaged", 7);
	set_ending(&second);
	end->kill(end);
	turn();
	assert_true(is_data_there(left));
	assert_false(is_data_there(gone));
	assert_int_equal(state_of(&second), BUCKET_THERE);
	does(OP_PUT, second.number);
	does(OP_DELETE, second.number);
	assert_true(is_dead_there());
	set_row("buckets", first.key, first.val, first.len);
	turn_later();
	assert_false(is_data_there(left));
	stop_dead();
}

static void
test_dead_row(void **state)
{
	const struct store_conf conf = fake_rados_conf("diff", SHARDS);
	uint64_t left, gone;

	start_dying();
	left = leave_data(2, first.number, "a");
	gone = leave_data(1, first.number, "b");
	set_row(shard_of(&first, "a").text, "oa", "damaged", 7);
	end->kill(end);
	turn();
	assert_true(is_data_there(left));
	assert_false(is_data_there(gone));
	assert_true(is_dead_there());
	assert_int_equal(store_fsck(&conf, FSCK_REPAIR, NULL, NULL), 1);
	assert_true(is_data_there(left));
	turn_later();
	assert_false(is_data_there(left));
	stop_dead();
}

static void
set_generation(const char *shard, const char *val, size_t len)
{
	rados_write_op_t op = rados_create_write_op();

	rados_write_op_setxattr(op, XATTR_GENERATION, val, len);
	assert_int_equal(rados_write_op_operate(op, meta, shard, NULL, 0), 0);
	rados_release_write_op(op);
}

/* The repair sets the generation with the command, or as it was. */
static void
dead_generation(bool is_long, bool by_fsck)
{
	const struct store_conf conf = fake_rados_conf("diff", SHARDS);
	const char *shard;
	char val[9] = "";
	struct label name;

	start_dying();
	name = shard_name(first.row.uid, 0);
	shard = name.text;
	assert_int_equal(rados_getxattr(meta, shard, XATTR_GENERATION, val, sizeof val), 8);
	set_generation(shard, val, is_long ? 9 : 3);
	set_ending(&first);
	set_ending(&second);
	/* A running gateway is removing the bucket. */
	assert_int_equal(store_fsck(&conf, FSCK_REPAIR, NULL, NULL), -ENOTRECOVERABLE);
	end->kill(end);
	turn();
	assert_int_equal(state_of(&first), BUCKET_ENDING);
	assert_int_equal(state_of(&second), BUCKET_THERE);
	assert_true(is_dead_there());
	if (by_fsck)
		assert_int_equal(store_fsck(&conf, FSCK_REPAIR, NULL, NULL), 1);
	else
		set_generation(shard, val, 8);
	turn_later();
	assert_int_equal(state_of(&first), BUCKET_THERE);
	for (uint32_t key = 0; by_fsck && key < DIFF_KEYS; key++) {
		const struct diff_op op = { .kind = OP_PUT, .bucket = first.number, .key = key, .nr = 1 };

		diff_do(end, &op);
		assert_null(strstr(end->own.text, "=-"));
		diff_do(end,
			&(struct diff_op){ .kind = OP_DELETE, .bucket = first.number, .key = key, .nr = 2 });
	}
	stop_dead();
}

static void
test_dead_generation(void **state)
{
	dead_generation(false, false);
	dead_generation(true, false);
	dead_generation(false, true);
	dead_generation(true, true);
}

/* The shard of a bucket is missing: nothing says that the data has no name. An owner that is too long delays its own id alone. */
static void
test_dead_shard(void **state)
{
	char owner[4096] = "x";
	rados_write_op_t op;
	struct label shard;
	uint64_t left, odd, gone;

	start_dying();
	left = leave_data(3, first.number, "a");
	odd = leave_data(2, first.number, "b");
	gone = leave_data(1, second.number, "a");
	op = rados_create_write_op();
	rados_write_op_setxattr(op, XATTR_OWNER, owner, sizeof owner);
	assert_int_equal(
		rados_write_op_operate(op, data, data_name((struct rid){ instance, odd }, 0).text, NULL, 0),
		0);
	rados_release_write_op(op);
	shard = shard_of(&first, "a");
	assert_int_equal(rados_remove(meta, shard.text), 0);
	end->kill(end);
	turn();
	assert_true(is_data_there(left));
	assert_true(is_data_there(odd));
	assert_false(is_data_there(gone));
	assert_true(is_dead_there());
	rados_ioctx_destroy(data);
	close_pool();
	end->stop(end);
}

static void
test_dead_other(void **state)
{
	uint64_t gone;

	start_dying();
	gone = leave_data(1, first.number, "a");
	set_row("gantry", gateway_key('x', 0).text, "damaged", 7);
	end->kill(end);
	turn();
	assert_false(is_data_there(gone));
	set_row("gantry", gateway_key('x', 0).text, NULL, 0);
	stop_dead();
}

/* ---- the log ---- */

static unsigned lines[LOG_LEVEL_NR]; /* lines with the text `wanted` at each level */
static const char *wanted;

static void
sink(enum log_level level, const char *text)
{
	lines[level] += strstr(text, wanted) != NULL;
}

static void
count_lines(const char *text)
{
	memset(lines, 0, sizeof lines);
	wanted = text;
	log_set_sink(sink);
	log_set_level(LOG_DEBUG);
}

static void
end_count(void)
{
	log_set_level(LOG_ERROR);
	log_set_sink(NULL);
}

/* Lets the time pass, runs the helpers, and returns the number of their warnings. */
static unsigned
warnings_after(uint64_t seconds)
{
	lines[LOG_WARN] = 0;
	diff_pass(seconds * NS_PER_S);
	turn();
	return lines[LOG_WARN];
}

static void
test_log(void **state)
{
	char key[80], val[64];
	size_t len;

	start();
	count_lines(" stay: ");
	does(OP_BUCKET_DELETE, 0);
	len = first_row("buckets", "d", key, val);
	set_row("buckets", key, "damaged", 7);
	assert_int_equal(warnings_after(0), 1);
	assert_int_equal(warnings_after(599), 0);
	assert_int_equal(warnings_after(1), 1);
	assert_true(lines[LOG_DEBUG] > 2 * TURNS);
	/* Another problem. */
	set_row("buckets", "d~", "damaged", 7);
	assert_int_equal(warnings_after(0), 1);
	assert_int_equal(warnings_after(600), 2);
	set_row("buckets", "d~", NULL, 0);
	set_row("buckets", key, val, len);
	does(OP_BUCKET_DELETE, 1);
	assert_int_equal(warnings_after(600), 0);
	end_count();
	stop();
}

/* Runs the helpers after a time, and returns the number of attempts to clean up, at all levels of the log. */
static unsigned
attempts_after(uint64_t seconds)
{
	memset(lines, 0, sizeof lines);
	diff_pass(seconds * NS_PER_S);
	turn();
	return lines[LOG_WARN] + lines[LOG_DEBUG];
}

static void
test_dead_pauses(void **state)
{
	char key[80], val[GATEWAY_ROW_BYTES], text[200];
	unsigned all = 0;
	size_t len;

	start_dying();
	leave_data(1, first.number, "a");
	set_row("buckets", first.key, "damaged", 7);
	snprintf(text, sizeof text, "be cleaned up after gateway %u yet: the row of bucket %s is damaged",
		 instance, diff_bucket(first.number));
	count_lines(text);
	end->kill(end);
	/* The work of a gateway that starts was the work of the other one before. */
	all = attempts_after(0);
	assert_true(all == 1 || all == 2);
	all = 0;
	assert_int_equal(attempts_after(1), 0);
	assert_int_equal(attempts_after(1), 1);
	assert_int_equal(attempts_after(2), 0);
	assert_int_equal(attempts_after(2), 1);
	for (int i = 0; i < 1800; i++)
		all += attempts_after(2);
	assert_true(all >= 11 && all <= 14);
	/* Another gateway has died. */
	count_lines("be cleaned up after gateway 0 yet: the row of bucket ");
	len = look_for_row("gantry", gateway_key('x', instance).text, key, val, sizeof val);
	assert_true(attempts_after(0) == 0 && len == sizeof val);
	set_row("gantry", gateway_key('x', 0).text, val, len);
	assert_int_equal(attempts_after(0), 1);
	end_count();
	set_row("buckets", first.key, first.val, first.len);
	turn_later();
	stop_dead();
}

static void
test_dead_named(void **state)
{
	char text[200];

	start_dying();
	leave_data(1, first.number, "a");
	snprintf(text, sizeof text, "after gateway %u yet: data in bucket %s: %s is missing or damaged",
		 instance, diff_bucket(first.number), shard_of(&first, "a").text);
	set_row(shard_of(&first, "a").text, "oa", "damaged", 7);
	count_lines(text);
	end->kill(end);
	assert_true(warnings_after(0) > 0);
	end_count();
	set_row(shard_of(&first, "a").text, "oa", NULL, 0);
	turn_later();
	stop_dead();
}

/* ---- the damaged row of a gateway that may run ---- */

static void
test_gateway_own(void **state)
{
	static const size_t lens[] = { 7, GATEWAY_ROW_BYTES, GATEWAY_ROW_BYTES + 1, 2000 };
	char key[80], val[GATEWAY_ROW_BYTES], damaged[2000] = "damaged";
	struct gateway_row now;

	start_dying();
	for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
		set_row("gantry", gateway_key('i', instance).text, damaged, lens[i]);
		turn();
		does(OP_PUT, 0);
		does(OP_DELETE, 0);
		assert_int_equal(look_for_row("gantry", "i", key, val, sizeof val), GATEWAY_ROW_BYTES);
		assert_int_equal(strtoul(key + 1, NULL, 10), instance);
		assert_int_equal(gateway_decode(val, sizeof val, &now), 0);
		assert_true(now.beats > row.beats && !is_dead_there());
	}
	stop_dead();
}

static void
test_gateway_other(void **state)
{
	const struct store_conf conf = fake_rados_conf("diff", SHARDS);
	const struct label damaged = gateway_key('i', 0);
	const uint32_t dead = (start_dying(), instance);
	uint64_t gone, theirs;
	unsigned before;

	gone = leave_data(1, first.number, "a");
	instance = 0;
	theirs = leave_data(1, first.number, "b");
	instance = dead;
	set_row("gantry", damaged.text, "damaged", 7);
	count_lines("gateway 0: its row is damaged");
	end->kill(end);
	turn();
	/* Each of two gateways logs it, and the one that was killed. */
	assert_true(lines[LOG_WARN] == 2 || lines[LOG_WARN] == 3);
	assert_int_equal(warnings_after(599), 0);
	assert_int_equal(warnings_after(1), 2);
	end_count();
	/* The others continue: the dead one is cleaned up after. */
	assert_false(is_data_there(gone));
	assert_false(is_dead_there());
	does(OP_PUT, 0);
	does(OP_DELETE, 0);
	/* The one with the damaged row may still read the deleted object, and its own data is in use. */
	before = fake_rados_objects();
	turn_later();
	assert_int_equal(store_fsck(&conf, FSCK_REPAIR, NULL, NULL), -ENOTRECOVERABLE);
	assert_int_equal(fake_rados_objects(), before);
	instance = 0;
	assert_true(is_data_there(theirs));
	set_row("gantry", damaged.text, NULL, 0);
	turn();
	assert_int_equal(fake_rados_objects(), before - 1);
	assert_int_equal(store_fsck(&conf, FSCK_REPAIR, NULL, NULL), 1);
	assert_false(is_data_there(theirs));
	instance = dead;
	stop_dead();
}

/* ---- other rows ---- */

static void
test_settings(void **state)
{
	char key[80], shard[64];
	const struct diff_op list = { .kind = OP_LIST_BUCKETS, .prefix = "", .max = 100 };

	start();
	shards(shard);
	snprintf(key, sizeof key, "q%s", diff_bucket(0));
	set_row("buckets", key, "damaged", 7);
	count_lines("the quota of bucket");
	turn_later();
	assert_int_equal(lines[LOG_ERROR], 2);
	turn();
	assert_int_equal(lines[LOG_ERROR], 2);
	count_lines("a counter is damaged: the usage of bucket");
	set_row(shard, key_counter(4000000000).text, "damaged", 7);
	turn();
	assert_int_equal(lines[LOG_ERROR], 2);
	end_count();
	set_row("buckets", key, NULL, 0);
	set_row(shard, key_counter(4000000000).text, NULL, 0);
	/* The list has the name of a bucket whose row is damaged, and all others. */
	snprintf(key, sizeof key, "b%s", diff_bucket(DIFF_BUCKETS - 1));
	set_row("buckets", key, "damaged", 7);
	diff_do(end, &list);
	assert_null(strstr(end->own.text, "=-"));
	for (unsigned i = 0; i < DIFF_BUCKETS; i++)
		assert_non_null(strstr(end->own.text, diff_bucket(i)));
	set_row("buckets", key, NULL, 0);
	for (uint32_t i = 0; i < 2; i++)
		does(OP_BUCKET_DELETE, i);
	stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_shard),
		cmocka_unit_test(test_dead_bucket),
		cmocka_unit_test(test_dead_row),
		cmocka_unit_test(test_dead_other),
		cmocka_unit_test(test_dead_generation),
		cmocka_unit_test(test_dead_shard),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_dead_pauses),
		cmocka_unit_test(test_dead_named),
		cmocka_unit_test(test_gateway_own),
		cmocka_unit_test(test_gateway_other),
		cmocka_unit_test(test_settings),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	check(bufpool_init(&bufs, 8 << 20) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
