/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A history of a set of disks, see sim.h: lives with some of them away, of which one may stop before the others do or
 * fail, and starts with any of them, cut anywhere.
 *
 * The checker sees answers alone.  Each key and each bucket's attributes belong to one client, which changes them one
 * after the other; so what may be there is a handful of values: the last that was acknowledged, and those behind it whose
 * outcome nobody knows.  What was seen once after a start is what is there.
 */
#include "tests/sim/many_int.h"

#include "base/check.h"
#include "store/set.h"
#include "store/set_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct cell many_keys[BUCKETS][KEYS], many_buckets[BUCKETS];
static struct cell battr[BUCKETS];
uint64_t many_events;
static int bucket_ops[BUCKETS];        /* changes of it under way */
static uint64_t bucket_over[BUCKETS];  /* the last event at which one ended */
static uint64_t bucket_mixed[BUCKETS]; /* the last event at which two were */
static unsigned members, away;         /* bits */
static uint8_t home[STORE_SLOT_NR];
static uint8_t uuid[DISKS_MAX][UUID_BYTES];
static unsigned last_in; /* who took part in the table that acted last */
uint32_t many_ids;
static int start_result;
static char start_error[1024];
static unsigned faulty; /* disks that may fail in this life; one that stops */

/* ---- cells ---- */

void
cell_set(struct cell *c, uint32_t id)
{
	if (c->nr != 1 || c->may[0] != id)
		c->since = ++many_events;
	c->may[0] = id;
	c->nr = 1;
}

bool
cell_may_be(const struct cell *c, uint32_t id)
{
	for (int i = 0; i < c->nr; i++) {
		if (c->may[i] == id)
			return true;
	}
	return c->pending == id;
}

void
cell_may_too(struct cell *c, uint32_t id)
{
	for (int i = 0; i < c->nr; i++) {
		if (c->may[i] == id)
			return;
	}
	check(c->nr < MAY_MAX);
	c->may[c->nr++] = id;
	c->since = ++many_events;
}

/* Somebody saw it. */
void
cell_seen(struct cell *c, uint32_t id, const char *what, int b, int k)
{
	if (!cell_may_be(c, id)) {
		for (int i = 0; i < c->nr; i++)
			say("may be %u", c->may[i]);
		sim_fail("%s of bucket %d, key %d: holds %u, may hold %u%s", what, b, k, id,
			 c->nr ? c->may[0] : 0, c->nr > 1 ? ", or others" : "");
	}
	if (c->pending == UNKNOWN_ID && !c->is_open)
		cell_set(c, id);
}

/* ---- names ---- */

struct store_key
many_key(int b, int k)
{
	return (struct store_key){ .bucket = bucket_name(b),
				   .key = key_name(k),
				   .bucket_len = (uint16_t)strlen(bucket_name(b)),
				   .key_len = (uint16_t)strlen(key_name(k)) };
}

int
many_home(int b, int k)
{
	struct store_key sk = many_key(b, k);

	return home[set_slot(&sk)];
}

bool
many_is_away(int b, int k)
{
	return away >> many_home(b, k) & 1;
}

int
many_etag_nr(const struct store_etag *e)
{
	uint32_t id;

	memcpy(&id, e->sum, sizeof id);
	return (int)id;
}

/* ---- clients ---- */

struct many_client many_clients[CLIENTS];
static _Alignas(4096) char memory[CLIENTS][STORE_PIECE + BUF_SLACK_BYTES];

static void
on_done(struct store_op *op)
{
	container_of(op, struct many_client, u.op)->flag = true;
}

struct store_port *
many_port(struct many_client *c)
{
	struct sim_port *sp = &ports[c->port];

	if (sp->asleep)
		store_wake(sp->p);
	sp->asleep = false;
	return sp->p;
}

void
many_begin(struct many_client *c)
{
	static const bool yes = true;

	c->port = (int)below((uint32_t)prof.ports);
	co_wait(&yes, c->port);
	memset(&c->u, 0, sizeof c->u);
	c->u.op.done = on_done;
	c->flag = false;
}

/* The result of an operation whose start said r. */
int
many_wait(struct many_client *c, int r)
{
	if (r < 0)
		return r;
	if (r == 0)
		co_wait(&c->flag, c->port);
	return c->u.op.result;
}

/* The disks that have failed in this life. */
static unsigned
failed(void)
{
	const struct set *set = set_of(sim_store);
	unsigned bits = 0;

	for (int i = 0; i < set->nr; i++)
		bits |= (unsigned)disk_failed(&extent_store(set->engine[i])->vol->disk) << set->number[i];
	return bits;
}

