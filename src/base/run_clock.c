/* SPDX-License-Identifier: Apache-2.0 */
/* The run clock and its thread, see run_clock.h. */
#include "base/run_clock.h"

#include "base/clock.h"
#include "base/periodic.h"

static _Atomic uint64_t ran_ns;   /* value of the clock; 0: the clock does not run */
static _Atomic uint64_t pause_ns; /* value of the clock at the end of the last pause */
static uint64_t ticked_ns;        /* clock_ns() at the last tick */

static struct periodic ticks;

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

static void
tick(void *cookie)
{
	run_clock_tick(clock_ns());
}

int
run_clock_start(void)
{
	int e;

	tick(NULL);
	e = periodic_start(&ticks, "run-clock", RUN_TICK_NS, tick, NULL);
	if (e < 0)
		run_clock_tick(0);
	return e;
}

void
run_clock_stop(void)
{
	if (!ticks.is_running)
		return;
	periodic_stop(&ticks);
	run_clock_tick(0);
}
