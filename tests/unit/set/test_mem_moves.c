/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that are drained and added while a set over disks in memory serves: nothing is lost, whichever disk fails at whichever step, or
 * wherever the power goes.  SEED= repeats a run.
 */
#include "mem_rig.h"

#include "set/map_change.h"

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

#define MANY 60

/* Returns the slot of the i-th of many keys. */
static unsigned
slot_of_many(int i)
{
	char name[32];
	struct store_key k;

	snprintf(name, sizeof name, "n%d", i);
	k = key_of(ONE, name);
	return set_slot(&k);
}

/* Keys beside those of the rig, whose moves take time when moves are slow. */
static void
put_heavy(int disk)
{
	for (int i = 0; i < 4; i++) {
		char name[32];

		assert_int_equal(put(user, ONE, name_on(name, ONE, disk, -1, i), 4), 0);
	}
}

/* Checks that each object of the rig counts once, and the bytes of each copy, whether moves have ended or not. */
static void
must_be_counted(void)
{
	struct store_quota_info q;

	for (int two = 0; two <= set_uses_pairs(set_of(st)); two++) {
		const char *bucket = two ? TWO : ONE;
		uint64_t objects = 0, bytes = 0;

		for (int i = 0; i < RIG_KEYS; i++) {
			if (!rig_value[two][i])
				continue;
			objects++;
			bytes += (1 + (uint64_t)two) * size_of_value(rig_value[two][i]);
		}
		assert_int_equal(store_bucket_quota(st, bucket, strlen(bucket), &q), 0);
		assert_int_equal(q.used.objects, objects);
		assert_int_equal(q.used.bytes, bytes);
	}
}

static uint64_t slots_done, slots_total; /* of the move, when they were last seen */

/* Checks the progress of a move: the figures grow, and are complete no earlier than the move. */
static void
must_make_sense(void)
{
	const struct store_move_info i = move_info();
	const struct disk_table *t = table_now();
	int roles = 0;

	if (!i.draining && !i.filling)
		return;
	assert_true(i.slots_done <= i.slots_total && i.bytes_done <= i.bytes_total);
	assert_true(i.slots_done >= slots_done);
	slots_done = i.slots_done;
	slots_total = i.slots_total;
	for (int d = 0; d < STORE_DISKS_MAX; d++)
		roles += table_has(t->draining, d) ? table_roles(t, d) : 0;
	assert_true(!roles || i.slots_done < i.slots_total);
}

/* ---- what goes well ---- */

static void
test_drain(void **state)
{
	for (int disk = 0; disk < 3; disk++) {
		uint64_t roles;

		begin(3);
		roles = (uint64_t)table_roles(table_now(), disk);
		slots_done = slots_total = 0;
		/* Keys change after they were sent, and before their slots are switched. */
		store_set_move_rate(st, 50000);
		begin_writing();
		assert_int_equal(ask(DISK_DRAIN, paths[disk]), 0);
		assert_true(move_info().is_running);
		for (uint64_t until = clock_ns() + PATIENCE_NS; !is_quiet() && clock_ns() < until;) {
			must_make_sense();
			turn_for(10 * NS_PER_MS);
		}
		assert_true(is_quiet());
		end_writing();
		assert_false(is_member(disk));
		must_have_both();
		must_be_counted();
		/* Slots of keys with two copies count once for each copy. */
		assert_int_equal(slots_total, roles);
		for (int i = 0; i < RIG_KEYS; i++)
			assert_false(mem_disk_has(paths[disk], TWO, rig_name(i), NULL));
		/* Two copies need two disks. */
		assert_int_equal(ask(DISK_DRAIN, paths[!disk]), -EPERM);
		assert_non_null(strstr(rig_said, "two copies"));
		must_be_counted();
		restart();
		must_have_both();
		must_be_counted();
		down();
		configure_without(disk);
		up();
		must_have_both();
		end();
	}
}

/* Slots move together, also if several disks may have them: each placement map is a write of every disk. */
static void
test_drain_together(void **state)
{
	uint64_t version;

	begin(4);
	version = table_now()->version;
	begin_writing();
	assert_int_equal(ask(DISK_DRAIN, paths[1]), 0);
	assert_true(wait_quiet());
	end_writing();
	must_have_both();
	assert_in_range(table_now()->version - version, 1, 100);
	end();
}

