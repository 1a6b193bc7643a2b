/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel reads (rados/use/ahead.c), with two gateways in this process, `a` and `b`. A test can delay the
 * answers of librados to reads of data objects. CEPH_CONF names the cluster.
 */
#include "base/clock.h"
#include "rados/io/rstore.h"
#include "rados/rados.h"
#include "rados/use/use_int.h"
#include "tests/fake/store_loop.h"
#include "tests/fake/wait.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

#define KEYS_MAX (AHEAD_MAX + 1)
#define SIZE 50000u

static struct gateway_of {
	struct loop l;
	struct store *st;
	uint64_t right, dropped; /* values of the counters at the last expect_reads() */
} a, b;
static struct bufpool bufs, many;
static struct buf *buf, *run; /* from `bufs`; from `many` */
static char ns[32];

/* ---- delayed answers ---- */

struct late {
	struct late *next;
	rados_callback_t back;
	void *cookie;
	rados_completion_t comp;
};
static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;
static struct late *late;
static bool is_holding;
static int late_nr;

static void
on_answer(rados_completion_t comp, void *cookie)
{
	struct late *l = cookie;
	const struct call *c = l->cookie;

	pthread_mutex_lock(&late_lock);
	/* The cookie of each call with a callback is a struct call. */
	if (is_holding && c->pool == POOL_DATA && c->io == DISK_READ) {
		l->comp = comp;
		l->next = late;
		late = l;
		late_nr++;
		l = NULL;
	}
	pthread_mutex_unlock(&late_lock);
	if (!l)
		return;
	l->back(comp, l->cookie);
	free(l);
}

/* Replaces the function of librados, so that on_answer() can delay answers. */
int
rados_aio_create_completion2(void *cookie, rados_callback_t back, rados_completion_t *ret_comp)
{
	static int (*real)(void *, rados_callback_t, rados_completion_t *);
	struct late *l;

	if (!real)
		real = (int (*)(void *, rados_callback_t, rados_completion_t *))dlsym(
			RTLD_NEXT, "rados_aio_create_completion2");
	assert_non_null(real);
	/* a synchronous call of a helper thread */
	if (!back)
		return real(cookie, back, ret_comp);
	l = malloc(sizeof *l);
	assert_non_null(l);
	*l = (struct late){ .back = back, .cookie = cookie };
	return real(l, on_answer, ret_comp);
}

static void
hold(void)
{
	pthread_mutex_lock(&late_lock);
	is_holding = true;
	late_nr = 0;
	pthread_mutex_unlock(&late_lock);
}

static void
let_go(void)
{
	struct late *l;

	pthread_mutex_lock(&late_lock);
	is_holding = false;
	l = late;
	late = NULL;
	pthread_mutex_unlock(&late_lock);
	for (struct late *next; l; l = next) {
		next = l->next;
		l->back(l->comp, l->cookie);
		free(l);
	}
}

static bool
late_is(int nr)
{
	bool is;

	pthread_mutex_lock(&late_lock);
	is = late_nr >= nr;
	pthread_mutex_unlock(&late_lock);
	return is;
}

static void
wait_for_late(int nr)
{
	wait_until(late_is(nr))
		usleep(1000);
}

/* ---- spare buffers ---- */

static int spares_out, spares_max;
static bool no_runs;

static struct buf *
spare_take(struct store_spares *s, enum buf_class cls)
{
	struct buf *got = spares_out < spares_max && !(no_runs && cls == BUF_RUN)
				  ? cls == BUF_RUN ? bufpool_get_run(&many) : bufpool_get(&many, cls)
				  : NULL;

	spares_out += got != NULL;
	return got;
}

static void
spare_give(struct store_spares *s, struct buf *given)
{
	bufpool_put(&many, given);
	spares_out--;
}
static struct store_spares spares = { spare_take, spare_give };

/* ---- requests ---- */

static bool is_over;

static void
on_done(struct store_op *op)
{
	is_over = true;
}

