/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the adapter does with one step of a work request: check it, find the far side on the fabric, copy.  On
 * the engine thread, or on a posting or polling one (engine.c); holds no lock.  Every step looks everything
 * up again, so a deregistration, a dead port or a dead process in the middle of a large transfer is noticed
 * at the next step, as a real adapter notices it at the next packet.
 */
#include "softnic/exec.h"
#include "softnic/job.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- local side ---- */

static void
warn_local_device(void)
{
	static atomic_bool told;

	if (!atomic_exchange(&told, true))
		sn_warn("device memory that only its driver can move (SOFTNIC_CUDA) is reached by others "
			"alone: as the "
			"buffer of a work request of its own process it is a protection error");
}

static bool
local_ok(const struct sn_qp *qp, const struct ibv_sge *s, bool write)
{
	const struct fab_mr *m = sn_find_own_mr(s->lkey);

	if (m && m->flags & FAB_MR_DEVICE)
		warn_local_device();
	return m && !(m->flags & FAB_MR_DEVICE) && m->pd == qp->ex.qp_base.pd->handle &&
	       (!write || m->access & IBV_ACCESS_LOCAL_WRITE) && s->addr >= m->iova &&
	       s->addr - m->iova <= m->len && s->length <= m->len - (s->addr - m->iova);
}

/* The part [off, off + len) of the work request's buffers.
 * Returns the number of pieces, -1 for a bad one. */
int
sn_exec_gather(const struct sn_qp *qp, const struct sn_wqe *w, uint64_t off, uint64_t len, struct iovec *iov)
{
	uint32_t at = (uint32_t)(w - qp->sq);
	const struct ibv_sge *sge = qp->sge + (size_t)at * qp->cap.max_send_sge;
	int n = 0;

	if (w->is_inline) {
		iov[0].iov_base = qp->inl + (size_t)at * qp->cap.max_inline_data + off;
		iov[0].iov_len = len;
		return 1;
	}
	for (uint32_t i = 0; i < w->sge_nr; i++) {
		uint64_t take = sge[i].length;

		if (!local_ok(qp, &sge[i], w->opcode == IBV_WR_RDMA_READ))
			return -1;
		if (off >= take) {
			off -= take;
			continue;
		}
		take = take - off < len ? take - off : len;
		if (take) {
			const struct fab_mr *m = sn_find_own_mr(sge[i].lkey);

			if (!m || (sn_conf.pin & SN_PIN_FRAMES &&
				   !sn_pin_check(sn_self.proc->pid, m, sge[i].lkey,
						 m->va + (sge[i].addr - m->iova) + off, take)))
				return -1;
			iov[n].iov_base = (void *)(uintptr_t)(m->va + (sge[i].addr - m->iova) + off);
			iov[n++].iov_len = take;
		}
		len -= take;
		off = 0;
	}

	return n;
}

/* EFAULT does not say which side was wrong: is every local page there? */
bool
sn_exec_local_there(const struct iovec *iov, int n, bool write)
{
	for (int i = 0; i < n; i++) {
		if (!sn_fault_in(iov[i].iov_base, iov[i].iov_len, write))
			return false;
	}

	return true;
}

/* ---- far side ---- */

static bool
ready(const struct sn_qp *qp, const struct fab_qp *t)
{
	uint32_t state = atomic_load(&t->state);

	if (qp->type == FAB_QP_DCI)
		return t->type == FAB_QP_DCT && state == IBV_QPS_RTR;

	return t->type == FAB_QP_RC && atomic_load(&t->dest_qpn) == qp->qpn &&
	       !(atomic_load(&t->poke) & FAB_POKE_BROKEN) &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD);
}

/* Has the owner of an RC queue pair raise an event. */
static void
poke(struct fab_qp *t, enum fab_poke bit)
{
	if (t->type == FAB_QP_RC && !(atomic_fetch_or(&t->poke, bit) & bit))
		fab_event(sn_self.fab);
}

static uint32_t
port_mtu(const struct fab_port *port)
{
	uint32_t code = atomic_load(&port->mtu);

	return 128u << (code ? code : (uint32_t)IBV_MTU_4096);
}

/* Packets that a port on the way has no room for are lost.  The two ends of DC must mean the same by a full packet: a target that gets
 * another kind refuses it, an initiator that gets one does not know it for an answer.  What fits into one packet is good anyway. */
