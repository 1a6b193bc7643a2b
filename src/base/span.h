/* SPDX-License-Identifier: Apache-2.0 */
/* span - a part of a text, such as a part of a request or of a descriptor. The text belongs to another
 * object, and the part is not terminated. Pure functions, which any thread may call. */
#ifndef GANTRY_BASE_SPAN_H
#define GANTRY_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct span {
	const char *p;
	size_t len;
};

static inline struct span
span_of(const char *text)
{
	return (struct span){ text, strlen(text) };
}

static inline bool
span_is(struct span s, const char *text)
{
	size_t n = strlen(text);

	return s.len == n && memcmp(s.p, text, n) == 0;
}

static inline bool
span_begins(struct span s, const char *text)
{
	size_t n = strlen(text);

	return s.len >= n && memcmp(s.p, text, n) == 0;
}

/* Returns true if two bytes may be the same letter in either case. Most texts differ in their first byte, so
 * this test saves most calls of strncasecmp(). */
static inline bool
span_may_be_letter(char a, char b)
{
	return ((a ^ b) & ~0x20) == 0;
}

/* Returns true if a span has the same text as `text`, apart from case. */
static inline bool
span_is_nocase(struct span s, const char *text)
{
	size_t n = strlen(text);

	return s.len == n &&
	       (n == 0 || (span_may_be_letter(s.p[0], text[0]) && strncasecmp(s.p, text, n) == 0));
}

static inline bool
span_begins_nocase(struct span s, const char *text)
{
	size_t n = strlen(text);

	return s.len >= n &&
	       (n == 0 || (span_may_be_letter(s.p[0], text[0]) && strncasecmp(s.p, text, n) == 0));
}

/* Returns true if len bytes of text are `name`, apart from case. name: only lower-case letters, digits and '-'. Compares
 * eight bytes at a time. */
bool span_is_name(const char *text, const char *name, size_t len);

/* Returns true for a blank or a tab, which may surround the value of a header field. */
static inline bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Returns the span without leading and trailing blanks and tabs. */
struct span span_trim(struct span s);
/* Removes the text before the next `sep` from *rest, together with this `sep`, and returns the text. Without
 * a `sep`, returns all of *rest. */
struct span span_cut(struct span *rest, char sep);
/* Parses a number of decimal digits without a sign, up to 64 bits. Returns 0 or -EINVAL. */
int span_decimal(struct span s, uint64_t *ret_value);

enum { DECODE_STRICT = 1, DECODE_PLUS = 2 };
/* Decodes percent sequences once, and, if `how` requests it, '+' as a blank. Returns the length; -EINVAL: the
 * result contains a NUL, or (strict) a sequence is invalid; -E2BIG: the result exceeds cap. Not strict: a '%'
 * without two hex digits after it stays unchanged. */
int span_decode(struct span s, unsigned how, char *out, size_t cap);

#endif
