/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first bucket with two copies and the last one, over disks in memory: who is primary and secondary when a disk is missing, a drain to one
 * disk, and disks that are given up.  SEED= repeats a run.
 */
#include "mem_rig.h"

static uint64_t seed;

static void
begin(int nr)
{
	rig_begin(seed, nr);
	up();
}

static void
end(void)
{
	down();
	rig_end();
}

static void
put_two(uint32_t from)
{
	for (int i = 0; i < RIG_KEYS; i++) {
		rig_open[1][i] = false;
		rig_value[1][i] = from + (uint32_t)i;
		assert_int_equal(put_again(user, TWO, rig_name(i), rig_value[1][i]), 0);
	}
}

/* Counts the disks in use that have a key, all of one version. */
static int
copies_of(const char *bucket, const char *name)
{
	uint64_t of = 0;
	int nr = 0;

	for (int i = 0; i < DISKS; i++) {
		uint64_t v = 0;

		if (!mem_disk_is_made(paths[i]) || !mem_disk_is_open(paths[i]) ||
		    !mem_disk_has(paths[i], bucket, name, &v))
			continue;
		assert_true(!of || v == of);
		of = v;
		nr++;
	}
	return nr;
}

static void
must_have_copies(int nr)
{
	for (int i = 0; i < RIG_KEYS; i++)
		assert_int_equal(copies_of(TWO, rig_name(i)), nr);
}

static bool
is_full(void)
{
	bool full = true;

	for (int i = 0; i < STORE_SLOT_NR; i++)
		full &= table_is_full(table_now(), i);
	return full;
}

static int
seconds_nr(void)
{
	const struct disk_table *t = table_now();
	int nr = 0;

	for (int i = 0; i < STORE_SLOT_NR; i++)
		nr += t->second[i] != TABLE_NO_DISK;
	return nr;
}

static bool
is_used(void)
{
	return set_uses_pairs(set_of(st));
}

/* ---- the first bucket ---- */

/* The first bucket with two copies is made while a disk is missing: the others have all of its keys. */
static void
test_made_without(void **state)
{
	begin(3);
	for (int away = 0; away < 3; away++) {
		char name[8];

		down();
		take_away(away);
		up();
		if (away == 0)
			assert_int_equal(make_bucket(user, TWO, 2), 0);
		put_two(100 * (uint32_t)(away + 1));
		must_have(true);
		down();
		bring_back(away);
		up();
		must_have(true);
		assert_true(wait_quiet());
		assert_true(is_full());
		must_have_copies(2);
		snprintf(name, sizeof name, "two-%d", away);
		assert_int_equal(make_bucket(user, name, 2), 0);
	}
	end();
}

struct maker {
	const char *bucket;
	int result;
	bool is_over;
};

static void
maker_main(void *arg)
{
	struct maker *m = arg;
	struct store_user *u;

	check(store_user_new(&st, 1, &u) == 0);
	m->result = make_bucket(u, m->bucket, 2);
	if (m->result == 0)
		m->result = put(u, m->bucket, "key", 5);
	m->is_over = true;
	store_user_free(u);
}

/* A bucket is made while the first one waits for the new primaries of a missing disk's slots: the second maker waits as well, so that neither
 * meets the missing disk when it puts something into its bucket. */
static void
test_made_beside(void **state)
{
	for (uint64_t n = 0; n < 20; n++) {
		struct maker one = { .bucket = TWO }, other = { .bucket = "two-2" };

		rig_begin(seed + n, 3);
		up();
		down();
		take_away(0);
		up();
		turns_go(maker_main, &one);
		/* The recovery task runs on the thread of the oldest port, which stands still after the assignment. */
		while (!is_used())
			store_user_turn(user);
		turns_go(maker_main, &other);
		turns_sleep(NS_PER_S);
		assert_true(!one.is_over && !other.is_over);
		while (!one.is_over || !other.is_over)
			store_user_turn(user);
		assert_int_equal(one.result, 0);
		assert_int_equal(other.result, 0);
		turns_wait();
		end();
	}
}

static struct store_ops failing_ops;

/* Describes a disk. The third one fails when the map with the first secondaries is effective, and the slots do not use it yet. */
static void
info_and_fail(const struct store *store, int unit, struct store_unit_info *ret_info)
{
	mem_engine_ops.unit_info(store, unit, ret_info);
	if (!is_used() && seconds_nr() && !mem_disk_has_failed(paths[2]))
		mem_disk_fail(paths[2], 0);
}

