/* Hexadecimal text, see hex.h. */
#include "base/hex.h"

#include <errno.h>

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
		if (hex_digit(text[2 * i]) < 0 || hex_digit(text[2 * i + 1]) < 0)
			return -EINVAL;
	}
	for (size_t i = 0; i < len; i++)
		out[i] = (unsigned char)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
	return 0;
}

void
hex_write(char *text, const void *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = bytes;

	for (size_t i = 0; i < len; i++) {
		text[2 * i] = digits[p[i] >> 4];
		text[2 * i + 1] = digits[p[i] & 15];
	}
}
