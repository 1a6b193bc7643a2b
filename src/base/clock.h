/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time. All code reads the clock through these functions, so that a test can control it. Any thread may call
 * these functions.
 */
#ifndef GANTRY_BASE_CLOCK_H
#define GANTRY_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

/* Reads the monotonic clock, in nanoseconds. */
uint64_t clock_ns(void);

/* Reads the wall clock, in nanoseconds since 1970 (UTC). */
uint64_t clock_wall_ns(void);

/* Makes clock_ns() and clock_wall_ns() return *ns from now on; ns NULL: they read the real clocks again. For
 * tests, which change *ns atomically if other threads run. */
void clock_fake(const uint64_t *ns);

/* Makes only clock_wall_ns() return *ns from now on; clock_ns() stays as clock_fake() has set it. ns NULL:
 * ends this effect. For tests, which change *ns atomically if other threads run. */
void clock_fake_wall(const uint64_t *ns);

#endif
