/* SPDX-License-Identifier: Apache-2.0 */
/* Holds on keys with two copies: one at a time, in order, and what is left open stays so. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "set/key_lock.h"

#include <errno.h>
#include <string.h>

static struct mailbox mb;
static struct set_holds table, *holds = &table;
static int order[4], order_nr;

struct one {
	int nr;
	struct set_hold h;
};

static void
on_hold(struct msg *m)
{
	order[order_nr++] = container_of(container_of(m, struct set_hold, msg), struct one, h)->nr;
}

static void
on_free(struct msg *m)
{
	order[order_nr++] = 9;
}

static int
setup(void **state)
{
	order_nr = 0;
	memset(holds, 0, sizeof *holds);
	set_holds_init(holds);
	return mailbox_init(&mb) < 0;
}

static int
teardown(void **state)
{
	set_holds_fini(holds);
	mailbox_fini(&mb);
	return 0;
}

static struct store_key
key(const char *name)
{
	return (struct store_key){
		.bucket = "b", .key = name, .bucket_len = 1, .key_len = (uint16_t)strlen(name), .copies = 2
	};
}

static int
take(struct one *o, int nr, const char *name)
{
	struct store_key k = key(name);

	*o = (struct one){ .nr = nr, .h = { .mb = &mb, .go = on_hold } };
	return set_hold(holds, &k, &o->h);
}

static void
run(void)
{
	while (mailbox_run(&mb, 0) > 0)
		;
}

/* Who waits gets it in the order of arrival; other keys are free. */
static void
test_order(void **state)
{
	struct store_key x = key("x");
	struct one a, b, c, other;

	assert_int_equal(take(&a, 1, "x"), 1);
	assert_int_equal(take(&b, 2, "x"), 0);
	assert_int_equal(take(&c, 3, "x"), 0);
	assert_int_equal(take(&other, 4, "y"), 1);
	assert_true(set_is_held(holds, &x));
	set_release(holds, &a.h, false);
	run();
	assert_int_equal(order_nr, 1);
	set_release(holds, &b.h, false);
	run();
	assert_int_equal(order[0], 2);
	assert_int_equal(order[1], 3);
	set_release(holds, &c.h, false);
	set_release(holds, &other.h, false);
	assert_false(set_is_held(holds, &x));
}

/* Those in the queue get it, and see that; nobody else does, and no list of the bucket is one. */
static void
test_left_open(void **state)
{
	struct merge_wait before = { .mb = &mb, .go = on_free }, after = before;
	struct store_key x = key("x");
	struct one a, b, late, other;

	assert_int_equal(take(&a, 1, "x"), 1);
	assert_int_equal(take(&b, 2, "x"), 0);
	assert_int_equal(set_wait_held(holds, "b", 1, &before), 0);
	assert_false(set_is_open(&a.h));
	set_release(holds, &a.h, true);
	run();
	assert_int_equal(order_nr, 2);
	assert_int_equal(before.error, -EAGAIN);
	assert_true(set_is_open(&b.h));
	set_release(holds, &b.h, false);
	assert_true(set_is_held(holds, &x));
	assert_int_equal(take(&late, 3, "x"), -EAGAIN);
	assert_int_equal(set_wait_held(holds, "b", 1, &after), -EAGAIN);
	/* Another bucket, another key. */
	assert_int_equal(set_wait_held(holds, "c", 1, &after), 1);
	assert_int_equal(take(&other, 4, "y"), 1);
	set_release(holds, &other.h, false);
}

/* Who waits for a bucket is told when the last key of those is given away. */
static void
test_wait(void **state)
{
	struct merge_wait w = { .mb = &mb, .go = on_free };
	struct one a, b;

	assert_int_equal(set_wait_held(holds, "b", 1, &w), 1);
	assert_int_equal(take(&a, 1, "x"), 1);
	assert_int_equal(take(&b, 2, "y"), 1);
	assert_int_equal(set_wait_held(holds, "b", 1, &w), 0);
	set_release(holds, &a.h, false);
	run();
	assert_int_equal(order_nr, 0);
	set_release(holds, &b.h, false);
	run();
	assert_int_equal(order_nr, 1);
	assert_int_equal(w.error, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wait, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
