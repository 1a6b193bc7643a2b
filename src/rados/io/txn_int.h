/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the transactions: the calls between txn.c and shard.c. */
#ifndef GANTRY_RADOS_IO_TXN_INT_H
#define GANTRY_RADOS_IO_TXN_INT_H

#include "rados/io/txn.h"

/* ---- shard.c ---- */

/* Adds a decided change to the queue of its shard, and sends a batch if no operation on the shard is in
 * progress. One of the messages below follows. On the thread of the port. */
void shard_enqueue(struct txn *t);

/* ---- txn.c: messages from the queue to the port of a change, which the queue no longer has ---- */

/* Ends a change that exceeds the quota. If it was decided on a cached record, it is first decided again on its keys. */
void txn_on_refused(struct msg *m);
/* Decides a change again, on the values of an earlier change of the same keys. */
void txn_on_decide_again(struct msg *m);
/* Ends a change with the result of its batch, or repeats it after a lost batch. */
void txn_on_sent(struct msg *m);

#endif
