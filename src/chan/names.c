/* SPDX-License-Identifier: Apache-2.0 */
/* The words for a decline: x-gantry-rdma-reason, access log, metric label. */
#include "chan/chan.h"

const char *const chan_reason_name[CHAN_REASON_NR] = {
	[CHAN_OK] = "",
	[CHAN_DISABLED] = "disabled",
	[CHAN_NO_DEVICE] = "no-device",
	[CHAN_NO_RAIL] = "no-rail",
	[CHAN_UNREACHABLE] = "unreachable",
	[CHAN_NEEDS_ROUTER] = "needs-router",
	[CHAN_FAMILY] = "token-family",
	[CHAN_NO_CHANNEL] = "no-channel",
	[CHAN_NOT_ALLOWED] = "not-allowed",
	[CHAN_NOT_CONNECTED] = "not-connected",
	[CHAN_CONNECTION_BUSY] = "connection-busy",
};
