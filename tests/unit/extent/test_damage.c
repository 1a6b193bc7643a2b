/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a start says to locks, foreign disks, and damage done behind the store's back: bits flipped in data,
 * CRC blocks, the log, superblocks and snapshots.  A "crash" is a child that leaves without closing.
 */
/* In front of the fixture, whose names they use for others. */
#include "crumbs.h"

#include "fixture.h"
#include "extent/log/rec_codec.h"
#include "tests/fake/others.h"

#include <signal.h>
#include <sys/wait.h>

static int
setup(void **state)
{
	int r = make_store(100 * MIB);

	close_store();
	return r;
}

/* ---- tools ---- */

static int
file_open_raw(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Finds the bytes at a 4 KiB boundary of some segment.  false: nowhere. */
static bool
find(const void *bytes, size_t len, char seg[32], uint64_t *ret_off)
{
	static char buf[1 << 20];

	for (int i = 0; i < 16; i++) {
		char path[256];
		int fd;

		snprintf(seg, 32, "seg-%04d", i);
		snprintf(path, sizeof path, "%s/%s", dir, seg);
		fd = open(path, O_RDONLY);
		for (uint64_t off = 0; fd >= 0; off += sizeof buf) {
			ssize_t n = pread(fd, buf, sizeof buf, (off_t)off);

			for (ssize_t at = 0; at < n; at += 4096) {
				if (memcmp(buf + at, bytes, len) == 0) {
					*ret_off = off + (uint64_t)at;
					close(fd);
					return true;
				}
			}
			if (n < (ssize_t)sizeof buf)
				break;
		}
		if (fd >= 0)
			close(fd);
	}
	return false;
}

static void
find_object(uint64_t seed, char seg[32], uint64_t *ret_off)
{
	char want[64];

	fill(want, sizeof want, seed, 0);
	assert_true(find(want, sizeof want, seg, ret_off));
}

/* Runs fn on an open store in a child that then just ends. */
static void
crash_after(void (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		open_store();
		fn();
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
}

static char said[8192];

static void
say(void *cookie, const char *line)
{
	strncat(said, line, sizeof said - strlen(said) - 2);
	strcat(said, "\n");
}

static int
fsck(bool repair)
{
	said[0] = 0;
	return store_fsck(&conf, repair, say, NULL);
}

/* ---- tests ---- */

static void
test_foreign(void **state)
{
	struct store_disk_conf wrong = dc, empty = dc;
	struct store_conf c = conf;
	char other[128];

	wrong.size_bytes = 200 * MIB;
	c.disks.disk = &wrong;
	assert_int_equal(store_start(&c, &st, err, sizeof err), -EINVAL);
	assert_int_equal(store_format(&conf, false, err, sizeof err), -EALREADY);
	dir_make(other);
	empty.path = other;
	c.disks.disk = &empty;
	assert_int_equal(store_start(&c, &st, err, sizeof err), -ENOTRECOVERABLE);
	assert_null(strstr(err, "--format"));
	dir_remove(other);
	assert_int_equal(store_start(&c, &st, err, sizeof err), -ENOTRECOVERABLE);
	assert_non_null(strstr(err, "no store here yet"));
	/* a device can still come */
	empty.path = "/dev/gantry-is-not-here";
	assert_int_equal(store_start(&c, &st, err, sizeof err), -ENOENT);
	/* no root of a system is one, by force neither */
	empty.path = "/";
	assert_int_equal(store_format(&c, false, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "/: the root of a system is no disk"));
	dir_make(other);
	empty.path = other;
	for (int i = 0; i < 2; i++) {
		char path[160];

		snprintf(path, sizeof path, "%s/%s", other, i ? "usr" : "etc");
		assert_int_equal(mkdir(path, 0755), 0);
		assert_int_equal(store_format(&c, false, err, sizeof err), i ? -EINVAL : -EEXIST);
	}
	assert_int_equal(store_format(&c, true, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "the root of a system is no disk"));
	for (int i = 0; i < 2; i++) {
		char path[160];

		snprintf(path, sizeof path, "%s/%s", other, i ? "usr" : "etc");
		assert_int_equal(rmdir(path), 0);
	}
	dir_remove(other);
	/* by force: what was there is gone */
	open_store();
	assert_int_equal(put_simple(&l, "b", "x", 100, 1), 0);
	conf.disks.lock_wait_ns = 100 * NS_PER_MS;
	assert_int_equal(store_format(&conf, true, err, sizeof err), -EBUSY);
	conf.disks.lock_wait_ns = PATIENCE_NS;
	close_store();
	assert_int_equal(store_format(&conf, true, err, sizeof err), 0);
	open_store();
	assert_int_equal(obj_check(&l, "b", "x", 100, 1), -ENXIO);
}

static void
test_lock(void **state)
{
	struct store *second = NULL;
	int status;
	pid_t pid;

	open_store();
	conf.disks.lock_wait_ns = 100 * NS_PER_MS;
	assert_int_equal(store_start(&conf, &second, err, sizeof err), -EBUSY);
	fflush(stdout);
	wait_others();
	pid = fork();
	if (pid == 0)
		_exit(store_start(&conf, &second, err, sizeof err) == -EBUSY &&
				      store_fsck(&conf, true, NULL, NULL) == -EBUSY
			      ? 0
			      : 1);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	conf.disks.lock_wait_ns = PATIENCE_NS;
	close_store();
	open_store();
}

/* claim TM63: a flipped bit is never handed out. */
static void
test_bits(void **state)
{
	static const struct {
		uint64_t size, at;
	} t[] = { { 300, 7 },
		  { 65536, 65535 },
		  { 200000, 70000 },
		  { 3 * MIB + 9, 2 * MIB },
		  { 65 * MIB, 5 * MIB } };
	char seg[32];
	uint64_t off, good;

	for (int i = 0; i < 5; i++) {
		open_store();
		/* the disk has room for one of 65 MiB */
		good = t[i].size > FMT_CHUNK_BYTES ? 1000 : t[i].size;
		assert_int_equal(put_simple(&l, "b", "good", good, 50 + (uint64_t)i), 0);
		assert_int_equal(put_simple(&l, "b", "bad", t[i].size, 100 + (uint64_t)i), 0);
		close_store();
		find_object(100 + (uint64_t)i, seg, &off);
		/* extents of a large object need not be contiguous:
		 * only its first piece is sure to lie here */
		flip_bit(seg, off + (t[i].at < MIB ? t[i].at : 12345));
		open_store();
		assert_int_equal(obj_check(&l, "b", "good", good, 50 + (uint64_t)i), 0);
		assert_int_equal(obj_check(&l, "b", "bad", t[i].size, 100 + (uint64_t)i), -EBADMSG);
		close_store();
		assert_int_equal(fsck(false), -ENOTRECOVERABLE);
		assert_non_null(strstr(said, "'b/bad'"));
		open_store();
		assert_int_equal(obj_delete(&l, "b", "bad", NULL), 1);
		assert_int_equal(obj_delete(&l, "b", "good", NULL), 1);
		close_store();
	}
}

static void
test_crc_block(void **state)
{
	uint64_t off, crc[3], data[65536 / 8];
	char seg[32];

	for (int i = 0; i < 3; i++) {
		fill(data, sizeof data, 9, (uint64_t)i * 65536);
		crc[i] = crc64_nvme(0, data, sizeof data);
	}
	open_store();
	assert_int_equal(put_simple(&l, "b", "t", 3 * 65536, 9), 0);
	close_store();
	assert_true(find(crc, sizeof crc, seg, &off));
	flip_bit(seg, off + 9);
	open_store();
	assert_int_equal(obj_check(&l, "b", "t", 3 * 65536, 9), -EBADMSG);
}

/* Where the object of one seed lies, another's bytes lie from now on, with the granule CRCs that fit them: a
 * write that went astray, or one that never came over what was there before. */
static void
becomes_other(uint64_t seed, uint64_t other, uint64_t size)
{
	static char bytes[65536];
	uint64_t crc[2][64], off;
	char seg[32], want[64];
	unsigned nr = 0;
	int fd;

	for (uint64_t at = 0; at < size; at += sizeof bytes, nr++) {
		size_t n = size - at < sizeof bytes ? (size_t)(size - at) : sizeof bytes;

		fill(bytes, n, seed, at);
		crc[0][nr] = crc64_nvme(0, bytes, n);
		memcpy(want, bytes, sizeof want < n ? sizeof want : n);
		assert_true(find(want, sizeof want < n ? sizeof want : n, seg, &off));
		fill(bytes, n, other, at);
		crc[1][nr] = crc64_nvme(0, bytes, n);
		fd = file_open_raw(seg);
		assert_int_equal(pwrite(fd, bytes, n, (off_t)off), n);
		close(fd);
	}
	assert_true(find(crc[0], nr * 8, seg, &off));
	fd = file_open_raw(seg);
	assert_int_equal(pwrite(fd, crc[1], nr * 8, (off_t)off), nr * 8);
	close(fd);
}

/* That data and granule CRCs fit each other is not enough: the record says whose they are.  In one piece with
 * its CRC block, and in several. */
static void
test_other_bytes(void **state)
{
	static const uint64_t sizes[] = { 200000, 3 * MIB + 9 };

	for (int i = 0; i < 2; i++) {
		open_store();
		assert_int_equal(put_simple(&l, "b", "x", sizes[i], 70), 0);
		close_store();
		becomes_other(70, 71, sizes[i]);
		open_store();
		assert_int_equal(obj_check(&l, "b", "x", sizes[i], 71), -EBADMSG);
		close_store();
		assert_int_equal(fsck(false), -ENOTRECOVERABLE);
		assert_non_null(strstr(said, "b/x"));
		open_store();
		assert_int_equal(obj_delete(&l, "b", "x", NULL), 1);
		close_store();
	}
}

static void
large_unstamped(void)
{
	check(put_simple(&l, "b", "first", 5000, 1) == 0);
	wait_stamped(&l);
	check(put_simple(&l, "b", "last", 200000, 72) == 0);
}

/* The same in the tail: a start does not believe it. */
static void
test_other_bytes_in_tail(void **state)
{
	struct store_unit_info info;

	crash_after(large_unstamped);
	becomes_other(72, 73, 200000);
	open_store();
	store_unit_info(st, 0, &info);
	assert_int_equal(store_unit_number(&info, "cut_records"), 1);
	assert_int_equal(obj_check(&l, "b", "first", 5000, 1), 0);
	assert_int_equal(obj_check(&l, "b", "last", 200000, 72), -ENOENT);
}

static void
test_superblocks(void **state)
{
	flip_bit("super", 5000);
	open_store();
	close_store();
	flip_bit("super", 7);
	flip_bit("super2", 30);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -ENOTRECOVERABLE);
	st = NULL;
}

static void
twenty(void)
{
	for (int i = 0; i < 20; i++) {
		char name[32];

		snprintf(name, sizeof name, "k%02d", i);
		check(put_simple(&l, "b", name, 5000, (uint64_t)i) == 0);
	}
	wait_stamped(&l);
}

#define LOG_BYTES ((size_t)4 << 20)

static const uint8_t *
log_read(void)
{
	static uint8_t log[LOG_BYTES];
	int fd = file_open_raw("log");

	assert_int_equal(pread(fd, log, sizeof log, 0), sizeof log);
	close(fd);
	return log;
}

/* Where in the log the record of a key lies: its block's offset. */
static uint64_t
log_block_of(const char *name)
{
	const uint8_t *log = log_read();
	uint64_t at = 0;

	for (uint64_t off = 0; off < LOG_BYTES; off += 4096) {
		uint32_t len = block_peek(log + off);

		if (len && memmem(log + off, len, name, strlen(name)))
			at = off;
	}
	return at;
}

/* Damage inside of what was flushed stops the start, and says where; repair cuts there and lists what it
 * drops. */
static void
test_log_damage(void **state)
{
	crash_after(twenty);
	flip_bit("log", log_block_of("k10") + 200);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -ENOTRECOVERABLE);
	assert_non_null(strstr(err, dir));
	assert_non_null(strstr(err, "log offset"));
	assert_int_equal(fsck(false), -ENOTRECOVERABLE);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -ENOTRECOVERABLE);
	assert_int_equal(fsck(true), 1);
	assert_non_null(strstr(said, "b/k11"));
	assert_non_null(strstr(said, "b/k19"));
	assert_int_equal(fsck(true), 0);
	open_store();
	for (int i = 0; i < 20; i++) {
		char name[32];

		snprintf(name, sizeof name, "k%02d", i);
		assert_int_equal(obj_check(&l, "b", name, 5000, (uint64_t)i), i < 10 ? 0 : -ENOENT);
	}
	assert_int_equal(put_simple(&l, "b", "new", 5000, 1), 0);
}

