/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store that most programs here test: one disk in a directory of its own, with a bucket b, opened, closed
 * and opened again at will, and the loop of the thread that drives it.  Included once per program.
 */
#ifndef GANTRY_TESTS_STORE_FIXTURE_H
#define GANTRY_TESTS_STORE_FIXTURE_H

#include "harness.h"

#include "extent/disk/format.h"

static char dir[128];
static struct store_disk_conf dc;
static struct store_conf conf;
static struct store *st; /* NULL: closed */
static struct loop l;
static char err[1200];

static inline void
open_store(void)
{
	int r = store_start(&conf, &st, err, sizeof err);

	if (r < 0)
		fail_msg("open: %d %s", r, err);
	loop_start(&l, st);
}

static inline void
close_store(void)
{
	loop_stop(&l);
	store_stop(st);
	st = NULL;
}

/* A new one, open, with its bucket. */
static inline int
make_store(uint64_t size_bytes)
{
	dir_make(dir);
	conf = conf_for(&dc, dir, size_bytes);
	if (store_format(&conf, false, err, sizeof err) < 0) {
		printf("format: %s\n", err);
		return -1;
	}
	open_store();
	return bucket_make(&l, "b");
}

static inline struct store_unit_info
disk_info(void)
{
	struct store_unit_info info;

	store_unit_info(st, 0, &info);
	return info;
}

static inline uint64_t
disk_number(const char *name)
{
	struct store_unit_info info = disk_info();

	return store_unit_number(&info, name);
}

/* Space comes back by and by: until `want` bytes are free, or nearly so. */
static inline void
wait_free(uint64_t want, uint64_t but)
{
	wait_until(disk_info().free_bytes + but >= want)
		loop_for(&l, 10 * NS_PER_MS);
}

/* Waits until one more is made. */
static inline void
make_snapshot(void)
{
	uint64_t before = disk_number("snapshots");

	store_snapshot(st);
	wait_until(disk_number("snapshots") > before)
		loop_for(&l, 5 * NS_PER_MS);
}

static const char *const super_file[2] = { "super", "super2" };

/* Reads the superblock that counts, of the store on the disk.  Returns which of the two it is. */
static inline int
read_super(struct super *ret_super)
{
	static _Alignas(4096) uint8_t buf[FMT_SUPER_BYTES];
	struct super one;
	char path[256];
	int newest = -1;

	for (int i = 0; i < 2; i++) {
		int fd;

		snprintf(path, sizeof path, "%s/%s", dir, super_file[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0 && pread(fd, buf, sizeof buf, 0) == (ssize_t)sizeof buf);
		close(fd);
		if (super_decode(buf, sizeof buf, &one) < 0 || (newest >= 0 && one.gen < ret_super->gen))
			continue;
		*ret_super = one;
		newest = i;
	}
	assert_true(newest >= 0);
	return newest;
}

/* Flips a bit of a file of the store, which is closed. */
static inline void
flip_bit(const char *name, uint64_t off)
{
	char path[256];
	uint8_t b;
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && pread(fd, &b, 1, (off_t)off) == 1);
	b ^= 0x10;
	assert_true(pwrite(fd, &b, 1, (off_t)off) == 1 && fsync(fd) == 0);
	close(fd);
}

static inline int
remove_store(void **state)
{
	if (st)
		close_store();
	dir_remove(dir);
	return 0;
}

#endif
