/*
 * Leader commit (store.md section 4): one log block in flight per disk, one flush for it and all its data.
 *
 *   commit_submit() --> pending list --> whoever finds no leader leads:
 *
 *   +-> lead: gather, judge --> block written --> flush --> publish, answer --+
 *   |     |                     (data writes may still be in flight)          |
 *   |     | nothing to do                                                     |
 *   |     v                                                                   |
 *   |   leave: arm the stamp timer, free the leadership, look once more       |
 *   +-------------------------------------------------------------------------+
 *
 * Each arrow may change the thread: who takes the last completion goes on.  The leader that leaves is awake,
 * so if records wait it takes the leadership again itself when it can (ringing another core costs 40 us); a
 * port that is detaching rings another.
 */
#include "extent/extent_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mailbox.h"

#include <errno.h>
#include <string.h>

static void lead(struct disk *d, struct extent_port *p);

uint32_t
key_hash(const uint8_t *key, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u ^ len;

	for (; len >= 8; key += 8, len -= 8) {
		uint64_t v;

		memcpy(&v, key, 8);
		h = (h ^ v) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; len; key++, len--)
		h = (h ^ *key) * 0x100000001b3u;
	return (uint32_t)(h ^ h >> 32);
}

/* ---- answers ---- */

static void
on_answer(struct msg *m)
{
	struct commit *c = container_of(m, struct commit, msg);

	c->port->inflight--;
	c->finished(c);
}

void
commit_answer(struct commit *c, int result)
{
	if (c->is_gc) {
		gc_commit_over(c->disk, c);
		return;
	}
	if (c->is_also)
		return; /* the one it goes with is answered, and comes behind it */
	c->result = result;
	/* Not before its data writes are over: until then the caller's buffer belongs to the kernel. */
	if (atomic_fetch_or(&c->state, CS_ANSWERED) & CS_DATA_OVER)
		mailbox_post(c->port->mb, &c->msg, on_answer);
}

static void
answer_list(struct commit *c, int result, bool keep)
{
	while (c) {
		struct commit *next = c->next;

		commit_answer(c, keep ? c->result : result);
		c = next;
	}
}

/* ---- the block ---- */

/* What was in the block, or hung on it, when it failed. */
static void
fail_block(struct disk *d)
{
	struct commit *batch = d->batch, *after = d->after;

	for (struct commit *c = batch; c; c = c->next) {
		rec_drop(d->tree, c->rec);
		if (c->dead)
			dead_put(d, c->dead);
		tree_unreserve(d->tree, 1);
	}
	/* The block may or may not be on the disk.  What only waited for it has changed nothing. */
	judge_reset(d);
	answer_list(batch, -ECANCELED, false);
	answer_list(after, -EROFS, false);
}

static void start_flush(struct disk *d, struct extent_port *p, bool has_block);

static void
flush_over(struct disk *d, struct extent_port *p)
{
	/* Ours may have ended well because the helper was told what ours was about: not before it is known
	 * how its flush ended.  Another of ours passes the time. */
	if (RULE_FLUSH_ERRORS_SHARED && !d->flush_error && atomic_load(&d->flush_elsewhere)) {
		start_flush(d, p, d->flush_has_block);
		return;
	}
	if (!d->flush_error && disk_failed(d))
		d->flush_error = -EIO;
	if (d->flush_error) {
		disk_fail(d, "a flush failed: %s", strerror(-d->flush_error));
		if (d->flush_has_block)
			fail_block(d);
	} else {
		d->flush_done = atomic_load(&d->flush_begun);
		if (d->flush_has_block) {
			struct commit *batch = d->batch, *after = d->after;

			publish_block(d);
			judge_reset(d);
			answer_list(batch, 0, true);
			answer_list(after, 0, true);
		}
	}
	lead(d, p);
}

static void
on_flush(struct ring_op *op, int res, bool more)
{
	struct flush_op *f = container_of(op, struct flush_op, op);
	struct disk *d = f->d;

	f->p->inflight--;
	xio_vouch(d);
	if (res < 0) {
		d->flush_error = d->flush_error ? d->flush_error : res;
		atomic_fetch_add_explicit(&d->stats.errors, 1, memory_order_relaxed);
	}
	disk_took(&d->stats, DISK_FLUSH, clock_ns() - f->began_ns);
	if (--d->flush_left == 0)
		flush_over(d, f->p);
}

