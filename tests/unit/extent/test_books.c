/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a PUT takes comes back however it ends: writers, space, the index's memory; but for the space that
 * something on the disk may name, which is kept until a restart.  On a ring that fails on demand; the books
 * are the store's own.
 */
#include "extent/engine.h"
#include "extent/object/chunk.h"
#include "extent/index/tree_int.h"

#include "crumbs.h"
#include "fixture.h"
#include "tests/fake/fault_ring.h"

#define DEAD_PER_BLOCK 256u /* as publish.c has it: the pool grows by so many */

/* What fails: the kind, the file's beginning, and after how many of them. */
static _Atomic int bad_kind;
static const char *_Atomic bad_name;
static _Atomic int bad_after, bad_result, writes; /* the helper's ring asks, too */

static int
hook(const struct fault_io *io)
{
	const char *name = bad_name;

	writes += io->kind == FAULT_WRITE;
	if (!name || (int)io->kind != bad_kind || strncmp(io->name, name, strlen(name)) != 0)
		return 0;
	return atomic_fetch_sub(&bad_after, 1) > 0 ? 0 : bad_result;
}

static void
bad(enum fault_kind kind, const char *name, int after, int result)
{
	bad_name = NULL;
	bad_kind = (int)kind;
	bad_after = after;
	bad_result = result;
	bad_name = name;
}

/* ---- the books ---- */

struct books {
	unsigned writers;
	uint64_t units; /* free, or leased and not taken */
	uint64_t bytes; /* of the index's memory */
};

static struct books
books(void)
{
	struct books b = { 0 };
	struct vol *vol = extent_store(st)->vol;
	struct alloc_stats as;
	unsigned dead = 0;

	b.writers = (unsigned)pool_avail(&extent_port(l.p)->writers);
	alloc_stats(vol->disk.alloc, &as);
	b.units = as.free + as.leased;
	b.bytes = vol->tree->arena.bytes_used;
	/* Between operations nothing is set aside, and each of the dead waits or is free. */
	for (struct dead *x = vol->leader.dead_free; x; x = x->next)
		dead++;
	for (struct dead *x = vol->leader.dying; x; x = x->next)
		dead++;
	assert_int_equal(dead % DEAD_PER_BLOCK, 0);
	assert_int_equal(vol->tree->reserved_ops, 0);
	assert_int_equal(vol->tree->arena.slab_reserved, 0);
	return b;
}

/* Until everything that died is space again. */
static struct books
settled(void)
{
	struct vol *vol = extent_store(st)->vol;

	wait_until(!extent_port(l.p)->vp.io.inflight && !vol->dead_nr && !vol->tree->limbo_nr &&
		   vol->snap.state == SNAP_IDLE) {
		vol->want_lead = true;
		loop_for(&l, NS_PER_MS);
	}
	return books();
}

static uint64_t
units_of(uint64_t size)
{
	uint64_t unit = extent_store(st)->vol->disk.geo.unit_bytes;

	return align_up(stored_bytes(size), unit) / unit;
}

static void
reopen(void)
{
	bad_name = NULL;
	close_store();
	open_store();
	wait_segments(&l);
}

static int
setup_with(uint64_t size_bytes)
{
	int r;

	bad_name = NULL;
	fault_ring_hook = hook;
	r = make_store(size_bytes);
	wait_segments(&l);
	return r;
}

static int
setup(void **state)
{
	return setup_with(160 * MIB);
}

static int
setup_large(void **state)
{
	return setup_with(250 * MIB);
}

static int
teardown(void **state)
{
	bad_name = NULL;
	return remove_store(state);
}

/* ---- PUTs, step by step ---- */

struct upload {
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct store_key key;
};

static struct upload
upload_make(const char *key)
{
	static struct store_upload op;
	struct upload u = { .key = key_of("b", key) };
	int r;

	op_arm(&op.op, l.p);
	r = store_upload_create(l.p, &u.key, NULL, 0, &op);
	assert_int_equal(r ? r : op_wait(&l, &op.op), 0);
	memcpy(u.id, op.id, sizeof u.id);
	return u;
}

