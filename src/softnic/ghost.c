/* SPDX-License-Identifier: Apache-2.0 */
/* Ghosts: bytes of an RDMA write that arrive after its queue pair has changed to the error state (`firmware ghost=` of softnicctl). On a
 * thread of their own. */
#include "softnic/exec.h"

#include <signal.h>

enum { GHOST_BYTES = 65536 };

/* A packet that the network still has: a WRITE with a queue pair and a context of its own. */
struct ghost {
	struct sn_qp qp;
	struct sn_ctx ctx;
	struct fab_qp slot;
	struct sn_wqe w;
	uint64_t delay_ns;
	uint8_t data[GHOST_BYTES];
};

static void *
haunt(void *arg)
{
	struct sn_outcome out = { 0 };
	struct ghost *g = arg;
	bool landed;

	if (sn_active() & FAB_ACTIVE_TRACE)
		sn_trace_begin(&g->qp, &g->w);
	sn_sleep_ns(g->delay_ns);
	sn_trace_copying(&g->qp);
	landed = sn_exec_piece(&g->qp, &g->w, 0, g->w.total, SN_NO_FLIP, &out) == SN_STEP_DONE;
	sn_trace_copied(&g->qp, &out);
	sn_trace_end(&g->qp, landed ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR, 0);
	free(g);

	return NULL;
}

/* What is in the buffers now; 0: they cannot be read. */
static uint32_t
take_bytes(const struct sn_qp *qp, const struct sn_wqe *w, uint8_t data[GHOST_BYTES])
{
	uint64_t left = w->total - qp->off;
	struct iovec iov[SN_MAX_SGE];
	uint32_t at = 0;
	int x = sn_exec_enter(), n;

	n = sn_exec_gather(qp, w, qp->off, left < GHOST_BYTES ? left : GHOST_BYTES, iov);
	if (n > 0 && sn_exec_local_there(iov, n, false)) {
		for (int i = 0; i < n; i++) {
			memcpy(data + at, iov[i].iov_base, iov[i].iov_len);
			at += (uint32_t)iov[i].iov_len;
		}
	}
	sn_exec_leave(x);

	return at;
}

void
sn_exec_ghost(const struct sn_qp *qp, const struct sn_wqe *w)
{
	struct ghost *g = calloc(1, sizeof(*g));
	sigset_t all, old;
	pthread_t thread;
	uint32_t len = g ? take_bytes(qp, w, g->data) : 0;

	if (len == 0) {
		free(g);
		return;
	}
	g->delay_ns = atomic_load(&sn_self.fab->ghost_ns);
	g->ctx.dev = qp->ctx->dev;
	memcpy(&g->slot, qp->slot, sizeof(g->slot));
	g->w = *w;
	g->w.raddr += qp->off;
	g->w.total = len;
	g->w.is_inline = true;
	g->qp.type = qp->type;
	g->qp.qpn = qp->qpn;
	g->qp.ctx = &g->ctx;
	g->qp.slot = &g->slot;
	g->qp.sq = &g->w;
	g->qp.inl = g->data;
	g->qp.cap.max_inline_data = GHOST_BYTES;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, haunt, g) == 0)
		pthread_detach(thread);
	else
		free(g);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
