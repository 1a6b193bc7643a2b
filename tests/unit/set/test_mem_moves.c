/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that are drained and added while a set over disks in memory serves: nothing is lost, whichever disk fails at whichever step, or
 * wherever the power goes.  SEED= repeats a run.
 */
#include "mem_rig.h"

static uint64_t seed;
static bool writes, is_writing; /* the writer is to go on; it has not ended */
static int written;

static void
begin(int nr)
{
	rig_begin(seed, nr);
	up();
	fill();
}

static void
end(void)
{
	down();
	rig_end();
}

/* Puts and deletes under the keys of both buckets, while slots move.  Of what is refused nothing is done. */
static void
writer(void *arg)
{
	struct store_user *u;

	check(store_user_new(&st, 1, &u) == 0);
	while (writes) {
		int two = (int)turns_below(2), i = (int)turns_below(RIG_KEYS), r;
		uint32_t value = turns_below(4) ? 1000 + (uint32_t)++written : 0;

		r = value ? put(u, two ? TWO : ONE, rig_name(i), value)
			  : del(u, two ? TWO : ONE, rig_name(i));
		check(r >= 0 || r == -EAGAIN || r == -EXDEV || r == -EROFS || r == -ECANCELED);
		if (r >= 0)
			rig_value[two][i] = value;
		if (r >= 0 || r == -ECANCELED)
			rig_open[two][i] = r < 0;
		check(r < 0 || get(u, two ? TWO : ONE, rig_name(i)) == (int)value);
		turns_sleep(turns_below(3) * NS_PER_MS);
	}
	store_user_free(u);
	is_writing = false;
}

static void
begin_writing(void)
{
	writes = is_writing = true;
	turns_go(writer, NULL);
}

static void
end_writing(void)
{
	writes = false;
	while (is_writing)
		store_user_turn(user);
}

static int change_result;
static bool is_changed;

static void
changer(void *arg)
{
	const struct store_disk_change *c = arg;

	change_result = change_disks(c->kind, c->disk);
	is_changed = true;
}

/* Asks for a change of the disks: what comes of it, while this loop turns. */
static int
ask(int kind, const char *disk)
{
	struct store_disk_change c = { .kind = kind, .disk = disk };

	is_changed = false;
	turns_go(changer, &c);
	while (!is_changed)
		store_user_turn(user);
	return change_result;
}

static bool
is_member(int disk)
{
	return table_find(mem_disk_table(paths[disk ? 0 : 1]), mem_disk_uuid(paths[disk])) >= 0;
}

static void
configure_without(int disk)
{
	conf.disks.nr--;
	memmove(&disks[disk], &disks[disk + 1], (DISKS - 1 - (size_t)disk) * sizeof disks[0]);
}

/* ---- what goes well ---- */

static void
test_drain(void **state)
{
	for (int disk = 0; disk < 3; disk++) {
		struct store_move_info info;

		begin(3);
		/* Keys change after they were sent, and before their slots are switched. */
		store_set_move_rate(st, 50000);
		begin_writing();
		assert_int_equal(ask(DISK_DRAIN, paths[disk]), 0);
		store_move_info(st, &info);
		assert_true(info.is_running);
		assert_true(wait_quiet());
		end_writing();
		assert_false(is_member(disk));
		must_have_both();
		restart();
		must_have_both();
		down();
		configure_without(disk);
		up();
		must_have_both();
		end();
	}
}

static void
test_add(void **state)
{
	begin(2);
	begin_writing();
	assert_int_equal(ask(DISK_ADD, paths[2]), 0);
	assert_true(wait_quiet());
	end_writing();
	assert_true(is_member(2));
	assert_true(table_count(mem_disk_table(paths[0]), 2) > 0);
	must_have_both();
	/* What has gone is removed where it was. */
	must_be_clean(3);
	down();
	conf.disks.nr = 3;
	up();
	must_have_both();
	must_be_clean(3);
	end();
}

/* Nothing of a move that was cancelled is left where it does not belong. */
static void
test_cancel(void **state)
{
	for (int i = 0; i < 20; i++) {
		begin(3);
		store_set_move_rate(st, 1000);
		begin_writing();
		assert_int_equal(ask(i % 2 ? DISK_DRAIN : DISK_ADD, i % 2 ? paths[1] : paths[3]), 0);
		turn_for((uint64_t)i * 5 * NS_PER_MS);
		assert_int_equal(ask(DISK_CANCEL, NULL), 0);
		store_set_move_rate(st, 0);
		assert_true(wait_quiet());
		end_writing();
		must_have_both();
		must_be_clean(i % 2 ? 3 : 4);
		assert_true(is_member(1));
		assert_int_equal(ask(DISK_CANCEL, NULL), -ENOENT);
		end();
	}
}

static void
test_refused(void **state)
{
	begin(2);
	assert_int_equal(ask(DISK_CANCEL, NULL), -ENOENT);
	assert_true(ask(DISK_DRAIN, "/mem/5") < 0);
	/* Keys with two copies need two. */
	assert_true(ask(DISK_DRAIN, paths[1]) < 0);
	assert_true(ask(DISK_ADD, paths[0]) < 0);
	mem_disk_fail(paths[1], 0);
	turn_for(NS_PER_S);
	assert_true(ask(DISK_ADD, paths[2]) < 0);
	end();
}

static void
test_no_room(void **state)
{
	begin(3);
	for (int i = 1; i < 3; i++)
		mem_disk_leave_free(paths[i], 10000);
	assert_int_equal(ask(DISK_DRAIN, paths[0]), -ENOSPC);
	must_have_both();
	end();
}

