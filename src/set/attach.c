/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and closes the port of a thread at a set, passes notifications to the ports of the engines, and handles
 * the failure of a disk: the placement map is written without the disk (map_change.c), the recovery task
 * applies that map to keys with two copies (replica_recover.c), and every port ends the waits of its operations
 * for a copy on that disk.
 */
#include "set/set_int.h"

#include <errno.h>

int
set_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
	   struct store_port **ret_port)
{
	struct set_port *p = port_new(set_of(st), ring, mb, timers);
	int r;

	if (!p)
		return -ENOMEM;
	p->carrier.carry = set_carry;
	do
		r = port_attach_more(p);
	while (r == 0 && !port_join(p));
	if (r == 0) {
		set_keep_on(set_of(st));
		*ret_port = &p->base;
		return 0;
	}
	while (!port_detach_all(p))
		/* pending messages run first, because another thread may have posted a notification to the
		 * port */
		mailbox_run(mb, 0);
	port_free(p);
	return r;
}

bool
set_detach(struct store_port *sp)
{
	struct set_port *p = set_port(sp);

	/* A port at which operations of the set itself are in flight (port_pin()) stays attached, because
	 * these operations may begin new operations on engines. */
	if (p->inflight || !port_leave(p) || !port_detach_all(p))
		return false;
	port_free(p);
	return true;
}

void
set_turn(struct store_port *sp, enum store_turn turn)
{
	struct set_port *p = set_port(sp);

	for (int i = 0; i < p->nr; i++) {
		/* A port that is being detached has left some engines. */
		if (port_engine(p, i))
			store_turn(port_engine(p, i), turn);
	}
}

/* ---- the failure of a disk ---- */

static void
on_wake(struct msg *m)
{
	struct set_port *p = port_take_wake(m);

	set_poke_pieces(p);
	set_poke_changes(p);
}

void
set_on_failed(struct store_watch *w)
{
	struct set *s = container_of(w, struct set, watch);

	set_table_failed(s);
	/* The ports are woken even if no bucket has two copies: an operation that waits for a copy may belong
	 * to a bucket that was removed. */
	set_keep(s);
	set_wake_ports(s, on_wake);
}
