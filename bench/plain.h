/* SPDX-License-Identifier: Apache-2.0 */
/* A DC initiator made with verbs directly: what a transfer costs without anything of ours. */
#ifndef GANTRY_BENCH_PLAIN_H
#define GANTRY_BENCH_PLAIN_H

#include "token/token.h"

#include <infiniband/verbs.h>

struct plain {
	const struct token *tok;
	uint64_t dc_key;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
};

/* Makes one on the first device, towards the token's target, for so many work requests.  Or it dies. */
void plain_open(struct plain *v, const struct token *tok, uint64_t dc_key, int depth);
/* Index of the first RoCE v2 GID with an IPv4 address, which is the kind of the token's. */
uint8_t plain_source_gid(struct ibv_context *ctx);
struct ibv_mr *plain_register(struct ibv_pd *pd, void *mem, size_t len);
/* Posts a WRITE to byte `at` of the window, or a READ from there. */
void plain_post(struct plain *v, bool is_write, uint64_t id, const struct ibv_mr *mr, void *mem, uint32_t len,
		uint64_t at);

#endif