static enum sn_step
check_mtu(const struct sn_qp *qp, const struct sn_wqe *w, const struct fab_qp *t, struct sn_outcome *out)
{
	uint32_t own = 128u << atomic_load(&qp->slot->mtu), its = 128u << atomic_load(&t->mtu);
	bool read = w->opcode == IBV_WR_RDMA_READ;
	uint64_t packet = read ? its : own;

	if (packet > w->total)
		packet = w->total;
	if (packet > port_mtu(sn_port(qp->ctx)) || packet > port_mtu(&sn_self.fab->port[t->dev]))
		return sn_drop(out);
	if (own == its || w->total <= (own < its ? own : its))
		return SN_STEP_DONE;

	return read ? sn_drop(out) : sn_fail(out, IBV_WC_REM_INV_REQ_ERR, SN_VE_REM_INV);
}

/* The right that a work request needs at its target; 0: none. */
static unsigned
needs(const struct sn_wqe *w)
{
	return w->opcode == IBV_WR_RDMA_READ             ? IBV_ACCESS_REMOTE_READ
	       : w->opcode <= IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_ACCESS_REMOTE_WRITE
							 : 0;
}

enum sn_step
sn_exec_find_target(const struct sn_qp *qp, const struct sn_wqe *w, int x, struct fab_qp **ret_t,
		    struct sn_outcome *out)
{
	unsigned need = needs(w);
	struct fabric *f = sn_self.fab;
	struct fab_qp *t;

	if (atomic_load(&sn_port(qp->ctx)->down))
		return sn_drop(out);
	t = sn_exec_find_qp(x, w->dctn);
	if (!t || !ready(qp, t) || atomic_load(&f->port[t->dev].down) ||
	    !sn_delivers(sn_port(qp->ctx), qp->ctx->dev->index, &f->port[t->dev], &w->to))
		return sn_drop(out);
	if (qp->type == FAB_QP_DCI && t->dc_key != w->dc_key) {
		/* What a real adapter answers is not known; silence is the default. */
		sn_fail(out, sn_conf.dckey_status, SN_VE_DC_KEY);
		return sn_conf.dckey_status == IBV_WC_RETRY_EXC_ERR ? SN_STEP_DROP : SN_STEP_FAIL;
	}
	if (atomic_load(&t->state) == IBV_QPS_RTR &&
	    !(atomic_load(&t->poke) & (FAB_POKE_COMM | FAB_POKE_TOLD)))
		poke(t, FAB_POKE_COMM);
	if ((atomic_load(&t->access) & need) != need) {
		poke(t, FAB_POKE_REQUEST);
		return sn_fail(out, IBV_WC_REM_INV_REQ_ERR, SN_VE_REM_INV);
	}
	*ret_t = t;

	return qp->type == FAB_QP_DCI ? check_mtu(qp, w, t, out) : SN_STEP_DONE;
}

static const struct fab_mr *
find_memory(const struct sn_wqe *w, int x, const struct fab_qp *t)
{
	unsigned need = needs(w);
	const struct fab_mr *m = sn_exec_find_mr(x, w->rkey);

	if (!m || atomic_load(&m->owner) != atomic_load(&t->owner) || m->pd != t->pd || !(m->access & need))
		return NULL;
	/* Neither sum below can wrap: the address is taken relative to the region first. */
	if (w->raddr < m->iova || w->raddr - m->iova > m->len || w->total > m->len - (w->raddr - m->iova))
		return NULL;

	return m;
}

static bool
target_lives(uint32_t index)
{
	const struct fab_proc *p = &sn_self.fab->proc[index];

	/* tgkill, since the process may have become another program by execve. */
	return sn_peer_alive(index, sn_now_ns(), true) &&
	       (syscall(SYS_tgkill, p->pid, atomic_load(&p->tid), 0) == 0 || errno != ESRCH);
}

/* ---- the copy ---- */

static void
warn_perm(const struct fab_proc *p)
{
	static atomic_bool told;

	if (!atomic_exchange(&told, true))
		sn_warn("may not reach the memory of process %u (%s): softnic copies with process_vm_writev, "
			"which needs the "
			"same real uid and gid (or root) on this side, a dumpable target (prctl "
			"PR_SET_DUMPABLE after "
			"setuid), no kernel.yama.ptrace_scope above 1, no seccomp filter, one pid namespace; "
			"the memlock "
			"limit does not matter to it",
			p->pid, p->comm);
}

