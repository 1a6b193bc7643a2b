/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a text that belongs to somebody else, not terminated: parts of a request, of a descriptor.  Pure
 * functions, any thread. */
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

/* Compares without regard to case. */
static inline bool
span_is_nocase(struct span s, const char *text)
{
	size_t n = strlen(text);

	return s.len == n && strncasecmp(s.p, text, n) == 0;
}

static inline bool
span_begins_nocase(struct span s, const char *text)
{
	size_t n = strlen(text);

	return s.len >= n && strncasecmp(s.p, text, n) == 0;
}

/* Tells a blank or a tab: what may stand around the value of a header field. */
static inline bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Returns the span without the blanks around it. */
struct span span_trim(struct span s);
/* Cuts what stands before the next `sep` off *rest, and the `sep` (all of it when there is none). */
struct span span_cut(struct span *rest, char sep);
/* Parses digits, without a sign and up to 64 bits.  0 or -EINVAL. */
int span_decimal(struct span s, uint64_t *ret_value);

enum { DECODE_STRICT = 1, DECODE_PLUS = 2 };
/*
 * Decodes percent sequences once, '+' to a blank if asked.  Returns the length, -EINVAL for a bad sequence
 * (strict) or a NUL, -E2BIG beyond cap.  Not strict: a '%' without two hex digits behind it stands for itself.
 */
int span_decode(struct span s, unsigned how, char *out, size_t cap);

#endif