static unsigned
numbers_of(uint64_t engines)
{
	const struct set *set = set_of(sim_store);
	unsigned bits = 0;

	for (int i = 0; i < set->nr; i++)
		bits |= (unsigned)(engines >> i & 1) << set->number[i];
	return bits;
}

static bool
is_below_half(void)
{
	return 2 * __builtin_popcount(members & ~away & ~failed()) < __builtin_popcount(members);
}

/* May it be answered so?  What only one of those disks explains, or that fewer than half are left. */
void
many_check_error(int r, unsigned disks, const char *what)
{
	if (r == -EAGAIN)
		counts.not_now++;
	else if (r == -ENODEV && !(away & disks))
		sim_fail("%s is told that a disk is missing, and none that it needs is", what);
	else if ((r == -ECANCELED || r == -EIO || r == -EROFS) && !(failed() & disks) && !is_below_half())
		sim_fail("%s ends with %d, and no disk that it needs failed", what, r);
	else if (r != -ENODEV && r != -ECANCELED && r != -EIO && r != -EROFS)
		sim_fail("%s ends with %d", what, r);
}

/* Where some disks have made the change, and one has no room for it now, nobody knows. */
static void
check_bucket_error(int r, bool needs_all, const char *what)
{
	if (r != -ECANCELED)
		many_check_error(r, needs_all ? ~0u : 0, what);
}

/* A change of a cell ended so: done, not done, or nobody knows. */
void
cell_over(struct cell *c, int r, uint32_t id)
{
	c->pending = UNKNOWN_ID;
	if (r >= 0) {
		cell_set(c, id);
		c->is_open = false;
	} else if (r != -ENODEV && r != -ENXIO && r != -EAGAIN && r != -ENOENT && r != -EROFS) {
		cell_may_too(c, id);
		c->is_open = true;
	}
}

static void
do_put(struct many_client *c, int b, int k)
{
	struct store_key sk = many_key(b, k);
	struct store_commit sc = { .inline_data = NULL };
	struct cell *cell = &many_keys[b][k];
	uint32_t id = ++many_ids, size = one_in(2) ? 8 : SIZE;
	bool is_gone;
	int r;

	many_begin(c);
	is_gone = cell_may_be(&many_buckets[b], 0);
	counts.puts++;
	cell->pending = id;
	cell->since = ++many_events;
	say("client %d puts %u in bucket %d key %d, at home on %d", c->nr, id, b, k, many_home(b, k));
	memcpy(sc.meta.etag.sum, &id, sizeof id);
	r = store_put_init(many_port(c), &c->u.put, &sk, size);
	if (r >= 0 && size == SIZE) {
		memset(c->buf.mem, (int)id, SIZE);
		sc.last = &c->buf;
		sc.last_len = SIZE;
	} else if (r >= 0) {
		sc.inline_data = "inlined!";
		sc.inline_len = 8;
	}
	if (r >= 0)
		r = many_wait(c, store_put_commit(many_port(c), &c->u.put, &sc));
	store_put_abort(many_port(c), &c->u.put);
	say("put of %u: %d", id, r);
	if (r >= 0 && many_is_away(b, k))
		sim_fail("a PUT of bucket %d key %d is acknowledged, and its disk is away", b, k);
	cell_over(cell, r, id);
	if (r == -ENXIO && !is_gone && !cell_may_be(&many_buckets[b], 0) &&
	    many_buckets[b].since < cell->since)
		sim_fail("a PUT is told that bucket %d is not there, and it was all the time", b);
	if (r < 0 && r != -ENXIO)
		many_check_error(r, 1u << many_home(b, k), "a PUT");
}

static void
do_del(struct many_client *c, int b, int k)
{
	struct store_key sk = many_key(b, k);
	struct cell *cell = &many_keys[b][k];
	int r;

	many_begin(c);
	counts.dels++;
	cell->pending = 0;
	cell->since = ++many_events;
	say("client %d deletes bucket %d key %d", c->nr, b, k);
	r = many_wait(c, store_delete(many_port(c), &sk, NULL, &c->u.del));
	say("delete: %d", r);
	if (r >= 0 && many_is_away(b, k))
		sim_fail("a delete of bucket %d key %d is acknowledged, and its disk is away", b, k);
	cell_over(cell, r, 0);
	if (r < 0 && r != -ENXIO)
		many_check_error(r, 1u << many_home(b, k), "a delete");
}

