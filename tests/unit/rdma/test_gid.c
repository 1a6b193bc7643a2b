/* SPDX-License-Identifier: Apache-2.0 */
/* Which GIDs a token may name: rdma.allow, rdma.allow_special, rdma.bind_gid (claims TM7, TM8). */
#include "rdma/rdma_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "conf/conf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static struct rdma_trust trust;
static struct conf_rdma conf;

static void
addr(const char *text, uint8_t gid[16])
{
	struct selector s;

	assert_int_equal(selector_parse(text, &s), 0);
	memcpy(gid, s.gid, 16);
}

static void
add(struct rail_view *v, const char *text, int prefix)
{
	addr(text, v->gid[v->gid_nr].raw);
	v->gid[v->gid_nr++].prefix = (uint8_t)prefix;
}

static void
build(bool with_ib, bool loopback)
{
	static struct rail_view eth, ib;
	static const struct rail_view *const both[] = { &eth, &ib };

	eth = (struct rail_view){ .is_ethernet = true };
	add(&eth, "fe80::1", 64);
	if (loopback) {
		add(&eth, "127.0.0.1", 96 + 8);
	} else {
		add(&eth, "10.0.0.5", 96 + 24);
		add(&eth, "fd00:0:0:1::5", 64);
	}
	ib = (struct rail_view){ .lid = 1 };
	add(&ib, "fe80::9:1", 64);
	rdma_trust_build(both, with_ib ? 2 : 1, &trust);
	conf = (struct conf_rdma){ 0 };
}

static int
ask(const char *gid, const char *peer)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	const struct sockaddr *sa = NULL;
	uint8_t raw[16];

	if (gid)
		addr(gid, raw);
	if (peer && inet_pton(AF_INET, peer, &sin.sin_addr) == 1)
		sa = (struct sockaddr *)&sin;
	else if (peer && inet_pton(AF_INET6, peer, &sin6.sin6_addr) == 1)
		sa = (struct sockaddr *)&sin6;
	return rdma_trust_check(&trust, &conf, gid ? raw : NULL, sa);
}

static void
own_subnets_by_default(void **state)
{
	build(false, false);
	assert_int_equal(ask("10.0.0.77", NULL), 0);
	assert_int_equal(ask("fd00:0:0:1::77", NULL), 0);
	assert_int_equal(ask("10.0.1.77", NULL), -EHOSTUNREACH);
	assert_int_equal(ask("fd00:0:0:2::77", NULL), -EHOSTUNREACH);
	assert_int_equal(ask("8.8.8.8", NULL), -EHOSTUNREACH);
	/* Without InfiniBand a token without GID is somebody else's to refuse (400). */
	assert_int_equal(ask(NULL, NULL), 0);
}

static void
never_without_a_word(void **state)
{
	build(false, false);
	assert_int_equal(conf_net_parse("::/0", &conf.allow[conf.allow_nr++]), 0);
	assert_int_equal(ask("8.8.8.8", NULL), 0);
	assert_int_equal(ask("127.0.0.1", NULL), -EHOSTUNREACH);
	assert_int_equal(ask("::1", NULL), -EHOSTUNREACH);
	assert_int_equal(ask("fe80::77", NULL), -EHOSTUNREACH);
	assert_int_equal(ask("169.254.1.1", NULL), -EHOSTUNREACH);
	assert_int_equal(ask("10.0.0.5", NULL), -EHOSTUNREACH); /* our own */
	assert_int_equal(ask("224.0.0.1", NULL), -EACCES);
	assert_int_equal(ask("255.255.255.255", NULL), -EACCES);
	assert_int_equal(ask("ff02::1", NULL), -EACCES);
	assert_int_equal(ask("::", NULL), -EACCES);
	assert_int_equal(ask("0.0.0.0", NULL), -EACCES);
	conf.allow_loopback = conf.allow_link_local = conf.allow_self = true;
	assert_int_equal(ask("127.0.0.1", NULL), 0);
	assert_int_equal(ask("fe80::77", NULL), 0);
	assert_int_equal(ask("10.0.0.5", NULL), 0);
	assert_int_equal(ask("ff02::1", NULL), -EACCES);
	assert_int_equal(ask("224.0.0.1", NULL), -EACCES);
}

static void
loopback_rails(void **state)
{
	build(false, true);
	assert_int_equal(ask("127.0.0.1", NULL), -EHOSTUNREACH);
	assert_int_equal(ask("127.0.0.2", NULL), -EHOSTUNREACH);
	conf.allow_loopback = true; /* the one word does, for our own address too */
	assert_int_equal(ask("127.0.0.1", NULL), 0);
	assert_int_equal(ask("127.0.0.2", NULL), 0);
	assert_int_equal(ask("10.0.0.1", NULL), -EHOSTUNREACH);
}

