/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps - the times that the commits of PUTs and of parts of uploads wait for each step, from the call of the
 * store until the answer is on the thread of the port (enum commit_until of store/units.h), in the buckets of
 * base/latency.h.
 *
 * Each counter has one writer at a time, the leader or the thread of one port, so that a plain store counts;
 * any thread may read. The counters belong to the volume, and stay when a port is detached.
 */
#ifndef GANTRY_EXTENT_LOG_STEPS_H
#define GANTRY_EXTENT_LOG_STEPS_H

#include "store/units.h"

#include <stdatomic.h>

struct vol;

struct step_times {
	_Atomic uint64_t buckets[LATENCY_NR], sum_ns;
};

/* The steps of a port. Written by the thread of the port; each port has cache lines of its own. */
struct port_steps {
	_Alignas(64) struct step_times submitted, answered;
};

static inline void
step_add(_Atomic uint64_t *to, uint64_t nr)
{
	atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + nr, memory_order_relaxed);
}

/* Counts nr commits that have waited from from_ns until now_ns, by the clocks of two threads. */
static inline void
step_took(struct step_times *t, uint64_t nr, uint64_t from_ns, uint64_t now_ns)
{
	uint64_t ns = now_ns > from_ns ? now_ns - from_ns : 0;

	step_add(&t->buckets[latency_bucket(ns)], nr);
	step_add(&t->sum_ns, nr * ns);
}

/* Returns the times of all commits, of all ports together. Any thread. */
void steps_info(const struct vol *vol, struct store_times ret[UNTIL_NR]);

#endif
