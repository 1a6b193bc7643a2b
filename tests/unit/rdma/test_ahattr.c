/* SPDX-License-Identifier: Apache-2.0 */
/* From token to rail, source GID and address handle: the tables of protocol.md 2.8, for Ethernet and
 * InfiniBand. */
#include "rdma/rdma_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static void
addr(const char *text, uint8_t gid[16])
{
	struct selector s;

	assert_int_equal(selector_parse(text, &s), 0);
	assert_true(s.is_address);
	memcpy(gid, s.gid, 16);
}

static void
add(struct rail_view *v, uint32_t index, const char *text, int prefix)
{
	addr(text, v->gid[v->gid_nr].raw);
	v->gid[v->gid_nr].index = index;
	v->gid[v->gid_nr++].prefix = (uint8_t)prefix;
}

static struct token
to(const char *text, uint16_t lid)
{
	struct token t = { .kind = TOKEN_DC, .lid = lid, .have_gid = text != NULL };

	if (text)
		addr(text, t.gid);
	return t;
}

static struct sockaddr_storage
from(const char *text)
{
	struct sockaddr_storage sa = { 0 };
	uint8_t gid[16];

	addr(text, gid);
	if (gid_is_v4(gid)) {
		struct sockaddr_in *sin = (struct sockaddr_in *)&sa;

		sin->sin_family = AF_INET;
		memcpy(&sin->sin_addr, gid + 12, 4);
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&sa;

		sin6->sin6_family = AF_INET6;
		memcpy(&sin6->sin6_addr, gid, 16);
	}
	return sa;
}

/* Two RoCE rails in two subnets, each with IPv4, IPv6 and link-local. */
static struct rail_view eth0, eth1, ib0, ib1;
static const struct rail_view *const eth[] = { &eth0, &eth1 }, *const ib[] = { &ib0, &ib1 },
				     *const mixed[] = { &eth0, &ib0 };

static int
setup(void **state)
{
	eth0 = (struct rail_view){ .is_ethernet = true, .port = 1 };
	add(&eth0, 1, "fe80::1", 64);
	add(&eth0, 3, "10.0.0.5", 96 + 24);
	add(&eth0, 5, "fd00:0:0:1::5", 64);
	eth1 = (struct rail_view){ .is_ethernet = true, .port = 1 };
	add(&eth1, 1, "fe80::2", 64);
	add(&eth1, 3, "10.0.1.5", 96 + 24);
	add(&eth1, 5, "fd00:0:0:2::5", 64);
	ib0 = (struct rail_view){ .port = 1, .lid = 0x12 };
	add(&ib0, 0, "fe80::11", 64);
	addr("192.168.9.5", ib0.ip[ib0.ip_nr++]);
	ib1 = (struct rail_view){ .port = 2, .lid = 0x13 };
	add(&ib1, 0, "fec0:0:0:7::12", 64);
	return 0;
}

static int
choose(const struct rail_view *const *views, unsigned up, const struct token *tok,
       const struct sockaddr *local, struct rail_route *ret)
{
	return rdma_choose(views, 2, up, NULL, tok, &(struct rdma_asker){ .local = local }, ret);
}

static void
expect(const struct rail_view *const *views, struct token tok, const char *local, int rail, uint32_t sgid)
{
	struct sockaddr_storage sa;
	struct rail_route r;

	if (local)
		sa = from(local);
	assert_int_equal(choose(views, 3, &tok, local ? (struct sockaddr *)&sa : NULL, &r), 0);
	assert_int_equal(r.rail, rail);
	assert_int_equal(r.key.sgid_index, sgid);
	if (views[rail]->is_ethernet) {
		assert_true(r.key.is_global);
		assert_memory_equal(r.key.dgid, tok.gid, 16);
		assert_int_equal(r.key.dlid, 0);
	}
}

/* item 22: the source has the destination's family. */
static void
family(void **state)
{
	expect(eth, to("10.0.0.9", 0), NULL, 0, 3);
	expect(eth, to("fd00:0:0:1::9", 0), NULL, 0, 5);
	expect(eth, to("fe80::99", 0), NULL, 0, 1);
	eth0.gid_nr = 2; /* no global IPv6 */
	expect(eth, to("fd00:0:0:1::9", 0), NULL, 1, 5);
	eth1.gid_nr = 2;
	assert_int_equal(choose(eth, 3, &(struct token){ .have_gid = true, .gid = { 0xfd } }, NULL,
				&(struct rail_route){ 0 }),
			 -ENETDOWN);
}