/* The log has not wrapped: the last one is the newest. */
static uint64_t
last_epoch_block(void)
{
	const uint8_t *log = log_read();
	uint64_t at = 0;

	for (uint64_t off = 0; off < LOG_BYTES; off += 4096) {
		if (block_peek(log + off) && log[off + 6] == BLOCK_EPOCH)
			at = off;
	}
	return at;
}

/* The log lost behind an epoch that the superblock knows of. */
static void
test_epoch_lost(void **state)
{
	open_store();
	assert_int_equal(put_simple(&l, "b", "k", 5000, 1), 0);
	close_store();
	open_store();
	close_store();
	flip_bit("log", last_epoch_block() + 8);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -ENOTRECOVERABLE);
	assert_non_null(strstr(err, "epoch"));
	st = NULL;
}

static void
one_unstamped(void)
{
	check(put_simple(&l, "b", "first", 5000, 1) == 0);
	wait_stamped(&l);
	/* killed within the 5 ms before its stamp; the same block as nothing else */
	check(put_simple(&l, "b", "last", 5000, 2) == 0);
}

/* A tail whose data is not what the record says is cut, and nothing else. */
static void
test_tail_cut(void **state)
{
	struct store_unit_info info;
	char seg[32];
	uint64_t off;

	crash_after(one_unstamped);
	find_object(2, seg, &off);
	flip_bit(seg, off + 77);
	open_store();
	store_unit_info(st, 0, &info);
	assert_int_equal(store_unit_number(&info, "cut_records"), 1);
	assert_int_equal(obj_check(&l, "b", "first", 5000, 1), 0);
	assert_int_equal(obj_check(&l, "b", "last", 5000, 2), -ENOENT);
	/* the space of the cut record is free, and the log goes on */
	assert_int_equal(put_simple(&l, "b", "last", 5000, 3), 0);
	close_store();
	open_store();
	assert_int_equal(obj_check(&l, "b", "last", 5000, 3), 0);
}

