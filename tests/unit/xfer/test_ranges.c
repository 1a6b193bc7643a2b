/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of an object that was made of odd parts, over each way out: by RDMA writes (no byte is copied,
 * wherever it lies in its buffer), over HTTP, and copied into another object; with many buffers and with the
 * one that a ticket guarantees.  SEED= repeats a run.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/crc64.h"
#include "base/mailbox.h"
#include "tests/fake/fake_chan.h"
#include "tests/fake/mem_store.h"
#include "tests/fake/wait.h"
#include "xfer/xfer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PARTS 9
#define LONG_WINDOW 0x70000000

static struct mailbox mb;
static struct store *st;
static struct store_port *port;
static struct chan *ch;
static struct bufpool bufs, tight, long_bufs;
static struct xfer_pool roomy_pool, tight_pool;
static struct store_obj obj;
static unsigned char *want, *got;
static size_t size;
static uint64_t window = 0x7000; /* of got */
static unsigned seed;
static bool is_over;
static int fewer = 1; /* transfers of each kind */

static void
turn(void)
{
	if (mailbox_sleep(&mb)) {
		struct pollfd p = { .fd = mb.efd, .events = POLLIN };

		poll(&p, 1, 1);
	}
	mailbox_wake(&mb);
	mailbox_run(&mb, 0);
	chan_poll(ch);
	store_turn(port, TURN_QUIESCENT);
}

static void
on_op(struct store_op *op)
{
	is_over = true;
}

static int
wait_op(struct store_op *op, int r)
{
	wait_until(r != 0 || is_over)
		turn();
	is_over = false;
	return r < 0 ? r : op->result;
}

static struct store_key
key_of(const char *key)
{
	return (struct store_key){ "b", key, 1, (uint16_t)strlen(key) };
}

static void
put_part(const uint8_t *id, uint32_t number, const unsigned char *bytes, size_t len)
{
	static struct store_put put;
	static struct store_write w;
	struct store_key k = key_of("src");
	struct store_commit c = { .meta.etag.parts = number };
	struct buf *b = bufpool_get(&bufs, BUF_LARGE);

	assert_int_equal(store_put_init_part(port, &put, &k, id, number, len), 0);
	for (size_t at = 0, n; at < len; at += n) {
		n = len - at < STORE_PIECE ? len - at : STORE_PIECE;
		memcpy(b->mem, bytes + at, n);
		w.op.done = on_op;
		assert_int_equal(
			wait_op(&w.op, store_put_write(port, &put, &w, b, (uint32_t)n, at + n == len)), 0);
	}
	put.op.done = on_op;
	assert_int_equal(wait_op(&put.op, store_put_commit(port, &put, &c)), 0);
	bufpool_put(&bufs, b);
}

/* An object of parts around every border. */
static void
make_source(void)
{
	static const size_t sizes[PARTS] = { STORE_GRANULE + 1,    100, STORE_PIECE - 1,       STORE_GRANULE,
					     3 * STORE_PIECE,      1,   2 * STORE_GRANULE - 1, 5,
					     2 * STORE_PIECE + 777 };
	static struct store_upload u;
	static struct store_complete c;
	struct store_part_ref refs[PARTS];
	struct store_key k = key_of("src");

	u.op.done = on_op;
	assert_int_equal(wait_op(&u.op, store_upload_create(port, &k, NULL, 0, &u)), 0);
	for (uint32_t i = 0; i < PARTS; i++)
		size += sizes[i];
	want = malloc(size);
	got = malloc(size);
	for (size_t i = 0; i < size; i++)
		want[i] = (unsigned char)(rand_r(&seed) >> 3);
	for (uint32_t i = 0, at = 0; i < PARTS; at += (uint32_t)sizes[i++]) {
		put_part(u.id, i + 1, want + at, sizes[i]);
		refs[i] = (struct store_part_ref){ .number = i + 1, .etag.parts = i + 1 };
	}
	c = (struct store_complete){ .parts = refs, .part_nr = PARTS, .op.done = on_op };
	assert_int_equal(wait_op(&c.op, store_upload_complete(port, &k, u.id, &c)), 0);
	obj.op.done = on_op;
	assert_int_equal(wait_op(&obj.op, store_open(port, &k, &obj)), 0);
	assert_true(obj.size_bytes == size && obj.part_nr == PARTS);
}

