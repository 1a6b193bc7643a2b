/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk - one disk: its files or its device, its superblock, its free space, and whether it still works.
 *
 *	directory			block device
 *	super	a superblock		0		a superblock
 *	super2	the other one		last 2 MiB	the other one (behind the first where data is there)
 *	host	who has it open		256 KiB		who has it open
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
#include "extent/disk/host.h"
#include "extent/disk/rules.h"

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

/* Where disk_layout_work() is; the helper's, but for odd_nr. */
struct layout {
	_Atomic uint32_t odd_nr;    /* segments that are odd */
	uint32_t told_nr;           /* of which the log has said it */
	uint32_t seg;               /* looked at, up to off */
	uint64_t off, round_ns;     /* when this round began */
	uint32_t mend_seg;          /* mended, up to mend_off */
	uint64_t mend_off, mend_ns; /* not before that */
	int mend_error;
	bool told_error, passed;
	_Atomic bool is_through; /* a pass has mended what it could, and was looked at */
};

struct disk {
	char path[256];
	struct geometry geo;
	bool is_device;
	bool flush_all; /* one flush does not cover the disk: every touched file is flushed */
	struct layout layout;
	uint32_t inline_max; /* a directory's I/O goes by_worker (ring.h) when that much is queued */
	int dir_fd, log_fd;
	int super_fd[2]; /* -1: lost */
	int *seg_fd;     /* geo.seg_nr, -1: not there */
	/* A directory's: written to since it was last flushed itself (if ever); and it has to be, as the file system
	 * has no place of its own for all of it. */
	_Atomic bool *seg_dirty, *seg_odd;
	uint64_t super_off[2], log_off,
		seg_off;          /* byte offsets in their file; seg_off: of segment 0 on a device */
	struct super sb;          /* start's, then the helper's */
	bool super_is_flushed;    /* what the superblocks were read as is on the disk */
	struct host host;         /* start's, then the helper's */
	_Atomic uint64_t log_seq; /* newest log block known to be flushed, for the host block */
	uint8_t uuid
		[UUID_BYTES]; /* who it is as far as is known, also when it could not be opened; or zeros */
	bool has_super;       /* likewise: there is a superblock, whole or not */
	bool lost_super; /* one of the two could not be read, or is damaged: it may have been the newer */
	bool is_old;     /* there is a superblock of an earlier format version: disk_upgrade() is due */
	struct alloc *alloc;

	uint64_t timeout_ns;  /* a write or flush that takes longer fails it; 0: none does */
	unsigned workers_max; /* of a thread's workers those that may be busy for it; 0: all */
	_Atomic int state;    /* enum store_unit_state */
	pthread_mutex_t reason_lock;
	char reason[128];
	struct store_watch *watch; /* is told when it fails; NULL: nobody is */
	struct {
		pthread_mutex_t lock;
		struct store_table_write *w; /* NULL: none is asked for */
		struct disk_table table;
	} asked; /* a table to be written by the helper thread */
	struct disk_stats stats;
	_Atomic uint32_t queued;      /* a directory's: requests that the device has of us, about */
	_Atomic uint64_t progress_ns; /* a directory's: when the disk last ended something */
	_Atomic uint64_t freed_nr;    /* grows whenever space came back or was made */
	_Atomic bool segs_coming;     /* the helper will make more */
	_Atomic bool seg_hungry;      /* somebody waits for a segment */
	_Atomic int flush_elsewhere;  /* flushes of the helper whose end is not known to all yet */
};

/* ---- mkdisk.c ---- */

/* Makes an empty disk for an index of at most so many bytes (force: whatever was there is lost).  birth: what it is
 * in a store of several; NULL: it is a store.  The reason of an error is in err. */
int disk_format(const struct store_disk_conf *dc, uint64_t index_bytes, struct store_birth *birth, bool force,
		char *err, size_t err_len);

/* ---- disk.c ---- */

void disk_init(struct disk *d);
/* Opens, checks and locks everything; reads the superblocks into d->sb.  The reason of an error is in err. */
int disk_open(struct disk *d, const struct store_disk_conf *dc, struct ring *r, uint64_t lock_wait_ns,
	      char *err, size_t err_len);
/* Closes what is open and frees the rest. */
void disk_fini(struct disk *d);
/* Opens a block device, of which there is one open description; waits for whoever has it until then. */
int disk_open_device(const char *path, uint64_t until_ns);
/* Flushes all that was written, or one file; a failure fails the disk. */
int disk_flush_sync(struct disk *d, struct ring *r);
int disk_flush_file(struct disk *d, struct ring *r, int fd);
/* Makes a file of that many zeros in the directory, locked: written whole under another name, then renamed, so that
 * it is what its name says.  Returns its descriptor. */
int disk_make_file(struct disk *d, const char *name, uint64_t bytes, struct ring *r);
/* Makes segment seg ready and gives it to the allocator. */
int disk_make_segment(struct disk *d, struct ring *r, uint32_t seg);
/* Returns the descriptor of the file in which a unit lies, and where in it. */
int disk_addr(const struct disk *d, uint64_t unit, uint64_t *ret_off);
/* Writes where a byte lies, as an operator has it: the file or the device, and the offset in it.  seg: of the segment,
 * -1: of the log. */
