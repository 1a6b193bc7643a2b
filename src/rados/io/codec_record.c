/* SPDX-License-Identifier: Apache-2.0 */
/* Values of records of objects, and of parts; see codec.h. */
#include "rados/io/codec.h"

#include "base/check.h"
#include "rados/io/codec_int.h"

#include <errno.h>

/* ---- bodies: the content of an object or of a part ---- */

#define DATA_BYTES (RID_BYTES + 4)
#define LIST_BYTES (STORE_UPLOAD_ID_BYTES + 4 + 4)
#define MAP_BYTES (LIST_BYTES + RID_BYTES + 8)

static void
data_move(struct record *r, uint8_t *p, bool puts)
{
#define DATA(at) at
#include "model/record.def"
}

static void
list_move(struct record *r, uint8_t *p, bool puts)
{
#define LIST(at) at
#include "model/record.def"
}

static void
map_move(struct record *r, uint8_t *p, bool puts)
{
#define LIST(at) at
#define MAP(at) at
#include "model/record.def"
}

static size_t
body_bytes(const struct record *r)
{
	return r->kind == REC_PARTS  ? LIST_BYTES + r->parts_len
	       : r->kind == REC_MAP  ? MAP_BYTES
	       : r->kind == REC_DATA ? DATA_BYTES + (size_t)r->crc_nr * 8
				     : r->size_bytes;
}

static void
put_body(struct cur *c, struct record *r)
{
	uint8_t *p;

	if (r->kind == REC_INLINE) {
		put_bytes(c, r->inline_data, r->size_bytes);
	} else if (r->kind == REC_DATA) {
		data_move(r, room(c, DATA_BYTES), true);
		put_bytes(c, r->crcs, (size_t)r->crc_nr * 8);
	} else {
		p = room(c, r->kind == REC_MAP ? MAP_BYTES : LIST_BYTES);
		memcpy(p, r->upload_id, STORE_UPLOAD_ID_BYTES);
		(r->kind == REC_MAP ? map_move : list_move)(r, p, true);
		if (r->kind == REC_PARTS)
			put_bytes(c, r->parts, r->parts_len);
	}
}

static bool
take_data(struct cur *c, struct record *r)
{
	const uint8_t *p = take(c, DATA_BYTES);

	if (!p)
		return false;
	data_move(r, (uint8_t *)(uintptr_t)p, false);
	if (r->crc_nr > REC_CRCS_MAX || r->size_bytes == 0 ||
	    (r->crc_nr && r->crc_nr != (r->size_bytes + STORE_GRANULE - 1) / STORE_GRANULE))
		return false;
	return (r->crcs = take(c, (size_t)r->crc_nr * 8)) != NULL;
}

static bool
take_body(struct cur *c, struct record *r)
{
	const uint8_t *p;

	if (r->kind == REC_INLINE)
		return r->size_bytes <= STORE_INLINE_MAX && (r->inline_data = take(c, r->size_bytes));
	if (r->kind == REC_DATA)
		return take_data(c, r);
	p = take(c, r->kind == REC_MAP ? MAP_BYTES : LIST_BYTES);
	if (!p)
		return false;
	r->upload_id = p;
	(r->kind == REC_MAP ? map_move : list_move)(r, (uint8_t *)(uintptr_t)p, false);
	return r->part_nr > 0 && r->part_nr <= STORE_PART_NR_MAX &&
	       (r->kind == REC_MAP || (r->parts = take(c, r->parts_len)));
}

/* ---- record ---- */

#define RECORD_FIXED 88

static void
record_move(struct record *r, uint8_t *p, bool puts)
{
#define RECORD(at) at
#include "model/record.def"
}

/* Returns the flags of the optional fields that r has. */
static uint16_t
record_flags(const struct record *r)
{
	uint16_t flags = 0;

#define RECORD_MORE(bit, since) bit
#define HERE(name, type, bit) flags |= r->name ? bit : 0;
#include "model/record.def"
	return flags;
}

uint32_t
record_version(const struct record *r)
{
	uint32_t version = 1;

#define RECORD_MORE(bit, since) since
#define HERE(name, type, since) version = r->name && since > version ? since : version;
#include "model/record.def"
	return version;
}

size_t
record_bytes(const struct record *r)
{
	return RECORD_FIXED + r->attrs_len + body_bytes(r) +
	       (size_t)__builtin_popcount(record_flags(r)) * sizeof(uint64_t) + 8;
}

