/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faults of a request. Code that knows the meaning of an -errno for the request converts it to a fault;
 * dialect/ converts the fault to the status and body of the answer (protocol.md 4.8).
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
	const char *code; /* error code of S3 */
	/* one sentence for the user; a request may have a more precise sentence instead */
	const char *message;
};

const struct fault_info *fault_info(enum fault f);

#endif
