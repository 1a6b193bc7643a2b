/* SPDX-License-Identifier: Apache-2.0 */
/* gantry bench: what its options may say, how it picks by weight, the bytes of its objects. */
#include "client/cmd/bench/bench.h"
#include "client/cmd/common/content.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static struct bench_plan p;

static void
sizes(void **state)
{
	static const char *const bad[] = { "",
					   ",",
					   "4k,",
					   ",4k",
					   "0",
					   "-1",
					   "4x",
					   "4kk",
					   "k",
					   "4 k",
					   "4k:0",
					   "4k:",
					   "4k:x",
					   "4k:1:1",
					   "4k++1m",
					   "4g",
					   "4294967296",
					   "4194304k",
					   "99999999999999999999",
					   "4ki",
					   "ib",
					   "1ib",
					   "4k:1000001",
					   "1+2+3+4+5+6+7+8+9",
					   "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17" };

	assert_true(bench_plan_sizes(&p, "1,4k,4K,4KiB,4kb,7B,3m,1GIB,4294967295"));
	assert_int_equal(p.sizes_nr, 9);
	static const uint64_t want[] = { 1, 4096, 4096, 4096, 4096, 7, 3 << 20, 1 << 30, 0xffffffff };
	for (int i = 0; i < 9; i++) {
		assert_int_equal(p.sizes[i].nr, 1);
		assert_int_equal(p.sizes[i].size[0], want[i]);
		assert_int_equal(p.sizes[i].weight[0], 1);
	}
	assert_int_equal(bench_plan_largest(&p), 0xffffffff);
	assert_true(bench_plan_sizes(&p, "4k:70+1m:30,2k+8m"));
	assert_int_equal(p.sizes_nr, 2);
	assert_int_equal(p.sizes[0].nr, 2);
	assert_int_equal(p.sizes[0].weight[0], 70);
	assert_int_equal(p.sizes[0].weight[1], 30);
	assert_int_equal(p.sizes[0].size[1], 1 << 20);
	assert_string_equal(p.sizes[0].text, "4k:70+1m:30");
	assert_string_equal(p.sizes[1].text, "2k+8m");
	assert_int_equal(bench_plan_largest(&p), 8 << 20);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (bench_plan_sizes(&p, bad[i]))
			fail_msg("sizes \"%s\"", bad[i]);
}

static void
at_once(void **state)
{
	static const char *const bad[] = { "", "0", "1,", "1025", "8x", "-4", "1.5", "+1" };

	assert_true(bench_plan_at_once(&p, "1,8,1024,3"));
	assert_int_equal(p.at_once_nr, 4);
	assert_int_equal(p.at_once[2], 1024);
	assert_int_equal(bench_plan_most_at_once(&p), 1024);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (bench_plan_at_once(&p, bad[i]))
			fail_msg("at once \"%s\"", bad[i]);
}

static void
mixes(void **state)
{
	static const char *const bad[] = {
		"",       "put,",           "putt",   "put:0", "get+get",         "post",
		"delete", "put:1+delete:2", "put:-1", "get:x", "get:50 + put:50", "get:1000001"
	};

	assert_true(bench_plan_mix(&p, "put,GET,get:60+put:20+delete:20,head"));
	assert_int_equal(p.mix_nr, 4);
	assert_int_equal(p.mix[0].weight[BENCH_PUT], 1);
	assert_int_equal(p.mix[1].weight[BENCH_GET], 1);
	assert_int_equal(p.mix[1].weight[BENCH_PUT], 0);
	assert_int_equal(p.mix[2].weight[BENCH_GET], 60);
	assert_int_equal(p.mix[2].weight[BENCH_DELETE], 20);
	assert_int_equal(p.mix[3].weight[BENCH_HEAD], 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (bench_plan_mix(&p, bad[i]))
			fail_msg("mix \"%s\"", bad[i]);
}

static void
ways(void **state)
{
	static const char *const bad[] = { "", "rdma,", "tcp", "rdma,rdma", "rdma,http,rdma" };

	assert_true(bench_plan_ways(&p, "rdma"));
	assert_int_equal(p.way_nr, 1);
	assert_true(bench_plan_ways(&p, "http,rdma"));
	assert_int_equal(p.way_nr, 2);
	assert_int_equal(p.way[0], BENCH_HTTP);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (bench_plan_ways(&p, bad[i]))
			fail_msg("ways \"%s\"", bad[i]);
}

static void
objects(void **state)
{
	struct bench_sizes s = { .nr = 1, .size = { 1 << 20 }, .weight = { 1 } };

	assert_int_equal(bench_usual_objects(&s, 8), 1024);
	s.size[0] = 64 << 20;
	assert_int_equal(bench_usual_objects(&s, 8), 16);
	assert_int_equal(bench_usual_objects(&s, 64), 64);
	s.size[0] = 1;
	assert_int_equal(bench_usual_objects(&s, 8), 1024);
}

/* Every number of the sum of weights once: each gets as many as it weighs, none with 0. */
static void
picks_by_weight(void **state)
{
	static const unsigned weight[] = { 3, 0, 1, 6 };
	unsigned have[4] = { 0 };

	for (uint64_t i = 0; i < 10; i++)
		have[bench_pick(weight, 4, i)]++;
	assert_memory_equal(have, weight, sizeof have);
	assert_int_equal(bench_pick(weight, 4, UINT64_MAX), bench_pick(weight, 4, UINT64_MAX % 10));
}

static void
every_damaged_byte_is_found(void **state)
{
	unsigned char mem[64 + 16];

	for (size_t len = 0; len <= 64; len++) {
		memset(mem, 0xee, sizeof mem);
		content_fill(mem + 8, len, 7);
		for (int i = 0; i < 8; i++)
			assert_int_equal(mem[i], 0xee);
		for (size_t i = 8 + len; i < sizeof mem; i++)
			assert_int_equal(mem[i], 0xee);
		assert_int_equal(content_compare(mem + 8, len, 7), len);
		for (size_t at = 0; at < len; at++) {
			for (int bit = 0; bit < 8; bit++) {
				mem[8 + at] ^= (unsigned char)(1 << bit);
				assert_int_equal(content_compare(mem + 8, len, 7), at);
				mem[8 + at] ^= (unsigned char)(1 << bit);
			}
		}
	}
	/* Another object, another version, the same bytes elsewhere: none of them passes. */
	content_fill(mem, 64, 7);
	assert_true(content_compare(mem, 64, 8) < 8);
	assert_true(content_compare(mem + 8, 56, 7) < 8);
	memset(mem, 0, sizeof mem);
	assert_true(content_compare(mem, 64, 7) < 8);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(at_once),
		cmocka_unit_test(mixes),
		cmocka_unit_test(ways),
		cmocka_unit_test(objects),
		cmocka_unit_test(picks_by_weight),
		cmocka_unit_test(every_damaged_byte_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
