/* SPDX-License-Identifier: Apache-2.0 */
/* Pins: counting, waiting for the last one, and threads that pin and wait at random. */
#include "base/check.h"
#include "extent/index/pin.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

static struct pin_wait *called[8];
static int called_nr;

static void
on_free(struct pin_wait *w)
{
	called[called_nr++] = w;
}

static void
test_plain(void **state)
{
	struct pin_table *t;
	struct pin a = { 0 }, b = { 0 }, c = { 0 };
	struct pin_wait w1, w2, w3;

	assert_int_equal(pin_table_new(100, &t), 0);
	pin_drop(t, &a); /* unused: nothing */
	assert_true(pin_wait_free(t, &w1, 5, on_free));
	pin_add(t, &a, 5);
	pin_add(t, &b, 5);
	pin_add(t, &c, 6);
	assert_int_equal(pin_nr(t), 3);
	assert_false(pin_wait_free(t, &w1, 5, on_free));
	assert_false(pin_wait_free(t, &w2, 5, on_free));
	assert_false(pin_wait_free(t, &w3, 6, on_free));
	pin_drop(t, &a);
	pin_drop(t, &a);
	assert_int_equal(called_nr, 0);
	pin_add(t, &a, 5); /* again, while b holds it */
	pin_drop(t, &b);
	assert_int_equal(called_nr, 0);
	pin_drop(t, &a);
	assert_int_equal(called_nr, 2);
	assert_ptr_equal(called[0], &w1);
	assert_ptr_equal(called[1], &w2);
	pin_drop(t, &c);
	assert_int_equal(called_nr, 3);
	assert_int_equal(pin_nr(t), 0);
	pin_table_free(t);
	pin_table_free(NULL);
}

/* More pins than expected, all chains used. */
static unsigned last_nr;

static void
on_last(struct pin_wait *w)
{
	last_nr++;
}

static void
test_many(void **state)
{
	enum { NR = 5000 };
	struct pin_table *t;
	struct pin *p = calloc(NR, sizeof *p);
	struct pin_wait *w = calloc(NR / 2, sizeof *w), none;

	assert_int_equal(pin_table_new(10, &t), 0);
	for (uint64_t i = 0; i < NR; i++)
		pin_add(t, &p[i], i / 2);
	for (uint64_t i = 0; i < NR / 2; i++)
		assert_false(pin_wait_free(t, &w[i], i, on_last));
	assert_true(pin_wait_free(t, &none, NR / 2, on_last));
	for (uint64_t i = 0; i < NR; i += 2)
		pin_drop(t, &p[i]);
	assert_int_equal(last_nr, 0);
	for (uint64_t i = 1; i < NR; i += 2)
		pin_drop(t, &p[i]);
	assert_int_equal(last_nr, NR / 2);
	for (uint64_t i = 0; i < NR / 2; i++)
		assert_true(pin_wait_free(t, &w[i], i, on_last));
	pin_table_free(t);
	free(w);
	free(p);
}

/* ---- threads ---- */

/* Versions of one object.  A reader pins the current one; the writer replaces it
 * and waits for the old one. */

#define READERS 3
#define VERSIONS 20000

struct version {
	struct pin_wait wait;
	_Atomic int freed;
};

static struct pin_table *par_t;
static struct version version[VERSIONS + 1];
static _Atomic uint64_t par_now;
static _Atomic int par_freed;
static pthread_mutex_t par_lookup = PTHREAD_MUTEX_INITIALIZER; /* stands for the grace period */

static void
version_free(struct pin_wait *w)
{
	struct version *v = (struct version *)w;

	check(atomic_exchange(&v->freed, 1) == 0);
	atomic_fetch_add(&par_freed, 1);
}

static void *
par_reader(void *arg)
{
	struct pin pin = { 0 }, second = { 0 };
	uint64_t id;

	while ((id = atomic_load(&par_now)) < VERSIONS) {
		pthread_mutex_lock(&par_lookup);
		id = atomic_load(&par_now);
		pin_add(par_t, &pin, id);
		pthread_mutex_unlock(&par_lookup);
		check(!atomic_load(&version[id].freed));
		pin_add(par_t, &second, id);
		pin_drop(par_t, &pin);
		check(!atomic_load(&version[id].freed));
		pin_drop(par_t, &second);
	}
	return NULL;
}

static void
test_threads(void **state)
{
	pthread_t th[READERS];

	assert_int_equal(pin_table_new(64, &par_t), 0);
	for (int i = 0; i < READERS; i++)
		pthread_create(&th[i], NULL, par_reader, NULL);
	for (uint64_t id = 0; id < VERSIONS; id++) {
		pthread_mutex_lock(&par_lookup);
		atomic_store(&par_now, id + 1);
		pthread_mutex_unlock(&par_lookup);
		if (pin_wait_free(par_t, &version[id].wait, id, version_free))
			version_free(&version[id].wait);
	}
	for (int i = 0; i < READERS; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(atomic_load(&par_freed), VERSIONS);
	assert_int_equal(pin_nr(par_t), 0);
	pin_table_free(par_t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
