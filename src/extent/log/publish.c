/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader's work after the flush: the index, dead records, and the reuse of their space
 * (docs/engine.md section 2, "Reuse").
 *
 *     record replaced --> dying: stamped? threads quiescent? --> pinned? --no--> space and memory are freed
 *            |                                                    ^  |
 *         pinned, and a limit exists: its bytes are               |  | yes
 *         in progress until the last unpin, before or             |  v
 *         after the end of dying --> both have ended -------------'  last unpin (any thread) --> checked again
 *
 * All functions run on the leader, except on_unpinned() and on_read_over().
 */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"
#include "extent/log/publish.h"
#include "base/clock.h"
#include "base/list.h"

#include <stdlib.h>
#include <string.h>

static void
kill(struct vol *vol, struct dead *dead, const struct commit *c, struct rec *r)
{
	bool is_shared = c->kind == COMMIT_ATTRS && r->body != BODY_INLINE;

	*dead = (struct dead){ .vol = vol,
			       .rec = r,
			       .seq = vol->block.head.seq,
			       .pin_id = RULE_PIN_BYTES ? rec_pin_id(r) : r->version,
			       .row = is_shared ? NULL
						: usage_row_of_dead(vol, c->view.key, c->view.key_len, r),
			       .left = 1,
			       .is_shared = is_shared };
	*vol->leader.dying_end = dead;
	vol->leader.dying_end = &dead->next;
	atomic_fetch_add(&vol->dead_nr, 1);
	if (!RULE_CHUNKS_AFTER_MANIFEST && r->body == BODY_MANIFEST && !dead->is_shared)
		gc_orphans(vol, KEY_CHUNK, ((const struct chunk_ref *)rec_entries(r))->id, 0, r->entry_nr);
}

/* Begins the job that removes the records of an ended upload or bucket. */
static void
begin_job(struct vol *vol, struct commit *c)
{
	struct gc_job *job = c->job;

	c->job = NULL;
	/* Without memory the records remain until the next start. */
	if (!job && c->view.op == REC_DELETE && key_is_upload(c->view.key[0]))
		job = gc_upload_job(c->view.key + c->view.key_len - CHUNK_ID_BYTES, NULL, 0);
	if (!job)
		return;
	if (job->bucket)
		job->bucket->before = c->view.version;
	gc_add(vol, job);
}

static void
publish_one(struct vol *vol, struct commit *c)
{
	struct rec *old;

	if (c->view.op == REC_PUT)
		old = tree_put(vol->tree, c->view.key, c->view.key_len, c->rec);
	else
		old = tree_del(vol->tree, c->view.key, c->view.key_len);
	rec_count(vol, c->view.key, c->view.key_len, c->rec, old);
	usage_published(vol, c, old);
	/* With RULE_JUDGE_PENDING off the leader may not have known that the record exists. */
	if (old && !c->dead)
		c->dead = dead_get(vol);
	if (old && c->dead) {
		kill(vol, c->dead, c, old);
		if (c->sent && c->sent->pin_id)
			c->dead->pin_id = c->sent->pin_id;
	} else if (c->dead) {
		dead_put(vol, c->dead);
	}
	/* With the rule off: like a scrub that collects every chunk without a manifest. */
	if (!RULE_COLLECT_ONLY_ENDED && c->kind == COMMIT_CHUNK && c->view.op == REC_PUT)
		gc_orphans(vol, KEY_CHUNK, c->view.key + 1, key_index(c->view.key),
			   key_index(c->view.key) + 1);
	begin_job(vol, c);
	c->rec = NULL;
	c->dead = NULL;
}

static void
push_unpinned(struct dead *dead)
{
	struct vol *vol = dead->vol;

	dead->next = atomic_load(&vol->unpinned);
	while (!atomic_compare_exchange_weak(&vol->unpinned, &dead->next, dead))
		;
	atomic_store(&vol->want_lead, true);
}

/* Ends the count of a dead record's bytes, because its last reader has ended. */
static void
on_read_over(struct pin_wait *w)
{
	struct dead *dead = container_of(w, struct dead, wait);

	usage_keep_end(dead);
	if (atomic_fetch_sub(&dead->left, 1) == 1)
		push_unpinned(dead);
}

/* Counts the bytes of dead records that have readers, as bytes in progress. The caller holds the lock of the quota ledger, for which
 * on_read_over() waits, and has published the index: a reader that pins a record later was between look-up and pin. */
