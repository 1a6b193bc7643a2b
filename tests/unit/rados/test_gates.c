/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three races in the removal of buckets and uploads:
 *
 * - The generations of the shards are raised, as by the clean-up of a dead gateway, at each step of the
 *   removal of a bucket that is not empty. The bucket stays as it was.
 * - The removal of an empty bucket with a limit starts at each step of a PUT into the bucket.
 * - One gateway uploads a part at each step of the abort of the upload by another gateway, whose number the
 *   first gateway does not know yet.
 */
#include "tests/fake/diff.h"
#include "tests/fake/librados.h"

#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static struct bufpool bufs;

static void
does(struct diff_end *e, const struct diff_op *op, const char *want)
{
	diff_do(e, op);
	if (strncmp(e->own.text, want, strlen(want)) != 0)
		printf("%s instead of %s\n", e->own.text, want);
	assert_true(strncmp(e->own.text, want, strlen(want)) == 0);
}

static void
on_done(struct store_op *op)
{
	op->port = NULL;
}

static void
remove_while_raised(struct diff_end *e, unsigned step)
{
	struct store_del del = { .op.done = on_done };

	assert_int_equal(store_bucket_delete(e->port, diff_bucket(0), strlen(diff_bucket(0)), &del), 0);
	for (unsigned n = 0; del.op.port; n++) {
		if (n == step)
			fake_rados_raise();
		diff_turn(e);
	}
	assert_int_equal(del.op.result, -ENOTEMPTY);
}

static void
test_raised(void **state)
{
	struct diff_end *e = diff_rados_end(&bufs);
	struct diff_op op = { .kind = OP_BUCKET_CREATE };

	diff_clock_all();
	diff_start(&e, 1);
	fake_rados_tune(&(struct fake_rados_tuning){ .seed = 1 });
	does(e, &op, " create=0");
	for (op.key = 0; op.key < DIFF_KEYS; op.key++) {
		op.kind = OP_PUT;
		op.size = 10;
		op.rides = true;
		op.nr = op.key + 1;
		does(e, &op, " put=0");
	}
	for (unsigned step = 0; step < 60; step++) {
		remove_while_raised(e, step);
		for (op.key = 0; op.key < DIFF_KEYS; op.key++) {
			op.kind = OP_READ;
			does(e, &op, " open=0");
			op.kind = OP_PUT;
			does(e, &op, " put=0");
		}
	}
	e->stop(e);
}

static void
does_all(struct diff_end **ends, const struct diff_op *op, struct diff_log *log)
{
	diff_log_add(log, op, DIFF_ALONE);
	for (int i = 0; i < 2; i++)
		diff_do(ends[i], op);
	assert_string_equal(ends[0]->own.text, ends[1]->own.text);
}

static void
test_removed(void **state)
{
	struct diff_end *ends[] = { diff_mem_end(&bufs), diff_rados_end(&bufs) };
	const struct diff_op create = { .kind = OP_BUCKET_CREATE }, remove = { .kind = OP_BUCKET_DELETE },
			     bound = { .kind = OP_BUCKET_QUOTA, .quota = { 5, STORE_UNBOUNDED, 5 } },
			     delete = { .kind = OP_DELETE },
			     two[] = { { .kind = OP_PUT, .nr = 1, .size = 1000, .rides = true }, remove };

	diff_clock_all();
	diff_start(ends, 2);
	fake_rados_tune(&(struct fake_rados_tuning){ .seed = 1 });
	for (unsigned step = 0; step < 400; step++) {
		struct diff_log log = { .nr = 0 };

		does_all(ends, &create, &log);
		does_all(ends, &bound, &log);
		assert_int_equal(diff_two(ends, &log, two, step % 40, false), 0);
		does_all(ends, &delete, &log);
		does_all(ends, &remove, &log);
		diff_log_free(&log);
	}
	for (int i = 0; i < 2; i++)
		ends[i]->stop(ends[i]);
}

static void
test_not_met(void **state)
{
	struct diff_end *ends[] = { diff_mem_end(&bufs), diff_rados_end(&bufs) };
	const struct diff_op create = { .kind = OP_BUCKET_CREATE }, remove = { .kind = OP_BUCKET_DELETE },
			     begin = { .kind = OP_UPLOAD_CREATE }, end = { .kind = OP_UPLOAD_ABORT },
			     two[] = { { .kind = OP_UPLOAD_ABORT, .process = 1 },
				       { .kind = OP_PART, .part = 1, .nr = 1, .size = 1000, .rides = true } };

	diff_clock_all();
	diff_start(ends, 2);
	fake_rados_tune(&(struct fake_rados_tuning){ .seed = 1 });
	for (unsigned step = 0; step < 40; step++) {
		struct diff_log log = { .nr = 0 };

		does_all(ends, &create, &log);
		does_all(ends, &begin, &log);
		/* The successor has a number that the other gateway does not know. */
		ends[1]->select(ends[1], 1);
		ends[1]->kill(ends[1]);
		assert_int_equal(diff_two(ends, &log, two, step, false), 0);
		does_all(ends, &end, &log);
		does_all(ends, &remove, &log);
		diff_log_free(&log);
	}
	for (int i = 0; i < 2; i++)
		ends[i]->stop(ends[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_raised), cmocka_unit_test(test_removed),
					    cmocka_unit_test(test_not_met) };

	log_init(LOG_PLAIN, LOG_ERROR);
	check(bufpool_init(&bufs, 8 << 20) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
