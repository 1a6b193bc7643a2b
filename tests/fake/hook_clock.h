/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of a whole program, in the hand of its test: what is waited for comes at once.
 *
 * Replaces clock_gettime() for the program and for its libraries, libmicrohttpd's time-outs above all, and
 * the waits that end by a clock: the ring's, pthread_cond_timedwait(), usleep().  The clocks go on as the real
 * ones do.  hook_clock_skip() lets more time pass, and nothing happens in it but what the program does:
 *
 *   rest     every thread that made a ring sleeps in its wait, or in usleep(); it has looked for what came and
 *            found nothing.  Until then the clocks stand still.
 *   hop      the clocks jump to the first moment that one of these threads waits for, or to the end.
 *
 * Both again until the end and one rest more: timers fire in order, none is late, and one that fires every
 * millisecond fires as often as it would have.  A program that does not come to rest within a minute of real
 * time is ended by a check: it spins.
 *
 * The real ones remain: time(), gettimeofday(), poll(), nanosleep(), and what the kernel counts by itself
 * (SO_RCVTIMEO, a disk operation under way).  Link it, and that is all: LINK-module/test_x := hook_clock.
 */
#ifndef GANTRY_TESTS_HOOK_CLOCK_H
#define GANTRY_TESTS_HOOK_CLOCK_H

#include <stdint.h>

/* Lets ns pass, and returns when everybody rests again.  One thread at a time. */
void hook_clock_skip(uint64_t ns);

/* Returns how often the clocks have hopped: so many moments somebody has waited for, or skipped to. */
uint64_t hook_clock_hops(void);

#endif
