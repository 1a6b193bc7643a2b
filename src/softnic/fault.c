/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of fault rules on work requests. softnicctl writes the rules into the fabric; here the process that executes a
 * work request (exec.c is the adapter without faults) asks them (rule.c), once, when it begins. Called by run.c with qp->busy
 * set and no lock held. No function sleeps: a work request that has to wait is parked on the engine's timer heap (sched.c).
 *
 *   begin -> [delay] -> pieces: all of it | a prefix | shuffled chunks -> [hold] -> done | error | nothing
 *                       a byte inverted, somebody killed between two of them
 *
 * (nothing: the work request never completes.)
 */
#include "softnic/message.h"
#include "softnic/rule.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum fault_phase { PHASE_BEGIN, PHASE_COPY, PHASE_OVER };

#define KILL_POLL_NS 1000000u
#define KILL_WAIT_NS 5000000000u

/* ---- matching ---- */

static void
ask_rules(struct sn_qp *qp, const struct sn_wqe *w)
{
	enum fab_op op = w->opcode == IBV_WR_RDMA_READ             ? FAB_OP_READ
			 : w->opcode <= IBV_WR_RDMA_WRITE_WITH_IMM ? FAB_OP_WRITE
								   : FAB_OP_SEND;
	struct sn_fault *f = &qp->fault;

	if (w->opcode > IBV_WR_RDMA_READ)
		return;
	for (int i = 0; i < FAB_RULES; i++) {
		struct fab_match m;
		struct fab_act a;
		uint32_t id;

		if (!sn_rule_read(i, &id, &m, &a) || !sn_rule_is_for(&m, op, qp->ctx->dev->index, w->total) ||
		    (m.qpn && m.qpn != qp->qpn) || (m.dctn && m.dctn != w->dctn))
			continue;
		if (f->asked[i].id != id) {
			f->asked[i].id = id;
			f->asked[i].nr = 0;
		}
		uint32_t nr = f->asked[i].nr++;

		if (sn_rule_hits(&sn_self.fab->rule[i], &m, nr)) {
			f->rule = id;
			f->act = a;
			f->seed = sn_draw(~m.seed, nr);
			return;
		}
	}
}

/* ---- killing ---- */

static bool
same_uid(uint32_t pid)
{
	char path[64], line[256];
	unsigned uid = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "Uid: %u", &uid) == 1;
	if (f)
		fclose(f);

	return found && uid == getuid();
}

static bool
has_fabric(uint32_t pid)
{
	struct stat ours, st;
	char path[64];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	d = opendir(path);
	if (!d || fstat(sn_self.fd, &ours) < 0) {
		if (d)
			closedir(d);
		return false;
	}
	while (!found && (e = readdir(d)))
		found = e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
			st.st_dev == ours.st_dev && st.st_ino == ours.st_ino;
	closedir(d);

	return found;
}

/* The fabric is a file that others may have written, so nothing is killed on its word alone. */
static bool
kill_proc(const struct fab_proc *p)
{
	uint32_t pid = p->pid;
	uint64_t ticks = 0;
	bool done = false;
	int fd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	/* What is looked up by number after this is the process of the descriptor, if its start time is. */
	if (fd >= 0 && fab_start_ticks(pid, &ticks) == 0 && ticks == p->start_ticks && same_uid(pid) &&
	    has_fabric(pid) && atomic_load(&p->state) == FAB_PROC_LIVE)
		done = syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
	if (fd >= 0)
		close(fd);
	if (!done)
		sn_warn("rule: process %u (%s) is not killed: it is not one of our user with this fabric "
			"open",
			pid, p->comm);

	return done;
}

static void
kill_target(struct sn_fault *f, const struct sn_wqe *w)
{
	const struct fab_qp *t = &sn_self.fab->qp[w->dctn % FAB_QPS];
	uint32_t owner = atomic_load(&t->owner);

	if (atomic_load(&t->qpn) != w->dctn || owner == 0 || owner > FAB_PROCS)
		return;
	f->target = owner - 1;
	if (kill_proc(&sn_self.fab->proc[f->target]))
		f->kill_wait_ns = sn_now_ns() + KILL_WAIT_NS;
}

/* ---- a hit work request, step by step ---- */

static enum sn_step
wait_for(struct sn_outcome *out, uint64_t ns)
{
	out->wait_ns = sn_now_ns() + ns;

	return SN_STEP_MORE;
}

/* How many of its bytes are to be copied. */
static uint64_t
wanted(const struct fab_act *a, uint64_t total)
{
	if (a->flags & FAB_ACT_TORN)
		return total * a->torn_pct / 100;

	return a->flags & FAB_ACT_STATUS ? 0 : total;
}

static uint64_t
kill_at(const struct fab_act *a, uint64_t want)
{
	return a->kill_at < want ? a->kill_at : want;
}

