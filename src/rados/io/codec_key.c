/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of rows, and names of objects of the pools; see codec.h. */
#include "rados/io/codec.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- ids ---- */

static struct label __attribute__((format(printf, 1, 2))) label(const char *fmt, ...)
{
	struct label l;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l.text, sizeof l.text, fmt, ap);
	va_end(ap);
	check(n > 0 && (size_t)n < sizeof l.text);
	return l;
}

struct label
rid_text(struct rid id)
{
	return label("%08x.%016llx", id.instance, (unsigned long long)id.counter);
}

struct label
data_name(struct rid id, uint32_t n)
{
	return label("%08x.%016llx.%08x", id.instance, (unsigned long long)id.counter, n);
}

struct label
map_name(struct rid id)
{
	return label("map.%s", rid_text(id).text);
}

struct label
shard_name(struct rid uid, uint32_t n)
{
	return label("idx.%s.%u", rid_text(uid).text, n);
}

struct label
table_key(char kind, const char *name, size_t len)
{
	return label("%c%.*s", kind, (int)len, name);
}

struct label
doomed_key(struct rid uid)
{
	return label("d%s", rid_text(uid).text);
}

struct label
gateway_key(char kind, uint32_t instance)
{
	return label("%c%010u", kind, instance);
}

/* ---- keys ---- */

static size_t
key_with_name(char *out, enum key_kind kind, const char *key, size_t len, const uint8_t *id)
{
	check(len <= STORE_KEY_MAX);
	return rados_key_write(out, (char)kind, &(struct rados_key){ .key = key, .key_len = len, .id = id });
}

size_t
key_object(char out[OMAP_KEY_MAX], const char *key, size_t len)
{
	return key_with_name(out, KEY_OBJECT, key, len, NULL);
}

size_t
key_upload(char out[OMAP_KEY_MAX], const char *key, size_t len, const uint8_t *id)
{
	return key_with_name(out, KEY_UPLOAD, key, len, id);
}

size_t
key_upload_prefix(char out[OMAP_KEY_MAX], const char *key, size_t len)
{
	size_t n = key_upload(out, key, len, NULL) - 2; /* without the two bytes that end the name */

	out[n] = 0;
	return n;
}

int
key_upload_decode(const char *k, size_t k_len, char *key, uint16_t *ret_len,
		  uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	struct rados_key got = { .key_room = key, .id_room = id };
	int e = rados_key_read(k, k_len, KEY_UPLOAD, &got);

	*ret_len = (uint16_t)got.key_len;
	return e;
}

size_t
key_part(char out[OMAP_KEY_MAX], const uint8_t *id, uint32_t number)
{
	check(number <= STORE_PART_NR_MAX);
	return rados_key_write(out, KEY_PART, &(struct rados_key){ .id = id, .number = number });
}

uint32_t
key_part_number(const char *k, size_t len)
{
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct rados_key got = { .id_room = id };

	return rados_key_read(k, len, KEY_PART, &got) == 0 ? (uint32_t)got.number : 0;
}

size_t
key_garbage(char out[OMAP_KEY_MAX], uint64_t epoch, struct rid id)
{
	return rados_key_write(out, KEY_GARBAGE, &(struct rados_key){ .epoch = epoch, .rid = id });
}

int
key_garbage_decode(const char *k, size_t len, uint64_t *ret_epoch)
{
	struct rados_key got;
	int e = rados_key_read(k, len, KEY_GARBAGE, &got);

	if (e == 0)
		*ret_epoch = got.epoch;
	return e;
}

struct label
key_counter(uint32_t instance)
{
	struct label l;

	rados_key_write(l.text, KEY_COUNTER, &(struct rados_key){ .number = instance });
	return l;
}

uint32_t
key_counter_instance(const char *k, size_t len)
{
	struct rados_key got;

	return rados_key_read(k, len, KEY_COUNTER, &got) == 0 ? (uint32_t)got.number : UINT32_MAX;
}
