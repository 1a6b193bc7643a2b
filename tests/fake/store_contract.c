/* SPDX-License-Identifier: Apache-2.0 */
/* The contract suite; see store_contract.h.  One thread: every test starts operations and turns the loop
 * until they are done. */
#include "tests/fake/store_contract_int.h"

#include "base/crc64.h"
#include "tests/fake/wait.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

struct contract *sc;
static uint64_t rnd_state;
unsigned char *sc_pattern; /* 2 * OBJ_MAX random bytes: an object is a piece of it */

uint64_t
sc_rnd(void)
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
bool sc_in_start;

void
sc_on_done(struct store_op *op)
{
	assert_false(sc_in_start);
	assert_true(over_nr < OPS_MAX);
	assert_true(sc->is_ours ? sc->is_ours(sc, op->port) : op->port == sc->port);
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

/* What the store found, which is what came of an operation that was started, and not a start that was refused. */
static bool
is_finding(int error)
{
	static const int findings[] = { ESTALE, EBADR, EMSGSIZE };

	for (unsigned i = 0; i < sizeof findings / sizeof *findings; i++) {
		if (error == -findings[i])
			return true;
	}
	return false;
}

int
sc_start_over(int r)
{
	assert_false(is_finding(r));
	sc_in_start = false;
	return r;
}

/* r: what the start returned.  The result, or the start's error. */
int
sc_wait_for(struct store_op *op, int r)
{
	if (r < 0)
		return r;
	if (r > 0)
		return op->result;
	wait_until(take_over(op))
		sc->turn(sc);
	return op->result;
}

struct store_key
sc_key_of(const char *key)
{
	return (struct store_key){ BUCKET, key, (uint16_t)strlen(BUCKET), (uint16_t)strlen(key) };
}

int
sc_bucket_make(const char *name, unsigned copies)
{
	struct store_del op;

	return sc_wait_for(&op.op,
			   START(&op.op, store_bucket_create(sc->port, name, strlen(name), copies, &op)));
}

int
sc_bucket_create(const char *name)
{
	return sc_bucket_make(name, 0);
}

int
sc_bucket_copies(const char *name)
{
	struct store_stat s = { .copies = 77 };
	int r = sc_wait_for(&s.op, START(&s.op, store_bucket_head(sc->port, name, strlen(name), &s)));

	return r < 0 ? r : (int)s.copies;
}

int
sc_bucket_delete(const char *name)
{
	struct store_del op;

	return sc_wait_for(&op.op, START(&op.op, store_bucket_delete(sc->port, name, strlen(name), &op)));
}

int
sc_bucket_head(const char *name, uint64_t *ret_ctime_ns)
{
	struct store_stat s = { .ctime_ns = 0 };
	int r = sc_wait_for(&s.op, START(&s.op, store_bucket_head(sc->port, name, strlen(name), &s)));

	if (r == 0 && ret_ctime_ns)
		*ret_ctime_ns = s.ctime_ns;
	return r;
}

int
sc_bucket_get_attrs(const char *name, void *attrs, uint32_t cap, uint64_t *ret_version)
{
	struct store_stat s = { .attrs_len = 0 };
	int r = sc_wait_for(
		&s.op, START(&s.op, store_bucket_get_attrs(sc->port, name, strlen(name), attrs, cap, &s)));

	if (r < 0)
		return r;
	assert_int_equal(r, 0);
	if (ret_version)
		*ret_version = s.version;
	return (int)s.attrs_len;
}

int
sc_upload_stat(const struct store_key *k, const uint8_t *id, uint64_t *ret_ctime_ns, void *attrs,
	       uint32_t cap, uint32_t *ret_attrs_len)
{
	struct store_stat s = { .attrs_len = 0 };
	int r = sc_wait_for(&s.op, START(&s.op, store_upload_stat(sc->port, k, id, attrs, cap, &s)));

	if (r == 0 && ret_ctime_ns)
		*ret_ctime_ns = s.ctime_ns;
	if (r == 0 && ret_attrs_len)
		*ret_attrs_len = s.attrs_len;
	return r;
}

int
sc_del_pre(const char *key, const struct store_pre *pre)
{
	struct store_key k = sc_key_of(key);
	struct store_del op;

	return sc_wait_for(&op.op, START(&op.op, store_delete(sc->port, &k, pre, &op)));
}

int
sc_del(const char *key)
{
	return sc_del_pre(key, NULL);
}

int
sc_open_obj(const char *key, struct store_obj *obj)
{
	struct store_key k = sc_key_of(key);

	memset(obj, 0, sizeof *obj);
	return sc_wait_for(&obj->op, START(&obj->op, store_open(sc->port, &k, obj)));
}

/* ---- writing ---- */

/* Everything up to the start of the commit; what store_put_commit() returned, or an earlier error (then it is
 * aborted). */
int
sc_put_begin(struct putting *pt, const char *key, size_t start, size_t size, enum how how, uint32_t piece,
	     bool say_size)
{
	const char *bucket = pt->bucket ? pt->bucket : BUCKET;
	struct store_key k = { bucket, key, (uint16_t)strlen(bucket), (uint16_t)strlen(key) };
	size_t at = 0;
	int r, busy = 0;

	pt->start = start;
	pt->size = size;
	pt->last = NULL;
	if (pt->upload_id)
		r = store_put_init_part(sc->port, &pt->put, &k, pt->upload_id, pt->part_number,
					say_size ? size : STORE_SIZE_UNKNOWN);
	else
		r = store_put_init(sc->port, &pt->put, &k, say_size ? size : STORE_SIZE_UNKNOWN);
	if (r < 0)
		return r;
	if (size <= STORE_INLINE_MAX && how == HOW_COMMIT) {
		char copy[STORE_INLINE_MAX];

		memcpy(copy, sc_pattern + start, size);
		pt->commit.inline_data = copy;
		pt->commit.inline_len = (uint32_t)size;
		r = START(&pt->put.op, store_put_commit(sc->port, &pt->put, &pt->commit));
		memset(copy, 0, sizeof copy);
		if (r < 0)
			store_put_abort(sc->port, &pt->put);
		return r;
	}
	while (at < size) {
		uint32_t len = size - at < piece ? (uint32_t)(size - at) : piece;
		bool last = at + len == size;
		struct buf *b = bufpool_get(sc->bufs, buf_class_for(piece));

		assert_non_null(b);
		memcpy(b->mem, sc_pattern + start + at, len);
		at += len;
		if (last && how == HOW_COMMIT) {
			pt->last = b;
			pt->commit.last = b;
			pt->commit.last_len = len;
			break;
		}
		pt->wbuf[busy] = b;
		r = START(&pt->w[busy].op, store_put_write(sc->port, &pt->put, &pt->w[busy], b, len, last));
		assert_true(r >= 0);
		if (r > 0) {
			assert_int_equal(pt->w[busy].op.result, 0);
			bufpool_put(sc->bufs, b);
		} else {
			busy++;
		}
		while (busy && (busy == 4 || at == size || (at + piece >= size && how == HOW_COMMIT))) {
			busy--;
			assert_int_equal(sc_wait_for(&pt->w[busy].op, 0), 0);
			bufpool_put(sc->bufs, pt->wbuf[busy]);
		}
	}
	r = START(&pt->put.op, store_put_commit(sc->port, &pt->put, &pt->commit));
	if (r < 0) {
		store_put_abort(sc->port, &pt->put);
		if (pt->last)
			bufpool_put(sc->bufs, pt->last);
	}
	return r;
}

int
sc_put_end(struct putting *pt, int r)
{
	bool began = r >= 0;

	r = sc_wait_for(&pt->put.op, r);
	if (began && pt->last)
		bufpool_put(sc->bufs, pt->last);
	if (r == 0) {
		assert_true(pt->put.size_bytes == pt->size);
		assert_true(pt->put.crc64 == crc64_nvme(0, sc_pattern + pt->start, pt->size));
		assert_true(pt->put.version > 0);
	}
	if (began)
		store_put_abort(sc->port, &pt->put); /* harmless after the end */
	return r;
}

int
sc_put(const char *key, size_t start, size_t size)
{
	static struct putting pt;

	memset(&pt, 0, sizeof pt);
	return sc_put_end(&pt, sc_put_begin(&pt, key, start, size, HOW_COMMIT, STORE_PIECE, true));
}

struct store_etag
sc_etag_no(unsigned n)
{
	return (struct store_etag){ .sum = { (uint8_t)n, 7 }, .parts = n % 3 };
}

int
sc_put_pre(const char *key, size_t size, unsigned etag, const struct store_pre *pre)
{
	static struct putting pt;

	memset(&pt, 0, sizeof pt);
	pt.commit.pre = *pre;
	pt.commit.meta.etag = sc_etag_no(etag);
	return sc_put_end(&pt, sc_put_begin(&pt, key, 0, size, HOW_COMMIT, STORE_PIECE, true));
}

/* ---- reading ---- */

/* Reads [off, off + len) and compares. */
void
sc_read_compare(struct store_obj *obj, size_t start, uint64_t off, uint32_t len)
{
	struct store_read rd;
	struct buf *b = bufpool_get(sc->bufs, buf_class_for(len));

	assert_non_null(b);
	assert_int_equal(sc_wait_for(&rd.op, START(&rd.op, store_read(sc->port, obj, &rd, b, off, len))),
			 (int)len);
	assert_memory_equal(b->mem + rd.lead, sc_pattern + start + off, len);
	bufpool_put(sc->bufs, b);
}

void
sc_read_all(struct store_obj *obj, size_t start, size_t size)
{
	assert_true(obj->size_bytes == size);
	assert_true(obj->crc64 == crc64_nvme(0, sc_pattern + start, size));
	for (uint64_t at = 0; at < size; at += STORE_PIECE)
		sc_read_compare(obj, start, at,
				size - at < STORE_PIECE ? (uint32_t)(size - at) : STORE_PIECE);
}

static void
read_parts(struct store_obj *obj, size_t start, size_t size)
{
	uint32_t skew;

	assert_true(obj->size_bytes == size && obj->part_nr > 0);
	assert_true(obj->crc64 == crc64_nvme(0, sc_pattern + start, size));
	for (uint64_t at = 0; at < size;) {
		uint32_t n = store_read_plan(obj, at, size - at, STORE_PIECE, &skew);

		assert_int_equal(skew, 0);
		sc_read_compare(obj, start, at, n);
		at += n;
	}
}

/* The second copy, in a store where each key has one, is what the first is. */
static void
expect_second(const struct store_obj *first, const char *key, size_t start, size_t size)
{
	struct store_key k = sc_key_of(key);
	struct store_obj obj = { .size_bytes = 0 };

	assert_int_equal(first->has_second, sc->has_two_copies);
	if (!sc->has_two_copies)
		return;
	assert_int_equal(sc_wait_for(&obj.op, START(&obj.op, store_open_second(sc->port, &k, &obj))), 0);
	assert_true(obj.version == first->version && obj.part_nr == first->part_nr);
	assert_true(obj.meta.mtime_ns == first->meta.mtime_ns);
	assert_memory_equal(&obj.meta.etag, &first->meta.etag, sizeof obj.meta.etag);
	assert_int_equal(obj.meta.attrs_len, first->meta.attrs_len);
	assert_memory_equal(obj.meta.attrs, first->meta.attrs, obj.meta.attrs_len);
	if (obj.part_nr)
		read_parts(&obj, start, size);
	else
		sc_read_all(&obj, start, size);
	store_close(sc->port, &obj);
}

void
sc_expect(const char *key, size_t start, size_t size)
{
	struct store_obj obj;

	assert_int_equal(sc_open_obj(key, &obj), 0);
	assert_true(obj.is_open);
	sc_read_all(&obj, start, size);
	expect_second(&obj, key, start, size);
	store_close(sc->port, &obj);
	assert_false(obj.is_open);
	store_close(sc->port, &obj);
}

void
sc_expect_parts(const char *key, size_t start, size_t size)
{
	struct store_obj obj;

	assert_int_equal(sc_open_obj(key, &obj), 0);
	read_parts(&obj, start, size);
	expect_second(&obj, key, start, size);
	store_close(sc->port, &obj);
}

static int
set_up(void **state)
{
	return sc_bucket_create(BUCKET);
}

static int
tear_down(void **state)
{
	return sc_bucket_delete(BUCKET);
}

int
store_contract_run(struct contract *contract)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sc_test_buckets),         cmocka_unit_test(sc_test_sizes),
		cmocka_unit_test(sc_test_names),           cmocka_unit_test(sc_test_versions),
		cmocka_unit_test(sc_test_preconditions),   cmocka_unit_test(sc_test_refused),
		cmocka_unit_test(sc_test_concurrent),      cmocka_unit_test(sc_test_reads),
		cmocka_unit_test(sc_test_read_cancel),     cmocka_unit_test(sc_test_open_to_read),
		cmocka_unit_test(sc_test_listing),         cmocka_unit_test(sc_test_long_listing),
		cmocka_unit_test(sc_test_random),          cmocka_unit_test(sc_test_delimiter),
		cmocka_unit_test(sc_test_prefixes),        cmocka_unit_test(sc_test_upload),
		cmocka_unit_test(sc_test_bad_completions), cmocka_unit_test(sc_test_small_uploads),
		cmocka_unit_test(sc_test_odd_parts),       cmocka_unit_test(sc_test_list_uploads),
		cmocka_unit_test(sc_test_upload_races),    cmocka_unit_test(sc_test_upload_bucket),
		cmocka_unit_test(sc_test_set_attrs),       cmocka_unit_test(sc_test_set_attrs_parts),
		cmocka_unit_test(sc_test_bucket_attrs),    cmocka_unit_test(sc_test_units),
		cmocka_unit_test(sc_test_quota_counts),    cmocka_unit_test(sc_test_quota_bucket),
		cmocka_unit_test(sc_test_quota_patterns),  cmocka_unit_test(sc_test_quota_races),
		cmocka_unit_test(sc_test_quota_buckets),   cmocka_unit_test(sc_test_quota_bucket_number),
		cmocka_unit_test(sc_test_quota_reserved),  cmocka_unit_test(sc_test_quota_copies),
		cmocka_unit_test(sc_test_quota_readers),   cmocka_unit_test(sc_test_quota_ghosts),
		cmocka_unit_test(sc_test_long_reads),      cmocka_unit_test(sc_test_expiry),
		cmocka_unit_test(sc_test_expiry_list),
	};
	int failed;

	sc = contract;
	rnd_state = sc->seed ? sc->seed : 1;
	sc_pattern = malloc(2 * OBJ_MAX + 1);
	for (size_t i = 0; i <= 2 * OBJ_MAX; i++)
		sc_pattern[i] = (unsigned char)(sc_rnd() >> 24);
	failed = cmocka_run_group_tests_name("store contract", tests, set_up, tear_down);
	free(sc_pattern);
	return failed;
}
