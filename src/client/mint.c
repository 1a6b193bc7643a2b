/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that name registered memory (protocol.md 2.1, items 112-115), for programs and for their callbacks.  Any thread;
 * see the locks in client_int.h.  A token takes a look at the map, a slot of its registration and two counts: threads that have
 * registrations of their own write to nothing that another one of them writes to.
 */
#include "client/client_int.h"

#include "base/clock.h"
#include "client/rc.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define TOKEN_WAIT_MS 5000 /* for a connection of RC; the program may have all of them itself */
#define RENEW_TRIES 3      /* while memory is freed and allocated */

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

_Static_assert(SHARED_MAX == STRIPES, "each stripe has a place of its own for a target");

/*
 * Chooses the target in the place of the thread's stripe if no token out names it, else one that no token names, else the one
 * with the fewest. *ret_more: a target more ought to be made first: all are in use, or others use theirs and this thread has none
 * of its own.
 */
static int
shared_choose(const struct port *p, bool *ret_more)
{
	unsigned own = stripe_mine(), least = 0, places = 0, used = 0, there = 0;
	int chosen = -1;

	*ret_more = false;
	if (p->shared[own] && !p->shared[own]->out)
		return (int)own;
	for (int i = 0; i < SHARED_MAX; i++) {
		if (!p->shared[i]) {
			places++;
			continue;
		}
		unsigned out = p->shared[i]->out;

		there++;
		used += out > 0;
		if (chosen < 0 || out < least) {
			chosen = i;
			least = out;
		}
	}
	*ret_more = places && (used == there || (used && !p->shared[own]));
	return chosen;
}

/* Puts a target more where there is room, in the place of the thread's stripe if that is free.  0 or -errno. */
static int
shared_add(struct gantry *g, struct port *p)
{
	unsigned own = stripe_mine();
	struct target *t = target_new(p);
	int e = t ? 0 : -errno;

	if (!t)
		return e;
	map_wrlock(g);
	for (unsigned i = 0; t && i < SHARED_MAX; i++) {
		struct target **at = &p->shared[(own + i) % SHARED_MAX];

		if (!*at) {
			*at = t;
			t = NULL;
		}
	}
	map_wrunlock(g);
	return t ? target_end(g, t) : 0;
}

/* ---- a token ---- */

/* What a token is wanted for, and what it takes to make one. */
struct token_ask {
	const void *ptr;
	size_t size, offset;
	enum gantry_op op;
	bool holds;          /* true: the caller becomes a user of the registration */
	bool may_want;       /* true: a port ought to have a target more first */
	struct port *wants;  /* this port */
	struct port *dials;  /* port from which a connection has to be taken first */
	struct target *conn; /* this connection; NULL: none */
	unsigned wait_ms;    /* for a connection; 0: as calls do */
	char why[160];
};

/* Locked for reading. */
static int
token_at(struct gantry *g, struct region *r, struct port *p, int shared, const struct token_ask *a,
	 struct token_slot **ret_slot)
{
	const char *at = (const char *)a->ptr + a->offset;
	struct token_slot *s = slot_take(g, r);
	int e;

	if (!s)
		return -ENOMEM;
	s->dctn = p->shared[shared]->dctn;
	s->port = (uint8_t)(p - g->port);
	s->shared = (uint8_t)shared;
	e = mint(g, r, p, s->dctn, at, a->size, s->text);
	if (e < 0) {
		slot_give(g, s);
		return e;
	}
	p->shared[shared]->out++;
	*ret_slot = s;
	return 0;
}

/* The token of a connection, which is the slot's then. Locked for reading. */
static int
token_by_rc(struct gantry *g, struct region *r, struct token_ask *a, struct token_slot **ret_slot)
{
	const struct port *p = a->conn->conn->port;
	const struct ibv_mr *mr = r->mr[p - g->port];
	struct token_slot *s = mr ? slot_take(g, r) : NULL;

	if (!s)
		return mr ? -ENOMEM : -ENODEV;
	s->port = (uint8_t)(p - g->port);
	s->dctn = 0;
	s->conn = a->conn->conn;
	rc_mint(a->conn, (const char *)a->ptr + a->offset, a->size, mr->rkey, s->text, sizeof s->text);
	a->conn = NULL;
	*ret_slot = s;
	return 0;
}

