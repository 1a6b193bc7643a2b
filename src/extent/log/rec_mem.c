/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record in memory: a packed block of the index's memory, immutable while anybody can see it (but for the
 * entries of a mapped one, which come during recovery).
 */
#include "extent/log/vol.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAP_BYTES 24   /* extent, or how many; length, CRC */
#define SHARED_BYTES 8 /* the data's version */
#define EXPIRES_BYTES 8

static size_t
shared_off(const struct rec *r)
{
	return r->flags & REC_MAPPED ? MAP_BYTES : 0;
}

static size_t
expires_off(const struct rec *r)
{
	return shared_off(r) + (r->flags & REC_SHARED ? SHARED_BYTES : 0);
}

static size_t
entries_off(const struct rec *r)
{
	return expires_off(r) + (r->flags & REC_EXPIRES ? EXPIRES_BYTES : 0);
}

static size_t
entries_bytes(const struct rec *r)
{
	return rec_has_more(r) ? sizeof(void *) : r->entry_nr * rec_entry_bytes(r->body);
}

static size_t
inline_off(const struct rec *r)
{
	return entries_off(r) + entries_bytes(r);
}

static void *
outside(const struct rec *r)
{
	void *p = NULL;

	if (rec_has_more(r))
		memcpy(&p, r->tail + entries_off(r), sizeof p);
	return p;
}

/* Behind everything else. */
static size_t
map_list_off(const struct rec *r)
{
	return align_up(inline_off(r) + r->inline_len + r->owner_len + r->sums_len + r->attrs_len, 8);
}

struct rec *
rec_new(struct tree *t, const struct rec_view *v, const void *entries)
{
	struct rec head = {
		.version = v->version,
		.size_bytes = v->size_bytes,
		.mtime_ns = v->mtime_ns,
		.crc64 = v->crc64,
		.etag_parts = v->etag.parts,
		.entry_nr = v->entry_nr,
		.attrs_len = (uint16_t)v->attrs_len,
		.owner_len = v->owner_len,
		.inline_len = v->inline_len & 0xfffu,
		.copies = v->copies & 15u,
		.sums_len = (uint8_t)v->sums_len,
		.body = v->body & 7u,
		.flags = v->flags & 31u,
	};
	struct rec *r;
	uint8_t *p;

	/* More entries than a record holds are always mapped;
	 * fewer may be, when a map was made all the same. */
	check(!rec_has_more(&head) || v->flags & REC_MAPPED);
	memcpy(head.etag, v->etag.sum, 16);
	r = tree_rec_alloc(t, sizeof *r + (v->flags & REC_MAP_LIST
						   ? map_list_off(&head) + v->map.nr * sizeof(uint64_t)
						   : inline_off(&head) + v->inline_len + v->owner_len +
							     v->sums_len + v->attrs_len));
	if (!r)
		return NULL;
	*r = head;
	p = r->tail;
	if (v->flags & REC_MAPPED) {
		bool is_list = v->flags & REC_MAP_LIST;
		uint64_t map[3] = { is_list ? v->map.nr : v->map.ext[0], v->map.len_bytes, v->map.crc64 };

		memcpy(p, map, MAP_BYTES);
		if (is_list)
			memcpy(p + map_list_off(r), v->map.ext, v->map.nr * sizeof(uint64_t));
	}
	if (v->flags & REC_SHARED)
		memcpy(p + shared_off(r), &v->data_version, SHARED_BYTES);
	if (v->flags & REC_EXPIRES)
		memcpy(p + expires_off(r), &v->expires_ns, EXPIRES_BYTES);
	p += entries_off(r);
	memset(p, 0, entries_bytes(r));
	if (entries && rec_load_entries(r, entries) < 0) {
		tree_rec_free(t, r);
		return NULL;
	}
	p += entries_bytes(r);
	if (v->inline_len)
		memcpy(p, v->inline_data, v->inline_len);
	p += v->inline_len;
	if (v->owner_len)
		memcpy(p, v->owner, v->owner_len);
	p += v->owner_len;
	if (v->sums_len)
		memcpy(p, v->sums, v->sums_len);
	p += v->sums_len;
	if (v->attrs_len)
		memcpy(p, v->attrs, v->attrs_len);
	return r;
}

struct rec *
rec_new_apart(const struct rec_view *v)
{
	struct rec head = {
		.version = v->version,
		.size_bytes = v->size_bytes,
		.crc64 = v->crc64,
		.entry_nr = v->entry_nr,
		.inline_len = v->inline_len & 0xfffu,
		.body = v->body & 7u,
	};
	size_t len = entries_bytes(&head);
	struct rec *r = malloc(sizeof *r + len + v->inline_len);

	if (!r)
		return NULL;
	*r = head;
	if (len)
		memcpy(r->tail, rec_has_more(r) ? (const void *)&v->entries : v->entries, len);
	if (v->inline_len)
		memcpy(r->tail + len, v->inline_data, v->inline_len);
	return r;
}

