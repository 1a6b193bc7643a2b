/* SPDX-License-Identifier: Apache-2.0 */
/* What operators are told of keys with two copies: how many have one, whose disk is away, which one is needed, how far healing is. */
#include "extent/engine.h"

#include "disks_rig.h"
#include "tests/fake/fault_ring.h"

#include "set/replicas.h"

#define BUCKET "2b"
#define KEYS 60

static struct store_copies_info
info(void)
{
	struct store_copies_info i;

	store_copies_info(st, &i);
	return i;
}

static struct store_key
numbered(char name[32], int i)
{
	snprintf(name, 32, "key-%d", i);
	return key_of(BUCKET, name);
}

static void
put_all(void)
{
	for (int i = 0; i < KEYS; i++) {
		char name[32];
		struct store_key k = numbered(name, i);

		assert_int_equal(put(&k), 0);
	}
}

/* How many of the keys have one of these disks as first, and one of those as second. */
static int
keys_of(const struct disk_table *t, uint64_t first, uint64_t second)
{
	int nr = 0;

	for (int i = 0; i < KEYS; i++) {
		char name[32];
		struct store_key k = numbered(name, i);
		unsigned slot = set_slot(&k);

		nr += table_has(first, t->first[slot]) && t->second[slot] != TABLE_NO_DISK &&
		      table_has(second, t->second[slot]);
	}
	return nr;
}

static struct disk_table
table_now(void)
{
	static struct disk_table t;

	set_get_table(set_of(st), &t);
	return t;
}

static int
unit_of_number(int number)
{
	struct disk_table t = table_now();
	char text[UUID_TEXT];

	uuid_write(text, t.uuid[number]);
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
	uint64_t until = clock_ns() + PATIENCE_NS;

	while ((info().exposed_objects || info().exposed_bytes) && clock_ns() < until)
		store_user_turn(user);
	assert_int_equal(info().exposed_objects, 0);
	assert_int_equal(info().exposed_bytes, 0);
}

static void
start_without(int i, int nr)
{
	leave_out(i, nr);
	conf.disks.accept_missing_nr = nr;
	conf.disks.heal_after_ns = 1000 * NS_PER_S;
	must_start();
}

static void
start_all(int nr)
{
	all_again(nr);
	conf.disks.accept_missing_nr = nr;
	conf.disks.heal_after_ns = 1000 * NS_PER_S;
	must_start();
}

static void
begin_three(void)
{
	begin(3);
	conf.disks.heal_after_ns = 1000 * NS_PER_S;
	must_start();
	for (int i = 0; i < 3; i++)
		accept(i);
	assert_int_equal(make_with(BUCKET, 2), 0);
	put_all();
}

static void
test_not_used(void **state)
{
	struct store_copies_info none = { .is_used = false }, is;
	char name[32];
	struct store_key k;

	begin(2);
	must_start();
	assert_int_equal(make("b"), 0);
	snprintf(name, sizeof name, "key");
	k = key_of("b", name);
	assert_int_equal(put(&k), 0);
	is = info();
	assert_memory_equal(&is, &none, sizeof is);
	stop();
	end();
}

static void
test_whole(void **state)
{
	struct store_copies_info is;
	char name[32];
	struct store_key k = numbered(name, 0);

	begin_three();
	is = info();
	assert_true(is.is_used);
	assert_int_equal(is.objects, KEYS);
	assert_int_equal(is.bytes, 5 * KEYS);
	assert_int_equal(is.exposed_objects, 0);
	assert_int_equal(is.exposed_bytes, 0);
	assert_int_equal(is.unreachable_slots, 0);
	assert_int_equal(is.away | is.needed, 0);
	assert_false(is.is_healing);
	assert_int_equal(delete (&k), 1);
	assert_int_equal(info().objects, KEYS - 1);
	stop();
	start_all(3);
	assert_int_equal(info().objects, KEYS - 1);
	assert_int_equal(info().bytes, 5 * (KEYS - 1));
	assert_int_equal(info().exposed_objects, 0);
	stop();
	end();
}

/* Who asks how far it is is told for which disk nothing is done, and until when. */
static void
must_wait_for(int unit)
{
	uint64_t until = clock_ns() + PATIENCE_NS;
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
		 u.uuid);
	assert_string_equal(move.trouble, want);
}

/* A disk is away, and comes back. */
static void
test_away(void **state)
{
	struct store_copies_info is;
	struct disk_table t;
	int exposed, unit;

	begin_three();
	t = table_now();
	exposed = keys_of(&t, 2, 7) + keys_of(&t, 7, 2);
	assert_true(exposed > 0 && exposed < KEYS);
	stop();
	start_without(1, 3);
	unit = unit_of_number(1);
	is = info();
	assert_int_equal(is.objects, KEYS);
	assert_int_equal(is.exposed_objects, exposed);
	assert_int_equal(is.exposed_bytes, 5 * exposed);
	assert_int_equal(is.unreachable_slots, 0);
	assert_int_equal(is.needed, 0);
	assert_int_equal(is.away, (uint64_t)1 << unit);
	assert_true(is.may_replace);
	assert_in_range(is.replaced_in_ns[unit], 1, 1000 * NS_PER_S);
	assert_false(is.is_healing);
	must_wait_for(unit);
	/* What is written now has one copy too. */
	put_all();
	assert_int_equal(info().exposed_objects, exposed);
	stop();
	start_all(3);
	wait_for_two();
	is = info();
	assert_int_equal(is.objects, KEYS);
	assert_int_equal(is.away, 0);
	assert_false(is.is_healing);
	stop();
	end();
}