static int
end(struct gateway_of *g, struct store_op *op, int r)
{
	if (r != 0)
		return r < 0 ? r : op->result;
	while (!is_over)
		loop_turn(&g->l);
	is_over = false;
	return op->result;
}

static struct store_key
key_of(const char *key)
{
	return (struct store_key){ "ahead", key, 5, (uint16_t)strlen(key) };
}

static void
put(struct gateway_of *g, const char *key, uint32_t size, unsigned char with)
{
	struct store_key k = key_of(key);
	struct store_put p = { .op.done = on_done };
	struct store_commit c = { .last = buf, .last_len = size };

	if (size <= STORE_INLINE_MAX)
		c = (struct store_commit){ .inline_data = buf->mem, .inline_len = size };
	memset(buf->mem, with, size);
	assert_int_equal(store_put_init(g->l.port, &p, &k, size), 0);
	assert_int_equal(end(g, &p.op, store_put_commit(g->l.port, &p, &c)), 0);
	store_put_abort(g->l.port, &p);
}

static int
open_want(struct gateway_of *g, const char *key, uint64_t want, struct store_obj *obj)
{
	struct store_key k = key_of(key);

	memset(obj, 0, sizeof *obj);
	obj->op.done = on_done;
	return end(g, &obj->op, store_open_to_read(g->l.port, &k, want, obj));
}

static int
open_one(struct gateway_of *g, const char *key, struct store_obj *obj)
{
	return open_want(g, key, UINT64_MAX, obj);
}

static int
read_one(struct gateway_of *g, struct store_obj *obj)
{
	struct store_read rd = { .op.done = on_done };

	memset(buf->mem, 0xee, buf->cap_bytes);
	return end(g, &rd.op, store_read(g->l.port, obj, &rd, buf, 0, (uint32_t)obj->size_bytes));
}

static void
expect_bytes(uint32_t size, unsigned char with)
{
	for (uint32_t i = 0; i < size; i++)
		assert_int_equal(((unsigned char *)buf->mem)[i], with);
}

static void
get(struct gateway_of *g, const char *key, uint32_t size, unsigned char with)
{
	struct store_obj obj;

	assert_int_equal(open_one(g, key, &obj), 0);
	assert_int_equal(obj.size_bytes, size);
	assert_int_equal(read_one(g, &obj), size);
	expect_bytes(size, with);
	store_close(g->l.port, &obj);
}

static int delete (struct gateway_of *g, const char *key)
{
	struct store_key k = key_of(key);
	struct store_del del = { .op.done = on_done };

	return end(g, &del.op, store_delete(g->l.port, &k, NULL, &del));
}

static uint64_t
number(const struct gateway_of *g, const char *name)
{
	struct store_unit_info info;

	store_unit_info(g->st, POOL_DATA, &info);
	return store_unit_number(&info, name);
}

/* Asserts the numbers of parallel reads since the last call: of those whose bytes the look-up confirmed,
 * and of those that were dropped. */
static void
expect_reads_at(struct gateway_of *g, unsigned right, unsigned dropped, int line)
{
	uint64_t r = number(g, "parallel_reads") - g->right,
		 d = number(g, "parallel_reads_dropped") - g->dropped;

	g->right += r;
	g->dropped += d;
	if (r != right || d != dropped)
		print_error("line %d: %u and %u were expected, there were %u and %u\n", line, right, dropped,
			    (unsigned)r, (unsigned)d);
	assert_true(r == right && d == dropped);
}
#define expect_reads(g, right, dropped) expect_reads_at((g), (right), (dropped), __LINE__)

/* ---- tests ---- */

/* A gateway that has put the object, or opened it for a GET, has parallel reads. A HEAD has none, nor has
 * an object that is inline or larger than a granule. */
