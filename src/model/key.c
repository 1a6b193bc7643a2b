/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of records, see key.h. For each part that a row of record.def names, put_PART(c, k) writes the part, and
 * take_PART(c, k) reads it, and returns false if the bytes are not such a part. */
#include "model/key.h"

#include "base/cursor.h"

#include <errno.h>

/* ---- parts of disk keys ---- */

static inline int
put_name(struct cur *c, const char *name, size_t len, size_t max)
{
	if (len > max)
		return -ENAMETOOLONG;
	if (len == 0 || memchr(name, 0, len))
		return -EINVAL;
	put_bytes(c, name, len);
	return 0;
}

/* Takes the bytes up to the next NUL or the end. */
static inline bool
take_name(struct cur *c, const char **ret_name, size_t *ret_len, size_t max)
{
	size_t left = (size_t)(c->end - c->p);
	const uint8_t *nul = left ? memchr(c->p, 0, left) : NULL;

	*ret_len = nul ? (size_t)(nul - c->p) : left;
	*ret_name = (const char *)take(c, *ret_len);
	return *ret_len > 0 && *ret_len <= max;
}

#define put_bucket(c, k) put_name(c, (k)->bucket, (k)->bucket_len, STORE_BUCKET_MAX)
#define take_bucket(c, k) take_name(c, &(k)->bucket, &(k)->bucket_len, STORE_BUCKET_MAX)
#define put_key(c, k) put_name(c, (k)->key, (k)->key_len, STORE_KEY_MAX)
#define take_key(c, k) take_name(c, &(k)->key, &(k)->key_len, STORE_KEY_MAX)
#define put_nul(c, k) (put_u8(c, 0), 0)
#define take_nul(c, k) (take_u8(c) == 0)
#define put_digit(c, k) (put_u8(c, (uint8_t)('0' + (k)->number)), 0)
#define take_digit(c, k) ((k)->number = (uint32_t)take_u8(c) - '0', true)
#define put_id(c, k) (put_bytes(c, (k)->id, STORE_UPLOAD_ID_BYTES), 0)
#define take_id(c, k) (((k)->id = take(c, STORE_UPLOAD_ID_BYTES)) != NULL)
#define put_index(c, k) (put_u32(c, htobe32((k)->number)), 0)
#define take_index(c, k) ((k)->number = be32toh(take_u32(c)), true)
#define put_number put_index
#define take_number(c, k) (take_index(c, k) && (k)->number >= 1 && (k)->number <= STORE_PART_NR_MAX)

/* ---- parts of keys on RADOS, which are text ---- */

static const char digits[] = "0123456789abcdef";

/* Writes a number with n digits. */
static void
put_digits(struct cur *c, size_t n, unsigned base, uint64_t number)
{
	char text[16];

	for (size_t i = n; i > 0; number /= base)
		text[--i] = digits[number % base];
	put_bytes(c, text, n);
}

/* Reads a number of n digits. Returns false if there are fewer digits, or if the number is above max. */
static bool
take_digits(struct cur *c, size_t n, unsigned base, uint64_t max, uint64_t *ret_number)
{
	const uint8_t *text = take(c, n);

	*ret_number = 0;
	for (size_t i = 0; text && i < n; i++) {
		const char *d = memchr(digits, text[i], base);

		if (!d)
			return false;
		*ret_number = *ret_number * base + (uint64_t)(d - digits);
	}
	return text && *ret_number <= max;
}

static void
put_hex_id(struct cur *c, const struct rados_key *k)
{
	for (int i = 0; k->id && i < STORE_UPLOAD_ID_BYTES; i++)
		put_digits(c, 2, 16, k->id[i]);
}

static bool
take_hex_id(struct cur *c, struct rados_key *k)
{
	uint64_t byte;

	for (int i = 0; i < STORE_UPLOAD_ID_BYTES; i++) {
		if (!take_digits(c, 2, 16, UINT8_MAX, &byte))
			return false;
		k->id_room[i] = (uint8_t)byte;
	}
	k->id = k->id_room;
	return true;
}

/* Writes a key as a part of a longer one: a byte 1 becomes 1 2, and the bytes 1 1, which put_end() writes, follow the
 * key. Longer keys therefore have the order of the keys in them. */
