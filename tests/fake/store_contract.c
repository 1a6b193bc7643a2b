/* The contract suite; see store_contract.h.  One thread: every test starts operations and turns the loop
 * until they are done. */
#include "tests/fake/store_contract.h"

#include "base/crc64.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#define BUCKET "contract"
#define OBJ_MAX ((size_t)9 << 20)
#define PUTS_AT_ONCE 8

static struct contract *c;
static uint64_t rnd_state;
static unsigned char *pattern; /* 2 * OBJ_MAX random bytes: an object is a piece of it */

static uint64_t
rnd(void)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state;
}

/* ---- waiting ---- */

#define OPS_MAX 64
static struct store_op *over[OPS_MAX];
static int over_nr;
static bool in_start; /* done() must not run from inside a start call */

static void
on_done(struct store_op *op)
{
	assert_false(in_start);
	assert_true(over_nr < OPS_MAX);
	assert_ptr_equal(op->port, c->port);
	over[over_nr++] = op;
}

static bool
take_over(struct store_op *op)
{
	for (int i = 0; i < over_nr; i++) {
		if (over[i] == op) {
			over[i] = over[--over_nr];
			return true;
		}
	}
	return false;
}

#define START(op_, call) ((op_)->done = on_done, in_start = true, start_over(call))

static int
start_over(int r)
{
	in_start = false;
	return r;
}

/* r: what the start returned.  The result, or the start's error. */
static int
wait_for(struct store_op *op, int r)
{
	if (r < 0)
		return r;
	if (r > 0)
		return op->result;
	while (!take_over(op))
		c->turn(c);
	return op->result;
}

static struct store_key
key_of(const char *key)
{
	return (struct store_key){ BUCKET, key, (uint16_t)strlen(BUCKET), (uint16_t)strlen(key) };
}

static int
bucket_create(const char *name)
{
	struct store_del op;

	return wait_for(&op.op, START(&op.op, store_bucket_create(c->port, name, strlen(name), &op)));
}

static int
bucket_delete(const char *name)
{
	struct store_del op;

	return wait_for(&op.op, START(&op.op, store_bucket_delete(c->port, name, strlen(name), &op)));
}

static int
del_pre(const char *key, const struct store_pre *pre)
{
	struct store_key k = key_of(key);
	struct store_del op;

	return wait_for(&op.op, START(&op.op, store_delete(c->port, &k, pre, &op)));
}

static int
del(const char *key)
{
	return del_pre(key, NULL);
}

static int
open_obj(const char *key, struct store_obj *obj)
{
	struct store_key k = key_of(key);

	memset(obj, 0, sizeof *obj);
	return wait_for(&obj->op, START(&obj->op, store_open(c->port, &k, obj)));
}

/* ---- writing ---- */

enum how { HOW_COMMIT, HOW_WRITE }; /* the last piece rides with the commit, or is written before */

struct putting {
	struct store_put put;
	struct store_write w[4];
	struct buf *wbuf[4], *last;
	struct store_commit commit;
	size_t start, size;
};

/* Everything up to the start of the commit; what store_put_commit() returned, or an earlier error (then it is
 * aborted). */
static int
put_begin(struct putting *pt, const char *key, size_t start, size_t size, enum how how, uint32_t piece,
	  bool say_size)
{
	struct store_key k = key_of(key);
	size_t at = 0;
	int r, busy = 0;

	pt->start = start;
	pt->size = size;
	pt->last = NULL;
	r = store_put_init(c->port, &pt->put, &k, say_size ? size : STORE_SIZE_UNKNOWN);
	if (r < 0)
		return r;
	if (size <= STORE_INLINE_MAX && how == HOW_COMMIT) {
		char copy[STORE_INLINE_MAX];

		memcpy(copy, pattern + start, size);
		pt->commit.inline_data = copy;
		pt->commit.inline_len = (uint32_t)size;
		r = START(&pt->put.op, store_put_commit(c->port, &pt->put, &pt->commit));
		memset(copy, 0, sizeof copy);
		if (r < 0)
			store_put_abort(c->port, &pt->put);
		return r;
	}
	while (at < size) {
		uint32_t len = size - at < piece ? (uint32_t)(size - at) : piece;
		bool last = at + len == size;
		struct buf *b = bufpool_get(c->bufs, buf_class_for(piece));

		assert_non_null(b);
		memcpy(b->mem, pattern + start + at, len);
		at += len;
		if (last && how == HOW_COMMIT) {
			pt->last = b;
			pt->commit.last = b;
			pt->commit.last_len = len;
			break;
		}
		pt->wbuf[busy] = b;
		r = START(&pt->w[busy].op, store_put_write(c->port, &pt->put, &pt->w[busy], b, len, last));
		assert_true(r >= 0);
		if (r > 0) {
			assert_int_equal(pt->w[busy].op.result, 0);
			bufpool_put(c->bufs, b);
		} else {
			busy++;
		}
		while (busy && (busy == 4 || at == size || (at + piece >= size && how == HOW_COMMIT))) {
			busy--;
			assert_int_equal(wait_for(&pt->w[busy].op, 0), 0);
			bufpool_put(c->bufs, pt->wbuf[busy]);
		}
	}
	r = START(&pt->put.op, store_put_commit(c->port, &pt->put, &pt->commit));
	if (r < 0) {
		store_put_abort(c->port, &pt->put);
		if (pt->last)
			bufpool_put(c->bufs, pt->last);
	}
	return r;
}

