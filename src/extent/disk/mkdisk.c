/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an empty disk: superblocks, log, and the first segment; the others come while it serves.  Blocking,
 * at --format only. */
#include "extent/disk/disk.h"

#include "extent/disk/file.h"
#include "extent/disk/place.h"
#include "extent/disk/sync.h"
#include "base/advice.h"
#include "base/amount.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"
#include "ring/ring.h"
#include "store/meter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define COUNTED_BYTES ((uint64_t)64 << 20)

static int
random_bytes(void *buf, size_t len)
{
	return getrandom(buf, len, 0) == (ssize_t)len ? 0 : -EIO;
}

/* The first superblock: one epoch that has begun, one empty snapshot. */
static int
first_super(struct super *sb, const struct geometry *geo, bool is_device, const struct store_birth *birth)
{
	memset(sb, 0, sizeof *sb);
	if (random_bytes(sb->store_uuid, 16) < 0 || random_bytes(sb->disk_uuid, 16) < 0 ||
	    random_bytes(sb->nonce, 16) < 0)
		return -EIO;
	sb->kind = is_device ? SUPER_DEVICE : SUPER_DIRECTORY;
	sb->geo = *geo;
	sb->epoch = 1;
	sb->snap[0].id = 1;
	sb->snap[0].begin = (struct log_pos){ .seq = 1, .epoch = 1 };
	memcpy(sb->snap[0].begin.nonce, sb->nonce, 16);
	sb->start_no = 1;
	if (birth) {
		memcpy(sb->store_uuid, birth->store_uuid, UUID_BYTES);
		memcpy(sb->disk_uuid, birth->table.uuid[birth->number], UUID_BYTES);
		sb->table = birth->table;
	} else {
		super_table_of_one(sb);
	}
	return 0;
}

/* What stands in the way is told, and nothing is done. */
static bool
is_look(const struct store_birth *birth)
{
	return birth && birth->is_look;
}

static struct meter_disk *
meter_of_birth(const struct store_birth *birth)
{
	return birth ? birth->meter : NULL;
}

static int
is_ours(const char *name)
{
	unsigned seg;

	return strcmp(name, "super") == 0 || strcmp(name, "super2") == 0 || strcmp(name, "log") == 0 ||
	       strcmp(name, "log.new") == 0 || strcmp(name, "super.new") == 0 ||
	       strcmp(name, "super2.new") == 0 || strcmp(name, "host") == 0 ||
	       sscanf(name, "seg-%u", &seg) == 1;
}

static int
any_name(void *cookie, const char *name)
{
	if (strcmp(name, "lost+found") == 0)
		return 0;
	snprintf(cookie, 64, "%s", name);
	return 1;
}

struct wipe {
	int dir_fd;
	char name[64];
};

static int
one_of_ours(void *cookie, const char *name)
{
	struct wipe *w = cookie;

	if (!is_ours(name) || strlen(name) >= sizeof w->name)
		return 0;
	snprintf(w->name, sizeof w->name, "%s", name);
	return 1;
}

/* fd: its superblock, or -1. */
static int
refuse_in_use(const char *path, int fd, struct ring *r, const char *what, char *err, size_t err_len)
{
	uint8_t uuid[UUID_BYTES];
	char name[DISK_NAME_BYTES];

	if (!disk_peek(fd, r, uuid))
		return disk_refuse(err, err_len, -EBUSY, "%s: %s", path, what);
	return disk_refuse(err, err_len, -EBUSY, "disk %s is %s", disk_name_of(name, uuid, path), what);
}

/* With force: another host may use what is there. */
static int
ask_for_host(int fd, uint64_t off, const char *path, struct ring *r, char *err, size_t err_len)
{
	struct host h;

	host_init(&h);
	h.fd = fd;
	h.off = off;
	return host_wait(&h, r, path, err, err_len);
}

