/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader commit (docs/engine.md section 2): one log block in flight per disk, and one flush for the block and
 * all its data.
 *
 *     commit_submit() --> pending list --> a thread that finds no leader becomes the leader:
 *
 *     +-> lead: gather, judge --> block written --> flush --> publish, answer --+
 *     |     |                     (data writes may still be in flight)          |
 *     |     | nothing to do                                                     |
 *     |     v                                                                   |
 *     |   leave: arm the stamp timer, free the leadership, check for new work   |
 *     +-------------------------------------------------------------------------+
 *
 * The completions of the block's write and of the flush are handled between two requests of their thread
 * (ring_first()), because all commits of the disk wait for them.
 *
 * Each arrow may change the thread: the thread with the last completion continues. If records wait when the
 * leader leaves, it takes the leadership again itself if it can, because it is awake and waking another core
 * costs 40 us. A port that is being detached wakes another port.
 */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "extent/log/judge.h"
#include "extent/log/publish.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mailbox.h"

#include <errno.h>
#include <string.h>

static void lead(struct vol *vol, struct vol_port *p);

/* ---- answers ---- */

/* Takes the first commit of a list; afterwards it may be answered. */
static struct commit *
take_first(struct commit **list)
{
	struct commit *c = *list;

	if (c)
		*list = c->next;
	return c;
}

/* Answers each commit of a list with its result. published_ns: time of the publication, for steps.h; 0: none. */
static void
answer_list(struct commit *list, uint64_t published_ns)
{
	for (struct commit *c; (c = take_first(&list)) != NULL;) {
		if (published_ns && c->step_ns) {
			c->step_ns = published_ns;
			c->is_published = true;
		}
		commit_answer(c, c->result);
	}
}

/* Refuses the commits of the queue. With -EROFS if the disk has failed; commands still change the
 * assignment of keys. Otherwise with -ENOSPC, because the log has just found no room; commands, which have
 * no record, then remain in the queue, and so does the opening of a gate, which would otherwise stay
 * closed. */
static void
refuse_queue(struct vol *vol, bool has_failed)
{
	struct commit *list = vol->leader.queue;

	vol->leader.queue = NULL;
	vol->leader.queue_end = &vol->leader.queue;
	for (struct commit *c; (c = take_first(&list)) != NULL;) {
		if (has_failed) {
			bool is_done = c->kind == COMMIT_SLOTS && slots_command(vol, c) == V_NOW;

			commit_answer(c, is_done ? 0 : -EROFS);
		} else if (c->kind == COMMIT_SLOTS || c->kind == COMMIT_GATE_OPEN) {
			c->next = NULL;
			*vol->leader.queue_end = c;
			vol->leader.queue_end = &c->next;
		} else {
			commit_answer(c, -ENOSPC);
		}
	}
}

/* ---- the block ---- */

/* Ends the commits of a failed block, and the commits whose answers waited for it. */
static void
fail_block(struct vol *vol)
{
	struct commit *batch = vol->block.batch, *after = vol->block.after;
	int log_error = vol->block.log_error;

	/* The outcome of its records is unknown, except after -ENOSPC: if the log had no room, no block
	 * was written; and a record whose data had no room is not valid. */
	for (struct commit *c = batch; c; c = c->next) {
		bool is_none = log_error == -ENOSPC || atomic_load(&c->data_error) == -ENOSPC;

		commit_put_back(vol, c);
		c->result = is_none ? -ENOSPC : -ECANCELED;
	}
	for (struct commit *c = after; c; c = c->next)
		c->result = disk_failed(&vol->disk) ? -EROFS : -EAGAIN;
	/*
	 * The block may be on the disk. If only data could not be written, because the kernel lacked memory,
	 * the disk remains in use: the next block is written to the same position, and the space that this
	 * block names is not used before a restart. Commits that only waited for the block have changed
	 * nothing.
	 */
	block_reset(vol);
	answer_list(batch, 0);
	answer_list(after, 0);
}

static void start_flush(struct vol *vol, struct vol_port *p, bool has_block);