static int
put_end(struct putting *pt, int r)
{
	bool began = r >= 0;

	r = wait_for(&pt->put.op, r);
	if (began && pt->last)
		bufpool_put(c->bufs, pt->last);
	if (r == 0) {
		assert_true(pt->put.size_bytes == pt->size);
		assert_true(pt->put.crc64 == crc64_nvme(0, pattern + pt->start, pt->size));
		assert_true(pt->put.version > 0);
	}
	if (began)
		store_put_abort(c->port, &pt->put); /* harmless after the end */
	return r;
}

static int
put(const char *key, size_t start, size_t size)
{
	static struct putting pt;

	memset(&pt, 0, sizeof pt);
	return put_end(&pt, put_begin(&pt, key, start, size, HOW_COMMIT, STORE_PIECE, true));
}

static struct store_etag
etag_no(unsigned n)
{
	return (struct store_etag){ .sum = { (uint8_t)n, 7 }, .parts = n % 3 };
}

static int
put_pre(const char *key, size_t size, unsigned etag, const struct store_pre *pre)
{
	static struct putting pt;

	memset(&pt, 0, sizeof pt);
	pt.commit.pre = *pre;
	pt.commit.meta.etag = etag_no(etag);
	return put_end(&pt, put_begin(&pt, key, 0, size, HOW_COMMIT, STORE_PIECE, true));
}

/* ---- reading ---- */

/* Reads [off, off + len) and compares. */
static void
read_compare(struct store_obj *obj, size_t start, uint64_t off, uint32_t len)
{
	struct store_read rd;
	struct buf *b = bufpool_get(c->bufs, buf_class_for(len));

	assert_non_null(b);
	assert_int_equal(wait_for(&rd.op, START(&rd.op, store_read(c->port, obj, &rd, b, off, len))),
			 (int)len);
	assert_memory_equal(b->mem, pattern + start + off, len);
	bufpool_put(c->bufs, b);
}

static void
read_all(struct store_obj *obj, size_t start, size_t size)
{
	assert_true(obj->size_bytes == size);
	assert_true(obj->crc64 == crc64_nvme(0, pattern + start, size));
	for (uint64_t at = 0; at < size; at += STORE_PIECE)
		read_compare(obj, start, at, size - at < STORE_PIECE ? (uint32_t)(size - at) : STORE_PIECE);
}

static void
expect(const char *key, size_t start, size_t size)
{
	struct store_obj obj;

	assert_int_equal(open_obj(key, &obj), 0);
	assert_true(obj.is_open);
	read_all(&obj, start, size);
	store_close(c->port, &obj);
	assert_false(obj.is_open);
	store_close(c->port, &obj);
}

/* ---- the tests ---- */

