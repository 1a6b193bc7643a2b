/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the index, see key.h. */
#include "extent/log/key.h"

#include "base/check.h"
#include "base/hex.h"

#include <endian.h>
#include <string.h>

uint16_t
key_upload(uint8_t *buf, const struct store_key *k, const uint8_t *id)
{
	const struct disk_key parts = { .bucket = k->bucket,
					.key = k->key,
					.bucket_len = k->bucket_len,
					.key_len = k->key_len,
					.id = id };
	bool has_two = store_has_two(k);
	int len = disk_key_write(buf, id ? key_upload_type(has_two) : key_object_type(has_two), &parts);

	check(len > 0 && k->copies <= 2);
	return (uint16_t)len;
}

uint16_t
key_object(uint8_t *buf, const struct store_key *k)
{
	return key_upload(buf, k, NULL);
}

uint32_t
key_index(const uint8_t *chunk_key)
{
	uint32_t index;

	memcpy(&index, chunk_key + 1 + CHUNK_ID_BYTES, 4);
	return be32toh(index);
}

void
key_text(char *text, size_t cap, const uint8_t *key, size_t len)
{
	bool is_chunk = len && (key[0] == KEY_CHUNK || key[0] == KEY_PART);
	/* The bytes from here on are numbers, not names. */
	size_t n = 0, names = is_chunk                                           ? 1
			      : len > UPLOAD_TAIL_BYTES && key_is_upload(key[0]) ? len - CHUNK_ID_BYTES
										 : len;

	for (size_t i = is_chunk ? 0 : 1; i < names && n + 4 < cap; i++)
		text[n++] = key[i] == 0 ? '/' : key[i] >= 0x20 && key[i] < 0x7f ? (char)key[i] : '?';
	for (size_t i = names; i < len && n + 4 < cap; i++, n += 2)
		hex_write(text + n, key + i, 1);
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
