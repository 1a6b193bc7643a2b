/* SPDX-License-Identifier: Apache-2.0 */
/* Aumasson and Bernstein, "SipHash: a fast short-input PRF"; one round a word, three at the end. */
#include "base/siphash.h"

#include <string.h>

struct sip {
	uint64_t a, b, c, d;
};

static uint64_t
rotate(uint64_t v, int by)
{
	return v << by | v >> (64 - by);
}

static void
round_of(struct sip *s)
{
	s->a += s->b;
	s->b = rotate(s->b, 13) ^ s->a;
	s->a = rotate(s->a, 32);
	s->c += s->d;
	s->d = rotate(s->d, 16) ^ s->c;
	s->a += s->d;
	s->d = rotate(s->d, 21) ^ s->a;
	s->c += s->b;
	s->b = rotate(s->b, 17) ^ s->c;
	s->c = rotate(s->c, 32);
}

static void
word(struct sip *s, uint64_t m)
{
	s->d ^= m;
	round_of(s);
	s->a ^= m;
}

uint64_t
siphash(const uint64_t key[2], const void *data, size_t len)
{
	struct sip s = { key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
			 key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u };
	const unsigned char *p = data;
	uint64_t m, last = (uint64_t)len << 56;
	size_t left = len;

	for (; left >= 8; left -= 8, p += 8) {
		memcpy(&m, p, 8);
		word(&s, m);
	}
	for (size_t i = 0; i < left; i++)
		last |= (uint64_t)p[i] << (8 * i);
	word(&s, last);
	s.c ^= 0xff;
	for (int i = 0; i < 3; i++)
		round_of(&s);
	return s.a ^ s.b ^ s.c ^ s.d;
}
