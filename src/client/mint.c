/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that name registered memory (protocol.md 2.1, items 112-115), for programs and for their callbacks.  Any thread;
 * see the locks in client_int.h.  A token takes a look at the map, a slot of its registration and two counts, and no
 * lock that tokens of another registration want but for reading.
 */
#include "client/client_int.h"

#include "base/clock.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#define RENEW_TRIES 3 /* while memory is freed and allocated */

int
mint(const struct gantry *g, const struct region *r, const struct port *p, uint32_t dctn, const void *ptr,
     size_t size, char text[TOKEN_DC_LEN + 1])
{
	struct token tok = { .kind = TOKEN_DC,
			     .addr = (uintptr_t)ptr, /* the offset is in it: item 113 */
			     .size = size,
			     .dctn = dctn,
			     .lid = p->lid,
			     .have_gid = true };
	const struct ibv_mr *mr = r->mr[p - g->port];

	if (!mr)
		return -ENODEV;
	tok.rkey = mr->rkey;
	memcpy(tok.gid, p->gid, sizeof tok.gid);
	return token_format(&tok, text);
}

/* ---- targets ---- */

/* Chooses one that no token out names, else the one with the fewest.  *ret_room: a place for another, else -1. */
static int
shared_choose(const struct port *p, int *ret_room)
{
	unsigned least = 0;
	int chosen = -1;

	*ret_room = -1;
	for (int i = 0; i < SHARED_MAX; i++) {
		if (!p->shared[i]) {
			*ret_room = *ret_room < 0 ? i : *ret_room;
			continue;
		}
		unsigned out = p->shared[i]->out;

		if (chosen < 0 || out < least) {
			chosen = i;
			least = out;
		}
		if (!out) {
			*ret_room = -1;
			break;
		}
	}
	return chosen;
}

/* Puts a target more where there is room.  0 or -errno. */
static int
shared_add(struct gantry *g, struct port *p)
{
	struct target *t = target_new(p);
	int e = t ? 0 : -errno;

	if (!t)
		return e;
	pthread_rwlock_wrlock(&g->map_lock);
	for (int i = 0; t && i < SHARED_MAX; i++) {
		if (!p->shared[i]) {
			p->shared[i] = t;
			t = NULL;
		}
	}
	pthread_rwlock_unlock(&g->map_lock);
	return t ? target_end(g, t) : 0;
}

/* ---- a token ---- */

static int
token_at(struct gantry *g, struct region *r, struct port *p, int shared, const void *at, size_t size,
	 struct token_slot **ret_slot)
{
	struct token_slot *s = slot_take(g, r);
	int e;

	if (!s)
		return -ENOMEM;
	s->dctn = p->shared[shared]->dctn;
	s->port = (uint8_t)(p - g->port);
	s->shared = (uint8_t)shared;
	e = mint(g, r, p, s->dctn, at, size, s->text);
	if (e < 0) {
		slot_give(g, s);
		return e;
	}
	p->shared[shared]->out++;
	*ret_slot = s;
	return 0;
}

/* Tries once.  -ESTALE: the memory is another than was registered.  *ret_wants: the port that ought to have a target more first, which may_want allows to say. */
static int
token_try(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op, bool may_want,
	  struct port **ret_wants, bool holds, struct region **ret_region, struct token_slot **ret_slot)
{
	/* ptr itself must be registered as well, as with cuObjClient: an offset alone must not reach into
	 * other memory. */
	struct region *r = region_at(g, ptr, offset + size);
	int shared, room, e;
	struct port *p;

	*ret_wants = NULL;
	if (!r)
		return -ENOENT;
	if (op == GANTRY_OP_GET && (r->flags & GANTRY_READ_ONLY))
		return -EINVAL;
	if (r->is_staged)
		return -EOPNOTSUPP;
	if (gpu_ids_hold(r->ids, (const char *)ptr + offset, size) != GPU_SAME)
		return -ESTALE;
	p = port_choose(g, r);
	if (!p)
		return gantry_is_connected(g) ? -ENODEV : -ENETDOWN;
	shared = shared_choose(p, &room);
	if (room >= 0 && may_want) {
		*ret_wants = p;
		return 0;
	}
	if (shared < 0)
		return -ENODEV;
	e = token_at(g, r, p, shared, (const char *)ptr + offset, size, ret_slot);
	if (e == 0 && holds)
		r->users++;
	*ret_region = r;
	return e;
}

/* Has memory registered again that was freed and allocated meanwhile.  0, -EFAULT: it was freed; -ENOENT: no port takes it. */
static int
renew(struct gantry *g, const void *ptr, size_t size)
{
	struct region *r;
	int e = region_take(g, ptr, size, &r);

	if (e == 0 && !r)
		return -ENOENT;
	if (r)
		region_put(r);
	return e;
}

static int
token_new(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op, bool holds,
	  struct region **ret_region, struct token_slot **ret_slot)
{
	struct port *wants;
	int e, renewed = 0;

