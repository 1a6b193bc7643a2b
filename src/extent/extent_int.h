/*
 * The insides of the extent store, shared by the files of src/store and by nobody else.  Read store.md first.
 *
 * Who owns what.  A struct extent_port belongs to its thread.  A struct disk is shared: fields under "leader"
 * belong to whoever holds leadership (d->leader; acquired with acquire, left with release), under "helper" to
 * the helper thread; the rest says it.
 *
 *	put*.c, chunk.c  pieces to the disk, a commit to the leader        port's thread
 *	commit.c         the list, leadership, one block after the other   the leader: any port's thread
 *	judge.c          preconditions and packing                         the leader
 *	publish.c        index, dead records, space given back             the leader
 *	read.c, list.c   lookups and reads                                 port's thread
 *	helper.c         segments made ready, snapshots                    the helper thread
 *	recover.c        start                                             before any of them
 */
#ifndef GANTRY_EXTENT_EXTENT_INT_H
#define GANTRY_EXTENT_EXTENT_INT_H

#include "extent/disk/alloc.h"
#include "extent/disk/format.h"
#include "extent/index/pin.h"
#include "extent/index/quiesce.h"
#include "extent/log/rec_int.h"
#include "extent/log/rules.h"
#include "store/ops.h"
#include "store/store.h"
#include "extent/index/tree.h"
#include "base/list.h"
#include "base/timer.h"
#include "ring/ring.h"

#include <pthread.h>
#include <stdatomic.h>

#define RUN_BYTES (64u << 20)       /* leased to a port at once */
#define TAIL_BYTES_MAX (256u << 20) /* data of one block that recovery may have to read */
#define BLOCK_RECORDS_MAX 4096u     /* and its records */
#define STAMP_NS (5 * NS_PER_MS)    /* an idle log is stamped after this */
#define RECLAIM_NS (20 * NS_PER_MS) /* how often an idle port looks whether space may go back */
#define STALL_NS NS_PER_S           /* a PUT waits this long for the log to be trimmed, or for space */
/* PUTs with data in flight, per port (address space; memory when used) */
#define CHUNK_WRITERS_PER_PORT 512
#define TRAILERS_PER_PORT 256u
#define XIO_DEPTH 6
#define OVERLAY_SLOTS 1024u

/* ---- a commit on its way ---- */

enum commit_kind {
	COMMIT_PUT,
	COMMIT_CHUNK,
	COMMIT_DELETE,
	COMMIT_BUCKET_MAKE,
	COMMIT_BUCKET_REMOVE,
	COMMIT_BUCKET_ATTRS,
	COMMIT_ATTRS, /* the record that is there, with other attributes: the leader makes the view */
	COMMIT_UPLOAD_MAKE,
	COMMIT_UPLOAD_ABORT,
	COMMIT_PART,
	COMMIT_COMPLETE,
};

/* Bits of struct commit's state. */
#define CS_DATA_OVER 1u /* no data write is in flight any more */
#define CS_IN_BLOCK 2u  /* the block waits for that */
#define CS_ANSWERED 4u  /* the result is known */