static void
test_add(void **state)
{
	int roles = 0;

	begin(2);
	begin_writing();
	assert_int_equal(ask(DISK_ADD, paths[2]), 0);
	assert_true(wait_quiet());
	end_writing();
	assert_true(is_member(2));
	assert_true(table_count(mem_disk_table(paths[0]), 2) > 0);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		assert_true(table_now()->first[i] != table_now()->second[i]);
		roles += (table_now()->first[i] == 2) + (table_now()->second[i] == 2);
	}
	/* 256 of 832 MiB, within a tenth. */
	assert_in_range(roles, 2 * STORE_SLOT_NR * 28 / 100, 2 * STORE_SLOT_NR * 34 / 100);
	must_have_both();
	must_be_counted();
	/* What has gone is removed where it was. */
	must_be_clean(3);
	down();
	conf.disks.nr = 3;
	up();
	must_have_both();
	must_be_counted();
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
	assert_non_null(strstr(rig_said, "no room"));
	assert_true(state_of(0) == UNIT_OK && table_now()->draining == 0);
	must_have_both();
	end();
}

/* Two small disks and a large one, which has a copy of nearly each object, so that all of one small disk would be on the other one, and all of the
 * large one on both: without room for that the disk that would get the copies is named and nothing moves, and with room the drain is done. */
