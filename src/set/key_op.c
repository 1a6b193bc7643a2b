/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the waits of an operation on one key; see key_op.h. */
#include "set/key_op.h"

#include "store/key_copy.h"

#include <errno.h>

void
key_op_init(struct key_op *ko, struct set_port *p, const struct store_key *k)
{
	ko->port = p;
	ko->key = key_copy(ko->name, k);
}

static void
on_hold(struct msg *m)
{
	struct key_op *ko = container_of(m, struct key_op, hold.msg);

	ko->go(ko);
}

int
key_op_lock(struct key_op *ko, void (*go)(struct key_op *ko))
{
	int r;

	ko->go = go;
	ko->hold.mb = ko->port->mb;
	ko->hold.go = on_hold;
	r = set_hold(set_key_locks(ko->port->set), &ko->key, &ko->hold);
	return r < 0 ? -EAGAIN : r;
}

void
key_op_unlock(struct key_op *ko)
{
	if (ko->hold.key)
		set_release(set_key_locks(ko->port->set), &ko->hold, false);
}

static void
on_kept(struct msg *m)
{
	struct key_op *ko = container_of(m, struct key_op, wait.msg);

	ko->go(ko);
}

void
key_op_wait(struct key_op *ko, void (*go)(struct key_op *ko))
{
	ko->go = go;
	ko->wait.mb = ko->port->mb;
	ko->wait.go = on_kept;
	set_wait_kept(ko->port->set, &ko->wait);
}

void
key_op_end(struct key_op *ko)
{
	key_op_unlock(ko);
	port_unpin(ko->port);
}
