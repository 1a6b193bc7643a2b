/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block device as a disk: a loop device, where there are any and we may.  Put, get, restart, the lock,
 * format over data.
 */
#include "harness.h"

#include "extent/disk/host.h"
#include "set/set.h"
#include "tests/fixtures/old_super.h"

#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

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
	snprintf(path, sizeof path, "%s/image", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, 100 * (off_t)MIB) < 0)
		return -1;
	/* Who else looks for a free one at the same time may have been quicker. */
	for (int i = 0; i < 100; i++) {
		nr = ioctl(ctl, LOOP_CTL_GET_FREE);
		if (nr < 0)
			break;
		snprintf(dev, sizeof dev, "/dev/loop%d", nr);
		loop_fd = open(dev, O_RDWR | O_CLOEXEC);
		if (loop_fd >= 0 && ioctl(loop_fd, LOOP_SET_FD, fd) == 0) {
			close(fd);
			return 0;
		}
		if (loop_fd >= 0)
			close(loop_fd);
		loop_fd = -1;
		if (errno != EBUSY)
			break;
	}
	close(fd);
	return -1;
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

static struct store_disk_conf dc;
static struct store_conf conf;
static char err[512];

/* Writes over the device, behind the daemon's back. */
static void
write_over(uint64_t off, const void *bytes, size_t len)
{
	int fd = open(dev, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0 && pwrite(fd, bytes, len, (off_t)off) == (ssize_t)len && fsync(fd) == 0);
	close(fd);
}

static void
make(void)
{
	struct store *st;
	struct loop l;

	conf = conf_for(&dc, dev, 0);
	conf.disks.lock_wait_ns = PATIENCE_NS;
	assert_int_equal(store_format(&conf, true, err, sizeof err), 0);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), 0);
	loop_start(&l, st);
	assert_int_equal(bucket_make(&l, "b"), 0);
	assert_int_equal(put_simple(&l, "b", "small", 5000, 1), 0);
	loop_stop(&l);
	store_stop(st);
}

static void
is_whole(void)
{
	struct store *st;
	struct loop l;

	if (store_start(&conf, &st, err, sizeof err) < 0)
		fail_msg("%s", err);
	loop_start(&l, st);
	assert_int_equal(obj_check(&l, "b", "small", 5000, 1), 0);
	loop_stop(&l);
	store_stop(st);
}

/* One dd over the first MiB, or over the last two: the other superblock does, and the first one is back then. */
static void
test_overwritten(void **state)
{
	static char junk[2 * MIB];

	make();
	for (int i = 0; i < 6; i++) {
		bool head = i % 2 == 0;

		memset(junk, i / 2 * 0x55, sizeof junk);
		write_over(head ? 0 : 98 * MIB, junk, head ? MIB : 2 * MIB);
		if (i == 0)
			assert_int_equal(store_format(&conf, false, err, sizeof err), -EALREADY);
		is_whole();
		is_whole();
	}
	/* Formatted anew, nothing of what was there before is found. */
	assert_int_equal(store_format(&conf, true, err, sizeof err), 0);
	memset(junk, 0, sizeof junk);
	write_over(0, junk, MIB);
	write_over(98 * MIB, junk, 2 * MIB);
	assert_true(store_start(&conf, &(struct store *){ NULL }, err, sizeof err) == -ENOTRECOVERABLE);
	assert_non_null(strstr(err, "not a Gantry store"));
}

static void
read_sb(uint64_t off, struct super *ret_super)
{
	static uint8_t buf[FMT_SUPER_BYTES];
	int fd = open(dev, O_RDONLY | O_CLOEXEC);

	assert_int_equal(pread(fd, buf, sizeof buf, (off_t)off), sizeof buf);
	close(fd);
	if (super_decode(buf, sizeof buf, ret_super) < 0)
		memset(ret_super, 0, sizeof *ret_super);
}

/* Both superblocks of an older version are written where they are. */
static void
test_upgraded(void **state)
{
	static const uint64_t off[2] = { 0, 98 * MIB };
	static uint8_t buf[FMT_SUPER_BYTES];
	static char junk[MIB];
	struct super one;

	make();
	fmt_oldest = OLD_VERSION;
	for (int i = 0; i < 2; i++) {
		read_sb(off[i], &one);
		assert_true(one.gen && geo_second_off(&one.geo) == off[1]);
		super_encode(buf, &one);
		super_renumber(buf, OLD_VERSION);
		write_over(off[i], buf, sizeof buf);
	}
	assert_int_equal(store_start(&conf, &(struct store *){ NULL }, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "gantryd --upgrade"));
	assert_int_equal(store_task(&conf, TASK_UPGRADE, err, sizeof err), 0);
	for (int i = 0; i < 2; i++) {
		read_sb(off[i], &one);
		assert_true(one.version == FMT_VERSION);
	}
	is_whole();
	write_over(0, junk, MIB);
	is_whole();
}

