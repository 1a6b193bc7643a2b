/* SPDX-License-Identifier: Apache-2.0 */
/* Dead records, and the counts of the records in the index; see dead.h. */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"

#include <errno.h>
#include <stdlib.h>

#define SMALL_BYTES 512u /* size of a small record in a snapshot */

/* Returns the size of a record in a snapshot. */
static uint64_t
snapshot_bytes(const struct rec *r, size_t key_len)
{
	struct map_ref map;

	return align_up(REC_HEAD_BYTES + key_len + r->owner_len + r->sums_len + r->inline_len + r->attrs_len +
				(rec_map(r, &map) ? rec_map_bytes(r->flags, map.nr)
						  : r->entry_nr * rec_entry_bytes(r->body)),
			8);
}

static uint64_t
large(uint64_t bytes)
{
	return bytes > SMALL_BYTES ? bytes : 0;
}

void
rec_count(struct vol *vol, const uint8_t *key, size_t key_len, const struct rec *born, const struct rec *died)
{
	struct leader *ld = &vol->leader;
	uint64_t change = (uint64_t)(born != NULL) - (uint64_t)(died != NULL);
	uint64_t more = born ? snapshot_bytes(born, key_len) : 0,
		 less = died ? snapshot_bytes(died, key_len) : 0;

	if (key_is_object(key[0]) && change)
		atomic_fetch_add_explicit(&vol->stats.objects, change, memory_order_relaxed);
	pack_count(vol, key, born, died);
	ld->rec_bytes += more - less;
	ld->large_bytes += large(more) - large(less);
}

/* ---- space for snapshots ---- */

/*
 * Returns the number of units that the snapshots of such an index need at most: two that are kept, and one
 * that is being written. A record that does not fit into the rest of a block leaves this rest empty: for
 * small records at most an eighth, in blocks of a single unit; for a large record at most its own size. Each
 * snapshot names the blocks of the previous one, with 8 bytes for each unit.
 */
static uint64_t
units_for(const struct vol *vol, uint64_t rec_bytes, uint64_t large_bytes)
{
	return 3 * ((rec_bytes + rec_bytes / 8 + rec_bytes / 1024 + large_bytes) / vol->disk.geo.unit_bytes +
		    1) +
	       8;
}

#define SPARE_MIN 24u /* units by which a few records of any size enlarge the snapshots */

static uint64_t
spare_most(const struct vol *vol)
{
	return 8 * (uint64_t)vol->disk.geo.block_bytes / vol->disk.geo.unit_bytes;
}

/* Reserves `want` units, and as many spare units for growth as possible, so that a record whose data has
 * found space finds space as well. */
static void
hold(struct vol *vol, uint64_t want)
{
	struct leader *ld = &vol->leader;
	uint64_t spare = spare_most(vol);

	while (spare && !alloc_hold_back(vol->disk.alloc, want + spare, false))
		spare /= 2;
	ld->held_units = want + spare;
	/* Units that are missing now are reserved as well, so that data cannot use them. */
	ld->is_held = spare || alloc_hold_back(vol->disk.alloc, want, true);
	/* Segments are prepared ahead of this need as well. */
	if (atomic_load(&vol->disk.segs_coming))
		helper_ring(&vol->helper);
}

static void
note_spare(struct vol *vol, uint64_t want)
{
	struct leader *ld = &vol->leader;

	/* A byte of a record needs at most seven: three snapshots, each with an eighth more, and with the
	 * size once more if the record is large. */
	ld->grow_bytes = ld->is_held && ld->held_units > want
				 ? (ld->held_units - want) * vol->disk.geo.unit_bytes / 7
				 : 0;
}

void
rec_hold_back(struct vol *vol)
{
	struct leader *ld = &vol->leader;
	uint64_t want = units_for(vol, ld->rec_bytes, ld->large_bytes);
	uint64_t freed = atomic_load_explicit(&vol->disk.freed_nr, memory_order_relaxed);

	if (want > ld->held_units || want + 3 * spare_most(vol) < ld->held_units ||
	    (want + SPARE_MIN > ld->held_units && freed != ld->held_freed)) {
		ld->held_freed = freed;
		hold(vol, want);
	}
	note_spare(vol, want);
}

/* Returns the bytes that the records of a commit add to a snapshot, compared with the records that they
 * replace in the index. A key with a record in the block counts in full. */
