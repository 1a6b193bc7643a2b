/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and locks the files of a disk at a start, and handles its failures. */
#include "extent/disk/disk.h"

#include "extent/disk/file.h"
#include "extent/disk/place.h"
#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "base/check.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#ifndef NO_ROOM_HOLDS_NS
/* time after a write without space from which a successful write proves that there is space */
#define NO_ROOM_HOLDS_NS (10 * NS_PER_S)
#endif
#define SHORT_NS (600 * NS_PER_S)
#define DEPTH_UNKNOWN 64u

void
disk_seg_name(char name[32], int64_t seg)
{
	snprintf(name, 32, seg < 0 ? "log" : "seg-%04u", (unsigned)seg);
}

int
disk_addr(const struct disk *d, uint64_t unit, uint64_t *ret_off)
{
	uint64_t per_seg = geo_seg_units(&d->geo), seg = unit / per_seg;

	*ret_off = d->seg_off + (d->is_device ? unit : unit % per_seg) * d->geo.unit_bytes;
	return seg < d->geo.seg_nr ? d->seg[seg].fd : -1;
}

void
disk_place(const struct disk *d, int64_t seg, uint64_t off, char ret_text[DISK_PLACE_BYTES])
{
	char name[32];

	disk_seg_name(name, seg);
	if (d->is_device)
		off += seg < 0 ? d->log_off : d->seg_off + (uint64_t)seg * d->geo.seg_bytes;
	snprintf(ret_text, DISK_PLACE_BYTES, "%s%s%s at %llu", d->path, d->is_device ? "" : "/",
		 d->is_device ? "" : name, (unsigned long long)off);
}

static void
places(struct disk *d)
{
	d->log_off = d->is_device ? FMT_DEVICE_HEAD_BYTES : 0;
	d->seg_off = d->is_device ? FMT_DEVICE_HEAD_BYTES + d->geo.log_bytes : 0;
}

void
disk_fail(struct disk *d, const char *fmt, ...)
{
	bool is_news = false;
	va_list ap;

	if (!RULE_FAILED_IS_FINAL)
		return;
	pthread_mutex_lock(&d->reason_lock);
	if (atomic_load(&d->state) == UNIT_OK) {
		va_start(ap, fmt);
		vsnprintf(d->reason, sizeof d->reason, fmt, ap);
		va_end(ap);
		atomic_store_explicit(&d->state, UNIT_FAILED, memory_order_release);
		log_event(LOG_EV_DISK_FAILED, LOG_ERROR,
			  "disk %s failed and is read-only until a restart: %s", d->name, d->reason);
		is_news = true;
	}
	pthread_mutex_unlock(&d->reason_lock);
	if (is_news && d->watch)
		d->watch->failed(d->watch);
}

int
disk_wrote(struct disk *d, enum disk_room of, int result)
{
	uint64_t since_ns;

	if (sync_is_no_room(result)) {
		atomic_store(&d->no_room_ns, clock_ns());
		if (atomic_exchange(&d->no_room[of], result) == 0)
			log_warn("%s: no room for what the disk counts as free: %s; writes that need it "
				 "answer 507",
				 d->name, strerror(-result));
		return -ENOSPC;
	}
	if (result < 0 || !atomic_load_explicit(&d->no_room[of], memory_order_relaxed))
		return result;
	/* Some writes need new space and others do not, so a single success is no proof immediately after
	 * a failure. */
	since_ns = atomic_load(&d->no_room_ns);
	if (clock_ns() > since_ns + NO_ROOM_HOLDS_NS && atomic_exchange(&d->no_room[of], 0))
		log_note("%s: writes find room again", d->name);
	return result;
}

bool
disk_is_short(const struct disk *d)
{
	uint64_t since_ns = atomic_load_explicit(&d->no_room_ns, memory_order_relaxed);

	return since_ns && clock_ns() < since_ns + SHORT_NS;
}