static void
flush_one(struct disk *d, struct extent_port *p, int fd)
{
	struct flush_op *f = &d->flush_ops[d->flush_left++];

	*f = (struct flush_op){ .op.done = on_flush, .d = d, .p = p, .began_ns = clock_ns() };
	p->inflight++;
	ring_fdatasync(p->ring, &f->op, fd);
}

static void
start_flush(struct disk *d, struct extent_port *p, bool has_block)
{
	atomic_fetch_add(&d->flush_begun, 1);
	atomic_fetch_add_explicit(&d->stats.flushes, 1, memory_order_relaxed);
	d->flush_has_block = has_block;
	d->flush_error = 0;
	d->flush_left = 0;
	d->lead_port = p;
	for (uint32_t i = 0; d->flush_all && i < d->geo.seg_nr; i++) {
		if (atomic_exchange(&d->seg_dirty[i], false))
			flush_one(d, p, d->seg_fd[i]);
	}
	flush_one(d, p, d->log_fd);
}

/* One share of the block is over, on p's thread; the last one goes on as leader. */
static void
block_share_over(struct disk *d, struct extent_port *p)
{
	if (atomic_fetch_sub(&d->block_left, 1) != 1)
		return;
	if (atomic_load(&d->block_error)) {
		fail_block(d);
		lead(d, p);
		return;
	}
	start_flush(d, p, true);
}

static void
block_failed(struct disk *d, int err)
{
	int none = 0;

	atomic_compare_exchange_strong(&d->block_error, &none, err);
}

static void
on_block(struct ring_op *op, int res, bool more)
{
	struct disk *d = container_of(op, struct disk, block_op);
	struct extent_port *p = d->lead_port;

	p->inflight--;
	xio_vouch(d);
	if (res < 0 || (uint32_t)res != d->head.len_bytes) {
		atomic_fetch_add_explicit(&d->stats.errors, 1, memory_order_relaxed);
		disk_fail(d, "writing the log at %llu failed: %s", (unsigned long long)d->head.pos,
			  strerror(res < 0 ? -res : EIO));
		block_failed(d, res < 0 ? res : -EIO);
	}
	block_share_over(d, p);
}

static void
write_block(struct disk *d, struct extent_port *p)
{
	d->head = (struct block_head){
		.kind = BLOCK_RECORDS,
		.len_bytes = (uint32_t)align_up(d->block_used, FMT_ALIGN),
		.used_bytes = d->block_used,
		.record_nr = d->block_records,
		.epoch = d->next.epoch,
		.seq = d->next.seq,
		.lap = d->next.lap,
		.pos = d->next.pos,
		.prev_crc = d->next.prev_crc,
		.flushed_upto = d->flushed_seq,
	};
	block_seal(d->block, &d->head, d->next.nonce);
	d->lead_port = p;
	d->block_op = (struct ring_op){ .done = on_block, .by_worker = xio_by_worker(d) };
	p->inflight++;
	ring_write(p->ring, &d->block_op, d->log_fd, d->block, d->head.len_bytes, d->log_off + d->head.pos,
		   RING_NO_REGION);
}

void
commit_data_over(struct extent_port *p, struct commit *c, int err)
{
	struct disk *d = c->disk;
	unsigned was;

	if (err)
		atomic_store(&c->data_error, err);
	was = atomic_fetch_or(&c->state, CS_DATA_OVER);
	if (was & CS_IN_BLOCK) {
		if (err)
			block_failed(d, err);
		block_share_over(d, p);
	} else if (was & CS_ANSWERED) {
		mailbox_post(c->port->mb, &c->msg, on_answer);
	}
}

/* ---- leading ---- */

/* The list is a stack; the queue is in order of arrival. */
static void
gather(struct disk *d)
{
	struct commit *c = atomic_exchange(&d->pending, NULL), *in_order = NULL;

	while (c) {
		struct commit *next = c->next;

		c->next = in_order;
		in_order = c;
		c = next;
	}
	*d->queue_end = in_order;
	while (*d->queue_end)
		d->queue_end = &(*d->queue_end)->next;
}

static bool
stamp_needed(const struct disk *d)
{
	return d->stamped < d->last_records_seq && !disk_failed(d);
}