/* Are tokens of this port of RC? */
static bool
is_by_rc(const struct gantry *g, const struct port *p)
{
	return g->rc_endpoint && (g->transport == GANTRY_TRANSPORT_RC || !p->has_dc);
}

/* The port of a token: that of the connection, that which has got a target for it, or the next in turn. */
static struct port *
token_port(struct gantry *g, const struct token_ask *a, const struct region *r)
{
	struct port *p = a->wants;

	if (a->conn)
		return a->conn->conn->port;
	return p && !p->is_down && r->mr[p - g->port] ? p : port_choose(g, r);
}

/* The registration and the port. Locked for reading. */
static int
token_memory(struct gantry *g, const struct token_ask *a, struct region **ret_region, struct port **ret_port)
{
	/* ptr itself must be registered as well, as with cuObjClient: an offset alone must not reach into
	 * other memory. */
	struct region *r = region_at(g, a->ptr, a->offset + a->size);

	if (!r)
		return -ENOENT;
	if (a->op == GANTRY_OP_GET && (r->flags & GANTRY_READ_ONLY))
		return -EINVAL;
	if (r->is_staged)
		return -EOPNOTSUPP;
	if (gpu_ids_hold(r->ids, (const char *)a->ptr + a->offset, a->size) != GPU_SAME)
		return -ESTALE;
	*ret_region = r;
	*ret_port = token_port(g, a, r);
	if (!*ret_port)
		return gantry_is_connected(g) ? -ENODEV : -ENETDOWN;
	return 0;
}