static void
test_no_room_for_copies(void **state)
{
	static const uint64_t size_bytes[] = { 64 * MIB, 64 * MIB, 256 * MIB };
	char name[32];

	rig_begin_of(seed, 3, size_bytes);
	up();
	fill();
	for (int i = 0; i < 40; i++) {
		int small = i / 20, large_first = i % 2;

		name_on(name, TWO, large_first ? 2 : small, large_first ? small : 2, i % 20 / 2);
		assert_int_equal(put(user, TWO, name, 4), 0);
	}
	/* A small disk has 20 of them, and the room of 7 more. */
	mem_disk_leave_free(paths[0], 7 * STORE_GRANULE);
	mem_disk_leave_free(paths[1], 7 * STORE_GRANULE);
	assert_int_equal(ask(DISK_DRAIN, paths[0]), -ENOSPC);
	assert_non_null(strstr(rig_said, " /mem/1 would get"));
	assert_int_equal(ask(DISK_DRAIN, paths[2]), -ENOSPC);
	assert_non_null(strstr(rig_said, "there is no room: disk "));
	assert_int_equal(table_now()->draining, 0);
	must_have_both();
	/* The room of objects that are deleted suffices: two of each small disk stay. */
	for (int i = 0; i < 40; i++) {
		int small = i / 20, large_first = i % 2;

		name_on(name, TWO, large_first ? 2 : small, large_first ? small : 2, i % 20 / 2);
		assert_int_equal(i % 20 / 2 ? del(user, TWO, name) : 1, 1);
	}
	assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
	assert_true(wait_quiet());
	assert_false(is_member(0));
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
	for (unsigned changes = 1; changes < 100; changes += 1 + changes) {
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
	for (uint64_t changes = 1; cut_at(DISK_DRAIN, 0, changes); changes += 1 + changes / 3)
		;
	for (uint64_t changes = 1; cut_at(DISK_ADD, 3, changes); changes += 1 + changes / 3)
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

/* ---- units ---- */

/* A disk that was drained is shown as such until the restart, and is no store by itself. */
static void
test_drained(void **state)
{
	for (int gone = 0; gone < 3; gone++) {
		begin(3);
		assert_int_equal(ask(DISK_DRAIN, paths[gone]), 0);
		assert_true(wait_quiet());
		assert_true(state_of(gone) == UNIT_DRAINED);
		must_have_both();
		must_be_counted();
		assert_int_equal(make_bucket(user, "c", 1), 0);
		assert_int_equal(put(user, "c", "x", 5), 0);
		assert_int_equal(remove_bucket(user, "c"), -ENOTEMPTY);
		assert_int_equal(del(user, "c", "x"), 1);
		assert_int_equal(remove_bucket(user, "c"), 0);
		assert_int_equal(ask(DISK_DRAIN, paths[gone]), -EALREADY);
		restart();
		assert_int_equal(store_unit_nr(st), 2);
		must_have_both();
		must_be_counted();
		down();
		use(1);
		disks[0].path = paths[gone];
		assert_int_equal(start(), -EINVAL);
		assert_non_null(strstr(err, "does not belong to this store"));
		use(3);
		configure_without(gone);
		up();
		must_have_both();
		end();
	}
}

static int
list_uploads_of(const char *bucket)
{
	struct store_list ls = {
		.bucket = bucket, .bucket_len = (uint16_t)strlen(bucket), .max = 64, .entry = on_listed
	};

	return STORE_DO(user, &ls.op, store_list_uploads(store_user_port(user, 0), &ls));
}

/* The map without the disk that answers for buckets has taken effect, and no other disk answers for them yet. */
static bool
leader_has_left(void)
{
	return !(set_all(set_of(st)) >> set_head(set_of(st)) & 1);
}

static bool leader_left; /* since the drain began */

/* Makes that moment last. */
static bool
step_while_leaving(void)
{
	if (!leader_left && leader_has_left()) {
		leader_left = true;
		turns_stall_others(50);
	}
	return mem_disks_step();
}

/* Drains the disk that answers for buckets.  True: lists were asked for at that moment. */
static bool
list_while_leaving(void)
{
	bool is_between = false;

	begin(3);
	leader_left = false;
	turns_step = step_while_leaving;
	assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
	while (!is_quiet()) {
		struct listing l;

		store_user_turn(user);
		if (!leader_has_left())
			continue;
		is_between = true;
		assert_int_equal(list_names(user, "none", &l), -ENXIO);
		assert_int_equal(list_uploads_of("none"), -ENXIO);
		assert_int_equal(list_names(user, ONE, &l), RIG_KEYS);
		assert_int_equal(list_names(user, TWO, &l), RIG_KEYS);
		assert_int_equal(list_uploads_of(ONE), 0);
	}
	turns_step = mem_disks_step;
	assert_false(is_member(0));
	end();
	return is_between;
}

/* A list of a bucket that does not exist says so at each moment of a drain. */
static void
test_list_while_leaving(void **state)
{
	uint64_t was = seed;
	int nr = 0;

	for (int i = 0; i < 20 && nr < 2; i++, seed++)
		nr += list_while_leaving();
	seed = was;
	assert_int_equal(nr, 2);
}

static bool
is_listed(const char *name)
{
	struct listing l;
	bool found = false;

	assert_true(list_names(user, ONE, &l) >= 0);
	for (int i = 0; i < l.nr; i++)
		found |= strcmp(l.name[i], name) == 0;
	return found;
}

/* Deletes keys that are looked up at their new disk, while the old one has them too, and lists them. Returns the number of such keys. */
static int
delete_while_both_have(void)
{
	int nr = 0;

	for (int i = 0; set_is_leaving(set_of(st), 0) && i < RIG_KEYS; i++) {
		struct store_key k = key_of(ONE, rig_name(i));
		int home = set_primary(set_of(st), &k);
		bool both = rig_value[0][i] && home != 0 && mem_disk_has(paths[0], ONE, rig_name(i), NULL) &&
			    mem_disk_has(paths[home], ONE, rig_name(i), NULL);

		if (!both)
			continue;
		/* The mover may be one of them. */
		turns_stall_others(200);
		if (del(user, ONE, rig_name(i)) < 0)
			continue;
		rig_value[0][i] = 0;
		assert_false(is_listed(rig_name(i)));
		nr++;
	}
	return nr;
}

/* A list begins after a delete was answered, and the disk that the key has left has it still: the list does not have it. */
static void
test_list_after_delete(void **state)
{
	uint64_t was = seed;
	int nr = 0;

	for (int i = 0; i < 20 && nr < 2; i++, seed++) {
		begin(3);
		assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
		while (!is_quiet()) {
			nr += delete_while_both_have();
			store_user_turn(user);
		}
		must_have_both();
		end();
	}
	seed = was;
	assert_in_range(nr, 2, 1000);
}

/* A store of one disk gets a second disk, then a third, and loses the first, which is named by its number. */
static void
test_grow(void **state)
{
	rig_begin(seed, 1);
	up();
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	for (int i = 0; i < RIG_KEYS; i++) {
		rig_open[0][i] = false;
		rig_value[0][i] = (uint32_t)i + 1;
		assert_int_equal(put(user, ONE, rig_name(i), rig_value[0][i]), 0);
	}
	for (int nr = 1; nr < 3; nr++) {
		assert_int_equal(ask(DISK_ADD, paths[nr]), 0);
		assert_true(wait_quiet());
		assert_int_equal(store_unit_nr(st), nr + 1);
		assert_true(state_of(nr) == UNIT_OK);
		must_be_counted();
		for (int i = 0; i < RIG_KEYS; i++)
			assert_int_equal(get(user, ONE, rig_name(i)), rig_value[0][i]);
	}
	for (int i = 0; i < 3; i++)
		assert_true(table_count(table_now(), i) > STORE_SLOT_NR / 5);
	assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
	assert_true(wait_quiet());
	must_be_counted();
	down();
	configure();
	assert_int_equal(conf.disks.nr, 2);
	up();
	for (int i = 0; i < RIG_KEYS; i++)
		assert_int_equal(get(user, ONE, rig_name(i)), rig_value[0][i]);
	end();
}

/* A drained disk counts as one until the restart, which the answer says; from then on other disks have the numbers that operators see. */
static void
test_after_drain(void **state)
{
	struct store_unit_info info;
	char want[256];

	rig_begin(seed, 3);
	conf.disks.engines_max = 3;
	up();
	fill();
	assert_int_equal(ask(DISK_ADD, paths[3]), -EINVAL);
	assert_string_equal(rig_said, "a store may have 3 disks");
	assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
	assert_true(wait_quiet());
	assert_int_equal(ask(DISK_ADD, paths[3]), -EAGAIN);
	assert_non_null(strstr(rig_said, "until the restart those count that were drained"));
	down();
	configure_without(0);
	up();
	store_unit_info(st, 1, &info);
	assert_string_equal(info.name, paths[2]);
	snprintf(want, sizeof want, "disk %.8s, of a store of 2 disks, is missing", info.uuid);
	down();
	conf.disks.nr = 1;
	assert_int_equal(start(), -EINVAL);
	assert_non_null(strstr(err, want));
	conf.disks.nr = 2;
	up();
	assert_int_equal(ask(DISK_ADD, paths[3]), 0);
	assert_true(wait_quiet());
	must_have_both();
	end();
}

/* ---- disks that are given up in the middle ---- */

static void
give_up(int disk)
{
	memcpy(accepted[0], mem_disk_uuid(paths[disk]), UUID_BYTES);
	conf.disks.forget = (const uint8_t(*)[UUID_BYTES])accepted;
	conf.disks.forget_nr = 1;
	if (store_task(&conf, TASK_FORGET, err, sizeof err) < 0)
		fail_msg("%s", err);
	conf.disks.forget_nr = 0;
}

/* A disk whose slots moved is given up on the way: records that others had of slots that had not moved do not come again. */
static void
test_forget(void **state)
{
	static uint8_t home[STORE_SLOT_NR];
	int there = 0, lost = 0;
	struct listing l;
	char name[32];

	rig_begin(seed, 3);
	conf.disks.move_rate = 1;
	up();
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof name, "n%d", i);
		assert_int_equal(put(user, ONE, name, 5), 0);
	}
	assert_int_equal(make_bucket(user, "heavy", 1), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(put(user, "heavy", name_on(name, "heavy", 0, -1, i), 4), 0);
	assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
	/* Some keys have moved, and some slots have not. */
	turn_for(10 * NS_PER_S);
	assert_true(move_info().is_running && move_info().keys > 0);
	down();
	conf.disks.moves_wait = true;
	up();
	for (int i = 0; i < STORE_SLOT_NR; i++)
		home[i] = set_primary_at(set_of(st), (unsigned)i);
	down();
	configure_without(0);
	give_up(0);
	up();
	for (int i = 0; i < 60; i++) {
		struct store_key k;
		bool is_lost;

		snprintf(name, sizeof name, "n%d", i);
		k = key_of(ONE, name);
		is_lost = home[set_slot(&k)] == 0;
		assert_int_equal(get(user, ONE, name), is_lost ? 0 : 5);
		there += !is_lost;
		lost += is_lost;
	}
	assert_true(there > 0 && lost > 0);
	assert_int_equal(list_names(user, ONE, &l), there);
	down();
	/* It was being drained, but had slots. */
	use(3);
	assert_int_equal(start(), -EINVAL);
	assert_non_null(strstr(err, "does not belong to this store"));
	rig_end();
}

/* The only other disk is given up while a disk is drained: the last one stays. */
static void
test_forget_other(void **state)
{
	rig_begin(seed, 2);
	conf.disks.move_rate = 1;
	up();
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	put_heavy(1);
	assert_int_equal(ask(DISK_DRAIN, paths[1]), 0);
	down();
	configure_without(0);
	give_up(0);
	up();
	assert_true(wait_quiet());
	assert_int_equal(table_now()->draining, 0);
	assert_true(state_of(0) == UNIT_OK);
	assert_int_equal(make_bucket(user, "c", 1), 0);
	end();
}

/* ---- disks that fail at one moment ---- */

/* A disk that fails when it is to become a member is none, and all goes on; one that fails later is a member that failed. */
static void
test_add_fails(void **state)
{
	int refused = 0;

	for (unsigned changes = 1; changes < 14; changes++) {
		int r;

		begin(2);
		mem_disk_fail(paths[2], changes);
		r = ask(DISK_ADD, paths[2]);
		if (r < 0) {
			refused++;
			assert_true(wait_quiet());
			assert_int_equal(store_unit_nr(st), 2);
			must_have_both();
			assert_int_equal(make_bucket(user, "c", 1), 0);
			assert_int_equal(remove_bucket(user, "c"), 0);
		}
		down();
		configure();
		assert_int_equal(conf.disks.nr, r < 0 ? 2 : 3);
		up();
		assert_int_equal(store_unit_nr(st), r < 0 ? 2 : 3);
		must_have_both();
		end();
	}
	assert_in_range(refused, 2, 12);
}

/* Asks for a change of the disks, and fails the disk that the first map needs which makes slots or members change, while another disk does not
 * write that map.  Returns the failed engine. */
static int
fail_needed(int kind, const char *disk)
{
	int engine;

	ask_begin(kind, disk);
	while (!set_of(st)->map.needs) {
		/* The map that says what drains needs no disk, and is written. */
		mem_disk_hold(paths[0], HOLD_NOTHING);
		store_user_turn(user);
	}
	mem_disk_hold(paths[0], HOLD_MAPS);
	engine = __builtin_ctzll(set_of(st)->map.needs);
	mem_disk_fail(paths[engine], 0);
	mem_disk_hold(paths[0], HOLD_NOTHING);
	while (!is_answered)
		store_user_turn(user);
	return engine;
}

/* A new disk that fails while the map with it is written is no member, and all goes on. */
static void
test_new_fails_in_map(void **state)
{
	begin(2);
	assert_int_equal(fail_needed(DISK_ADD, paths[2]), 2);
	assert_true(ask_result < 0);
	assert_true(wait_quiet());
	assert_int_equal(store_unit_nr(st), 2);
	must_have_both();
	down();
	configure();
	assert_int_equal(conf.disks.nr, 2);
	up();
	must_have_both();
	end();
}

static void
wait_for_trouble(void)
{
	for (uint64_t until = clock_ns() + PATIENCE_NS; !move_info().trouble[0] && clock_ns() < until;)
		store_user_turn(user);
	assert_string_not_equal(move_info().trouble, "");
}

/* Checks that keys with two copies are read and written while a move waits for the disk that has failed, and that the next start, which is with
 * this disk, ends the move; drained: the disk that leaves by it, -1: none. */
static void
must_go_on(int drained)
{
	must_have(true);
	for (int i = 0; i < RIG_KEYS; i++) {
		rig_value[1][i] = 2000 + (uint32_t)i;
		rig_open[1][i] = false;
		assert_int_equal(put_again(user, TWO, rig_name(i), rig_value[1][i]), 0);
	}
	must_have(true);
	assert_true(move_info().is_running);
	conf.disks.move_rate = 0;
	down();
	configure();
	up();
	must_have(true);
	assert_true(wait_quiet());
	must_have_both();
	assert_true(drained < 0 || !is_member(drained));
	for (int i = 0; i < RIG_KEYS && drained >= 0; i++)
		assert_false(mem_disk_has(paths[drained], TWO, rig_name(i), NULL));
}

/* A target that fails while the map is written that gives it slots has none of them. */
static void
test_target_fails_in_map(void **state)
{
	static struct disk_table before;
	int target;

	begin(3);
	before = *table_now();
	target = fail_needed(DISK_DRAIN, paths[0]);
	assert_int_equal(ask_result, 0);
	for (uint64_t until = clock_ns() + PATIENCE_NS; set_is_in(set_of(st), target) && clock_ns() < until;)
		store_user_turn(user);
	assert_false(set_is_in(set_of(st), target));
	assert_memory_equal(table_now()->home, before.home, sizeof before.home);
	must_go_on(0);
	end();
}

/* A target fails: the answer to operators names that disk and what failed, no other disk is drained meanwhile, and a start with it continues. */
static void
test_target_fails(void **state)
{
	for (int target = 1; target < 3; target++) {
		char want[1024];
		struct store_unit_info info;

		begin(3);
		put_heavy(0);
		store_set_move_rate(st, 1);
		assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
		turn_for(NS_PER_S);
		mem_disk_fail(paths[target], 0);
		store_set_move_rate(st, 0);
		wait_for_trouble();
		store_unit_info(st, target, &info);
		assert_true(info.state == UNIT_FAILED);
		snprintf(want, sizeof want, "disk %.8s %s has failed: %s", info.uuid, info.name, info.reason);
		if (!strstr(move_info().trouble, want))
			fail_msg("no '%s' in: %s", want, move_info().trouble);
		assert_int_equal(__builtin_popcountll(set_in(set_of(st))), 2);
		assert_int_equal(ask(DISK_DRAIN, paths[target]), -EBUSY);
		must_go_on(0);
		end();
	}
}

static int failed_frozen; /* the target that has failed; -1: none yet */

/* Returns a key with one copy of whose changes the first disk refuses all; -1: there is none. */
static int
frozen_key(void)
{
	for (int i = 0; i < RIG_KEYS; i++) {
		if (mem_disk_is_frozen(paths[0], ONE, rig_name(i)))
			return i;
	}
	return -1;
}

/* Fails a target that is about to get the last changes of slots of the first disk. */
static bool
step_while_frozen(void)
{
	for (int i = 1; i < 3 && failed_frozen < 0; i++) {
		mem_disk_hold(paths[i], frozen_key() >= 0 ? HOLD_FOREIGN : HOLD_NOTHING);
		if (mem_disk_holds_any(paths[i]))
			failed_frozen = i;
	}
	if (failed_frozen > 0 && !mem_disk_has_failed(paths[failed_frozen])) {
		mem_disk_fail(paths[failed_frozen], 0);
		mem_disk_hold(paths[1], HOLD_NOTHING);
		mem_disk_hold(paths[2], HOLD_NOTHING);
	}
	return mem_disks_step();
}

/* A target fails while the last changes go to it, and the source refuses others: slots stay where they were, and the source takes changes again. */
static void
test_target_fails_frozen(void **state)
{
	begin(3);
	store_set_move_rate(st, 50000);
	failed_frozen = -1;
	turns_step = step_while_frozen;
	begin_writing();
	assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
	while (failed_frozen < 0 && move_info().is_running)
		store_user_turn(user);
	assert_true(failed_frozen > 0);
	wait_for_trouble();
	end_writing();
	turns_step = mem_disks_step;
	assert_int_equal(frozen_key(), -1);
	for (int i = 0; i < MANY; i++) {
		char name[32];

		snprintf(name, sizeof name, "n%d", i);
		assert_int_equal(put(user, ONE, name, 5),
				 table_now()->home[slot_of_many(i)] == failed_frozen ? -EROFS : 0);
	}
	must_go_on(0);
	end();
}

/* A target has got some slots, and others are to come, when it fails: the slots that it has got can be read, and no more slots go there; the
 * others are served where they are.  A start with it continues. */
static void
fail_after_switch(int kind, int nr, int moved)
{
	static uint8_t home[STORE_SLOT_NR];
	int target = -1, at_target = 0;
	char name[32];

	rig_begin(seed, nr);
	conf.disks.move_rate = 20000;
	up();
	fill();
	put_heavy(0);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "n%d", i);
		assert_int_equal(put(user, ONE, name, 5), 0);
	}
	memcpy(home, table_now()->home, sizeof home);
	assert_int_equal(ask(kind, paths[moved]), 0);
	for (uint64_t until = clock_ns() + PATIENCE_NS; target < 0 && clock_ns() < until;) {
		const struct disk_table *t = table_now();

		for (int i = 0; i < MANY && target < 0; i++) {
			unsigned slot = slot_of_many(i);

			target = t->home[slot] != home[slot] ? t->home[slot] : -1;
		}
		turn_for(NS_PER_MS);
	}
	assert_true(target > 0 && move_info().is_running);
	mem_disk_fail(paths[target], 0);
	for (int i = 0; i < MANY; i++) {
		bool is_there = table_now()->home[slot_of_many(i)] == target;

		snprintf(name, sizeof name, "n%d", i);
		assert_int_equal(put(user, ONE, name, 6), is_there ? -EROFS : 0);
		assert_int_equal(get(user, ONE, name), is_there ? 5 : 6);
		at_target += is_there;
	}
	assert_in_range(at_target, 1, MANY - 1);
	store_set_move_rate(st, 0);
	wait_for_trouble();
	assert_false(set_is_in(set_of(st), target));
	for (int i = 0; i < MANY; i++)
		at_target -= table_now()->home[slot_of_many(i)] == target;
	assert_int_equal(at_target, 0);
	must_go_on(kind == DISK_DRAIN ? moved : -1);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "n%d", i);
		assert_true(get(user, ONE, name) > 0);
	}
	end();
}

