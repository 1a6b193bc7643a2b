/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys with two copies over disks in memory: what is answered is on two disks, whichever of them fails at whichever step of the change;
 * what is damaged, hangs or has no room.  SEED= repeats a run.
 */
#include "mem_rig.h"

static uint64_t seed;

/* What is done to a key that has a value, and has another one, or none, afterwards. */
enum change { PUT_SMALL, PUT_LARGE, DELETE, UPLOAD, PART, COMPLETE, ABORT, CHANGES };

struct act {
	enum change change;
	const char *name;
	struct store_user *user;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	int result;
	bool is_over, is_gone; /* it is answered; its port, too, is no more */
};

#define OLD 12 /* its size */
#define SMALL 21
#define LARGE 34

static int
do_it(struct act *a)
{
	struct store_key k = key_of(TWO, a->name);

	switch (a->change) {
	case PUT_SMALL:
		return put(a->user, TWO, a->name, SMALL);
	case PUT_LARGE:
		return put(a->user, TWO, a->name, LARGE);
	case DELETE:
		return del(a->user, TWO, a->name);
	case UPLOAD:
		return upload_begin(a->user, TWO, a->name, a->id);
	case PART:
		return put_part(a->user, k, a->id, 3, LARGE);
	case COMPLETE:
		return upload_end(a->user, TWO, a->name, a->id, LARGE);
	default:
		return upload_abort(a->user, TWO, a->name, a->id);
	}
}

/* What the key has when the change is done. */
static uint32_t
after(enum change change)
{
	return change == PUT_SMALL                         ? SMALL
	       : change == PUT_LARGE || change == COMPLETE ? LARGE
	       : change == DELETE                          ? 0
							   : OLD;
}

/* Puts what the change needs. */
static void
prepare(struct act *a)
{
	assert_int_equal(put(user, TWO, a->name, OLD), 0);
	if (a->change < PART)
		return;
	assert_int_equal(upload_begin(user, TWO, a->name, a->id), 0);
	if (a->change >= COMPLETE)
		assert_int_equal(put_part(user, key_of(TWO, a->name), a->id, 3, LARGE), 0);
}

static void
act_main(void *arg)
{
	struct act *a = arg;

	check(store_user_new(&st, 1, &a->user) == 0);
	a->result = do_it(a);
	a->is_over = true;
	store_user_free(a->user);
	a->is_gone = true;
}

static void
begin(int nr)
{
	rig_begin(seed, nr);
	up();
	make_buckets();
}

static void
end(void)
{
	down();
	rig_end();
}

/* After its answer each change is on both disks. */
static void
test_both(void **state)
{
	for (enum change c = 0; c < CHANGES; c++) {
		struct act a = { .change = c };
		char name[32];

		begin(2);
		a.name = name_on(name, TWO, 0, 1, 0);
		a.user = user;
		prepare(&a);
		assert_true(do_it(&a) >= 0);
		assert_int_equal(get(user, TWO, name), after(c));
		assert_int_equal(get_second(user, TWO, name), after(c));
		assert_int_equal(mem_disk_records(paths[0]), mem_disk_records(paths[1]));
		assert_true(mem_disks_same(paths[0], paths[1]));
		end();
	}
}

/* The value that the key may have after a change with that result. */
static void
judge(const struct act *a, int r, bool is_second)
{
	uint32_t new = after(a->change);
	int has = is_second ? get_second(user, TWO, a->name) : get(user, TWO, a->name);

	if (a->result >= 0)
		assert_int_equal(has, new);
	else if (a->result != -ECANCELED)
		assert_int_equal(has, OLD);
	else
		assert_true(has == OLD || has == (int)new);
	if (r >= 0)
		assert_int_equal(has, r);
}

