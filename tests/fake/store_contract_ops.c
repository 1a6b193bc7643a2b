/* SPDX-License-Identifier: Apache-2.0 */
/* The contract suite: buckets, puts, reads, deletes.  See store_contract.c. */
#include "tests/fake/store_contract_int.h"

#include "base/crc64.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

/* "contract-b" gets one copy; two are refused by a store that cannot, and can be had while it is empty by one that can. */
static void
test_copies(void)
{
	int r = sc_bucket_copies("contract-b");

	assert_true(r == 1 || r == 2); /* as the store's default_copies says */
	assert_int_equal(sc_bucket_make("contract-b", 1), r == 1 ? -EEXIST : 0);
	assert_int_equal(sc_bucket_make("contract-b", 1), -EEXIST);
	assert_int_equal(sc_bucket_make("contract-b", STORE_COPIES_MAX + 1), -EINVAL);
	assert_int_equal(sc_bucket_copies("contract-b"), 1);
	r = sc_bucket_make("contract-c", 2);
	if (r < 0) {
		assert_true(r == -EDOM || r == -EOPNOTSUPP);
		assert_int_equal(sc_bucket_head("contract-c", NULL), -ENXIO);
		return;
	}
	assert_int_equal(sc_bucket_copies("contract-c"), 2);
	assert_int_equal(sc_bucket_create("contract-c"), -EEXIST);
	assert_int_equal(sc_bucket_delete("contract-c"), 0);
	assert_int_equal(sc_bucket_make("contract-b", 2), 0);
	assert_int_equal(sc_bucket_copies("contract-b"), 2);
	assert_int_equal(sc_bucket_make("contract-b", 1), 0);
}

void
sc_test_buckets(void **state)
{
	char name[STORE_BUCKET_MAX + 2];
	uint64_t ctime = 0;

	assert_int_equal(sc_bucket_head("contract-b", NULL), -ENXIO);
	assert_int_equal(sc_bucket_create("contract-b"), 0);
	assert_int_equal(sc_bucket_create("contract-b"), -EEXIST);
	assert_int_equal(sc_bucket_head("contract-b", &ctime), 0);
	assert_true(ctime > 0);
	test_copies();
	assert_int_equal(sc_bucket_delete("contract-b"), 0);
	assert_int_equal(sc_bucket_delete("contract-b"), -ENXIO);
	assert_int_equal(sc_bucket_head("contract-b", NULL), -ENXIO);
	memset(name, 'n', sizeof name);
	name[STORE_BUCKET_MAX + 1] = 0;
	assert_int_equal(sc_bucket_create(name), -ENAMETOOLONG);
	name[STORE_BUCKET_MAX] = 0;
	assert_int_equal(sc_bucket_create(name), 0);
	assert_int_equal(sc_bucket_delete(name), 0);
	assert_int_equal(sc_put("x", 0, 10), 0);
	assert_int_equal(sc_bucket_delete(BUCKET), -ENOTEMPTY);
	assert_int_equal(sc_del("x"), 1);
}

