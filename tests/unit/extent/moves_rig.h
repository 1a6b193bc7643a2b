/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two engines, each on a directory, with the ports of one thread at both, as a set has them; each is told which slots are
 * its own.  Included once per program.
 */
#ifndef GANTRY_TESTS_MOVES_RIG_H
#define GANTRY_TESTS_MOVES_RIG_H

#include "store/ops.h"
#include "model/quota.h"

/* A turn of the loop is one for both ports. */
static void turn_both(struct store_port *p, enum store_turn turn);
#define store_turn turn_both
#include "harness.h"
#undef store_turn
#include "crumbs.h"

#define A 0
#define B 1

static char dir[2][128];
static struct store_disk_conf dc[2];
static struct store_conf conf[2];
static struct store *st[2];
static struct store_port *port[2];
static struct quota_book *book;
static struct loop l; /* its port is that of the engine that is meant */
static char err[1200];

static void
turn_both(struct store_port *p, enum store_turn turn)
{
	for (int i = 0; i < 2; i++) {
		if (port[i])
			store_turn(port[i], turn);
	}
}

/* ---- slots ---- */

static const struct store_slots no_slots;

static inline struct store_slots
all_slots(void)
{
	struct store_slots s;

	memset(&s, 0xff, sizeof s);
	return s;
}

static inline struct store_slots
not_those(const struct store_slots *slots)
{
	struct store_slots s;

	for (size_t i = 0; i < STORE_SLOT_WORDS; i++)
		s.bit[i] = ~slots->bit[i];
	return s;
}

static inline unsigned
slot_of_key(const char *bucket, const char *key)
{
	struct store_key k = key_of(bucket, key);

	return store_place(&k);
}

/* Every second slot. */
static inline struct store_slots
half_slots(void)
{
	struct store_slots s;

	memset(&s, 0x55, sizeof s);
	return s;
}

/* ---- life ---- */

static inline const struct store_member_ops *
ops(void)
{
	return extent_ops.member;
}

static inline void
make_pair(uint64_t size_bytes)
{
	for (int i = 0; i < 2; i++) {
		dir_make(dir[i]);
		conf[i] = conf_for(&dc[i], dir[i], size_bytes);
		if (store_format(&conf[i], false, err, sizeof err) < 0)
			fail_msg("%s", err);
	}
}

static inline void
remove_pair(void)
{
	dir_remove(dir[A]);
	dir_remove(dir[B]);
}

/* own: of each; NULL: it is not told. */
static inline void
start_pair(const struct store_slots *own_a, const struct store_slots *own_b)
{
	const struct store_slots *own[2] = { own_a, own_b };
	uint64_t start_no = 0;

	assert_int_equal(quota_book_new(2, &book), 0);
	for (int i = 0; i < 2; i++) {
		struct store_member member;
		uint64_t no;
		int r = ops()->open(&conf[i], &st[i], &member, err, sizeof err);

		if (r == 0)
			r = ops()->recover(st[i], own[i], 32 * MIB, book, i, &no, err, sizeof err);
		if (r < 0)
			fail_msg("%s", err);
		start_no = no > start_no ? no : start_no;
	}
	for (int i = 0; i < 2; i++) {
		if (ops()->begin(st[i], start_no, false, err, sizeof err) < 0 ||
		    ops()->serve(st[i], err, sizeof err) < 0)
			fail_msg("%s", err);
	}
	loop_start(&l, st[A]);
	port[A] = l.p;
	assert_int_equal(store_attach(st[B], l.ring, &l.mb, &l.timers, &port[B]), 0);
}

static inline void
stop_pair(void)
{
	for (int i = 0; i < 2; i++) {
		wait_until(store_detach(port[i]))
			loop_turn(&l);
		port[i] = NULL;
	}
	ring_free(l.ring);
	mailbox_fini(&l.mb);
	bufpool_fini(&l.bufs);
	store_stop(st[A]);
	store_stop(st[B]);
	quota_book_free(book);
}

/* Returns the loop, for the harness: what is done now is done there. */
static inline struct loop *
at(int engine)
{
	l.p = port[engine];
	return &l;
}

