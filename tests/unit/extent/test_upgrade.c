/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of an earlier format version: a start refuses it and changes nothing, the named step brings it to this one,
 * also when it is cut short at any of its writes; and then everything is there.
 */
#include "fixture.h"
#include "old.h"

#include "tests/fake/fault_ring.h"

#include <sys/stat.h>

static int fail_at, write_nr; /* the write that fails, from 0; -1: none */
static char said[512];

static int
hook(const struct fault_io *io)
{
	return io->kind == FAULT_WRITE && write_nr++ == fail_at ? -EIO : 0;
}

/* A sum over the names, times and bytes of all the store's files. */
static uint64_t
sum_of_store(void)
{
	static const char *const names[] = { "super", "super2", "log", "seg-0000", "seg-0001", "seg-0002" };
	static char buf[MIB];
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[256];
		struct stat stat;
		ssize_t n;
		int fd;

		path_of(path, names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		sum = crc64_nvme(sum, &fd, fd < 0 ? sizeof fd : 0);
		if (fd < 0)
			continue;
		assert_int_equal(fstat(fd, &stat), 0);
		sum = crc64_nvme(sum, &stat.st_mtim, sizeof stat.st_mtim);
		while ((n = read(fd, buf, sizeof buf)) > 0)
			sum = crc64_nvme(sum, buf, (size_t)n);
		close(fd);
	}
	return sum;
}

static int
setup(void **state)
{
	int r;

	fail_at = -1;
	fault_ring_hook = hook;
	r = make_store(100 * MIB);
	for (int i = 0; r == 0 && i < 10; i++) {
		char name[32];

		snprintf(name, sizeof name, "k%d", i);
		r = put_simple(&l, "b", name, 100 + (uint64_t)i * 9000, (uint64_t)i);
		if (i == 5)
			make_snapshot();
	}
	close_store();
	return r;
}

static void
is_whole(void)
{
	open_store();
	for (int i = 0; i < 10; i++) {
		char name[32];

		snprintf(name, sizeof name, "k%d", i);
		assert_int_equal(obj_check(&l, "b", name, 100 + (uint64_t)i * 9000, (uint64_t)i), 0);
	}
	assert_int_equal(put_simple(&l, "b", "new", 50000, 1), 0);
	close_store();
	assert_int_equal(store_fsck(&conf, false, NULL, NULL), 0);
}

static void
say(void *cookie, const char *line)
{
	snprintf(said, sizeof said, "%s", line);
}

static void
test_refused(void **state)
{
	char want[64];
	uint64_t sum;

	make_old(OLD_VERSION);
	sum = sum_of_store();
	snprintf(want, sizeof want, "is of format %u,", OLD_VERSION);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(store_start(&conf, &st, err, sizeof err), -EINVAL);
		st = NULL;
		assert_non_null(strstr(err, dir));
		assert_non_null(strstr(err, want));
		assert_non_null(strstr(err, "gantryd --upgrade"));
		assert_null(strchr(err, '\n'));
		/* It can be looked at, and nothing else. */
		assert_int_equal(store_fsck(&conf, false, say, NULL), 0);
		assert_int_equal(store_fsck(&conf, true, say, NULL), -EINVAL);
		assert_non_null(strstr(said, "gantryd --upgrade"));
	}
	assert_true(sum_of_store() == sum);
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), 0);
	snprintf(want, sizeof want, "was of format %u, is of format %u now", OLD_VERSION, FMT_VERSION);
	assert_non_null(strstr(said, want));
	sum = sum_of_store();
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), 0);
	assert_non_null(strstr(said, "is of format 3 already"));
	assert_true(sum_of_store() == sum);
	is_whole();
}

/* A version that is not read is refused by start, check, repair and upgrade, and nothing is written. */
static void
test_other_version(void **state)
{
	static const uint32_t others[] = { 0, OLD_VERSION - 1, FMT_VERSION_MAX + 1 };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		char want[128];
		uint64_t sum;

		make_old(others[i]);
		sum = sum_of_store();
		snprintf(want, sizeof want, "(its format is %u, and this one reads %u to %u)", others[i],
			 OLD_VERSION, FMT_VERSION_MAX);
		assert_true(store_start(&conf, &st, err, sizeof err) < 0);
		st = NULL;
		assert_non_null(strstr(err, want));
		assert_true(store_task(&conf, TASK_UPGRADE, said, sizeof said) < 0);
		assert_non_null(strstr(said, want));
		assert_true(store_fsck(&conf, false, say, NULL) < 0);
		assert_true(store_fsck(&conf, true, say, NULL) < 0);
		assert_true(sum_of_store() == sum);
		make_old(FMT_VERSION);
	}
	is_whole();
}

/* Either of the two superblocks suffices after the step. */
static void
test_places(void **state)
{
	char path[256];

	make_old(OLD_VERSION);
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), 0);
	for (int i = 0; i < 2; i++) {
		path_of(path, super_file[i]);
		assert_int_equal(unlink(path), 0);
		is_whole();
		assert_int_equal(access(path, F_OK), 0);
	}
	/* Without both it is no store, and it is not formatted as if there were none while one is there. */
	path_of(path, super_file[0]);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(store_format(&conf, false, err, sizeof err), -EALREADY);
	path_of(path, super_file[1]);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -ENOTRECOVERABLE);
	assert_non_null(strstr(err, "not a Gantry store (there is no super)"));
	st = NULL;
}

/* Each write of the step fails once; then it is made again. */
static void
test_cut_short(void **state)
{
	int failed = 0;

	for (int n = 0;; n++) {
		int r;

		make_old(OLD_VERSION);
		write_nr = 0;
		fail_at = n;
		r = store_task(&conf, TASK_UPGRADE, said, sizeof said);
		fail_at = -1;
		if (r == 0)
			break;
		failed++;
		assert_int_equal(r, -EIO);
		/* The first says who is at it. */
		assert_non_null(
			strstr(said, n == 0 ? "cannot write the host block" : "the step to format 3 failed"));
		assert_int_equal(store_start(&conf, &st, err, sizeof err), -EINVAL);
		assert_non_null(strstr(err, "gantryd --upgrade"));
		st = NULL;
		assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), 0);
		is_whole();
	}
	/* The host block, two superblocks. */
	assert_true(failed >= 3);
	is_whole();
}

/* Who serves has it. */
static void
test_in_use(void **state)
{
	open_store();
	conf.disks.lock_wait_ns = 0;
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), -EBUSY);
	assert_non_null(strstr(said, "locked"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_refused, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_other_version, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_places, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_cut_short, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_in_use, setup, remove_store),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_upgrade", tests, NULL, NULL);
}
