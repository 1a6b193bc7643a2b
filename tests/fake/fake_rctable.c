/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of connections of RC in place of rdma/rctable.c, for the simulation of requests: it has those of the fake channel, all of
 * whichever client asks.  See fake_rctable.h.
 */
#include "fake_rctable.h"

#include "rdma/rc_int.h"

#include <errno.h>
#include <string.h>

static const struct chan *chan;

void
fake_rctable(const struct chan *ch)
{
	chan = ch;
}

bool
rdma_rc_find(struct rdma *rd, const struct sockaddr *peer, struct token *tok)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	uint32_t nr = (uint32_t)tok->id[0] << 24 | (uint32_t)tok->id[1] << 16 | (uint32_t)tok->id[2] << 8 |
		      tok->id[3];

	tok->have_gid = true;
	memcpy(tok->gid, gid, 16);
	return chan && fake_chan_joined(chan, nr);
}

/* ---- nothing else of the table is used ---- */

int
rdma_rc_connect(struct rdma *rd, struct rdma_rc_wait *w)
{
	return -EOPNOTSUPP;
}

void
rdma_rc_disconnect(struct rdma *rd, const uint8_t id[RDMA_RC_ID_BYTES], const struct sockaddr *peer)
{
}

struct rdma_rc_stats *
rdma_rc_stats(struct rdma *rd)
{
	return NULL;
}

void
rdma_rc_set_limits(struct rdma *rd, const struct conf_rc *conf)
{
}

int
rc_take(struct rdma *rd, const uint8_t id[RDMA_RC_ID_BYTES], struct rc_conn **ret_conn)
{
	return -ENOTCONN;
}

void
rc_put(struct rc_conn *conn)
{
}

void
rc_gone(struct rc_conn *conn)
{
}

int
rc_find_rail(struct rdma *rd, const uint8_t id[RDMA_RC_ID_BYTES], unsigned *ret_rail)
{
	return -ENOTCONN;
}

int
rc_table_new(struct rdma *rd)
{
	return 0;
}

void
rc_table_free(struct rdma *rd)
{
}
