/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory and the tokens that name it (protocol.md 2.1, items 112-115).  Any thread; see the locks
 * in client_int.h.
 */
#include "client/client_int.h"

#include "base/check.h"
#include "token/token.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A token handed to the program. */
struct minted {
	struct list link;
	const struct region *region; /* goes with it */
	char text[TOKEN_DC_LEN + 1];
};

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
overlaps(const struct gantry *g, const char *ptr, size_t size)
{
	list_for_each(l, &g->regions)
	{
		const struct region *r = container_of(l, struct region, link);

		if (!r->is_temporary && ptr < r->ptr + r->size && r->ptr < ptr + size)
			return true;
	}
	return false;
}

static int
register_everywhere(struct gantry *g, struct region *r)
{
	unsigned access = IBV_ACCESS_REMOTE_READ;
	int good = 0, error = ENODEV;

	if (!(r->flags & GANTRY_READ_ONLY))
		access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	for (int i = 0; i < g->port_nr; i++) {
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

/* Registers.  0 or -errno.  *ret_region is on the list and has one user. */
static int
region_new(struct gantry *g, void *ptr, size_t size, unsigned flags, bool is_temporary,
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
		.ptr = ptr, .size = size, .flags = flags, .users = 1, .is_temporary = is_temporary
	};
	list_init(&r->link);
	e = register_everywhere(g, r);
	if (e < 0) {
		free(r);
		return e;
	}
	pthread_mutex_lock(&g->lock);
	if (is_temporary || !overlaps(g, ptr, size))
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

		if (!r->is_temporary && p >= r->ptr && p <= r->ptr + r->size &&
		    size <= (size_t)(r->ptr + r->size - p)) {
			r->users++;
			found = r;
			break;
		}
	}
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
	int e = region_new(g, ptr, size, flags, false, &r);

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

/* The next port, in turn, that this region could be registered with. */
static struct port *
rotate(struct gantry *g, const struct region *r)
{
	struct port *p = NULL;

	pthread_mutex_lock(&g->lock);
	unsigned at = g->next_port++;

	for (int i = 0; i < g->port_nr && !p; i++) {
		int k = (int)((at + (unsigned)i) % (unsigned)g->port_nr);

		if (r->mr[k])
			p = &g->port[k];
	}
	pthread_mutex_unlock(&g->lock);
	return p;
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

int
gantry_token_get(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		 char **ret_token, size_t *ret_len)
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
	p = rotate(g, r);
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
	/* The token does not hold the registration: it is good until that ends (item 115), which waits for no
	 * one. */
	m->region = r;
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

int
window_open(struct gantry *g, const void *ptr, size_t size, bool is_put, struct window *w, char *why,
	    size_t why_len)
{
	int e = 0;

	*w = (struct window){ .g = g, .region = region_get(g, ptr, size) };
	if (w->region && !is_put && (w->region->flags & GANTRY_READ_ONLY)) {
		snprintf(why, why_len, "the memory is registered for puts only");
		e = -EINVAL;
	} else if (!w->region) {
		e = region_new(g, (void *)(uintptr_t)ptr, size, is_put ? GANTRY_READ_ONLY : 0, true,
			       &w->region);
		if (e < 0)
			snprintf(why, why_len, "registering %zu bytes: %s", size, strerror(-e));
	}
	if (e == 0) {
		w->port = rotate(g, w->region);
		w->target = w->port ? target_take(g, w->port) : NULL;
		if (!w->target) {
			snprintf(why, why_len, "no DC target: %s",
				 w->port ? strerror(errno) : "no port is left");
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