static void
test_buckets(void **state)
{
	char name[STORE_BUCKET_MAX + 2];
	uint64_t ctime = 0;

	assert_int_equal(store_bucket_head(c->port, "contract-b", 10, NULL), -ENXIO);
	assert_int_equal(bucket_create("contract-b"), 0);
	assert_int_equal(bucket_create("contract-b"), -EEXIST);
	assert_int_equal(store_bucket_head(c->port, "contract-b", 10, &ctime), 0);
	assert_true(ctime > 0);
	assert_int_equal(bucket_delete("contract-b"), 0);
	assert_int_equal(bucket_delete("contract-b"), -ENXIO);
	assert_int_equal(store_bucket_head(c->port, "contract-b", 10, NULL), -ENXIO);
	memset(name, 'n', sizeof name);
	name[STORE_BUCKET_MAX + 1] = 0;
	assert_int_equal(bucket_create(name), -ENAMETOOLONG);
	name[STORE_BUCKET_MAX] = 0;
	assert_int_equal(bucket_create(name), 0);
	assert_int_equal(bucket_delete(name), 0);
	assert_int_equal(put("x", 0, 10), 0);
	assert_int_equal(bucket_delete(BUCKET), -ENOTEMPTY);
	assert_int_equal(del("x"), 1);
}

static void
test_sizes(void **state)
{
	static const size_t sizes[] = { 0,       1,
					255,     256,
					257,     4095,
					4096,    4097,
					65535,   65536,
					65537,   131072,
					1000000, 1048575,
					1048576, 1048577,
					3 << 20, (3 << 20) + 100,
					8 << 20, (8 << 20) + 1,
					OBJ_MAX };
	static struct putting pt;

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		for (int how = HOW_COMMIT; how <= HOW_WRITE; how++) {
			size_t start = rnd() % OBJ_MAX;
			uint32_t piece = rnd() % 3 ? STORE_PIECE : rnd() % 2 ? 65536 : 196608;
			struct store_obj obj;

			if (sizes[i] == 0 && how == HOW_WRITE)
				continue;
			memset(&pt, 0, sizeof pt);
			pt.commit.meta.etag = etag_no(i);
			pt.commit.meta.mtime_ns = 1000 + i;
			pt.commit.meta.attrs = pattern + i;
			pt.commit.meta.attrs_len = i % 3 ? i * 7 : i ? STORE_ATTRS_MAX : 0;
			pt.commit.have_expect_crc64 = i % 2;
			pt.commit.expect_crc64 = crc64_nvme(0, pattern + start, sizes[i]);
			assert_int_equal(put_end(&pt, put_begin(&pt, "size", start, sizes[i], (enum how)how,
								piece, rnd() % 2)),
					 0);
			assert_int_equal(open_obj("size", &obj), 0);
			assert_true(obj.version == pt.put.version);
			assert_true(obj.meta.mtime_ns == 1000 + i);
			assert_memory_equal(&obj.meta.etag, &pt.commit.meta.etag, sizeof obj.meta.etag);
			assert_int_equal(obj.meta.attrs_len, pt.commit.meta.attrs_len);
			if (obj.meta.attrs_len)
				assert_memory_equal(obj.meta.attrs, pattern + i, obj.meta.attrs_len);
			read_all(&obj, start, sizes[i]);
			/* a part, on granules */
			if (sizes[i] > 2 * STORE_GRANULE) {
				uint64_t off = rnd() % (sizes[i] / STORE_GRANULE) * STORE_GRANULE;
				uint64_t left = sizes[i] - off;

				read_compare(&obj, start, off,
					     left < STORE_GRANULE ? (uint32_t)left : STORE_GRANULE);
			}
			store_close(c->port, &obj);
		}
	}
	assert_int_equal(del("size"), 1);
}

static void
test_names(void **state)
{
	char key[STORE_KEY_MAX + 2];
	struct store_key k = { BUCKET, key, (uint16_t)strlen(BUCKET), STORE_KEY_MAX + 1 };
	static struct store_put p;
	struct store_obj obj;

	memset(key, 'k', sizeof key);
	key[STORE_KEY_MAX + 1] = 0;
	assert_int_equal(store_put_init(c->port, &p, &k, 1), -ENAMETOOLONG);
	store_put_abort(c->port, &p);
	assert_int_equal(open_obj(key, &obj), -ENAMETOOLONG);
	store_close(c->port, &obj);
	assert_int_equal(del(key), -ENAMETOOLONG);
	key[STORE_KEY_MAX] = 0;
	assert_int_equal(put(key, 5, 70000), 0);
	expect(key, 5, 70000);
	assert_int_equal(del(key), 1);
	assert_int_equal(put("\x01 /../\xff\xfe", 1, 2), 0);
	expect("\x01 /../\xff\xfe", 1, 2);
	assert_int_equal(del("\x01 /../\xff\xfe"), 1);
	/* no such bucket */
	k = (struct store_key){ "contract-no", "k", 11, 1 };
	assert_int_equal(store_put_init(c->port, &p, &k, 1), -ENXIO);
	memset(&obj, 0, sizeof obj);
	assert_int_equal(wait_for(&obj.op, START(&obj.op, store_open(c->port, &k, &obj))), -ENXIO);
	assert_int_equal(open_obj("not there", &obj), -ENOENT);
	assert_int_equal(del("not there"), 0);
	store_close(c->port, NULL);
	store_put_abort(c->port, NULL);
}

