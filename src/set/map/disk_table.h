/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - the placement map of a store of several disks: its members, and the disk of each slot of keys. A
 * set (set.h) and its engines share it. docs/set.md is the reference.
 *
 * Every member stores the whole map, and the newest one is valid as a whole. Disks are numbers, indices of
 * uuid[].
 */
#ifndef GANTRY_SET_DISK_TABLE_H
#define GANTRY_SET_DISK_TABLE_H

#include "base/crc64.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stdint.h>

#define STORE_DISKS_MAX 64
#ifndef STORE_SLOT_BITS
#define STORE_SLOT_BITS 12
#endif
#define STORE_SLOT_NR (1 << STORE_SLOT_BITS)
#define TABLE_NO_DISK 255
#define TABLE_CHANGE_BITS 24 /* the low bits of a map's version: a counter below the start number */

struct disk_table {
	uint64_t version;  /* start number << TABLE_CHANGE_BITS | change */
	uint64_t members;  /* bitmap: members of the store */
	uint64_t in;       /* bitmap: members that took part in this table */
	uint64_t draining; /* bitmap: members whose slots leave */
	/* bitmap: members that receive slots, up to their share; also in draining: the drain was cancelled */
	uint64_t filling;
	uint8_t uuid[STORE_DISKS_MAX][UUID_BYTES];
	uint8_t home[STORE_SLOT_NR]; /* disk of each slot of keys with one copy */
	/* primary and secondary of each slot of keys with two copies; TABLE_NO_DISK: no secondary */
	uint8_t first[STORE_SLOT_NR], second[STORE_SLOT_NR];
	uint8_t full[STORE_SLOT_NR / 8]; /* bitmap of slots: the secondary is in sync */
};

/* Returns the slot of a key: bucket, 0x00, key. The data on disks depends on it: it never changes. */
static inline unsigned
table_slot(const void *bucket, size_t bucket_len, const void *key, size_t key_len)
{
	uint64_t h = crc64_nvme(0, bucket, bucket_len);

	h = crc64_nvme(h, "", 1);
	h = crc64_nvme(h, key, key_len);
	return (unsigned)(h >> (64 - STORE_SLOT_BITS));
}

/*
 * A place (partition) is a slot of keys with one copy, or of keys with two, which are placed independently:
 * the first STORE_SLOT_NR places are those of keys with one copy, by slot, the others those of keys with two.
 */
#define STORE_PLACE_NR (2 * STORE_SLOT_NR)
static inline unsigned
table_place(unsigned slot, bool has_two)
{
	return slot + (has_two ? STORE_SLOT_NR : 0);
}

/* A set of places, a bit each. */
#define STORE_SLOT_WORDS (STORE_PLACE_NR / 64)
_Static_assert(STORE_SLOT_NR % 64 == 0, "no word has places of both kinds");
struct store_slots {
	uint64_t bit[STORE_SLOT_WORDS];
};

static inline bool
slots_has(const struct store_slots *s, unsigned place)
{
	return s->bit[place / 64] >> place % 64 & 1;
}

static inline void
slots_add(struct store_slots *s, unsigned place)
{
	s->bit[place / 64] |= (uint64_t)1 << place % 64;
}

static inline bool
table_has(uint64_t bitmap, int disk)
{
	return bitmap >> disk & 1;
}

/* Makes the map of a new store of nr disks with the given UUIDs; slots are dealt by size. */
void table_make(struct disk_table *ret_table, const uint8_t uuid[][UUID_BYTES], const uint64_t *size_bytes,
		int nr, uint64_t start_no);
/* Returns the number of the disk with that UUID, or -1: no member has it. */
int table_find(const struct disk_table *t, const uint8_t uuid[UUID_BYTES]);
/*
 * Turns the newest map into that of a start in which the disks of `present` take part, all of them members: a
 * slot of keys with two copies moves to its secondary if that is in sync and the primary is not present, and
 * no secondary that is not present stays in sync unless the primary is not present either. True: the map has
 * changed, and its version was set.
 */
bool table_start(struct disk_table *t, uint64_t present, uint64_t start_no);
/* Does the same to slots of keys with two copies in service: `present` are the disks in service. True: the
 * map has changed. */
bool table_lose(struct disk_table *t, uint64_t present);
/*
 * Makes slots of keys with two copies, at a start, wait for a missing disk that may be in sync, if the other
 * one is stale: the missing one becomes the primary, and the secondary is not in sync. Slots whose secondary
 * was not in sync stay unchanged, because no other disk has all their records.
 */
void table_wait(struct disk_table *t, uint64_t present, uint64_t behind);
/* Returns true if the secondary of a slot is in sync; table_set_full() sets it. */
bool table_is_full(const struct disk_table *t, int slot);
void table_set_full(struct disk_table *t, int slot, bool full);
/*
 * Assigns a secondary, by size, to each slot of keys with two copies that has none; disks that leave get
 * none. full: they are in sync, because there are no keys. True: the map has changed.
 */
bool table_pair(struct disk_table *t, const uint64_t size_bytes[STORE_DISKS_MAX], bool full);
/* Computes the number of slots that each of these disks should have, by size. */
void table_shares(uint64_t disks, const uint64_t size_bytes[STORE_DISKS_MAX], int ret_want[STORE_DISKS_MAX]);
/* Counts the roles of a disk: slots of keys with one copy, and slots of keys with two of which it is primary
 * or secondary. */
int table_roles(const struct disk_table *t, int disk);
/* Returns true if the current drain was cancelled: no slot moves any longer, and its foreign records are not
 * removed yet. */
static inline bool
table_gives_up(const struct disk_table *t)
{
	return (t->draining & t->filling) != 0;
}

/*
 * Computes the planned disk of each slot of keys with one copy from the members' sizes: slots of a draining
 * disk go to the disks with the fewest for their size, and a filling disk gets its share from those with more
 * than theirs. After all moves the plan equals the map; its dependence on the moves already made is minimal.
 */
void table_plan(const struct disk_table *t, const uint64_t size_bytes[STORE_DISKS_MAX],
		uint8_t ret_home[STORE_SLOT_NR]);
/* Assigns a slot of keys with one copy to another member. */
void table_move(struct disk_table *t, int slot, int disk);
/* Counts the slots of keys with one copy on a disk. */
int table_count(const struct disk_table *t, int disk);
/* Returns true if a disk has been drained by this map, and is still a member: it is draining, and no slot of
 * either kind names it. */
bool table_is_drained(const struct disk_table *t, int disk);
/* Adds a member with an unused number; it fills from now on. */
void table_add(struct disk_table *t, int disk, const uint8_t uuid[UUID_BYTES]);
/* Removes a member without slots. */
void table_remove(struct disk_table *t, int disk);
/*
 * Removes disks for good: their slots go to the other members by size (of each number; 0 for removed disks).
 * The places of ret_lost begin empty, even if a disk has remains of them.
 */
void table_forget(struct disk_table *t, uint64_t disks, const uint64_t size_bytes[STORE_DISKS_MAX],
		  struct store_slots *ret_lost);

#endif
