/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault rules: which work request they hit, and what then becomes of it.  softnicctl writes the rules into
 * the fabric; here the process that runs a work request (exec.c is the adapter without faults) asks them,
 * once, when it begins.  Called by engine.c with qp->busy set and no lock held; never sleeps: what is to wait
 * is parked on the engine's timer heap.
 *
 *   begin -> [delay] -> pieces: all of it | a prefix | shuffled chunks -> [hold] -> done | error | nothing
 *                       a byte inverted, somebody killed between two of them
 *
 * (nothing: the work request never completes.)
 *
 * Also what calls of the application ask, on its threads: is it to fail, or to take its time?
 */
#include "softnic/message.h"
#include "softnic/softnic.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum fault_phase { PHASE_BEGIN, PHASE_COPY, PHASE_OVER };

#define KILL_POLL_NS 1000000u
#define KILL_WAIT_NS 5000000000u

/* ---- matching ---- */

/* The n-th number of a seed (SplitMix64), so that a run can be repeated
 * without keeping a generator's state. */
static uint64_t
draw(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;

	return z ^ z >> 31;
}

static bool
rule_there(uint32_t id)
{
	for (int i = 0; i < FAB_RULES; i++) {
		if (atomic_load(&sn_self.fab->rule[i].id) == id)
			return true;
	}

	return false;
}

/* A copy of the rule in place i; false if there is none, or it changed under us. */
static bool
read_rule(int i, uint32_t *ret_id, struct fab_match *ret_match, struct fab_act *ret_act)
{
	struct fab_rule *r = &sn_self.fab->rule[i];
	uint32_t id = atomic_load(&r->id);

	if (id == 0)
		return false;
	*ret_match = r->match;
	*ret_act = r->act;
	*ret_id = id;

	return atomic_fetch_add(&r->id, 0) == id; /* a read-modify-write stays behind the copies */
}

static bool
is_for(const struct fab_match *m, enum fab_op op, uint32_t dev, uint64_t len)
{
	bool any = m->op == FAB_OP_ANY && (op == FAB_OP_READ || op == FAB_OP_WRITE || op == FAB_OP_SEND);

	return (m->op == op || any) && (!m->dev || m->dev == dev + 1) &&
	       (!m->pid || m->pid == sn_self.proc->pid) && len >= m->min_len;
}

/* The operation is the rule's: does it hit this time?  `asked` is how often this queue pair has asked it
 * before. */
static bool
hits(struct fab_rule *r, const struct fab_match *m, uint32_t asked)
{
	uint64_t n = atomic_fetch_add(&r->seen, 1), had;

	if (n < m->skip || (m->every && (n - m->skip + 1) % m->every != 0))
		return false;
	if (draw(m->seed, asked) >> 32 >= m->prob)
		return false;
	had = atomic_load(&r->hits);
	do {
		if (m->limit && had >= m->limit)
			return false;
	} while (!atomic_compare_exchange_weak(&r->hits, &had, had + 1));

	return true;
}

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

		if (!read_rule(i, &id, &m, &a) || !is_for(&m, op, qp->ctx->dev->index, w->total) ||
		    (m.qpn && m.qpn != qp->qpn) || (m.dctn && m.dctn != w->dctn))
			continue;
		if (f->asked[i].id != id) {
			f->asked[i].id = id;
			f->asked[i].nr = 0;
		}
		uint32_t nr = f->asked[i].nr++;

		if (hits(&sn_self.fab->rule[i], &m, nr)) {
			f->rule = id;
			f->act = a;
			f->seed = draw(~m.seed, nr);
			return;
		}
	}
}

bool
sn_lost(const struct sn_ctx *ctx)
{
	return sn_self.fab && (atomic_load(&sn_port(ctx)->down) & FAB_DOWN_LOST || sn_dead(ctx));
}

int
sn_refused(struct ibv_context *context, enum fab_op op, uint64_t len)
{
	return sn_lost(sn_ctx(context)) ? EIO : sn_refused_by_rule(context, op, len);
}

int
sn_refused_by_rule(struct ibv_context *context, enum fab_op op, uint64_t len)
{
	struct sn_ctx *ctx = sn_ctx(context);

	/* Address handles are the kernel's; a target is created by the command that all queue pairs are. */
	if (op != FAB_OP_CREATE_AH && op != FAB_OP_CREATE_DCT)
		sn_sleep_ns(atomic_load_explicit(&sn_self.fab->call_ns, memory_order_relaxed));
	if (!(sn_active() & FAB_ACTIVE_RULES))
		return 0;
	for (int i = 0; i < FAB_RULES; i++) {
		struct fab_match m;
		struct fab_act a;
		uint32_t id;

		if (!read_rule(i, &id, &m, &a) || !is_for(&m, op, ctx->dev->index, len))
			continue;
		/* No queue pair is in it, so the order is that of all calls. */
		if (!hits(&sn_self.fab->rule[i], &m, (uint32_t)atomic_load(&sn_self.fab->rule[i].seen)))
			continue;
		for (uint64_t end = sn_now_ns() + a.delay_ns, now;
		     (now = sn_now_ns()) < end && rule_there(id);)
			sn_sleep_ns(end - now < SN_NAP_NS ? end - now : SN_NAP_NS);
		return (int)a.error;
	}

	return 0;
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
			uint64_t t = l ^ (draw(seed + round, r) & mask);

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

/* A parked queue pair whose rule is gone goes on at once.
 * While it is in the heap nobody writes its fault. */
void
sn_fault_release(struct sn_ctx *ctx)
{
	for (;;) {
		struct sn_qp *qp = NULL;

		pthread_mutex_lock(&ctx->lock);
		for (uint32_t i = 0; i < ctx->heap_nr && !qp; i++) {
			qp = ctx->heap[i];
			if (!qp->fault.rule || rule_there(qp->fault.rule))
				qp = NULL;
		}
		if (qp)
			qp->pins++;
		pthread_mutex_unlock(&ctx->lock);
		if (!qp)
			return;
		pthread_mutex_lock(&qp->lock);
		sn_engine_unpark(qp);
		sn_engine_kick(qp);
		pthread_mutex_unlock(&qp->lock);
		sn_engine_unpin(qp);
	}
}