/* Tries once.  -ESTALE: the memory is another than was registered.  0 without a slot: a->wants or a->dials. */
static int
token_try(struct gantry *g, struct token_ask *a, struct region **ret_region, struct token_slot **ret_slot)
{
	struct region *r;
	int shared, e;
	struct port *p;
	bool more;

	e = token_memory(g, a, &r, &p);
	a->wants = a->dials = NULL;
	if (e < 0)
		return e;
	if (!a->conn && is_by_rc(g, p)) {
		a->dials = p;
		return 0;
	}
	if (a->conn) {
		e = token_by_rc(g, r, a, ret_slot);
	} else {
		shared = shared_choose(p, &more);
		if (more && a->may_want && p->has_dc) {
			a->wants = p;
			return 0;
		}
		if (shared < 0)
			return -ENODEV;
		e = token_at(g, r, p, shared, a, ret_slot);
	}
	if (e == 0 && a->holds)
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
token_new(struct gantry *g, struct token_ask *a, struct region **ret_region, struct token_slot **ret_slot)
{
	int e, renewed = 0;

	if (!a->ptr || !a->size || (a->op != GANTRY_OP_GET && a->op != GANTRY_OP_PUT) ||
	    a->offset + a->size < a->offset)
		return -EINVAL;
	if (a->size > GANTRY_REGISTER_MAX)
		return -EFBIG;
	if (!g->port_nr || !is_mine(g))
		return -ENODEV;
	a->may_want = true;
	for (;;) {
		map_rdlock(g);
		e = token_try(g, a, ret_region, ret_slot);
		map_rdunlock(g);
		if (e == -ESTALE && renewed++ < RENEW_TRIES) {
			e = renew(g, a->ptr, a->offset + a->size);
			if (e == 0)
				continue;
		} else if (e == 0 && a->wants) {
			/* Where the driver has none left, tokens share what there is. */
			shared_add(g, a->wants);
			a->may_want = false;
			continue;
		} else if (e == 0 && a->dials) {
			e = rc_dial(g, a->dials, a->op == GANTRY_OP_PUT, a->wait_ms, &a->conn, a->why,
				    sizeof a->why);
			if (e == 0)
				continue;
			/* As where there is no way to the server at all. */
			e = -ENODEV;
		}
		break;
	}
	if (a->conn)
		rc_give(g, a->conn, true);
	return e;
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
explain_token(struct gantry *g, const struct token_ask *a, int e)
{
	const void *ptr = a->ptr;
	size_t size = a->size, offset = a->offset;

	if (!is_logged(g, GANTRY_LOG_ERROR))
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
		client_log(g, GANTRY_LOG_ERROR, "token of %p: no RDMA: %s", ptr,
			   *a->why                  ? a->why
			   : *gantry_rdma_reason(g) ? gantry_rdma_reason(g)
						    : "the port makes no DC targets, and for RC "
						      "rdma_rc_endpoint is not set");
	else
		client_log(g, GANTRY_LOG_ERROR, "token of %zu bytes of %p: %s", size, ptr, error_text(-e));
}

int
gantry_token_get(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		 char **ret_token, size_t *ret_len)
{
	/* The token does not hold the registration: it is good until that ends (item 115), which waits for no
	 * one. */
	struct token_ask a = {
		.ptr = ptr, .size = size, .offset = offset, .op = op, .wait_ms = TOKEN_WAIT_MS
	};
	struct region *r;
	struct token_slot *s;
	int e = token_new(g, &a, &r, &s);

	if (e < 0) {
		explain_token(g, &a, e);
		return e;
	}
	*ret_token = s->text;
	if (ret_len)
		*ret_len = strlen(s->text) + 1; /* item 112: with the NUL */
	return 0;
}

int
token_for_callback(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		   struct region **ret_region, struct token_slot **ret_slot)
{
	struct token_ask a = { .ptr = ptr, .size = size, .offset = offset, .op = op, .holds = true };
	int e = token_new(g, &a, ret_region, ret_slot);

	if (e < 0)
		explain_token(g, &a, e);
	return e;
}

/* Gives the connection of a token back, if it has one. 0, or -errno: the driver did not destroy it yet. */
static int
hang_up(struct gantry *g, struct rc_conn *conn, bool clean)
{
	return conn ? rc_give(g, &conn->target, clean) : 0;
}

void
token_after_callback(struct gantry *g, struct region *r, struct token_slot *s, bool clean)
{
	/* Before the slot is another token's. */
	struct rc_conn *conn = atomic_exchange(&s->conn, NULL);

	map_rdlock(g);
	if (!conn)
		shared_less(g, s);
	map_rdunlock(g);
	hang_up(g, conn, clean);
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
	struct rc_conn *conn = NULL;
	struct token_slot *s;
	int e = -ENOENT;

	map_wrlock(g);
	s = slot_of(g, token);
	if (s) {
		/* One of memory that is no longer registered works no more. */
		struct region *r = s->region;

		e = slot_give(g, s) ? 0 : -ENOENT;
		conn = e == 0 ? atomic_exchange(&s->conn, NULL) : NULL;
		t = e == 0 && r && !conn ? shared_remove(&g->port[s->port], s) : NULL;
	}
	map_wrunlock(g);
	if (conn)
		return hang_up(g, conn, false);
	return t ? target_end(g, t) : e;
}

int
gantry_token_drop(struct gantry *g, char *token, int error)
{
	struct rc_conn *conn = NULL;
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
	map_rdlock(g);
	s = slot_of(g, token);
	if (s) {
		struct token_slot named = { .port = s->port, .shared = s->shared, .dctn = s->dctn };

		/* Before the slot is another token's. */
		conn = atomic_exchange(&s->conn, NULL);
		if (slot_give(g, s)) {
			if (!conn)
				shared_less(g, &named);
			e = 0;
		}
	}
	map_rdunlock(g);
	hang_up(g, conn, true);
	return e;
}
