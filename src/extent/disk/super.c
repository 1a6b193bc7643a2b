/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two superblocks: their locations, and which of them is used.
 *
 *                  first          second
 *     directory    file super     file super2
 *     device       0              2 MiB before the formatted end
 */
#include "extent/disk/disk.h"

#include "extent/disk/file.h"
#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "store/ops.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCAN_BYTES ((uint64_t)16 << 20)

const char *const super_names[2] = { "super", "super2" };

/* ---- reading ---- */

/* A search for both superblocks. */
struct search {
	struct disk *d;
	struct ring *r;
	struct super one;                   /* superblock that was read last */
	int good, old, damaged, unreadable; /* numbers of superblocks; old: good ones of an earlier version */
	uint32_t other_version;             /* a format version that cannot be read; valid with has_other */
	bool has_other;
	bool mixed;
	uint8_t uuid[2][UUID_BYTES]; /* if mixed: UUIDs of the two disks */
	int error;                   /* error of the last superblock that could not be read */
};

/* Returns true if a is newer than b. Of the same generation the one of the earlier version is newer: the
 * disk was used again after a step to this version that was abandoned. */
static bool
is_newer(const struct super *a, const struct super *b)
{
	return a->gen != b->gen ? a->gen > b->gen : a->version < b->version;
}

/* Reads a superblock. Returns 0, the -errno of the read, or the result of super_decode(). */
static int
read_super(struct ring *r, int fd, uint64_t off, struct super *ret_super)
{
	uint8_t *buf = sync_alloc(FMT_SUPER_BYTES);
	int e = buf ? sync_read(r, fd, buf, FMT_SUPER_BYTES, off) : -ENOMEM;

	if (e == 0)
		e = super_decode(buf, FMT_SUPER_BYTES, ret_super);
	free(buf);
	return e;
}

/* Reads one location. A superblock there is kept if it is the newest so far. */
static void
look(struct search *s, int fd, uint64_t off)
{
	uint64_t size;
	int e = fd < 0 ? -ENOENT : file_size(fd, &size);

	if (e < 0 || size < off + FMT_SUPER_BYTES)
		return;
	e = read_super(s->r, fd, off, &s->one);
	if (e == -EPROTONOSUPPORT) {
		s->other_version = s->one.version;
		s->has_other = true;
		memcpy(s->d->uuid, s->one.disk_uuid, UUID_BYTES);
	} else if (e == -EBADMSG) {
		s->damaged++;
	} else if (e < 0 && e != -ENOENT) {
		s->unreadable += sync_is_unreadable(e);
		s->error = e;
	}
	if (e < 0)
		return;
	if (s->good && memcmp(s->one.disk_uuid, s->d->sb.disk_uuid, UUID_BYTES) != 0) {
		s->mixed = true;
		memcpy(s->uuid[0], s->d->sb.disk_uuid, UUID_BYTES);
		memcpy(s->uuid[1], s->one.disk_uuid, UUID_BYTES);
	}
	if (!s->good || is_newer(&s->one, &s->d->sb))
		s->d->sb = s->one;
	s->good++;
	s->old += s->one.version < FMT_VERSION;
}

int
super_scan(struct ring *r, int fd, uint64_t size_bytes, struct super *ret_super)
{
	uint64_t at = size_bytes / FMT_ALIGN * FMT_ALIGN, least = at > SCAN_BYTES ? at - SCAN_BYTES : 0;
	uint8_t *buf = sync_alloc(FMT_ALIGN);
	int e = buf ? -ENOENT : -ENOMEM;

	/* The search begins at the end, because data of clients, which may look like a superblock, is
	 * before it. */
	for (at -= at < FMT_SUPER_BYTES ? at : FMT_SUPER_BYTES; e == -ENOENT && at > least; at -= FMT_ALIGN) {
		if (sync_read(r, fd, buf, FMT_ALIGN, at) == 0 && super_peek(buf) &&
		    read_super(r, fd, at, ret_super) == 0 && geo_second_off(&ret_super->geo) == at)
			e = 0;
	}
	free(buf);
	return e;
}

/* Reads the second superblock. Its location follows from the first one; if the first one is lost, it is
 * searched. */