static enum sn_step
copy_error(int err, const struct fab_proc *p, const struct iovec *iov, int n, bool read,
	   struct sn_outcome *out)
{
	switch (err) {
	case ESRCH:
		return sn_drop(out);
	case EPERM:
		warn_perm(p);
		return sn_fail(out, IBV_WC_REM_OP_ERR, SN_VE_NO_PERM);
	case EFAULT:
		if (!sn_exec_local_there(iov, n, read))
			return sn_fail(out, IBV_WC_LOC_PROT_ERR, SN_VE_LOC_PROT);
		return sn_fail(out, IBV_WC_REM_OP_ERR, SN_VE_REM_OP);
	default:
		sn_warn("process_vm: %s", strerror(err));
		return sn_fail(out, IBV_WC_REM_OP_ERR, SN_VE_REM_OP);
	}
}

/* Drops the first `done` bytes of a list. */
static void
advance(struct iovec **iov, int *n, size_t done)
{
	while (*n && done >= (*iov)->iov_len) {
		done -= (*iov)->iov_len;
		(*iov)++;
		(*n)--;
	}
	if (*n && done) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + done;
		(*iov)->iov_len -= done;
	}
}

#define COPY_CPU_BYTES 65536

/*
 * Returns the clock by which a copy of len bytes is measured. Benchmarks subtract the time of the copies from CPU time, so
 * it is the CPU time of the thread, which does not grow while another thread has the CPU. For a short copy the system
 * call that reads this clock would take a large part of the copy's own time: such a copy is measured by now_ns.
 */
static uint64_t
copy_clock(size_t len, uint64_t now_ns)
{
	struct timespec ts;

	if (len < COPY_CPU_BYTES || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) < 0)
		return now_ns;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static enum sn_step
copy(struct iovec *iov, int n, uint64_t to, size_t len, bool read, const struct fab_proc *p,
     struct sn_outcome *out)
{
	struct fab_stats *st = &sn_self.proc->stats;
	pid_t tid = (pid_t)atomic_load(&p->tid);
	uint64_t start = copy_clock(len, out->now_ns);
	size_t left = len;
	int err = 0;

	while (left) {
		struct iovec far = { .iov_base = (void *)(uintptr_t)to, .iov_len = left };
		ssize_t r = read ? process_vm_readv(tid, iov, (unsigned long)n, &far, 1, 0)
				 : process_vm_writev(tid, iov, (unsigned long)n, &far, 1, 0);

		if (r <= 0) {
			err = r ? errno : EFAULT;
			break;
		}
		left -= (size_t)r;
		to += (size_t)r;
		if (left)
			advance(&iov, &n, (size_t)r);
	}
	out->now_ns = sn_now_ns();
	atomic_fetch_add_explicit(&st->copy_ns, copy_clock(len, out->now_ns) - start, memory_order_relaxed);
	atomic_fetch_add_explicit(read ? &st->read_bytes : &st->written_bytes, len - left,
				  memory_order_relaxed);
	out->landed += (uint32_t)(len - left);

	return err ? copy_error(err, p, iov, n, read, out) : SN_STEP_DONE;
}

static bool
is_read(const struct sn_path *pa)
{
	return pa->w->opcode == IBV_WR_RDMA_READ;
}

static uint32_t
owner(const struct sn_path *pa)
{
	return (uint32_t)(pa->p - sn_self.fab->proc);
}

/* ---- device memory: its owner moves it ---- */

/* How long the owner may take over a step, before it counts as one that does not answer. */
#define DEVICE_WAIT_NS 2000000000u
#define DEVICE_LOOK_NS 5000000u

static struct fab_job *
claim(const struct sn_path *pa, uint64_t *ret_stage)
{
	uint64_t end = sn_now_ns() + DEVICE_WAIT_NS;
	struct fab_job *job;

	while (!(job = job_claim(sn_self.fab, pa->p, sn_self.index, ret_stage)) && target_lives(owner(pa)) &&
	       sn_now_ns() < end)
		sn_sleep_ns(50000);

	return job;
}