static void
allow_replaces_the_default(void **state)
{
	build(false, false);
	assert_int_equal(conf_net_parse("192.168.0.0/16", &conf.allow[conf.allow_nr++]), 0);
	assert_int_equal(ask("192.168.3.4", NULL), 0);
	assert_int_equal(ask("10.0.0.77", NULL), -EHOSTUNREACH);
}

/* `routed` is every address that may be anybody's, as far as the kernel has a route there: 1. */
static void
routed(void **state)
{
	build(true, false);
	conf.allow_routed = true;
	assert_int_equal(ask("8.8.8.8", NULL), 1);
	assert_int_equal(ask("2001:db8::1", NULL), 1);
	assert_int_equal(ask("10.0.0.77", NULL), 0); /* our subnets need no question */
	assert_int_equal(ask("fe80::77", NULL), 0);
	assert_int_equal(ask(NULL, NULL), 0);
	assert_int_equal(ask("127.0.0.1", NULL), -EHOSTUNREACH);
	assert_int_equal(ask("169.254.1.1", NULL), -EHOSTUNREACH);
	assert_int_equal(ask("10.0.0.5", NULL), -EHOSTUNREACH); /* our own */
	assert_int_equal(ask("224.0.0.1", NULL), -EACCES);
	assert_int_equal(ask("0.0.0.0", NULL), -EACCES);
	assert_int_equal(conf_net_parse("8.8.0.0/16", &conf.allow[conf.allow_nr++]), 0);
	assert_int_equal(ask("8.8.8.8", NULL), 0);
	assert_int_equal(ask("9.9.9.9", NULL), 1);
	assert_int_equal(ask("10.0.0.77", NULL), 0);
	conf.bind_gid = BIND_GID_EXACT;
	assert_int_equal(ask("9.9.9.9", "9.9.9.8"), -EACCES);
}

static void
infiniband_subnets(void **state)
{
	build(true, false);
	assert_int_equal(ask("fe80::77", NULL), 0); /* link-local in form, the subnet in fact */
	assert_int_equal(ask("fec0::77", NULL), -EHOSTUNREACH);
	assert_int_equal(ask(NULL, NULL), 0);
	assert_int_equal(ask("fe80::9:1", NULL), -EHOSTUNREACH); /* our own */
	assert_int_equal(conf_net_parse("10.0.0.0/8", &conf.allow[conf.allow_nr++]), 0);
	assert_int_equal(ask(NULL, NULL), -EHOSTUNREACH);
	assert_int_equal(conf_net_parse("fe80::/64", &conf.allow[conf.allow_nr++]), 0);
	assert_int_equal(ask(NULL, NULL), 0);
	assert_int_equal(ask("fe80::77", NULL), 0);
}

static void
binding(void **state)
{
	build(false, false);
	conf.bind_gid = BIND_GID_SUBNET;
	assert_int_equal(ask("10.0.0.77", "10.0.0.78"), 0);
	assert_int_equal(ask("10.0.0.77", "::ffff:10.0.0.78"), 0);
	assert_int_equal(ask("10.0.0.77", "10.0.1.78"), -EACCES);
	assert_int_equal(ask("10.0.0.77", NULL), -EACCES);
	assert_int_equal(ask(NULL, "10.0.0.78"), -EACCES);
	conf.bind_gid = BIND_GID_EXACT;
	assert_int_equal(ask("10.0.0.77", "10.0.0.77"), 0);
	assert_int_equal(ask("10.0.0.77", "10.0.0.78"), -EACCES);
	assert_int_equal(ask("10.0.1.77", "10.0.1.77"),
			 -EHOSTUNREACH); /* not in a subnet of ours all the same */
}

