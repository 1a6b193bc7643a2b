/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots - which keys are this volume's, where it is one of several: by places (set/map/disk_table.h), of which the set says who has
 * them.  What is here of others is left over, or a second copy, or on its way here; it is counted apart, by place and bucket.
 *
 * A volume that has all keys has no struct slots.  Threads: `own` and the sums any, the rest is the leader's (or the
 * start's).
 */
#ifndef GANTRY_EXTENT_LOG_SLOTS_H
#define GANTRY_EXTENT_LOG_SLOTS_H

#include "base/crc64.h"
#include "extent/disk/rules.h"
#include "extent/log/commit.h"
#include "store/ops.h"

struct quota_change;
struct vol;

struct slots {
	_Atomic uint64_t own[STORE_SLOT_WORDS];
	_Atomic bool has_all[2]; /* own is all of keys with one copy, two: no name need be hashed */
	/* Of keys of other places, with one copy, two. */
	_Atomic uint64_t left_objects[2], left_bytes[2], left_uploads[2];
	/* Of keys with two copies, by slot: all that is here, whether the volume's own or not. */
	_Atomic uint64_t two_objects[STORE_SLOT_NR], two_bytes[STORE_SLOT_NR];
	struct store_slots frozen, watched;
	bool is_frozen, is_watched; /* some are */
	void (*changed)(void *cookie, const struct store_key *k);
	void *cookie;
	/* What is left over, by place and bucket. */
	struct store_moved **left;
	size_t left_size, left_nr; /* of the table; in it */
	struct store_moved *spare; /* for what is in the block */
	uint32_t spare_nr;
};

/* A name is what an object and its uploads have in common: bucket, 0x00, key, and how many copies there are. */
struct slot_name {
	const uint8_t *at; /* NULL: of nothing that has a place */
	size_t len;
	bool has_two;
};

/* Returns the name under which a record is, of an object or an upload. */
static inline struct slot_name
slot_name(const uint8_t *key, size_t len)
{
	if (key_is_object(key[0]))
		return (struct slot_name){ key + 1, len - 1, key_has_two(key[0]) };
	if (key_is_upload(key[0]))
		return (struct slot_name){ key + 1, len - 1 - UPLOAD_TAIL_BYTES, key_has_two(key[0]) };
	return (struct slot_name){ 0 };
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

/* Tells whether a record's name is the volume's own.  sl NULL: all are. */
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

/* Makes it, with those places for its own.  0 or -ENOMEM. */
int slots_new(const struct store_slots *own, struct slots **ret_sl);
/* Frees it; NULL is fine. */
void slots_free(struct slots *sl);

/* Says at once that places are not the volume's own, whose disk has failed.  Any thread. */
void slots_disown(struct slots *sl, const struct store_slots *places);

/* ---- the leader's ---- */

enum slots_what { SLOTS_WATCH, SLOTS_FREEZE, SLOTS_THAW, SLOTS_TAKE, SLOTS_LEAVE };

/* The commit of a struct store_slots_op. */
struct slots_cmd {
	struct store_slots_op *o;
	enum slots_what what;
	struct commit c;
};

/* Says of a commit that it must not be: -EXDEV, -EPERM, or (it waits) -EAGAIN; and makes its view complete, if it was sent. */
int slots_judge(struct vol *vol, struct commit *c);
/* Does a command.  1: it is over when the block is; 0: it is over; -EAGAIN: with an empty block. */
int slots_command(struct vol *vol, struct commit *c);
/* Makes sure that what is in the block, and one record more, can be counted.  0 or -ENOMEM. */
int slots_reserve(struct vol *vol);
/* Returns the version for a record that was sent, and sees to it that later ones are greater. */
uint64_t slots_version(struct vol *vol, const struct commit_sent *sent);
/* Tells who watches what is in the block, which readers see. */
void slots_published(struct vol *vol);
/* Counts what is of keys with two copies, by slot; of others nothing. */
void slots_count_two(struct slots *sl, const struct slot_name *n, const struct quota_change *change);
/* Counts what is left over: for each record that has been reserved for, or at a start (-ENOMEM). */
int slots_count(struct slots *sl, const struct slot_name *n, const struct quota_change *change);

#endif
