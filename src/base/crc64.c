/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC64-NVME; see crc64.h.  Pure functions, called through one pointer, which the first call sets.
 *
 * Reflected: bit 63 of a value is x^0, bit 0 is x^63.  Folding: a block of 16 bytes that lies N bits before
 * another one is worth the same when its halves, times x^(N + 63) and x^(N - 1) mod P (one power is lost in a
 * reflected carry-less product), are added to that other one (Gopal and others, "Fast CRC computation for
 * generic polynomials using PCLMULQDQ", Intel 2009).  What is left at the end, 16 bytes and a tail, goes
 * through the table; so does everything short.
 */
#include "base/crc64.h"

#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#define X86 1
#else
#define X86 0
#endif
#ifdef __AARCH64EL__
#include <arm_neon.h>
#include <sys/auxv.h>
#define ARM 1
#else
#define ARM 0
#endif

#define POLY 0x9a6c9329ac4bc9b5ull
#define X_TO_0 ((uint64_t)1 << 63)

typedef uint64_t update_fn(uint64_t c, const unsigned char *p, size_t len); /* c: without the inversions */

static uint64_t table[8][256];
static uint64_t power[64]; /* x^(8 * 2^i) mod P: what 2^i bytes are worth */
static uint64_t fold_by_128[2], fold_by_256[2], fold_by_512[2], fold_by_1024[2], fold_by_2048[2];

/* ---- bytes that are in no cache ---- */

/*
 * The CPU's own prefetching ends with each page of 4 KiB, so bytes in memory or in the last cache would be waited for at
 * the beginning of every page.  Lines are therefore asked for this many bytes early; a short run, which is mostly in a
 * cache and would ask for bytes after its end, asks for none.
 */
#define AHEAD_BYTES 6144
#define AHEAD_FROM (8 * AHEAD_BYTES)

/* Returns the distance for a run of len bytes. */
static inline size_t
ahead_of(size_t len)
{
	return len < AHEAD_FROM ? 0 : AHEAD_BYTES;
}

/* Asks for the lines of nr bytes that follow p by that distance, which may lie after the end of the run. */
static inline __attribute__((always_inline)) void
ask(const unsigned char *p, size_t ahead, size_t nr)
{
	for (size_t i = 0; i < nr; i += 64)
		__builtin_prefetch((const void *)((uintptr_t)p + ahead + i));
}

/* ---- table ---- */

/* Eight bytes at once: c times x^64. */
static uint64_t
step8(uint64_t c)
{
	return table[7][c & 255] ^ table[6][c >> 8 & 255] ^ table[5][c >> 16 & 255] ^
	       table[4][c >> 24 & 255] ^ table[3][c >> 32 & 255] ^ table[2][c >> 40 & 255] ^
	       table[1][c >> 48 & 255] ^ table[0][c >> 56];
}

static uint64_t
update_table(uint64_t c, const unsigned char *p, size_t len)
{
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t w;

		memcpy(&w, p, 8);
		c = step8(c ^ w);
	}
	for (; len; p++, len--)
		c = table[0][(unsigned char)(c ^ *p)] ^ c >> 8;
	return c;
}

/* ---- products ---- */

/* The carry-less product of a and b is 127 bits; shifted up by one, its low half stands for what is to be
 * reduced. */
static uint64_t
reduce(uint64_t lo, uint64_t hi)
{
	return (hi << 1 | lo >> 63) ^ step8(lo << 1);
}

static uint64_t
mul_plain(uint64_t a, uint64_t b)
{
	uint64_t lo = 0, hi = 0;

	for (int i = 0; i < 64; i++) {
		uint64_t mask = (uint64_t)0 - (b >> i & 1);

		lo ^= a << i & mask;
		hi ^= (i ? a >> (64 - i) : 0) & mask;
	}
	return reduce(lo, hi);
}

/* ---- folding by 16 bytes: any CPU with a carry-less product ---- */

#if X86
#define CLMUL __attribute__((target("pclmul,sse4.1")))
#define AVX2 __attribute__((target("vpclmulqdq,pclmul,avx2")))
#define AVX512 __attribute__((target("vpclmulqdq,pclmul,avx512f,avx512vl")))

typedef __m128i block;

CLMUL static inline block
pair(uint64_t lo, uint64_t hi)
{
	return _mm_set_epi64x((long long)hi, (long long)lo);
}

CLMUL static inline uint64_t
low(block a)
{
	return (uint64_t)_mm_cvtsi128_si64(a);
}

CLMUL static inline uint64_t
high(block a)
{
	return (uint64_t)_mm_extract_epi64(a, 1);
}

