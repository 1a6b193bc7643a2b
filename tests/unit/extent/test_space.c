/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that is full while space is on its way back: who comes then waits for it and is not refused, at
 * whatever moment.  Moments are made: writes to the log are held, the allocator tells when it has nothing.
 */
#include "fixture.h"
#include "tests/fake/fault_ring.h"
#include "tests/fake/hook_alloc.h"

#define DISK (100 * MIB)
#define CHUNKS (66 * MIB)  /* two of them, of 64 MiB and the rest; twice that there is no room for */
#define EXTENTS (60 * MIB) /* a record that names its space itself */

static struct loop l2;        /* another core */
static _Atomic int hold_kind; /* of what is done to the log; -1: nothing */

static int
hook(const struct fault_io *io)
{
	return (int)io->kind == hold_kind && strncmp(io->name, "log", 3) == 0 ? FAULT_HOLD : 0;
}

static int
setup(void **state)
{
	struct put_args too_large = {
		.bucket = "b", .key = "too-large", .size = DISK, .announce = STORE_SIZE_UNKNOWN
	};

	hold_kind = -1;
	hook_alloc_full = NULL;
	fault_ring_hook = hook;
	fault_ring_seed = 1; /* who is held holds up nobody else */
	if (make_store(DISK) < 0)
		return -1;
	/* No segments are left to be made after this, for which one could wait. */
	return obj_put(&l, &too_large) == -ENOSPC ? 0 : -1;
}

static int
teardown(void **state)
{
	hold_kind = -1;
	if (l2.p)
		loop_stop(&l2);
	return remove_store(state);
}

/* A chunk of it is on its way into the log when a large PUT is given up: its space comes back when it has
 * arrived, and until then somebody else's PUT is not told that there is none. */
static void
test_aborted_in_flight(void **state)
{
	struct store_put *put = calloc(1, sizeof *put), *next = calloc(1, sizeof *next);
	struct store_write *w = calloc(1, sizeof *w);
	struct store_key k = key_of("b", "given-up");
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);

	assert_int_equal(store_put_init(l.p, put, &k, CHUNKS), 0);
	w->op.done = on_put;
	for (int i = 0; i < 65; i++) {
		if (i == 64) /* with which the first chunk is over */
			hold_kind = FAULT_FLUSH;
		assert_int_equal(store_put_write(l.p, put, w, b, STORE_PIECE, false), 0);
		assert_int_equal(op_wait(&l, &w->op), 0);
	}
	loop_for(&l, 20 * NS_PER_MS);
	store_put_abort(l.p, put);
	/* What looks for chunks without an owner comes before this one is there. */
	hold_kind = FAULT_WRITE;
	loop_for(&l, 50 * NS_PER_MS);
	k = key_of("b", "next");
	assert_int_equal(store_put_init(l.p, next, &k, CHUNKS), 0);
	store_put_abort(l.p, next);
	hold_kind = -1;
	assert_int_equal(put_simple(&l, "b", "next", CHUNKS, 7), 0);
	assert_int_equal(obj_check(&l, "b", "next", CHUNKS, 7), 0);
	/* Nothing is thought to be on its way for good. */
	loop_for(&l, 100 * NS_PER_MS);
	assert_int_equal(store_put_init(l.p, put, &k, CHUNKS), -ENOSPC);
	store_put_abort(l.p, put);
	bufpool_put(&l.bufs, b);
	free(w);
	free(next);
	free(put);
}

static struct store_obj *reader;

/* On another core meanwhile: the last reader of what was deleted goes, and the space comes back at once. */
static void
let_go(void)
{
	store_close(l2.p, reader);
	loop_for(&l2, 100 * NS_PER_MS);
}

/* Between the moment in which there is no space and the look at what is on its way, it has come. */
static void
test_comes_back_in_between(void **state)
{
	reader = calloc(1, sizeof *reader);
	assert_int_equal(put_simple(&l, "b", "old", EXTENTS, 1), 0);
	loop_start_with(&l2, st, 4 * MIB);
	assert_int_equal(obj_open(&l2, "b", "old", reader), 0);
	assert_int_equal(obj_delete(&l, "b", "old", NULL), 1);
	for (int i = 0; i < 10; i++) {
		loop_for(&l, 5 * NS_PER_MS);
		loop_for(&l2, 5 * NS_PER_MS);
	}
	hook_alloc_full = let_go;
	assert_int_equal(put_simple(&l, "b", "new", EXTENTS, 2), 0);
	assert_null(hook_alloc_full);
	assert_int_equal(obj_check(&l, "b", "new", EXTENTS, 2), 0);
	free(reader);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_aborted_in_flight, setup, teardown),
		cmocka_unit_test_setup_teardown(test_comes_back_in_between, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
