/* SPDX-License-Identifier: Apache-2.0 */
/* How an address stands with us, for people: which rail leads there, or why no token may name it. */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define SAY_AGAIN_NS (60 * NS_PER_S)

static void
explain(const struct rdma *rd, const struct conf_rdma *conf, const uint8_t gid[16], char *out, size_t cap)
{
	pthread_rwlock_t *lock = (pthread_rwlock_t *)(uintptr_t)&rd->table_lock;

	pthread_rwlock_rdlock(lock);
	snprintf(out, cap, "%s", rdma_trust_why(&rd->trust, conf, gid));
	pthread_rwlock_unlock(lock);
}

void
rdma_say_not_allowed(struct rdma *rd, const struct conf_rdma *conf, const uint8_t *gid)
{
	uint64_t now = clock_ns(), next = atomic_load_explicit(&rd->say_ns, memory_order_relaxed);
	char text[INET6_ADDRSTRLEN], why[256];

	if (now < next || !atomic_compare_exchange_strong(&rd->say_ns, &next, now + SAY_AGAIN_NS))
		return;
	if (!gid) {
		log_note("a token without an address is declined (not-allowed): our InfiniBand subnets are "
			 "outside "
			 "rdma.allow");
		return;
	}
	explain(rd, conf, gid, why, sizeof why);
	log_note("a token names %s and is declined (not-allowed; said once a minute): %s",
		 gid_text(gid, text, sizeof text), why);
}

static void say(struct rdma_reach *reach, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void
say(struct rdma_reach *reach, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reach->text, sizeof reach->text, fmt, ap);
	va_end(ap);
}

/* What allows an address that is allowed. */
static const char *
allowed_by(const struct rdma *rd, const struct conf_rdma *conf, const uint8_t gid[16])
{
	struct conf_rdma plain = *conf;
	struct in6_addr a;

	plain.allow_loopback = plain.allow_self = plain.allow_link_local = false;
	switch (rdma_gid_allowed(rd, &plain, gid, NULL)) {
	case 0:
		break;
	case 1:
		return "rdma.allow: routed";
	default:
		return "rdma.allow_special";
	}
	memcpy(&a, gid, sizeof a);
	return conf_nets_have(conf->allow, conf->allow_nr, &a) ? "rdma.allow" : "a subnet of our rails";
}

/* The rail that a token with this address would be served by, now; -1: none has a route. */
static int
find(struct rdma *rd, struct token *tok, bool must_route)
{
	struct rdma_asker asker = { .numa_node = -1, .must_route = must_route };
	struct rail_route route;

	while (rdma_route(rd, tok, &asker, &route) == 0) {
		if (rail_routes(rd->rail[route.rail], &route.key, NULL) == 0)
			return route.rail;
		asker.tried |= 1u << route.rail;
	}
	return -1;
}

int
rdma_reach(struct rdma *rd, const struct conf_rdma *conf, const char *address, struct rdma_reach *ret_reach)
{
	struct token tok = { .kind = TOKEN_DC, .have_gid = true };
	struct conf_rdma unbound = *conf;
	struct selector sel;
	char why[256];
	int r;

	*ret_reach = (struct rdma_reach){ .rail = -1 };
	if (selector_parse(address, &sel) < 0 || !sel.is_address)
		return -EINVAL;
	if (!any_rail_serves(rd)) {
		say(ret_reach, "%s cannot be reached: there is no rail", address);
		return 0;
	}
	memcpy(tok.gid, sel.gid, 16);
	unbound.bind_gid = BIND_GID_OFF; /* who asks is no client */
	r = rdma_gid_allowed(rd, &unbound, sel.gid, NULL);
	if (r < 0) {
		explain(rd, conf, sel.gid, why, sizeof why);
		say(ret_reach, "%s is not allowed: %s", address, why);
		return 0;
	}
	ret_reach->rail = find(rd, &tok, r > 0);
	if (ret_reach->rail < 0) {
		/* Of an address of InfiniBand nothing says which LID it has; any leads there as well. */
		tok.lid = 1;
		ret_reach->rail = find(rd, &tok, r > 0);
	}
	ret_reach->allowed = r == 0 || ret_reach->rail >= 0;
	if (!ret_reach->allowed)
		say(ret_reach,
		    "%s is not allowed: it is in no network of rdma.allow, and no rail has a route there",
		    address);
	else if (ret_reach->rail < 0)
		say(ret_reach, "%s is allowed (%s), and no rail that is up has a route there", address,
		    allowed_by(rd, &unbound, sel.gid));
	else
		say(ret_reach, "%s is allowed (%s), by rail %s:%d", address,
		    allowed_by(rd, &unbound, sel.gid), rd->rail[ret_reach->rail]->dev->name,
		    rd->rail[ret_reach->rail]->port);
	return 0;
}
