/* SPDX-License-Identifier: Apache-2.0 */
/* The words of protocol.md 5 for completion statuses (metric labels, logs). */
#include "rdma/rdma.h"

const char *const rdma_status_name[WCS_NR] = {
	[WCS_SUCCESS] = "success",
	[WCS_FLUSHED] = "flushed",
	[WCS_LOCAL_PROT] = "local-protection",
	[WCS_REM_ACCESS] = "remote-access",
	[WCS_REM_OP] = "remote-operation",
	[WCS_RETRY_EXC] = "retry-exceeded",
	[WCS_RNR_EXC] = "rnr-retry-exceeded",
	[WCS_FATAL] = "fatal",
	[WCS_RESP_TIMEOUT] = "response-timeout",
	[WCS_GENERAL] = "general",
};
