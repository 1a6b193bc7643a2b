/* SPDX-License-Identifier: Apache-2.0 */
/* Whether devices may write payload buffers in any order (rdma.relaxed_ordering). */
#include "rdma/rdma_int.h"

/* Processors whose memory is slow to be written to in order. */
static bool
prefers_relaxed_ordering(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	return __builtin_cpu_is("amd");
#else
	return true;
#endif
}

bool
relaxed_ordering(const struct conf_rdma *conf)
{
	return conf->relaxed_ordering == ORDERING_ON ||
	       (conf->relaxed_ordering == ORDERING_AUTO && prefers_relaxed_ordering());
}
