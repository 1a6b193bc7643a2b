/*
 * After the flush: the index, what died, and when its space may be used again (store.md section 4, "Reuse").
 *
 *   record replaced --> dying: stamped? everybody quiescent? --> pinned? --no--> over: space, memory back
 *                                                                  |              ^
 *                                                                 yes             |
 *                                                                  v              |
 *                                      last unpin (any thread) --> d->unpinned ---'
 *
 * Everything here runs as leader, but for on_unpinned().
 */
#include "extent/extent_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* What a record takes in a snapshot, about. */
static uint64_t
snapshot_bytes(const struct rec *r, size_t key_len)
{
	return REC_HEAD_BYTES + key_len + r->owner_len + r->inline_len + r->attrs_len +
	       (r->flags & REC_MAPPED ? 24 : r->entry_nr * rec_entry_bytes(r->body));
}

void
publish_count(struct disk *d, const uint8_t *key, size_t key_len, const struct rec *born,
	      const struct rec *died)
{
	uint64_t change = (uint64_t)(born != NULL) - (uint64_t)(died != NULL);

	if (key[0] == KEY_OBJECT && change)
		atomic_fetch_add_explicit(&d->stats.objects, change, memory_order_relaxed);
	d->rec_nr += change;
	if (born)
		d->rec_bytes += snapshot_bytes(born, key_len);
	if (died)
		d->rec_bytes -= snapshot_bytes(died, key_len);
}

void
hold_back_update(struct disk *d)
{
	/* What no block is filled with is less than a record: little for small ones, up to half for large
	 * ones in blocks of a single unit. */
	uint64_t nr = d->rec_nr + 1, spare = d->rec_bytes / nr > 1024 ? d->rec_bytes : d->rec_bytes / 4;
	uint64_t units = (d->rec_bytes + spare) / d->geo.unit_bytes + 8;

	if (units > d->held_units || units + 64 < d->held_units) {
		d->held_units = units + 16;
		alloc_hold_back(d->alloc, d->held_units);
	}
}

#define DEAD_PER_BLOCK 256

/* The pool grows in blocks, to the most that were ever on their way at once. */
struct dead_block {
	struct dead_block *next;
	struct dead dead[DEAD_PER_BLOCK];
};

struct dead *
dead_get(struct disk *d)
{
	struct dead *dead = d->dead_free;

	if (!dead) {
		struct dead_block *b = malloc(sizeof *b);

		if (!b)
			return NULL;
		b->next = d->dead_blocks;
		d->dead_blocks = b;
		for (int i = 0; i < DEAD_PER_BLOCK; i++)
			dead_put(d, &b->dead[i]);
		dead = d->dead_free;
	}
	d->dead_free = dead->next;
	return dead;
}

void
dead_put(struct disk *d, struct dead *dead)
{
	dead->next = d->dead_free;
	d->dead_free = dead;
}

void
dead_fini(struct disk *d)
{
	while (d->dead_blocks) {
		struct dead_block *b = d->dead_blocks;

		d->dead_blocks = b->next;
		free(b);
	}
}

static void
kill(struct disk *d, struct dead *dead, struct rec *r, bool is_shared)
{
	*dead = (struct dead){ .disk = d, .rec = r, .seq = d->head.seq, .is_shared = is_shared };
	*d->dying_end = dead;
	d->dying_end = &dead->next;
	atomic_fetch_add(&d->dead_nr, 1);
	if (!RULE_CHUNKS_AFTER_MANIFEST && r->body == BODY_MANIFEST && !dead->is_shared)
		gc_orphans(d, KEY_CHUNK, ((const struct chunk_ref *)rec_entries(r))->id, 0, r->entry_nr);
}

/* Something ended that others live on: an upload, a bucket. */
static void
begin_job(struct disk *d, struct commit *c)
{
	struct gc_job *job = c->job;

	c->job = NULL;
	/* Without memory what is left waits for the next start. */
	if (!job && c->view.op == REC_DELETE && c->view.key[0] == KEY_UPLOAD)
		job = gc_upload_job(c->view.key + c->view.key_len - CHUNK_ID_BYTES, NULL, 0);
	if (!job)
		return;
	if (job->kind == GC_BUCKET)
		job->bucket->before = c->view.version;
	gc_add(d, job);
}

static void
publish_one(struct disk *d, struct commit *c)
{
	struct rec *old;

	if (c->view.op == REC_PUT)
		old = tree_put(d->tree, c->view.key, c->view.key_len, c->rec);
	else
		old = tree_del(d->tree, c->view.key, c->view.key_len);
	publish_count(d, c->view.key, c->view.key_len, c->rec, old);
	/* Only with RULE_JUDGE_PENDING off something may have been there that was not seen. */
	if (old && !c->dead)
		c->dead = dead_get(d);
	if (old && c->dead)
		kill(d, c->dead, old, c->kind == COMMIT_ATTRS && old->body != BODY_INLINE);
	else if (c->dead)
		dead_put(d, c->dead);
	/* With the rule off: as a scrub that takes every chunk without a manifest for ownerless. */
	if (!RULE_COLLECT_ONLY_ENDED && c->kind == COMMIT_CHUNK && c->view.op == REC_PUT)
		gc_orphans(d, KEY_CHUNK, c->view.key + 1, key_index(c->view.key), key_index(c->view.key) + 1);
	begin_job(d, c);
	c->rec = NULL;
	c->dead = NULL;
}

