/* SPDX-License-Identifier: Apache-2.0 */
/* Who is first of a slot of keys with two copies, and whether the second has all, when disks are missing. */
#include "set/map/disk_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define DISK(n) ((uint64_t)1 << (n))
#define ALL (DISK(0) | DISK(1) | DISK(2))

/* Slot 0: of disks 0 and 1; 1: of 2 and 1; 2: of 1 and 2; 3: of 0 and 1, which has not all; 4: of 0 alone.  The others are as 2. */
static struct disk_table
table(void)
{
	static const uint8_t first[] = { 0, 2, 1, 0, 0 }, second[] = { 1, 1, 2, 1, TABLE_NO_DISK };
	struct disk_table t = { .version = (uint64_t)7 << TABLE_CHANGE_BITS | 5, .members = ALL, .in = ALL };

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		t.first[i] = i < 5 ? first[i] : 1;
		t.second[i] = i < 5 ? second[i] : 2;
		table_set_full(&t, i, i != 3 && i != 4);
	}
	return t;
}

static void
must_be(const struct disk_table *t, int slot, int first, int second, bool full)
{
	assert_int_equal(t->first[slot], first);
	assert_int_equal(t->second[slot], second);
	assert_int_equal(table_is_full(t, slot), full);
}

/* Both of slot 0 are missing: neither has missed anything, and either has all when it is back (M36). */
static void
test_both_missing(void **state)
{
	struct disk_table t = table();

	assert_true(table_start(&t, DISK(2), 8));
	assert_int_equal(t.in, DISK(2));
	assert_int_equal(t.version, (uint64_t)8 << TABLE_CHANGE_BITS | 1);
	must_be(&t, 0, 0, 1, true);
	must_be(&t, 1, 2, 1, false);
	must_be(&t, 2, 2, 1, false);
	must_be(&t, 3, 0, 1, false);
	must_be(&t, 4, 0, TABLE_NO_DISK, false);
	/* Its second alone is back: it is first, and has all. */
	assert_true(table_start(&t, DISK(1) | DISK(2), 9));
	must_be(&t, 0, 1, 0, false);
	must_be(&t, 1, 2, 1, false);
	must_be(&t, 2, 2, 1, false);
	must_be(&t, 3, 0, 1, false);
}

/* They fail at once, in service: the same, and nothing has changed in such slots. */
static void
test_both_lost(void **state)
{
	struct disk_table t = table(), was;

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		t.first[i] = 0;
		t.second[i] = 1;
		table_set_full(&t, i, true);
	}
	was = t;
	assert_false(table_lose(&t, DISK(2)));
	assert_memory_equal(&t, &was, sizeof t);
	/* One after the other is another thing: the one that was left has been written to alone. */
	assert_true(table_lose(&t, DISK(1) | DISK(2)));
	must_be(&t, 0, 1, 0, false);
	assert_false(table_lose(&t, DISK(2)));
	must_be(&t, 0, 1, 0, false);
	assert_false(table_lose(&t, DISK(0) | DISK(2)));
	must_be(&t, 0, 1, 0, false);
}

/* Nobody is missing: the table stays. */
static void
test_none_missing(void **state)
{
	struct disk_table t = table(), was = t;

	assert_false(table_start(&t, ALL, 8));
	assert_memory_equal(&t, &was, sizeof t);
}

/* Slots are dealt by the sizes of the disks. */
static void
test_by_size(void **state)
{
	static struct disk_table t;
	uint8_t uuid[64][UUID_BYTES] = { { 0 } };
	uint64_t size[64];
	int nr[64] = { 0 };

	size[0] = 100 << 20;
	size[1] = 800 << 20;
	table_make(&t, (const uint8_t(*)[UUID_BYTES])uuid, size, 2, 1);
	for (int i = 0; i < STORE_SLOT_NR; i++)
		nr[t.home[i]]++;
	assert_in_range(nr[0], STORE_SLOT_NR / 9, STORE_SLOT_NR / 9 + 1);
	assert_int_equal(nr[0] + nr[1], STORE_SLOT_NR);
	for (int i = 0; i < 64; i++) {
		size[i] = (uint64_t)1 << 50;
		nr[i] = 0;
	}
	table_make(&t, (const uint8_t(*)[UUID_BYTES])uuid, size, 64, 1);
	for (int i = 0; i < STORE_SLOT_NR; i++)
		nr[t.home[i]]++;
	for (int i = 0; i < 64; i++)
		assert_int_equal(nr[i], 64);
	assert_true(t.members == UINT64_MAX && t.in == UINT64_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_missing),
		cmocka_unit_test(test_both_lost),
		cmocka_unit_test(test_none_missing),
		cmocka_unit_test(test_by_size),
	};

	return cmocka_run_group_tests_name("store_table", tests, NULL, NULL);
}
