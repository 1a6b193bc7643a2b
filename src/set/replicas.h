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
#include "set/recovery.h"
#include "set/set_int.h"

/* ---- life ---- */

/* Allocates the state for a set whose engines can copy to each other. Returns 0 or -ENOMEM. */
int set_replicas_new(struct set_replicas **ret_replicas);
/* Frees the state. No key is locked. NULL is allowed. */
void set_replicas_free(struct set_replicas *r);
/* Takes over the primary and the secondary of each slot from the map of a start. is_used: buckets with two
 * copies may exist. engine[] gives the engine of each disk by number. Called before the first port is
 * attached. */
void set_replicas_begin(struct set *s, const struct disk_table *t, const uint8_t engine[STORE_DISKS_MAX],
			bool is_used);

/* ---- buckets with two copies ---- */

/* Returns true if the engines can copy to each other, so that a bucket may have two copies. */
bool set_can_pair(const struct set *s);
/* Returns true if buckets with two copies may exist; otherwise no slot has a secondary. */
bool set_uses_pairs(const struct set *s);
/* Returns true if slots have secondaries and all primaries answer, so that a bucket with two copies may be
 * made. */
bool set_has_pairs(const struct set *s);
/* Notes that slots have secondaries from now on. Returns the number of this assignment of secondaries, which
 * increases with each assignment. The caller holds the map change lock. */
unsigned set_begin_pairs(struct set *s);
/* Notes that all primaries now answer for their slots under the assignment of secondaries number `paired`, the
 * result of set_begin_pairs(). After this call set_has_pairs() returns true, unless a later assignment was
 * made. */
void set_note_pairs_answer(struct set *s, unsigned paired);
/* Notes that no slot has a secondary any longer: a map without secondaries is effective. The caller holds the
 * map change lock. */
void set_end_pairs(struct set *s);
/* Returns true if the keys of a bucket have two copies. Called on the port's thread. */
bool set_bucket_has_two(struct store_port *sp, const char *bucket, size_t len);
/* Copies a key of a caller, and sets its number of copies. Returns true if the key has two copies. */
bool set_has_two(struct store_port *sp, const struct store_key *k, struct store_key *ret_key);

/* ---- keys, disks, counts ---- */

/* Returns the key locks of keys with two copies. */
struct set_holds *set_key_locks(const struct set *s);
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
/* Takes the partitions that set_miss() has noted since the last call of this function. Returns false if no
 * partition was noted. */
bool set_take_missed(struct set *s, struct store_slots *ret_places);
/* Returns true if set_take_missed() has partitions to take. */
bool set_has_miss(const struct set *s);
/* Counters since the start: updates that a secondary missed, damaged copies that were repaired, and reads
 * from a secondary. */
enum set_counter { COUNT_MISSED, COUNT_REPAIRED, COUNT_READ_SECONDARY, COUNT_NR };
void set_count(struct set *s, enum set_counter what);
uint64_t set_counted(const struct set *s, enum set_counter what);

/* ---- operations on keys with two copies: on the port's thread ---- */

/* Assigns secondaries to all slots, and then makes the first bucket with two copies. Arguments and result are
 * those of set_bucket_create(). */
int set_pair_first(struct set_port *p, const char *name, size_t len, const struct store_bucket_spec *spec,
		   struct store_del *op);

int set_two_issue(struct set_port *p, const struct store_key *k, struct store_op *op,
		  const struct set_call *c);
/* A part of an upload in progress. */
struct set_part {
	const uint8_t *id;
	uint32_t number;
};
/* Opens an object; part not NULL: opens this part of an upload of the key instead. is_second: opens only the
 * secondary copy. Returns 1 if the object is open; 0: obj->op.done() follows; or -errno. */
int set_two_open(struct set_port *p, const struct store_key *k, const struct set_part *part, bool is_second,
		 struct store_obj *obj);
/* Reads the state of an upload of a key with two copies, as store_upload_stat() does for callers. Returns the
 * result of a start function (store.h). */
int set_two_upload_stat(struct set_port *p, const struct store_key *k, const uint8_t *id, void *attrs,
			uint32_t cap, struct store_stat *st);
/* Lists the parts of an upload of a key with two copies. Returns the result of a start function (store.h). */
int set_two_list_parts(struct set_port *p, const struct store_key *k, const uint8_t *id,
		       struct store_part_list *pl);
int set_two_put_init(struct set_port *p, struct store_put *put, const struct store_key *k, const uint8_t *id,
		     uint32_t number, uint64_t size_bytes);
/* Continues the changes of this port that wait for a copy on a failed disk. */
void set_two_poke(struct set_port *p);
/* Continues the PUT pieces of this port that wait for a copy on a failed disk. */
void set_two_poke_writes(struct set_port *p);
/* Closes an opened object. This function and the following ones are entries of store_set_ops. */
void set_two_close(struct store_port *sp, struct store_obj *obj);
uint32_t set_two_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
			   uint32_t *ret_skew);
int set_two_read(struct store_port *sp, struct store_obj *obj, struct store_read *rd, struct buf *buf,
		 uint64_t off, uint32_t len);
bool set_two_read_cancel(struct store_port *sp, struct store_read *rd);
int set_two_obj_part(struct store_obj *obj, uint32_t number, struct store_part *ret_part);
int set_two_obj_part_at(struct store_obj *obj, uint32_t index, struct store_part *ret_part);
int set_two_put_write(struct store_port *sp, struct store_put *put, struct store_write *w, struct buf *buf,
		      uint32_t len, bool last);
bool set_two_write_cancel(struct store_port *sp, struct store_write *w);
int set_two_put_commit(struct store_port *sp, struct store_put *put, const struct store_commit *c);
void set_two_put_abort(struct store_port *sp, struct store_put *put);

#endif
