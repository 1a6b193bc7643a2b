/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of several threads, each with a registration of its own: once all of them have had tokens at the same time, no
 * thread locks what another one locks, and each names targets of its own. The linker passes the library's locks to this program,
 * which notes them; the threads take turns, so nothing depends on time.
 */
#include "tests/fake/client_rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define PIECE 4096
#define LOCKS_MAX 256
#define TOKENS_MAX PORTS_MAX

int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_rwlock_rdlock(pthread_rwlock_t *l);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *l);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t *l);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *l);

/* A thread: its memory, what it has locked while `notes` is set, and the targets that its tokens named. */
static struct person {
	pthread_t thread;
	char *memory, *held[TOKENS_MAX];
	uintptr_t locked[LOCKS_MAX]; /* addresses, divided by STRIPE_BYTES */
	int locked_nr;
	uint8_t gid[TOKENS_MAX][16];
	uint32_t dctn[TOKENS_MAX];
} person[THREADS];
static _Thread_local struct person *notes;
static struct gantry *g;
static pthread_barrier_t all;

static void
note(const void *lock)
{
	struct person *p = notes;

	if (!p)
		return;
	assert_in_range(p->locked_nr, 0, LOCKS_MAX - 1);
	p->locked[p->locked_nr++] = (uintptr_t)lock / STRIPE_BYTES;
}

int
__wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	note(m);
	return __real_pthread_mutex_lock(m);
}

int
__wrap_pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	note(l);
	return __real_pthread_rwlock_rdlock(l);
}

int
__wrap_pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	note(l);
	return __real_pthread_rwlock_wrlock(l);
}

/* Makes a token and reads it. */
static char *
minted(const struct person *p, struct token *ret)
{
	const char *why;
	char *text;

	assert_int_equal(gantry_token_get(g, p->memory, PIECE, 0, GANTRY_OP_GET, &text, NULL), 0);
	assert_int_equal(token_parse(text, strlen(text), ret, &why), 0);
	return text;
}

/* Makes a token of each port, which the thread keeps until all threads have theirs. */
static void
hold_all(struct person *p)
{
	struct token t;

	for (int i = 0; i < g->port_nr; i++) {
		p->held[i] = minted(p, &t);
		memcpy(p->gid[i], t.gid, 16);
		p->dctn[i] = t.dctn;
	}
}

/* One token after the other, while no other thread has one. */
static void
use_alone(struct person *p)
{
	for (int i = 0; i < 2 * g->port_nr; i++) {
		bool is_own = false;
		struct token t;
		char *text;

		notes = p;
		text = minted(p, &t);
		assert_int_equal(gantry_token_put(g, text), 0);
		notes = NULL;
		for (int k = 0; k < g->port_nr; k++)
			is_own |= t.dctn == p->dctn[k] && !memcmp(t.gid, p->gid[k], 16);
		assert_true(is_own);
	}
}

static void *
live(void *arg)
{
	struct person *p = arg;

	/* The stripes in this order, the first tokens in the opposite one. */
	for (struct person *turn = person; turn < person + THREADS; turn++) {
		pthread_barrier_wait(&all);
		if (turn == p)
			stripe_mine();
	}
	for (struct person *turn = person + THREADS; turn > person; turn--) {
		pthread_barrier_wait(&all);
		if (turn - 1 == p)
			hold_all(p);
	}
	pthread_barrier_wait(&all);
	for (int i = 0; i < g->port_nr; i++)
		assert_int_equal(gantry_token_put(g, p->held[i]), 0);
	for (struct person *turn = person; turn < person + THREADS; turn++) {
		pthread_barrier_wait(&all);
		if (turn == p)
			use_alone(p);
	}
	return NULL;
}

static bool
is_locked_by(const struct person *p, uintptr_t at)
{
	for (int i = 0; i < p->locked_nr; i++) {
		if (p->locked[i] == at)
			return true;
	}
	return false;
}

static void
assert_nothing_shared(void)
{
	for (int i = 0; i < THREADS; i++) {
		assert_int_not_equal(person[i].locked_nr, 0);
		for (int k = 0; k < i; k++) {
			for (int n = 0; n < person[i].locked_nr; n++)
				assert_false(is_locked_by(&person[k], person[i].locked[n]));
			for (int n = 0; n < g->port_nr; n++)
				for (int m = 0; m < g->port_nr; m++)
					assert_false(person[i].dctn[n] == person[k].dctn[m] &&
						     !memcmp(person[i].gid[n], person[k].gid[m], 16));
		}
	}
}

static void
threads_share_nothing(void **state)
{
	struct fix *f = *state;
	char *memory = aligned_alloc(PIECE, (size_t)(THREADS + 1) * PIECE), *held[2 * TOKENS_MAX];
	struct person holder = { .memory = memory };
	struct token t;

	g = f->g;
	assert_non_null(memory);
	assert_int_equal(gantry_register(g, memory, PIECE, 0), 0);
	/* A target that is in use, and one that is not: each thread has reason to take a target of its own, and another way. */
	for (int i = 0; i < 2 * g->port_nr; i++)
		held[i] = minted(&holder, &t);
	for (int i = g->port_nr; i < 2 * g->port_nr; i++)
		assert_int_equal(gantry_token_put(g, held[i]), 0);
	pthread_barrier_init(&all, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		person[i] = (struct person){ .memory = memory + (size_t)(i + 1) * PIECE };
		assert_int_equal(gantry_register(g, person[i].memory, PIECE, 0), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&person[i].thread, NULL, live, &person[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(person[i].thread, NULL);
	assert_nothing_shared();
	/* Their counts, too, are in different lines of caches. */
	for (int i = 0; i < g->port_nr * SHARED_MAX; i++)
		assert_int_equal((uintptr_t)g->port[i / SHARED_MAX].shared[i % SHARED_MAX] % STRIPE_BYTES, 0);
	for (size_t i = 0; i < g->map.nr; i++)
		assert_int_equal((uintptr_t)g->map.at[i].region % STRIPE_BYTES, 0);
	for (int i = 0; i < g->port_nr; i++)
		assert_int_equal(gantry_token_put(g, held[i]), 0);
	pthread_barrier_destroy(&all);
	for (int i = 0; i <= THREADS; i++)
		assert_int_equal(gantry_deregister(g, memory + (size_t)i * PIECE), 0);
	free(memory);
}

/* A registration keeps all stripes from making tokens until it is done: none is left out. */
static void
a_writer_takes_every_stripe(void **state)
{
	struct fix *f = *state;

	g = f->g;
	map_wrlock(g);
	for (int i = 0; i < STRIPES; i++)
		assert_int_not_equal(pthread_rwlock_tryrdlock(&g->map_lock[i].lock), 0);
	map_wrunlock(g);
	for (int i = 0; i < STRIPES; i++) {
		assert_int_equal(pthread_rwlock_trywrlock(&g->map_lock[i].lock), 0);
		pthread_rwlock_unlock(&g->map_lock[i].lock);
	}
	map_rdlock(g);
	assert_int_not_equal(pthread_rwlock_trywrlock(&g->map_lock[stripe_mine()].lock), 0);
	map_rdunlock(g);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(threads_share_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_writer_takes_every_stripe, setup, teardown),
	};

	start_on_the_nic(argv);
	return end_on_the_nic(cmocka_run_group_tests(tests, rig_start, rig_stop));
}
