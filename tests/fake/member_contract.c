/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between a set and its engines, see member_contract.h. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/fake/member_contract.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "base/list.h"
#include "store/own_buf.h"
#include "model/quota.h"
#include "store/user.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A 0
#define B 1
#define BUCKET "b"
#define PAIRED "two" /* its keys have two copies */

static struct member_contract con;
static const struct store_member_ops *ops;
static struct store *engine[2];
static struct store_member member[2];
static struct store_user *user;
static struct quota_book *book;
static struct store_slots all, none;
static struct disk_table table;
static uint64_t start_no;
static struct buf buf;
static char err[512];

static struct store_port *
at(int i)
{
	return store_user_port(user, i);
}

/* ---- two engines ---- */

static void
make_disks(void)
{
	uint64_t size[2];
	uint8_t uuid[2][UUID_BYTES] = { { 1, 1 }, { 2, 2 } };
	struct store_birth birth = { .store_uuid = { 3, 3 } };

	for (int look = 1; look >= 0; look--) {
		birth.is_look = look;
		for (int i = 0; i < 2; i++) {
			struct store_conf c = { .ops = con.engine,
						.disks = { .disk = &con.disk[i],
							   .nr = 1,
							   .index_bytes = con.index_bytes,
							   .birth = &birth } };

			birth.number = i;
			if (store_format(&c, true, err, sizeof err) < 0)
				fail_msg("%s", err);
			size[i] = birth.size_bytes;
		}
		table_make(&birth.table, (const uint8_t(*)[UUID_BYTES])uuid, size, 2, 1);
	}
	assert_true(size[0] > 0 && size[1] > 0);
	table = birth.table;
}

/* All keys are A's. */
static void
start(const struct store_slots *of_a, const struct store_slots *of_b)
{
	uint64_t least = 0, its;

	assert_int_equal(quota_book_new(2, &book), 0);
	for (int i = 0; i < 2; i++) {
		struct store_conf c = { .ops = con.engine,
					.ports_max = 2,
					.disks = { .disk = &con.disk[i],
						   .nr = 1,
						   .index_bytes = con.index_bytes,
						   .beside = 1,
						   .lock_wait_ns = 100 * NS_PER_S } };

		if (ops->open(&c, &engine[i], &member[i], err, sizeof err) < 0)
			fail_msg("%s", err);
		assert_int_equal(ops->recover(engine[i], i == A ? of_a : of_b, con.index_bytes, book, i, &its,
					      err, sizeof err),
				 0);
		least = its > least ? its : least;
	}
	assert_true(least > start_no);
	start_no = least;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ops->begin(engine[i], start_no, false, err, sizeof err), 0);
		assert_int_equal(ops->serve(engine[i], err, sizeof err), 0);
		assert_false(ops->has_failed(engine[i]));
	}
	assert_int_equal(store_user_new(engine, 2, &user), 0);
}

static void
stop(void)
{
	store_user_free(user);
	store_stop(engine[A]);
	store_stop(engine[B]);
	quota_book_free(book);
}

/* ---- operations ---- */

#define BORN_NS 1234567

static int
bucket(int i, const char *name, unsigned copies, uint64_t born_ns)
{
	const struct store_change c = { .act = ACT_MAKE_BUCKET,
					.key = { .bucket = name, .bucket_len = (uint16_t)strlen(name) },
					.copies = copies,
					.ctime_ns = born_ns };
	struct store_del op;

	return STORE_DO(user, &op.op, at(i)->ops->apply(at(i), &c, &op.op));
}

static int
remove_bucket(int i, const char *name)
{
	struct store_del op;

	return STORE_DO(user, &op.op, store_bucket_delete(at(i), name, strlen(name), &op));
}

static int
gate(int i, const char *name, enum store_gate gate)
{
	const struct store_change c = { .act = ACT_GATE_BUCKET,
					.key = { .bucket = name, .bucket_len = (uint16_t)strlen(name) },
					.gate = gate };
	struct store_del op;

	return STORE_DO(user, &op.op, at(i)->ops->apply(at(i), &c, &op.op));
}

static struct store_key
key_of(const char *bucket_name, const char *key)
{
	return (struct store_key){ bucket_name, key, (uint16_t)strlen(bucket_name), (uint16_t)strlen(key),
				   strcmp(bucket_name, PAIRED) == 0 ? 2 : 1 };
}

static void
fill(uint32_t len, char what)
{
	memset(buf.mem, what, len);
}

/* Puts what is in the buffer, with `what` for attributes too: an object, or a part. */
static int
put(int i, struct store_key k, const uint8_t *id, uint32_t number, uint32_t len, char what)
{
	struct store_commit c = {
		.meta = { .etag = { .sum = { (uint8_t)what } }, .attrs = &what, .attrs_len = 1 }
	};
	struct store_put op;
	int r;

	fill(len, what);
	if (len <= STORE_INLINE_MAX) {
		c.inline_data = buf.mem;
		c.inline_len = len;
	} else {
		c.last = &buf;
		c.last_len = len;
	}
	memset(&op, 0, sizeof op);
	r = id ? store_put_init_part(at(i), &op, &k, id, number, len) : store_put_init(at(i), &op, &k, len);
	if (r < 0)
		return r;
	r = STORE_DO(user, &op.op, store_put_commit(at(i), &op, &c));
	store_put_abort(at(i), &op);
	return r;
}