static void
test_unchanged(void **state)
{
	struct store_obj obj = { .op.done = on_done };
	struct store_key k = key_of("same");
	static const uint32_t sizes[] = { STORE_INLINE_MAX + 1, SIZE, STORE_GRANULE - 1, STORE_GRANULE };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		put(&a, "same", sizes[i], 3);
		get(&a, "same", sizes[i], 3);
		get(&a, "same", sizes[i], 3);
		expect_reads(&a, 2, 0);
	}
	get(&b, "same", STORE_GRANULE, 3);
	expect_reads(&b, 0, 0);
	get(&b, "same", STORE_GRANULE, 3);
	expect_reads(&b, 1, 0);
	assert_int_equal(end(&a, &obj.op, store_open(a.l.port, &k, &obj)), 0);
	store_close(a.l.port, &obj);
	put(&a, "same", STORE_GRANULE + 1, 4);
	get(&a, "same", STORE_GRANULE + 1, 4);
	put(&a, "same", STORE_INLINE_MAX, 5);
	get(&a, "same", STORE_INLINE_MAX, 5);
	expect_reads(&a, 0, 0);
	/* Gateway b remembers the data object that was replaced. */
	get(&b, "same", STORE_INLINE_MAX, 5);
	expect_reads(&b, 0, 1);
	assert_int_equal(delete (&a, "same"), 1);
}

/* Another gateway replaces or removes the object: the client gets what the look-up finds. */
static void
test_changed(void **state)
{
	struct store_obj obj;

	put(&a, "other", SIZE, 1);
	for (unsigned char i = 2; i < 8; i += 2) {
		get(&a, "other", SIZE, (unsigned char)(i - 1));
		expect_reads(&a, i == 2, 0);
		put(&b, "other", SIZE, i);
		get(&a, "other", SIZE, i);
		expect_reads(&a, 0, 1);
		/* After a dropped read the next look-up has no parallel read, because the object may
		 * change again. */
		put(&b, "other", SIZE, (unsigned char)(i + 1));
	}
	get(&a, "other", SIZE, 7);
	get(&a, "other", SIZE, 7);
	expect_reads(&a, 1, 0);
	assert_int_equal(delete (&b, "other"), 1);
	assert_int_equal(open_one(&a, "other", &obj), -ENOENT);
	assert_int_equal(open_one(&a, "other", &obj), -ENOENT);
	expect_reads(&a, 0, 1);
}

/* The object is replaced while it is open: the reader gets the bytes that it opened. */
static void
test_open_stays(void **state)
{
	struct store_obj obj;

	put(&a, "stays", SIZE, 1);
	assert_int_equal(open_one(&a, "stays", &obj), 0);
	put(&b, "stays", SIZE, 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(read_one(&a, &obj), SIZE);
		expect_bytes(SIZE, 1);
	}
	store_close(a.l.port, &obj);
	expect_reads(&a, 1, 0);
	assert_int_equal(delete (&a, "stays"), 1);
}

/* The client reads before the bytes arrive, and gets them, or cancels the read, whose buffer is then not
 * written. */
static void
test_late(void **state)
{
	struct store_read rd = { .op.done = on_done };
	struct store_obj obj;

	put(&a, "late", SIZE, 9);
	for (int i = 0; i < 6; i++) {
		hold();
		assert_int_equal(open_one(&a, "late", &obj), 0);
		memset(buf->mem, 0xee, SIZE);
		assert_int_equal(store_read(a.l.port, &obj, &rd, buf, 0, SIZE), 0);
		/* cancelled before the answer (i = 3: after the answer, which is delayed) */
		if (i % 2) {
			if (i == 3)
				wait_for_late(1);
			assert_true(store_read_cancel(a.l.port, &rd));
		} else {
			wait_for_late(1);
			loop_turn(&a.l);
			assert_false(is_over);
		}
		let_go();
		if (i % 2 == 0)
			assert_int_equal(end(&a, &rd.op, 0), SIZE);
		else
			assert_int_equal(read_one(&a, &obj), SIZE);
		expect_bytes(SIZE, 9);
		store_close(a.l.port, &obj);
	}
	/* A cancelled read never completes, and its buffer is not written. */
	hold();
	assert_int_equal(open_one(&a, "late", &obj), 0);
	memset(buf->mem, 0xee, SIZE);
	assert_int_equal(store_read(a.l.port, &obj, &rd, buf, 0, SIZE), 0);
	wait_for_late(1);
	assert_true(store_read_cancel(a.l.port, &rd));
	store_close(a.l.port, &obj);
	let_go();
	for (int i = 0; i < 20; i++)
		loop_turn(&a.l);
	assert_false(is_over);
	expect_bytes(SIZE, 0xee);
	expect_reads(&a, 7, 0);
}