static void
do_get(struct many_client *c, int b, int k)
{
	struct store_key sk = many_key(b, k);
	uint64_t since;
	bool is_there;
	int r;

	many_begin(c);
	is_there = !cell_may_be(&many_buckets[b], 0);
	since = ++many_events;
	counts.gets++;
	r = many_wait(c, store_open(many_port(c), &sk, &c->u.obj));
	if (r == -ENODEV || r == -EAGAIN) {
		many_check_error(r, 1u << many_home(b, k), "a GET");
		return;
	}
	if (many_is_away(b, k))
		sim_fail("a GET of bucket %d key %d is answered %d, and its disk is away", b, k, r);
	if (r < 0 && r != -ENOENT && r != -ENXIO)
		sim_fail("open: %d", r);
	if (r == -ENXIO && is_there && !cell_may_be(&many_buckets[b], 0) && many_buckets[b].since < since)
		sim_fail("a GET is told that bucket %d is not there, and it was all the time", b);
	say("client %d sees %d in bucket %d key %d", c->nr, r < 0 ? 0 : many_etag_nr(&c->u.obj.meta.etag), b,
	    k);
	cell_seen(&many_keys[b][k], r < 0 ? 0 : (uint32_t)many_etag_nr(&c->u.obj.meta.etag), "the object", b,
		  k);
	if (r >= 0)
		store_close(many_port(c), &c->u.obj);
}

static void
do_battr(struct many_client *c, int b)
{
	struct cell *cell = &battr[b];
	uint32_t id = ++many_ids;
	int r;

	many_begin(c);
	counts.attrs++;
	cell->pending = id;
	cell->since = ++many_events;
	memset(c->attrs, 0, sizeof c->attrs);
	memcpy(c->attrs, &id, sizeof id);
	say("client %d sets attributes %u of bucket %d", c->nr, id, b);
	r = many_wait(c, store_bucket_set_attrs(many_port(c), bucket_name(b), strlen(bucket_name(b)),
						STORE_VERSION_ANY, c->attrs, sizeof c->attrs, &c->u.set));
	say("attributes %u: %d", id, r);
	cell_over(cell, r, id);
	if (r < 0 && r != -ENXIO)
		check_bucket_error(r, false, "setting a bucket's attributes");
}

static uint32_t
attrs_id(const void *attrs, uint32_t len)
{
	uint32_t id = 0;

	if (len)
		memcpy(&id, attrs, sizeof id);
	return id;
}

static void
see_battr(struct many_client *c, int b)
{
	char attrs[64];
	uint64_t since;
	int r;

	many_begin(c);
	since = ++many_events;
	r = many_wait(c, store_bucket_get_attrs(many_port(c), bucket_name(b), strlen(bucket_name(b)), attrs,
						sizeof attrs, &c->u.stat));
	if (r >= 0 && !many_bucket_changed(b, since))
		cell_seen(&battr[b], attrs_id(attrs, c->u.stat.attrs_len), "the attributes", b, -1);
}

/* ---- buckets ---- */

static void
bucket_begin(int b, uint32_t pending)
{
	many_buckets[b].pending = pending;
	if (!bucket_ops[b]++)
		return;
	bucket_mixed[b] = ++many_events;
	cell_may_too(&many_buckets[b], 0);
	cell_may_too(&many_buckets[b], 1);
}

/* Was there another change of it since? */
static bool
bucket_end(int b, uint64_t since)
{
	bucket_over[b] = ++many_events;
	if (--bucket_ops[b])
		bucket_mixed[b] = ++many_events;
	return bucket_mixed[b] > since;
}

bool
many_bucket_changed(int b, uint64_t since)
{
	return bucket_ops[b] || bucket_over[b] > since;
}

static void
do_make(struct many_client *c, int b)
{
	bool could_be, could_not, mixed;
	uint64_t since;
	int r;

	many_begin(c);
	could_be = cell_may_be(&many_buckets[b], 1);
	could_not = cell_may_be(&many_buckets[b], 0);
	since = ++many_events;
	bucket_begin(b, 1);
	say("client %d makes bucket %d", c->nr, b);
	r = many_wait(c,
		      store_bucket_create(many_port(c), bucket_name(b), strlen(bucket_name(b)), &c->u.del));
	say("making bucket %d: %d", b, r);
	mixed = bucket_end(b, since);
	if (r != 0 && r != -EEXIST)
		check_bucket_error(r, false, "making a bucket");
	if (!mixed && ((r == -EEXIST && !could_be) || (r == 0 && !could_not)))
		sim_fail("making bucket %d is answered %d", b, r);
	if (mixed) {
		if (!bucket_ops[b])
			many_buckets[b].pending = UNKNOWN_ID;
		uploads_end_with(b, false, false);
		cell_may_too(&many_buckets[b], 0);
		cell_may_too(&many_buckets[b], 1);
		many_buckets[b].is_open |= r < 0 && r != -EEXIST;
		cell_may_too(&battr[b], 0);
	} else {
		cell_over(&many_buckets[b], r == -EEXIST ? 0 : r, 1);
		if (r == 0 && battr[b].since < since)
			cell_set(&battr[b], 0);
	}
}