/* Fails one of the two disks after so many changes within a change of the key.  False: it had not failed by then. */
static bool
fail_at(enum change c, int disk, unsigned changes, bool restart_without)
{
	struct act a = { .change = c };
	char name[32];
	bool has_failed;
	int has;

	begin(3);
	a.name = name_on(name, TWO, 0, 1, 0);
	a.user = user;
	prepare(&a);
	mem_disk_fail(paths[disk], changes);
	a.result = do_it(&a);
	has_failed = mem_disk_has_failed(paths[disk]);
	/* Of what a disk that fails is the second of, nobody hears. */
	if (disk == 1)
		assert_true(a.result >= 0);
	judge(&a, -1, false);
	has = get(user, TWO, name);
	down();
	if (restart_without) {
		take_away(disk);
		up();
		judge(&a, has, false);
		down();
		bring_back(disk);
	}
	up();
	assert_true(wait_quiet());
	judge(&a, has, false);
	judge(&a, has, true);
	if (c == UPLOAD && a.result >= 0)
		assert_int_equal(upload_look(user, TWO, name, a.id), 0);
	end();
	return has_failed;
}

static void
test_fails(void **state)
{
	for (enum change c = 0; c < CHANGES; c++) {
		for (int disk = 0; disk < 2; disk++) {
			for (unsigned changes = 1; fail_at(c, disk, changes, true); changes++)
				assert_true(changes < 20);
			fail_at(c, disk, 1, false);
		}
	}
}

/* The power goes after each step of each change. */
static void
test_cuts(void **state)
{
	for (enum change c = 0; c < CHANGES; c++) {
		bool is_cut = true;

		for (uint64_t changes = 1; is_cut; changes++) {
			struct act a = { .change = c, .result = -ECANCELED };
			struct mem_image *image;
			char name[32];
			int has;

			begin(3);
			a.name = name_on(name, TWO, 0, 1, 0);
			a.user = user;
			prepare(&a);
			mem_disks_cut_after(changes);
			assert_true(do_it(&a) >= 0);
			image = mem_disks_cut();
			is_cut = image != NULL;
			down();
			if (is_cut)
				mem_disks_put_back(image);
			mem_image_free(image);
			up();
			assert_true(wait_quiet());
			has = get(user, TWO, name);
			assert_true(has == OLD || has == (int)after(c));
			judge(&a, has, true);
			end();
		}
	}
}

/* Of a change that the secondary does not take nobody is given what that has, also when the power goes with the answer and the primary is
 * away then; when both are there, or it takes records again, it gets all. */
static void
missed_update(enum change c, bool is_cut)
{
	struct act a = { .change = c };
	struct mem_image *image;
	struct store_copies_info info;
	char name[32];

	begin(3);
	a.name = name_on(name, TWO, 0, 1, 0);
	a.user = user;
	prepare(&a);
	mem_disk_refuse(paths[1], true);
	turns_go(act_main, &a);
	for (uint64_t until = clock_ns() + 100 * NS_PER_S; !a.is_over && clock_ns() < until;)
		turn_for(NS_PER_MS / 10);
	assert_true(a.is_over && a.result >= 0);
	image = mem_disks_copy(NULL);
	judge(&a, -1, false);
	turn_for(NS_PER_S);
	assert_true(a.is_gone);
	store_copies_info(st, &info);
	assert_int_equal(info.missed, 1);
	if (!is_cut) {
		mem_disk_refuse(paths[1], false);
		assert_true(wait_quiet());
	} else {
		down();
		mem_disks_put_back(image);
		take_away(0);
		up();
		assert_int_equal(get(user, TWO, name), -ENODEV);
		down();
		bring_back(0);
		up();
		assert_true(wait_quiet());
	}
	judge(&a, -1, false);
	judge(&a, -1, true);
	mem_image_free(image);
	end();
}

static void
test_missed_update(void **state)
{
	for (enum change c = 0; c < CHANGES; c++) {
		missed_update(c, false);
		missed_update(c, true);
	}
}