static uint64_t
growth(const struct vol *vol, const struct commit *c)
{
	uint64_t more = 0, less = 0;

	for (; c; c = c->also) {
		const uint8_t *key = c->view.key;
		size_t len = c->view.key_len;
		const struct rec *r =
			block_find(vol, key, len, key_hash(key, len)) ? NULL : tree_find(vol->tree, key, len);

		more += c->view.op == REC_PUT ? rec_encoded_bytes(&c->view) : 0;
		less += r ? snapshot_bytes(r, c->view.key_len) : 0;
	}
	return more > less ? more - less : 0;
}

bool
rec_may_grow(struct vol *vol, const struct commit *c, size_t bytes)
{
	struct leader *ld = &vol->leader;
	uint64_t more = vol->block.used + bytes, want;

	if (more <= ld->grow_bytes || !RULE_GROW_WITH_ROOM || growth(vol, c) == 0)
		return true;
	want = units_for(vol, ld->rec_bytes + more, ld->large_bytes + more);
	if (ld->is_held && want <= ld->held_units)
		return true;
	if (!alloc_hold_back(vol->disk.alloc, want, false))
		return false;
	ld->held_units = want;
	ld->is_held = true;
	note_spare(vol, units_for(vol, ld->rec_bytes, ld->large_bytes));
	return true;
}

#define DEAD_PER_BLOCK 256

/* A part of the pool, which grows to the largest number of dead records at one time. */
struct dead_block {
	struct dead_block *next;
	struct dead dead[DEAD_PER_BLOCK];
};

struct dead *
dead_get(struct vol *vol)
{
	struct leader *ld = &vol->leader;
	struct dead *dead = ld->dead_free;

	if (!dead) {
		struct dead_block *b = malloc(sizeof *b);

		if (!b)
			return NULL;
		b->next = ld->dead_blocks;
		ld->dead_blocks = b;
		for (int i = 0; i < DEAD_PER_BLOCK; i++)
			dead_put(vol, &b->dead[i]);
		dead = ld->dead_free;
	}
	ld->dead_free = dead->next;
	return dead;
}

void
dead_put(struct vol *vol, struct dead *dead)
{
	struct leader *ld = &vol->leader;

	dead->next = ld->dead_free;
	ld->dead_free = dead;
}

/* ---- memory for publishing ---- */

void
commit_put_back(struct vol *vol, struct commit *c)
{
	rec_drop(vol->tree, c->rec);
	c->rec = NULL;
	if (c->dead)
		dead_put(vol, c->dead);
	c->dead = NULL;
	tree_unreserve(vol->tree);
}

/* Memory without readers was freed at the beginning of the leader's step (publish_reclaim()). */
int
commit_set_aside(struct vol *vol, struct commit *c, bool replaces)
{
	bool is_put = c->view.op == REC_PUT;

	/* The tree keeps memory in reserve for deletes. */
	if (tree_reserve(vol->tree, commit_is_no_growth(c)) < 0)
		return -ENOSPC;
	if (is_put)
		c->rec = rec_new(vol->tree, &c->view, c->view.entries);
	if (replaces)
		c->dead = dead_get(vol);
	if ((!is_put || c->rec) && (!replaces || c->dead))
		return 0;
	commit_put_back(vol, c);
	return -ENOSPC;
}

/* ---- the end of dead records ---- */

/* Frees the memory of a dead record when no reader and no snapshot can see the record any longer. */
static void
retire(struct vol *vol, struct rec *r)
{
	/* Only one snapshot is being written at a time; a record that is newer need not wait for it. */
	uint64_t birth = atomic_load(&vol->snap.state) != SNAP_IDLE && r->version > vol->snap.ref.version_max
				 ? vol->snap.gen + 1
				 : 0;

	rec_drop_outside(r);
	tree_rec_retire(vol->tree, r, birth);
}

void
dead_end(struct vol *vol, struct dead *dead)
{
	struct rec *r = dead->rec;
	struct map_ref map;

	if (!dead->is_shared && r->body == BODY_EXTENTS && rec_entries(r))
		disk_extents_free(&vol->disk, rec_entries(r), r->entry_nr);
	if (!dead->is_shared && r->body == BODY_PACKED)
		pack_gone(vol, *(const uint64_t *)rec_entries(r), r->size_bytes);
	if (!dead->is_shared && rec_map(r, &map))
		disk_extents_free(&vol->disk, map.ext, map.nr);
	retire(vol, r);
	dead_put(vol, dead);
}

void
dead_fini(struct vol *vol)
{
	struct leader *ld = &vol->leader;

	while (ld->dead_blocks) {
		struct dead_block *b = ld->dead_blocks;

		ld->dead_blocks = b->next;
		free(b);
	}
}
