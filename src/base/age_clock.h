/* SPDX-License-Identifier: Apache-2.0 */
/*
 * age_clock - the wall clock for every decision to delete something because of its age. A wall clock that is
 * wrong only for a moment could cause deletions, which cannot be undone.
 *
 * If the wall clock jumps forward by more than AGE_JUMP_NS, the age clock does not follow the jump until the
 * process has run for AGE_HOLD_NS after the jump. Until then the age clock continues from the time before the
 * jump, by the monotonic clock. A difference between the wall clock at the start and the newest time that the
 * store knows is treated in the same way. The beginning and the end of a jump are logged. If the wall clock
 * is set back, the age clock follows immediately, because all ages become smaller.
 *
 * Any thread may call these functions. Each call reads both clocks; the daemon calls age_clock_jumped() once
 * a second for the reasons of health.
 */
#ifndef GANTRY_BASE_AGE_CLOCK_H
#define GANTRY_BASE_AGE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define AGE_JUMP_NS (86400 * NS_PER_S)
#define AGE_HOLD_NS (3600 * NS_PER_S)

struct age_jump {
	uint64_t from_ns, to_ns; /* time before and after the jump, in ns since 1970 */
	uint64_t left_ns;        /* time in ns until the age clock follows the jump */
};

/* Returns the age clock, in ns since 1970. */
uint64_t age_clock_ns(void);

/* Notes the newest time, in ns since 1970, that the store knew before this start; 0: unknown. */
void age_clock_known(uint64_t wall_ns);

/* Returns true if the wall clock has jumped and the age clock does not follow yet; *ret_jump then describes
 * the jump. */
bool age_clock_jumped(struct age_jump *ret_jump);

/* Writes a time in ns since 1970 as UTC text, such as 2026-11-27T04:00:00Z. */
#define AGE_TEXT_BYTES 32
void age_clock_text(uint64_t ns, char out[AGE_TEXT_BYTES]);

/* Sets the age clock to its state before the first call. For tests. */
void age_clock_reset(void);

#endif