/* Objects are closed before their bytes arrive, more often than the port has buffers. Then one object more
 * is open than the port has buffers. */
static void
test_buffers(void **state)
{
	static struct store_obj obj[KEYS_MAX];

	put(&a, "many", SIZE, 9);
	for (unsigned i = 0; i < AHEAD_MAX + 6; i++) {
		hold();
		assert_int_equal(open_one(&a, "many", &obj[0]), 0);
		if (i % 2)
			wait_for_late(1);
		store_close(a.l.port, &obj[0]);
		let_go();
		/* The buffer is in use until the answer arrives. */
		while (rport(a.l.port)->inflight)
			loop_turn(&a.l);
	}
	expect_reads(&a, AHEAD_MAX + 6, 0);
	for (unsigned i = 0; i < KEYS_MAX; i++)
		assert_int_equal(open_one(&a, "many", &obj[i]), 0);
	expect_reads(&a, AHEAD_MAX, 0);
	for (unsigned i = 0; i < KEYS_MAX; i++) {
		assert_int_equal(read_one(&a, &obj[i]), SIZE);
		expect_bytes(SIZE, 9);
		store_close(a.l.port, &obj[i]);
	}
	get(&a, "many", SIZE, 9);
	expect_reads(&a, 1, 0);
}

/* One byte of each data object is changed: the bytes of the parallel read are read again, and refused. */
static void
test_damaged(void **state)
{
	rados_ioctx_t io = rstore(a.st)->client[0].io[POOL_DATA];
	rados_list_ctx_t ls;
	struct store_obj obj;
	const char *name;
	char byte;
	int nr = 0;

	put(&a, "bad", SIZE, 9);
	get(&a, "bad", SIZE, 9);
	expect_reads(&a, 1, 0);
	assert_int_equal(rados_nobjects_list_open(io, &ls), 0);
	while (rados_nobjects_list_next(ls, &name, NULL, NULL) == 0) {
		if (rados_read(io, name, &byte, 1, 77) != 1)
			continue; /* removed meanwhile, or too short */
		byte ^= 1;
		assert_int_equal(rados_write(io, name, &byte, 1, 77), 0);
		nr++;
	}
	rados_nobjects_list_close(ls);
	assert_true(nr > 0);
	for (int i = 0; i < 2; i++) {
		uint64_t errors = number(&a, "crc_errors");

		/* The client reads after (i = 0) or before the bytes arrive. */
		if (i)
			hold();
		assert_int_equal(open_one(&a, "bad", &obj), 0);
		if (i) {
			struct store_read rd = { .op.done = on_done };

			assert_int_equal(store_read(a.l.port, &obj, &rd, buf, 0, SIZE), 0);
			let_go();
			assert_int_equal(end(&a, &rd.op, 0), -EBADMSG);
		} else {
			while (rport(a.l.port)->inflight)
				loop_turn(&a.l);
			assert_int_equal(read_one(&a, &obj), -EBADMSG);
		}
		store_close(a.l.port, &obj);
		assert_int_equal(number(&a, "crc_errors"), errors + 1);
	}
	expect_reads(&a, 2, 0);
}

/* ---- objects larger than a granule ---- */

static unsigned char
byte_at(uint64_t off, unsigned char with)
{
	return (unsigned char)(off * 2654435761u >> 24) ^ with;
}

