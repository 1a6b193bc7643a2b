/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests what operators see of keys with two copies, over disks in memory: how many have one copy, whose disk is away, which disk is needed,
 * how far healing is.  SEED= repeats a run.
 */
#include "mem_rig.h"

#define KEYS 60
#define SIZE 4      /* bytes of each value here */
#define LARGE 65636 /* bytes of a value of which the number is 4 modulo 5 */

static uint64_t seed;

static struct store_copies_info
info(void)
{
	struct store_copies_info i;

	store_copies_info(st, &i);
	return i;
}

static const char *
name_nr(char name[32], int i)
{
	snprintf(name, 32, "key-%d", i);
	return name;
}

static void
put_all(uint32_t round)
{
	char name[32];

	for (int i = 0; i < KEYS; i++)
		assert_int_equal(put_again(user, TWO, name_nr(name, i), 5 * (round * KEYS + (uint32_t)i + 1)),
				 0);
}

/* Counts the keys whose primary is one of these disks, and whose secondary is one of those. */
static int
keys_of(const struct disk_table *t, uint64_t first, uint64_t second)
{
	int nr = 0;

	for (int i = 0; i < KEYS; i++) {
		char name[32];
		struct store_key k = key_of(TWO, name_nr(name, i));
		unsigned slot = set_slot(&k);

		nr += table_has(first, t->first[slot]) && t->second[slot] != TABLE_NO_DISK &&
		      table_has(second, t->second[slot]);
	}
	return nr;
}

static int
unit_of_number(int number)
{
	char text[UUID_TEXT];

	uuid_write(text, table_now()->uuid[number]);
	for (int i = 0; i < store_unit_nr(st); i++) {
		struct store_unit_info u;

		store_unit_info(st, i, &u);
		if (strcmp(u.uuid, text) == 0)
			return i;
	}
	return -1;
}

static void
wait_for_two(void)
{
	assert_true(wait_quiet());
	assert_int_equal(info().exposed_objects, 0);
	assert_int_equal(info().exposed_bytes, 0);
}

static void
begin(void)
{
	rig_begin(seed, 3);
	conf.disks.heal_after_ns = 1000 * NS_PER_S;
	up();
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_all(0);
}

static void
end(void)
{
	down();
	rig_end();
}

static void
test_not_used(void **state)
{
	struct store_copies_info none = { .is_used = false }, is;

	rig_begin(seed, 2);
	up();
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	assert_int_equal(put(user, ONE, "key", 5), 0);
	is = info();
	assert_memory_equal(&is, &none, sizeof is);
	end();
}

static void
test_whole(void **state)
{
	struct store_copies_info is;

	begin();
	is = info();
	assert_true(is.is_used);
	assert_int_equal(is.objects, KEYS);
	assert_int_equal(is.bytes, SIZE * KEYS);
	assert_int_equal(is.exposed_objects, 0);
	assert_int_equal(is.exposed_bytes, 0);
	assert_int_equal(is.unreachable_slots, 0);
	assert_int_equal(is.away | is.needed, 0);
	assert_false(is.is_healing);
	assert_int_equal(del(user, TWO, "key-0"), 1);
	assert_int_equal(info().objects, KEYS - 1);
	restart();
	assert_int_equal(info().objects, KEYS - 1);
	assert_int_equal(info().bytes, SIZE * (KEYS - 1));
	assert_int_equal(info().exposed_objects, 0);
	end();
}

/* Checks that operators are told for which disk the set waits, and for how long. */
static void
must_wait_for(int unit)
{
	uint64_t until = clock_ns() + PATIENCE_NS / 2;
	struct store_move_info move;
	struct store_unit_info u;
	char want[256];

	store_unit_info(st, unit, &u);
	do {
		store_user_turn(user);
		store_move_info(st, &move);
	} while (!move.waits_ns && clock_ns() < until);
	assert_in_range(move.waits_ns, 1, 1000 * NS_PER_S);
	snprintf(want, sizeof want,
		 "disk %s is missing: it is waited for until store.heal_after is over, then others take its "
		 "place",
		 u.label);
	assert_string_equal(move.trouble, want);
}

/* A disk is away, and comes back. */
static void
test_away(void **state)
{
	struct store_copies_info is;
	int exposed, unit;

	begin();
	exposed = keys_of(table_now(), 2, 7) + keys_of(table_now(), 7, 2);
	assert_true(exposed > 0 && exposed < KEYS);
	down();
	take_away(1);
	/* Nor is a path configured for it. */
	conf.disks.nr = 2;
	disks[1] = disks[2];
	up();
	unit = unit_of_number(1);
	is = info();
	assert_int_equal(is.objects, KEYS);
	assert_int_equal(is.exposed_objects, exposed);
	assert_int_equal(is.exposed_bytes, SIZE * exposed);
	assert_int_equal(is.unreachable_slots, 0);
	assert_int_equal(is.needed, 0);
	assert_int_equal(is.away, (uint64_t)1 << unit);
	assert_true(is.may_replace);
	assert_in_range(is.replaced_in_ns[unit], 1, 1000 * NS_PER_S);
	assert_false(is.is_healing);
	must_wait_for(unit);
	/* A key that is written now has one copy, too. */
	put_all(1);
	assert_int_equal(info().exposed_objects, exposed);
	down();
	bring_back(1);
	use(3);
	up();
	wait_for_two();
	is = info();
	assert_int_equal(is.objects, KEYS);
	assert_int_equal(is.away, 0);
	assert_false(is.is_healing);
	end();
}

