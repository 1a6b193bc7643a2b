/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extent allocator against a byte per unit: random takes, frees, runs of several ports, segments that
 * appear, space held back; and ports on threads of their own.  SEED= repeats a run.
 */
#include "base/check.h"
#include "extent/disk/alloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <setjmp.h>
#include <cmocka.h>

#define SEG 512u
#define SEGS 20u
#define UNITS (SEG * SEGS)
#define RUN 64u
#define PORTS 3
#define EXTENTS_MAX UNITS

static uint64_t seed;

static uint64_t
rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

struct model {
	struct alloc *a;
	struct alloc_run run[PORTS];
	uint8_t used[UNITS]; /* taken by somebody: 2, a snapshot */
	uint64_t used_nr, held_nr, units;
	struct extent ext[EXTENTS_MAX];
	uint32_t ext_nr;
};

static void
model_take(struct model *m, const struct extent *x, bool is_held)
{
	assert_true(x->units > 0);
	assert_true(x->unit + x->units <= UNITS);
	assert_int_equal(x->unit / SEG, (x->unit + x->units - 1) / SEG);
	for (uint32_t i = 0; i < x->units; i++) {
		assert_int_equal(m->used[x->unit + i], 0);
		m->used[x->unit + i] = is_held ? 2 : 1;
	}
	m->used_nr += x->units;
	m->held_nr += is_held ? x->units : 0;
	m->ext[m->ext_nr++] = *x;
}

/* Gives back what the run holds. */
static void
run_return(struct alloc *a, struct alloc_run *run)
{
	alloc_run_fini(a, run);
	alloc_run_init(a, run);
}

/* Makes an allocator for nr segments, of which the first `added` are there. */
static struct alloc *
make(uint32_t nr, uint32_t added)
{
	struct alloc *a;

	assert_int_equal(alloc_new(nr, SEG, RUN, &a), 0);
	for (uint32_t i = 0; i < added; i++)
		assert_int_equal(alloc_add(a, i), 0);
	return a;
}

/* Frees extent i, or its front part only. */
static void
model_free(struct model *m, uint32_t i, uint32_t units)
{
	struct extent x = { m->ext[i].unit, units };
	bool is_held = m->used[x.unit] == 2;

	memset(m->used + x.unit, 0, units);
	m->used_nr -= units;
	m->ext[i].unit += units;
	m->ext[i].units -= units;
	if (!m->ext[i].units)
		m->ext[i] = m->ext[--m->ext_nr];
	m->held_nr -= is_held ? units : 0;
	alloc_free(m->a, &x, is_held);
}

static void
compare_stats(struct model *m)
{
	struct alloc_stats st;

	alloc_stats(m->a, &st);
	assert_int_equal(st.units, m->units);
	assert_int_equal(st.free + st.leased, m->units - m->used_nr);
	assert_int_equal(st.held_used, m->held_nr);
}

static void
model_run(uint64_t s, uint64_t held)
{
	static struct model m;
	struct extent x;

	memset(&m, 0, sizeof m);
	assert_int_equal(alloc_new(SEGS, SEG, RUN, &m.a), 0);
	for (int i = 0; i < PORTS; i++)
		alloc_run_init(m.a, &m.run[i]);
	alloc_hold_back(m.a, held, true);
	for (int n = 0; n < 20000; n++) {
		uint32_t units = 1 + (uint32_t)(rnd(&s) % RUN);
		int growing = n / 2000 % 2 == 0; /* fills up, then empties */
		uint64_t dice = rnd(&s) % 100, keep = held > m.held_nr ? held - m.held_nr : 0,
			 free_nr = m.units - m.used_nr;
		bool is_held = false;
		int r;

		if (n % 500 == 0 && m.units < UNITS) {
			assert_int_equal(alloc_add(m.a, (uint32_t)(m.units / SEG)), 0);
			m.units += SEG;
			free_nr += SEG;
		}
		if (dice < (growing ? 60 : 30)) {
			r = alloc_take(m.a, &m.run[rnd(&s) % PORTS], units, &x);
			assert_int_equal(r, free_nr > keep ? 0 : -ENOSPC);
		} else if (dice < 62) {
			is_held = true;
			r = alloc_take_held(m.a, units, &x);
			assert_int_equal(r, free_nr ? 0 : -ENOSPC);
		} else {
			if (m.ext_nr) {
				uint32_t i = (uint32_t)(rnd(&s) % m.ext_nr);

				model_free(&m, i, 1 + (uint32_t)(rnd(&s) % m.ext[i].units));
			}
			if (dice > 97)
				run_return(m.a, &m.run[rnd(&s) % PORTS]);
			continue;
		}
		if (r == 0) {
			assert_true(x.units <= units);
			model_take(&m, &x, is_held);
		}
		compare_stats(&m);
		if (dice == 0) {
			uint64_t more = held + rnd(&s) % 200;
			bool there = m.units - m.used_nr + m.held_nr >= more;

			assert_int_equal(alloc_hold_back(m.a, more, false), there);
			held = there ? more : held;
		}
	}
	while (m.ext_nr)
		model_free(&m, 0, m.ext[0].units);
	for (int i = 0; i < PORTS; i++)
		alloc_run_fini(m.a, &m.run[i]);
	compare_stats(&m);
	/* Every segment is whole again. */
	for (uint64_t i = 0; i < SEGS; i++) {
		assert_int_equal(alloc_take_held(m.a, SEG, &x), 0);
		assert_int_equal(x.units, SEG);
	}
	alloc_free_all(m.a);
}