static void
test_target_fails_after(void **state)
{
	fail_after_switch(DISK_DRAIN, 3, 0);
}

static void
test_new_fails_after(void **state)
{
	fail_after_switch(DISK_ADD, 2, 2);
}

/* ---- cancellations, and the end of a drain ---- */

static struct mem_image *answered; /* the disks at the answer */

static void
copy_disks(void)
{
	answered = mem_disks_copy(NULL);
}

/* A cancellation counts from its answer on, whatever comes then. */
static void
test_cancel_cut(void **state)
{
	int left;

	rig_begin(seed, 2);
	conf.disks.move_rate = 1;
	up();
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	put_heavy(0);
	assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
	after_answer = copy_disks;
	assert_int_equal(ask(DISK_CANCEL, NULL), 0);
	after_answer = NULL;
	left = table_count(table_now(), 0);
	down();
	mem_disks_put_back(answered);
	mem_image_free(answered);
	conf.disks.move_rate = 0;
	up();
	assert_true(wait_quiet());
	assert_true(state_of(0) == UNIT_OK);
	assert_int_equal(table_count(table_now(), 0), left);
	assert_true((table_now()->draining | table_now()->filling) == 0);
	for (int i = 0; i < 4; i++) {
		char name[32];

		assert_int_equal(get(user, ONE, name_on(name, ONE, 0, -1, i)), 4);
	}
	assert_int_equal(ask(DISK_CANCEL, NULL), -ENOENT);
	end();
}