CLMUL static inline block
load1(const unsigned char *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

CLMUL static inline block
add(block a, block b)
{
	return _mm_xor_si128(a, b);
}

CLMUL static inline block
mul_low(block a, block b)
{
	return _mm_clmulepi64_si128(a, b, 0x00);
}

CLMUL static inline block
mul_high(block a, block b)
{
	return _mm_clmulepi64_si128(a, b, 0x11);
}

static bool
has_clmul(void)
{
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}
#elif ARM
#define CLMUL __attribute__((target("+crypto")))

typedef uint64x2_t block;

CLMUL static inline block
pair(uint64_t lo, uint64_t hi)
{
	return vcombine_u64(vcreate_u64(lo), vcreate_u64(hi));
}

CLMUL static inline uint64_t
low(block a)
{
	return vgetq_lane_u64(a, 0);
}

CLMUL static inline uint64_t
high(block a)
{
	return vgetq_lane_u64(a, 1);
}

CLMUL static inline block
load1(const unsigned char *p)
{
	return vreinterpretq_u64_u8(vld1q_u8(p));
}

CLMUL static inline block
add(block a, block b)
{
	return veorq_u64(a, b);
}

CLMUL static inline block
mul_low(block a, block b)
{
	return vreinterpretq_u64_p128(vmull_p64((poly64_t)low(a), (poly64_t)low(b)));
}

CLMUL static inline block
mul_high(block a, block b)
{
	return vreinterpretq_u64_p128(vmull_high_p64(vreinterpretq_p64_u64(a), vreinterpretq_p64_u64(b)));
}

static bool
has_clmul(void)
{
	return getauxval(AT_HWCAP) & HWCAP_PMULL;
}
#endif

#if X86 || ARM
CLMUL static uint64_t
mul_clmul(uint64_t a, uint64_t b)
{
	block r = mul_low(pair(a, 0), pair(b, 0));

	return reduce(low(r), high(r));
}

CLMUL static inline block
load_key(const uint64_t k[2])
{
	return pair(k[0], k[1]);
}

/* d plus what a is worth there. */
CLMUL static inline block
fold1(block a, block k, block d)
{
	return add(d, add(mul_low(a, k), mul_high(a, k)));
}

/* x holds everything so far; the rest by 16, then by the table. */
CLMUL static inline uint64_t
finish(block x, const unsigned char *p, size_t len)
{
	block k = load_key(fold_by_128);
	uint64_t c;

	for (; len >= 16; p += 16, len -= 16)
		x = fold1(x, k, load1(p));
	c = step8(low(x)) ^ high(x);
	return update_table(step8(c), p, len);
}

CLMUL static uint64_t
update_clmul(uint64_t c, const unsigned char *p, size_t len)
{
	block x0, x1, x2, x3, x4, x5, x6, x7, k;
	size_t ahead = ahead_of(len);

	if (len < 32)
		return update_table(c, p, len);
	x0 = add(load1(p), pair(c, 0));
	if (len < 256)
		return finish(x0, p + 16, len - 16);
	x1 = load1(p + 16);
	x2 = load1(p + 32);
	x3 = load1(p + 48);
	x4 = load1(p + 64);
	x5 = load1(p + 80);
	x6 = load1(p + 96);
	x7 = load1(p + 112);
	k = load_key(fold_by_1024);
	for (p += 128, len -= 128; len >= 128; p += 128, len -= 128) {
		ask(p, ahead, 128);
		x0 = fold1(x0, k, load1(p));
		x1 = fold1(x1, k, load1(p + 16));
		x2 = fold1(x2, k, load1(p + 32));
		x3 = fold1(x3, k, load1(p + 48));
		x4 = fold1(x4, k, load1(p + 64));
		x5 = fold1(x5, k, load1(p + 80));
		x6 = fold1(x6, k, load1(p + 96));
		x7 = fold1(x7, k, load1(p + 112));
	}
	k = load_key(fold_by_512);
	x4 = fold1(x0, k, x4);
	x5 = fold1(x1, k, x5);
	x6 = fold1(x2, k, x6);
	x7 = fold1(x3, k, x7);
	k = load_key(fold_by_256);
	x6 = fold1(x4, k, x6);
	x7 = fold1(x5, k, x7);
	return finish(fold1(x6, load_key(fold_by_128), x7), p, len);
}

#endif

/* ---- folding by 32 and 64 bytes ---- */

/*
 * Both functions end with vzeroupper, which GCC does not add for a target of a single function.  Without it the upper
 * halves of the registers stay in use for the rest of the thread's life, and then newer processors (Sapphire and Emerald
 * Rapids) take 90 ns for every change between instructions of SSE, of which this program is made, and of AVX, of which
 * the C library's memcpy() is made.
 */
#if X86
AVX2 static inline __m256i
fold2(__m256i a, __m256i k, __m256i d)
{
	return _mm256_xor_si256(d, _mm256_xor_si256(_mm256_clmulepi64_epi128(a, k, 0x00),
						    _mm256_clmulepi64_epi128(a, k, 0x11)));
}

AVX2 static inline __m256i
load2(const unsigned char *p)
{
	return _mm256_loadu_si256((const __m256i *)p);
}

AVX2 static uint64_t
update_vpclmul256(uint64_t c, const unsigned char *p, size_t len)
{
	__m256i x0, x1, x2, x3, x4, x5, x6, x7, k;
	__m128i x;
	size_t ahead = ahead_of(len);

	if (len < 512)
		return update_clmul(c, p, len);
	x0 = _mm256_xor_si256(load2(p), _mm256_set_epi64x(0, 0, 0, (long long)c));
	x1 = load2(p + 32);
	x2 = load2(p + 64);
	x3 = load2(p + 96);
	x4 = load2(p + 128);
	x5 = load2(p + 160);
	x6 = load2(p + 192);
	x7 = load2(p + 224);
	k = _mm256_broadcastsi128_si256(load_key(fold_by_2048));
	for (p += 256, len -= 256; len >= 256; p += 256, len -= 256) {
		ask(p, ahead, 256);
		x0 = fold2(x0, k, load2(p));
		x1 = fold2(x1, k, load2(p + 32));
		x2 = fold2(x2, k, load2(p + 64));
		x3 = fold2(x3, k, load2(p + 96));
		x4 = fold2(x4, k, load2(p + 128));
		x5 = fold2(x5, k, load2(p + 160));
		x6 = fold2(x6, k, load2(p + 192));
		x7 = fold2(x7, k, load2(p + 224));
	}
	k = _mm256_broadcastsi128_si256(load_key(fold_by_1024));
	x4 = fold2(x0, k, x4);
	x5 = fold2(x1, k, x5);
	x6 = fold2(x2, k, x6);
	x7 = fold2(x3, k, x7);
	k = _mm256_broadcastsi128_si256(load_key(fold_by_512));
	x6 = fold2(x4, k, x6);
	x7 = fold2(x5, k, x7);
	k = _mm256_broadcastsi128_si256(load_key(fold_by_256));
	x7 = fold2(x6, k, x7);
	x = fold1(_mm256_castsi256_si128(x7), load_key(fold_by_128), _mm256_extracti128_si256(x7, 1));
	c = finish(x, p, len);
	_mm256_zeroupper();
	return c;
}

AVX512 static inline __m512i
fold4(__m512i a, __m512i k, __m512i d)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(a, k, 0x00),
					 _mm512_clmulepi64_epi128(a, k, 0x11), d, 0x96);
}