static int
del(int i, struct store_key k)
{
	struct store_del op;

	return STORE_DO(user, &op.op, store_delete(at(i), &k, NULL, &op));
}

static int
set_attrs(int i, struct store_key k, const char *attrs)
{
	struct store_del op;

	return STORE_DO(user, &op.op, store_set_attrs(at(i), &k, 0, attrs, (uint32_t)strlen(attrs), &op));
}

static int
create(int i, struct store_key k, uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	struct store_upload u;
	int r = STORE_DO(user, &u.op, store_upload_create(at(i), &k, "u", 1, &u));

	memcpy(id, u.id, sizeof u.id);
	return r;
}

static int
abort_upload(int i, struct store_key k, const uint8_t *id)
{
	struct store_upload u;

	return STORE_DO(user, &u.op, store_upload_abort(at(i), &k, id, &u));
}

static int
complete(int i, struct store_key k, const uint8_t *id, uint32_t number, char what)
{
	struct store_part_ref ref = { .number = number, .etag = { .sum = { (uint8_t)what } } };
	struct store_complete c = { .parts = &ref, .part_nr = 1, .meta = { .etag.sum = { 7 } } };

	return STORE_DO(user, &c.op, store_upload_complete(at(i), &k, id, &c));
}

static int
upload_stat(int i, struct store_key k, const uint8_t *id)
{
	struct store_stat s;
	char attrs[8];

	return STORE_DO(user, &s.op, store_upload_stat(at(i), &k, id, attrs, sizeof attrs, &s));
}

struct seen {
	uint64_t version, size_bytes, mtime_ns;
	struct store_etag etag;
	char attrs;
	char first;
};

/* What there is: 0, or -errno. */
static int
look(int i, struct store_key k, struct seen *ret_seen)
{
	struct store_obj o;
	struct store_read rd;
	int r = STORE_DO(user, &o.op, store_open(at(i), &k, &o));

	if (r < 0)
		return r;
	memset(ret_seen, 0, sizeof *ret_seen);
	ret_seen->version = o.version;
	ret_seen->size_bytes = o.size_bytes;
	ret_seen->mtime_ns = o.meta.mtime_ns;
	ret_seen->etag = o.meta.etag;
	ret_seen->attrs = o.meta.attrs_len ? *(const char *)o.meta.attrs : 0;
	if (o.size_bytes) {
		uint32_t skew, len = store_read_plan(&o, 0, 1, STORE_GRANULE, &skew);

		rd.lead = 0;
		r = STORE_DO(user, &rd.op, store_read(at(i), &o, &rd, &buf, 0, len));
		ret_seen->first = buf.mem[rd.lead];
	}
	store_close(at(i), &o);
	return r < 0 ? r : 0;
}

static void
must_be_same(struct store_key k)
{
	struct seen a, b;

	assert_int_equal(look(A, k, &a), 0);
	assert_int_equal(look(B, k, &b), 0);
	assert_memory_equal(&a, &b, sizeof a);
}

static struct store_send sent;

static int
send_hint(int from, int to, struct store_key k, const uint8_t *only_upload, bool only_object, bool is_repair)
{
	memset(&sent, 0, sizeof sent);
	sent.key = k;
	sent.buf = &buf;
	sent.only_upload = only_upload;
	sent.only_object = only_object;
	sent.is_repair = is_repair;
	return STORE_DO(user, &sent.op, ops->send(at(from), at(to), &sent));
}

static int
send(struct store_key k)
{
	return send_hint(A, B, k, NULL, false, false);
}

static int
remove_key(int i, struct store_key k)
{
	memset(&sent, 0, sizeof sent);
	sent.key = k;
	return STORE_DO(user, &sent.op, ops->send(NULL, at(i), &sent));
}

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	return true;
}

static int
listed(int i, const char *name, const struct store_slots *slots)
{
	struct store_list ls = {
		.bucket = name, .bucket_len = (uint16_t)strlen(name), .max = 100, .entry = on_entry
	};

	ls.slots = slots;
	return STORE_DO(user, &ls.op, store_list(at(i), &ls));
}

static int walked;
static char walked_names[32][64];

static bool
on_walk(struct store_walk *w, const struct store_key *k)
{
	assert_true(walked < 32);
	snprintf(walked_names[walked++], sizeof walked_names[0], "%.*s/%.*s", k->bucket_len, k->bucket,
		 k->key_len, k->key);
	assert_int_equal(k->copies, strncmp(k->bucket, PAIRED, k->bucket_len) == 0 ? 2 : 1);
	/* Two a call. */
	return walked % 2 != 0;
}

static int
walk(int i, const struct store_slots *slots, int differs_from)
{
	struct store_walk w = { .slots = slots,
				.key = on_walk,
				.differs_from = differs_from < 0 ? NULL : at(differs_from) };

	walked = 0;
	do
		assert_true(ops->walk(at(i), &w) >= 0);
	while (w.more);
	return walked;
}

static int
command(int i, enum store_slots_act act, struct store_slots_op *o, const struct store_slots *slots)
{
	o->slots = slots;
	return STORE_DO(user, &o->op, at(i)->ops->member->slots(at(i), act, o));
}

static int
simple(int i, enum store_slots_act act, const struct store_slots *slots)
{
	struct store_slots_op o = { .slots = NULL };

	return command(i, act, &o, slots);
}