static void
put_large(struct gateway_of *g, const char *key, uint64_t size, unsigned char with)
{
	struct store_key k = key_of(key);
	struct store_put p = { .op.done = on_done };
	struct store_write wr = { .op.done = on_done };
	struct store_commit c = { .last = buf };
	uint64_t at = 0;

	assert_int_equal(store_put_init(g->l.port, &p, &k, size), 0);
	for (;;) {
		uint32_t len = size - at < STORE_PIECE ? (uint32_t)(size - at) : STORE_PIECE;

		for (uint32_t i = 0; i < len; i++)
			buf->mem[i] = (char)byte_at(at + i, with);
		at += len;
		c.last_len = len;
		if (at == size)
			break;
		assert_int_equal(end(g, &wr.op, store_put_write(g->l.port, &p, &wr, buf, len, false)), 0);
	}
	assert_int_equal(end(g, &p.op, store_put_commit(g->l.port, &p, &c)), 0);
	store_put_abort(g->l.port, &p);
}

/* Reads at off into *into, like src/xfer. Sets *into to the buffer that has the bytes, which may be
 * another one (*ret_exchanged). Returns the number of wanted bytes that were read. */
static uint32_t
read_at(struct gateway_of *g, struct store_obj *obj, uint64_t off, uint64_t want, struct buf **into,
	unsigned char with, bool *ret_exchanged)
{
	struct store_read rd = { .op.done = on_done };
	uint32_t skew, len = store_read_plan(obj, off, want, (*into)->cap_bytes, &skew);

	memset((*into)->mem, 0xee, (*into)->cap_bytes);
	assert_int_equal(end(g, &rd.op, store_read(g->l.port, obj, &rd, *into, off - skew, len)), len);
	*ret_exchanged = rd.instead != NULL;
	if (rd.instead) {
		assert_int_equal(rd.instead->cls, (*into)->cls);
		*into = rd.instead;
	}
	for (uint32_t i = skew; i < len; i++)
		assert_int_equal((unsigned char)(*into)->mem[i], byte_at(off - skew + i, with));
	return len - skew < want ? len - skew : (uint32_t)want;
}

static void
settle(struct gateway_of *g)
{
	while (rport(g->l.port)->inflight)
		loop_turn(&g->l);
	assert_int_equal(spares_out, 0);
}

/* Reads `want` bytes at off. Returns whether the first read exchanged its buffer; no later read may. */
static bool
get_large(struct gateway_of *g, const char *key, uint64_t off, uint64_t want, struct buf **into,
	  unsigned char with)
{
	struct store_obj obj;
	bool first = false, exchanged;

	assert_int_equal(open_want(g, key, off + want, &obj), 0);
	for (uint64_t at = 0; at < want;) {
		at += read_at(g, &obj, off + at, want - at, into, with, &exchanged);
		if (exchanged) {
			assert_false(first);
			first = true;
		}
	}
	store_close(g->l.port, &obj);
	settle(g);
	return first;
}

/* Whole objects: with CRCs in the record and in trailers, with one data object and with several. */
static void
test_large(void **state)
{
	static const uint64_t sizes[] = { STORE_GRANULE + 1,     STORE_PIECE - 1, STORE_PIECE,
					  STORE_PIECE + 1,       2 * STORE_PIECE, 2 * STORE_PIECE + 1,
					  4 * STORE_PIECE - 7,   4 * STORE_PIECE, 4 * STORE_PIECE + 77,
					  9 * STORE_PIECE + 4242 };
	struct buf *large = bufpool_get(&many, BUF_LARGE);

	assert_non_null(large);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buf **into = sizes[i] > BUF_RUN_BYTES / 2 ? &run : &large;
		unsigned char with = (unsigned char)(i + 1);

		put_large(&a, "large", sizes[i], with);
		for (int n = 0; n < 3; n++)
			assert_true(get_large(&a, "large", 0, sizes[i], into, with));
		expect_reads(&a, 3, 0);
		/* A reader into a single buffer needs no run. */
		no_runs = true;
		assert_true(get_large(&a, "large", 0, sizes[i], &large, with));
		no_runs = false;
		expect_reads(&a, 1, 0);
		/* Without spare buffers there is no parallel read. */
		spares_max = 0;
		assert_false(get_large(&a, "large", 0, sizes[i], into, with));
		spares_max = 64;
		/* Gateway b has no lender of spare buffers. */
		assert_false(get_large(&b, "large", 0, sizes[i], into, with));
		assert_false(get_large(&b, "large", 0, sizes[i], into, with));
		expect_reads(&a, 0, 0);
		expect_reads(&b, 0, 0);
	}
	assert_int_equal(delete (&a, "large"), 1);
	bufpool_put(&many, large);
}

