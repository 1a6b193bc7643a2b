/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk to which a file belongs, and the host that has the disk open.
 *
 * The log and the segments of a directory have a mark, an extended attribute with the disk's UUID and the
 * name of the file, if the file system supports this: a file of another store is detected before its contents
 * are used. A file without a mark is accepted, and gets a mark when a start first writes.
 */
#include "extent/disk/disk.h"

#include "extent/disk/file.h"
#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "base/advice.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"
#include "store/meter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define ZERO_STEP ((uint64_t)64 << 20)

/* ---- marks ---- */

static void
mark_of(const uint8_t *disk_uuid, const char *name, char text[FILE_MARK_MAX])
{
	uuid_write(text, disk_uuid);
	snprintf(text + UUID_TEXT - 1, FILE_MARK_MAX - UUID_TEXT + 1, " %s", name);
}

int
disk_check_mark(struct disk *d, int fd, const char *name)
{
	char has[FILE_MARK_MAX], want[FILE_MARK_MAX];

	mark_of(d->sb.disk_uuid, name, want);
	if (file_mark_get(fd, has) != 1 || strcmp(has, want) == 0)
		return 0;
	return disk_refuse(d, -EINVAL,
			   "%s does not belong there: it is marked '%s' instead of '%s'; put back the right "
			   "file, all of them from one copy",
			   name, has, want);
}

int
disk_zero(struct disk *d, int fd, uint64_t bytes, struct meter_disk *meter, struct ring *r)
{
	int e = 0;

	/* Zeros for a GiB take longer than the interval of heartbeats. */
	for (uint64_t at = 0, n; e == 0 && at < bytes; at += n) {
		n = bytes - at < ZERO_STEP ? bytes - at : ZERO_STEP;
		e = sync_zero(r, fd, at, n);
		meter_add(meter, n);
		disk_beat(d, r);
	}
	return e;
}

int
disk_make_file(struct disk *d, const char *name, uint64_t bytes, struct meter_disk *meter, struct ring *r)
{
	char tmp[48], text[FILE_MARK_MAX];
	int dir_fd = d->dir_fd, fd, e;

	snprintf(tmp, sizeof tmp, "%s.new", name);
	file_unlink(dir_fd, tmp);
	fd = file_open(dir_fd, tmp, true);
	if (fd < 0)
		return fd;
	e = RULE_LOCK_EVERY_FILE ? file_lock(fd) : 0;
	if (e == 0)
		e = disk_zero(d, fd, bytes, meter, r);
	mark_of(d->sb.disk_uuid, name, text);
	file_mark_set(fd, text);
	if (e == 0)
		e = disk_fsync_file(d, fd);
	if (e == 0)
		e = file_rename(dir_fd, tmp, name);
	if (e == 0)
		e = disk_fsync_file(d, dir_fd);
	if (e < 0) {
		file_unlink(dir_fd, tmp);
		file_close(fd);
		return e;
	}
	return fd;
}

/* Marks the files that have no mark: those of earlier versions, and copies without attributes. */
static void
mark_all(struct disk *d)
{
	uint32_t nr = 0;
	int e = 0;

	for (int64_t i = -1; !d->is_device && i < d->geo.seg_nr; i++) {
		int fd = disk_file(d, i)->fd;
		char name[32], text[FILE_MARK_MAX];

		if (fd < 0 || file_mark_get(fd, text) != 0)
			continue;
		disk_seg_name(name, i);
		mark_of(d->sb.disk_uuid, name, text);
		e = file_mark_set(fd, text);
		if (e < 0)
			break;
		nr++;
	}
	if (nr)
		log_note("%s: %u files did not say which disk they are of; they do now", d->name, nr);
	if (e < 0)
		log_warn("%s: files cannot be marked as this disk's: %s", d->name, strerror(-e));
}

/* ---- the host block ---- */

int
disk_open_host(struct disk *d, struct ring *r, uint64_t until_ns)
{
	struct host *h = &d->host;
	int e;

	if (d->is_device) {
		h->fd = d->log.fd;
		h->off = FMT_HOST_OFF;
	} else {
		e = disk_open_locked(d, "host", until_ns, &h->fd);
		if (e < 0)
			return e == -ENOENT ? 0 : e;
	}
	e = host_look(h, r);
	if (e < 0)
		return disk_refuse(d, e, "cannot read the host block: %s", strerror(-e));
	if (h->there && memcmp(h->seen.disk_uuid, d->sb.disk_uuid, 16) != 0) {
		char block[UUID_TEXT], super[UUID_TEXT];

		uuid_write(block, h->seen.disk_uuid);
		uuid_write(super, d->sb.disk_uuid);
		disk_refuse(d, -EINVAL, "superblocks and host block are of two disks (%s, %s)", super, block);
		advice_add(d->why, sizeof d->why, ADVICE_HOST_OF_ANOTHER,
			   &(struct advice_values){ .path = d->path });
		return -EINVAL;
	}
	return 0;
}

