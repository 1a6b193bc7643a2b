/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a disk that were removed, cut, or replaced by others: a start refuses and names the file; a repair
 * lists the objects that are lost, and those alone fail afterwards; their room comes back.
 */
/* In front of the fixture, whose names they use for others. */
#include "crumbs.h"

#include "fixture.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define OBJECTS 24
#define SIZE (700 * 1024ull + 11)

static char said[65536];

static int
setup(void **state)
{
	int r = make_store(100 * MIB);

	close_store();
	return r;
}

static void
say(void *cookie, const char *line)
{
	size_t at = strlen(said);

	snprintf(said + at, sizeof said - at, "%s\n", line);
}

static int
fsck(enum fsck_mode mode)
{
	said[0] = 0;
	return store_fsck(&conf, mode, say, NULL);
}

static void
path_of(char path[256], const char *name)
{
	snprintf(path, 256, "%s/%s", dir, name);
}

static void
remove_file(const char *name)
{
	char path[256];

	path_of(path, name);
	assert_int_equal(unlink(path), 0);
}

static bool
exists(const char *name)
{
	char path[256];

	path_of(path, name);
	return access(path, F_OK) == 0;
}

static const char *
name_of(int i)
{
	static char name[16];

	snprintf(name, sizeof name, "secret-%02d", i);
	return name;
}

static void
put_all(void)
{
	open_store();
	for (int i = 0; i < OBJECTS; i++)
		assert_int_equal(put_simple(&l, "b", name_of(i), SIZE, (uint64_t)i), 0);
	assert_int_equal(put_simple(&l, "b", "small", 100, 99), 0);
	/* The helper makes segments ahead of need, and a store that is closed makes none. */
	wait_segments(&l);
	close_store();
}

/* A start names the file, and no key. */
static void
must_refuse(int error, const char *file)
{
	assert_int_equal(store_start(&conf, &st, err, sizeof err), error);
	st = NULL;
	assert_non_null(strstr(err, file));
	assert_null(strstr(err, "secret"));
}

static bool
is_listed(int i)
{
	char want[64];

	snprintf(want, sizeof want, "lost: object 'b/%s'", name_of(i));
	return strstr(said, want) != NULL;
}

/* What the repair listed is damaged, and the rest is whole. */
static int
check_all(void)
{
	int lost = 0;

	open_store();
	for (int i = 0; i < OBJECTS; i++) {
		bool listed = is_listed(i);

		assert_int_equal(obj_check(&l, "b", name_of(i), SIZE, (uint64_t)i), listed ? -EBADMSG : 0);
		lost += listed;
	}
	assert_int_equal(obj_check(&l, "b", "small", 100, 99), 0);
	return lost;
}

/* Repaired, the lost ones are there to be written again or deleted, and the room comes back. */
static void
repair_and_use(const char *file, bool all_listed)
{
	static char listed[65536];
	int lost, r;

	assert_int_equal(fsck(FSCK_LOOK), -ENOTRECOVERABLE);
	if (!strstr(said, file))
		fail_msg("fsck does not say \"%s\", but:\n%s", file, said);
	assert_non_null(strstr(said, "lost: object 'b/secret-"));
	assert_int_equal(fsck(FSCK_PREVIEW), 1);
	memcpy(listed, said, sizeof listed);
	r = store_start(&conf, &st, err, sizeof err);
	assert_true(r == -ENOTRECOVERABLE || r == -EINVAL);
	st = NULL;
	assert_int_equal(fsck(FSCK_REPAIR), 1);
	for (int i = 0; i < OBJECTS; i++) {
		bool is = is_listed(i);
		char want[64];

		snprintf(want, sizeof want, "lost: object 'b/%s'", name_of(i));
		assert_int_equal(is, strstr(listed, want) != NULL);
	}
	lost = all_listed ? check_all() : 1;
	assert_in_range(lost, 1, OBJECTS - 1);
	if (!all_listed)
		open_store();
	assert_int_equal(put_simple(&l, "b", name_of(0), SIZE, 0), 0);
	for (int i = 1; i < OBJECTS; i++)
		assert_int_equal(obj_delete(&l, "b", name_of(i), NULL), 1);
	wait_free(80 * MIB, 12 * MIB);
	for (int i = 0; i < OBJECTS; i++)
		assert_int_equal(put_simple(&l, "b", name_of(i), SIZE, (uint64_t)i), 0);
	close_store();
	assert_int_equal(fsck(FSCK_LOOK), 0);
}

static void
test_removed(void **state)
{
	put_all();
	remove_file("seg-0001");
	must_refuse(-ENOTRECOVERABLE, "seg-0001 is not there");
	repair_and_use("seg-0001 is not there", true);
}

static void
test_two_removed(void **state)
{
	put_all();
	remove_file("seg-0001");
	remove_file("seg-0002");
	must_refuse(-ENOTRECOVERABLE, "seg-0001 is not there; 1 more");
	repair_and_use("seg-0002 is not there", true);
}

