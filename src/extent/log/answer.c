/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of commits, to the ports that wait for them. */
#include "extent/log/vol.h"

#include "base/clock.h"
#include "base/list.h"

static void
on_answer(struct msg *m)
{
	struct commit *c = container_of(m, struct commit, msg);

	c->port->io.inflight--;
	if (c->is_published)
		step_took(&c->port->steps->answered, 1, c->step_ns, clock_ns());
	c->finished(c);
}

void
commit_send(struct commit *c)
{
	mailbox_post(c->port->mb, &c->msg, on_answer);
}

void
commit_answer(struct commit *c, int result)
{
	if (c->is_gc) {
		c->result = result;
		c->finished(c);
		return;
	}
	/* only the main record of the operation is answered; it follows this one in the block */
	if (c->is_also)
		return;
	c->result = result;
	/* The answer waits for the end of the data writes: until then the kernel uses the caller's buffer. */
	if (atomic_fetch_or(&c->state, CS_ANSWERED) & CS_DATA_DONE)
		commit_send(c);
}