static void
upload_abort(const struct upload *u)
{
	static struct store_upload op;
	int r;

	op_arm(&op.op, l.p);
	r = store_upload_abort(l.p, &u->key, u->id, &op);
	assert_int_equal(r ? r : op_wait(&l, &op.op), 0);
}

#define HANDS 4
static struct hand {
	struct store_put put;
	struct store_write w;
	struct buf *buf;
	int r;
} hand[HANDS];

/* All but the last piece is with the disk.  u: a part of that upload. */
static int
begin(struct hand *h, const char *key, const struct upload *u, uint64_t size)
{
	struct store_key k = key_of("b", key);

	h->buf = bufpool_get(&l.bufs, BUF_LARGE);
	check(h->buf);
	h->r = u ? store_put_init_part(l.p, &h->put, &u->key, u->id, 1, size)
		 : store_put_init(l.p, &h->put, &k, size);
	for (uint64_t off = 0; h->r == 0 && off + STORE_PIECE < size; off += STORE_PIECE) {
		fill(h->buf->mem, STORE_PIECE, 1, off);
		op_arm(&h->w.op, l.p);
		h->r = store_put_write(l.p, &h->put, &h->w, h->buf, STORE_PIECE, false);
		h->r = h->r ? h->r : op_wait(&l, &h->w.op);
	}
	return h->r;
}

/* Hands it over, with its last piece; h->put.op tells the end. */
static int
commit(struct hand *h, uint64_t size, const struct store_pre *pre)
{
	struct store_commit c = { .pre = pre ? *pre : (struct store_pre){ 0 } };

	if (h->r < 0)
		return h->r;
	fill(h->buf->mem, STORE_PIECE, 1, 0);
	if (size <= STORE_INLINE_MAX) {
		c.inline_data = h->buf->mem;
		c.inline_len = (uint32_t)size;
	} else {
		c.last = h->buf;
		c.last_len = (uint32_t)((size - 1) % STORE_PIECE + 1);
	}
	op_arm(&h->put.op, l.p);
	h->r = store_put_commit(l.p, &h->put, &c);
	return h->r;
}

static int
end(struct hand *h)
{
	if (h->r == 0)
		h->r = op_wait(&l, &h->put.op);
	store_put_abort(l.p, &h->put);
	bufpool_put(&l.bufs, h->buf);
	return h->r;
}

static int
put_whole(const char *key, const struct upload *u, uint64_t size)
{
	if (begin(&hand[0], key, u, size) == 0)
		commit(&hand[0], size, NULL);
	return end(&hand[0]);
}

static void
fail_disk(void)
{
	bad(FAULT_FLUSH, "log", 0, -EIO);
	assert_int_equal(put_simple(&l, "b", "fails", 10, 1), -ECANCELED);
	bad_name = NULL;
}

/* ---- tests ---- */

/* The disk has failed before the commit: refused at once, nothing more is written, and nothing is kept but a
 * chunk whose record is in the log. */