static inline uint64_t
unit_number(int engine, const char *name)
{
	struct store_unit_info info;

	store_unit_info(st[engine], 0, &info);
	return store_unit_number(&info, name);
}

static inline struct store_use
used(const char *bucket)
{
	struct store_quota_info info;

	assert_int_equal(quota_look(book, bucket, strlen(bucket), &info), 0);
	return info.used;
}

/* ---- buckets ---- */

/* Makes a bucket on one of the engines.  As in a set, the buckets of a name on both are one bucket: they have the same creation time. */
static inline int
bucket_on(int engine, const char *name, unsigned copies)
{
	const struct store_change c = { .act = ACT_MAKE_BUCKET,
					.key = { .bucket = name, .bucket_len = (uint16_t)strlen(name) },
					.copies = copies,
					.ctime_ns = 1234567 };
	struct store_del *op = calloc(1, sizeof *op);
	int r;

	op->op.done = on_put;
	r = extent_ops.apply(port[engine], &c, &op->op);
	r = r < 0 ? r : op_wait(&l, &op->op);
	free(op);
	return r;
}

/* ---- lists, walks ---- */

struct names {
	struct store_list ls;
	struct store_walk w;
	int nr, two; /* of which some have two copies */
	char name[64][64];
};

static inline bool
on_name(struct store_list *ls, const struct store_entry *e)
{
	struct names *n = container_of(ls, struct names, ls);

	if (n->nr < 64)
		snprintf(n->name[n->nr], 64, "%.*s", (int)e->name_len, e->name);
	n->nr++;
	return true;
}

/* All names of a bucket, in pages of max; how many. */
static inline int
list_names(int engine, const char *bucket, const char *delimiter, const struct store_slots *slots,
	   uint32_t max, bool uploads, struct names *n)
{
	static char after[STORE_KEY_MAX];

	memset(n, 0, sizeof *n);
	do {
		int before = n->nr, r;
		size_t len = before ? strlen(n->name[before - 1]) : 0;

		check(before <= 64);
		memcpy(after, before ? n->name[before - 1] : "", len);
		n->ls = (struct store_list){ .bucket = bucket,
					     .bucket_len = (uint16_t)strlen(bucket),
					     .after = len ? after : NULL,
					     .after_len = (uint16_t)len,
					     .delimiter = delimiter,
					     .delimiter_len = delimiter ? 1 : 0,
					     .max = max,
					     .slots = slots,
					     .entry = on_name };
		n->ls.op.done = on_put;
		at(engine);
		r = uploads ? store_list_uploads(l.p, &n->ls) : store_list(l.p, &n->ls);
		r = r == 0 ? op_wait(&l, &n->ls.op) : r > 0 ? n->ls.op.result : r;
		if (r < 0)
			return r;
		assert_int_equal(r, n->nr - before);
	} while (n->ls.more);
	return n->nr;
}

static inline bool
on_walked(struct store_walk *w, const struct store_key *k)
{
	struct names *n = container_of(w, struct names, w);

	if (n->nr < 64)
		snprintf(n->name[n->nr], 64, "%.*s/%.*s", k->bucket_len, k->bucket, k->key_len, k->key);
	n->nr++;
	n->two += store_has_two(k);
	return n->nr % 7 != 0; /* now and then it has enough */
}

static inline int
walk_names(int engine, const struct store_slots *slots, struct names *n)
{
	memset(n, 0, sizeof *n);
	n->w = (struct store_walk){ .slots = slots, .key = on_walked };
	do {
		int before = n->nr, r = ops()->walk(port[engine], &n->w);

		assert_int_equal(r, n->nr - before);
	} while (n->w.more);
	return n->nr;
}

/* ---- uploads ---- */

static inline int
upload_make(int engine, const char *bucket, const char *key, const void *attrs, uint32_t attrs_len,
	    uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	struct store_upload *u = calloc(1, sizeof *u);
	struct store_key k = key_of(bucket, key);
	int r;

	u->op.done = on_put;
	r = store_upload_create(at(engine)->p, &k, attrs, attrs_len, u);
	if (r == 0)
		r = op_wait(&l, &u->op);
	memcpy(id, u->id, STORE_UPLOAD_ID_BYTES);
	free(u);
	return r;
}

