/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units - the disks or pools of a store, for operators: their state, the background work on them, and the
 * disks that are added and removed while the store serves. Part of store.h, which callers include.
 */
#ifndef GANTRY_STORE_UNITS_H
#define GANTRY_STORE_UNITS_H

#include "base/latency.h"
#include "set/map/disk_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;
struct store_port;

/* ---- disks that are added and removed while the store serves ---- */

struct store_disk_change {
	enum { DISK_DRAIN, DISK_ADD, DISK_CANCEL, DISK_MOVE_RATE } kind;
	/* name of the disk: for DISK_DRAIN the path, the UUID, or its first digits; for DISK_ADD the path */
	const char *disk;
	uint64_t size_bytes; /* DISK_ADD: size of the disk in bytes, as for --format */
	bool force;          /* DISK_ADD: true: existing data on the disk is lost */
	uint64_t rate;       /* DISK_MOVE_RATE: see store_set_move_rate() */
	/* DISK_ADD: function that a thread of the store calls before the disk becomes a member, so that the
	 * caller can first record the UUID of the disk; the function may block. NULL: no function is
	 * called */
	void (*joins)(void *cookie, const uint8_t uuid[UUID_BYTES]);
	void *cookie;
};

/*
 * Begins to remove a disk from service, or to add a disk, or cancels such a change; slots that have moved
 * stay where they are. Long work continues in the background, and after a restart. Blocking; called by any
 * thread except the thread of a port. said contains the action begun, or the reason of the failure.
 *   0
 *   -ENOENT      no such disk; no change to cancel
 *   -ENOTUNIQ    the digits are the first of two disks
 *   -EALREADY    the disk is drained; or (DISK_ADD) has a store
 *   -EEXIST      the disk belongs to this store; or has other data
 *   -EPERM       the disk is the last one, or one of two while a bucket has two copies
 *   -EBUSY       a change is in progress
 *   -ENOSPC      the other disks have no room for the contents of the disk
 *   -EROFS       not all other disks serve
 *   -EOPNOTSUPP  this back end does not support the change
 */
int store_change_disks(struct store *st, const struct store_disk_change *c, char *said, size_t said_len);

#define STORE_TROUBLE_BYTES 256
struct store_move_info {
	bool is_running;
	bool is_heal; /* true: the move is a resynchronisation of copies, and no disk joins or leaves */
	/* draining: bitmap of the units that are being drained; filling: bitmap of the units that receive
	 * slots */
	uint64_t draining, filling;
	uint64_t slots_done, slots_total;
	uint64_t bytes_done, bytes_total; /* number of bytes moved so far; estimated total */
	uint64_t slot_bytes;              /* share of bytes_done that belongs to the slots being moved */
	uint64_t keys;                    /* number of keys copied */
	uint64_t began_ns;                /* time of clock_ns() at which the move began */
	uint64_t left_ns;                 /* estimated remaining time in ns; 0: not known */
	/* reason why the move makes no progress; "": the move makes progress */
	char trouble[STORE_TROUBLE_BYTES];
	/* longest remaining time, in ns, for which the move waits for the return of an away disk; 0: the move
	 * does not wait */
	uint64_t waits_ns;
};
/* Returns the progress of the current move. Any thread may call this function. */
void store_move_info(const struct store *st, struct store_move_info *ret_info);
/* Sets the limit of bytes a second that moves may use from now on; 0: no limit. Any thread may call this
 * function. */
void store_set_move_rate(struct store *st, uint64_t bytes);

/* The state of keys with two copies, for operators. A slot is one of the 4096 hash values of keys. */
struct store_copies_info {
	bool is_used; /* true if buckets with two copies may exist; otherwise all members are 0 */
	/* Number of objects, and bytes of objects and of parts of uploads. Two copies count once. */
	uint64_t objects, bytes;
	/* number of objects, and bytes, of which only one disk in service has all data */
	uint64_t exposed_objects, exposed_bytes;
	/* Number of slots whose keys no disk in service is allowed to serve. Operations on these keys end
	 * with -ENODEV if the disk is missing; if the disk has failed, the keys are read-only. */
	uint64_t unreachable_slots;
	uint64_t needed; /* bitmap of the units that have the keys of the unreachable slots */
	/* Counters since the start: changes that a disk has missed; damaged copies that were rewritten from
	 * the other copy; reads from the secondary. */
	uint64_t missed, repaired, read_second;
	/* true: secondary copies of keys are being made again */
	bool is_healing;
	/* number of bytes copied since the resynchronisation began; estimated total */
	uint64_t heal_bytes_done, heal_bytes_total;
	uint64_t heal_rate;    /* rate of the resynchronisation in bytes a second; 0: not known yet */
	uint64_t heal_left_ns; /* estimated remaining time of the resynchronisation in ns; 0: not known */
	/* Reason why the resynchronisation makes no progress although both disks are present; "": the
	 * resynchronisation makes progress. */
	char trouble[STORE_TROUBLE_BYTES];
	uint64_t away;    /* bitmap of the units of the missing and failed disks that have copies of keys */
	bool may_replace; /* true: other disks can take over the slots of the disks in `away` */
	/* for each unit in `away`: time in ns until another disk replaces the unit; 0: the unit is being
	 * replaced now */
	uint64_t replaced_in_ns[STORE_DISKS_MAX];
};
/* Returns the state of keys with two copies. Any thread may call this function. */
void store_copies_info(const struct store *st, struct store_copies_info *ret_info);

