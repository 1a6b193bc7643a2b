/* SPDX-License-Identifier: Apache-2.0 */
/* cursor - a position in a buffer of limited length, used to encode and decode all stored data. Little
 * endian. A read beyond the end marks the cursor as bad and returns zeros; a write beyond the end is a defect
 * of the caller, and aborts. Any thread may use these functions, each with its own cursors. */
#ifndef GANTRY_BASE_CURSOR_H
#define GANTRY_BASE_CURSOR_H

#include "base/check.h"

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "entries of records are used as they lie on disk");

/* Returns true if n bytes are zero. */
static inline bool
is_zero(const void *p, size_t n)
{
	const uint8_t *bytes = p;

	return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* A cursor over a buffer. All encoders and decoders of stored data use it. */
struct cur {
	uint8_t *p, *end;
	bool bad; /* true: a read went beyond the end of the buffer */
};

static inline void
put_bytes(struct cur *c, const void *src, size_t n)
{
	check((size_t)(c->end - c->p) >= n);
	if (n)
		memcpy(c->p, src, n);
	c->p += n;
}

static inline void
put_u64(struct cur *c, uint64_t v)
{
	put_bytes(c, &v, 8);
}

static inline void
put_u32(struct cur *c, uint32_t v)
{
	put_bytes(c, &v, 4);
}

static inline void
put_u16(struct cur *c, uint16_t v)
{
	put_bytes(c, &v, 2);
}

static inline void
put_u8(struct cur *c, uint8_t v)
{
	put_bytes(c, &v, 1);
}

static inline void
put_zero_to(struct cur *c, const uint8_t *start, size_t align)
{
	static const uint8_t zero[8];
	size_t off = (size_t)(c->p - start);

	put_bytes(c, zero, (align - off % align) % align);
}

/* Returns a pointer to the next n bytes in the buffer, and moves the cursor past these bytes. Returns NULL if
 * fewer bytes are left; never NULL if n is 0. */
static inline const uint8_t *
take(struct cur *c, size_t n)
{
	uint8_t *p = c->p;

	if (c->bad || (size_t)(c->end - c->p) < n) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return p;
}

static inline void
take_bytes(struct cur *c, void *dst, size_t n)
{
	const uint8_t *p = take(c, n);

	if (p)
		memcpy(dst, p, n);
	else
		memset(dst, 0, n);
}

static inline uint64_t
take_u64(struct cur *c)
{
	uint64_t v;

	take_bytes(c, &v, 8);
	return v;
}

static inline uint32_t
take_u32(struct cur *c)
{
	uint32_t v;

	take_bytes(c, &v, 4);
	return v;
}

static inline uint16_t
take_u16(struct cur *c)
{
	uint16_t v;

	take_bytes(c, &v, 2);
	return v;
}

static inline uint8_t
take_u8(struct cur *c)
{
	uint8_t v;

	take_bytes(c, &v, 1);
	return v;
}

static inline void
move_bytes(struct cur *c, void *value, size_t n, bool puts)
{
	if (puts)
		put_bytes(c, value, n);
	else
		take_bytes(c, value, n);
}

/* Moves a value of fixed width: puts: from the value to the buffer; otherwise in the other direction. A function
 * that moves all fields of a struct is the only description of their order. */
#define MOVE(c, value, puts) move_bytes(c, &(value), sizeof(value), puts)

static inline struct cur
cursor(const void *buf, size_t len)
{
	return (struct cur){ (uint8_t *)(uintptr_t)buf, (uint8_t *)(uintptr_t)buf + len, false };
}

#endif