/* item 26: the subnet, and in it the rail that the HTTP connection came in on; then any. */
static void
order(void **state)
{
	expect(eth, to("10.0.1.9", 0), NULL, 1, 3);
	expect(eth, to("10.0.1.9", 0), "10.0.0.5", 1, 3);
	expect(eth, to("10.0.0.9", 0), "10.0.1.5", 0, 3);
	expect(eth, to("10.0.1.9", 0), "fd00:0:0:1::5", 1, 3);
	expect(eth, to("10.0.1.9", 0), "172.16.0.1", 1, 3);
	expect(eth, to("172.16.0.9", 0), NULL, 0, 3);
	/* Behind a router no rail is better than another, whichever one the client was told of. */
	expect(eth, to("172.16.0.9", 0), "10.0.1.5", 0, 3);
	expect(eth, to("172.16.0.9", 0), "fd00:0:0:2::5", 0, 3);
	/* Two sources on the local rail: the one of the target's subnet. */
	add(&eth0, 7, "10.0.9.5", 96 + 24);
	expect(eth, to("10.0.9.9", 0), "10.0.0.5", 0, 7);
	expect(eth, to("172.16.0.9", 0), "10.0.9.5", 0, 7);
	/* Two rails in the target's subnet; and a v4-mapped local address, as a dual-stack socket gives it. */
	add(&eth1, 9, "10.0.0.6", 96 + 24);
	expect(eth, to("10.0.0.9", 0), NULL, 0, 3);
	expect(eth, to("10.0.0.9", 0), "10.0.0.6", 1, 9);
	expect(eth, to("10.0.0.9", 0), "::ffff:10.0.1.5", 1, 9);
}

/* An address that is not of our network namespace has no subnet that we know: any other source is better. */
static void
unknown_subnets_come_last(void **state)
{
	eth0.gid_nr = 0;
	add(&eth0, 2, "192.168.7.1", 128);
	expect(eth, to("172.16.0.9", 0), NULL, 1, 3);
	add(&eth0, 3, "10.0.0.5", 96 + 24);
	expect(eth, to("172.16.0.9", 0), NULL, 0, 3);
	expect(eth, to("192.168.7.1", 0), NULL, 0, 2);
	eth1.gid_nr = eth0.gid_nr = 0;
	add(&eth1, 2, "192.168.7.1", 128);
	expect(eth, to("172.16.0.9", 0), NULL, 1, 2);
}

/* Of equal rails the one with less to do, then in turns; a better one whatever it has to do. */
static void
equals_are_spread(void **state)
{
	struct token tok = to("172.16.0.9", 0), near = to("10.0.1.9", 0);
	struct rdma_asker asker = { .numa_node = -1 };
	struct rail_route r;
	int cost[2] = { 0, 0 }, taken[2] = { 0, 0 };

	for (asker.turn = 0; asker.turn < 100; asker.turn++) {
		assert_int_equal(rdma_choose(eth, 2, 3, cost, &tok, &asker, &r), 0);
		taken[r.rail]++;
	}
	assert_int_equal(taken[0], 50);
	assert_int_equal(taken[1], 50);
	for (asker.turn = 0; asker.turn < 2; asker.turn++) {
		cost[0] = 5, cost[1] = 4;
		assert_int_equal(rdma_choose(eth, 2, 3, cost, &tok, &asker, &r), 0);
		assert_int_equal(r.rail, 1);
		cost[0] = 3;
		assert_int_equal(rdma_choose(eth, 2, 3, cost, &tok, &asker, &r), 0);
		assert_int_equal(r.rail, 0);
		cost[0] = 0, cost[1] = 1000;
		assert_int_equal(rdma_choose(eth, 2, 3, cost, &near, &asker, &r), 0);
		assert_int_equal(r.rail, 1);
	}
}

/* A rail that did not lead there is not named again: the order of all of them. */
static void
the_next_one(void **state)
{
	struct token tok = to("10.0.1.9", 0);
	struct rdma_asker asker = { .numa_node = -1 };
	struct rail_route r;

	assert_int_equal(rdma_choose(eth, 2, 3, NULL, &tok, &asker, &r), 0);
	assert_int_equal(r.rail, 1);
	asker.tried = 2;
	assert_int_equal(rdma_choose(eth, 2, 3, NULL, &tok, &asker, &r), 0);
	assert_int_equal(r.rail, 0);
	asker.tried = 3;
	assert_int_equal(rdma_choose(eth, 2, 3, NULL, &tok, &asker, &r), -ENETDOWN);
}

