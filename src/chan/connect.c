/* SPDX-License-Identifier: Apache-2.0 */
/* Connects of clients (rdma/rc.h): the answer of the thread that made the connection comes back to the core. */
#include "chan/connect.h"

#include "chan/chan_int.h"

static void
on_back(struct msg *m)
{
	struct chan_connect *c = container_of(m, struct chan_connect, back);

	c->ch->jobs_out--;
	c->done(c);
}

/* On a thread of the table. */
static void
on_made(struct rdma_rc_wait *w)
{
	struct chan_connect *c = container_of(w, struct chan_connect, wait);

	chan_answer(c->ch, &c->back, on_back);
}

int
chan_connect(struct chan *ch, struct chan_connect *c)
{
	int r;

	c->ch = ch;
	c->wait.done = on_made;
	ch->jobs_out++; /* before: the answer may come at once */
	atomic_fetch_add(&ch->answers_due, 1);
	r = rdma_rc_connect(ch->rdma, &c->wait);
	if (r < 0) {
		ch->jobs_out--;
		atomic_fetch_sub(&ch->answers_due, 1);
	}
	return r;
}
