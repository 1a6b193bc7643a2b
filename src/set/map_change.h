/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_change - the newest placement map of a set in service, its map epochs, and the map change lock
 * (docs/set.md, M11).
 *
 * The map change lock is held by one struct set_turn at a time, also while its owner waits for operations.
 * The mutex of the map is held briefly: a thread that holds the mutex only posts messages, asks engines
 * whether they have failed, and starts the write of a map. Any thread may call these functions, unless stated
 * otherwise.
 */
#ifndef GANTRY_SET_MAP_CHANGE_H
#define GANTRY_SET_MAP_CHANGE_H

#include "base/list.h"
#include "base/mailbox.h"
#include "set/map/disk_table.h"
#include "set/set.h"
#include "store/ops.h"

#include <pthread.h>

struct set;

/* A caller in the queue of the map change lock: the caller holds the lock, waits for the lock, or waits until
 * a map is written. At the end of a wait go() runs in mailbox mb. Embedded by the caller. */
struct set_turn {
	struct list link; /* link in the list of waiting entries */
	struct msg msg;
	struct mailbox *mb;
	void (*go)(struct msg *m);
	/* Message to the owner of the map change lock that an engine has failed, for an owner that may wait for
	 * an answer of this engine. The message runs on_alarm() in mailbox mb. NULL: the owner gets no message. */
	struct msg alarm;
	void (*on_alarm)(struct msg *m);
	bool is_alarmed; /* true: the alarm message is in flight; protected by the mutex of the map */
};

/* The state of the placement map of a set. */
struct set_map {
	pthread_mutex_t lock; /* protects all fields of this struct except start_no and last[] */
	bool is_changing;     /* true: the map change lock is held */
	struct list waiting;  /* entries of struct set_turn that wait for the map change lock */
	/* owner of the map change lock; NULL: the lock is free, or the set itself holds the lock */
	struct set_turn *holder;
	/* owner of the map change lock, while the owner waits until a map is written; &the_set: the set itself
	 * waits for the write; NULL: neither waits */
	struct set_turn *settling;
	bool serves;             /* true: the set has a map, and its engines are not stopped */
	struct disk_table table; /* newest map, written to the disks or being written */
	/* The map before the change in progress. needs: bitmap of the engines that the change needs; if one
	 * of them fails, the map in `before` is restored. */
	struct disk_table before;
	uint64_t needs;
	/* Bitmap and number of the members of the other map that the next start may find if this change is
	 * interrupted: the previous map; after a cancelled change the abandoned map. other_nr 0: no change is
	 * in progress. */
	uint64_t other;
	int other_nr;
	uint64_t all_next; /* bitmap of the engines that will be members when the newest map is effective */
	/* result of the last change: 0, or the error after which the previous map was restored */
	int change;
	uint64_t start_no; /* number of this start; constant after set_table_begin() */
	/* Bitmaps of engines: `begun`, the engines that take part in the newest map; `unwritten`, the engines
	 * that have not written this map yet. */
	uint64_t begun, unwritten;
	struct set_table_write {
		struct store_table_write w;
		struct set *set;
		int engine;
	} write[STORE_SET_MAX];
	/* Bitmap of engines whose disk is no longer a member, and to which the write of the newest map has not ended. */
	_Atomic uint64_t left;
};

/* ---- life ---- */

/* Begins the service with all engines and their map t. start_no: number of this start. Called once, before the
 * first port is attached. */
void set_table_begin(struct set *s, const struct disk_table *t, uint64_t start_no);
/* Handles the failure of an engine: begins to write a map without the engine, or notifies the owner of the
 * map change lock through on_alarm(). */
void set_table_failed(struct set *s);
/* Notes that the engines will be stopped: from now on no map is written after a failure. */
void set_table_end(struct set *s);

/* ---- the map change lock ---- */

/* Takes the map change lock and returns true, or enters the queue of the lock and returns false: t->go()
 * follows when the lock is granted. */
bool set_take_turn(struct set *s, struct set_turn *t);
/* Releases the map change lock to the entry that has waited longest. Returns true if t->on_alarm(), which is
 * not NULL, will still run, so that t must not be freed before. */
bool set_give_turn(struct set *s, struct set_turn *t);
/* Notes that the alarm message of t has arrived, so that another alarm can be posted. Called by
 * on_alarm(). */
void set_hear_alarm(struct set *s, struct set_turn *t);

/* ---- for the owner of the map change lock ---- */

/* Checks whether an engine in service has failed. Returns true if no engine has failed, or the set is
 * read-only. Returns false if a map without the failed engines is being written (M15): t->go() follows. */
bool set_settle(struct set *s, struct set_turn *t);
/* Writes the map `next`. all: bitmap of the engines whose disks are members of `next`. needs: bitmap of the
 * engines without which `next` must not become effective; if one of them fails, the previous map is restored.
 * Returns true if the write has ended; false: t->go() follows at its end. set_change_result() returns the
 * result. Called after set_settle(). */
bool set_change_table(struct set *s, struct set_turn *t, const struct disk_table *next, uint64_t all,
		      uint64_t needs);
/* Returns the result of set_change_table(). 0: the new map is effective; -EIO: the previous map is effective;
 * -EROFS: the set is read-only, and the next start may find either map. */
int set_change_result(struct set *s);
/* Writes the map t, which does not list the disk of the engine as a member, to this disk. Later starts then
 * do not count the disk as a member. Called once for each engine. */
void set_write_left(struct set *s, int engine, const struct disk_table *t);
/* Returns true if the write of set_write_left() has ended. Any thread may call this function. */
bool set_left_is_written(const struct set *s, int engine);
/* Returns true if this engine takes part in changes of buckets: its disk is a member and in service. */
bool set_counts(const struct set *s, int engine);
/* Makes the first engine in service the metadata leader. */
void set_new_head(struct set *s);

/* ---- look-ups ---- */

/* Copies the newest map, which may not be effective yet. For the owner of the map change lock the newest map
 * is effective after set_settle(). */
void set_get_table(struct set *s, struct disk_table *ret_table);
/* Looks up a slot of keys with two copies in the newest map. *ret_first: number of the disk of its primary.
 * Returns true if the secondary of the slot is in sync. */
bool set_look_up_slot(struct set *s, int slot, int *ret_first);
/* Returns true if a disk drains or fills according to the newest map. */
bool set_members_change(struct set *s);
/* Returns the number of this start. */
uint64_t set_start_no(const struct set *s);
/* Returns the engine of the disk with `number` in the map; -1: no engine. */
int set_engine_of(const struct set *s, int number);

#endif
