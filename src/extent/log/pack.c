/* SPDX-License-Identifier: Apache-2.0 */
/* Units that small objects share, and the leader's part of moves; see pack.h. */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"
#include "base/check.h"
#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- used steps of units ---- */

int
pack_init(struct vol *vol)
{
	vol->packs.steps = calloc(vol->disk.geo.seg_nr, sizeof *vol->packs.steps);
	return vol->packs.steps ? 0 : -ENOMEM;
}

void
pack_fini(struct vol *vol)
{
	for (uint32_t i = 0; vol->packs.steps && i < vol->disk.geo.seg_nr; i++)
		free((void *)(uintptr_t)vol->packs.steps[i]);
	free(vol->packs.steps);
	vol->packs.steps = NULL;
}

static _Atomic uint16_t *
steps_of(const struct vol *vol, uint64_t unit)
{
	uint64_t per_seg = geo_seg_units(&vol->disk.geo);
	_Atomic uint16_t *seg = vol->packs.steps[unit / per_seg];

	return seg ? &seg[unit % per_seg] : NULL;
}

uint32_t
pack_steps(const struct vol *vol, uint64_t unit)
{
	_Atomic uint16_t *steps = steps_of(vol, unit);

	return steps ? atomic_load(steps) : 0;
}

static uint32_t
sparse_steps(const struct vol *vol, uint32_t steps)
{
	return steps < PACK_SPARSE(vol->disk.geo.unit_bytes / PLACE_STEP) ? steps : 0;
}

/* Updates the counters after a change of the number of used steps of a unit. */
static void
changed(struct vol *vol, uint32_t was, uint32_t is)
{
	struct packs *pk = &vol->packs;
	uint32_t sparse_was = sparse_steps(vol, was), sparse_is = sparse_steps(vol, is);

	atomic_fetch_add(&pk->unit_nr, (uint64_t)(is != 0) - (uint64_t)(was != 0));
	atomic_fetch_add(&pk->sparse_nr, (uint64_t)(sparse_is != 0) - (uint64_t)(sparse_was != 0));
	atomic_fetch_add(&pk->sparse_steps, (uint64_t)sparse_is - sparse_was);
}

int
pack_make(struct vol *vol, uint64_t unit, uint32_t steps)
{
	uint64_t per_seg = geo_seg_units(&vol->disk.geo);
	_Atomic uint16_t **seg = &vol->packs.steps[unit / per_seg];
	uint32_t was;

	if (pack_steps(vol, unit) + steps > vol->disk.geo.unit_bytes / PLACE_STEP)
		return -EEXIST;
	if (!*seg)
		*seg = calloc(per_seg, sizeof **seg);
	if (!*seg)
		return -ENOMEM;
	was = atomic_fetch_add(&(*seg)[unit % per_seg], (uint16_t)steps);
	changed(vol, was, was + steps);
	return 0;
}

void
pack_gone(struct vol *vol, uint64_t place, uint64_t size_bytes)
{
	_Atomic uint16_t *steps = steps_of(vol, ext_unit(place));
	uint32_t gone = place_steps(size_bytes), was;

	check(steps);
	was = atomic_load(steps);
	/* With the rule off the first removal frees the unit. */
	if (!RULE_PACK_LAST_FREES)
		gone = was;
	check(was >= gone);
	if (!gone)
		return;
	atomic_store(steps, (uint16_t)(was - gone));
	changed(vol, was, was - gone);
	if (was == gone)
		disk_extents_free(&vol->disk, &(uint64_t){ ext_make(ext_unit(place), 1) }, 1);
}

/* ---- counts of small objects ---- */

void
pack_forget(struct vol *vol)
{
	atomic_store(&vol->packs.packed_nr, 0);
	atomic_store(&vol->packs.loose_nr, 0);
	atomic_store(&vol->packs.loose_steps, 0);
}