/* A disk fails between the write of the first secondaries and their use: the others are the primaries of all slots when the bucket is
 * made. */
static void
test_made_as_one_fails(void **state)
{
	begin(3);
	failing_ops = mem_engine_ops;
	failing_ops.unit_info = info_and_fail;
	for (int i = 0; i < 3; i++)
		set_engine(set_of(st), i)->ops = &failing_ops;
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	assert_true(mem_disk_has_failed(paths[2]));
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		assert_int_not_equal(set_primary_at(set_of(st), (unsigned)(STORE_SLOT_NR + i)), 2);
		assert_int_not_equal(set_secondary_at(set_of(st), table_place((unsigned)i, true)), 2);
	}
	put_two(100);
	must_have(true);
	end();
}

#define MANY 100

/* The first bucket is made while remains of a move are removed, which began by a map without second copies: those that are made meanwhile
 * stay. */
static void
test_made_while_cleaning(void **state)
{
	char name[32], two[RIG_KEYS][32];

	begin(2);
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "m%d", i);
		assert_int_equal(put(user, ONE, name, 1), 0);
	}
	mem_disk_hold(paths[0], HOLD_FOREIGN);
	assert_int_equal(ask(DISK_ADD, paths[2]), 0);
	/* Slots move from the first disk, until it is to remove the first key that has moved. */
	while (!mem_disk_holds_any(paths[0]))
		store_user_turn(user);
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	for (int i = 0; i < RIG_KEYS; i++)
		assert_int_equal(put(user, TWO, name_on(two[i], TWO, 0, 1, i), 2), 0);
	mem_disk_hold(paths[0], HOLD_NOTHING);
	wait_for_mover();
	assert_true(wait_quiet());
	assert_true(is_full());
	for (int i = 0; i < RIG_KEYS; i++) {
		assert_int_equal(get(user, TWO, two[i]), 2);
		assert_int_equal(copies_of(TWO, two[i]), 2);
	}
	end();
}

/* ---- down to one disk ---- */

static void
put_one(void)
{
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	assert_int_equal(put(user, ONE, "one", 4), 0);
}

static void
must_have_one(void)
{
	assert_int_equal(get(user, ONE, "one"), 4);
}

static void
remove_all(void)
{
	for (int i = 0; i < RIG_KEYS; i++)
		assert_int_equal(del(user, TWO, rig_name(i)), 1);
	assert_int_equal(remove_bucket(user, TWO), 0);
}

/* Two disks stay as long as a bucket has two copies, and the operator is told which; after its end one disk may stay, and with another disk
 * there are buckets with two copies again.  Once in one life, once with restarts. */
static void
test_to_one(void **state)
{
	for (int again = 0; again < 2; again++) {
		begin(2);
		assert_int_equal(make_bucket(user, TWO, 2), 0);
		put_one();
		put_two(100);
		assert_int_equal(ask(DISK_DRAIN, paths[1]), -EPERM);
		assert_non_null(strstr(rig_said, "bucket " TWO " has two copies of each object"));
		assert_non_null(strstr(rig_said, "add another disk first"));
		assert_true(table_now()->draining == 0 && is_full() && is_used());
		must_have_copies(2);
		remove_all();
		if (again)
			restart();
		/* Slots keep the secondaries of a bucket that was removed. */
		assert_true(is_used() && seconds_nr() == STORE_SLOT_NR);
		assert_int_equal(ask(DISK_DRAIN, paths[1]), 0);
		assert_true(!is_used() && seconds_nr() == 0);
		/* Only one disk stays, though the drain has not ended. */
		assert_int_equal(make_bucket(user, TWO, 2), -EDOM);
		if (again)
			restart();
		wait_for_mover();
		assert_int_equal(__builtin_popcountll(table_now()->members), 1);
		must_have_one();
		assert_int_equal(make_bucket(user, TWO, 2), -EDOM);
		if (again) {
			down();
			conf.disks.nr = 1;
			up();
			assert_false(is_used());
		}
		assert_int_equal(ask(DISK_ADD, paths[2]), 0);
		wait_for_mover();
		assert_true(!is_used() && seconds_nr() == 0);
		assert_int_equal(make_bucket(user, TWO, 2), 0);
		/* No disk has missed a change: there was none. */
		assert_true(is_full() && seconds_nr() == STORE_SLOT_NR);
		put_two(200);
		must_have(true);
		must_have_copies(2);
		must_have_one();
		end();
	}
}