static bool
stamp_due(struct disk *d)
{
	uint64_t now = clock_ns();

	if (!stamp_needed(d) || !atomic_exchange(&d->want_stamp, false))
		return false;
	return now - d->led_ns >= STAMP_NS && judge_room(d, 0, true) == ROOM_YES;
}

/* True: something is in flight and its completion goes on. */
static bool
lead_step(struct disk *d, struct extent_port *p)
{
	atomic_store(&d->want_lead, false);
	if (atomic_load(&d->snap_state) == SNAP_WALKED)
		snapshot_done(d);
	snapshot_check(d);
	publish_reclaim(d);
	gather(d);
	if (disk_failed(d)) {
		struct commit *q = d->queue;

		d->queue = NULL;
		d->queue_end = &d->queue;
		answer_list(q, -EROFS, false);
		return false;
	}
	judge_queue(d);
	gc_pack(d);
	if (d->block_records || stamp_due(d)) {
		write_block(d, p);
		return true;
	}
	if (d->after) {
		/* Nothing was pending after all. */
		struct commit *after = d->after;

		judge_reset(d);
		answer_list(after, 0, true);
	}
	if (d->have_unflushed) {
		start_flush(d, p, false);
		return true;
	}
	return false;
}

static void
on_timer(struct timer *t)
{
	struct extent_port *p = container_of(t, struct extent_port, timer);

	for (int i = 0; i < p->st->disk_nr; i++) {
		struct disk *d = p->st->disk[i];

		atomic_store(&d->want_stamp, true);
		commit_try_lead(d, p);
	}
}

/* About to leave: who comes back to stamp, to give space back, to look at what stalls? */
static void
arm_timer(struct disk *d, struct extent_port *p)
{
	uint64_t at_ns = 0;

	if (disk_failed(d))
		return;
	if (stamp_needed(d) || d->have_stalled)
		at_ns = clock_ns() + STAMP_NS;
	else if (d->dying || d->gc)
		at_ns = clock_ns() + RECLAIM_NS;
	/* Never later than it was: whoever looks in more often than that would put the stamp off for good. */
	if (at_ns && (!p->timer.armed || p->timer.at_ns > at_ns))
		timer_arm(p->timers, &p->timer, at_ns, on_timer);
}

static bool
work_waits(struct disk *d)
{
	return atomic_load(&d->pending) != NULL || atomic_load(&d->want_lead);
}

/* The caller holds the leadership. */
static void
lead(struct disk *d, struct extent_port *p)
{
	bool nobody = false;

	if (atomic_load(&p->is_detaching)) {
		/* Somebody else, if there is anybody; also for what is in the leader's queue. */
		atomic_store(&d->leader, false);
		if (port_kick(d->st, p) || !atomic_compare_exchange_strong(&d->leader, &nobody, true))
			return;
	}
	do {
		if (lead_step(d, p))
			return;
		arm_timer(d, p);
		atomic_store(&d->leader, false);
		if (!work_waits(d))
			return;
		nobody = false;
	} while (atomic_compare_exchange_strong(&d->leader, &nobody, true));
}

void
commit_try_lead(struct disk *d, struct extent_port *p)
{
	bool nobody = false;

	if (atomic_compare_exchange_strong(&d->leader, &nobody, true))
		lead(d, p);
}

void
commit_submit(struct extent_port *p, struct commit *c)
{
	struct disk *d = c->disk;

	c->port = p;
	c->came_ns = 0;
	c->result = 0;
	c->rec = NULL;
	c->dead = NULL;
	c->key_hash = key_hash(c->view.key, c->view.key_len);
	p->inflight++;
	c->next = atomic_load(&d->pending);
	while (!atomic_compare_exchange_weak(&d->pending, &c->next, c))
		;
	commit_try_lead(d, p);
}

void
commit_idle(struct extent_port *p)
{
	for (int i = 0; i < p->st->disk_nr; i++) {
		struct disk *d = p->st->disk[i];
		uint64_t token = atomic_load_explicit(&d->reclaim_token, memory_order_relaxed);

		if (!atomic_load_explicit(&d->want_lead, memory_order_relaxed) &&
		    !(token && quiesce_passed(p->st->quiesce, token)))
			continue;
		if (!atomic_load_explicit(&d->leader, memory_order_relaxed))
			commit_try_lead(d, p);
	}
}