static int
setup(void **state)
{
	struct store_disk_conf disk = { .path = "memory", .size_bytes = 1 << 30 };
	struct store_conf conf = {
		.ops = &mem_store_ops, .disks.disk = &disk, .disks.nr = 1, .ports_max = 1
	};
	struct chan_params cp = { .mb = &mb, .core_nr = 1, .pieces_max = 8, .queue_max = 8 };
	static struct store_del del;
	const char *env = getenv("SEED");
	char err[64];

	seed = env ? (unsigned)strtoul(env, NULL, 0) : (unsigned)time(NULL);
	printf("SEED=%u\n", seed);
	assert_int_equal(mailbox_init(&mb), 0);
	assert_int_equal(bufpool_init(&bufs, 24u << 20), 0);
	assert_int_equal(bufpool_init(&tight, 1), 0);
	xfer_pool_init(&roomy_pool, &bufs, BUF_LARGE, 8, 8);
	xfer_pool_init(&tight_pool, &tight, BUF_LARGE, 8, 8);
	assert_int_equal(tight.total[BUF_LARGE], 1);
	assert_int_equal(bufpool_init_runs(&long_bufs, 24u << 20), 0);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), 0);
	assert_int_equal(store_attach(st, NULL, &mb, NULL, &port), 0);
	assert_int_equal(chan_new(&cp, &ch), 0);
	del.op.done = on_op;
	assert_int_equal(wait_op(&del.op, store_bucket_create(port, "b", 1, 0, &del)), 0);
	make_source();
	fake_chan_window(ch, window, got, size);
	return 0;
}

static int
teardown(void **state)
{
	store_close(port, &obj);
	assert_int_equal(mem_store_put_nr(st), 0);
	assert_int_equal(mem_store_inflight(st), 0);
	chan_free(ch);
	wait_until(store_detach(port))
		turn();
	store_stop(st);
	bufpool_fini(&bufs);
	bufpool_fini(&tight);
	bufpool_fini(&long_bufs);
	mailbox_fini(&mb);
	free(want);
	free(got);
	return 0;
}

/* ---- a transfer ---- */

static bool ended;

static void
on_end(struct xfer *x)
{
	ended = true;
}

static void
on_wake(struct xfer *x)
{
}

static void
on_lease(struct chan_lease *ls)
{
}

static void
begin(struct xfer *x, bool is_tight)
{
	memset(x, 0, sizeof *x);
	x->done = on_end;
	x->wake = on_wake;
	xfer_init(x, is_tight ? &tight_pool : &roomy_pool, port, ch);
	assert_true(xfer_ticket(x) > 0);
	ended = false;
	memset(got, 0xee, size);
}

static void
wait_end(struct xfer *x)
{
	wait_until(ended)
		turn();
	assert_int_equal(x->result, 0);
}

/* Mostly about borders of parts and granules. */
static void
choose(uint64_t *ret_off, uint64_t *ret_len)
{
	uint64_t off = (uint64_t)rand_r(&seed) % size, len;

	if (rand_r(&seed) % 3 == 0)
		off = off / STORE_GRANULE * STORE_GRANULE;
	if (rand_r(&seed) % 8 == 0)
		off = 0;
	len = 1 + (uint64_t)rand_r(&seed) % (size - off);
	if (rand_r(&seed) % 3 == 0)
		len = 1 + len % 300000;
	if (rand_r(&seed) % 8 == 0 || len > size - off)
		len = size - off;
	*ret_off = off;
	*ret_len = len;
}

