/* SPDX-License-Identifier: Apache-2.0 */
/* What a program asks for: defaults, ranges, addresses, whom tokens may name.  No device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/server_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct gantry_server s;
static struct gantry_server_params p;
static char err[512];

static int
take(void)
{
	free(s.names);
	memset(&s, 0, sizeof s);
	err[0] = 0;
	return params_take(&s, &p, err, sizeof err);
}

static void
fresh(void)
{
	gantry_server_defaults(&p, sizeof p);
}

static void
what_nobody_says(void **state)
{
	fresh();
	assert_int_equal(take(), 0);
	assert_int_equal(s.conf.mode, RDMA_AUTO);
	assert_int_equal(s.conf.channels, 128);
	assert_int_equal(s.conf.cq_depth, 640);
	assert_true(s.conf.dc_key == 0xffeeddcc);
	assert_int_equal(s.conf.timeout, 16);
	assert_int_equal(s.conf.retry_cnt, 7);
	assert_int_equal(s.conf.rnr_retry, 7);
	assert_int_equal(s.conf.hop_limit, 64);
	assert_int_equal(s.conf.traffic_class, CONF_CLASS_AUTO);
	assert_int_equal(s.conf.max_sge, 10);
	assert_int_equal(s.conf.max_rd_atomic, 0);
	assert_int_equal(s.conf.ah_cache, 128 * 9);
	assert_int_equal(s.p.delay_mode, GANTRY_DELAY_BATCH);
	assert_int_equal(s.p.delay_interval_ns, 5000);
	assert_true(s.p.qp_reset_on_failure);
	/* Four times 4.096 us * 2^16, eight times, and 100 ms. */
	assert_true(s.limit_ns == 4096ull * 65536 * 4 * 8 + 100000000);
	p.timeout = 0;
	assert_int_equal(take(), 0);
	assert_true(s.limit_ns == 0);
	free(s.names);
	memset(&s, 0, sizeof s);
	assert_int_equal(params_take(&s, NULL, err, sizeof err), 0);
	assert_int_equal(s.conf.channels, 128);
}

/* A program that was compiled when there was less to say gets the defaults of the rest; one that knows more is
 * not written over. */
static void
programs_of_other_times(void **state)
{
	struct {
		struct gantry_server_params p;
		char more[64];
	} later;

	fresh();
	p.size = offsetof(struct gantry_server_params, max_sge);
	p.channels = 7;
	p.max_sge = 9999;
	assert_int_equal(take(), 0);
	assert_int_equal(s.conf.channels, 7);
	assert_int_equal(s.conf.max_sge, 10);
	memset(&later, 1, sizeof later);
	gantry_server_defaults(&later.p, sizeof later);
	assert_true(later.p.size == sizeof later);
	assert_int_equal(later.more[63], 0);
	p.size = 0;
	assert_int_equal(take(), -EINVAL);
	assert_non_null(strstr(err, "gantry_server_defaults()"));
}

static void
out_of_range(void **state)
{
#define ROW(field, bad)                                                                                      \
	{                                                                                                    \
#field, offsetof(struct gantry_server_params, field), bad                                    \
	}
	static const struct {
		const char *name;
		size_t at;
		int bad;
	} row[] = { ROW(channels, 0),       ROW(channels, 65536),   ROW(cq_depth, 0),
		    ROW(service_level, 16), ROW(timeout, 32),       ROW(timeout, -1),
		    ROW(retry_cnt, 8),      ROW(rnr_retry, 8),      ROW(hop_limit, 0),
		    ROW(hop_limit, 256),    ROW(pkey_index, 65536), ROW(traffic_class, 256),
		    ROW(traffic_class, -2), ROW(max_sge, 0),        ROW(max_sge, 33),
		    ROW(max_rd_atomic, -1), ROW(path_mtu, 1500),    ROW(path_mtu, 128),
		    ROW(delay_mode, 4),     ROW(log_level, 3) };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		fresh();
		memcpy((char *)&p + row[i].at, &row[i].bad, sizeof row[i].bad);
		assert_int_equal(take(), -EINVAL);
		assert_non_null(strstr(err, row[i].name));
	}
}

static void
addresses(void **state)
{
	fresh();
	p.address = " 10.0.0.9,fd00::9 , mlx5_1:1";
	assert_int_equal(take(), 0);
	assert_int_equal(s.conf.mode, RDMA_LIST);
	assert_int_equal(s.conf.device_nr, 3);
	assert_string_equal(s.conf.devices[0], "10.0.0.9");
	assert_string_equal(s.conf.devices[1], "fd00::9");
	assert_string_equal(s.conf.devices[2], "mlx5_1:1");
	p.address = "auto";
	assert_int_equal(take(), 0);
	assert_int_equal(s.conf.mode, RDMA_AUTO);
	p.address = " , ";
	assert_int_equal(take(), -EINVAL);
	p.address = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17";
	assert_int_equal(take(), -EINVAL);
	assert_non_null(strstr(err, "16"));
}

static void
whom_tokens_may_name(void **state)
{
	struct in6_addr a = { .s6_addr = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 9 } };

	fresh();
	/* Claim TM72: by default the subnets of the ports alone. */
	assert_int_equal(take(), 0);
	assert_true(s.conf.allow_nr == 0 && !s.conf.allow_routed);
	assert_false(s.conf.allow_loopback || s.conf.allow_self || s.conf.allow_link_local);
	/* The environment is for programs that do not say. */
	setenv("GANTRY_SERVER_ALLOW", "subnet, loopback", 1);
	assert_int_equal(take(), 0);
	assert_true(s.conf.allow_nr == 0 && s.conf.allow_loopback && !s.conf.allow_self);
	setenv("GANTRY_SERVER_ALLOW", "everybody", 1);
	assert_int_equal(take(), -EINVAL);
	assert_non_null(strstr(err, "everybody"));
	p.allow = "10.0.0.0/8, fd00::/8, self";
	assert_int_equal(take(), 0);
	assert_true(conf_nets_have(s.conf.allow, s.conf.allow_nr, &a));
	a.s6_addr[12] = 11;
	assert_false(conf_nets_have(s.conf.allow, s.conf.allow_nr, &a));
	assert_true(s.conf.allow_self && !s.conf.allow_loopback && !s.conf.allow_link_local);
	p.allow = "subnet link-local";
	assert_int_equal(take(), 0);
	assert_int_equal(s.conf.allow_nr, 0);
	assert_true(s.conf.allow_link_local);
	p.allow = "routed";
	assert_int_equal(take(), 0);
	assert_true(s.conf.allow_routed);
	/* Without a word for them the subnets are not meant. */
	p.allow = "loopback";
	assert_int_equal(take(), 0);
	assert_int_equal(s.conf.allow_nr, 1);
	assert_false(conf_nets_have(s.conf.allow, s.conf.allow_nr, &a));
	p.allow = "subnet, 10.0.0.0/8";
	assert_int_equal(take(), -EINVAL);
	p.allow = "10.0.0.0/33";
	assert_int_equal(take(), -EINVAL);
	assert_non_null(strstr(err, "10.0.0.0/33"));
	/* Claim TM75. */
	p.allow = "10.1.2.3/8";
	assert_int_equal(take(), -EINVAL);
	assert_non_null(strstr(err, "write 10.0.0.0/8"));
	unsetenv("GANTRY_SERVER_ALLOW");
	free(s.names);
	s.names = NULL;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_says),     cmocka_unit_test(programs_of_other_times),
		cmocka_unit_test(out_of_range),         cmocka_unit_test(addresses),
		cmocka_unit_test(whom_tokens_may_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
