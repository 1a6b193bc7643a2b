/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file: one record for every work request that was executed or flushed while the trace was on. Made
 * by softnicctl, mapped by every process on the fabric.  A record is claimed before the first byte is copied
 * and filled in as the work request goes on, with plain stores: it costs no system call, and that of a
 * process killed in the middle is there.  When the file is full, further work requests are counted and not
 * recorded.
 */
#ifndef SOFTNIC_TRACE_H
#define SOFTNIC_TRACE_H

#include <stdatomic.h>
#include <stdint.h>

#define TRACE_MAGIC 0x3143415254534e53ull
#define TRACE_VERSION 2u

enum trace_state { TRACE_EMPTY, TRACE_OPEN, TRACE_DONE };

struct trace_rec {
	_Atomic uint32_t state; /* enum trace_state */
	uint32_t pid;           /* of the initiator */
	uint32_t qpn, dctn, rkey;
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t dev;
	uint8_t status; /* enum ibv_wc_status, or TRACE_STATUS_RESET; of DONE */
	uint8_t vendor;
	uint32_t rule; /* the fault rule that hit it; 0: none */
	uint32_t reserved0;
	uint64_t wr_id;
	uint64_t raddr;
	uint64_t len_bytes;
	_Atomic uint64_t landed_bytes; /* of OPEN: at least */
	/* CLOCK_MONOTONIC. */
	_Atomic uint64_t start_ns; /* before the first byte could be copied; 0: not yet */
	_Atomic uint64_t end_ns;   /* after the last byte that was; of OPEN: of the last step */
	_Atomic uint64_t done_ns;  /* when the completion was made */
	/* How its packets are marked and where they come from; far_: what answers a READ, zeroes for nobody. */
	uint8_t class, level, far_class, far_level;
	uint32_t flow_label;
	uint8_t sgid[16], far_sgid[16];
};

struct trace_file {
	_Atomic uint64_t magic;
	uint32_t version;
	uint32_t reserved0;
	uint64_t max; /* records */
	_Atomic uint64_t next;
	_Atomic uint64_t lost; /* work requests for which there was no room */
	uint64_t reserved[11];
	struct trace_rec rec[];
};

_Static_assert(sizeof(struct trace_rec) == 128, "trace layout");
_Static_assert(sizeof(struct trace_file) == 128, "trace layout");

#endif
