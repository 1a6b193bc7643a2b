/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inbox of this process: requests of senders for receives of our queue pairs, and answers to the requests of our own queue pairs
 * (struct fab_msg). A thread reads it; threads that poll a completion queue read it, too, so that a message between two pollers
 * needs no other thread. An entry is taken by an atomic exchange, so any number of threads may read.
 */
#include "softnic/engine.h"
#include "softnic/message.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Queue pairs of this process, by the index of their slot. */
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sn_qp *own[FAB_QPS];

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool started;
static _Atomic uint32_t read_bell; /* value of inbox_bell at the begin of the last reading */

void
sn_mail_add(struct sn_qp *qp)
{
	pthread_mutex_lock(&own_lock);
	own[qp->qpn % FAB_QPS] = qp;
	pthread_mutex_unlock(&own_lock);
}

void
sn_mail_remove(struct sn_qp *qp)
{
	pthread_mutex_lock(&own_lock);
	if (own[qp->qpn % FAB_QPS] == qp)
		own[qp->qpn % FAB_QPS] = NULL;
	pthread_mutex_unlock(&own_lock);
}

/* NULL: there is no such queue pair. sn_engine_unpin() ends the use. */
static struct sn_qp *
pin(uint32_t qpn)
{
	struct sn_qp *qp;

	pthread_mutex_lock(&own_lock);
	qp = own[qpn % FAB_QPS];
	if (qp && qp->qpn == qpn) {
		pthread_mutex_lock(&qp->ctx->lock);
		qp->pins++;
		pthread_mutex_unlock(&qp->ctx->lock);
	} else {
		qp = NULL;
	}
	pthread_mutex_unlock(&own_lock);

	return qp;
}

/* The receiver has answered: the next step of our message. */
static void
resume(uint32_t qpn)
{
	struct sn_qp *qp = pin(qpn);

	if (!qp)
		return;
	pthread_mutex_lock(&qp->lock);
	if (qp->send.waiting) {
		sn_engine_unpark(qp);
		sn_qp_run(qp, 1);
		sn_engine_kick(qp);
	}
	pthread_mutex_unlock(&qp->lock);
	sn_engine_unpin(qp);
}

/*
 * A sender that withdraws its request waits while the request is BUSY, with its qp->lock held. So no lock of a queue pair may be waited for
 * here: if it is taken, the request is given back for a moment.
 */
static void
receive(uint32_t from, struct fab_msg *m)
{
	uint32_t busy = from << 8 | FAB_MSG_BUSY, s = atomic_load(&m->state), was;
	struct sn_qp *qp;

	for (;;) {
		if (s != (from << 8 | FAB_MSG_TAKE) && s != (from << 8 | FAB_MSG_PUT))
			return;
		was = s;
		if (!atomic_compare_exchange_strong(&m->state, &s, busy))
			continue;
		qp = pin(m->to_qpn);
		if (!qp || pthread_mutex_trylock(&qp->lock) == 0)
			break;
		sn_engine_unpin(qp);
		s = busy;
		if (!atomic_compare_exchange_strong(&m->state, &s, was))
			return;
		sched_yield();
		s = atomic_load(&m->state);
	}
	m->result = FAB_MSG_NOBODY;
	if (qp)
		sn_rx_request(qp, from, (was & 0xff) == FAB_MSG_PUT, m);
	atomic_compare_exchange_strong(&m->state, &busy, from << 8 | FAB_MSG_ANSWERED);
	if (!qp)
		return;
	if (qp->state == IBV_QPS_ERR)
		sn_qp_run(qp, 0);
	pthread_mutex_unlock(&qp->lock);
	sn_engine_unpin(qp);
}

static void
read_one(uint32_t from)
{
	struct fab_qp *q = &sn_self.fab->qp[from % FAB_QPS];
	uint32_t owner = atomic_load(&q->owner);

	if (owner == 0 || owner > FAB_PROCS)
		return;
	receive(from, &q->msg);
	if (atomic_load(&q->msg.state) != (from << 8 | FAB_MSG_ANSWERED))
		return;
	/* If its inbox is full, the sender finds the answer at its next look. */
	if (owner == sn_self.index + 1)
		resume(from);
	else
		sn_mail_post(&sn_self.fab->proc[owner - 1], from);
}

static bool
read_all(void)
{
	struct fab_proc *p = sn_self.proc;
	bool got = false;

	atomic_store(&read_bell, atomic_load(&p->inbox_bell));
	for (uint32_t i = 0; i < FAB_INBOX; i++) {
		uint32_t qpn = atomic_load_explicit(&p->inbox[i], memory_order_relaxed);

		if (qpn && (qpn = atomic_exchange(&p->inbox[i], 0)) != 0) {
			got = true;
			read_one(qpn);
		}
	}

	return got;
}

bool
sn_mail_assist(void)
{
	if (!atomic_load_explicit(&started, memory_order_relaxed) ||
	    atomic_load_explicit(&sn_self.proc->inbox_bell, memory_order_relaxed) ==
		    atomic_load_explicit(&read_bell, memory_order_relaxed))
		return false;

	return read_all();
}

static void *
reader(void *arg)
{
	struct fab_proc *p = arg;

	pthread_setname_np(pthread_self(), "softnic-inbox");
	for (;;) {
		uint32_t bell = atomic_load(&p->inbox_bell);

		read_all();
		syscall(SYS_futex, &p->inbox_bell, FUTEX_WAIT, bell, NULL, NULL, 0);
	}

	return NULL;
}

void
sn_mail_start(void)
{
	pthread_attr_t at;
	sigset_t all, old;
	pthread_t t;

	if (atomic_load_explicit(&started, memory_order_acquire))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&at);
	pthread_attr_setdetachstate(&at, PTHREAD_CREATE_DETACHED);
	pthread_mutex_lock(&start_lock);
	if (!started && pthread_create(&t, &at, reader, sn_self.proc) == 0) {
		atomic_store(&started, true);
		atomic_store(&sn_self.proc->inbox_on, 1);
	}
	pthread_mutex_unlock(&start_lock);
	pthread_attr_destroy(&at);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void
sn_mail_forget(void)
{
	pthread_mutex_init(&own_lock, NULL);
	pthread_mutex_init(&start_lock, NULL);
	atomic_store(&started, false);
}