/* Is an object there, and was it ever since? */
static int
there_since(int b, uint64_t since)
{
	for (int k = 0; k < KEYS; k++) {
		const struct cell *c = &many_keys[b][k];

		if (!cell_may_be(c, 0) && c->since < since)
			return k;
	}
	return -1;
}

static void
bucket_is_gone(int b)
{
	for (int k = 0; k < KEYS; k++) {
		struct cell *c = &many_keys[b][k];

		if (c->pending == UNKNOWN_ID && !c->is_open)
			cell_set(c, 0);
		else if (!cell_may_be(c, 0))
			cell_may_too(c, 0);
	}
}

static void
do_remove(struct many_client *c, int b)
{
	bool could_be, could_not, mixed, empty = true;
	uint64_t since;
	int r, k;

	many_begin(c);
	could_be = cell_may_be(&many_buckets[b], 1);
	could_not = cell_may_be(&many_buckets[b], 0);
	since = ++many_events;
	for (k = 0; k < KEYS; k++)
		empty &= many_keys[b][k].nr == 1 && many_keys[b][k].may[0] == 0 &&
			 many_keys[b][k].pending == UNKNOWN_ID && !many_keys[b][k].is_open;
	bucket_begin(b, 0);
	say("client %d removes bucket %d", c->nr, b);
	r = many_wait(c,
		      store_bucket_delete(many_port(c), bucket_name(b), strlen(bucket_name(b)), &c->u.del));
	say("removing bucket %d: %d", b, r);
	mixed = bucket_end(b, since);
	if (r != 0 && r != -ENXIO && r != -ENOTEMPTY)
		check_bucket_error(r, true, "removing a bucket");
	if (!mixed && ((r == -ENXIO && !could_not) || ((r == 0 || r == -ENOTEMPTY) && !could_be)))
		sim_fail("removing bucket %d is answered %d", b, r);
	k = there_since(b, since);
	if (r == 0 && k >= 0)
		sim_fail("bucket %d is removed, and key %d was acknowledged", b, k);
	for (int i = 0; r == -ENOTEMPTY && empty && i < KEYS; i++) {
		empty &= many_keys[b][i].since < since;
		if (i == KEYS - 1 && empty)
			sim_fail("bucket %d is said to have objects, and was empty", b);
	}
	if (mixed || r == 0 || r == -ECANCELED)
		uploads_end_with(b, r == 0 && !mixed, r == -ECANCELED);
	if (r == 0 && !mixed) {
		bucket_is_gone(b);
		cell_set(&battr[b], 0);
	} else if (mixed || r == -ECANCELED) {
		for (int i = 0; i < KEYS; i++) {
			if (cell_may_be(&many_keys[b][i], 0) || mixed)
				cell_may_too(&many_keys[b][i], 0);
		}
		cell_may_too(&battr[b], 0);
	}
	if (mixed) {
		if (!bucket_ops[b])
			many_buckets[b].pending = UNKNOWN_ID;
		cell_may_too(&many_buckets[b], 0);
		cell_may_too(&many_buckets[b], 1);
		many_buckets[b].is_open |= r == -ECANCELED;
	} else if (r == -ENOTEMPTY) {
		many_buckets[b].pending = UNKNOWN_ID;
	} else {
		cell_over(&many_buckets[b], r == -ENXIO ? 0 : r, 0);
	}
}

/* In the middle of everything: who is asked may have failed. */
static void
do_look(struct many_client *c, int b)
{
	uint64_t since;
	int r;

	many_begin(c);
	since = ++many_events;
	r = many_wait(c, store_bucket_head(many_port(c), bucket_name(b), strlen(bucket_name(b)), &c->u.stat));
	if (r < 0 && r != -ENXIO)
		sim_fail("a look at bucket %d: %d", b, r);
	say("client %d looks at bucket %d: %d", c->nr, b, r);
	if (many_bucket_changed(b, since))
		return;
	cell_seen(&many_buckets[b], r == 0, "the bucket", b, -1);
	see_battr(c, b);
}

/* ---- listing ---- */

static bool there[BUCKETS];
static uint32_t listed[KEYS];

static bool
on_bucket(struct store_list *ls, const struct store_entry *e)
{
	for (int b = 0; b < BUCKETS; b++) {
		if (e->name_len == strlen(bucket_name(b)) && !memcmp(e->name, bucket_name(b), e->name_len))
			there[b] = true;
	}
	return true;
}

static bool
on_key(struct store_list *ls, const struct store_entry *e)
{
	for (int k = 0; k < KEYS; k++) {
		if (e->name_len == strlen(key_name(k)) && !memcmp(e->name, key_name(k), e->name_len))
			listed[k] = (uint32_t)many_etag_nr(&e->etag);
	}
	return true;
}

