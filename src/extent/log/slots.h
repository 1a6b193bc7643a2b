/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots - the keys that belong to this volume, if a store has several volumes. The set assigns partitions
 * (set/map/disk_table.h; "place" in the code) to volumes. Records of other partitions are foreign: secondary
 * copies, remains of moves, or copies that are arriving. They are counted separately, by partition and
 * bucket.
 *
 * A volume that has all keys has no struct slots. Threads: `own` and the sums on any; the other fields belong
 * to the leader (or the start).
 */
#ifndef GANTRY_EXTENT_LOG_SLOTS_H
#define GANTRY_EXTENT_LOG_SLOTS_H

#include "base/crc64.h"
#include "extent/disk/rules.h"
#include "extent/log/decide.h"
#include "store/ops.h"

struct quota_change;
struct vol;

struct slots {
	_Atomic uint64_t own[STORE_SLOT_WORDS];
	/* own has all partitions of keys with one copy (0), with two (1), so that names need not be hashed */
	_Atomic bool has_all[2];
	/* Foreign records, by number of copies: one (0), two (1). */
	_Atomic uint64_t left_objects[2], left_bytes[2], left_uploads[2];
	/* All records of keys with two copies on this volume, by slot, own and foreign. */
	_Atomic uint64_t two_objects[STORE_SLOT_NR], two_bytes[STORE_SLOT_NR];
	struct store_slots frozen, watched;
	bool is_frozen, is_watched; /* some partitions are frozen or watched */
	void (*changed)(void *cookie, const struct store_key *k);
	void *cookie;
	/* Sums of the foreign records, by partition and bucket. */
	struct store_moved **left;
	size_t left_size, left_nr; /* size of the table; number of entries in it */
	struct store_moved *spare; /* entries for the records of the block */
	uint32_t spare_nr;
};

/* A name identifies an object and its uploads: bucket, 0x00, key, and the number of copies. */
struct slot_name {
	const uint8_t *at; /* NULL: the record has no partition */
	size_t len;
	bool has_two;
};

/* Returns the name of an object's or upload's record; at is NULL for other records. */
static inline struct slot_name
slot_name(const uint8_t *key, size_t len)
{
	const unsigned copies = disk_key_traits(key[0]).copies;

	return copies ? (struct slot_name){ key + 1, len - 1 - key_tail_bytes(key[0]), copies == 2 }
		      : (struct slot_name){ 0 };
}

/* Returns the name as a key, which refers to its bytes. */
static inline struct store_key
name_key(const struct slot_name *n)
{
	const uint8_t *nul = memchr(n->at, 0, n->len);

	return (struct store_key){ .bucket = (const char *)n->at,
				   .key = (const char *)nul + 1,
				   .bucket_len = (uint16_t)(nul - n->at),
				   .key_len = (uint16_t)(n->at + n->len - nul - 1),
				   .copies = n->has_two ? 2 : 1 };
}

static inline unsigned
name_place(const struct slot_name *n)
{
	return table_place((unsigned)(crc64_nvme(0, n->at, n->len) >> (64 - STORE_SLOT_BITS)), n->has_two);
}

static inline bool
slots_own(const struct slots *sl, unsigned place)
{
	return !RULE_LEFTOVERS_HIDDEN ||
	       (atomic_load_explicit(&sl->own[place / 64], memory_order_relaxed) >> place % 64 & 1);
}

/* Returns true if a record's name belongs to the volume. sl NULL: all names do. */
static inline bool
slots_own_key(const struct slots *sl, const uint8_t *key, size_t len)
{
	struct slot_name n;

	if (!sl)
		return true;
	n = slot_name(key, len);
	return !n.at || atomic_load_explicit(&sl->has_all[n.has_two], memory_order_relaxed) ||
	       slots_own(sl, name_place(&n));
}

/* Makes a struct slots with `own` as the partitions of the volume. Returns 0 or -ENOMEM. */
int slots_new(const struct store_slots *own, struct slots **ret_sl);
/* Frees sl; NULL is allowed. */
void slots_free(struct slots *sl);

/* Adds partitions to the volume's own, or removes them: on the leader, and, to remove the partitions of a disk that has
 * failed, on any thread. */
void slots_set_own(struct slots *sl, const struct store_slots *slots, bool own);

/* ---- the leader's ---- */

/* The commit of a struct store_slots_op. */
struct slots_cmd {
	struct store_slots_op *o;
	enum store_slots_act act;
	struct commit c;
};

/* Judges a commit by its partition: 0; -EXDEV or -EPERM: refused; -EAGAIN: the commit waits. Completes the
 * view of a record from another disk. */
int slots_judge(struct vol *vol, struct commit *c);
/* Executes a command. V_AFTER: the command ends with the block; V_NOW: the command has ended; V_LATER: the command
 * needs an empty block. */
enum verdict slots_command(struct vol *vol, struct commit *c);
/* Reserves memory to count the records of the block and one more record. Returns 0 or -ENOMEM. */
int slots_reserve(struct vol *vol);
/* Returns the version for a record from another disk, and makes all later versions greater. */
uint64_t slots_version(struct vol *vol, const struct commit_sent *sent);
/* Reports the changes of the published block to the watcher. */
void slots_published(struct vol *vol);
/* Counts a change of a key with two copies, by slot; ignores other keys. */
void slots_count_two(struct slots *sl, const struct slot_name *n, const struct quota_change *change);
/* Counts a change of a foreign record, after slots_reserve(), or at a start. Returns 0 or -ENOMEM. */
int slots_count(struct slots *sl, const struct slot_name *n, const struct quota_change *change);

#endif
