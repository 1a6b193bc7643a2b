/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What extent/disk/file.c says of real files: reads leave no time behind, and the depth of the device below
 * is the kernel's.
 */
#include "extent/disk/file.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char dir[128];
static int dir_fd = -1;

static int
setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof dir, "%s/gantry-file.XXXXXX", tmp ? tmp : "/var/tmp");
	if (!mkdtemp(dir))
		return -1;
	dir_fd = file_open_dir(dir, false);
	return dir_fd < 0 ? -1 : 0;
}

static int
teardown(void **state)
{
	file_unlink(dir_fd, "f");
	file_close(dir_fd);
	return rmdir(dir);
}

/* A file of one block, last read in 2001. */
static int
old_file(void)
{
	struct timespec times[2] = { { .tv_sec = 1000000000 }, { .tv_nsec = UTIME_NOW } };
	int fd = file_open(dir_fd, "f", true);
	void *buf;

	if (fd == -EINVAL)
		skip(); /* no O_DIRECT here */
	assert_true(fd >= 0);
	assert_int_equal(posix_memalign(&buf, 4096, 4096), 0);
	memset(buf, 7, 4096);
	assert_int_equal(pwrite(fd, buf, 4096, 0), 4096);
	free(buf);
	assert_int_equal(futimens(fd, times), 0);
	return fd;
}

static void
test_no_read_time(void **state)
{
	int fd = old_file();
	struct stat st;
	void *buf;

	assert_int_equal(posix_memalign(&buf, 4096, 4096), 0);
	assert_int_equal(pread(fd, buf, 4096, 0), 4096);
	free(buf);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_atime, 1000000000);
	file_close(fd);
	file_unlink(dir_fd, "f");
}

/* Only the owner may ask for that; who else may open the file still can. */
static void
test_not_the_owner(void **state)
{
	int fd;

	if (geteuid() != 0)
		skip();
	file_close(old_file());
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(fchmodat(dir_fd, "f", 0666, 0), 0);
	assert_int_equal(seteuid(65534), 0);
	fd = file_open(dir_fd, "f", false);
	assert_int_equal(seteuid(0), 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFL) & (O_NOATIME | O_DIRECT), O_DIRECT);
	file_close(fd);
	file_unlink(dir_fd, "f");
}

static void
test_queue_depth(void **state)
{
	unsigned depth = file_queue_depth(dir_fd), want = 0;
	char path[128];
	struct stat st;
	FILE *f = NULL;

	assert_int_equal(fstat(dir_fd, &st), 0);
	for (int up = 0; up < 2 && !f; up++) {
		snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%squeue/nr_requests", major(st.st_dev),
			 minor(st.st_dev), up ? "../" : "");
		f = fopen(path, "re");
	}
	if (f) {
		assert_int_equal(fscanf(f, "%u", &want), 1);
		fclose(f);
	}
	print_message("%u:%u takes %u requests\n", major(st.st_dev), minor(st.st_dev), depth);
	/* A device that is made of others has a depth of its own that says nothing. */
	if (want && depth != want) {
		snprintf(path, sizeof path, "/sys/dev/block/%u:%u/slaves", major(st.st_dev),
			 minor(st.st_dev));
		assert_int_equal(access(path, R_OK), 0);
	}
	if (!want)
		print_message("(the kernel does not say)\n");
	assert_int_equal(file_queue_depth(-1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_read_time),
		cmocka_unit_test(test_not_the_owner),
		cmocka_unit_test(test_queue_depth),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
