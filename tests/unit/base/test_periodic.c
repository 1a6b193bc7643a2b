/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that takes turns: the first immediately, further ones when their time has come or when it is woken, also during a turn. */
#include "base/periodic.h"

#include "base/clock.h"

#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct periodic p;
static sem_t begins, may_end;
static int turns;

static void
turn(void *cookie)
{
	sigset_t blocked;

	assert_ptr_equal(cookie, &turns);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	assert_true(sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGHUP));
	turns++;
	sem_post(&begins);
	sem_wait(&may_end);
}

static void
start(uint64_t every_ns)
{
	turns = 0;
	sem_init(&begins, 0, 0);
	sem_init(&may_end, 0, 0);
	assert_int_equal(periodic_start(&p, "turns", every_ns, turn, &turns), 0);
}

static void
test_woken(void **state)
{
	start(3600 * NS_PER_S);
	sem_wait(&begins);
	periodic_wake(&p); /* during the first turn */
	sem_post(&may_end);
	sem_wait(&begins);
	sem_post(&may_end);
	periodic_wake(&p); /* after the second, or during it */
	sem_wait(&begins);
	sem_post(&may_end);
	periodic_stop(&p);
	assert_int_equal(turns, 3);
	periodic_stop(&p);
}

static void
test_in_time(void **state)
{
	uint64_t from = clock_ns();

	start(2 * NS_PER_MS);
	for (int i = 0; i < 10; i++)
		sem_post(&may_end);
	for (int i = 0; i < 10; i++)
		sem_wait(&begins);
	assert_true(clock_ns() - from >= 18 * NS_PER_MS);
	sem_post(&may_end); /* of a turn that has begun since */
	periodic_stop(&p);
	assert_true(turns == 10 || turns == 11);
}

static void
test_not_started(void **state)
{
	struct periodic none = { .is_running = false };

	periodic_stop(&none);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_woken), cmocka_unit_test(test_in_time),
					    cmocka_unit_test(test_not_started) };

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
