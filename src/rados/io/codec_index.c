/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the other rows of the index, and of the table of buckets: uploads, buckets, quotas and garbage; see
 * codec.h. */
#include "rados/io/codec.h"

#include "base/check.h"
#include "rados/io/codec_int.h"

#include <errno.h>

#define COUNTER_MAX ((uint64_t)1 << 56)

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
