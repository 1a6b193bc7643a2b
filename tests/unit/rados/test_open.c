/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of an open object with many parts, and the parts that it returns. */
#include "tests/fake/diff.h"
#include "tests/fake/librados.h"

#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#define PARTS 1000u
/* memory per part in bytes: the encoded part, and its entry in the table */
#define PART_MAX (64 + 1 + 32)
#define OBJECT_MAX (16u << 10)

static struct bufpool bufs;

static void
on_done(struct store_op *op)
{
	op->port = NULL;
}

/* Returns the result of an operation that was started with the result r. */
static int
wait_for(struct diff_end *e, struct store_op *op, int r)
{
	if (r != 0)
		return r < 0 ? r : op->result;
	while (op->port)
		diff_turn(e);
	return op->result;
}

static void
put_part(struct diff_end *e, const struct store_key *k, const uint8_t *id, uint32_t number)
{
	static struct store_put put;
	const struct store_commit commit = { .inline_data = "x", .inline_len = 1 };

	put = (struct store_put){ .op.done = on_done };
	assert_int_equal(store_put_init_part(e->port, &put, k, id, number, 1), 0);
	put.op.done = on_done;
	assert_int_equal(wait_for(e, &put.op, store_put_commit(e->port, &put, &commit)), 0);
	store_put_abort(e->port, &put);
}

static void
test_memory(void **state)
{
	static struct store_part_ref list[PARTS];
	const char *bucket = diff_bucket(0);
	const struct store_key k = { bucket, "parts", (uint16_t)strlen(bucket), 5 };
	struct diff_end *e = diff_rados_end(&bufs);
	struct store_del made = { .op.done = on_done };
	struct store_upload u = { .op.done = on_done };
	struct store_complete c = { .op.done = on_done, .parts = list, .part_nr = PARTS };
	struct store_obj obj = { .op.done = on_done };
	struct store_part part;
	size_t before, grown;

	diff_clock_all();
	diff_start(&e, 1);
	fake_rados_tune(&(struct fake_rados_tuning){ .seed = 1 });
	assert_int_equal(
		wait_for(e, &made.op, store_bucket_create(e->port, bucket, strlen(bucket), 0, &made)), 0);
	assert_int_equal(wait_for(e, &u.op, store_upload_create(e->port, &k, NULL, 0, &u)), 0);
	for (uint32_t i = 0; i < PARTS; i++) {
		list[i].number = 2 * i + 1;
		put_part(e, &k, u.id, list[i].number);
	}
	assert_int_equal(wait_for(e, &c.op, store_upload_complete(e->port, &k, u.id, &c)), 0);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	assert_int_equal(wait_for(e, &obj.op, store_open(e->port, &k, &obj)), 0);
	/* Under a sanitizer, mallinfo2() counts no memory. */
	grown = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	if (grown > PARTS * PART_MAX + OBJECT_MAX)
		fail_msg("an open object with %u parts takes %zu bytes", PARTS, grown);
	obj.op.port = e->port;
	assert_int_equal(obj.part_nr, PARTS);
	for (uint32_t i = 0; i < PARTS; i++) {
		assert_int_equal(store_obj_part(&obj, 2 * i + 1, &part), 0);
		assert_true(part.number == 2 * i + 1 && part.off_bytes == i && part.size_bytes == 1);
		assert_int_equal(store_obj_part(&obj, 2 * i, &part), -ENOENT);
	}
	store_close(e->port, &obj);
	e->stop(e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_memory) };

	log_init(LOG_PLAIN, LOG_ERROR);
	check(bufpool_init(&bufs, 8 << 20) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
