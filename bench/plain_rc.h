/* SPDX-License-Identifier: Apache-2.0 */
/* A queue pair of RC made with verbs directly: the cost of a transfer without anything of ours. */
#ifndef GANTRY_BENCH_PLAIN_RC_H
#define GANTRY_BENCH_PLAIN_RC_H

#include "tests/fake/peer.h"

#include <infiniband/verbs.h>

struct plain_rc {
	const struct peer *peer;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

/* Connects queue pair nr of the peer to the queue pair that `to` and gid describe.  Or it dies. */
void plain_rc_join(struct peer *peer, int nr, const struct peer_qp *to, const uint8_t gid[16]);
/* Makes a queue pair on the first device, for so many work requests, connected to queue pair nr of the peer.  Or it dies. */
void plain_rc_open(struct plain_rc *v, struct peer *peer, int nr, int depth);
/* Posts a WRITE to byte `at` of the peer's window. */
void plain_rc_post(struct plain_rc *v, uint64_t id, const struct ibv_mr *mr, void *mem, uint32_t len,
		   uint64_t at);

#endif
