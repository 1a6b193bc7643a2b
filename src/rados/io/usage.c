/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage of buckets, and quotas (model/quota.h).
 *
 * Each shard has a row of counters for each gateway that has changed it, set in the same operation as the
 * change (shard.c), so that gateways do not conflict; the sum of the rows is the usage of the shard. Changes
 * of this gateway are in the quota ledger immediately. Those of other gateways are read every READ_NS, so
 * several gateways together exceed a limit by at most the bytes that they write in this time. The rows of
 * former gateways are added up in row 0.
 *
 * A helper thread reads the counters. A shard that does not answer delays the count of no other shard; and it
 * cannot grow while it does not answer.
 */
#include "rados/io/usage.h"

#include "base/advice.h"
#include "base/check.h"
#include "base/clock.h"
#include "rados/io/array.h"
#include "rados/io/rstore.h"
#include "rados/io/txn.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define READ_NS (5 * NS_PER_S)   /* with the duration of a reading, changes are counted after at most 10 s */
#define ANSWER_NS (2 * NS_PER_S) /* limit for the answers of shards; a shard that is down does not answer */
#define DOCS_TURNS 120u          /* the documents of buckets are read once in this many turns: 10 minutes */
#define READS_AT_ONCE 64
#define IDLE_READS 1024u /* shards of buckets without limits that are read in a turn */
/* maximum number of shards of buckets without limits that are cached, some 20 MB */
#define IDLE_SHARDS (64u << 10)

/* ---- the quota ledger ---- */

/* Returns the row of the bucket in the ledger; NULL: none, or it belongs to a later bucket of the same
 * name. Called under the lock of the ledger. */
static struct quota_row *
row_of(const struct rbucket *rb)
{
	struct quota_row *row = quota_find(rb->store->book, 0, rb->name, rb->name_len);

	return row && quota_version(row, 0) == rb->serial ? row : NULL;
}

/* Locks the ledger, and returns the row as row_of() does. */
static struct quota_row *
lock_row(const struct rbucket *rb)
{
	quota_lock(rb->store->book);
	return row_of(rb);
}

void
usage_enter(struct rbucket *rb)
{
	struct quota_book *book = rb->store->book;

	quota_lock(book);
	/* Without memory the bucket is not counted, and its limits have no effect. */
	if (!quota_enter(book, 0, rb->name, rb->name_len, rb->serial))
		log_warn("no memory to count what bucket %.*s holds", (int)rb->name_len, rb->name);
	quota_unlock(book);
}

void
usage_leave(struct rbucket *rb)
{
	struct quota_row *row = lock_row(rb);

	if (row)
		quota_gone(rb->store->book, 0, row);
	quota_unlock(rb->store->book);
}

void
usage_bound(struct rstore *st, const char *name, size_t len, const struct store_use *max)
{
	struct rbucket *rb = rbucket_get(st, name, len);
	struct quota_row *row;

	if (!rb)
		return; /* the next reading finds the limits */
	row = lock_row(rb);
	atomic_store(&rb->bounded, atomic_load(&st->usage_turn));
	if (row)
		quota_bound(st->book, row, max);
	quota_unlock(st->book);
	rbucket_release(rb);
}

void
usage_set_docs(struct rstore *st, const char *name, size_t len, uint32_t doc_bytes)
{
	struct quota_row *row;

	quota_lock(st->book);
	row = quota_find(st->book, 0, name, len);
	if (row)
		quota_count_docs(st->book, 0, row, doc_bytes - quota_docs(row, 0));
	quota_unlock(st->book);
}

/* ---- PUTs in progress ---- */

int
usage_reserve(struct rstore *st, const char *name, size_t len, uint64_t whole_bytes, struct quota_hold *hold)
{
	/* The commit checks the growth, because the replaced object is unknown before. */
	static const struct quota_change none;
	int e = quota_reserve(st->book, 0, name, len, &none, whole_bytes, hold);

	/* The commit checks whether the bucket exists. */
	return e == -ENXIO ? 0 : e;
}

/* ---- changes ---- */

int
usage_judge(struct txn *t)
{
	struct quota_book *book = t->port->st->book;
	struct quota_row *row;
	int e = 0;

	if (t->is_held || !t->rb || !quota_is_any(&t->delta) || !quota_is_active(book))
		return 0;
	row = lock_row(t->rb);
	if (row)
		e = quota_judge(book, 0, row, &t->delta, true);
	check(e <= 0);
	if (row && e == 0) {
		quota_hold(book, 0, row, &t->delta);
		t->is_held = true;
	}
	quota_unlock(book);
	return e;
}

