/* SPDX-License-Identifier: Apache-2.0 */
/* From a token to where its bytes go.  A channel keeps the last targets that it has met, which costs no
 * lock. */
#include "server/server_int.h"

#include "base/check.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define TARGET_WAIT_MS 5000

/* ---- those that are kept ---- */

static bool
is_of(const struct held *h, const struct token *tok)
{
	return h->is_used && h->have_gid == tok->have_gid && h->lid == tok->lid &&
	       (!tok->have_gid || memcmp(h->gid, tok->gid, 16) == 0);
}

static bool
is_good(const struct held *h)
{
	return lane_is_good(h->lane) && !rdma_target_is_forgotten(&h->target) &&
	       h->lane->ep->path == rdma_rail_path(h->lane->rail) &&
	       h->lane->generation == rdma_rail_generation(h->lane->rail);
}

static void
drop(struct held *h)
{
	check(h->is_used && h->ops == 0);
	rdma_target_put(h->lane->rail, &h->target);
	h->is_used = false;
}

/* A place for another one; NULL: operations are aimed at all of them. */
static struct held *
make_room(struct gantry_channel *c)
{
	struct held *oldest = NULL;

	for (int i = 0; i < HELD_NR; i++) {
		struct held *h = &c->held[i];

		if (!h->is_used)
			return h;
		if (h->ops == 0 && (!oldest || h->turn < oldest->turn))
			oldest = h;
	}
	if (oldest)
		drop(oldest);
	return oldest;
}

static void
use(struct gantry_channel *c, struct held *h, const struct token *tok, struct op *op)
{
	check(h->is_used && h->lane && h->lane->c == c);
	h->turn = ++c->turn;
	h->ops++;
	op->held = h;
	op->lane = h->lane;
	op->target = h->target;
	op->target.nr = tok->dctn;
}

void
held_put(struct gantry_channel *c, struct op *op)
{
	check(!op->held || op->held->ops > 0);
	if (op->held)
		op->held->ops--;
	else if (op->lane)
		rdma_target_put(op->lane->rail, &op->target);
	op->held = NULL;
}

void
held_drop(struct gantry_channel *c, const struct lane *l)
{
	for (int i = 0; i < HELD_NR; i++) {
		struct held *h = &c->held[i];

		if (h->is_used && (!l || h->lane == l) && h->ops == 0)
			drop(h);
	}
}

/* ---- finding out ---- */

static const char *
name_of(const struct token *tok, char *text, size_t size)
{
	return tok->have_gid ? gid_name(tok->gid, text, size) : "a LID";
}

/* 0, 1 (as far as the kernel has a route) or -errno. */
static int
may_go(struct gantry_server *s, const struct token *tok)
{
	char name[INET6_ADDRSTRLEN];
	uint8_t other[16] = { 0 };
	int r;

	if (tok->have_gid && !rdma_has_infiniband(s->rd) && !rdma_has_family(s->rd, tok->gid)) {
		/* A port without any address has none of the other family either. */
		if (!gid_is_mapped(tok->gid))
			other[10] = other[11] = 0xff;
		if (rdma_has_family(s->rd, other)) {
			say(s, GANTRY_SERVER_LOG_ERROR,
			    "a token names %s, and the server's address is of the other family (IPv4, IPv6)",
			    name_of(tok, name, sizeof name));
			return -EAFNOSUPPORT;
		}
		say(s, GANTRY_SERVER_LOG_ERROR, "no port has a RoCEv2 address: %s cannot be reached",
		    name_of(tok, name, sizeof name));
		return -ENODEV;
	}
	r = rdma_gid_allowed(s->rd, &s->conf, tok->have_gid ? tok->gid : NULL, NULL);
	if (r < 0) {
		say(s, GANTRY_SERVER_LOG_ERROR, "a token names %s, which is not allowed (allow)",
		    name_of(tok, name, sizeof name));
		return -EIO;
	}
	return r;
}

static int
say_no_route(struct gantry_server *s, const struct token *tok, int r)
{
	char name[INET6_ADDRSTRLEN];

	name_of(tok, name, sizeof name);
	if (r == -ENODEV || r == -ENETDOWN) {
		say(s, GANTRY_SERVER_LOG_ERROR, "%s cannot be reached: no port is up that leads there", name);
		return -ENODEV;
	}
	if (r == -ENOMEM)
		return r; /* it was said */
	say(s, GANTRY_SERVER_LOG_ERROR, "%s cannot be reached: %s", name,
	    r == -ENETUNREACH ? "the token has no LID, and no port is Ethernet"
	    : r == -EINVAL    ? "the token has no address, and the ports are Ethernet"
	    : r == -ETIMEDOUT ? "no host answers for it within 5 s"
	    : r == -EAGAIN    ? "too many addresses are in use"
			      : "no host answers for it, or there is no route");
	return -EIO;
}

/* By one rail after the other. */
static int
seek(struct gantry_channel *c, const struct token *tok, bool must_route, struct lane **ret_lane,
     struct rdma_target *ret_target)
{
	struct rdma_asker asker = { .numa_node = -1, .turn = c->nr, .core = c->nr, .must_route = must_route };
	struct gantry_server *s = c->s;
	int last = 0;

	for (;;) {
		struct rail_route route;
		int r = rdma_route(s->rd, tok, &asker, &route);

		if (r < 0)
			return last ? last : r;
		last = lane_get(c, route.rail, route.ops, ret_lane);
		if (last == 0)
			last = rdma_target_wait((*ret_lane)->rail, tok, &route, (uint8_t)c->nr,
						TARGET_WAIT_MS, ret_target);
		if (last == 0)
			return 0;
		asker.tried |= 1u << route.rail;
	}
}

int
held_get(struct gantry_channel *c, const struct token *tok, struct op *op)
{
	struct gantry_server *s = c->s;
	struct rdma_target target;
	struct held *h = NULL;
	struct lane *l;
	int r;

	for (int i = 0; i < HELD_NR; i++) {
		if (!is_of(&c->held[i], tok))
			continue;
		h = &c->held[i];
		if (is_good(h)) {
			use(c, h, tok, op);
			return 0;
		}
		if (h->ops == 0)
			drop(h);
	}
	r = may_go(s, tok);
	if (r < 0)
		return r;
	r = seek(c, tok, r == 1, &l, &target);
	if (r < 0)
		return say_no_route(s, tok, r);
	h = make_room(c);
	check(!h || (!h->is_used && h->ops == 0));
	if (h) {
		*h = (struct held){ .is_used = true,
				    .have_gid = tok->have_gid,
				    .lid = tok->lid,
				    .lane = l,
				    .target = target };
		memcpy(h->gid, tok->gid, 16);
		use(c, h, tok, op);
		return 0;
	}
	op->held = NULL;
	op->lane = l;
	op->target = target;
	op->target.nr = tok->dctn;
	return 0;
}