struct commit {
	struct commit *next;      /* the pending list, then the leader's queue, then the block's */
	struct commit *hash_next; /* leader: overlay */
	struct extent_port *port;
	struct disk *disk;
	struct msg msg;
	void (*finished)(struct commit *c); /* on the port's thread */
	enum commit_kind kind;
	bool is_gc; /* the leader's own: nobody is answered */
	/*
	 * Further records of the same operation (is_also): they lie in front of this one in the same block,
	 * with nothing between, and none of them has data to be verified; so a cut takes all or none.  A
	 * removal of what is not there is left out (is_idle).
	 */
	struct commit *also;
	bool is_also, is_idle;
	_Atomic unsigned state;
	_Atomic int data_error;
	int result;
	uint64_t flush_ticket; /* not before this flush ended well; 0: may be flushed with the block */
	uint64_t came_ns;      /* leader: when first looked at */
	uint32_t key_hash;
	const uint8_t *bucket_key; /* of an object: its bucket's key; length below */
	uint16_t bucket_key_len;
	const uint8_t *upload_key; /* PART, COMPLETE: the upload must be there */
	uint16_t upload_key_len;
	struct rec_view view;
	struct store_pre pre;
	uint64_t want_version; /* ATTRS (0: any), BUCKET_ATTRS (of view.key) */
	const void *attrs;     /* ATTRS */
	uint32_t attrs_len;
	const struct store_part_ref *parts; /* COMPLETE: as many as view.entries */
	uint32_t bad;
	struct gc_job *job; /* begins when this is published; otherwise the committer's to free */
	/* leader, while in the block */
	struct rec *rec;
	struct dead *dead; /* for what this replaces */
};

/* Hands c over; c->finished runs later.  c->state says whether data is in flight. */
void commit_submit(struct extent_port *p, struct commit *c);
/* The last data write of c is over; err 0 or -errno.  On the port's thread; the caller touches c no more. */
void commit_data_over(struct extent_port *p, struct commit *c, int err);

/* Records to be removed, one after the other. */
enum gc_kind {
	GC_DEAD,   /* what a dead manifest names: chunks, or parts */
	GC_RANGE,  /* chunks or parts (type): one id, indexes from at up to nr */
	GC_PARTS,  /* the parts of an upload that are not in skip */
	GC_BUCKET, /* what is left of a bucket that was removed: uploads and attributes older than `before` */
};
struct gc_job {
	struct gc_job *next;
	enum gc_kind kind;
	uint8_t type;
	struct dead *dead; /* of the manifest; NULL: an operation's, freed with free() */
	uint8_t id[CHUNK_ID_BYTES];
	uint32_t at, nr;
	const uint8_t *skip;      /* a bit per part number; NULL: none; behind the job, in its memory */
	struct gc_bucket *bucket; /* so is this */
};

struct gc_bucket {
	uint64_t before; /* versions */
	uint16_t at_len, name_len;
	uint8_t name[STORE_BUCKET_MAX];
	uint8_t at[KEY_BYTES_MAX]; /* keys from here on */
};

/* What was replaced or deleted, until its space may be used again.  From the leader's pool. */
struct dead {
	struct dead *next;
	struct pin_wait wait;
	struct disk *disk;
	struct rec *rec;
	uint64_t seq;   /* of the block that killed it */
	bool is_shared; /* what replaced it has its extents */
	uint64_t token; /* of the grace period */
	struct gc_job gc;
};

/* The removal of one chunk, the leader's own commit. */
struct gc_commit {
	struct gc_commit *next;
	struct commit c;
	uint8_t key[KEY_BYTES_MAX];
};
#define GC_COMMITS 64

/* ---- a disk ---- */

enum snap_state { SNAP_IDLE, SNAP_WANTED, SNAP_WALKED };

struct disk_stats {
	_Atomic uint64_t read_bytes, read_ops, written_bytes, write_ops, flushes, errors, crc_errors;
	_Atomic uint64_t commits, records, snapshots, cut_records, objects;
	_Atomic uint64_t snapshot_bytes, snapshot_ns; /* of the newest */
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

/* The space of one snapshot's chain. */
struct snap_space {
	struct extent *ext;
	uint32_t nr, cap;
};

struct disk {
	struct extent_store *st;
	int nr;
	char path[256];
	struct geometry geo;
	bool is_device;
	bool flush_all;      /* one flush does not cover the disk: every touched file is flushed */
	uint32_t inline_max; /* a directory's I/O goes by_worker (ring.h) when that much is queued */
	int dir_fd, super_fd, log_fd;
	int *seg_fd; /* geo.seg_nr, -1: not there; written before the allocator hears of the segment */
	_Atomic bool *seg_dirty; /* flush_all only */
	uint64_t super_off, log_off,
		seg_off; /* byte offsets in their file; seg_off: of segment 0 on a device */