/* With force: what an older store left, after making sure that nobody uses it. */
static int
wipe_directory(int dir_fd, const char *path, struct ring *r, char *err, size_t err_len)
{
	struct wipe w = { .dir_fd = dir_fd };
	int fd[2], host_fd, e = 0;

	for (int i = 0; i < 2; i++) {
		fd[i] = file_open(dir_fd, super_names[i], false);
		if (fd[i] >= 0 && file_lock(fd[i]) < 0)
			e = -EBUSY;
	}
	if (e < 0) {
		e = refuse_in_use(path, fd[0], r, "in use by another process; stop gantryd first", err,
				  err_len);
		file_close(fd[0]);
		file_close(fd[1]);
		return e;
	}
	host_fd = file_open(dir_fd, "host", false);
	e = host_fd < 0 ? 0 : ask_for_host(host_fd, 0, path, r, err, err_len);
	file_close(host_fd);
	if (e < 0) {
		file_close(fd[0]);
		file_close(fd[1]);
		return e;
	}
	/* One at a time: a directory must not change while it is read. */
	while ((e = file_each(dir_fd, one_of_ours, &w)) == 1) {
		e = file_unlink(dir_fd, w.name);
		if (e < 0)
			break;
	}
	file_close(fd[0]);
	file_close(fd[1]);
	return e < 0 ? disk_refuse(err, err_len, e, "%s: cannot remove %s: %s", path, w.name, strerror(-e))
		     : 0;
}

/* Writes zeros, and counts them. */
static int
write_zeros(struct ring *r, int fd, uint64_t off, uint64_t bytes, struct meter_disk *meter)
{
	int e = 0;

	for (uint64_t n; e == 0 && bytes; off += n, bytes -= n) {
		n = bytes < COUNTED_BYTES ? bytes : COUNTED_BYTES;
		e = sync_zero(r, fd, off, n);
		meter_add(meter, n);
	}
	return e;
}

/* A file, written whole; closed again. */
static int
write_file(int dir_fd, const char *name, uint64_t bytes, const uint8_t *disk_uuid, struct meter_disk *meter,
	   struct ring *r)
{
	char tmp[48];
	int fd, e;

	snprintf(tmp, sizeof tmp, "%s.new", name);
	file_unlink(dir_fd, tmp);
	fd = file_open(dir_fd, tmp, true);
	if (fd < 0)
		return fd;
	e = write_zeros(r, fd, 0, bytes, meter);
	disk_mark(disk_uuid, fd, name);
	if (e == 0)
		e = file_fsync(fd);
	if (e == 0)
		e = file_rename(dir_fd, tmp, name);
	file_close(fd);
	return e;
}

/* Writes one of the two: the first one is the newer. */
static int
write_super(int fd, uint64_t off, struct super *sb, bool is_first, struct ring *r)
{
	uint8_t *buf = sync_alloc(FMT_SUPER_BYTES);
	int e;

	if (!buf)
		return -ENOMEM;
	sb->gen = is_first ? 2 : 1;
	super_encode(buf, sb);
	e = sync_write(r, fd, buf, FMT_SUPER_BYTES, off);
	if (e == 0)
		e = file_fsync(fd);
	sync_free(buf);
	return e;
}

/* A directory gets them when a store is whole, and keeps one of them at least. */
static bool
has_super(int dir_fd)
{
	bool has = false;

	for (int i = 0; i < 2; i++) {
		int fd = file_open(dir_fd, super_names[i], false);

		has |= fd >= 0;
		file_close(fd);
	}
	return has;
}

/* Makes a file with a superblock, which gets its name when it is whole. */
static int
write_super_file(int dir_fd, const char *name, struct super *sb, bool is_first, struct ring *r)
{
	char tmp[48];
	int fd, e;

	snprintf(tmp, sizeof tmp, "%s.new", name);
	e = write_file(dir_fd, tmp, FMT_SUPER_BYTES, sb->disk_uuid, NULL, r);
	if (e < 0)
		return e;
	fd = file_open(dir_fd, tmp, false);
	e = fd < 0 ? fd : write_super(fd, 0, sb, is_first, r);
	if (e == 0)
		e = file_rename(dir_fd, tmp, name);
	file_close(fd);
	return e;
}

/* Refuses a path with something on it.  name: a file there. */
static int
refuse_used(const char *path, enum advice_id id, const char *name, char *err, size_t err_len)
{
	int e = id == ADVICE_HAS_STORE ? -EALREADY : -EEXIST;

	if (name[0])
		disk_refuse(err, err_len, e, "%s: not empty (%s)", path, name);
	else
		disk_refuse(err, err_len, e, "%s: %s", path,
			    id == ADVICE_HAS_STORE ? "has a store already" : "holds data");
	advice_add(err, err_len, id, &(struct advice_values){ .path = path });
	return e;
}

