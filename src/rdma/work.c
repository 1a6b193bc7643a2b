/* SPDX-License-Identifier: Apache-2.0 */
/* See work.h. */
#include "rdma/work.h"

#include <errno.h>

int
rdma_status_result(enum rdma_status status)
{
	return status == WCS_SUCCESS ? 0 : status == WCS_FLUSHED ? -ECANCELED : -EIO;
}

const char *
rdma_status_hint(enum rdma_status status)
{
	return status == WCS_RETRY_EXC || status == WCS_REM_OP || status == WCS_REM_ACCESS
		       ? "; is the client gone, or its rkey or DC key another?"
		       : "";
}

void
rdma_heed_status(struct rdma_rail *rail, const struct rdma_target *target, enum rdma_status status)
{
	if (status == WCS_RETRY_EXC || status == WCS_REM_OP)
		rdma_rail_suspect(rail);
	if (status == WCS_RETRY_EXC)
		rdma_target_forget(rail, target);
}
