/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting and reading texts, see span.h. */
#include "base/span.h"

#include "base/hex.h"

#include <errno.h>

struct span
span_trim(struct span s)
{
	while (s.len && is_blank(s.p[0])) {
		s.p++;
		s.len--;
	}
	while (s.len && is_blank(s.p[s.len - 1]))
		s.len--;
	return s;
}

/* Compares bytes of a text with those of a name. A letter differs from '-' and digits in bit 6, and from its other case in
 * bit 5. */
static bool
differ(uint64_t text, uint64_t name)
{
	return (text ^ name) & ~(name >> 1 & UINT64_C(0x2020202020202020));
}

bool
span_is_name(const char *text, const char *name, size_t len)
{
	uint64_t a, b;
	uint32_t c, d;

	for (; len >= 8; text += 8, name += 8, len -= 8) {
		memcpy(&a, text, sizeof a);
		memcpy(&b, name, sizeof b);
		if (differ(a, b))
			return false;
	}
	for (; len >= 4; text += 4, name += 4, len -= 4) {
		memcpy(&c, text, sizeof c);
		memcpy(&d, name, sizeof d);
		if (differ(c, d))
			return false;
	}
	for (; len; text++, name++, len--) {
		if (differ((unsigned char)*text, (unsigned char)*name))
			return false;
	}
	return true;
}

struct span
span_cut(struct span *rest, char sep)
{
	const char *at = rest->len ? memchr(rest->p, sep, rest->len) : NULL;
	struct span head = { rest->p, at ? (size_t)(at - rest->p) : rest->len };
	size_t skip = head.len + (at ? 1 : 0);

	rest->p += skip;
	rest->len -= skip;
	return head;
}

int
span_decimal(struct span s, uint64_t *ret_value)
{
	uint64_t v = 0;

	if (s.len == 0)
		return -EINVAL;
	for (size_t i = 0; i < s.len; i++) {
		unsigned d = (unsigned char)s.p[i] - (unsigned)'0';

		if (d > 9 || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, d, &v))
			return -EINVAL;
	}
	*ret_value = v;
	return 0;
}

int
span_decode(struct span s, unsigned how, char *out, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.p[i];

		if (c == '+' && how & DECODE_PLUS)
			c = ' ';
		else if (c == '%') {
			bool whole =
				s.len - i > 2 && hex_digit(s.p[i + 1]) >= 0 && hex_digit(s.p[i + 2]) >= 0;

			if (!whole && how & DECODE_STRICT)
				return -EINVAL;
			if (whole) {
				c = (char)(hex_digit(s.p[i + 1]) << 4 | hex_digit(s.p[i + 2]));
				i += 2;
			}
		}
		if (c == 0)
			return -EINVAL;
		/* After the end of the buffer bytes are only counted: a NUL or a bad sequence among them is the
		 * more precise error. */
		if (n < cap)
			out[n] = c;
		n++;
	}
	return n > cap ? -E2BIG : (int)n;
}