/* A drain to one disk is cancelled: slots get secondaries again with the next bucket. */
static void
test_to_one_cancelled(void **state)
{
	begin(2);
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_one();
	assert_int_equal(remove_bucket(user, TWO), 0);
	store_set_move_rate(st, 1);
	assert_int_equal(ask(DISK_DRAIN, paths[1]), 0);
	assert_int_equal(seconds_nr(), 0);
	assert_int_equal(ask(DISK_CANCEL, NULL), 0);
	store_set_move_rate(st, 0);
	wait_for_mover();
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	assert_true(is_full() && seconds_nr() == STORE_SLOT_NR);
	put_two(200);
	must_have_copies(2);
	must_have_one();
	end();
}

static int race_result;
static bool race_is_over;

static void
race_main(void *arg)
{
	struct store_user *u;

	check(store_user_new(&st, 1, &u) == 0);
	race_result = make_bucket(u, TWO, 2);
	race_is_over = true;
	store_user_free(u);
}

/* A bucket with two copies is requested while the secondaries are removed: one disk has no such bucket. */
static void
test_to_one_race(void **state)
{
	begin(2);
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_one();
	assert_int_equal(remove_bucket(user, TWO), 0);
	mem_disk_hold(paths[0], HOLD_MAPS);
	ask_begin(DISK_DRAIN, paths[1]);
	turn_for(NS_PER_S);
	assert_true(!is_answered && is_used());
	race_is_over = false;
	turns_go(race_main, NULL);
	turn_for(NS_PER_S);
	assert_false(race_is_over);
	mem_disk_hold(paths[0], HOLD_NOTHING);
	while (!race_is_over || !is_answered)
		store_user_turn(user);
	assert_int_equal(race_result, -EAGAIN);
	assert_int_equal(ask_result, 0);
	assert_int_equal(make_bucket(user, TWO, 2), -EDOM);
	wait_for_mover();
	must_have_one();
	end();
}

/* The power goes after so many changes of a drain to one disk: the next start continues the drain, or knows nothing of it.  False: there were
 * not so many changes. */
static bool
cut_to_one(uint64_t changes)
{
	struct mem_image *image;
	bool drains, is_cut;

	begin(2);
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_one();
	assert_int_equal(remove_bucket(user, TWO), 0);
	mem_disks_cut_after(changes);
	assert_int_equal(ask(DISK_DRAIN, paths[1]), 0);
	wait_for_mover();
	image = mem_disks_cut();
	is_cut = image != NULL;
	down();
	if (is_cut)
		mem_disks_put_back(image);
	mem_image_free(image);
	configure();
	up();
	wait_for_mover();
	must_have_one();
	drains = __builtin_popcountll(table_now()->members) == 1;
	assert_int_equal(seconds_nr(), drains ? 0 : STORE_SLOT_NR);
	/* Before its first map a drain is unknown; the first one that is written suffices. */
	assert_int_equal(drains, changes > 0);
	if (!drains) {
		assert_int_equal(ask(DISK_DRAIN, paths[1]), 0);
		wait_for_mover();
	}
	assert_int_equal(make_bucket(user, TWO, 2), -EDOM);
	assert_int_equal(ask(DISK_ADD, paths[2]), 0);
	wait_for_mover();
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	assert_true(is_full());
	must_have_one();
	end();
	return is_cut;
}

static void
test_to_one_cut(void **state)
{
	uint64_t changes = 0;

	while (cut_to_one(changes))
		changes++;
	assert_true(changes > 3);
}

/* ---- disks that are given up ---- */

static void
give_up(int disk, const char *want)
{
	conf.disks.accept_missing_nr = 0;
	memcpy(accepted[0], mem_disk_uuid(paths[disk]), UUID_BYTES);
	conf.disks.forget = (const uint8_t(*)[UUID_BYTES])accepted;
	conf.disks.forget_nr = 1;
	assert_int_equal(store_task(&conf, TASK_FORGET, err, sizeof err), 0);
	assert_string_equal(err, want);
	conf.disks.forget_nr = 0;
}

/* One of a pair is lost while the machine is off: the other one has all, and serves when the operator says so. */
static void
test_forget(void **state)
{
	struct listing l;

	begin(2);
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_two(100);
	down();
	take_away(1);
	assert_true(start() < 0);
	assert_non_null(strstr(err, "only 1 of 2"));
	give_up(1,
		"given up: 1 disk; the store has 1 now; 0 of 4096 slots of keys with two copies begin empty");
	conf.disks.nr = 1;
	up();
	assert_int_equal(list_names(user, TWO, &l), RIG_KEYS);
	must_have(true);
	must_have_copies(1);
	assert_int_equal(ask(DISK_ADD, paths[2]), 0);
	assert_true(wait_quiet());
	must_have(true);
	must_have_copies(2);
	end();
}

