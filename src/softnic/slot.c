/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claim and release of queue pair and memory region slots, the liveness of other processes, and the
 * hazard words that keep a slot from being reused under a running transfer.  Called by qp.c and mr.c
 * (any application thread) and by exec.c (engine, assisting or posting thread).
 */
#include "softnic/softnic.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct sn_self sn_self = { .fd = -1 };

/* Executors of this process: one bit each is taken while a step runs; seq is odd then. */
static _Atomic uint64_t exec_taken;
static _Atomic uint32_t exec_seq[FAB_HZ];

/* The process of a slot, as far as we know it.  ok_ns and serial are read without the lock. */
struct peer {
	_Atomic uint64_t serial;
	_Atomic uint64_t ok_ns;
	int pidfd; /* 0: none */
};
static struct peer peers[FAB_PROCS];
static pthread_mutex_t peer_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- liveness ---- */

static void
peer_meet(struct peer *pe, const struct fab_proc *p, uint64_t serial)
{
	if (pe->pidfd > 0)
		close(pe->pidfd);
	pe->pidfd = fab_proc_alive(p) ? (int)syscall(SYS_pidfd_open, p->pid, 0) : -1;
	atomic_store(&pe->ok_ns, 0);
	atomic_store(&pe->serial, serial);
}

bool
sn_peer_alive(uint32_t index, uint64_t now_ns, bool exact)
{
	const struct fab_proc *p = &sn_self.fab->proc[index];
	struct peer *pe = &peers[index];
	uint64_t serial = p->serial;
	bool alive;

	if (index == sn_self.index)
		return true;
	if (atomic_load(&p->state) != FAB_PROC_LIVE)
		return false;
	if (!exact && atomic_load(&pe->serial) == serial && now_ns - atomic_load(&pe->ok_ns) < 1000000)
		return true;
	pthread_mutex_lock(&peer_lock);
	if (atomic_load(&pe->serial) != serial)
		peer_meet(pe, p, serial);
	struct pollfd pfd = { .fd = pe->pidfd, .events = POLLIN };

	alive = pe->pidfd > 0 && poll(&pfd, 1, 0) == 0;
	if (alive)
		atomic_store(&pe->ok_ns, now_ns);
	pthread_mutex_unlock(&peer_lock);

	return alive;
}

/* ---- slots ---- */

struct fab_qp *
sn_qp_claim(uint32_t *ret_qpn)
{
	struct fabric *f = sn_self.fab;

	for (uint32_t n = 0; n < FAB_QPS; n++) {
		uint32_t i = (uint32_t)(atomic_fetch_add(&f->qp_next, 1) % FAB_QPS), none = 0;
		struct fab_qp *q = &f->qp[i];

		if (i < FAB_QP_FIRST || atomic_load_explicit(&q->owner, memory_order_relaxed) != 0 ||
		    !atomic_compare_exchange_strong(&q->owner, &none, sn_self.index + 1))
			continue;
		q->gen = (q->gen + 1) & 0xff;
		atomic_store(&q->poke, 0);
		atomic_store(&q->msg.state, FAB_MSG_FREE);
		*ret_qpn = q->gen << 16 | i;
		return q;
	}

	return NULL;
}

struct fab_mr *
sn_mr_claim(uint32_t *ret_key)
{
	struct fabric *f = sn_self.fab;

	for (uint32_t n = 0; n < FAB_MRS; n++) {
		uint32_t i = (uint32_t)(atomic_fetch_add(&f->mr_next, 1) % FAB_MRS), none = 0;
		struct fab_mr *m = &f->mr[i];

		if (i < FAB_MR_FIRST || atomic_load_explicit(&m->owner, memory_order_relaxed) != 0 ||
		    !atomic_compare_exchange_strong(&m->owner, &none, sn_self.index + 1))
			continue;
		m->gen = (m->gen + 1) & 0xff;
		*ret_key = i << 8 | m->gen;
		return m;
	}

	return NULL;
}

/*
 * Waits while a live process has the key as a hazard.  A step is at most SN_STEP_BYTES, so this is short,
 * unless the initiator is stopped (SIGSTOP, debugger) inside one: then we wait for it, since it may still
 * write when continued.
 */