static struct store_use
used(const char *name)
{
	struct store_quota_info info;

	assert_int_equal(quota_look(book, name, strlen(name), &info), 0);
	return info.used;
}

static int
setup(void **state)
{
	memset(&all, 0xff, sizeof all);
	start_no = 0;
	make_disks();
	start(&all, &none);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(bucket(i, BUCKET, 1, BORN_NS), 0);
		assert_int_equal(bucket(i, PAIRED, 2, BORN_NS), 0);
	}
	return 0;
}

static int
teardown(void **state)
{
	stop();
	return 0;
}

/* ---- who it is, and the placement map ---- */

static void
on_written(struct store_table_write *w, int result)
{
	assert_int_equal(result, 0);
}

static void
test_open(void **state)
{
	struct store_conf c = { .ops = con.engine, .disks = { .disk = &con.disk[A], .nr = 1 } };
	struct store_table_write w = { .done = on_written };
	struct store *st;
	struct store_member m;
	uint64_t begun = start_no;

	assert_memory_equal(member[A].uuid, table.uuid[A], UUID_BYTES);
	assert_memory_equal(member[A].store_uuid, member[B].store_uuid, UUID_BYTES);
	assert_true(ops->open(&c, &st, &m, err, sizeof err) < 0);
	table.version++;
	ops->put_table(engine[A], &table, &w);
	/* It is flushed when done() runs, which comes with a stop at the latest. */
	assert_int_equal(put(A, key_of(BUCKET, "k"), NULL, 0, 1, 'x'), 0);
	while (memcmp(member[A].table, &table, sizeof table) != 0)
		store_user_turn(user);
	stop();
	assert_int_equal(ops->open(&c, &st, &m, err, sizeof err), 0);
	assert_int_equal(m.start_no, begun);
	assert_memory_equal(m.table, &table, sizeof table);
	assert_false(m.is_behind);
	store_stop(st);
	start(&all, &none);
	assert_true(start_no > begun);
}

static void
test_behind(void **state)
{
	struct store_conf c = {
		.ops = con.engine,
		.ports_max = 1,
		.disks = { .disk = &con.disk[A], .nr = 1, .index_bytes = con.index_bytes, .beside = 1 }
	};
	struct store_member m;
	struct store *st;
	uint64_t its;

	stop();
	for (int round = 0; round < 2; round++) {
		assert_int_equal(quota_book_new(1, &book), 0);
		assert_int_equal(ops->open(&c, &st, &m, err, sizeof err), 0);
		assert_int_equal(m.is_behind, round == 1);
		assert_int_equal(ops->recover(st, &all, con.index_bytes, book, 0, &its, err, sizeof err), 0);
		assert_true(its > m.start_no);
		assert_int_equal(ops->begin(st, its, true, err, sizeof err), 0);
		/* A table says whose it is from then on. */
		if (round == 1)
			assert_int_equal(ops->set_table(st, &table, err, sizeof err), 0);
		store_stop(st);
		quota_book_free(book);
	}
	assert_int_equal(ops->open(&c, &st, &m, err, sizeof err), 0);
	assert_false(m.is_behind);
	store_stop(st);
	start(&all, &none);
}

/* ---- whose keys are whose ---- */

static void
test_own(void **state)
{
	struct store_key k = key_of(BUCKET, "k"), two = key_of(PAIRED, "k");
	uint8_t id[STORE_UPLOAD_ID_BYTES], other[STORE_UPLOAD_ID_BYTES];
	struct seen s;

	assert_int_equal(put(A, k, NULL, 0, 5, 'x'), 0);
	assert_int_equal(put(A, two, NULL, 0, 5, 'x'), 0);
	assert_int_equal(create(A, k, id), 0);
	assert_int_equal(put(A, k, id, 1, 5, 'p'), 0);
	assert_int_equal(send(k), 0);
	assert_int_equal(send(two), 0);
	/* A leftover is read, and neither changed nor listed. */
	assert_int_equal(put(B, k, NULL, 0, 5, 'y'), -EXDEV);
	assert_int_equal(put(B, two, NULL, 0, 300, 'y'), -EXDEV);
	assert_int_equal(del(B, k), -EXDEV);
	assert_int_equal(set_attrs(B, k, "z"), -EXDEV);
	assert_int_equal(create(B, k, other), -EXDEV);
	assert_int_equal(put(B, k, id, 2, 5, 'q'), -EXDEV);
	assert_int_equal(complete(B, k, id, 1, 'p'), -EXDEV);
	assert_int_equal(abort_upload(B, k, id), -EXDEV);
	assert_int_equal(look(B, k, &s), 0);
	assert_int_equal(s.first, 'x');
	assert_int_equal(listed(A, BUCKET, NULL), 1);
	assert_int_equal(listed(B, BUCKET, NULL), 0);
	assert_int_equal(listed(B, PAIRED, NULL), 0);
	assert_int_equal(listed(B, PAIRED, &all), 1);
	assert_int_equal(used(BUCKET).objects, 1);
	/* Of both copies, although the other engine has a leftover alone. */
	assert_int_equal(used(PAIRED).bytes, 2 * 5);
	/* Nor is it in the way of a bucket's removal. */
	assert_int_equal(del(A, k), 1);
	for (int i = 0; i < 2; i++) {
		struct store_del op;

		assert_int_equal(STORE_DO(user, &op.op, store_bucket_delete(at(i), BUCKET, 1, &op)), 0);
	}
	stop();
	start(&all, &none);
	assert_int_equal(used(PAIRED).objects, 1);
	stop();
	start(&none, &all);
	assert_int_equal(listed(A, PAIRED, NULL), 0);
	assert_int_equal(listed(B, PAIRED, NULL), 1);
	assert_int_equal(used(PAIRED).objects, 1);
	assert_int_equal(put(A, two, NULL, 0, 5, 'y'), -EXDEV);
}

