/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an empty disk: superblocks, log, and the first segment; the other segments are made while the disk
 * serves. Blocking; only for --format. */
#include "extent/disk/disk.h"

#include "extent/disk/file.h"
#include "extent/disk/place.h"
#include "extent/disk/sync.h"
#include "base/advice.h"
#include "base/amount.h"
#include "base/clock.h"
#include "base/cursor.h"
#define LOG_MODULE "store"
#include "base/log.h"
#include "ring/ring.h"
#include "store/meter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

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
	struct disk d; /* files are open, and segments are not used */
	const struct store_disk_conf *dc;
	uint64_t index_bytes;
	struct store_birth *birth; /* NULL: an engine without a set */
	struct meter_disk *meter;  /* NULL: no counts */
	/* is_look: obstacles are reported, and nothing is written */
	bool force, is_look;
	struct ring *r;
};

/* Refuses a disk that is in use. fd: file with its superblock; -1: none. */
static int
refuse_in_use(struct making *m, int fd, const char *what)
{
	struct disk *d = &m->d;

	if (!disk_peek(fd, m->r, d->uuid))
		return disk_refuse(d, -EBUSY, "%s", what);
	return refuse(d->why, sizeof d->why, -EBUSY, "disk %s is %s", disk_name_of(d->name, d->uuid, d->path),
		      what);
}

/* Refuses a path with contents. name: a file there. */
static int
refuse_used(struct making *m, enum advice_id id, const char *name)
{
	struct disk *d = &m->d;
	int e = id == ADVICE_HAS_STORE ? -EALREADY : -EEXIST;

	if (name[0])
		disk_refuse(d, e, "not empty (%s)", name);
	else
		disk_refuse(d, e, id == ADVICE_HAS_STORE ? "has a store already" : "holds data");
	advice_add(d->why, sizeof d->why, id, &(struct advice_values){ .path = m->dc->path });
	return e;
}

/* Waits until it is certain that no other host uses the existing disk. Only with force. */
static int
ask_for_host(struct making *m)
{
	struct disk *d = &m->d;

	return host_wait(&d->host, m->r, d->name, d->why, sizeof d->why);
}

/* Makes the superblock: one epoch has begun, and the only snapshot is empty; the first copy is the newer
 * one. Starts the counts. */
static int
begin(struct making *m, enum super_kind kind)
{
	const struct store_birth *birth = m->birth;
	struct super *sb = &m->d.sb;
	uint8_t seeds[3 * 16];

	meter_step(m->meter, METER_MAKE,
		   m->d.geo.log_bytes + (kind == SUPER_DEVICE ? FMT_DEVICE_HEAD_BYTES : m->d.geo.seg_bytes));
	if (getrandom(seeds, sizeof seeds, 0) != sizeof seeds)
		return -EIO;
	*sb = (struct super){ .gen = 2,
			      .kind = kind,
			      .geo = m->d.geo,
			      .epoch = 1,
			      .snap[0] = { .id = 1, .begin = { .seq = 1, .epoch = 1 } },
			      .start_no = 1 };
	memcpy(sb->store_uuid, seeds, 16);
	memcpy(sb->disk_uuid, seeds + 16, 16);
	memcpy(sb->nonce, seeds + 32, 16);
	memcpy(sb->snap[0].begin.nonce, sb->nonce, 16);
	if (birth) {
		memcpy(sb->store_uuid, birth->store_uuid, UUID_BYTES);
		memcpy(sb->disk_uuid, birth->table.uuid[birth->number], UUID_BYTES);
		sb->table = birth->table;
	} else {
		super_table_of_one(sb);
	}
	return 0;
}

/* Writes the superblocks last, because they complete the store. e: -errno of the steps before, or 0. */
static int
finish(struct making *m, int e)
{
	for (int i = 1; e == 0 && i >= 0; i--)
		e = disk_mend_super(&m->d, m->r, i);
	return e < 0 ? disk_refuse(&m->d, e, "cannot make the store: %s", strerror(-e)) : 0;
}