/* claim TM10: can clients of a listener be in a subnet of the rails? */
static void
shared(void **state)
{
	static const struct {
		const char *listen;
		bool eth, with_ib, loopback;
	} of[] = {
		{ "10.0.0.5:9000", true, true, false },
		{ "10.0.0.77:9000", true, true, false },
		{ "10.0.1.5:9000", false, false, false },
		{ "127.0.0.1:9000", false, false, true },
		{ "0.0.0.0:9000", true, true, true },
		{ "[::]:9000", true, true, true },
		{ "[fd00:0:0:1::9]:9000", true, true, false },
		{ "[fd00:0:0:2::9]:9000", false, false, false },
		{ "[fe80::7]:9000", false, false, false },
		{ "[::ffff:10.0.0.5]:9000", true, true, false },
	};
	struct rdma_trust none = { .net_nr = 0 };

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		for (int how = 0; how < 3; how++) {
			struct sockaddr_storage sa;
			socklen_t len;
			bool want = how == 0 ? of[i].eth : how == 1 ? of[i].with_ib : of[i].loopback;

			build(how == 1, how == 2);
			assert_int_equal(conf_addr_parse(of[i].listen, &sa, &len), 0);
			if (rdma_trust_shares(&trust, (struct sockaddr *)&sa) != want)
				fail_msg("%s, %d", of[i].listen, how);
			assert_false(rdma_trust_shares(&none, (struct sockaddr *)&sa));
		}
	}
	assert_false(rdma_trust_shares(&trust, &(struct sockaddr){ .sa_family = AF_UNIX }));
}