static void
test_two_use(void **state)
{
	struct store_key two = key_of(PAIRED, "k");
	unsigned slot = store_place(&two) - STORE_SLOT_NR;
	struct store_use use;

	assert_int_equal(put(A, two, NULL, 0, 300, 'x'), 0);
	assert_int_equal(put(A, key_of(BUCKET, "k"), NULL, 0, 300, 'x'), 0);
	assert_int_equal(send(two), 0);
	for (int i = 0; i < 2; i++) {
		ops->two_use(engine[i], slot, &use);
		assert_int_equal(use.objects, 1);
		assert_int_equal(use.bytes, 300);
		ops->two_use(engine[i], (slot + 1) % STORE_SLOT_NR, &use);
		assert_int_equal(use.objects, 0);
	}
	assert_int_equal(del(A, two), 1);
	assert_int_equal(send(two), 0);
	ops->two_use(engine[B], slot, &use);
	assert_int_equal(use.objects, 0);
}

/* ---- send, remove, walk ---- */

static void
test_send(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 256, 257, 65536, 200000 };
	struct store_key k = key_of(BUCKET, "k");
	struct seen s;

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_int_equal(put(A, k, NULL, 0, sizes[i], (char)('a' + i)), 0);
		assert_int_equal(walk(A, NULL, B), 1);
		assert_int_equal(send(k), 0);
		assert_int_equal(sent.changes, 1);
		assert_int_equal(sent.bytes, sizes[i] > STORE_INLINE_MAX ? sizes[i] : 0);
		must_be_same(k);
		assert_int_equal(walk(A, NULL, B), 0);
		assert_int_equal(walk(B, NULL, A), 0);
		assert_int_equal(send(k), 0);
		assert_int_equal(sent.changes, 0);
	}
	/* Attributes alone bring no bytes. */
	assert_int_equal(set_attrs(A, k, "other"), 0);
	assert_int_equal(walk(A, NULL, B), 1);
	assert_int_equal(send(k), 0);
	assert_int_equal(sent.changes, 1);
	assert_int_equal(sent.bytes, 0);
	must_be_same(k);
	assert_int_equal(send_hint(B, A, k, NULL, false, false), -EXDEV);
	/* Gone there is gone here. */
	assert_int_equal(del(A, k), 1);
	assert_int_equal(walk(A, NULL, B), 0);
	assert_int_equal(walk(B, NULL, A), 1);
	assert_int_equal(send(k), 0);
	assert_int_equal(sent.changes, 1);
	assert_int_equal(look(B, k, &s), -ENOENT);
	assert_int_equal(send(k), 0);
	assert_int_equal(sent.changes, 0);
}

static void
test_send_own(void **state)
{
	struct store_key k = key_of(BUCKET, "k");
	struct seen s;

	assert_int_equal(put(A, k, NULL, 0, 5, 'x'), 0);
	stop();
	start(&all, &all);
	assert_int_equal(send(k), -EPERM);
	assert_int_equal(remove_key(A, k), -EPERM);
	assert_int_equal(look(A, k, &s), 0);
	stop();
	start(&none, &all);
	assert_int_equal(remove_key(A, k), 0);
	assert_int_equal(sent.changes, 1);
	assert_int_equal(look(A, k, &s), -ENOENT);
	assert_int_equal(remove_key(A, k), 0);
	assert_int_equal(sent.changes, 0);
}

static void
test_send_uploads(void **state)
{
	struct store_key k = key_of(BUCKET, "k");
	uint8_t id[STORE_UPLOAD_ID_BYTES], other[STORE_UPLOAD_ID_BYTES];
	struct seen s;

	assert_int_equal(create(A, k, id), 0);
	assert_int_equal(create(A, k, other), 0);
	assert_int_equal(put(A, k, id, 1, 300, 'p'), 0);
	assert_int_equal(put(A, k, id, 7, 3, 'q'), 0);
	assert_int_equal(put(A, k, NULL, 0, 5, 'x'), 0);
	/* Hints bring what they name. */
	assert_int_equal(send_hint(A, B, k, other, false, false), 0);
	assert_int_equal(upload_stat(B, k, other), 0);
	assert_int_equal(upload_stat(B, k, id), -ENOENT);
	assert_int_equal(look(B, k, &s), -ENOENT);
	assert_int_equal(send_hint(A, B, k, NULL, true, false), 0);
	assert_int_equal(look(B, k, &s), 0);
	assert_int_equal(upload_stat(B, k, id), -ENOENT);
	assert_int_equal(send(k), 0);
	assert_int_equal(upload_stat(B, k, id), 0);
	assert_int_equal(walk(A, NULL, B), 0);
	/* A part that is another one, and one that is there alone. */
	assert_int_equal(put(A, k, id, 7, 4, 'r'), 0);
	assert_int_equal(walk(A, NULL, B), 1);
	assert_int_equal(send(k), 0);
	assert_int_equal(walk(A, NULL, B), 0);
	assert_int_equal(abort_upload(A, k, other), 0);
	assert_int_equal(walk(B, NULL, A), 1);
	assert_int_equal(send(k), 0);
	assert_int_equal(upload_stat(B, k, other), -ENOENT);
	/* Completed there, it is no upload here any more. */
	assert_int_equal(complete(A, k, id, 1, 'p'), 0);
	assert_int_equal(send(k), 0);
	assert_int_equal(upload_stat(B, k, id), -ENOENT);
	assert_int_equal(walk(A, NULL, B), 0);
	assert_int_equal(walk(B, NULL, A), 0);
	must_be_same(k);
	assert_int_equal(look(B, k, &s), 0);
	assert_int_equal(s.size_bytes, 300);
}