static void
put_escaped(struct cur *c, const struct rados_key *k)
{
	for (size_t i = 0; i < k->key_len; i++) {
		put_u8(c, (uint8_t)k->key[i]);
		if (k->key[i] == 1)
			put_u8(c, 2);
	}
}

static bool
take_escaped(struct cur *c, struct rados_key *k)
{
	k->key = k->key_room;
	for (k->key_len = 0; c->end - c->p >= 2 && !(c->p[0] == 1 && c->p[1] == 1);) {
		char byte = (char)take_u8(c);

		if (k->key_len == STORE_KEY_MAX || (byte == 1 && take_u8(c) != 2))
			return false;
		k->key_room[k->key_len++] = byte;
	}
	return true;
}

#define put_text(c, k) put_bytes(c, (k)->key, (k)->key_len)
#define take_text(c, k) take_name(c, &(k)->key, &(k)->key_len, STORE_KEY_MAX)
#define put_end(c, k) put_u16(c, 0x0101)
#define take_end(c, k) (take_u16(c) == 0x0101)
#define put_decimal5(c, k) ((k)->number ? put_digits(c, 5, 10, (k)->number) : (void)0)
#define take_decimal5(c, k) take_digits(c, 5, 10, STORE_PART_NR_MAX, &(k)->number)
#define put_decimal10(c, k) put_digits(c, 10, 10, (k)->number)
#define take_decimal10(c, k) take_digits(c, 10, 10, UINT32_MAX - 1, &(k)->number)
#define put_epoch(c, k) put_digits(c, 16, 16, (k)->epoch)
#define take_epoch(c, k) take_digits(c, 16, 16, UINT64_MAX, &(k)->epoch)
#define put_rid(c, k)                                                                                        \
	(put_digits(c, 8, 16, (k)->rid.instance), put_u8(c, '.'), put_digits(c, 16, 16, (k)->rid.counter))
#define take_rid(c, k) take(c, 8 + 1 + 16)

/* ---- keys ---- */

uint8_t
disk_key_next(enum model_kind kind, uint8_t type)
{
	while (++type && disk_key_traits(type).kind != kind)
		;
	return type;
}

int
disk_key_write(uint8_t *out, uint8_t type, const struct disk_key *k)
{
	struct cur c = cursor(out, DISK_KEY_MAX);
	int e;

	put_u8(&c, type);
	switch (type) {
#define P(part)                                                                                              \
	if ((e = put_##part(&c, k)) < 0)                                                                     \
		return e;
#define DISK_KEY(name, type, kind, copies, parts)                                                            \
	case type:                                                                                           \
		parts break;
#include "model/record.def"
#undef P
	default:
		check(false);
	}
	return (int)(c.p - out);
}

#define P(part)                                                                                              \
	if (!take_##part(&c, k))                                                                             \
		return -EBADMSG;

int
disk_key_read(const uint8_t *bytes, size_t len, struct disk_key *ret_key)
{
	struct cur c = cursor(bytes, len);
	struct disk_key *k = ret_key;

	switch (take_u8(&c)) {
#define DISK_KEY(name, type, kind, copies, parts)                                                            \
	case type:                                                                                           \
		parts break;
#include "model/record.def"
	default:
		return -EBADMSG;
	}
	return c.bad || c.p != c.end ? -EBADMSG : disk_key_traits(bytes[0]).kind;
}

int
rados_key_read(const char *text, size_t len, char type, struct rados_key *k)
{
	struct cur c = cursor(text, len);

	if (take_u8(&c) != type)
		return -EBADMSG;
	switch (type) {
#define RADOS_KEY(name, type, kind, parts)                                                                   \
	case type:                                                                                           \
		parts break;
#include "model/record.def"
	default:
		check(false);
	}
	return c.bad || c.p != c.end ? -EBADMSG : 0;
}

#undef P

size_t
rados_key_write(char *out, char type, const struct rados_key *k)
{
	struct cur c = cursor(out, RADOS_KEY_MAX - 1);

	put_u8(&c, (uint8_t)type);
	switch (type) {
#define P(part) put_##part(&c, k);
#define RADOS_KEY(name, type, kind, parts)                                                                   \
	case type:                                                                                           \
		parts break;
#include "model/record.def"
	default:
		check(false);
	}
	*c.p = 0;
	return (size_t)((char *)c.p - out);
}