/* Claim TM7: an address that stands for several hosts, or for none, is refused by whichever rule it would be allowed. */
static void
one_host_alone(void **state)
{
	static const struct {
		const char *gid, *allow;
		int of_list, of_subnets, of_routed;
	} of[] = {
		/* Of the rail's subnets, 10.0.0.0/24 and fd00:0:0:1::/64, as they are and by a list that has them. */
		{ "10.0.0.255", "10.0.0.0/8", -EACCES, -EACCES, -EACCES },
		{ "10.0.0.0", "10.0.0.0/8", -EACCES, -EACCES, -EACCES },
		{ "::ffff:10.0.0.255", "::/0", -EACCES, -EACCES, -EACCES },
		{ "10.0.0.255", "10.0.0.255/32", -EACCES, -EACCES, -EACCES },
		{ "fd00:0:0:1::", "fd00::/8", -EACCES, -EACCES, -EACCES },
		{ "fd00:0:0:1:fdff:ffff:ffff:ffff", "fd00::/8", -EACCES, -EACCES, -EACCES },
		{ "fd00:0:0:1:fdff:ffff:ffff:ff80", "fd00::/8", -EACCES, -EACCES, -EACCES },
		{ "fd00:0:0:1:fdff:ffff:ffff:fffe", "fd00::/8", -EACCES, -EACCES, -EACCES },
		{ "fd00:0:0:1:fdff:ffff:ffff:ff7f", "fd00::/8", 0, 0, 0 },
		{ "fd00:0:0:1:ffff:ffff:ffff:ffff", "fd00::/8", 0, 0, 0 },
		{ "10.0.0.254", "10.0.0.0/8", 0, 0, 0 },
		{ "10.0.0.1", "10.0.0.0/8", 0, 0, 0 },
		/* A part of our own subnet has no ends of its own. */
		{ "10.0.0.8", "10.0.0.8/30", 0, 0, 0 },
		{ "10.0.0.11", "10.0.0.8/30", 0, 0, 0 },
		/* Of a block that is none of ours. */
		{ "10.9.4.255", "10.9.4.0/24", -EACCES, -EHOSTUNREACH, 1 },
		{ "10.9.4.0", "10.9.4.0/24", -EACCES, -EHOSTUNREACH, 1 },
		{ "10.9.4.3", "10.9.4.0/30", -EACCES, -EHOSTUNREACH, 1 },
		{ "10.9.4.0", "10.9.4.0/31", 0, -EHOSTUNREACH, 1 },
		{ "10.9.4.1", "10.9.4.0/31", 0, -EHOSTUNREACH, 1 },
		{ "10.9.4.0", "10.9.4.0/32", 0, -EHOSTUNREACH, 1 },
		{ "10.9.3.255", "10.9.0.0/16", 0, -EHOSTUNREACH, 1 },
		{ "fd09::", "fd09::/64", -EACCES, -EHOSTUNREACH, 1 },
		{ "fd09::fdff:ffff:ffff:fffe", "fd09::/64", -EACCES, -EHOSTUNREACH, 1 },
		{ "fd09::ffff:ffff:ffff:fffe", "fd09::/64", 0, -EHOSTUNREACH, 1 },
		{ "fd09::ff:ffff:ffff:fffe", "fd09::/72", -EACCES, -EHOSTUNREACH, 1 },
		{ "fd09::1", "fd09::/127", 0, -EHOSTUNREACH, 1 },
		{ "fd09::", "fd09::/127", 0, -EHOSTUNREACH, 1 },
		{ "fd09::7f", "fd09::/121", 0, -EHOSTUNREACH, 1 },
		/* In every network. */
		{ "224.0.0.251", "::/0", -EACCES, -EACCES, -EACCES },
		{ "239.255.255.255", "::/0", -EACCES, -EACCES, -EACCES },
		{ "240.0.0.1", "::/0", -EACCES, -EACCES, -EACCES },
		{ "255.255.255.255", "255.255.255.255/32", -EACCES, -EACCES, -EACCES },
		{ "0.0.0.0", "0.0.0.0/0", -EACCES, -EACCES, -EACCES },
		{ "0.1.2.3", "0.0.0.0/0", -EACCES, -EACCES, -EACCES },
		{ "::", "::/0", -EACCES, -EACCES, -EACCES },
		{ "::10.0.0.77", "::/0", -EACCES, -EACCES, -EACCES },
		{ "ff02::1", "ff02::/16", -EACCES, -EACCES, -EACCES },
		{ "ff0e::1", "::/0", -EACCES, -EACCES, -EACCES },
		{ "127.255.255.255", "::/0", -EACCES, -EACCES, -EACCES },
		{ "127.0.0.0", "::/0", -EACCES, -EACCES, -EACCES },
		{ "169.254.255.255", "::/0", -EACCES, -EACCES, -EACCES },
		{ "169.254.0.0", "::/0", -EACCES, -EACCES, -EACCES },
		{ "fe80::", "::/0", -EACCES, -EACCES, -EACCES },
		{ "fe80::fdff:ffff:ffff:fffe", "::/0", -EACCES, -EACCES, -EACCES },
		{ "8.8.8.255", "::/0", 0, -EHOSTUNREACH, 1 },
	};

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		for (int how = 0; how < 6; how++) {
			int want = how % 3 == 0   ? of[i].of_subnets
				   : how % 3 == 1 ? of[i].of_list
						  : of[i].of_routed,
			    have;

			build(false, false);
			if (how >= 3)
				conf.allow_loopback = conf.allow_self = conf.allow_link_local = true;
			if (how % 3 == 1)
				assert_int_equal(conf_net_parse(of[i].allow, &conf.allow[conf.allow_nr++]),
						 0);
			conf.allow_routed = how % 3 == 2;
			have = ask(of[i].gid, NULL);
			if (have != want)
				fail_msg("%s of %s, %d: %d, not %d", of[i].gid, of[i].allow, how, have, want);
			if (want == -EACCES) {
				uint8_t raw[16];

				addr(of[i].gid, raw);
				assert_non_null(
					strstr(rdma_trust_why(&trust, &conf, raw), "no token may name"));
			}
		}
	}
	/* A list of subnets of two, and the first host of them by itself. */
	build(false, false);
	assert_int_equal(conf_net_parse("10.9.0.0/16", &conf.allow[conf.allow_nr++]), 0);
	assert_int_equal(ask("10.9.0.0", NULL), -EACCES);
	assert_int_equal(conf_net_parse("10.9.0.0/31", &conf.allow[conf.allow_nr++]), 0);
	assert_int_equal(ask("10.9.0.0", NULL), 0);
	assert_int_equal(ask("10.9.255.255", NULL), -EACCES);
	/* Subnets of two addresses and of one; a rail whose subnet is unknown. */
	build(false, false);
	trust.net[0].prefix = 127;
	assert_int_equal(ask("10.0.0.4", NULL), 0);
	trust.net[0].prefix = 128;
	trust.net[1].prefix = 127;
	assert_int_equal(ask("fd00:0:0:1::4", NULL), 0);
	/* A subnet of InfiniBand: no GUID, no port. */
	build(true, false);
	assert_int_equal(ask("fe80::", NULL), -EACCES);
}

static void
texts(void **state)
{
	char text[INET6_ADDRSTRLEN];
	uint8_t g[16];

	addr("::ffff:10.1.2.3", g);
	assert_string_equal(gid_text(g, text, sizeof text), "10.1.2.3");
	addr("fe80::1", g);
	assert_string_equal(gid_text(g, text, sizeof text), "fe80::1");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_subnets_by_default),
		cmocka_unit_test(never_without_a_word),
		cmocka_unit_test(loopback_rails),
		cmocka_unit_test(allow_replaces_the_default),
		cmocka_unit_test(routed),
		cmocka_unit_test(infiniband_subnets),
		cmocka_unit_test(binding),
		cmocka_unit_test(shared),
		cmocka_unit_test(one_host_alone),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