/* A change that a failed secondary has missed is answered when the map without that disk is on all others, and one of them hangs. */
static void
test_map_first(void **state)
{
	for (enum change c = 0; c < CHANGES; c++) {
		struct act a = { .change = c };
		char name[32];

		begin(3);
		a.name = name_on(name, TWO, 0, 1, 0);
		a.user = user;
		prepare(&a);
		mem_disk_hang(paths[2], true);
		mem_disk_fail(paths[1], 1);
		turns_go(act_main, &a);
		turn_for(NS_PER_S);
		assert_true(mem_disk_has_failed(paths[1]));
		assert_false(a.is_over);
		mem_disk_hang(paths[2], false);
		while (!a.is_gone)
			turn_for(NS_PER_MS);
		assert_true(a.result >= 0);
		judge(&a, -1, false);
		end();
	}
}

/* Of two disks one serves alone when the other one has failed, and starts alone. */
static void
test_one_of_two(void **state)
{
	for (int failed = 0; failed < 2; failed++) {
		begin(2);
		assert_int_equal(put(user, TWO, "key", OLD), 0);
		mem_disk_fail(paths[failed], 0);
		assert_int_equal(put_again(user, TWO, "key", SMALL), 0);
		assert_int_equal(make_bucket(user, "late", 2), 0);
		assert_int_equal(put(user, "late", "key", LARGE), 0);
		down();
		take_away(!failed);
		assert_true(start() < 0);
		bring_back(!failed);
		take_away(failed);
		up();
		assert_int_equal(get(user, TWO, "key"), SMALL);
		assert_int_equal(get(user, "late", "key"), LARGE);
		down();
		bring_back(failed);
		up();
		assert_true(wait_quiet());
		assert_int_equal(get_second(user, TWO, "key"), SMALL);
		assert_int_equal(get_second(user, "late", "key"), LARGE);
		end();
	}
}

/* A primary that hangs is waited for; what is begun ends when it has failed and answers again. */
static void
test_first_hangs(void **state)
{
	struct act a = { .change = PUT_LARGE };
	char name[32];

	begin(3);
	a.name = name_on(name, TWO, 0, 1, 0);
	prepare(&a);
	mem_disk_hang(paths[0], true);
	turns_go(act_main, &a);
	turn_for(NS_PER_S);
	assert_false(a.is_over);
	mem_disk_fail(paths[0], 0);
	mem_disk_hang(paths[0], false);
	while (!a.is_gone)
		turn_for(NS_PER_MS);
	judge(&a, -1, false);
	end();
}

/* A secondary that hangs is waited for until it has failed, and no longer, in whatever order threads hear of that. */
static void
second_hangs(enum change c, uint64_t of)
{
	struct act a = { .change = c };
	uint64_t until;
	char name[32];

	rig_begin(of, 3);
	up();
	make_buckets();
	a.name = name_on(name, TWO, 0, 1, 0);
	a.user = user;
	prepare(&a);
	mem_disk_hang(paths[1], true);
	turns_go(act_main, &a);
	turn_for(NS_PER_S);
	assert_false(a.is_over);
	mem_disk_fail(paths[1], 0);
	for (until = clock_ns() + 100 * NS_PER_S; !a.is_over && clock_ns() < until;)
		turn_for(NS_PER_MS);
	assert_true(a.is_over);
	assert_true(a.result >= 0);
	judge(&a, -1, false);
	mem_disk_hang(paths[1], false);
	while (!a.is_gone)
		turn_for(NS_PER_MS);
	end();
}

static void
test_second_hangs(void **state)
{
	for (enum change c = 0; c < CHANGES; c++) {
		for (uint64_t i = 0; i < 20; i++)
			second_hangs(c, seed + i);
	}
}

static bool has_got, has_read; /* the object was read; it was listed as well */
static int read_found;

static void
reader_main(void *arg)
{
	struct store_user *u;
	struct listing l;

	check(store_user_new(&st, 1, &u) == 0);
	read_found = get(u, TWO, arg);
	has_got = true;
	if (list_names(u, TWO, &l) != (read_found > 0))
		read_found = -EINVAL;
	store_user_free(u);
	has_read = true;
}