static void
test_model(void **state)
{
	for (uint64_t i = 0; i < 6; i++)
		model_run(seed + i * 7919, i % 2 ? 300 : 0);
}

/* Recovery: what somebody names is used, everything else is free; what cannot be is said. */
static void
test_recovery(void **state)
{
	struct alloc *a = make(SEGS, 2);
	struct alloc_run run;
	struct alloc_stats st;
	struct extent x;

	assert_int_equal(alloc_mark(a, &(struct extent){ 10, 20 }, false), 0);
	assert_int_equal(alloc_mark(a, &(struct extent){ 29, 1 }, false), -EEXIST);
	assert_int_equal(alloc_mark(a, &(struct extent){ 5, 6 }, false), -EEXIST);
	assert_int_equal(alloc_mark(a, &(struct extent){ SEG - 1, 2 }, false), -ERANGE);
	assert_int_equal(alloc_mark(a, &(struct extent){ 2 * SEG, 1 }, false), -ERANGE);
	assert_int_equal(alloc_mark(a, &(struct extent){ UINT64_MAX, 1 }, false), -ERANGE);
	assert_int_equal(alloc_mark(a, &(struct extent){ UNITS - 1, UINT32_MAX }, false), -ERANGE);
	assert_int_equal(alloc_mark(a, &(struct extent){ 0, 0 }, false), -ERANGE);
	assert_int_equal(alloc_mark(a, &(struct extent){ 30, SEG - 30 }, false), 0);
	assert_int_equal(alloc_mark(a, &(struct extent){ SEG, SEG }, false), 0);
	alloc_stats(a, &st);
	assert_int_equal(st.free, 10);
	alloc_run_init(a, &run);
	assert_int_equal(alloc_take(a, &run, 64, &x), 0);
	assert_int_equal(x.unit, 0);
	assert_int_equal(x.units, 10);
	assert_int_equal(alloc_take(a, &run, 1, &x), -ENOSPC);
	assert_int_equal(alloc_take_held(a, 1, &x), -ENOSPC);
	alloc_run_fini(a, &run);
	alloc_free_all(a);
}

/* What an idle port holds is taken from it before anybody hears that there is none. */
static void
test_steal(void **state)
{
	struct alloc *a = make(1, 1);
	struct alloc_run mine, idle;
	struct alloc_stats st;
	struct extent x;
	uint32_t got = 0;

	alloc_run_init(a, &mine);
	alloc_run_init(a, &idle);
	assert_int_equal(alloc_take(a, &idle, 1, &x), 0);
	alloc_stats(a, &st);
	assert_true(st.leased > 0);
	while (alloc_take(a, &mine, 3, &x) == 0)
		got += x.units;
	assert_int_equal(got, SEG - 1);
	alloc_stats(a, &st);
	assert_int_equal(st.leased, 0);
	alloc_run_fini(a, &mine);
	alloc_run_fini(a, &idle);
	alloc_free_all(a);
}

/* ---- ports on threads ---- */

#define PAR_ROUNDS 20000

/* Full and in pieces: for a snapshot the longest piece is found wherever it is, for data some without a long search; and
 * all of it can be taken. */
static void
test_pieces(void **state)
{
	struct alloc_run run;
	struct alloc *a = make(SEGS, SEGS);
	struct alloc_stats as;
	struct extent x;
	uint64_t got = 0;

	alloc_run_init(a, &run);
	/* Five of eight units are free; in the last segment but one there is one range of 45. */
	for (uint64_t u = 0; u + 8 <= UNITS; u += 8) {
		if (u >= (SEGS - 2) * SEG + 80 && u < (SEGS - 2) * SEG + 120)
			continue;
		assert_int_equal(alloc_mark(a, &(struct extent){ u, 3 }, false), 0);
	}
	assert_int_equal(alloc_take_held(a, 40, &x), 0);
	assert_int_equal(x.units, 40);
	assert_int_equal(x.unit / SEG, SEGS - 2);
	assert_int_equal(alloc_take_held(a, 40, &x), 0);
	assert_int_equal(x.units, 5);
	alloc_stats(a, &as);
	while (alloc_take(a, &run, 40, &x) == 0) {
		assert_true(x.units >= 1 && x.units <= 40);
		got += x.units;
	}
	assert_int_equal(got, as.free);
	alloc_run_fini(a, &run);
	alloc_free_all(a);
}

static struct alloc *par_a;
static _Atomic uint8_t par_used[UNITS];