static unsigned fails_after;

static void
fail_second(void)
{
	mem_disk_fail(paths[1], fails_after);
}

/* A disk that fails while remains of a cancelled drain are removed makes no drain of it again. */
static void
test_cancel_fails(void **state)
{
	bool has_failed = true;

	for (fails_after = 1; has_failed; fails_after++) {
		unsigned records;

		begin(3);
		put_heavy(0);
		store_set_move_rate(st, 1);
		records = mem_disk_records(paths[1]);
		assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
		while (mem_disk_records(paths[1]) < records + 2)
			store_user_turn(user);
		after_answer = fail_second;
		assert_int_equal(ask(DISK_CANCEL, NULL), 0);
		after_answer = NULL;
		store_set_move_rate(st, 0);
		turn_for(10 * NS_PER_S);
		has_failed = mem_disk_has_failed(paths[1]);
		assert_int_equal(table_now()->draining & ~table_now()->filling, 0);
		must_have(true);
		restart();
		assert_true(wait_quiet());
		assert_int_equal(table_now()->draining, 0);
		assert_true(state_of(0) == UNIT_OK);
		must_have_both();
		end();
		assert_true(fails_after < 200);
	}
	assert_true(fails_after > 3);
}

static void
hang_second(void)
{
	mem_disk_hang(paths[1], true);
}