void
sc_test_sizes(void **state)
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
			size_t start = sc_rnd() % OBJ_MAX;
			uint32_t piece = sc_rnd() % 3 ? STORE_PIECE : sc_rnd() % 2 ? 65536 : 196608;
			struct store_obj obj;

			if (sizes[i] == 0 && how == HOW_WRITE)
				continue;
			memset(&pt, 0, sizeof pt);
			pt.commit.meta.etag = sc_etag_no(i);
			pt.commit.meta.mtime_ns = 1000 + i;
			pt.commit.meta.attrs = sc_pattern + i;
			pt.commit.meta.attrs_len = i % 3 ? i * 7 : i ? STORE_ATTRS_MAX : 0;
			pt.commit.have_expect_crc64 = i % 2;
			pt.commit.expect_crc64 = crc64_nvme(0, sc_pattern + start, sizes[i]);
			assert_int_equal(sc_put_end(&pt, sc_put_begin(&pt, "size", start, sizes[i],
								      (enum how)how, piece, sc_rnd() % 2)),
					 0);
			assert_int_equal(sc_open_obj("size", &obj), 0);
			assert_true(obj.version == pt.put.version);
			assert_true(obj.meta.mtime_ns == 1000 + i);
			assert_memory_equal(&obj.meta.etag, &pt.commit.meta.etag, sizeof obj.meta.etag);
			assert_int_equal(obj.meta.attrs_len, pt.commit.meta.attrs_len);
			if (obj.meta.attrs_len)
				assert_memory_equal(obj.meta.attrs, sc_pattern + i, obj.meta.attrs_len);
			sc_read_all(&obj, start, sizes[i]);
			/* a part, on granules */
			if (sizes[i] > 2 * STORE_GRANULE) {
				uint64_t off = sc_rnd() % (sizes[i] / STORE_GRANULE) * STORE_GRANULE;
				uint64_t left = sizes[i] - off;

				sc_read_compare(&obj, start, off,
						left < STORE_GRANULE ? (uint32_t)left : STORE_GRANULE);
			}
			store_close(sc->port, &obj);
		}
	}
	assert_int_equal(sc_del("size"), 1);
}

/* A PUT into a bucket that is not there: it is refused at the beginning, or by the commit. */
static int
put_nowhere(const struct store_key *k)
{
	static struct store_put p;
	struct store_commit c = { .inline_data = "x", .inline_len = 1 };
	int r = store_put_init(sc->port, &p, k, 1);

	if (r < 0)
		return r;
	r = START(&p.op, store_put_commit(sc->port, &p, &c));
	if (r < 0)
		store_put_abort(sc->port, &p);
	return sc_wait_for(&p.op, r);
}

void
sc_test_names(void **state)
{
	char key[STORE_KEY_MAX + 2];
	struct store_key k = { BUCKET, key, (uint16_t)strlen(BUCKET), STORE_KEY_MAX + 1 };
	static struct store_put p;
	struct store_obj obj;

	memset(key, 'k', sizeof key);
	key[STORE_KEY_MAX + 1] = 0;
	assert_int_equal(store_put_init(sc->port, &p, &k, 1), -ENAMETOOLONG);
	store_put_abort(sc->port, &p);
	assert_int_equal(sc_open_obj(key, &obj), -ENAMETOOLONG);
	store_close(sc->port, &obj);
	assert_int_equal(sc_del(key), -ENAMETOOLONG);
	key[STORE_KEY_MAX] = 0;
	assert_int_equal(sc_put(key, 5, 70000), 0);
	sc_expect(key, 5, 70000);
	assert_int_equal(sc_del(key), 1);
	assert_int_equal(sc_put("\x01 /../\xff\xfe", 1, 2), 0);
	sc_expect("\x01 /../\xff\xfe", 1, 2);
	assert_int_equal(sc_del("\x01 /../\xff\xfe"), 1);
	/* no such bucket */
	k = (struct store_key){ "contract-no", "k", 11, 1 };
	assert_int_equal(put_nowhere(&k), -ENXIO);
	memset(&obj, 0, sizeof obj);
	assert_int_equal(sc_wait_for(&obj.op, START(&obj.op, store_open(sc->port, &k, &obj))), -ENXIO);
	assert_int_equal(sc_open_obj("not there", &obj), -ENOENT);
	assert_int_equal(sc_del("not there"), 0);
	store_close(sc->port, NULL);
	store_put_abort(sc->port, NULL);
}

/* An open version stays what it was, however often it is replaced or deleted meanwhile. */
void
sc_test_versions(void **state)
{
	struct store_obj obj[4];
	uint64_t before = 0;

	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(sc_put("v", i * 100, 200000 + i), 0);
		assert_int_equal(sc_open_obj("v", &obj[i]), 0);
		assert_true(obj[i].version > before);
		before = obj[i].version;
	}
	assert_int_equal(sc_del("v"), 1);
	/* space that comes back would be used again by these */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(sc_put("w", 77, 300000), 0);
		sc->turn(sc);
	}
	for (unsigned i = 0; i < 4; i++)
		sc_read_all(&obj[i], i * 100, 200000 + i);
	for (unsigned i = 4; i-- > 0;)
		store_close(sc->port, &obj[i]);
	assert_int_equal(sc_open_obj("v", &obj[0]), -ENOENT);
	assert_int_equal(sc_del("w"), 1);
}

