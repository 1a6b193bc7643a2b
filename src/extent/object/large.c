/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of more than a chunk: each chunk is committed as a record of its own while the next one fills; when
 * all of them are in the log, the manifest is (docs/disk-format.md section 2).  On the port's thread.
 */
#include "extent/object/put_int.h"

#include "extent/disk/rules.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define NEW_ID ((uint64_t)1 << 63)
#define ID_COUNTER_BITS 56

void
extent_new_id(struct vol *vol, uint8_t id[CHUNK_ID_BYTES])
{
	/* Ids of format versions 1 and 2 have the number of an epoch instead, and no bit in front. */
	uint64_t hi = htobe64(NEW_ID | (RULE_VERSION_HAS_START ? vol->start_no : 1));
	/* Of the disks of a set no two have one number in a start, so that keys with such ids can lie together. */
	uint64_t lo =
		htobe64((uint64_t)vol->counter << ID_COUNTER_BITS | atomic_fetch_add(&vol->id_counter, 1));

	memcpy(id, &hi, 8);
	memcpy(id + 8, &lo, 8);
}

static struct chunk_ref *
refs(struct put_int *pi)
{
	return (struct chunk_ref *)(void *)pi->list->ext;
}

static void
unlink_chunk(struct put_int *pi, struct chunk_writer *w)
{
	for (struct chunk_writer **link = &pi->chunks; *link; link = &(*link)->next) {
		if (*link == w) {
			*link = w->next;
			return;
		}
	}
}

static void submit_manifest(struct put_int *pi);

static void
on_chunk(struct commit *c)
{
	struct chunk_writer *w = container_of(c, struct chunk_writer, c);
	struct put_int *pi = w->put;
	struct vol *vol = w->vol;
	int result = c->result;

	if (!pi) {
		/* The PUT was aborted meanwhile: nobody will ever name this chunk. */
		if (result == 0)
			gc_orphans(vol, KEY_CHUNK, w->key + 1, w->index, w->index + 1);
	} else {
		unlink_chunk(pi, w);
		pi->chunks_inflight--;
		if (result < 0 && !pi->error)
			pi->error = result;
	}
	writer_put(w, result < 0 && result != -ECANCELED);
	if (!pi)
		atomic_fetch_sub(&vol->dead_nr, 1);
	if (RULE_MANIFEST_AFTER_CHUNKS && pi && pi->is_committing && pi->handed_over &&
	    pi->chunks_inflight == 0)
		submit_manifest(pi);
}

/* Closes pi->cw and hands it over as the next chunk. */
static void
chunk_done(struct put_int *pi)
{
	struct chunk_writer *w = pi->cw;
	struct commit *c = &w->c;
	/* Pieces of it may still wait for space: where it lies is known when they are written. */
	bool later = w->io_left > 0;
	int e = later ? 0 : writer_close(w);

	later |= e == 1;
	pi->cw = NULL;
	w->next = pi->chunks;
	pi->chunks = w;
	if (e < 0) {
		pi->error = pi->error ? pi->error : e;
		return;
	}
	w->index = pi->chunk_nr;
	key_chunk(w->key, pi->id, w->index);
	memcpy(w->owner, pi->key, pi->key_len);
	*c = (struct commit){ .finished = on_chunk, .kind = COMMIT_CHUNK };
	c->view.key = w->key;
	c->view.key_len = CHUNK_KEY_BYTES;
	c->view.owner = w->owner;
	c->view.owner_len = pi->key_len;
	c->view.mtime_ns = clock_wall_ns();
	if (later)
		writer_hand_over_later(w, c);
	else
		writer_view(w, &c->view);
	memset(&refs(pi)[pi->chunk_nr], 0, sizeof(struct chunk_ref));
	memcpy(refs(pi)[pi->chunk_nr].id, pi->id, CHUNK_ID_BYTES);
	refs(pi)[pi->chunk_nr].index = w->index;
	refs(pi)[pi->chunk_nr].len_bytes = w->size_bytes;
	refs(pi)[pi->chunk_nr].crc64 = w->crc64;
	pi->chunk_nr++;
	pi->chunks_inflight++;
	if (!later)
		writer_hand_over(w, c);
}

void
large_begin(struct put_int *pi)
{
	if (pi->list)
		return;
	pi->list = writer_get(pi->port, pi);
	check(pi->list);
	extent_new_id(pi->vol, pi->id);
}

void
large_chunk_full(struct put_int *pi)
{
	large_begin(pi);
	chunk_done(pi);
}

/* ---- the manifest ---- */

static void
submit_manifest(struct put_int *pi)
{
	struct rec_view *v = &pi->c.view;
	int e = pi->error;

	/* More chunks than a record names. */
	if (e == 0 && pi->chunk_nr > FMT_ENTRY_MAX)
		e = writer_map_list(pi->list, pi->chunk_nr * (uint32_t)sizeof(struct chunk_ref));
	if (e < 0) {
		put_done(pi, e);
		return;
	}
	v->body = BODY_MANIFEST;
	v->flags |= REC_FLUSHED;
	v->size_bytes = pi->put->size_bytes;
	v->crc64 = pi->put->crc64;
	v->entry_nr = pi->chunk_nr;
	v->entries = refs(pi);
	writer_hand_over(pi->list, &pi->c);
}

int
large_hand_over(struct put_int *pi)
{
	if (pi->cw)
		chunk_done(pi);
	/* Nothing is in flight when an error is all there is. */
	if (pi->chunks_inflight == 0 || !RULE_MANIFEST_AFTER_CHUNKS)
		submit_manifest(pi);
	return 0;
}

void
large_done(struct put_int *pi, int result)
{
	struct chunk_writer *w = pi->chunks;

	while (w) {
		struct chunk_writer *next = w->next;

		/* What was handed over ends by itself, and its space comes back; what was not has no write in
		 * flight any more. */
		w->put = NULL;
		if (w->commit)
			atomic_fetch_add(&pi->vol->dead_nr, 1);
		else
			writer_put(w, true);
		w = next;
	}
	pi->chunks = NULL;
	if (!pi->list)
		return;
	if (result < 0 && result != -ECANCELED)
		gc_orphans(pi->vol, KEY_CHUNK, pi->id, 0, pi->chunk_nr);
	writer_put(pi->list, result < 0 && result != -ECANCELED);
	pi->list = NULL;
}
