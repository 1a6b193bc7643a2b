/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of a set: each is one of every engine, with those that come while it serves.
 *
 * A visit is a message to every port.  When the last has answered, nobody does anything any more with what he had looked up
 * before it: which engine has a slot, or that there was but one.
 */
#include "set/replicas.h"

#include "set/map/set_rules.h"

#include <errno.h>
#include <stdlib.h>

/* Gets a port of each engine that it has none of yet. */
static int
attach_more(struct set_port *p)
{
	while (p->nr < atomic_load(&p->set->nr)) {
		int r = store_attach(p->set->engine[p->nr], p->ring, p->mb, p->timers, &p->engine[p->nr]);

		if (r < 0) {
			p->engine[p->nr] = NULL;
			return r;
		}
		p->nr++;
	}
	return 0;
}

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
	p->carrier.carry = p->set->calls->carry;
	list_init(&p->link);
	list_init(&p->twos);
	list_init(&p->two_writes);
	list_init(&p->mends_waiting);
	do
		r = attach_more(p);
	while (r == 0 && !join(p));
	if (r == 0) {
		p->set->calls->keep_on(p->set);
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

static void
on_visit(struct msg *m)
{
	struct set_port *p = container_of(m, struct set_port, visit);
	struct set *s = p->set;
	int r = attach_more(p);

	if (r < 0)
		atomic_store(&s->visit_error, r);
	pthread_mutex_lock(&s->ports_lock);
	p->is_visited = false;
	pthread_mutex_unlock(&s->ports_lock);
	atomic_fetch_sub(&s->visits, 1);
}

void
set_visit(struct set *s)
{
	atomic_store(&s->visit_error, 0);
	pthread_mutex_lock(&s->ports_lock);
	for (struct list *l = s->ports.next; l != &s->ports; l = l->next) {
		struct set_port *p = container_of(l, struct set_port, link);

		p->is_visited = true;
		atomic_fetch_add(&s->visits, 1);
		mailbox_post(p->mb, &p->visit, on_visit);
	}
	pthread_mutex_unlock(&s->ports_lock);
}

static void
on_poke(struct msg *m)
{
	struct set_port *p = container_of(m, struct set_port, poke);

	pthread_mutex_lock(&p->set->ports_lock);
	p->is_poked = false;
	pthread_mutex_unlock(&p->set->ports_lock);
	p->set->calls->poke(p);
}

void
set_poke(struct set *s)
{
	pthread_mutex_lock(&s->ports_lock);
	list_for_each(l, &s->ports)
	{
		struct set_port *p = container_of(l, struct set_port, link);

		if (!p->is_poked)
			mailbox_post(p->mb, &p->poke, on_poke);
		p->is_poked = true;
	}
	pthread_mutex_unlock(&s->ports_lock);
}

bool
set_is_visited(const struct set *s)
{
	return atomic_load(&s->visits) == 0;
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

/* ---- whose port it is ---- */

struct store_port *
set_port_to_write(struct store_port *sp, const struct store_key *k, int *ret_error)
{
	struct set_port *p = set_port(sp);
	int home = set_home(p->set, k);

	*ret_error = -ENODEV;
	if (home == SET_NOWHERE)
		return RULE_MISSING_IS_503 ? NULL : p->engine[0];
	*ret_error = -EROFS;
	if (atomic_load_explicit(&p->set->is_read_only, memory_order_relaxed))
		return NULL;
	/* One that has failed says so itself, but it does not know all buckets. */
	return set_is_in(p->set, home) || !RULE_FAILED_HAS_NO_BUCKETS ? p->engine[home] : NULL;
}

int
set_engine_put_init(struct set_port *p, struct store_port *e, struct store_put *put,
		    const struct store_key *k, const uint8_t *id, uint32_t number, uint64_t size_bytes)
{
	int r = id ? e->ops->put_init_part(e, put, k, id, number, size_bytes)
		   : e->ops->put_init(e, put, k, size_bytes);

	put->carrier = &p->carrier;
	return r;
}
