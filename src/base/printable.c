/* SPDX-License-Identifier: Apache-2.0 */
/* See printable.h. */
#include "base/printable.h"

#include <stdint.h>
#include <string.h>

/* The length of the UTF-8 sequence at p, and its character; 0: it is none.  p is terminated. */
static int
decode(const unsigned char *p, uint32_t *ret_c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	int n = *p < 0x80             ? 1
		: (*p & 0xe0) == 0xc0 ? 2
		: (*p & 0xf0) == 0xe0 ? 3
		: (*p & 0xf8) == 0xf0 ? 4
				      : 0;
	uint32_t c = n == 1 ? *p : *p & (0x7fu >> n);

	for (int i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	*ret_c = c;
	return n && c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) ? n : 0;
}

static bool
is_plain(uint32_t c)
{
	return c >= ' ' && (c < 0x7f || c > 0x9f) && (c < 0x2028 || c > 0x202e) && (c < 0x2066 || c > 0x2069);
}

bool
printable(char *text, const char *keep)
{
	char *out = text;
	bool changed = false;

	for (const char *p = text; *p;) {
		uint32_t c = 0;
		int n = decode((const unsigned char *)p, &c);

		if (n && (is_plain(c) || (c < ' ' && strchr(keep, (int)c)))) {
			memmove(out, p, (size_t)n);
			out += n;
		} else {
			*out++ = *p == '\t' || *p == '\n' || *p == '\r' ? ' ' : '?';
			changed = true;
		}
		p += n ? n : 1;
	}
	*out = 0;
	return changed;
}
