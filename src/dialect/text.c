/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text, see text.h.  Any thread; the caller owns the struct. */
#include "dialect/text.h"

#include "base/base64.h"
#include "base/clock.h"
#include "dialect/dialect_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_CAP 1024
#define FMT_BYTES 256 /* most of what text_fmt() writes fits */

void
text_free(struct text *x)
{
	free(x->p);
	*x = (struct text){ 0 };
}

void
text_reset(struct text *x)
{
	x->len = 0;
	x->failed = false;
}

/* Returns room for len more bytes; NULL when there is no memory.  The caller adds to x->len what it wrote. */
static char *
text_room(struct text *x, size_t len)
{
	size_t cap = x->cap ? x->cap : FIRST_CAP, need;
	char *bigger;

	if (x->failed)
		return NULL;
	if (__builtin_add_overflow(x->len, len, &need) || need > SIZE_MAX / 2) {
		x->failed = true;
		return NULL;
	}
	if (x->p && need <= x->cap)
		return x->p + x->len;
	while (cap < need)
		cap *= 2;
	bigger = realloc(x->p, cap);
	if (!bigger) {
		x->failed = true;
		return NULL;
	}
	x->p = bigger;
	x->cap = cap;
	return x->p + x->len;
}

void
text_put(struct text *x, const void *p, size_t len)
{
	char *to = text_room(x, len);

	if (!to || len == 0)
		return;
	memcpy(to, p, len);
	x->len += len;
}

void
text_str(struct text *x, const char *s)
{
	text_put(x, s, strlen(s));
}

void
text_fmt(struct text *x, const char *fmt, ...)
{
	va_list ap, again;
	char *to;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	to = text_room(x, FMT_BYTES);
	n = to ? vsnprintf(to, FMT_BYTES, fmt, ap) : -1;
	va_end(ap);
	if (n >= 0 && n < FMT_BYTES) {
		x->len += (size_t)n;
		va_end(again);
		return;
	}
	to = n < 0 ? NULL : text_room(x, (size_t)n + 1);
	if (to) {
		vsnprintf(to, (size_t)n + 1, fmt, again);
		x->len += (size_t)n;
	}
	va_end(again);
}

/* Lists have a dozen tags and numbers for each of a thousand objects:
 * they are put together without a format. */
static void
put_tag(struct text *x, const char *open, const char *name)
{
	size_t n = strlen(open), len = strlen(name);
	char *to = text_room(x, n + len + 1);

	if (!to)
		return;
	memcpy(to, open, n);
	memcpy(to + n, name, len);
	to[n + len] = '>';
	x->len += n + len + 1;
}

/* At least `least` digits, and what follows them. */
static void
put_digits(struct text *x, uint64_t v, int least, char behind)
{
	char digits[24], *at = digits + sizeof digits;

	if (behind)
		*--at = behind;
	do {
		*--at = (char)('0' + v % 10);
		v /= 10;
		least--;
	} while (v || least > 0);
	text_put(x, at, (size_t)(digits + sizeof digits - at));
}

/* What stands for c, or NULL when it stands for itself. */
static const char *
entity_of(unsigned char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&apos;";
	case '\r': /* as it is, a reader would make it a line feed */
		return "&#13;";
	default:
		return c < 0x20 && c != '\t' && c != '\n' ? "\xef\xbf\xbd" : NULL;
	}
}

void
text_xml(struct text *x, const char *p, size_t len)
{
	const char *end = p + len, *from = p;

	while (p < end) {
		unsigned char c = (unsigned char)*p;
		const char *instead;
		int n;

		/* Letters, digits and most of what stands between them. */
		if ((c >= '-' && c <= ';') || (c >= '?' && c <= '~')) {
			p++;
			continue;
		}
		instead = entity_of(c);
		n = c < 0x80 ? 1 : utf8_length(p, (size_t)(end - p));
		/* U+FFFE and U+FFFF are characters of UTF-8 and not of XML. */
		if (n == 0 || (n == 3 && memcmp(p, "\xef\xbf", 2) == 0 && (unsigned char)p[2] >= 0xbe))
			instead = "\xef\xbf\xbd";
		if (instead) {
			text_put(x, from, (size_t)(p - from));
			text_str(x, instead);
		}
		p += n ? n : 1;
		if (instead)
			from = p;
	}
	text_put(x, from, (size_t)(end - from));
}

void
text_url(struct text *x, const char *p, size_t len, bool keep_slash)
{
	static const char digits[] = "0123456789ABCDEF";
	char *to = len > SIZE_MAX / 3 ? NULL : text_room(x, len * 3), *at = to;

	if (!to)
		return;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    (c && strchr("-._~", c)) || (c == '/' && keep_slash)) {
			*at++ = (char)c;
		} else {
			*at++ = '%';
			*at++ = digits[c >> 4];
			*at++ = digits[c & 15];
		}
	}
	x->len += (size_t)(at - to);
}

void
text_element(struct text *x, const char *name, const char *p, size_t len)
{
	put_tag(x, "<", name);
	text_xml(x, p, len);
	put_tag(x, "</", name);
}

void
text_element_str(struct text *x, const char *name, const char *s)
{
	text_element(x, name, s, strlen(s));
}

void
text_element_u64(struct text *x, const char *name, uint64_t v)
{
	put_tag(x, "<", name);
	put_digits(x, v, 1, 0);
	put_tag(x, "</", name);
}

static void
put_time(struct text *x, const char *name, uint64_t unix_s, unsigned millis)
{
	struct civil c;

	civil_from_unix(unix_s, &c);
	put_tag(x, "<", name);
	put_digits(x, (uint64_t)c.year, 4, '-');
	put_digits(x, (uint64_t)c.month, 2, '-');
	put_digits(x, (uint64_t)c.day, 2, 'T');
	put_digits(x, (uint64_t)c.hour, 2, ':');
	put_digits(x, (uint64_t)c.minute, 2, ':');
	put_digits(x, (uint64_t)c.second, 2, '.');
	put_digits(x, millis, 3, 'Z');
	put_tag(x, "</", name);
}

void
text_element_time(struct text *x, const char *name, uint64_t ns)
{
	put_time(x, name, ns / NS_PER_S, (unsigned)(ns / NS_PER_MS % 1000));
}

void
text_element_date(struct text *x, const char *name, uint64_t unix_s)
{
	put_time(x, name, unix_s, 0);
}

void
text_base64(struct text *x, const void *bytes, size_t len)
{
	char *to = text_room(x, BASE64_LEN(len) + 1);

	if (!to)
		return;
	base64_encode(bytes, len, to);
	x->len += BASE64_LEN(len);
}

void
text_base64url(struct text *x, const void *bytes, size_t len)
{
	char *to = text_room(x, BASE64_LEN(len) + 1);
	size_t n = len / 3 * 4 + (len % 3 ? len % 3 + 1 : 0);

	if (!to)
		return;
	base64_encode(bytes, len, to);
	for (size_t i = 0; i < n; i++)
		to[i] = (char)(to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i]);
	x->len += n;
}
