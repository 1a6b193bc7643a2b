/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optional blocks of memory of requests: for a change of the store, for the body of an error reply, and for
 * the data of an operation. Also the share of a core's memory that texts may take. Runs on a core's thread.
 *
 * The pools of blocks are made at start, as large as limits.requests requires, and never grow: memory that
 * was not used yet is only address space, and the block returned last is taken first. If its pool is empty,
 * a request fails with FAULT_BUSY.
 */
#include "req/machine.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the pools of a core ---- */

int
parts_init(struct reqs *rs, int nr)
{
	static const size_t bytes[POOL_NR] = {
		[POOL_CHANGE] = sizeof(struct req_change),
		[POOL_ATTRS] = DIALECT_ATTRS_MAX,
		[POOL_COPY] = sizeof(struct copy_source),
		[POOL_LIST] = sizeof(struct list_query),
		[POOL_ERROR] = REQ_ERROR_BYTES,
		[POOL_JOB] = REQ_JOB_BYTES,
		[POOL_LARGE_JOB] = REQ_LARGE_JOB_BYTES,
	};

	for (int i = 0; i < POOL_NR; i++) {
		if (pool_init(&rs->parts[i], bytes[i], nr) < 0) {
			parts_fini(rs);
			return -ENOMEM;
		}
	}
	return 0;
}

void
parts_fini(struct reqs *rs)
{
	for (int i = 0; i < POOL_NR; i++) {
		pool_fini(&rs->parts[i]);
	}
}

/* ---- the blocks of a request ---- */

static void *
part_get(struct req *rq, enum req_pool pool)
{
	if (!rq->part[pool])
		rq->part[pool] = pool_get(&rq->rs->parts[pool]);
	return rq->part[pool];
}

/* Takes the block for a change. The block is used again for a second change of the request, when the first
 * change has ended. */
static struct req_change *
change_get(struct req *rq, bool is_put)
{
	struct req_change *c = part_get(rq, POOL_CHANGE);

	if (!c)
		return NULL;
	check(!rq->change || c->is_put == is_put);
	if (!rq->change && is_put)
		c->put.is_started = false;
	c->rq = rq;
	c->is_put = is_put;
	rq->change = c;
	return c;
}

struct store_put *
req_put_part(struct req *rq)
{
	struct req_change *c = change_get(rq, true);

	return c ? &c->put : NULL;
}

struct store_del *
req_del_part(struct req *rq)
{
	struct req_change *c = change_get(rq, false);

	return c ? &c->del : NULL;
}

char *
req_error_part(struct req *rq)
{
	rq->error = part_get(rq, POOL_ERROR);
	return rq->error;
}

void *
req_target_part(void *cookie, enum target_part part)
{
	return part_get(cookie, part == TARGET_ATTRS  ? POOL_ATTRS
				: part == TARGET_COPY ? POOL_COPY
						      : POOL_LIST);
}

void *
req_job(struct req *rq, size_t bytes, void (*fini)(struct req *rq))
{
	check(!rq->job);
	check(bytes <= REQ_LARGE_JOB_BYTES);
	rq->job = part_get(rq, bytes <= REQ_JOB_BYTES ? POOL_JOB : POOL_LARGE_JOB);
	if (!rq->job)
		return NULL;
	memset(rq->job, 0, bytes);
	rq->job_fini = fini;
	return rq->job;
}

int
req_hold_text(struct req *rq, size_t bytes)
{
	if (bytes > REQ_TEXT_TOTAL - rq->rs->text_bytes)
		return -EAGAIN;
	rq->rs->text_bytes += bytes;
	rq->text_held += bytes;
	return 0;
}

void
parts_release(struct req *rq)
{
	if (rq->job && rq->job_fini)
		rq->job_fini(rq);
	if (rq->change && rq->change->is_put)
		store_put_abort(rq->rs->env.store, &rq->change->put);
	for (int i = 0; i < POOL_NR; i++) {
		if (rq->part[i])
			pool_put(&rq->rs->parts[i], rq->part[i]);
	}
	free(rq->body);
	free(rq->cors);
	text_free(&rq->out);
	rq->rs->text_bytes -= rq->text_held;
}
