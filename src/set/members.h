/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members - the disks of a set: their engines, numbers in the placement map, names, and the disks that were
 * drained or have failed.
 *
 * An engine is an index below set_engines(); a unit (a disk as operators see it) is an index below
 * set_units(). While the set serves, both tables only grow at the end, under a lock. A thread that has read
 * the number of entries may read these entries without the lock. Any thread may call these functions.
 */
#ifndef GANTRY_SET_MEMBERS_H
#define GANTRY_SET_MEMBERS_H

#include "set/set.h"
#include "set/start/start.h"

#include <pthread.h>
#include <stdatomic.h>

struct set;

struct set_members {
	pthread_mutex_t lock;  /* protects the tables that grow */
	_Atomic int engine_nr; /* number of entries in engine[] and number[] */
	struct store *engine[STORE_SET_MAX];
	uint8_t number[STORE_SET_MAX]; /* number of each engine's disk in the placement map */
	struct set_member unit[STORE_SET_MAX];
	_Atomic uint64_t drained; /* bitmap of units that were drained since the start */
	int missing_nr;           /* number of units that were missing at the start */
	uint8_t store_uuid[UUID_BYTES];
	_Atomic bool serves; /* true: set_has_failed() asks the engines; false: the set ends */
};

/* ---- life ---- */

/* Takes over the disks that a start has found. Called once, before the first port is attached. */
void set_members_begin(struct set *s, const struct set_found *f);
/* Ends the set: set_has_failed() calls no engine from now on, and all engines are stopped. */
void set_members_end(struct set *s);

/* ---- engines ---- */

/* Returns the number of engines, including those of drained disks and of disks that are not members yet. */
int set_engines(const struct set *s);
struct store *set_engine(const struct set *s, int engine);
/* Returns the member functions of an engine. */
const struct store_member_ops *set_engine_ops(const struct set *s, int engine);
/* Returns the number of the engine's disk in the placement map. */
int set_number(const struct set *s, int engine);
/* Adds an engine whose disk has `number` in the placement map. The caller runs a barrier before the engine is
 * used. */
void set_add_engine(struct set *s, struct store *engine, int number);
/* Returns true if an engine has failed: a write of its disk failed or took too long. */
bool set_has_failed(const struct set *s, int engine);

/* ---- units ---- */

/* Returns the number of disks of the store, including disks drained since the start. */
int set_units(const struct set *s);
const struct set_member *set_unit(const struct set *s, int unit);
/* Adds the disk of an engine, which has this UUID, to the units. */
void set_add_unit(struct set *s, int engine, const uint8_t *uuid);
/* Returns true if the disk was drained, and no longer belongs to the store. */
bool set_is_drained(const struct set *s, int unit);
void set_note_drained(struct set *s, int unit);
/* Returns the UUID of the store. */
const uint8_t *set_store_uuid(const struct set *s);
/* Returns the number of disks that belong to the store, including missing ones. */
int set_disks(const struct set *s);
/* Returns true if a disk was missing at the start. The disk stays missing until the next start. */
bool set_misses_some(const struct set *s);

#endif
