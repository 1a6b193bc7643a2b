/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement - the copy of the placement map in memory that requests consult: the engine of each partition,
 * the engines in service, and the metadata leader.
 *
 * Any thread reads the placement by atomics, and the results stay valid until the next barrier (ports.h). The
 * placement is written before the first port, by the owner of the map change lock, or by map_change.c.
 * Engines are indices; SET_NOWHERE: the disk is missing.
 */
#ifndef GANTRY_SET_PLACEMENT_H
#define GANTRY_SET_PLACEMENT_H

#include "set/map/disk_table.h"
#include "store/ops.h"

#include <stdatomic.h>

struct set;
struct set_placement;

/* Makes a placement in which no slot has a secondary.  0 or -ENOMEM. */
int set_placement_new(struct set_placement **ret_placement);
/* Frees the placement. NULL is allowed. */
void set_placement_free(struct set_placement *pl);

/* ---- partitions ---- */

static inline unsigned
set_slot(const struct store_key *k)
{
	return table_slot(k->bucket, k->bucket_len, k->key, k->key_len);
}

/* Returns the primary of a key; SET_NOWHERE. */
int set_primary(const struct set *s, const struct store_key *k);
/* Returns the primary of a partition; SET_NOWHERE. */
int set_primary_at(const struct set *s, unsigned place);
void set_assign_primary(struct set *s, unsigned place, int engine);
/* Returns the secondary of a key: the engine that gets every change before the answer. SET_NOWHERE: none. */
int set_secondary(const struct set *s, const struct store_key *k);
/* Returns the secondary of a slot of keys with two copies; SET_NOWHERE: none. */
int set_secondary_at(const struct set *s, int slot);
void set_assign_secondary(struct set *s, int slot, int engine);
/* Returns true if some slots of keys with two copies have neither copy in service. */
bool set_misses_places(const struct set *s);
/* Notes the begin or the end of a change of the engine of partitions, during which both engines may show
 * their keys. */
void set_note_relocation(struct set *s);
/* Returns the counter of calls of set_note_relocation(), which exists as long as the set. */
_Atomic uint64_t *set_relocations(const struct set *s);
/* Notes whether partitions may change their engine from now on; after a barrier all callers of
 * set_is_moving() have seen the change. */
void set_note_moving(struct set *s, bool moves);
bool set_is_moving(const struct set *s);

/* ---- engines in service: bitmaps ---- */

/* Returns the engines of members, without drained disks and disks that are not members yet. */
uint64_t set_all(const struct set *s);
/* Returns the engines in service: the engines of the effective map. */
uint64_t set_in(const struct set *s);
bool set_is_in(const struct set *s, int engine);
/* Returns true if fewer than half of the members are in service: no write is made (M9). */
bool set_is_read_only(const struct set *s);
/* Returns the metadata leader: the engine that answers about buckets. */
int set_head(const struct set *s);

/* ---- for the owner of the map change lock, and the map ---- */

void set_publish_in(struct set *s, uint64_t all, uint64_t in);
/* Makes the set read-only until the next start. */
void set_publish_read_only(struct set *s);
void set_publish_head(struct set *s, int engine);

#endif