/* Releases the change that t holds in the ledger. Called under the lock of the ledger. */
static void
let_go(struct quota_book *book, struct quota_row *row, struct txn *t)
{
	const struct quota_change less = quota_negative(&t->delta);

	if (t->is_held && row)
		quota_hold(book, 0, row, &less);
	t->is_held = false;
}

void
usage_release(struct txn *t)
{
	struct quota_book *book = t->port->st->book;

	if (!t->is_held)
		return;
	let_go(book, lock_row(t->rb), t);
	quota_unlock(book);
}

/* Updates the usage of a shard in the ledger, and releases the changes that `done` held. Called under the
 * lock of the shard. */
static void
book_shard(struct rshard *s, struct txn *done)
{
	struct quota_book *book = s->bucket ? s->bucket->store->book : NULL;
	struct quota_change more = quota_negative(&s->booked);
	struct quota_row *row;

	if (!book)
		return;
	row = lock_row(s->bucket);
	if (row) {
		quota_add(&more, &s->own);
		quota_add(&more, &s->others);
		quota_add(&s->booked, &more);
		quota_count(book, 0, row, &more);
	}
	for (struct txn *t = done; t; t = t->next)
		let_go(book, row, t);
	quota_unlock(book);
}

void
usage_commit(struct rshard *s, const struct quota_change *sum, const uint8_t bytes[COUNTER_BYTES],
	     struct txn *riders)
{
	quota_add(&s->own, sum);
	memcpy(s->own_row, bytes, s->own_len = sizeof s->own_row);
	book_shard(s, riders);
}

static void
say_damaged(const struct rshard *s)
{
	char remedy[128];

	advice_first(remedy, sizeof remedy, ADVICE_COUNTER_DAMAGED, NULL);
	if (s->bucket)
		lasting_log(s->bucket->store, LOG_ERROR,
			    "%s: a counter is damaged: the usage of bucket %.*s is not known; %s", s->name,
			    (int)s->bucket->name_len, s->bucket->name, remedy);
}

void
usage_take_own(struct rshard *s, const uint8_t *val, size_t len)
{
	struct counter own = { 0 };

	if (counter_decode(val, len, &own) < 0)
		say_damaged(s);
	pthread_mutex_lock(&s->lock);
	s->own = own.sum;
	s->own_len = len;
	memcpy(s->own_row, val, len <= sizeof s->own_row ? len : 0);
	s->is_own_unsure = false;
	book_shard(s, NULL);
	pthread_mutex_unlock(&s->lock);
}

/* ---- reading the counters of other gateways ---- */

struct reading {
	rados_completion_t comp;
	rados_omap_iter_t iter;
	unsigned char more;
	int rv;
	struct rshard *shard;
	uint32_t n;
};

/* Waits until all calls have ended; after ANSWER_NS cancels the others. */
static void
wait_for_all(rados_ioctx_t io, struct reading *r, uint32_t nr)
{
	const struct timespec a_while = { .tv_nsec = 1000000 };
	uint64_t end = clock_ns() + ANSWER_NS;

	for (uint32_t i = 0; i < nr; i++) {
		while (r[i].comp && !rados_aio_is_complete(r[i].comp)) {
			if (clock_ns() >= end)
				rados_aio_cancel(io, r[i].comp);
			nanosleep(&a_while, NULL);
		}
	}
}

/* An operation that adds up rows of former gateways in row 0, up to FOLD_MAX at a time. */
struct fold {
	rados_write_op_t op; /* NULL: no such rows */
	uint32_t nr;
	struct counter all;
	bool has_zero;
};

#define FOLD_MAX 8

static void
note_dead(struct fold *f, uint32_t instance, const char *key, const char *val, const struct quota_change *c)
{
	if (instance && f->nr == FOLD_MAX)
		return;
	if (!f->op)
		f->op = rados_create_write_op();
	op_compare(f->op, key, val, COUNTER_BYTES);
	quota_add(&f->all.sum, c);
	if (instance) {
		op_remove(f->op, key);
		f->nr++;
	} else {
		f->has_zero = true;
	}
}

static void
fold_dead(struct rstore *st, const struct fold *f, const char *shard)
{
	rados_ioctx_t io = st->client[0].io[POOL_META];
	uint8_t sum[COUNTER_BYTES];
	const struct label zero = key_counter(0);
	struct reading r = { 0 };

	counter_encode(sum, &f->all);
	if (!f->has_zero)
		op_compare(f->op, zero.text, "", 0);
	op_set(f->op, zero.text, sum, sizeof sum);
	/* If the operation is lost, the next reading finds the rows again. */
	if (rados_aio_create_completion2(NULL, NULL, &r.comp) == 0) {
		if (rados_aio_write_op_operate(f->op, io, r.comp, shard, NULL, 0) == 0)
			wait_for_all(io, &r, 1);
		rados_aio_release(r.comp);
	}
}

