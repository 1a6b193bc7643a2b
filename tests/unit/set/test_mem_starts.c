/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts of a set over disks in memory: with any disk away or behind, cut short after any step, with a disk that fails at any step.
 * SEED= repeats a run.
 */
#include "mem_rig.h"

static uint64_t seed;

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

/* Changes some keys with two copies, and the buckets, while a disk is away or fails, which leaves a start something to do. */
static void
change_some(void)
{
	for (int i = 0; i < RIG_KEYS; i += 2) {
		rig_value[1][i] = i % 4 ? 0 : rig_value[1][i] + 50;
		if (rig_value[1][i])
			assert_int_equal(put_again(user, TWO, rig_name(i), rig_value[1][i]), 0);
		else
			assert_int_equal(del(user, TWO, rig_name(i)), 1);
	}
}

/* What a disk that is away has is 503, and nothing else. */
static void
test_absent(void **state)
{
	for (int away = 0; away < 3; away++) {
		struct listing l;

		begin(3);
		down();
		take_away(away);
		up();
		must_have(true);
		for (int i = 0; i < RIG_KEYS; i++) {
			struct store_key k = key_of(ONE, rig_name(i));
			bool is_away = table_find(mem_disk_table(paths[(away + 1) % 3]),
						  mem_disk_uuid(paths[away])) ==
				       mem_disk_table(paths[(away + 1) % 3])->home[set_slot(&k)];

			assert_int_equal(get(user, ONE, rig_name(i)),
					 is_away ? -ENODEV : (int)rig_value[0][i]);
			assert_int_equal(put(user, ONE, rig_name(i), rig_value[0][i]), is_away ? -ENODEV : 0);
		}
		assert_int_equal(list_names(user, ONE, &l), -ENODEV);
		assert_int_equal(list_names(user, TWO, &l), RIG_KEYS);
		assert_true(remove_bucket(user, ONE) < 0);
		change_some();
		down();
		bring_back(away);
		up();
		must_have_both();
		must_be_clean(3);
		end();
	}
}

/* Half of the disks, or fewer, are no store. */
static void
test_too_few(void **state)
{
	begin(4);
	down();
	for (int away = 0; away < 2; away++) {
		mem_disk_absent(paths[away], true);
		memcpy(accepted[away], mem_disk_uuid(paths[away]), UUID_BYTES);
	}
	conf.disks.accept_missing_nr = 2;
	assert_true(start() < 0);
	bring_back(0);
	assert_true(start() < 0);
	conf.disks.accept_missing_nr = 2;
	up();
	down();
	bring_back(1);
	up();
	must_have_both();
	end();
}

/* A start that has something to do on every disk is cut after each of its steps; the next one makes it whole. */
static void
test_cut(void **state)
{
	bool is_cut = true;

	for (uint64_t changes = 1; is_cut; changes++) {
		struct mem_image *image;

		begin(3);
		mem_disk_fail(paths[1], 0);
		change_some();
		assert_int_equal(make_bucket(user, "late", 2), 0);
		down();
		mem_disks_cut_after(changes);
		up();
		image = mem_disks_cut();
		is_cut = image != NULL;
		down();
		if (is_cut)
			mem_disks_put_back(image);
		mem_image_free(image);
		up();
		must_have_both();
		assert_int_equal(put(user, "late", "key", 7), 0);
		end();
		assert_true(changes < 200);
	}
}

/* A disk fails at each step of a start, which goes on without it. */
static void
test_fails(void **state)
{
	for (int disk = 0; disk < 3; disk++) {
		bool has_failed = true;

		for (unsigned changes = 1; has_failed; changes++) {
			begin(3);
			mem_disk_fail(paths[1], 0);
			change_some();
			assert_int_equal(make_bucket(user, "late", 2), 0);
			down();
			memcpy(accepted[0], mem_disk_uuid(paths[disk]), UUID_BYTES);
			conf.disks.accept_missing_nr = 1;
			mem_disk_fail(paths[disk], changes);
			if (start() == 0) {
				has_failed = mem_disk_is_open(paths[disk]) ? mem_disk_has_failed(paths[disk])
									   : true;
				if (disk == 1)
					must_have(true);
				down();
			} else {
				/* The one that had failed before is behind: with another one away nobody has all. */
				assert_int_not_equal(disk, 1);
			}
			conf.disks.accept_missing_nr = 0;
			up();
			must_have_both();
			end();
			assert_true(changes < 200);
		}
	}
}

