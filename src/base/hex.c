/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal text, see hex.h. */
#include "base/hex.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

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

#define EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Makes the digits of up to four bytes, of which v has one in each 16 bits; the first digit is the lowest byte of the
 * result. */
static uint64_t
digits_of(uint64_t v)
{
	v = (v >> 4 | v << 8) & EIGHT(0x0f);
	return v + EIGHT('0') + (((v + EIGHT(6)) >> 4) & EIGHT(1)) * ('a' - '0' - 10);
}

/* Every answer has 48 digits at least: the digits of four bytes are made together. */
void
hex_write(char *text, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint64_t v;

	for (; len >= 4; text += 8, p += 4, len -= 4) {
		v = digits_of(p[0] | (uint64_t)p[1] << 16 | (uint64_t)p[2] << 32 | (uint64_t)p[3] << 48);
		v = htole64(v);
		memcpy(text, &v, sizeof v);
	}
	for (; len; text += 2, p++, len--) {
		v = digits_of(*p);
		text[0] = (char)v;
		text[1] = (char)(v >> 8);
	}
}

void
hex_write_u64(char text[17], uint64_t value)
{
	value = htobe64(value);
	hex_write(text, &value, sizeof value);
	text[16] = 0;
}
