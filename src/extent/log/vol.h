/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vol - a volume: one disk with its index and its log, and who commits to it.
 *
 * Who owns what.  A struct vol_port belongs to its thread.  A struct vol is shared: `leader`, `block` and
 * `flush` belong to whoever holds leadership (`is_led`; taken with acquire, left with release), `snap` is
 * handed between leader and helper, `disk` says itself; the rest is atomic.
 *
 *	commit.c answer.c block.c judge.c publish.c dead.c gc.c
 *	pack.c                                                     the leader: any port's thread
 *	snapshot.c upkeep.c reread.c mover.c                       the helper thread; begin and end: the leader
 *	recover.c snapload.c replay.c verify.c records.c           the start, before any of them
 *	vol.c                                                      life
 *	usage.c                                                    the leader, the start; usage_early(): a port's thread
 *	key.c rec_codec.c rec_mem.c parts.c                        any
 *
 * It calls up through three functions: a commit's finished(), and vol->kick and vol->space, which whoever
 * makes the volume brings along.
 *
 * Life: vol_new(); vol_open(), vol_recover(), vol_begin(); helper_start(); ports come and go; helper_stop(); vol_last_stamp();
 * vol_free() in any state.
 */
#ifndef GANTRY_EXTENT_LOG_VOL_H
#define GANTRY_EXTENT_LOG_VOL_H

#include "base/clock.h"
#include "base/timer.h"
#include "extent/disk/helper.h"
#include "extent/disk/xio.h"
#include "extent/index/pin.h"
#include "extent/index/quiesce.h"
#include "extent/index/tree.h"
#include "extent/log/block.h"
#include "extent/log/commit.h"
#include "extent/log/dead.h"
#include "extent/log/gc.h"
#include "extent/log/pack.h"
#include "extent/log/rec_mem.h"
#include "extent/log/reread.h"
#include "extent/log/slots.h"
#include "extent/log/snapshot.h"
#include "extent/log/usage.h"

#define TAIL_BYTES_MAX (256u << 20) /* data of one block that recovery may have to read */
#define STAMP_NS (5 * NS_PER_MS)    /* an idle log is stamped after this */
#define ROOM_RETRY_NS NS_PER_S      /* after a block that found no room below the disk */
#define RECLAIM_NS (20 * NS_PER_MS) /* how often an idle port looks whether space may go back */
/* A PUT waits this long for the log to be trimmed, or for space, and a delete twice; any change behind a gate or a freeze. */
#define STALL_NS NS_PER_S

/* One thread's access to a volume; the first member of its port. */
struct vol_port {
	struct disk_port io;
	struct vol *vol;
	struct mailbox *mb;
	struct timers *timers;
	struct timer timer;        /* stamp, stalls, reclaim: the leader's clock */
	_Atomic bool is_detaching; /* others look, whom to ring */
};

struct vol_stats {
	_Atomic uint64_t commits, records, snapshots, cut_records, objects;
	_Atomic uint64_t snapshot_bytes, snapshot_ns; /* of the newest */
};

/* A bucket that is being made or removed on several disks: its contents do not change meanwhile (docs/set.md). */
#define GATES_MAX 8
struct gate {
	uint8_t name[STORE_BUCKET_MAX];
	uint8_t len;
	int error; /* what writers are told */
};

struct leader {
	struct gate gate[GATES_MAX];
	uint32_t gate_nr;
	struct commit *queue, **queue_end; /* taken, not yet in a block */
	bool have_stalled;         /* some of the queue wait for room: in the log, or (deletes) for memory */
	bool log_is_full;          /* in the log */
	bool have_unflushed;       /* some wait for a flush of their data */
	uint64_t room_ns;          /* the log found no room: clock_ns() of the next try; 0: it did */
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
	uint64_t rec_bytes;    /* what a snapshot of the index would take */
	uint64_t large_bytes;  /* of that, in records that are not small */
	uint64_t held_units;   /* for snapshots, as told to the allocator */
	uint64_t grow_bytes;   /* records that the index may grow by until it is asked again */
	bool is_held;          /* the allocator has as much */
	bool judges_quotas;    /* the book is locked */
	bool has_usage;        /* something of the block is noted in it */
	bool uploads_ended;    /* in the block that is being published */
	uint64_t held_freed;   /* the disk's freed_nr when it was asked last */
	uint64_t helper_mark;  /* written_bytes when the helper was rung */
	struct vol_port *port; /* whose ring has the block or the flush */
};

/* The flush in flight: of the log, and of each segment that was written where one flush does not cover
 * the disk. */
