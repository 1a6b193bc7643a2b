/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_change - the newest placement map of a set in service, its map epochs, and the map change lock (docs/set.md, M11).
 *
 * The map change lock is held across operations, by one struct set_turn at a time.  The mutex of the map is held for moments: with it, engines are asked
 * whether they have failed and are given maps to write, and messages are posted.  Any thread, but for what says otherwise.
 */
#ifndef GANTRY_SET_MAP_CHANGE_H
#define GANTRY_SET_MAP_CHANGE_H

#include "base/list.h"
#include "base/mailbox.h"
#include "set/map/disk_table.h"

struct set;
struct set_map;

/* The owner of the map change lock, or one that waits for it, or for a map to be written: go() comes through the mailbox. */
struct set_turn {
	struct list link; /* of those that wait */
	struct msg msg;
	struct mailbox *mb;
	void (*go)(struct msg *m);
	/* The notification that an engine failed, for which the owner may be waiting. */
	struct msg alarm;
	void (*on_alarm)(struct msg *m);
	bool is_alarmed; /* it is on its way; under the mutex of the map */
};

/* ---- life ---- */

/* Makes the map of a set that has none yet.  0 or -ENOMEM. */
int set_map_new(struct set_map **ret_map);
/* Frees it.  NULL is fine. */
void set_map_free(struct set_map *m);
/* Notes that all engines are there, and the map, if they have one (t).  Once, before there is a port. */
void set_table_begin(struct set *s, const struct disk_table *t, uint64_t start_no);
/* Notes that an engine has failed. */
void set_table_failed(struct set *s);
/* Notes that engines are about to stop. */
void set_table_end(struct set *s);

/* ---- the map change lock ---- */

/* Takes the lock (true), or waits for it: t->go() will run. */
bool set_take_turn(struct set *s, struct set_turn *t);
/* Gives the lock to the one that waits longest.  True: t->on_alarm() will still run. */
bool set_give_turn(struct set *s, struct set_turn *t);
/* Notes that on_alarm() runs: it may come again. */
void set_hear_alarm(struct set *s, struct set_turn *t);

/* ---- for its owner ---- */

/* Makes sure that no engine in service has failed.  True: none has, or all is read-only.  False: a map without the engines that have is
 * being written (M15), and t->go() will run. */
bool set_settle(struct set *s, struct set_turn *t);
/*
 * Writes a map in place of the newest one: `all` is the bitmap of its members' engines, `needs` that of the engines without which it does not become
 * effective.  True: it is done; false: t->go() will run.  After set_settle().
 */
bool set_change_table(struct set *s, struct set_turn *t, const struct disk_table *next, uint64_t all,
		      uint64_t needs);
/* Returns the result of that change: 0, it is effective; -EIO, the map before it is; -EROFS, all is read-only, and the next start may find the one or the
 * other. */
int set_change_result(struct set *s);
/* Writes to a disk that is no member any more the map that says so, once for an engine: from then on no start takes the disk for one of the store. */
void set_tell_left(struct set *s, int engine, const struct disk_table *t);
/* Returns true if that write has ended.  Any thread. */
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
/* Looks up a slot of keys with two copies in the newest map: the number of its primary, and (true) whether its secondary is in sync. */
bool set_look_up_slot(struct set *s, int slot, int *ret_first);
/* Returns true if the newest map says that a disk drains or fills. */
bool set_members_change(struct set *s);
/* Returns the engine of the disk with that number in the map, or -1. */
int set_engine_of(const struct set *s, int number);

#endif