void
rec_drop_outside(struct rec *r)
{
	void *p = outside(r), *none = NULL;

	if (rec_has_more(r))
		memcpy(r->tail + entries_off(r), &none, sizeof none);
	free(p);
}

void
rec_drop(struct tree *t, struct rec *r)
{
	if (!r)
		return;
	rec_drop_outside(r);
	tree_rec_free(t, r);
}

int
rec_load_entries(struct rec *r, const void *entries)
{
	size_t n = r->entry_nr * rec_entry_bytes(r->body);
	void *p = r->tail + entries_off(r);

	if (n == 0)
		return 0;
	if (rec_has_more(r)) {
		/* Objects of more than 4 GiB, and chunks in more than 64 parts: rare, and bounded by the
		 * disk. */
		void *more = malloc(n);

		if (!more)
			return -ENOMEM;
		memcpy(p, &more, sizeof more);
		p = more;
	}
	memcpy(p, entries, n);
	return 0;
}

const void *
rec_entries(const struct rec *r)
{
	return rec_has_more(r) ? outside(r) : r->tail + entries_off(r);
}

bool
rec_map(const struct rec *r, struct map_ref *ret_map)
{
	const uint64_t *map = (const uint64_t *)(const void *)r->tail;
	bool is_list = r->flags & REC_MAP_LIST;

	if (!(r->flags & REC_MAPPED))
		return false;
	*ret_map =
		(struct map_ref){ .ext = is_list ? (const uint64_t *)(const void *)(r->tail + map_list_off(r))
						 : map,
				  .nr = is_list ? (uint32_t)map[0] : 1,
				  .len_bytes = (uint32_t)map[1],
				  .crc64 = map[2] };
	return true;
}

uint64_t
rec_data_version(const struct rec *r)
{
	uint64_t version = r->version;

	if (r->flags & REC_SHARED)
		memcpy(&version, r->tail + shared_off(r), SHARED_BYTES);
	return version;
}

/* A place is no version, but for those of more starts than anybody makes; and two that share an id wait for each
 * other, no more. */
#define PIN_PLACE ((uint64_t)1 << 63)

uint64_t
rec_pin_id(const struct rec *r)
{
	uint64_t place;

	if (r->body != BODY_PACKED)
		return rec_data_version(r);
	memcpy(&place, rec_entries(r), sizeof place);
	return PIN_PLACE | place;
}

static uint64_t
expires_ns(const struct rec *r)
{
	uint64_t ns = 0;

	if (r->flags & REC_EXPIRES)
		memcpy(&ns, r->tail + expires_off(r), EXPIRES_BYTES);
	return ns;
}

const uint8_t *
rec_inline(const struct rec *r)
{
	return r->tail + inline_off(r);
}

const uint8_t *
rec_owner(const struct rec *r)
{
	return rec_inline(r) + r->inline_len;
}

const uint8_t *
rec_attrs(const struct rec *r)
{
	return rec_owner(r) + r->owner_len + r->sums_len;
}

struct store_etag
rec_etag(const struct rec *r)
{
	struct store_etag e = { .parts = r->etag_parts };

	memcpy(e.sum, r->etag, 16);
	return e;
}

void
rec_view_of(const struct rec *r, const uint8_t *key, size_t key_len, struct rec_view *ret_view)
{
	struct rec_view v = {
		.op = REC_PUT,
		.body = r->body,
		.flags = r->flags,
		.key_len = (uint16_t)key_len,
		.owner_len = r->owner_len,
		.sums_len = r->sums_len,
		.inline_len = r->inline_len,
		.attrs_len = r->attrs_len,
		.entry_nr = r->entry_nr,
		.version = r->version,
		.size_bytes = r->size_bytes,
		.mtime_ns = r->mtime_ns,
		.crc64 = r->crc64,
		.etag = rec_etag(r),
		.expires_ns = expires_ns(r),
		.copies = r->copies,
		.entries = rec_entries(r),
		.key = key,
		.owner = rec_owner(r),
		.sums = rec_owner(r) + r->owner_len,
		.inline_data = rec_inline(r),
		.attrs = rec_attrs(r),
	};

	if (r->flags & REC_SHARED)
		v.data_version = rec_data_version(r);
	rec_map(r, &v.map);
	*ret_view = v;
}
