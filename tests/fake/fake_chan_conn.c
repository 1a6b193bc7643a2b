/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of RC, as far as the layers above a channel see them; see fake_chan.h. */
#include "fake_chan_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { CONN_READY = 1, CONN_LEASED, CONN_GONE };

void
fake_chan_serve_rc(struct chan *ch)
{
	ch->conn = calloc(FAKE_CONNS_MAX, 1);
	check(ch->conn);
	ch->conn_nr = 0;
}

uint32_t
fake_chan_join(struct chan *ch)
{
	check(ch->conn_nr + 1 < FAKE_CONNS_MAX);
	ch->conn[++ch->conn_nr] = CONN_READY;
	return ch->conn_nr;
}

bool
fake_chan_joined(const struct chan *ch, uint32_t nr)
{
	return ch->conn && nr > 0 && nr <= ch->conn_nr && ch->conn[nr] != CONN_GONE;
}

int
fake_chan_conns_leased(const struct chan *ch)
{
	int n = 0;

	for (uint32_t i = 1; ch->conn && i <= ch->conn_nr; i++)
		n += ch->conn[i] == CONN_LEASED;
	return n;
}

uint32_t
fc_conn_of(const struct token *tok)
{
	if (tok->kind != TOKEN_RC_SHIM)
		return 0;
	return (uint32_t)tok->id[0] << 24 | (uint32_t)tok->id[1] << 16 | (uint32_t)tok->id[2] << 8 |
	       tok->id[3];
}

enum chan_reason
fc_conn_take(struct chan *ch, uint32_t nr)
{
	if (!fake_chan_joined(ch, nr))
		return CHAN_NOT_CONNECTED;
	if (ch->conn[nr] == CONN_LEASED)
		return CHAN_CONNECTION_BUSY;
	ch->conn[nr] = CONN_LEASED;
	return CHAN_OK;
}

void
fc_conn_put(struct chan *ch, uint32_t nr, bool failed)
{
	if (nr == 0)
		return;
	check(ch->conn[nr] == CONN_LEASED);
	ch->conn[nr] = failed ? CONN_GONE : CONN_READY;
}
