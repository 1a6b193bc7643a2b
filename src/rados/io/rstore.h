/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on RADOS, and its ports.
 *
 * The headers of this folder are internal to the store: each has the declarations for the files that do I/O and
 * keep one part of the index; use/use_int.h has those for objects, uploads and lists. The reference is
 * docs/rados.md, which numbers the rules.
 *
 * Threads. All steps of an operation run on the thread of its port. Threads of librados only carry results:
 * its callbacks store a result and post a message (call.c). The ports share the queues of the shards and the
 * cache of buckets (each with a lock that is held for a few instructions, and never across a call of
 * librados), and the counters of the gateway. Calls that may block run on helper threads (base/periodic.h),
 * or at start and stop.
 */
#ifndef GANTRY_RADOS_IO_RSTORE_H
#define GANTRY_RADOS_IO_RSTORE_H

#include "base/check.h"
#include "base/list.h"
#include "base/periodic.h"
#include "rados/io/bucket.h"
#include "rados/io/gateway.h"
#include "rados/io/pool.h"
#include "rados/io/recall.h"
#include "store/ops.h"

#define BUCKET_HASH 256

struct rstore {
	struct store base;
	struct client client[CLIENTS_MAX];
	int client_nr;
	uint32_t index_shards;
	uint64_t dead_after_ns;
	char meta_pool[64], data_pool[64], ns[64];
	struct store_limits limits;
	int ports_max;
	_Atomic int port_nr, port_made;
	pthread_mutex_t ports_lock;
	struct list ports;           /* list of struct rport */
	_Atomic uint64_t monitor_ns; /* time of the last answer of the monitors */
	struct pool_stats stats[POOL_NR];
	/* Memory of PUTs without an answer of the cluster: the PUTs, and librados' copies of their data,
	 * also if no client waits any longer. The second field is the limit. */
	_Atomic uint64_t unwritten_bytes;
	uint64_t unwritten_max_bytes;
	struct rshard buckets; /* the table of buckets */
	pthread_mutex_t cache_lock;
	struct rbucket *cache[BUCKET_HASH];
	uint32_t cache_nr;
	_Atomic uint64_t bucket_serial;
	_Atomic uint64_t change_nr; /* number of operations sent to shards; each gets the next number */
	struct gateway gw;
	struct recall_table recall;
	/* numbers of parallel reads that were used, and that were dropped */
	_Atomic uint64_t ahead_right, ahead_wrong;
	struct quota_book *book;
	_Atomic uint64_t usage_turn; /* number of the turn of usage.c */
	struct periodic usage;
	/* index of the cached bucket with which the next turn begins to read buckets without limits */
	uint32_t usage_next;
};

struct rport {
	struct store_port base;
	struct rstore *st;
	struct client *client;
	struct mailbox *mb;
	uint32_t inflight; /* number of operations of callers and of own calls in progress */
	pthread_mutex_t calls_lock;
	struct list calls;        /* list of struct call in progress, oldest first */
	struct list link;         /* link in the store's ports */
	struct ahead *ahead_free; /* free buffers of parallel reads of one granule */
	uint32_t ahead_nr;        /* number of all these buffers */
	uint32_t ahead_large_nr;  /* number of parallel reads into buffers from store_spares */
	struct buf *spares_back;  /* buffers that spares_msg returns to their lender, linked by next */
	struct msg spares_msg;
	_Atomic uint64_t answered_ns; /* time of the last answer of the cluster */
};

static inline struct rstore *
rstore(const struct store *st)
{
	return container_of(st, struct rstore, base);
}

static inline struct rport *
rport(struct store_port *p)
{
	return container_of(p, struct rport, base);
}

/* Ends an operation: calls its done(). On the thread of the port. */
static inline void
rop_end(struct rport *p, struct store_op *op, int result)
{
	check(p->inflight > 0 && op->done);
	op->result = result;
	p->inflight--;
	op->done(op);
}

#endif
