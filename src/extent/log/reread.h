/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reread - reads superblocks, snapshots and log again while the volume serves.
 *
 * Memory has the same contents, so damage that is found causes no loss: a damaged superblock is written
 * again, and two new snapshots replace damaged snapshots or a damaged part of the log.
 *
 * Threads: reread_ask() on any; the fields of struct reread that are not atomic belong to the helper.
 */
#ifndef GANTRY_EXTENT_LOG_REREAD_H
#define GANTRY_EXTENT_LOG_REREAD_H

#include "extent/log/log_read.h"
#include "extent/log/snapshot.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ring;
struct vol;

/* Bits of the structures that are damaged and not repaired yet. */
#define REREAD_SUPER 1u
#define REREAD_SNAPSHOT 2u
#define REREAD_LOG 4u

struct reread {
	_Atomic bool asked;
	_Atomic unsigned bad;
	_Atomic uint64_t found,
		ended; /* number of damaged places, and of completed readings, since the start */
	int step;      /* 0: idle; otherwise a value of enum step */
	uint64_t gen;  /* generation of the superblock at the begin of the step */
	/* id of the newest snapshot at the time of the damage: two later snapshots repair the damage; 0: no
	 * damage */
	uint64_t heal_id;
	uint64_t bad_snapshot; /* id of the latest snapshot found damaged */
	/* id of the newest snapshot when a new one was requested last; earliest time of the next request,
	 * unless a new snapshot exists */
	uint64_t heal_seen, heal_ns;
	struct snap_chain chain;
	struct log_reader log;
	struct log_pos pos; /* position of the next log block to be read */
	uint64_t log_end;   /* end of the log to be read, a linear position */
	uint8_t *buf;
};

/* Asks for a reading; a reading in progress is enough. */
void reread_ask(struct vol *vol);
/* Reads a part, or continues a repair. Returns the time until the next call (helper.h); 0: after a pause.
 * Helper thread. */
uint64_t reread_work(struct vol *vol, struct ring *r);

#endif