/* Ranges: the bytes from the beginning of the object to the end of the range are read in parallel. Up to
 * one granule is read into memory of the port. */
static void
test_ranges(void **state)
{
	const uint64_t size = 4 * STORE_PIECE;
	struct store_obj obj;
	bool exchanged;

	put_large(&a, "range", size, 5);
	assert_true(get_large(&a, "range", 0, 3 * STORE_PIECE + 1, &run, 5));
	assert_true(get_large(&a, "range", 17, 3 * STORE_PIECE + 1, &run, 5));
	expect_reads(&a, 2, 0);
	/* The first read is of one granule, as over HTTP. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(open_want(&a, "range", STORE_GRANULE, &obj), 0);
		assert_int_equal(read_at(&a, &obj, 0, STORE_GRANULE, &run, 5, &exchanged), STORE_GRANULE);
		assert_false(exchanged);
		assert_int_equal(read_at(&a, &obj, STORE_GRANULE, size - STORE_GRANULE, &run, 5, &exchanged),
				 size - STORE_GRANULE);
		assert_false(exchanged);
		store_close(a.l.port, &obj);
		settle(&a);
	}
	expect_reads(&a, 2, 0);
	/* A suffix range, which may be the whole object, has no parallel read. */
	assert_int_equal(open_want(&a, "range", 0, &obj), 0);
	assert_int_equal(read_at(&a, &obj, size - 5, 5, &run, 5, &exchanged), 5);
	store_close(a.l.port, &obj);
	expect_reads(&a, 0, 0);
	/* The client reads other bytes than the parallel read; into a buffer of another class; nothing. */
	for (int i = 0; i < 3; i++) {
		struct buf *into = i == 1 ? buf : run;

		assert_int_equal(open_one(&a, "range", &obj), 0);
		if (i < 2) {
			uint64_t off = i ? 0 : STORE_PIECE, len = into->cap_bytes - off;

			assert_int_equal(read_at(&a, &obj, off, len, &into, 5, &exchanged), len);
			assert_false(exchanged);
			assert_int_equal(read_at(&a, &obj, 0, into->cap_bytes, &into, 5, &exchanged),
					 into->cap_bytes);
			assert_false(exchanged);
		}
		store_close(a.l.port, &obj);
		settle(&a);
	}
	expect_reads(&a, 3, 0);
	assert_int_equal(delete (&a, "range"), 1);
}

/* Another gateway replaces the object before and after it is opened, and then removes it. */
static void
test_large_changed(void **state)
{
	struct store_obj obj;
	bool exchanged;

	put_large(&a, "large", 4 * STORE_PIECE, 1);
	put_large(&b, "large", 4 * STORE_PIECE, 2);
	assert_false(get_large(&a, "large", 0, 4 * STORE_PIECE, &run, 2));
	expect_reads(&a, 0, 1);
	assert_false(get_large(&a, "large", 0, 4 * STORE_PIECE, &run, 2));
	assert_int_equal(open_one(&a, "large", &obj), 0);
	put_large(&b, "large", 4 * STORE_PIECE, 3);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(read_at(&a, &obj, 0, 4 * STORE_PIECE, &run, 2, &exchanged), 4 * STORE_PIECE);
		assert_int_equal(exchanged, i == 0);
	}
	store_close(a.l.port, &obj);
	expect_reads(&a, 1, 0);
	assert_int_equal(delete (&b, "large"), 1);
	assert_int_equal(open_one(&a, "large", &obj), -ENOENT);
	expect_reads(&a, 0, 1);
	settle(&a);
}

