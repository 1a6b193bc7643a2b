/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault - the faults of a request. The step that knows the meaning of an -errno converts it to a fault, and
 * the dialect converts the fault to status and body of the answer (protocol.md 4.8).
 */
#ifndef GANTRY_DIALECT_FAULT_H
#define GANTRY_DIALECT_FAULT_H

#include <stdbool.h>

enum fault {
	FAULT_NONE,
#define FAULT(id, ...) FAULT_##id,
#include "dialect/fault.def"
	FAULT_NR
};

struct fault_info {
	int status;
	const char *code;    /* error code of S3 */
	const char *message; /* message in one sentence; a request may replace it */
};

const struct fault_info *fault_info(enum fault f);

#endif