/* An open version stays what it was, however often it is replaced or deleted meanwhile. */
static void
test_versions(void **state)
{
	struct store_obj obj[4];
	uint64_t before = 0;

	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(put("v", i * 100, 200000 + i), 0);
		assert_int_equal(open_obj("v", &obj[i]), 0);
		assert_true(obj[i].version > before);
		before = obj[i].version;
	}
	assert_int_equal(del("v"), 1);
	/* space that comes back would be used again by these */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(put("w", 77, 300000), 0);
		c->turn(c);
	}
	for (unsigned i = 0; i < 4; i++)
		read_all(&obj[i], i * 100, 200000 + i);
	for (unsigned i = 4; i-- > 0;)
		store_close(c->port, &obj[i]);
	assert_int_equal(open_obj("v", &obj[0]), -ENOENT);
	assert_int_equal(del("w"), 1);
}

static void
test_preconditions(void **state)
{
	struct store_pre absent = { .kind = PRE_ABSENT }, any = { .kind = PRE_MATCH_ANY },
			 none = { .kind = PRE_NONE };
	struct store_pre match = { .kind = PRE_MATCH, .etags = { etag_no(9), etag_no(1) }, .etag_nr = 2 };
	struct store_pre other = { .kind = PRE_MATCH, .etags = { etag_no(9) }, .etag_nr = 1 };
	struct store_pre unless = { .kind = PRE_NONE_MATCH, .etags = { etag_no(1) }, .etag_nr = 1 };

	assert_int_equal(put_pre("p", 10, 1, &any), -ENOENT);
	assert_int_equal(put_pre("p", 10, 1, &match), -ENOENT);
	assert_int_equal(put_pre("p", 10, 1, &absent), 0);
	assert_int_equal(put_pre("p", 11, 2, &absent), -EEXIST);
	assert_int_equal(put_pre("p", 70000, 2, &absent), -EEXIST);
	assert_int_equal(put_pre("p", 11, 2, &other), -ESTALE);
	assert_int_equal(put_pre("p", 11, 2, &unless), -EEXIST);
	expect("p", 0, 10);
	assert_int_equal(put_pre("p", 12, 1, &match), 0);
	assert_int_equal(put_pre("p", 13, 1, &any), 0);
	assert_int_equal(put_pre("p", 14, 2, &none), 0);
	assert_int_equal(put_pre("p", 15, 1, &unless), 0);
	expect("p", 0, 15);
	assert_int_equal(del_pre("p", &other), -ESTALE);
	assert_int_equal(del_pre("p", &match), 1);
	assert_int_equal(del_pre("p", &match), -ENOENT);
	assert_int_equal(del_pre("p", &none), 0);
}

/* What was refused or given up leaves nothing behind. */
static void
test_refused(void **state)
{
	static struct putting pt;
	struct store_obj obj;
	static const size_t sizes[] = { 100, 60000, 3000000 };

	assert_int_equal(put("r", 3, 50), 0);
	for (int i = 0; i < 3; i++) {
		for (int how = HOW_COMMIT; how <= HOW_WRITE; how++) {
			memset(&pt, 0, sizeof pt);
			pt.commit.have_expect_crc64 = true;
			pt.commit.expect_crc64 = 1;
			assert_int_equal(put_end(&pt, put_begin(&pt, "r", 0, sizes[i], (enum how)how,
								STORE_PIECE, true)),
					 -EILSEQ);
		}
	}
	for (int i = 0; i < 5; i++) { /* begun, written, given up */
		struct store_key k = key_of("r2");
		struct buf *b = bufpool_get(c->bufs, BUF_LARGE);

		assert_int_equal(store_put_init(c->port, &pt.put, &k, i % 2 ? STORE_SIZE_UNKNOWN : 5 << 20),
				 0);
		if (i) {
			int r = START(&pt.w[0].op,
				      store_put_write(c->port, &pt.put, &pt.w[0], b, STORE_PIECE, false));

			assert_int_equal(wait_for(&pt.w[0].op, r), 0);
		}
		store_put_abort(c->port, &pt.put);
		store_put_abort(c->port, &pt.put);
		bufpool_put(c->bufs, b);
	}
	expect("r", 3, 50);
	assert_int_equal(open_obj("r2", &obj), -ENOENT);
	assert_int_equal(del("r"), 1);
}