void
record_encode(void *out, const struct record *r)
{
	uint16_t flags = record_flags(r);
	struct cur c = put_head(out, record_bytes(r), VALUE_RECORD);

	check(r->kind >= REC_INLINE && r->kind <= REC_MAP && r->attrs_len <= STORE_ATTRS_MAX);
	memcpy((uint8_t *)out + 2, &flags, sizeof flags);
	record_move((struct record *)r, out, true);
	c.p = (uint8_t *)out + RECORD_FIXED;
	put_bytes(&c, r->attrs, r->attrs_len);
	put_body(&c, (struct record *)r);
#define RECORD_MORE(bit, since) bit
#define HERE(name, type, bit)                                                                                \
	if (flags & bit)                                                                                     \
		put_u64(&c, r->name);
#include "model/record.def"
	put_end(&c, out);
}

int
record_decode(const void *buf, size_t len, struct record *ret_record)
{
	struct record r = { 0 };
	struct cur c;
	uint16_t flags;

	if (!open_flagged(buf, len, VALUE_RECORD, RECORD_FIXED, &c, &flags))
		return -EBADMSG;
	record_move(&r, (uint8_t *)(uintptr_t)buf, false);
	if (r.kind < REC_INLINE || r.kind > REC_MAP || r.attrs_len > STORE_ATTRS_MAX)
		return -EBADMSG;
	r.attrs = take(&c, r.attrs_len);
	if (!r.attrs || !take_body(&c, &r))
		return -EBADMSG;
#define RECORD_MORE(bit, since) bit
#define HERE(name, type, bit)                                                                                \
	if (flags & bit)                                                                                     \
		r.name = take_u64(&c);
#include "model/record.def"
	/* Unknown flags, and flags of fields that are 0, are damage. */
	if (!all_taken(&c) || flags != record_flags(&r))
		return -EBADMSG;
	*ret_record = r;
	return 0;
}

struct model_record
record_show(const struct record *r)
{
	return (struct model_record){
#define VIEW 0
#define HERE(name, type, at) .name = r->name,
#include "model/record.def"
	};
}

struct store_meta
record_meta(const struct record *r)
{
	return (struct store_meta){
		.attrs = r->attrs,
#define META 0
#define HERE(name, type, at) .name = r->name,
#include "model/record.def"
	};
}

void
record_take(struct record *r, const struct store_meta *m)
{
	r->attrs = m->attrs;
#define META 0
#define HERE(name, type, at) r->name = m->name;
#include "model/record.def"
}

void
record_list(const struct record *r, struct store_entry *e)
{
	e->attrs = r->attrs;
#define SHOWN 0
#define HERE(name, type, at) e->name = r->name;
#include "model/record.def"
}

/* ---- parts ---- */

#define PART_FIXED 64

static void
part_move(struct record *r, uint8_t *p, bool puts){
#define PART(at) at
#include "model/record.def"
}

size_t part_encode(void *out, const struct record *p)
{
	size_t n = PART_FIXED + p->attrs_len + body_bytes(p);
	struct cur c;

	check(p->kind == REC_INLINE || p->kind == REC_DATA);
	if (!out)
		return n;
	c = cursor(out, n);
	part_move((struct record *)p, room(&c, PART_FIXED), true);
	put_bytes(&c, p->attrs, p->attrs_len);
	put_body(&c, (struct record *)p);
	check(all_taken(&c));
	return n;
}

int
part_next(struct cur *list, struct record *part)
{
	const uint8_t *fixed = list->p == list->end ? NULL : take(list, PART_FIXED);
	struct record p = { 0 };

	if (!fixed)
		return list->bad ? -EBADMSG : 0;
	part_move(&p, (uint8_t *)(uintptr_t)fixed, false);
	if (p.attrs_len > STORE_PART_ATTRS_MAX || (p.kind != REC_INLINE && p.kind != REC_DATA) ||
	    p.number <= part->number || p.number > STORE_PART_NR_MAX)
		return -EBADMSG;
	p.attrs = take(list, p.attrs_len);
	if (!p.attrs || !take_body(list, &p))
		return -EBADMSG;
	*part = p;
	return 1;
}

struct store_part
part_show(const struct record *p, uint64_t off_bytes)
{
	return (struct store_part){ .number = p->number,
				    .size_bytes = p->size_bytes,
				    .crc64 = p->crc64,
				    .mtime_ns = p->mtime_ns,
				    .version = p->version,
				    .off_bytes = off_bytes,
				    .etag = p->etag,
				    .attrs = p->attrs,
				    .attrs_len = p->attrs_len };
}