static void
test_commit_on_failed(void **state)
{
	static const uint64_t sizes[] = { 10, 100000, 3 * MIB, 9 * MIB, 66 * MIB };

	for (int i = 0; i < 10; i++) {
		uint64_t size = sizes[i / 2];
		struct upload u = upload_make("u");
		struct books before = settled(), after;
		int written;

		assert_int_equal(begin(&hand[1], "x", i % 2 ? &u : NULL, size), 0);
		settled();
		fail_disk();
		written = writes;
		assert_int_equal(commit(&hand[1], size, NULL), -EROFS);
		assert_int_equal(end(&hand[1]), -EROFS);
		loop_for(&l, 10 * NS_PER_MS);
		assert_int_equal(writes, written);
		after = books();
		assert_int_equal(after.writers, CHUNK_WRITERS_PER_PORT);
		assert_int_equal(after.units, before.units - (size > 64 * MIB ? units_of(64 * MIB) : 0));
		assert_int_equal(put_whole("y", NULL, size), -EROFS);
		assert_int_equal(books().writers, CHUNK_WRITERS_PER_PORT);
		/* All was written before: the last piece need not come with the commit. */
		reopen();
		settled();
		assert_int_equal(begin(&hand[1], "x", NULL, 2 * MIB), 0);
		fail_disk();
		hand[1].r = store_put_commit(l.p, &hand[1].put, &(struct store_commit){ 0 });
		assert_int_equal(end(&hand[1]), -EROFS);
		assert_int_equal(books().writers, CHUNK_WRITERS_PER_PORT);
		reopen();
		assert_int_equal(settled().writers, CHUNK_WRITERS_PER_PORT);
		/* A start does not touch their memory, nor does one PUT that of more than it has chunks. */
		assert_int_equal(extent_port(l.p)->writers.begun, 0);
		assert_int_equal(put_whole("z", NULL, 2 * MIB), 0);
		assert_int_equal(put_whole("z", NULL, 2 * MIB), 0);
		assert_int_equal(extent_port(l.p)->writers.begun, 1);
	}
}

/* A block fails: what is in it may be on the disk, so its space stays; all else is given back. */
static void
test_block_fails(void **state)
{
	static const struct {
		enum fault_kind kind;
		const char *name;
		uint64_t size;
	} t[] = { { FAULT_FLUSH, "log", 10 },     { FAULT_FLUSH, "log", 100000 }, { FAULT_FLUSH, "log", MIB },
		  { FAULT_WRITE, "log", 10 },     { FAULT_WRITE, "log", 100000 }, { FAULT_WRITE, "log", MIB },
		  { FAULT_WRITE, "seg-", 100000 } };

	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct books before, after;

		assert_int_equal(put_whole("x", NULL, 70000), 0);
		before = settled();
		bad(t[i].kind, t[i].name, 0, -EIO);
		assert_int_equal(put_whole("x", NULL, t[i].size), -ECANCELED);
		bad_name = NULL;
		after = books();
		assert_int_equal(after.writers, CHUNK_WRITERS_PER_PORT);
		assert_int_equal(after.bytes, before.bytes);
		assert_int_equal(after.units, before.units - (t[i].size > 10 ? units_of(t[i].size) : 0));
		reopen();
	}
}

/* Those that wait while a block fails: in the next one, for an answer that depends on it, in the queue. */
static void
test_behind_a_block(void **state)
{
	const struct store_pre absent = { .kind = PRE_ABSENT };
	const uint64_t size = 100000;
	struct books before = settled(), after;

	bad(FAULT_FLUSH, "log", 0, FAULT_HOLD);
	begin(&hand[0], "a", NULL, 10);
	assert_int_equal(commit(&hand[0], 10, NULL), 0);
	for (int i = 1; i < 3; i++) {
		begin(&hand[i], "k", NULL, size);
		assert_int_equal(commit(&hand[i], size, i == 2 ? &absent : NULL), 0);
	}
	loop_for(&l, 10 * NS_PER_MS);
	assert_non_null(hand[0].put.op.port);
	/* The first block's flush goes, the second's waits. */
	bad(FAULT_FLUSH, "log", 1, FAULT_HOLD);
	assert_int_equal(op_wait(&l, &hand[0].put.op), 0);
	begin(&hand[3], "d", NULL, size);
	assert_int_equal(commit(&hand[3], size, NULL), 0);
	loop_for(&l, 10 * NS_PER_MS);
	for (int i = 1; i < HANDS; i++)
		assert_non_null(hand[i].put.op.port);
	bad(FAULT_FLUSH, "log", 0, -EIO);
	assert_int_equal(end(&hand[0]), 0);
	assert_int_equal(end(&hand[1]), -ECANCELED);
	assert_int_equal(end(&hand[2]), -EROFS);
	assert_int_equal(end(&hand[3]), -EROFS);
	bad_name = NULL;
	after = books();
	assert_int_equal(after.writers, CHUNK_WRITERS_PER_PORT);
	assert_int_equal(after.units, before.units - units_of(size));
	assert_int_equal(extent_port(l.p)->vp.io.inflight, 0);
}

