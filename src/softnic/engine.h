/* SPDX-License-Identifier: Apache-2.0 */
/* The execution of work: the threads that execute it (engine.c), the queues of the engine (sched.c), and the work requests of
 * one queue pair (run.c). */
#ifndef SOFTNIC_ENGINE_H
#define SOFTNIC_ENGINE_H

#include "softnic/softnic.h"

/* ---- threads: engine.c ---- */

int sn_engine_start(struct sn_ctx *ctx); /* Starts the engine of a context, once. Returns 0 or -errno. */
void sn_engine_stop(struct sn_ctx *ctx);
/* Executes a step of work that has waited for sn_conf.assist_ns, or reads the inbox, on a thread that polls. Returns true if there was
 * any. */
bool sn_engine_assist(struct sn_ctx *ctx);

/* ---- the queues of the engine: sched.c ---- */

/* Tells the engine that the queue pair may have work. The caller holds qp->lock. */
void sn_engine_kick(struct sn_qp *qp);
/* Ends the wait of a parked queue pair. The caller holds qp->lock. */
void sn_engine_unpark(struct sn_qp *qp);
/* Removes the queue pair from the engine: after the return the engine has no pointer to it. The caller holds
 * no lock. */
void sn_engine_forget(struct sn_qp *qp);
/* Ends a use of a queue pair by the engine, which began when qp->pins was incremented under ctx->lock. The
 * caller holds no lock. */
void sn_engine_unpin(struct sn_qp *qp);
/* Parks a queue pair: none of its work is executed before until_ns. The caller holds qp->lock. Returns false if there is no memory. */
bool sn_engine_park(struct sn_qp *qp, uint64_t until_ns);
/* Returns true if the next work request of a queue pair can be executed now. The caller holds qp->lock. */
bool sn_engine_may_run(const struct sn_qp *qp);
/* Removes a queue pair from the timer heap (sn_heap_remove()), or from the run queue (sn_runq_remove()). The caller holds ctx->lock. */
void sn_heap_remove(struct sn_ctx *ctx, struct sn_qp *qp);
void sn_runq_remove(struct sn_ctx *ctx, struct sn_qp *qp);

/* ---- one queue pair: run.c ---- */

/* Executes at most `steps` steps of a queue pair. The caller holds qp->lock, which is released during
 * copies. */
void sn_qp_run(struct sn_qp *qp, unsigned steps);

#endif
