/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_table - the placement map of a store of several disks: its members, and the disk of each slot of keys.
 * The set (set.h) and its engines use the same struct. docs/set.md is the reference. Every member stores the
 * whole map, and the newest map is valid as a whole. A disk is a number, the index of its entry in uuid[].
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
/* number of low bits of a map's version: these bits count the changes since a start, the higher bits are the
 * start number */
#define TABLE_CHANGE_BITS 24

struct disk_table {
	uint64_t version;  /* version of the map: start number << TABLE_CHANGE_BITS | number of the change */
	uint64_t members;  /* bitmap of the members of the store */
	uint64_t in;       /* bitmap of the members that took part in this map */
	uint64_t draining; /* bitmap of the members that are drained: their slots move to other members */
	/* bitmap of the members that receive slots, up to their share. If a disk is in both `draining` and
	 * `filling`, its drain was cancelled. */
	uint64_t filling;
	uint8_t uuid[STORE_DISKS_MAX][UUID_BYTES];
	uint8_t home[STORE_SLOT_NR]; /* number of the disk of each slot of keys with one copy */
	/* numbers of the primary and the secondary of each slot of keys with two copies; TABLE_NO_DISK: the
	 * slot has no secondary */
	uint8_t first[STORE_SLOT_NR], second[STORE_SLOT_NR];
	uint8_t full[STORE_SLOT_NR / 8]; /* bitmap of the slots whose secondary is in sync */
};

/* Returns the slot of a key: a hash over bucket name, 0x00 and object key. The data on disks depends on this
 * function, which therefore never changes. */
static inline unsigned
table_slot(const void *bucket, size_t bucket_len, const void *key, size_t key_len)
{
	uint64_t h = crc64_nvme(0, bucket, bucket_len);

	h = crc64_nvme(h, "", 1);
	h = crc64_nvme(h, key, key_len);
	return (unsigned)(h >> (64 - STORE_SLOT_BITS));
}

/* Number of partitions ("places"). A partition is a slot of keys with one copy, or a slot of keys with two
 * copies; each partition is placed separately. Partitions below STORE_SLOT_NR are the slots of keys with one
 * copy; partition STORE_SLOT_NR + i is slot i of keys with two copies. */
#define STORE_PLACE_NR (2 * STORE_SLOT_NR)
static inline unsigned
table_place(unsigned slot, bool has_two)
{
	return slot + (has_two ? STORE_SLOT_NR : 0);
}

/* A set of partitions, with one bit for each. */
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

/* Returns true if a disk is in a bitmap; TABLE_NO_DISK is in none. */
static inline bool
table_has(uint64_t bitmap, int disk)
{
	return disk < STORE_DISKS_MAX && bitmap >> disk & 1;
}

/* Makes the map of a new store of nr disks with the given UUIDs. The number of slots of a disk is in
 * proportion to its size. */
void table_make(struct disk_table *ret_table, const uint8_t uuid[][UUID_BYTES], const uint64_t *size_bytes,
		int nr, uint64_t start_no);
/* Returns the number of the disk with this UUID; -1: no member has the UUID. */
int table_find(const struct disk_table *t, const uint8_t uuid[UUID_BYTES]);
/* Turns the newest map t into the map of a start. present: bitmap of the disks that take part, all of them
 * members. If only one disk of an in-sync slot is present, this disk becomes the primary, and the secondary
 * is no longer in sync. If neither disk is present, the slot stays unchanged. Returns true if the map has
 * changed and has a new version. */
bool table_start(struct disk_table *t, uint64_t present, uint64_t start_no);
/* Updates the map after disks have failed. present: bitmap of the disks still in service. If only one disk of
 * an in-sync slot is left, this disk is the primary, and the secondary is no longer in sync. Other slots stay
 * unchanged. Returns true if the map has changed. */
bool table_lose(struct disk_table *t, uint64_t present);
/* Makes slots of keys with two copies wait, at a start, for a missing disk. The wait concerns in-sync slots
 * with one missing disk and one stale disk (in the bitmap `behind`): the missing disk becomes the primary,
 * and the secondary is no longer in sync. Slots that were not in sync stay unchanged, because no other disk
 * has all records of these slots. */
void table_wait(struct disk_table *t, uint64_t present, uint64_t behind);
/* Returns true if the secondary of a slot is in sync. table_set_full() sets this state. */
bool table_is_full(const struct disk_table *t, int slot);
void table_set_full(struct disk_table *t, int slot, bool full);
/*
 * Assigns a secondary to each slot of keys with two copies that has none, in proportion to the sizes of the
 * disks. Draining disks get no slots. full: true: the new secondaries are in sync, because there are no keys.
 * Returns true if the map has changed.
 */
bool table_pair(struct disk_table *t, const uint64_t size_bytes[STORE_DISKS_MAX], bool full);
/* Computes the number of slots that each of these disks should have, in proportion to its size. */
void table_shares(uint64_t disks, const uint64_t size_bytes[STORE_DISKS_MAX], int ret_want[STORE_DISKS_MAX]);
/* Returns the disk of the bitmap `disks` that lacks most slots of those that it should have; -1: none should have slots. */
int table_poorest(uint64_t disks, const int want[STORE_DISKS_MAX], const int has[STORE_DISKS_MAX]);
/* Returns the number of roles of a disk: its slots of keys with one copy, and its slots of keys with two
 * copies, as primary or secondary. */
int table_roles(const struct disk_table *t, int disk);
/* Returns true if the current drain was cancelled. No slot moves any longer, but foreign records of the drain
 * possibly still exist. */
static inline bool
table_gives_up(const struct disk_table *t)
{
	return (t->draining & t->filling) != 0;
}

/*
 * Computes the planned disk of each slot of keys with one copy from the sizes of the members. Each slot of a
 * draining disk goes to the disk that then lacks most slots of its share. A filling disk gets its share from
 * the disks that have more than their share. After all moves the plan equals the map. The plan depends as
 * little as possible on the moves already made.
 */
void table_plan(const struct disk_table *t, const uint64_t size_bytes[STORE_DISKS_MAX],
		uint8_t ret_home[STORE_SLOT_NR]);
/* Returns the number of slots of keys with one copy on a disk. */
int table_count(const struct disk_table *t, int disk);
/* Returns true if the drain of a disk is complete: the disk is draining and still a member, and the map
 * assigns no slot to the disk, neither of keys with one copy nor of keys with two copies. */
bool table_is_drained(const struct disk_table *t, int disk);
/* Adds a member with an unused number; the new member is filling. */
void table_add(struct disk_table *t, int disk, const uint8_t uuid[UUID_BYTES]);
/* Removes a member that has no slots. */
void table_remove(struct disk_table *t, int disk);
/*
 * Removes disks for good. Their slots go to the other members in proportion to size_bytes (by number; 0 for
 * removed disks). *ret_lost gets the partitions that begin empty, although a disk may have foreign records of
 * these partitions.
 */
void table_forget(struct disk_table *t, uint64_t disks, const uint64_t size_bytes[STORE_DISKS_MAX],
		  struct store_slots *ret_lost);

#endif
