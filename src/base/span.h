/* SPDX-License-Identifier: Apache-2.0 */
/* span - a part of a text, such as a part of a request or of a descriptor. The text belongs to another
 * object, and the part is not terminated. Pure functions, any thread. */
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

/* Tells whether two bytes may be one letter in either case: most texts differ in the first byte, so no call is needed. */
static inline bool
span_may_be_letter(char a, char b)
{
	return ((a ^ b) & ~0x20) == 0;
}

/* Compares two spans, ignoring case. */
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

/* Returns true for a blank or a tab, which may surround the value of a header field. */
static inline bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Returns the span without the blanks around it. */
struct span span_trim(struct span s);
/* Removes the text before the next `sep`, and the `sep`, from *rest and returns that text (all of it if there
 * is no `sep`). */
struct span span_cut(struct span *rest, char sep);
/* Parses digits, without a sign and up to 64 bits.  0 or -EINVAL. */
int span_decimal(struct span s, uint64_t *ret_value);

enum { DECODE_STRICT = 1, DECODE_PLUS = 2 };
/*
 * Decodes percent sequences once, and '+' to a blank if requested. Returns the length; -EINVAL for a NUL, or
 * (strict) an invalid sequence; -E2BIG if the result exceeds cap. Not strict: a '%' without two hex digits
 * after it is unchanged.
 */
int span_decode(struct span s, unsigned how, char *out, size_t cap);

#endif