static void
look_at_end(struct search *s, uint64_t size_bytes)
{
	struct disk *d = s->d;

	if (!s->good && super_scan(s->r, d->log.fd, size_bytes, &s->one) < 0)
		return;
	d->super_off[1] = geo_second_off(s->good ? &d->sb.geo : &s->one.geo);
	look(s, d->log.fd, d->super_off[1]);
}

/* Returns 0 if one superblock can be used; otherwise -errno with the reason. */
static int
judge(const struct search *s)
{
	struct disk *d = s->d;
	char text[2][UUID_TEXT];

	if (s->error < 0 && !(s->good && s->unreadable))
		return disk_refuse(d, s->error, "cannot read the superblock: %s%s", strerror(-s->error),
				   disk_way_out(s->error));
	for (int i = 0; i < 2; i++)
		uuid_write(text[i], s->uuid[i]);
	if (s->mixed)
		return disk_refuse(
			d, -EINVAL,
			"the two superblocks are of different disks; put back the one that belongs "
			"here, or clear the one that does not (%s, %s)",
			text[0], text[1]);
	if (s->has_other)
		return refuse(
			d->why, sizeof d->why, -EPROTONOSUPPORT,
			"disk %s was made by another version of Gantry (its format is %u, and this one reads "
			"%u to %u); start that one",
			d->name, s->other_version, fmt_oldest, FMT_VERSION_MAX);
	if (!s->good)
		return disk_refuse(d, -ENOTRECOVERABLE, "%s",
				   s->damaged ? "both superblocks are damaged; put one back from a copy"
					      : "not a Gantry store (no superblock)");
	return 0;
}

int
disk_read_supers(struct disk *d, struct ring *r, uint64_t conf_bytes)
{
	struct search *s = &(struct search){ .d = d, .r = r };
	uint64_t size = conf_bytes;
	int e = 0;

	/* Read one by one, so that a bad sector affects only one of them. */
	d->super_off[1] = 0;
	look(s, d->super_fd[0], 0);
	if (d->is_device && !size)
		e = file_size(d->log.fd, &size);
	if (d->is_device && e == 0)
		look_at_end(s, size);
	else if (e == 0)
		look(s, d->super_fd[1], 0);
	if (s->good && !s->mixed)
		memcpy(d->uuid, d->sb.disk_uuid, UUID_BYTES);
	disk_name_of(d->name, d->uuid, d->path);
	d->has_super = s->good || s->damaged || s->has_other;
	if (e == 0)
		e = judge(s);
	d->lost_super = s->good < 2;
	d->is_old = s->old > 0;
	atomic_store(&d->records_version, d->sb.records_version);
	if (e == 0 && d->lost_super)
		log_warn("%s: one of the two superblocks %s; the other one counts", d->name,
			 s->unreadable ? "cannot be read"
			 : s->damaged  ? "is damaged"
				       : "is not there");
	return e;
}

bool
disk_peek(int fd, struct ring *r, uint8_t ret_uuid[UUID_BYTES])
{
	struct super sb;
	bool has = fd >= 0 && read_super(r, fd, 0, &sb) == 0;

	if (has)
		memcpy(ret_uuid, sb.disk_uuid, UUID_BYTES);
	return has;
}

void
disk_peek_uuid(struct disk *d, struct ring *r)
{
	int fd = d->is_device ? file_open_device(d->path, true) : d->super_fd[0];

	disk_peek(fd, r, d->uuid);
	if (d->is_device)
		file_close(fd);
}

/* ---- writing ---- */

/* Writes one of the two superblocks, into a new file if it has no file. */
static int
write_copy(struct disk *d, struct ring *r, int copy, const struct super *sb)
{
	uint8_t *buf = sync_alloc(FMT_SUPER_BYTES);
	int *fd = &d->super_fd[copy], e = buf ? 0 : -ENOMEM;

	if (e == 0 && *fd < 0)
		*fd = e = disk_make_file(d, super_names[copy], FMT_SUPER_BYTES, NULL, r);
	if (e >= 0) {
		super_encode(buf, sb);
		e = sync_write(r, *fd, buf, FMT_SUPER_BYTES, d->super_off[copy]);
	}
	free(buf);
	return e;
}

