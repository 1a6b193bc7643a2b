/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks, and the test's hand on them. */
#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static const uint64_t *fake_ns, *fake_wall_ns;

static uint64_t
read_clock(clockid_t id)
{
	struct timespec t;

	if (fake_ns)
		return *fake_ns;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t
clock_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t
clock_wall_ns(void)
{
	return fake_wall_ns ? *fake_wall_ns : read_clock(CLOCK_REALTIME);
}

void
clock_fake(const uint64_t *ns)
{
	fake_ns = ns;
}

void
clock_fake_wall(const uint64_t *ns)
{
	fake_wall_ns = ns;
}
