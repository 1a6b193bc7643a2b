/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk of a set has failed: the placement map is written without it (map_change.c), the keeper makes so what that says of keys with two
 * copies (replica_recover.c), and every port lets go of operations that wait for a copy on that disk.
 */
#include "set/replicas.h"

static void
on_poke(struct msg *m)
{
	struct set_port *p = container_of(m, struct set_port, poke);

	pthread_mutex_lock(&p->set->ports_lock);
	p->is_poked = false;
	pthread_mutex_unlock(&p->set->ports_lock);
	set_two_poke_writes(p);
	set_two_poke(p);
}

static void
poke_ports(struct set *s)
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

static void
on_failed(struct store_watch *w)
{
	struct set *s = container_of(w, struct set, watch);

	set_table_failed(s);
	/* What waits for a copy may be of a bucket that is gone. */
	if (s->copies) {
		set_keep(s);
		poke_ports(s);
	}
}

void
set_failure_init(struct set *s)
{
	s->watch.failed = on_failed;
}
