/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of the JSON pages. */
#include "admin/admin_int.h"

/* How long the UTF-8 sequence at p is; 0: it is none. */
static int
utf8_len(const unsigned char *p)
{
	int n = p[0] >= 0xc2 && p[0] < 0xe0   ? 2
		: p[0] >= 0xe0 && p[0] < 0xf0 ? 3
		: p[0] >= 0xf0 && p[0] < 0xf5 ? 4
					      : 0;

	for (int i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Overlong forms, surrogates, beyond U+10FFFF. */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))
		return 0;
	return n;
}

void
json_string(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	if (!text) {
		fputs("null", out);
		return;
	}
	putc('"', out);
	while (*p) {
		int n = *p < 0x80 ? 1 : utf8_len(p);

		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\u%04x", *p);
		else if (n == 0)
			putc('?', out);
		else
			fwrite(p, 1, (size_t)n, out);
		p += n ? n : 1;
	}
	putc('"', out);
}
