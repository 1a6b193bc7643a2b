/* SPDX-License-Identifier: Apache-2.0 */
/* Records that died, and what the index holds; see dead.h. */
#include "extent/log/vol.h"

#include <stdlib.h>

/* What a record takes in a snapshot, about. */
static uint64_t
snapshot_bytes(const struct rec *r, size_t key_len)
{
	return REC_HEAD_BYTES + key_len + r->owner_len + r->inline_len + r->attrs_len +
	       (r->flags & REC_MAPPED ? 24 : r->entry_nr * rec_entry_bytes(r->body));
}

void
rec_count(struct vol *vol, const uint8_t *key, size_t key_len, const struct rec *born, const struct rec *died)
{
	struct leader *ld = &vol->leader;
	uint64_t change = (uint64_t)(born != NULL) - (uint64_t)(died != NULL);

	if (key[0] == KEY_OBJECT && change)
		atomic_fetch_add_explicit(&vol->stats.objects, change, memory_order_relaxed);
	ld->rec_nr += change;
	if (born)
		ld->rec_bytes += snapshot_bytes(born, key_len);
	if (died)
		ld->rec_bytes -= snapshot_bytes(died, key_len);
}

void
rec_hold_back(struct vol *vol)
{
	struct leader *ld = &vol->leader;
	/* What no block is filled with is less than a record: little for small ones, up to half for large
	 * ones in blocks of a single unit. */
	uint64_t nr = ld->rec_nr + 1, spare = ld->rec_bytes / nr > 1024 ? ld->rec_bytes : ld->rec_bytes / 4;
	uint64_t units = (ld->rec_bytes + spare) / vol->disk.geo.unit_bytes + 8;

	if (units > ld->held_units || units + 64 < ld->held_units) {
		ld->held_units = units + 16;
		alloc_hold_back(vol->disk.alloc, ld->held_units);
	}
}

#define DEAD_PER_BLOCK 256

/* The pool grows in blocks, to the most that were ever on their way at once. */
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

void
rec_retire(struct vol *vol, struct rec *r)
{
	/* Only one snapshot walks at a time; what is younger than it need not wait for it. */
	uint64_t birth = atomic_load(&vol->snap.state) != SNAP_IDLE && r->version > vol->snap.ref.version_max
				 ? vol->snap.gen + 1
				 : 0;

	rec_drop_outside(r);
	tree_rec_retire(vol->tree, r, birth);
}
