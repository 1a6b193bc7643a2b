/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory, and the windows on it that puts and gets open (protocol.md 2.1, items 113-114).  Any thread;
 * see the locks in client_int.h.
 */
#include "client/client_int.h"

#include "base/check.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is to be registered. */
struct wanted {
	void *ptr;
	size_t size;
	unsigned flags;
	bool is_device;
	int fd; /* of a dma-buf, or -1 */
	uint64_t offset;
	struct port *only; /* for one call; NULL: for all ports */
};

static struct ibv_mr *
register_with(const struct port *p, const struct wanted *w, int access)
{
	struct ibv_mr *mr;

	if (w->fd < 0)
		return ibv_reg_mr(p->pd, w->ptr, w->size, access);
	/* An address in a token is the program's pointer. */
	mr = ibv_reg_dmabuf_mr(p->pd, w->offset, w->size, (uintptr_t)w->ptr, w->fd, access);
	if (!mr && (errno == EOPNOTSUPP || errno == EPROTONOSUPPORT))
		mr = ibv_reg_mr(p->pd, w->ptr, w->size, access);
	return mr;
}

/* Why CUDA did not export the memory that this thread registered last. */
static _Thread_local char export_error[128];

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
	return good ? 0 : -error;
}

/* The same; what CUDA knows, as the dma-buf that it makes of it. */
static int
register_exported(struct gantry *g, struct region *r, const struct wanted *w)
{
	struct wanted exported = *w;
	struct gpu_range range;
	int e;

	*export_error = 0;
	if (w->fd >= 0 || !w->is_device || !gpu_look(w->ptr, &range))
		return register_at(g, r, w);
	if (g->no_dmabuf)
		snprintf(export_error, sizeof export_error,
			 "dma-bufs are switched off (rdma_peer_type, "
			 "CUFILE_DMABUF_ENABLE)");
	else
		exported.fd = gpu_dmabuf(&range, w->ptr, w->size, &exported.offset, export_error,
					 sizeof export_error);
	if (exported.fd < 0)
		return register_at(g, r, w);
	e = register_at(g, r, &exported);
	if (e < 0)
		snprintf(export_error, sizeof export_error, "the dma-buf that CUDA exported: %s",
			 strerror(-e));
	close(exported.fd);
	return e;
}

/* Deregisters everywhere and frees what nobody can find any more.  0, or -errno: then it is kept for the end. */
static int
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
	free(r);
	return 0;
}

static void
keep(struct gantry *g, struct region *r)
{
	pthread_mutex_lock(&g->lock);
	list_push_tail(&g->regions, &r->link);
	pthread_mutex_unlock(&g->lock);
}

static void
unkeep(struct gantry *g, struct region *r)
{
	pthread_mutex_lock(&g->lock);
	list_del(&r->link);
	pthread_mutex_unlock(&g->lock);
}

/* Makes a registration that has one user and that nobody finds yet.  0 or -errno. */
static int
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
	r = calloc(1, sizeof *r);
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
	e = register_exported(g, r, w);
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
	pthread_rwlock_rdlock(&g->map_lock);
	r = region_at(g, ptr, size);
	if (r)
		r->users++;
	pthread_rwlock_unlock(&g->map_lock);
	return r;
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

/* ---- what a program registers ---- */

static _Thread_local char register_error[256];

const char *
gantry_register_error(void)
{
	return register_error;
}