/* Whole and unstamped: it stays. */
static void
test_tail_whole(void **state)
{
	crash_after(one_unstamped);
	open_store();
	assert_int_equal(obj_check(&l, "b", "last", 5000, 2), 0);
}

/* Load that makes snapshots; where the first block of the newest one lies that is found. */
static uint64_t
make_snapshots(char best_seg[32])
{
	static char attrs[12000];
	uint64_t best_id = 0, best = 0;

	open_store();
	for (int i = 0; i < 900; i++) {
		char name[32];
		struct put_args a = { .bucket = "b",
				      .key = name,
				      .size = 300,
				      .seed = (uint64_t)i,
				      .attrs = attrs,
				      .attrs_len = sizeof attrs };

		snprintf(name, sizeof name, "s%d", i % 50);
		wait_until(obj_put(&l, &a) != -EAGAIN)
			loop_for(&l, NS_PER_MS);
	}
	wait_until(disk_number("snapshots") >= 3)
		loop_for(&l, 5 * NS_PER_MS);
	close_store();
	for (int i = 0; i < 16; i++) {
		static uint8_t block[4096];
		char seg[32], path[256];
		int fd;

		snprintf(seg, sizeof seg, "seg-%04d", i);
		snprintf(path, sizeof path, "%s/%s", dir, seg);
		fd = open(path, O_RDONLY);
		for (off_t off = 0; fd >= 0 && pread(fd, block, sizeof block, off) == sizeof block;
		     off += 4096) {
			uint64_t id;

			if (memcmp(block, "GLSN", 4) != 0)
				continue;
			memcpy(&id, block + 24, 8);
			if (id > best_id) {
				best_id = id;
				best = (uint64_t)off;
				strcpy(best_seg, seg);
			}
		}
		if (fd >= 0)
			close(fd);
	}
	assert_true(best_id > 0);
	return best;
}

