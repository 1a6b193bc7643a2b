/* SPDX-License-Identifier: Apache-2.0 */
/* claim TM31: names in Host that can mean nobody but us, and addresses that only this machine reaches. */
#include "conf/conf.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const struct conf_s3 s3 = { .domains = { (char *)"s3.example.test", (char *)"x" }, .domain_nr = 2 };

static bool
ours(const struct conf_s3 *conf, const char *host)
{
	return conf_host_is_ours(conf, host, strlen(host));
}

static void
test_ours(void **state)
{
	static const char *const good[] = {
		"127.0.0.1",       "127.0.0.1:9000",          "10.1.2.3:80", "[::1]",          "[::1]:9000",
		"[fd00::12]:9000", "[::ffff:127.0.0.1]:9000", "localhost",   "LocalHost:9000", "localhost:",
	};
	static const char *const bad[] = {
		"",
		"evil.example",
		"evil.example:9000",
		"localhost.evil.example",
		"evil.localhost",
		"xlocalhost",
		"127.0.0.1.evil.example",
		"127.0.0.1:9000:9000",
		"127.0.0.1:90a",
		"127.1",
		"2130706433",
		"0x7f.0.0.1",
		"::1",
		"[::1",
		"[::1]x",
		"[::1]:a",
		"[127.0.0.1]",
		"[]",
		":9000",
		"[evil.example]:9000",
		"127.0.0.1 ",
		"user@127.0.0.1",
	};

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		if (!ours(NULL, good[i]) || !ours(&s3, good[i]))
			fail_msg("%s is not ours", good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (ours(NULL, bad[i]) || ours(&s3, bad[i]))
			fail_msg("%s is ours", bad[i]);
	}
	/* A NUL hides nothing. */
	assert_false(conf_host_is_ours(NULL, "127.0.0.1\0.evil.example", 23));
	assert_false(conf_host_is_ours(NULL, "localhost\0", 10));
}

static void
test_domains(void **state)
{
	assert_true(ours(&s3, "s3.example.test"));
	assert_true(ours(&s3, "bucket.S3.Example.Test:9000"));
	assert_true(ours(&s3, "a.b.s3.example.test"));
	assert_true(ours(&s3, "x:1"));
	assert_true(ours(&s3, "b.x"));
	assert_false(ours(&s3, "s3.example.test.evil"));
	assert_false(ours(&s3, "evils3.example.test"));
	assert_false(ours(&s3, ".s3.example.test"));
	assert_false(ours(&s3, "example.test"));
	assert_false(ours(NULL, "s3.example.test"));
}

static void
test_loopback(void **state)
{
	static const struct {
		const char *address;
		bool is_loopback;
	} of[] = {
		{ "127.0.0.1:1", true },          { "127.8.9.1:1", true },
		{ "localhost:1", true },          { "[::1]:1", true },
		{ "[::ffff:127.0.0.1]:1", true }, { "10.0.0.1:1", false },
		{ "[::ffff:10.0.0.1]:1", false }, { "[fd00::1]:1", false },
		{ "0.0.0.0:1", false },           { "*:1", false },
	};

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct sockaddr_storage sa;
		socklen_t len;

		assert_int_equal(conf_addr_parse(of[i].address, &sa, &len), 0);
		if (conf_is_loopback(&sa) != of[i].is_loopback)
			fail_msg("%s", of[i].address);
	}
	assert_false(conf_is_loopback(&(struct sockaddr_storage){ .ss_family = AF_UNIX }));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ours),
		cmocka_unit_test(test_domains),
		cmocka_unit_test(test_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
