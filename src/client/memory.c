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
#include <sys/mman.h>
#include <unistd.h>

enum gantry_memory
gantry_memory_type(const void *ptr)
{
	uintptr_t page = (uintptr_t)ptr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	unsigned char vec;

	/* Device memory is not mapped into the CPU's address space; what is, is system memory to us. */
	if (!ptr || mincore((void *)page, 1, &vec) < 0)
		return GANTRY_MEM_INVALID;
	return GANTRY_MEM_SYSTEM;
}

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

/* Registers with one port, or with all (NULL); 0 if one took it, else what the last said. */
static int
register_at(struct gantry *g, struct region *r, const struct port *only)
{
	unsigned access = IBV_ACCESS_REMOTE_READ;
	int good = 0, error = ENODEV;

	if (!(r->flags & GANTRY_READ_ONLY))
		access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	for (int i = 0; i < g->port_nr; i++) {
		if (only && only != &g->port[i])
			continue;
		r->mr[i] = ibv_reg_mr(g->port[i].pd, r->ptr, r->size, access);
		if (r->mr[i])
			good++;
		else
			error = errno ? errno : EIO;
	}
	return good ? 0 : -error;
}

/* Deregisters everywhere and frees; 0 or -errno (then it is kept). */
static int region_free(struct gantry *g, struct region *r);

/* Registers, for one call with the port that it will use, else (NULL) with all.  0 or -errno.  *ret_region is on
 * the list and has one user. */
static int
region_new(struct gantry *g, void *ptr, size_t size, unsigned flags, const struct port *only,
	   struct region **ret_region)
{
	struct region *r;
	int e;

	if (!ptr || !size || (uintptr_t)ptr + size < (uintptr_t)ptr)
		return -EINVAL;
	if (size > GANTRY_REGISTER_MAX) /* item 114 */
		return -EFBIG;
	if (!g->port_nr)
		return -ENODEV;
	r = calloc(1, sizeof *r);
	if (!r)
		return -ENOMEM;
	*r = (struct region){
		.ptr = ptr, .size = size, .flags = flags, .users = 1, .is_temporary = only != NULL
	};
	list_init(&r->link);
	e = register_at(g, r, only);
	if (e < 0) {
		free(r);
		return e;
	}
	pthread_mutex_lock(&g->lock);
	if (only || !is_registered(g, ptr))
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

int
gantry_register(struct gantry *g, void *ptr, size_t size, unsigned flags)
{
	struct region *r;
	int e = region_new(g, ptr, size, flags, NULL, &r);

	if (e == 0)
		region_put(g, r);
	return e;
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

static int
mint(struct gantry *g, const struct region *r, const struct port *p, const struct target *t, const void *ptr,
     size_t size, char text[TOKEN_DC_LEN + 1])
{
	struct token tok = { .kind = TOKEN_DC,
			     .addr = (uintptr_t)ptr, /* the offset is in it: item 113 */
			     .size = size,
			     .lid = p->lid,
			     .dctn = t->dctn,
			     .have_gid = true };

	pthread_mutex_lock(&g->lock);
	const struct ibv_mr *mr = r->mr[p - g->port];

	if (mr)
		tok.rkey = mr->rkey;
	pthread_mutex_unlock(&g->lock);
	if (!mr)
		return -ENODEV;
	memcpy(tok.gid, p->gid, sizeof tok.gid);
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
		e = mint(g, r, p, p->shared, (const char *)ptr + offset, size, m->text);
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
window_memory(struct window *w, uint64_t server, const void *ptr, size_t size, bool is_put, char *why,
	      size_t why_len)
{
	struct gantry *g = w->g;
	int e;

	w->region = region_get(g, ptr, size);
	w->port = port_choose(g, w->region, server);
	if (!w->port) {
		snprintf(why, why_len, "no DC target: no port is left");
		return -EIO;
	}
	if (!w->region) {
		e = region_new(g, (void *)(uintptr_t)ptr, size, is_put ? GANTRY_READ_ONLY : 0, w->port,
			       &w->region);
		if (e < 0)
			snprintf(why, why_len, "registering %zu bytes with %s: %s", size, w->port->name,
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
window_open(struct gantry *g, uint64_t server, const void *ptr, size_t size, bool is_put, struct window *w,
	    char *why, size_t why_len)
{
	int e;

	*w = (struct window){ .g = g };
	e = window_memory(w, server, ptr, size, is_put, why, why_len);
	if (e == 0) {
		w->target = target_take(g, w->port);
		if (!w->target) {
			snprintf(why, why_len, "no DC target: %s", strerror(errno));
			e = -EIO;
		}
	}
	if (e == 0)
		e = mint(g, w->region, w->port, w->target, ptr, size, w->token);
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
	struct region *r = w->region;
	bool is_temporary = r->is_temporary;
	int e = 0;

	if (w->target && (clean ? target_give(g, w->port, w->target) : target_free(w->target)) < 0)
		e = is_temporary ? 0 : deregister_at(g, r, w->port);
	region_put(g, r);
	if (is_temporary && region_free(g, r) < 0)
		e = -EBUSY;
	*w = (struct window){ 0 };
	return e;
}
