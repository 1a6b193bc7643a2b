/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index that is as full as memory.index lets it be starts again with the same, whatever the order in which
 * it grew; with less it says how much it wants, and starts with that.
 */
#include "fixture.h"

#define INFLIGHT 256
#define INDEX (4 * MIB)

static struct put {
	struct store_put put;
	struct store_commit sc;
	bool busy;
} slots[INFLIGHT];
static unsigned busy_nr;
static uint64_t taken, refused;

static void
on_small(struct store_op *op)
{
	struct put *p = (struct put *)((char *)op - offsetof(struct put, put.op));

	p->busy = false;
	busy_nr--;
	taken += op->result == 0;
	refused += op->result == -ENOSPC;
	assert_true(op->result == 0 || op->result == -ENOSPC || op->result == -EAGAIN);
}

static const char *
name_of(char name[64], uint64_t i, bool in_order)
{
	snprintf(name, 64, "%040llu", (unsigned long long)(in_order ? i : i * 0x9e3779b97f4a7c15u));
	return name;
}

static uint64_t
fill_index(bool in_order)
{
	uint64_t n = 0;

	taken = refused = 0;
	while (refused < 100) {
		for (int i = 0; i < INFLIGHT; i++) {
			struct put *p = &slots[i];
			struct store_key k;
			char name[64];

			if (p->busy)
				continue;
			k = key_of("b", name_of(name, n++, in_order));
			p->put.op.done = on_small;
			p->sc = (struct store_commit){ .inline_data = "x", .inline_len = 1 };
			p->busy = true;
			busy_nr++;
			assert_int_equal(store_put_init(l.p, &p->put, &k, 1), 0);
			assert_int_equal(store_put_commit(l.p, &p->put, &p->sc), 0);
		}
		loop_turn(&l);
	}
	while (busy_nr)
		loop_turn(&l);
	return n;
}

static int
setup(void **state)
{
	dir_make(dir);
	conf = conf_for(&dc, dir, 256 * MIB);
	conf.disks.index_bytes = INDEX;
	if (store_format(&conf, false, err, sizeof err) < 0)
		return -1;
	open_store();
	return bucket_make(&l, "b");
}

static void
starts_again(bool in_order)
{
	uint64_t n = fill_index(in_order), objects;
	char name[64];

	objects = disk_number("objects");
	assert_true(objects == taken && disk_number("index_max_bytes") == INDEX);
	for (int i = 0; i < 2; i++) {
		/* From the log, then from a snapshot. */
		close_store();
		open_store();
		assert_int_equal(disk_number("objects"), objects);
		store_snapshot(st);
		for (uint64_t until = clock_ns() + PATIENCE_NS;
		     !disk_number("snapshots") && clock_ns() < until;)
			loop_for(&l, 5 * NS_PER_MS);
	}
	/* Deletes make room, and then it takes objects again. */
	for (uint64_t i = 0; i < n / 8; i++)
		assert_true(obj_delete(&l, "b", name_of(name, i, in_order), NULL) >= 0);
	loop_for(&l, 100 * NS_PER_MS);
	assert_int_equal(put_simple(&l, "b", "again", 1, 1), 0);
}

static void
test_in_order(void **state)
{
	starts_again(true);
}

static void
test_in_no_order(void **state)
{
	starts_again(false);
}

/* Grown with more memory than there is now. */
static void
test_less(void **state)
{
	uint64_t objects, mib;
	char *at;

	close_store();
	conf.disks.index_bytes = 2 * INDEX;
	open_store();
	fill_index(true);
	objects = taken;
	close_store();
	conf.disks.index_bytes = INDEX;
	/* A configuration's fault: exit 78. */
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "memory.index: it is 4 MiB, about "));
	at = strstr(err, "about ") + 6;
	mib = strtoull(at, NULL, 10);
	assert_true(mib > 4 && mib < 12);
	conf.disks.index_bytes = mib * MIB;
	open_store();
	assert_int_equal(disk_number("objects"), objects);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_in_no_order, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_less, setup, remove_store),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_memory", tests, NULL, NULL);
}