static void
flush_ended(struct vol *vol, struct vol_port *p)
{
	/* This flush may have succeeded because the kernel has reported its error to a flush of the
	 * helper: the result counts only after that flush has ended. Until then the leader flushes again. */
	if (RULE_FLUSH_ERRORS_SHARED && !vol->flush.error && atomic_load(&vol->disk.flush_elsewhere)) {
		start_flush(vol, p, vol->flush.has_block);
		return;
	}
	if (!vol->flush.error && disk_failed(&vol->disk))
		vol->flush.error = -EIO;
	if (vol->flush.error) {
		disk_fail(&vol->disk, "a flush failed: %s", strerror(-vol->flush.error));
		if (vol->flush.has_block)
			fail_block(vol);
	} else {
		vol->flush.done = atomic_load(&vol->flush_begun);
		if (vol->flush.has_block) {
			struct commit *batch = vol->block.batch, *after = vol->block.after;

			step_took(&vol->flushed, vol->block.counted, vol->block.written_ns,
				  vol->flush.ended_ns);
			publish_block(vol);
			step_took(&vol->published, vol->block.counted, vol->flush.ended_ns,
				  vol->leader.led_ns);
			block_reset(vol);
			answer_list(batch, vol->leader.led_ns);
			answer_list(after, 0);
		}
	}
	lead(vol, p);
}

static void
on_flush(struct ring_op *op, int res, bool more)
{
	struct flush_op *f = container_of(op, struct flush_op, op);
	struct vol *vol = f->vol;

	f->p->io.inflight--;
	watch_end(&f->p->io.watch, &vol->disk, f->watched);
	xio_note_progress(&vol->disk);
	if (res < 0) {
		vol->flush.error = vol->flush.error ? vol->flush.error : res;
		atomic_fetch_add_explicit(&vol->disk.stats.errors, 1, memory_order_relaxed);
	}
	vol->flush.ended_ns = clock_ns();
	latency_count(&vol->disk.stats.latency[DISK_FLUSH], vol->flush.ended_ns - f->began_ns);
	if (--vol->flush.left == 0)
		flush_ended(vol, f->p);
}

static void
flush_one(struct vol *vol, struct vol_port *p, int fd, uint64_t now)
{
	struct flush_op *f = &vol->flush.ops[vol->flush.left++];

	*f = (struct flush_op){
		.op = { .done = on_flush, .is_first = true }, .vol = vol, .p = p, .began_ns = now
	};
	f->watched = watch_begin(&p->io.watch, &vol->disk);
	p->io.inflight++;
	ring_fdatasync(p->io.ring, &f->op, fd);
}

static void
start_flush(struct vol *vol, struct vol_port *p, bool has_block)
{
	uint64_t now = clock_ns();

	/* Only at the first flush of the block; a flush may be repeated. */
	if (has_block && !vol->block.written_ns) {
		vol->block.written_ns = now;
		step_took(&vol->written, vol->block.counted, vol->leader.step_ns, now);
	}
	atomic_fetch_add(&vol->flush_begun, 1);
	atomic_fetch_add_explicit(&vol->disk.stats.flushes, 1, memory_order_relaxed);
	vol->flush.has_block = has_block;
	vol->flush.error = 0;
	vol->flush.left = 0;
	vol->leader.port = p;
	for (uint32_t i = 0; disk_flushes_any(&vol->disk) && i < vol->disk.geo.seg_nr; i++) {
		if (disk_flushes_own(&vol->disk, i) && atomic_exchange(&vol->disk.seg[i].dirty, false))
			flush_one(vol, p, vol->disk.seg[i].fd, now);
	}
	flush_one(vol, p, vol->disk.log.fd, now);
}

/* Ends one share of the block, on p's thread. The thread with the last share continues as the leader. */
static void
share_done(struct vol *vol, struct vol_port *p)
{
	if (atomic_fetch_sub(&vol->block.left, 1) != 1)
		return;
	if (atomic_load(&vol->block.error)) {
		fail_block(vol);
		lead(vol, p);
		return;
	}
	start_flush(vol, p, true);
}

static void
block_failed(struct vol *vol, int err)
{
	int none = 0;

	atomic_compare_exchange_strong(&vol->block.error, &none, err);
}