void
sc_test_preconditions(void **state)
{
	struct store_pre absent = { .kind = PRE_ABSENT }, any = { .kind = PRE_MATCH_ANY },
			 none = { .kind = PRE_NONE };
	struct store_pre match = { .kind = PRE_MATCH,
				   .etags = { sc_etag_no(9), sc_etag_no(1) },
				   .etag_nr = 2 };
	struct store_pre other = { .kind = PRE_MATCH, .etags = { sc_etag_no(9) }, .etag_nr = 1 };
	struct store_pre unless = { .kind = PRE_NONE_MATCH, .etags = { sc_etag_no(1) }, .etag_nr = 1 };

	assert_int_equal(sc_put_pre("p", 10, 1, &any), -ENOENT);
	assert_int_equal(sc_put_pre("p", 10, 1, &match), -ENOENT);
	assert_int_equal(sc_put_pre("p", 10, 1, &absent), 0);
	assert_int_equal(sc_put_pre("p", 11, 2, &absent), -EEXIST);
	assert_int_equal(sc_put_pre("p", 70000, 2, &absent), -EEXIST);
	assert_int_equal(sc_put_pre("p", 11, 2, &other), -ESTALE);
	assert_int_equal(sc_put_pre("p", 11, 2, &unless), -EEXIST);
	sc_expect("p", 0, 10);
	assert_int_equal(sc_put_pre("p", 12, 1, &match), 0);
	assert_int_equal(sc_put_pre("p", 13, 1, &any), 0);
	assert_int_equal(sc_put_pre("p", 14, 2, &none), 0);
	assert_int_equal(sc_put_pre("p", 15, 1, &unless), 0);
	sc_expect("p", 0, 15);
	assert_int_equal(sc_del_pre("p", &other), -ESTALE);
	assert_int_equal(sc_del_pre("p", &match), 1);
	assert_int_equal(sc_del_pre("p", &match), -ENOENT);
	assert_int_equal(sc_del_pre("p", &none), 0);
	/* The version that was seen, and no other. */
	struct store_pre seen = { .kind = PRE_VERSION };
	struct store_obj obj;

	memset(&obj, 0, sizeof(obj));
	assert_int_equal(sc_del_pre("p", &seen), -ENOENT);
	assert_int_equal(sc_put_pre("p", 16, 1, &none), 0);
	assert_int_equal(sc_open_obj("p", &obj), 0);
	seen.version = obj.version;
	store_close(sc->port, &obj);
	assert_int_equal(sc_put_pre("p", 17, 1, &seen), 0);
	assert_int_equal(sc_put_pre("p", 18, 1, &seen), -ESTALE);
	assert_int_equal(sc_del_pre("p", &seen), -ESTALE);
	sc_expect("p", 0, 17);
	/* Whoever has to keep what is there, whatever else they ask for; what they asked for is told first. */
	struct store_pre keep = { .keep = true }, keep_any = any, keep_absent = absent, keep_other = other;

	keep_any.keep = keep_absent.keep = keep_other.keep = true;
	assert_int_equal(sc_put_pre("p", 18, 1, &keep), -EPERM);
	assert_int_equal(sc_put_pre("p", 70000, 1, &keep), -EPERM);
	assert_int_equal(sc_put_pre("p", 18, 1, &keep_any), -EPERM);
	assert_int_equal(sc_put_pre("p", 18, 1, &keep_absent), -EEXIST);
	assert_int_equal(sc_put_pre("p", 18, 1, &keep_other), -ESTALE);
	assert_int_equal(sc_del_pre("p", &keep), -EPERM);
	sc_expect("p", 0, 17);
	assert_int_equal(sc_del("p"), 1);
	assert_int_equal(sc_del_pre("p", &keep), 0);
	assert_int_equal(sc_put_pre("p", 19, 1, &keep_any), -ENOENT);
	assert_int_equal(sc_put_pre("p", 19, 1, &keep), 0);
	assert_int_equal(sc_put_pre("p", 20, 1, &keep), -EPERM);
	sc_expect("p", 0, 19);
	assert_int_equal(sc_del("p"), 1);
}