static void
count(struct vol *vol, const struct rec *r, int sign)
{
	struct packs *pk = &vol->packs;

	if (r->body == BODY_PACKED) {
		atomic_fetch_add_explicit(&pk->packed_nr, (uint64_t)sign, memory_order_relaxed);
	} else if (rec_is_loose(r, &vol->disk.geo)) {
		atomic_fetch_add_explicit(&pk->loose_nr, (uint64_t)sign, memory_order_relaxed);
		atomic_fetch_add_explicit(&pk->loose_steps, (uint64_t)sign * place_steps(r->size_bytes),
					  memory_order_relaxed);
	}
}

void
pack_count(struct vol *vol, const uint8_t *key, const struct rec *born, const struct rec *died)
{
	if (!key_is_object(key[0]))
		return;
	if (born)
		count(vol, born, 1);
	if (died)
		count(vol, died, -1);
}

/* ---- moves, the leader's part ---- */

/* Ends the batch if all its moves have ended, and wakes the mover. */
static void
look_if_over(struct vol *vol)
{
	struct mover *mv = &vol->mover;

	if (mv->at < mv->move_nr || mv->left)
		return;
	atomic_store(&mv->state, MOVE_DONE);
	helper_ring(&vol->helper);
}

/* Ends a move, which was published or has failed. */
static void
on_done(struct commit *c)
{
	struct move *m = container_of(c, struct move, c);
	struct vol *vol = m->vol;

	/* A failed block may be on the disk nevertheless, so the place is not used before a restart. After
	 * -ENOSPC the block was not written. */
	if (c->result == 0)
		atomic_fetch_add(&vol->packs.moved_nr, 1);
	else if (c->result == -ENOSPC)
		pack_gone(vol, m->to, m->size_bytes);
	vol->mover.left--;
	look_if_over(vol);
}

/* Returns the record to be moved; NULL: the key has another record by now. */
static const struct rec *
same_record(struct vol *vol, const struct move *m)
{
	size_t len = m->c.view.key_len;
	const struct rec *r;

	if (block_find(vol, m->key, len, key_hash(m->key, len)))
		return NULL;
	r = tree_find(vol->tree, m->key, len);
	return r && r->version == m->version && r->body == m->from_body &&
			       *(const uint64_t *)rec_entries(r) == m->from
		       ? r
		       : NULL;
}

/* Packs a move. Returns 1; 0: the object is not moved; -EAGAIN: the move belongs into the next block. */
static int
move_one(struct vol *vol, struct move *m)
{
	const struct rec *r = m->is_off ? NULL : same_record(vol, m);
	struct commit *c = &m->c;

	if (!r)
		return 0;
	rec_view_of(r, m->key, c->view.key_len, &c->view);
	c->view.body = BODY_PACKED;
	c->view.flags |= REC_FLUSHED;
	c->view.entries = &m->to;
	switch (block_room(vol, rec_encoded_bytes(&c->view), false)) {
	case ROOM_NEXT_BLOCK:
		return -EAGAIN;
	case ROOM_LOG_FULL:
		return 0;
	default:
		break;
	}
	/* The new record needs as much of the index and of snapshots as the one that it replaces. */
	c->kind = COMMIT_MOVE;
	if (commit_set_aside(vol, c, true) < 0)
		return 0;
	c->is_gc = true;
	c->finished = on_done;
	c->key_hash = key_hash(m->key, c->view.key_len);
	block_pack(vol, c);
	return 1;
}

void
pack_commit(struct vol *vol)
{
	struct mover *mv = &vol->mover;

	if (atomic_load_explicit(&mv->state, memory_order_acquire) != MOVE_READY || mv->at == mv->move_nr)
		return;
	if (RULE_LARGE_FLUSHED_FIRST && mv->flush_ticket > vol->flush.done) {
		vol->leader.have_unflushed = true;
		return;
	}
	for (; mv->at < mv->move_nr; mv->at++) {
		struct move *m = &mv->move[mv->at];
		int r = move_one(vol, m);

		if (r == -EAGAIN)
			return;
		if (r == 1)
			mv->left++;
		else if (!m->is_off)
			pack_gone(vol, m->to, m->size_bytes);
	}
	look_if_over(vol);
}
