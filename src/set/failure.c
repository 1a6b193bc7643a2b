/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles the failure of a disk of a set. The placement map is written without the disk (map_change.c), the
 * recovery task applies that map to keys with two copies (replica_recover.c), and every port ends the waits
 * of its operations for a copy on that disk.
 */
#include "set/set_int.h"

static void
on_wake(struct msg *m)
{
	struct set_port *p = port_take_wake(m);

	set_poke_pieces(p);
	set_poke_changes(p);
}

static void
on_failed(struct store_watch *w)
{
	struct set *s = container_of(w, struct set, watch);

	set_table_failed(s);
	/* The ports are woken even if no bucket has two copies: an operation that waits for a copy may belong
	 * to a bucket that was removed. */
	if (set_can_pair(s)) {
		set_keep(s);
		set_wake_ports(s, on_wake);
	}
}

void
set_failure_init(struct set *s)
{
	s->watch.failed = on_failed;
}
