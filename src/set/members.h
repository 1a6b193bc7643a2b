/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members - the disks of a set: their engines, numbers in the placement map, names, and which of them have left or failed.
 *
 * An engine is an index below set_engines(), a unit (as operators count disks) one below set_units().  Both only grow while the set serves, at
 * the end, under a lock of the members' own: whoever has seen the number of them reads those below it without the lock.  Any thread.
 */
#ifndef GANTRY_SET_MEMBERS_H
#define GANTRY_SET_MEMBERS_H

#include "set/start/start.h"

struct set;
struct set_members;

/* ---- life ---- */

/* Makes the members of a set, none yet.  0 or -ENOMEM. */
int set_members_new(struct set_members **ret_members);
/* Stops all engines.  NULL is fine. */
void set_members_stop(struct set_members *m);
void set_members_free(struct set_members *m);
/* Takes over the disks that a start found, all of whose engines have member functions.  Once, before there is a port. */
void set_members_begin(struct set *s, const struct set_found *f);
/* Notes that the set ends: no engine is asked any more whether it has failed. */
void set_members_end(struct set *s);

/* ---- engines ---- */

/* Counts the engines that are there, of drained disks and of disks that are not members yet in addition. */
int set_engines(const struct set *s);
struct store *set_engine(const struct set *s, int engine);
/* Returns the functions that an engine has as a member. */
const struct store_member_ops *set_engine_ops(const struct set *s, int engine);
/* Returns the number of the engine's disk in the placement map. */
int set_number(const struct set *s, int engine);
/* Adds an engine whose disk has that number in the placement map.  A barrier follows before it is used. */
void set_add_engine(struct set *s, struct store *engine, int number);
/* Returns true if an engine has failed: a write of its disk, or it takes too long. */
bool set_has_failed(const struct set *s, int engine);

/* ---- units ---- */

/* Counts the disks of the store, those that were drained since the start included. */
int set_units(const struct set *s);
const struct set_member *set_unit(const struct set *s, int unit);
/* Adds the disk of an engine.  uuid NULL: its engines have no table. */
void set_add_unit(struct set *s, int engine, const uint8_t *uuid);
/* Returns true if the disk was drained: it belongs to the store no longer. */
bool set_is_drained(const struct set *s, int unit);
void set_note_drained(struct set *s, int unit);
/* Counts the disks that belong to the store, those that are missing included. */
int set_disks(const struct set *s);
/* Returns true if a disk was missing at the start, and so is until the next. */
bool set_misses_some(const struct set *s);
/* Returns the UUID of the store, UUID_BYTES. */
const uint8_t *set_store_uuid(const struct set *s);

#endif
