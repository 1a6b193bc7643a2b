/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the placement map of a set: for map_change.c, and for the simulation and tests that read its
 * fields. */
#ifndef GANTRY_SET_MAP_INT_H
#define GANTRY_SET_MAP_INT_H

#include "set/map_change.h"
#include "set/set.h"
#include "store/ops.h"

#include <pthread.h>

struct set_map {
	pthread_mutex_t lock; /* lock of all fields */
	bool is_changing;     /* the map change lock is held */
	struct list waiting;  /* struct set_turn: threads that wait for the map change lock */
	/* owner of the map change lock; NULL: none, or a change of the map without a thread */
	struct set_turn *holder;
	struct set_turn *settling; /* the owner, while waiting for a written map; NULL: not waiting */
	bool has_table;            /* the set has a map and serves */
	struct disk_table table;   /* the newest map, whose write was begun */
	/* The map before the change in progress, which is restored when an engine of `needs` fails. */
	struct disk_table before;
	uint64_t needs;
	/* Bitmap of the members' engines of the other map (the previous map or the abandoned one), and number
	 * of these members; 0: no change in progress. */
	uint64_t other;
	int other_nr;
	uint64_t all_next; /* bitmap of the members' engines after the map is effective */
	/* result of the last change: 0, or the error after which the previous map was restored */
	int change;
	uint64_t start_no; /* number of this start */
	/* Bitmaps of the engines that take part in the newest map (begun), and of the engines that have not
	 * written this map yet (unwritten). */
	uint64_t begun, unwritten;
	struct set_table_write {
		struct store_table_write w;
		struct set *set;
		int engine;
	} write[STORE_SET_MAX];
	/* The write of a map to the disk that is no longer a member in this map. */
	struct set_last_write {
		struct store_table_write w;
		_Atomic bool is_over;
	} last[STORE_SET_MAX];
};

#endif
