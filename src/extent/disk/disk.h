/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk - one disk: its files or its device, its superblock, its free space, and its state.
 *
 * 	directory			block device
 * 	super	a superblock		0		a superblock
 * 	super2	its copy		last 2 MiB	its copy (after the first, if the segments reach there)
 * 	host	the host block		256 KiB		the host block
 * 	log	the ring		1 MiB		the ring
 * 	seg-NNNN data			after it	data; all of it exists from the start
 *
 * Life: disk_init(); disk_open() locks everything and reads the superblocks; disk_fini() in any state.
 * Blocking functions (those that take a ring, and disk_open()) are for start-up and the helper thread, never
 * for a core; xio.h has the I/O functions for cores.
 *
 * Threads: fields set by disk_open() do not change while the disk serves, except seg[], to which a segment
 * is added before the allocator knows the segment, and sb, which then belongs to the helper thread. The other
 * fields name their threads.
 *
 * Errors: -errno. A failed write or flush is final: disk_fail() logs the reason, and disk_failed() is true
 * until a restart. A write for which the file system or the device has no space is no failure of the disk;
 * see disk_wrote().
 */
#ifndef GANTRY_EXTENT_DISK_DISK_H
#define GANTRY_EXTENT_DISK_DISK_H

#include "extent/disk/alloc.h"
#include "extent/disk/format.h"
#include "extent/disk/host.h"
#include "extent/disk/rules.h"
#include "base/disk_name.h"
#include "base/refuse.h"
#include "base/run_clock.h"

#include <pthread.h>
#include <stdatomic.h>

struct meter_disk;
struct ring;

#define DISK_WHY_BYTES 1200
#define RUN_BYTES (64u << 20) /* size of a port's lease of space, in bytes */

struct disk_stats {
	_Atomic uint64_t read_bytes, read_ops, written_bytes, write_ops, flushes, errors, crc_errors;
	/* space_refused: number of operations refused for lack of space on the disk; index_refused: number of
	 * operations refused for lack of memory in the index */
	_Atomic uint64_t space_refused, index_refused;
	struct latency_counts latency[DISK_IO_NR];
};

/* Faults of a file that belongs to a disk. */
enum file_fault {
	FILE_WHOLE,
	/* the file does not exist; the file of a segment may be absent because the segment was not made
	 * yet */
	FILE_ABSENT,
	FILE_ODD,     /* the size of the file has changed since it was made */
	FILE_FOREIGN, /* the mark names another disk, or another file of this disk */
};

/* The log or a segment: a file of a directory. On a device fd is the descriptor of the device. */
struct disk_file {
	int fd;        /* -1: the file does not exist */
	uint8_t fault; /* enum file_fault */
	bool is_lost;  /* true: records refer to bytes that are missing in the file */
	/* The last three are for a directory. dirty: true: the segment was written since its last flush. odd:
	 * true: the segment needs its own flush, because the file system has no private blocks for all of its
	 * bytes. */
	_Atomic bool dirty, odd;
	uint64_t have; /* size of the file in bytes, without more than it should have */
};

/* Purposes of writes that may fail for lack of space: data of records; and the engine's own blocks (log,
 * superblocks, host block). */
enum disk_room { DISK_ROOM_DATA, DISK_ROOM_OWN, DISK_ROOM_NR };

/* Progress of disk_layout_work(). The helper thread owns all fields except odd_nr. */
struct layout {
	_Atomic uint32_t
		odd_nr;     /* number of segments that need their own flush ("odd", see struct disk_file) */
	uint32_t logged_nr; /* number of odd segments in the last log line */
	uint32_t seg;       /* segment being examined; the bytes before `off` have been examined */
	/* off: position in seg, in bytes; round_ns: time of clock_ns() at which the current round began, or
	 * at which the next round may begin */
	uint64_t off, round_ns;
	uint32_t mend_seg; /* segment being repaired; the bytes before mend_off have been repaired */
	/* mend_off: position in mend_seg, in bytes; mend_ns: earliest time of the next repair */
	uint64_t mend_off, mend_ns;
	int mend_error;
	bool has_logged_error, passed;
	/* true: a round has repaired every range that can be repaired, and after that all segments were
	 * examined again */
	_Atomic bool is_through;
};