/* What the first has and the second has not yet nobody sees. */
static void
test_settled(void **state)
{
	struct act a = { .change = PUT_SMALL }; /* pieces go to both before the first commits */
	char name[32];

	begin(2);
	a.name = name_on(name, TWO, 0, 1, 0);
	mem_disk_hang(paths[1], true);
	turns_go(act_main, &a);
	while (!mem_disk_has(paths[0], TWO, name, NULL))
		turn_for(NS_PER_MS);
	has_got = has_read = false;
	turns_go(reader_main, name);
	turn_for(NS_PER_S);
	assert_false(has_got || has_read);
	assert_false(a.is_over);
	mem_disk_hang(paths[1], false);
	while (!has_read || !a.is_gone)
		turn_for(NS_PER_MS);
	assert_int_equal(a.result, 0);
	assert_int_equal(read_found, SMALL);
	end();
}

static struct act *looks_for;

static void
looker_main(void *arg)
{
	struct store_user *u;

	check(store_user_new(&st, 1, &u) == 0);
	read_found = upload_look(u, TWO, looks_for->name, looks_for->id);
	store_user_free(u);
	has_read = true;
}

/* An upload that only the secondary has still is neither there nor gone. */
static void
test_upload_settled(void **state)
{
	struct act a = { .change = ABORT };
	unsigned records;
	char name[32];

	begin(2);
	a.name = name_on(name, TWO, 0, 1, 0);
	a.user = user;
	prepare(&a);
	records = mem_disk_records(paths[0]);
	mem_disk_hang(paths[1], true);
	turns_go(act_main, &a);
	while (mem_disk_records(paths[0]) == records)
		turn_for(NS_PER_MS);
	has_read = false;
	looks_for = &a;
	turns_go(looker_main, NULL);
	turn_for(NS_PER_S);
	assert_false(has_read);
	assert_false(a.is_over);
	mem_disk_hang(paths[1], false);
	while (!has_read || !a.is_gone)
		turn_for(NS_PER_MS);
	assert_true(a.result >= 0);
	assert_int_equal(read_found, -ENOENT);
	end();
}

/* What cannot be read at one is read from the other; what is damaged is made again from it. */
static void
test_damaged(void **state)
{
	for (int disk = 0; disk < 2; disk++) {
		struct store_copies_info info;
		char name[32];

		begin(2);
		name_on(name, TWO, 0, 1, 0);
		assert_int_equal(put(user, TWO, name, LARGE), 0);
		mem_disk_unreadable(paths[disk], true);
		assert_int_equal(get(user, TWO, name), LARGE);
		mem_disk_unreadable(paths[disk], false);
		assert_int_equal(mem_disk_spoil(paths[disk], TWO, name), 0);
		assert_int_equal(get(user, TWO, name), LARGE);
		if (disk == 1)
			assert_int_equal(get_second(user, TWO, name), -EBADMSG);
		turn_for(NS_PER_S);
		store_copies_info(st, &info);
		assert_int_equal(info.repaired, 1);
		assert_int_equal(get_second(user, TWO, name), LARGE);
		assert_true(mem_disks_same(paths[0], paths[1]));
		end();
	}
}

/* Of another version than the first's nothing is read at the second. */
static void
test_damaged_both(void **state)
{
	char name[32];

	begin(2);
	name_on(name, TWO, 0, 1, 0);
	assert_int_equal(put(user, TWO, name, LARGE), 0);
	assert_int_equal(mem_disk_spoil(paths[0], TWO, name), 0);
	assert_int_equal(mem_disk_spoil(paths[1], TWO, name), 0);
	assert_int_equal(get(user, TWO, name), -EBADMSG);
	assert_int_equal(put(user, TWO, name, SMALL), 0);
	assert_int_equal(get_second(user, TWO, name), SMALL);
	end();
}