static void
test_push(void **state)
{
	static struct xfer x;
	uint64_t off, len, copied = xfer_counts.copied_bytes;

	for (int i = 0; i < 150 / fewer; i++) {
		struct chan_lease ls = { .done = on_lease };
		struct token tok = { .kind = TOKEN_DC, .addr = window };

		choose(&off, &len);
		tok.size = len;
		begin(&x, i % 3 == 0);
		assert_int_equal(chan_lease_get(ch, &ls, &tok, NULL), 1);
		xfer_push(&x, &obj, off, len, &ls, i % 2 ? 2 << 20 : 0);
		wait_end(&x);
		assert_memory_equal(got, want + off, len);
		if (len < size)
			assert_int_equal(got[len], 0xee);
		xfer_fini(&x);
		chan_lease_put(ch, &ls);
	}
	assert_true(xfer_counts.copied_bytes == copied);
}

/* rdma.inflight_bytes: as much as that is on the wire at once, and one piece always;
 * and all of it is used. */
static void
test_wire_bound(void **state)
{
	static const uint64_t bounds[] = { 1, STORE_PIECE, 3 * STORE_PIECE - 1, 3 * STORE_PIECE, 0 };
	static const int most[] = { 1, 1, 2, 3, 8 };
	static struct store_put put;
	static struct digest dg;
	static struct xfer x;

	for (int i = 0; i < 10; i++) {
		struct chan_lease ls = { .done = on_lease };
		struct token tok = { .kind = TOKEN_DC, .addr = window, .size = size };
		struct store_key k = key_of("dst");
		uint64_t len = size / STORE_PIECE * STORE_PIECE;
		int seen = 0, most_here = most[i / 2];

		begin(&x, false);
		assert_int_equal(chan_lease_get(ch, &ls, &tok, NULL), 1);
		fake_chan_hold(ch, true);
		if (i % 2) {
			assert_int_equal(store_put_init(port, &put, &k, len), 0);
			assert_int_equal(digest_begin(&dg, 0), 0);
			xfer_pull(&x, &put, len, &ls, &dg, bounds[i / 2]);
		} else {
			xfer_push(&x, &obj, 0, len, &ls, bounds[i / 2]);
		}
		for (int idle = 0; !ended; idle++) {
			uint64_t on_wire = 0;
			int nr = fake_chan_op_nr(ch);

			for (int n = 0; n < nr; n++)
				on_wire += fake_chan_op(ch, n)->len_bytes;
			assert_true(!bounds[i / 2] || nr <= 1 || on_wire <= bounds[i / 2]);
			seen = nr > seen ? nr : seen;
			if (nr && (nr >= most_here || idle > 20)) {
				fake_chan_complete(ch, fake_chan_op(ch, 0));
				idle = 0;
			}
			turn();
		}
		assert_int_equal(x.result, 0);
		/* a READ is as long as a piece; of a WRITE the parts decide */
		if (i % 2)
			assert_int_equal(seen, most_here < (int)(len / STORE_PIECE)
						       ? most_here
						       : (int)(len / STORE_PIECE));
		fake_chan_hold(ch, false);
		xfer_fini(&x);
		chan_lease_put(ch, &ls);
		if (i % 2)
			store_put_abort(port, &put);
	}
	digest_fini(&dg);
}

static void test_serve(void **state);
static void test_copy(void **state);

/* A store may take less at once than a buffer holds (the one in memory checks it): 2, 3 and 15 granules, odd
 * numbers of which fit no buffer. */
static void
test_small_pieces(void **state)
{
	static const struct store_limits usual = { STORE_PIECE, STORE_PIECE, STORE_GRANULE,
						   STORE_INLINE_MAX };
	static const uint32_t granules[] = { 2, 3, 15 };

	fewer = 2;
	assert_int_equal(store_limits(port)->piece_bytes, STORE_PIECE);
	for (size_t i = 0; i < sizeof granules / sizeof *granules; i++) {
		struct store_limits few = usual;

		few.piece_bytes = few.read_bytes = granules[i] * STORE_GRANULE;
		mem_store_limit(st, &few);
		assert_int_equal(store_limits(port)->piece_bytes, few.piece_bytes);
		test_push(state);
		test_serve(state);
		test_copy(state);
	}
	mem_store_limit(st, &usual);
	fewer = 1;
}