static void submit_block(struct vol *vol, struct vol_port *p);

static void
on_block(struct ring_op *op, int res, bool more)
{
	struct vol *vol = container_of(op, struct vol, block.op);
	struct vol_port *p = vol->leader.port;

	p->io.inflight--;
	watch_end(&p->io.watch, &vol->disk, vol->block.watched);
	xio_note_progress(&vol->disk);
	res = sync_write_error(res, vol->block.head.len_bytes, vol->block.tried);
	if (res == -EAGAIN && !vol->block.tried) {
		vol->block.tried = true;
		submit_block(vol, p);
		return;
	}
	res = disk_wrote(&vol->disk, DISK_ROOM_OWN, res);
	if (res == -ENOSPC) {
		vol->block.log_error = res;
		vol->leader.room_ns = clock_ns() + ROOM_RETRY_NS;
	} else if (res < 0) {
		atomic_fetch_add_explicit(&vol->disk.stats.errors, 1, memory_order_relaxed);
		disk_fail(&vol->disk, "writing the log at %llu failed: %s",
			  (unsigned long long)vol->block.head.pos, strerror(-res));
	}
	if (res < 0)
		block_failed(vol, res);
	share_done(vol, p);
}

static void
write_block(struct vol *vol, struct vol_port *p)
{
	block_make_head(vol);
	vol->block.log_error = 0;
	vol->leader.port = p;
	vol->block.tried = false;
	submit_block(vol, p);
}

static void
submit_block(struct vol *vol, struct vol_port *p)
{
	vol->block.op = (struct ring_op){ .done = on_block,
					  .by_worker = xio_by_worker(&vol->disk),
					  .is_first = true };
	vol->block.watched = watch_begin(&p->io.watch, &vol->disk);
	p->io.inflight++;
	ring_write(p->io.ring, &vol->block.op, vol->disk.log.fd, vol->block.mem, vol->block.head.len_bytes,
		   vol->disk.log_off + vol->block.head.pos, RING_NO_REGION);
}

void
commit_data_done(struct vol_port *p, struct commit *c, int err)
{
	struct vol *vol = p->vol;
	unsigned was;

	if (err)
		atomic_store(&c->data_error, err);
	was = atomic_fetch_or(&c->state, CS_DATA_DONE);
	if (was & CS_IN_BLOCK) {
		if (err)
			block_failed(vol, err);
		share_done(vol, p);
	} else if (was & CS_ANSWERED) {
		commit_send(c);
	}
}

/* ---- leading ---- */

/* Moves the commits of the pending list, which is a stack, to the queue, in the order of arrival. */
static void
gather(struct vol *vol)
{
	struct commit *c = atomic_exchange(&vol->pending, NULL), *in_order = NULL;

	while (c) {
		struct commit *next = c->next;

		c->next = in_order;
		in_order = c;
		c = next;
	}
	*vol->leader.queue_end = in_order;
	while (*vol->leader.queue_end)
		vol->leader.queue_end = &(*vol->leader.queue_end)->next;
}

static bool
stamp_needed(const struct vol *vol)
{
	return vol->leader.stamped < vol->leader.last_records_seq && !disk_failed(&vol->disk);
}

static bool
stamp_due(struct vol *vol)
{
	uint64_t now = clock_ns();

	if (!stamp_needed(vol) || !atomic_exchange(&vol->want_stamp, false))
		return false;
	return now - vol->leader.led_ns >= STAMP_NS && block_room(vol, 0, true) == ROOM_YES;
}

/* Does one step of the leader's work. Returns true if a write or a flush is in flight, whose completion
 * continues the work. */