static _Atomic bool fails; /* the second disk takes nothing */

static int
hook(const struct fault_io *io)
{
	return fails && io->kind == FAULT_WRITE && strncmp(io->path, dir[1], strlen(dir[1])) == 0 ? -EIO : 0;
}

/* A disk fails while it serves: it is away from then on, and what is written has one copy. */
static void
test_fails(void **state)
{
	struct store_copies_info is;
	uint64_t until = clock_ns() + PATIENCE_NS;
	struct disk_table t;
	int exposed;

	fault_ring_hook = hook;
	begin_three();
	t = table_now();
	exposed = keys_of(&t, 2, 7) + keys_of(&t, 7, 2);
	assert_int_equal(info().away, 0);
	fails = true;
	for (int i = 0; i < KEYS; i++) {
		char name[32];
		struct store_key k = numbered(name, i);

		/* A PUT whose disk fails under it is to be sent again. */
		while (put(&k) != 0 && clock_ns() < until)
			;
	}
	is = info();
	assert_int_equal(is.away, (uint64_t)1 << unit_of_number(1));
	assert_int_equal(is.objects, KEYS);
	assert_int_equal(is.exposed_objects, exposed);
	assert_int_equal(is.exposed_bytes, 5 * exposed);
	assert_int_equal(is.unreachable_slots, 0);
	fails = false;
	stop();
	start_all(3);
	wait_for_two();
	assert_int_equal(info().objects, KEYS);
	stop();
	end();
	fault_ring_hook = NULL;
}

/* Another disk takes the place of one that stays away: nobody waits for that one any more. */
static void
test_replaced(void **state)
{
	begin_three();
	stop();
	leave_out(1, 3);
	conf.disks.accept_missing_nr = 3;
	conf.disks.heal_after_ns = 1;
	must_start();
	wait_for_two();
	assert_int_equal(info().objects, KEYS);
	assert_int_equal(info().away, 0);
	stop();
	end();
}

/* What one disk alone has all of is not there while that one is not. */
static void
test_needed(void **state)
{
	struct store_copies_info is;
	struct disk_table t;
	uint64_t slots = 0;
	int unit;

	begin_three();
	stop();
	start_without(1, 3);
	put_all();
	t = table_now();
	for (int i = 0; i < STORE_SLOT_NR; i++)
		slots += t.first[i] == 0 && t.second[i] == 1;
	assert_true(slots > 0);
	stop();
	all_again(3);
	start_without(0, 3);
	unit = unit_of_number(0);
	is = info();
	assert_int_equal(is.unreachable_slots, slots);
	assert_int_equal(is.needed, (uint64_t)1 << unit);
	assert_true(is.away >> unit & 1);
	/* They cannot be counted. */
	assert_int_equal(is.objects, KEYS - keys_of(&t, 1, 2));
	stop();
	start_all(3);
	wait_for_two();
	assert_int_equal(info().unreachable_slots, 0);
	assert_int_equal(info().needed, 0);
	assert_int_equal(info().objects, KEYS);
	stop();
	end();
}

/* Copies that are made again, slowly: what is left is known from the first moment on. */
static void
test_healing(void **state)
{
	static struct loop l;
	struct store_copies_info is;
	uint64_t until = clock_ns() + PATIENCE_NS, lacks;

	begin(3);
	must_start();
	for (int i = 0; i < 3; i++)
		accept(i);
	assert_int_equal(make_with(BUCKET, 2), 0);
	stop();
	start_without(1, 3);
	loop_start(&l, st);
	for (int i = 0; i < 20; i++) {
		char name[32];

		snprintf(name, sizeof name, "key-%d", i);
		assert_int_equal(put_simple(&l, BUCKET, name, 100000, 1), 0);
	}
	loop_stop(&l);
	lacks = info().exposed_bytes;
	assert_true(lacks > 100000 && lacks < 20 * 100000);
	stop();
	all_again(3);
	conf.disks.move_rate = 1;
	must_start();
	do {
		store_user_turn(user);
		is = info();
		/* Between that slots have all and that they count no more, some is neither done nor left. */
	} while ((!is.heal_rate || is.heal_bytes_total != lacks) && clock_ns() < until);
	assert_true(is.is_healing);
	assert_int_equal(is.heal_bytes_total, lacks);
	assert_in_range(is.heal_bytes_done, 100000, lacks - 100000);
	assert_true(is.heal_rate && is.heal_left_ns);
	assert_int_equal(is.away, 0);
	store_set_move_rate(st, 0);
	wait_for_two();
	assert_false(info().is_healing);
	stop();
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

	return cmocka_run_group_tests_name("store_seen", tests, NULL, NULL);
}
