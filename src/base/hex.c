/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal text, see hex.h. */
#include "base/hex.h"

#include <errno.h>

/* A table: the digits of an address or a sum have no order that a processor could foresee. */
#define NO -1, -1, -1, -1, -1, -1, -1, -1
const int8_t hex_value[256] = {
	NO, NO, NO, NO, NO, NO, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  -1, -1, -1, -1,
	-1, -1, -1, 10, 11, 12, 13, 14, 15, -1, NO, NO, NO, -1, 10, 11, 12, 13, 14, 15,
	-1, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
};
#undef NO

int
hex_u64(const char *text, size_t digits, uint64_t *ret_value)
{
	uint64_t v = 0;

	if (digits == 0 || digits > 16)
		return -EINVAL;
	for (size_t i = 0; i < digits; i++) {
		int d = hex_digit(text[i]);

		if (d < 0)
			return -EINVAL;
		v = v << 4 | (uint64_t)d;
	}
	*ret_value = v;
	return 0;
}

int
hex_bytes(const char *text, void *ret_bytes, size_t len)
{
	unsigned char *out = ret_bytes;

	for (size_t i = 0; i < len; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if ((high | low) < 0)
			return -EINVAL;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

/* Every answer has 48 digits at least.  The two of a byte are made together, the first in the lower byte of a word. */
void
hex_write(char *text, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < len; i++) {
		unsigned v = (p[i] >> 4 | (unsigned)p[i] << 8) & 0x0f0f;

		v += 0x3030 + ((v + 0x0606) >> 4 & 0x0101) * ('a' - '0' - 10);
		text[2 * i] = (char)v;
		text[2 * i + 1] = (char)(v >> 8);
	}
}

void
hex_write_u64(char text[17], uint64_t value)
{
	unsigned char b[8];

	for (int i = 0; i < 8; i++)
		b[i] = (unsigned char)(value >> (56 - 8 * i));
	hex_write(text, b, sizeof b);
	text[16] = 0;
}
