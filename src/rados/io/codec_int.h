/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the codec: the beginning and the end of each value. Pure functions; any thread. */
#ifndef GANTRY_RADOS_IO_CODEC_INT_H
#define GANTRY_RADOS_IO_CODEC_INT_H

#include "base/check.h"
#include "base/crc64.h"
#include "base/cursor.h"

#define FORMAT 1 /* first byte of each value */

enum value_kind {
	VALUE_RECORD = 1,
	VALUE_UPLOAD,
	VALUE_BUCKET,
	VALUE_BATTRS,
	VALUE_GARBAGE,
	VALUE_GATEWAY,
	VALUE_FORMAT,
	VALUE_COUNTER,
	VALUE_BOUND,
	VALUE_GATEWAY_ADDRS
};

/* Writes the head of a value of len bytes. Returns a cursor after the head. */
static inline struct cur
put_head(void *out, size_t len, enum value_kind kind)
{
	struct cur c = cursor(out, len);

	put_u8(&c, FORMAT);
	put_u8(&c, (uint8_t)kind);
	put_u16(&c, 0);
	return c;
}

/* Opens a value; `fixed` is the length of its fixed part, including the head. Returns false if the value
 * is damaged; true with a cursor over the bytes between the fixed part and the CRC, and the flags in the
 * head. */
static inline bool
open_flagged(const void *buf, size_t len, enum value_kind kind, size_t fixed, struct cur *ret_cur,
	     uint16_t *ret_flags)
{
	const uint8_t *p = buf;
	uint64_t crc;

	if (len < fixed + 8 || p[0] != FORMAT || p[1] != kind)
		return false;
	memcpy(&crc, p + len - 8, 8);
	memcpy(ret_flags, p + 2, 2);
	*ret_cur = cursor(p + fixed, len - 8 - fixed);
	return crc64_nvme(0, buf, len - 8) == crc;
}

static inline bool
open_value(const void *buf, size_t len, enum value_kind kind, size_t fixed, struct cur *ret_cur)
{
	uint16_t flags;

	return open_flagged(buf, len, kind, fixed, ret_cur, &flags) && flags == 0;
}

/* Opens a value of fixed length, and copies its first fields, which are encoded as they are in memory. */
static inline bool
take_whole(const void *buf, size_t len, size_t bytes, enum value_kind kind, void *fields, size_t fields_len)
{
	struct cur c;

	if (len != bytes || !open_value(buf, len, kind, 4, &c))
		return false;
	take_bytes(&c, fields, fields_len);
	return true;
}

static inline bool
all_taken(const struct cur *c)
{
	return !c->bad && c->p == c->end;
}

/* Writes the CRC of all bytes since start, which ends a value. */
static inline void
put_end(struct cur *c, const void *start)
{
	put_u64(c, crc64_nvme(0, start, (size_t)(c->p - (const uint8_t *)start)));
	check(all_taken(c));
}

/* Returns room for the next n bytes of a value that is written. */
static inline uint8_t *
room(struct cur *c, size_t n)
{
	const uint8_t *p = take(c, n);

	check(p);
	return (uint8_t *)(uintptr_t)p;
}

#endif