/* A disk is put back as it was before: what others have counts. */
static void
test_older_copy(void **state)
{
	for (int disk = 0; disk < 3; disk++) {
		struct mem_image *image;

		begin(3);
		down();
		image = mem_disks_copy(paths[disk]);
		up();
		change_some();
		assert_int_equal(make_bucket(user, "late", 2), 0);
		assert_int_equal(put(user, "late", "key", 7), 0);
		down();
		mem_disks_put_back(image);
		mem_image_free(image);
		up();
		must_have(true);
		assert_int_equal(get(user, "late", "key"), 7);
		assert_true(wait_quiet());
		must_have(true);
		assert_int_equal(get_second(user, "late", "key"), 7);
		assert_true(mem_disks_same(paths[0], paths[1]) && mem_disks_same(paths[1], paths[2]));
		end();
	}
}

/* It is an older copy at a start without the other one of some slots: these wait for that. */
static void
test_older_alone(void **state)
{
	struct mem_image *image;
	int waiting = 0;

	begin(3);
	down();
	image = mem_disks_copy(paths[0]);
	up();
	change_some();
	down();
	mem_disks_put_back(image);
	mem_image_free(image);
	take_away(1);
	for (int starts = 0; starts < 2; starts++) {
		up();
		for (int i = 0; i < RIG_KEYS; i++) {
			int r = get(user, TWO, rig_name(i));

			assert_true(r == -ENODEV || r == (int)rig_value[1][i]);
			if (r == -ENODEV)
				assert_int_equal(put(user, TWO, rig_name(i), 9), -ENODEV);
			waiting += r == -ENODEV;
		}
		down();
	}
	assert_true(waiting > 0);
	bring_back(1);
	up();
	must_have_both();
	end();
}

/* A bucket that was removed and made again is another one: what the disk that was away has of the first one is not in it. */
static void
test_bucket_again(void **state)
{
	for (int away = 0; away < 3; away++) {
		begin(3);
		for (int i = 0; i < RIG_KEYS; i++)
			assert_int_equal(del(user, TWO, rig_name(i)), 1);
		assert_int_equal(put(user, TWO, "old", 3), 0);
		mem_disk_fail(paths[away], 0);
		assert_int_equal(put_again(user, TWO, "old", 4), 0);
		down();
		up();
		assert_int_equal(get(user, TWO, "old"), 4);
		assert_true(wait_quiet());
		assert_int_equal(del(user, TWO, "old"), 1);
		assert_int_equal(remove_bucket(user, TWO), 0);
		mem_disk_fail(paths[away], 0);
		assert_int_equal(make_bucket(user, TWO, 2), 0);
		down();
		up();
		assert_true(wait_quiet());
		assert_int_equal(get(user, TWO, "old"), 0);
		assert_int_equal(put(user, TWO, "new", 5), 0);
		assert_int_equal(get_second(user, TWO, "new"), 5);
		end();
	}
}

/* One that is given up is no member any more: what its slots had begins from the other copy, and it is refused if it comes back. */
static void
test_forget(void **state)
{
	struct store_conf all;
	char said[512];

	begin(3);
	down();
	all = conf;
	conf.disks.nr = 2;
	memcpy(accepted[0], mem_disk_uuid(paths[2]), UUID_BYTES);
	conf.disks.forget = (const uint8_t(*)[UUID_BYTES])accepted;
	conf.disks.forget_nr = 1;
	assert_int_equal(store_task(&conf, TASK_FORGET, said, sizeof said), 0);
	conf = all;
	assert_true(start() < 0);
	conf.disks.nr = 2;
	up();
	must_have(true);
	assert_true(wait_quiet());
	must_have(true);
	for (int i = 0; i < RIG_KEYS; i++)
		assert_int_equal(get_second(user, TWO, rig_name(i)), rig_value[1][i]);
	end();
}

/* Disks are told by what they say of themselves, in whatever order they are configured. */
static void
test_order(void **state)
{
	begin(3);
	down();
	disks[0].path = paths[2];
	disks[2].path = paths[0];
	up();
	must_have_both();
	down();
	disks[2].path = paths[2];
	assert_true(start() < 0);
	disks[2].path = paths[3];
	assert_true(start() < 0);
	disks[2].path = paths[0];
	up();
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absent),       cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_cut),          cmocka_unit_test(test_fails),
		cmocka_unit_test(test_older_copy),   cmocka_unit_test(test_older_alone),
		cmocka_unit_test(test_bucket_again), cmocka_unit_test(test_forget),
		cmocka_unit_test(test_order),
	};

	seed = turns_seed();
	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
