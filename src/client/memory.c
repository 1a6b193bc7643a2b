/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory and the tokens that name it (protocol.md 2.1, items 112-115).  Any thread; see the locks
 * in client_int.h.
 */
#include "client/client_int.h"

#include "base/check.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool
is_registered(const struct gantry *g, const char *ptr)
{
	list_for_each(l, &g->regions)
	{
		const struct region *r = container_of(l, struct region, link);

		if (!r->is_temporary && r->ptr == ptr)
			return true;
	}
	return false;
}

/* What is to be registered. */
struct wanted {
	void *ptr;
	size_t size;
	unsigned flags;
	bool is_device;
	int fd; /* of a dma-buf, or -1 */
	uint64_t offset;
	const struct port *only; /* for one call; NULL: for all ports */
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

/* Deregisters everywhere and frees; 0 or -errno (then it is kept). */
static int region_free(struct gantry *g, struct region *r);

/* Makes a registration.  0 or -errno.  *ret_region is on the list and has one user. */
static int
region_new(struct gantry *g, const struct wanted *w, struct region **ret_region)
{
	struct region *r;
	int e;

	if (!w->ptr || !w->size || (uintptr_t)w->ptr + w->size < (uintptr_t)w->ptr)
		return -EINVAL;
	if (w->size > GANTRY_REGISTER_MAX) /* item 114 */
		return -EFBIG;
	if (!g->port_nr)
		return -ENODEV;
	r = calloc(1, sizeof *r);
	if (!r)
		return -ENOMEM;
	*r = (struct region){ .ptr = w->ptr,
			      .size = w->size,
			      .flags = w->flags,
			      .is_device = w->is_device,
			      .users = 1,
			      .is_temporary = w->only != NULL };
	list_init(&r->link);
	e = register_at(g, r, w);
	if (e < 0) {
		free(r);
		return e;
	}
	pthread_mutex_lock(&g->lock);
	if (w->only || !is_registered(g, w->ptr))
		list_push_tail(&g->regions, &r->link);
	else
		e = -EEXIST;
	pthread_mutex_unlock(&g->lock);
	if (e < 0) {
		region_free(g, r);
		return e;
	}
	*ret_region = r;
	return 0;
}

struct region *
region_get(struct gantry *g, const void *ptr, size_t size)
{
	const char *p = ptr;
	struct region *found = NULL;

	pthread_mutex_lock(&g->lock);
	list_for_each(l, &g->regions)
	{
		struct region *r = container_of(l, struct region, link);

		if (r->is_temporary || p < r->ptr || p > r->ptr + r->size ||
		    size > (size_t)(r->ptr + r->size - p))
			continue;
		/* Of several the first that can be written to, else the first. */
		if (!found || (found->flags & GANTRY_READ_ONLY))
			found = r;
		if (!(found->flags & GANTRY_READ_ONLY))
			break;
	}
	if (found)
		found->users++;
	pthread_mutex_unlock(&g->lock);
	return found;
}

void
region_put(struct gantry *g, struct region *r)
{
	pthread_mutex_lock(&g->lock);
	check(r->users > 0);
	r->users--;
	pthread_mutex_unlock(&g->lock);
}

static int
region_free(struct gantry *g, struct region *r)
{
	int error = 0;

	pthread_mutex_lock(&g->lock);
	list_del(&r->link);
	list_for_each_safe(l, &g->tokens)
	{
		struct minted *m = container_of(l, struct minted, link);

		if (m->region == r) {
			list_del(l);
			free(m);
		}
	}
	pthread_mutex_unlock(&g->lock);
	for (int i = 0; i < PORTS_MAX; i++) {
		int e = r->mr[i] ? ibv_dereg_mr(r->mr[i]) : 0;

		if (e)
			error = -e;
		else
			r->mr[i] = NULL;
	}
	if (error < 0) {
		pthread_mutex_lock(&g->lock);
		list_push_tail(&g->regions, &r->link);
		pthread_mutex_unlock(&g->lock);
		return error;
	}
	for (int i = 0; r->recent && i < REGION_TEXTS; i++)
		free(r->recent[i]);
	free(r->recent);
	free(r);
	return 0;
}

void
regions_close(struct gantry *g)
{
	struct list *l;

	while ((l = list_pop(&g->tokens)))
		free(container_of(l, struct minted, link));
	list_for_each_safe(pos, &g->regions) region_free(g, container_of(pos, struct region, link));
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
	else if (e == -EFBIG)
		snprintf(out, cap, "%zu bytes: 4 GiB - 1 are the most", w->size);
	else if (e == -ENODEV)
		snprintf(out, cap, "no RDMA: %s", g->why_no_rdma);
	else if (e == -ENOMEM)
		snprintf(out, cap, "%zu bytes: %s; the limit of locked memory may be too small (ulimit -l)",
			 w->size, strerror(-e));
	else if (w->fd >= 0)
		snprintf(out, cap, "%zu bytes from byte %llu of the dma-buf %d: %s", w->size,
			 (unsigned long long)w->offset, w->fd, strerror(-e));
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

static int
register_wanted(struct gantry *g, const struct wanted *w)
{
	struct region *r;
	int e = region_new(g, w, &r);

	*register_error = 0;
	if (e == 0)
		region_put(g, r);
	else
		explain_register(g, w, e);
	return e;
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

int
gantry_deregister(struct gantry *g, void *ptr)
{
	struct region *found = NULL;
	int e = -ENOENT;

	pthread_mutex_lock(&g->lock);
	list_for_each(l, &g->regions)
	{
		struct region *r = container_of(l, struct region, link);

		if (!r->is_temporary && r->ptr == ptr) {
			e = r->users ? -EBUSY : 0;
			found = r;
			break;
		}
	}
	/* Off the list at once, so that no new call finds it. */
	if (e == 0) {
		list_del(&found->link);
		list_init(&found->link);
	}
	pthread_mutex_unlock(&g->lock);
	return e < 0 ? e : region_free(g, found);
}

/* Writes a token; t: NULL for the port's shared target. */
static int
mint(struct gantry *g, const struct region *r, const struct port *p, const struct target *t, const void *ptr,
     size_t size, char text[TOKEN_DC_LEN + 1])
{
	struct token tok = { .kind = TOKEN_DC,
			     .addr = (uintptr_t)ptr, /* the offset is in it: item 113 */
			     .size = size,
			     .have_gid = true };

	pthread_mutex_lock(&g->lock);
	const struct ibv_mr *mr = r->mr[p - g->port];

	if (mr)
		tok.rkey = mr->rkey;
	tok.dctn = t ? t->dctn : p->shared->dctn;
	tok.lid = p->lid;
	memcpy(tok.gid, p->gid, sizeof tok.gid);
	pthread_mutex_unlock(&g->lock);
	if (!mr)
		return -ENODEV;
	return token_format(&tok, text);
}

/* Makes a token of registered memory.  0 with its region, which has one user more, or -errno. */
static int
token_new(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
	  struct minted **ret_m, struct region **ret_region)
{
	struct region *r;
	struct minted *m;
	struct port *p;
	int e;

	if (!ptr || !size || (op != GANTRY_OP_GET && op != GANTRY_OP_PUT) || offset + size < offset)
		return -EINVAL;
	if (size > GANTRY_REGISTER_MAX)
		return -EFBIG;
	if (!g->port_nr)
		return -ENODEV;
	/* ptr itself must be registered as well, as with cuObjClient: an offset alone must not reach into
	 * other memory. */
	r = region_get(g, ptr, offset + size);
	if (!r)
		return -ENOENT;
	m = calloc(1, sizeof *m);
	p = port_choose(g, r, 0);
	if (op == GANTRY_OP_GET && (r->flags & GANTRY_READ_ONLY))
		e = -EINVAL;
	else if (!m || !p)
		e = m ? -ENODEV : -ENOMEM;
	else
		e = mint(g, r, p, NULL, (const char *)ptr + offset, size, m->text);
	if (e < 0) {
		region_put(g, r);
		free(m);
		return e;
	}
	m->region = r;
	*ret_m = m;
	*ret_region = r;
	return 0;
}

int
gantry_token_get(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		 char **ret_token, size_t *ret_len)
{
	struct region *r;
	struct minted *m;
	int e = token_new(g, ptr, size, offset, op, &m, &r);

	if (e < 0)
		return e;
	/* The token does not hold the registration: it is good until that ends (item 115), which waits for no
	 * one. */
	pthread_mutex_lock(&g->lock);
	r->users--;
	list_push_tail(&g->tokens, &m->link);
	pthread_mutex_unlock(&g->lock);
	*ret_token = m->text;
	if (ret_len)
		*ret_len = sizeof m->text; /* item 112: with the NUL */
	return 0;
}

int
token_for_callback(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		   const char **ret_token, size_t *ret_len)
{
	struct region *r;
	struct minted *m, *oldest = NULL;
	int e = token_new(g, ptr, size, offset, op, &m, &r);

	if (e < 0)
		return e;
	pthread_mutex_lock(&g->lock);
	r->users--;
	if (!r->recent)
		r->recent = calloc(REGION_TEXTS, sizeof(struct minted *));
	if (r->recent) {
		struct minted **at = &r->recent[r->recent_at++ % REGION_TEXTS];

		oldest = *at;
		*at = m;
	}
	e = r->recent ? 0 : -ENOMEM;
	pthread_mutex_unlock(&g->lock);
	free(e < 0 ? m : oldest);
	if (e == 0) {
		*ret_token = m->text;
		*ret_len = sizeof m->text;
	}
	return e;
}

int
gantry_token_put(struct gantry *g, char *token)
{
	struct minted *found = NULL;

	pthread_mutex_lock(&g->lock);
	list_for_each(l, &g->tokens)
	{
		struct minted *m = container_of(l, struct minted, link);

		if (m->text == token) {
			found = m;
			list_del(&m->link);
			break;
		}
	}
	pthread_mutex_unlock(&g->lock);
	free(found);
	return found ? 0 : -ENOENT;
}

/* The region and the port of a call. */
static int
window_memory(struct window *w, uint64_t server, const struct memory *m, bool is_put, char *why,
	      size_t why_len)
{
	struct gantry *g = w->g;
	int e;

	w->region = m->region;
	w->port = port_choose(g, w->region, server);
	if (!w->port) {
		snprintf(why, why_len, "no DC target: no port is left");
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
	if (e == 0)
		e = mint(g, w->region, w->port, w->target, m->ptr, m->size, w->token);
	if (e < 0 && w->region)
		window_close(w, true);
	return e;
}

/* The last resort for memory that stays registered: away with its registration at this port. */
static int
deregister_at(struct gantry *g, struct region *r, const struct port *p)
{
	pthread_mutex_lock(&g->lock);
	struct ibv_mr *mr = r->mr[p - g->port];

	r->mr[p - g->port] = NULL;
	pthread_mutex_unlock(&g->lock);
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
		region_put(g, w->region);
		if (region_free(g, w->region) < 0)
			e = -EBUSY;
	}
	*w = (struct window){ 0 };
	return e;
}
