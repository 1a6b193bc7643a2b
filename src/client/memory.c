/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory, and the windows on it that puts and gets open (protocol.md 2.1, items 113-114).  Any thread;
 * see the locks in client_int.h.
 */
#include "client/client_int.h"

#include "base/check.h"
#include "client/region.h"
#include "client/stage.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- with the ports ---- */

/* Who refused memory of a device, for the registration that this thread tried last: refusals(). */
static _Thread_local char refused[160];

const char *
refusals(void)
{
	return refused;
}

static bool
is_no_dmabuf(int error)
{
	return error == EOPNOTSUPP || error == EPROTONOSUPPORT || error == KERNEL_ENOTSUPP;
}

static struct ibv_mr *
register_with(const struct port *p, const struct wanted *w, int access)
{
	struct ibv_mr *mr;
	int error;

	if (w->fd < 0)
		return ibv_reg_mr(p->pd, w->ptr, w->size, access);
	/* An address in a token is the program's pointer. */
	mr = ibv_reg_dmabuf_mr(p->pd, w->offset, w->size, (uintptr_t)w->ptr, w->fd, access);
	error = errno;
	/* For a dma-buf of the program's, why it was refused says more than that there is no other way either. */
	if (mr || (!w->is_export && !is_no_dmabuf(error)))
		return mr;
	snprintf(refused, sizeof refused, "%.*s refuses the dma-buf: %s", (int)strcspn(p->name, " "), p->name,
		 error_text(error));
	return ibv_reg_mr(p->pd, w->ptr, w->size, access);
}

/* Registers with one port, or with all; 0 if one took it, else what the last said. */
static int
register_at(struct gantry *g, struct region *r, const struct wanted *w)
{
	int access = IBV_ACCESS_REMOTE_READ, good = 0, error = ENODEV;

	if (!(w->flags & GANTRY_READ_ONLY))
		access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	for (int i = 0; i < g->port_nr; i++) {
		if (w->only && w->only != &g->port[i])
			continue;
		r->mr[i] = register_with(&g->port[i], w, access);
		if (r->mr[i])
			good++;
		else
			error = errno ? errno : EIO;
	}
	return good ? 0 : error == KERNEL_ENOTSUPP ? -EOPNOTSUPP : -error;
}

/* The same; what a driver knows, as the dma-buf that it makes of it. */
static int
register_exported(struct gantry *g, struct region *r, const struct wanted *w)
{
	struct wanted exported = *w;
	const struct gpu_driver *d;
	struct gpu_range range;
	int e;

	*refused = 0;
	d = w->fd < 0 && w->is_device ? gpu_look(w->ptr, &range) : NULL;
	if (d && g->no_dmabuf)
		snprintf(refused, sizeof refused,
			 "dma-bufs are switched off (rdma_peer_type, CUFILE_DMABUF_ENABLE)");
	else if (d)
		exported.fd =
			gpu_dmabuf(d, &range, w->ptr, w->size, &exported.offset, refused, sizeof refused);
	exported.is_export = d != NULL;
	e = register_at(g, r, &exported);
	if (exported.is_export && exported.fd >= 0)
		close(exported.fd);
	return e;
}

/* Deregisters everywhere and frees what nobody can find any more.  0, or -errno: then it is kept for the end. */
int
region_free(struct gantry *g, struct region *r)
{
	int error = 0;

	slots_release(g, r);
	for (int i = 0; i < PORTS_MAX; i++) {
		int e = r->mr[i] ? ibv_dereg_mr(r->mr[i]) : 0;

		if (e)
			error = -e;
		else
			r->mr[i] = NULL;
	}
	if (error < 0)
		return error;
	pthread_mutex_destroy(&r->lock);
	free(r->ids);
	free(r);
	return 0;
}

void
region_keep(struct gantry *g, struct region *r)
{
	pthread_mutex_lock(&g->lock);
	list_push_tail(&g->regions, &r->link);
	pthread_mutex_unlock(&g->lock);
}

void
region_unkeep(struct gantry *g, struct region *r)
{
	pthread_mutex_lock(&g->lock);
	list_del(&r->link);
	pthread_mutex_unlock(&g->lock);
}

