/* SPDX-License-Identifier: Apache-2.0 */
/* GET and HEAD through the request machine: replies, ranges, what lands in the window and what does not. */
#include "tests/unit/ops/rig.h"

#include <errno.h>

static int
get(struct xchg *x, const char *key, const char *range, uint64_t win)
{
	char target[128];

	snprintf(target, sizeof target, "/bkt/%s", key);
	x_init(x, 0, "GET", target);
	if (range)
		x_field(x, "range", "%s", range);
	x_token(x, "x-amz-rdma-token", 0, win);
	return x_run(x);
}

static void
assert_window(size_t len, unsigned seed, size_t from)
{
	unsigned char *want = malloc(from + len + 1);

	pattern(want, from + len, seed);
	assert_memory_equal(rig.win, want + from, len);
	for (size_t i = len; i < len + 8192 && i < WIN_MAX; i++)
		assert_int_equal(rig.win[i], GUARD); /* item 21 */
	free(want);
}

/* item 57, item 59, item 60, item 21, item 17: whole objects of every awkward size */
static void
test_whole(void **state)
{
	static const size_t sizes[] = { 1,     255,   256,   257,           4095,    4096,          4097,
					65535, 65536, 65537, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 8 << 20 };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct xchg x;
		char n[32];

		put_object("o", sizes[i], (unsigned)i);
		assert_int_equal(get(&x, "o", NULL, sizes[i] + 100), 200);
		snprintf(n, sizeof n, "%zu", sizes[i]);
		assert_header(&x, "x-amz-rdma-reply", "200");
		assert_header(&x, "x-amz-rdma-bytes-transferred", n);
		assert_header(&x, "x-amz-rdma-bytes", n);
		assert_no_header(&x, "content-range");
		assert_non_null(x_header(&x, "etag"));
		assert_non_null(x_header(&x, "last-modified"));
		assert_int_equal(req_reply(x.rq)->body, REPLY_EMPTY);
		assert_window(sizes[i], (unsigned)i, 0);
		x_end(&x);
		memset(rig.win, GUARD, WIN_MAX);
	}
}

/* item 58, item 61, item 66, item 19: ranges at odd offsets land at ADDR + 0 */
static void
test_ranges(void **state)
{
	static const struct {
		const char *range, *content_range;
		size_t from, len;
	} c[] = { { "bytes=0-0", "bytes 0-0/3000000", 0, 1 },
		  { "bytes=1-65536", "bytes 1-65536/3000000", 1, 65536 },
		  { "bytes=65535-65537", "bytes 65535-65537/3000000", 65535, 3 },
		  { "bytes=1048575-2097153", "bytes 1048575-2097153/3000000", 1048575, 1048579 },
		  { "bytes=2999999-", "bytes 2999999-2999999/3000000", 2999999, 1 },
		  { "bytes=2900000-99999999", "bytes 2900000-2999999/3000000", 2900000, 100000 },
		  { "bytes=-7", "bytes 2999993-2999999/3000000", 2999993, 7 },
		  { "bytes=0-2999999", "bytes 0-2999999/3000000", 0, 3000000 } };

	put_object("r", 3000000, 5);
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct xchg x;
		char n[32];

		assert_int_equal(get(&x, "r", c[i].range, 4u << 20), 206);
		snprintf(n, sizeof n, "%zu", c[i].len);
		assert_header(&x, "x-amz-rdma-reply", "206");
		assert_header(&x, "x-amz-rdma-bytes-transferred", n);
		assert_header(&x, "content-range", c[i].content_range);
		assert_window(c[i].len, 5, c[i].from);
		x_end(&x);
		memset(rig.win, GUARD, WIN_MAX);
	}
}

/* item 65: a window smaller than the object; and with the option, 400 without a transfer */
static void
test_small_window(void **state)
{
	struct xchg x;

	put_object("s", 200000, 9);
	assert_int_equal(get(&x, "s", NULL, 70001), 206);
	assert_header(&x, "content-range", "bytes 0-70000/200000");
	assert_header(&x, "x-amz-rdma-bytes", "70001");
	assert_window(70001, 9, 0);
	x_end(&x);
	rig.conf->rdma.short_get_reject = true;
	assert_int_equal(get(&x, "s", NULL, 70001), 400);
	assert_no_header(&x, "x-amz-rdma-reply");
	x_end(&x);
}