/* Element i of a random order of 0 .. n - 1: a small Feistel cipher, walked until it falls into the range. */
static uint64_t
shuffled(uint64_t i, uint64_t n, uint64_t seed)
{
	unsigned half = 1;

	while (half < 32 && 1ull << 2 * half < n)
		half++;
	uint64_t mask = (1ull << half) - 1;

	do {
		uint64_t l = i >> half, r = i & mask;

		for (unsigned round = 0; round < 4; round++) {
			uint64_t t = l ^ (sn_draw(seed + round, r) & mask);

			l = r;
			r = t;
		}
		i = l << half | r;
	} while (i >= n);

	return i;
}

static enum sn_step
next_piece(struct sn_qp *qp, const struct sn_wqe *w, uint64_t want, struct sn_outcome *out)
{
	struct sn_fault *f = &qp->fault;
	const struct fab_act *a = &f->act;
	uint64_t at = qp->off, most = SN_STEP_BYTES, flip = SN_NO_FLIP;
	bool shuffle = a->flags & FAB_ACT_SCRAMBLE && want > 0;
	enum sn_step r;

	if (shuffle) {
		most = a->chunk_bytes;
		at = shuffled(f->chunk, (want + most - 1) / most, f->seed) * most;
	}
	uint64_t len = want - at < most ? want - at : most;

	if (a->flags & (FAB_ACT_KILL_TARGET | FAB_ACT_KILL_SELF) && !f->killed && !shuffle &&
	    kill_at(a, want) - at < len)
		len = kill_at(a, want) - at;
	if (a->flags & FAB_ACT_CORRUPT)
		flip = a->corrupt_at < want ? a->corrupt_at : want - 1;
	sn_trace_copying(qp);
	r = sn_piece(qp, w, at, len, flip, out);
	sn_trace_copied(qp, out);
	if (r != SN_STEP_DONE)
		return r;
	f->chunk++;
	if (a->pause_ns && qp->off + len < want)
		out->wait_ns = sn_now_ns() + a->pause_ns;

	return SN_STEP_MORE;
}

static enum sn_step
faulty_step(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *out)
{
	struct sn_fault *f = &qp->fault;
	const struct fab_act *a = &f->act;
	uint64_t want = wanted(a, w->total);

	if (f->phase == PHASE_BEGIN) {
		f->phase = PHASE_COPY;
		if (a->delay_ns)
			return wait_for(out, a->delay_ns);
	}
	if (f->phase == PHASE_COPY) {
		if (a->flags & (FAB_ACT_KILL_TARGET | FAB_ACT_KILL_SELF) && !f->killed &&
		    qp->off >= kill_at(a, want)) {
			f->killed = true;
			if (a->flags & FAB_ACT_KILL_SELF)
				kill(getpid(), SIGKILL);
			else
				kill_target(f, w);
		}
		/* Its memory stays for a moment after the signal; no byte of ours may still get there. */
		if (f->kill_wait_ns && sn_peer_alive(f->target, sn_now_ns(), true) &&
		    sn_now_ns() < f->kill_wait_ns)
			return wait_for(out, KILL_POLL_NS);
		f->kill_wait_ns = 0;
		if (qp->off < want || (w->total == 0 && f->chunk == 0 && !(a->flags & FAB_ACT_STATUS)))
			return next_piece(qp, w, want, out);
		enum sn_step r = a->flags & FAB_ACT_STATUS ? SN_STEP_DONE : sn_send_deliver(qp, w, out);

		if (r != SN_STEP_DONE)
			return r;
		f->phase = PHASE_OVER;
		if (a->hold_ns)
			return wait_for(out, a->hold_ns);
	}
	if (!(a->flags & FAB_ACT_STATUS))
		return SN_STEP_DONE;
	out->status = (uint8_t)a->status;
	out->vendor = (uint8_t)a->vendor;

	return SN_STEP_FAIL;
}

void
sn_mark_begin(struct sn_qp *qp, const struct sn_wqe *w, bool ask)
{
	struct sn_fault *f = &qp->fault;

	qp->marked = true;
	f->rule = 0;
	f->chunk = 0;
	f->phase = PHASE_BEGIN;
	f->killed = false;
	f->kill_wait_ns = 0;
	if (ask)
		ask_rules(qp, w);
	if (sn_active() & FAB_ACTIVE_TRACE)
		sn_trace_begin(qp, w);
}

enum sn_step
sn_marked_step(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *out)
{
	enum sn_step r;

	if (!qp->marked) /* half done before there were rules: they come too late for it */
		sn_mark_begin(qp, w, qp->off == 0 && sn_active() & FAB_ACTIVE_RULES);
	if (qp->fault.rule)
		return faulty_step(qp, w, out);
	sn_trace_copying(qp);
	r = sn_step(qp, w, out);
	sn_trace_copied(qp, out);

	return r;
}

unsigned
sn_mark_end(struct sn_qp *qp, uint8_t status, uint8_t vendor)
{
	uint32_t flags = qp->fault.rule ? qp->fault.act.flags : 0;

	sn_trace_end(qp, status, vendor);
	qp->marked = false;
	qp->fault.rule = 0;

	return flags & FAB_ACT_DROP ? 0 : flags & FAB_ACT_DUP ? 2 : 1;
}

void
sn_mark_drop(struct sn_qp *qp)
{
	if (qp->marked)
		sn_mark_end(qp, TRACE_STATUS_RESET, 0);
}
