/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The removal of a bucket that is not empty, while the generations of its shards are raised, as a gateway does that cleans up after a
 * dead one: at each step of the removal. Afterwards the bucket is as it was.
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
	if (strncmp(e->text, want, strlen(want)) != 0)
		printf("%s instead of %s\n", e->text, want);
	assert_true(strncmp(e->text, want, strlen(want)) == 0);
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
		e->turn(e);
	}
	assert_int_equal(del.op.result, -ENOTEMPTY);
}

static void
test_raised(void **state)
{
	struct diff_end *e = diff_rados_end(&bufs, true);
	struct diff_op op = { .kind = OP_BUCKET_CREATE };

	e->start(e, true);
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

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_raised) };

	log_init(LOG_PLAIN, LOG_ERROR);
	check(bufpool_init(&bufs, 8 << 20) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