/* What was refused or given up leaves nothing behind. */
void
sc_test_refused(void **state)
{
	static struct putting pt;
	struct store_obj obj;
	static const size_t sizes[] = { 100, 60000, 3000000 };

	assert_int_equal(sc_put("r", 3, 50), 0);
	for (int i = 0; i < 3; i++) {
		for (int how = HOW_COMMIT; how <= HOW_WRITE; how++) {
			memset(&pt, 0, sizeof pt);
			pt.commit.have_expect_crc64 = true;
			pt.commit.expect_crc64 = 1;
			assert_int_equal(sc_put_end(&pt, sc_put_begin(&pt, "r", 0, sizes[i], (enum how)how,
								      STORE_PIECE, true)),
					 -EILSEQ);
		}
	}
	for (int i = 0; i < 5; i++) { /* begun, written, given up */
		struct store_key k = sc_key_of("r2");
		struct buf *b = bufpool_get(sc->bufs, BUF_LARGE);

		assert_int_equal(store_put_init(sc->port, &pt.put, &k, i % 2 ? STORE_SIZE_UNKNOWN : 5 << 20),
				 0);
		if (i) {
			int r = START(&pt.w[0].op,
				      store_put_write(sc->port, &pt.put, &pt.w[0], b, STORE_PIECE, false));

			assert_int_equal(sc_wait_for(&pt.w[0].op, r), 0);
		}
		store_put_abort(sc->port, &pt.put);
		store_put_abort(sc->port, &pt.put);
		bufpool_put(sc->bufs, b);
	}
	sc_expect("r", 3, 50);
	assert_int_equal(sc_open_obj("r2", &obj), -ENOENT);
	assert_int_equal(sc_del("r"), 1);
}

/* Many at once; of those that must be first, one is. */
void
sc_test_concurrent(void **state)
{
	static struct putting pt[PUTS_AT_ONCE];
	int r[PUTS_AT_ONCE], won = 0;
	char key[16];
	struct store_del d;

	for (int i = 0; i < PUTS_AT_ONCE; i++) {
		memset(&pt[i], 0, sizeof pt[i]);
		pt[i].commit.pre.kind = PRE_ABSENT;
		r[i] = sc_put_begin(&pt[i], "c", (size_t)i, 1000 + (size_t)i * 10000, HOW_COMMIT, STORE_PIECE,
				    true);
		assert_true(r[i] >= 0);
	}
	for (int i = 0; i < PUTS_AT_ONCE; i++) {
		r[i] = sc_put_end(&pt[i], r[i]);
		assert_true(r[i] == 0 || r[i] == -EEXIST);
		if (r[i] == 0) {
			won++;
			sc_expect("c", (size_t)i, 1000 + (size_t)i * 10000);
		}
	}
	assert_int_equal(won, 1);
	/* different keys, and the deletion of one while they are on their way */
	for (int i = 0; i < PUTS_AT_ONCE; i++) {
		struct store_key k = sc_key_of("c");

		memset(&pt[i], 0, sizeof pt[i]);
		sprintf(key, "c%d", i);
		r[i] = sc_put_begin(&pt[i], key, (size_t)i, (size_t)i * 40000, HOW_COMMIT, STORE_PIECE,
				    i % 2);
		if (i == 3)
			assert_int_equal(
				sc_wait_for(&d.op, START(&d.op, store_delete(sc->port, &k, NULL, &d))), 1);
	}
	for (int i = 0; i < PUTS_AT_ONCE; i++)
		assert_int_equal(sc_put_end(&pt[i], r[i]), 0);
	for (int i = 0; i < PUTS_AT_ONCE; i++) {
		sprintf(key, "c%d", i);
		sc_expect(key, (size_t)i, (size_t)i * 40000);
		assert_int_equal(sc_del(key), 1);
	}
}