int
region_new(struct gantry *g, const struct wanted *w, struct region **ret_region)
{
	struct region *r;
	int e;

	if (!w->ptr || !w->size || (uintptr_t)w->ptr + w->size < (uintptr_t)w->ptr)
		return -EINVAL;
	if (w->size > GANTRY_REGISTER_MAX) /* item 114 */
		return -EFBIG;
	if (!g->port_nr || !is_mine(g))
		return -ENODEV;
	r = stripe_alloc(sizeof *r);
	if (!r)
		return -ENOMEM;
	*r = (struct region){ .ptr = w->ptr,
			      .size = w->size,
			      .flags = w->flags,
			      .is_device = w->is_device,
			      .users = 1,
			      .count = 1,
			      .is_temporary = w->only != NULL };
	pthread_mutex_init(&r->lock, NULL);
	list_init(&r->link);
	/* Before the registration, so that memory that changes meanwhile is not taken for what was registered. */
	if (w->is_device)
		r->ids = gpu_ids_of(w->ptr, w->size);
	e = register_exported(g, r, w);
	if (e < 0 && (w->flags & GANTRY_STAGED) && w->is_device && stage_can(g, w->ptr)) {
		r->is_staged = true;
		e = 0;
	}
	if (e < 0) {
		region_free(g, r);
		return e;
	}
	*ret_region = r;
	return 0;
}

struct region *
region_at(const struct gantry *g, const void *ptr, size_t size)
{
	uintptr_t start = (uintptr_t)ptr, end;

	return __builtin_add_overflow(start, size, &end) ? NULL : map_find(&g->map, start, end);
}

struct region *
region_get(struct gantry *g, const void *ptr, size_t size)
{
	struct region *r;

	if (!is_mine(g))
		return NULL;
	map_rdlock(g);
	r = region_at(g, ptr, size);
	if (r)
		r->users++;
	map_rdunlock(g);
	return r;
}

/* ---- memory that was freed and allocated again ---- */

/* Frees registrations that others have taken the place of, as their last users are gone. */
static void
sweep(struct gantry *g)
{
	struct list gone;

	list_init(&gone);
	pthread_mutex_lock(&g->lock);
	list_for_each_safe(pos, &g->regions)
	{
		struct region *r = container_of(pos, struct region, link);

		if (r->is_stale && !r->users) {
			list_del(pos);
			list_push_tail(&gone, pos);
		}
	}
	pthread_mutex_unlock(&g->lock);
	list_for_each_safe(pos, &gone)
	{
		struct region *r = container_of(pos, struct region, link);

		list_del(pos);
		if (region_free(g, r) < 0)
			region_keep(g, r);
	}
}

/* Puts fresh in the place of stale, whose tokens are dead then.  False: stale is not in the map any more. */
static bool
replace(struct gantry *g, struct region *stale, struct region *fresh)
{
	bool is_there;

	map_wrlock(g);
	is_there = map_replace(&g->map, stale, fresh);
	if (is_there) {
		fresh->count = stale->count;
		stale->is_stale = true;
		slots_release(g, stale);
	}
	map_wrunlock(g);
	return is_there;
}

/* Registers again what a registration is of, of which the caller is a user until it returns.  0 or -errno. */
static int
region_renew(struct gantry *g, struct region *stale)
{
	const struct wanted w = {
		.ptr = stale->ptr, .size = stale->size, .flags = stale->flags, .is_device = true, .fd = -1
	};
	struct region *fresh;
	int e = region_new(g, &w, &fresh);

	if (e == 0) {
		region_put(fresh);
		client_log(g, GANTRY_LOG_INFO,
			   "%zu bytes at %p registered again: the memory was freed and allocated meanwhile",
			   stale->size, stale->ptr);
		if (replace(g, stale, fresh))
			region_keep(g, stale);
		else if (region_free(g, fresh) < 0)
			region_keep(g, fresh);
	}
	return e;
}

int
region_take(struct gantry *g, const void *ptr, size_t size, struct region **ret_region)
{
	/* Another thread may be at the same, and memory change between. */
	for (int tries = 0; tries < 3; tries++) {
		struct region *r = region_get(g, ptr, size);
		enum gpu_same same = r ? gpu_ids_hold(r->ids, ptr, size) : GPU_SAME;
		int e;

		*ret_region = r;
		if (same == GPU_SAME)
			return 0;
		e = same == GPU_GONE ? -EFAULT : region_renew(g, r);
		region_put(r);
		sweep(g);
		*ret_region = NULL;
		/* Memory that no port takes now is as if it were not registered. */
		if (e < 0)
			return memory_kind(ptr, size, false) < 0 ? -EFAULT : 0;
	}
	return 0;
}

void
region_put(struct region *r)
{
	check(r->users > 0);
	r->users--;
}

void
regions_close(struct gantry *g)
{
	for (size_t i = 0; i < g->map.nr; i++)
		region_free(g, g->map.at[i].region);
	free(g->map.at);
	list_for_each_safe(pos, &g->regions) region_free(g, container_of(pos, struct region, link));
	slots_close(g);
}
