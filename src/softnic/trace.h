/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file: one record for every work request that was executed or flushed while the trace was on.
 * softnicctl creates the file, and every process on the fabric maps it. A record is claimed before the
 * first byte is copied and filled in during the work request, with plain stores: a record costs no system
 * call, and the record of a process that is killed during the work request remains. When the file is full,
 * further work requests are counted and not recorded.
 */
#ifndef SOFTNIC_TRACE_H
#define SOFTNIC_TRACE_H

#include <stdatomic.h>
#include <stdint.h>

#define TRACE_MAGIC 0x3143415254534e53ull
#define TRACE_VERSION 2u

enum trace_state { TRACE_EMPTY, TRACE_OPEN, TRACE_DONE };

struct trace_rec {
	_Atomic uint32_t state; /* state of the record, an enum trace_state */
	uint32_t pid;           /* process id of the initiator */
	uint32_t qpn, dctn, rkey;
	uint8_t opcode; /* opcode of the work request, an enum ibv_wr_opcode */
	uint8_t dev;
	/* status of the work request, an enum ibv_wc_status or TRACE_STATUS_RESET; set in the state DONE */
	uint8_t status;
	uint8_t vendor;
	uint32_t rule; /* fault rule that hit the work request; 0: none */
	uint32_t reserved0;
	uint64_t wr_id;
	uint64_t raddr;
	uint64_t len_bytes;
	_Atomic uint64_t landed_bytes; /* number of bytes that arrived; in the state OPEN a lower bound */
	/* Times of CLOCK_MONOTONIC, in ns. */
	_Atomic uint64_t start_ns; /* time before the first byte could be copied; 0: not started */
	/* time after the last byte was copied; in the state OPEN the end of the last step */
	_Atomic uint64_t end_ns;
	_Atomic uint64_t done_ns; /* time of the completion */
	/* Marks and source of the packets. far_: those of the packets that answer a READ; zeros: there was no
	 * answer. */
	uint8_t class, level, far_class, far_level;
	uint32_t flow_label;
	uint8_t sgid[16], far_sgid[16];
};

struct trace_file {
	_Atomic uint64_t magic;
	uint32_t version;
	uint32_t reserved0;
	uint64_t max; /* largest number of records */
	_Atomic uint64_t next;
	_Atomic uint64_t lost; /* number of work requests that were not recorded because the file was full */
	uint64_t reserved[11];
	struct trace_rec rec[];
};

_Static_assert(sizeof(struct trace_rec) == 128, "trace layout");
_Static_assert(sizeof(struct trace_file) == 128, "trace layout");

#endif