/* A disk without room is not away: the PUT fails on both. */
static void
test_no_room(void **state)
{
	for (int disk = 0; disk < 2; disk++) {
		char name[32];

		begin(2);
		name_on(name, TWO, 0, 1, 0);
		assert_int_equal(put(user, TWO, name, OLD), 0);
		mem_disk_leave_free(paths[disk], 1000);
		assert_int_equal(put(user, TWO, name, LARGE), -ENOSPC);
		assert_int_equal(get(user, TWO, name), OLD);
		assert_int_equal(get_second(user, TWO, name), OLD);
		assert_int_equal(put(user, TWO, name, SMALL - 1), 0);
		end();
	}
}

/* The second of what another disk has lost is made again elsewhere, when that has been away for long. */
static void
test_heals_elsewhere(void **state)
{
	rig_begin(seed, 3);
	conf.disks.heal_after_ns = NS_PER_S;
	up();
	fill();
	mem_disk_fail(paths[1], 0);
	for (int i = 0; i < RIG_KEYS; i++) {
		rig_value[1][i] += 50;
		assert_int_equal(put_again(user, TWO, rig_name(i), rig_value[1][i]), 0);
	}
	assert_true(wait_quiet());
	for (int i = 0; i < RIG_KEYS; i++)
		assert_int_equal(get_second(user, TWO, rig_name(i)), rig_value[1][i]);
	down();
	up();
	must_have_both();
	must_be_clean(3);
	end();
}

/* A disk is not there at a start: a third one gets the copies that the missing one has, which loses them when it is back. */
static void
test_heals_missing(void **state)
{
	for (int away = 0; away < 3; away++) {
		rig_begin(seed, 3);
		up();
		fill();
		down();
		take_away(away);
		conf.disks.heal_after_ns = 1;
		up();
		must_have(true);
		assert_true(wait_quiet());
		for (int i = 0; i < RIG_KEYS; i++) {
			assert_int_equal(get_second(user, TWO, rig_name(i)), rig_value[1][i]);
			rig_value[1][i] += i % 2 ? 50 : 0;
			assert_int_equal(put(user, TWO, rig_name(i), rig_value[1][i]), 0);
			assert_int_equal(get_second(user, TWO, rig_name(i)), rig_value[1][i]);
		}
		down();
		bring_back(away);
		up();
		must_have_both();
		must_be_clean(3);
		end();
	}
}

/* A disk that was away is given what it missed, and nothing else. */
static void
test_missed(void **state)
{
	for (int away = 0; away < 3; away++) {
		rig_begin(seed, 3);
		up();
		fill();
		down();
		take_away(away);
		up();
		must_have(true);
		for (int i = 0; i < RIG_KEYS; i += 2) {
			rig_value[1][i] = i % 4 ? 0 : rig_value[1][i] + 50;
			if (rig_value[1][i])
				assert_int_equal(put(user, TWO, rig_name(i), rig_value[1][i]), 0);
			else
				assert_int_equal(del(user, TWO, rig_name(i)), 1);
		}
		must_have(true);
		down();
		bring_back(away);
		up();
		must_have_both();
		must_be_clean(3);
		end();
	}
}

/* ---- the primary fails behind a change ---- */

static bool stands; /* the thread of the deleter does nothing */
static int del_result;
static bool has_deleted;

static void
deleter_main(void *arg)
{
	struct store_key k = key_of(TWO, arg);
	struct store_user *u;
	struct store_del op;
	int r;

	check(store_user_new(&st, 1, &u) == 0);
	store_user_begin(u, &op.op);
	r = store_delete(store_user_port(u, 0), &k, NULL, &op);
	while (stands)
		turns_yield();
	del_result = store_user_wait(u, &op.op, r);
	has_deleted = true;
	store_user_free(u);
}

/*
 * M8: the primary has a change, and before the secondary is asked for it the primary fails, and the map that makes the secondary the primary
 * is being written (is_map_held: one disk does not write it) or effective.  When the change is answered the new primary has it.
 */