/* Many at once; of those that must be first, one is. */
static void
test_concurrent(void **state)
{
	static struct putting pt[PUTS_AT_ONCE];
	int r[PUTS_AT_ONCE], won = 0;
	char key[16];
	struct store_del d;

	for (int i = 0; i < PUTS_AT_ONCE; i++) {
		memset(&pt[i], 0, sizeof pt[i]);
		pt[i].commit.pre.kind = PRE_ABSENT;
		r[i] = put_begin(&pt[i], "c", (size_t)i, 1000 + (size_t)i * 10000, HOW_COMMIT, STORE_PIECE,
				 true);
		assert_true(r[i] >= 0);
	}
	for (int i = 0; i < PUTS_AT_ONCE; i++) {
		r[i] = put_end(&pt[i], r[i]);
		assert_true(r[i] == 0 || r[i] == -EEXIST);
		if (r[i] == 0) {
			won++;
			expect("c", (size_t)i, 1000 + (size_t)i * 10000);
		}
	}
	assert_int_equal(won, 1);
	/* different keys, and the deletion of one while they are on their way */
	for (int i = 0; i < PUTS_AT_ONCE; i++) {
		struct store_key k = key_of("c");

		memset(&pt[i], 0, sizeof pt[i]);
		sprintf(key, "c%d", i);
		r[i] = put_begin(&pt[i], key, (size_t)i, (size_t)i * 40000, HOW_COMMIT, STORE_PIECE, i % 2);
		if (i == 3)
			assert_int_equal(wait_for(&d.op, START(&d.op, store_delete(c->port, &k, NULL, &d))),
					 1);
	}
	for (int i = 0; i < PUTS_AT_ONCE; i++)
		assert_int_equal(put_end(&pt[i], r[i]), 0);
	for (int i = 0; i < PUTS_AT_ONCE; i++) {
		sprintf(key, "c%d", i);
		expect(key, (size_t)i, (size_t)i * 40000);
		assert_int_equal(del(key), 1);
	}
}

/* Reads of one object overlap. */
static void
test_reads(void **state)
{
	struct store_obj obj;
	struct store_read rd[8];
	struct buf *b[8];
	uint64_t off[8];
	int r[8];

	assert_int_equal(put("rd", 9, 5000000), 0);
	assert_int_equal(open_obj("rd", &obj), 0);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 8; i++) {
			off[i] = rnd() % 60 * STORE_GRANULE;
			b[i] = bufpool_get(c->bufs, BUF_LARGE);
			r[i] = START(&rd[i].op, store_read(c->port, &obj, &rd[i], b[i], off[i],
							   (uint32_t)(1 + i) * STORE_GRANULE));
		}
		for (int i = 0; i < 8; i++) {
			assert_int_equal(wait_for(&rd[i].op, r[i]), (1 + i) * (int)STORE_GRANULE);
			assert_memory_equal(b[i]->mem, pattern + 9 + off[i], (size_t)(1 + i) * STORE_GRANULE);
			bufpool_put(c->bufs, b[i]);
		}
	}
	store_close(c->port, &obj);
	assert_int_equal(del("rd"), 1);
}

/* ---- listing ---- */

struct listing {
	struct store_list ls;
	char got[4096]; /* names, a comma behind each */
	int stop_after;
	uint64_t sizes;
};

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct listing *l = (struct listing *)ls;

	assert_true(strlen(l->got) + e->name_len + 2 < sizeof l->got);
	strncat(l->got, e->name, e->name_len);
	strcat(l->got, ",");
	l->sizes += e->size_bytes;
	return --l->stop_after != 0;
}