static void
test_serve(void **state)
{
	static struct xfer x;
	uint64_t off, len;

	for (int i = 0; i < 60 / fewer; i++) {
		choose(&off, &len);
		begin(&x, i % 3 == 0);
		xfer_serve(&x, &obj, off, len);
		for (uint64_t at = 0; at < len;) {
			ssize_t n = xfer_take(&x, at, got + at, 1 + (size_t)rand_r(&seed) % 500000);

			assert_true(n >= 0);
			if (n == 0)
				turn();
			at += (uint64_t)n;
		}
		assert_memory_equal(got, want + off, len);
		xfer_fini(&x);
	}
}

static void
check_copy(uint64_t off, uint64_t len)
{
	static struct store_obj dst;
	static struct store_read rd;
	struct store_key k = key_of("dst");
	struct buf *b = bufpool_get(&bufs, BUF_LARGE);

	dst.op.done = on_op;
	assert_int_equal(wait_op(&dst.op, store_open(port, &k, &dst)), 0);
	assert_true(dst.size_bytes == len && dst.crc64 == crc64_nvme(0, want + off, len));
	for (uint64_t at = 0, n; at < len; at += n) {
		n = store_limits(port)->piece_bytes;
		n = len - at < n ? len - at : n;
		rd.op.done = on_op;
		assert_int_equal(wait_op(&rd.op, store_read(port, &dst, &rd, b, at, (uint32_t)n)), (int)n);
		assert_memory_equal(b->mem + rd.lead, want + off + at, n);
	}
	store_close(port, &dst);
	bufpool_put(&bufs, b);
}

static void
test_copy(void **state)
{
	static struct xfer x;
	static struct store_put put;
	static struct digest dg;
	uint64_t off, len;

	for (int i = 0; i < 80 / fewer; i++) {
		struct store_key k = key_of("dst");
		struct store_commit c = { 0 };
		uint8_t sum[32], expected[32];

		choose(&off, &len);
		assert_int_equal(store_put_init(port, &put, &k, i % 2 ? len : STORE_SIZE_UNKNOWN), 0);
		assert_int_equal(digest_begin(&dg, DIGEST_BIT(DIGEST_SHA256)), 0);
		begin(&x, i % 3 == 0);
		xfer_copy(&x, &obj, off, len, &put, &dg);
		wait_end(&x);
		c.last = xfer_last(&x, &c.last_len);
		assert_non_null(c.last);
		put.op.done = on_op;
		assert_int_equal(wait_op(&put.op, store_put_commit(port, &put, &c)), 0);
		xfer_fini(&x);
		assert_int_equal(digest_value(&dg, DIGEST_SHA256, sum), 32);
		assert_int_equal(digest_begin(&dg, DIGEST_BIT(DIGEST_SHA256)), 0);
		digest_update(&dg, want + off, len);
		digest_value(&dg, DIGEST_SHA256, expected);
		assert_memory_equal(sum, expected, 32);
		check_copy(off, len);
	}
	digest_fini(&dg);
}

