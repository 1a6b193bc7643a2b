/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that grows, for bodies whose length is not known before they are written: lists, results of multipart
 * uploads.  Not the data path.  One thread at a time; whoever has a struct text owns its memory.
 *
 * A failed allocation is remembered: every later call does nothing, and the writer asks text_ok() once at the
 * end.
 */
#ifndef GANTRY_DIALECT_TEXT_H
#define GANTRY_DIALECT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *p; /* malloc'd; not terminated */
	size_t len, cap;
	bool failed;
};

static inline bool
text_ok(const struct text *x)
{
	return !x->failed;
}

void text_free(struct text *x);
/* Empties it and keeps the memory. */
void text_reset(struct text *x);

void text_put(struct text *x, const void *p, size_t len);
void text_str(struct text *x, const char *s);
void text_fmt(struct text *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends it escaped for XML.  What XML 1.0 cannot carry (control bytes, U+FFFE, what is not UTF-8)
 * becomes U+FFFD. */
void text_xml(struct text *x, const char *p, size_t len);
/* Appends it percent-encoded: "A-Za-z0-9-._~" and, when keep_slash, "/" stay; every other byte becomes
 * %XX. */
void text_url(struct text *x, const char *p, size_t len, bool keep_slash);
/* Appends <name>escaped</name>. */
void text_element(struct text *x, const char *name, const char *p, size_t len);
void text_element_str(struct text *x, const char *name, const char *s);
void text_element_u64(struct text *x, const char *name, uint64_t v);
/* Appends <name>2009-10-12T17:50:30.000Z</name>. */
void text_element_time(struct text *x, const char *name, uint64_t ns);
/* Appends such an element from seconds: dates beyond what nanoseconds of 64 bits reach. */
void text_element_date(struct text *x, const char *name, uint64_t unix_s);
void text_base64(struct text *x, const void *bytes, size_t len);
/* Appends the form that needs no escape in a URL: '-' and '_', no padding. */
void text_base64url(struct text *x, const void *bytes, size_t len);

#endif
