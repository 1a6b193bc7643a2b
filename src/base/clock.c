/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks, and the test's hand on them. */
#include "base/clock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

static const uint64_t *_Atomic fake_ns, *_Atomic fake_wall_ns;

static const uint64_t *
fake(const uint64_t *_Atomic *which)
{
	return atomic_load_explicit(which, memory_order_acquire);
}

static uint64_t
read_clock(clockid_t id)
{
	const uint64_t *ns = fake(&fake_ns);
	struct timespec t;

	if (ns)
		return __atomic_load_n(ns, __ATOMIC_RELAXED);
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
	const uint64_t *ns = fake(&fake_wall_ns);

	return ns ? __atomic_load_n(ns, __ATOMIC_RELAXED) : read_clock(CLOCK_REALTIME);
}

void
clock_fake(const uint64_t *ns)
{
	atomic_store_explicit(&fake_ns, ns, memory_order_release);
}

void
clock_fake_wall(const uint64_t *ns)
{
	atomic_store_explicit(&fake_wall_ns, ns, memory_order_release);
}