	struct tree *tree;
	struct alloc *alloc;
	struct pin_table *pins;

	_Atomic int state; /* enum disk_state */
	pthread_mutex_t reason_lock;
	char reason[128];
	struct disk_stats stats;
	_Atomic uint32_t queued;     /* a directory's: requests that the device has of us, about */
	_Atomic uint64_t vouched_ns; /* a directory's: when the disk last ended something */

	/* The commit list: pushed by any port, taken whole by the leader. */
	_Alignas(64) _Atomic(struct commit *) pending;
	_Alignas(64) _Atomic bool leader; /* somebody leads */
	_Atomic bool want_lead;           /* something waits for a leader apart from the list */
	_Atomic bool want_stamp;          /* the log has been idle */
	_Atomic(struct dead *) unpinned;  /* their last reader went; any thread pushes */
	_Atomic(struct gc_job *) gc_new;  /* from ports */
	_Atomic uint64_t reclaim_token;   /* != 0: when this has passed, the oldest dead record is ready */
	_Atomic uint64_t dead_nr;         /* what will give space back: the dead, gc's jobs, its removals,
					   chunks on their way into the log that nobody wants any more */
	_Atomic uint64_t freed_nr;        /* grows whenever space came back or was made */
	_Atomic bool segs_coming;         /* the helper will make more */
	_Atomic bool seg_hungry;          /* somebody waits for a segment */
	_Atomic uint64_t flush_begun;     /* number of the newest flush */
	_Atomic int flush_elsewhere;      /* flushes of the helper whose end is not known to all yet */
	_Atomic uint64_t chunk_counter;
	_Atomic uint64_t log_used; /* for everybody: bytes between the trim and the head */

	/* leader */
	_Alignas(64) struct commit *queue, **queue_end; /* taken, not yet in a block */
	bool have_stalled;         /* some of the queue wait for room: in the log, or (deletes) for memory */
	bool log_is_full;          /* in the log */
	bool have_unflushed;       /* some wait for a flush of their data */
	struct log_pos next;       /* where the next block goes; epoch and nonce of the running epoch */
	uint64_t last_records_seq; /* newest block that had records */
	uint64_t flushed_seq;      /* newest block flushed */
	uint64_t stamped;          /* its flushed_upto: what died up to there is gone for good */
	uint64_t led_ns;           /* when it was */
	struct dead *dying, **dying_end; /* in order of seq */
	struct gc_job *gc, **gc_end;
	struct gc_commit *gc_free, *gc_mem;
	struct dead *dead_free;
	struct dead_block *dead_blocks;
	uint64_t rec_nr;      /* records of the index */
	uint64_t rec_bytes;   /* what a snapshot of the index would take */
	uint64_t held_units;  /* as told to the allocator */
	uint64_t helper_mark; /* written_bytes when the helper was rung */

	/* leader: the block being packed or in flight */
	char *block;
	uint32_t block_used, block_records;
	uint64_t batch_bytes;                  /* data that recovery may have to read */
	struct commit *batch, **batch_end;     /* its records, in order */
	struct commit *after, **after_end;     /* answers that wait for it */
	struct commit *overlay[OVERLAY_SLOTS]; /* newest record of each key */
	struct block_head head;
	struct ring_op block_op;
	_Atomic int block_left;        /* block write and data writes not yet over */
	_Atomic int block_error;       /* the first that failed */
	struct extent_port *lead_port; /* whose ring has the block or the flush */
	struct flush_op {
		struct ring_op op;
		struct disk *d;
		struct extent_port *p;
		uint64_t began_ns;
	} * flush_ops; /* 1, or 1 + seg_nr */
	int flush_left, flush_error;
	bool flush_has_block;
	uint64_t flush_done; /* number of the newest flush that ended well */

