/* SPDX-License-Identifier: Apache-2.0 */
/* See codec.h. */
#include "rados/io/codec.h"

#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define FORMAT 1 /* first byte of each value */
#define COUNTER_MAX ((uint64_t)1 << 56)

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

static void
put_rid(struct cur *c, struct rid id)
{
	put_u32(c, id.instance);
	put_u64(c, id.counter);
}

static struct rid
take_rid(struct cur *c)
{
	struct rid id = { .instance = take_u32(c) };

	id.counter = take_u64(c);
	return id;
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

/* ---- beginning and end of values ---- */

/* Writes the head of a value of len bytes. Returns a cursor after the head. */
static struct cur
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
static bool
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

static bool
open_value(const void *buf, size_t len, enum value_kind kind, size_t fixed, struct cur *ret_cur)
{
	uint16_t flags;

	return open_flagged(buf, len, kind, fixed, ret_cur, &flags) && flags == 0;
}

/* Opens a value of fixed length, and copies its first fields, which are encoded as they are in memory. */
static bool
take_whole(const void *buf, size_t len, size_t bytes, enum value_kind kind, void *fields, size_t fields_len)
{
	struct cur c;

	if (len != bytes || !open_value(buf, len, kind, 4, &c))
		return false;
	take_bytes(&c, fields, fields_len);
	return true;
}

static bool
all_taken(const struct cur *c)
{
	return !c->bad && c->p == c->end;
}

/* Writes the CRC of all bytes since start, which ends a value. */
static void
put_end(struct cur *c, const void *start)
{
	put_u64(c, crc64_nvme(0, start, (size_t)(c->p - (const uint8_t *)start)));
	check(all_taken(c));
}

/* Returns room for the next n bytes of a value that is written. */
static uint8_t *
room(struct cur *c, size_t n)
{
	const uint8_t *p = take(c, n);

	check(p);
	return (uint8_t *)(uintptr_t)p;
}

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

/* ---- uploads ---- */

#define UPLOAD_FIXED 48

static void
upload_move(struct upload *r, uint8_t *p, bool puts){
#define UPLOAD(at) at
#include "model/record.def"
}

size_t upload_bytes(const struct upload *u)
{
	return UPLOAD_FIXED + u->attrs_len + 8;
}

void
upload_encode(void *out, const struct upload *u)
{
	struct cur c = put_head(out, upload_bytes(u), VALUE_UPLOAD);

	check(u->attrs_len <= STORE_ATTRS_MAX);
	upload_move((struct upload *)u, out, true);
	c.p = (uint8_t *)out + UPLOAD_FIXED;
	put_bytes(&c, u->attrs, u->attrs_len);
	put_end(&c, out);
}

int
upload_decode(const void *buf, size_t len, struct upload *ret_upload)
{
	struct upload u;
	struct cur c;

	if (!open_value(buf, len, VALUE_UPLOAD, UPLOAD_FIXED, &c))
		return -EBADMSG;
	upload_move(&u, (uint8_t *)(uintptr_t)buf, false);
	u.attrs = take(&c, u.attrs_len);
	if (u.attrs_len > STORE_ATTRS_MAX || !all_taken(&c))
		return -EBADMSG;
	*ret_upload = u;
	return 0;
}

/* ---- buckets ---- */

static void
bucket_move(struct bucket_row *r, uint8_t *p, bool puts)
{
#define BUCKET(at) at
#include "model/record.def"
}

static bool
bucket_ok(const struct bucket_row *b)
{
	return b->state >= BUCKET_MAKING && b->state <= BUCKET_ENDING && b->shards > 0 &&
	       b->shards <= BUCKET_SHARDS_MAX;
}

void
bucket_encode(uint8_t out[BUCKET_ROW_BYTES], const struct bucket_row *b)
{
	struct cur c = put_head(memset(out, 0, BUCKET_ROW_BYTES), BUCKET_ROW_BYTES, VALUE_BUCKET);

	check(bucket_ok(b));
	bucket_move((struct bucket_row *)b, out, true);
	c.p = out + BUCKET_ROW_BYTES - 8;
	put_end(&c, out);
}

int
bucket_decode(const void *buf, size_t len, struct bucket_row *ret_row)
{
	struct bucket_row b;
	struct cur c;

	if (len != BUCKET_ROW_BYTES || !open_value(buf, len, VALUE_BUCKET, 4, &c))
		return -EBADMSG;
	bucket_move(&b, (uint8_t *)(uintptr_t)buf, false);
	if (!bucket_ok(&b))
		return -EBADMSG;
	*ret_row = b;
	return 0;
}

#define BATTRS_FIXED 16

static void
battrs_move(struct battrs *r, uint8_t *p, bool puts){
#define BATTRS(at) at
#include "model/record.def"
}

size_t battrs_bytes(uint32_t attrs_len)
{
	return BATTRS_FIXED + attrs_len + 8;
}

void
battrs_encode(void *out, const struct battrs *b)
{
	struct cur c = put_head(out, battrs_bytes(b->attrs_len), VALUE_BATTRS);

	check(b->attrs_len <= STORE_BUCKET_ATTRS_MAX);
	battrs_move((struct battrs *)b, out, true);
	c.p = (uint8_t *)out + BATTRS_FIXED;
	put_bytes(&c, b->attrs, b->attrs_len);
	put_end(&c, out);
}

int
battrs_decode(const void *buf, size_t len, struct battrs *ret_battrs)
{
	struct cur c;

	if (!open_value(buf, len, VALUE_BATTRS, BATTRS_FIXED, &c))
		return -EBADMSG;
	battrs_move(ret_battrs, (uint8_t *)(uintptr_t)buf, false);
	ret_battrs->attrs = take(&c, ret_battrs->attrs_len);
	return ret_battrs->attrs_len <= STORE_BUCKET_ATTRS_MAX && all_taken(&c) ? 0 : -EBADMSG;
}

/* ---- quotas ---- */

void
counter_encode(uint8_t out[COUNTER_BYTES], const struct counter *c)
{
	struct store_use sum = { (uint64_t)c->sum.objects, (uint64_t)c->sum.bytes, (uint64_t)c->sum.uploads };
	struct cur cur = put_head(out, COUNTER_BYTES, VALUE_COUNTER);

	use_move(&sum, room(&cur, USE_BYTES), true);
	put_u64(&cur, c->last);
	put_end(&cur, out);
}

int
counter_decode(const void *buf, size_t len, struct counter *ret_counter)
{
	uint8_t fields[USE_BYTES + 8];
	struct store_use n;

	if (!take_whole(buf, len, COUNTER_BYTES, VALUE_COUNTER, fields, sizeof fields))
		return -EBADMSG;
	use_move(&n, fields, false);
	/* The sum of many intact counters must not overflow. */
	if (n.objects + COUNTER_MAX > 2 * COUNTER_MAX || n.bytes + COUNTER_MAX > 2 * COUNTER_MAX ||
	    n.uploads + COUNTER_MAX > 2 * COUNTER_MAX)
		return -EBADMSG;
	ret_counter->sum = (struct quota_change){ (int64_t)n.objects, (int64_t)n.bytes, (int64_t)n.uploads };
	memcpy(&ret_counter->last, fields + USE_BYTES, 8);
	return 0;
}

void
bound_encode(uint8_t out[BOUND_BYTES], const struct store_use *max)
{
	struct cur c = put_head(out, BOUND_BYTES, VALUE_BOUND);

	use_move((struct store_use *)max, room(&c, USE_BYTES), true);
	put_end(&c, out);
}

int
bound_decode(const void *buf, size_t len, struct store_use *ret_max)
{
	uint8_t fields[USE_BYTES];

	if (!take_whole(buf, len, BOUND_BYTES, VALUE_BOUND, fields, sizeof fields))
		return -EBADMSG;
	use_move(ret_max, fields, false);
	return 0;
}

/* ---- garbage ---- */

size_t
garbage_bytes(uint32_t data_nr)
{
	return 4 + 4 + 12 + 4 + (size_t)data_nr * GARBAGE_DATA_BYTES + 8;
}

void
garbage_encode(void *out, const struct garbage_data *data, uint32_t nr, const struct rid *map)
{
	struct cur c = put_head(out, garbage_bytes(nr), VALUE_GARBAGE);

	check(nr <= STORE_PART_NR_MAX && (nr > 0 || map));
	put_u32(&c, map != NULL);
	put_rid(&c, map ? *map : (struct rid){ 0 });
	put_u32(&c, nr);
	for (uint32_t i = 0; i < nr; i++) {
		put_rid(&c, data[i].id);
		put_u64(&c, data[i].size_bytes);
	}
	put_end(&c, out);
}

int
garbage_decode(const void *buf, size_t len, struct garbage *ret_garbage)
{
	struct garbage g;
	struct cur c;

	if (!open_value(buf, len, VALUE_GARBAGE, 4, &c))
		return -EBADMSG;
	g.has_map = take_u32(&c) != 0;
	g.map = take_rid(&c);
	g.data_nr = take_u32(&c);
	if (g.data_nr > STORE_PART_NR_MAX)
		return -EBADMSG;
	g.data = take(&c, (size_t)g.data_nr * GARBAGE_DATA_BYTES);
	if (!all_taken(&c))
		return -EBADMSG;
	*ret_garbage = g;
	return 0;
}

struct garbage_data
garbage_data(const struct garbage *g, uint32_t i)
{
	struct cur c = cursor(g->data + (size_t)i * GARBAGE_DATA_BYTES, GARBAGE_DATA_BYTES);
	struct garbage_data d = { .id = take_rid(&c) };

	check(i < g->data_nr);
	d.size_bytes = take_u64(&c);
	return d;
}

/* ---- gateways ---- */

#define GATEWAY_FIELDS (offsetof(struct gateway_row, version) + sizeof(uint32_t))
_Static_assert(GATEWAY_FIELDS == 5 * 8 + 3 * GATEWAY_TEXT + 4,
	       "the fields of a row are encoded as they are in memory");
_Static_assert(4 + GATEWAY_FIELDS + 8 <= GATEWAY_ROW_BYTES, "a row has room for its texts");

void
gateway_encode(uint8_t out[GATEWAY_ROW_BYTES], const struct gateway_row *g)
{
	struct cur c = put_head(memset(out, 0, GATEWAY_ROW_BYTES), GATEWAY_ROW_BYTES, VALUE_GATEWAY);

	check(g->first <= g->last);
	put_bytes(&c, g, GATEWAY_FIELDS);
	c.p = out + GATEWAY_ROW_BYTES - 8;
	put_end(&c, out);
}

int
gateway_decode(const void *buf, size_t len, struct gateway_row *ret_row)
{
	struct gateway_row g;

	if (!take_whole(buf, len, GATEWAY_ROW_BYTES, VALUE_GATEWAY, &g, GATEWAY_FIELDS) || g.first > g.last)
		return -EBADMSG;
	g.host[sizeof g.host - 1] = g.addrs[sizeof g.addrs - 1] = 0;
	*ret_row = g;
	return 0;
}

_Static_assert(sizeof(struct gateway_addrs) == GATEWAY_ADDRS_BYTES - 4 - 8,
	       "the fields are encoded as they are in memory");

void
gateway_addrs_encode(uint8_t out[GATEWAY_ADDRS_BYTES], const struct gateway_addrs *a)
{
	struct cur c = put_head(out, GATEWAY_ADDRS_BYTES, VALUE_GATEWAY_ADDRS);

	put_bytes(&c, a, sizeof *a);
	put_end(&c, out);
}

int
gateway_addrs_decode(const void *buf, size_t len, struct gateway_addrs *ret_addrs)
{
	struct gateway_addrs a;

	if (!take_whole(buf, len, GATEWAY_ADDRS_BYTES, VALUE_GATEWAY_ADDRS, &a, sizeof a) ||
	    a.nr > GATEWAY_ADDRS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < GATEWAY_ADDRS_MAX; i++)
		a.addr[i][sizeof a.addr[i] - 1] = 0;
	*ret_addrs = a;
	return 0;
}

/* ---- the store ---- */

_Static_assert(sizeof(struct store_format_row) == 4 + 16 + 4, "the fields are encoded as they are in memory");

void
format_encode(uint8_t out[STORE_FORMAT_BYTES], const struct store_format_row *f)
{
	struct cur c = put_head(memset(out, 0, STORE_FORMAT_BYTES), STORE_FORMAT_BYTES, VALUE_FORMAT);

	check(f->version > 0 && f->version <= STORE_FORMAT_VERSION);
	put_bytes(&c, f, sizeof *f);
	c.p = out + STORE_FORMAT_BYTES - 8;
	put_end(&c, out);
}

int
format_decode(const void *buf, size_t len, struct store_format_row *ret_row)
{
	struct store_format_row f;

	if (!take_whole(buf, len, STORE_FORMAT_BYTES, VALUE_FORMAT, &f, sizeof f))
		return -EBADMSG;
	if (f.version == 0 || f.version > STORE_FORMAT_VERSION) {
		ret_row->version = f.version;
		return -EPROTONOSUPPORT;
	}
	if (f.object_bytes < 2 * STORE_PIECE || f.object_bytes > DATA_OBJECT_MAX ||
	    f.object_bytes % STORE_PIECE)
		return -EBADMSG;
	*ret_row = f;
	return 0;
}

/* ---- trailers ---- */

static uint64_t
trailer_crc(const uint8_t *trailer, uint32_t data_bytes, struct rid id, uint32_t n)
{
	const struct label name = data_name(id, n);
	uint64_t crc;

	check(data_bytes > 0 && data_bytes <= DATA_OBJECT_MAX);
	crc = crc64_nvme(0, name.text, strlen(name.text));
	crc = crc64_nvme(crc, &data_bytes, sizeof data_bytes);
	return crc64_nvme(crc, trailer, trailer_bytes(data_bytes) - 8);
}

void
trailer_seal(uint8_t *trailer, uint32_t data_bytes, struct rid id, uint32_t n)
{
	uint64_t crc = trailer_crc(trailer, data_bytes, id, n);

	memcpy(trailer + trailer_bytes(data_bytes) - 8, &crc, 8);
}

int
trailer_check(const uint8_t *trailer, uint32_t data_bytes, struct rid id, uint32_t n)
{
	uint64_t crc = trailer_crc(trailer, data_bytes, id, n);

	return memcmp(trailer + trailer_bytes(data_bytes) - 8, &crc, 8) == 0 ? 0 : -EBADMSG;
}
