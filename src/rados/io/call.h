/* SPDX-License-Identifier: Apache-2.0 */
/* One call of librados: sent from the thread of a port, which receives the end as a message (call.c). */
#ifndef GANTRY_RADOS_IO_CALL_H
#define GANTRY_RADOS_IO_CALL_H

#include "base/list.h"
#include "rados/io/codec.h"
#include "rados/io/pool.h"

struct rport;
struct rstore;

struct call {
	struct msg msg;
	struct rport *port;
	const void *asker; /* owner of the operation: the port's asker when the call began */
	rados_completion_t comp;
	void (*back)(struct call *c); /* runs on the thread of the port, after result is set */
	int result;
	uint64_t begun_ns;
	struct list link; /* link in the port's calls */
	enum pool pool;
	enum disk_io io;
	uint64_t bytes; /* payload, for the counters */
	bool is_cancelled;
	char name[64]; /* name of the object */
};

/* The calls to a pool that have been in progress for longer than a given time. */
struct waiting {
	uint32_t nr;
	uint64_t oldest_ns; /* start of the oldest call; 0: none */
	char name[64];
};
void calls_waiting(struct rstore *st, enum pool pool, uint64_t longer_ns, struct waiting *ret_waiting);
/* Aborts the reads of the index for this asker that have taken longer than older_ns, as store_give_up()
 * does. On the thread of the port. */
void calls_give_up(struct store_port *sp, const void *asker, uint64_t older_ns);
/* Returns true if an operation, or the write of this gateway's row, has waited for longer_ns, and no
 * operation was answered in this time. Any thread. */
bool calls_are_stuck(struct rstore *st, uint64_t longer_ns);

/* Sends an operation, and releases it. back() always runs, after the return. */
void call_read(struct rport *p, struct call *c, enum pool pool, const char *name, rados_read_op_t op,
	       uint64_t bytes, void (*back)(struct call *c));
void call_write(struct rport *p, struct call *c, enum pool pool, const char *name, rados_write_op_t op,
		uint64_t bytes, void (*back)(struct call *c));
/* Cancels a call, if its answer has not come. Returns true if back() will run soon, with -ETIMEDOUT or the
 * answer; false: no change. */
bool call_cancel(struct call *c);
/* Removes the data objects of an id; no caller waits for the end. end_id: gateway_id_over() is called
 * after the last removal. */
void data_remove(struct rport *p, struct rid id, uint64_t size_bytes, bool end_id);
/* Removes the map of an id in the same way, and calls gateway_id_over(). */
void map_remove(struct rport *p, struct rid id);
/* Translates an error of librados to one of store.h. */
int result_of(int r);

#endif