static int
list(struct listing *l, const char *bucket, const char *prefix, const char *after, uint32_t max)
{
	int stop = l->stop_after;

	memset(l, 0, sizeof *l);
	l->stop_after = stop;
	l->ls.bucket = bucket;
	l->ls.bucket_len = bucket ? (uint16_t)strlen(bucket) : 0;
	l->ls.prefix = prefix;
	l->ls.prefix_len = prefix ? (uint16_t)strlen(prefix) : 0;
	l->ls.after = after;
	l->ls.after_len = after ? (uint16_t)strlen(after) : 0;
	l->ls.max = max;
	l->ls.entry = on_entry;
	return wait_for(&l->ls.op, START(&l->ls.op, store_list(c->port, &l->ls)));
}

static void
test_listing(void **state)
{
	static const char *const names[] = { "b", "a/2", "a/1", "a", "a/10", "c/x/y", "\xff" };
	static struct listing l;
	struct store_obj obj;

	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(put(names[i], i, i + 1), 0);
	assert_int_equal(list(&l, BUCKET, NULL, NULL, 100), 7);
	assert_string_equal(l.got, "a,a/1,a/10,a/2,b,c/x/y,\xff,");
	assert_int_equal(l.sizes, 28);
	assert_false(l.ls.more);
	assert_int_equal(list(&l, BUCKET, "a/", NULL, 100), 3);
	assert_string_equal(l.got, "a/1,a/10,a/2,");
	assert_false(l.ls.more);
	assert_int_equal(list(&l, BUCKET, "a/", "a/1", 1), 1);
	assert_string_equal(l.got, "a/10,");
	assert_true(l.ls.more);
	assert_int_equal(list(&l, BUCKET, "a/", "a/10", 1), 1);
	assert_false(l.ls.more);
	assert_int_equal(list(&l, BUCKET, "b", "a", 9), 1);  /* after lies before the prefix */
	assert_int_equal(list(&l, BUCKET, "a/", "b", 9), 0); /* and behind it */
	assert_int_equal(list(&l, BUCKET, NULL, "a/11", 2), 2);
	assert_string_equal(l.got, "a/2,b,");
	assert_true(l.ls.more);
	assert_int_equal(list(&l, BUCKET, NULL, "\xff", 2), 0);
	assert_int_equal(list(&l, BUCKET, "zzz", NULL, 2), 0);
	assert_int_equal(list(&l, BUCKET, NULL, NULL, 7), 7);
	assert_false(l.ls.more);
	l.stop_after = 2;
	assert_int_equal(list(&l, BUCKET, NULL, NULL, 100), 2);
	assert_string_equal(l.got, "a,a/1,");
	assert_true(l.ls.more);
	l.stop_after = 0;
	assert_int_equal(list(&l, "contract-no", NULL, NULL, 7), -ENXIO);
	assert_int_equal(bucket_create("contract-z"), 0);
	assert_int_equal(bucket_create("contract-a"), 0);
	assert_int_equal(list(&l, "contract-a", NULL, NULL, 7), 0);
	assert_int_equal(list(&l, NULL, "contract", NULL, 7), 3);
	assert_string_equal(l.got, "contract,contract-a,contract-z,");
	assert_int_equal(list(&l, NULL, "contract", "contract", 1), 1);
	assert_string_equal(l.got, "contract-a,");
	assert_true(l.ls.more);
	assert_int_equal(bucket_delete("contract-z"), 0);
	assert_int_equal(bucket_delete("contract-a"), 0);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(del(names[i]), 1);
	assert_int_equal(open_obj("a", &obj), -ENOENT);
	assert_int_equal(list(&l, BUCKET, NULL, NULL, 7), 0);
}

/* Longer than the store does in one turn. */
static bool
on_count(struct store_list *ls, const struct store_entry *e)
{
	return true;
}

static void
test_long_listing(void **state)
{
	struct store_list ls = {
		.bucket = BUCKET, .bucket_len = (uint16_t)strlen(BUCKET), .max = 1000, .entry = on_count
	};
	char key[16];

	for (int i = 0; i < 700; i++) {
		sprintf(key, "l%03d", i);
		assert_int_equal(put(key, 0, 1), 0);
	}
	assert_int_equal(wait_for(&ls.op, START(&ls.op, store_list(c->port, &ls))), 700);
	assert_false(ls.more);
	ls.max = 699;
	assert_int_equal(wait_for(&ls.op, START(&ls.op, store_list(c->port, &ls))), 699);
	assert_true(ls.more);
	for (int i = 0; i < 700; i++) {
		sprintf(key, "l%03d", i);
		assert_int_equal(del(key), 1);
	}
}