/* Objects that were written while one disk was away are lost with the disk that has them alone, and the operator is told of how many slots. */
static void
test_forget_exposed(void **state)
{
	static struct disk_table t;
	int slots = 0, lost = 0;
	struct listing l;
	char text[128];

	begin(3);
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_two(100);
	down();
	take_away(1);
	up();
	t = *table_now();
	for (int i = 0; i < STORE_SLOT_NR; i++)
		slots += t.first[i] == 0 && !table_is_full(&t, i);
	assert_in_range(slots, 1, STORE_SLOT_NR - 1);
	down();
	bring_back(1);
	mem_disk_absent(paths[0], true);
	snprintf(
		text, sizeof text,
		"given up: 1 disk; the store has 2 now; %d of 4096 slots of keys with two copies begin empty",
		slots);
	give_up(0, text);
	disks[0] = disks[1];
	disks[1] = disks[2];
	conf.disks.nr = 2;
	up();
	for (int i = 0; i < RIG_KEYS; i++) {
		struct store_key k = key_of(TWO, rig_name(i));
		bool is_lost = t.first[set_slot(&k)] == 0 && !table_is_full(&t, (int)set_slot(&k));

		assert_int_equal(get(user, TWO, rig_name(i)), is_lost ? 0 : (int)rig_value[1][i]);
		lost += is_lost;
	}
	assert_in_range(lost, 1, RIG_KEYS - 1);
	assert_int_equal(list_names(user, TWO, &l), RIG_KEYS - lost);
	put_two(200);
	assert_true(wait_quiet() && is_full());
	must_have(true);
	must_have_copies(2);
	end();
}

/* An operator requests a change that is refused while copies are made again: they are made all the same. */
static void
test_heals_after_a_refusal(void **state)
{
	struct store_move_info i;

	begin(3);
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_two(100);
	down();
	take_away(1);
	up();
	put_two(200);
	down();
	bring_back(1);
	conf.disks.move_rate = 1;
	up();
	do {
		turn_for(NS_PER_MS);
		store_move_info(st, &i);
	} while (!i.is_running || !i.bytes_done);
	assert_false(is_full());
	assert_true(ask(DISK_DRAIN, "/nowhere") < 0);
	assert_false(is_full());
	store_set_move_rate(st, 0);
	assert_true(wait_quiet() && is_full());
	must_have(true);
	must_have_copies(2);
	end();
}

/* ---- starts ---- */

/* An older copy of a disk is found in a start that fails: the next start knows the copy all the same. */
static void
test_older_cut_start(void **state)
{
	begin(2);
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	for (int older = 0; older < 2; older++) {
		struct mem_image *image;

		put_two(100);
		down();
		image = mem_disks_copy(paths[older]);
		up();
		put_two(200);
		down();
		mem_disks_put_back(image);
		mem_image_free(image);
		mem_disk_fail(paths[!older], 1);
		assert_true(start() < 0);
		up();
		must_have(true);
		assert_true(wait_quiet() && is_full());
		must_have(true);
	}
	end();
}

/* A start that one disk did not hear of makes no older copy of this disk. */
static void
test_unheard_start(void **state)
{
	char name[2][32];

	begin(3);
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	for (int i = 0; i < 2; i++) {
		name_on(name[i], TWO, 1 + i, 2 - i, 0);
		assert_int_equal(put(user, TWO, name[i], 4), 0);
	}
	down();
	mem_disk_fail(paths[1], 1);
	assert_true(start() < 0);
	take_away(2);
	up();
	for (int i = 0; i < 2; i++)
		assert_int_equal(get(user, TWO, name[i]), 4);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_without),
		cmocka_unit_test(test_made_beside),
		cmocka_unit_test(test_made_as_one_fails),
		cmocka_unit_test(test_made_while_cleaning),
		cmocka_unit_test(test_to_one),
		cmocka_unit_test(test_to_one_cancelled),
		cmocka_unit_test(test_to_one_race),
		cmocka_unit_test(test_to_one_cut),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_forget_exposed),
		cmocka_unit_test(test_heals_after_a_refusal),
		cmocka_unit_test(test_older_cut_start),
		cmocka_unit_test(test_unheard_start),
	};

	seed = turns_seed();
	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
