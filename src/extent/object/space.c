/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that wait for space on the disk; see space.h. */
#include "extent/object/space.h"

#include "extent/object/port.h"
#include "base/clock.h"

#include <errno.h>

/* No space, and none is being made or given back. */
static bool
must_give_up(const struct vol *vol, const struct space_wait *sw)
{
	if (disk_failed(&vol->disk))
		return true;
	if (atomic_load(&vol->disk.segs_coming))
		return false;
	return !atomic_load(&vol->dead_nr) || clock_ns() - sw->since_ns > STALL_NS;
}

/* 0, 1 (it waits), or why it must not. */
static int
look(struct vol *vol, struct space_wait *sw)
{
	if (disk_failed(&vol->disk))
		return -EROFS;
	if (sw->take(sw))
		return 0;
	if (!must_give_up(vol, sw))
		return 1;
	/* Nothing is on its way any more: it may have come between the two looks. */
	if (sw->take(sw))
		return 0;
	if (disk_failed(&vol->disk))
		return -EROFS;
	/* What is claimed comes back, however long the disk takes for it: that is no full disk. */
	if (alloc_is_claimed(vol->disk.alloc))
		return -EAGAIN;
	atomic_fetch_add(&vol->disk.stats.space_refused, 1);
	return -ENOSPC;
}

static void
on_timer(struct timer *t)
{
	space_retry(container_of(t, struct extent_port, space_timer));
}

static void
arm(struct extent_port *p)
{
	if (!p->space_timer.armed)
		timer_arm(p->vp.timers, &p->space_timer, clock_ns() + STAMP_NS, on_timer);
}

void
space_wait_on(struct extent_port *p, struct space_wait *sw)
{
	struct vol *vol = p->vp.vol;

	sw->since_ns = clock_ns();
	list_push_tail(&p->space_waiters, &sw->link);
	if (atomic_load(&vol->disk.segs_coming)) {
		atomic_store(&vol->disk.seg_hungry, true);
		helper_ring(&vol->helper);
	}
	atomic_store(&vol->want_lead, true);
	arm(p);
}

int
space_get(struct extent_port *p, struct space_wait *sw, bool (*take)(struct space_wait *sw),
	  void (*over)(struct space_wait *sw, int error))
{
	int r;

	sw->take = take;
	sw->over = over;
	sw->since_ns = clock_ns();
	r = look(p->vp.vol, sw);
	if (r == 1)
		space_wait_on(p, sw);
	return r;
}

void
space_retry(struct extent_port *p)
{
	struct list waiters;

	if (list_empty(&p->space_waiters))
		return;
	p->space_freed = atomic_load(&p->vp.vol->disk.freed_nr);
	/* In order, and each once: what ends here may make another one wait. */
	list_take(&waiters, &p->space_waiters);
	for (struct list *l; (l = list_pop(&waiters)) != NULL;) {
		struct space_wait *sw = container_of(l, struct space_wait, link);
		int r = look(p->vp.vol, sw);

		if (r == 1)
			list_push_tail(&p->space_waiters, &sw->link);
		else
			sw->over(sw, r);
	}
	if (!list_empty(&p->space_waiters)) {
		arm(p);
		commit_try_lead(&p->vp);
	}
}
