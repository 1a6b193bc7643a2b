/* SPDX-License-Identifier: Apache-2.0 */
/* The windows on memory that puts and gets open (protocol.md 2.1, items 113-114).  Any thread; see the locks in client_int.h. */
#include "client/client_int.h"

#include "client/rc.h"
#include "client/region.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

/* The port and the transport. */
static int
window_way(struct window *w, uint64_t server, const struct memory *m, char *why, size_t why_len)
{
	struct gantry *g = w->g;

	w->port = port_take(g, m->region, server);
	if (!w->port) {
		snprintf(why, why_len, "no port for the token: %s",
			 gantry_is_connected(g) ? "no port is left" : gantry_rdma_reason(g));
		return -EIO;
	}
	w->transport = transport_take(g, w->port, server, why, why_len);
	return w->transport == GANTRY_TRANSPORT_AUTO ? -EOPNOTSUPP : 0;
}

/* The region. */
static int
window_memory(struct window *w, const struct memory *m, bool is_put, char *why, size_t why_len)
{
	struct gantry *g = w->g;
	int e;

	w->region = m->region;
	if (!w->region) {
		const struct wanted wanted = { .ptr = m->ptr,
					       .size = m->size,
					       .flags = is_put ? GANTRY_READ_ONLY : 0,
					       .is_device = m->is_device,
					       .fd = -1,
					       .only = w->port };

		e = region_new(g, &wanted, &w->region);
		w->owns_region = e == 0;
		if (e == 0)
			region_keep(g, w->region);
		if (e < 0)
			explain_registration(g, &wanted, e, why, why_len);
		return e;
	}
	if (!is_put && (w->region->flags & GANTRY_READ_ONLY)) {
		snprintf(why, why_len, "the memory is registered for puts only");
		return -EINVAL;
	}
	return 0;
}

/* The target, or the connection. */
static int
window_target(struct call *c, struct window *w, bool is_put, char *why, size_t why_len)
{
	if (w->transport == GANTRY_TRANSPORT_RC)
		return rc_take(c, w->port, is_put, &w->target, &w->is_final, why, why_len);
	w->target = target_take(w->g, w->port);
	if (w->target)
		return 0;
	snprintf(why, why_len, "no DC target: %s", error_text(errno));
	return -EIO;
}

static int
window_token(struct window *w, const struct memory *m)
{
	struct gantry *g = w->g;
	const struct ibv_mr *mr;
	int e = 0;

	map_rdlock(g);
	mr = w->region->mr[w->port - g->port];
	if (!w->target->conn)
		e = mint(g, w->region, w->port, w->target->dctn, m->ptr, m->size, w->token);
	else if (mr)
		rc_mint(w->target, m->ptr, m->size, mr->rkey, w->token, sizeof w->token);
	else
		e = -ENODEV;
	map_rdunlock(g);
	return e;
}

int
window_open(struct call *c, uint64_t server, bool is_put, struct window *w, char *why, size_t why_len)
{
	const struct memory *m = &c->memory;
	int e;

	*w = (struct window){ .g = c->g };
	e = window_way(w, server, m, why, why_len);
	if (e == 0)
		e = window_memory(w, m, is_put, why, why_len);
	if (e == 0)
		e = window_target(c, w, is_put, why, why_len);
	if (e == 0)
		e = window_token(w, m);
	if (e < 0 && w->port)
		port_settle(c->g, w->port, server, false);
	if (e < 0) {
		struct window failed = *w;

		window_close(&failed, true);
		/* The caller looks at the way that was taken. */
		w->region = NULL;
		w->target = NULL;
	}
	return e;
}

/* The last resort for memory that stays registered: away with its registration at this port. */
static int
deregister_at(struct gantry *g, struct region *r, const struct port *p)
{
	map_wrlock(g);
	struct ibv_mr *mr = r->mr[p - g->port];

	r->mr[p - g->port] = NULL;
	map_wrunlock(g);
	return mr && ibv_dereg_mr(mr) != 0 ? -EBUSY : 0;
}

static int
give_target(struct window *w, bool clean)
{
	if (w->target->conn)
		return rc_give(w->g, w->target, clean);
	return clean ? target_give(w->g, w->port, w->target) : target_free(w->target);
}

int
window_close(struct window *w, bool clean)
{
	struct gantry *g = w->g;
	int e = 0;

	if (w->target && give_target(w, clean) < 0)
		e = w->owns_region ? 0 : deregister_at(g, w->region, w->port);
	if (w->owns_region) {
		region_put(w->region);
		region_unkeep(g, w->region);
		if (region_free(g, w->region) < 0) {
			region_keep(g, w->region);
			e = -EBUSY;
		}
	}
	*w = (struct window){ 0 };
	return e;
}