#define DISK_PLACE_BYTES 320
void disk_place(const struct disk *d, int64_t seg, uint64_t off, char ret_text[DISK_PLACE_BYTES]);
/* Writes the name of a segment's file. */
void disk_seg_name(char name[32], uint32_t seg);
/* Gives extents back to the free space.  Any thread. */
void disk_extents_free(struct disk *d, const uint64_t *ext, uint32_t nr);
/* Makes the disk read-only until a restart, and logs why.  Any thread. */
void disk_fail(struct disk *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Formats the reason of an error and returns r. */
int disk_refuse(char *err, size_t err_len, int r, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Says why a file, or with name "" the path itself, cannot be opened, and what to do; returns error. */
int disk_refuse_open(const char *path, const char *name, int error, char *err, size_t err_len);
/* Returns what an operator can do about an error, as the end of a sentence; "": nothing comes to mind. */
const char *disk_way_out(int error);

static inline bool
disk_failed(const struct disk *d)
{
	return atomic_load_explicit(&d->state, memory_order_acquire) != UNIT_OK;
}

/* ---- super.c: the two superblocks ---- */

/* Names the file of each in a directory. */
extern const char *const super_names[2];

/* Reads both, wherever they are, into d->sb the newer one; conf_bytes: the configured size of a device, or 0.  The
 * reason of an error is in err. */
int disk_read_supers(struct disk *d, struct ring *r, uint64_t conf_bytes, char *err, size_t err_len);
/* Reads what the first superblock there says that the disk is; fd may be < 0.  False: that cannot be read. */
bool disk_peek(int fd, struct ring *r, uint8_t ret_uuid[UUID_BYTES]);
/* Reads into d->uuid who it is, if that can be read, of a disk that somebody else has. */
void disk_peek_uuid(struct disk *d, struct ring *r);
/* Writes the older one, with the next generation number, and flushes it.  -EROFS: the disk has failed. */
int disk_write_super(struct disk *d, struct ring *r);
/* Writes the table into both, as it stands nowhere else: a start that has lost the newer one has it, too. */
int disk_write_table(struct disk *d, struct ring *r);
/* Asks the helper thread, which the caller rings, to write a table.  Any thread. */
void disk_ask_table(struct disk *d, const struct disk_table *t, struct store_table_write *w);
/* Writes the table that was asked for, if one was; where that fails, the disk does.  Helper thread, between any two writes of
 * a superblock. */
void disk_table_work(struct disk *d, struct ring *r);
/* Reads one (0, 1) again: 0; -EBADMSG: it is not what was written; -EIO and the like. */
int disk_check_super(struct disk *d, struct ring *r, int copy);
/* Writes one again, as it should be.  That it cannot be written fails nothing. */
int disk_mend_super(struct disk *d, struct ring *r, int copy);
/* Brings both to this format version, and to their places: each state in between can be upgraded again. */
int disk_upgrade(struct disk *d, struct ring *r);
/* Looks for a second superblock at the end of a device of that size, of which the first is lost.  0, -ENOENT or
 * -errno. */
int super_scan(struct ring *r, int fd, uint64_t size_bytes, struct super *ret_super);

/* Takes the lock of a file that is open; waits until then for whoever has it.  The reason of an error is in err. */
int disk_lock(const char *path, const char *name, int fd, uint64_t until_ns, char *err, size_t err_len);

/* ---- owner.c: which disk a file belongs to, and which host has the disk ---- */

/* Checks the mark of a file that is open.  0, also where it has none, or -EINVAL with the reason in err. */
int disk_check_mark(const struct disk *d, int fd, const char *name, char *err, size_t err_len);
/* Marks a file that has just been made.  Where that is not possible it stays without. */
void disk_mark(const uint8_t *disk_uuid, int fd, const char *name);
/* Opens and locks the file of the host block, if there is one, and checks which disk it is of. */
int disk_open_host(struct disk *d, struct ring *r, uint64_t until_ns, char *err, size_t err_len);
/* Makes the disk this instance's before anything else is written, and marks the files without a mark.  log_end:
 * number of the first log block that is not there, UINT64_MAX: not known.  0, -EBUSY: another host was faster, -errno; the reason is in
 * err. */
int disk_claim(struct disk *d, struct ring *r, uint64_t log_end, char *err, size_t err_len);
/* Beats if it is time; fails the disk if that fails, or if another host has taken it.  Returns the nanoseconds to
 * the next beat, UINT64_MAX: none.  Whatever takes long on the helper thread calls it now and then. */
uint64_t disk_beat(struct disk *d, struct ring *r);
/* Says in the host block that nobody has the disk. */
void disk_release(struct disk *d, struct ring *r);
/* ---- layout.c: how the file system has the segments ---- */

/* Tells whether a segment has to be flushed itself when it was touched. */
static inline bool
disk_flushes_own(const struct disk *d, uint32_t seg)
{
	return d->flush_all || (atomic_load(&d->seg_odd[seg]) && RULE_TOUCHED_FILES_FLUSHED);
}

/* Tells whether there are any. */
static inline bool
disk_flushes_any(const struct disk *d)
{
	return d->flush_all || atomic_load(&d->layout.odd_nr);
}

/* Notes that a write to a segment is over: a flush that began before would not cover it. */
static inline void
disk_touched(struct disk *d, uint32_t seg)
{
	if (!d->is_device && !atomic_load(&d->seg_dirty[seg]))
		atomic_store(&d->seg_dirty[seg], true);
}

/* Flushes and looks at all of them.  At start, when nothing is written. */
int disk_layout_begin(struct disk *d, struct ring *r);
/* Notes what is in use.  At the end of the start, before anybody writes.  0 or -ENOMEM. */
int disk_layout_in_use(struct disk *d);
/* Looks at some of them, and mends a piece of one that is odd.  Returns when it wants to be called again
 * (helper.h).  Helper thread. */
uint64_t disk_layout_work(struct disk *d, struct ring *r);

/* ---- segment.c: segments made ready ahead of need ---- */

/* Tells whether segments are still to be made. */
bool disk_segments_left(const struct disk *d);
/* Makes one more segment if it is time for it.  1: made, 0: none is due, or -errno.  Helper thread. */
int disk_grow(struct disk *d, struct ring *r);

#endif
