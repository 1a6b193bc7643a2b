/*
 * A core's buffers, shared out between its transfers.
 *
 * The invariant: free buffers of the main class >= tickets out that hold none of that class (`bare`).  There
 * are at most as many tickets as such buffers, a surplus buffer is handed out only while the inequality stays
 * true, so the holder of a ticket gets its one buffer without waiting, whatever the others do: nobody who
 * holds a lease waits for somebody who waits for a lease.  Buffers of the other class are extra: taken while
 * there are some, guaranteed to nobody.
 */
#include "xfer/xfer_int.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

_Thread_local struct xfer_counts xfer_counts;

void
xfer_pool_init(struct xfer_pool *xp, struct bufpool *bp, enum buf_class main_cls, int pieces_max,
	       int queue_max)
{
	memset(xp, 0, sizeof *xp);
	xp->bp = bp;
	xp->main_cls = main_cls;
	xp->tickets = bp->total[main_cls];
	xp->pieces_max = pieces_max < XFER_PIECES_MAX ? pieces_max : XFER_PIECES_MAX;
	xp->queue_max = queue_max;
	list_init(&xp->waiting);
	list_init(&xp->hungry);
}

static void
grant(struct xfer_pool *xp, struct xfer *x)
{
	xp->tickets_out++;
	xp->bare++;
	x->have_ticket = true;
	check(xp->bp->avail[xp->main_cls] >= xp->bare);
}

/* A ticket is free only while the invariant would survive it: surplus buffers may be out. */
static bool
can_grant(const struct xfer_pool *xp)
{
	return xp->tickets_out < xp->tickets && xp->bp->avail[xp->main_cls] > xp->bare;
}

int
xfer_ticket(struct xfer *x)
{
	struct xfer_pool *xp = x->pool;

	check(!x->have_ticket && !x->is_waiting);
	if (list_empty(&xp->waiting) && can_grant(xp)) {
		grant(xp, x);
		return 1;
	}
	if (xp->queued >= xp->queue_max)
		return -EAGAIN;
	xp->queued++;
	x->is_waiting = true;
	list_push_tail(&xp->waiting, &x->link);
	return 0;
}

static void
stop_waiting(struct xfer *x)
{
	list_del(&x->link);
	x->is_waiting = false;
	x->pool->queued--;
}

/* Something came back: first those without a ticket, in order, then those who would like one more, round
 * robin. */
static void
pool_feed(struct xfer_pool *xp)
{
	struct list *l;

	while (can_grant(xp) && (l = list_first(&xp->waiting))) {
		struct xfer *x = container_of(l, struct xfer, link);

		stop_waiting(x);
		grant(xp, x);
		x->done(x);
	}
	/* Until one of them stays hungry: then there is nothing left that it may have. */
	while ((l = list_pop(&xp->hungry))) {
		xfer_more(container_of(l, struct xfer, link));
		if (list_linked(l))
			return;
	}
}

void
pool_ticket_put(struct xfer *x)
{
	struct xfer_pool *xp = x->pool;

	if (x->is_waiting)
		stop_waiting(x);
	else if (list_linked(&x->link))
		list_del(&x->link);
	if (!x->have_ticket)
		return;
	check(x->bufs == 0 && x->main_bufs == 0);
	x->have_ticket = false;
	xp->tickets_out--;
	xp->bare--;
	pool_feed(xp);
}

/* May x have another buffer of the main class?  Its first always; more while the guaranteed ones stay, and no
 * more than an even share while others wait. */
static bool
may_take_main(const struct xfer *x)
{
	const struct xfer_pool *xp = x->pool;

	if (x->main_bufs == 0)
		return true;
	if (xp->bp->avail[xp->main_cls] <= xp->bare)
		return false;
	if (!list_empty(&xp->hungry) || !list_empty(&xp->waiting)) {
		int share = xp->bp->total[xp->main_cls] / (xp->tickets_out ? xp->tickets_out : 1);

		return x->main_bufs < (share < 1 ? 1 : share);
	}
	return true;
}

struct buf *
pool_buf_get(struct xfer *x, size_t len)
{
	struct xfer_pool *xp = x->pool;
	enum buf_class want = buf_class_for(len);
	struct buf *b = NULL;

	check(x->have_ticket);
	if (x->bufs >= xp->pieces_max)
		return NULL; /* comes back by itself when one of its own pieces is done */
	if (want != xp->main_cls)
		b = bufpool_get(xp->bp, want);
	if (!b && may_take_main(x)) {
		b = bufpool_get(xp->bp, xp->main_cls);
		check(b || x->main_bufs > 0);
	}
	if (!b) {
		if (!list_linked(&x->link))
			list_push_tail(&xp->hungry, &x->link);
		return NULL;
	}
	x->bufs++;
	if (x->bufs > xfer_counts.bufs_peak)
		xfer_counts.bufs_peak = x->bufs;
	if (b->cls == xp->main_cls && x->main_bufs++ == 0)
		xp->bare--;
	check(xp->bp->avail[xp->main_cls] >= xp->bare);
	return b;
}

void
pool_buf_put(struct xfer *x, struct buf *b)
{
	struct xfer_pool *xp = x->pool;

	x->bufs--;
	if (b->cls == xp->main_cls && --x->main_bufs == 0)
		xp->bare++;
	bufpool_put(xp->bp, b);
	pool_feed(xp);
}
