/* SPDX-License-Identifier: Apache-2.0 */
/* Every path of the CRC against the definition, bit by bit: lengths, alignments, pieces, combination.  SEED=
 * repeats a run. */
#include "base/clock.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <setjmp.h>
#include <cmocka.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

static const char *const paths[] = { "table", "pclmul", "vpclmul256", "vpclmul512", "pmull" };
#define PATHS ((int)(sizeof paths / sizeof *paths))
#define BIG ((size_t)3 << 20)

static uint64_t seed;
static unsigned char *bytes; /* BIG + 64 random ones */

static uint64_t
rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t
reference(uint64_t crc, const unsigned char *p, size_t len)
{
	uint64_t c = ~crc;

	for (; len; p++, len--) {
		c ^= *p;
		for (int i = 0; i < 8; i++)
			c = c & 1 ? c >> 1 ^ 0x9a6c9329ac4bc9b5ull : c >> 1;
	}
	return ~c;
}

/* Selects path i; false when this CPU lacks it. */
static int
use(int i)
{
	int r = crc64_nvme_select(paths[i]);

	if (r == -ENOTSUP) {
		printf("%s: not on this CPU\n", paths[i]);
		return 0;
	}
	assert_int_equal(r, 0);
	assert_string_equal(crc64_nvme_path(), paths[i]);
	return 1;
}

static void
test_known(void **state)
{
	for (int i = 0; i < PATHS; i++) {
		if (!use(i))
			continue;
		assert_true(crc64_nvme(0, "123456789", 9) == 0xae8b14860a799888ull);
		assert_true(crc64_nvme(0, "", 0) == 0);
	}
	assert_int_equal(crc64_nvme_select("abacus"), -EINVAL);
	assert_int_equal(crc64_nvme_select(NULL), 0);
}

static void
test_lengths(void **state)
{
	/* The reference's CRC of every length from one start; continued, so that it costs little. */
	for (int i = 0; i < PATHS; i++) {
		uint64_t want = 0, init = rnd();

		if (!use(i))
			continue;
		for (size_t len = 0; len <= 5000; len++) {
			assert_true(crc64_nvme(0, bytes, len) == want);
			want = reference(want, bytes + len, 1);
		}
		for (size_t align = 0; align < 64; align++) {
			for (int n = 0; n < 20; n++) {
				size_t len = rnd() % 5001;

				assert_true(crc64_nvme(init, bytes + align, len) ==
					    reference(init, bytes + align, len));
			}
		}
	}
}

static void
test_large(void **state)
{
	uint64_t want = reference(0, bytes + 3, BIG);

	for (int i = 0; i < PATHS; i++) {
		if (!use(i))
			continue;
		assert_true(crc64_nvme(0, bytes + 3, BIG) == want);
		/* in random pieces */
		for (int n = 0; n < 20; n++) {
			uint64_t c = 0;

			for (size_t at = 0, len; at < BIG; at += len) {
				len = 1 + rnd() % 200000;
				len = len < BIG - at ? len : BIG - at;
				c = crc64_nvme(c, bytes + 3 + at, len);
			}
			assert_true(c == want);
		}
	}
}

static void
test_without(void **state)
{
	uint8_t buf[100], zeroed[100];

	for (size_t i = 0; i < sizeof buf; i++)
		buf[i] = (uint8_t)(i * 7 + 1);
	for (size_t at = 0; at + 8 <= sizeof buf; at++) {
		memcpy(zeroed, buf, sizeof buf);
		memset(zeroed + at, 0, 8);
		assert_true(crc64_nvme_without(5, buf, sizeof buf, at) ==
			    crc64_nvme(5, zeroed, sizeof zeroed));
	}
}

static void
test_combine(void **state)
{
	for (int i = 0; i < PATHS; i++) {
		uint64_t c = 0, t;

		if (!use(i))
			continue;
		for (int n = 0; n < 300; n++) {
			size_t a = rnd() % 6000, b = rnd() % (n % 3 ? 6000 : BIG - 6000);

			assert_true(crc64_nvme_combine(crc64_nvme(0, bytes, a), crc64_nvme(0, bytes + a, b),
						       b) == crc64_nvme(0, bytes, a + b));
		}
		/* a length that no memory has: A, then 2^40 zero bytes, in two ways */
		t = crc64_nvme(0, bytes, 64);
		for (int k = 6; k < 40; k++)
			t = crc64_nvme_combine(t, t, (uint64_t)1 << k);
		for (int k = 0; k < 2; k++)
			c = crc64_nvme_combine(c, t, (uint64_t)1 << 40);
		assert_true(c == crc64_nvme_combine(t, t, (uint64_t)1 << 40));
		/* the granules of a chunk */
		c = 0;
		for (size_t at = 0; at < BIG; at += 65536)
			c = crc64_nvme_combine(c, crc64_nvme(0, bytes + at, 65536), 65536);
		assert_true(c == crc64_nvme(0, bytes, BIG));
	}
}

/* No claim, a figure: what this machine does with each path. */
static void
test_speed(void **state)
{
	for (int i = 0; i < PATHS; i++) {
		uint64_t t0, t1, t2, c = 0;

		if (!use(i))
			continue;
		crc64_nvme(0, bytes, 1 << 20);
		t0 = clock_ns();
		for (int n = 0; n < 8; n++)
			c ^= crc64_nvme(0, bytes, 1 << 20);
		t1 = clock_ns();
		for (int n = 0; n < 1024; n++)
			c = crc64_nvme_combine(c, (uint64_t)n, 65536);
		t2 = clock_ns();
		printf("%-11s %6.1f GB/s, 1024 granules combined in %.1f us (%016llx)\n", paths[i],
		       8.0 * (1 << 20) / (double)(t1 - t0), (double)(t2 - t1) / 1e3, (unsigned long long)c);
	}
	crc64_nvme_select(NULL);
	printf("chosen: %s\n", crc64_nvme_path());
}

/*
 * The upper halves of vector registers are not in use after a CRC.  If they were, every later change between instructions of
 * SSE and of AVX in this thread would take 90 ns on some processors.
 */
#ifdef __x86_64__
/* Returns the components of the thread's state that are in use: AVX (bit 2) and the upper halves of AVX-512 (bit 6). */
static unsigned
upper_halves(void)
{
	unsigned low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
	return low & (1u << 2 | 1u << 6);
}

/* Tells whether the CPU has AVX, and XGETBV shows the state that is in use. */
static bool
shows_state(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_supports("avx") && __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && a & 1u << 2;
}

static void
test_upper_halves(void **state)
{
	if (!shows_state())
		skip();
	for (int i = 0; i < PATHS; i++) {
		if (!use(i))
			continue;
		for (size_t len = 16; len <= BIG; len = len * 3 + 1) {
			__asm__ volatile("vzeroupper");
			if (upper_halves())
				skip(); /* a CPU that shows all state as used */
			crc64_nvme(0, bytes, len);
			assert_int_equal(upper_halves(), 0);
		}
	}
	crc64_nvme_select(NULL);
}
#else
static void
test_upper_halves(void **state)
{
	skip();
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),        cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_large),        cmocka_unit_test(test_without),
		cmocka_unit_test(test_combine),      cmocka_unit_test(test_speed),
		cmocka_unit_test(test_upper_halves),
	};
	const char *s = getenv("SEED");
	int r;

	seed = s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
	seed = seed ? seed : 1;
	printf("SEED=%llu\n", (unsigned long long)seed);
	bytes = malloc(BIG + 64);
	for (size_t i = 0; i < BIG + 64; i++)
		bytes[i] = (unsigned char)(rnd() >> 32);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	free(bytes);
	return r;
}