/* The bytes arrive after the client has read, cancelled its read, or closed the object. The buffer of a
 * cancelled read is not written. */
static void
test_large_late(void **state)
{
	const uint32_t size = 4 * STORE_PIECE;
	struct store_read rd = { .op.done = on_done };
	struct store_obj obj;
	bool exchanged;

	put_large(&a, "late", size, 7);
	for (int i = 0; i < 8; i++) {
		hold();
		assert_int_equal(open_one(&a, "late", &obj), 0);
		if (i & 4) {
			wait_for_late(1);
			assert_int_equal(spares_out, 1);
		}
		if (i % 4 < 3) {
			memset(run->mem, 0xee, size);
			assert_int_equal(store_read(a.l.port, &obj, &rd, run, 0, size), 0);
		}
		if (i % 4 == 1 || i % 4 == 2)
			assert_true(store_read_cancel(a.l.port, &rd));
		let_go();
		if (i % 4 == 0) {
			assert_int_equal(end(&a, &rd.op, 0), size);
			assert_non_null(rd.instead);
			run = rd.instead;
			for (uint32_t k = 0; k < size; k++)
				assert_int_equal((unsigned char)run->mem[k], byte_at(k, 7));
		} else if (i % 4 == 2) {
			assert_int_equal(read_at(&a, &obj, 0, size, &run, 7, &exchanged), size);
			assert_false(exchanged);
		} else if (i % 4 == 1) {
			assert_int_equal((unsigned char)run->mem[0], 0xee);
			assert_int_equal((unsigned char)run->mem[size - 1], 0xee);
		}
		store_close(a.l.port, &obj);
		settle(&a);
		assert_false(is_over);
	}
	expect_reads(&a, 8, 0);
	assert_int_equal(delete (&a, "late"), 1);
}

/* More parallel reads at once than a port may have. */
static void
test_large_many(void **state)
{
	static struct store_obj obj[KEYS_MAX];
	struct buf *large = bufpool_get(&many, BUF_LARGE);
	bool exchanged;

	put_large(&a, "many", STORE_PIECE, 8);
	spares_max = KEYS_MAX + 1;
	for (unsigned i = 0; i < KEYS_MAX; i++)
		assert_int_equal(open_one(&a, "many", &obj[i]), 0);
	expect_reads(&a, AHEAD_MAX, 0);
	assert_int_equal(spares_out, AHEAD_MAX);
	for (unsigned i = 0; i < KEYS_MAX; i++) {
		assert_int_equal(read_at(&a, &obj[i], 0, STORE_PIECE, &large, 8, &exchanged), STORE_PIECE);
		assert_int_equal(exchanged, i < AHEAD_MAX);
		store_close(a.l.port, &obj[i]);
	}
	settle(&a);
	spares_max = 64;
	bufpool_put(&many, large);
	assert_int_equal(delete (&a, "many"), 1);
}

