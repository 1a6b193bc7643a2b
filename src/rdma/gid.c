/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of address a GID is, and which ones a token may name.  Pure functions, any thread. */
#include "rdma/rdma_int.h"

#include "base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool
gid_is_v4(const uint8_t gid[16])
{
	return memcmp(gid, v4_prefix, sizeof v4_prefix) == 0;
}

bool
gid_is_loopback(const uint8_t gid[16])
{
	static const uint8_t one[16] = { [15] = 1 };

	return gid_is_v4(gid) ? gid[12] == 127 : memcmp(gid, one, sizeof one) == 0;
}

bool
gid_is_link_local(const uint8_t gid[16])
{
	if (gid_is_v4(gid))
		return gid[12] == 169 && gid[13] == 254;
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* Or broadcast, or unspecified: nothing a token may name. */
static bool
gid_is_multicast(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	if (gid_is_v4(gid))
		return gid[12] >= 224 || gid[12] == 0;
	return gid[0] == 0xff || memcmp(gid, zero, sizeof zero) == 0;
}

bool
gid_prefix_equal(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;

	if (memcmp(a, b, bytes) != 0)
		return false;
	return rest == 0 || (a[bytes] ^ b[bytes]) >> (8 - rest) == 0;
}

bool
gid_from_sockaddr(const struct sockaddr *sa, uint8_t ret_gid[16])
{
	struct in6_addr a;

	if (!address_in6(sa, &a))
		return false;
	memcpy(ret_gid, &a, 16);
	return true;
}

const char *
gid_text(const uint8_t gid[16], char *text, size_t len)
{
	const char *r = gid_is_v4(gid) ? inet_ntop(AF_INET, gid + 12, text, (socklen_t)len)
				       : inet_ntop(AF_INET6, gid, text, (socklen_t)len);

	return r ? r : "?";
}

void
rdma_trust_build(const struct rail_view *const *views, int view_nr, struct rdma_trust *ret_trust)
{
	ret_trust->net_nr = ret_trust->own_nr = 0;
	for (int i = 0; i < view_nr; i++) {
		for (int k = 0; k < views[i]->gid_nr; k++) {
			const struct rail_gid *g = &views[i]->gid[k];

			memcpy(ret_trust->own[ret_trust->own_nr++], g->raw, 16);
			/* Everybody has fe80::/10 on Ethernet: it tells nothing about a subnet. */
			if (views[i]->is_ethernet && gid_is_link_local(g->raw))
				continue;
			memcpy(ret_trust->net[ret_trust->net_nr].addr, g->raw, 16);
			ret_trust->net[ret_trust->net_nr].prefix = views[i]->is_ethernet ? g->prefix : 64;
			ret_trust->net[ret_trust->net_nr++].is_ib = !views[i]->is_ethernet;
		}
	}
}

static bool
in_allow(const struct conf_rdma *conf, const uint8_t gid[16])
{
	struct in6_addr a;

	memcpy(&a, gid, sizeof a);
	return conf_nets_have(conf->allow, conf->allow_nr, &a);
}

/* Do our rails see this address in one of their subnets?  only_ib: in a native InfiniBand one. */
static bool
in_subnets(const struct rdma_trust *trust, const uint8_t gid[16], bool only_ib)
{
	for (int i = 0; i < trust->net_nr; i++) {
		if ((!only_ib || trust->net[i].is_ib) &&
		    gid_prefix_equal(trust->net[i].addr, gid, trust->net[i].prefix))
			return true;
	}
	return false;
}

/* rdma.bind_gid: does the token's target sit where the HTTP peer sits? */
static int
check_bound(const struct rdma_trust *trust, enum conf_bind_gid how, const uint8_t *gid,
	    const struct sockaddr *peer)
{
	uint8_t from[16];

	if (how == BIND_GID_OFF)
		return 0;
	if (!gid || !gid_from_sockaddr(peer, from))
		return -EACCES; /* nothing that could be compared */
	if (memcmp(from, gid, sizeof from) == 0)
		return 0;
	if (how == BIND_GID_EXACT)
		return -EACCES;
	for (int i = 0; i < trust->net_nr; i++) {
		if (gid_prefix_equal(trust->net[i].addr, gid, trust->net[i].prefix) &&
		    gid_prefix_equal(trust->net[i].addr, from, trust->net[i].prefix))
			return 0;
	}
	return -EACCES;
}

bool
rdma_trust_shares(const struct rdma_trust *trust, const struct sockaddr *listen)
{
	static const uint8_t any_v6[16], any_v4[16] = { [10] = 0xff, [11] = 0xff };
	uint8_t at[16];

	if (!gid_from_sockaddr(listen, at))
		return false;
	for (int i = 0; i < trust->net_nr; i++) {
		const uint8_t *net = trust->net[i].addr;

		/* Addresses of IP over InfiniBand are no GIDs. */
		if (trust->net[i].is_ib)
			continue;
		if (memcmp(at, any_v6, sizeof at) == 0 ||
		    (memcmp(at, any_v4, sizeof at) == 0 && gid_is_v4(net)) ||
		    gid_prefix_equal(net, at, trust->net[i].prefix))
			return true;
	}
	return false;
}

/* A token without GID counts as of the subnet of our InfiniBand ports.  Without such ports it cannot be
 * served: 400, later. */
static int
check_no_gid(const struct rdma_trust *trust, const struct conf_rdma *conf)
{
	bool have_ib = false;

	for (int i = 0; i < trust->net_nr; i++) {
		if (!trust->net[i].is_ib)
			continue;
		have_ib = true;
		if (conf->allow_nr == 0 || conf->allow_routed || in_allow(conf, trust->net[i].addr))
			return 0;
	}
	return have_ib ? -EHOSTUNREACH : 0;
}

int
rdma_trust_check(const struct rdma_trust *trust, const struct conf_rdma *conf, const uint8_t *gid,
		 const struct sockaddr *peer)
{
	int r = check_bound(trust, conf->bind_gid, gid, peer);

	if (r < 0)
		return r;
	if (!gid)
		return check_no_gid(trust, conf);
	if (gid_is_multicast(gid))
		return -EACCES;
	/* What allow_special names is allowed outright; on a loopback rail our own address is a loopback one,
	 * and `loopback` is the word for it. */
	if (gid_is_loopback(gid))
		return conf->allow_loopback ? 0 : -EHOSTUNREACH;
	for (int i = 0; i < trust->own_nr; i++) {
		if (memcmp(trust->own[i], gid, 16) == 0)
			return conf->allow_self ? 0 : -EHOSTUNREACH;
	}
	if (gid_is_link_local(gid) && !in_subnets(trust, gid, true))
		return conf->allow_link_local ? 0 : -EHOSTUNREACH;
	if (in_allow(conf, gid))
		return 0;
	/* To a subnet of ours there is a route. */
	if ((conf->allow_nr == 0 || conf->allow_routed) && in_subnets(trust, gid, false))
		return 0;
	return conf->allow_routed ? 1 : -EHOSTUNREACH;
}

const char *
rdma_trust_why(const struct rdma_trust *trust, const struct conf_rdma *conf, const uint8_t gid[16])
{
	if (gid_is_multicast(gid))
		return "it is a multicast or broadcast address, or none at all, which no token may name";
	if (gid_is_loopback(gid))
		return "it is a loopback address, which takes rdma.allow_special: [loopback], for tests";
	for (int i = 0; i < trust->own_nr; i++) {
		if (memcmp(trust->own[i], gid, 16) == 0)
			return "it is an address of this server's own rails, which takes rdma.allow_special: "
			       "[self], for tests";
	}
	if (gid_is_link_local(gid))
		return "it is a link-local address, which takes rdma.allow_special: [link_local]";
	if (conf->allow_nr > 0)
		return "it is outside rdma.allow: add its network, or `routed`";
	return "it is outside the subnets of our rails: rdma.allow wants its network (and then ours as well, "
	       "since "
	       "a list takes their place), or `routed`";
}