AVX512 static uint64_t
update_vpclmul512(uint64_t c, const unsigned char *p, size_t len)
{
	__m512i x0, x1, x2, x3, k;
	__m128i x, k1;
	size_t ahead = ahead_of(len);

	if (len < 512)
		return update_clmul(c, p, len);
	x0 = _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_zextsi128_si512(_mm_cvtsi64_si128((long long)c)));
	x1 = _mm512_loadu_si512(p + 64);
	x2 = _mm512_loadu_si512(p + 128);
	x3 = _mm512_loadu_si512(p + 192);
	k = _mm512_broadcast_i32x4(load_key(fold_by_2048));
	for (p += 256, len -= 256; len >= 256; p += 256, len -= 256) {
		ask(p, ahead, 256);
		x0 = fold4(x0, k, _mm512_loadu_si512(p));
		x1 = fold4(x1, k, _mm512_loadu_si512(p + 64));
		x2 = fold4(x2, k, _mm512_loadu_si512(p + 128));
		x3 = fold4(x3, k, _mm512_loadu_si512(p + 192));
	}
	k = _mm512_broadcast_i32x4(load_key(fold_by_1024));
	x2 = fold4(x0, k, x2);
	x3 = fold4(x1, k, x3);
	x3 = fold4(x2, _mm512_broadcast_i32x4(load_key(fold_by_512)), x3);
	k1 = load_key(fold_by_128);
	x = fold1(_mm512_castsi512_si128(x3), k1, _mm512_extracti32x4_epi32(x3, 1));
	x = fold1(x, k1, _mm512_extracti32x4_epi32(x3, 2));
	x = fold1(x, k1, _mm512_extracti32x4_epi32(x3, 3));
	c = finish(x, p, len);
	_mm256_zeroupper();
	return c;
}

