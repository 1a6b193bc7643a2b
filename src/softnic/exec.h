/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the executor of work requests that the files of its parts share. Called with sn_qp.busy true and no lock held.
 */
#ifndef SOFTNIC_EXEC_H
#define SOFTNIC_EXEC_H

#include "softnic/softnic.h"

#include <sys/uio.h>

static inline enum sn_step
sn_fail(struct sn_outcome *out, enum ibv_wc_status status, enum sn_vendor vendor)
{
	out->status = (uint8_t)status;
	out->vendor = (uint8_t)vendor;

	return SN_STEP_FAIL;
}

/* Ends a step that gets no answer, because its target is dead or cannot be reached. */
static inline enum sn_step
sn_drop(struct sn_outcome *out)
{
	out->status = IBV_WC_RETRY_EXC_ERR;
	out->vendor = SN_VE_RETRY;

	return SN_STEP_DROP;
}

/* Finds the memory of the bytes [off, off + len) of a work request's own buffers, which iov receives (SN_MAX_SGE entries). Returns
 * the number of pieces; -1: a buffer violates its registration. */
int sn_exec_gather(const struct sn_qp *qp, const struct sn_wqe *w, uint64_t off, uint64_t len,
		   struct iovec *iov);
/* Returns true if every page of the pieces is present. */
bool sn_exec_local_there(const struct iovec *iov, int n, bool write);

/* A transfer whose two ends have been found. */
struct sn_path {
	const struct sn_qp *qp;
	const struct sn_wqe *w;
	struct fab_proc *p;
	const struct fab_mr *m;
	uint64_t offset; /* offset in the region m of the first byte of the work request; it may wrap */
};

/* Looks up the queue pair to which a work request is sent; x: the executor. Returns SN_STEP_DONE if it would accept the
 * packets. */
enum sn_step sn_exec_find_target(const struct sn_qp *qp, const struct sn_wqe *w, int x, struct fab_qp **ret_t,
				 struct sn_outcome *ret_out);
/* Copies the bytes [at, at + len) of a transfer. flip_at: offset of a byte that arrives inverted. */
enum sn_step sn_exec_copy(const struct sn_path *pa, uint64_t at, uint64_t len, uint64_t flip_at,
			  struct sn_outcome *ret_out);

#endif