struct disk {
	char path[256];
	char name[DISK_NAME_BYTES]; /* name for messages; the path, before a superblock was read */
	/* Reason of the latest error of a function that opens, repairs, recovers or claims the disk; "": the error
	 * itself says why. Owned by the thread that starts the disk. */
	char why[DISK_WHY_BYTES];
	struct geometry geo;
	bool is_device;
	bool flush_all; /* true: one flush does not cover the disk, so every written file is flushed */
	struct layout layout;
	/* number of requests in `queued` from which on the I/O of a directory uses workers (by_worker of
	 * ring.h) */
	uint32_t inline_max;
	int dir_fd;
	int super_fd[2]; /* descriptors of the superblocks; -1: the superblock is lost */
	/* the log, and the segments, geo.seg_nr entries. If records refer to bytes that are missing in a file, a
	 * start refuses the disk, and only fsck opens it (is_lenient). */
	struct disk_file log, *seg;
	/* true: the disk is opened even if files are absent, too short, or belong to another disk */
	bool is_lenient;
	/* true: nothing is written to the disk; files without write permission are opened for reading */
	bool is_examined;
	/* -errno of a file that could only be opened for reading (is_examined); 0: all files were opened for
	 * writing */
	int read_only;
	/* super_off, log_off: offset in bytes of each superblock and of the log in its file; seg_off: offset
	 * in bytes of segment 0 on a device */
	uint64_t super_off[2], log_off, seg_off;
	/* superblock in memory; owned by the thread that starts the disk, then by the helper thread */
	struct super sb;
	bool super_is_flushed;            /* true: the superblocks that were read are known to be flushed */
	_Atomic uint32_t records_version; /* sb.records_version of the superblocks that are flushed */
	/* state of the host block; owned by the thread that starts the disk, then by the helper thread */
	struct host host;
	/* enum file_place: result of the latest comparison of the path with the open directory or device */
	_Atomic int path_place;
	_Atomic uint64_t log_seq; /* number of the newest log block known to be flushed, for the host block */
	/* UUID of the disk, known even if the disk could not be opened; zeros: unknown */
	uint8_t uuid[UUID_BYTES];
	/* true: a superblock exists, valid or not; known even if the disk could not be opened */
	bool has_super;
	/* true: one superblock was unreadable or damaged; it may have been the newer one */
	bool lost_super;
	bool is_old; /* true: a superblock has an earlier format version, so an upgrade is needed */
	struct alloc *alloc;

	/* time in ns after which a write or flush that has not ended makes the disk fail; 0: no limit */
	uint64_t timeout_ns;
	/* largest number of a thread's workers that may be busy for this disk; 0: all workers */
	unsigned workers_max;
	_Atomic int state; /* state of the disk, an enum store_unit_state */
	pthread_mutex_t reason_lock;
	char reason[128];
	struct store_watch *watch; /* receiver of the failure notification; NULL: none */
	struct {
		pthread_mutex_t lock;
		/* write of a placement map that was requested and has not begun; NULL: no request */
		struct store_table_write *w;
		struct disk_table table;
		uint32_t version; /* format version that records need */
	} asked; /* contents of the superblocks that the helper thread will write on request */
	struct disk_stats stats;
	/* for a directory: approximate number of the daemon's requests in the queue of the device */
	_Atomic uint32_t queued;
	_Atomic uint64_t progress_ns; /* for a directory: time of the latest completion */
	_Atomic uint32_t writes_out;  /* number of writes and flushes in progress */
	/* the later one of two times of run_ns(): the end of the latest write, and the beginning of the first
	 * write in flight */
	_Atomic uint64_t writes_ns;
	_Atomic uint64_t freed_nr; /* counter, incremented whenever space is freed or added */
	_Atomic bool segs_coming;  /* true: the helper thread has segments to make */
	/* no_room: for each purpose of writes, -errno of the latest write for which the file system or the
	 * device had no space; 0: writes for this purpose find space. no_room_ns: time of clock_ns() of the
	 * latest write of any purpose that found no space; 0: every write has found space. */
	_Atomic int no_room[DISK_ROOM_NR];
	_Atomic uint64_t no_room_ns;
	_Atomic int seg_error;   /* -errno of the latest attempt to make a segment; 0: the segment was made */
	_Atomic bool seg_hungry; /* true: a port waits for a segment */
	/* number of flushes in progress outside of the log leader, whose results the leader does not know
	 * yet */
	_Atomic int flush_elsewhere;
};

/* ---- mkdisk.c ---- */

/* Formats an empty disk for an index of at most index_bytes. force: true: formats a disk that is not empty,
 * too, and its data is lost. birth: identity of the disk in its set; NULL: an engine without a set. Returns
 * 0, or -errno with the reason in err. */
int disk_format(const struct store_disk_conf *dc, uint64_t index_bytes, struct store_birth *birth, bool force,
		char *err, size_t err_len);

