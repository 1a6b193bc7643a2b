/* SPDX-License-Identifier: Apache-2.0 */
/*
 * age_clock - the wall clock for every decision to delete something because of its age: such a delete cannot
 * be undone when the clock was wrong only for a moment.
 *
 * The clock does not follow a jump of the wall clock of more than AGE_JUMP_NS forward until the new time has
 * lasted for AGE_HOLD_NS in which the process ran. Until then it continues from the time before the jump, by
 * the monotonic clock. The same applies to the difference between the wall clock at the start and the newest
 * time that the store knows. A jump is logged once, and so is its end. A wall clock that went back is
 * followed at once: everything is younger then.
 *
 * Any thread. Each call looks at both clocks; the daemon's look at the reasons of health calls once a second.
 */
#ifndef GANTRY_BASE_AGE_CLOCK_H
#define GANTRY_BASE_AGE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define AGE_JUMP_NS (86400 * NS_PER_S)
#define AGE_HOLD_NS (3600 * NS_PER_S)

struct age_jump {
	uint64_t from_ns, to_ns; /* the time before and after the jump, in ns since 1970 */
	uint64_t left_ns;        /* time until the new time is followed */
};

/* Returns the time by which ages are computed, in ns since 1970. */
uint64_t age_clock_ns(void);

/* Notes a time, in ns since 1970, that the store knew before this start; 0: unknown. */
void age_clock_known(uint64_t wall_ns);

/* Returns true while a jump is not followed, with its description. */
bool age_clock_jumped(struct age_jump *ret_jump);

/* Writes a time in ns since 1970 as UTC, as in 2026-11-27T04:00:00Z. */
#define AGE_TEXT_BYTES 32
void age_clock_text(uint64_t ns, char out[AGE_TEXT_BYTES]);

/* Forgets everything, as at a start. For tests. */
void age_clock_reset(void);

#endif
