/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the placement map of a set: for map_change.c, and for the simulation and tests that look at it. */
#ifndef GANTRY_SET_MAP_INT_H
#define GANTRY_SET_MAP_INT_H

#include "set/map_change.h"
#include "set/set.h"
#include "store/ops.h"

#include <pthread.h>

struct set_map {
	pthread_mutex_t lock;    /* of all of it */
	bool is_changing;        /* the map change lock is taken */
	struct list waiting;     /* struct set_turn: those that wait for it */
	struct set_turn *holder; /* its owner; NULL: none, or a change of the map alone */
	struct set_turn
		*settling;       /* the owner, while it waits for the map to be written; NULL: it does not */
	bool has_table;          /* there is a map, and everything serves */
	struct disk_table table; /* the newest that was begun */
	/* The map before the change in progress, which comes back when one of the engines of `needs` fails. */
	struct disk_table before;
	uint64_t needs;
	/* Engines of the members of the other map, which is the one before or the one that was given up, and the number of those members; 0: no change
	 * is in progress. */
	uint64_t other;
	int other_nr;
	uint64_t all_next; /* bitmap of the members' engines, from when the map is effective */
	int change;        /* result of the last change: 0, or it fell back */
	uint64_t start_no; /* of this start */
	/* Bitmaps of the engines that take part in the newest map, and of those of them that have not written it yet. */
	uint64_t begun, unwritten;
	struct set_table_write {
		struct store_table_write w;
		struct set *set;
		int engine;
	} write[STORE_SET_MAX];
	/* The map in which an engine's disk is no member any more, on its way to that disk. */
	struct set_last_write {
		struct store_table_write w;
		_Atomic bool is_over;
	} last[STORE_SET_MAX];
};

#endif