/* The source has not seen that the bucket was removed, and made again: its uploads are those of the removed bucket. Versions
 * of both engines are alike, so only the creation time shows it. */
static void
test_send_bucket_again(void **state)
{
	struct store_key k = key_of(BUCKET, "k"), two = key_of(PAIRED, "k");
	uint8_t id[STORE_UPLOAD_ID_BYTES], id_two[STORE_UPLOAD_ID_BYTES];

	for (int i = 0; i < 10; i++)
		assert_int_equal(put(A, key_of(BUCKET, "raises versions"), NULL, 0, 5, 'x'), 0);
	assert_int_equal(create(A, k, id), 0);
	assert_int_equal(put(A, k, id, 1, 300, 'p'), 0);
	assert_int_equal(create(A, two, id_two), 0);
	assert_int_equal(send(k), 0);
	assert_int_equal(upload_stat(B, k, id), 0);
	for (int round = 0; round < 2; round++) {
		/* removed; removed and made again */
		assert_int_equal(round ? bucket(B, BUCKET, 1, 2 * BORN_NS) : remove_bucket(B, BUCKET), 0);
		assert_int_equal(round ? bucket(B, PAIRED, 2, 2 * BORN_NS) : remove_bucket(B, PAIRED), 0);
		assert_int_equal(send(k), 0);
		assert_int_equal(send_hint(A, B, k, id, false, false), 0);
		assert_int_equal(send(two), 0);
		assert_int_equal(send_hint(A, B, two, id_two, false, false), 0);
		assert_int_equal(upload_stat(B, k, id), round ? -ENOENT : -ENXIO);
		assert_int_equal(upload_stat(B, two, id_two), round ? -ENOENT : -ENXIO);
		assert_int_equal(send_hint(A, B, two, id_two, false, true), -ESTALE);
	}
}

/* The same while an upload is on its way: it waits at the gate of the bucket that is removed. */
static void
test_send_bucket_meanwhile(void **state)
{
	struct store_key k = key_of(BUCKET, "k");
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	int r;

	assert_int_equal(create(A, k, id), 0);
	assert_int_equal(gate(B, BUCKET, GATE_CLOSE_EMPTY), 0);
	memset(&sent, 0, sizeof sent);
	sent = (struct store_send){ .key = k, .buf = &buf };
	store_user_begin(user, &sent.op);
	r = ops->send(at(A), at(B), &sent);
	assert_int_equal(remove_bucket(B, BUCKET), 0);
	assert_int_equal(bucket(B, BUCKET, 1, 2 * BORN_NS), 0);
	assert_int_equal(gate(B, BUCKET, GATE_OPEN), 0);
	assert_int_equal(store_user_wait(user, &sent.op, r), -EAGAIN);
	assert_int_equal(upload_stat(B, k, id), -ENOENT);
}

static uint64_t
stop_now(struct store_send *s, uint32_t bytes)
{
	return STORE_SEND_STOP;
}

static int asked;

static uint64_t
wait_once(struct store_send *s, uint32_t bytes)
{
	return asked++ ? 0 : NS_PER_MS;
}

static void
test_pace(void **state)
{
	struct store_key k = key_of(BUCKET, "k");

	assert_int_equal(put(A, k, NULL, 0, 5000, 'x'), 0);
	memset(&sent, 0, sizeof sent);
	sent = (struct store_send){ .key = k, .buf = &buf, .pace = stop_now };
	assert_int_equal(STORE_DO(user, &sent.op, ops->send(at(A), at(B), &sent)), -EINTR);
	asked = 0;
	sent = (struct store_send){ .key = k, .buf = &buf, .pace = wait_once };
	assert_int_equal(STORE_DO(user, &sent.op, ops->send(at(A), at(B), &sent)), 0);
	assert_int_equal(asked, 2);
	must_be_same(k);
}

static void
test_repair_refused(void **state)
{
	struct store_key k = key_of(PAIRED, "k");

	assert_int_equal(put(A, k, NULL, 0, 300, 'x'), 0);
	assert_int_equal(send_hint(B, A, k, NULL, false, true), -ESTALE);
	assert_int_equal(send(k), 0);
	assert_int_equal(send_hint(B, A, k, NULL, false, true), 0);
	assert_int_equal(sent.changes, 0);
	assert_int_equal(send_hint(A, B, k, NULL, false, true), 0);
	assert_int_equal(put(A, k, NULL, 0, 300, 'y'), 0);
	assert_int_equal(send_hint(B, A, k, NULL, false, true), -ESTALE);
	assert_int_equal(send_hint(A, B, k, NULL, false, true), -ESTALE);
	/* Of an object that neither has nothing is damaged. */
	assert_int_equal(send_hint(B, A, key_of(PAIRED, "none"), NULL, false, true), 0);
}

