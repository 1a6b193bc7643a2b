/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 text, see base64.h. */
#include "base/base64.h"

#include <errno.h>
#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int
sextet(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

void
base64_encode(const void *bytes, size_t len, char *text)
{
	const unsigned char *p = bytes;

	for (; len >= 3; len -= 3, p += 3) {
		*text++ = alphabet[p[0] >> 2];
		*text++ = alphabet[(p[0] & 3) << 4 | p[1] >> 4];
		*text++ = alphabet[(p[1] & 15) << 2 | p[2] >> 6];
		*text++ = alphabet[p[2] & 63];
	}
	if (len) {
		unsigned second = len == 2 ? p[1] : 0;

		*text++ = alphabet[p[0] >> 2];
		*text++ = alphabet[(p[0] & 3u) << 4 | second >> 4];
		*text++ = len == 2 ? alphabet[(second & 15) << 2] : '=';
		*text++ = '=';
	}
	*text = 0;
}

int
base64_decode(const char *text, size_t len, void *ret_bytes, size_t cap, size_t *ret_len)
{
	unsigned char *out = ret_bytes;
	size_t pad = 0, n;

	if (len % 4)
		return -EINVAL;
	if (len && text[len - 1] == '=')
		pad = text[len - 2] == '=' ? 2 : 1;
	n = len / 4 * 3 - pad;
	if (n > cap)
		return -EMSGSIZE;
	for (size_t i = 0, o = 0; i < len; i += 4) {
		size_t take = i + 4 == len ? 4 - pad : 4;
		uint32_t v = 0;

		for (size_t k = 0; k < 4; k++) {
			int s = k < take ? sextet(text[i + k]) : 0;

			if (s < 0)
				return -EINVAL;
			v = v << 6 | (uint32_t)s;
		}
		/* Two texts for one value would make a checksum header malleable. */
		if ((take == 3 && (v & 0xff)) || (take == 2 && (v & 0xffff)))
			return -EINVAL;
		out[o++] = (unsigned char)(v >> 16);
		if (take > 2)
			out[o++] = (unsigned char)(v >> 8);
		if (take > 3)
			out[o++] = (unsigned char)v;
	}
	*ret_len = n;
	return 0;
}