static void
only_rails_that_are_up(void **state)
{
	struct token tok = to("10.0.0.9", 0);
	struct rail_route r;

	assert_int_equal(choose(eth, 2, &tok, NULL, &r), 0);
	assert_int_equal(r.rail, 1);
	assert_int_equal(choose(eth, 0, &tok, NULL, &r), -ENETDOWN);
	assert_int_equal(rdma_choose(eth, 0, 0, NULL, &tok, &(struct rdma_asker){ 0 }, &r), -ENETDOWN);
}

/* item 23 */
static void
infiniband(void **state)
{
	struct sockaddr_storage sa = from("192.168.9.5");
	struct token tok = to(NULL, 0x77);
	struct rail_route r;

	assert_int_equal(choose(ib, 3, &tok, NULL, &r), 0);
	assert_false(r.key.is_global);
	assert_int_equal(r.key.dlid, 0x77);
	tok = to("fec0:0:0:7::99", 0x77); /* through the rail of that subnet, where the LID is enough */
	assert_int_equal(choose(ib, 3, &tok, NULL, &r), 0);
	assert_int_equal(r.rail, 1);
	assert_false(r.key.is_global);
	assert_int_equal(r.key.dlid, 0x77);
	assert_int_equal(choose(ib, 3, &tok, (struct sockaddr *)&sa, &r), 0);
	assert_int_equal(r.rail, 1);
	tok = to("fec0:0:0:8::99", 0x77); /* of another subnet: global and dlid */
	assert_int_equal(choose(ib, 1, &tok, NULL, &r), 0);
	assert_true(r.key.is_global);
	assert_memory_equal(r.key.dgid, tok.gid, 16);
	assert_int_equal(r.key.dlid, 0x77);
	assert_int_equal(choose(ib, 3, &tok, (struct sockaddr *)&sa, &r), 0);
	assert_int_equal(r.rail, 0); /* found by its IPoIB address */
	tok = to("fec0:0:0:7::99", 0);
	assert_int_equal(choose(ib, 3, &tok, NULL, &r), -ENETUNREACH);
	tok = to("10.0.0.9", 5); /* an IPv4 GID is no InfiniBand port */
	assert_int_equal(choose(ib, 3, &tok, NULL, &r), -ENETDOWN);
}

static void
no_gid_on_ethernet_is_refused(void **state)
{
	struct token tok = to(NULL, 0x77);
	struct rail_route r;

	assert_int_equal(choose(eth, 3, &tok, NULL, &r), -EINVAL);
	assert_int_equal(choose(mixed, 3, &tok, NULL, &r), 0);
	assert_int_equal(r.rail, 1);
	assert_int_equal(choose(mixed, 1, &tok, NULL, &r), -ENETDOWN); /* its rail is down */
}

/* The token's port decides on the link layer, whatever the rails' order and the HTTP connection's address. */
static void
link_layers(void **state)
{
	static const struct rail_view *const turned[] = { &ib0, &eth0 };

	for (int swap = 0; swap < 2; swap++) {
		const struct rail_view *const *views = swap ? turned : mixed;
		int eth_rail = swap, ib_rail = !swap;
		struct token tok = to("fe80::21", 0x21);
		struct rail_route r;

		expect(views, tok, NULL, ib_rail, 0);
		expect(views, tok, "10.0.0.5", ib_rail, 0);
		expect(views, to(NULL, 0x21), "10.0.0.5", ib_rail, 0);
		expect(views, to("fe80::21", 0), NULL, eth_rail, 1);
		expect(views, to("fe80::21", 0), "192.168.9.5", eth_rail, 1);
		expect(views, to("10.0.0.9", 0), "192.168.9.5", eth_rail, 3);
		expect(views, to("10.0.0.9", 0x21), NULL, eth_rail,
		       3); /* an IPv4 address is no InfiniBand port's */
		assert_int_equal(choose(views, 1u << eth_rail, &tok, NULL, &r), -ENETDOWN);
	}
	/* Where there is no InfiniBand, a LID means nothing. */
	expect(eth, to("fe80::21", 0x21), NULL, 0, 1);
}

