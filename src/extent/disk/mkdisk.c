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
#include <stdarg.h>
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
first_super(struct super *sb, const struct geometry *geo, enum super_kind kind,
	    const struct store_birth *birth)
{
	memset(sb, 0, sizeof *sb);
	if (random_bytes(sb->store_uuid, 16) < 0 || random_bytes(sb->disk_uuid, 16) < 0 ||
	    random_bytes(sb->nonce, 16) < 0)
		return -EIO;
	sb->kind = kind;
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

static int
one_of_ours(void *cookie, const char *name)
{
	return is_ours(name) && strlen(name) < 64 ? any_name(cookie, name) : 0;
}

/* ---- the path ---- */

/* The making of one disk. */
struct making {
	const struct store_disk_conf *dc;
	uint64_t index_bytes;
	struct store_birth *birth; /* NULL: a store of one disk */
	struct meter_disk *meter;  /* NULL: nothing is counted */
	/* is_look: obstacles are reported, and nothing is written */
	bool force, is_look;
	struct ring *r;
	int fd; /* descriptor of the directory or of the device */
	struct geometry geo;
	struct super sb;
	char *err;
	size_t err_len;
};

/* Writes the reason of an error, which follows the path. Returns e. */
static int __attribute__((format(printf, 3, 4))) making_refuse(struct making *m, int e, const char *fmt, ...)
{
	char why[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	return refuse(m->err, m->err_len, e, "%s: %s", m->dc->path, why);
}

/* fd: its superblock, or -1. */
static int
refuse_in_use(struct making *m, int fd, const char *what)
{
	uint8_t uuid[UUID_BYTES];
	char name[DISK_NAME_BYTES];

	if (!disk_peek(fd, m->r, uuid))
		return making_refuse(m, -EBUSY, "%s", what);
	return refuse(m->err, m->err_len, -EBUSY, "disk %s is %s", disk_name_of(name, uuid, m->dc->path),
		      what);
}

/* Refuses a path with something on it.  name: a file there. */
static int
refuse_used(struct making *m, enum advice_id id, const char *name)
{
	int e = id == ADVICE_HAS_STORE ? -EALREADY : -EEXIST;

	if (name[0])
		making_refuse(m, e, "not empty (%s)", name);
	else
		making_refuse(m, e, id == ADVICE_HAS_STORE ? "has a store already" : "holds data");
	advice_add(m->err, m->err_len, id, &(struct advice_values){ .path = m->dc->path });
	return e;
}

/* With force: another host may use what is there. */
static int
ask_for_host(struct making *m, int fd, uint64_t off)
{
	struct host h;

	host_init(&h);
	h.fd = fd;
	h.off = off;
	return host_wait(&h, m->r, m->dc->path, m->err, m->err_len);
}

/* Makes the superblock, and begins to count. */
static int
begin(struct making *m, enum super_kind kind)
{
	int e = first_super(&m->sb, &m->geo, kind, m->birth);

	meter_step(m->meter, METER_MAKE,
		   m->geo.log_bytes + (kind == SUPER_DEVICE ? FMT_DEVICE_HEAD_BYTES : m->geo.seg_bytes));
	return e;
}

/* Writes zeros, and counts them. */
static int
write_zeros(struct making *m, int fd, uint64_t bytes, struct meter_disk *meter)
{
	int e = 0;

	for (uint64_t off = 0, n; e == 0 && off < bytes; off += n) {
		n = bytes - off < COUNTED_BYTES ? bytes - off : COUNTED_BYTES;
		e = sync_zero(m->r, fd, off, n);
		meter_add(meter, n);
	}
	return e;
}

/* Writes one of the two: the first one is the newer. */
static int
write_super(struct making *m, int fd, uint64_t off, bool is_first)
{
	int e;

	m->sb.gen = is_first ? 2 : 1;
	e = super_write(m->r, fd, off, &m->sb);
	return e == 0 ? file_fsync(fd) : e;
}

/* ---- a directory ---- */

/* With force: what an older store left, after making sure that nobody uses it. */
static int
wipe_directory(struct making *m)
{
	int fd[2], host_fd, e = 0;
	char name[64] = "";

	for (int i = 0; i < 2; i++) {
		fd[i] = file_open(m->fd, super_names[i], false);
		if (fd[i] >= 0 && file_lock(fd[i]) < 0)
			e = -EBUSY;
	}
	host_fd = e < 0 ? -1 : file_open(m->fd, "host", false);
	if (e < 0)
		refuse_in_use(m, fd[0], "in use by another process; stop gantryd first");
	else if (host_fd >= 0)
		e = ask_for_host(m, host_fd, 0);
	file_close(host_fd);
	/* One at a time: a directory must not change while it is read. */
	while (e == 0 && (e = file_each(m->fd, one_of_ours, name)) != 0) {
		e = e == 1 ? file_unlink(m->fd, name) : e;
		if (e < 0)
			making_refuse(m, e, "cannot remove %s: %s", name, strerror(-e));
	}
	file_close(fd[0]);
	file_close(fd[1]);
	return e;
}

/* Makes a file, which gets its name when it is whole. super_nr: of the superblock in it; -1: the file has zeros, which are
 * counted. */
static int
write_file(struct making *m, const char *name, uint64_t bytes, int super_nr)
{
	char tmp[48];
	int fd, e;

	snprintf(tmp, sizeof tmp, "%s.new", name);
	file_unlink(m->fd, tmp);
	fd = file_open(m->fd, tmp, true);
	if (fd < 0)
		return fd;
	e = write_zeros(m, fd, bytes, super_nr < 0 ? m->meter : NULL);
	disk_mark(m->sb.disk_uuid, fd, name);
	if (e == 0)
		e = super_nr < 0 ? file_fsync(fd) : write_super(m, fd, 0, super_nr == 0);
	if (e == 0)
		e = file_rename(m->fd, tmp, name);
	file_close(fd);
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

/* Refuses a directory that is no place for a store; with force, and not to look alone, removes an older store. */
static int
clear_directory(struct making *m)
{
	char name[64] = "", has[AMOUNT_TEXT], size[AMOUNT_TEXT];
	uint64_t room;
	int e;

	if (file_is_root(m->fd))
		return making_refuse(m, -EINVAL,
				     "the root of a system is no disk; make a directory of its own");
	e = file_each(m->fd, any_name, name);
	if (e == 1 && !m->force)
		return has_super(m->fd) ? refuse_used(m, ADVICE_HAS_STORE, "")
					: refuse_used(m, ADVICE_NOT_EMPTY, name);
	if (e >= 0)
		e = m->force && !m->is_look ? wipe_directory(m) : 0;
	if (e == 0 && file_room(m->fd, &room) == 0 && room < m->dc->size_bytes)
		return making_refuse(m, -ENOSPC, "the file system has room for %s, and %s are wanted",
				     size_text(room, has), size_text(m->dc->size_bytes, size));
	return e;
}

static int
format_directory(struct making *m)
{
	char size[AMOUNT_TEXT];
	int e;

	if (place_is_dev(m->dc->path))
		return making_refuse(m, -ENODEV, "there is no such device, and nothing is made below /dev");
	if (m->dc->size_bytes == 0)
		return making_refuse(m, -EINVAL, "a directory needs a size");
	if (geo_choose(m->dc->size_bytes, m->index_bytes, &m->geo) < 0)
		return making_refuse(m, -EINVAL, "%s are too few", size_text(m->dc->size_bytes, size));
	m->fd = file_open_dir(m->dc->path, true);
	if (m->fd < 0)
		return making_refuse(m, m->fd, "%s", strerror(-m->fd));
	e = clear_directory(m);
	if (e < 0 || m->is_look)
		return e;
	e = begin(m, SUPER_DIRECTORY);
	if (e == 0)
		e = write_file(m, "log", m->geo.log_bytes, -1);
	if (e == 0)
		e = write_file(m, "seg-0000", m->geo.seg_bytes, -1);
	/* The superblocks are last: a store half made is no store. */
	for (int i = 1; e == 0 && i >= 0; i--)
		e = write_file(m, super_names[i], FMT_SUPER_BYTES, i);
	if (e == 0)
		e = file_fsync(m->fd);
	return e < 0 ? making_refuse(m, e, "cannot make the store: %s", strerror(-e)) : 0;
}

/* ---- a device ---- */

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

/* Opens and locks the device. */
static int
open_device(struct making *m)
{
	m->fd = disk_open_device(m->dc->path, clock_ns() + NS_PER_S);
	if (m->fd == -EBUSY) {
		m->fd = file_peek_device(m->dc->path);
		return refuse_in_use(m, m->fd,
				     "in use by another process, or mounted; stop what has it first");
	}
	if (m->fd < 0)
		return making_refuse(m, m->fd, "%s", strerror(-m->fd));
	return file_lock(m->fd) < 0 ? refuse_in_use(m, m->fd, "in use by another process; stop gantryd first")
				    : 0;
}

static int
format_device(struct making *m)
{
	uint64_t bytes = 0, size_bytes, second = 0;
	bool empty = false, store = false;
	char text[AMOUNT_TEXT];
	int e = open_device(m);

	if (e < 0)
		return e;
	e = file_size(m->fd, &bytes);
	size_bytes = m->dc->size_bytes ? m->dc->size_bytes : bytes;
	if (e == 0)
		e = look_at_device(m->fd, m->r, bytes, size_bytes, &empty, &store, &second);
	if (e < 0)
		return making_refuse(m, e, "%s", strerror(-e));
	if ((store || !empty) && !m->force)
		return refuse_used(m, store ? ADVICE_HAS_STORE : ADVICE_HOLDS_DATA, "");
	e = m->force ? ask_for_host(m, m->fd, FMT_HOST_OFF) : 0;
	if (e < 0)
		return e;
	if (size_bytes > bytes || geo_choose(size_bytes, m->index_bytes, &m->geo) < 0)
		return making_refuse(m, -EINVAL, "the device has %s", size_text(bytes, text));
	if (m->is_look)
		return 0;
	e = begin(m, SUPER_DEVICE);
	if (e == 0)
		e = write_zeros(m, m->fd, FMT_DEVICE_HEAD_BYTES + m->geo.log_bytes, m->meter);
	/* Nobody shall find the one of the store that was there. */
	if (e == 0 && second)
		e = sync_zero(m->r, m->fd, second, FMT_SUPER_BYTES);
	if (e == 0)
		e = file_fsync(m->fd);
	if (e == 0)
		e = write_super(m, m->fd, geo_second_off(&m->geo), false);
	if (e == 0)
		e = write_super(m, m->fd, 0, true);
	return e < 0 ? making_refuse(m, e, "cannot make the store: %s", strerror(-e)) : 0;
}

int
disk_format(const struct store_disk_conf *dc, uint64_t index_bytes, struct store_birth *birth, bool force,
	    char *err, size_t err_len)
{
	struct making m = { .dc = dc,
			    .index_bytes = index_bytes,
			    .birth = birth,
			    .meter = birth ? birth->meter : NULL,
			    .force = force,
			    .is_look = birth && birth->is_look,
			    .fd = -1,
			    .err = err,
			    .err_len = err_len };
	char why[256];
	int e = sync_ring(&m.r, err, err_len);

	if (e < 0)
		return e;
	if (!m.is_look && place_is_memory(dc->path, why, sizeof why))
		log_warn("%s: %s", dc->path, why);
	e = file_is_device(dc->path) ? format_device(&m) : format_directory(&m);
	if (e == 0 && m.is_look)
		birth->size_bytes = m.geo.size_bytes;
	meter_step(m.meter, METER_WAITS, 0);
	file_close(m.fd);
	ring_free(m.r);
	return sync_no_room(e, err, err_len);
}
