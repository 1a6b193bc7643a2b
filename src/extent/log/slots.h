/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots - which keys are this volume's, where it is one of several: by slots (store/table.h), of which the set says who has
 * them.  What is here of other slots is left over, or on its way here; it is counted apart, by slot and bucket.
 *
 * A volume that has all keys has no struct slots.  Threads: `own` and the two sums any, the rest is the leader's (or the
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
	_Atomic bool has_all;                      /* own is all of them: no name need be hashed */
	_Atomic uint64_t left_objects, left_bytes; /* of keys of other slots */
	struct store_slots frozen, watched;
	bool is_frozen, is_watched; /* some are */
	void (*changed)(void *cookie, const struct store_key *k);
	void *cookie;
	/* What is left over, by slot and bucket. */
	struct store_moved **left;
	size_t left_size, left_nr; /* of the table; in it */
	struct store_moved *spare; /* for what is in the block */
	uint32_t spare_nr;
};

/* A name is what an object and its uploads have in common: bucket, 0x00, key. */
struct slot_name {
	const uint8_t *at; /* NULL: of nothing that has a slot */
	size_t len;
};

/* Returns the name under which a record is, of an object or an upload. */
static inline struct slot_name
slot_name(const uint8_t *key, size_t len)
{
	if (key[0] == KEY_OBJECT)
		return (struct slot_name){ key + 1, len - 1 };
	if (key[0] == KEY_UPLOAD)
		return (struct slot_name){ key + 1, len - 1 - UPLOAD_TAIL_BYTES };
	return (struct slot_name){ 0 };
}

static inline unsigned
name_slot(const struct slot_name *n)
{
	return (unsigned)(crc64_nvme(0, n->at, n->len) >> (64 - STORE_SLOT_BITS));
}

static inline bool
slots_own(const struct slots *sl, unsigned slot)
{
	return !RULE_LEFTOVERS_HIDDEN ||
	       (atomic_load_explicit(&sl->own[slot / 64], memory_order_relaxed) >> slot % 64 & 1);
}

/* Tells whether a record's name is the volume's own.  sl NULL: all are. */
static inline bool
slots_own_key(const struct slots *sl, const uint8_t *key, size_t len)
{
	struct slot_name n;

	if (!sl || atomic_load_explicit(&sl->has_all, memory_order_relaxed))
		return true;
	n = slot_name(key, len);
	return !n.at || slots_own(sl, name_slot(&n));
}

/* Makes it, with those slots for its own.  0 or -ENOMEM. */
int slots_new(const struct store_slots *own, struct slots **ret_sl);
/* Frees it; NULL is fine. */
void slots_free(struct slots *sl);

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
/* Counts what is left over: for each record that has been reserved for, or at a start (-ENOMEM). */
int slots_count(struct slots *sl, const struct slot_name *n, const struct quota_change *change);

#endif
