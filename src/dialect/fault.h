/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can go wrong with a request, once: the step that knows what an -errno means makes it a fault, the
 * dialect makes that a status and a body (protocol.md 4.8).
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
	const char *code;    /* S3 code */
	const char *message; /* one sentence; a request may give its own */
};

const struct fault_info *fault_info(enum fault f);

#endif
