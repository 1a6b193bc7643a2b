/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_clock - the time for which this process has run. Time in which the process was stopped (SIGSTOP, the
 * freezer of a cgroup, a paused virtual machine) is not counted. Time limits for other parties, such as for a
 * write of a disk or for a turn of a core, are measured by this clock, so that a pause of the process is not
 * mistaken for a failure of the other party.
 *
 * A thread reads clock_ns() in every tick of RUN_TICK_NS, and adds the time since the previous tick to the
 * run clock; if more than two ticks have passed, it adds one tick. The clock is therefore slow on a machine
 * without free CPU time, and never fast. In a program that does not start the thread, run_ns() is clock_ns().
 * Any thread may call these functions.
 */
#ifndef GANTRY_BASE_RUN_CLOCK_H
#define GANTRY_BASE_RUN_CLOCK_H

#include <stdint.h>

#define RUN_TICK_NS (100 * NS_PER_MS)
/* time between two ticks, in ns, above which the process counts as paused: run_since_ns() then gives
 * operations their full time again; a shorter gap of more than two ticks counts as one tick */
#define RUN_PAUSE_NS (1 * NS_PER_S)

/* Starts the thread of the run clock. Called before other threads read the clock. Returns 0 or -errno. */
int run_clock_start(void);

/* Ends the thread of the run clock. Called when no more limits are measured. A clock that was not started is
 * allowed. */
void run_clock_stop(void);

/* Returns the run clock, in nanoseconds from an arbitrary beginning. The resolution is RUN_TICK_NS. */
uint64_t run_ns(void);

/* Returns the time in ns for which the process has run since the time since_ns of run_ns(). If the process
 * was paused after since_ns, returns only the time since the end of the last pause, so that every operation
 * gets its full time again. */
uint64_t run_since_ns(uint64_t since_ns);

/* Executes a tick at the time now_ns of clock_ns(): adds the time since the previous tick. The first tick
 * starts the clock; now_ns 0: stops the clock. Called by the thread of the clock, and by tests with their own
 * times. */
void run_clock_tick(uint64_t now_ns);

#endif
