/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks for programs of one thread in which work takes time: base/clock.h, where each reading of the monotonic clock also
 * moves the time that clock_fake() was given by tick_ns.  LINK-module/test_x := tick_clock.
 */
#ifndef GANTRY_TESTS_TICK_CLOCK_H
#define GANTRY_TESTS_TICK_CLOCK_H

#include <stdint.h>

extern uint64_t tick_ns; /* 0 at first */

#endif
