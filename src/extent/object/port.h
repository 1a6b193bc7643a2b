/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port - the access of one thread to the engine: to the disk and the log, and to the pools of its operations.
 * A port is used only on its thread, except for `kicked`. port.c of the engine allocates and frees ports.
 */
#ifndef GANTRY_EXTENT_OBJECT_PORT_H
#define GANTRY_EXTENT_OBJECT_PORT_H

#include "base/list.h"
#include "base/mailbox.h"
#include "base/pool.h"
#include "extent/log/vol.h"
#include "store/ops.h"

/* largest number of PUTs with data in flight per port; address space is reserved, and memory is used on
 * demand */
#define CHUNK_WRITERS_PER_PORT 512
#define CRC_BLOCKS_PER_PORT 256u

struct crc_block;
struct extent_store;

struct extent_port {
	struct store_port base;
	struct vol_port vp;
	struct extent_store *st;
	int nr;
	struct quiesce_user *user;
	struct alloc_run run;
	struct msg kick;
	_Atomic bool kicked;
	struct timer space_timer;
	struct list space_waiters; /* entries of struct space_wait: operations that wait for space */
	uint64_t space_freed;      /* value of disk.freed_nr at the last attempt to continue the waiting
	                            * operations */
	void *crc_block_mem;
	struct pool writers; /* blocks of struct chunk_writer */
	struct crc_block *crc_blocks;
	struct crc_block *crc_block_hash[CRC_BLOCKS_PER_PORT];
	struct list crc_block_lru;     /* list of unused CRC blocks, the oldest first */
	struct list crc_block_waiters; /* list of reads that wait for a free CRC block */
};

static inline struct extent_port *
extent_port(struct store_port *p)
{
	return container_of(p, struct extent_port, base);
}

#endif