/* ---- a directory ---- */

/* Removes the files of an older store, after a check that no process uses it. Only with force. */
static int
wipe_directory(struct making *m)
{
	struct disk *d = &m->d;
	char name[64] = "";
	int e = 0;

	for (int i = 0; i < 2; i++) {
		if (d->super_fd[i] >= 0 && file_lock(d->super_fd[i]) < 0)
			e = -EBUSY;
	}
	if (e < 0)
		refuse_in_use(m, d->super_fd[0], "in use by another process; stop gantryd first");
	d->host.fd = e < 0 ? -1 : file_open(d->dir_fd, "host", false);
	if (d->host.fd >= 0)
		e = ask_for_host(m);
	/* One file at a time, because the directory must not change while it is read. */
	while (e == 0 && (e = file_each(d->dir_fd, one_of_ours, name)) != 0) {
		e = e == 1 ? file_unlink(d->dir_fd, name) : e;
		if (e < 0)
			disk_refuse(d, e, "cannot remove %s: %s", name, strerror(-e));
	}
	for (int i = 0; i < 2; i++) {
		file_close(d->super_fd[i]);
		d->super_fd[i] = -1;
	}
	return e;
}

/* Refuses a directory that is not suitable for a store. With force, unless is_look, removes an older
 * store. */
static int
clear_directory(struct making *m)
{
	char name[64] = "", has[AMOUNT_TEXT], size[AMOUNT_TEXT];
	uint64_t room;
	int e;

	if (file_is_root(m->d.dir_fd))
		return disk_refuse(&m->d, -EINVAL,
				   "the root of a system is no disk; make a directory of its own");
	e = file_each(m->d.dir_fd, any_name, name);
	/* A store has at least one of them. */
	for (int i = 0; i < 2; i++)
		m->d.super_fd[i] = file_open(m->d.dir_fd, super_names[i], false);
	if (e == 1 && !m->force)
		return m->d.super_fd[0] >= 0 || m->d.super_fd[1] >= 0
			       ? refuse_used(m, ADVICE_HAS_STORE, "")
			       : refuse_used(m, ADVICE_NOT_EMPTY, name);
	if (e >= 0)
		e = m->force && !m->is_look ? wipe_directory(m) : 0;
	if (e == 0 && file_room(m->d.dir_fd, &room) == 0 && room < m->dc->size_bytes)
		return disk_refuse(&m->d, -ENOSPC, "the file system has room for %s, and %s are wanted",
				   size_text(room, has), size_text(m->dc->size_bytes, size));
	return e;
}

static int
format_directory(struct making *m)
{
	char size[AMOUNT_TEXT];
	int e;

	if (place_is_dev(m->dc->path))
		return disk_refuse(&m->d, -ENODEV, "there is no such device, and nothing is made below /dev");
	if (m->dc->size_bytes == 0)
		return disk_refuse(&m->d, -EINVAL, "a directory needs a size");
	if (geo_choose(m->dc->size_bytes, m->index_bytes, &m->d.geo) < 0)
		return disk_refuse(&m->d, -EINVAL, "%s are too few", size_text(m->dc->size_bytes, size));
	m->d.dir_fd = file_open_dir(m->dc->path, true);
	if (m->d.dir_fd < 0)
		return disk_refuse(&m->d, m->d.dir_fd, "%s", strerror(-m->d.dir_fd));
	e = clear_directory(m);
	if (e < 0 || m->is_look)
		return e;
	e = begin(m, SUPER_DIRECTORY);
	if (e == 0)
		e = m->d.log.fd = disk_make_file(&m->d, "log", m->d.geo.log_bytes, m->meter, m->r);
	if (e >= 0) {
		e = disk_make_file(&m->d, "seg-0000", m->d.geo.seg_bytes, m->meter, m->r);
		file_close(e);
	}
	return finish(m, e < 0 ? e : 0);
}

/* ---- a device ---- */