static void
test_cut(void **state)
{
	char path[256];

	put_all();
	path_of(path, "seg-0001");
	assert_int_equal(truncate(path, 3 * MIB + 123), 0);
	must_refuse(-ENOTRECOVERABLE, "seg-0001 is damaged");
	repair_and_use("seg-0001 is not as large", true);
}

/* One file in the place of another: both are lost, and the strange one is kept under another name. */
static void
test_replaced(void **state)
{
	char from[256], to[256];
	bool has_marks;

	put_all();
	path_of(from, "seg-0002");
	path_of(to, "seg-0001");
	assert_int_equal(rename(from, to), 0);
	has_marks = store_start(&conf, &st, err, sizeof err) == -EINVAL;
	st = NULL;
	must_refuse(has_marks ? -EINVAL : -ENOTRECOVERABLE, has_marks ? "seg-0001" : "seg-0002");
	if (has_marks) {
		assert_int_equal(fsck(FSCK_LOOK), -EINVAL);
		assert_int_equal(fsck(FSCK_PREVIEW), 1);
		assert_non_null(strstr(said, "seg-0001 is not this disk's"));
		assert_false(exists("seg-0001.foreign"));
		assert_int_equal(fsck(FSCK_REPAIR), 1);
		assert_true(exists("seg-0001.foreign"));
		assert_in_range(check_all(), 1, OBJECTS - 1);
		close_store();
	} else {
		repair_and_use("seg-0002 is not there", false);
	}
}

/* Nothing is in it: it is made again when it is needed. */
static void
test_empty_one(void **state)
{
	put_all();
	assert_true(exists("seg-0003"));
	for (int i = 4; i < 16; i++) {
		char name[32];

		snprintf(name, sizeof name, "seg-%04d", i);
		if (exists(name))
			remove_file(name);
	}
	assert_int_equal(fsck(FSCK_LOOK), 0);
	said[0] = 0;
	assert_int_equal(check_all(), 0);
	close_store();
}

/* Without the log the disk is as at its newest snapshot. */
static void
test_log(void **state)
{
	char path[256];

	for (int cut = 0; cut < 2; cut++) {
		open_store();
		for (int i = 0; i < 10; i++)
			assert_int_equal(put_simple(&l, "b", name_of(i), 5000, (uint64_t)i), 0);
		make_snapshot();
		make_snapshot();
		for (int i = 10; i < 15; i++)
			assert_int_equal(put_simple(&l, "b", name_of(i), 5000, (uint64_t)i), 0);
		close_store();
		path_of(path, "log");
		assert_int_equal(cut ? truncate(path, 4096) : unlink(path), 0);
		must_refuse(-ENOTRECOVERABLE, cut ? "log is damaged" : "log is not there");
		assert_int_equal(fsck(FSCK_LOOK), -ENOTRECOVERABLE);
		assert_int_equal(fsck(FSCK_PREVIEW), 1);
		assert_non_null(strstr(said, "after the newest snapshot"));
		must_refuse(-ENOTRECOVERABLE, "log");
		assert_int_equal(fsck(FSCK_REPAIR), 1);
		open_store();
		for (int i = 0; i < 15; i++)
			assert_int_equal(obj_check(&l, "b", name_of(i), 5000, (uint64_t)i),
					 i < 10 ? 0 : -ENOENT);
		assert_int_equal(put_simple(&l, "b", "new", SIZE, 5), 0);
		close_store();
		assert_int_equal(fsck(FSCK_LOOK), 0);
	}
}

static void
unstamped(void)
{
	check(put_simple(&l, "b", "first", 200, 1) == 0);
	wait_stamped(&l);
	check(put_simple(&l, "b", "large", 200000, 72) == 0);
	check(put_simple(&l, "b", "last", 200, 3) == 0);
}

/* In the tail, bytes that went with their file are no sign of a write that was cut: what came after stays. */
static void
test_tail(void **state)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		open_store();
		unstamped();
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	for (int i = 0; i < 16; i++) {
		char name[32];

		snprintf(name, sizeof name, "seg-%04d", i);
		if (exists(name))
			remove_file(name);
	}
	must_refuse(-ENOTRECOVERABLE, "is not there");
	assert_int_equal(fsck(FSCK_REPAIR), 1);
	assert_non_null(strstr(said, "lost: object 'b/large'"));
	open_store();
	assert_int_equal(obj_check(&l, "b", "first", 200, 1), 0);
	assert_int_equal(obj_check(&l, "b", "large", 200000, 72), -EBADMSG);
	assert_int_equal(obj_check(&l, "b", "last", 200, 3), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_removed, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_two_removed, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_cut, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_replaced, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_empty_one, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_log, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_tail, setup, remove_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