static void
test_walk(void **state)
{
	static const char *const names[] = { BUCKET "/a", BUCKET "/b", BUCKET "/c", PAIRED "/a",
					     PAIRED "/d" };
	struct store_slots one = { .bit = { 0 } };
	struct store_key d = key_of(PAIRED, "d");
	uint8_t id[STORE_UPLOAD_ID_BYTES];

	assert_int_equal(put(A, key_of(PAIRED, "a"), NULL, 0, 1, 'x'), 0);
	assert_int_equal(put(A, key_of(BUCKET, "c"), NULL, 0, 1, 'x'), 0);
	assert_int_equal(put(A, key_of(BUCKET, "a"), NULL, 0, 1, 'x'), 0);
	assert_int_equal(create(A, key_of(BUCKET, "b"), id), 0);
	assert_int_equal(create(A, key_of(BUCKET, "a"), id), 0);
	assert_int_equal(create(A, d, id), 0);
	assert_int_equal(walk(A, NULL, -1), 5);
	for (int i = 0; i < 5; i++)
		assert_string_equal(walked_names[i], names[i]);
	slots_add(&one, store_place(&d));
	assert_int_equal(walk(A, &one, -1), 1);
	assert_string_equal(walked_names[0], PAIRED "/d");
	assert_int_equal(walk(A, &none, -1), 0);
	assert_int_equal(walk(B, NULL, -1), 0);
}

/* ---- watch, freeze, switch ---- */

static int told;

static void
on_changed(void *cookie, const struct store_key *k)
{
	assert_ptr_equal(cookie, &told);
	assert_memory_equal(k->key, "k", 1);
	told++;
}

static void
test_watch(void **state)
{
	struct store_key k = key_of(BUCKET, "k");
	struct store_slots places = { .bit = { 0 } };
	struct store_slots_op o = { .changed = on_changed, .cookie = &told };
	uint8_t id[STORE_UPLOAD_ID_BYTES];

	slots_add(&places, store_place(&k));
	told = 0;
	assert_int_equal(put(A, k, NULL, 0, 1, 'x'), 0);
	assert_int_equal(command(A, SLOTS_WATCH, &o, &places), 0);
	assert_int_equal(told, 0);
	assert_int_equal(put(A, k, NULL, 0, 1, 'y'), 0);
	assert_int_equal(told, 1);
	assert_int_equal(set_attrs(A, k, "z"), 0);
	assert_int_equal(del(A, k), 1);
	assert_int_equal(create(A, k, id), 0);
	assert_int_equal(put(A, k, id, 1, 1, 'x'), 0);
	assert_int_equal(abort_upload(A, k, id), 0);
	assert_true(told >= 6);
	assert_int_equal(simple(A, SLOTS_WATCH, NULL), 0);
	told = 0;
	assert_int_equal(put(A, k, NULL, 0, 1, 'x'), 0);
	assert_int_equal(told, 0);
}

static void
test_freeze(void **state)
{
	struct store_key k = key_of(BUCKET, "k"), other = key_of(PAIRED, "k");
	struct store_slots places = { .bit = { 0 } };
	struct store_del op;
	int r;

	slots_add(&places, store_place(&k));
	assert_int_equal(put(A, k, NULL, 0, 1, 'x'), 0);
	assert_int_equal(simple(A, SLOTS_FREEZE, &places), 0);
	assert_int_equal(put(A, other, NULL, 0, 1, 'x'), 0);
	assert_int_equal(put(A, k, NULL, 0, 1, 'y'), -EAGAIN);
	/* One that waits is done when it thaws. */
	store_user_begin(user, &op.op);
	r = store_delete(at(A), &k, NULL, &op);
	assert_int_equal(simple(A, SLOTS_THAW, &places), 0);
	assert_int_equal(store_user_wait(user, &op.op, r), 1);
	/* What is sent does not wait at the source. */
	assert_int_equal(simple(A, SLOTS_FREEZE, &places), 0);
	assert_int_equal(send(k), 0);
	assert_int_equal(simple(A, SLOTS_THAW, &places), 0);
}

/* All of A's keys become B's. */
static void
switch_over(void)
{
	struct store_slots_op o = { .slots = NULL };

	assert_int_equal(command(B, SLOTS_TAKE, &o, &all), 0);
	assert_int_equal(command(A, SLOTS_LEAVE, &o, &all), 0);
	assert_null(o.moved);
}

