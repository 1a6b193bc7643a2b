/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --fsck: reads all records of the index and the names of all data objects, and compares them. Reports data
 * objects that no record names, and missing data objects. The bytes are not read; the scrub reads them.
 *
 * Gateways may run at the same time. Three kinds of ids are left out: those that a running gateway may use;
 * those of a dead gateway that has not been cleaned up, whose last change may still arrive; those of gateways
 * that started after the check. The name of a data object moves in the index from a part to the object's
 * record, and from there to garbage, so the index is read in this order. A data object is reported as missing
 * only if a record still names it afterwards.
 */
#include "rados/use/fsck.h"

#include "base/crc64.h"
#include "rados/io/gateway_int.h"
#include "store/damage.h"
#include "store/meter.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_TRIES 5 /* attempts for a shard that changes all the time */

/* An id of data objects, or of a map, that a row names. */
struct named {
	struct rid id;
	uint32_t nr, found; /* number of its objects; number of those that were found */
	bool is_map;
};

struct live {
	uint32_t instance;
	uint64_t first;
};

struct checking {
	const struct rstore *st;
	bool repair;
	void (*say)(void *cookie, const char *line);
	void *cookie;
	struct named *named;
	size_t nr, cap;
	struct live *live;
	uint32_t live_nr;
	uint64_t next_instance; /* instance number of the next gateway when the check began */
	/* damage: number of errors that are left; would: those of them that a repair removes */
	uint64_t damage, would, removed;
	struct damage_sums *sums; /* NULL: no sums */
	struct meter_disk *meter; /* counts of the progress; NULL: none */
	/* names of the bucket and the shard that are being read */
	const char *bucket, *shard;
	struct quota_change there; /* usage of the shard, as counted */
};

/* The counters of a shard. */
struct counters {
	rados_write_op_t mend; /* sets every counter to 0, if no row has changed; NULL: not needed */
	uint64_t crc;          /* CRC of all rows */
	bool is_damaged;
	struct quota_change sum;
};

static void __attribute__((format(printf, 2, 3))) tell(struct checking *c, const char *fmt, ...)
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
	struct quota_change more;

	if (key[0] != KEY_UPLOAD &&
	    ((key[0] != KEY_OBJECT && key[0] != KEY_PART) || record_decode(val, val_len, &r) < 0))
		return 0;
	more = model_usage(key[0] == KEY_OBJECT ? MODEL_OBJECT
			   : key[0] == KEY_PART ? MODEL_PART
						: MODEL_UPLOAD,
			   &r.size_bytes, NULL);
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

	if (number)
		each_row(c->st, c->shard, "u", on_upload, &s);
	else if (key[0] == KEY_UPLOAD && key_len > ID_DIGITS)
		s.id = key + key_len - ID_DIGITS;
	if (key[0] == KEY_UPLOAD && key_len > ID_DIGITS)
		on_upload(&s, key, key_len, NULL, 0);
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

/* Counts damage that a repair can remove, or has removed. */
static void
count_damage(struct checking *c, bool is_removed)
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
	tell(c, "bucket %s: the record of %s is damaged%s", c->bucket, text, c->repair ? ": removed" : "");
	count_damage(c, c->repair);
	if (!c->sums || key[0] == KEY_GARBAGE)
		return;
	c->sums->all[DAMAGE_DROPPED].objects += key[0] == KEY_OBJECT;
	c->sums->all[DAMAGE_DROPPED].parts += key[0] != KEY_OBJECT;
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
		tell(c,
		     "bucket %s: %s counts %lld objects, %lld bytes, %lld uploads%s, and has %lld, %lld, "
		     "%lld%s",
		     c->bucket, shard, (long long)now.sum.objects, (long long)now.sum.bytes,
		     (long long)now.sum.uploads, now.is_damaged ? ", one of its counters is damaged" : "",
		     (long long)c->there.objects, (long long)c->there.bytes, (long long)c->there.uploads,
		     c->repair ? ": mended" : "");
		e = c->repair ? mend_counters(c, shard, &now) : 0;
		count_damage(c, c->repair && e == 0);
		e = e == -ECANCELED ? 0 : e;
	}
	if (now.mend)
		rados_release_write_op(now.mend);
	return e;
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
		e = each_row(c->st, name.text, "c", on_counter, &before);
		for (size_t k = 0; e == 0 && k < sizeof kinds / sizeof *kinds; k++) {
			e = each_row(c->st, name.text, kinds[k], on_entry, c);
			if (kinds[k][0] == KEY_PART)
				fault_point("fsck.parts_read");
		}
		if (e == 0 && row->state == BUCKET_THERE)
			e = judge_counters(c, name.text, before.crc);
		if (e == -ENOENT && row->state == BUCKET_THERE) {
			tell(c, "bucket %s: shard %s of its index is missing", c->bucket, name.text);
			c->damage++;
		}
		if (e == -ENOENT)
			e = 0;
	}
	return e;
}