/* Reads of one object overlap. */
void
sc_test_reads(void **state)
{
	struct store_obj obj;
	struct store_read rd[8];
	struct buf *b[8];
	uint64_t off[8];
	int r[8];

	assert_int_equal(sc_put("rd", 9, 5000000), 0);
	assert_int_equal(sc_open_obj("rd", &obj), 0);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 8; i++) {
			off[i] = sc_rnd() % 60 * STORE_GRANULE;
			b[i] = bufpool_get(sc->bufs, BUF_LARGE);
			r[i] = START(&rd[i].op, store_read(sc->port, &obj, &rd[i], b[i], off[i],
							   (uint32_t)(1 + i) * STORE_GRANULE));
		}
		for (int i = 0; i < 8; i++) {
			assert_int_equal(sc_wait_for(&rd[i].op, r[i]), (1 + i) * (int)STORE_GRANULE);
			assert_memory_equal(b[i]->mem, sc_pattern + 9 + off[i],
					    (size_t)(1 + i) * STORE_GRANULE);
			bufpool_put(sc->bufs, b[i]);
		}
	}
	store_close(sc->port, &obj);
	assert_int_equal(sc_del("rd"), 1);
}

/* A back end that cannot cancel a read ends it as if nobody had asked; one that can lets go of the buffer
 * at once. */
void
sc_test_read_cancel(void **state)
{
	struct store_obj obj;
	struct store_read rd;
	struct buf *b = bufpool_get(sc->bufs, BUF_LARGE);
	int r;

	assert_non_null(b);
	assert_int_equal(sc_put("cancel", 3, STORE_PIECE), 0);
	assert_int_equal(sc_open_obj("cancel", &obj), 0);
	for (int i = 0; i < 4; i++) {
		memset(b->mem, 0xee, STORE_PIECE);
		r = START(&rd.op, store_read(sc->port, &obj, &rd, b, 0, STORE_PIECE));
		assert_true(r >= 0);
		if (r == 0 && store_read_cancel(sc->port, &rd))
			continue;
		assert_int_equal(sc_wait_for(&rd.op, r), (int)STORE_PIECE);
		assert_memory_equal(b->mem, sc_pattern + 3, STORE_PIECE);
	}
	store_close(sc->port, &obj);
	bufpool_put(sc->bufs, b);
	assert_int_equal(sc_del("cancel"), 1);
}

static int
open_to_read(const char *key, struct store_obj *obj)
{
	struct store_key k = sc_key_of(key);

	memset(obj, 0, sizeof *obj);
	return START(&obj->op, store_open_to_read(sc->port, &k, UINT64_MAX, obj));
}

/* What it was when it was replaced, or removed, under an open: one or the other, and whole. */
static void
expect_either(struct store_obj *obj, int r, size_t size, bool is_gone)
{
	r = sc_wait_for(&obj->op, r);
	if (r == -ENOENT) {
		assert_true(is_gone);
		return;
	}
	assert_int_equal(r, 0);
	if (obj->crc64 == crc64_nvme(0, sc_pattern + 3, size))
		sc_read_all(obj, 3, size);
	else
		sc_read_all(obj, 4, size);
	store_close(sc->port, obj);
}

/* Opening an object to read it brings what opening it brings; who changes his mind, closes or cancels, and what changes meanwhile
 * are as ever. */
