/* SPDX-License-Identifier: Apache-2.0 */
/* map_int - fields of the placement map state of a set, for map_change.c, and for the simulation and tests
 * that read them. */
#ifndef GANTRY_SET_MAP_INT_H
#define GANTRY_SET_MAP_INT_H

#include "set/map_change.h"
#include "set/set.h"
#include "store/ops.h"

#include <pthread.h>

struct set_map {
	pthread_mutex_t lock; /* protects all fields of this struct */
	bool is_changing;     /* true: the map change lock is held */
	struct list waiting;  /* entries of struct set_turn that wait for the map change lock */
	/* owner of the map change lock; NULL: the lock is free, or the set itself holds the lock */
	struct set_turn *holder;
	/* owner of the map change lock, while the owner waits until a map is written; &nobody: the set itself
	 * waits for the write; NULL: neither waits */
	struct set_turn *settling;
	bool has_table;          /* true: the set has a map and serves */
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
	uint64_t start_no; /* number of this start */
	/* Bitmaps of engines: `begun`, the engines that take part in the newest map; `unwritten`, the engines
	 * that have not written this map yet. */
	uint64_t begun, unwritten;
	struct set_table_write {
		struct store_table_write w;
		struct set *set;
		int engine;
	} write[STORE_SET_MAX];
	/* The write of the newest map to a disk that is no longer a member. */
	struct set_last_write {
		struct store_table_write w;
		_Atomic bool is_over;
	} last[STORE_SET_MAX];
};

#endif
