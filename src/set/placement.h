/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement - the copy of the placement map in memory that requests consult: the engine of each partition,
 * the engines in service, and the metadata leader.
 *
 * Any thread reads the placement through atomics, and the results stay valid until the next barrier
 * (ports.h). Writers are the start (before the first port is attached), the owner of the map change lock, and
 * map_change.c. An engine is an index; SET_NOWHERE means that the disk is missing.
 */
#ifndef GANTRY_SET_PLACEMENT_H
#define GANTRY_SET_PLACEMENT_H

#include "set/map/disk_table.h"
#include "store/ops.h"

#include <stdatomic.h>

struct set;

/* The role of an engine for a partition. A partition of keys with one copy has a primary only. */
enum set_role { SET_PRIMARY, SET_SECONDARY, SET_ROLES };

struct set_placement {
	/* engines of each partition, by role; partitions of keys with one copy have no secondary */
	_Atomic uint8_t replica[STORE_PLACE_NR][SET_ROLES];
	/* counter that is incremented at the beginning and at the end of each move of partitions between
	 * engines; odd: a move is in progress */
	_Atomic uint64_t relocations;
	_Atomic bool is_moving;   /* true: partitions may change their engine */
	_Atomic uint64_t leaving; /* bitmap of engines that partitions leave at the moment */
	_Atomic uint64_t all, in; /* bitmaps of engines: members, and engines in service */
	_Atomic int head;         /* engine of the metadata leader */
	_Atomic bool is_read_only;
};

/* ---- partitions ---- */

static inline unsigned
set_slot(const struct store_key *k)
{
	return table_slot(k->bucket, k->bucket_len, k->key, k->key_len);
}

/* Returns the engine that has a role for a partition; SET_NOWHERE: the disk of the primary is missing, or the
 * partition has no secondary. */
int set_replica_at(const struct set *s, unsigned place, enum set_role role);
static inline int
set_primary_at(const struct set *s, unsigned place)
{
	return set_replica_at(s, place, SET_PRIMARY);
}

static inline int
set_secondary_at(const struct set *s, unsigned place)
{
	return set_replica_at(s, place, SET_SECONDARY);
}

/* Returns the primary of a key; SET_NOWHERE: the disk of the primary is missing. */
int set_primary(const struct set *s, const struct store_key *k);
/* Returns the secondary of a key, which gets every change of the key before the change is answered. Returns
 * SET_NOWHERE if the key has no secondary. */
int set_secondary(const struct set *s, const struct store_key *k);
/* Gives an engine, or SET_NOWHERE, a role for a partition. */
void set_assign(struct set *s, unsigned place, enum set_role role, int engine);
/* Returns true if some slots of keys with two copies have neither copy in service. */
bool set_misses_places(const struct set *s);
/* Notes the beginning or the end of a move of partitions from one engine to another. During the move both
 * engines can list the keys. */
void set_note_relocation(struct set *s);
/* Returns the counter of set_note_relocation(), which a list compares before and after it reads the engines. */
_Atomic uint64_t *set_relocations(struct set *s);
/* Notes, with set_note_relocation(), that partitions begin or have ceased to leave an engine. Until they have
 * left, the engine lists keys of partitions whose primary is another engine already. */
void set_note_leaving(struct set *s, int engine, bool leaves);
bool set_is_leaving(const struct set *s, int engine);
/* Notes whether partitions may change their engine from now on. All callers of set_is_moving() see the new
 * value after a barrier. */
void set_note_moving(struct set *s, bool moves);
bool set_is_moving(const struct set *s);

/* ---- engines in service: bitmaps ---- */

/* Returns the bitmap of the engines of members. Drained disks, and disks that are not members yet, are left
 * out. */
uint64_t set_all(const struct set *s);
/* Returns the bitmap of the engines in service, which are the engines of the effective map. */
uint64_t set_in(const struct set *s);
bool set_is_in(const struct set *s, int engine);
/* Returns true if fewer than half of the members are in service: no write is made (M9). */
bool set_is_read_only(const struct set *s);
/* Returns the engine of the metadata leader, which answers requests about buckets. */
int set_head(const struct set *s);

/* ---- for the owner of the map change lock, and the map ---- */

void set_publish_in(struct set *s, uint64_t all, uint64_t in);
/* Makes the set read-only until the next start. */
void set_publish_read_only(struct set *s);
void set_publish_head(struct set *s, int engine);

#endif