void
sc_test_open_to_read(void **state)
{
	static const size_t sizes[] = { 0,          STORE_INLINE_MAX, 1000, STORE_GRANULE, STORE_GRANULE + 1,
					STORE_PIECE };
	static struct putting pt;
	struct buf *b = bufpool_get(sc->bufs, BUF_LARGE);
	struct store_obj obj;
	struct store_read rd;
	struct store_del d;
	int r, s;

	assert_non_null(b);
	assert_int_equal(sc_wait_for(&obj.op, open_to_read("to-read", &obj)), -ENOENT);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t size = sizes[i];
		struct store_key k = sc_key_of("to-read");

		assert_int_equal(sc_put("to-read", 3, size), 0);
		for (int n = 0; n < 3; n++) {
			assert_int_equal(sc_wait_for(&obj.op, open_to_read("to-read", &obj)), 0);
			for (int again = 0; again < n; again++)
				sc_read_all(&obj, 3, size);
			store_close(sc->port, &obj);
		}
		for (int n = 0; size && n < 4; n++) {
			assert_int_equal(sc_wait_for(&obj.op, open_to_read("to-read", &obj)), 0);
			r = START(&rd.op, store_read(sc->port, &obj, &rd, b, 0, (uint32_t)size));
			assert_true(r >= 0);
			if (r > 0 || !store_read_cancel(sc->port, &rd))
				assert_int_equal(sc_wait_for(&rd.op, r), (int)size);
			store_close(sc->port, &obj);
		}
		memset(&pt, 0, sizeof pt);
		r = open_to_read("to-read", &obj);
		s = sc_put_begin(&pt, "to-read", 4, size, HOW_COMMIT, STORE_PIECE, true);
		expect_either(&obj, r, size, false);
		assert_int_equal(sc_put_end(&pt, s), 0);
		sc_expect("to-read", 4, size);
		assert_int_equal(sc_wait_for(&obj.op, open_to_read("to-read", &obj)), 0);
		sc_read_all(&obj, 4, size);
		store_close(sc->port, &obj);
		r = open_to_read("to-read", &obj);
		s = START(&d.op, store_delete(sc->port, &k, NULL, &d));
		expect_either(&obj, r, size, true);
		assert_int_equal(sc_wait_for(&d.op, s), 1);
		assert_int_equal(sc_wait_for(&obj.op, open_to_read("to-read", &obj)), -ENOENT);
	}
	bufpool_put(sc->bufs, b);
}

/* Takes a buffer for the longest read of the store. */
static struct buf *
long_buf(void)
{
	uint32_t most = store_limits(sc->port)->read_bytes;
	struct buf *b = most > STORE_PIECE ? bufpool_get_run(sc->bufs) : bufpool_get(sc->bufs, BUF_LARGE);

	assert_non_null(b);
	assert_true(b->cap_bytes >= most);
	return b;
}

static bool
has_only(const char *mem, char c, size_t len)
{
	return mem[0] == c && memcmp(mem, mem + 1, len - 1) == 0;
}

