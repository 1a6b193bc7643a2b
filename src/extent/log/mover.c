/* SPDX-License-Identifier: Apache-2.0 */
/* Packing of small objects, the helper's part: selection, reading, writing, pace; see pack.h. */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t
unit_steps(const struct vol *vol)
{
	return vol->disk.geo.unit_bytes / PLACE_STEP;
}

void
mover_fini(struct vol *vol)
{
	struct mover *mv = &vol->mover;

	if (mv->user) {
		quiesce_leave(mv->user);
		alloc_run_fini(vol->disk.alloc, &mv->run);
	}
	mv->user = NULL;
	free(mv->move);
	free(mv->cursor);
	free(mv->buf);
}

/* Allocates the mover's memory, when an object will be moved for the first time. */
static bool
make_memory(struct vol *vol)
{
	struct mover *mv = &vol->mover;
	size_t units_bytes = (size_t)MOVE_UNITS_MAX * vol->disk.geo.unit_bytes;

	if (mv->user)
		return true;
	if (!mv->move)
		mv->move = calloc(MOVES_MAX, sizeof *mv->move);
	if (!mv->cursor)
		mv->cursor = malloc(sizeof *mv->cursor);
	if (!mv->buf)
		mv->buf = sync_alloc(units_bytes + place_bytes_max(&vol->disk.geo) + 2 * FMT_ALIGN);
	if (!mv->move || !mv->cursor || !mv->buf || !(mv->user = quiesce_join(vol->quiesce)))
		return false;
	mv->page = mv->buf + units_bytes;
	quiesce_sleep(mv->user);
	alloc_run_init(vol->disk.alloc, &mv->run);
	return true;
}

/* ---- is a walk worth it? ---- */

/* Notes the newest version from time to time. New objects are often replaced soon, so only objects that
 * are older than such a mark are moved. */
static void
mark(struct vol *vol)
{
	struct mover *mv = &vol->mover;
	uint64_t now = clock_ns();

	if (mv->mark_ns && now - mv->mark_ns < MOVE_SETTLED_NS)
		return;
	mv->settled = mv->mark_ns ? mv->mark : atomic_load(&vol->version);
	mv->mark = atomic_load(&vol->version);
	mv->mark_ns = now;
}

/* Returns true if moves would reduce the number of units, and enough units are concerned to justify a walk
 * through all records. */
static bool
is_worth_it(const struct vol *vol)
{
	const struct packs *pk = &vol->packs;
	uint64_t units =
		atomic_load_explicit(&pk->loose_nr, memory_order_relaxed) + atomic_load(&pk->sparse_nr);
	uint64_t steps =
		atomic_load_explicit(&pk->loose_steps, memory_order_relaxed) + atomic_load(&pk->sparse_steps);

	return units > 1 && steps >= PACK_FILL_MIN(unit_steps(vol)) &&
	       units >= atomic_load_explicit(&vol->stats.objects, memory_order_relaxed) / MOVE_FEW;
}

/* ---- collecting ---- */

static void
begin_walk(struct mover *mv)
{
	mv->walks = true;
	mv->found_some = false;
	mv->walk_settled = mv->settled;
	mv->at_key[0] = disk_key_next(MODEL_OBJECT, 0);
	mv->at_len = 1;
}

static bool
is_wanted(const struct vol *vol, const struct rec *r)
{
	if (r->body == BODY_PACKED)
		return pack_steps(vol, ext_unit(*(const uint64_t *)rec_entries(r))) <
		       PACK_SPARSE(unit_steps(vol));
	return rec_is_loose(r, &vol->disk.geo) && r->version <= vol->mover.walk_settled;
}

/* Finds room for the steps of an object in the units of the batch. Returns false if the batch is full. */
static bool
find_room(const struct vol *vol, struct mover *mv, uint32_t steps, struct move *m)
{
	uint32_t u = 0;

	while (u < mv->unit_nr && mv->fill[u] + steps > unit_steps(vol))
		u++;
	if (u == MOVE_UNITS_MAX || mv->move_nr == MOVES_MAX)
		return false;
	if (u == mv->unit_nr)
		mv->fill[mv->unit_nr++] = 0;
	m->unit = (uint8_t)u;
	m->step = mv->fill[u];
	mv->fill[u] += steps;
	return true;
}

/* Adds an object to the batch, if it is to be moved. Returns false if the batch has no room for it. */
static bool
collect(struct vol *vol, const uint8_t *key, size_t len, const struct rec *r)
{
	struct mover *mv = &vol->mover;
	struct move *m = &mv->move[mv->move_nr < MOVES_MAX ? mv->move_nr : 0];

	if (!is_wanted(vol, r))
		return true;
	if (!find_room(vol, mv, place_steps(r->size_bytes), m))
		return false;
	m->c = (struct commit){ 0 };
	m->vol = vol;
	m->version = r->version;
	m->from = *(const uint64_t *)rec_entries(r);
	m->from_body = r->body;
	m->crc64 = r->crc64;
	m->size_bytes = (uint32_t)r->size_bytes;
	m->is_off = false;
	memcpy(m->key, key, len);
	m->c.view.key = m->key;
	m->c.view.key_len = (uint16_t)len;
	mv->move_nr++;
	return true;
}

