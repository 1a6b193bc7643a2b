/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk - one disk: its files or its device, its superblock, its free space, and whether it still works.
 *
 *	directory			block device
 *	super	two superblocks		0		two superblocks
 *	log	the ring		1 MiB		the ring
 *	seg-NNNN data			behind it	data; all of it is there from the start
 *
 * Life: disk_init(); disk_open() locks everything, reads the superblocks, knows the space; disk_fini() in
 * any state.  Blocking functions (those that take a ring, and disk_open()) are for start-up and the helper
 * thread, never for a core; xio.h has what cores do.
 *
 * Threads: what disk_open() sets stays as it is while the disk serves, but for seg_fd[], which grows before
 * the allocator hears of a segment, and sb, which is the helper's then.  The rest says it.
 *
 * Errors: -errno.  A failed write or flush is final: disk_fail() says why, disk_failed() is true from then
 * on, until a restart.
 */
#ifndef GANTRY_EXTENT_DISK_DISK_H
#define GANTRY_EXTENT_DISK_DISK_H

#include "extent/disk/alloc.h"
#include "extent/disk/format.h"

#include <pthread.h>
#include <stdatomic.h>

struct ring;

#define RUN_BYTES (64u << 20) /* leased to a port at once */

struct disk_stats {
	_Atomic uint64_t read_bytes, read_ops, written_bytes, write_ops, flushes, errors, crc_errors;
	struct {
		_Atomic uint64_t buckets[LATENCY_NR], sum_ns;
	} latency[DISK_IO_NR];
};

static inline void
disk_took(struct disk_stats *st, enum disk_io io, uint64_t ns)
{
	atomic_fetch_add_explicit(&st->latency[io].buckets[latency_bucket(ns)], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&st->latency[io].sum_ns, ns, memory_order_relaxed);
}

struct disk {
	char path[256];
	struct geometry geo;
	bool is_device;
	bool flush_all;      /* one flush does not cover the disk: every touched file is flushed */
	uint32_t inline_max; /* a directory's I/O goes by_worker (ring.h) when that much is queued */
	int dir_fd, super_fd, log_fd;
	int *seg_fd;             /* geo.seg_nr, -1: not there */
	_Atomic bool *seg_dirty; /* flush_all only */
	uint64_t super_off, log_off,
		seg_off; /* byte offsets in their file; seg_off: of segment 0 on a device */
	struct super sb; /* start's, then the helper's */
	bool lost_super; /* one of the two could not be read, or is damaged: it may have been the newer */
	struct alloc *alloc;

	_Atomic int state; /* enum store_unit_state */
	pthread_mutex_t reason_lock;
	char reason[128];
	struct disk_stats stats;
	_Atomic uint32_t queued;      /* a directory's: requests that the device has of us, about */
	_Atomic uint64_t progress_ns; /* a directory's: when the disk last ended something */
	_Atomic uint64_t freed_nr;    /* grows whenever space came back or was made */
	_Atomic bool segs_coming;     /* the helper will make more */
	_Atomic bool seg_hungry;      /* somebody waits for a segment */
	_Atomic int flush_elsewhere;  /* flushes of the helper whose end is not known to all yet */
};

/* ---- mkdisk.c ---- */

/* Makes an empty disk (force: whatever was there is lost).  The reason of an error is in err. */
int disk_format(const struct store_disk_conf *dc, bool force, char *err, size_t err_len);

/* ---- disk.c ---- */

void disk_init(struct disk *d);
/* Opens, checks and locks everything; reads the superblocks into d->sb.  The reason of an error is in err. */
int disk_open(struct disk *d, const struct store_disk_conf *dc, struct ring *r, uint64_t lock_wait_ns,
	      char *err, size_t err_len);
/* Closes what is open and frees the rest. */
void disk_fini(struct disk *d);
/* Opens a block device, of which there is one open description; waits for whoever has it until then. */
int disk_open_device(const char *path, uint64_t until_ns);
/* Writes the older copy, with the next generation number, and flushes it. */
int disk_write_super(struct disk *d, struct ring *r);
/* Flushes all that was written. */
int disk_flush_sync(struct disk *d, struct ring *r);
/* Makes segment seg ready and gives it to the allocator. */
int disk_make_segment(struct disk *d, struct ring *r, uint32_t seg);
/* Returns the descriptor of the file in which a unit lies, and where in it. */
int disk_addr(const struct disk *d, uint64_t unit, uint64_t *ret_off);
/* Gives extents back to the free space.  Any thread. */
void disk_extents_free(struct disk *d, const uint64_t *ext, uint32_t nr);
/* Makes the disk read-only until a restart, and logs why.  Any thread. */
void disk_fail(struct disk *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Formats the reason of an error and returns r. */
int disk_refuse(char *err, size_t err_len, int r, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static inline bool
disk_failed(const struct disk *d)
{
	return atomic_load_explicit(&d->state, memory_order_acquire) != UNIT_OK;
}

/* ---- segment.c: segments made ready ahead of need ---- */

/* Tells whether segments are still to be made. */
bool disk_segments_left(const struct disk *d);
/* Makes one more segment if it is time for it.  1: made, 0: none is due, or -errno.  Helper thread. */
int disk_grow(struct disk *d, struct ring *r);

#endif