/* Everything is there, and more can be written. */
static void
all_there(void)
{
	open_store();
	for (int i = 850; i < 900; i++) {
		char name[32];

		snprintf(name, sizeof name, "s%d", i % 50);
		assert_int_equal(obj_check(&l, "b", name, 300, (uint64_t)i), 0);
	}
	assert_int_equal(put_simple(&l, "b", "x", 3000, 1), 0);
	close_store();
	assert_int_equal(fsck(false), 0);
}

/* The newest snapshot is damaged: the one before and a longer log do as well. */
static void
test_snapshot_damage(void **state)
{
	char seg[32] = "";
	uint64_t off = make_snapshots(seg);

	flip_bit(seg, off + 500);
	all_there();
}

/* So they do when each of its blocks is sound, but one is not the one that belongs there. */
static void
test_snapshot_other_block(void **state)
{
	static _Alignas(16) uint8_t block[FMT_BLOCK_MAX];
	char seg[32] = "";
	uint64_t off = make_snapshots(seg);
	struct snap_head h;
	size_t len = 0;
	int fd = file_open_raw(seg);

	assert_true(pread(fd, block, sizeof block, (off_t)off) > 0);
	do
		len += FMT_ALIGN;
	while (len < sizeof block && snap_open(block, len, &h) < 0);
	assert_int_equal(snap_open(block, len, &h), 0);
	block[SNAP_HEAD_BYTES + 40] ^= 1; /* a time */
	snap_seal(block, len, &h);
	assert_int_equal(pwrite(fd, block, len, (off_t)off), len);
	close(fd);
	fsck(false);
	assert_non_null(strstr(said, "is damaged; starting from the one before"));
	all_there();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_foreign, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_lock, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_bits, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_crc_block, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_other_bytes, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_other_bytes_in_tail, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_superblocks, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_log_damage, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_epoch_lost, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_tail_cut, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_tail_whole, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_snapshot_damage, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_snapshot_other_block, setup, remove_store),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_damage", tests, NULL, NULL);
}