struct flush {
	struct flush_op {
		struct ring_op op;
		struct vol *vol;
		struct vol_port *p;
		uint64_t began_ns;
		uint8_t watched;
	} * ops; /* 1, or a directory's 1 + seg_nr */
	int left, error;
	bool has_block;
	uint64_t done; /* number of the newest flush that ended well */
};

struct vol {
	struct disk disk;
	struct tree *tree;
	struct pin_table *pins;
	struct quiesce *quiesce;
	uint64_t index_bytes;
	struct replay *replay;     /* between vol_recover() and vol_begin() */
	struct quota_book *quotas; /* of which this is a counter; the maker's */
	int counter;
	struct vol_stats stats;
	struct slots *slots;      /* whose keys it has; NULL: all are its own */
	uint64_t start_no;        /* of this start */
	_Atomic uint64_t version; /* the newest: start number << FMT_COUNTER_BITS | counter */

	/* What the volume calls of whoever made it, and with what. */
	void *above;
	/* Rings one attached port so that it looks at the lists (with not_this: another that stays).
	 * Any thread. False: there is no other. */
	bool (*kick)(void *above, const struct vol_port *not_this);
	/* There is space again: rings all. */
	void (*space)(void *above);

	/* The commit list: pushed by any port, taken whole by the leader. */
	_Alignas(64) _Atomic(struct commit *) pending;
	_Alignas(64) _Atomic bool is_led; /* somebody leads */
	_Atomic bool want_lead;           /* something waits for a leader apart from the list */
	_Atomic bool want_stamp;          /* the log has been idle */
	_Atomic(struct dead *) unpinned;  /* their last reader went; any thread pushes */
	_Atomic(struct gc_job *) gc_new;  /* from ports */
	_Atomic uint64_t reclaim_epoch;   /* != 0: when this has passed, the oldest dead record is ready */
	_Atomic uint64_t dead_nr;         /* what will give space back: the dead, gc's jobs, its removals,
					   chunks on their way into the log that nobody wants any more */
	_Atomic uint64_t flush_begun;     /* number of the newest flush */
	_Atomic uint64_t id_counter;      /* of chunks and uploads */
	_Atomic uint64_t log_used;        /* bytes between the trim and the head */
	_Atomic uint64_t log_head;        /* linear: blocks up to there are flushed */

	_Alignas(64) struct leader leader;
	struct block block;
	struct flush flush;
	struct snapshot snap;
	struct reread reread;
	struct packs packs;
	struct mover mover;
	struct helper helper;
};

/* Returns a linear position: blocks never cross the end of the ring, and these make distances easy. */
static inline uint64_t
vol_linear(const struct vol *vol, uint64_t lap, uint64_t pos)
{
	return lap * vol->disk.geo.log_bytes + pos;
}
/* Returns the linear position where the next block goes. */
static inline uint64_t
vol_head(const struct vol *vol)
{
	return vol_linear(vol, vol->leader.next.lap, vol->leader.next.pos);
}

/* Returns the number of a flush that covers what was written up to now: a commit's flush_ticket. */
static inline uint64_t
vol_flush_ticket(const struct vol *vol)
{
	return atomic_load(&vol->flush_begun) + 1;
}

struct recover_report;

/* Makes a volume for at most users_max threads, the helper's among them.  0 or -ENOMEM. */
int vol_new(int users_max, struct vol **ret_vol);
/* Opens and locks the disk and knows who it is; writes nothing.  The reason of an error is in err.  vol_free() is due
 * then too, and after the errors of the next two. */
int vol_open(struct vol *vol, const struct store_disk_conf *dc, uint64_t lock_wait_ns, struct ring *r,
	     struct recover_report *rep, char *err, size_t err_len);
/* Recovers, for an index of that many bytes at most; writes nothing.  rep is kept until vol_begin() or vol_free();
 * *ret_start_no: the least number that this start may have. */
int vol_recover(struct vol *vol, uint64_t index_bytes, struct ring *r, struct recover_report *rep,
		uint64_t *ret_start_no, char *err, size_t err_len);
/* Begins the start of that number: makes the disk ours and ready to be served (check_only: writes nothing). */
int vol_begin(struct vol *vol, uint64_t start_no, struct ring *r, char *err, size_t err_len);
/* Writes a last stamp: the next start need not read any data.  Nothing else runs. */
void vol_last_stamp(struct vol *vol, struct ring *r);
/* Frees vol, whose helper is stopped and whose ports are gone.  NULL is fine. */
void vol_free(struct vol *vol);
/* Runs one round of what the helper thread is for: a snapshot if one is wanted, a segment if one is due.
 * Returns when it wants to be called again (helper.h). */
uint64_t vol_upkeep(struct helper *h, struct ring *r);

#endif