	/* snapshot: state is handed between leader and helper */
	_Atomic int snap_state;
	int snap_pin;
	const struct tree_node *snap_root;
	uint64_t snap_gen;
	struct snap_ref snap_new;       /* leader fills in begin and version, helper the rest */
	_Atomic uint64_t trim_at;       /* linear log position up to which the log is free again */
	_Atomic uint64_t snap_begin;    /* linear position of the current snapshot */
	_Atomic uint64_t snap_retry_ns; /* after a failed one: not before */
	_Atomic bool snap_asked;        /* extent_snapshot(): one is due, however little came since */

	/* helper (and start, stop) */
	struct super sb;
	struct snap_space snap_space[2]; /* of sb.snap[] */
	pthread_t helper;
	bool helper_runs;
	pthread_mutex_t helper_lock;
	pthread_cond_t helper_cond;
	bool helper_bell;
	_Atomic bool helper_stop;
};

struct extent_store {
	struct store base;
	struct quiesce *quiesce;
	_Atomic uint64_t version;
	uint64_t index_bytes;
	int disk_nr;
	struct disk *disk[FMT_DISKS_MAX];
	pthread_mutex_t ports_lock; /* attach, detach, kick */
	int ports_max;
	struct extent_port **port;
};

static inline struct extent_store *
extent_store(const struct store *st)
{
	return container_of(st, struct extent_store, base);
}

/* Key's home.  One disk today; the slot table decides as soon as there are two. */
static inline struct disk *
extent_home(struct extent_store *st, const uint8_t *key, size_t len)
{
	return st->disk[0];
}

static inline bool
disk_failed(const struct disk *d)
{
	return atomic_load_explicit(&d->state, memory_order_acquire) != DISK_OK;
}

/* Blocks never cross the end of the ring; linear positions make distances easy. */
static inline uint64_t
log_linear(const struct disk *d, uint64_t lap, uint64_t pos)
{
	return lap * d->geo.log_bytes + pos;
}

/* ---- disk.c: files, locks, superblocks ---- */

/* The one open description of a block device; waits until then for whoever has it.  -errno. */
int disk_open_device(const char *path, uint64_t until_ns);
int disk_format(const struct store_disk_conf *dc, bool force, char *err, size_t err_len);
/* Opens, checks and locks everything; reads the superblocks into d->sb. */
int disk_open(struct disk *d, const struct store_disk_conf *dc, struct ring *r, uint64_t lock_wait_ns,
	      char *err, size_t err_len);
void disk_close(struct disk *d);
/* Writes the older copy, with the next generation number, between two flushes. */
int disk_write_super(struct disk *d, struct ring *r);
int disk_flush_sync(struct disk *d, struct ring *r);
/* Makes segment seg ready and gives it to the allocator. */
int disk_make_segment(struct disk *d, struct ring *r, uint32_t seg);
/* Where a unit lies. */
int disk_addr(const struct disk *d, uint64_t unit, uint64_t *ret_off);
/* Final until a restart. */
void disk_fail(struct disk *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- sio: blocking I/O on extents (start, helper, fsck) ---- */

int sio_read(struct disk *d, struct ring *r, const uint64_t *ext, uint32_t nr, uint64_t off, void *buf,
	     size_t len);
/* The first len bytes of one extent, while the caller goes on; sio_read_end() tells. */
struct sync_reading;
void sio_read_begin(struct disk *d, struct ring *r, struct sync_reading *s, uint64_t ext, void *buf,
		    size_t len);
int sio_read_end(struct sync_reading *s);
int sio_write(struct disk *d, struct ring *r, const uint64_t *ext, uint32_t nr, uint64_t off, const void *buf,
	      size_t len);

/* ---- xio.c: I/O on a record's extents, on a port ---- */

struct xio;
struct xio_op {
	struct ring_op op;
	struct xio *x; /* NULL: free */
	uint32_t len, seg;
};
/* One range of stored bytes to or from one piece of memory, a few extents at a time. */
struct xio {
	struct extent_port *p;
	struct disk *d;
	const uint64_t *ext;
	uint64_t began_ns;
	uint32_t ext_nr, ext_at; /* ext_at: where the next part begins */
	uint32_t ext_off;        /* bytes into that extent; < 256 GiB needs 64 bits only there */
	uint32_t left;           /* bytes not submitted yet */
	char *mem;
	int16_t region;
	bool is_write;
	uint8_t inflight;
	int error;
	void (*done)(struct xio *x);
	struct xio_op op[XIO_DEPTH];
};
/* off, len: multiples of FMT_ALIGN, within the extents.  x->done runs from the ring, never from here. */
void xio_start(struct xio *x, struct extent_port *p, struct disk *d, bool is_write, const uint64_t *ext,
	       uint32_t ext_nr, uint64_t off, void *mem, uint32_t len, int region,
	       void (*done)(struct xio *x));
/* Whether a write of now is for a worker (ring.h); and the disk has ended something.  Any thread. */
bool xio_by_worker(const struct disk *d);
void xio_vouch(struct disk *d);

/* ---- a port ---- */

/* One granule-checked run of bytes being written: an object up to a chunk, or one chunk of a larger one. From
 * the port's pool. */
#define WRITER_EXTENTS (FMT_CHUNK_BYTES / FMT_UNIT_BYTES + 64)
struct chunk_writer {
	struct chunk_writer *next; /* free, or the PUT's next chunk on its way into the log */
	struct extent_port *port;
	struct disk *disk;
	struct put_int *put;   /* NULL: aborted meanwhile */
	struct commit *commit; /* what io_left == 0 is reported to; NULL: not handed over */
	struct commit c;       /* as a chunk */
	struct xio trailer;    /* the trailer, when it is written on its own */
	struct xio map_io;
	struct map_ref map;
	uint64_t size_bytes; /* so far */
	uint64_t crc64;
	uint64_t units; /* allocated */
	uint32_t ext_nr, granule_nr;
	uint32_t io_left; /* writes given to the disk or waiting for space, and not over */
	int error;        /* of a write: what it may still touch stays quarantined */
	bool has_trailer, is_closed, hand_over_when_written, close_when_written;
	uint32_t index; /* in the object */
	uint8_t key[CHUNK_KEY_BYTES];
	uint8_t owner[KEY_BYTES_MAX];
	/* What the disk sees: aligned. */
	_Alignas(FMT_ALIGN) uint64_t granule[FMT_TRAILER_MAX / 8];
	_Alignas(FMT_ALIGN) uint64_t ext[WRITER_EXTENTS];
};

/* chunk.c: the writer of one chunk.  All on the port's thread. */
struct chunk_writer *writer_get(struct extent_port *p, struct disk *d, struct put_int *put);
/* Are nr of them free? */
bool writer_avail(const struct extent_port *p, unsigned nr);
/* Takes in len bytes at mem (checksums, sizes); nothing is written yet.  Not beyond a chunk.  Their CRC. */
uint64_t writer_take(struct chunk_writer *w, const void *mem, uint32_t len);
/* Space up to that many stored bytes; expect: what the chunk will take in all, if that is known.  0 or
 * -ENOSPC. */
int writer_reserve(struct chunk_writer *w, uint64_t upto_bytes, uint64_t expect_bytes);
/* The trailer to mem, padded; its length (0: none). */
uint32_t writer_trailer(struct chunk_writer *w, void *mem);
/* No more bytes will come: surplus space back; trailer and map to the disk if they are not there yet.  0 or
 * -ENOSPC. */
int writer_close(struct chunk_writer *w);
/* All that the chunk will hold, as few bytes as an inline object's: copied, and written.  0 or -ENOSPC. */
int writer_write_small(struct chunk_writer *w, const void *bytes, uint32_t len);
/* What stands in the record of it, apart from the key. */
void writer_view(const struct chunk_writer *w, struct rec_view *v);
/* Hands the record over as soon as the rules allow: at once, or when the data is written. */
void writer_hand_over(struct chunk_writer *w, struct commit *c);
/* The same for a chunk whose pieces are not all written: closed, and its record made, when they are. */
void writer_hand_over_later(struct chunk_writer *w, struct commit *c);
/* A write of w is over. */
void writer_io_over(struct chunk_writer *w, int error);
/* Back to the pool.  give_back: its space too. */
void writer_put(struct chunk_writer *w, bool give_back);

struct trailer; /* read_int.h */
struct extent_port {
	struct store_port base;
	struct extent_store *st;
	struct ring *ring;
	struct mailbox *mb;
	struct timers *timers;
	int nr;
	_Atomic bool is_detaching; /* others look, whom to ring */
	struct quiesce_user *user;
	struct alloc_run run; /* of disk 0 */
	unsigned inflight;    /* ring operations, commits not yet answered, listings that yielded */
	struct msg kick;
	_Atomic bool kicked;
	struct timer timer; /* stamp, stalls, reclaim: the leader's clock */
	struct timer space_timer;
	struct list space_waiters; /* writes that wait for space */
	uint64_t space_freed;      /* freed_nr when they were tried last */
	void *writer_mem, *trailer_mem;
	struct chunk_writer *writers_free;
	struct trailer *trailers;
	struct trailer *trailer_hash[TRAILERS_PER_PORT];
	struct list trailer_lru;     /* those nobody uses, oldest first */
	struct list trailer_waiters; /* reads that found none free */
};

static inline struct extent_port *
extent_port(struct store_port *p)
{
	return container_of(p, struct extent_port, base);
}

/* Rings one attached port so that it looks at the lists (with not_this: another that stays).  Any thread.
 * False: there is no other. */
bool port_kick(struct extent_store *st, struct extent_port *not_this);

void port_kick_all(struct extent_store *st);
/* put_write.c: tries the writes that wait for space again. */
void put_space_retry(struct extent_port *p);
/* read.c */
int trailers_init(struct extent_port *p);
void trailers_fini(struct extent_port *p);

/* large.c: {home disk, its epoch, a counter}: never used twice.  Any port. */
void extent_new_id(struct disk *d, uint8_t id[CHUNK_ID_BYTES]);
/* upload.c: the record of an upload, published: 0, -ENOENT, -ENXIO. */
int upload_find(struct extent_port *p, const uint8_t *upload_key, size_t len, const struct rec **ret_rec);
/* Are the parts of the list there, published?  fill: what they are goes to refs; else it must be what stands
 * there.  0 or -EBADR, with the index of the first that is not. */
int upload_match(const struct disk *d, const uint8_t *id, const struct store_part_ref *parts,
		 struct chunk_ref *refs, uint32_t nr, bool fill, uint32_t *ret_bad);

/* ---- commit.c ---- */

/* Takes leadership if it is free and leads.  From the loop, timers, messages of a port. */
void commit_try_lead(struct disk *d, struct extent_port *p);
void commit_idle(struct extent_port *p);
/* Answers c with result; waits for its data writes if need be. */
void commit_answer(struct commit *c, int result);
uint32_t key_hash(const uint8_t *key, size_t len);

/* ---- judge.c: the leader fills a block ---- */

/* Goes through d->queue; what can goes into the block or is answered. */
void judge_queue(struct disk *d);
/* Does the block hold a record with this key? */
bool judge_is_pending(const struct disk *d, const uint8_t *key, size_t len);
/* An empty block. */
void judge_reset(struct disk *d);
/* Room in the block and in the log for a record of that many bytes?
 * last_stand: may use the last of the log. */
enum room { ROOM_YES, ROOM_NEXT_BLOCK, ROOM_LOG_FULL };
enum room judge_room(const struct disk *d, size_t rec_bytes, bool last_stand);
/* Encodes c->view into the block and links c. */
void judge_pack(struct disk *d, struct commit *c);

/* ---- publish.c ---- */

/* The block is flushed: index, dead records, counters. */
void publish_block(struct disk *d);
/* Gives back what may be.  Leader. */
void publish_reclaim(struct disk *d);
/* Counters, for a record that came into the index and one that left it (NULL: none). */
void publish_count(struct disk *d, const uint8_t *key, size_t key_len, const struct rec *born,
		   const struct rec *died);
/* Gives a dead record's memory back once no reader and no snapshot can see it. */
void rec_retire(struct disk *d, struct rec *r);
/* Moves pos behind the block. */
void log_advance(struct log_pos *pos, const struct geometry *geo, const struct block_head *h);
/* From the pool, which grows by a block when it is empty; NULL: no memory. */
struct dead *dead_get(struct disk *d);
void dead_put(struct disk *d, struct dead *dead);
void dead_fini(struct disk *d);
void extents_free(struct disk *d, const uint64_t *ext, uint32_t nr);
/* Tells the allocator what the next snapshot will need. */
void hold_back_update(struct disk *d);

/* ---- gc.c ---- */

/* Packs removals of chunks while there is room in the block.  Leader. */
void gc_pack(struct disk *d);
/* The removal was published (or will never be). */
void gc_commit_over(struct disk *d, struct commit *c);
/* The chunks (or parts: type is KEY_CHUNK or KEY_PART) {id, from ... nr - 1} have no owner and never will.
 * Any port. */
void gc_orphans(struct disk *d, uint8_t type, const uint8_t id[CHUNK_ID_BYTES], uint32_t from, uint32_t nr);
/* A job to be begun when the end of an upload is published, or NULL: no memory.  parts: those that stay. */
struct gc_job *gc_upload_job(const uint8_t id[CHUNK_ID_BYTES], const struct store_part_ref *parts,
			     uint32_t nr);
/* ... or of a bucket; its bytes, without type byte. */
struct gc_job *gc_bucket_job(const uint8_t *name, size_t len);
void gc_add(struct disk *d, struct gc_job *job);
int gc_init(struct disk *d);
void gc_fini(struct disk *d);

/* ---- snapshot.c ---- */

/* Leader, right after publishing: is one due?  Pins and hands over to the helper. */
void snapshot_check(struct disk *d);
/* At start: one at once. */
int snapshot_now(struct disk *d, struct ring *r);
/* Leader: unpin what the helper has walked. */
void snapshot_done(struct disk *d);
/* Helper: walk, write, verify, superblock, trim. */
int snapshot_write(struct disk *d, struct ring *r);

/* ---- helper.c: the thread; upkeep.c: what it does ---- */

int helper_start(struct disk *d);
void helper_stop(struct disk *d);
/* Any thread. */
void helper_ring(struct disk *d);
/* One round: a snapshot if one is wanted, a segment if one is due.  Returns ns until it wants to be called
 * again without being rung (0: at once; UINT64_MAX: not). */
uint64_t upkeep(struct disk *d, struct ring *r);
/* Segments that are still to be made? */
bool upkeep_segments_left(const struct disk *d);

/* ---- recover.c ---- */

struct recover_report {
	uint64_t cut_records, blocks, snap_records;
	void (*say)(void *cookie, const char *line); /* fsck; NULL: the log */
	void *cookie;
	bool check_only; /* writes nothing */
	bool repair;     /* damage is cut */
	bool was_damaged;
};
/* store.c: opens and recovers, but starts nothing.  fsck uses it too. */
int extent_open_with(const struct store_conf *conf, struct ring *r, struct recover_report *rep,
		     struct extent_store **ret_store, char *err, size_t err_len);
void extent_free(struct extent_store *st);
/* What records hold outside of the index's memory; before the index goes. */
void records_drop_outside(struct disk *d);
/* Calls fn for every record of the index, in key order; stops at the first that is not 0 and returns it. */
int each_record(struct disk *d, int (*fn)(void *cookie, const uint8_t *key, size_t len, struct rec *r),
		void *cookie);
int snap_space_add(struct snap_space *s, const struct extent *x);
int recover_disk(struct disk *d, struct ring *r, struct recover_report *rep, char *err, size_t err_len);

/* ---- the calls of store/store.h ---- */

int extent_format(const struct store_conf *conf, bool force, char *err, size_t err_len);
int extent_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len);
int extent_fsck(const struct store_conf *conf, bool repair, void extent_say(void *cookie, const char *line),
		void *cookie);
void extent_stop(struct store *st);
int extent_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
		  struct store_port **ret_port);
