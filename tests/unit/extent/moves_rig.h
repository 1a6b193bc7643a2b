/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two engines, each on a directory, with the ports of one thread at both, as a set has them; each is told which slots are
 * its own.  Included once per program.
 */
#ifndef GANTRY_TESTS_MOVES_RIG_H
#define GANTRY_TESTS_MOVES_RIG_H

#include "store/ops.h"
#include "store/quota.h"

/* A turn of the loop is one for both ports. */
static void quiesce_both(struct store_port *p);
#define store_quiesce quiesce_both
#include "harness.h"
#undef store_quiesce

#define A 0
#define B 1

static char dir[2][128];
static struct store_disk_conf dc[2];
static struct store_conf conf[2];
static struct store *st[2];
static struct store_port *port[2];
static struct quota_book *book;
static struct loop l; /* its port is that of the engine that is meant */
static char err[512];

static void
quiesce_both(struct store_port *p)
{
	for (int i = 0; i < 2; i++) {
		if (port[i])
			store_quiesce(port[i]);
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
	return table_slot(bucket, strlen(bucket), key, strlen(key));
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

		if (r == 0 && own[i])
			r = ops()->set_slots(st[i], own[i]);
		if (r == 0)
			r = ops()->recover(st[i], 32 * MIB, book, i, &no, err, sizeof err);
		if (r < 0)
			fail_msg("%s", err);
		start_no = no > start_no ? no : start_no;
	}
	for (int i = 0; i < 2; i++) {
		if (ops()->begin(st[i], start_no, err, sizeof err) < 0 ||
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
		while (!store_detach(port[i]))
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

/* ---- lists, walks ---- */

struct names {
	struct store_list ls;
	struct store_walk w;
	int nr, keys;
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

#endif
