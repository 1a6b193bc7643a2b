/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A visit of the ports of a set: a message to each.  After the last answer no thread uses anything that was looked up before the visit:
 * which engine has a slot, or that there was but one.
 */
#include "set/set_int.h"

int
set_attach_more(struct set_port *p)
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

static void
on_visit(struct msg *m)
{
	struct set_port *p = container_of(m, struct set_port, visit);
	struct set *s = p->set;
	int r = set_attach_more(p);

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

bool
set_is_visited(const struct set *s)
{
	return atomic_load(&s->visits) == 0;
}