static void
wait_unused(uint32_t key, enum fab_hz kind)
{
	struct fabric *f = sn_self.fab;
	uint32_t procs = atomic_load(&f->proc_high);

	for (uint32_t i = 0; i < procs; i++) {
		struct fab_proc *p = &f->proc[i];
		uint32_t n = atomic_load(&p->hz_high);
		unsigned rounds = 0;

		for (uint32_t x = 0; x < n; x++) {
			while (atomic_load(&p->hz[x][kind]) == key &&
			       atomic_load(&p->state) == FAB_PROC_LIVE) {
				const struct timespec nap = { .tv_nsec = 50000 };

				/* A yield may last as long as everybody else's turn. */
				if (++rounds <= 8)
					sched_yield();
				else
					nanosleep(&nap, NULL);
				if (rounds % 8 == 0 && !sn_peer_alive(i, sn_now_ns(), true))
					break;
			}
		}
	}
}

void
sn_qp_quiesce(uint32_t qpn)
{
	wait_unused(qpn, FAB_HZ_QP);
}

void
sn_qp_release(struct fab_qp *q, uint32_t qpn)
{
	atomic_store(&q->qpn, 0);
	wait_unused(qpn, FAB_HZ_QP);
	atomic_store(&q->owner, 0);
}

void
sn_mr_release(struct fab_mr *m, uint32_t key)
{
	atomic_store(&m->key, 0);
	if (!sn_conf.no_hazard) {
		wait_unused(key, FAB_HZ_MR);
		sn_exec_quiesce(); /* as somebody's local buffer */
	}
	atomic_store(&m->owner, 0);
}

/* ---- executors ---- */

int
sn_exec_enter(void)
{
	for (;;) {
		uint64_t taken = atomic_load(&exec_taken);
		int x = taken == UINT64_MAX ? -1 : __builtin_ctzll(~taken);

		if (x < 0) {
			sched_yield(); /* 64 threads of this process are copying already */
			continue;
		}
		if (!atomic_compare_exchange_weak(&exec_taken, &taken, taken | 1ull << x))
			continue;
		uint32_t high = atomic_load(&sn_self.proc->hz_high);

		while (high <= (uint32_t)x &&
		       !atomic_compare_exchange_weak(&sn_self.proc->hz_high, &high, (uint32_t)x + 1))
			;
		atomic_fetch_add(&exec_seq[x], 1);
		return x;
	}
}

void
sn_exec_leave(int x)
{
	atomic_store_explicit(&sn_self.proc->hz[x][FAB_HZ_MR], 0, memory_order_release);
	atomic_store_explicit(&sn_self.proc->hz[x][FAB_HZ_QP], 0, memory_order_release);
	atomic_fetch_add(&exec_seq[x], 1);
	atomic_fetch_and(&exec_taken, ~(1ull << x));
}

/*
 * Look first, publish, look again.  Without the first look an initiator that hammers on a dead key would
 * publish it over and over and keep the owner from ever finishing its deregistration.
 */
struct fab_qp *
sn_exec_find_qp(int x, uint32_t qpn)
{
	struct fab_qp *q = &sn_self.fab->qp[qpn % FAB_QPS];

	if (qpn == 0 || atomic_load(&q->qpn) != qpn)
		return NULL;
	atomic_store(&sn_self.proc->hz[x][FAB_HZ_QP], qpn);

	return atomic_load(&q->qpn) == qpn ? q : NULL;
}

struct fab_mr *
sn_exec_find_mr(int x, uint32_t rkey)
{
	struct fab_mr *m = &sn_self.fab->mr[(rkey >> 8) % FAB_MRS];

	if (rkey == 0 || atomic_load(&m->key) != rkey)
		return NULL;
	atomic_store(&sn_self.proc->hz[x][FAB_HZ_MR], rkey);

	return atomic_load(&m->key) == rkey ? m : NULL;
}

struct fab_mr *
sn_find_own_mr(uint32_t lkey)
{
	struct fab_mr *m = &sn_self.fab->mr[(lkey >> 8) % FAB_MRS];

	if (lkey == 0 || atomic_load(&m->key) != lkey || atomic_load(&m->owner) != sn_self.index + 1)
		return NULL;

	return m;
}

void
sn_exec_quiesce(void)
{
	for (int x = 0; x < FAB_HZ; x++) {
		uint32_t seq = atomic_load(&exec_seq[x]);
		unsigned rounds = 0;

		while ((seq & 1) && atomic_load(&exec_seq[x]) == seq) {
			const struct timespec nap = { .tv_nsec = 50000 };

			if (++rounds <= 64)
				sched_yield();
			else
				nanosleep(&nap, NULL);
		}
	}
}

void
sn_slots_forget(void)
{
	pthread_mutex_init(&peer_lock, NULL);
	atomic_store(&exec_taken, 0);
	for (int i = 0; i < FAB_HZ; i++)
		atomic_store(&exec_seq[i], 0);
	for (int i = 0; i < FAB_PROCS; i++)
		atomic_store(&peers[i].serial, 0);
}