static inline struct store_etag
etag_of(uint32_t number)
{
	struct store_etag e = { .parts = 0 };

	memcpy(e.sum, &number, sizeof number);
	return e;
}

/* One piece at most. */
static inline int
part_put(int engine, const char *bucket, const char *key, const uint8_t id[STORE_UPLOAD_ID_BYTES],
	 uint32_t number, uint64_t size, uint64_t seed)
{
	struct store_put *put = calloc(1, sizeof *put);
	struct store_key k = key_of(bucket, key);
	struct store_commit c = { .meta.etag = etag_of(number + (uint32_t)seed * 16384),
				  .meta.attrs = "of a part",
				  .meta.attrs_len = 9 };
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);
	int r = store_put_init_part(at(engine)->p, put, &k, id, number, size);

	fill(b->mem, size, seed, 0);
	if (size > STORE_INLINE_MAX) {
		c.last = b;
		c.last_len = (uint32_t)size;
	} else {
		c.inline_data = b->mem;
		c.inline_len = (uint32_t)size;
	}
	put->op.done = on_put;
	if (r == 0)
		r = store_put_commit(l.p, put, &c);
	if (r == 0)
		r = op_wait(&l, &put->op);
	store_put_abort(l.p, put);
	bufpool_put(&l.bufs, b);
	free(put);
	return r;
}

/* Of parts 1 to nr, of that seed. */
static inline int
upload_complete(int engine, const char *bucket, const char *key, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		uint32_t nr, uint64_t seed, struct store_complete *c)
{
	struct store_part_ref *refs = calloc(nr, sizeof *refs);
	struct store_key k = key_of(bucket, key);
	int r;

	for (uint32_t i = 0; i < nr; i++)
		refs[i] = (struct store_part_ref){ .number = i + 1,
						   .etag = etag_of(i + 1 + (uint32_t)seed * 16384) };
	*c = (struct store_complete){ .parts = refs, .part_nr = nr, .meta.etag = { .parts = nr } };
	c->op.done = on_put;
	r = store_upload_complete(at(engine)->p, &k, id, c);
	r = r < 0 ? r : r > 0 ? c->op.result : op_wait(&l, &c->op);
	free(refs);
	return r;
}

static inline int
upload_abort(int engine, const char *bucket, const char *key, const uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	struct store_upload *u = calloc(1, sizeof *u);
	struct store_key k = key_of(bucket, key);
	int r;

	u->op.done = on_put;
	r = store_upload_abort(at(engine)->p, &k, id, u);
	if (r == 0)
		r = op_wait(&l, &u->op);
	free(u);
	return r;
}

static inline int
set_attrs(int engine, const char *bucket, const char *key, const void *attrs, uint32_t len)
{
	struct store_del *op = calloc(1, sizeof *op);
	struct store_key k = key_of(bucket, key);
	int r;

	op->op.done = on_put;
	r = store_set_attrs(at(engine)->p, &k, 0, attrs, len, op);
	if (r == 0)
		r = op_wait(&l, &op->op);
	free(op);
	return r;
}

/* ---- sending ---- */

static struct store_send sent; /* the last one */

static inline void
send_begin(struct store_send *s, const char *bucket, const char *key)
{
	*s = (struct store_send){ .key = key_of(bucket, key), .buf = bufpool_get(&l.bufs, BUF_LARGE) };
	check(s->buf);
	s->op.done = on_put;
}

static inline int
send_wait(struct store_send *s, int r)
{
	r = r < 0 ? r : r > 0 ? s->op.result : op_wait(&l, &s->op);
	bufpool_put(&l.bufs, s->buf);
	s->buf = NULL;
	return r;
}

static inline int
send_key(int from, int to, const char *bucket, const char *key)
{
	send_begin(&sent, bucket, key);
	return send_wait(&sent, ops()->send(port[from], port[to], &sent));
}

static inline int
remove_key(int engine, const char *bucket, const char *key)
{
	send_begin(&sent, bucket, key);
	return send_wait(&sent, ops()->send(NULL, port[engine], &sent));
}