int
disk_lacks(const struct disk *d)
{
	int seg = atomic_load(&d->seg_error), e = sync_is_no_room(seg) ? seg : 0;

	for (int i = 0; e == 0 && i < DISK_ROOM_NR; i++)
		e = atomic_load(&d->no_room[i]);
	return e;
}

void
disk_extents_free(struct disk *d, const uint64_t *ext, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		alloc_free(d->alloc, &(struct extent){ .unit = ext_unit(ext[i]), .units = ext_nr(ext[i]) },
			   false);
	if (nr)
		atomic_fetch_add(&d->freed_nr, 1);
}

/* ---- flushes ---- */

/*
 * The kernel reports a failed flush once, to one caller, and the error may concern the writes of any thread:
 * the leader's own flush can succeed after it. So a flush of another thread is announced to the leader before
 * it begins (flush_elsewhere), and after an error the disk fails before the announcement ends.
 */
static int
flush_done(struct disk *d, int e)
{
	if (e < 0)
		disk_fail(d, "a flush failed: %s", strerror(-e));
	atomic_fetch_sub(&d->flush_elsewhere, 1);
	return e;
}

int
disk_flush_file(struct disk *d, struct ring *r, int fd)
{
	atomic_fetch_add(&d->flush_elsewhere, 1);
	return flush_done(d, sync_flush(r, fd));
}

int
disk_fsync_file(struct disk *d, int fd)
{
	atomic_fetch_add(&d->flush_elsewhere, 1);
	return flush_done(d, file_fsync(fd));
}

int
disk_flush_sync(struct disk *d, struct ring *r)
{
	int e = disk_flush_file(d, r, d->log.fd);

	for (uint32_t i = 0; e == 0 && disk_flushes_any(d) && i < d->geo.seg_nr; i++) {
		if (d->seg[i].fd >= 0 && disk_flushes_own(d, i))
			e = disk_flush_file(d, r, d->seg[i].fd);
	}
	atomic_fetch_add(&d->stats.flushes, 1);
	return e;
}

/* ---- opening ---- */

static int
check_alignment(struct disk *d, int fd)
{
	uint32_t mem, off;
	int e = file_dio_align(fd, &mem, &off);

	if (e < 0)
		return disk_refuse(d, e,
				   "direct I/O does not work here: %s; use ext4, XFS or a "
				   "device",
				   strerror(-e));
	if (mem > FMT_ALIGN || off > FMT_ALIGN)
		return disk_refuse(d, -EINVAL,
				   "direct I/O needs an alignment of %u bytes; at most %u is supported: use "
				   "another device",
				   mem > off ? mem : off, FMT_ALIGN);
	return 0;
}

static int
check_fs(struct disk *d, int fd)
{
	char why[160];
	int e = file_check_fs(fd, why, sizeof why);

	if (e < 0)
		return disk_refuse(d, e, "%s", why);
	d->flush_all = e == 0;
	if (e == 0)
		log_warn("%s: %s", d->name, why);
	return 0;
}

/* Opens the two files of superblocks, one of which may be lost, and the log; or the device, which contains
 * all of them. */
static int
open_head(struct disk *d, uint64_t until_ns)
{
	int e, second;

	if (d->is_device) {
		e = disk_open_locked(d, "super", until_ns, &d->log.fd);
		d->super_fd[0] = d->super_fd[1] = d->log.fd;
		return e;
	}
	e = disk_open_locked(d, super_names[0], until_ns, &d->super_fd[0]);
	if (e < 0 && e != -ENOENT)
		return e;
	second = disk_open_locked(d, super_names[1], until_ns, &d->super_fd[1]);
	if (second == -ENOENT && e < 0) {
		/* With a log this is the directory of a disk, and not an empty mount point. */
		d->has_super = faccessat(d->dir_fd, "log", F_OK, 0) == 0;
		return disk_refuse(d, -ENOTRECOVERABLE, "not a Gantry store (there is no super)%s",
				   d->has_super ? ", but it has a log: put super and super2 back from a copy"
						: "");
	}
	if (second < 0 && second != -ENOENT)
		return second;
	d->has_super = true;
	e = disk_open_locked(d, "log", until_ns, &d->log.fd);
	if (e == -ENOENT)
		return d->is_lenient ? 0
				     : disk_refuse(d, -ENOTRECOVERABLE,
						   "the log is not there; put it back from a copy");
	return e;
}

