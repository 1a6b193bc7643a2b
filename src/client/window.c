/* SPDX-License-Identifier: Apache-2.0 */
/* The windows on memory that puts and gets open (protocol.md 2.1, items 113-114).  Any thread; see the locks in client_int.h. */
#include "client/client_int.h"

#include "client/region.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

/* The region and the port of a call. */
static int
window_memory(struct window *w, uint64_t server, const struct memory *m, bool is_put, char *why,
	      size_t why_len)
{
	struct gantry *g = w->g;
	int e;

	w->region = m->region;
	w->port = port_take(g, w->region, server);
	if (!w->port) {
		snprintf(why, why_len, "no DC target: %s",
			 gantry_is_connected(g) ? "no port is left" : gantry_rdma_reason(g));
		return -EIO;
	}
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

int
window_open(struct gantry *g, uint64_t server, const struct memory *m, bool is_put, struct window *w,
	    char *why, size_t why_len)
{
	int e;

	*w = (struct window){ .g = g };
	e = window_memory(w, server, m, is_put, why, why_len);
	if (e == 0) {
		w->target = target_take(g, w->port);
		if (!w->target) {
			snprintf(why, why_len, "no DC target: %s", error_text(errno));
			e = -EIO;
		}
	}
	if (e == 0) {
		pthread_rwlock_rdlock(&g->map_lock);
		e = mint(g, w->region, w->port, w->target->dctn, m->ptr, m->size, w->token);
		pthread_rwlock_unlock(&g->map_lock);
	}
	if (e < 0 && w->port)
		port_settle(g, w->port, server, false);
	if (e < 0 && w->region)
		window_close(w, true);
	return e;
}

/* The last resort for memory that stays registered: away with its registration at this port. */
static int
deregister_at(struct gantry *g, struct region *r, const struct port *p)
{
	pthread_rwlock_wrlock(&g->map_lock);
	struct ibv_mr *mr = r->mr[p - g->port];

	r->mr[p - g->port] = NULL;
	pthread_rwlock_unlock(&g->map_lock);
	return mr && ibv_dereg_mr(mr) != 0 ? -EBUSY : 0;
}

int
window_close(struct window *w, bool clean)
{
	struct gantry *g = w->g;
	int e = 0;

	if (w->target && (clean ? target_give(g, w->port, w->target) : target_free(w->target)) < 0)
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