/* ---- state for operators ---- */

/* The state of a unit. A unit is a part of the store that operators see and that can fail separately: a disk,
 * or a pool. */
enum store_unit_state {
	UNIT_OK,
	UNIT_FAILED,
	UNIT_MISSING,
	UNIT_MOVING,  /* the unit serves, and is being drained or filled */
	UNIT_DRAINED, /* the unit is drained, and may be removed */
	UNIT_STATE_NR
};

enum disk_io { DISK_READ, DISK_WRITE, DISK_FLUSH, DISK_IO_NR };

/* The steps of the commit of a PUT or of a part, in order. The time of a step begins with the end of the step
 * before it, the first time with the call of the commit, when the store has the whole body. */
enum commit_until {
	UNTIL_SUBMITTED, /* the log has the record: chunks, and flushes of a large object, come before */
	UNTIL_LED,       /* a leader has put the record into a block */
	UNTIL_WRITTEN,   /* the block and the data of its records are written */
	UNTIL_FLUSHED,
	UNTIL_PUBLISHED, /* the index has the record, and the answer is sent */
	UNTIL_ANSWERED,  /* the thread of the operation has the answer */
	UNTIL_NR
};

/* Durations in the buckets of base/latency.h. */
struct store_times {
	uint64_t buckets[LATENCY_NR], sum_ns;
};

static inline bool
store_unit_serves(enum store_unit_state state)
{
	return state == UNIT_OK || state == UNIT_MOVING;
}

/* A named number of a unit, for operators. Back ends have different numbers. */
struct store_unit_number {
	const char *name; /* constant name in the form of a JSON key, such as "log_used_bytes" */
	uint64_t value;
	bool is_hidden; /* true: status pages do not print the number */
};
#define STORE_UNIT_NUMBERS_MAX 48

struct store_unit_info {
	const char *name;          /* path of a disk; "": unknown */
	const char *uuid;          /* UUID of the disk as text; NULL or "": the unit has no UUID */
	const uint8_t *store_uuid; /* UUID of the disk's store, constant; NULL: the unit has no UUID */
	/* name of the unit in metrics and pages, which no other unit has: the first digits of a disk's UUID, or all of
	 * them if another disk has the same first ones; the name of a pool */
	char label[64];
	enum store_unit_state state;
	/* reason of the state; with UNIT_OK: a problem of the unit, or "" if it has no problem */
	char reason[256];
	const char *move; /* "drain" or "fill", a constant; NULL: the unit's slots do not move */
	uint64_t size_bytes, free_bytes;
	uint64_t own_bytes; /* bytes that objects cannot use: log, superblocks, reserve for snapshots */
	uint64_t read_bytes, read_ops, written_bytes, write_ops, flushes, errors;
	struct store_times latency[DISK_IO_NR]; /* durations of requests from cores */
	/* waits of the commits that came to the end of the step; 0: the back end does not count them */
	struct store_times commit[UNTIL_NR];
	int number_nr;
	/* numbers of the unit, in the order in which status pages show them */
	struct store_unit_number number[STORE_UNIT_NUMBERS_MAX];
};

/* Returns true if store_snapshot() is available. Any thread may call this function. */
bool store_has_snapshots(const struct store *st);
/* Returns true if the format of the store shows that no object had an expiry at the start. Any thread. */
bool store_had_no_expiry(const struct store *st);

/*
 * Starts a snapshot of every working unit, even shortly after the newest snapshot. The next start then reads
 * less of the log. Called by any thread, while a port is attached. The snapshot runs in the background: it
 * has ended when the unit's number "snapshot_runs" is 0 again; the number "snapshots" has then increased,
 * unless the snapshot has failed, which is logged. Returns 0; -EOPNOTSUPP: the back end has no snapshots; or
 * another -errno if some units did not start a snapshot.
 */
int store_snapshot(struct store *st);

/*
 * Returns the name of the background work that is in progress, or that the store will begin without a further
 * request; NULL: there is no such work. The name is a constant. Reads of the scrub do not count. Scheduled
 * work begins soon after a call. Any thread may call this function.
 *   "moves"    of slots between disks: a disk is added or drained
 *   "resync"   of copies: after a disk has failed or returned
 *   "packing"  of small objects into shared units
 *   "log"      a snapshot of the index, after which the log is shorter
 *   "removal"  of records and files without an owner: deleted or replaced objects, ended uploads, removed
 *              buckets
 */
const char *store_background(const struct store *st);

/* Makes every unit read its metadata once, verify it, and repair damage. The work runs in the background. The
 * unit's number "metadata_damaged" counts the damage found, and the unit's `reason` reports damage until all
 * of it is repaired. Called on the port's thread. */
void store_reread(struct store_port *p);

/* Returns true if another process has taken over the store, so that this process must exit and restart. Any
 * thread may call this function. */
bool store_is_fenced(const struct store *st);
/* Returns true if the store answers requests; otherwise why has the reason. Any thread may call this
 * function. */
bool store_answers(const struct store *st, char *why, size_t len);
/* Returns the name of the back end, for operators: "disks". */
const char *store_name(const struct store *st);
/* Returns the number of units. */
int store_unit_nr(const struct store *st);
/* Returns the state of a unit for operators. Any thread may call this function. */
void store_unit_info(const struct store *st, int unit, struct store_unit_info *ret_info);
/* Returns the unit's number of this name; 0: the unit has no such number. */
uint64_t store_unit_number(const struct store_unit_info *info, const char *name);

#endif