/* item 62, item 63, item 64, item 68 */
static void
test_edges(void **state)
{
	uint64_t pushes;
	struct xchg x;

	put_object("e", 100, 1);
	pushes = fake_chan_stats(rig.chan)->pushes;
	assert_int_equal(get(&x, "e", "bytes=100-", 4096), 416);
	assert_header(&x, "content-range", "bytes */100");
	assert_header(&x, "content-type", "application/xml");
	assert_non_null(strstr(req_reply(x.rq)->text, "<ActualObjectSize>100</ActualObjectSize>"));
	assert_no_header(&x, "x-amz-rdma-reply");
	x_end(&x);
	assert_int_equal(get(&x, "none", NULL, 4096), 404);
	assert_no_header(&x, "x-amz-rdma-reply");
	x_end(&x);
	/* a zero-byte object, put over HTTP */
	x_init(&x, 0, "PUT", "/bkt/zero");
	x_field(&x, "content-length", "0");
	assert_int_equal(x_run(&x), 200);
	assert_header(&x, "etag", "\"d41d8cd98f00b204e9800998ecf8427e\"");
	x_end(&x);
	assert_int_equal(get(&x, "zero", NULL, 4096), 200);
	assert_header(&x, "x-amz-rdma-bytes-transferred", "0");
	x_end(&x);
	assert_int_equal(get(&x, "zero", "bytes=0-", 4096), 416);
	assert_non_null(strstr(req_reply(x.rq)->text, "<ActualObjectSize>0</ActualObjectSize>"));
	x_end(&x);
	assert_int_equal(fake_chan_stats(rig.chan)->pushes, pushes);
}

/* item 69, item 76 */
static void
test_conditions(void **state)
{
	struct xchg x;
	char etag[64];
	uint64_t pushes;

	put_object("c", 5000, 2);
	x_init(&x, 0, "HEAD", "/bkt/c");
	x_token(&x, "x-amz-rdma-token", 0, 5000);
	assert_int_equal(x_run(&x), 200);
	assert_int_equal(req_reply(x.rq)->body, REPLY_LENGTH_ONLY);
	assert_int_equal(req_reply(x.rq)->len_bytes, 5000);
	assert_no_header(&x, "x-amz-rdma-reply");
	snprintf(etag, sizeof etag, "%s", x_header(&x, "etag"));
	x_end(&x);
	pushes = fake_chan_stats(rig.chan)->pushes;
	x_init(&x, 0, "GET", "/bkt/c");
	x_field(&x, "if-match", "\"0123456789abcdef0123456789abcdef\"");
	x_token(&x, "x-amz-rdma-token", 0, 5000);
	assert_int_equal(x_run(&x), 412);
	assert_no_header(&x, "x-amz-rdma-reply");
	x_end(&x);
	assert_int_equal(fake_chan_stats(rig.chan)->pushes, pushes);
	x_init(&x, 0, "GET", "/bkt/c");
	x_field(&x, "if-match", "%s", etag);
	x_token(&x, "x-amz-rdma-token", 0, 5000);
	assert_int_equal(x_run(&x), 200);
	x_end(&x);
}