bool extent_detach(struct store_port *p);
void extent_quiesce(struct store_port *p);
void extent_sleep(struct store_port *p);
void extent_wake(struct store_port *p);
int extent_open(struct store_port *p, const struct store_key *k, struct store_obj *obj);
void extent_close(struct store_port *p, struct store_obj *obj);
uint32_t extent_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
			  uint32_t *ret_skew);
int extent_read(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf,
		uint64_t off, uint32_t len);
int extent_put_init(struct store_port *p, struct store_put *put, const struct store_key *k,
		    uint64_t size_bytes);
int extent_put_write(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
		     uint32_t len, bool last);
int extent_put_commit(struct store_port *p, struct store_put *put, const struct store_commit *c);
void extent_put_abort(struct store_port *p, struct store_put *put);
int extent_delete(struct store_port *p, const struct store_key *k, const struct store_pre *pre,
		  struct store_del *del);
int extent_set_attrs(struct store_port *p, const struct store_key *k, uint64_t version, const void *attrs,
		     uint32_t attrs_len, struct store_del *op);
int extent_upload_create(struct store_port *p, const struct store_key *k, const void *attrs,
			 uint32_t attrs_len, struct store_upload *u);
int extent_upload_abort(struct store_port *p, const struct store_key *k,
			const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_upload *u);