static void
see_buckets(struct many_client *c)
{
	many_begin(c);
	memset(there, 0, sizeof there);
	c->u.ls.max = 100;
	c->u.ls.entry = on_bucket;
	if (many_wait(c, store_list(many_port(c), &c->u.ls)) < 0)
		sim_fail("listing buckets: %d", c->u.op.result);
	for (int b = 0; b < BUCKETS; b++) {
		say("bucket %d: %d", b, there[b]);
		cell_seen(&many_buckets[b], there[b], "the bucket", b, -1);
		/* What nobody answered may have removed it; if it is there its uploads are. */
		if (!there[b])
			uploads_end_with(b, true, false);
	}
}

static void
see_list(struct many_client *c, int b)
{
	int r;

	many_begin(c);
	memset(listed, 0, sizeof listed);
	c->u.ls.max = 100;
	c->u.ls.entry = on_key;
	c->u.ls.bucket = bucket_name(b);
	c->u.ls.bucket_len = (uint16_t)strlen(bucket_name(b));
	r = many_wait(c, store_list(many_port(c), &c->u.ls));
	if (away && r != -ENODEV)
		sim_fail("a list is answered %d, and a disk is away", r);
	if (r < 0 && r != -ENXIO)
		many_check_error(r, away, "a list");
	for (int k = 0; k < KEYS && r >= 0; k++)
		cell_seen(&many_keys[b][k], listed[k], "the entry", b, k);
}

/* Reads all there is, when nothing else runs. */
static void
verify_main(int nr)
{
	struct many_client *c = &many_clients[0];

	uploads_look();
	see_buckets(c);
	for (int b = 0; b < BUCKETS; b++) {
		see_battr(c, b);
		for (int k = 0; k < KEYS; k++)
			do_get(c, b, k);
		see_list(c, b);
		uploads_see_list(c, b, away);
	}
	uploads_see(c);
}

/* What engines have, side by side. */
static bool same_there[BUCKETS];
static uint64_t same_time[BUCKETS];

static bool
on_same(struct store_list *ls, const struct store_entry *e)
{
	for (int b = 0; b < BUCKETS; b++) {
		if (e->name_len == strlen(bucket_name(b)) && !memcmp(e->name, bucket_name(b), e->name_len)) {
			same_there[b] = true;
			same_time[b] = e->mtime_ns;
		}
	}
	return true;
}

/* Nothing has run since the start: the buckets of all disks are alike; without M32 not their times, and what comes of
 * that is to be found. */
static void
engines_agree(void)
{
	const struct set_port *sp = set_port(ports[0].p);
	bool first[BUCKETS];
	uint64_t time[BUCKETS];
	uint32_t attrs[BUCKETS];

	for (int i = 0; i < sp->nr; i++) {
		struct store_list ls = { .max = 100, .entry = on_same };

		memset(same_there, 0, sizeof same_there);
		if (store_list(sp->engine[i], &ls) != 1)
			sim_fail("an engine cannot list its buckets");
		for (int b = 0; b < BUCKETS; b++) {
			struct store_stat st;
			char mem[64];
			uint32_t id = 0;

			if (same_there[b] &&
			    store_bucket_get_attrs(sp->engine[i], bucket_name(b), strlen(bucket_name(b)), mem,
						   sizeof mem, &st) == 1)
				id = attrs_id(mem, st.attrs_len);
			if (i &&
			    (same_there[b] != first[b] ||
			     (first[b] && ((same_time[b] != time[b] && sim_rule_on[SIM_OLDER_THAN_BUCKET]) ||
					   id != attrs[b]))))
				sim_fail("bucket %d is not the same on all disks", b);
			first[b] = same_there[b];
			time[b] = same_time[b];
			attrs[b] = id;
		}
	}
}

/* One that stops is said to have failed, as a time-out does; then it may go on: what it was given is late. */
static void
look_at_hung(void)
{
	struct set *set = set_of(sim_store);

	for (int i = 0; i < set->nr; i++) {
		if (simdisk_hung == 1u << set->number[i] && one_in(8))
			disk_fail(&extent_store(set->engine[i])->vol->disk, "it takes too long");
	}
	if ((simdisk_hung & failed()) && one_in(16))
		simdisk_hung = 0;
}

