/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_change - the newest placement map of a set in service, its map epochs, and the map change lock
 * (docs/set.md, M11).
 *
 * The map change lock is held across operations, by one struct set_turn at a time. The mutex of the map is
 * held briefly: under the mutex, functions of engines are called that return whether an engine has failed or
 * start the write of a map, and messages are posted. Any thread, unless stated otherwise.
 */
#ifndef GANTRY_SET_MAP_CHANGE_H
#define GANTRY_SET_MAP_CHANGE_H

#include "base/list.h"
#include "base/mailbox.h"
#include "set/map/disk_table.h"

struct set;
struct set_map;

/* An owner of the map change lock, or a thread that waits for the lock or for a written map: go() runs
 * through the mailbox. */
struct set_turn {
	struct list link; /* link of the waiting threads */
	struct msg msg;
	struct mailbox *mb;
	void (*go)(struct msg *m);
	/* The message that an engine failed for which the owner may be waiting. */
	struct msg alarm;
	void (*on_alarm)(struct msg *m);
	bool is_alarmed; /* the message is in flight; under the mutex of the map */
};

/* ---- life ---- */

/* Makes the struct set_map of a set, without a map. 0 or -ENOMEM. */
int set_map_new(struct set_map **ret_map);
/* Frees m. NULL is allowed. */
void set_map_free(struct set_map *m);
/* Notes that all engines are present, and their map (t; NULL: none). Once, before the first port. */
void set_table_begin(struct set *s, const struct disk_table *t, uint64_t start_no);
/* Notes that an engine has failed. */
void set_table_failed(struct set *s);
/* Notes that the engines will be stopped. */
void set_table_end(struct set *s);

/* ---- the map change lock ---- */

/* Takes the lock (true), or begins to wait for it (false): t->go() follows. */
bool set_take_turn(struct set *s, struct set_turn *t);
/* Passes the lock to the thread that has waited longest. True: t->on_alarm() will still run. */
bool set_give_turn(struct set *s, struct set_turn *t);
/* Notes that on_alarm() runs, so that the message may be posted again. */
void set_hear_alarm(struct set *s, struct set_turn *t);

/* ---- for the owner of the map change lock ---- */

/* Checks whether an engine in service has failed. True: none has failed, or the set is read-only. False: a
 * map without the failed engines is being written (M15), and t->go() follows. */
bool set_settle(struct set *s, struct set_turn *t);
/*
 * Writes a map in place of the newest one: `all` is the bitmap of its members' engines, `needs` that of the
 * engines without which it does not become effective. True: the change is complete; false: t->go() follows.
 * Called after set_settle().
 */
bool set_change_table(struct set *s, struct set_turn *t, const struct disk_table *next, uint64_t all,
		      uint64_t needs);
/* Returns the result of set_change_table(): 0, the new map is effective; -EIO, the previous map is effective;
 * -EROFS, the set is read-only, and the next start may find either map. */
int set_change_result(struct set *s);
/* Writes the map without a disk to this disk, which is no longer a member, once for an engine: later starts
 * do not count the disk as a member. */
void set_tell_left(struct set *s, int engine, const struct disk_table *t);
/* Returns true if the write of set_tell_left() has ended. Any thread. */
bool set_left_is_told(const struct set *s, int engine);
/* Returns true if changes of buckets are made on an engine. */
bool set_counts(const struct set *s, int engine);
/* Makes the first engine in service the metadata leader. */
void set_new_head(struct set *s);

/* ---- look-ups ---- */

/* Returns true if the engines have a placement map. */
bool set_has_table(const struct set *s);
/* Returns the number of this start. */
uint64_t set_start_no(const struct set *s);
/* Copies the newest map.  For the owner of the map change lock, after set_settle(): the effective one. */
void set_get_table(struct set *s, struct disk_table *ret_table);
/* Looks up a slot of keys with two copies in the newest map: the number of its primary; returns true if its
 * secondary is in sync. */
bool set_look_up_slot(struct set *s, int slot, int *ret_first);
/* Returns true if a disk drains or fills according to the newest map. */
bool set_members_change(struct set *s);
/* Returns the engine of the disk with `number` in the map, or -1. */
int set_engine_of(const struct set *s, int number);

#endif