int extent_upload_stat(struct store_port *p, const struct store_key *k,
		       const uint8_t id[STORE_UPLOAD_ID_BYTES], uint64_t *ret_ctime_ns, void *attrs,
		       uint32_t cap, uint32_t *ret_attrs_len);
int extent_put_init_part(struct store_port *p, struct store_put *put, const struct store_key *k,
			 const uint8_t id[STORE_UPLOAD_ID_BYTES], uint32_t number, uint64_t size_bytes);
int extent_upload_complete(struct store_port *p, const struct store_key *k,
			   const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_complete *c);
int extent_list_parts(struct store_port *p, const struct store_key *k,
		      const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_part_list *pl);
int extent_obj_part(struct store_obj *obj, uint32_t number, struct store_part *ret_part);
int extent_obj_part_at(struct store_obj *obj, uint32_t index, struct store_part *ret_part);
int extent_bucket_create(struct store_port *p, const char *name, size_t len, struct store_del *op);
int extent_bucket_delete(struct store_port *p, const char *name, size_t len, struct store_del *op);
int extent_bucket_head(struct store_port *p, const char *name, size_t len, uint64_t *ret_ctime_ns);
int extent_bucket_set_attrs(struct store_port *p, const char *name, size_t len, uint64_t version,
			    const void *attrs, uint32_t attrs_len, struct store_bucket_set *op);
int extent_bucket_get_attrs(struct store_port *p, const char *name, size_t len, void *attrs, uint32_t cap,
			    uint64_t *ret_version);
int extent_list(struct store_port *p, struct store_list *ls);
int extent_list_uploads(struct store_port *p, struct store_list *ls);
void extent_snapshot(struct store *st);
int extent_disk_nr(const struct store *st);
void extent_disk_info(const struct store *st, int disk, struct store_disk_info *ret_info);

#endif
