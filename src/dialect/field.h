/* SPDX-License-Identifier: Apache-2.0 */
/* A header field of a request, and its name without regard to case. Pure functions, which any thread may call. */
#ifndef GANTRY_DIALECT_FIELD_H
#define GANTRY_DIALECT_FIELD_H

#include "base/span.h"

struct field {
	const char *name, *value; /* texts that end with a NUL; the lengths do not count the NUL */
	uint32_t name_len, value_len;
};

/* Returns true if the field has that name, or a name with that beginning; name, prefix: as in span_is_name(). */
static inline bool
name_is(const struct field *f, const char *name)
{
	return f->name_len == strlen(name) && span_is_name(f->name, name, f->name_len);
}

static inline bool
name_begins(const struct field *f, const char *prefix)
{
	return f->name_len >= strlen(prefix) && span_may_be_letter(f->name[0], prefix[0]) &&
	       span_is_name(f->name, prefix, strlen(prefix));
}

/* Returns the value of a field without the blanks around it. */
static inline struct span
field_text(const struct field *f)
{
	return span_trim((struct span){ f->value, f->value_len });
}

#endif
