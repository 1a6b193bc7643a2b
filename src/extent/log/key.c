/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the index, see key.h. */
#include "extent/log/key.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

int
key_bucket(uint8_t *buf, const char *name, size_t len)
{
	if (len > STORE_BUCKET_MAX)
		return -ENAMETOOLONG;
	if (len == 0 || memchr(name, 0, len))
		return -EINVAL;
	buf[0] = KEY_BUCKET;
	memcpy(buf + 1, name, len);
	return (int)len + 1;
}

int
key_object(uint8_t *buf, const struct store_key *k)
{
	if (k->bucket_len > STORE_BUCKET_MAX || k->key_len > STORE_KEY_MAX)
		return -ENAMETOOLONG;
	if (k->bucket_len == 0 || k->key_len == 0 || k->copies > 2 || memchr(k->bucket, 0, k->bucket_len) ||
	    memchr(k->key, 0, k->key_len))
		return -EINVAL;
	buf[0] = key_object_type(store_has_two(k));
	memcpy(buf + 1, k->bucket, k->bucket_len);
	buf[1 + k->bucket_len] = 0;
	memcpy(buf + 2 + k->bucket_len, k->key, k->key_len);
	return 2 + k->bucket_len + k->key_len;
}

int
key_chunk(uint8_t *buf, const uint8_t *id, uint32_t index)
{
	buf[0] = KEY_CHUNK;
	memcpy(buf + 1, id, CHUNK_ID_BYTES);
	index = htobe32(index);
	memcpy(buf + 1 + CHUNK_ID_BYTES, &index, 4);
	return CHUNK_KEY_BYTES;
}

int
key_part(uint8_t *buf, const uint8_t *id, uint32_t number)
{
	key_chunk(buf, id, number);
	buf[0] = KEY_PART;
	return CHUNK_KEY_BYTES;
}

int
key_upload(uint8_t *buf, const struct store_key *k, const uint8_t *id)
{
	int len = key_object(buf, k);

	if (len < 0)
		return len;
	buf[0] = key_upload_type(store_has_two(k));
	buf[len] = 0;
	memcpy(buf + len + 1, id, CHUNK_ID_BYTES);
	return len + UPLOAD_TAIL_BYTES;
}

int
key_battrs(uint8_t *buf, const uint8_t *bucket_key, size_t bucket_key_len, uint32_t index)
{
	memcpy(buf, bucket_key, bucket_key_len);
	buf[0] = KEY_BATTRS;
	buf[bucket_key_len] = 0;
	buf[bucket_key_len + 1] = (uint8_t)('0' + index);
	return (int)bucket_key_len + 2;
}

uint32_t
key_index(const uint8_t *chunk_key)
{
	uint32_t index;

	memcpy(&index, chunk_key + 1 + CHUNK_ID_BYTES, 4);
	return be32toh(index);
}

static bool
object_key_ok(const uint8_t *key, size_t len, const uint8_t *nul)
{
	if (!nul || nul == key + 1 || nul > key + 1 + STORE_BUCKET_MAX || nul == key + len - 1)
		return false;
	return (size_t)(key + len - nul - 1) <= STORE_KEY_MAX &&
	       !memchr(nul + 1, 0, (size_t)(key + len - nul - 1));
}

bool
key_ok(const uint8_t *key, size_t len)
{
	const uint8_t *nul;

	if (len < 2)
		return false;
	nul = memchr(key + 1, 0, len - 1);
	switch (key[0]) {
	case KEY_BUCKET:
		return len <= 1 + STORE_BUCKET_MAX && !nul;
	case KEY_OBJECT:
	case KEY_OBJECT2:
		return object_key_ok(key, len, nul);
	case KEY_UPLOAD:
	case KEY_UPLOAD2:
		return len > UPLOAD_TAIL_BYTES && key[len - UPLOAD_TAIL_BYTES] == 0 &&
		       nul < key + len - UPLOAD_TAIL_BYTES &&
		       object_key_ok(key, len - UPLOAD_TAIL_BYTES, nul);
	case KEY_BATTRS:
		return nul && nul > key + 1 && nul <= key + 1 + STORE_BUCKET_MAX && nul == key + len - 2;
	case KEY_PART:
		return len == CHUNK_KEY_BYTES && key_index(key) >= 1 && key_index(key) <= STORE_PART_NR_MAX;
	case KEY_CHUNK:
		return len == CHUNK_KEY_BYTES;
	default:
		return false;
	}
}

void
key_text(char *text, size_t cap, const uint8_t *key, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	bool is_chunk = len && (key[0] == KEY_CHUNK || key[0] == KEY_PART);
	/* Behind here there are no names but numbers. */
	size_t n = 0, names = is_chunk                                           ? 1
			      : len > UPLOAD_TAIL_BYTES && key_is_upload(key[0]) ? len - CHUNK_ID_BYTES
										 : len;

	for (size_t i = is_chunk ? 0 : 1; i < len && n + 4 < cap; i++) {
		uint8_t c = key[i];

		if (i >= names) {
			text[n++] = digits[c >> 4];
			text[n++] = digits[c & 15];
		} else if (c == 0) {
			text[n++] = '/';
		} else {
			text[n++] = c >= 0x20 && c < 0x7f ? (char)c : '?';
		}
	}
	text[n] = 0;
}

uint32_t
key_hash(const uint8_t *key, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u ^ len;

	for (; len >= 8; key += 8, len -= 8) {
		uint64_t v;

		memcpy(&v, key, 8);
		h = (h ^ v) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; len; key++, len--)
		h = (h ^ *key) * 0x100000001b3u;
	return (uint32_t)(h ^ h >> 32);
}
