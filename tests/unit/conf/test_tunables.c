/* SPDX-License-Identifier: Apache-2.0 */
/* The tunables that an operator of cuObjServer knows: each has a key, with the default that he knows
 * (protocol.md 5), takes its range and nothing beyond. */
#include "conf/conf_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static char *said;

static int
load(const char *assignment, struct conf **ret_conf)
{
	struct conf_override one = { assignment };
	struct conf_source src = { .file = "/nonexistent/gantryd.yaml",
				   .partial = true,
				   .overrides = &one,
				   .override_nr = assignment ? 1 : 0 };
	size_t len;
	FILE *err;
	int r;

	free(said);
	err = open_memstream(&said, &len);
	r = conf_load(&src, ret_conf, err);
	fclose(err);
	return r;
}

/* item 24, item 108 */
static void
defaults(void **state)
{
	static const char *const want[][2] = {
		{ "rdma.channels", "128" },       { "rdma.cq_depth", "auto" },
		{ "rdma.dc_key", "0xffeeddcc" },  { "rdma.service_level", "0" },
		{ "rdma.timeout", "16" },         { "rdma.hop_limit", "64" },
		{ "rdma.pkey_index", "0" },       { "rdma.delay_interval", "5us" },
		{ "rdma.delay_mode", "batch" },   { "rdma.qp_reset_on_failure", "true" },
		{ "rdma.retry_cnt", "7" },        { "rdma.traffic_class", "96" },
		{ "rdma.max_rd_atomic", "auto" }, { "rdma.poll_batch", "16" },
		{ "rdma.path_mtu", "auto" },
	};
	struct conf *c;

	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		const struct conf_key *k = key_find(conf_keys, conf_key_nr, want[i][0]);

		if (!k)
			fail_msg("no key %s", want[i][0]);
		assert_string_equal(k->def, want[i][1]);
	}
	assert_int_equal(load(NULL, &c), 0);
	assert_int_equal(c->rdma.hop_limit, 64);
	assert_int_equal(c->rdma.traffic_class, 96);
	assert_int_equal(c->rdma.timeout, 16);
	assert_int_equal(c->rdma.retry_cnt, 7);
	assert_int_equal(c->rdma.delay_interval_ns, 5000);
	assert_int_equal(c->rdma.delay_mode, DELAY_BATCH);
	assert_true(c->rdma.qp_reset_on_failure);
	assert_int_equal(c->rdma.dc_key, 0xffeeddcc);
	conf_free(c);
}

static void
modes(void **state)
{
	static const char *const names[] = { "none", "batch", "entry", "adaptive" };

	for (int i = 0; i < 4; i++) {
		char text[64];
		struct conf *c;

		snprintf(text, sizeof text, "rdma.delay_mode=%s", names[i]);
		assert_int_equal(load(text, &c), 0);
		/* The numbers that cuObjServer gives them. */
		assert_int_equal(c->rdma.delay_mode, i);
		conf_free(c);
	}
}

static void
ranges(void **state)
{
	static const char *const bad[] = {
		"rdma.retry_cnt=8",
		"rdma.traffic_class=256",
		"rdma.hop_limit=0",
		"rdma.hop_limit=256",
		"rdma.service_level=16",
		"rdma.timeout=32",
		"rdma.timeout=0",
		"rdma.delay_mode=lazy",
		"rdma.delay_interval=2s",
		"rdma.max_rd_atomic=256",
		"rdma.pkey_index=65536",
		"rdma.dc_key=0x1ffffffffffffffff",
		"rdma.qp_reset_on_failure=maybe",
		"limits.pieces_per_request=17",
	};
	static const char *const good[] = {
		"rdma.retry_cnt=0",
		"rdma.traffic_class=255",
		"rdma.hop_limit=255",
		"rdma.service_level=7",
		"rdma.timeout=31",
		"rdma.max_rd_atomic=255",
		"rdma.traffic_class=auto",
		"rdma.service_level=auto",
		"rdma.paths=16",
		"rdma.pkey_index=1",
		"rdma.dc_key=0x1234567890abcdef",
		"limits.pieces_per_request=16",
	};
	struct conf *c;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char key[32];

		if (load(bad[i], &c) == 0)
			fail_msg("%s was taken", bad[i]);
		snprintf(key, sizeof key, "%.*s", (int)strcspn(bad[i], "="), bad[i]);
		assert_non_null(strstr(said, key));
		assert_non_null(strstr(said, "expected"));
	}
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		if (load(good[i], &c) < 0)
			fail_msg("%s: %s", good[i], said);
		conf_free(c);
	}
}

static int
teardown(void **state)
{
	free(said);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(modes),
		cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