/* The store is told that bytes will be read where they will, and not where nothing says so or a condition mostly forbids it. */
static void
test_says_that_it_reads(void **state)
{
	static const struct {
		const char *method, *target, *name, *value;
		bool reads;
		uint64_t token, want; /* of what window, 0: over HTTP; bytes that are read at once */
	} c[] = {
		{ "GET", "/bkt/h", NULL, NULL, true, 0, 65536 },
		{ "GET", "/bkt/h", "range", "bytes=0-9", true, 0, 10 },
		{ "GET", "/bkt/h", "range", "bytes=0-99999", true, 0, 65536 },
		{ "GET", "/bkt/h", "range", "bytes=65535-", true, 0, 65535 + 65536 },
		{ "GET", "/bkt/h", "range", "bytes=-5", true, 0, 0 },
		{ "GET", "/bkt/h", "if-match", "*", true, 0, 65536 },
		{ "GET", "/bkt/h?partNumber=1", NULL, NULL, true, 0, 65536 },
		{ "GET", "/bkt/h", NULL, NULL, true, 70000, 70000 },
		{ "GET", "/bkt/h", NULL, NULL, true, 80000, 80000 },
		{ "GET", "/bkt/h", "range", "bytes=0-69998", true, 70000, 69999 },
		{ "GET", "/bkt/h", "range", "bytes=7-18446744073709551615", true, 70000, 70007 },
		{ "GET", "/bkt/h", "range", "bytes=7-", true, 70000, 70007 },
		{ "GET", "/bkt/h", "range", "bytes=-5", true, 70000, 0 },
		{ "HEAD", "/bkt/h", NULL, NULL, false, 0, 0 },
		{ "GET", "/bkt/h", "range", "bytes=65536-", false, 0, 0 },
		{ "GET", "/bkt/h", "range", "bytes=70000-70001", false, 0, 0 },
		{ "GET", "/bkt/h", "if-none-match", "\"x\"", false, 0, 0 },
		{ "GET", "/bkt/h", "if-modified-since", "Sat, 01 Jan 2022 00:00:00 GMT", false, 0, 0 },
		{ "GET", "/bkt/h?partNumber=2", NULL, NULL, false, 0, 0 },
		{ "GET", "/bkt/h?tagging", NULL, NULL, false, 0, 0 },
	};

	put_object("h", 70000, 3);
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		unsigned before = mem_store_to_read_nr(rig.store);
		struct xchg x;

		x_init(&x, 0, c[i].method, c[i].target);
		if (c[i].name)
			x_field(&x, c[i].name, "%s", c[i].value);
		if (c[i].token)
			x_token(&x, "x-amz-rdma-token", 0, c[i].token);
		x_run(&x);
		x_end(&x);
		assert_int_equal(mem_store_to_read_nr(rig.store) - before, c[i].reads);
		if (c[i].reads)
			assert_int_equal(mem_store_to_read_want(rig.store), c[i].want);
	}
}

/* item 67: a declined GET is an error without data, on each header; what is wrong with the request comes
 * before */
static void
test_declined(void **state)
{
	static const char *const headers[] = { "x-amz-rdma-token", "x-rdma-info" };
	struct xchg x;

	put_object("d", 70000, 3);
	fake_chan_decline(rig.chan, -EOPNOTSUPP, CHAN_NO_RAIL);
	for (int i = 0; i < 4; i++) {
		x_init(&x, 0, "GET", "/bkt/d");
		x_token(&x, headers[i % 2], 0, 70000);
		if (i >= 2)
			x_field(&x, "range", "bytes=0-99");
		assert_int_equal(x_run(&x), 501);
		assert_header(&x, "x-amz-rdma-reply", "501");
		assert_header(&x, "x-gantry-rdma-reason", "no-rail");
		assert_no_header(&x, "x-amz-rdma-bytes-transferred");
		assert_no_header(&x, "etag");
		assert_no_header(&x, "content-range");
		assert_int_equal(req_reply(x.rq)->body, REPLY_TEXT);
		assert_non_null(
			strstr(req_reply(x.rq)->text, "<Code>RDMANotSupported</Code><Message>No RDMA port"));
		x_end(&x);
	}
	x_init(&x, 0, "GET", "/bkt/d");
	x_token(&x, "x-amz-rdma-token", 0, 70000);
	x_field(&x, "range", "bytes=70000-");
	assert_int_equal(x_run(&x), 416);
	assert_no_header(&x, "x-amz-rdma-reply");
	x_end(&x);
	x_init(&x, 0, "GET", "/bkt/d");
	x_token(&x, "x-amz-rdma-token", 0, 70000);
	x_field(&x, "if-match", "\"other\"");
	assert_int_equal(x_run(&x), 412);
	assert_no_header(&x, "x-amz-rdma-reply");
	x_end(&x);
	assert_int_equal(get(&x, "none", NULL, 1000), 404);
	assert_no_header(&x, "x-amz-rdma-reply");
	x_end(&x);
	x_init(&x, 1, "GET", "/d");
	x_token(&x, "x-scal-rdma", 0, 70000);
	assert_int_equal(x_run(&x), 404);
	x_end(&x);
	fake_chan_decline(rig.chan, 0, CHAN_OK);
}