/* A cancelled drain leaves two disks: a caller that requests two copies then is told to come again, and not that there is one disk. */
static void
test_cancel_pairs(void **state)
{
	rig_begin(seed, 2);
	conf.disks.move_rate = 1;
	up();
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	put_heavy(0);
	assert_int_equal(ask(DISK_DRAIN, paths[0]), 0);
	while (!mem_disk_records(paths[1]))
		store_user_turn(user);
	assert_int_equal(make_bucket(user, TWO, 2), -EDOM);
	after_answer = hang_second;
	assert_int_equal(ask(DISK_CANCEL, NULL), 0);
	after_answer = NULL;
	assert_int_equal(make_bucket(user, TWO, 2), -EAGAIN);
	mem_disk_hang(paths[1], false);
	assert_true(wait_quiet());
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	end();
}

/* Returns the unit with this UUID; -1. */
static int
unit_with(const uint8_t uuid[UUID_BYTES])
{
	char text[UUID_TEXT];

	uuid_write(text, uuid);
	for (int i = 0; i < store_unit_nr(st); i++) {
		struct store_unit_info info;

		store_unit_info(st, i, &info);
		if (strcmp(info.uuid, text) == 0)
			return i;
	}
	return -1;
}

/* A disk that a start has found drained is added again at once, as another disk with the same path, and a drain by this path is of that. */
static void
come_again(int unit, int disk)
{
	assert_int_equal(ask(DISK_ADD, paths[disk]), 0);
	assert_true(wait_quiet());
	assert_int_equal(store_unit_nr(st), 4);
	assert_true(state_of(unit) == UNIT_DRAINED && state_of(3) == UNIT_OK);
	assert_int_equal(ask(DISK_ADD, paths[disk]), -EEXIST);
	assert_int_equal(ask(DISK_DRAIN, paths[disk]), 0);
	assert_true(wait_quiet());
	assert_true(state_of(3) == UNIT_DRAINED);
}