/* A disk fails while it serves: the disk is away from then on, and its keys have one copy. */
static void
test_fails(void **state)
{
	struct store_copies_info is;
	int exposed;

	begin();
	exposed = keys_of(table_now(), 2, 7) + keys_of(table_now(), 7, 2);
	assert_int_equal(info().away, 0);
	mem_disk_fail(paths[1], 1);
	for (int i = 0; i < KEYS; i++) {
		char name[32];
		int r = -ECANCELED;

		/* A PUT under which its primary fails is sent again. */
		for (int tries = 0; tries < 2 && r == -ECANCELED; tries++)
			r = put_again(user, TWO, name_nr(name, i), 5 * (uint32_t)(KEYS + i + 1));
		assert_int_equal(r, 0);
	}
	is = info();
	assert_int_equal(is.away, (uint64_t)1 << unit_of_number(1));
	assert_int_equal(is.objects, KEYS);
	assert_int_equal(is.exposed_objects, exposed);
	assert_int_equal(is.exposed_bytes, SIZE * exposed);
	assert_int_equal(is.unreachable_slots, 0);
	restart();
	wait_for_two();
	assert_int_equal(info().objects, KEYS);
	end();
}

/* Another disk takes the place of one that stays away, for which nothing waits from then on. */
static void
test_replaced(void **state)
{
	begin();
	down();
	take_away(1);
	conf.disks.heal_after_ns = 1;
	up();
	wait_for_two();
	assert_int_equal(info().objects, KEYS);
	assert_int_equal(info().away, 0);
	end();
}

/* Slots of which one disk alone has all records are unreachable without that disk. */
static void
test_needed(void **state)
{
	static struct disk_table t;
	struct store_copies_info is;
	uint64_t slots = 0;
	int unit;

	begin();
	down();
	take_away(1);
	up();
	put_all(1);
	t = *table_now();
	for (int i = 0; i < STORE_SLOT_NR; i++)
		slots += t.first[i] == 0 && t.second[i] == 1;
	assert_true(slots > 0);
	down();
	bring_back(1);
	take_away(0);
	up();
	unit = unit_of_number(0);
	is = info();
	assert_int_equal(is.unreachable_slots, slots);
	assert_int_equal(is.needed, (uint64_t)1 << unit);
	assert_true(is.away >> unit & 1);
	/* The keys of these slots cannot be counted. */
	assert_int_equal(is.objects, KEYS - keys_of(&t, 1, 2));
	down();
	bring_back(0);
	up();
	wait_for_two();
	assert_int_equal(info().unreachable_slots, 0);
	assert_int_equal(info().needed, 0);
	assert_int_equal(info().objects, KEYS);
	end();
}

/* Copies are made again slowly: the bytes that are left are known from the first moment on. */
static void
test_healing(void **state)
{
	struct store_copies_info is;
	uint64_t until, lacks;

	rig_begin(seed, 3);
	up();
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	down();
	take_away(1);
	up();
	for (int i = 0; i < 20; i++) {
		char name[32];

		assert_int_equal(put(user, TWO, name_nr(name, i), 5 * (uint32_t)i + 4), 0);
	}
	lacks = info().exposed_bytes;
	assert_true(lacks > LARGE && lacks < (uint64_t)20 * LARGE);
	down();
	bring_back(1);
	conf.disks.move_rate = 200000;
	up();
	until = clock_ns() + PATIENCE_NS;
	do {
		store_user_turn(user);
		is = info();
		/* Between the switch of slots and the end of their count, some bytes are neither done nor left. */
	} while ((!is.heal_rate || is.heal_bytes_total != lacks) && clock_ns() < until);
	assert_true(is.is_healing);
	assert_int_equal(is.heal_bytes_total, lacks);
	assert_in_range(is.heal_bytes_done, LARGE, lacks - LARGE);
	assert_true(is.heal_rate && is.heal_left_ns);
	assert_int_equal(is.away, 0);
	store_set_move_rate(st, 0);
	wait_for_two();
	assert_false(info().is_healing);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_used), cmocka_unit_test(test_whole), cmocka_unit_test(test_away),
		cmocka_unit_test(test_replaced), cmocka_unit_test(test_fails), cmocka_unit_test(test_needed),
		cmocka_unit_test(test_healing),
	};

	seed = turns_seed();
	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
