/* SPDX-License-Identifier: Apache-2.0 */
/* See escape.h. */
#include "base/escape.h"

#include <string.h>

/* Length of the UTF-8 sequence at p, of which there are len bytes; 0: it is none. */
static size_t
utf8_len(const unsigned char *p, size_t len)
{
	size_t n = p[0] < 0x80                   ? 1
		   : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
		   : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
		   : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
						 : 0;

	if (n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Overlong forms, surrogates, beyond U+10FFFF. */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))
		return 0;
	return n;
}

size_t
escape_json_char(const char *text, size_t len, char out[ESCAPE_JSON_MAX], size_t *ret_written)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n = utf8_len(p, len);

	if (n == 0) {
		out[0] = '?';
		*ret_written = n = 1;
	} else if (*p == '"' || *p == '\\') {
		out[0] = '\\';
		out[1] = (char)*p;
		*ret_written = 2;
	} else if (*p < 0x20 || *p == 0x7f) {
		memcpy(out, "\\u00", 4);
		out[4] = "0123456789abcdef"[*p >> 4];
		out[5] = "0123456789abcdef"[*p & 15];
		*ret_written = 6;
	} else {
		memcpy(out, text, n);
		*ret_written = n;
	}
	return n;
}

size_t
escape_json(char *out, size_t cap, const char *text, size_t len, bool *ret_is_whole)
{
	bool is_whole = true;
	size_t n = 0;

	while (len) {
		char c[ESCAPE_JSON_MAX];
		size_t written, used = escape_json_char(text, len, c, &written);

		if (n + written >= cap)
			break;
		is_whole &= c[0] != '?' || *text == '?';
		memcpy(out + n, c, written);
		n += written;
		text += used;
		len -= used;
	}
	if (cap)
		out[n] = 0;
	if (ret_is_whole)
		*ret_is_whole = is_whole && len == 0;
	return n;
}

size_t
escape_url(char *out, size_t cap, const char *text, size_t len)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (size_t i = 0; i < len && n + 4 <= cap; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '-' && c <= '9') || c == '_' ||
		    c == '~') {
			out[n++] = (char)c;
		} else {
			out[n++] = '%';
			out[n++] = digits[c >> 4];
			out[n++] = digits[c & 15];
		}
	}
	if (n < cap)
		out[n] = 0;
	return n;
}