static void
one_op(struct many_client *c)
{
	int b = one_in(2), k = c->nr + CLIENTS * (int)below(KEYS / CLIENTS);
	uint32_t w =
		below(prof.w_put + prof.w_del + prof.w_get + prof.w_bucket + prof.w_attrs + prof.w_upload);

	if (w >= prof.w_put + prof.w_del + prof.w_get + prof.w_bucket + prof.w_attrs) {
		upload_any(c, b, k);
		return;
	}
	if (w < prof.w_put + prof.w_del && !many_keys[b][k].is_open) {
		if (w < prof.w_put)
			do_put(c, b, k);
		else
			do_del(c, b, k);
		return;
	}
	w -= w < prof.w_put ? 0 : prof.w_put;
	if (w < prof.w_del + prof.w_get ||
	    (w < prof.w_del + prof.w_get + prof.w_attrs && (c->nr >= BUCKETS || battr[c->nr].is_open))) {
		if (one_in(4))
			do_look(c, b);
		else
			do_get(c, b, k);
	} else if (w < prof.w_del + prof.w_get + prof.w_attrs)
		do_battr(c, c->nr); /* of each bucket they are one client's */
	else if (!cell_may_be(&many_buckets[0], 1))
		do_make(c, 0);
	else if (one_in(2))
		do_make(c, 1);
	else
		do_remove(c, 1);
}

static void
client_main(int nr)
{
	struct many_client *c = &many_clients[nr];

	while (ops_left-- > 0) {
		if (simdisk_hung)
			look_at_hung();
		one_op(c);
	}
}

/* ---- lives ---- */

static void
dies(bool cut)
{
	unsigned before = last_in;

	say("%s", cut ? "cut" : "kill");
	counts.cuts += cut;
	counts.kills += !cut;
	if (sim_store)
		last_in = numbers_of(atomic_load(&set_of(sim_store)->in));
	if (cut) {
		simdisk_cut();
		sim_boot++;
	} else {
		simdisk_kill();
	}
	simdisk_hung = 0;
	simdisk_faulty = ~0u;
	sched_drop();
	rings_drop();
	sim_store = NULL;
	env_drop_memory();
	/* The first of those in service, and whoever was it in this life. */
	uploads_die(before & (2 * (last_in & -last_in) - 1));
	/* What was begun happens now, or never. */
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = -2; k < KEYS; k++) {
			struct cell *c = k == -2 ? &many_buckets[b] : k == -1 ? &battr[b] : &many_keys[b][k];

			if (c->pending != UNKNOWN_ID) {
				cell_may_too(c, c->pending);
				if (c == &many_buckets[b])
					cell_may_too(&battr[b], 0);
			}
			c->pending = UNKNOWN_ID;
			c->is_open = false;
		}
	}
	memset(bucket_ops, 0, sizeof bucket_ops);
}

static struct store_disk_conf paths[DISKS_MAX + 1];
static uint8_t missing[DISKS_MAX][UUID_BYTES], given_up[1][UUID_BYTES];

static bool accepts_all; /* whoever is missing may be */

static struct store_conf
conf_of(void)
{
	static const char *const names[DISKS_MAX] = { "sim", "sim1", "sim2", "sim3" };
	struct store_conf conf = { .ops = &store_set_ops,
				   .disks.disk = paths,
				   .disks.engine = &extent_ops,
				   .disks.engines_max = STORE_SET_MAX,
				   .disks.index_bytes = (uint64_t)DISKS_MAX * prof.index_bytes,
				   .disks.accept_missing = (const uint8_t(*)[UUID_BYTES])missing,
				   .disks.lock_wait_ns = 3600 * NS_PER_S,
				   .ports_max = PORTS_MAX };
	int from = (int)below((uint32_t)prof.disks);

	/* In any order. */
	for (int i = 0; i < prof.disks; i++) {
		int d = (from + i) % prof.disks;

		if (!(members >> d & 1))
			continue;
		if (away >> d & 1 || accepts_all)
			memcpy(missing[conf.disks.accept_missing_nr++], uuid[d], UUID_BYTES);
		paths[conf.disks.nr++].path = names[d];
	}
	return conf;
}

static int twice; /* a path is there twice */

static void
start_main(int nr)
{
	struct store_conf conf = conf_of();
	struct store *st;

	if (twice) {
		paths[conf.disks.nr] = paths[below((uint32_t)conf.disks.nr)];
		conf.disks.nr++;
	}
	start_result = store_start(&conf, &st, start_error, sizeof start_error);
	if (start_result < 0)
		return;
	for (int i = 0; i < prof.ports; i++) {
		struct sim_port *sp = &ports[i];

		check(ring_new(&(struct ring_params){ .entries = 128 }, &sp->ring) == 0);
		check(mailbox_init(&sp->mb) == 0);
		sp->timers = (struct timers){ 0 };
		sp->there = true;
		check(store_attach(st, sp->ring, &sp->mb, &sp->timers, &sp->p) == 0);
	}
	sim_store = st;
	engines_agree();
}