static int
format_directory(const struct store_disk_conf *dc, uint64_t index_bytes, struct store_birth *birth,
		 bool force, struct ring *r, char *err, size_t err_len)
{
	char name[64] = "", has[AMOUNT_TEXT], size[AMOUNT_TEXT];
	struct geometry geo;
	struct super sb;
	uint64_t room = 0;
	int dir_fd, e;

	if (place_is_dev(dc->path))
		return disk_refuse(err, err_len, -ENODEV,
				   "%s: there is no such device, and nothing is made below /dev", dc->path);
	if (dc->size_bytes == 0)
		return disk_refuse(err, err_len, -EINVAL, "%s: a directory needs a size", dc->path);
	if (geo_choose(dc->size_bytes, index_bytes, &geo) < 0)
		return disk_refuse(err, err_len, -EINVAL, "%s: %s are too few", dc->path,
				   size_text(dc->size_bytes, size));
	dir_fd = file_open_dir(dc->path, true);
	if (dir_fd < 0)
		return disk_refuse(err, err_len, dir_fd, "%s: %s", dc->path, strerror(-dir_fd));
	if (file_is_root(dir_fd)) {
		e = disk_refuse(err, err_len, -EINVAL,
				"%s: the root of a system is no disk; make a directory of its own", dc->path);
		goto out;
	}
	e = file_each(dir_fd, any_name, name);
	if (e == 1 && !force && has_super(dir_fd))
		e = refuse_used(dc->path, ADVICE_HAS_STORE, "", err, err_len);
	else if (e == 1 && !force)
		e = refuse_used(dc->path, ADVICE_NOT_EMPTY, name, err, err_len);
	else if (e >= 0)
		e = force && !is_look(birth) ? wipe_directory(dir_fd, dc->path, r, err, err_len) : 0;
	if (e < 0)
		goto out;
	if (file_room(dir_fd, &room) == 0 && room < dc->size_bytes) {
		e = disk_refuse(err, err_len, -ENOSPC,
				"%s: the file system has room for %s, and %s are wanted", dc->path,
				size_text(room, has), size_text(dc->size_bytes, size));
		goto out;
	}
	if (is_look(birth)) {
		birth->size_bytes = geo.size_bytes;
		goto out;
	}
	e = first_super(&sb, &geo, false, birth);
	meter_step(meter_of_birth(birth), METER_MAKE, geo.log_bytes + geo.seg_bytes);
	if (e == 0)
		e = write_file(dir_fd, "log", geo.log_bytes, sb.disk_uuid, meter_of_birth(birth), r);
	if (e == 0)
		e = write_file(dir_fd, "seg-0000", geo.seg_bytes, sb.disk_uuid, meter_of_birth(birth), r);
	/* The superblocks are last: a store half made is no store. */
	for (int i = 1; e == 0 && i >= 0; i--)
		e = write_super_file(dir_fd, super_names[i], &sb, i == 0, r);
	if (e == 0)
		e = file_fsync(dir_fd);
	if (e < 0)
		disk_refuse(err, err_len, e, "%s: cannot make the store: %s", dc->path, strerror(-e));
out:
	file_close(dir_fd);
	return e < 0 ? e : 0;
}

static bool
is_zero(const uint8_t *buf, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (buf[i])
			return false;
	}
	return true;
}

/* Looks at the last MiB, also where the device does not end at a multiple of our alignment.  buf: for the first MiB. */
static int
look_at_end(int fd, struct ring *r, uint8_t *buf, uint64_t device_bytes, bool *ret_empty)
{
	uint64_t rest = device_bytes % FMT_ALIGN, end = device_bytes - rest;
	int e;

	if (end < 2 * FMT_DEVICE_HEAD_BYTES)
		return 0;
	e = sync_read(r, fd, buf, FMT_DEVICE_HEAD_BYTES, end - FMT_DEVICE_HEAD_BYTES);
	*ret_empty &= e < 0 || is_zero(buf, FMT_DEVICE_HEAD_BYTES);
	if (e == 0 && rest) {
		e = sync_read(r, fd, buf, rest, end);
		*ret_empty &= e < 0 || is_zero(buf, rest);
	}
	return e;
}

/* Anything but zeros in the first MiB or the last one is data (a partition table has a copy at the end, a member of an array its
 * superblock), and a store has a superblock in the first, or at the end: *ret_second is where that lies, or 0.  device_bytes: of the
 * device; size_bytes: what of it is a store. */
