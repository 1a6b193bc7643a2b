/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declines: a descriptor that cannot be used, and how its client is told so.  A decline is an S3 error of
 * status 501, which nobody takes for success (protocol.md 4.1).  Called by the operations, on the core's
 * thread.
 */
#include "req/machine.h"

#include <string.h>

/* What stands in the error's Message: many programs show nothing else. */
static const char *const sentence[CHAN_REASON_NR] = {
	[CHAN_DISABLED] = "RDMA is switched off on this server; send the request without a token.",
	[CHAN_NO_DEVICE] = "This server has no RDMA device; send the request without a token.",
	[CHAN_NO_RAIL] = "No RDMA port of this server can be used; send the request without a token.",
	[CHAN_UNREACHABLE] = "No route leads to the token's address; send the request without a token.",
	[CHAN_NEEDS_ROUTER] =
		"The token's address is in another InfiniBand subnet; send the request without a token.",
	[CHAN_FAMILY] = "Tokens of this kind are not served; send the request without a token.",
	[CHAN_NO_CHANNEL] = "This server has no RDMA channel; send the request without a token.",
	[CHAN_NOT_ALLOWED] = "The token's address is outside what this server may reach; send the request "
			     "without a token.",
	[CHAN_NOT_CONNECTED] =
		"The connection that the token names does not exist; connect again, or send the "
		"request without a token.",
	[CHAN_CONNECTION_BUSY] = "Another request has the connection that the token names; send the request "
				 "without a token.",
};

/* ---- kinds of tokens ---- */

static const enum stats_event family_event[TOKEN_KIND_NR] = {
	[TOKEN_RC_V1] = STATS_FAMILY_RC_V1,     [TOKEN_RC_SCAL] = STATS_FAMILY_RC_SCAL,
	[TOKEN_RC_SHIM] = STATS_FAMILY_RC_SHIM, [TOKEN_OFI] = STATS_FAMILY_OFI,
	[TOKEN_RC_BACK] = STATS_FAMILY_RC_BACK, [TOKEN_JSON] = STATS_FAMILY_JSON,
	[TOKEN_BASE64] = STATS_FAMILY_BASE64,   [TOKEN_OFF] = STATS_FAMILY_META,
};

void
req_declined_control(struct req *rq)
{
	struct stats_core *st = rq->rs->env.stats;

	if (rq->fault == FAULT_RC_OFF)
		stats_event(st, STATS_FAMILY_RC_V2);
	else if (rq->fault == FAULT_RDMA_NOT_SUPPORTED)
		stats_event(st, STATS_FAMILY_RC_SHIM);
	else
		return;
	rq->declined = true;
	rq->reason = CHAN_FAMILY;
	stats_decline(st, CHAN_FAMILY);
}

/* ---- clients that turn to HTTP on a 2xx only ---- */

static bool
agent_has(const struct req *rq, const char *part)
{
	const struct field *f = dialect_field(&rq->in, "user-agent", NULL);

	return f && memmem(f->value, f->value_len, part, strlen(part));
}

static bool
fits(const struct req *rq, const struct conf_decline_rule *r)
{
	const char *who = identity_access_key(&rq->identity);

	return dialect_wire_carries(rq->target.wire, conf_token_header[r->header]) &&
	       (!r->access_key || (who && strcmp(who, r->access_key) == 0)) &&
	       (!r->listen || strcmp(rq->listen->address, r->listen) == 0) &&
	       (!r->user_agent || agent_has(rq, r->user_agent));
}

/* ---- what the operations call ---- */

void
req_declined(struct req *rq)
{
	const struct conf_rdma *c = &rq->rs->env.conf->rdma;

	rq->declined = true;
	for (int i = 0; i < c->decline_2xx_nr && !rq->declined_2xx; i++)
		rq->declined_2xx = fits(rq, &c->decline_2xx[i]);
	rq->why = sentence[rq->reason];
	stats_decline(rq->rs->env.stats, (int)rq->reason);
	if (rq->target.token.kind == TOKEN_DC)
		stats_event(rq->rs->env.stats, STATS_DC_DECLINED);
	else if (rq->target.token.kind == TOKEN_RC_SHIM)
		stats_event(rq->rs->env.stats, STATS_RC_DECLINED);
	if (rq->reason == CHAN_FAMILY && rq->target.token.kind != TOKEN_DC)
		stats_event(rq->rs->env.stats, family_event[rq->target.token.kind]);
}