int
disk_write_super(struct disk *d, struct ring *r)
{
	int at, e = 0;

	/* After a failed write its superblock may be half written, and the other one is the last intact
	 * one. */
	if (disk_failed(d))
		return -EROFS;
	/* A superblock that an earlier process wrote may have been read from a cache: the newer one must
	 * be on the disk before the older one is overwritten. */
	for (int i = 0; e == 0 && !d->super_is_flushed && RULE_SUPER_NEWER_FLUSHED && i < 2; i++)
		e = d->super_fd[i] < 0 ? 0 : disk_flush_file(d, r, d->super_fd[i]);
	d->super_is_flushed = e == 0;
	if (e < 0)
		return e;
	d->sb.gen++;
	/* An interrupted write leaves the newer one intact. */
	at = RULE_SUPER_OLDER_COPY ? (int)(d->sb.gen % 2) : 0;
	e = disk_wrote(d, DISK_ROOM_OWN, write_copy(d, r, at, &d->sb));
	/* Nothing was written: the next attempt writes the same copy, which is still the older one. */
	if (e == -ENOSPC)
		d->sb.gen--;
	else if (e < 0)
		disk_fail(d, "writing the superblock failed: %s", strerror(-e));
	if (e == 0 && RULE_SUPER_FLUSHED)
		e = disk_flush_file(d, r, d->super_fd[at]);
	return e;
}

int
disk_write_supers(struct disk *d, struct ring *r)
{
	int e = disk_write_super(d, r);

	return e == 0 ? disk_write_super(d, r) : e;
}

/* ---- the placement map, and the version that records need ---- */

int
disk_write_table(struct disk *d, struct ring *r)
{
	d->sb.is_behind = false;
	return RULE_TABLE_IN_BOTH ? disk_write_supers(d, r) : disk_write_super(d, r);
}

void
disk_ask_version(struct disk *d, uint32_t version)
{
	pthread_mutex_lock(&d->asked.lock);
	d->asked.version = version > d->asked.version ? version : d->asked.version;
	pthread_mutex_unlock(&d->asked.lock);
}

void
disk_ask_table(struct disk *d, const struct disk_table *t, struct store_table_write *w)
{
	pthread_mutex_lock(&d->asked.lock);
	d->asked.table = *t;
	d->asked.w = w;
	pthread_mutex_unlock(&d->asked.lock);
}

void
disk_super_work(struct disk *d, struct ring *r)
{
	uint32_t was = d->sb.records_version, version;
	struct store_table_write *w;
	int e;

	pthread_mutex_lock(&d->asked.lock);
	w = d->asked.w;
	d->asked.w = NULL;
	version = d->asked.version > was ? d->asked.version : was;
	if (w && !disk_failed(d))
		d->sb.table = d->asked.table;
	pthread_mutex_unlock(&d->asked.lock);
	if (!w && (version == was || disk_failed(d)))
		return;
	d->sb.records_version = version;
	e = w ? disk_write_table(d, r) : disk_write_supers(d, r);
	if (e == 0)
		atomic_store(&d->records_version, version);
	else
		d->sb.records_version = was;
	if (w && e == -ENOSPC && !disk_failed(d)) {
		pthread_mutex_lock(&d->asked.lock);
		if (!d->asked.w)
			d->asked.w = w;
		pthread_mutex_unlock(&d->asked.lock);
	} else if (w) {
		w->done(w, e);
	}
}

/* ---- reading and writing again while the disk serves ---- */

/* Returns the generation of a copy: the newer copy has the generation in memory, the other copy the previous one. */
static uint64_t
gen_of(const struct disk *d, int copy)
{
	return d->sb.gen - (d->sb.gen % 2 != (unsigned)copy);
}

int
disk_check_super(struct disk *d, struct ring *r, int copy)
{
	struct super sb;
	int e = d->super_fd[copy] < 0 ? -ENOENT : read_super(r, d->super_fd[copy], d->super_off[copy], &sb);

	return e == -ENOENT || e == -EPROTONOSUPPORT || (e == 0 && sb.gen != gen_of(d, copy)) ? -EBADMSG : e;
}

int
disk_mend_super(struct disk *d, struct ring *r, int copy)
{
	struct super sb = d->sb;
	int e;

	sb.gen = gen_of(d, copy);
	e = write_copy(d, r, copy, &sb);
	return e == 0 ? disk_flush_file(d, r, d->super_fd[copy]) : e;
}