static bool
has_vpclmul256(void)
{
	return has_clmul() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
}

static bool
has_vpclmul512(void)
{
	return has_clmul() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("vpclmulqdq");
}
#endif

/* ---- which of them ---- */

static bool
has_table(void)
{
	return true;
}

struct path {
	const char *name;
	bool (*available)(void);
	update_fn *update;
	uint64_t (*mul)(uint64_t a, uint64_t b);
};

/* Of another architecture. */
__attribute__((unused)) static bool
has_no(void)
{
	return false;
}

/* The last available one is the fastest. */
static const struct path paths[] = {
	{ "table", has_table, update_table, mul_plain },
#if X86
	{ "pclmul", has_clmul, update_clmul, mul_clmul },
	{ "vpclmul256", has_vpclmul256, update_vpclmul256, mul_clmul },
	{ "vpclmul512", has_vpclmul512, update_vpclmul512, mul_clmul },
#else
	{ .name = "pclmul", .available = has_no },       { .name = "vpclmul256", .available = has_no },
	{ .name = "vpclmul512", .available = has_no },
#endif
#if ARM
	{ "pmull", has_clmul, update_clmul, mul_clmul },
#else
	{ .name = "pmull", .available = has_no },
#endif
};
#define PATHS ((int)(sizeof paths / sizeof *paths))

static _Atomic(const struct path *) current;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t
times_x(uint64_t c)
{
	return c & 1 ? c >> 1 ^ POLY : c >> 1;
}

/* x^n mod P. */
static uint64_t
x_to(unsigned n)
{
	uint64_t r = X_TO_0;

	while (n--)
		r = times_x(r);
	return r;
}

static void
fold_key(uint64_t k[2], unsigned bits)
{
	k[0] = x_to(bits + 63);
	k[1] = x_to(bits - 1);
}

static void
fill(void)
{
	for (unsigned i = 0; i < 256; i++) {
		uint64_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = times_x(c);
		table[0][i] = c;
	}
	for (unsigned i = 0; i < 256; i++) {
		for (int t = 1; t < 8; t++)
			table[t][i] = table[0][(unsigned char)table[t - 1][i]] ^ table[t - 1][i] >> 8;
	}
	power[0] = x_to(8);
	for (int i = 1; i < 64; i++)
		power[i] = mul_plain(power[i - 1], power[i - 1]);
	fold_key(fold_by_128, 128);
	fold_key(fold_by_256, 256);
	fold_key(fold_by_512, 512);
	fold_key(fold_by_1024, 1024);
	fold_key(fold_by_2048, 2048);
}

static const struct path *
pick(const char *name)
{
	for (int i = PATHS; i-- > 0;) {
		if (name ? strcmp(paths[i].name, name) == 0 : paths[i].available())
			return &paths[i];
	}
	return NULL;
}

static void
start(void)
{
	fill();
	atomic_store_explicit(&current, pick(NULL), memory_order_release);
}

static const struct path *
get_path(void)
{
	const struct path *p = atomic_load_explicit(&current, memory_order_acquire);

	if (p)
		return p;
	pthread_once(&once, start);
	return atomic_load_explicit(&current, memory_order_acquire);
}

int
crc64_nvme_select(const char *name)
{
	const struct path *p = pick(name);

	get_path();
	if (!p)
		return -EINVAL;
	if (!p->available())
		return -ENOTSUP;
	atomic_store_explicit(&current, p, memory_order_release);
	return 0;
}

const char *
crc64_nvme_path(void)
{
	return get_path()->name;
}

uint64_t
crc64_nvme(uint64_t crc, const void *data, size_t len)
{
	return ~get_path()->update(~crc, data, len);
}

uint64_t
crc64_nvme_without(uint64_t crc, const void *data, size_t len, size_t at)
{
	static const uint8_t zero8[8];
	const uint8_t *p = data;

	crc = crc64_nvme(crc64_nvme(crc, p, at), zero8, sizeof zero8);
	return crc64_nvme(crc, p + at + sizeof zero8, len - at - sizeof zero8);
}

uint64_t
crc64_nvme_combine(uint64_t crc_a, uint64_t crc_b, uint64_t len_b)
{
	const struct path *p = get_path();

	/* The inversions cancel: A's lies in front of B's bytes as B's own initial value does. */
	for (; len_b; len_b &= len_b - 1)
		crc_a = p->mul(crc_a, power[__builtin_ctzll(len_b)]);
	return crc_a ^ crc_b;
}
