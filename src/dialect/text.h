/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text that grows as it is written, for bodies of unknown length such as lists. Not for the data path. One
 * thread at a time; the owner of a struct text owns its memory.
 *
 * After a failed allocation all further calls do nothing, so it is enough to check text_ok() once, at the
 * end.
 */
#ifndef GANTRY_DIALECT_TEXT_H
#define GANTRY_DIALECT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *p; /* allocated; does not end with a NUL */
	size_t len, cap;
	bool failed;
};

static inline bool
text_ok(const struct text *x)
{
	return !x->failed;
}

void text_free(struct text *x);
/* Empties the text and keeps its memory. */
void text_reset(struct text *x);

void text_put(struct text *x, const void *p, size_t len);
void text_str(struct text *x, const char *s);
void text_fmt(struct text *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends a text with the escapes of XML. U+FFFD replaces characters that XML 1.0 cannot represent:
 * control bytes, U+FFFE, bytes that are not UTF-8. */
void text_xml(struct text *x, const char *p, size_t len);
/* Appends a text percent-encoded: "A-Za-z0-9-._~" and, with keep_slash, "/" are unchanged; every other
 * byte becomes %XX. */
void text_url(struct text *x, const char *p, size_t len, bool keep_slash);
/* Appends the element <name>text</name>, with the escapes of XML. */
void text_element(struct text *x, const char *name, const char *p, size_t len);
void text_element_str(struct text *x, const char *name, const char *s);
void text_element_u64(struct text *x, const char *name, uint64_t v);
/* Appends a time such as <name>2009-10-12T17:50:30.000Z</name>. */
void text_element_time(struct text *x, const char *name, uint64_t ns);
/* Appends the element <name> with a date, given in seconds since 1970. Dates may be too far away for
 * text_element_time(), whose argument is in nanoseconds. */
void text_element_date(struct text *x, const char *name, uint64_t unix_s);
void text_base64(struct text *x, const void *bytes, size_t len);
/* Appends base64 in the form for URLs: with '-' and '_', and without padding. */
void text_base64url(struct text *x, const void *bytes, size_t len);

#endif
