/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack - small objects that share a unit: the used steps of each unit, and the mover, which packs objects.
 *
 * A PUT allocates a unit for each object. The mover, a paced task of the helper, collects small objects that
 * have not changed for a while, reads and checks their bytes, writes these side by side into new units, and
 * passes the leader a batch of moves; the leader judges each move (the record must be unchanged), and commits
 * the valid moves like other commits. A move changes only the place of the bytes in the record of an object;
 * all other fields, including the version, do not change.
 *
 *	IDLE --> MAKING (helper: units taken, bytes read and written) --> READY --> leader: flush, judge, commit
 *	  ^                                                                            |
 *	  +--------------------- helper: paced ------------- DONE <--------------------+
 *
 * The records of a unit with few used steps are moved again, like loose objects.
 *
 * Threads: struct packs is atomic, and the helper extends its tables before a record names a unit of a new
 * segment; pack_commit(), pack_gone() and pack_count() run on the leader or the start, mover_work() on the
 * helper, mover_fini() when neither runs.
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

#define MOVES_MAX 128    /* most moves of one batch */
#define MOVE_UNITS_MAX 8 /* most units of one batch */
#define MOVE_SLICE 1024  /* records examined in one call */
#define MOVE_SETTLED_NS (NS_PER_S / 2)
/* pause between two walks; doubled while a walk finds no object to move */
#define MOVE_REST_NS (NS_PER_S / 2)
#define MOVE_REST_MAX_NS (32 * NS_PER_S)
#define MOVE_SLICE_REST_NS (2 * NS_PER_MS)
#define MOVE_FEW 256u /* a walk begins if at least one object in this number would be moved */
/* Limits for the steps of a unit: a unit is written if at least PACK_FILL_MIN are filled, and its objects are
 * moved again if less than PACK_SPARSE are in use. PACK_SPARSE is less than PACK_FILL_MIN, so that the moves
 * end. */
#define PACK_FILL_MIN(steps) ((steps) / 8 * 5)
#define PACK_SPARSE(steps) ((steps) / 2)

struct packs {
	/* per segment: number of used steps of each unit; NULL: the segment has no shared units */
	_Atomic uint16_t **steps;
	_Atomic uint64_t unit_nr; /* number of shared units in use */
	/* number of shared units below PACK_SPARSE, and their used steps */
	_Atomic uint64_t sparse_nr, sparse_steps;
	_Atomic uint64_t packed_nr; /* number of packed records */
	/* number and steps of small objects that have a unit each */
	_Atomic uint64_t loose_nr, loose_steps;
	_Atomic uint64_t moved_nr; /* number of objects moved since the start */
};

/* The move of one object. */
struct move {
	struct commit c;
	struct vol *vol;
	uint64_t version, from, to; /* to: a place; from: an extent or a place */
	uint64_t crc64;
	uint32_t size_bytes;
	uint32_t step;
	uint8_t from_body, unit;
	bool is_off; /* the object will not be moved */
	uint8_t key[KEY_BYTES_MAX];
};

enum move_state { MOVE_IDLE, MOVE_MAKING, MOVE_READY, MOVE_DONE };

struct mover {
	uint64_t rate; /* bytes of objects moved per second; 0: the mover is off */
	_Atomic int state;
	/* the batch: owned by the helper, in state READY by the leader */
	struct move *move; /* MOVES_MAX moves; NULL: not allocated yet */
	uint32_t move_nr;
	/* owned by the leader: index of the next move to be judged; number of moves whose commits have not
	 * ended */
	uint32_t at, left;
	uint64_t flush_ticket; /* flush that covers the written units */
	/* owned by the helper */
	struct quiesce_user *user;
	struct alloc_run run;
	struct tree_cursor *cursor;
	uint8_t *buf, *page; /* buf: MOVE_UNITS_MAX units; page: the pages of one object, after them */
	uint32_t unit_nr;
	/* steps assigned to objects, and steps of the objects that were read without an error */
	uint32_t fill[MOVE_UNITS_MAX], good[MOVE_UNITS_MAX];
	uint64_t unit[MOVE_UNITS_MAX];
	bool walks, found_some;
	uint16_t at_len;
	uint8_t at_key[KEY_BYTES_MAX]; /* key at which the walk continues */
	/* mark_ns: time of the last mark; mark, settled: newest version at the last mark and at the mark
	 * before it */
	uint64_t mark_ns, settled, mark;
	uint64_t began_ns, batch_bytes, next_ns, rest_ns;
	/* time at which the last walk ended; newest version that the current walk moves */
	uint64_t ended_ns, walk_settled;
	/* Newest version up to which the last walk found no object to move. Any thread reads this field. */
	_Atomic uint64_t clean;
	_Atomic bool is_awaited; /* a caller waits for the end of the moves, so the next pause is short */
};

/* Makes the tables whose size depends on the geometry. Returns 0 or -ENOMEM. */
int pack_init(struct vol *vol);
void pack_fini(struct vol *vol);
/* Resets the counters of records, when the index is empty again. */
void pack_forget(struct vol *vol);
/* Counts a record added to the index and a record removed from it (NULL: none). */
void pack_count(struct vol *vol, const uint8_t *key, const struct rec *born, const struct rec *died);
/* Returns the number of steps of a unit in use. */
uint32_t pack_steps(const struct vol *vol, uint64_t unit);
/* Counts the steps of a record at `place` as unused, when no reader can need them any longer; the last record
 * frees the unit. */
void pack_gone(struct vol *vol, uint64_t place, uint64_t size_bytes);
/* Counts further steps of a unit as used: those of a record, at the start; of all records of a new unit, on the helper
 * thread. Returns 0, -ENOMEM, or -EEXIST: more steps are used than the unit has. */
int pack_make(struct vol *vol, uint64_t unit, uint32_t steps);
/* Packs the moves of a READY batch while the block has room. */
void pack_commit(struct vol *vol);

/* ---- mover.c ---- */

/* Does a part of the mover's work. Returns the time until the next call (helper.h). Helper thread. */
uint64_t mover_work(struct vol *vol, struct ring *r);
void mover_fini(struct vol *vol);
/* Returns true if a batch is in progress, or a walk might find objects to move; the next walk then begins
 * soon. Any thread. */
bool mover_has_work(struct vol *vol);

#endif
