/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vol - a volume: one disk with its index and its log, and the ports that commit changes.
 *
 * Ownership. A struct vol_port belongs to its thread. A struct vol is shared: `leader`, `block` and `flush`
 * belong to the leader (`is_led`; taken with acquire, returned with release), `snap` to the leader or the
 * helper in turn, `disk` as described in disk.h; the other fields are atomic.
 *
 *	commit.c answer.c block.c judge.c publish.c dead.c gc.c
 *	pack.c                                                     the leader: any port's thread
 *	snapshot.c upkeep.c reread.c mover.c                       the helper thread; begin and end: the leader
 *	recover.c snapload.c replay.c verify.c records.c           the start, before any of them
 *	vol.c steps.c                                              life; counters: any
 *	usage.c                                                    the leader, the start; usage_reserve(): a port's thread
 *	key.c rec_codec.c rec_mem.c parts.c log_read.c             any
 *
 * The volume calls three functions of the upper layer: a commit's finished(), and vol->kick and vol->space,
 * which the maker of the volume sets.
 *
 * Order of calls: vol_new(); vol_open(), vol_recover(), vol_begin(); helper_start(); ports are attached and
 * detached; helper_stop(); vol_last_stamp(); vol_free() in any state.
 */
#ifndef GANTRY_EXTENT_LOG_VOL_H
#define GANTRY_EXTENT_LOG_VOL_H

#include "base/clock.h"
#include "base/pool.h"
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
#include "extent/log/steps.h"
#include "extent/log/usage.h"

#define TAIL_BYTES_MAX (256u << 20) /* data of one block that recovery may have to read */
#define STAMP_NS (5 * NS_PER_MS)    /* an idle log is stamped after this */
#define ROOM_RETRY_NS NS_PER_S      /* after a block that found no room below the disk */
#define RECLAIM_NS (20 * NS_PER_MS) /* interval at which an idle port checks whether space can be freed */
/* Longest wait of a PUT until the log is trimmed or space is free, and of any change for a gate or a freeze;
 * a delete waits twice as long. */
#define STALL_NS NS_PER_S

/* One thread's access to a volume; the first member of its port. */
struct vol_port {
	struct disk_port io;
	struct vol *vol;
	struct mailbox *mb;
	struct timers *timers;
	struct port_steps *steps; /* counters of the port, which belong to the volume */
	struct timer timer;       /* timer of the leader's work: stamp, stalled commits, reclaim */
	/* true: the port is being detached; read by other ports that choose a port to wake */
	_Atomic bool is_detaching;
};

struct vol_stats {
	_Atomic uint64_t commits, records, snapshots, cut_records, objects;
	_Atomic uint64_t snapshot_bytes, snapshot_ns; /* size and duration of the newest snapshot */
};

/* A bucket that is being made or removed on several disks: until the gate opens, the contents of the bucket
 * do not change (docs/set.md). */
#define GATES_MAX 8
struct gate {
	uint8_t name[STORE_BUCKET_MAX];
	uint8_t len;
	int error; /* result of commits to the bucket */
};

struct leader {
	struct gate gate[GATES_MAX];
	uint32_t gate_nr;
	struct commit *queue, **queue_end; /* commits taken from the pending list and not in a block yet */
	/* true: some commits of the queue wait for room in the log, or (deletes) for memory */
	bool have_stalled;
	bool log_is_full;          /* true: the log has no room for the commits of the queue */
	bool have_unflushed;       /* true: some commits of the queue wait for a flush of their data */
	uint64_t room_ns;          /* the log found no room: clock_ns() of the next try; 0: it did */
	struct log_pos next;       /* position of the next block, with epoch and nonce of the running epoch */
	uint64_t last_records_seq; /* newest block that had records */
	uint64_t flushed_seq;      /* newest block flushed */
	/* newest flushed_upto in a flushed block: records replaced up to this block do not come back after a
	 * crash */
	uint64_t stamped;
	uint64_t led_ns;                 /* time of that stamp */
	uint64_t step_ns;                /* time at which the leader judged the records of the block */
	struct dead *dying, **dying_end; /* in order of seq */
	struct gc_job *gc, **gc_end;
	struct pool removals; /* of struct gc_commit */
	struct dead *dead_free;
	struct dead_block *dead_blocks;
	uint64_t rec_bytes;    /* encoded size of all records in a snapshot of the index */
	uint64_t large_bytes;  /* part of rec_bytes in records that are not small */
	uint64_t held_units;   /* units reserved for snapshots in the allocator */
	uint64_t grow_bytes;   /* bytes by which the index may grow before the allocator is asked again */
	bool is_held;          /* true if the allocator has reserved all of held_units */
	bool judges_quotas;    /* true: the leader has locked the quota ledger */
	bool has_usage;        /* true: changes of the block are noted in the quota ledger */
	bool uploads_ended;    /* true: the block being published ends an upload */
	uint64_t held_freed;   /* the disk's freed_nr at the last request to the allocator */
	uint64_t helper_mark;  /* value of written_bytes when the helper was woken last */
	struct vol_port *port; /* port whose ring has the write of the block or the flush */
};

/* The flush in flight: of the log, and, if one flush does not cover the disk, of each segment that was
 * written. */
struct flush {
	struct flush_op {
		struct ring_op op;
		struct vol *vol;
		struct vol_port *p;
		uint64_t began_ns;
		uint8_t watched;
	} * ops; /* 1 operation, or 1 + seg_nr in a directory */
	int left, error;
	bool has_block;
	uint64_t ended_ns; /* time of the newest end of one of ops */
	uint64_t done;     /* number of the newest successful flush */
};

