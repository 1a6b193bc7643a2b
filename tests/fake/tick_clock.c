/* SPDX-License-Identifier: Apache-2.0 */
/* See tick_clock.h. */
#include "tests/fake/tick_clock.h"

#include "base/clock.h"

#include <stddef.h>
#include <time.h>

uint64_t tick_ns;
static uint64_t *at_ns;
static const uint64_t *at_wall_ns;

static uint64_t
read_clock(clockid_t id, uint64_t tick)
{
	struct timespec t;

	if (at_ns)
		return *at_ns += tick;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t
clock_ns(void)
{
	return read_clock(CLOCK_MONOTONIC, tick_ns);
}

uint64_t
clock_wall_ns(void)
{
	return at_wall_ns ? *at_wall_ns : read_clock(CLOCK_REALTIME, 0);
}

void
clock_fake(const uint64_t *ns)
{
	at_ns = (uint64_t *)(uintptr_t)ns;
}

void
clock_fake_wall(const uint64_t *ns)
{
	at_wall_ns = ns;
}