/* Continues the walk, for up to MOVE_SLICE records. Returns true if the batch is full, or the walk has
 * ended. */
static bool
walk(struct vol *vol)
{
	struct mover *mv = &vol->mover;
	struct tree_cursor *c = mv->cursor;
	bool there, is_full = false;

	quiesce_wake(mv->user);
	there = tree_begin(c, vol->tree, mv->at_key, mv->at_len, false);
	for (int n = 0; there && (uint8_t)c->key[0] == mv->at_key[0] && n < MOVE_SLICE && !is_full; n++) {
		is_full = !collect(vol, (const uint8_t *)c->key, c->key_len, c->rec);
		there = is_full || tree_next(c);
	}
	mv->walks = there && (uint8_t)c->key[0] == mv->at_key[0];
	if (mv->walks) {
		memcpy(mv->at_key, c->key, c->key_len);
		mv->at_len = c->key_len;
	} else {
		mv->at_key[0] = disk_key_next(MODEL_OBJECT, mv->at_key[0]);
		mv->at_len = 1;
		mv->walks = mv->at_key[0];
	}
	quiesce_sleep(mv->user);
	return is_full || !mv->walks;
}

/* ---- a batch ---- */

/* Reads and checks the bytes of an object, and copies them to their step of the unit. Returns false: the
 * object is not moved. */
static bool
fetch(struct vol *vol, struct ring *r, const struct move *m)
{
	struct mover *mv = &vol->mover;
	bool is_place = m->from_body == BODY_PACKED;
	struct place_pages pg =
		place_pages(is_place ? m->from : place_make(ext_unit(m->from), 0), m->size_bytes);

	/* A damaged object is not moved: reads report the damage, and the scrub counts it. */
	if (sio_read(&vol->disk, r, &pg.ext, 1, pg.off, mv->page, pg.len) < 0 ||
	    crc64_nvme(0, mv->page + pg.skew, m->size_bytes) != m->crc64)
		return false;
	memcpy(mv->buf + (size_t)m->unit * vol->disk.geo.unit_bytes + (size_t)m->step * PLACE_STEP,
	       mv->page + pg.skew, m->size_bytes);
	return true;
}

/* Allocates a unit for each well-filled one of the batch. Objects for which the disk has no free unit are
 * not moved. */
static void
take_units(struct vol *vol)
{
	struct mover *mv = &vol->mover;

	for (uint32_t u = 0; u < mv->unit_nr; u++) {
		struct extent x;

		mv->good[u] = 0;
		mv->unit[u] = UINT64_MAX;
		if (mv->fill[u] >= PACK_FILL_MIN(unit_steps(vol)) &&
		    alloc_take(vol->disk.alloc, &mv->run, 1, &x) == 0)
			mv->unit[u] = x.unit;
	}
}

/* With the rule off: the unit of the first object is written again. */
static void
take_old_unit(struct vol *vol, const struct move *m)
{
	struct mover *mv = &vol->mover;

	if (RULE_PACK_NEVER_REWRITES || m->from_body != BODY_PACKED || mv->unit[m->unit] == UINT64_MAX ||
	    mv->good[m->unit])
		return;
	disk_extents_free(&vol->disk, &(uint64_t){ ext_make(mv->unit[m->unit], 1) }, 1);
	mv->unit[m->unit] = ext_unit(m->from);
}

/* Writes a unit, and counts its used steps. Returns false: the unit was not written. */
static bool
write_unit(struct vol *vol, struct ring *r, uint32_t u)
{
	struct mover *mv = &vol->mover;
	uint64_t ext = ext_make(mv->unit[u], 1);
	int e;

	if (mv->unit[u] == UINT64_MAX)
		return false;
	e = mv->good[u] ? sio_write(&vol->disk, r, &ext, 1, 0, mv->buf + (size_t)u * vol->disk.geo.unit_bytes,
				    align_up((uint64_t)mv->fill[u] * PLACE_STEP, FMT_ALIGN))
			: -ENODATA;
	if (e == 0 && pack_make(vol, mv->unit[u], mv->good[u]) == 0)
		return true;
	if (e < 0 && e != -ENODATA && e != -EAGAIN && e != -ENOSPC)
		disk_fail(&vol->disk, "writing data failed: %s", strerror(-e));
	else
		disk_extents_free(&vol->disk, &ext, 1);
	return false;
}