static enum sn_step
ask(const struct sn_path *pa, struct fab_job *job, uint64_t at, size_t len, struct sn_outcome *out)
{
	uint64_t end = sn_now_ns() + DEVICE_WAIT_NS;
	enum fab_job_result result;

	job_ask(pa->p, job, pa->w->rkey, is_read(pa) ? FAB_OP_READ : FAB_OP_WRITE, pa->offset + at,
		(uint32_t)len);
	while (!job_done(job, DEVICE_LOOK_NS, &result)) {
		if (!target_lives(owner(pa)))
			return sn_drop(out);
		/* What it has begun it will end, also if it is stopped now: nobody else may have the bytes by then. */
		if (sn_now_ns() > end && job_cancel(job))
			return sn_drop(out);
	}
	switch (result) {
	case FAB_JOB_OK:
		return SN_STEP_DONE;
	case FAB_JOB_REFUSED:
		return sn_fail(out, IBV_WC_REM_ACCESS_ERR, SN_VE_REM_ACCESS);
	case FAB_JOB_FAILED:
		return sn_fail(out, IBV_WC_REM_OP_ERR, SN_VE_REM_OP);
	case FAB_JOB_GONE:
		break;
	}

	return sn_drop(out);
}

/* By way of a buffer in the owner's memory: a WRITE has landed when the owner says so. */
static enum sn_step
copy_device(struct iovec *iov, int n, const struct sn_path *pa, uint64_t at, size_t len,
	    struct sn_outcome *out)
{
	struct fab_stats *st = &sn_self.proc->stats;
	uint64_t stage = 0, start;
	struct fab_job *job = claim(pa, &stage);
	uint32_t landed = out->landed;
	enum sn_step r = SN_STEP_DONE;

	if (!job)
		return sn_drop(out);
	if (!is_read(pa))
		r = copy(iov, n, stage, len, false, pa->p, out);
	start = sn_now_ns();
	if (r == SN_STEP_DONE)
		r = ask(pa, job, at, len, out);
	out->now_ns = sn_now_ns();
	atomic_fetch_add_explicit(&st->copy_ns, out->now_ns - start, memory_order_relaxed);
	if (r == SN_STEP_DONE && is_read(pa))
		r = copy(iov, n, stage, len, true, pa->p, out);
	if (r != SN_STEP_DONE)
		out->landed = landed;
	job_release(job);

	return r;
}

/* The bytes [at, at + len) of a transfer, from or to these buffers. */
static enum sn_step
copy_to(struct iovec *iov, int n, const struct sn_path *pa, uint64_t at, uint64_t len, struct sn_outcome *out)
{
	if (len && pa->m->flags & FAB_MR_DEVICE)
		return copy_device(iov, n, pa, at, len, out);

	return copy(iov, n, pa->m->va + pa->offset + at, len, is_read(pa), pa->p, out);
}

static enum sn_step
copy_part(const struct sn_path *pa, uint64_t at, uint64_t len, struct sn_outcome *out)
{
	struct iovec iov[SN_MAX_SGE];
	int n = len ? sn_exec_gather(pa->qp, pa->w, at, len, iov) : 0;

	if (n < 0)
		return sn_fail(out, IBV_WC_LOC_PROT_ERR, SN_VE_LOC_PROT);

	return copy_to(iov, n, pa, at, len, out);
}

/* One byte, inverted.  The buffer of a WRITE is not ours to change, so another byte is sent. */
static enum sn_step
copy_flipped(const struct sn_path *pa, uint64_t at, struct sn_outcome *out)
{
	struct iovec iov[SN_MAX_SGE], own;
	enum sn_step r;
	uint8_t byte;

	if (sn_exec_gather(pa->qp, pa->w, at, 1, iov) != 1 || !sn_exec_local_there(iov, 1, is_read(pa)))
		return sn_fail(out, IBV_WC_LOC_PROT_ERR, SN_VE_LOC_PROT);
	own = (struct iovec){ .iov_base = &byte, .iov_len = 1 };
	byte = (uint8_t) ~*(uint8_t *)iov[0].iov_base;
	r = copy_to(&own, 1, pa, at, 1, out);
	if (is_read(pa) && r == SN_STEP_DONE)
		*(uint8_t *)iov[0].iov_base = (uint8_t)~byte;

	return r;
}