struct vol {
	struct disk disk;
	struct tree *tree;
	struct pin_table *pins;
	struct quiesce *quiesce;
	uint64_t index_bytes;
	/* state of the recovery between vol_recover() and vol_begin(); NULL: no recovery is in progress */
	struct replay *replay;
	/* quota ledger, which belongs to the maker of the volume; the volume has the row `counter` */
	struct quota_book *quotas;
	int counter;
	struct vol_stats stats;
	/* the partitions whose keys belong to the volume; NULL: all keys belong to it */
	struct slots *slots;
	uint64_t start_no;        /* number of this start */
	_Atomic uint64_t version; /* newest version: start number << FMT_COUNTER_BITS | counter */

	/* Argument of the two functions below, which the maker of the volume sets. */
	void *above;
	/* Wakes one attached port, other than not_this, so that it does pending work of the leader. Returns
	 * false if no other port is attached. Any thread. */
	bool (*kick)(void *above, const struct vol_port *not_this);
	/* Wakes all ports when space was freed. */
	void (*space)(void *above);

	/* The commit list: any port adds a commit, the leader takes the whole list. */
	_Alignas(64) _Atomic(struct commit *) pending;
	_Alignas(64) _Atomic bool is_led; /* a leader exists */
	_Atomic bool want_lead;           /* true: work other than the pending list waits for a leader */
	_Atomic bool want_stamp;          /* true: the log has been idle, so that a stamp is due */
	_Atomic(struct dead *) unpinned;  /* dead records whose last reader has ended; any thread adds one */
	_Atomic(struct gc_job *) gc_new;  /* jobs from ports */
	/* epoch after which the oldest dead record can be reclaimed; 0: none */
	_Atomic uint64_t reclaim_epoch;
	/* number of items that will free space: dead records, jobs and removals of gc, batches of the mover,
	 * and chunks being committed that are no longer needed */
	_Atomic uint64_t dead_nr;
	_Atomic uint64_t flush_begun; /* number of the newest flush */
	_Atomic uint64_t id_counter;  /* counter for the ids of chunks and uploads */
	_Atomic uint64_t log_used;    /* bytes of the log between the trim position and the head */
	_Atomic uint64_t log_head;    /* linear position up to which blocks are flushed */

	_Alignas(64) struct leader leader;
	struct step_times led, written, flushed, published; /* written by the leader */
	struct block block;
	struct flush flush;
	struct snapshot snap;
	struct reread reread;
	struct packs packs;
	struct mover mover;
	struct helper helper;
	int port_steps_nr;
	struct port_steps port_steps[]; /* by the number of the port */
};

/* Returns the linear position of `at`, so that distances in the ring are differences. */
static inline uint64_t
vol_linear(const struct vol *vol, const struct log_pos *at)
{
	return at->lap * vol->disk.geo.log_bytes + at->pos;
}
/* Returns the linear position of the next block. */
static inline uint64_t
vol_head(const struct vol *vol)
{
	return vol_linear(vol, &vol->leader.next);
}

/* Returns true if the log is so full that PUTs are refused before their first byte. */
static inline bool
vol_refuses_puts(const struct vol *vol)
{
	return atomic_load_explicit(&vol->log_used, memory_order_relaxed) >
	       vol->disk.geo.log_bytes / 100 * 95;
}

/* Returns the number of a flush that covers all data written before this call: the flush_ticket of a
 * commit. */
static inline uint64_t
vol_flush_ticket(const struct vol *vol)
{
	return atomic_load(&vol->flush_begun) + 1;
}

/* Wakes a port for work that waits for a leader. Helper thread. */
static inline void
vol_wake(struct vol *vol)
{
	atomic_store(&vol->want_lead, true);
	vol->kick(vol->above, NULL);
}

struct recover_report;

/* Makes a volume for at most users_max threads, including the helper thread. Returns 0 or -ENOMEM. */
int vol_new(int users_max, struct vol **ret_vol);
/* Opens and locks the disk and reads its identity; writes nothing. The reason of an error is in vol->disk.why. The
 * caller calls vol_free() also after an error of vol_open(), vol_recover() or vol_begin(). */
int vol_open(struct vol *vol, const struct store_disk_conf *dc, uint64_t lock_wait_ns, struct ring *r,
	     struct recover_report *rep);
/* Recovers the volume with an index of at most index_bytes; writes nothing. rep must exist until vol_begin()
 * or vol_free(); *ret_start_no: the smallest number that this start may have. */
int vol_recover(struct vol *vol, uint64_t index_bytes, struct ring *r, struct recover_report *rep,
		uint64_t *ret_start_no);
/* Begins the start with the number start_no: claims the disk and makes the volume ready to serve (check_only:
 * writes nothing). */
int vol_begin(struct vol *vol, uint64_t start_no, struct ring *r);
/* Writes a last stamp, so that the next start need not read any data. No other thread of the volume runs. */
void vol_last_stamp(struct vol *vol, struct ring *r);
/* Frees vol, whose helper is stopped and whose ports are detached. NULL is allowed. */
void vol_free(struct vol *vol);
/* Makes the helper thread write a format version to the superblocks. A start, which makes copies equal before the helper
 * thread runs, writes it itself, before the function returns. Leader. */
void vol_ask_version(struct vol *vol, uint32_t version);
/* Does one round of the helper thread's work: makes a snapshot if one is requested, and a segment if one is
 * due. Returns the time in ns until the next call (helper.h). */
uint64_t vol_upkeep(struct helper *h, struct ring *r);

#endif