static int
on_bucket(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct checking *c = cookie;
	char name[2 + STORE_BUCKET_MAX];
	struct bucket_row row;

	if ((key[0] != 'b' && key[0] != 'd') || key_len > sizeof name)
		return 0;
	snprintf(name, sizeof name, "%.*s", (int)key_len - 1, key + 1);
	c->bucket = name;
	if (bucket_decode(val, val_len, &row) < 0) {
		tell(c, "bucket %s: its row is damaged", name);
		c->damage++;
		return 0;
	}
	return check_shards(c, &row);
}

static int
on_gateway(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct checking *c = cookie;
	struct live *more = reallocarray(c->live, c->live_nr + 1, sizeof *more);
	struct gateway_row row;

	if (!more)
		return -ENOMEM;
	c->live = more;
	more += c->live_nr++;
	*more = (struct live){ .instance = (uint32_t)strtoul(key + 1, NULL, 10) };
	/* Any of its ids may be in use. */
	if (gateway_decode(val, val_len, &row) < 0) {
		tell(c, "gateway %u: its row is damaged: its data without an owner is left out",
		     more->instance);
		c->damage++;
		return 0;
	}
	more->first = row.first;
	if (key[0] == 'x')
		tell(c,
		     "gateway %u on %s is dead, and not cleaned up after yet: its operations in progress are "
		     "left out",
		     more->instance, row.host);
	return 0;
}

static int
read_gateways(struct checking *c)
{
	/* A gateway takes its number and sets its row in one operation: a gateway whose row is not found
	 * here has a higher number, or has ended. */
	int e = read_number(c->st, "N", &c->next_instance);

	/* The row of a gateway that is declared dead in the meantime moves from "i" to "x". */
	if (e >= 0)
		e = each_row(c->st, OBJECT_STORE, "i", on_gateway, c);
	if (e >= 0)
		e = each_row(c->st, OBJECT_STORE, "x", on_gateway, c);
	return e;
}

/* ---- data objects ---- */

static int
by_id(const void *a, const void *b)
{
	const struct rid *x = &((const struct named *)a)->id, *y = &((const struct named *)b)->id;

	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	return x->counter < y->counter ? -1 : x->counter > y->counter;
}

/* Sorts the names and removes duplicates: a name that moved in the meantime was found twice. */
static void
sort_named(struct checking *c)
{
	size_t nr = 0;

	if (!c->nr)
		return;
	qsort(c->named, c->nr, sizeof *c->named, by_id);
	for (size_t i = 1; i < c->nr; i++) {
		struct named *last = &c->named[nr], *n = &c->named[i];

		if (by_id(last, n) != 0)
			c->named[++nr] = *n;
		else if (n->found == UINT32_MAX)
			last->found = UINT32_MAX;
	}
	c->nr = nr + 1;
}

static struct named *
find(const struct checking *c, struct rid id)
{
	const struct named key = { .id = id };

	return c->nr ? bsearch(&key, c->named, c->nr, sizeof *c->named, by_id) : NULL;
}

static bool
is_under_way(const struct checking *c, struct rid id)
{
	if (id.instance >= c->next_instance)
		return true;
	for (uint32_t i = 0; i < c->live_nr; i++) {
		if (c->live[i].instance == id.instance && id.counter >= c->live[i].first)
			return true;
	}
	return false;
}