static void *
par_port(void *arg)
{
	uint64_t s = seed + (uint64_t)(uintptr_t)arg * 77;
	struct alloc_run run;
	struct extent mine[200];
	uint32_t nr = 0;

	alloc_run_init(par_a, &run);
	for (int n = 0; n < PAR_ROUNDS; n++) {
		if (nr < 200 && rnd(&s) % 5 < 3) {
			struct extent *x = &mine[nr];
			uint32_t units = 1 + (uint32_t)(rnd(&s) % RUN);

			if (alloc_take(par_a, &run, units, x) < 0)
				continue;
			for (uint32_t i = 0; i < x->units; i++)
				check(atomic_exchange(&par_used[x->unit + i], 1) == 0);
			nr++;
		} else if (nr) {
			uint32_t i = (uint32_t)(rnd(&s) % nr);

			for (uint32_t j = 0; j < mine[i].units; j++)
				check(atomic_exchange(&par_used[mine[i].unit + j], 0) == 1);
			alloc_free(par_a, &mine[i], false);
			mine[i] = mine[--nr];
		}
		if (rnd(&s) % 1000 == 0)
			run_return(par_a, &run);
	}
	while (nr) {
		nr--;
		for (uint32_t j = 0; j < mine[nr].units; j++)
			check(atomic_exchange(&par_used[mine[nr].unit + j], 0) == 1);
		alloc_free(par_a, &mine[nr], false);
	}
	alloc_run_fini(par_a, &run);
	return NULL;
}

static void
test_threads(void **state)
{
	pthread_t th[PORTS];
	struct alloc_stats st;

	par_a = make(SEGS, SEGS);
	for (uintptr_t i = 0; i < PORTS; i++)
		pthread_create(&th[i], NULL, par_port, (void *)(i + 1));
	for (int i = 0; i < PORTS; i++)
		pthread_join(th[i], NULL);
	alloc_stats(par_a, &st);
	assert_int_equal(st.free, UNITS);
	alloc_free_all(par_a);
}

/* What is claimed nobody else gets: it is free, or was in use when that was noted and has not been given back. */
static void
test_claims(void **state)
{
	struct extent old = { 3, 4 }, piece = { 4, 1 }, around = { 40, 10 }, x;
	struct alloc_stats before, st;
	struct alloc_run run;
	struct alloc *a = make(2, 2);

	assert_int_equal(alloc_mark(a, &old, false), 0);
	assert_int_equal(alloc_mark(a, &around, false), 0);
	assert_int_equal(alloc_note_old(a, 0), 0);
	assert_int_equal(alloc_mark(a, &(struct extent){ 7, 1 }, false), 0);
	alloc_free(a, &piece, false);
	assert_int_equal(alloc_mark(a, &piece, false), 0);
	alloc_stats(a, &before);

	/* 4 was given back meanwhile, and 7 was not there yet. */
	assert_int_equal(alloc_claim(a, 0, 10), 0x3ff & ~(1 << 4 | 1 << 7));
	alloc_stats(a, &st);
	assert_int_equal(st.free, before.free - 5);
	/* Given back now, 3 and 5 are free when the claim ends, and so are 0 to 2, 8 and 9. */
	alloc_free(a, &(struct extent){ 3, 1 }, false);
	alloc_free(a, &(struct extent){ 5, 1 }, false);
	alloc_stats(a, &st);
	assert_int_equal(st.free, before.free - 5);
	alloc_unclaim(a);
	alloc_stats(a, &st);
	assert_int_equal(st.free, before.free + 2);
	/* Some of an extent lies in the claim, some in front of it, some behind. */
	assert_int_equal(alloc_claim(a, 42, 5), 0x1f);
	alloc_free(a, &around, false);
	alloc_stats(a, &st);
	assert_int_equal(st.free, before.free + 7);
	alloc_unclaim(a);
	alloc_stats(a, &st);
	assert_int_equal(st.free, before.free + 12);
	/* Of another segment nothing is known but what is free; and nothing is taken where hardly any is left. */
	assert_int_equal(alloc_mark(a, &(struct extent){ SEG, 1 }, false), 0);
	assert_int_equal(alloc_claim(a, SEG, 2), 2);
	alloc_unclaim(a);
	assert_false(alloc_hold_back(a, 2 * SEG, true));
	assert_int_equal(alloc_claim(a, 0, 10), 1 << 6);
	alloc_unclaim(a);
	alloc_hold_back(a, 0, true);
	alloc_run_init(a, &run);
	while (alloc_take(a, &run, 1, &x) == 0)
		;
	alloc_run_fini(a, &run);
	alloc_stats(a, &st);
	assert_int_equal(st.free, 0);
	alloc_free_all(a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),  cmocka_unit_test(test_recovery), cmocka_unit_test(test_steal),
		cmocka_unit_test(test_pieces), cmocka_unit_test(test_threads),  cmocka_unit_test(test_claims),
	};
	const char *s = getenv("SEED");

	seed = s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
	seed = seed ? seed : 1;
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
