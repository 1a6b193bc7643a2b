/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reread - superblocks, snapshots and log, read again while the volume serves.
 *
 * What they say is in memory as well, so damage costs nothing while it is known: a superblock is written once
 * more, and two snapshots leave the damaged ones, or the damaged part of the log, behind.
 *
 * Threads: reread_ask() on any, the rest of struct reread that is not atomic is the helper's.
 */
#ifndef GANTRY_EXTENT_LOG_REREAD_H
#define GANTRY_EXTENT_LOG_REREAD_H

#include "extent/disk/format.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ring;
struct vol;

/* Bits of what is damaged and not healed yet. */
#define REREAD_SUPER 1u
#define REREAD_SNAPSHOT 2u
#define REREAD_LOG 4u

struct reread {
	_Atomic bool asked, runs;
	_Atomic unsigned bad;
	_Atomic uint64_t found,
		ended;         /* damaged places, and readings that came to their end, since the start */
	int step;              /* 0: idle, and then in order of enum step */
	uint64_t gen;          /* of the superblock when the step began */
	uint64_t heal_id;      /* two snapshots behind this one heal; 0: nothing to heal */
	uint64_t bad_snapshot; /* the latest that was found damaged */
	uint64_t heal_seen,
		heal_ns;            /* asked for behind that one; not again before, unless there is another */
	uint64_t ext, index, crc64; /* of the chain's next block */
	uint32_t len;
	struct log_pos pos; /* of the log's next block */
	uint64_t log_end;   /* linear */
	uint8_t *buf;
};

/* Asks for a reading; one that is under way is enough. */
void reread_ask(struct vol *vol);
/* Reads a piece, or looks after what was found.  Returns when it wants to be called again (helper.h); 0: after a
 * rest.  Helper thread. */
uint64_t reread_work(struct vol *vol, struct ring *r);
void reread_fini(struct vol *vol);

#endif