static int
look_at_device(int fd, struct ring *r, uint64_t device_bytes, uint64_t size_bytes, bool *ret_empty,
	       bool *ret_store, uint64_t *ret_second)
{
	uint8_t *buf = sync_alloc(FMT_DEVICE_HEAD_BYTES);
	struct super sb;
	int e;

	if (!buf)
		return -ENOMEM;
	e = sync_read(r, fd, buf, FMT_DEVICE_HEAD_BYTES, 0);
	*ret_empty = e < 0 || is_zero(buf, FMT_DEVICE_HEAD_BYTES);
	*ret_store = e == 0 && !*ret_empty && super_decode(buf, FMT_SUPER_BYTES, &sb) == 0;
	if (e == 0 && *ret_empty)
		e = look_at_end(fd, r, buf, device_bytes, ret_empty);
	sync_free(buf);
	*ret_second = e == 0 && super_scan(r, fd, size_bytes, &sb) == 0 ? geo_second_off(&sb.geo) : 0;
	*ret_store |= *ret_second != 0;
	return e;
}

static int
format_device(const struct store_disk_conf *dc, uint64_t index_bytes, struct store_birth *birth, bool force,
	      struct ring *r, char *err, size_t err_len)
{
	int fd = disk_open_device(dc->path, clock_ns() + NS_PER_S), e;
	struct geometry geo;
	struct super sb;
	uint64_t size, second = 0;
	bool empty = false, store = false;
	char text[AMOUNT_TEXT];

	if (fd == -EBUSY) {
		fd = file_peek_device(dc->path);
		e = refuse_in_use(dc->path, fd, r,
				  "in use by another process, or mounted; stop what has it first", err,
				  err_len);
		goto out;
	}
	if (fd < 0)
		return disk_refuse(err, err_len, fd, "%s: %s", dc->path, strerror(-fd));
	if (file_lock(fd) < 0) {
		e = refuse_in_use(dc->path, fd, r, "in use by another process; stop gantryd first", err,
				  err_len);
		goto out;
	}
	e = file_size(fd, &size);
	if (e == 0)
		e = look_at_device(fd, r, size, dc->size_bytes ? dc->size_bytes : size, &empty, &store,
				   &second);
	if (e < 0) {
		disk_refuse(err, err_len, e, "%s: %s", dc->path, strerror(-e));
		goto out;
	}
	if (store && !force) {
		e = refuse_used(dc->path, ADVICE_HAS_STORE, "", err, err_len);
		goto out;
	}
	if (!empty && !force) {
		e = refuse_used(dc->path, ADVICE_HOLDS_DATA, "", err, err_len);
		goto out;
	}
	e = force ? ask_for_host(fd, FMT_HOST_OFF, dc->path, r, err, err_len) : 0;
	if (e < 0)
		goto out;
	if (dc->size_bytes > size ||
	    geo_choose(dc->size_bytes ? dc->size_bytes : size, index_bytes, &geo) < 0) {
		e = disk_refuse(err, err_len, -EINVAL, "%s: the device has %s", dc->path,
				size_text(size, text));
		goto out;
	}
	if (is_look(birth)) {
		birth->size_bytes = geo.size_bytes;
		goto out;
	}
	e = first_super(&sb, &geo, true, birth);
	meter_step(meter_of_birth(birth), METER_MAKE, FMT_DEVICE_HEAD_BYTES + geo.log_bytes);
	if (e == 0)
		e = write_zeros(r, fd, 0, FMT_DEVICE_HEAD_BYTES + geo.log_bytes, meter_of_birth(birth));
	/* Nobody shall find the one of the store that was there. */
	if (e == 0 && second)
		e = sync_zero(r, fd, second, FMT_SUPER_BYTES);
	if (e == 0)
		e = file_fsync(fd);
	if (e == 0)
		e = write_super(fd, geo_second_off(&geo), &sb, false, r);
	if (e == 0)
		e = write_super(fd, 0, &sb, true, r);
	if (e < 0)
		disk_refuse(err, err_len, e, "%s: cannot make the store: %s", dc->path, strerror(-e));
out:
	file_close(fd);
	return e;
}

int
disk_format(const struct store_disk_conf *dc, uint64_t index_bytes, struct store_birth *birth, bool force,
	    char *err, size_t err_len)
{
	struct ring *r;
	char why[256];
	int e = ring_new(&(struct ring_params){ .entries = 64 }, &r);

	if (e < 0)
		return disk_refuse(err, err_len, e, "cannot make a ring: %s%s", strerror(-e), ring_hint(e));
	if (!is_look(birth) && place_is_memory(dc->path, why, sizeof why))
		log_warn("%s: %s", dc->path, why);
	e = file_is_device(dc->path) ? format_device(dc, index_bytes, birth, force, r, err, err_len)
				     : format_directory(dc, index_bytes, birth, force, r, err, err_len);
	meter_step(meter_of_birth(birth), METER_WAITS, 0);
	ring_free(r);
	return sync_no_room(e, err, err_len);
}
