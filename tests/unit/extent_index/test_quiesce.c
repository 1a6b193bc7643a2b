/* SPDX-License-Identifier: Apache-2.0 */
/* Quiescence: who is waited for and who is not; and readers that must never see what was freed. */
#include "base/check.h"
#include "extent/index/quiesce.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <setjmp.h>
#include <cmocka.h>

static void
test_epochs(void **state)
{
	struct quiesce *q;
	struct quiesce_user *a, *b, *c;
	uint64_t t, t2;

	assert_int_equal(quiesce_new(2, &q), 0);
	assert_true(quiesce_passed(q, 0));
	assert_true(quiesce_passed(q, quiesce_now(q))); /* nobody to wait for */
	a = quiesce_join(q);
	b = quiesce_join(q);
	assert_non_null(a);
	assert_non_null(b);
	assert_null(quiesce_join(q));
	t = quiesce_now(q);
	assert_false(quiesce_passed(q, t));
	quiesce_point(a);
	assert_false(quiesce_passed(q, t));
	t2 = quiesce_now(q);
	assert_true(t2 > t);
	quiesce_point(b);
	assert_true(quiesce_passed(q, t));
	assert_false(quiesce_passed(q, t2));
	quiesce_sleep(a); /* a sleeper is quiescent all the time */
	assert_true(quiesce_passed(q, t2));
	t = quiesce_now(q);
	quiesce_point(b);
	assert_true(quiesce_passed(q, t));
	quiesce_wake(a); /* later than t; earlier than the next */
	t2 = quiesce_now(q);
	quiesce_point(b);
	assert_true(quiesce_passed(q, t));
	assert_false(quiesce_passed(q, t2));
	quiesce_leave(a);
	assert_true(quiesce_passed(q, t2));
	c = quiesce_join(q);
	assert_non_null(c);
	t = quiesce_now(q);
	quiesce_point(b);
	assert_false(quiesce_passed(q, t));
	quiesce_point(c);
	assert_true(quiesce_passed(q, t));
	quiesce_leave(c);
	quiesce_leave(b);
	quiesce_free(q);
	quiesce_free(NULL);
}

/* ---- a writer that replaces one object, readers that look at it ---- */

#define READERS 3
#define ROUNDS 20000

struct thing {
	struct thing *next; /* waits to be freed */
	uint64_t epoch;
	uint64_t a, b; /* b == ~a while it is alive */
};

static struct quiesce *par_q;
static _Atomic(struct thing *) par_thing;
static _Atomic bool par_stop;
static _Atomic uint64_t par_looks;

/* Things that were replaced, oldest first; those behind `open` (it included) have no epoch yet. */
struct waiting {
	struct thing *head, **tail, *open;
	uint64_t nr;
};

static void
retire(struct waiting *w, struct thing *t)
{
	t->next = NULL;
	*w->tail = t;
	w->tail = &t->next;
	w->open = w->open ? w->open : t;
	w->nr++;
}

static void
seal(struct waiting *w)
{
	uint64_t epoch = quiesce_now(par_q);

	for (struct thing *t = w->open; t; t = t->next)
		t->epoch = epoch;
	w->open = NULL;
}

static void
reclaim(struct waiting *w)
{
	for (struct thing *t; (t = w->head) != w->open && quiesce_passed(par_q, t->epoch); w->nr--) {
		w->head = t->next;
		if (!w->head)
			w->tail = &w->head;
		t->a = t->b = 0;
		free(t);
	}
}

static void *
par_reader(void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg;
	struct quiesce_user *u = quiesce_join(par_q);

	while (!atomic_load(&par_stop)) {
		const struct thing *t = atomic_load_explicit(&par_thing, memory_order_acquire);

		for (int i = 0; i < 10; i++)
			check(t->b == ~t->a);
		atomic_fetch_add_explicit(&par_looks, 1, memory_order_relaxed);
		n = n * 1103515245 + 12345;
		switch (n >> 16 & 31) {
		case 0:
			quiesce_sleep(u);
			sched_yield();
			quiesce_wake(u);
			break;
		case 1:
			quiesce_leave(u);
			u = quiesce_join(par_q);
			break;
		case 2: /* one turn that looks twice */
			break;
		default:
			quiesce_point(u);
		}
	}
	quiesce_leave(u);
	return NULL;
}

static struct thing *
thing_new(uint64_t a)
{
	struct thing *t = malloc(sizeof *t);

	t->a = a;
	t->b = ~a;
	return t;
}

static void
test_readers(void **state)
{
	pthread_t th[READERS];
	struct waiting w = { .tail = &w.head };
	struct thing *last;
	uint64_t n = 0;

	assert_int_equal(quiesce_new(READERS, &par_q), 0);
	atomic_store(&par_thing, thing_new(n));
	for (uintptr_t i = 0; i < READERS; i++)
		pthread_create(&th[i], NULL, par_reader, (void *)i);
	while (n < ROUNDS || atomic_load(&par_looks) < ROUNDS) {
		struct thing *old = atomic_load_explicit(&par_thing, memory_order_relaxed);

		atomic_store_explicit(&par_thing, thing_new(++n), memory_order_release);
		retire(&w, old);
		if (n % 3 == 0)
			seal(&w);
		do {
			reclaim(&w);
		} while (w.nr > 10000 && sched_yield() == 0);
	}
	atomic_store(&par_stop, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(th[i], NULL);
	seal(&w);
	reclaim(&w);
	assert_int_equal(w.nr, 0);
	last = atomic_load(&par_thing);
	free(last);
	quiesce_free(par_q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
