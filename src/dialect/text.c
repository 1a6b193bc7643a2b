/* Growing text, see text.h.  Any thread; the caller owns the struct. */
#include "dialect/text.h"

#include "base/base64.h"
#include "base/clock.h"
#include "dialect/dialect_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_CAP 1024

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

char *
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
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	to = n < 0 ? NULL : text_room(x, (size_t)n + 1);
	if (to) {
		vsnprintf(to, (size_t)n + 1, fmt, again);
		x->len += (size_t)n;
	}
	va_end(again);
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
		const char *instead = entity_of(c);
		int n = c < 0x80 ? 1 : utf8_length(p, (size_t)(end - p));

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
	text_fmt(x, "<%s>", name);
	text_xml(x, p, len);
	text_fmt(x, "</%s>", name);
}

void
text_element_str(struct text *x, const char *name, const char *s)
{
	text_element(x, name, s, strlen(s));
}

void
text_element_u64(struct text *x, const char *name, uint64_t v)
{
	text_fmt(x, "<%s>%llu</%s>", name, (unsigned long long)v, name);
}

static void
put_time(struct text *x, const char *name, uint64_t unix_s, unsigned millis)
{
	struct civil c;

	civil_from_unix(unix_s, &c);
	text_fmt(x, "<%s>%04llu-%02d-%02dT%02d:%02d:%02d.%03uZ</%s>", name, (unsigned long long)c.year,
		 c.month, c.day, c.hour, c.minute, c.second, millis, name);
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
