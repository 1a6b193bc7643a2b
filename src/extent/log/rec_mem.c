/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record in memory; see rec_mem.h.
 */
#include "extent/log/vol.h"

#include "base/age_clock.h"
#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAP_BYTES 24 /* extent, or number of extents; length; CRC */
#define FLAGS_MAX UINT8_MAX

/* Returns the offset of the optional field with this flag, or, 0, of the first byte after them. */
static inline size_t
optional_off(const struct rec *r, unsigned stop)
{
	size_t off = r->flags & REC_MAPPED ? MAP_BYTES : 0;

#define OPTIONAL(name, flag, bit, kinds, places)                                                             \
	_Static_assert((bit) <= FLAGS_MAX, "struct rec has room for the flag");                              \
	if (stop == (bit))                                                                                   \
		return off;                                                                                  \
	off += r->flags & (bit) ? sizeof(uint64_t) : 0;
#include "model/record.def"
	return off;
}

uint64_t
rec_optional(const struct rec *r, unsigned flag)
{
	uint64_t value = 0;

	if (r->flags & flag)
		memcpy(&value, r->tail + optional_off(r, flag), sizeof value);
	return value;
}

static size_t
entries_off(const struct rec *r)
{
	return optional_off(r, 0);
}

static size_t
entries_bytes(const struct rec *r)
{
	return rec_has_more(r) ? sizeof(void *) : r->entry_nr * rec_entry_bytes(r->body);
}

/* Bytes of variable length, in their order in memory. */
enum bytes {
#define MEMORY 0
#define FIELD(name, type, kinds, places)
#define BYTES(name, type, len, len_type, max, kinds, places) FIELD_(name, len, places)
#define HERE(name, len, at) BYTES_##name,
#include "model/record.def"
	BYTES_END
};

static inline size_t
bytes_off(const struct rec *r, enum bytes stop)
{
	size_t off = entries_off(r) + entries_bytes(r);

#define MEMORY 0
#define FIELD(name, type, kinds, places)
#define BYTES(name, type, len, len_type, max, kinds, places) FIELD_(name, len, places)
#define HERE(name, len, at)                                                                                  \
	if (stop == BYTES_##name)                                                                            \
		return off;                                                                                  \
	off += r->len;
#include "model/record.def"
	return off;
}

static void *
outside(const struct rec *r)
{
	void *p = NULL;

	if (rec_has_more(r))
		memcpy(&p, r->tail + entries_off(r), sizeof p);
	return p;
}

/* The map's extents are after everything else. */
static size_t
map_list_off(const struct rec *r)
{
	return align_up(bytes_off(r, BYTES_END), 8);
}

struct rec *
rec_new(struct tree *t, const struct rec_view *v, const void *entries)
{
	struct rec head = {
#define MEMORY 0
#define HERE(name, type, at) .name = v->name,
#include "model/record.def"
		.etag_parts = v->etag.parts,
	};
	struct rec *r;
	size_t bytes;
	uint8_t *p;

	/* A record with more than FMT_ENTRY_MAX entries is always mapped; one with fewer entries may be. */
	check(!t || !rec_has_more(&head) || v->flags & REC_MAPPED);
	memcpy(head.etag, v->etag.sum, 16);
	bytes = sizeof *r + (v->flags & REC_MAP_LIST ? map_list_off(&head) + v->map.nr * sizeof(uint64_t)
						     : bytes_off(&head, BYTES_END));
	r = t ? tree_rec_alloc(t, bytes) : malloc(bytes);
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
#define OPTIONAL(name, flag, bit, kinds, places)                                                             \
	if (v->flags & (bit))                                                                                \
		memcpy(p + optional_off(r, bit), &v->name, sizeof v->name);
#include "model/record.def"
	p += entries_off(r);
	memset(p, 0, entries_bytes(r));
	if (!t && rec_has_more(r)) {
		memcpy(p, &entries, sizeof entries);
	} else if (entries && rec_load_entries(r, entries) < 0) {
		tree_rec_free(t, r);
		return NULL;
	}
	p += entries_bytes(r);
#define MEMORY 0
#define FIELD(name, type, kinds, places)
#define BYTES(name, type, len, len_type, max, kinds, places) FIELD_(name, len, places)
#define HERE(name, len, at)                                                                                  \
	if (v->len)                                                                                          \
		memcpy(p, v->name, v->len);                                                                  \
	p += v->len;
#include "model/record.def"
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
	return r->flags & REC_SHARED ? rec_optional(r, REC_SHARED) : r->version;
}

/* Bit that distinguishes places from versions: a version has it only after more starts than are possible.
 * Two records with the same pin id would only wait for each other's readers. */
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

const uint8_t *
rec_inline(const struct rec *r)
{
	return r->tail + bytes_off(r, BYTES_inline_data);
}

const uint8_t *
rec_owner(const struct rec *r)
{
	return r->tail + bytes_off(r, BYTES_owner);
}

const uint8_t *
rec_attrs(const struct rec *r)
{
	return r->tail + bytes_off(r, BYTES_attrs);
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
		.key = key,
		.key_len = (uint16_t)key_len,
		.etag = rec_etag(r),
		.entries = rec_entries(r),
#define MEMORY 0
#define HERE(name, type, at) .name = r->name,
#include "model/record.def"
#define OPTIONAL(name, flag, bit, kinds, places) .name = rec_optional(r, bit),
#include "model/record.def"
#define MEMORY 0
#define FIELD(name, type, kinds, places)
#define BYTES(name, type, len, len_type, max, kinds, places) FIELD_(name, len, places)
#define HERE(name, len, at) .name = r->tail + bytes_off(r, BYTES_##name),
#include "model/record.def"
	};

	rec_map(r, &v.map);
	*ret_view = v;
}

