/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transports that this program knows, in the order in which they are preferred where two serve the same
 * family.  Another one is a file with its table, a declaration in rdma_int.h and a row here.
 */
#include "rdma/rdma_int.h"

#include <errno.h>
#include <string.h>

static const struct rdma_ep_ops *const transports[] = {
	&rdma_dc,
	&rdma_rc,
};
enum { TRANSPORTS = sizeof transports / sizeof *transports };
_Static_assert(TRANSPORTS <= RDMA_TRANSPORTS_MAX, "a device has room for all");

/* Adds to c->why. */
static void
note_why_not(struct rdma_context *c, const char *name, const char *why, int r)
{
	size_t at = strlen(c->why);

	/* -ENODEV: another kind of device, which needs no further explanation. */
	snprintf(c->why + at, sizeof c->why - at, "%sno %s transport: %s%s%s", at ? ", " : "", name, why,
		 r == -ENODEV ? "" : ": ", r == -ENODEV ? "" : strerror(-r));
}

/* Adds to c->why that a transport is switched off, and the setting that switches it on. */
static void
note_off(struct rdma_context *c, const struct rdma_ep_ops *ops)
{
	size_t at = strlen(c->why);

	snprintf(c->why + at, sizeof c->why - at, "%s%s only with %s", at ? ", " : "", ops->name,
		 ops->setting);
}

static bool
is_enabled(const struct rdma_ep_ops *ops, const struct conf_rdma *conf)
{
	return !ops->enabled || ops->enabled(conf);
}

void
context_probe(struct rdma_context *c)
{
	c->transport_nr = 0;
	c->why[0] = 0;
	for (int i = 0; i < TRANSPORTS; i++) {
		const char *why = "";
		int r;

		if (!is_enabled(transports[i], c->conf)) {
			note_off(c, transports[i]);
			continue;
		}
		r = transports[i]->probe(c, &why);
		if (r == 0)
			c->transport[c->transport_nr++] = transports[i];
		else
			note_why_not(c, transports[i]->name, why, r);
	}
}

bool
rdma_serves(const struct rdma *rd, enum token_kind kind)
{
	for (int i = 0; rd && i < rd->rail_nr; i++) {
		if (rail_transport_for(rd->rail[i], kind))
			return true;
	}
	for (int i = 0; i < TRANSPORTS; i++) {
		if (rdma_ep_serves(transports[i], kind) &&
		    (!transports[i]->enabled || (rd && transports[i]->enabled(&rd->conf))))
			return true;
	}
	return false;
}