/* A PUT that waits for space on a disk that fails meanwhile hears of that. */
static void
test_waits_for_space(void **state)
{
	struct books before;
	char name[32];
	int n = 0;

	do
		snprintf(name, sizeof name, "f%d", n++);
	while (put_whole(name, NULL, 8 * MIB) == 0);
	before = settled();
	/* No stamp follows the delete, so its space does not come back. */
	bad(FAULT_WRITE, "log", 1, FAULT_HOLD);
	assert_int_equal(obj_delete(&l, "b", "f0", NULL), 1);
	begin(&hand[1], "more", NULL, STORE_PIECE);
	while (alloc_take(extent_store(st)->vol->disk.alloc, &extent_port(l.p)->run, 1,
			  &(struct extent){ 0 }) == 0)
		before.units--;
	assert_int_equal(commit(&hand[1], STORE_PIECE, NULL), 0);
	loop_for(&l, 20 * NS_PER_MS);
	assert_non_null(hand[1].put.op.port);
	bad(FAULT_WRITE, "log", 0, -EIO);
	/* At once, not when it would have been told that the disk is full: a turn takes a tenth of a millisecond. */
	for (uint64_t turns = 0; hand[1].put.op.port && turns < STALL_NS / (2 * 100 * NS_PER_US); turns++)
		loop_turn(&l);
	assert_null(hand[1].put.op.port);
	assert_int_equal(end(&hand[1]), -EROFS);
	assert_int_equal(books().writers, CHUNK_WRITERS_PER_PORT);
	assert_int_equal(books().units, before.units);
}

/* Aborted, or refused for what it holds, on a disk that is well: as if it had never been. */
static void
test_given_up(void **state)
{
	static const uint64_t sizes[] = { 10, 100000, 3 * MIB, 66 * MIB };

	for (int i = 0; i < 8; i++) {
		uint64_t size = sizes[i / 2];
		struct upload u = upload_make("u");
		struct books before = settled(), after;
		struct store_commit c = { .have_expect_crc64 = true, .expect_crc64 = 12345 };

		assert_int_equal(begin(&hand[1], "x", i % 2 ? &u : NULL, size), 0);
		hand[1].r = -EINTR;
		end(&hand[1]);
		assert_int_equal(begin(&hand[1], "x", i % 2 ? &u : NULL, size), 0);
		if (size <= STORE_INLINE_MAX) {
			c.inline_data = hand[1].buf->mem;
			c.inline_len = (uint32_t)size;
		} else {
			c.last = hand[1].buf;
			c.last_len = (uint32_t)((size - 1) % STORE_PIECE + 1);
		}
		hand[1].r = store_put_commit(l.p, &hand[1].put, &c);
		assert_int_equal(end(&hand[1]), -EILSEQ);
		after = settled();
		assert_int_equal(after.writers, CHUNK_WRITERS_PER_PORT);
		assert_int_equal(after.units, before.units);
	}
}

/* Aborted with a chunk on its way into the log, which nobody will name. */
static void
test_given_up_chunk(void **state)
{
	struct books before = settled(), after;

	bad(FAULT_FLUSH, "log", 0, FAULT_HOLD);
	assert_int_equal(begin(&hand[1], "x", NULL, 66 * MIB), 0);
	hand[1].r = -EINTR;
	end(&hand[1]);
	assert_int_not_equal(extent_port(l.p)->vp.io.inflight, 0);
	bad_name = NULL;
	after = settled();
	assert_int_equal(after.writers, CHUNK_WRITERS_PER_PORT);
	assert_int_equal(after.units, before.units);
}

