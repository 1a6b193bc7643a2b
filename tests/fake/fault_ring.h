/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h on plain system calls, with faults: each read, write and flush first asks a hook.  Operations run in
 * ring_turn(), one after the other, the oldest first or in an order that a seed chooses.  Any number of
 * rings, each used by one thread.
 */
#ifndef TESTS_FAKE_FAULT_RING_H
#define TESTS_FAKE_FAULT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fault_kind { FAULT_READ, FAULT_WRITE, FAULT_FLUSH };

/* What is about to happen; name: of the file, without its folder, which path has. */
struct fault_io {
	enum fault_kind kind;
	const char *name, *path;
	uint64_t off;
	size_t len;
};

/* 0: goes on; -errno: fails with that, nothing done; FAULT_HOLD: asked again next turn; FAULT_LIE: says it is
 * done, is not; FAULT_SHORT: does the first 4 KiB (nothing, where there is no more than that), and says so.
 * Called by each ring's thread, those of the store's helpers too, and may be changed while they run. */
#define FAULT_HOLD 1
#define FAULT_LIE 2
#define FAULT_SHORT 3
extern int (*_Atomic fault_ring_hook)(const struct fault_io *io);
/* 0: in order. */
extern uint64_t fault_ring_seed;

/* From now on a volatile write cache lies in front of all files, as a disk has one: writes inside of a file
 * wait for the next flush, of whatever file. */
void fault_ring_cache(void);
/* The power goes: of what waits, each 4 KiB survives or does not.  Ends the process. */
_Noreturn void fault_ring_cut(uint64_t seed);

#endif
