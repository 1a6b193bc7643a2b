/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages, on the side of the sender: SEND, and RDMA writes with immediate data. The sender requests a receive from the
 * process of its target (struct fab_msg), copies the bytes into the buffers of the receive, and requests the completion:
 *
 *     NONE -> TAKE -> TAKEN: bytes are copied -> PUT -> NONE      SEND
 *     NONE: bytes are copied -> PUT -> NONE                       RDMA write with immediate data
 *
 * In TAKE and PUT the queue pair is parked until the answer. An RNR NAK leads back to NONE. Called like exec.c, with sn_qp.busy
 * true and no lock held.
 */
#include "softnic/exec.h"
#include "softnic/message.h"

#define LOOK_NS 5000000u /* time in ns between two looks for a dead receiver */
#define FULL_NS 50000u   /* time in ns after which a full inbox is tried again */

static bool
is_send(const struct sn_wqe *w)
{
	return w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM;
}

static bool
is_message(const struct sn_wqe *w)
{
	return is_send(w) || w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static uint32_t
word(const struct sn_qp *qp, enum fab_msg_state s)
{
	return qp->qpn << 8 | s;
}

bool
sn_send_answered(const struct sn_qp *qp)
{
	return atomic_load(&qp->slot->msg.state) == word(qp, FAB_MSG_ANSWERED);
}

/* Time in ns of an RNR NAK timer, by the table of the InfiniBand specification. */
static uint64_t
rnr_ns(uint32_t timer)
{
	static const uint32_t us[32] = { 655360, 10,    20,    30,     40,     60,     80,     120,
					 160,    240,   320,   480,    640,    960,    1280,   1920,
					 2560,   3840,  5120,  7680,   10240,  15360,  20480,  30720,
					 40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520 };

	return us[timer % 32] * 1000ull;
}

static enum sn_step
nak(struct sn_qp *qp, const struct fab_qp *t, struct sn_outcome *out)
{
	qp->send.phase = SN_SEND_NONE;
	out->status = IBV_WC_RNR_RETRY_EXC_ERR;
	out->vendor = SN_VE_RNR;
	out->wait_ns = sn_now_ns() + rnr_ns(atomic_load(&t->rnr_timer));

	return SN_STEP_RNR;
}

static enum sn_step
wait_until(struct sn_outcome *out, uint64_t ns, enum sn_step step)
{
	out->wait_ns = sn_now_ns() + ns;

	return step;
}

static enum sn_step
request(struct sn_qp *qp, const struct sn_wqe *w, enum fab_msg_state state, struct sn_outcome *out)
{
	struct fab_msg *m = &qp->slot->msg;
	struct fab_qp *t = NULL;
	struct fab_proc *p;
	int x = sn_exec_enter();
	enum sn_step r = sn_exec_find_target(qp, w, x, &t, out);
	uint32_t peer = r == SN_STEP_DONE ? atomic_load(&t->owner) - 1 : FAB_PROCS;

	sn_exec_leave(x);
	if (r != SN_STEP_DONE)
		return r;
	if (peer >= FAB_PROCS || !sn_peer_alive(peer, sn_now_ns(), true))
		return sn_drop(out);
	p = &sn_self.fab->proc[peer];
	if (!atomic_load(&p->inbox_on))
		return nak(qp, t, out);
	qp->send.peer = peer;
	m->to_qpn = w->dctn;
	m->opcode = w->opcode;
	m->imm = w->imm;
	m->len = w->total;
	m->solicited = w->solicited;
	m->broken = qp->send.broken;
	atomic_store(&m->state, word(qp, state));
	if (!sn_mail_post(p, qp->qpn)) {
		atomic_store(&m->state, word(qp, FAB_MSG_FREE));
		return wait_until(out, FULL_NS, SN_STEP_MORE);
	}
	qp->send.phase = state == FAB_MSG_TAKE ? SN_SEND_TAKE : SN_SEND_PUT;

	return wait_until(out, LOOK_NS, SN_STEP_WAIT);
}

/* Reads the buffers of the receive out of the process that has it. */
static enum sn_step
read_buffers(struct sn_qp *qp, const struct fab_msg *m, struct sn_outcome *out)
{
	const struct fab_proc *p = &sn_self.fab->proc[qp->send.peer];
	struct sn_send *s = &qp->send;
	size_t size = m->sge_nr * sizeof(*s->sge);
	struct iovec to = { .iov_len = size }, from = { (void *)(uintptr_t)m->sge, size };

	if (!s->sge)
		s->sge = calloc(SN_MAX_SGE + 1, sizeof(*s->sge));
	if (!s->sge || m->sge_nr > SN_MAX_SGE + 1)
		return sn_fail(out, IBV_WC_LOC_QP_OP_ERR, SN_VE_LOC_OP);
	to.iov_base = s->sge;
	s->sge_nr = m->sge_nr;
	s->pd = m->pd;
	if (size && process_vm_readv((pid_t)atomic_load(&p->tid), &to, 1, &from, 1, 0) != (ssize_t)size)
		return errno == ESRCH ? sn_drop(out) : sn_fail(out, IBV_WC_REM_OP_ERR, SN_VE_NO_PERM);

	return SN_STEP_DONE;
}

/* Waits for the answer to the request of this phase. DONE: it was granted. */
static enum sn_step
answer(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *out)
{
	const struct fab_qp *t = &sn_self.fab->qp[w->dctn % FAB_QPS];
	bool took = qp->send.phase == SN_SEND_TAKE;
	struct fab_msg *m = &qp->slot->msg;

	if (!sn_send_answered(qp)) {
		if (sn_peer_alive(qp->send.peer, sn_now_ns(), true))
			return wait_until(out, LOOK_NS, SN_STEP_WAIT);
		sn_send_cancel(qp);
		return sn_drop(out);
	}
	atomic_store(&m->state, word(qp, FAB_MSG_FREE));
	if (m->result != FAB_MSG_NOT_READY)
		qp->send.naks = 0;
	switch ((enum fab_msg_result)m->result) {
	case FAB_MSG_OK:
		qp->send.phase = took ? SN_SEND_TAKEN : SN_SEND_NONE;
		return took ? read_buffers(qp, m, out) : SN_STEP_DONE;
	case FAB_MSG_NOT_READY:
		return nak(qp, t, out);
	case FAB_MSG_INVALID:
		qp->send.phase = SN_SEND_NONE;
		return sn_fail(out, IBV_WC_REM_INV_REQ_ERR, SN_VE_REM_INV);
	case FAB_MSG_BROKEN:
		qp->send.phase = SN_SEND_NONE;
		return sn_fail(out, IBV_WC_REM_OP_ERR, SN_VE_REM_OP);
	case FAB_MSG_NOBODY:
		break;
	}
	qp->send.phase = took || !is_send(w) ? SN_SEND_NONE : SN_SEND_TAKEN;

	return sn_drop(out);
}

static enum sn_step
take(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *out)
{
	switch (qp->send.phase) {
	case SN_SEND_NONE:
		qp->send.broken = false;
		return request(qp, w, FAB_MSG_TAKE, out);
	case SN_SEND_TAKE:
		return answer(qp, w, out);
	default:
		return SN_STEP_DONE;
	}
}

enum sn_step
sn_send_deliver(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *out)
{
	enum sn_step r;

	if (!is_message(w))
		return SN_STEP_DONE;
	r = is_send(w) ? take(qp, w, out) : SN_STEP_DONE;
	if (r != SN_STEP_DONE)
		return r;

	return qp->send.phase == SN_SEND_PUT ? answer(qp, w, out) : request(qp, w, FAB_MSG_PUT, out);
}

void
sn_send_cancel(struct sn_qp *qp)
{
	_Atomic uint32_t *state = &qp->slot->msg.state;
	uint32_t s = atomic_load(state);

	if (qp->send.phase == SN_SEND_NONE)
		return;
	while (!((s & 0xff) == FAB_MSG_BUSY && sn_peer_alive(qp->send.peer, sn_now_ns(), true)) &&
	       !atomic_compare_exchange_strong(state, &s, word(qp, FAB_MSG_FREE)))
		;
	while ((s & 0xff) == FAB_MSG_BUSY && sn_peer_alive(qp->send.peer, sn_now_ns(), true)) {
		sn_sleep_ns(50000);
		s = atomic_load(state);
	}
	atomic_store(state, word(qp, FAB_MSG_FREE));
	qp->send.phase = SN_SEND_NONE;
	qp->send.waiting = false;
	qp->send.naks = 0;
}

/* ---- the bytes of a SEND ---- */

static const struct fab_mr *
find_buffer(const struct ibv_sge *s, int x, const struct fab_qp *t, uint32_t pd)
{
	const struct fab_mr *m = sn_exec_find_mr(x, s->lkey);

	if (!m || atomic_load(&m->owner) != atomic_load(&t->owner) || m->pd != pd ||
	    !(m->access & IBV_ACCESS_LOCAL_WRITE) || m->flags & FAB_MR_DEVICE || s->addr < m->iova ||
	    s->addr - m->iova > m->len || s->length > m->len - (s->addr - m->iova))
		return NULL;

	return m;
}

/* Copies the bytes [at, at + len) into the buffers of the receive. */
static enum sn_step
scatter(struct sn_qp *qp, const struct sn_wqe *w, uint64_t at, uint64_t len, uint64_t flip_at, int x,
	struct sn_outcome *out)
{
	struct sn_path pa = { .qp = qp, .w = w, .p = &sn_self.fab->proc[qp->send.peer] };
	uint64_t first = 0, end = at + len;
	struct fab_qp *t = NULL;
	enum sn_step r = sn_exec_find_target(qp, w, x, &t, out);

	out->now_ns = sn_now_ns();
	for (uint32_t i = 0; i < qp->send.sge_nr && r == SN_STEP_DONE; i++) {
		const struct ibv_sge *s = &qp->send.sge[i];
		uint64_t from = at > first ? at : first,
			 to = first + s->length < end ? first + s->length : end;

		if (from < to) {
			pa.m = find_buffer(s, x, t, qp->send.pd);
			if (!pa.m)
				return sn_fail(out, IBV_WC_REM_OP_ERR, SN_VE_REM_OP);
			pa.offset = s->addr - pa.m->iova - first;
			if (sn_conf.pin & SN_PIN_FRAMES &&
			    !sn_pin_check(pa.p->pid, pa.m, s->lkey, pa.m->va + pa.offset + from, to - from))
				return sn_fail(out, IBV_WC_RETRY_EXC_ERR, SN_VE_RETRY);
			r = sn_exec_copy(&pa, from, to - from, flip_at, out);
		}
		first += s->length;
	}

	return r;
}

static enum sn_step
send_piece(struct sn_qp *qp, const struct sn_wqe *w, uint64_t at, uint64_t len, uint64_t flip_at,
	   struct sn_outcome *out)
{
	struct iovec iov[SN_MAX_SGE];
	enum sn_step r;
	int x;

	if (w->total > SN_MAX_MSG)
		return sn_fail(out, IBV_WC_LOC_LEN_ERR, SN_VE_LOC_LEN);
	if (sn_exec_gather(qp, w, at, len, iov) < 0)
		return sn_fail(out, IBV_WC_LOC_PROT_ERR, SN_VE_LOC_PROT);
	r = take(qp, w, out);
	if (r != SN_STEP_DONE || len == 0 || qp->send.broken)
		return r;
	x = sn_exec_enter();
	r = scatter(qp, w, at, len, flip_at, x, out);
	sn_exec_leave(x);
	/* The receiver has to know that its buffers were not written; its answer is the failure. */
	qp->send.broken =
		r == SN_STEP_FAIL && out->status == IBV_WC_REM_OP_ERR && out->vendor == SN_VE_REM_OP;
	if (r == SN_STEP_DONE || qp->send.broken)
		out->moved = (uint32_t)len;

	return qp->send.broken ? SN_STEP_DONE : r;
}

/* ---- any work request ---- */

enum sn_step
sn_piece(struct sn_qp *qp, const struct sn_wqe *w, uint64_t at, uint64_t len, uint64_t flip_at,
	 struct sn_outcome *out)
{
	return is_send(w) ? send_piece(qp, w, at, len, flip_at, out)
			  : sn_exec_piece(qp, w, at, len, flip_at, out);
}

enum sn_step
sn_step(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *out)
{
	uint64_t left, len;
	enum sn_step r;

	if (__builtin_expect(!is_message(w), 1))
		return sn_exec_step(qp, w, out);
	if (qp->send.phase != SN_SEND_PUT) {
		left = w->total - qp->off;
		len = left < SN_STEP_BYTES ? left : SN_STEP_BYTES;
		r = sn_piece(qp, w, qp->off, len, SN_NO_FLIP, out);
		if (r != SN_STEP_DONE || len < left)
			return r == SN_STEP_DONE ? SN_STEP_MORE : r;
	}

	return sn_send_deliver(qp, w, out);
}