/* A command to an engine's leader. */
static inline int
tell(int engine, enum store_slots_act act, struct store_slots_op *o)
{
	int r;

	o->op.done = on_put;
	r = ops()->slots(port[engine], act, o);
	return r < 0 ? r : op_wait(&l, &o->op);
}

/* All that there is in these slots goes from one to the other, once; how many keys. */
struct crowd {
	struct store_walk w;
	struct {
		char bucket[64], key[64];
	} of[256];
	int nr;
};

static inline bool
on_crowd(struct store_walk *w, const struct store_key *k)
{
	struct crowd *c = container_of(w, struct crowd, w);

	snprintf(c->of[c->nr].bucket, 64, "%.*s", k->bucket_len, k->bucket);
	snprintf(c->of[c->nr].key, 64, "%.*s", k->key_len, k->key);
	return ++c->nr < 256;
}

static inline int
send_all(int from, int to, const struct store_slots *slots)
{
	struct crowd *c = calloc(1, sizeof *c);
	int engines[2] = { from, to }, r = 0, all = 0;

	/* What is at the target alone goes. */
	for (int i = 0; i < 2; i++) {
		c->w = (struct store_walk){ .slots = slots, .key = on_crowd };
		do {
			c->nr = 0;
			ops()->walk(port[engines[i]], &c->w);
			for (int j = 0; j < c->nr && r == 0; j++)
				r = send_key(from, to, c->of[j].bucket, c->of[j].key);
			all += c->nr;
		} while (c->w.more && r == 0);
	}
	free(c);
	return r < 0 ? r : all;
}

static inline int
remove_all(int engine, const struct store_slots *slots)
{
	struct crowd *c = calloc(1, sizeof *c);
	int r = 0;

	c->w = (struct store_walk){ .slots = slots, .key = on_crowd };
	do {
		c->nr = 0;
		ops()->walk(port[engine], &c->w);
		for (int j = 0; j < c->nr && r == 0; j++)
			r = remove_key(engine, c->of[j].bucket, c->of[j].key);
	} while (c->w.more && r == 0);
	free(c);
	return r;
}

/* The switch, as a set does it; what waits at the source is told so. */
static inline void
switch_slots(int from, int to, const struct store_slots *slots)
{
	static struct store_slots_op o;

	o = (struct store_slots_op){ .slots = slots };
	assert_int_equal(tell(to, SLOTS_TAKE, &o), 0);
	assert_int_equal(tell(from, SLOTS_LEAVE, &o), 0);
	assert_null(o.moved);
}

/* The object is the same at both, in all that is known of it. */
static inline void
must_be_same(const char *bucket, const char *key)
{
	static struct store_obj a, b;
	struct store_part x, y;

	assert_int_equal(obj_open(at(A), bucket, key, &a), 0);
	assert_int_equal(obj_open(at(B), bucket, key, &b), 0);
	assert_int_equal(a.size_bytes, b.size_bytes);
	assert_int_equal(a.version, b.version);
	assert_int_equal(a.crc64, b.crc64);
	assert_int_equal(a.part_nr, b.part_nr);
	assert_int_equal(a.meta.mtime_ns, b.meta.mtime_ns);
	assert_memory_equal(&a.meta.etag, &b.meta.etag, sizeof a.meta.etag);
	assert_int_equal(a.meta.attrs_len, b.meta.attrs_len);
	assert_memory_equal(a.meta.attrs, b.meta.attrs, a.meta.attrs_len);
	for (uint32_t i = 0; i < a.part_nr; i++) {
		assert_int_equal(store_obj_part_at(&a, i, &x), 0);
		assert_int_equal(store_obj_part_at(&b, i, &y), 0);
		assert_int_equal(x.number, y.number);
		assert_int_equal(x.size_bytes, y.size_bytes);
		assert_int_equal(x.crc64, y.crc64);
		assert_int_equal(x.mtime_ns, y.mtime_ns);
		assert_int_equal(x.version, y.version);
		assert_memory_equal(&x.etag, &y.etag, sizeof x.etag);
		assert_int_equal(x.attrs_len, y.attrs_len);
		assert_memory_equal(x.attrs, y.attrs, x.attrs_len);
	}
	store_close(port[A], &a);
	store_close(port[B], &b);
}

#endif
