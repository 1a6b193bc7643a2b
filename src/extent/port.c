/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port: one thread's access to the store.  Attach, detach, quiescence, and being rung by another port's
 * leader.
 */
#include "extent/engine.h"

#include "extent/object/chunk.h"
#include "extent/object/object.h"
#include "base/check.h"
#include "base/mailbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
port_free(struct extent_port *p)
{
	pool_fini(&p->writers);
	crc_blocks_fini(p);
	free(p);
}

static void
on_kick(struct msg *m)
{
	struct extent_port *p = container_of(m, struct extent_port, kick);

	atomic_store(&p->kicked, false);
	commit_try_lead(&p->vp);
	space_retry(p);
}

/* Under ports_lock. */
static void
kick_one(struct extent_port *p)
{
	if (!atomic_exchange(&p->kicked, true))
		mailbox_post(p->vp.mb, &p->kick, on_kick);
}

bool
port_kick(void *store, const struct vol_port *not_this)
{
	struct extent_store *st = store;
	bool done = false;

	pthread_mutex_lock(&st->ports_lock);
	for (int i = 0; i < st->ports_max && !done; i++) {
		if (!st->port[i] || &st->port[i]->vp == not_this)
			continue;
		/* Two that leave would hand it back and forth for ever. */
		if (not_this && atomic_load(&st->port[i]->vp.is_detaching))
			continue;
		kick_one(st->port[i]);
		done = true;
	}
	pthread_mutex_unlock(&st->ports_lock);
	return done;
}

void
port_kick_all(void *store)
{
	struct extent_store *st = store;

	pthread_mutex_lock(&st->ports_lock);
	for (int i = 0; i < st->ports_max; i++) {
		if (st->port[i])
			kick_one(st->port[i]);
	}
	pthread_mutex_unlock(&st->ports_lock);
}

static const struct store_limits limits = { .piece_bytes = STORE_PIECE,
					    .read_bytes = STORE_PIECE,
					    .granule_bytes = STORE_GRANULE,
					    .inline_bytes = STORE_INLINE_MAX };

int
extent_attach(struct store *store, struct ring *ring, struct mailbox *mb, struct timers *timers,
	      struct store_port **ret_port)
{
	struct extent_store *st = extent_store(store);
	struct extent_port *p = aligned_alloc(64, align_up(sizeof *p, 64));
	int e;

	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof *p);
	p->base.ops = &extent_ops;
	p->base.limits = &limits;
	p->st = st;
	p->vp = (struct vol_port){ .io.ring = ring,
				   .io.watch.timers = timers,
				   .io.is_threads = ring && ring_why_threads(ring),
				   .vol = st->vol,
				   .mb = mb,
				   .timers = timers };
	p->nr = -1;
	list_init(&p->space_waiters);
	e = pool_init(&p->writers, sizeof(struct chunk_writer), CHUNK_WRITERS_PER_PORT);
	if (e == 0)
		e = crc_blocks_init(p);
	if (e < 0) {
		port_free(p);
		return e;
	}
	pthread_mutex_lock(&st->ports_lock);
	for (int i = 0; i < st->ports_max && p->nr < 0; i++) {
		if (!st->port[i])
			p->nr = i;
	}
	if (p->nr >= 0)
		p->user = quiesce_join(st->vol->quiesce);
	if (p->user) {
		p->vp.steps = &st->vol->port_steps[p->nr];
		alloc_run_init(st->vol->disk.alloc, &p->run);
		st->port[p->nr] = p;
	}
	pthread_mutex_unlock(&st->ports_lock);
	if (!p->user) {
		port_free(p);
		return -EUSERS;
	}
	/* The last port may have been detached before it could write the stamp block (log/block.h). */
	commit_look_later(&p->vp);
	*ret_port = &p->base;
	return 0;
}

bool
extent_detach(struct store_port *sp)
{
	struct extent_port *p = extent_port(sp);
	struct extent_store *st = p->st;
	bool ended;

	atomic_store(&p->vp.is_detaching, true);
	if (p->vp.io.inflight || !list_empty(&p->space_waiters))
		return false;
	pthread_mutex_lock(&st->ports_lock);
	ended = !atomic_load(&p->kicked);
	if (ended)
		st->port[p->nr] = NULL;
	pthread_mutex_unlock(&st->ports_lock);
	if (!ended)
		return false;
	timer_disarm(p->vp.timers, &p->vp.timer);
	timer_disarm(p->vp.timers, &p->space_timer);
	watch_fini(&p->vp.io.watch);
	alloc_run_fini(st->vol->disk.alloc, &p->run);
	quiesce_leave(p->user);
	/* The timer that would have stamped or given space back was perhaps ours. */
	port_kick(st, NULL);
	port_free(p);
	return true;
}

void
extent_turn(struct store_port *sp, enum store_turn turn)
{
	struct extent_port *p = extent_port(sp);

	switch (turn) {
	case TURN_SLEEPS:
		quiesce_sleep(p->user);
		return;
	case TURN_WAKES:
		quiesce_wake(p->user);
		return;
	default:
		break;
	}
	quiesce_point(p->user);
	commit_idle(&p->vp);
	if (!list_empty(&p->space_waiters) && atomic_load(&p->vp.vol->disk.freed_nr) != p->space_freed)
		space_retry(p);
}