static void
fail_behind_change(bool is_map_held)
{
	char name[32];
	struct store_key k;

	begin(3);
	k = key_of(TWO, name_on(name, TWO, 0, 1, 0));
	k.copies = 2;
	assert_int_equal(put(user, TWO, name, OLD), 0);
	stands = true;
	has_deleted = false;
	turns_go(deleter_main, name);
	while (mem_disk_has(paths[0], TWO, name, NULL))
		store_user_turn(user);
	mem_disk_hold(paths[2], is_map_held ? HOLD_MAPS : HOLD_NOTHING);
	mem_disk_fail(paths[0], 0);
	if (is_map_held) {
		turn_for(NS_PER_S);
		assert_true(set_is_in(set_of(st), 0));
	} else {
		while (set_primary(set_of(st), &k) != 1)
			store_user_turn(user);
	}
	assert_true(mem_disk_has(paths[1], TWO, name, NULL));
	stands = false;
	if (is_map_held) {
		turn_for(NS_PER_S);
		/* By either map the change is made. */
		assert_true(!has_deleted || !mem_disk_has(paths[1], TWO, name, NULL));
		mem_disk_hold(paths[2], HOLD_NOTHING);
	}
	while (!has_deleted)
		store_user_turn(user);
	assert_int_equal(del_result, 1);
	assert_false(mem_disk_has(paths[1], TWO, name, NULL));
	assert_int_equal(get(user, TWO, name), 0);
	turns_wait();
	restart();
	assert_int_equal(get(user, TWO, name), 0);
	assert_true(wait_quiet());
	assert_false(mem_disk_has(paths[0], TWO, name, NULL) || mem_disk_has(paths[1], TWO, name, NULL));
	end();
}

static void
test_first_fails_behind(void **state)
{
	fail_behind_change(false);
}

static void
test_first_fails_in_table(void **state)
{
	fail_behind_change(true);
}

/* A PUT, or a part, begins after the primary has failed, and before the map that says so is written. */
static void
begin_as_first_fails(enum change c)
{
	struct act a = { .change = c };
	char name[32], other[32];
	struct store_key k;

	begin(3);
	a.name = name_on(name, TWO, 0, 1, 0);
	k = key_of(TWO, name);
	k.copies = 2;
	name_on(other, TWO, 0, 1, 1);
	prepare(&a);
	mem_disk_hold(paths[2], HOLD_MAPS);
	mem_disk_fail(paths[0], 1);
	assert_int_equal(put(user, TWO, other, SMALL), -ECANCELED);
	assert_true(set_has_failed(set_of(st), 0));
	assert_int_equal(set_primary(set_of(st), &k), 0);
	turns_go(act_main, &a);
	turn_for(NS_PER_S);
	assert_false(a.is_over);
	assert_int_equal(set_primary(set_of(st), &k), 0);
	mem_disk_hold(paths[2], HOLD_NOTHING);
	while (!a.is_gone)
		store_user_turn(user);
	assert_int_equal(a.result, 0);
	assert_int_equal(set_primary(set_of(st), &k), 1);
	if (c == PART)
		assert_int_equal(upload_end(user, TWO, name, a.id, LARGE), 0);
	assert_int_equal(get(user, TWO, name), LARGE);
	restart();
	assert_int_equal(get(user, TWO, name), LARGE);
	assert_true(wait_quiet());
	assert_int_equal(get_second(user, TWO, name), LARGE);
	end();
}

static void
test_begun_as_first_fails(void **state)
{
	begin_as_first_fails(PUT_LARGE);
	begin_as_first_fails(PART);
}

/* ---- reads of what is damaged ---- */

/* An open object is a version that both disks have replaced by now: its bytes are not read from the secondary, which has another version. */
static void
test_other_version(void **state)
{
	struct store_port *p;
	struct store_copies_info info;
	struct buf b = { .mem = NULL };
	struct store_read rd = { .lead = 0 };
	struct store_obj o;
	char name[32];
	struct store_key k;

	begin(2);
	p = store_user_port(user, 0);
	k = key_of(TWO, name_on(name, TWO, 0, 1, 0));
	assert_int_equal(put(user, TWO, name, LARGE), 0);
	memset(&o, 0, sizeof o);
	assert_int_equal(STORE_DO(user, &o.op, store_open(p, &k, &o)), 0);
	assert_int_equal(put(user, TWO, name, LARGE + 5), 0);
	mem_disk_unreadable(paths[0], true);
	assert_true(store_buf_make(&b, STORE_GRANULE));
	assert_int_equal(STORE_DO(user, &rd.op, store_read(p, &o, &rd, &b, 0, STORE_GRANULE)), -EIO);
	mem_disk_unreadable(paths[0], false);
	store_close(p, &o);
	free(b.mem);
	store_copies_info(st, &info);
	assert_int_equal(info.read_second, 0);
	assert_int_equal(get(user, TWO, name), LARGE + 5);
	end();
}

