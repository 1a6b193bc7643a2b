/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, which use a receive of their target: the sender (send.c), and the inbox of this process (mail.c, inbox.c). */
#ifndef SOFTNIC_MESSAGE_H
#define SOFTNIC_MESSAGE_H

#include "softnic/softnic.h"

/* Executes a step (sn_step()), or a step for some bytes (sn_piece()), of any work request: for SEND and RDMA writes with
 * immediate data the steps of the message (send.c), otherwise sn_exec_step() and sn_exec_piece(). */
enum sn_step sn_step(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *ret_out);
enum sn_step sn_piece(struct sn_qp *qp, const struct sn_wqe *w, uint64_t at, uint64_t len, uint64_t flip_at,
		      struct sn_outcome *ret_out);
/* Ends a message whose bytes have arrived: the receiver gets its completion. Returns SN_STEP_DONE at the end, at once
 * for other work requests. */
enum sn_step sn_send_deliver(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *ret_out);
/* Returns true if the receiver has answered the request of the message. */
bool sn_send_answered(const struct sn_qp *qp);
/* Withdraws the message because its work request ends early. The caller holds qp->lock, and busy is false or the
 * caller is the executor. */
void sn_send_cancel(struct sn_qp *qp);

/* Starts the thread that reads the inbox of this process (fab_proc.inbox), once. */
void sn_mail_start(void);
void sn_mail_add(struct sn_qp *qp); /* Adds a queue pair to those that the reader of the inbox finds. */
void sn_mail_remove(struct sn_qp *qp);
bool sn_mail_assist(void); /* Reads the inbox on a thread that polls. Returns true if there were entries. */
void sn_mail_forget(void); /* Forgets the thread in a forked child. */
/* Enters a queue pair into the inbox of a process. Returns false if the inbox is full. */
bool sn_mail_post(struct fab_proc *p, uint32_t qpn);

#endif