static void
keep_read(struct vol *vol, struct dead *dead)
{
	for (; dead; dead = dead->next) {
		if (!dead->row || !RULE_REUSE_UNPINNED)
			continue;
		atomic_store(&dead->left, 2);
		if (pin_wait_free(vol->pins, &dead->wait, dead->pin_id, on_read_over))
			atomic_store(&dead->left, 1);
		else
			usage_keep(vol, dead);
	}
}

void
publish_block(struct vol *vol)
{
	struct leader *ld = &vol->leader;
	struct dead **first = ld->dying_end;
	uint64_t epoch;

	usage_publish_begin(vol);
	for (struct commit *c = vol->block.batch; c; c = c->next)
		publish_one(vol, c);
	if (vol->block.batch)
		tree_publish(vol->tree);
	keep_read(vol, *first);
	usage_publish_end(vol);
	if (vol->slots)
		slots_published(vol);
	epoch = quiesce_now(vol->quiesce);
	for (struct dead *dead = *first; dead; dead = dead->next)
		dead->epoch = epoch;
	ld->flushed_seq = vol->block.head.seq;
	ld->stamped = vol->block.head.flushed_upto;
	atomic_store_explicit(&vol->disk.log_seq, vol->block.head.seq, memory_order_release);
	if (vol->block.head.record_nr)
		ld->last_records_seq = vol->block.head.seq;
	ld->led_ns = clock_ns();
	block_advance(&ld->next, &vol->disk.geo, &vol->block.head);
	atomic_store_explicit(&vol->log_head, vol_head(vol), memory_order_release);
	atomic_store_explicit(&vol->log_used, vol_head(vol) - atomic_load(&vol->snap.trim_at),
			      memory_order_relaxed);
	atomic_fetch_add_explicit(&vol->stats.commits, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&vol->stats.records, vol->block.head.record_nr, memory_order_relaxed);
	rec_hold_back(vol);
	/* New segments are prepared ahead of the writes. */
	if (atomic_load_explicit(&vol->disk.stats.written_bytes, memory_order_relaxed) - ld->helper_mark >
	    vol->disk.geo.seg_bytes / 8) {
		ld->helper_mark = atomic_load_explicit(&vol->disk.stats.written_bytes, memory_order_relaxed);
		helper_ring(&vol->helper);
	}
}

/* ---- space ---- */

/* Frees a dead record, which no thread can use any longer. */
static void
dead_done(struct vol *vol, struct dead *dead)
{
	struct rec *r = dead->rec;

	if (!dead->is_shared && (r->body == BODY_MANIFEST || r->body == BODY_PARTS)) {
		/* Its chunks or parts are records of their own: they are deleted like any other, and
		 * become dead in turn. */
		dead->gc = (struct gc_job){
			.type = r->body == BODY_PARTS ? KEY_PART : KEY_CHUNK,
			.dead = dead,
			.nr = r->entry_nr,
		};
		gc_add(vol, &dead->gc);
	} else {
		dead_end(vol, dead);
	}
	atomic_fetch_sub(&vol->dead_nr, 1);
}

static void
on_unpinned(struct pin_wait *w)
{
	push_unpinned(container_of(w, struct dead, wait));
}

/* Frees a dead record, or waits for its last pin. No reader is between look-up and pin any longer. */
static void
done_if_unpinned(struct vol *vol, struct dead *dead)
{
	if (!RULE_REUSE_UNPINNED || pin_wait_free(vol->pins, &dead->wait, dead->pin_id, on_unpinned))
		dead_done(vol, dead);
}

static bool
is_ready(const struct vol *vol, const struct dead *dead)
{
	if (RULE_REUSE_STAMPED && dead->seq > vol->leader.stamped)
		return false;
	return !RULE_REUSE_QUIESCENT || quiesce_passed(vol->quiesce, dead->epoch);
}

void
publish_reclaim(struct vol *vol)
{
	struct leader *ld = &vol->leader;
	struct dead *dead = atomic_exchange(&vol->unpinned, NULL);

	while (dead) {
		struct dead *next = dead->next;

		done_if_unpinned(vol, dead);
		dead = next;
	}
	while ((dead = ld->dying) != NULL && is_ready(vol, dead)) {
		ld->dying = dead->next;
		if (!ld->dying)
			ld->dying_end = &ld->dying;
		if (atomic_fetch_sub(&dead->left, 1) == 1)
			done_if_unpinned(vol, dead);
	}
	dead = ld->dying;
	atomic_store(&vol->reclaim_epoch, dead && dead->seq <= ld->stamped ? dead->epoch : 0);
	tree_reclaim(vol->tree);
}
