/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that follow from a seed, see content.h. */
#include "client/cmd/common/content.h"

#include <string.h>

#define GOLDEN 0x9e3779b97f4a7c15ull

uint64_t
content_scramble(uint64_t x)
{
	x += GOLDEN;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The eight bytes at 8 * i; less mixed than content_scramble(), and fast. */
static inline uint64_t
word_at(uint64_t seed, uint64_t i)
{
	uint64_t x = seed + i * GOLDEN;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

void
content_fill(void *mem, size_t len, uint64_t seed)
{
	unsigned char *p = mem;
	uint64_t i = 0, v;

	for (; (i + 1) * 8 <= len; i++) {
		v = word_at(seed, i);
		memcpy(p + i * 8, &v, 8);
	}
	v = word_at(seed, i);
	memcpy(p + i * 8, &v, len - (size_t)i * 8);
}

size_t
content_compare(const void *mem, size_t len, uint64_t seed)
{
	const unsigned char *p = mem;
	uint64_t i = 0, v, want = 0;
	size_t at;

	for (; (i + 1) * 8 <= len; i++) {
		memcpy(&v, p + i * 8, 8);
		want = word_at(seed, i);
		if (v != want)
			break;
	}
	want = word_at(seed, i);
	for (at = (size_t)i * 8; at < len && at < (size_t)(i + 1) * 8; at++)
		if (p[at] != (unsigned char)(want >> (at % 8 * 8)))
			return at;
	return len;
}