/* Given up in the middle, or the disk says no: nothing is left in flight, and all buffers are there. */
static void
test_copy_ends(void **state)
{
	static struct xfer x;
	static struct store_put put;
	static struct digest dg;

	for (int i = 0; i < 40; i++) {
		struct store_key k = key_of("dst");
		bool is_tight = i % 2;

		assert_int_equal(store_put_init(port, &put, &k, STORE_SIZE_UNKNOWN), 0);
		assert_int_equal(digest_begin(&dg, 0), 0);
		if (i % 4 < 2)
			mem_store_fail(st, i % 8 < 4 ? MEM_READ : MEM_WRITE, -EIO, (unsigned)i % 5, 1);
		begin(&x, is_tight);
		xfer_copy(&x, &obj, 1 + (uint64_t)i, size - 100, &put, &dg);
		if (i % 4 >= 2) {
			for (int n = i / 4; n; n--)
				turn();
			ended |= !ended && xfer_cancel(&x, -ETIME) > 0;
		}
		wait_until(ended)
			turn();
		assert_true(x.result < 0 || i % 4 >= 2);
		xfer_fini(&x);
		store_put_abort(port, &put);
		mem_store_fail(st, MEM_READ, 0, 0, 0);
		mem_store_fail(st, MEM_WRITE, 0, 0, 0);
		assert_int_equal(tight.avail[BUF_LARGE], 1);
		assert_int_equal(bufs.avail[BUF_LARGE], bufs.total[BUF_LARGE]);
	}
	digest_fini(&dg);
}

/* A disk that is slow and gets on is progress: who waits for the last of the writes, long after the wire has
 * ended, is not cut off. */
static void
test_progress(void **state)
{
	static struct store_put put;
	static struct digest dg;
	static struct xfer x;
	struct chan_lease ls = { .done = on_lease };
	struct token tok = { .kind = TOKEN_DC, .addr = window, .size = size };
	struct store_key k = key_of("dst");
	/* Two pieces are written, the third one waits for the commit. */
	uint64_t len = 3 * STORE_PIECE, now = NS_PER_S;

	clock_fake(&now);
	begin(&x, false);
	assert_int_equal(chan_lease_get(ch, &ls, &tok, NULL), 1);
	assert_int_equal(store_put_init(port, &put, &k, len), 0);
	assert_int_equal(digest_begin(&dg, 0), 0);
	fake_chan_hold(ch, true);
	mem_store_manual(st, true);
	xfer_pull(&x, &put, len, &ls, &dg, 0);
	assert_int_equal(fake_chan_op_nr(ch), 3);
	now = 2 * NS_PER_S;
	assert_int_equal(fake_chan_complete_all(ch), 3);
	assert_int_equal(x.progress_ns, 2 * NS_PER_S);
	assert_int_equal(mem_store_inflight(st), 2);
	for (uint64_t i = 1; i <= 2; i++) {
		uint64_t before = x.progress_ns;

		now += 5 * NS_PER_S;
		turn();
		assert_int_equal(x.progress_ns, before);
		assert_int_equal(mem_store_step(st, 1), 2 - i);
		turn();
		assert_int_equal(x.progress_ns, now);
		assert_int_equal(ended, i == 2);
	}
	assert_int_equal(x.result, 0);
	clock_fake(NULL);
	mem_store_manual(st, false);
	fake_chan_hold(ch, false);
	xfer_fini(&x);
	chan_lease_put(ch, &ls);
	store_put_abort(port, &put);
	digest_fini(&dg);
}

/* Pushes the whole object; the longest of its pieces. */
static uint32_t
longest_piece(void)
{
	static struct xfer x;
	struct chan_lease ls = { .done = on_lease };
	struct token tok = { .kind = TOKEN_DC, .addr = window, .size = size };
	uint32_t longest = 0;

	begin(&x, false);
	assert_int_equal(chan_lease_get(ch, &ls, &tok, NULL), 1);
	fake_chan_hold(ch, true);
	xfer_push(&x, &obj, 0, size, &ls, 2 << 20);
	wait_until(ended) {
		if (fake_chan_op_nr(ch)) {
			struct chan_op *op = fake_chan_op(ch, 0);

			longest = op->len_bytes > longest ? op->len_bytes : longest;
			fake_chan_complete(ch, op);
		}
		turn();
	}
	fake_chan_hold(ch, false);
	assert_int_equal(x.result, 0);
	assert_memory_equal(got, want, size);
	xfer_fini(&x);
	chan_lease_put(ch, &ls);
	return longest;
}