static int unaware; /* starts in which the drained disk was found to be one */

/* The power goes after so many changes of a drain: the next start goes well with the disk, and knows that it is drained, or drains it; later
 * starts do not count it. */
static void
leave_cut_at(int leaver, uint64_t changes)
{
	struct mem_image *image;
	uint8_t uuid[UUID_BYTES];
	int unit;

	begin(3);
	memcpy(uuid, mem_disk_uuid(paths[leaver]), UUID_BYTES);
	mem_disks_cut_after(changes);
	assert_int_equal(ask(DISK_DRAIN, paths[leaver]), 0);
	assert_true(wait_quiet());
	image = mem_disks_cut();
	down();
	if (image)
		mem_disks_put_back(image);
	mem_image_free(image);
	use(3);
	up();
	assert_true(wait_quiet());
	unit = unit_with(uuid);
	if (unit >= 0) {
		assert_true(state_of(unit) == UNIT_DRAINED);
		assert_int_equal(ask(DISK_DRAIN, paths[leaver]), -EALREADY);
		if (set_unit(set_of(st), unit)->engine == SET_NOWHERE && !unaware++)
			come_again(unit, leaver);
	}
	must_have_both();
	restart();
	assert_int_equal(store_unit_nr(st), 2);
	down();
	configure_without(leaver);
	up();
	assert_int_equal(store_unit_nr(st), 2);
	must_have_both();
	end();
}

