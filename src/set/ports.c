/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of a set: each is one of every engine, with those that come while it serves (port_visit.c).
 */
#include "set/replicas.h"

#include <errno.h>
#include <stdlib.h>

/* True: no engine has a port of it any more. */
static bool
detach_all(struct set_port *p)
{
	bool over = true;

	for (int i = 0; i < p->nr; i++) {
		if (p->engine[i] && store_detach(p->engine[i]))
			p->engine[i] = NULL;
		over &= !p->engine[i];
	}
	return over;
}

/* False: an engine has come meanwhile. */
static bool
join(struct set_port *p)
{
	struct set *s = p->set;
	bool has_all;

	pthread_mutex_lock(&s->ports_lock);
	has_all = p->nr == atomic_load(&s->nr);
	if (has_all)
		list_push_tail(&s->ports, &p->link);
	pthread_mutex_unlock(&s->ports_lock);
	return has_all;
}

int
set_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
	   struct store_port **ret_port)
{
	struct set_port *p = calloc(1, sizeof *p);
	int r;

	if (!p)
		return -ENOMEM;
	p->base.ops = st->ops;
	p->set = set_of(st);
	p->mb = mb;
	p->ring = ring;
	p->timers = timers;
	p->carrier.carry = set_carry;
	list_init(&p->link);
	list_init(&p->twos);
	list_init(&p->two_writes);
	list_init(&p->mends_waiting);
	do
		r = set_attach_more(p);
	while (r == 0 && !join(p));
	if (r == 0) {
		set_keep_on(p->set);
		*ret_port = &p->base;
		return 0;
	}
	while (!detach_all(p))
		mailbox_run(mb, 0); /* another port rang it already */
	free(p);
	return r;
}

bool
set_detach(struct store_port *sp)
{
	struct set_port *p = set_port(sp);
	bool is_visited;

	/* What the set itself does begins new operations on engines. */
	if (p->inflight)
		return false;
	pthread_mutex_lock(&p->set->ports_lock);
	is_visited = p->is_visited || p->is_poked || p->keeps;
	if (!is_visited)
		list_del(&p->link);
	pthread_mutex_unlock(&p->set->ports_lock);
	if (is_visited || !detach_all(p))
		return false;
	free(p);
	return true;
}

/* ---- what each engine's port wants to know ---- */

void
set_quiesce(struct store_port *sp)
{
	struct set_port *p = set_port(sp);

	for (int i = 0; i < p->nr; i++) {
		if (p->engine[i])
			store_quiesce(p->engine[i]);
	}
}

void
set_sleep(struct store_port *sp)
{
	struct set_port *p = set_port(sp);

	for (int i = 0; i < p->nr; i++) {
		if (p->engine[i])
			store_sleep(p->engine[i]);
	}
}

void
set_wake(struct store_port *sp)
{
	struct set_port *p = set_port(sp);

	for (int i = 0; i < p->nr; i++) {
		if (p->engine[i])
			store_wake(p->engine[i]);
	}
}
