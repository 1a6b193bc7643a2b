/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_clock - the time for which this process has run. Time in which the process was stopped (SIGSTOP, the
 * freezer of a cgroup, a paused virtual machine) is not counted. Limits on the work of others, such as a write
 * to a disk or the turn of a core, are measured by this clock, so that a pause of the process is not mistaken
 * for their failure.
 *
 * A thread reads clock_ns() in every tick of RUN_TICK_NS, and adds the time since the previous tick to the run
 * clock; if more than two ticks have passed, it adds one tick. The clock is therefore slow on a machine
 * without free CPU time, and never fast. A program that does not start the thread has no run clock: run_ns()
 * is then clock_ns(). Any thread.
 */
#ifndef GANTRY_BASE_RUN_CLOCK_H
#define GANTRY_BASE_RUN_CLOCK_H

#include <stdint.h>

#define RUN_TICK_NS (100 * NS_PER_MS)
#define RUN_PAUSE_NS (1 * NS_PER_S) /* a longer time between two ticks is a pause */

/* Starts the thread, before other threads read the clock. Returns 0 or -errno. */
int run_clock_start(void);

/* Ends the thread, when no limit is measured any more. A clock that was not started is allowed. */
void run_clock_stop(void);

/* Returns the run clock, in nanoseconds from an arbitrary beginning. The resolution is RUN_TICK_NS. */
uint64_t run_ns(void);

/* Returns the time for which the process has run since the time since_ns of run_ns(), or since the end of the
 * last pause, whichever is later: after a pause every operation gets its full time again. */
uint64_t run_since_ns(uint64_t since_ns);

/* Counts the time since the previous tick; the first tick starts the clock. Called by the thread, and by tests
 * with times of their own; 0 stops the clock. */
void run_clock_tick(uint64_t now_ns);

#endif