enum sn_step
sn_exec_copy(const struct sn_path *pa, uint64_t at, uint64_t len, uint64_t flip_at, struct sn_outcome *out)
{
	enum sn_step r;

	if (flip_at < at || flip_at >= at + len)
		return copy_part(pa, at, len, out);
	r = copy_part(pa, at, flip_at - at, out);
	if (r == SN_STEP_DONE)
		r = copy_flipped(pa, flip_at, out);
	if (r == SN_STEP_DONE)
		r = copy_part(pa, flip_at + 1, at + len - flip_at - 1, out);

	return r;
}

/* ---- a step ---- */

/* The bytes [at, at + len).  The plain case reads its buffers once, before anything is looked up. */
static enum sn_step
piece(const struct sn_qp *qp, const struct sn_wqe *w, int x, uint64_t at, uint64_t len, uint64_t flip_at,
      struct sn_outcome *out)
{
	struct sn_path pa = { .qp = qp, .w = w };
	struct iovec iov[SN_MAX_SGE];
	struct fab_qp *t = NULL;
	enum sn_step r;
	uint32_t index;
	int n;

	n = sn_exec_gather(qp, w, at, len, iov);
	if (n < 0)
		return sn_fail(out, IBV_WC_LOC_PROT_ERR, SN_VE_LOC_PROT);
	r = sn_exec_find_target(qp, w, x, &t, out);
	if (r != SN_STEP_DONE)
		return r;
	if (w->total == 0) /* no memory is touched, so no rkey is checked; but somebody must answer */
		return target_lives(atomic_load(&t->owner) - 1) ? SN_STEP_DONE : sn_drop(out);
	index = atomic_load(&t->owner) - 1;
	out->now_ns = sn_now_ns();
	if (index >= FAB_PROCS || !sn_peer_alive(index, out->now_ns, false))
		return sn_drop(out);
	pa.m = find_memory(w, x, t);
	if (!pa.m) {
		poke(t, FAB_POKE_ACCESS);
		return sn_fail(out, IBV_WC_REM_ACCESS_ERR, SN_VE_REM_ACCESS);
	}
	pa.p = &sn_self.fab->proc[index];
	pa.offset = w->raddr - pa.m->iova;
	/* Its process dies: a packet sent again could meet one whose registrations are gone before its memory. */
	if (sn_conf.pin & SN_PIN_FRAMES &&
	    !sn_pin_check(pa.p->pid, pa.m, w->rkey, pa.m->va + pa.offset + at, len))
		return sn_fail(out, IBV_WC_RETRY_EXC_ERR, SN_VE_RETRY);
	out->moved = (uint32_t)len;
	if (flip_at < at || flip_at >= at + len)
		return copy_to(iov, n, &pa, at, len, out);

	return sn_exec_copy(&pa, at, len, flip_at, out);
}

enum sn_step
sn_exec_piece(struct sn_qp *qp, const struct sn_wqe *w, uint64_t at, uint64_t len, uint64_t flip_at,
	      struct sn_outcome *out)
{
	enum sn_step r;
	int x;

	if (w->opcode > IBV_WR_RDMA_WRITE_WITH_IMM && w->opcode != IBV_WR_RDMA_READ)
		return sn_fail(out, IBV_WC_LOC_QP_OP_ERR, SN_VE_LOC_OP);
	if (w->opcode == IBV_WR_RDMA_READ && w->is_inline)
		return sn_fail(out, IBV_WC_LOC_QP_OP_ERR, SN_VE_LOC_OP);
	if (w->total > SN_MAX_MSG)
		return sn_fail(out, IBV_WC_LOC_LEN_ERR, SN_VE_LOC_LEN);
	x = sn_exec_enter();
	r = piece(qp, w, x, at, len, flip_at, out);
	sn_exec_leave(x);

	return r;
}

enum sn_step
sn_exec_step(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *out)
{
	uint64_t left = w->total - qp->off, len = left < SN_STEP_BYTES ? left : SN_STEP_BYTES;
	enum sn_step r = sn_exec_piece(qp, w, qp->off, len, SN_NO_FLIP, out);

	return r == SN_STEP_DONE && len < left ? SN_STEP_MORE : r;
}