static void
test_switch(void **state)
{
	struct store_key k = key_of(BUCKET, "k"), two = key_of(PAIRED, "k");
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct store_use before;
	struct seen s;

	assert_int_equal(put(A, k, NULL, 0, 300, 'x'), 0);
	assert_int_equal(put(A, two, NULL, 0, 7, 'x'), 0);
	assert_int_equal(create(A, k, id), 0);
	assert_int_equal(put(A, k, id, 3, 11, 'p'), 0);
	assert_int_equal(send(k), 0);
	assert_int_equal(send(two), 0);
	before = used(BUCKET);
	assert_int_equal(before.bytes, 300 + QUOTA_PART_BYTES);
	assert_int_equal(before.uploads, 1);
	assert_int_equal(simple(A, SLOTS_FREEZE, &all), 0);
	switch_over();
	assert_int_equal(put(A, k, NULL, 0, 1, 'y'), -EXDEV);
	assert_int_equal(put(B, k, id, 4, 2, 'q'), 0);
	assert_int_equal(used(BUCKET).bytes, 300 + 2 * QUOTA_PART_BYTES);
	assert_int_equal(complete(B, k, id, 3, 'p'), 0);
	assert_int_equal(used(BUCKET).bytes, 11);
	assert_int_equal(used(BUCKET).uploads, 0);
	assert_int_equal(listed(A, BUCKET, NULL), 0);
	assert_int_equal(listed(B, BUCKET, NULL), 1);
	assert_int_equal(listed(B, PAIRED, NULL), 1);
	assert_int_equal(remove_key(A, k), 0);
	assert_int_equal(look(A, k, &s), -ENOENT);
	assert_int_equal(used(BUCKET).objects, 1);
	assert_int_equal(del(B, k), 1);
	assert_int_equal(used(BUCKET).objects, 0);
	assert_int_equal(used(BUCKET).bytes, 0);
}

static void
test_waits_until_left(void **state)
{
	struct store_key k = key_of(BUCKET, "k");
	struct store_del op;
	int r;

	assert_int_equal(put(A, k, NULL, 0, 1, 'x'), 0);
	assert_int_equal(send(k), 0);
	assert_int_equal(simple(A, SLOTS_FREEZE, &all), 0);
	store_user_begin(user, &op.op);
	r = store_delete(at(A), &k, NULL, &op);
	switch_over();
	assert_int_equal(store_user_wait(user, &op.op, r), -EXDEV);
	/* Nothing is frozen here by what was there. */
	assert_int_equal(del(B, k), 1);
}

static void
test_disown(void **state)
{
	struct store_key k = key_of(BUCKET, "k");
	struct store_slots_op o = { .slots = &all };

	assert_int_equal(put(A, k, NULL, 0, 1, 'x'), 0);
	assert_int_equal(ops->slots(at(A), SLOTS_DISOWN, &o), 1);
	assert_int_equal(listed(A, BUCKET, NULL), 0);
	assert_int_equal(put(A, k, NULL, 0, 1, 'x'), -EXDEV);
}

/* ---- the second copy of a PUT ---- */

static int
copy_init(struct store_put *put, struct store_key k, const uint8_t *id, uint32_t number, uint32_t len)
{
	const struct store_put_spec spec = {
		.key = k, .upload_id = id, .part_number = number, .size_bytes = len, .is_copy = true
	};

	memset(put, 0, sizeof *put);
	return at(B)->ops->put_init(at(B), put, &spec);
}

static int
copy(struct store_key k, const uint8_t *id, uint32_t number, uint64_t version, uint32_t len, char what)
{
	struct store_commit c = { .last = len > STORE_INLINE_MAX ? &buf : NULL,
				  .last_len = len > STORE_INLINE_MAX ? len : 0,
				  .inline_data = buf.mem,
				  .inline_len = len > STORE_INLINE_MAX ? 0 : len };
	struct store_put op;
	int r;

	fill(len, what);
	r = copy_init(&op, k, id, number, len);
	if (r < 0)
		return r;
	r = STORE_DO(user, &op.op, ops->copy_commit(at(B), &op, at(A), version, &c));
	if (r < 0)
		at(B)->ops->put_abort(at(B), &op);
	return r;
}

static void
test_copy(void **state)
{
	static const uint32_t sizes[] = { 0, 10, 5000 };
	struct store_key k = key_of(PAIRED, "k");
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct seen s;

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_int_equal(put(A, k, NULL, 0, sizes[i], (char)('a' + i)), 0);
		assert_int_equal(look(A, k, &s), 0);
		assert_int_equal(copy(k, NULL, 0, s.version + 1, sizes[i], (char)('a' + i)), -EAGAIN);
		if (sizes[i])
			assert_int_equal(copy(k, NULL, 0, s.version, sizes[i], 'w'), -EILSEQ);
		assert_int_equal(copy(k, NULL, 0, s.version, sizes[i] + 1, (char)('a' + i)), -EAGAIN);
		assert_int_equal(copy(k, NULL, 0, s.version, sizes[i], (char)('a' + i)), 0);
		must_be_same(k);
		assert_int_equal(walk(A, NULL, B), 0);
	}
	assert_int_equal(create(A, k, id), 0);
	assert_int_equal(put(A, k, id, 2, 20, 'p'), 0);
	assert_int_equal(copy(k, id, 2, s.version + 2, 20, 'p'), -ENOENT);
	assert_int_equal(send_hint(A, B, k, id, false, false), 0);
	assert_int_equal(walk(A, NULL, B), 0);
}

static void
test_copy_of_own(void **state)
{
	struct store_key k = key_of(PAIRED, "k");
	struct store_put op;

	stop();
	start(&all, &all);
	assert_int_equal(copy_init(&op, k, NULL, 0, 5), -EPERM);
}

/* ---- a PUT whose key goes away before its commit ---- */

