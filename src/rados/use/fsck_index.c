/* SPDX-License-Identifier: Apache-2.0 */
/* --fsck: reads the rows of the index, their names of data objects, and their counters; see fsck.c. */
#include "rados/use/fsck_int.h"

#include "base/clock.h"
#include "base/crc64.h"
#include "rados/io/array.h"
#include "rados/io/fault.h"
#include "rados/io/names.h"
#include "rados/io/rows.h"
#include "rados/io/rstore.h"
#include "store/damage.h"
#include "store/meter.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_TRIES 5 /* attempts for a shard that changes all the time */
#define LEFT_OUT "objects without an owner are left out"

/* The counters of a shard. */
struct counters {
	rados_write_op_t mend; /* sets every counter to 0, if no row has changed; NULL: not needed */
	uint64_t crc;          /* CRC of all rows */
	bool is_damaged;
	struct quota_change sum;
};

void
fsck_tell(struct checking *c, const char *fmt, ...)
{
	char line[STORE_KEY_MAX + 512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (c->say)
		c->say(c->cookie, line);
}

/* ---- named objects ---- */

static int
add(void *cookie, const struct row_name *n)
{
	struct checking *c = cookie;
	uint32_t each = c->st->gw.format.object_bytes;
	struct named *named;
	char *list = NULL;
	size_t len = 0;
	int e;

	named = room_for_one(c->named, c->nr, &c->cap, sizeof *named);
	if (!named)
		return -ENOMEM;
	c->named = named;
	c->named[c->nr++] =
		(struct named){ .id = n->id,
				.nr = n->is_map ? 1 : (uint32_t)((n->size_bytes + each - 1) / each),
				.found = n->is_garbage ? UINT32_MAX : 0, /* garbage: may be removed already */
				.is_map = n->is_map };
	if (!n->is_map)
		return 0;
	e = read_map(c->st, n->id, &list, &len);
	if (e == 0 && !n->is_garbage && crc64_nvme(0, list, len) != n->crc64)
		e = -EBADMSG;
	if (e == 0)
		e = parts_names(list, len, n->is_garbage, add, c);
	free(list);
	/* A missing map is reported at the end. */
	return e == -ENOENT ? 0 : e;
}

/* ---- the index ---- */

/* Adds the usage of a row to the usage of the shard. */
static int
count_entry(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct checking *c = cookie;
	struct record r = { 0 };
	const enum model_kind kind = rados_key_traits(key[0]).kind;
	struct quota_change more;

	if (kind == MODEL_NONE || (kind != MODEL_UPLOAD && record_decode(val, val_len, &r) < 0))
		return 0;
	more = model_usage(kind, &r.size_bytes, NULL);
	quota_add(&c->there, &more);
	return 0;
}

/* -- damaged records -- */

#define ID_DIGITS (2 * STORE_UPLOAD_ID_BYTES)

/* A search for an upload by its id, among the uploads of a shard. */
struct upload_search {
	const char *id; /* the id, ID_DIGITS digits */
	char key[STORE_KEY_MAX + 1];
	bool is_found;
};

static int
on_upload(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct upload_search *s = cookie;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint16_t len;

	if (s->is_found || key_len < ID_DIGITS || memcmp(key + key_len - ID_DIGITS, s->id, ID_DIGITS) != 0 ||
	    key_upload_decode(key, key_len, s->key, &len, id) < 0)
		return 0;
	s->key[len] = 0;
	s->is_found = true;
	return 0;
}

/* Writes a text for a record: the name of the object, or of the upload with the number of the part.
 * Unprintable bytes become '?'. */
static void
record_text(struct checking *c, const char *key, size_t key_len, char *text, size_t cap)
{
	struct upload_search s = { .id = key + 1 };
	uint32_t number = key_part_number(key, key_len);

	if (number) {
		each_row(c->st, c->shard, "u", on_upload, &s);
	} else if (key[0] == KEY_UPLOAD && key_len > ID_DIGITS) {
		s.id = key + key_len - ID_DIGITS;
		on_upload(&s, key, key_len, NULL, 0);
	}
	if (number)
		snprintf(text, cap, "part %u of an upload%s%s%s, id %.*s", number, s.is_found ? " of '" : "",
			 s.key, s.is_found ? "'" : "", ID_DIGITS, s.id);
	else if (s.is_found)
		snprintf(text, cap, "an upload of '%s', id %.*s", s.key, ID_DIGITS, s.id);
	else
		snprintf(text, cap, "'%.*s'", (int)key_len - 1, key + 1);
	for (; *text; text++)
		*text = *text >= 0x20 && *text < 0x7f ? *text : '?';
}

void
fsck_count_damage(struct checking *c, bool is_removed)
{
	c->would++;
	c->damage += !is_removed;
	c->removed += is_removed;
}

static void
tell_damaged(struct checking *c, const char *key, size_t key_len)
{
	char text[STORE_KEY_MAX + 100];

	record_text(c, key, key_len, text, sizeof text);
	fsck_tell(c, "bucket %s: the record of %s is damaged%s", c->bucket, text,
		  c->repair ? ": removed" : "");
	fsck_count_damage(c, c->repair);
	if (!c->sums || key[0] == KEY_GARBAGE)
		return;
	c->sums->all[DAMAGE_DROPPED].objects += rados_key_traits(key[0]).kind == MODEL_OBJECT;
	c->sums->all[DAMAGE_DROPPED].parts += rados_key_traits(key[0]).kind != MODEL_OBJECT;
	c->sums->gone[DAMAGE_DROPPED] = c->sums->all[DAMAGE_DROPPED];
}

/* Removes a damaged row, which no request can read, replace or delete. */
static int
remove_row(struct checking *c, const char *key, const char *val, size_t val_len)
{
	rados_write_op_t op = rados_create_write_op();
	int e;

	op_compare(op, key, val, val_len);
	op_remove(op, key);
	e = write_now(c->st->client[0].io[POOL_META], c->shard, op);
	/* The row has another value now. */
	return e == -ECANCELED ? 0 : e;
}

static int
on_entry(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct checking *c = cookie;
	size_t named_nr = c->nr;
	struct upload u;
	int e;

	meter_add(c->meter, 1);
	e = key[0] == KEY_UPLOAD ? upload_decode(val, val_len, &u) : row_names(key, val, val_len, add, c);
	if (e != -EBADMSG || !c->repair)
		count_entry(c, key, key_len, val, val_len);
	if (e != -EBADMSG)
		return e;
	tell_damaged(c, key, key_len);
	if (!c->repair)
		return 0;
	c->nr = named_nr; /* the removed row names nothing */
	return remove_row(c, key, val, val_len);
}

/* -- counters -- */

static int
on_counter(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct counters *cs = cookie;
	uint8_t nothing[COUNTER_BYTES];
	struct counter c;
	bool is_damaged = counter_decode(val, val_len, &c) < 0;

	cs->crc = crc64_nvme(crc64_nvme(cs->crc, key, key_len), val, val_len);
	cs->is_damaged |= is_damaged;
	if (!is_damaged)
		quota_add(&cs->sum, &c.sum);
	if (!cs->mend)
		return 0;
	op_compare(cs->mend, key, val, val_len);
	if (is_damaged) {
		op_remove(cs->mend, key);
		return 0;
	}
	/* The row keeps the number of the gateway's last change. */
	c.sum = (struct quota_change){ 0 };
	counter_encode(nothing, &c);
	op_set(cs->mend, key, nothing, sizeof nothing);
	return 0;
}

/* Sets row 0 to the counted usage, and all other counters to 0, unless a counter has changed. Returns 0,
 * -ECANCELED or another -errno. */
static int
mend_counters(struct checking *c, const char *shard, struct counters *cs)
{
	const struct counter there = { c->there, 0 };
	uint8_t val[COUNTER_BYTES];
	int e;

	counter_encode(val, &there);
	op_set(cs->mend, key_counter(0).text, val, sizeof val);
	e = write_now(c->st->client[0].io[POOL_META], shard, cs->mend);
	cs->mend = NULL;
	return e;
}

/* Compares the counters of a shard with the usage in c->there. before: CRC of the counters before the
 * usage was counted. */
static int
judge_counters(struct checking *c, const char *shard, uint64_t before)
{
	struct counters now = { 0 };
	int e = 0;

	for (int tries = 0; e == 0; tries++) {
		now = (struct counters){ .mend = rados_create_write_op() };
		e = each_row(c->st, shard, "c", on_counter, &now);
		/* If gateways have changed the shard during the count, the count is repeated. */
		if (e < 0 || now.crc == before || tries == COUNT_TRIES)
			break;
		rados_release_write_op(now.mend);
		now.mend = NULL;
		before = now.crc;
		c->there = (struct quota_change){ 0 };
		e = each_row(c->st, shard, "", count_entry, c);
	}
	if (e == 0 && now.crc == before &&
	    (now.is_damaged || memcmp(&now.sum, &c->there, sizeof now.sum) != 0)) {
		fsck_tell(
			c,
			"bucket %s: %s counts %lld objects, %lld bytes, %lld uploads%s, and has %lld, %lld, "
			"%lld%s",
			c->bucket, shard, (long long)now.sum.objects, (long long)now.sum.bytes,
			(long long)now.sum.uploads, now.is_damaged ? ", one of its counters is damaged" : "",
			(long long)c->there.objects, (long long)c->there.bytes, (long long)c->there.uploads,
			c->repair ? ": mended" : "");
		e = c->repair ? mend_counters(c, shard, &now) : 0;
		fsck_count_damage(c, c->repair && e == 0);
		e = e == -ECANCELED ? 0 : e;
	}
	if (now.mend)
		rados_release_write_op(now.mend);
	return e;
}

/* -- shards -- */

/*
 * Checks the generation of a shard. A repair sets a new one from the clock, because a generation need only differ
 * from those that changes in flight have seen, and these were counted from 1. The state of the bucket, which is
 * read after the damage was found, determines whether the shard is open: no gateway opens or closes a shard with a
 * damaged generation. During the removal of the bucket by a running gateway nothing is repaired.
 */
static int
check_generation(struct checking *c, struct bucket_row row)
{
	rados_ioctx_t io = c->st->client[0].io[POOL_META];
	char was[1024];
	int n = rados_getxattr(io, c->shard, XATTR_GENERATION, was, sizeof was), e;
	uint64_t next = clock_wall_ns();
	const struct rid uid = row.uid;
	rados_write_op_t op;
	bool can;

	if (n == sizeof next || (n < 0 && n != -ENODATA && n != -ERANGE))
		return n < 0 ? n : 0;
	e = read_bucket_row(c->st, c->bucket, strlen(c->bucket), &row);
	if (e < 0 || !rid_same(row.uid, uid))
		return e == -ENOENT ? 0 : e;
	can = row.state == BUCKET_THERE;
	if (!can)
		next |= GENERATION_CLOSED;
	for (uint32_t i = 0; i < c->gateways.nr; i++)
		can |= c->gateways.peers[i].is_dead && c->gateways.peers[i].instance == row.instance;
	can &= n != -ERANGE;
	fsck_tell(c, "bucket %s: the generation of %s is damaged%s", c->bucket, c->shard,
		  !can        ? ": it cannot be repaired now"
		  : c->repair ? ": set again"
			      : "");
	if (can && c->repair) {
		op = rados_create_write_op();
		rados_write_op_cmpxattr(op, XATTR_GENERATION, LIBRADOS_CMPXATTR_OP_EQ, was,
					n < 0 ? 0 : (size_t)n);
		rados_write_op_setxattr(op, XATTR_GENERATION, (const char *)&next, sizeof next);
		e = write_now(io, c->shard, op);
	}
	c->damage += !can;
	if (can)
		fsck_count_damage(c, c->repair && e == 0);
	return e == -ECANCELED ? 0 : e;
}

static int
check_shards(struct checking *c, const struct bucket_row *row)
{
	static const char *const kinds[] = { "u", "p", "o", "g" };
	int e = 0;

	for (uint32_t i = 0; e == 0 && i < row->shards; i++) {
		const struct label name = shard_name(row->uid, i);
		struct counters before = { 0 };

		c->shard = name.text;
		c->there = (struct quota_change){ 0 };
		e = check_generation(c, *row);
		if (e == 0)
			e = each_row(c->st, name.text, "c", on_counter, &before);
		for (size_t k = 0; e == 0 && k < sizeof kinds / sizeof *kinds; k++) {
			e = each_row(c->st, name.text, kinds[k], on_entry, c);
			if (kinds[k][0] == KEY_PART)
				fault_point("fsck.parts_read");
		}
		if (e == 0 && row->state == BUCKET_THERE)
			e = judge_counters(c, name.text, before.crc);
		if (e == -ENOENT && row->state == BUCKET_THERE) {
			fsck_tell(c, "bucket %s: shard %s of its index is missing: " LEFT_OUT, c->bucket,
				  name.text);
			c->damage++;
			c->is_blind = true;
		}
		if (e == -ENOENT)
			e = 0;
	}
	return e;
}

/* Checks the documents or the quota of a bucket. Without the row a client or operator can set them again. */
static int
check_setting(struct checking *c, const char *key, const char *val, size_t val_len)
{
	bool is_quota = key[0] == 'q';
	struct store_use max;
	struct battrs b;

	if ((is_quota ? bound_decode(val, val_len, &max) : battrs_decode(val, val_len, &b)) == 0)
		return 0;
	fsck_tell(c, "bucket %s: its %s damaged%s", key + 1,
		  is_quota ? "quota is" : "documents (CORS, lifecycle and others) are",
		  c->repair ? ": removed; set again" : "");
	fsck_count_damage(c, c->repair);
	c->shard = OBJECT_BUCKETS;
	return c->repair ? remove_row(c, key, val, val_len) : 0;
}

int
fsck_on_bucket(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct checking *c = cookie;
	struct bucket_row row;

	if (key[0] == 'a' || key[0] == 'q')
		return check_setting(c, key, val, val_len);
	if (key[0] != 'b' && key[0] != 'd')
		return 0;
	c->bucket = key + 1;
	if (key_len > 1 + STORE_BUCKET_MAX || bucket_decode(val, val_len, &row) < 0) {
		fsck_tell(c, "%sbucket %s: its row is damaged: " LEFT_OUT, key[0] == 'd' ? "removed " : "",
			  c->bucket);
		c->damage++;
		c->is_blind = true;
		return 0;
	}
	return check_shards(c, &row);
}