/* ---- at random, against a model ---- */

#define KEYS 24

static void
test_random(void **state)
{
	struct {
		bool exists;
		size_t start, size;
		unsigned etag;
	} m[KEYS] = { 0 };
	static struct putting pt;

	for (unsigned n = 0; n < (c->random_ops ? c->random_ops : 2000); n++) {
		unsigned i = (unsigned)(rnd() % KEYS), etag = n % 200;
		size_t max = rnd() % 50 ? rnd() % 4 ? 3000 : 300000 : OBJ_MAX;
		size_t start = rnd() % OBJ_MAX, size = rnd() % max;
		enum how how = size > 0 && rnd() % 3 == 0 ? HOW_WRITE : HOW_COMMIT;
		struct store_pre pre = { .kind = (enum store_pre_kind)(rnd() % 10 < 5 ? rnd() % 5 : 0),
					 .etag_nr = 1 };
		char key[16];
		int r, want;

		sprintf(key, "k%u", i);
		pre.etags[0] = rnd() % 4 ? etag_no(m[i].etag) : etag_no(201);
		switch (rnd() % 8) {
		case 0:
		case 1:
		case 2:
		case 3:
			memset(&pt, 0, sizeof pt);
			pt.commit.pre = pre;
			pt.commit.meta.etag = etag_no(etag);
			r = put_end(&pt, put_begin(&pt, key, start, size, how, STORE_PIECE, rnd() % 2));
			want = 0;
			break;
		case 4:
			r = del_pre(key, &pre);
			want = m[i].exists;
			break;
		default:
			if (m[i].exists) {
				expect(key, m[i].start, m[i].size);
			} else {
				struct store_obj obj;

				assert_int_equal(open_obj(key, &obj), -ENOENT);
			}
			continue;
		}
		if (pre.kind == PRE_ABSENT && m[i].exists)
			want = -EEXIST;
		else if ((pre.kind == PRE_MATCH_ANY || pre.kind == PRE_MATCH) && !m[i].exists)
			want = -ENOENT;
		else if (pre.kind == PRE_MATCH &&
			 memcmp(&pre.etags[0], &(struct store_etag[]){ etag_no(m[i].etag) },
				sizeof pre.etags[0]))
			want = -ESTALE;
		else if (pre.kind == PRE_NONE_MATCH && m[i].exists &&
			 !memcmp(&pre.etags[0], &(struct store_etag[]){ etag_no(m[i].etag) },
				 sizeof pre.etags[0]))
			want = -EEXIST;
		assert_int_equal(r, want);
		if (r == 1)
			m[i].exists = false;
		else if (r == 0 && want == 0 && pt.put.op.result == 0 && pt.size == size &&
			 pt.start == start) {
			m[i].exists = true;
			m[i].start = start;
			m[i].size = size;
			m[i].etag = etag;
		}
	}
	for (int i = 0; i < KEYS; i++) {
		char key[16];

		sprintf(key, "k%d", i);
		if (m[i].exists)
			expect(key, m[i].start, m[i].size);
		assert_int_equal(del(key), m[i].exists);
	}
}

static int
set_up(void **state)
{
	return bucket_create(BUCKET);
}

static int
tear_down(void **state)
{
	return bucket_delete(BUCKET);
}

int
store_contract_run(struct contract *contract)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),       cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_names),         cmocka_unit_test(test_versions),
		cmocka_unit_test(test_preconditions), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_concurrent),    cmocka_unit_test(test_reads),
		cmocka_unit_test(test_listing),       cmocka_unit_test(test_long_listing),
		cmocka_unit_test(test_random),
	};
	int failed;

	c = contract;
	rnd_state = c->seed ? c->seed : 1;
	pattern = malloc(2 * OBJ_MAX + 1);
	for (size_t i = 0; i <= 2 * OBJ_MAX; i++)
		pattern[i] = (unsigned char)(rnd() >> 24);
	failed = cmocka_run_group_tests_name("store contract", tests, set_up, tear_down);
	free(pattern);
	return failed;
}