static bool
lead_step(struct vol *vol, struct vol_port *p)
{
	atomic_store(&vol->want_lead, false);
	if (atomic_load(&vol->snap.state) == SNAP_WALKED)
		snapshot_done(vol);
	snapshot_check(vol);
	publish_reclaim(vol);
	gather(vol);
	if (disk_failed(&vol->disk)) {
		refuse_queue(vol, true);
		return false;
	}
	vol->leader.step_ns = clock_ns();
	if (vol->leader.step_ns < vol->leader.room_ns) {
		refuse_queue(vol, false);
		return false;
	}
	vol->leader.room_ns = 0;
	judge_queue(vol);
	gc_pack(vol);
	pack_commit(vol);
	if (vol->block.records || stamp_due(vol)) {
		write_block(vol, p);
		return true;
	}
	if (vol->block.after) {
		/* No record was packed, so the answers need not wait. */
		struct commit *after = vol->block.after;

		block_reset(vol);
		answer_list(after, 0);
	}
	if (vol->leader.have_unflushed) {
		start_flush(vol, p, false);
		return true;
	}
	return false;
}

static void
on_timer(struct timer *t)
{
	struct vol_port *p = container_of(t, struct vol_port, timer);

	atomic_store(&p->vol->want_stamp, true);
	commit_try_lead(p);
}

/* Arms the timer before the leader leaves, if stamps, stalled commits or dead records need a leader later. */
static void
arm_timer(struct vol *vol, struct vol_port *p)
{
	uint64_t at_ns = 0;

	if (disk_failed(&vol->disk))
		return;
	if (vol->leader.room_ns)
		at_ns = vol->leader.room_ns;
	else if (stamp_needed(vol) || vol->leader.have_stalled)
		at_ns = clock_ns() + STAMP_NS;
	else if (vol->leader.dying || vol->leader.gc)
		at_ns = clock_ns() + RECLAIM_NS;
	/* Never later than before: otherwise frequent leaders would delay the stamp forever. */
	if (at_ns && (!p->timer.armed || p->timer.at_ns > at_ns))
		timer_arm(p->timers, &p->timer, at_ns, on_timer);
}

void
commit_look_later(struct vol_port *p)
{
	timer_arm(p->timers, &p->timer, clock_ns() + STAMP_NS, on_timer);
}

static bool
work_waits(struct vol *vol)
{
	return atomic_load(&vol->pending) != NULL || atomic_load(&vol->want_lead);
}

/* Leads until no work is left. The caller has taken the leadership (is_led). */
static void
lead(struct vol *vol, struct vol_port *p)
{
	bool nobody = false;

	if (atomic_load(&p->is_detaching)) {
		/* Passes the leadership, with the leader's queue, to another port, if there is one. */
		atomic_store(&vol->is_led, false);
		if (vol->kick(vol->above, p) || !atomic_compare_exchange_strong(&vol->is_led, &nobody, true))
			return;
	}
	do {
		if (lead_step(vol, p))
			return;
		arm_timer(vol, p);
		atomic_store(&vol->is_led, false);
		if (!work_waits(vol))
			return;
		nobody = false;
	} while (atomic_compare_exchange_strong(&vol->is_led, &nobody, true));
}

void
commit_try_lead(struct vol_port *p)
{
	struct vol *vol = p->vol;
	bool nobody = false;

	if (atomic_compare_exchange_strong(&vol->is_led, &nobody, true))
		lead(vol, p);
}

void
commit_submit(struct vol_port *p, struct commit *c)
{
	struct vol *vol = p->vol;

	c->port = p;
	c->is_published = false;
	if (c->step_ns) {
		uint64_t now = clock_ns();

		step_took(&p->steps->submitted, 1, c->step_ns, now);
		c->step_ns = now;
	}
	c->came_ns = 0;
	c->result = 0;
	c->rec = NULL;
	c->dead = NULL;
	c->key_hash = key_hash(c->view.key, c->view.key_len);
	p->io.inflight++;
	c->next = atomic_load(&vol->pending);
	while (!atomic_compare_exchange_weak(&vol->pending, &c->next, c))
		;
	commit_try_lead(p);
}

void
commit_idle(struct vol_port *p)
{
	struct vol *vol = p->vol;
	uint64_t epoch = atomic_load_explicit(&vol->reclaim_epoch, memory_order_relaxed);

	if (!atomic_load_explicit(&vol->want_lead, memory_order_relaxed) &&
	    !(epoch && quiesce_passed(vol->quiesce, epoch)))
		return;
	if (!atomic_load_explicit(&vol->is_led, memory_order_relaxed))
		commit_try_lead(p);
}
