/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - who belongs to a store of several disks, and on which of them each slot of keys lies: what a set
 * (set.h) and its engines share.  docs/set.md is the reference.
 *
 * All members have all of it, and the newest counts whole.  Disks are numbers into uuid[].
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
#define TABLE_CHANGE_BITS 24 /* a table's version: start number, then a counter of that many bits */

struct disk_table {
	uint64_t version;  /* start number << TABLE_CHANGE_BITS | change */
	uint64_t members;  /* bitmap: who belongs to the store */
	uint64_t in;       /* bitmap: members that took part in this table */
	uint64_t draining; /* bitmap: members whose slots leave */
	uint64_t
		filling; /* bitmap: members that slots of others come to, up to their share; draining, too: given up */
	uint8_t uuid[STORE_DISKS_MAX][UUID_BYTES];
	uint8_t home[STORE_SLOT_NR];                         /* of keys with one copy */
	uint8_t first[STORE_SLOT_NR], second[STORE_SLOT_NR]; /* of keys with two; TABLE_NO_DISK: no second */
	uint8_t full[STORE_SLOT_NR / 8]; /* bitmap: the second has all that the first has */
};

/* Returns the slot of a key: bucket, 0x00, key.  Disks depend on it: it never changes. */
static inline unsigned
table_slot(const void *bucket, size_t bucket_len, const void *key, size_t key_len)
{
	uint64_t h = crc64_nvme(0, bucket, bucket_len);

	h = crc64_nvme(h, "", 1);
	h = crc64_nvme(h, key, key_len);
	return (unsigned)(h >> (64 - STORE_SLOT_BITS));
}

/*
 * A place is a slot of the keys that have so many copies, which lie by tables of their own: the first STORE_SLOT_NR are
 * those of keys with one copy, by slot, the others those of keys with two.
 */
#define STORE_PLACE_NR (2 * STORE_SLOT_NR)
static inline unsigned
table_place(unsigned slot, bool has_two)
{
	return slot + (has_two ? STORE_SLOT_NR : 0);
}

/* Places of keys, a bit each. */
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

/* Makes the table of a new store of nr disks, whose UUIDs are given and whose slots go by size. */
void table_make(struct disk_table *ret_table, const uint8_t uuid[][UUID_BYTES], const uint64_t *size_bytes,
		int nr, uint64_t start_no);
/* Returns the number of the disk with that UUID, or -1: no member has it. */
int table_find(const struct disk_table *t, const uint8_t uuid[UUID_BYTES]);
/*
 * Makes of the newest table that of a start in which the disks of `present` take part, all of them members: a slot of
 * keys with two copies goes to its second where that is full and the first is not present, and no second that is not
 * present stays full unless the first is not present either.  True: something has changed, and the version was set.
 */
bool table_start(struct disk_table *t, uint64_t present, uint64_t start_no);
/* Does the same to slots of keys with two copies while it serves: present are those in service.  True: something has changed. */
bool table_lose(struct disk_table *t, uint64_t present);
/*
 * Lets slots of keys with two copies, at a start, wait for a disk that may have all and is not present, where the other one is an older copy
 * of itself: the missing one is the first, and the second is not full.  Where the second was not full they stay: nobody else has all.
 */
void table_wait(struct disk_table *t, uint64_t present, uint64_t behind);
/* Tells whether the second of a slot has all, and says so. */
bool table_is_full(const struct disk_table *t, int slot);
void table_set_full(struct disk_table *t, int slot, bool full);
/*
 * Gives each slot of keys with two copies that has no second one, by size; those of disks that leave do not count.  full: they have
 * all, as there is nothing.  True: something has changed.
 */
bool table_pair(struct disk_table *t, const uint64_t size_bytes[STORE_DISKS_MAX], bool full);
/* Says how many slots each of these disks should have, by size. */
void table_shares(uint64_t disks, const uint64_t size_bytes[STORE_DISKS_MAX], int ret_want[STORE_DISKS_MAX]);
/* Counts what a disk has: slots of keys with one copy, and those of keys with two of which it is the first or the second. */
int table_roles(const struct disk_table *t, int disk);
/* Tells whether what is under way was cancelled: nothing moves any more, and what is left over of it is yet to be removed. */
static inline bool
table_gives_up(const struct disk_table *t)
{
	return (t->draining & t->filling) != 0;
}

/*
 * Says where each slot of keys with one copy should be, of the members' sizes: what is on a draining disk goes to those that have
 * the fewest for their size, and a filling disk gets its share of those that have more than theirs.  Once all of it is done it
 * says that all is as it should be; of which moves were made before it depends no more than needs be.
 */
void table_plan(const struct disk_table *t, const uint64_t size_bytes[STORE_DISKS_MAX],
		uint8_t ret_home[STORE_SLOT_NR]);
/* Gives a slot of keys with one copy to another member. */
void table_move(struct disk_table *t, int slot, int disk);
/* Counts the slots of keys with one copy that a disk has. */
int table_count(const struct disk_table *t, int disk);
/* Tells whether a disk is drained by this table, and has yet to be taken off: it is draining, and no slot of any kind names it. */
bool table_is_drained(const struct disk_table *t, int disk);
/* Adds a member of that number, which none has; it fills from now on. */
void table_add(struct disk_table *t, int disk, const uint8_t uuid[UUID_BYTES]);
/* Takes a member off that has no slots any more. */
void table_remove(struct disk_table *t, int disk);
/*
 * Takes disks off for good: their slots go to the other members by size (of each number; 0 for those that are gone).  Places of
 * ret_lost begin empty, whatever is left of them anywhere.
 */
void table_forget(struct disk_table *t, uint64_t disks, const uint64_t size_bytes[STORE_DISKS_MAX],
		  struct store_slots *ret_lost);

#endif
