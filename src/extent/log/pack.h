/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack - small objects that share a unit: how much of each unit is in use, and how they come there.
 *
 * A PUT takes a unit of its own.  The mover, a paced act of the helper, collects small objects that have been there for
 * a while, reads and checks them, writes them side by side into fresh units, and hands the leader a batch of moves; the
 * leader judges each (the record must still be the same), and commits those that stand as it commits anything else.
 * What a record says of an object, but for the place of its bytes, stays as it was, its version too.
 *
 *	IDLE --> MAKING (helper: units taken, bytes read and written) --> READY --> leader: flush, judge, commit
 *	  ^                                                                            |
 *	  +--------------------- helper: paced ------------- DONE <--------------------+
 *
 * A unit of which little is left is as good as loose objects: its records are moved again.
 *
 * Threads: struct packs is atomic, and its tables grow on the helper before a record names a unit there; pack_commit(),
 * pack_gone() and pack_count() are the leader's (or the start's), mover_work() the helper's, mover_fini() for when
 * neither runs.
 */
#ifndef GANTRY_EXTENT_LOG_PACK_H
#define GANTRY_EXTENT_LOG_PACK_H

#include "extent/disk/alloc.h"
#include "extent/log/commit.h"

struct quiesce_user;
struct rec;
struct ring;
struct tree_cursor;
struct vol;

#define MOVES_MAX 128    /* of one batch */
#define MOVE_UNITS_MAX 8 /* so many units at most */
#define MOVE_SLICE 1024  /* records that are looked at in one go */
#define MOVE_SETTLED_NS (NS_PER_S / 2)
#define MOVE_REST_NS (NS_PER_S / 2) /* between walks; doubled while they find nothing */
#define MOVE_REST_MAX_NS (32 * NS_PER_S)
#define MOVE_SLICE_REST_NS (2 * NS_PER_MS)
#define MOVE_FEW 256u /* a walk is worth it when one object in so many would be moved */
/* Of a unit: what is written is filled so far at least, and it is moved again when less than that is in use.  The
 * second is less than the first, so that this comes to an end. */
#define PACK_FILL_MIN(steps) ((steps) / 8 * 5)
#define PACK_SPARSE(steps) ((steps) / 2)

struct packs {
	_Atomic uint16_t **steps; /* of a segment: in use, per unit; NULL: nothing shares a unit there */
	_Atomic uint64_t unit_nr; /* that hold something */
	_Atomic uint64_t sparse_nr, sparse_steps; /* of these, units with little in use; and how much */
	_Atomic uint64_t packed_nr;               /* records */
	_Atomic uint64_t loose_nr, loose_steps;   /* small objects that have a unit of their own */
	_Atomic uint64_t moved_nr, moved_bytes;   /* since the start */
};

/* One object on its way. */
struct move {
	struct commit c;
	struct vol *vol;
	uint64_t version, from, to; /* from: an extent or a place */
	uint64_t crc64;
	uint32_t size_bytes;
	uint32_t step;
	uint8_t from_body, unit;
	bool is_off; /* will not be moved */
	uint8_t key[KEY_BYTES_MAX];
};

enum move_state { MOVE_IDLE, MOVE_MAKING, MOVE_READY, MOVE_DONE };

struct mover {
	uint64_t rate; /* bytes of objects a second; 0: off */
	_Atomic int state;
	/* the batch: the helper's, and the leader's while READY */
	struct move *move; /* MOVES_MAX of them; NULL: not made yet */
	uint32_t move_nr;
	uint32_t at, left;     /* the leader's: judged up to there; not over */
	uint64_t flush_ticket; /* of what was written */
	/* the helper's */
	struct quiesce_user *user;
	struct alloc_run run;
	struct tree_cursor *cursor;
	uint8_t *buf, *page; /* MOVE_UNITS_MAX units; one object with what is around it */
	uint32_t unit_nr;
	uint32_t fill[MOVE_UNITS_MAX], good[MOVE_UNITS_MAX]; /* steps */
	uint64_t unit[MOVE_UNITS_MAX];
	bool walks, found_some;
	uint16_t at_len;
	uint8_t at_key[KEY_BYTES_MAX]; /* the next one to be looked at */
	uint64_t mark_ns, settled,
		mark; /* versions: what was there when it was marked last, and before that */
	uint64_t began_ns, batch_bytes, next_ns, rest_ns;
	uint64_t ended_ns,
		walk_settled; /* when the last walk ended; up to which version the one in progress moves objects */
	/* Up to this version the last walk found nothing to move.  Any thread reads it. */
	_Atomic uint64_t clean;
	_Atomic bool is_awaited; /* a caller waits for the end of the work: the next rest is short */
};

/* Makes what needs the geometry.  0 or -ENOMEM. */
int pack_init(struct vol *vol);
void pack_fini(struct vol *vol);
/* Forgets what was counted of records: the index is empty again. */
void pack_forget(struct vol *vol);
/* Counts a record that came into the index and one that left it (NULL: none). */
void pack_count(struct vol *vol, const uint8_t *key, const struct rec *born, const struct rec *died);
/* Returns how many steps of a unit are in use. */
uint32_t pack_steps(const struct vol *vol, uint64_t unit);
/* Counts what a record has of a unit, at start.  0, -ENOMEM, -EEXIST: there is not so much of it. */
int pack_start(struct vol *vol, uint64_t place, uint64_t size_bytes);
/* Takes it back, when nobody can want it any more; the last one frees the unit. */
void pack_gone(struct vol *vol, uint64_t place, uint64_t size_bytes);
/* Makes a unit ready to be shared: so many steps of it will be in use.  0 or -ENOMEM.  Helper thread. */
int pack_make(struct vol *vol, uint64_t unit, uint32_t steps);
/* Packs what the mover has ready while there is room in the block. */
void pack_commit(struct vol *vol);

/* ---- mover.c ---- */

/* Does a piece of it.  Returns when it wants to be called again (helper.h).  Helper thread. */
uint64_t mover_work(struct vol *vol, struct ring *r);
void mover_fini(struct vol *vol);
/* Returns true if a batch is in progress, or a walk might find objects to move; then the next walk begins soon.  Any thread. */
bool mover_has_work(struct vol *vol);

#endif
