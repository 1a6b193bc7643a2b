/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key - the keys of the index: a type byte, followed by fields that depend on the type.
 *
 * Pure functions, any thread. Names are bytes, not terminated; bucket names and object keys contain no NUL.
 */
#ifndef GANTRY_EXTENT_LOG_KEY_H
#define GANTRY_EXTENT_LOG_KEY_H

#include "model/key.h"
#include "store/store.h"

#include <string.h>

/* Types of keys, KEY_..., which model/record.def describes. */
enum key_type {
#define DISK_KEY(name, type, kind, copies, parts) KEY_##name = type,
#include "model/record.def"
};
#define CHUNK_ID_BYTES 16
#define UPLOAD_TAIL_BYTES (1 + CHUNK_ID_BYTES)
#define BATTRS_NR 3u
#define BATTRS_QUOTA 3u          /* index of the record with the bucket's quota */
#define BATTRS_BYTES (12u << 10) /* size of one of these records */
#define KEY_BYTES_MAX DISK_KEY_MAX
#define CHUNK_KEY_BYTES (1 + CHUNK_ID_BYTES + 4)

/* Returns true if a key's type is one of an object, with any number of copies. */
static inline bool
key_is_object(uint8_t type)
{
	return disk_key_traits(type).kind == MODEL_OBJECT;
}
/* Returns true if a key's type is one of an upload, with any number of copies. */
static inline bool
key_is_upload(uint8_t type)
{
	return disk_key_traits(type).kind == MODEL_UPLOAD;
}
/* Returns true if the type of an object or upload is one with two copies. */
static inline bool
key_has_two(uint8_t type)
{
	return disk_key_traits(type).copies == 2;
}
/* Returns the number of bytes after the name, in keys of objects and uploads. */
static inline size_t
key_tail_bytes(uint8_t type)
{
	return key_is_upload(type) ? UPLOAD_TAIL_BYTES : 0;
}
/* Returns the type of objects with two copies, or with one. */
static inline uint8_t
key_object_type(bool has_two)
{
	return has_two ? KEY_OBJECT2 : KEY_OBJECT;
}
/* Returns the type of uploads with two copies, or with one. */
static inline uint8_t
key_upload_type(bool has_two)
{
	return has_two ? KEY_UPLOAD2 : KEY_UPLOAD;
}

/* Writes the key to buf (KEY_BYTES_MAX bytes) and returns its length, or -EINVAL (empty, NUL inside),
 * -ENAMETOOLONG. */
static inline int
key_bucket(uint8_t *buf, const char *name, size_t len)
{
	return disk_key_write(buf, KEY_BUCKET, &(struct disk_key){ .bucket = name, .bucket_len = len });
}
/* Writes the key of an object, or of an upload with this id, whose names store.c has checked. Returns its length. */
uint16_t key_object(uint8_t *buf, const struct store_key *k);
uint16_t key_upload(uint8_t *buf, const struct store_key *k, const uint8_t *id);
static inline int
key_chunk(uint8_t *buf, const uint8_t *id, uint32_t index)
{
	return disk_key_write(buf, KEY_CHUNK, &(struct disk_key){ .id = id, .number = index });
}
static inline int
key_part(uint8_t *buf, const uint8_t *id, uint32_t number)
{
	return disk_key_write(buf, KEY_PART, &(struct disk_key){ .id = id, .number = number });
}
/* Writes the key of a record of a bucket's attributes; index: 0 to BATTRS_NR - 1, or BATTRS_QUOTA. */
static inline int
key_battrs(uint8_t *buf, const char *bucket, size_t len, uint32_t index)
{
	return disk_key_write(buf, KEY_BATTRS,
			      &(struct disk_key){ .bucket = bucket, .bucket_len = len, .number = index });
}
/* Writes the key of the bucket to which the key of an object, of an upload or of attributes belongs, and returns its length. */
static inline size_t
key_bucket_of(uint8_t *buf, const uint8_t *key, size_t len)
{
	size_t bucket_len = (size_t)((const uint8_t *)memchr(key, 0, len) - key);

	memcpy(buf, key, bucket_len);
	buf[0] = KEY_BUCKET;
	return bucket_len;
}
/* Returns the index in the key of a chunk, or the number in the key of a part. */
uint32_t key_index(const uint8_t *chunk_key);
/* Returns true if the bytes are a well-formed key of any type. */
static inline bool
key_ok(const uint8_t *key, size_t len)
{
	return disk_key_read(key, len, &(struct disk_key){ 0 }) >= 0;
}
/* Writes type and name for messages, unprintable bytes as '?'.  Always terminated. */
void key_text(char *text, size_t cap, const uint8_t *key, size_t len);
/* Returns a hash for tables in memory, which is never written to a disk. */
uint32_t key_hash(const uint8_t *key, size_t len);

#endif
