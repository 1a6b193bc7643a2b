/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity - estimates when a store will be full, from samples of its usage. The caller provides the time and
 * the lock.
 */
#ifndef GANTRY_MAIN_CAPACITY_H
#define GANTRY_MAIN_CAPACITY_H

#include "base/clock.h"

#include <stdint.h>

/* Time between two samples, and the number of samples that are kept: a day. */
#define CAPACITY_EVERY_NS (300 * NS_PER_S)
#define CAPACITY_SAMPLES 288
/* History without which there is no estimate. */
#define CAPACITY_YOUNG_NS (3600 * NS_PER_S)
/* An estimate beyond this time is not shown, because the rate of a day says little about it. */
#define CAPACITY_FAR_S (3650ull * 86400)

/* Samples of the usage of a store. All zeroes: there is no sample. */
struct capacity {
	struct {
		uint64_t at_ns, used_bytes;
	} sample[CAPACITY_SAMPLES];
	unsigned nr, next;   /* number of samples, and index of the next one */
	uint64_t size_bytes; /* size of the store at the samples */
};

/* CAPACITY_YOUNG: there is less than an hour of history. CAPACITY_STEADY: the usage does not grow, or the
 * store would be full after CAPACITY_FAR_S. CAPACITY_FILLS: full_s is known. */
enum capacity_outlook { CAPACITY_YOUNG, CAPACITY_STEADY, CAPACITY_FILLS };
struct capacity_view {
	enum capacity_outlook outlook;
	uint64_t history_s;    /* time from the first sample to the last one */
	int64_t bytes_per_day; /* growth in this time; 0 for CAPACITY_YOUNG */
	uint64_t full_s;       /* seconds until the free space is used at this rate */
};

/* Adds a sample if the last one is at least CAPACITY_EVERY_NS old. If the size of the store has changed,
 * which moves its usage as well, the history begins again. */
void capacity_add(struct capacity *c, uint64_t now_ns, uint64_t size_bytes, uint64_t used_bytes);
/* Computes the estimate for a store with this much free space. */
void capacity_view(const struct capacity *c, uint64_t free_bytes, struct capacity_view *ret_view);

#endif