/* Reads the last MiB, also if the size of the device is not a multiple of FMT_ALIGN. buf: room for a MiB. */
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

/* Finds out whether a device has contents. All bytes other than zeros in the first or last MiB are data (a
 * partition table has a copy at the end, a member of an array its superblock). A store has a superblock in
 * the first MiB, or at the end: *ret_second is its offset, or 0. device_bytes: size of the device;
 * size_bytes: size of the store. */
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
	free(buf);
	*ret_second = e == 0 && super_scan(r, fd, size_bytes, &sb) == 0 ? geo_second_off(&sb.geo) : 0;
	*ret_store |= *ret_second != 0;
	return e;
}

/* Opens and locks the device. */
static int
open_device(struct making *m)
{
	struct disk *d = &m->d;

	d->log.fd = disk_open_device(d->path, clock_ns() + NS_PER_S);
	if (d->log.fd == -EBUSY) {
		d->log.fd = file_open_device(d->path, true);
		return refuse_in_use(m, d->log.fd,
				     "in use by another process, or mounted; stop what has it first");
	}
	if (d->log.fd < 0)
		return disk_refuse(d, d->log.fd, "%s", strerror(-d->log.fd));
	d->super_fd[0] = d->super_fd[1] = d->host.fd = d->log.fd;
	d->host.off = FMT_HOST_OFF;
	return file_lock(d->log.fd) < 0
		       ? refuse_in_use(m, d->log.fd, "in use by another process; stop gantryd first")
		       : 0;
}

static int
format_device(struct making *m)
{
	struct disk *d = &m->d;
	uint64_t bytes = 0, size_bytes, second = 0;
	bool empty = false, store = false;
	char text[AMOUNT_TEXT];
	int e = open_device(m);

	if (e < 0)
		return e;
	e = file_size(d->log.fd, &bytes);
	size_bytes = m->dc->size_bytes ? m->dc->size_bytes : bytes;
	if (e == 0)
		e = look_at_device(d->log.fd, m->r, bytes, size_bytes, &empty, &store, &second);
	if (e < 0)
		return disk_refuse(d, e, "%s", strerror(-e));
	if ((store || !empty) && !m->force)
		return refuse_used(m, store ? ADVICE_HAS_STORE : ADVICE_HOLDS_DATA, "");
	e = m->force ? ask_for_host(m) : 0;
	if (e < 0)
		return e;
	if (size_bytes > bytes || geo_choose(size_bytes, m->index_bytes, &d->geo) < 0)
		return disk_refuse(d, -EINVAL, "the device has %s", size_text(bytes, text));
	if (m->is_look)
		return 0;
	d->super_off[1] = geo_second_off(&d->geo);
	e = begin(m, SUPER_DEVICE);
	if (e == 0)
		e = disk_zero(d, d->log.fd, FMT_DEVICE_HEAD_BYTES + d->geo.log_bytes, m->meter, m->r);
	/* The second superblock of the previous store must not be found any longer. */
	if (e == 0 && second)
		e = sync_zero(m->r, d->log.fd, second, FMT_SUPER_BYTES);
	return finish(m, e == 0 ? file_fsync(d->log.fd) : e);
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
			    .is_look = birth && birth->is_look };
	struct disk *d = &m.d;
	char why[256];
	int e = sync_ring(&m.r, err, err_len);

	if (e < 0)
		return e;
	if (!m.is_look && place_is_memory(dc->path, why, sizeof why))
		log_warn("%s: %s", dc->path, why);
	disk_init(d);
	disk_set_path(d, dc->path);
	e = d->is_device ? format_device(&m) : format_directory(&m);
	if (e == 0 && m.is_look)
		birth->size_bytes = d->geo.size_bytes;
	if (e < 0)
		snprintf(err, err_len, "%s", d->why);
	meter_step(m.meter, METER_WAITS, 0);
	disk_fini(d);
	ring_free(m.r);
	return sync_no_room(e, err, err_len);
}