/* Reads as long as the store has them, from wherever they may begin; and one that is given up writes nowhere any more. */
void
sc_test_long_reads(void **state)
{
	const size_t size = OBJ_MAX - 12345;
	uint32_t most = store_limits(sc->port)->read_bytes, skew, n;
	struct buf *b[3];
	struct store_read rd[3];
	struct store_obj obj;
	uint64_t off;
	int r[3];

	assert_in_range(most, store_limits(sc->port)->piece_bytes, STORE_READ);
	assert_int_equal(sc_put("long", 11, size), 0);
	assert_int_equal(sc_open_obj("long", &obj), 0);
	for (int i = 0; i < 3; i++)
		b[i] = long_buf();
	for (int i = 0; i < 30; i++) {
		off = i == 0 ? 0 : i == 1 ? size - 1 : sc_rnd() % size;
		n = store_read_plan(&obj, off, size - off, most, &skew);
		assert_true(n > skew && n <= most && off - skew + n <= size);
		/* Whole granules, over whatever border. */
		off -= skew;
		if (i % 2)
			n = size - off < most ? (uint32_t)(size - off) : most;
		r[0] = START(&rd[0].op, store_read(sc->port, &obj, &rd[0], b[0], off, n));
		assert_int_equal(sc_wait_for(&rd[0].op, r[0]), (int)n);
		assert_memory_equal(b[0]->mem + rd[0].lead, sc_pattern + 11 + off, n);
	}
	for (int i = 0; i < 8; i++) {
		bool gone[2];

		n = most < size ? most : (uint32_t)size;
		for (int k = 0; k < 3; k++) {
			r[k] = START(&rd[k].op, store_read(sc->port, &obj, &rd[k], b[k], 0, n));
			assert_true(r[k] >= 0);
		}
		for (int k = 0; k < 2; k++) {
			gone[k] = r[k] == 0 && store_read_cancel(sc->port, &rd[k]);
			if (gone[k])
				memset(b[k]->mem, 0xee, b[k]->cap_bytes);
		}
		for (int k = 0; k < 3; k++) {
			if (k < 2 && gone[k])
				continue;
			assert_int_equal(sc_wait_for(&rd[k].op, r[k]), (int)n);
			assert_memory_equal(b[k]->mem + rd[k].lead, sc_pattern + 11, n);
		}
		for (int k = 0; k < 2; k++)
			assert_true(!gone[k] || has_only(b[k]->mem, (char)0xee, b[k]->cap_bytes));
	}
	for (int i = 0; i < 3; i++)
		bufpool_put(sc->bufs, b[i]);
	store_close(sc->port, &obj);
	assert_int_equal(sc_del("long"), 1);
}

/* ---- what operators see ---- */

/* Of one unit: a name, a state, numbers with names of their own that stay what they are. */
static void
expect_unit(int unit)
{
	struct store_unit_info info, again;

	/* What was there before is no part of the answer. */
	memset(&info, 0xff, sizeof info);
	store_unit_info(sc->store, unit, &info);
	store_unit_info(sc->store, unit, &again);
	assert_non_null(info.name);
	assert_true(info.name[0]);
	assert_string_equal(info.name, again.name);
	assert_int_equal(info.state, UNIT_OK);
	assert_true(memchr(info.reason, 0, sizeof info.reason));
	assert_true(info.size_bytes > 0 && info.free_bytes <= info.size_bytes);
	assert_in_range(info.number_nr, 0, STORE_UNIT_NUMBERS_MAX);
	assert_int_equal(info.number_nr, again.number_nr);
	for (int i = 0; i < info.number_nr; i++) {
		const char *name = info.number[i].name;

		assert_true(name && *name);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789"), strlen(name));
		assert_string_equal(name, again.number[i].name);
		assert_int_equal(store_unit_number(&info, name), info.number[i].value);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(name, info.number[k].name);
	}
	assert_int_equal(store_unit_number(&info, "no_such_number"), 0);
}

/* UINT64_MAX: this back end counts none. */
static uint64_t
objects_counted(void)
{
	uint64_t n = 0, counting = 0;

	for (int u = 0; u < store_unit_nr(sc->store); u++) {
		struct store_unit_info info;

		store_unit_info(sc->store, u, &info);
		n += store_unit_number(&info, "objects");
		for (int i = 0; i < info.number_nr; i++)
			counting += strcmp(info.number[i].name, "objects") == 0;
	}
	return counting ? n : UINT64_MAX;
}

void
sc_test_units(void **state)
{
	uint64_t before = objects_counted();

	assert_in_range(store_unit_nr(sc->store), 1, 1000);
	for (int u = 0; u < store_unit_nr(sc->store); u++)
		expect_unit(u);
	assert_int_equal(sc_put("units", 0, 1000), 0);
	if (before != UINT64_MAX)
		assert_int_equal(objects_counted(), before + 1);
	assert_int_equal(sc_del("units"), 1);
	assert_int_equal(objects_counted(), before);
	assert_int_equal(store_snapshot(sc->store), store_has_snapshots(sc->store) ? 0 : -EOPNOTSUPP);
	assert_true(store_name(sc->store)[0]);
}