/* Takes one buffer out of each of nr runs. */
static void
break_runs(struct buf **ret_out, int nr)
{
	struct buf *all[64];
	int taken = 0;

	while ((all[taken] = bufpool_get(&long_bufs, BUF_LARGE)))
		taken++;
	for (int i = 0; i < taken; i++) {
		ptrdiff_t at = all[i] - long_bufs.bufs - long_bufs.total[BUF_SMALL];

		if (at % BUF_RUN_NR == 1 && at / BUF_RUN_NR < nr)
			*ret_out++ = all[i];
		else
			bufpool_put(&long_bufs, all[i]);
	}
}

/* A store that reads more at once than a buffer holds, and a pool with runs: long reads, and short ones where runs
 * are broken; what is copied goes by pieces all the same. */
static void
test_long_reads(void **state)
{
	static const struct store_limits usual = { STORE_PIECE, STORE_PIECE, STORE_GRANULE,
						   STORE_INLINE_MAX };
	static const size_t len = (9u << 20) + 123456;
	struct store_limits many = usual;
	struct store_obj parts = obj;
	struct store_key k = key_of("long");
	unsigned char *parts_want = want, *parts_got = got;
	size_t parts_size = size;
	uint64_t parts_window = window;
	static struct store_put put;
	static struct store_write w;
	struct buf *b = bufpool_get(&bufs, BUF_LARGE);
	struct store_commit c = { 0 };

	size = len;
	want = malloc(size);
	got = malloc(size);
	for (size_t i = 0; i < size; i++)
		want[i] = (unsigned char)(rand_r(&seed) >> 3);
	assert_int_equal(store_put_init(port, &put, &k, size), 0);
	for (size_t at = 0, n; at < size; at += n) {
		n = size - at < STORE_PIECE ? size - at : STORE_PIECE;
		memcpy(b->mem, want + at, n);
		w.op.done = on_op;
		assert_int_equal(
			wait_op(&w.op, store_put_write(port, &put, &w, b, (uint32_t)n, at + n == size)), 0);
	}
	put.op.done = on_op;
	assert_int_equal(wait_op(&put.op, store_put_commit(port, &put, &c)), 0);
	bufpool_put(&bufs, b);
	memset(&obj, 0, sizeof obj);
	obj.op.done = on_op;
	assert_int_equal(wait_op(&obj.op, store_open(port, &k, &obj)), 0);
	window = LONG_WINDOW;
	fake_chan_window(ch, window, got, size);
	fewer = 4;
	many.read_bytes = STORE_READ;
	mem_store_limit(st, &many);
	xfer_pool_init(&roomy_pool, &long_bufs, BUF_LARGE, 8, 8);
	/* All runs whole, some of them, none. */
	for (int i = 0; i < 3; i++) {
		struct buf *out[8];
		int nr = i * long_bufs.total[BUF_LARGE] / BUF_RUN_NR / 2;

		break_runs(out, nr);
		xfer_counts.bufs_peak = 0;
		assert_int_equal(longest_piece(), i < 2 ? STORE_READ : STORE_PIECE);
		test_push(state);
		test_serve(state);
		test_copy(state);
		/* How close it comes to its bound is a matter of the order in which things end. */
		assert_in_range(xfer_counts.bufs_peak, BUF_RUN_NR + 1, 8);
		while (nr)
			bufpool_put(&long_bufs, out[--nr]);
	}
	assert_int_equal(long_bufs.avail[BUF_LARGE], long_bufs.total[BUF_LARGE]);
	mem_store_limit(st, &usual);
	xfer_pool_init(&roomy_pool, &bufs, BUF_LARGE, 8, 8);
	store_close(port, &obj);
	obj = parts;
	free(want);
	free(got);
	want = parts_want;
	got = parts_got;
	size = parts_size;
	window = parts_window;
	fewer = 1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push),         cmocka_unit_test(test_wire_bound),
		cmocka_unit_test(test_serve),        cmocka_unit_test(test_copy),
		cmocka_unit_test(test_copy_ends),    cmocka_unit_test(test_progress),
		cmocka_unit_test(test_small_pieces), cmocka_unit_test(test_long_reads),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
