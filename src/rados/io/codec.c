/* SPDX-License-Identifier: Apache-2.0 */
/* See codec.h. */
#include "rados/io/codec.h"

#include "base/check.h"
#include "base/crc64.h"
#include "base/cursor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FORMAT 1 /* the first byte of each value */
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

void
rid_text(char text[RID_TEXT], struct rid id)
{
	snprintf(text, RID_TEXT, "%08x.%016llx", id.instance, (unsigned long long)id.counter);
}

void
data_name(char name[DATA_NAME], struct rid id, uint32_t n)
{
	snprintf(name, DATA_NAME, "%08x.%016llx.%08x", id.instance, (unsigned long long)id.counter, n);
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

/*
 * A key inside a longer one, so that the order of the longer ones is that of the keys: a byte 1 becomes 1 2,
 * and 1 1 ends it.
 */
static size_t
escape(char *out, const char *key, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		out[n++] = key[i];
		if (key[i] == 1)
			out[n++] = 2;
	}
	return n;
}

static size_t
hex(char *out, const uint8_t *id)
{
	for (int i = 0; i < STORE_UPLOAD_ID_BYTES; i++)
		sprintf(out + 2 * i, "%02x", id[i]);
	return 2 * STORE_UPLOAD_ID_BYTES;
}

static int
unhex(const char *in, uint8_t *id)
{
	for (int i = 0; i < STORE_UPLOAD_ID_BYTES; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *hi = in[2 * i] ? strchr(digits, in[2 * i]) : NULL,
			   *lo = in[2 * i + 1] ? strchr(digits, in[2 * i + 1]) : NULL;

		if (!hi || !lo)
			return -EBADMSG;
		id[i] = (uint8_t)((hi - digits) << 4 | (lo - digits));
	}
	return 0;
}

size_t
key_object(char out[OMAP_KEY_MAX], const char *key, size_t len)
{
	check(len <= STORE_KEY_MAX);
	out[0] = KEY_OBJECT;
	if (len)
		memcpy(out + 1, key, len);
	out[1 + len] = 0;
	return 1 + len;
}

size_t
key_upload_prefix(char out[OMAP_KEY_MAX], const char *key, size_t len)
{
	size_t n = 1;

	check(len <= STORE_KEY_MAX);
	out[0] = KEY_UPLOAD;
	n += escape(out + n, key, len);
	out[n] = 0;
	return n;
}

size_t
key_upload(char out[OMAP_KEY_MAX], const char *key, size_t len, const uint8_t *id)
{
	size_t n = key_upload_prefix(out, key, len);

	out[n++] = 1;
	out[n++] = 1;
	if (id)
		n += hex(out + n, id);
	out[n] = 0;
	return n;
}

int
key_upload_decode(const char *k, size_t k_len, char *key, uint16_t *ret_len,
		  uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	size_t n = 0, i;

	if (k_len < 3 + 2 * STORE_UPLOAD_ID_BYTES || k[0] != KEY_UPLOAD)
		return -EBADMSG;
	for (i = 1; i + 1 < k_len; i++) {
		if (k[i] == 1 && k[i + 1] == 1)
			break;
		if (n == STORE_KEY_MAX || (k[i] == 1 && k[i + 1] != 2))
			return -EBADMSG;
		key[n++] = k[i];
		i += k[i] == 1;
	}
	if (i + 2 + 2 * STORE_UPLOAD_ID_BYTES != k_len)
		return -EBADMSG;
	*ret_len = (uint16_t)n;
	return unhex(k + i + 2, id);
}

size_t
key_part(char out[OMAP_KEY_MAX], const uint8_t *id, uint32_t number)
{
	size_t n = 1;

	check(number <= STORE_PART_NR_MAX);
	out[0] = KEY_PART;
	n += hex(out + n, id);
	if (number)
		n += (size_t)sprintf(out + n, "%05u", number);
	out[n] = 0;
	return n;
}

uint32_t
key_part_number(const char *k, size_t len)
{
	uint32_t number = 0;

	if (len != 1 + 2 * STORE_UPLOAD_ID_BYTES + 5 || k[0] != KEY_PART)
		return 0;
	for (size_t i = len - 5; i < len; i++) {
		if (k[i] < '0' || k[i] > '9')
			return 0;
		number = number * 10 + (uint32_t)(k[i] - '0');
	}
	return number <= STORE_PART_NR_MAX ? number : 0;
}