static struct store_put carried;
static bool was_carried;

static bool
on_carry(struct store_carrier *sc, struct store_put *op)
{
	assert_ptr_equal(op, &carried);
	was_carried = true;
	return true;
}

static void
test_carrier(void **state)
{
	struct store_key k = key_of(BUCKET, "k");
	struct store_carrier carrier = { .carry = on_carry };
	struct store_commit c = { .meta = { .attrs = "a", .attrs_len = 1 },
				  .last = &buf,
				  .last_len = 5000,
				  .pre = { .kind = PRE_ABSENT } };
	struct store_put_args args;
	struct store_obj o;
	struct store_read rd = { .lead = 0 };
	char *was = malloc(5000);
	struct seen s;

	assert_non_null(was);
	memset(&carried, 0, sizeof carried);
	was_carried = false;
	fill(5000, 'c');
	memcpy(was, buf.mem, 5000);
	assert_int_equal(store_put_init(at(A), &carried, &k, 5000), 0);
	carried.carrier = &carrier;
	switch_over();
	store_user_begin(user, &carried.op);
	assert_int_equal(at(A)->ops->put_commit(at(A), &carried, &c), 0);
	while (!was_carried)
		store_user_turn(user);
	memset(&o, 0, sizeof o);
	assert_int_equal(
		at(A)->ops->look(at(A),
				 &(struct store_look){ .kind = LOOK_PUT, .put = &carried, .ret_args = &args },
				 &o.op),
		1);
	assert_int_equal(o.op.result, 0);
	assert_int_equal(o.size_bytes, 5000);
	assert_int_equal(args.spec.key.key_len, 1);
	assert_memory_equal(args.spec.key.key, "k", 1);
	assert_null(args.spec.upload_id);
	assert_int_equal(args.commit.pre.kind, PRE_ABSENT);
	assert_memory_equal(args.commit.meta.attrs, "a", 1);
	assert_int_equal(args.commit.expect_crc64, crc64_nvme(0, was, 5000));
	memset(buf.mem, 0, 5000);
	assert_int_equal(STORE_DO(user, &rd.op, store_read(at(A), &o, &rd, &buf, 0, 5000)), 5000);
	assert_int_equal(rd.lead, 0);
	assert_memory_equal(buf.mem, was, 5000);
	store_close(at(A), &o);
	at(A)->ops->put_abort(at(A), &carried);
	assert_int_equal(look(A, k, &s), -ENOENT);
	free(was);
}

/* ---- the number of copies of an empty bucket ---- */

static void
must_have(const char *name, int copies, const char *attrs, uint64_t objects)
{
	char text[16] = { 0 };
	struct store_quota_info q;
	struct store_stat s = { .copies = 77 };

	assert_int_equal(STORE_DO(user, &s.op, store_bucket_head(at(A), name, strlen(name), &s)), 0);
	assert_int_equal(s.copies, copies);
	assert_int_equal(
		STORE_DO(user, &s.op,
			 store_bucket_get_attrs(at(A), name, strlen(name), text, sizeof text - 1, &s)),
		0);
	assert_string_equal(text, attrs);
	assert_int_equal(store_bucket_quota(engine[A], name, strlen(name), &q), 0);
	assert_true(q.has_bound);
	assert_int_equal(q.max.objects, objects);
}

/* Its attributes and its quota are those of the same bucket, also after a start. */
static void
test_bucket_copies(void **state)
{
	static const char name[] = "empty";
	struct store_use max = { .objects = 5, .bytes = STORE_UNBOUNDED, .uploads = STORE_UNBOUNDED };
	struct store_bucket_set set;
	struct store_del op;

	assert_int_equal(bucket(A, name, 1, BORN_NS), 0);
	assert_int_equal(STORE_DO(user, &set.op,
				  store_bucket_set_attrs(at(A), name, strlen(name), STORE_VERSION_ANY, "tags",
							 4, &set)),
			 0);
	assert_int_equal(
		STORE_DO(user, &set.op, store_bucket_set_quota(at(A), name, strlen(name), &max, &set)), 0);
	must_have(name, 1, "tags", 5);
	for (unsigned copies = 2; copies >= 1; copies--) {
		const struct store_change c = { .act = ACT_SET_COPIES,
						.key = { .bucket = name,
							 .bucket_len = (uint16_t)strlen(name) },
						.copies = copies };

		assert_int_equal(STORE_DO(user, &op.op, at(A)->ops->apply(at(A), &c, &op.op)), 0);
		must_have(name, (int)copies, "tags", 5);
		stop();
		start(&all, &none);
		must_have(name, (int)copies, "tags", 5);
	}
}

int
member_contract_run(const struct member_contract *c)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_use, setup, teardown),
		cmocka_unit_test_setup_teardown(test_send, setup, teardown),
		cmocka_unit_test_setup_teardown(test_send_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_send_uploads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_send_bucket_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_send_bucket_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_repair_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_freeze, setup, teardown),
		cmocka_unit_test_setup_teardown(test_switch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waits_until_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_of_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_carrier, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bucket_copies, setup, teardown),
	};
	int failed;

	con = *c;
	ops = con.engine->member;
	if (!store_buf_make(&buf, BUF_LARGE_BYTES))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(buf.mem);
	memset(&buf, 0, sizeof buf);
	return failed;
}
