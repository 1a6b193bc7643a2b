/* SPDX-License-Identifier: Apache-2.0 */
/* The run clock and its thread, see run_clock.h. */
#include "base/run_clock.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static _Atomic uint64_t ran_ns;   /* value of the clock; 0: the clock does not run */
static _Atomic uint64_t pause_ns; /* value of the clock at the end of the last pause */
static uint64_t ticked_ns;        /* clock_ns() at the last tick */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ends;
static pthread_t thread;
static bool runs, stop;

uint64_t
run_ns(void)
{
	uint64_t ns = atomic_load_explicit(&ran_ns, memory_order_acquire);

	return ns ? ns : clock_ns();
}

uint64_t
run_since_ns(uint64_t since_ns)
{
	uint64_t now = run_ns(), pause = atomic_load_explicit(&pause_ns, memory_order_relaxed),
		 from = since_ns > pause ? since_ns : pause;

	return now > from ? now - from : 0;
}

void
run_clock_tick(uint64_t now_ns)
{
	uint64_t ran = atomic_load_explicit(&ran_ns, memory_order_relaxed), step = now_ns - ticked_ns;

	ticked_ns = now_ns;
	if (!now_ns || !ran) {
		atomic_store_explicit(&pause_ns, 0, memory_order_relaxed);
		atomic_store_explicit(&ran_ns, now_ns, memory_order_release);
		return;
	}
	if (step > RUN_PAUSE_NS)
		atomic_store_explicit(&pause_ns, ran + RUN_TICK_NS, memory_order_relaxed);
	ran += step > 2 * RUN_TICK_NS ? RUN_TICK_NS : step;
	atomic_store_explicit(&ran_ns, ran, memory_order_release);
}

static void *
run_main(void *cookie)
{
	struct timespec at;

	pthread_mutex_lock(&lock);
	while (!stop) {
		run_clock_tick(clock_ns());
		clock_gettime(CLOCK_MONOTONIC, &at);
		at.tv_nsec += (long)RUN_TICK_NS;
		at.tv_sec += at.tv_nsec / (long)NS_PER_S;
		at.tv_nsec %= (long)NS_PER_S;
		pthread_cond_timedwait(&ends, &lock, &at);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

int
run_clock_start(void)
{
	pthread_condattr_t attr;
	sigset_t all, before;
	int e;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&ends, &attr);
	pthread_condattr_destroy(&attr);
	stop = false;
	run_clock_tick(clock_ns());
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	e = pthread_create(&thread, NULL, run_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	runs = e == 0;
	if (runs)
		pthread_setname_np(thread, "run-clock");
	else
		run_clock_tick(0);
	return -e;
}

void
run_clock_stop(void)
{
	if (!runs)
		return;
	pthread_mutex_lock(&lock);
	stop = true;
	pthread_cond_signal(&ends);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	pthread_cond_destroy(&ends);
	runs = false;
	run_clock_tick(0);
}