/* Returns an open file, or the device: the log, or with is_lenient a superblock. */
static int
any_file(const struct disk *d)
{
	return d->log.fd >= 0 ? d->log.fd : d->super_fd[0] >= 0 ? d->super_fd[0] : d->super_fd[1];
}

/* Checks an open file of the directory, of a segment or (seg -1) the log: its owner and its size. The log
 * may be longer than it was made. */
static int
judge_file(struct disk *d, int64_t seg, const char *name)
{
	struct disk_file *f = disk_file(d, seg);
	uint64_t want = disk_file_bytes(d, seg), size;
	int e = disk_check_mark(d, f->fd, name);

	if (e < 0 && !d->is_lenient)
		return e;
	if (e < 0) {
		f->fault = FILE_FOREIGN;
		file_close(f->fd);
		f->fd = -1;
		return 0;
	}
	e = file_size(f->fd, &size);
	if (e < 0)
		return disk_refuse(d, e, "cannot ask for the size of %s: %s", name, strerror(-e));
	f->have = size < want ? size / FMT_ALIGN * FMT_ALIGN : want;
	f->fault = size < want || (size > want && seg >= 0) ? FILE_ODD : FILE_WHOLE;
	if (f->fault == FILE_WHOLE || d->is_lenient)
		return 0;
	return disk_refuse(d, -ENOTRECOVERABLE,
			   "%s is damaged: it has %llu bytes instead of %llu; put it back from a copy", name,
			   (unsigned long long)size, (unsigned long long)want);
}

/* Checks that the log, or the device, belongs to this disk and has its full size. */
static int
check_log(struct disk *d)
{
	uint64_t size;
	int e;

	if (d->log.fd < 0) {
		d->log.fault = FILE_ABSENT;
		return 0;
	}
	if (!d->is_device)
		return judge_file(d, -1, "log");
	e = file_size(d->log.fd, &size);
	if (e < 0 || size >= d->geo.size_bytes)
		return e;
	return disk_refuse(
		d, -ENOTRECOVERABLE,
		"the device is damaged: it has %llu bytes, and was made with %llu; make it as large "
		"again",
		(unsigned long long)size, (unsigned long long)d->geo.size_bytes);
}

struct seg_scan {
	struct disk *d;
	uint64_t until_ns;
};

static int
scan_segment(void *cookie, const char *name)
{
	struct seg_scan *s = cookie;
	struct disk *d = s->d;
	unsigned seg;
	char want[32];
	int e;

	if (sscanf(name, "seg-%u", &seg) != 1 || seg >= d->geo.seg_nr)
		return 0;
	disk_seg_name(want, seg);
	if (strcmp(want, name) != 0)
		return 0; /* a file that was being made, or that a repair renamed */
	e = disk_open_locked(d, name, s->until_ns, &d->seg[seg].fd);
	return e < 0 ? e : judge_file(d, seg, name);
}

static int
open_segments(struct disk *d, uint64_t until_ns)
{
	struct seg_scan s = { d, until_ns };

	d->seg = calloc(d->geo.seg_nr, sizeof *d->seg);
	if (!d->seg)
		return disk_refuse(d, -ENOMEM, "no memory");
	for (uint32_t i = 0; i < d->geo.seg_nr; i++) {
		d->seg[i].fd = d->is_device ? d->log.fd : -1;
		d->seg[i].fault = d->is_device ? FILE_WHOLE : FILE_ABSENT;
	}
	return d->is_device ? 0 : file_each(d->dir_fd, scan_segment, &s);
}

/* Half of the queue of the device leaves room for other users, and for requests that the kernel splits. */
static uint32_t
inline_max(int fd)
{
	unsigned depth = file_queue_depth(fd);

	return depth ? depth / 2 : DEPTH_UNKNOWN / 2;
}

