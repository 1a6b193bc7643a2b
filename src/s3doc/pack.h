/* SPDX-License-Identifier: Apache-2.0 */
/* Packs numbers (little endian) and texts into bytes, and unpacks them, for configurations that are stored
 * among a bucket's attributes. Pure functions. */
#ifndef GANTRY_S3DOC_PACK_H
#define GANTRY_S3DOC_PACK_H

#include "base/check.h"
#include "base/span.h"
#include "dialect/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline void
pack_number(struct text *x, uint64_t v, size_t bytes)
{
	unsigned char b[8];

	check(bytes > 0 && bytes <= sizeof b && (bytes == sizeof b || v >> (8 * bytes) == 0));
	for (size_t i = 0; i < bytes; i++)
		b[i] = (unsigned char)(v >> (8 * i));
	text_put(x, b, bytes);
}

/* Appends a text of at most 65535 bytes, with its length. */
static inline void
pack_span(struct text *x, struct span s)
{
	pack_number(x, s.len, 2);
	text_put(x, s.p, s.len);
}

struct unpacker {
	const unsigned char *p, *end;
	bool bad; /* true after an error: from then on every unpacked value is 0 or empty */
};

static inline uint64_t
unpack_number(struct unpacker *u, size_t bytes)
{
	uint64_t v = 0;

	check(bytes > 0 && bytes <= sizeof v && u->p <= u->end);
	if (u->bad || (size_t)(u->end - u->p) < bytes) {
		u->bad = true;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)u->p[i] << (8 * i);
	u->p += bytes;
	return v;
}

static inline struct span
unpack_span(struct unpacker *u)
{
	size_t len = unpack_number(u, 2);
	struct span s = { (const char *)u->p, len };

	if (u->bad || (size_t)(u->end - u->p) < len) {
		u->bad = true;
		return (struct span){ "", 0 };
	}
	u->p += len;
	return s;
}

#endif