static uint64_t
log_seq(struct disk *d)
{
	return atomic_load_explicit(&d->log_seq, memory_order_acquire);
}

int
disk_claim(struct disk *d, struct ring *r, uint64_t log_end)
{
	struct host *h = &d->host;
	uint64_t seq = h->there ? h->seen.log_seq : 0;
	int e;

	if (h->fd < 0) {
		h->fd = file_open(d->dir_fd, "host", true);
		e = h->fd < 0 ? h->fd : file_lock(h->fd);
		if (e < 0)
			return disk_refuse(d, e == -EWOULDBLOCK || e == -EEXIST ? -EBUSY : e,
					   "cannot make the file host: %s", strerror(-e));
	}
	/* Blocks after the last flush may still be lost; blocks that a repair has cut no longer exist. */
	atomic_store(&d->log_seq, seq < log_end ? seq : log_end - 1);
	e = host_claim(h, r, d->sb.disk_uuid, log_seq(d), d->name, d->why, sizeof d->why);
	if (e < 0)
		return e;
	e = sync_flush(r, h->fd);
	if (e < 0)
		return disk_refuse(d, e, "cannot flush the host block: %s", strerror(-e));
	mark_all(d);
	return 0;
}

/* Makes the disk fail if a name leads to another file, or if the file was cut: the next start would not
 * find what is written to the open file. */
static void
look_at_name(struct disk *d, const char *name, int fd, uint64_t bytes)
{
	int place = fd < 0 || disk_failed(d) ? PLACE_SAME : file_where(d->dir_fd, name, fd, bytes);

	if (place > PLACE_SAME)
		disk_fail(d, "its file %s was %s while it was in use", name,
			  place == PLACE_ABSENT  ? "removed"
			  : place == PLACE_OTHER ? "replaced by another"
						 : "cut");
}

/* Makes the disk fail if one of its open files was removed, replaced or cut, and notes where the path leads. */
static void
look_at_names(struct disk *d)
{
	int place = file_where(AT_FDCWD, d->path, d->is_device ? d->log.fd : d->dir_fd, 0);
	char name[32];

	if (!d->is_device) {
		for (int i = 0; i < 2; i++)
			look_at_name(d, super_names[i], d->super_fd[i], FMT_SUPER_BYTES);
		look_at_name(d, "log", d->log.fd, d->geo.log_bytes);
		look_at_name(d, "host", d->host.fd, 0);
		for (uint32_t i = 0; i < d->geo.seg_nr; i++) {
			disk_seg_name(name, i);
			look_at_name(d, name, d->seg[i].fd, d->geo.seg_bytes);
		}
	}
	if (place < 0 || atomic_exchange(&d->path_place, place) == place || disk_failed(d))
		return;
	if (place == PLACE_SAME)
		log_note("%s: the path leads to the open disk again", d->name);
	else
		log_warn("%s: the path %s while the disk is open: the next start will not find it", d->name,
			 place == PLACE_ABSENT ? "was removed or renamed" : "leads elsewhere");
}

uint64_t
disk_beat(struct disk *d, struct ring *r)
{
	char who[160];
	uint64_t now;
	int e;

	if (!d->host.ours || disk_failed(d))
		return UINT64_MAX;
	if (clock_ns() >= d->host.due_ns)
		look_at_names(d);
	if (disk_failed(d))
		return UINT64_MAX;
	e = host_beat(&d->host, r, log_seq(d));
	/* host_beat() also succeeds if no heartbeat was due. */
	e = e < 0 ? disk_wrote(d, DISK_ROOM_OWN, e) : e;
	if (e == -EBUSY) {
		host_text(&d->host, who, sizeof who);
		disk_fail(d, "it was taken over by %s", who[0] ? who : "a host that closed it again");
	} else if (e < 0 && e != -EAGAIN && e != -ENOSPC) {
		disk_fail(d, "writing the host block failed: %s", strerror(-e));
	}
	now = clock_ns();
	return disk_failed(d) ? UINT64_MAX : d->host.due_ns > now ? d->host.due_ns - now : 1;
}

void
disk_release(struct disk *d, struct ring *r)
{
	int e;

	if (disk_failed(d) || !d->host.ours)
		return;
	e = host_close(&d->host, r, log_seq(d));
	if (e == 0)
		e = sync_flush(r, d->host.fd);
	if (e < 0)
		log_warn("%s: that it is closed could not be written to the host block: %s", d->name,
			 strerror(-e));
}