static int
make_alloc(struct disk *d)
{
	uint64_t seg_units = geo_seg_units(&d->geo), run = RUN_BYTES / d->geo.unit_bytes;

	if (run > seg_units / 2)
		run = seg_units / 2;
	return alloc_new(d->geo.seg_nr, (uint32_t)seg_units, (uint32_t)run, &d->alloc);
}

void
disk_init(struct disk *d)
{
	memset(d, 0, sizeof *d);
	d->dir_fd = d->super_fd[0] = d->super_fd[1] = d->log.fd = -1;
	host_init(&d->host);
	pthread_mutex_init(&d->reason_lock, NULL);
	pthread_mutex_init(&d->asked.lock, NULL);
}

void
disk_set_path(struct disk *d, const char *path)
{
	snprintf(d->path, sizeof d->path, "%s", path);
	disk_name(d->name, NULL, d->path);
	d->is_device = file_is_device(path);
}

int
disk_open(struct disk *d, const struct store_disk_conf *dc, struct ring *r, uint64_t lock_wait_ns)
{
	uint64_t until_ns = clock_ns() + lock_wait_ns;
	char why[256];
	int e;

	disk_set_path(d, dc->path);
	places(d);
	if (place_is_memory(dc->path, why, sizeof why))
		log_warn("%s: %s", dc->path, why);
	if (!d->is_device) {
		d->dir_fd = file_open_dir(dc->path, false);
		/* A missing device may appear later; a directory has to be made. */
		if (d->dir_fd == -ENOENT && strncmp(dc->path, "/dev/", 5) != 0)
			return disk_refuse(d, -ENOTRECOVERABLE, "there is no store here yet");
		if (d->dir_fd < 0)
			return disk_refuse_open(d, "", d->dir_fd);
	}
	e = open_head(d, until_ns);
	if (e == -EBUSY)
		disk_peek_uuid(d, r);
	if (e < 0 || (e = check_alignment(d, any_file(d))) < 0 || (e = check_fs(d, any_file(d))) < 0)
		return e;
	/* The geometry is needed to know the segments; only the superblock is read before all of them are
	 * locked. */
	if ((e = disk_read_supers(d, r, dc->size_bytes)) < 0)
		return e;
	d->geo = d->sb.geo;
	places(d);
	d->inline_max = d->is_device ? 0 : inline_max(any_file(d));
	if ((d->sb.kind == SUPER_DEVICE) != d->is_device)
		return disk_refuse(
			d, -ENOTRECOVERABLE,
			"a store that was made as a %s; put it back on one, file by file or byte by byte",
			d->is_device ? "directory" : "block device");
	if (dc->size_bytes && dc->size_bytes != d->geo.size_bytes)
		return disk_refuse(
			d, -EINVAL,
			"size is configured as %llu bytes, but the store was made with %llu and cannot "
			"change; set it to %llu, or leave it out",
			(unsigned long long)dc->size_bytes, (unsigned long long)d->geo.size_bytes,
			(unsigned long long)d->geo.size_bytes);
	if ((e = check_log(d)) < 0 || (e = open_segments(d, until_ns)) < 0 ||
	    (e = disk_open_host(d, r, until_ns)) < 0)
		return e;
	if (e == 0 && (e = disk_layout_begin(d, r)) < 0)
		return disk_refuse(d, e, "cannot flush the segments, or look how they lie: %s", strerror(-e));
	return e == 0 ? make_alloc(d) : e;
}

void
disk_fini(struct disk *d)
{
	for (uint32_t i = 0; d->seg && !d->is_device && i < d->geo.seg_nr; i++)
		file_close(d->seg[i].fd);
	free(d->seg);
	for (int i = 0; i < 2 && !d->is_device; i++)
		file_close(d->super_fd[i]);
	if (!d->is_device)
		file_close(d->host.fd);
	file_close(d->log.fd);
	file_close(d->dir_fd);
	alloc_free_all(d->alloc);
	pthread_mutex_destroy(&d->reason_lock);
	pthread_mutex_destroy(&d->asked.lock);
}