static void
forget_main(int nr)
{
	struct store_conf conf = conf_of();

	conf.disks.accept_missing_nr = 0;
	conf.disks.forget = (const uint8_t(*)[UUID_BYTES])given_up;
	conf.disks.forget_nr = 1;
	start_result = store_forget(&conf, start_error, sizeof start_error);
}

static bool
start_over(void)
{
	return !co_runs(CO_START, 0);
}

static bool
over(void)
{
	for (int i = 0; i < CLIENTS; i++) {
		if (co_runs(CO_CLIENT, i))
			return false;
	}
	return true;
}

static int
count(unsigned bits)
{
	return __builtin_popcount(bits);
}

/* True: it serves. */
static bool
start(uint64_t life)
{
	unsigned present = members & ~away, serving = 0;

	say("start: members %x, away %x", members, away);
	sim_absent = away | ~members;
	start_result = 0;
	start_error[0] = 0;
	counts.starts++;
	for (int i = 0; i < CLIENTS; i++) {
		many_clients[i] = (struct many_client){ .nr = i };
		many_clients[i].buf = (struct buf){ .mem = memory[i], .cap_bytes = STORE_PIECE };
	}
	/* One that may fail may do so on the way. */
	uploads_start(present & ~faulty, false);
	co_start(CO_START, 0, start_main);
	if (!sim_go(start_over, life)) {
		dies(true);
		return false;
	}
	say("start: %d %s", start_result, start_error);
	trace(40, (uint64_t)(int64_t)start_result, present);
	if (start_result == 0) {
		/* One that failed on the way is away. */
		serving = numbers_of(set_all(set_of(sim_store)));
		if ((present & ~serving & ~faulty) || (serving & ~present))
			sim_fail("started with disks %x of %x", serving, present);
		away |= present & ~serving;
		present = serving;
		if (2 * count(present) < count(members))
			sim_fail("started with %d of %d disks", count(present), count(members));
		if (twice)
			sim_fail("started with a disk that is there twice");
		last_in = present;
		uploads_start(present, true);
		return true;
	}
	if (start_result == -EAGAIN) {
		/* Buckets are made alike without a snapshot in between: the next start makes one first. */
		counts.not_now++;
		dies(false);
		return false;
	}
	if (!faulty && !twice && 2 * count(present) > count(members))
		sim_fail("with %d of %d disks the start fails: %d %s", count(present), count(members),
			 start_result, start_error);
	if (start_result != -EINVAL && !faulty)
		sim_fail("the start is refused with %d: %s", start_result, start_error);
	dies(false);
	return false;
}

/* True: it was not cut. */
static bool
give_up(uint64_t life)
{
	bool is_over = true;

	for (int tries = 0; tries < 20 && is_over; tries++) {
		sim_absent = away | ~members;
		start_result = 0;
		co_start(CO_START, 0, forget_main);
		is_over = sim_go(start_over, life);
		dies(true);
		if (start_result != -EAGAIN)
			break;
	}
	say("given up: %d %s", start_result, start_error);
	return is_over;
}

/* A disk that is away is given up. */
static void
forget(void)
{
	int d = away ? __builtin_ctz(away) : 0;
	unsigned had = members;
	uint64_t life = one_in(2) ? 1 + below(200) : 0;
	bool is_over = false;

	/* Of buckets the others know nothing that counts. */
	if (count(away & members) != 1 || !(last_in & ~away))
		return;
	memcpy(given_up[0], uuid[d], UUID_BYTES);
	say("disk %d is given up", d);
	is_over = give_up(life);
	if (is_over && start_result < 0)
		sim_fail("a disk that is away cannot be given up: %d %s", start_result, start_error);
	/* Behind a cut it is done, or not. */
	if (!is_over && give_up(0) && start_result < 0 &&
	    !strstr(start_error, "does not belong to this store"))
		sim_fail("a disk cannot be given up behind a cut: %d %s", start_result, start_error);
	members = had & ~(1u << d);
	away &= members;
	/* Begun and not finished, it is finished by a start. */
	if (!is_over && start(0))
		dies(true);
	counts.given_up++;
	uploads_given_up(d);
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < KEYS; k++) {
			if (many_home(b, k) == d)
				cell_set(&many_keys[b][k], 0);
		}
	}
}

/* Of slots only those of a disk that was given up have another home. */
static void
look_at_homes(void)
{
	const struct set *s = set_of(sim_store);
	const struct disk_table *t = &extent_store(s->engine[0])->vol->disk.sb.table;

	if (t->members != members)
		sim_fail("the table has members %llx", (unsigned long long)t->members);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (members >> home[i] & 1 ? t->home[i] != home[i] : !(members >> t->home[i] & 1))
			sim_fail("slot %d was at home on disk %d, is on %d", i, home[i], t->home[i]);
		if ((s->home[i] == SET_NOWHERE) != (away >> t->home[i] & 1))
			sim_fail("slot %d is not where the table has it", i);
		home[i] = t->home[i];
	}
}