/* The same on a disk in crumbs, where a map goes with the space; and where none can be had for the map. */
static void
test_given_up_crumbs(void **state)
{
	const struct store_pre there = { .kind = PRE_MATCH_ANY };
	struct books before, after;

	make_crumbs(&l);
	before = settled();
	assert_true(before.units > units_of(66 * MIB));
	begin(&hand[1], "x", NULL, 3 * MIB);
	assert_int_equal(commit(&hand[1], 3 * MIB, &there), 0);
	assert_int_equal(end(&hand[1]), -ENOENT);
	after = settled();
	assert_int_equal(after.writers, CHUNK_WRITERS_PER_PORT);
	assert_int_equal(after.units, before.units);
	/* The map of a chunk in 4097 units takes three. */
	leave_units(&l, units_of(64 * MIB) + 2);
	before = settled();
	begin(&hand[1], "x", NULL, 64 * MIB);
	commit(&hand[1], 64 * MIB, NULL);
	assert_int_equal(end(&hand[1]), -ENOSPC);
	after = settled();
	assert_int_equal(after.writers, CHUNK_WRITERS_PER_PORT);
	assert_int_equal(after.units, before.units);
}

/* A fault anywhere in a PUT of any kind keeps no writer, and a restart knows all space again. */
static void
test_any_fault(void **state)
{
	static const uint64_t sizes[] = { 10, 1000, 100000, 3 * MIB, 9 * MIB, 66 * MIB };
	static const char *const names[] = { "seg-", "log" };
	uint64_t rng = seed_from_env();
	struct books fresh = settled();

	for (int i = 0; i < 40; i++) {
		uint64_t size = sizes[rnd(&rng) % (sizeof sizes / sizeof *sizes)];
		struct upload u = upload_make("u");
		bool flush = rnd(&rng) % 3 == 0, part = rnd(&rng) % 2, is_short;
		struct store_unit_info info;
		int r, removed;

		is_short = rnd(&rng) % 4 == 0;
		bad(flush ? FAULT_FLUSH : FAULT_WRITE, flush ? "log" : names[rnd(&rng) % 2],
		    (int)(rnd(&rng) % (size / MIB + 2)), is_short ? FAULT_SHORT : -EIO);
		r = put_whole("x", part ? &u : NULL, size);
		bad_name = NULL;
		store_unit_info(st, 0, &info);
		/* A short flush is none. The fault may be in a later block than that of the PUT, which collects dead records. */
		if (info.state == UNIT_FAILED && r != 0)
			assert_true(r == -EROFS || r == -ECANCELED);
		else
			assert_true(r == 0 || (is_short && (r == -ENOSPC || r == -ECANCELED)));
		/* A block with what is being collected may still be on its way. */
		wait_until(!extent_port(l.p)->vp.io.inflight)
			loop_turn(&l);
		assert_int_equal(books().writers, CHUNK_WRITERS_PER_PORT);
		reopen();
		removed = obj_delete(&l, "b", "x", NULL);
		assert_true(r != 0 || part || removed == 1);
		upload_abort(&u);
		settled();
	}
	assert_int_equal(bucket_remove(&l, "b"), 0);
	fresh.units -= 64; /* snapshots */
	assert_true(settled().units >= fresh.units);
}

/* A start from a snapshot and a log leaves nothing set aside, and counts what there is. */
static void
test_start(void **state)
{
	struct books b;
	char name[32];

	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "s%d", i % 40);
		assert_int_equal(put_whole(name, NULL, 10), 0);
		if (i == 20)
			store_snapshot(st);
		settled();
	}
	assert_true(disk_number("snapshots") > 0);
	b = settled();
	reopen();
	assert_int_equal(settled().writers, b.writers);
	assert_int_equal(disk_number("objects"), 40);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_commit_on_failed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_block_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind_a_block, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waits_for_space, setup, teardown),
		cmocka_unit_test_setup_teardown(test_given_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_given_up_chunk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_given_up_crumbs, setup_large, teardown),
		cmocka_unit_test_setup_teardown(test_any_fault, setup, teardown),
		cmocka_unit_test_setup_teardown(test_start, setup, teardown),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	if (getenv("T"))
		cmocka_set_test_filter(getenv("T"));
	return cmocka_run_group_tests_name("store_books", tests, NULL, NULL);
}