static struct store_ops blind_ops; /* as those of an engine, which cannot read its records */

static int
look_blind(struct store_port *p, const struct store_look *l, struct store_op *op)
{
	if (l->kind != LOOK_OBJECT)
		return mem_engine_ops.look(p, l, op);
	op->port = p;
	op->result = -EBADMSG;
	return 1;
}

/* An object whose record the primary cannot give is read from the secondary; a request for that copy is an error. */
static void
test_record_damaged(void **state)
{
	char name[2][32];
	struct store_port *e;
	struct store_copies_info info;

	begin(2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(put(user, TWO, name_on(name[i], TWO, i, !i, 0), LARGE), 0);
	e = port_engine(set_port(store_user_port(user, 0)), 0);
	blind_ops = *e->ops;
	blind_ops.look = look_blind;
	e->ops = &blind_ops;
	assert_int_equal(get(user, TWO, name[0]), LARGE);
	assert_int_equal(get_second(user, TWO, name[0]), LARGE);
	assert_int_equal(get(user, TWO, name[1]), LARGE);
	assert_int_equal(get_second(user, TWO, name[1]), -EBADMSG);
	store_copies_info(st, &info);
	assert_int_equal(info.read_second, 1);
	e->ops = port_engine(set_port(store_user_port(user, 0)), 1)->ops;
	end();
}

/* Reads a copy as the scrub does: damage is mended before the read ends. */
static int
scrub(const char *name, bool is_second)
{
	struct store_port *p = store_user_port(user, 0);
	struct store_key k = key_of(TWO, name);
	struct store_obj o;
	int r;

	memset(&o, 0, sizeof o);
	r = STORE_DO(user, &o.op, is_second ? store_open_second(p, &k, &o) : store_open(p, &k, &o));
	o.mends_first = true;
	return r < 0 ? r : read_value(user, &o);
}

static void
test_scrubbed(void **state)
{
	for (int disk = 0; disk < 2; disk++) {
		struct store_copies_info info;
		char name[32];

		begin(2);
		name_on(name, TWO, 0, 1, 0);
		assert_int_equal(put(user, TWO, name, LARGE), 0);
		assert_int_equal(mem_disk_spoil(paths[disk], TWO, name), 0);
		assert_int_equal(scrub(name, disk), disk ? -EBADMSG : LARGE);
		store_copies_info(st, &info);
		assert_int_equal(info.repaired, 1);
		assert_int_equal(info.read_second, !disk);
		assert_int_equal(scrub(name, disk), LARGE);
		assert_true(mem_disks_same(paths[0], paths[1]));
		end();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_fails),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_missed_update),
		cmocka_unit_test(test_map_first),
		cmocka_unit_test(test_one_of_two),
		cmocka_unit_test(test_first_hangs),
		cmocka_unit_test(test_second_hangs),
		cmocka_unit_test(test_settled),
		cmocka_unit_test(test_upload_settled),

		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_damaged_both),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_heals_elsewhere),
		cmocka_unit_test(test_heals_missing),
		cmocka_unit_test(test_missed),
		cmocka_unit_test(test_first_fails_behind),
		cmocka_unit_test(test_first_fails_in_table),
		cmocka_unit_test(test_begun_as_first_fails),
		cmocka_unit_test(test_other_version),
		cmocka_unit_test(test_record_damaged),
		cmocka_unit_test(test_scrubbed),
	};

	seed = turns_seed();
	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