/* One byte of each data object is changed, in the data or in the trailer after the data. */
static void
test_large_damaged(void **state)
{
	static const uint64_t sizes[] = { STORE_PIECE, 4 * STORE_PIECE };
	rados_ioctx_t io = rstore(a.st)->client[0].io[POOL_DATA];
	rados_list_ctx_t ls;
	struct store_obj obj;
	const char *name;

	for (int i = 0; i < 3; i++) {
		uint32_t size = (uint32_t)sizes[i > 0];
		uint64_t at = i == 2 ? size + 3 : size - 9, errors;
		struct store_read rd = { .op.done = on_done };
		struct buf *into = i ? run : buf;
		char byte;
		int nr = 0;

		put_large(&a, "bad", size, 9);
		assert_int_equal(rados_nobjects_list_open(io, &ls), 0);
		while (rados_nobjects_list_next(ls, &name, NULL, NULL) == 0) {
			if (rados_read(io, name, &byte, 1, at) != 1)
				continue;
			byte ^= 1;
			assert_int_equal(rados_write(io, name, &byte, 1, at), 0);
			nr++;
		}
		rados_nobjects_list_close(ls);
		assert_true(nr > 0);
		errors = number(&a, "crc_errors");
		assert_int_equal(open_one(&a, "bad", &obj), 0);
		while (rport(a.l.port)->inflight)
			loop_turn(&a.l);
		assert_int_equal(spares_out, 1);
		assert_int_equal(end(&a, &rd.op, store_read(a.l.port, &obj, &rd, into, 0, size)), -EBADMSG);
		assert_null(rd.instead);
		store_close(a.l.port, &obj);
		settle(&a);
		assert_int_equal(number(&a, "crc_errors"), errors + 1);
		expect_reads(&a, 1, 0);
		assert_int_equal(delete (&a, "bad"), 1);
	}
}

/* ---- start and stop ---- */

static int
start(struct gateway_of *g, const struct store_conf *conf)
{
	char err[256];

	if (mailbox_init(&g->l.mb) < 0 || store_start(conf, &g->st, err, sizeof err) < 0 ||
	    store_attach(g->st, NULL, &g->l.mb, NULL, &g->l.port) < 0) {
		fprintf(stderr, "start: %s\n", err);
		return -1;
	}
	return 0;
}

static void
stop(struct gateway_of *g)
{
	loop_end(&g->l);
	store_stop(g->st);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unchanged),  cmocka_unit_test(test_changed),
		cmocka_unit_test(test_open_stays), cmocka_unit_test(test_late),
		cmocka_unit_test(test_buffers),    cmocka_unit_test(test_damaged),
	};
	const struct CMUnitTest large_tests[] = {
		cmocka_unit_test(test_large),         cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_large_changed), cmocka_unit_test(test_large_late),
		cmocka_unit_test(test_large_many),    cmocka_unit_test(test_large_damaged),
	};
	struct store_conf conf = { .ops = &rados_store_ops,
				   .ports_max = 1,
				   .rados = { .conf = getenv("CEPH_CONF"),
					      .user = "admin",
					      .meta_pool = "gantry.meta",
					      .data_pool = "gantry.data",
					      .ns = ns,
					      .index_shards = 4,
					      .object_bytes = 4 << 20,
					      .dead_after_ns = 60 * NS_PER_S } };
	struct store_del bucket = { .op.done = on_done };
	char err[256];
	int failed;

	if (!conf.rados.conf) {
		fprintf(stderr, "CEPH_CONF is not set\n");
		return 1;
	}
	snprintf(ns, sizeof ns, "ahead-%d", (int)getpid());
	if (bufpool_init(&bufs, 8 << 20) < 0 || !(buf = bufpool_get(&bufs, BUF_LARGE)) ||
	    bufpool_init_runs(&many, 160 << 20) < 0 || !(run = bufpool_get_run(&many)))
		return 1;
	if (store_format(&conf, false, err, sizeof err) < 0) {
		fprintf(stderr, "format: %s\n", err);
		return 1;
	}
	if (start(&a, &conf) < 0 || start(&b, &conf) < 0)
		return 1;
	if (end(&a, &bucket.op, store_bucket_create(a.l.port, "ahead", 5, 0, &bucket)) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	store_set_spares(a.l.port, &spares);
	spares_max = 64;
	failed += cmocka_run_group_tests(large_tests, NULL, NULL);
	stop(&b);
	stop(&a);
	bufpool_put(&many, run);
	bufpool_fini(&many);
	bufpool_put(&bufs, buf);
	bufpool_fini(&bufs);
	return failed != 0;
}