/* ---- copies for readers ---- */

/* Values of the fields of a record: get_NAME(). */
#define MEMORY 0
#define HERE(name, type, at)                                                                                 \
	static inline type __attribute__((unused)) get_##name(const struct rec *r)                           \
	{                                                                                                    \
		return r->name;                                                                              \
	}
#include "model/record.def"
#define OPTIONAL(name, flag, bit, kinds, places)                                                             \
	static inline uint64_t __attribute__((unused)) get_##name(const struct rec *r)                       \
	{                                                                                                    \
		return r->flags & (bit) ? rec_optional(r, bit) : 0;                                          \
	}
#include "model/record.def"
#define get_etag rec_etag

struct model_record
rec_show(const struct rec *r)
{
	return (struct model_record){
		.copies = rec_copies(r),
#define VIEW 0
#define HERE(name, type, at) .name = get_##name(r),
#include "model/record.def"
	};
}

struct model_record
rec_view_show(const struct rec_view *v)
{
	return (struct model_record){
		.copies = v->copies > 1 ? v->copies : 1,
#define VIEW 0
#define HERE(name, type, at) .name = v->name,
#include "model/record.def"
	};
}

bool
rec_is_there_at(const struct rec *r, uint64_t now_ns)
{
	const struct model_record shown = rec_show(r);

	return model_is_there(&shown, now_ns);
}

bool
rec_is_there_now(const struct rec *r)
{
	return !(r->flags & ~REC_THERE) || rec_is_there_at(r, age_clock_ns());
}

struct store_meta
rec_meta(const struct rec *r)
{
	return (struct store_meta){
		.attrs = rec_attrs(r),
#define META 0
#define HERE(name, type, at) .name = get_##name(r),
#include "model/record.def"
	};
}

struct store_meta
rec_view_meta(const struct rec_view *v)
{
	return (struct store_meta){
		.attrs = v->attrs,
#define META 0
#define HERE(name, type, at) .name = v->name,
#include "model/record.def"
	};
}

void
rec_view_take(struct rec_view *v, const struct store_meta *m)
{
	v->attrs = m->attrs;
#define META 0
#define HERE(name, type, at) v->name = m->name;
#include "model/record.def"
#define META 0
#define FIELD(name, type, kinds, places)
#define BYTES(name, type, len, len_type, max, kinds, places)
#define OPTIONAL(name, flag, bit, kinds, places) FIELD_(name, bit, places)
#define HERE(name, bit, at) v->flags |= v->name ? (bit) : 0;
#include "model/record.def"
	if (!v->mtime_ns)
		v->mtime_ns = clock_wall_ns();
}

void
rec_list(const struct rec *r, struct store_entry *e)
{
	e->attrs = rec_attrs(r);
#define SHOWN 0
#define HERE(name, type, at) e->name = get_##name(r);
#include "model/record.def"
}