/* ---- refuse.c ---- */

/* Writes the reason of an error, after the name of the disk, to d->why. Returns r. */
int disk_refuse(struct disk *d, int r, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Writes to d->why why a file of the disk cannot be opened, and the remedy. name: name of the file; "": the path
 * itself cannot be opened. Returns error. */
int disk_refuse_open(struct disk *d, const char *name, int error);
/* Returns the remedy for an error as the end of a sentence; "": no remedy is known. */
const char *disk_way_out(int error);

/* ---- lock.c: files are opened and locked ---- */

/* Opens a block device exclusively. If another process has the device open, tries again until the time
 * until_ns. Returns the descriptor, or -errno. */
int disk_open_device(const char *path, uint64_t until_ns);
/* Opens a file of the directory, or the device, and locks it. *ret_fd: descriptor of the opened file, even if
 * another process holds the lock. Returns 0, -ENOENT if the file does not exist, or another -errno, with the
 * reason in d->why. */
int disk_open_locked(struct disk *d, const char *name, uint64_t until_ns, int *ret_fd);

/* ---- disk.c ---- */

void disk_init(struct disk *d);
/* Sets the path, the path as the name for messages, and whether the path leads to a device. */
void disk_set_path(struct disk *d, const char *path);
/* Opens, checks and locks all files or the device, and reads the superblocks into d->sb. Returns 0, or -errno
 * with the reason in d->why. */
int disk_open(struct disk *d, const struct store_disk_conf *dc, struct ring *r, uint64_t lock_wait_ns);
/* Closes all descriptors and frees all memory of the disk. */
void disk_fini(struct disk *d);
/* Flushes all writes to the disk (disk_flush_sync()), or to one file of the disk (disk_flush_file()). Returns
 * 0 or -errno. A failed flush makes the disk fail. */
int disk_flush_sync(struct disk *d, struct ring *r);
int disk_flush_file(struct disk *d, struct ring *r, int fd);
/* Flushes a file or a directory by fsync(). Returns 0 or -errno. A failed flush makes the disk fail. */
int disk_fsync_file(struct disk *d, int fd);
/* Returns the descriptor of the file that contains a unit (-1: the segment does not exist), and in *ret_off
 * the offset of the unit in this file, in bytes. */
int disk_addr(const struct disk *d, uint64_t unit, uint64_t *ret_off);
/* Size in bytes of the buffer for disk_place(). disk_place() writes the location of a byte for operators: the
 * file or the device, and the offset in it. seg: index of the segment that contains the byte; -1: the byte is
 * in the log. */
#define DISK_PLACE_BYTES 320
void disk_place(const struct disk *d, int64_t seg, uint64_t off, char ret_text[DISK_PLACE_BYTES]);
/* Writes the name of a segment's file, or (seg -1) of the log's. */
void disk_seg_name(char name[32], int64_t seg);
/* Returns the units of nr extents to the free space. Any thread may call this function. */
void disk_extents_free(struct disk *d, const uint64_t *ext, uint32_t nr);
/* Makes the disk read-only until a restart, and logs why. Any thread may call this function. */
void disk_fail(struct disk *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Handles the result of a write; `of`: the purpose of the write. Returns -ENOSPC if the file system or the
 * device had no space; the disk notes and logs this, and does not fail. Returns `result` otherwise. Any
 * thread may call this function. */
int disk_wrote(struct disk *d, enum disk_room of, int result);
/* Returns true if the file system or the device had no space for a write in the last minutes. Any thread may
 * call this function. */
bool disk_is_short(const struct disk *d);
/* Returns the -errno with which the file system or the device has lately refused a write or a new segment,
 * although the disk counts the space as free; 0: writes and new segments find space. */
int disk_lacks(const struct disk *d);
static inline bool
disk_failed(const struct disk *d)
{
	return atomic_load_explicit(&d->state, memory_order_acquire) != UNIT_OK;
}

/* Returns the file of a segment, or (seg -1) of the log. */
static inline struct disk_file *
disk_file(struct disk *d, int64_t seg)
{
	return seg < 0 ? &d->log : &d->seg[seg];
}

/* Returns the size of the file of a segment, or (seg -1) of the log, in bytes, when it is whole. */
static inline uint64_t
disk_file_bytes(const struct disk *d, int64_t seg)
{
	return seg < 0 ? d->geo.log_bytes : d->geo.seg_bytes;
}

/* Returns true if the file of a unit's segment has its full size. */
static inline bool
disk_is_whole(const struct disk *d, uint64_t unit)
{
	uint64_t seg = unit / geo_seg_units(&d->geo);

	return d->is_device || seg >= d->geo.seg_nr || d->seg[seg].fault == FILE_WHOLE;
}

/* Returns true if the file has all units of an extent. */
static inline bool
disk_has(const struct disk *d, uint64_t unit, uint64_t units)
{
	uint64_t per_seg = geo_seg_units(&d->geo), seg = unit / per_seg;

	return d->is_device || seg >= d->geo.seg_nr ||
	       (unit % per_seg + units) * d->geo.unit_bytes <= d->seg[seg].have;
}

/* Counts a write or flush that begins. Any thread may call this function. */
static inline void
disk_write_begins(struct disk *d)
{
	if (atomic_fetch_add_explicit(&d->writes_out, 1, memory_order_relaxed) == 0)
		atomic_store_explicit(&d->writes_ns, run_ns(), memory_order_relaxed);
}

static inline void
disk_write_ends(struct disk *d)
{
	atomic_store_explicit(&d->writes_ns, run_ns(), memory_order_relaxed);
	atomic_fetch_sub_explicit(&d->writes_out, 1, memory_order_relaxed);
}

/* Returns the time in ns since the latest write or flush has ended, or since the first write or flush in
 * flight began, if that was later. Pauses of the process do not count. 0: no write or flush is in flight. */
static inline uint64_t
disk_writes_wait_ns(const struct disk *d)
{
	return atomic_load_explicit(&d->writes_out, memory_order_relaxed)
		       ? run_since_ns(atomic_load_explicit(&d->writes_ns, memory_order_relaxed))
		       : 0;
}

/* ---- segment.c ---- */

/* Describes the fault of a file in `text`, as the end of a sentence. seg: index of the segment of the file;
 * -1: the log. */
void disk_fault_text(struct disk *d, int64_t seg, char *text, size_t len);
/* Extends the file of the log with zeros to its full size, if the file is too short. Called after
 * disk_open(), before the recovery. Returns 0, or -errno with the reason in d->why. */
int disk_mend_log(struct disk *d, struct ring *r);
/* Extends the files of segments that are too short with zeros, and creates missing files to which records
 * refer. A file of another disk gets another name. Returns 0, or -errno with the reason in d->why. */
int disk_mend_segments(struct disk *d, struct ring *r);

/* ---- super.c: the two superblocks ---- */

/* File names of the superblocks in a directory. */
extern const char *const super_names[2];

/* Reads both superblocks at every possible location, and puts the newer one into d->sb. conf_bytes:
 * configured size of a device; 0: the size is not configured. Returns 0, or -errno with the reason in d->why. */
int disk_read_supers(struct disk *d, struct ring *r, uint64_t conf_bytes);
/* Reads the UUID of the disk from the first superblock. Returns false if the superblock cannot be read, or if
 * fd < 0. */
bool disk_peek(int fd, struct ring *r, uint8_t ret_uuid[UUID_BYTES]);
/* Reads into d->uuid the UUID of a disk that another process has open, if the superblock can be read. */
void disk_peek_uuid(struct disk *d, struct ring *r);
/* Writes d->sb over the older of the two superblocks, with the next generation number, and flushes it.
 * Returns 0; -EROFS if the disk has failed; or another -errno. */
int disk_write_super(struct disk *d, struct ring *r);
/* Writes d->sb over both superblocks, one after the other; so both have this format version. After an interruption at any
 * point the call can be repeated. Returns 0 or -errno. */
int disk_write_supers(struct disk *d, struct ring *r);
/* Writes the placement map into both superblocks, so that a start that can read only the older superblock has
 * the map, too. The superblocks are the only places on the disk that have the map. Returns 0 or -errno. */
int disk_write_table(struct disk *d, struct ring *r);
/* Asks the helper thread to write a placement map; w->done() is called on the helper thread. The caller wakes
 * the helper thread after this call (helper_ring()). Any thread may call this function. */
void disk_ask_table(struct disk *d, const struct disk_table *t, struct store_table_write *w);
/* Asks the helper thread to give the superblocks a format version that records need. The caller wakes the helper thread
 * after this call. Any thread may call this function. */
void disk_ask_version(struct disk *d, uint32_t version);
/* Writes the requested placement map and the requested format version, if any, and then calls done() of the request, or sets
 * d->records_version. If there is no space for the write, the requests are kept for a later call; any other error makes the disk
 * fail. Called on the helper thread, between any two writes of a superblock. */
void disk_super_work(struct disk *d, struct ring *r);
/* Reads one superblock (0 or 1) again. Returns 0; -EBADMSG if the superblock is absent, damaged, or not the
 * one that was written last; or the -errno of the read. */
int disk_check_super(struct disk *d, struct ring *r, int copy);
/* Writes one superblock (0 or 1) again, and flushes it. Returns 0 or -errno. A failure of the write does not
 * make the disk fail. */
int disk_mend_super(struct disk *d, struct ring *r, int copy);
/* Searches for the second superblock at the end of a device of size_bytes, when the first superblock is lost.
 * Returns 0, -ENOENT if there is none, or -ENOMEM. */
int super_scan(struct ring *r, int fd, uint64_t size_bytes, struct super *ret_super);

/* ---- owner.c: the disk to which a file belongs, and the host that has the disk ---- */

/* Checks the mark of an open file. Returns 0, also for a file without a mark, or -EINVAL, with the reason in
 * d->why, if the mark names another disk or another file. */
int disk_check_mark(struct disk *d, int fd, const char *name);
/* Writes `bytes` zeros at the begin of a file or device, and adds them to the progress (NULL: none) as they are written. Returns
 * 0 or -errno. */
int disk_zero(struct disk *d, int fd, uint64_t bytes, struct meter_disk *meter, struct ring *r);
/* Makes and locks a file of `bytes` zeros in the directory, with the mark of the disk if the file system supports marks. The file
 * is written under another name, and renamed when it is complete. meter: as for disk_zero(). Returns the descriptor, or -errno. */
int disk_make_file(struct disk *d, const char *name, uint64_t bytes, struct meter_disk *meter,
		   struct ring *r);
/* Opens and locks the file of the host block, if it exists, and checks that it belongs to the disk. Returns
 * 0, or -errno with the reason in d->why. */
int disk_open_host(struct disk *d, struct ring *r, uint64_t until_ns);
/* Claims the disk for this instance before any other write, and marks the files that have no mark. log_end:
 * number of the first log block that does not exist; UINT64_MAX: unknown. Returns 0; or, with the reason in
 * d->why, -EBUSY if another host has claimed the disk, or the -errno of a write. */
int disk_claim(struct disk *d, struct ring *r, uint64_t log_end);
/* Writes a heartbeat if it is due, and compares the names of the disk's files with the open files. Makes the
 * disk fail if the write fails, if another host has claimed the disk, or if a file was removed, replaced or
 * cut. Returns the time in ns until the next heartbeat; UINT64_MAX: there is none. Long work of the helper
 * thread calls this function repeatedly. */
uint64_t disk_beat(struct disk *d, struct ring *r);
/* Marks the disk as closed in the host block. */
void disk_release(struct disk *d, struct ring *r);
/* ---- layout.c: the blocks of the segments in the file system ---- */

/* Returns true if a segment needs its own flush after a write to it. */
static inline bool
disk_flushes_own(const struct disk *d, uint32_t seg)
{
	return d->flush_all || (atomic_load(&d->seg[seg].odd) && RULE_TOUCHED_FILES_FLUSHED);
}

/* Returns true if some segments need their own flush. */
static inline bool
disk_flushes_any(const struct disk *d)
{
	return d->flush_all || atomic_load(&d->layout.odd_nr);
}

/* Notes the end of a write to a segment. A flush that began before this call does not cover the write. */
static inline void
disk_touched(struct disk *d, uint32_t seg)
{
	if (!d->is_device && !atomic_load(&d->seg[seg].dirty))
		atomic_store(&d->seg[seg].dirty, true);
}

/* Flushes and examines all segments. Called at the start, before the first write. Returns 0 or -errno. */
int disk_layout_begin(struct disk *d, struct ring *r);
/* Notes the units in use of all segments that need their own flush, so that their repair can claim these
 * units. Called at the end of the start, before the first write. Returns 0 or -ENOMEM. */
int disk_layout_in_use(struct disk *d);
/* Examines some segments, and repairs a part of a segment that needs its own flush. Returns the time in ns
 * until the next call; UINT64_MAX: no further call is needed. Runs on the helper thread. */
uint64_t disk_layout_work(struct disk *d, struct ring *r);

/* ---- segment.c: segments made before they are needed ---- */

/* Returns true if the disk does not have all of its segments yet. */
bool disk_segments_left(const struct disk *d);
/* Makes the next missing segment if little space is free. Returns 1 if a segment was made, 0 if no segment is
 * due, or -errno. Runs on the helper thread. */
int disk_grow(struct disk *d, struct ring *r);

#endif