/* ---- what does not ---- */

/* A disk fails after so many changes while another one, or it, is drained or added.  False: it had not by then. */
static bool
fail_at(int kind, int moved, int disk, unsigned changes)
{
	bool has_failed;
	int r;

	begin(3);
	begin_writing();
	mem_disk_fail(paths[disk], changes);
	r = ask(kind, paths[moved]);
	assert_true(r == 0 || r == -EROFS || r == -EIO || r == -EBUSY || r == -EAGAIN);
	for (uint64_t until = clock_ns() + 5 * NS_PER_S;
	     clock_ns() < until && !mem_disk_has_failed(paths[disk]);)
		store_user_turn(user);
	has_failed = mem_disk_has_failed(paths[disk]);
	turn_for(NS_PER_S);
	end_writing();
	must_have(true);
	down();
	configure();
	up();
	must_have(false);
	assert_true(wait_quiet());
	must_have_both();
	end();
	return has_failed;
}

static void
test_fails(void **state)
{
	/* Some of its steps, as there are hundreds. */
	for (unsigned changes = 1; changes < 100; changes += 1 + changes / 2) {
		for (int disk = 0; disk < 3; disk++)
			fail_at(DISK_DRAIN, 0, disk, changes);
		for (int disk = 0; disk < 2; disk++)
			fail_at(DISK_ADD, 3, disk, changes);
	}
}

/* The only disk fails after so many changes while another one is added: what is answered without it is not lost when it starts alone, for it
 * may not know of the other one.  False: it had not failed by then. */
static bool
fail_only_at(unsigned changes)
{
	bool has_failed, has_bucket;

	rig_begin(seed, 1);
	up();
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	mem_disk_fail(paths[0], changes);
	ask(DISK_ADD, paths[1]);
	turn_for(NS_PER_S);
	has_failed = mem_disk_has_failed(paths[0]);
	has_bucket = make_bucket(user, "late", 1) == 0;
	down();
	conf.disks.nr = 1;
	if (start() < 0) {
		conf.disks.nr = 2;
		up();
	}
	assert_int_equal(put(user, ONE, "key", 1), 0);
	assert_int_equal(put(user, "late", "key", 2), has_bucket ? 0 : -ENXIO);
	end();
	return has_failed;
}

static void
test_only_fails(void **state)
{
	for (unsigned changes = 1; fail_only_at(changes); changes++)
		assert_true(changes < 200);
}

/* The power goes after so many changes of a move; the next start goes on with it.  False: there were not so many. */
static bool
cut_at(int kind, int moved, uint64_t changes)
{
	struct mem_image *image;
	bool is_cut;

	begin(3);
	mem_disks_cut_after(changes);
	assert_int_equal(ask(kind, paths[moved]), 0);
	assert_true(wait_quiet());
	image = mem_disks_cut();
	is_cut = image != NULL;
	down();
	if (is_cut)
		mem_disks_put_back(image);
	mem_image_free(image);
	configure();
	up();
	must_have(false);
	must_have_both();
	if (kind == DISK_DRAIN && is_cut && !is_member(moved))
		assert_int_equal(table_roles(mem_disk_table(paths[1]), moved), 0);
	down();
	/* With nothing left to move a start finds all where it should be. */
	up();
	must_have_both();
	end();
	return is_cut;
}

static void
test_cut(void **state)
{
	for (uint64_t changes = 1; cut_at(DISK_DRAIN, 0, changes); changes += 1 + changes / 4)
		;
	for (uint64_t changes = 1; cut_at(DISK_ADD, 3, changes); changes += 1 + changes / 4)
		;
}

/* What is damaged at the source stays there, unless the other copy is whole. */
static void
test_damaged(void **state)
{
	char name[32], one[32];
	struct store_move_info info;

	begin(3);
	name_on(name, TWO, 0, 1, 0);
	name_on(one, ONE, 0, -1, 0);
	assert_int_equal(put(user, TWO, name, 34), 0);
	assert_int_equal(put(user, ONE, one, 34), 0);
	assert_int_equal(mem_disk_spoil(paths[0], TWO, name), 0);
	assert_int_equal(mem_disk_spoil(paths[0], ONE, one), 0);
	assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
	turn_for(20 * NS_PER_S);
	store_move_info(st, &info);
	assert_true(info.is_running);
	assert_string_not_equal(info.trouble, "");
	assert_true(is_member(0));
	assert_int_equal(get(user, TWO, name), 34);
	assert_int_equal(put(user, ONE, one, 35), 0);
	assert_true(wait_quiet());
	assert_false(is_member(0));
	assert_int_equal(get(user, ONE, one), 35);
	assert_int_equal(get_second(user, TWO, name), 34);
	end();
}

/* A move is paced, and its progress counted. */
static void
test_paced(void **state)
{
	struct store_move_info info;
	uint64_t began;

	begin(3);
	store_set_move_rate(st, 100000);
	began = clock_ns();
	assert_int_equal(ask(DISK_DRAIN, paths[2]), 0);
	turn_for(NS_PER_S);
	store_move_info(st, &info);
	assert_true(info.is_running && info.slots_done < info.slots_total);
	assert_true(wait_quiet());
	assert_true(clock_ns() - began > NS_PER_S);
	must_have_both();
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drain),      cmocka_unit_test(test_add),
		cmocka_unit_test(test_cancel),     cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_room),    cmocka_unit_test(test_fails),
		cmocka_unit_test(test_only_fails), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damaged),    cmocka_unit_test(test_paced),
	};

	seed = turns_seed();
	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
