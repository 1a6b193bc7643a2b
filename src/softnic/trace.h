/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file: it has a record for every work request that was executed or flushed while the trace was on.
 * softnicctl creates the file, and every process in the fabric maps it. A process claims a record before it
 * copies the first byte, and fills it in during the work request, with plain stores. So a record costs no
 * system call, and it remains if the process is killed during the work request. When the file is full,
 * further work requests are counted, but not recorded.
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
	/* number of bytes that have arrived; in the state OPEN possibly more have */
	_Atomic uint64_t landed_bytes;
	/* Times of CLOCK_MONOTONIC, in ns. */
	/* time before the first byte was copied; 0: the work request has not started */
	_Atomic uint64_t start_ns;
	/* time after the last byte was copied; in the state OPEN the end of the last step so far */
	_Atomic uint64_t end_ns;
	_Atomic uint64_t done_ns; /* time of the completion */
	/* Traffic class, service level and source address of the packets. far_: of the packets that answer an
	 * RDMA read; zeros: there was no answer. */
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