/* item 22, item 23, item 24: what the kernel is handed. */
static void
attributes(void **state)
{
	const struct ah_params p = { .service_level = 3, .traffic_class = 96, .hop_limit = 64 };
	struct rdma_ah_key k = { .is_global = true, .sgid_index = 3 };
	struct ibv_ah_attr a;
	uint32_t flow;

	addr("10.0.0.9", k.dgid);
	rdma_ah_build(&k, 2, &p, &a);
	assert_int_equal(a.is_global, 1);
	assert_int_equal(a.dlid, 0);
	assert_int_equal(a.sl, 3);
	assert_int_equal(a.port_num, 2);
	assert_int_equal(a.grh.sgid_index, 3);
	assert_int_equal(a.grh.hop_limit, 64);
	assert_int_equal(a.grh.traffic_class, 96);
	assert_memory_equal(a.grh.dgid.raw, k.dgid, 16);
	flow = a.grh.flow_label;
	assert_true(flow > 0 && flow <= 0xfffff);
	/* Each path is another way, and each client's. */
	k.path = 1;
	rdma_ah_build(&k, 2, &p, &a);
	assert_int_not_equal(a.grh.flow_label, flow);
	k.path = 0;
	k.dgid[15]++;
	rdma_ah_build(&k, 2, &p, &a);
	assert_int_not_equal(a.grh.flow_label, flow);
	for (int i = 0; i < 1 << 20; i++) {
		memcpy(k.dgid + 12, &i, 4);
		rdma_ah_build(&k, 2, &p, &a);
		if (a.grh.flow_label == 0)
			fail_msg("no flow label for %d", i);
	}
	k.dlid = 0x77;
	rdma_ah_build(&k, 1, &p, &a);
	assert_int_equal(a.is_global, 1);
	assert_int_equal(a.dlid, 0x77);
	k.is_global = false;
	rdma_ah_build(&k, 1, &p, &a);
	assert_int_equal(a.is_global, 0);
	assert_int_equal(a.dlid, 0x77);
	assert_int_equal(a.grh.hop_limit, 0);
}

static void
selectors(void **state)
{
	struct selector s;

	assert_int_equal(selector_parse("mlx5_0", &s), 0);
	assert_string_equal(s.device, "mlx5_0");
	assert_int_equal(s.port, 0);
	assert_int_equal(selector_parse("mlx5_bond_0:2", &s), 0);
	assert_string_equal(s.device, "mlx5_bond_0");
	assert_int_equal(s.port, 2);
	assert_int_equal(selector_parse("10.0.0.5", &s), 0);
	assert_true(s.is_address);
	assert_int_equal(s.gid[10], 0xff);
	assert_int_equal(s.gid[15], 5);
	assert_int_equal(selector_parse("0000:0000:0000:0000:0000:ffff:0a00:0005", &s), 0);
	assert_true(gid_is_v4(s.gid));
	assert_int_equal(selector_parse("mlx5_0:", &s), -EINVAL);
	assert_int_equal(selector_parse("mlx5_0:0", &s), -EINVAL);
	assert_int_equal(selector_parse("mlx5_0:256", &s), -EINVAL);
	assert_int_equal(selector_parse(":1", &s), -EINVAL);
	assert_int_equal(selector_parse("", &s), -EINVAL);
	assert_int_equal(
		selector_parse("0123456789012345678901234567890123456789012345678901234567890123456789", &s),
		-EINVAL);
}

static void
mtus(void **state)
{
	assert_int_equal(mtu_bytes(IBV_MTU_4096), 4096);
	assert_int_equal(mtu_bytes(IBV_MTU_256), 256);
	assert_int_equal(mtu_enum(1024), IBV_MTU_1024);
	assert_int_equal(mtu_enum(9000), IBV_MTU_4096);
	assert_int_equal(mtu_enum(1500), IBV_MTU_1024);
	assert_int_equal(mtu_enum(1), IBV_MTU_256);
}

#define T(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(family),
		T(order),
		T(unknown_subnets_come_last),
		T(equals_are_spread),
		T(the_next_one),
		T(only_rails_that_are_up),
		T(infiniband),
		T(no_gid_on_ethernet_is_refused),
		T(link_layers),
		T(attributes),
		T(selectors),
		T(mtus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