/* Where the next block goes: never across the end of the ring. */
void
log_advance(struct log_pos *pos, const struct geometry *geo, const struct block_head *h)
{
	pos->seq = h->seq + 1;
	pos->prev_crc = h->crc64;
	pos->pos = h->pos + h->len_bytes;
	pos->lap = h->lap;
	if (geo->log_bytes - pos->pos < geo->block_bytes) {
		pos->pos = 0;
		pos->lap++;
	}
	if (h->kind == BLOCK_EPOCH) {
		pos->epoch = h->new_epoch;
		memcpy(pos->nonce, h->new_nonce, 16);
	}
}

void
publish_block(struct disk *d)
{
	struct dead **first = d->dying_end;
	uint64_t token;

	for (struct commit *c = d->batch; c; c = c->next)
		publish_one(d, c);
	if (d->batch)
		tree_publish(d->tree);
	token = quiesce_now(d->st->quiesce);
	for (struct dead *dead = *first; dead; dead = dead->next)
		dead->token = token;
	d->flushed_seq = d->head.seq;
	d->stamped = d->head.flushed_upto;
	if (d->head.record_nr)
		d->last_records_seq = d->head.seq;
	d->led_ns = clock_ns();
	log_advance(&d->next, &d->geo, &d->head);
	atomic_store_explicit(&d->log_used,
			      log_linear(d, d->next.lap, d->next.pos) - atomic_load(&d->trim_at),
			      memory_order_relaxed);
	atomic_fetch_add_explicit(&d->stats.commits, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&d->stats.records, d->head.record_nr, memory_order_relaxed);
	hold_back_update(d);
	/* New segments are made ahead of what is written. */
	if (atomic_load_explicit(&d->stats.written_bytes, memory_order_relaxed) - d->helper_mark >
	    d->geo.seg_bytes / 8) {
		d->helper_mark = atomic_load_explicit(&d->stats.written_bytes, memory_order_relaxed);
		helper_ring(d);
	}
}

/* ---- space ---- */

void
extents_free(struct disk *d, const uint64_t *ext, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		alloc_free(d->alloc, &(struct extent){ .unit = ext_unit(ext[i]), .units = ext_nr(ext[i]) });
	if (nr)
		atomic_fetch_add(&d->freed_nr, 1);
}

void
rec_retire(struct disk *d, struct rec *r)
{
	/* Only one snapshot walks at a time; what is younger than it need not wait for it. */
	uint64_t birth = atomic_load(&d->snap_state) != SNAP_IDLE && r->version > d->snap_new.version_max
				 ? d->snap_gen + 1
				 : 0;

	rec_drop_outside(r);
	tree_rec_retire(d->tree, r, birth);
}

/* Nobody can want it any more. */
static void
dead_over(struct disk *d, struct dead *dead)
{
	struct rec *r = dead->rec;
	struct map_ref map;

	if (!dead->is_shared && (r->body == BODY_MANIFEST || r->body == BODY_PARTS)) {
		/* Its chunks are records of their own: they are deleted like any other, and die in their
		 * turn. */
		dead->gc = (struct gc_job){
			.kind = GC_DEAD,
			.type = r->body == BODY_PARTS ? KEY_PART : KEY_CHUNK,
			.dead = dead,
			.nr = r->entry_nr,
		};
		gc_add(d, &dead->gc);
	} else {
		if (!dead->is_shared && r->body == BODY_EXTENTS && rec_entries(r))
			extents_free(d, rec_entries(r), r->entry_nr);
		if (!dead->is_shared && rec_map(r, &map))
			extents_free(d, &map.ext, 1);
		rec_retire(d, r);
		dead_put(d, dead);
	}
	atomic_fetch_sub(&d->dead_nr, 1);
}

static void
on_unpinned(struct pin_wait *w)
{
	struct dead *dead = container_of(w, struct dead, wait);
	struct disk *d = dead->disk;

	dead->next = atomic_load(&d->unpinned);
	while (!atomic_compare_exchange_weak(&d->unpinned, &dead->next, dead))
		;
	atomic_store(&d->want_lead, true);
}

static bool
is_ready(const struct disk *d, const struct dead *dead)
{
	if (RULE_REUSE_STAMPED && dead->seq > d->stamped)
		return false;
	return !RULE_REUSE_QUIESCENT || quiesce_passed(d->st->quiesce, dead->token);
}

void
publish_reclaim(struct disk *d)
{
	struct dead *dead = atomic_exchange(&d->unpinned, NULL);

	while (dead) {
		struct dead *next = dead->next;

		dead_over(d, dead);
		dead = next;
	}
	while ((dead = d->dying) != NULL && is_ready(d, dead)) {
		d->dying = dead->next;
		if (!d->dying)
			d->dying_end = &d->dying;
		if (!RULE_REUSE_UNPINNED ||
		    pin_wait_free(d->pins, &dead->wait,
				  RULE_PIN_BYTES ? rec_data_version(dead->rec) : dead->rec->version,
				  on_unpinned))
			dead_over(d, dead);
	}
	dead = d->dying;
	atomic_store(&d->reclaim_token, dead && dead->seq <= d->stamped ? dead->token : 0);
	tree_reclaim(d->tree);
}