	if (!ptr || !size || (op != GANTRY_OP_GET && op != GANTRY_OP_PUT) || offset + size < offset)
		return -EINVAL;
	if (size > GANTRY_REGISTER_MAX)
		return -EFBIG;
	if (!g->port_nr || !is_mine(g))
		return -ENODEV;
	for (bool may_want = true;;) {
		pthread_rwlock_rdlock(&g->map_lock);
		e = token_try(g, ptr, size, offset, op, may_want, &wants, holds, ret_region, ret_slot);
		pthread_rwlock_unlock(&g->map_lock);
		if (e == -ESTALE && renewed++ < RENEW_TRIES) {
			e = renew(g, ptr, offset + size);
			if (e < 0)
				return e;
			continue;
		}
		if (!wants)
			return e;
		/* Where the driver has none left, tokens share what there is. */
		shared_add(g, wants);
		may_want = false;
	}
}

/* Is the target's, whatever became of the token.  Locked for reading. */
static void
shared_less(struct gantry *g, const struct token_slot *s)
{
	struct target *t = g->port[s->port].shared[s->shared];

	if (t && t->dctn == s->dctn && t->out)
		t->out--;
}

static void
explain_token(struct gantry *g, const void *ptr, size_t size, size_t offset, int e)
{
	if (!is_told(g, GANTRY_LOG_ERROR))
		return;
	if (e == -ENOENT)
		client_log(g, GANTRY_LOG_ERROR,
			   "token of %zu bytes from byte %zu on of %p: not within one registration", size,
			   offset, ptr);
	else if (e == -EOPNOTSUPP)
		client_log(g, GANTRY_LOG_ERROR, "token of %p: the memory is staged, and has none", ptr);
	else if (e == -EFAULT)
		client_log(g, GANTRY_LOG_ERROR, "token of %zu bytes of %p: the memory was freed: not mapped",
			   size, ptr);
	else if (e == -ENODEV || e == -ENETDOWN)
		client_log(g, GANTRY_LOG_ERROR, "token of %p: no RDMA: %s", ptr, gantry_rdma_reason(g));
	else
		client_log(g, GANTRY_LOG_ERROR, "token of %zu bytes of %p: %s", size, ptr, error_text(-e));
}

int
gantry_token_get(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		 char **ret_token, size_t *ret_len)
{
	struct region *r;
	struct token_slot *s;
	/* The token does not hold the registration: it is good until that ends (item 115), which waits for no
	 * one. */
	int e = token_new(g, ptr, size, offset, op, false, &r, &s);

	if (e < 0) {
		explain_token(g, ptr, size, offset, e);
		return e;
	}
	*ret_token = s->text;
	if (ret_len)
		*ret_len = sizeof s->text; /* item 112: with the NUL */
	return 0;
}

int
token_for_callback(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		   struct region **ret_region, struct token_slot **ret_slot)
{
	int e = token_new(g, ptr, size, offset, op, true, ret_region, ret_slot);

	if (e < 0)
		explain_token(g, ptr, size, offset, e);
	return e;
}

void
token_after_callback(struct gantry *g, struct region *r, struct token_slot *s)
{
	pthread_rwlock_rdlock(&g->map_lock);
	shared_less(g, s);
	pthread_rwlock_unlock(&g->map_lock);
	slot_give_late(r, s);
	region_put(r);
}

int
gantry_token_put(struct gantry *g, char *token)
{
	return gantry_token_drop(g, token, 0);
}

/* Takes the target that a token names out of those that are handed on; NULL: it is gone.  Locked for writing. */
static struct target *
shared_remove(struct port *p, const struct token_slot *s)
{
	struct target **at = &p->shared[s->shared], *t;

	if (!*at || (*at)->dctn != s->dctn) {
		for (at = &p->retired; *at && (*at)->dctn != s->dctn; at = &(*at)->next)
			;
		t = *at;
		if (t)
			*at = t->next;
		return t;
	}
	t = *at;
	*at = NULL;
	return t;
}

/* The token stops to work, and with it those that name the same target. */
static int
token_kill(struct gantry *g, char *token)
{
	struct target *t = NULL;
	struct token_slot *s;
	int e = -ENOENT;

	pthread_rwlock_wrlock(&g->map_lock);
	s = slot_of(g, token);
	if (s) {
		/* One of memory that is no longer registered works no more. */
		struct region *r = s->region;

		e = slot_give(g, s) ? 0 : -ENOENT;
		t = e == 0 && r ? shared_remove(&g->port[s->port], s) : NULL;
	}
	pthread_rwlock_unlock(&g->map_lock);
	return t ? target_end(g, t) : e;
}

int
gantry_token_drop(struct gantry *g, char *token, int error)
{
	struct token_slot *s;
	int e = -ENOENT;

	if (!token || !is_mine(g))
		return -ENOENT;
	if (error) {
		e = token_kill(g, token);
		client_log(g, GANTRY_LOG_INFO, "a token is withdrawn for error %d%s%s", error,
			   e < 0 ? ": " : "", e < 0 ? error_text(-e) : "");
		return e;
	}
	pthread_rwlock_rdlock(&g->map_lock);
	s = slot_of(g, token);
	if (s) {
		struct token_slot named = { .port = s->port, .shared = s->shared, .dctn = s->dctn };

		if (slot_give(g, s)) {
			shared_less(g, &named);
			e = 0;
		}
	}
	pthread_rwlock_unlock(&g->map_lock);
	return e;
}