static void
hand_over(struct vol *vol)
{
	struct mover *mv = &vol->mover;

	/* A flush that begins from now on covers all units. */
	mv->flush_ticket = vol_flush_ticket(vol);
	mv->at = mv->left = 0;
	atomic_store(&mv->state, MOVE_READY);
	vol_wake(vol);
}

static void
batch_over(struct vol *vol)
{
	struct mover *mv = &vol->mover;
	uint64_t now = clock_ns(), took_ns = now - mv->began_ns;
	uint64_t due_ns = (uint64_t)((double)mv->batch_bytes * NS_PER_S / (double)mv->rate);

	mv->move_nr = mv->unit_nr = 0;
	/* Requests have the disk for at least as long as this batch had it. */
	mv->next_ns = now + (due_ns > took_ns ? due_ns : took_ns);
	atomic_fetch_sub(&vol->dead_nr, 1);
	atomic_store(&mv->state, MOVE_IDLE);
}

static void
make_batch(struct vol *vol, struct ring *r)
{
	struct mover *mv = &vol->mover;
	bool any = false;

	mv->began_ns = clock_ns();
	mv->batch_bytes = 0;
	/* The batch will free space. */
	atomic_fetch_add(&vol->dead_nr, 1);
	atomic_store(&mv->state, MOVE_MAKING);
	take_units(vol);
	memset(mv->buf, 0, (size_t)mv->unit_nr * vol->disk.geo.unit_bytes);
	for (uint32_t i = 0; i < mv->move_nr; i++) {
		struct move *m = &mv->move[i];

		m->is_off = mv->unit[m->unit] == UINT64_MAX || !fetch(vol, r, m);
		if (m->is_off)
			continue;
		take_old_unit(vol, m);
		m->to = place_make(mv->unit[m->unit], m->step);
		mv->good[m->unit] += place_steps(m->size_bytes);
		mv->batch_bytes += m->size_bytes;
	}
	for (uint32_t u = 0; u < mv->unit_nr; u++) {
		bool is_written = write_unit(vol, r, u);

		for (uint32_t i = 0; !is_written && i < mv->move_nr; i++)
			mv->move[i].is_off |= mv->move[i].unit == u;
		any |= is_written;
	}
	mv->found_some |= any;
	if (any)
		hand_over(vol);
	else
		batch_over(vol);
}

/* ---- the pace ---- */

static void
walk_ends(struct mover *mv)
{
	mv->rest_ns = mv->found_some || !mv->rest_ns       ? MOVE_REST_NS
		      : mv->rest_ns < MOVE_REST_MAX_NS / 2 ? 2 * mv->rest_ns
							   : MOVE_REST_MAX_NS;
	mv->ended_ns = clock_ns();
	mv->next_ns = mv->ended_ns + mv->rest_ns;
	if (!mv->found_some)
		atomic_store(&mv->clean, mv->walk_settled);
}

/* Returns the time until the helper's next step. If a caller waits for the end of the moves, the pause
 * between walks is the shortest one. */
static uint64_t
rest_left(struct mover *mv, uint64_t now)
{
	if (atomic_exchange(&mv->is_awaited, false) && !mv->walks && mv->ended_ns &&
	    mv->next_ns == mv->ended_ns + mv->rest_ns)
		mv->next_ns = mv->ended_ns + MOVE_REST_NS;
	return now < mv->next_ns ? mv->next_ns - now : 0;
}

bool
mover_has_work(struct vol *vol)
{
	struct mover *mv = &vol->mover;

	if (!mv->rate)
		return false;
	if (atomic_load(&mv->state) == MOVE_IDLE &&
	    (!is_worth_it(vol) || atomic_load(&mv->clean) >= atomic_load(&vol->version)))
		return false;
	atomic_store(&mv->is_awaited, true);
	helper_ring(&vol->helper);
	return true;
}

uint64_t
mover_work(struct vol *vol, struct ring *r)
{
	struct mover *mv = &vol->mover;
	uint64_t now, rest_ns;

	/* After a failure of the disk the leader may never answer. */
	if (!mv->rate || disk_failed(&vol->disk) || atomic_load(&mv->state) == MOVE_READY)
		return UINT64_MAX;
	if (atomic_load(&mv->state) == MOVE_DONE) {
		batch_over(vol);
		if (!mv->walks)
			walk_ends(mv);
	}
	mark(vol);
	now = clock_ns();
	rest_ns = rest_left(mv, now);
	if (rest_ns)
		return rest_ns;
	if (!mv->walks) {
		if (!is_worth_it(vol) || !make_memory(vol))
			return MOVE_REST_NS;
		begin_walk(mv);
	}
	if (!walk(vol))
		return MOVE_SLICE_REST_NS;
	make_batch(vol, r);
	if (!mv->walks && atomic_load(&mv->state) == MOVE_IDLE)
		walk_ends(mv);
	return atomic_load(&mv->state) == MOVE_IDLE ? MOVE_SLICE_REST_NS : UINT64_MAX;
}
