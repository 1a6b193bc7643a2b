/* SPDX-License-Identifier: Apache-2.0 */
/* Records that an engine loses, as --fsck --repair drops what it cannot keep.  Included behind the rig. */
#ifndef GANTRY_TESTS_STORE_DROP_H
#define GANTRY_TESTS_STORE_DROP_H

#include "extent/engine.h"

#include "harness.h"

struct dropped {
	struct commit c;
	bool is_over;
};

static inline void
on_dropped(struct commit *c)
{
	container_of(c, struct dropped, c)->is_over = true;
}

/* lp->p is the set's port, or the engine's. */
static inline void
drop_record(struct loop *lp, struct store_port *engine, const uint8_t key[CHUNK_KEY_BYTES])
{
	struct dropped d = { .c = { .kind = COMMIT_DELETE,
				    .finished = on_dropped,
				    .state = CS_DATA_DONE,
				    .view = { .op = REC_DELETE, .key = key, .key_len = CHUNK_KEY_BYTES } } };

	commit_submit(&extent_port(engine)->vp, &d.c);
	wait_until(d.is_over)
		loop_turn(lp);
	assert_int_equal(d.c.result, 1);
}

static inline const struct rec *
part_of_upload(struct store_port *engine, const uint8_t *id, uint32_t number, uint8_t key[CHUNK_KEY_BYTES])
{
	key_part(key, id, number);
	return tree_get(extent_port(engine)->st->vol->tree, key, CHUNK_KEY_BYTES);
}

static inline void
drop_part(struct loop *lp, struct store_port *engine, const uint8_t *id, uint32_t number)
{
	uint8_t key[CHUNK_KEY_BYTES];

	assert_non_null(part_of_upload(engine, id, number, key));
	drop_record(lp, engine, key);
}

/* The i-th that a record names. */
static inline void
chunk_of(const struct rec *r, uint32_t i, uint8_t key[CHUNK_KEY_BYTES])
{
	const struct chunk_ref *ref = rec_entries(r);

	assert_true(r->body == BODY_MANIFEST && i < r->entry_nr);
	key_chunk(key, ref[i].id, ref[i].index);
}

static inline void
drop_chunk_of_part(struct loop *lp, struct store_port *engine, const uint8_t *id, uint32_t number)
{
	uint8_t key[CHUNK_KEY_BYTES];
	const struct rec *r = part_of_upload(engine, id, number, key);

	assert_non_null(r);
	chunk_of(r, 0, key);
	drop_record(lp, engine, key);
}

static inline void
drop_chunk_of_object(struct loop *lp, struct store_port *engine, const char *bucket, const char *name,
		     uint32_t i)
{
	struct store_key k = key_of(bucket, name);
	uint8_t key[KEY_BYTES_MAX];
	const struct rec *r = tree_get(extent_port(engine)->st->vol->tree, key, (size_t)key_object(key, &k));

	assert_non_null(r);
	chunk_of(r, i, key);
	drop_record(lp, engine, key);
}

#endif