/* The changes at the end of a drain are those of the disk that leaves. */
static void
test_leave_cut(void **state)
{
	unaware = 0;
	for (int leaver = 0; leaver < 3; leaver++) {
		uint64_t changes;

		begin(3);
		changes = mem_disks_changes();
		assert_int_equal(ask(DISK_DRAIN, paths[leaver]), 0);
		assert_true(wait_quiet());
		changes = mem_disks_changes() - changes;
		end();
		for (uint64_t i = changes - 3; i <= changes; i++)
			leave_cut_at(leaver, i);
	}
	assert_true(unaware > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_drain_together),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_fails),
		cmocka_unit_test(test_only_fails),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_paced),
		cmocka_unit_test(test_drained),
		cmocka_unit_test(test_list_while_leaving),
		cmocka_unit_test(test_list_after_delete),
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_after_drain),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_forget_other),
		cmocka_unit_test(test_add_fails),
		cmocka_unit_test(test_target_fails),
		cmocka_unit_test(test_target_fails_frozen),
		cmocka_unit_test(test_target_fails_after),
		cmocka_unit_test(test_new_fails_after),
		cmocka_unit_test(test_cancel_cut),
		cmocka_unit_test(test_cancel_fails),
		cmocka_unit_test(test_cancel_pairs),
		cmocka_unit_test(test_leave_cut),
		cmocka_unit_test(test_new_fails_in_map),
		cmocka_unit_test(test_target_fails_in_map),
		cmocka_unit_test(test_no_room_for_copies),
	};

	seed = turns_seed();
	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