/* Where a rule of rdma.decline_2xx fits, and only there, the data is in the body.  item 67 */
static void
test_decline_rules(void **state)
{
	static unsigned char got[70000];
	static const struct {
		struct conf_decline_rule rule;
		const char *header, *agent;
		bool fits;
	} cases[] = {
		{ { .user_agent = (char *)"CRT/" }, "x-amz-rdma-token", "aws CRT/0.1 x", true },
		{ { .user_agent = (char *)"CRT/" }, "x-amz-rdma-token", "aws crt/0.1", false },
		{ { .user_agent = (char *)"CRT/" }, "x-amz-rdma-token", NULL, false },
		{ { .user_agent = (char *)"CRT/" }, "x-rdma-info", "CRT/", false },
		{ { TOKEN_HEADER_INFO, .user_agent = (char *)"CRT/" }, "x-rdma-info", "CRT/", true },
		{ { TOKEN_HEADER_CUOBJ, .user_agent = (char *)"CRT/" }, "x-rdma-info", "CRT/", false },
		{ { .listen = (char *)"a:1" }, "x-amz-rdma-token", NULL, true },
		{ { .listen = (char *)"a:2" }, "x-amz-rdma-token", NULL, false },
		{ { .listen = (char *)"a:1", .user_agent = (char *)"CRT/" }, "x-amz-rdma-token", "y", false },
		{ { .access_key = (char *)"AK" }, "x-amz-rdma-token", NULL, false }, /* nobody signed */
	};
	unsigned char want[70000];
	struct xchg x;

	put_object("d", sizeof want, 3);
	pattern(want, sizeof want, 3);
	rig.conf->listen[0].address = (char *)"a:1";
	rig.conf->rdma.decline_2xx_nr = 2;
	rig.conf->rdma.decline_2xx[0].access_key = (char *)"nobody's";
	fake_chan_decline(rig.chan, -EOPNOTSUPP, CHAN_NO_RAIL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t pos = 0;

		rig.conf->rdma.decline_2xx[1] = cases[i].rule;
		x_init(&x, 0, "GET", "/bkt/d");
		x_token(&x, cases[i].header, 0, 1000);
		if (cases[i].agent)
			x_field(&x, "user-agent", "%s", cases[i].agent);
		if (x_run(&x) != (cases[i].fits ? 200 : 501))
			fail_msg("rule %zu: status %d", i, req_reply(x.rq)->status);
		assert_header(&x, "x-amz-rdma-reply", "501");
		assert_header(&x, "x-gantry-rdma-reason", "no-rail");
		assert_no_header(&x, "x-amz-rdma-bytes-transferred");
		assert_int_equal(req_reply(x.rq)->body, cases[i].fits ? REPLY_STREAM : REPLY_TEXT);
		while (cases[i].fits && pos < sizeof want) {
			ssize_t n = req_stream_read(x.rq, pos, got + pos, 1000);

			assert_true(n >= 0);
			pos += (uint64_t)n;
			if (n == 0)
				rig_turn();
		}
		assert_true(!cases[i].fits || memcmp(got, want, sizeof want) == 0);
		x_end(&x);
	}
	/* Its clients read no header: to them a 2xx is done. */
	rig.conf->listen[1].address = (char *)"a:1";
	rig.conf->rdma.decline_2xx[1] = (struct conf_decline_rule){ .listen = (char *)"a:1" };
	x_init(&x, 1, "PUT", "/k");
	x_token(&x, "x-scal-rdma", 0, 5000);
	assert_int_equal(x_run(&x), 501);
	x_end(&x);
	/* A PUT has neither body nor ETag.  item 37 */
	x_init(&x, 0, "PUT", "/bkt/p");
	x_token(&x, "x-amz-rdma-token", 0, 5000);
	assert_int_equal(x_run(&x), 200);
	assert_header(&x, "x-amz-rdma-reply", "501");
	assert_no_header(&x, "etag");
	assert_int_equal(req_reply(x.rq)->body, REPLY_EMPTY);
	x_end(&x);
	assert_int_equal(get(&x, "p", NULL, 1000), 404);
	x_end(&x);
	fake_chan_decline(rig.chan, 0, CHAN_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_ranges, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_small_window, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_edges, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_conditions, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_says_that_it_reads, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_declined, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_decline_rules, rig_start, rig_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
