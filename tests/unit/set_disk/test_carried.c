/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUTs whose keys go to another disk between their beginning and their commit.  These are on files because the bytes and parts that a disk
 * gives back of a PUT in progress, in all kinds of extents, are tested; set/test_mem_carried has all else.
 */
#include "extent/engine.h"

#include "disks_rig.h"
#include "extent/disk/format.h"
#include "tests/fake/fault_ring.h"
#include "tests/unit/set/put_steps.h"

static _Atomic bool is_unreadable; /* bytes of objects on the first disk */

static int
hook(const struct fault_io *io)
{
	return is_unreadable && io->kind == FAULT_READ && strncmp(io->name, "seg-", 4) == 0 &&
			       strncmp(io->path, dir[0], strlen(dir[0])) == 0
		       ? -EIO
		       : 0;
}

static int
setup(void **state)
{
	fault_ring_hook = hook;
	is_unreadable = false;
	for (int i = 0; i < DISKS; i++) {
		dir_make(dir[i]);
		disks[i] = (struct store_disk_conf){ .path = dir[i], .size_bytes = 320 * MIB };
	}
	use(2);
	conf.disks.heal_after_ns = 1000 * NS_PER_S;
	if (store_format(&conf, false, err, sizeof err) < 0)
		fail_msg("%s", err);
	must_start();
	assert_int_equal(make_with("b", 1), 0);
	return 0;
}

static int
teardown(void **state)
{
	is_unreadable = false;
	stop();
	end();
	return 0;
}

/* ---- all kinds ---- */

static void
test_objects(void **state)
{
	struct kind all[KINDS + 1];

	memcpy(all, kinds, sizeof kinds);
	all[KINDS] = (struct kind){ FMT_CHUNK_BYTES + 2 * MIB + 1, true };
	put_kinds("b", all, KINDS + 1, 2);
}

static void
test_parts(void **state)
{
	put_parts("b", 2);
}

/* ---- disks that fail ---- */

static void
test_old_unreadable(void **state)
{
	uint64_t was[2];
	char name[32];

	note_room(was, 2);
	for (int i = 0; i < 3; i++) {
		struct store_key k = key_at(name, "b", 0);

		begin_put(&slow[i], &k, i == 2 ? 5 : 3 * MIB, true, NULL, 0);
	}
	drain(dir[0]);
	is_unreadable = true;
	assert_int_equal(commit_put(&slow[0]), -EXDEV);
	assert_int_equal(look(&slow[0].key), -ENOENT);
	assert_int_equal(commit_put(&slow[2]), 0); /* which is in memory */
	is_unreadable = false;
	assert_int_equal(commit_put(&slow[1]), 0);
	must_be_there(&slow[1], slow[1].put.version);
	assert_int_equal(delete_key(&slow[1].key), 1);
	wait_free(0, was[0]);
	wait_free(1, was[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_objects, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_unreadable, setup, teardown),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_carried", tests, NULL, NULL);
}