/* A device and a directory are one store.  The device has one already: then nothing is made in the directory either. */
static void
test_with_directory(void **state)
{
	struct store_disk_conf d[2], first;
	struct store_conf c = conf_for(&first, dev, 0);
	struct store_unit_info info;
	char own[128], path[160], name[32];
	struct store *st;
	struct loop l;

	dir_make(own);
	d[0] = first;
	d[1] = (struct store_disk_conf){ .path = own, .size_bytes = 64 * MIB };
	assert_int_equal(store_format(&c, true, err, sizeof err), 0);
	c.ops = &store_set_ops;
	c.disks.engine = &extent_ops;
	c.disks.engines_max = STORE_SET_MAX;
	c.disks.disk = d;
	c.disks.nr = 2;
	c.disks.lock_wait_ns = PATIENCE_NS;
	assert_int_equal(store_format(&c, false, err, sizeof err), -EALREADY);
	snprintf(path, sizeof path, "%s/log", own);
	assert_true(access(path, F_OK) < 0);
	if (store_format(&c, true, err, sizeof err) < 0)
		fail_msg("%s", err);
	for (int turn = 0; turn < 2; turn++) {
		if (store_start(&c, &st, err, sizeof err) < 0)
			fail_msg("%s", err);
		loop_start(&l, st);
		if (turn == 0)
			assert_int_equal(bucket_make(&l, "b"), 0);
		for (int i = 0; i < 20; i++) {
			snprintf(name, sizeof name, "key-%d", i);
			if (turn == 0)
				assert_int_equal(put_simple(&l, "b", name, 5000, (uint64_t)i), 0);
			assert_int_equal(obj_check(&l, "b", name, 5000, (uint64_t)i), 0);
		}
		for (int i = 0; i < 2; i++) {
			store_unit_info(st, i, &info);
			assert_string_equal(info.name, i == 0 ? dev : own);
			assert_true(store_unit_number(&info, "objects") > 0);
		}
		loop_stop(&l);
		store_stop(st);
		first = d[0];
		d[0] = d[1];
		d[1] = first;
	}
	dir_remove(own);
}

/* ---- another host ---- */

static struct host_block theirs;
static uint64_t now_ns, slept_ns; /* while a start waits, time is ours */
static bool waits, they_beat;

static void
their_block(bool write)
{
	static _Alignas(4096) uint8_t buf[HOST_BYTES];
	int fd = open(dev, O_RDWR | O_DIRECT | O_CLOEXEC);

	assert_true(fd >= 0);
	if (write) {
		host_encode(buf, &theirs);
		assert_int_equal(pwrite(fd, buf, sizeof buf, FMT_HOST_OFF), sizeof buf);
	} else {
		assert_int_equal(pread(fd, buf, sizeof buf, FMT_HOST_OFF), sizeof buf);
		assert_int_equal(host_decode(buf, sizeof buf, &theirs), 0);
	}
	close(fd);
}

int
nanosleep(const struct timespec *ts, struct timespec *left)
{
	if (!waits)
		return (int)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, ts, left);
	slept_ns += (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;
	now_ns += (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;
	if (they_beat) {
		theirs.beat++;
		their_block(true);
	}
	return 0;
}

/* All of the device but their block. */
static uint64_t
sum_of_device(void)
{
	static _Alignas(4096) uint8_t buf[MIB];
	int fd = open(dev, O_RDONLY | O_DIRECT | O_CLOEXEC);
	uint64_t sum = 0;
	ssize_t n;

	for (off_t off = 0; (n = pread(fd, buf, sizeof buf, off)) > 0; off += n) {
		if (off == 0)
			memset(buf + FMT_HOST_OFF, 0, HOST_BYTES);
		sum = crc64_nvme(sum, buf, (size_t)n);
	}
	close(fd);
	return sum;
}

static void
test_other_host(void **state)
{
	struct store *st = NULL;
	uint64_t sum;

	conf = conf_for(&dc, dev, 0);
	conf.disks.lock_wait_ns = PATIENCE_NS;
	assert_int_equal(store_format(&conf, true, err, sizeof err), 0);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), 0);
	store_stop(st);
	their_block(false);
	assert_true(theirs.closed);
	snprintf(theirs.id.name, sizeof theirs.id.name, "elsewhere");
	theirs.id.machine[0] ^= 1;
	theirs.id.boot[0] ^= 1;
	theirs.instance[0] ^= 1;
	theirs.closed = false;
	their_block(true);
	sum = sum_of_device();
	now_ns = clock_ns();
	clock_fake(&now_ns);
	waits = they_beat = true;
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -EBUSY);
	assert_non_null(strstr(err, dev));
	assert_non_null(strstr(err, "in use by host 'elsewhere'"));
	assert_null(strchr(err, '\n'));
	assert_true(sum_of_device() == sum);
	/* It gives no sign any more. */
	they_beat = false;
	slept_ns = 0;
	assert_int_equal(store_start(&conf, &st, err, sizeof err), 0);
	assert_true(slept_ns >= 2 * HOST_BEAT_NS);
	waits = false;
	clock_fake(NULL);
	store_stop(st);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_device), cmocka_unit_test(test_overwritten),
					    cmocka_unit_test(test_upgraded),
					    cmocka_unit_test(test_with_directory),
					    cmocka_unit_test(test_other_host) };
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