/* Says why it failed, and what would help. */
static void
explain_register(const struct gantry *g, const struct wanted *w, int e)
{
	char *out = register_error;
	const size_t cap = sizeof register_error;

	if (e == -EEXIST)
		snprintf(out, cap, "registered already: a registration begins there");
	else if (e == -EINVAL && (!w->ptr || !w->size))
		snprintf(out, cap, "%zu bytes at %p: there is nothing to register", w->size, w->ptr);
	else if (e == -EFBIG)
		snprintf(out, cap, "%zu bytes: 4 GiB - 1 are the most", w->size);
	else if (e == -ENODEV)
		snprintf(out, cap, "no RDMA: %s", gantry_rdma_reason(g));
	else if (e == -ENOMEM)
		snprintf(out, cap, "%zu bytes: %s; the limit of locked memory may be too small (ulimit -l)",
			 w->size, strerror(-e));
	else if (w->fd >= 0)
		snprintf(out, cap, "%zu bytes from byte %llu of the dma-buf %d: %s", w->size,
			 (unsigned long long)w->offset, w->fd, strerror(-e));
	else if (w->is_device && *export_error)
		snprintf(out, cap,
			 "%s, %zu bytes: %s; nor is its peer-memory driver there (modprobe nvidia-peermem): "
			 "%s",
			 memory_name(w->ptr, w->size), w->size, export_error, strerror(-e));
	else if (w->is_device)
		snprintf(out, cap,
			 "%s, %zu bytes: %s: its device's peer-memory driver (nvidia-peermem) is not there; "
			 "a dma-buf "
			 "of it can be registered (gantry_register_dmabuf)",
			 memory_name(w->ptr, w->size), w->size, strerror(-e));
	else
		snprintf(out, cap, "%zu bytes: %s", w->size, strerror(-e));
}

/* Will the CPU have to leave it alone? */
static bool
is_device(const void *ptr, size_t size, unsigned flags)
{
	return (flags & GANTRY_DEVICE) || (size <= GANTRY_REGISTER_MAX && !cpu_reaches(ptr, size));
}

/* Adds one to the count of a registration that begins there and holds all of it.  Locked for writing. */
static bool
count_up(struct gantry *g, const struct wanted *w)
{
	for (size_t i = map_from(&g->map, (uintptr_t)w->ptr); i < g->map.nr; i++) {
		struct region *r = g->map.at[i].region;

		if (r->ptr != w->ptr)
			break;
		if (r->size >= w->size && (!(r->flags & GANTRY_READ_ONLY) || (w->flags & GANTRY_READ_ONLY))) {
			r->count++;
			return true;
		}
	}
	return false;
}

static bool
begins_there(const struct gantry *g, const void *ptr)
{
	size_t i = map_from(&g->map, (uintptr_t)ptr);

	return i < g->map.nr && g->map.at[i].region->ptr == ptr;
}

/* 0, or 1 where one that is there was counted up, or -errno. */
static int
register_new(struct gantry *g, const struct wanted *w)
{
	bool counts = w->flags & GANTRY_COUNTED;
	struct region *r = NULL;
	int e = 0;

	if (counts) {
		pthread_rwlock_wrlock(&g->map_lock);
		e = count_up(g, w);
		pthread_rwlock_unlock(&g->map_lock);
	}
	if (e == 0)
		e = region_new(g, w, &r);
	if (!r)
		return e;
	region_put(r);
	pthread_rwlock_wrlock(&g->map_lock);
	e = !counts && begins_there(g, w->ptr) ? -EEXIST : map_add(&g->map, r);
	pthread_rwlock_unlock(&g->map_lock);
	if (e < 0 && region_free(g, r) < 0)
		keep(g, r);
	return e;
}

static int
register_wanted(struct gantry *g, const struct wanted *w)
{
	int e = register_new(g, w);

	*register_error = 0;
	if (e < 0) {
		explain_register(g, w, e);
		client_log(g, GANTRY_LOG_ERROR, "registering %p: %s", w->ptr, register_error);
	} else if (is_told(g, GANTRY_LOG_INFO)) {
		client_log(g, GANTRY_LOG_INFO, "%zu bytes at %p registered%s", w->size, w->ptr,
			   e ? " again" : "");
	}
	return e < 0 ? e : 0;
}

int
gantry_register(struct gantry *g, void *ptr, size_t size, unsigned flags)
{
	const struct wanted w = {
		.ptr = ptr, .size = size, .flags = flags, .is_device = is_device(ptr, size, flags), .fd = -1
	};

	return register_wanted(g, &w);
}