size_t
key_garbage(char out[OMAP_KEY_MAX], uint64_t epoch, struct rid id)
{
	char text[RID_TEXT];

	rid_text(text, id);
	return (size_t)sprintf(out, "%c%016llx%s", KEY_GARBAGE, (unsigned long long)epoch, text);
}

size_t
key_counter(char out[OMAP_KEY_MAX], uint32_t instance)
{
	return (size_t)sprintf(out, "%c%010u", KEY_COUNTER, instance);
}

uint32_t
key_counter_instance(const char *k, size_t len)
{
	uint64_t n = 0;

	if (len != 11 || k[0] != KEY_COUNTER)
		return UINT32_MAX;
	for (size_t i = 1; i < len; i++) {
		if (k[i] < '0' || k[i] > '9')
			return UINT32_MAX;
		n = 10 * n + (uint64_t)(k[i] - '0');
	}
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

int
key_garbage_decode(const char *k, size_t len, uint64_t *ret_epoch)
{
	char text[17], *end;

	if (len != 1 + 16 + RID_TEXT - 1 || k[0] != KEY_GARBAGE)
		return -EBADMSG;
	memcpy(text, k + 1, 16);
	text[16] = 0;
	*ret_epoch = strtoull(text, &end, 16);
	return *end ? -EBADMSG : 0;
}

/* ---- values: begun, ended ---- */

static void
put_head(struct cur *c, enum value_kind kind)
{
	put_u8(c, FORMAT);
	put_u8(c, (uint8_t)kind);
	put_u16(c, 0);
}

/* A cursor over what is between head and CRC. */
static int
open_value(const void *buf, size_t len, enum value_kind kind, struct cur *ret_cur)
{
	const uint8_t *p = buf;
	uint64_t crc;

	if (len < 12 || p[0] != FORMAT || p[1] != kind)
		return -EBADMSG;
	memcpy(&crc, p + len - 8, 8);
	if (crc64_nvme(0, buf, len - 8) != crc)
		return -EBADMSG;
	*ret_cur = cursor(p + 4, len - 12);
	return 0;
}

static bool
all_taken(const struct cur *c)
{
	return !c->bad && c->p == c->end;
}

/* Puts the CRC of all bytes since start, which ends a value. */
static void
put_end(struct cur *c, const void *start)
{
	put_u64(c, crc64_nvme(0, start, (size_t)(c->p - (const uint8_t *)start)));
	check(all_taken(c));
}

static void
put_etag(struct cur *c, const struct store_etag *e)
{
	put_bytes(c, e->sum, 16);
	put_u32(c, e->parts);
}

static void
take_etag(struct cur *c, struct store_etag *e)
{
	take_bytes(c, e->sum, 16);
	e->parts = take_u32(c);
}

/* ---- bodies: what an object, and a part of one, is ---- */

static size_t
body_bytes(enum rec_kind kind, uint64_t size_bytes, uint32_t crc_nr)
{
	return kind == REC_INLINE ? size_bytes : 12 + 4 + (size_t)crc_nr * 8;
}

static void
put_body(struct cur *c, enum rec_kind kind, uint64_t size_bytes, const void *inline_data, struct rid data,
	 const uint8_t *crcs, uint32_t crc_nr)
{
	if (kind == REC_INLINE) {
		put_bytes(c, inline_data, size_bytes);
		return;
	}
	put_rid(c, data);
	put_u32(c, crc_nr);
	put_bytes(c, crcs, (size_t)crc_nr * 8);
}

static int
take_body(struct cur *c, enum rec_kind kind, uint64_t size_bytes, const void **ret_inline,
	  struct rid *ret_data, const uint8_t **ret_crcs, uint32_t *ret_crc_nr)
{
	if (kind == REC_INLINE) {
		if (size_bytes > STORE_INLINE_MAX)
			return -EBADMSG;
		*ret_inline = take(c, size_bytes);
		return c->bad ? -EBADMSG : 0;
	}
	*ret_data = take_rid(c);
	*ret_crc_nr = take_u32(c);
	if (*ret_crc_nr > REC_CRCS_MAX || size_bytes == 0 ||
	    (*ret_crc_nr && *ret_crc_nr != (size_bytes + STORE_GRANULE - 1) / STORE_GRANULE))
		return -EBADMSG;
	*ret_crcs = take(c, (size_t)*ret_crc_nr * 8);
	return c->bad ? -EBADMSG : 0;
}

/* ---- record ---- */

#define RECORD_FIXED (4 + 4 + 8 * 4 + 12 * 2 + 20 + 4)

size_t
record_bytes(const struct record *r)
{
	size_t n = RECORD_FIXED + r->attrs_len + 8;

	if (r->kind == REC_PARTS)
		return n + STORE_UPLOAD_ID_BYTES + 8 + r->parts_len;
	if (r->kind == REC_MAP)
		return n + STORE_UPLOAD_ID_BYTES + 8 + 12 + 8;
	return n + body_bytes(r->kind, r->size_bytes, r->crc_nr);
}

void
record_encode(void *out, const struct record *r)
{
	struct cur c = cursor(out, record_bytes(r));

	check(r->kind >= REC_INLINE && r->kind <= REC_MAP && r->attrs_len <= STORE_ATTRS_MAX);
	put_head(&c, VALUE_RECORD);
	put_u32(&c, r->kind);
	put_u64(&c, r->version);
	put_u64(&c, r->size_bytes);
	put_u64(&c, r->crc64);
	put_u64(&c, r->mtime_ns);
	put_rid(&c, r->id);
	put_rid(&c, r->replaced);
	put_etag(&c, &r->etag);
	put_u32(&c, r->attrs_len);
	put_bytes(&c, r->attrs, r->attrs_len);
	if (r->kind == REC_PARTS || r->kind == REC_MAP) {
		put_bytes(&c, r->upload_id, STORE_UPLOAD_ID_BYTES);
		put_u32(&c, r->part_nr);
		put_u32(&c, r->parts_len);
		if (r->kind == REC_PARTS) {
			put_bytes(&c, r->parts, r->parts_len);
		} else {
			put_rid(&c, r->data);
			put_u64(&c, r->parts_crc64);
		}
	} else {
		put_body(&c, r->kind, r->size_bytes, r->inline_data, r->data, r->crcs, r->crc_nr);
	}
	put_end(&c, out);
}

int
record_decode(const void *buf, size_t len, struct record *ret_record)
{
	struct record r = { 0 };
	struct cur c;
	uint32_t kind;
	int e = open_value(buf, len, VALUE_RECORD, &c);

	if (e < 0)
		return e;
	kind = take_u32(&c);
	if (kind < REC_INLINE || kind > REC_MAP)
		return -EBADMSG;
	r.kind = kind;
	r.version = take_u64(&c);
	r.size_bytes = take_u64(&c);
	r.crc64 = take_u64(&c);
	r.mtime_ns = take_u64(&c);
	r.id = take_rid(&c);
	r.replaced = take_rid(&c);
	take_etag(&c, &r.etag);
	r.attrs_len = take_u32(&c);
	if (r.attrs_len > STORE_ATTRS_MAX)
		return -EBADMSG;
	r.attrs = take(&c, r.attrs_len);
	if (kind == REC_PARTS || kind == REC_MAP) {
		r.upload_id = take(&c, STORE_UPLOAD_ID_BYTES);
		r.part_nr = take_u32(&c);
		r.parts_len = take_u32(&c);
		if (r.part_nr == 0 || r.part_nr > STORE_PART_NR_MAX)
			return -EBADMSG;
		if (kind == REC_PARTS) {
			r.parts = take(&c, r.parts_len);
		} else {
			r.data = take_rid(&c);
			r.parts_crc64 = take_u64(&c);
		}
	} else {
		e = take_body(&c, kind, r.size_bytes, &r.inline_data, &r.data, &r.crcs, &r.crc_nr);
	}
	if (e < 0 || !all_taken(&c))
		return -EBADMSG;
	*ret_record = r;
	return 0;
}

/* ---- parts ---- */

#define PART_FIXED (4 + 4 + 4 + 8 * 4 + 20)

size_t
part_encode(void *out, const struct part *p)
{
	size_t n = PART_FIXED + p->attrs_len + body_bytes(p->kind, p->size_bytes, p->crc_nr);
	struct cur c;

	if (!out)
		return n;
	c = cursor(out, n);
	put_u32(&c, p->number);
	put_u32(&c, p->attrs_len);
	put_u32(&c, p->kind);
	put_u64(&c, p->size_bytes);
	put_u64(&c, p->crc64);
	put_u64(&c, p->mtime_ns);
	put_u64(&c, p->version);
	put_etag(&c, &p->etag);
	put_bytes(&c, p->attrs, p->attrs_len);
	put_body(&c, p->kind, p->size_bytes, p->inline_data, p->data, p->crcs, p->crc_nr);
	check(all_taken(&c));
	return n;
}

int
parts_count(const void *buf, size_t len, uint32_t max, struct part *ret_parts, uint32_t *ret_nr)
{
	struct cur c = cursor(buf, len);
	uint32_t i = 0;

	for (; i < max && c.p != c.end; i++) {
		struct part p = { 0 };
		uint32_t kind;

		p.number = take_u32(&c);
		p.attrs_len = take_u32(&c);
		kind = take_u32(&c);
		p.size_bytes = take_u64(&c);
		p.crc64 = take_u64(&c);
		p.mtime_ns = take_u64(&c);
		p.version = take_u64(&c);
		take_etag(&c, &p.etag);
		if (c.bad || p.attrs_len > STORE_PART_ATTRS_MAX || (kind != REC_INLINE && kind != REC_DATA) ||
		    p.number == 0 || p.number > STORE_PART_NR_MAX ||
		    (i && p.number <= ret_parts[i - 1].number))
			return -EBADMSG;
		p.kind = kind;
		p.attrs = take(&c, p.attrs_len);
		if (take_body(&c, kind, p.size_bytes, &p.inline_data, &p.data, &p.crcs, &p.crc_nr) < 0)
			return -EBADMSG;
		ret_parts[i] = p;
	}
	*ret_nr = i;
	return all_taken(&c) ? 0 : -EBADMSG;
}

int
parts_decode(const void *buf, size_t len, uint32_t nr, struct part *ret_parts)
{
	uint32_t there;
	int e = parts_count(buf, len, nr, ret_parts, &there);

	return e == 0 && there != nr ? -EBADMSG : e;
}

/* ---- uploads ---- */

#define UPLOAD_FIXED (4 + STORE_UPLOAD_ID_BYTES + 8 + 4 + 12 + 4)

size_t
upload_bytes(const struct upload *u)
{
	return UPLOAD_FIXED + u->attrs_len + 8;
}

void
upload_encode(void *out, const struct upload *u)
{
	struct cur c = cursor(out, upload_bytes(u));

	check(u->attrs_len <= STORE_ATTRS_MAX);
	put_head(&c, VALUE_UPLOAD);
	put_bytes(&c, u->id, sizeof u->id);
	put_u64(&c, u->ctime_ns);
	put_u32(&c, u->closer);
	put_rid(&c, u->close);
	put_u32(&c, u->attrs_len);
	put_bytes(&c, u->attrs, u->attrs_len);
	put_end(&c, out);
}

int
upload_decode(const void *buf, size_t len, struct upload *ret_upload)
{
	struct upload u;
	struct cur c;
	int e = open_value(buf, len, VALUE_UPLOAD, &c);

	if (e < 0)
		return e;
	take_bytes(&c, u.id, sizeof u.id);
	u.ctime_ns = take_u64(&c);
	u.closer = take_u32(&c);
	u.close = take_rid(&c);
	u.attrs_len = take_u32(&c);
	if (u.attrs_len > STORE_ATTRS_MAX)
		return -EBADMSG;
	u.attrs = take(&c, u.attrs_len);
	if (!all_taken(&c))
		return -EBADMSG;
	*ret_upload = u;
	return 0;
}

/* ---- buckets ---- */

void
bucket_encode(uint8_t out[BUCKET_ROW_BYTES], const struct bucket_row *b)
{
	struct cur c = cursor(out, BUCKET_ROW_BYTES);

	check(b->state >= BUCKET_MAKING && b->state <= BUCKET_ENDING && b->shards > 0 &&
	      b->shards <= BUCKET_SHARDS_MAX);
	memset(out, 0, BUCKET_ROW_BYTES);
	put_head(&c, VALUE_BUCKET);
	put_u32(&c, b->state);
	put_rid(&c, b->uid);
	put_u32(&c, b->shards);
	put_u32(&c, b->instance);
	put_u64(&c, b->ctime_ns);
	put_u64(&c, b->version);
	c.p = out + BUCKET_ROW_BYTES - 8;
	put_end(&c, out);
}

int
bucket_decode(const void *buf, size_t len, struct bucket_row *ret_row)
{
	struct bucket_row b;
	struct cur c;
	int e = len == BUCKET_ROW_BYTES ? open_value(buf, len, VALUE_BUCKET, &c) : -EBADMSG;
	uint32_t state;

	if (e < 0)
		return e;
	state = take_u32(&c);
	b.uid = take_rid(&c);
	b.shards = take_u32(&c);
	b.instance = take_u32(&c);
	b.ctime_ns = take_u64(&c);
	b.version = take_u64(&c);
	if (state < BUCKET_MAKING || state > BUCKET_ENDING || b.shards == 0 || b.shards > BUCKET_SHARDS_MAX)
		return -EBADMSG;
	b.state = state;
	*ret_row = b;
	return 0;
}

size_t
battrs_bytes(uint32_t attrs_len)
{
	return 4 + 8 + 4 + attrs_len + 8;
}

void
battrs_encode(void *out, uint64_t version, const void *attrs, uint32_t attrs_len)
{
	struct cur c = cursor(out, battrs_bytes(attrs_len));

	check(attrs_len <= STORE_BUCKET_ATTRS_MAX);
	put_head(&c, VALUE_BATTRS);
	put_u64(&c, version);
	put_u32(&c, attrs_len);
	put_bytes(&c, attrs, attrs_len);
	put_end(&c, out);
}

int
battrs_decode(const void *buf, size_t len, uint64_t *ret_version, const void **ret_attrs, uint32_t *ret_len)
{
	struct cur c;
	int e = open_value(buf, len, VALUE_BATTRS, &c);

	if (e < 0)
		return e;
	*ret_version = take_u64(&c);
	*ret_len = take_u32(&c);
	if (*ret_len > STORE_BUCKET_ATTRS_MAX)
		return -EBADMSG;
	*ret_attrs = take(&c, *ret_len);
	return all_taken(&c) ? 0 : -EBADMSG;
}

/* ---- quotas ---- */

static void
numbers_encode(void *out, size_t len, enum value_kind kind, const uint64_t *n, int nr)
{
	struct cur c = cursor(out, len);

	put_head(&c, kind);
	for (int i = 0; i < nr; i++)
		put_u64(&c, n[i]);
	put_end(&c, out);
}

static int
numbers_decode(const void *buf, size_t len, enum value_kind kind, uint64_t *ret_n, int nr)
{
	struct cur c;
	int e = open_value(buf, len, kind, &c);

	if (e < 0)
		return e;
	for (int i = 0; i < nr; i++)
		ret_n[i] = take_u64(&c);
	return all_taken(&c) ? 0 : -EBADMSG;
}

void
counter_encode(uint8_t out[COUNTER_BYTES], const struct counter *c)
{
	const uint64_t n[] = { (uint64_t)c->sum.objects, (uint64_t)c->sum.bytes, (uint64_t)c->sum.uploads,
			       c->last };

	numbers_encode(out, COUNTER_BYTES, VALUE_COUNTER, n, 4);
}

int
counter_decode(const void *buf, size_t len, struct counter *ret_counter)
{
	uint64_t n[4];
	int e = numbers_decode(buf, len, VALUE_COUNTER, n, 4);

	for (int i = 0; e == 0 && i < 3; i++) {
		/* Of honest ones many can be added. */
		if (n[i] + COUNTER_MAX > 2 * COUNTER_MAX)
			e = -EBADMSG;
	}
	if (e == 0)
		*ret_counter = (struct counter){ { (int64_t)n[0], (int64_t)n[1], (int64_t)n[2] }, n[3] };
	return e;
}

void
bound_encode(uint8_t out[BOUND_BYTES], const struct store_use *max)
{
	const uint64_t n[] = { max->objects, max->bytes, max->uploads };

	numbers_encode(out, BOUND_BYTES, VALUE_BOUND, n, 3);
}

int
bound_decode(const void *buf, size_t len, struct store_use *ret_max)
{
	uint64_t n[3];
	int e = numbers_decode(buf, len, VALUE_BOUND, n, 3);

	if (e == 0)
		*ret_max = (struct store_use){ n[0], n[1], n[2] };
	return e;
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
	struct cur c = cursor(out, garbage_bytes(nr));

	check(nr <= STORE_PART_NR_MAX && (nr > 0 || map));
	put_head(&c, VALUE_GARBAGE);
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
	int e = open_value(buf, len, VALUE_GARBAGE, &c);

	if (e < 0)
		return e;
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

void
gateway_encode(uint8_t out[GATEWAY_ROW_BYTES], const struct gateway_row *g)
{
	struct cur c = cursor(out, GATEWAY_ROW_BYTES);

	_Static_assert(4 + 5 * 8 + 3 * GATEWAY_TEXT + 8 <= GATEWAY_ROW_BYTES, "a row has room for its texts");
	check(g->first <= g->last);
	memset(out, 0, GATEWAY_ROW_BYTES);
	put_head(&c, VALUE_GATEWAY);
	put_u64(&c, g->beats);
	put_u64(&c, g->epoch);
	put_u64(&c, g->first);
	put_u64(&c, g->last);
	put_u64(&c, g->since_ns);
	put_bytes(&c, g->host, sizeof g->host);
	put_bytes(&c, g->addrs, sizeof g->addrs);
	c.p = out + GATEWAY_ROW_BYTES - 8;
	put_end(&c, out);
}

int
gateway_decode(const void *buf, size_t len, struct gateway_row *ret_row)
{
	struct gateway_row g;
	struct cur c;
	int e = len == GATEWAY_ROW_BYTES ? open_value(buf, len, VALUE_GATEWAY, &c) : -EBADMSG;

	if (e < 0)
		return e;
	g.beats = take_u64(&c);
	g.epoch = take_u64(&c);
	g.first = take_u64(&c);
	g.last = take_u64(&c);
	g.since_ns = take_u64(&c);
	take_bytes(&c, g.host, sizeof g.host);
	take_bytes(&c, g.addrs, sizeof g.addrs);
	g.host[sizeof g.host - 1] = g.addrs[sizeof g.addrs - 1] = 0;
	if (g.first > g.last)
		return -EBADMSG;
	*ret_row = g;
	return 0;
}

void
gateway_addrs_encode(uint8_t out[GATEWAY_ADDRS_BYTES], const struct gateway_addrs *a)
{
	struct cur c = cursor(out, GATEWAY_ADDRS_BYTES);

	put_head(&c, VALUE_GATEWAY_ADDRS);
	put_u64(&c, a->nr);
	put_bytes(&c, a->addr, sizeof a->addr);
	put_end(&c, out);
}

int
gateway_addrs_decode(const void *buf, size_t len, struct gateway_addrs *ret_addrs)
{
	struct gateway_addrs a;
	struct cur c;
	uint64_t nr;
	int e = len == GATEWAY_ADDRS_BYTES ? open_value(buf, len, VALUE_GATEWAY_ADDRS, &c) : -EBADMSG;

	if (e < 0)
		return e;
	nr = take_u64(&c);
	take_bytes(&c, a.addr, sizeof a.addr);
	for (uint32_t i = 0; i < GATEWAY_ADDRS_MAX; i++)
		a.addr[i][sizeof a.addr[i] - 1] = 0;
	if (nr > GATEWAY_ADDRS_MAX)
		return -EBADMSG;
	a.nr = (uint32_t)nr;
	*ret_addrs = a;
	return 0;
}

/* ---- the store ---- */

void
format_encode(uint8_t out[STORE_FORMAT_BYTES], const struct store_format_row *f)
{
	struct cur c = cursor(out, STORE_FORMAT_BYTES);

	memset(out, 0, STORE_FORMAT_BYTES);
	put_head(&c, VALUE_FORMAT);
	put_u32(&c, STORE_FORMAT_VERSION);
	put_bytes(&c, f->uuid, 16);
	put_u32(&c, f->object_bytes);
	c.p = out + STORE_FORMAT_BYTES - 8;
	put_end(&c, out);
}

int
format_decode(const void *buf, size_t len, struct store_format_row *ret_row)
{
	struct store_format_row f;
	struct cur c;
	int e = len == STORE_FORMAT_BYTES ? open_value(buf, len, VALUE_FORMAT, &c) : -EBADMSG;

	if (e < 0)
		return e;
	f.version = take_u32(&c);
	if (f.version != STORE_FORMAT_VERSION)
		return -EPROTONOSUPPORT;
	take_bytes(&c, f.uuid, 16);
	f.object_bytes = take_u32(&c);
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
	char name[DATA_NAME];
	uint64_t crc;

	check(data_bytes > 0 && data_bytes <= DATA_OBJECT_MAX);
	data_name(name, id, n);
	crc = crc64_nvme(0, name, strlen(name));
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
