/* SPDX-License-Identifier: Apache-2.0 */
/* Records: whatever rec_decode() accepts obeys its limits, and encodes to the same bytes; its keys are those
 * that the functions make which write them. */
#include "extent/log/rec_codec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

/* The bucket and the key of an object's key, which is `len` long. */
static struct store_key
parts_of(const uint8_t *key, size_t len)
{
	const uint8_t *nul = memchr(key + 1, 0, len - 1);
	struct store_key k = { 0 };

	must(nul);
	k.bucket = (const char *)key + 1;
	k.bucket_len = (uint16_t)(nul - key - 1);
	k.key = (const char *)nul + 1;
	k.key_len = (uint16_t)(key + len - nul - 1);
	k.copies = key_has_two(key[0]) ? 2 : 1;
	return k;
}

static void
must_be_key(const uint8_t *key, size_t len)
{
	uint8_t again[KEY_BYTES_MAX];
	const uint8_t *id = key + len - CHUNK_ID_BYTES;
	struct store_key k;
	char text[64];
	int n = -1;

	must(key_ok(key, len) && len <= KEY_BYTES_MAX);
	switch (key[0]) {
	case KEY_BUCKET:
		n = key_bucket(again, (const char *)key + 1, len - 1);
		break;
	case KEY_OBJECT:
	case KEY_OBJECT2:
		k = parts_of(key, len);
		n = key_object(again, &k);
		break;
	case KEY_UPLOAD:
	case KEY_UPLOAD2:
		k = parts_of(key, len - UPLOAD_TAIL_BYTES);
		n = key_upload(again, &k, id);
		break;
	case KEY_BATTRS:
		n = key_battrs(again, (const char *)key + 1, len - 3, (uint32_t)(key[len - 1] - '0'));
		break;
	case KEY_CHUNK:
		n = key_chunk(again, key + 1, key_index(key));
		break;
	case KEY_PART:
		n = key_part(again, key + 1, key_index(key));
		break;
	default:
		abort();
	}
	must(n == (int)len && memcmp(again, key, len) == 0);
	for (size_t cap = 1; cap <= sizeof text; cap += 21) {
		key_text(text, cap, key, len);
		must(memchr(text, 0, cap));
	}
}

/* Without what is not looked at, and without pointers, which are of another buffer. */
static void
must_be_same(const struct rec_view *a, const struct rec_view *b)
{
	must(a->op == b->op && a->body == b->body && a->flags == b->flags && a->version == b->version);
	must(a->copies == b->copies);
	must(a->size_bytes == b->size_bytes && a->mtime_ns == b->mtime_ns && a->crc64 == b->crc64);
	must(a->data_version == b->data_version && a->entry_nr == b->entry_nr);
	must(a->etag.parts == b->etag.parts && memcmp(a->etag.sum, b->etag.sum, 16) == 0);
	must(a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0);
	must(a->owner_len == b->owner_len && memcmp(a->owner, b->owner, a->owner_len) == 0);
	must(a->sums_len == b->sums_len && memcmp(a->sums, b->sums, a->sums_len) == 0);
	must(a->inline_len == b->inline_len && memcmp(a->inline_data, b->inline_data, a->inline_len) == 0);
	must(a->attrs_len == b->attrs_len && memcmp(a->attrs, b->attrs, a->attrs_len) == 0);
	must(!a->entries == !b->entries);
	must(!a->entries || memcmp(a->entries, b->entries, a->entry_nr * rec_entry_bytes(a->body)) == 0);
	must(a->map.nr == b->map.nr && a->map.len_bytes == b->map.len_bytes && a->map.crc64 == b->map.crc64);
	must(!a->map.nr || memcmp(a->map.ext, b->map.ext, a->map.nr * sizeof(uint64_t)) == 0);
}

/* So do the bytes of a packed object, in one unit; and the pages that are read for them. */
static void
check_place(const struct rec_view *v, const struct geometry *geo)
{
	struct place_pages pg;
	uint64_t place;

	if (v->body != BODY_PACKED)
		return;
	memcpy(&place, v->entries, sizeof place);
	pg = place_pages(place, v->size_bytes);
	must(v->entry_nr == 1 && key_is_object(v->key[0]) && v->flags & REC_FLUSHED);
	must(v->size_bytes && v->size_bytes <= place_bytes_max(geo) && ext_ok(pg.ext, geo));
	must(place_off(place) + v->size_bytes <= geo->unit_bytes);
	must(pg.off % FMT_ALIGN == 0 && pg.len % FMT_ALIGN == 0 && pg.off + pg.len <= geo->unit_bytes);
	must(pg.off + pg.skew == place_off(place) && pg.skew + v->size_bytes <= pg.len);
	must(pg.len <= align_up(v->size_bytes, FMT_ALIGN) + FMT_ALIGN);
}

/* A map that is accepted lies on the disk, and all of it finds room there. */
static void
check_map_place(const struct rec_view *v, const struct geometry *geo)
{
	uint64_t units = 0;

	must((v->map.nr > 0) == ((v->flags & REC_MAPPED) != 0) && v->map.nr <= FMT_MAP_EXT_MAX);
	for (uint32_t i = 0; i < v->map.nr; i++) {
		units += ext_nr(v->map.ext[i]);
		must(ext_nr(v->map.ext[i]) &&
		     ext_unit(v->map.ext[i]) + ext_nr(v->map.ext[i]) <= geo_units(geo));
	}
	must(units >= map_units(geo, v->map.len_bytes));
}

/* The rest of the input as the map of a record that has one: what is accepted lies on the disk. */
static void
check_map(const struct rec_view *v, const struct geometry *geo, const uint8_t *rest, size_t len)
{
	size_t bytes = v->entry_nr * rec_entry_bytes(v->body);
	uint64_t *map;

	if (!(v->flags & REC_MAPPED) || bytes > len)
		return;
	map = malloc(bytes);
	must(map);
	memcpy(map, rest, bytes);
	if (rec_check_entries(v, map, geo) == 0 && v->body == BODY_EXTENTS) {
		for (uint32_t i = 0; i < v->entry_nr; i++)
			must(ext_nr(map[i]) && ext_unit(map[i]) + ext_nr(map[i]) <= geo_units(geo));
	}
	free(map);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct geometry geo;
	struct rec_view v, w;
	uint8_t *copy = malloc(len ? len : 1), *again;
	int n;

	must(copy && geo_choose((uint64_t)1 << 30, 0, &geo) == 0);
	memcpy(copy, data, len);
	n = rec_decode(copy, len, &geo, &v);
	if (n > 0) {
		must((size_t)n <= len && rec_encoded_bytes(&v) == (size_t)n && (size_t)n <= REC_BYTES_MAX);
		again = calloc(1, (size_t)n);
		must(again && rec_encode(again, &v) == (size_t)n);
		/* The padding is not looked at. */
		must(memcmp(again, copy, (size_t)n - 8) == 0 && rec_decode(again, (size_t)n, &geo, &w) == n);
		must_be_same(&v, &w);
		must_be_key(v.key, v.key_len);
		if (v.owner_len)
			must_be_key(v.owner, v.owner_len);
		check_map_place(&v, &geo);
		check_place(&v, &geo);
		check_map(&v, &geo, copy + n, len - (size_t)n);
		free(again);
	}
	free(copy);
	return 0;
}
