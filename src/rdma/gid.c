/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of address a GID is, and which ones a token may name.  Pure functions, any thread. */
#include "rdma/rdma_int.h"

#include "base/address.h"

#include <arpa/inet.h>
#include <endian.h>
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

/* Returns the eight bytes of an address from `at` on as a number. */
static uint64_t
half(const uint8_t gid[16], size_t at)
{
	uint64_t v;

	memcpy(&v, gid + at, sizeof v);
	return be64toh(v);
}

bool
gid_prefix_equal(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
	uint64_t high = half(a, 0) ^ half(b, 0), low = half(a, 8) ^ half(b, 8);

	if (bits <= 64)
		return bits == 0 || high >> (64 - bits) == 0;
	return high == 0 && low >> (128 - bits) == 0;
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

/* ---- addresses of no host, or of several ---- */

/* Tells it of those that are so in every network: multicast, limited broadcast, unspecified, and the ranges of IPv4 and of
 * "IPv4-compatible" IPv6 that no host has. */
static bool
is_no_host(const uint8_t gid[16])
{
	static const uint8_t zero[12];

	if (gid_is_v4(gid))
		return gid[12] >= 224 || gid[12] == 0;
	return gid[0] == 0xff || (memcmp(gid, zero, sizeof zero) == 0 && !gid_is_loopback(gid));
}

/* Tells whether all bits of the address from bit `from` to bit `to` - 1 are `ones`, or none is. to: above 64, and above from. */
static bool
bits_are(const uint8_t gid[16], unsigned from, unsigned to, bool ones)
{
	uint64_t flip = ones ? UINT64_MAX : 0, high = half(gid, 0) ^ flip, low = half(gid, 8) ^ flip;

	low >>= 128 - to;
	if (from >= 64)
		return low << (from - 64 + 128 - to) == 0;
	return high << from == 0 && low == 0;
}

/* Tells it of the anycast addresses that every IPv6 subnet has: its routers' (RFC 4291, 2.6.1) and the last 128, which are reserved
 * (RFC 2526) and have the universal bit of an EUI-64 unset where the subnet is a /64. */
static bool
is_anycast_of(const uint8_t gid[16], unsigned prefix)
{
	static const uint8_t reserved[7] = { 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	if (bits_are(gid, prefix, 128, false))
		return true;
	if (prefix == 64)
		return memcmp(gid + 8, reserved, sizeof reserved) == 0 && gid[15] >= 0x80;
	return prefix <= 120 && bits_are(gid, prefix, 121, true);
}

/* Tells it of a subnet that the address is in.  Two addresses, or one, are hosts (RFC 3021, RFC 6164). */
static bool
is_no_host_of(const uint8_t gid[16], const uint8_t net[16], unsigned prefix, bool is_ib)
{
	if (prefix > 126 || !gid_prefix_equal(net, gid, prefix) ||
	    gid_is_v4(gid) != (prefix >= 96 && gid_is_v4(net)))
		return false;
	if (is_ib)
		return bits_are(gid, prefix, 128, false);
	if (gid_is_v4(gid))
		return bits_are(gid, prefix, 128, false) || bits_are(gid, prefix, 128, true);
	return is_anycast_of(gid, prefix);
}

/* Tells whether a block of rdma.allow is a subnet in which the address is no host.  One that a block names alone, or with one other,
 * is a host: the fabric may have subnets of two. */
static bool
is_end_of_block(const struct conf_rdma *conf, const uint8_t gid[16])
{
	bool is_end = false;

	for (int i = 0; i < conf->allow_nr; i++) {
		const uint8_t *net = conf->allow[i].addr.s6_addr;

		if (conf->allow[i].prefix > 126 && gid_prefix_equal(net, gid, conf->allow[i].prefix))
			return false;
		is_end |= is_no_host_of(gid, net, conf->allow[i].prefix, false);
	}
	return is_end;
}

/* Tells whether the address stands for no host, or for more than one, as far as anybody here can know: in every network, in the
 * subnets of our rails, in those that every machine has, and in the blocks of rdma.allow, which are taken for subnets unless
 * they are parts of ours. */
static bool
is_not_one_host(const struct rdma_trust *trust, const struct conf_rdma *conf, const uint8_t gid[16])
{
	static const struct {
		uint8_t addr[16];
		uint8_t prefix;
	} everywhere[] = {
		{ { [10] = 0xff, [11] = 0xff, [12] = 127 }, 96 + 8 },
		{ { [10] = 0xff, [11] = 0xff, [12] = 169, [13] = 254 }, 96 + 16 },
		{ { 0xfe, 0x80 }, 64 },
	};

	if (is_no_host(gid))
		return true;
	for (size_t i = 0; i < sizeof everywhere / sizeof *everywhere; i++) {
		if (is_no_host_of(gid, everywhere[i].addr, everywhere[i].prefix, false))
			return true;
	}
	for (int i = 0; i < trust->net_nr; i++) {
		if (is_no_host_of(gid, trust->net[i].addr, trust->net[i].prefix, trust->net[i].is_ib))
			return true;
	}
	return !in_subnets(trust, gid, false) && is_end_of_block(conf, gid);
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
	if (is_not_one_host(trust, conf, gid))
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
	if (is_not_one_host(trust, conf, gid))
		return "it is a multicast, broadcast or anycast address, or a subnet's or none at all, which "
		       "no token may "
		       "name";
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
