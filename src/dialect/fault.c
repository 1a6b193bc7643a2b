/* SPDX-License-Identifier: Apache-2.0 */
/* Status, S3 code and default sentence of every fault (protocol.md 4.8), see fault.h.  Any thread. */
#include "dialect/fault.h"

#include "base/check.h"

static const struct fault_info infos[FAULT_NR] = {
	[FAULT_NONE] = { 200, "", "" },
#define FAULT(id, status, code, message) [FAULT_##id] = { status, code, message },
#include "dialect/fault.def"
};

const struct fault_info *
fault_info(enum fault f)
{
	check((unsigned)f < FAULT_NR);
	return &infos[f];
}
