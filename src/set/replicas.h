/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicas - the state of keys with two copies in a set: key locks, changes in doubt, disks that are away,
 * and counters.
 *
 * The primary and the secondary of a key are in placement.h, the recovery of copies after a failure is in
 * recovery.h. Key locks are protected separately (key_lock.h); all other data is atomic. Any thread may call
 * these functions, unless stated otherwise.
 */
#ifndef GANTRY_SET_REPLICAS_H
#define GANTRY_SET_REPLICAS_H

#include "set/key_lock.h"
#include "set/map/disk_table.h"
#include "store/ops.h"

struct set;
struct set_port;

/* Counters since the start: updates that a secondary missed, damaged copies that were repaired, and reads
 * from a secondary. */
enum set_counter { COUNT_MISSED, COUNT_REPAIRED, COUNT_READ_SECONDARY, COUNT_NR };

struct set_replicas {
	struct set_holds locks; /* key locks of keys with two copies */
	_Atomic bool is_used;   /* true: buckets with two copies may exist */
	/* paired: number of the latest assignment of secondaries (set_begin_pairs()). paired_kept: number of the
	 * latest assignment for which the recovery task has ensured that all primaries answer. A bucket with
	 * two copies is made only while the two numbers are equal. */
	_Atomic unsigned paired, paired_kept;
	/* for each slot: number of changes that are on the primary and perhaps not on the secondary */
	_Atomic uint32_t in_doubt[STORE_SLOT_NR];
	/* for each disk, by number: time of run_ns() since when the disk is away; 0: the disk is in service */
	_Atomic uint64_t away_since_ns[STORE_DISKS_MAX];
	pthread_mutex_t lock;      /* protects the two fields below */
	struct store_slots missed; /* partitions whose secondary has missed an update */
	bool has_missed;
	_Atomic uint64_t count[COUNT_NR]; /* counters since the start, by enum set_counter */
};

/* ---- life ---- */

/* Takes over the primary and the secondary of each slot from the map of a start. is_used: buckets with two
 * copies may exist. engine[] gives the engine of each disk by number. Called before the first port is
 * attached. */
void set_replicas_begin(struct set *s, const struct disk_table *t, const uint8_t engine[STORE_DISKS_MAX],
			bool is_used);

/* ---- buckets with two copies ---- */

/* Returns true if buckets with two copies may exist; otherwise no slot has a secondary. */
bool set_uses_pairs(const struct set *s);
/* Returns true if slots have secondaries and all primaries answer, so that a bucket with two copies may be
 * made. */
bool set_has_pairs(const struct set *s);
/* Notes that slots have secondaries from now on, which begins an assignment of secondaries. The caller holds the
 * map change lock. */
void set_begin_pairs(struct set *s);
/* Notes that all primaries now answer for their slots under the latest assignment of secondaries. The caller
 * holds the map change lock. */
void set_note_pairs_answer(struct set *s);
/* Notes that no slot has a secondary any longer: a map without secondaries is effective. The caller holds the
 * map change lock. */
void set_end_pairs(struct set *s);
/* Returns true if the keys of a bucket have two copies. Called on the port's thread. */
bool set_bucket_has_two(struct store_port *sp, const char *bucket, size_t len);
/* Copies a key of a caller, and sets its number of copies. Returns true if the key has two copies. */
bool set_has_two(struct store_port *sp, const struct store_key *k, struct store_key *ret_key);

/* ---- keys, disks, counts ---- */

/* Returns the key locks of keys with two copies. */
struct set_holds *set_key_locks(struct set *s);
/* Notes that a change of a key in this slot is on the primary, and perhaps not on the secondary. */
void set_begin_doubt(struct set *s, unsigned slot);
/* Notes the end of a change that set_begin_doubt() noted. */
void set_end_doubt(struct set *s, unsigned slot);
/* Returns the number of changes in this slot that set_begin_doubt() has noted and that have not ended. */
unsigned set_in_doubt(const struct set *s, unsigned slot);
/* Notes the disks of a map that are away. For a disk that was not away before, the current time is noted. */
void set_note_away(struct set *s, const struct disk_table *t);
/* Returns the time in ns for which the disk with `number` has been away, without pauses of the process; 0:
 * the disk is in service. */
uint64_t set_away_ns(const struct set *s, int number);
/* Notes that the secondary of a partition has missed an update: the next map says that this secondary is not
 * in sync. The caller then calls set_wait_kept(). */
void set_miss(struct set *s, unsigned place);
/* Takes the partitions that set_miss() has noted since the last call of this function. */
void set_take_missed(struct set *s, struct store_slots *ret_places);
/* Returns true if set_take_missed() has partitions to take. */
bool set_has_miss(struct set *s);
void set_count(struct set *s, enum set_counter what);
uint64_t set_counted(const struct set *s, enum set_counter what);

/* ---- on the port's thread ---- */

/* Continues the changes of this port that wait for a copy on a failed disk. */
void set_poke_changes(struct set_port *p);
/* Continues the PUT pieces of this port that wait for a copy on a failed disk. */
void set_poke_pieces(struct set_port *p);

#endif
