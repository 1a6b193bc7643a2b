/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the ports of a set, the barrier and wake-ups; see ports.h. */
#include "set/set_int.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- one port ---- */

struct set_port *
set_port(struct store_port *sp)
{
	check(sp);
	return container_of(sp, struct set_port, base);
}

struct store_port *
port_engine(const struct set_port *p, int engine)
{
	check(engine >= 0 && engine < p->nr);
	return p->engine[engine];
}

struct list *
port_waiting(struct set_port *p, enum port_list list)
{
	return &p->waiting[list];
}

void
port_pin(struct set_port *p)
{
	p->inflight++;
	check(p->inflight);
}

void
port_unpin(struct set_port *p)
{
	check(p->inflight);
	p->inflight--;
}

/* ---- its life ---- */

struct set_port *
port_new(struct set *s, struct ring *ring, struct mailbox *mb, struct timers *timers)
{
	struct set_port *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	check(s && mb);
	p->base.ops = s->base.ops;
	p->set = s;
	p->mb = mb;
	p->ring = ring;
	p->timers = timers;
	list_init(&p->link);
	for (int i = 0; i < PORT_LISTS; i++)
		list_init(&p->waiting[i]);
	return p;
}

void
port_free(struct set_port *p)
{
	check(!list_linked(&p->link) && !p->inflight);
	for (int i = 0; i < PORT_LISTS; i++)
		check(list_empty(&p->waiting[i]));
	for (int i = 0; i < p->nr; i++)
		check(!p->engine[i]);
	free(p);
}

int
port_attach_more(struct set_port *p)
{
	check(p->nr <= set_engines(p->set));
	while (p->nr < set_engines(p->set)) {
		int r = store_attach(set_engine(p->set, p->nr), p->ring, p->mb, p->timers, &p->engine[p->nr]);

		if (r < 0) {
			p->engine[p->nr] = NULL;
			return r;
		}
		check(p->engine[p->nr]);
		/* All engines are of one kind. */
		p->base.limits = p->engine[p->nr]->limits;
		p->nr++;
	}
	return 0;
}

bool
port_detach_all(struct set_port *p)
{
	bool is_done = true;

	check(!p->inflight);
	for (int i = 0; i < p->nr; i++) {
		if (p->engine[i] && store_detach(p->engine[i]))
			p->engine[i] = NULL;
		is_done &= !p->engine[i];
	}
	return is_done;
}

bool
port_join(struct set_port *p)
{
	struct set_ports *ps = &p->set->ports;
	bool knows_all;

	check(!list_linked(&p->link));
	pthread_mutex_lock(&ps->lock);
	knows_all = p->nr == set_engines(p->set);
	if (knows_all)
		list_push_tail(&ps->list, &p->link);
	pthread_mutex_unlock(&ps->lock);
	return knows_all;
}

bool
port_leave(struct set_port *p)
{
	struct set_ports *ps = &p->set->ports;
	bool is_quiet;

	check(!p->inflight);
	pthread_mutex_lock(&ps->lock);
	is_quiet = !p->has_barrier && !p->has_wake && !p->has_sent;
	if (is_quiet)
		list_del(&p->link);
	pthread_mutex_unlock(&ps->lock);
	return is_quiet;
}

/* ---- all ports ---- */

/* Notes that a message of a port has arrived. in_flight: has_barrier, has_wake or has_sent of the port. */
static void
arrived(struct set_port *p, bool *in_flight)
{
	pthread_mutex_lock(&p->set->ports.lock);
	check(*in_flight);
	*in_flight = false;
	pthread_mutex_unlock(&p->set->ports.lock);
}

static void
on_barrier(struct msg *m)
{
	struct set_port *p = container_of(m, struct set_port, barrier);
	struct set_ports *ps = &p->set->ports;
	int r = port_attach_more(p), left;

	if (r < 0)
		atomic_store(&ps->error, r);
	arrived(p, &p->has_barrier);
	left = atomic_fetch_sub(&ps->left, 1);
	check(left > 0);
}

void
set_barrier(struct set *s)
{
	struct set_ports *ps = &s->ports;

	check(set_barrier_is_done(s));
	atomic_store(&ps->error, 0);
	pthread_mutex_lock(&ps->lock);
	list_for_each(l, &ps->list)
	{
		struct set_port *p = container_of(l, struct set_port, link);

		check(!p->has_barrier);
		p->has_barrier = true;
		atomic_fetch_add(&ps->left, 1);
		mailbox_post(p->mb, &p->barrier, on_barrier);
	}
	pthread_mutex_unlock(&ps->lock);
}

bool
set_barrier_is_done(const struct set *s)
{
	return atomic_load(&s->ports.left) == 0;
}

int
set_barrier_error(const struct set *s)
{
	check(set_barrier_is_done(s));
	return atomic_load(&s->ports.error);
}

void
set_wake_ports(struct set *s, void (*go)(struct msg *m))
{
	struct set_ports *ps = &s->ports;

	pthread_mutex_lock(&ps->lock);
	list_for_each(l, &ps->list)
	{
		struct set_port *p = container_of(l, struct set_port, link);

		if (!p->has_wake)
			mailbox_post(p->mb, &p->wake, go);
		p->has_wake = true;
	}
	pthread_mutex_unlock(&ps->lock);
}

struct set_port *
port_take_wake(struct msg *m)
{
	struct set_port *p = container_of(m, struct set_port, wake);

	arrived(p, &p->has_wake);
	return p;
}

bool
set_send_to_one(struct set *s, struct msg *m, void (*go)(struct msg *m), struct set_port **ret_port)
{
	struct set_ports *ps = &s->ports;
	struct list *l;

	pthread_mutex_lock(&ps->lock);
	l = list_first(&ps->list);
	if (l) {
		struct set_port *p = container_of(l, struct set_port, link);

		check(!p->has_sent);
		p->has_sent = true;
		*ret_port = p;
		mailbox_post(p->mb, m, go);
	}
	pthread_mutex_unlock(&ps->lock);
	return l != NULL;
}

void
port_take_sent(struct set_port *p)
{
	port_pin(p);
	arrived(p, &p->has_sent);
}
