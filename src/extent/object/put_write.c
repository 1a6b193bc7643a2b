/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writes of a PUT's pieces, one part after the other, and those of them that wait for space.  On the
 * port's thread.
 *
 *   begin --> is there space? --> written --> the next part, or over
 *               ^    | none, but some is on its way, or segments are being made
 *               |    v
 *               '-- waits, and looks again when some has come, and every few milliseconds;
 *                   a second of that at most
 */
#include "extent/object/put_int.h"

#include "base/clock.h"

#include <errno.h>

static void
write_done(struct write_int *wi)
{
	struct put_int *pi = wi->pi;

	pi->writes--;
	if (wi->error && !pi->error)
		pi->error = wi->error;
	if (wi == &pi->last) {
		put_last_written(pi);
		return;
	}
	wi->op->result = wi->error;
	wi->op->done(wi->op);
}

static void write_more(struct write_int *wi);

static void
on_segment(struct xio *x)
{
	struct write_int *wi = container_of(x, struct write_int, x);
	struct chunk_writer *w = wi->seg[wi->at++].w;

	/* Not now; or the disk is done for, and this PUT is known not to be there: as what comes after it. */
	if (x->error && !wi->error)
		wi->error = x->error == -EAGAIN ? -EAGAIN : -EROFS;
	writer_io_done(w, x->error);
	if (wi->at < wi->seg_nr)
		write_more(wi);
	else
		write_done(wi);
}

static uint64_t
expected_stored(const struct put_int *pi, const struct chunk_writer *w)
{
	uint64_t left;

	if (pi->expect_bytes == STORE_SIZE_UNKNOWN)
		return 0;
	left = pi->expect_bytes - (uint64_t)w->index * FMT_CHUNK_BYTES;
	return pi->expect_bytes <= (uint64_t)w->index * FMT_CHUNK_BYTES
		       ? 0
		       : stored_bytes(left < FMT_CHUNK_BYTES ? left : FMT_CHUNK_BYTES);
}

/* Issues the next part.  False: no space. */
static bool
issue(struct write_int *wi)
{
	struct segment_io *seg = &wi->seg[wi->at];
	struct chunk_writer *w = seg->w;

	if (writer_reserve(w, seg->off + seg->len, expected_stored(wi->pi, w)) < 0)
		return false;
	xio_start(&wi->x, &wi->pi->port->vp.io, &wi->pi->vol->disk, true, w->ext, w->ext_nr, seg->off,
		  seg->mem, seg->len, wi->buf->region, on_segment);
	return true;
}

/* No space, and none is being made or given back. */
static bool
must_give_up(const struct write_int *wi)
{
	struct vol *vol = wi->pi->vol;

	if (disk_failed(&vol->disk))
		return true;
	if (atomic_load(&vol->disk.segs_coming))
		return false;
	return !atomic_load(&vol->dead_nr) || clock_ns() - wi->wait_ns > STALL_NS;
}

enum issued { ISSUED, ISSUE_WAITS, ISSUE_GIVES_UP };

static enum issued
try_issue(struct write_int *wi)
{
	if (disk_failed(&wi->pi->vol->disk))
		return ISSUE_GIVES_UP;
	if (issue(wi))
		return ISSUED;
	if (!must_give_up(wi))
		return ISSUE_WAITS;
	/* Nothing is on its way any more: it may have come between the two looks. */
	return issue(wi) ? ISSUED : ISSUE_GIVES_UP;
}

void
put_write_give_up(struct write_int *wi, int error)
{
	wi->error = wi->error ? wi->error : error;
	for (; wi->at < wi->seg_nr; wi->at++)
		writer_io_done(wi->seg[wi->at].w, -ENOSPC);
}

static void
on_space_timer(struct timer *t)
{
	put_space_retry(container_of(t, struct extent_port, space_timer));
}

static void
wait_for_space(struct write_int *wi)
{
	struct extent_port *p = wi->pi->port;
	struct vol *vol = wi->pi->vol;

	wi->wait_ns = clock_ns();
	list_push_tail(&p->space_waiters, &wi->link);
	if (atomic_load(&vol->disk.segs_coming)) {
		atomic_store(&vol->disk.seg_hungry, true);
		helper_ring(&vol->helper);
	}
	atomic_store(&vol->want_lead, true);
	if (!p->space_timer.armed)
		timer_arm(p->vp.timers, &p->space_timer, clock_ns() + STAMP_NS, on_space_timer);
}

static void
write_more(struct write_int *wi)
{
	if (wi->error || disk_failed(&wi->pi->vol->disk)) {
		put_write_give_up(wi, -EROFS);
		write_done(wi);
	} else if (!issue(wi)) {
		wait_for_space(wi);
	}
}

void
put_space_retry(struct extent_port *p)
{
	struct list waiters;

	if (list_empty(&p->space_waiters))
		return;
	p->space_freed = atomic_load(&p->vp.vol->disk.freed_nr);
	/* In order, and each once: a write that fails here may start another in its done(). */
	waiters = p->space_waiters;
	waiters.next->prev = waiters.prev->next = &waiters;
	list_init(&p->space_waiters);
	for (struct list *l; (l = list_pop(&waiters)) != NULL;) {
		struct write_int *wi = container_of(l, struct write_int, link);

		switch (try_issue(wi)) {
		case ISSUED:
			if (wi == &wi->pi->last)
				put_last_issued(wi->pi);
			break;
		case ISSUE_WAITS:
			list_push_tail(&p->space_waiters, &wi->link);
			break;
		case ISSUE_GIVES_UP:
			put_write_give_up(wi, disk_failed(&wi->pi->vol->disk) ? -EROFS : -ENOSPC);
			write_done(wi);
			break;
		}
	}
	if (!list_empty(&p->space_waiters)) {
		if (!p->space_timer.armed)
			timer_arm(p->vp.timers, &p->space_timer, clock_ns() + STAMP_NS, on_space_timer);
		commit_try_lead(&p->vp);
	}
}

int
put_write_begin(struct put_int *pi, struct write_int *wi)
{
	wi->wait_ns = clock_ns();
	pi->writes++;
	switch (try_issue(wi)) {
	case ISSUED:
		return 0;
	case ISSUE_WAITS:
		wait_for_space(wi);
		return 1;
	case ISSUE_GIVES_UP:
		break;
	}
	pi->writes--;
	pi->error = disk_failed(&pi->vol->disk) ? -EROFS : -ENOSPC;
	put_write_give_up(wi, pi->error);
	return pi->error;
}