static void
take_counts(struct rstore *st, struct reading *r)
{
	uint64_t gateways = atomic_load(&st->gw.gateways);
	struct quota_change others = { 0 };
	struct rshard *s = r->shard;
	struct counter c;
	char *key, *val;
	size_t key_len, val_len;
	struct fold f = { 0 };

	while (rados_omap_get_next2(r->iter, &key, &val, &key_len, &val_len) == 0 && key) {
		uint32_t instance = key_counter_instance(key, key_len);

		if (instance == UINT32_MAX || instance == st->gw.instance)
			continue;
		if (counter_decode(val, val_len, &c) < 0) {
			say_damaged(s);
			continue;
		}
		quota_add(&others, &c.sum);
		if (instance == 0 || gateway_is_gone(st, instance))
			note_dead(&f, instance, key, val, &c.sum);
	}
	pthread_mutex_lock(&s->lock);
	s->others = others;
	book_shard(s, NULL);
	pthread_mutex_unlock(&s->lock);
	/* One of the running gateways adds up the rows, after it has read the table of gateways. */
	if (f.nr && gateways && r->n % gateways == atomic_load(&st->gw.rank))
		fold_dead(st, &f, s->name);
	if (f.op)
		rados_release_write_op(f.op);
}

static void
read_counts(struct rstore *st, struct reading *r, uint32_t nr)
{
	rados_ioctx_t io = st->client[0].io[POOL_META];

	for (uint32_t i = 0; i < nr; i++) {
		rados_read_op_t op = rados_create_read_op();

		r[i].rv = 0;
		rados_read_op_omap_get_vals2(op, "", "c", OMAP_PAGE, &r[i].iter, &r[i].more, &r[i].rv);
		if (rados_aio_create_completion2(NULL, NULL, &r[i].comp) < 0)
			r[i].comp = NULL;
		else if (rados_aio_read_op_operate(op, io, r[i].comp, r[i].shard->name, 0) < 0) {
			rados_aio_release(r[i].comp);
			r[i].comp = NULL;
		}
		rados_release_read_op(op);
	}
	wait_for_all(io, r, nr);
	for (uint32_t i = 0; i < nr; i++) {
		if (!r[i].comp)
			continue;
		if (rados_aio_get_return_value(r[i].comp) >= 0 && r[i].rv >= 0)
			take_counts(st, &r[i]);
		rados_omap_get_end(r[i].iter);
		rados_aio_release(r[i].comp);
	}
}

/* Reads of shards that are sent together. */
struct crowd {
	struct rstore *st;
	uint32_t nr;
	struct reading r[READS_AT_ONCE];
};

static uint32_t
read_bucket(struct crowd *c, struct rbucket *rb)
{
	for (uint32_t i = 0; i < rb->row.shards; i++) {
		c->r[c->nr++] = (struct reading){ .shard = &rb->shard[i], .n = i };
		if (c->nr < READS_AT_ONCE)
			continue;
		read_counts(c->st, c->r, c->nr);
		c->nr = 0;
	}
	return rb->row.shards;
}

static void
read_all(struct rstore *st)
{
	struct crowd *c = calloc(1, sizeof *c);
	uint32_t nr = 0, idle = 0, at;
	struct rbucket **list = c ? rbuckets_all(st, &nr) : NULL;

	if (c)
		c->st = st;
	for (uint32_t i = 0; i < nr && !atomic_load(&st->usage.stop); i++) {
		if (quota_concerns(st->book, list[i]->name, list[i]->name_len))
			read_bucket(c, list[i]);
	}
	/* Some of the buckets without limits; the next turn continues after them. */
	at = nr ? st->usage_next % nr : 0;
	for (uint32_t i = 0; i < nr && idle < IDLE_READS && !atomic_load(&st->usage.stop); i++, at++) {
		struct rbucket *rb = list[at % nr];

		if (!quota_concerns(st->book, rb->name, rb->name_len))
			idle += read_bucket(c, rb);
	}
	st->usage_next = at;
	if (c && c->nr)
		read_counts(st, c->r, c->nr);
	for (uint32_t i = 0; i < nr; i++)
		rbucket_release(list[i]);
	free(list);
	free(c);
}

void
usage_forget(struct rstore *st, uint32_t instance)
{
	rados_write_op_t op = rados_create_write_op();

	op_remove(op, key_counter(instance).text);
	/* After an error the row remains, a few bytes. */
	write_now(st->client[0].io[POOL_META], OBJECT_BUCKETS, op);
}