static int
look_at(struct checking *c, enum pool pool, const char *name, struct rid id, uint32_t n, bool is_map)
{
	struct named *found = find(c, id);
	uint64_t size;
	time_t mtime;
	int e;

	if (found && (is_map ? found->is_map : n < found->nr)) {
		found->found += found->found != UINT32_MAX;
		return 0;
	}
	if (is_under_way(c, id))
		return 0;
	tell(c, "%s %s has no owner%s", is_map ? "map" : "data object", name, c->repair ? ": removed" : "");
	count_damage(c, c->repair);
	if (c->sums && rados_stat(c->st->client[0].io[pool], name, &size, &mtime) == 0) {
		c->sums->unnamed.objects++;
		c->sums->unnamed.bytes += size;
	}
	if (!c->repair)
		return 0;
	e = rados_remove(c->st->client[0].io[pool], name);
	return e == -ENOENT ? 0 : e;
}

static int
each_object(struct checking *c, enum pool pool)
{
	rados_list_ctx_t list;
	const char *name;
	int e = rados_nobjects_list_open(c->st->client[0].io[pool], &list);

	if (e < 0)
		return e;
	while ((e = rados_nobjects_list_next(list, &name, NULL, NULL)) == 0) {
		unsigned long long counter;
		struct rid id;
		uint32_t n = 0;
		int end = 0;

		meter_add(c->meter, 1);
		if (pool == POOL_DATA)
			sscanf(name, "%8x.%16llx.%8x%n", &id.instance, &counter, &n, &end);
		else
			sscanf(name, "map.%8x.%16llx%n", &id.instance, &counter, &end);
		if (!end || name[end]) {
			/* The meta pool has other objects as well; the data pool has one with the
			 * description of the store. */
			if (pool == POOL_DATA && strcmp(name, OBJECT_STORE) != 0) {
				tell(c, "data object %s: no name of ours", name);
				c->damage++;
			}
			continue;
		}
		id.counter = counter;
		e = look_at(c, pool, name, id, n, pool == POOL_META);
		if (e < 0)
			break;
	}
	rados_nobjects_list_close(list);
	return e == -ENOENT ? 0 : e;
}

static bool
is_missing(const struct checking *c, const struct named *n)
{
	return n->found < n->nr && !is_under_way(c, n->id);
}

/* Reports missing data objects that a second reading of the index still finds: the others were replaced or
 * deleted in the meantime. */
static int
tell_missing(struct checking *c)
{
	struct checking again = { .st = c->st };
	bool any = false;
	int e = 0;

	for (size_t i = 0; i < c->nr && !any; i++)
		any = is_missing(c, &c->named[i]);
	if (any)
		e = each_row(c->st, OBJECT_BUCKETS, "", on_bucket, &again);
	if (e == 0)
		sort_named(&again);
	for (size_t i = 0; e == 0 && any && i < c->nr; i++) {
		const struct named *n = &c->named[i], *still = find(&again, n->id);

		if (!is_missing(c, n) || !still || still->found == UINT32_MAX)
			continue;
		tell(c, "%s%s: %u of %u objects are missing", n->is_map ? "map." : "", rid_text(n->id).text,
		     n->nr - n->found, n->nr);
		c->damage++;
	}
	free(again.named);
	return e;
}

int
fsck_store(const struct rstore *st, enum fsck_mode mode, struct damage_sums *sums, struct meter_disk *meter,
	   void (*say)(void *cookie, const char *line), void *cookie)
{
	struct checking c = { .st = st,
			      .repair = mode == FSCK_REPAIR,
			      .sums = sums,
			      .meter = meter,
			      .say = say,
			      .cookie = cookie };
	int e = read_gateways(&c);

	fault_point("fsck.gateways");
	if (e == 0)
		e = each_row(st, OBJECT_BUCKETS, "", on_bucket, &c);
	if (e == 0) {
		sort_named(&c);
		fault_point("fsck.index");
		meter_step(meter, METER_NAMES, 0);
		e = each_object(&c, POOL_DATA);
	}
	if (e == 0)
		e = each_object(&c, POOL_META);
	if (e == 0)
		e = tell_missing(&c);
	free(c.named);
	free(c.live);
	if (e == 0 && mode == FSCK_PREVIEW && c.would)
		return 1;
	return e < 0 ? e : c.damage ? -ENOTRECOVERABLE : c.removed ? 1 : 0;
}
