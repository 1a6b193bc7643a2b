/* SPDX-License-Identifier: Apache-2.0 */
/* What programs register and deregister, and why it fails.  Any thread; see the locks in client_int.h. */
#include "client/client_int.h"

#include "client/region.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what a program registers ---- */

static _Thread_local char register_error[256];

const char *
gantry_register_error(void)
{
	return register_error;
}

/* Why memory of a device is not registered: who refused it, of those that were asked. */
static void
explain_device(const struct wanted *w, int e, char *out, size_t cap)
{
	const struct gpu_driver *d = gpu_of(w->ptr, &(enum gantry_memory){ 0 });

	snprintf(out, cap, "%s, %zu bytes: %s; %s: %s", memory_name(w->ptr, w->size), w->size,
		 *refusals() ? refusals() : "no dma-buf of it was given (gantry_register_dmabuf)",
		 d && d->peer ? d->peer : "peer memory (nvidia-peermem)", error_text(-e));
}

void
explain_registration(const struct gantry *g, const struct wanted *w, int e, char *out, size_t cap)
{
	if (e == -EEXIST)
		snprintf(out, cap, "registered already: a registration begins there");
	else if (e == -EINVAL && (!w->ptr || !w->size))
		snprintf(out, cap, "%zu bytes at %p: there is nothing to register", w->size, w->ptr);
	else if (e == -EFBIG)
		snprintf(out, cap, "%zu bytes: 4 GiB - 1 are the most", w->size);
	else if (e == -ENODEV)
		snprintf(out, cap, "no RDMA: %s", gantry_rdma_reason(g));
	else if (e == -ENOMEM && !w->is_device)
		snprintf(out, cap, "%zu bytes: %s; the limit of locked memory may be too small (ulimit -l)",
			 w->size, error_text(-e));
	else if (w->fd >= 0)
		snprintf(out, cap, "%zu bytes from byte %llu of the dma-buf %d: %s%s%s", w->size,
			 (unsigned long long)w->offset, w->fd, refusals(),
			 *refusals() ? "; peer memory: " : "", error_text(-e));
	else if (e == -EFAULT && memory_kind(w->ptr, w->size, true) < 0)
		explain_unmapped(w->ptr, w->size, out, cap);
	else if (w->is_device)
		explain_device(w, e, out, cap);
	else
		snprintf(out, cap, "%zu bytes: %s", w->size, error_text(-e));
}

/*
 * Finds out what memory it is, for which flags are given.  0 or -EFAULT.  Memory that the program says is a device's is
 * taken for that.
 */
static int
look_at(struct wanted *w)
{
	int kind = w->size && w->size <= GANTRY_REGISTER_MAX ? memory_kind(w->ptr, w->size, false) : 0;

	w->is_device = (w->flags & GANTRY_DEVICE) || kind == 1 || (kind < 0 && w->fd >= 0);
	return w->is_device ? 0 : kind;
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
		map_wrlock(g);
		e = count_up(g, w);
		map_wrunlock(g);
	}
	if (e == 0)
		e = region_new(g, w, &r);
	if (!r)
		return e;
	region_put(r);
	map_wrlock(g);
	e = !counts && begins_there(g, w->ptr) ? -EEXIST : map_add(&g->map, r);
	map_wrunlock(g);
	if (e < 0 && region_free(g, r) < 0)
		region_keep(g, r);
	return e;
}

static int
register_wanted(struct gantry *g, struct wanted *w)
{
	int e = look_at(w);

	if (e == 0)
		e = register_new(g, w);
	*register_error = 0;
	if (e < 0) {
		explain_registration(g, w, e, register_error, sizeof register_error);
		client_log(g, GANTRY_LOG_ERROR, "registering %p: %s", w->ptr, register_error);
	} else if (is_logged(g, GANTRY_LOG_INFO)) {
		client_log(g, GANTRY_LOG_INFO, "%zu bytes at %p registered%s%s%s", w->size, w->ptr,
			   e ? " again" : "", *refusals() && w->is_device ? "; " : "",
			   w->is_device ? refusals() : "");
	}
	return e < 0 ? e : 0;
}

int
gantry_register(struct gantry *g, void *ptr, size_t size, unsigned flags)
{
	struct wanted w = { .ptr = ptr, .size = size, .flags = flags, .fd = -1 };

	return register_wanted(g, &w);
}

int
gantry_register_dmabuf(struct gantry *g, void *ptr, size_t size, int fd, uint64_t offset, unsigned flags)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct wanted w = { .ptr = ptr, .size = size, .flags = flags, .fd = fd, .offset = offset };
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
	map_wrlock(g);
	e = map_add(&g->map, r);
	map_wrunlock(g);
	if (e < 0)
		region_keep(g, r);
}

int
gantry_deregister(struct gantry *g, void *ptr)
{
	struct list gone;
	int e = -ENOENT;

	list_init(&gone);
	map_wrlock(g);
	if (is_mine(g) && begins_there(g, ptr))
		e = count_down(g, map_from(&g->map, (uintptr_t)ptr), &gone);
	map_wrunlock(g);
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
					 : error_text(-e));
	else if (is_logged(g, GANTRY_LOG_INFO))
		client_log(g, GANTRY_LOG_INFO, "%p deregistered", ptr);
	return e;
}