/* ---- reading the table of buckets, and the limits ---- */

struct bound {
	char name[1 + STORE_BUCKET_MAX];
	struct store_use max;
};

struct table {
	struct rstore *st;
	uint64_t turn;
	struct bound *bound; /* limits of buckets, in the order of names */
	size_t nr, cap, at;
	uint32_t idle_shards;
};

static int
on_bound(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct table *t = cookie;
	struct bound *b = room_for_one(t->bound, t->nr, &t->cap, sizeof *b);

	if (!b)
		return -ENOMEM;
	t->bound = b;
	b += t->nr;
	if (key_len < 2 || key_len > sizeof b->name || bound_decode(val, val_len, &b->max) < 0) {
		lasting_log(t->st, LOG_ERROR, "the quota of bucket %.*s is damaged: set it again",
			    (int)key_len - 1, key + 1);
		return 0;
	}
	memcpy(b->name, key + 1, key_len - 1);
	b->name[key_len - 1] = 0;
	t->nr++;
	return 0;
}

static void
take_bound(struct table *t, struct rbucket *rb, const struct bound *b)
{
	static const struct store_use unbounded = { STORE_UNBOUNDED, STORE_UNBOUNDED, STORE_UNBOUNDED };
	struct quota_row *row = lock_row(rb);

	/* Limits that this gateway has set since the reading began are newer. */
	if (row && atomic_load(&rb->bounded) < t->turn)
		quota_bound(t->st->book, row, b ? &b->max : &unbounded);
	quota_unlock(t->st->book);
}

static int
on_bucket(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct table *t = cookie;
	const struct bound *b;
	struct bucket_row row;
	struct rbucket *rb;

	if (key_len < 2 || key_len - 1 > STORE_BUCKET_MAX || bucket_decode(val, val_len, &row) < 0)
		return 0; /* reported by --fsck */
	if (row.state == BUCKET_MAKING)
		return 0;
	/* Rows of buckets are in the order of names as well. */
	while (t->at < t->nr && strcmp(t->bound[t->at].name, key + 1) < 0)
		t->at++;
	b = t->at < t->nr && strcmp(t->bound[t->at].name, key + 1) == 0 ? &t->bound[t->at] : NULL;
	rb = rbucket_get(t->st, key + 1, key_len - 1);
	if (rb) {
		rbucket_release(rb);
	} else if (!b && !quota_concerns(t->st->book, key + 1, key_len - 1)) {
		if (t->idle_shards >= IDLE_SHARDS)
			return 0;
		t->idle_shards += row.shards;
	}
	rb = rbucket_put_in(t->st, key + 1, key_len - 1, &row);
	if (!rb)
		return -ENOMEM;
	rb->seen = t->turn;
	take_bound(t, rb, b);
	rbucket_release(rb);
	return 0;
}

/* Sets the size of a bucket's documents in the ledger; another gateway may have changed them. */
static int
on_docs(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct table *t = cookie;
	struct battrs b;

	if (key_len >= 2 && battrs_decode(val, val_len, &b) == 0)
		usage_set_docs(t->st, key + 1, key_len - 1, b.attrs_len);
	return 0;
}

static void
drop_unseen(struct rstore *st, uint64_t turn)
{
	uint32_t nr;
	struct rbucket **list = rbuckets_all(st, &nr);

	for (uint32_t i = 0; list && i < nr; i++) {
		if (list[i]->seen < turn)
			rbucket_drop(list[i]);
		rbucket_release(list[i]);
	}
	free(list);
}

static void
turn(void *cookie)
{
	struct rstore *st = cookie;
	struct table t = { .st = st, .turn = atomic_fetch_add(&st->usage_turn, 1) + 1 };
	int e = each_row(st, OBJECT_BUCKETS, "q", on_bound, &t);

	if (e == 0)
		e = each_row(st, OBJECT_BUCKETS, "b", on_bucket, &t);
	/* Rarely, because these rows are long. */
	if (e == 0 && t.turn % DOCS_TURNS == 1)
		e = each_row(st, OBJECT_BUCKETS, "a", on_docs, &t);
	if (e == 0)
		drop_unseen(st, t.turn);
	else
		lasting_log(st, LOG_WARN, "the table of buckets cannot be read: %s", strerror(-e));
	free(t.bound);
	read_all(st);
}

int
usage_start(struct rstore *st)
{
	/* The first reading is before the first request. */
	turn(st);
	return periodic_start(&st->usage, "store-usage", READ_NS, turn, st);
}