int
gantry_register_dmabuf(struct gantry *g, void *ptr, size_t size, int fd, uint64_t offset, unsigned flags)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const struct wanted w = { .ptr = ptr,
				  .size = size,
				  .flags = flags,
				  .is_device = is_device(ptr, size, flags),
				  .fd = fd,
				  .offset = offset };
	off_t end;

	if (((uintptr_t)ptr ^ offset) & (page - 1)) {
		snprintf(register_error, sizeof register_error,
			 "the pointer is %llu bytes into a page, and offset %llu of the dma-buf is not",
			 (unsigned long long)((uintptr_t)ptr & (page - 1)), (unsigned long long)offset);
		return -EINVAL;
	}
	/* Drivers say no more than "invalid argument". */
	end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (end >= 0 && (offset > (uint64_t)end || size > (uint64_t)end - offset)) {
		snprintf(register_error, sizeof register_error,
			 "%zu bytes from byte %llu on: the dma-buf has %lld bytes", size,
			 (unsigned long long)offset, (long long)end);
		return -EINVAL;
	}
	if (fd < 0 || (end < 0 && errno == EBADF)) {
		snprintf(register_error, sizeof register_error, "%d is no open descriptor", fd);
		return -EBADF;
	}
	return register_wanted(g, &w);
}

/* Takes a count back from what begins at entry i, or, with the last, all of it from the map to *ret_list.  Locked. */
static int
count_down(struct gantry *g, size_t i, struct list *ret_list)
{
	void *ptr = g->map.at[i].region->ptr;
	struct region *counted = NULL;
	unsigned sum = 0, users = 0;

	for (size_t k = i; k < g->map.nr && g->map.at[k].region->ptr == ptr; k++) {
		struct region *r = g->map.at[k].region;

		if (r->count)
			counted = r;
		sum += r->count;
		users += r->users;
	}
	if (sum > 1) {
		counted->count--;
		return 0;
	}
	if (users)
		return -EBUSY;
	while (i < g->map.nr && g->map.at[i].region->ptr == ptr) {
		struct region *r = g->map.at[i].region;

		list_push_tail(ret_list, &r->link);
		map_remove(&g->map, r);
		/* Here, so that nobody gives one back meanwhile. */
		slots_release(g, r);
	}
	return 0;
}

/* What the driver did not let go is there as before. */
static void
put_back(struct gantry *g, struct region *r)
{
	int e;

	r->count = 1;
	pthread_rwlock_wrlock(&g->map_lock);
	e = map_add(&g->map, r);
	pthread_rwlock_unlock(&g->map_lock);
	if (e < 0)
		keep(g, r);
}

int
gantry_deregister(struct gantry *g, void *ptr)
{
	struct list gone;
	int e = -ENOENT;

	list_init(&gone);
	pthread_rwlock_wrlock(&g->map_lock);
	if (is_mine(g) && begins_there(g, ptr))
		e = count_down(g, map_from(&g->map, (uintptr_t)ptr), &gone);
	pthread_rwlock_unlock(&g->map_lock);
	/* Nobody finds them any more. */
	list_for_each_safe(l, &gone)
	{
		struct region *r = container_of(l, struct region, link);
		int r_e;

		list_del(l);
		r_e = region_free(g, r);
		if (r_e < 0) {
			put_back(g, r);
			e = r_e;
		}
	}
	if (e < 0)
		client_log(g, GANTRY_LOG_ERROR, "deregistering %p: %s", ptr,
			   e == -ENOENT  ? "it is not registered"
			   : e == -EBUSY ? "an operation uses the memory"
					 : strerror(-e));
	else if (is_told(g, GANTRY_LOG_INFO))
		client_log(g, GANTRY_LOG_INFO, "%p deregistered", ptr);
	return e;
}

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
			keep(g, w->region);
		if (e < 0 && m->is_device)
			snprintf(why, why_len,
				 "%s: %s registers it only with a peer-memory driver, or as a dma-buf "
				 "(gantry_register_dmabuf)",
				 memory_name(m->ptr, m->size), w->port->name);
		else if (e < 0)
			snprintf(why, why_len, "registering %zu bytes with %s: %s", m->size, w->port->name,
				 strerror(-e));
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
			snprintf(why, why_len, "no DC target: %s", strerror(errno));
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
		unkeep(g, w->region);
		if (region_free(g, w->region) < 0) {
			keep(g, w->region);
			e = -EBUSY;
		}
	}
	*w = (struct window){ 0 };
	return e;
}