/* Some disks, often one. */
static void
may_fail(void)
{
	simdisk_faulty = 1u << below((uint32_t)prof.disks);
	if (one_in(2))
		simdisk_faulty |= below(1u << prof.disks);
	faulty |= simdisk_faulty;
	sim_disk_may_fail = true;
	say("disks %x may fail", simdisk_faulty);
}

static void
live(bool calm)
{
	uint64_t life = calm ? 0 : 1 + below(one_in(2) ? 300 : 2000);

	look_at_homes();
	ops_left = calm ? 0 : prof.ops;
	co_start(CO_CLIENT, 0, verify_main);
	if (!sim_go(over, life)) {
		dies(one_in(2));
		return;
	}
	if (!calm && prof.slow && one_in(4)) {
		simdisk_hung = faulty = 1u << below((uint32_t)prof.disks);
		say("disk %d stops", __builtin_ctz(simdisk_hung));
	}
	if (!calm && prof.eio_write && one_in(2))
		may_fail();
	for (int i = 0; i < CLIENTS && !calm; i++)
		co_start(CO_CLIENT, i, client_main);
	sim_go(over, life);
	if (calm) {
		co_start(CO_CLIENT, 0, verify_main);
		sim_go(over, 0);
	}
	faulty = 0;
	sim_disk_may_fail = false;
	dies(one_in(2));
}

static void
choose_away(void)
{
	/* One that was away stays so, often. */
	if (away && one_in(2))
		return;
	away = one_in(3) ? 0 : (unsigned)below(1u << prof.disks) & members;
	if (away == members)
		away = 0;
	if (count(away) > 1 && one_in(2))
		away &= -away;
}

static void
refused_stranger(void)
{
	unsigned had = members;

	/* One that was given up is configured again. */
	members = (1u << prof.disks) - 1;
	if (had == members)
		return;
	sim_absent = away = 0;
	co_start(CO_START, 0, start_main);
	sim_go(start_over, 0);
	if (start_result != -EINVAL)
		sim_fail("started with a disk that was given up: %d", start_result);
	dies(false);
	members = had;
}

static void
format(void)
{
	static struct super sb;
	uint64_t size[DISKS_MAX];

	sb = sim_super();
	for (int d = 0; d < prof.disks; d++) {
		memset(uuid[d], d + 1, UUID_BYTES);
		size[d] = sb.geo.size_bytes;
	}
	table_make(&sb.table, (const uint8_t(*)[UUID_BYTES])uuid, size, prof.disks, 1);
	memcpy(home, sb.table.home, sizeof home);
	for (int d = 0; d < prof.disks; d++) {
		memcpy(sb.disk_uuid, uuid[d], UUID_BYTES);
		sim_make_disk(d, &sb);
	}
}

void
many_run(void)
{
	memset(many_keys, 0, sizeof many_keys);
	memset(many_buckets, 0, sizeof many_buckets);
	memset(battr, 0, sizeof battr);
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = -2; k < KEYS; k++) {
			struct cell *c = k == -2 ? &many_buckets[b] : k == -1 ? &battr[b] : &many_keys[b][k];

			c->pending = UNKNOWN_ID;
			c->nr = 1;
		}
	}
	many_events = 0;
	memset(bucket_mixed, 0, sizeof bucket_mixed);
	memset(bucket_ops, 0, sizeof bucket_ops);
	memset(bucket_over, 0, sizeof bucket_over);
	uploads_begin();
	away = 0;
	faulty = 0;
	sim_disk_may_fail = false;
	twice = 0;
	many_ids = 0;
	members = last_in = (1u << prof.disks) - 1;
	format();
	for (int i = 0; i < prof.lives; i++) {
		choose_away();
		if (prof.eio_write && one_in(4)) {
			may_fail();
			accepts_all = one_in(2);
		}
		twice = !away && one_in(16);
		if (start(one_in(prof.cut_in_recovery) ? 1 + below(150u * (uint32_t)prof.disks) : 0))
			live(false);
		twice = 0;
		faulty = 0;
		accepts_all = sim_disk_may_fail = false;
		if (prof.abort && (away & members) && count(members) > 1 && one_in(prof.abort))
			forget();
		if (one_in(8))
			refused_stranger();
	}
	for (int i = 0; i < 2; i++) {
		away = 0;
		sim_absent = ~members;
		for (int tries = 0; !start(0); tries++) {
			if (start_result != -EAGAIN || tries == 20)
				sim_fail("it does not start with all its disks");
		}
		live(true);
	}
	sim_absent = 0;
}
