/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block device as a disk: a loop device, where there are any and we may.  Put, get, restart, the lock,
 * format over data.
 */
#include "harness.h"

#include <linux/loop.h>
#include <sys/ioctl.h>

static char dir[128], dev[64];
static int ctl = -1, loop_fd = -1;

static int
loop_setup(void)
{
	char path[160];
	int nr, fd;

	ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (ctl < 0)
		return -1;
	nr = ioctl(ctl, LOOP_CTL_GET_FREE);
	if (nr < 0)
		return -1;
	snprintf(dev, sizeof dev, "/dev/loop%d", nr);
	snprintf(path, sizeof path, "%s/image", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, 100 * (off_t)MIB) < 0)
		return -1;
	loop_fd = open(dev, O_RDWR | O_CLOEXEC);
	if (loop_fd < 0 || ioctl(loop_fd, LOOP_SET_FD, fd) < 0)
		return -1;
	close(fd);
	return 0;
}

static void
test_device(void **state)
{
	struct store_disk_conf dc;
	struct store_conf conf = conf_for(&dc, dev, 0);
	struct store *st, *second;
	struct store_unit_info info;
	struct loop l;
	char err[512] = "";

	assert_int_equal(store_format(&conf, false, err, sizeof err), 0);
	assert_int_equal(store_format(&conf, false, err, sizeof err), -EALREADY);
	for (int i = 0; i < 3; i++) {
		/* The kernel may let a closed device go a little later. */
		conf.disks.lock_wait_ns = PATIENCE_NS;
		if (store_start(&conf, &st, err, sizeof err) < 0)
			fail_msg("%s", err);
		conf.disks.lock_wait_ns = 50 * NS_PER_MS;
		assert_true(store_start(&conf, &second, err, sizeof err) < 0);
		loop_start(&l, st);
		if (i == 0) {
			assert_int_equal(bucket_make(&l, "b"), 0);
			assert_int_equal(put_simple(&l, "b", "small", 5000, 1), 0);
			assert_int_equal(put_simple(&l, "b", "large", 9 * MIB, 2), 0);
		}
		assert_int_equal(obj_check(&l, "b", "small", 5000, 1), 0);
		assert_int_equal(obj_check(&l, "b", "large", 9 * MIB, 2), 0);
		store_unit_info(st, 0, &info);
		assert_int_equal(info.size_bytes, 100 * MIB);
		loop_stop(&l);
		store_stop(st);
	}
	conf.disks.lock_wait_ns = PATIENCE_NS;
	assert_int_equal(store_fsck(&conf, false, NULL, NULL), 0);
	assert_int_equal(store_format(&conf, true, err, sizeof err), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_device) };
	int r = 77;

	log_init(LOG_PLAIN, LOG_WARN);
	dir_make(dir);
	if (loop_setup() < 0)
		printf("skipped: no loop device (%s)\n", strerror(errno));
	else
		r = cmocka_run_group_tests_name("store_device", tests, NULL, NULL);
	if (loop_fd >= 0) {
		ioctl(loop_fd, LOOP_CLR_FD, 0);
		close(loop_fd);
	}
	if (ctl >= 0)
		close(ctl);
	dir_remove(dir);
	return r;
}
