/*
 * Parts that not every request has: what changes the store, the body of an error, what an operation needs
 * beyond struct req; and the share of a core's memory that texts may take.  A core's thread.
 *
 * Pools are made at start, as large as limits.requests wants, and never grow: memory that was not used yet is
 * address space only, and what came back last is given out first.  An empty pool is FAULT_BUSY to a request.
 */
#include "req/machine.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- one pool ---- */

struct part_free {
	struct part_free *next;
};

static int
pool_init(struct part_pool *p, size_t bytes, int nr)
{
	/* Zeroed by the kernel when a page is first used, not here. */
	p->mem = calloc((size_t)nr, bytes);
	if (!p->mem)
		return -ENOMEM;
	p->bytes = bytes;
	p->nr = nr;
	return 0;
}

static void *
pool_get(struct part_pool *p)
{
	struct part_free *f = p->free;

	if (!f && p->begun == p->nr)
		return NULL;
	p->used++;
	if (!f)
		return p->mem + (size_t)p->begun++ * p->bytes;
	p->free = f->next;
	return f;
}

static void
pool_put(struct part_pool *p, void *part)
{
	struct part_free *f = part;

	if (!part)
		return;
	check(p->used > 0);
	p->used--;
	f->next = p->free;
	p->free = f;
}

/* ---- those of a core ---- */

int
parts_init(struct reqs *rs, int nr)
{
	const struct {
		size_t bytes;
		int nr;
	} pool[POOL_NR] = {
		[POOL_CHANGE] = { sizeof(struct req_change), nr },
		[POOL_ERROR] = { REQ_ERROR_BYTES, nr },
		[POOL_JOB] = { REQ_JOB_BYTES, nr },
		[POOL_LARGE_JOB] = { REQ_LARGE_JOB_BYTES, (nr + 3) / 4 },
	};

	for (int i = 0; i < POOL_NR; i++) {
		if (pool_init(&rs->parts[i], pool[i].bytes, pool[i].nr) < 0) {
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
		check(rs->parts[i].used == 0);
		free(rs->parts[i].mem);
		rs->parts[i].mem = NULL;
	}
}

/* ---- those of a request ---- */

static struct req_change *
change_get(struct req *rq, bool is_put)
{
	struct req_change *c = rq->change;

	if (!c)
		c = pool_get(&rq->rs->parts[POOL_CHANGE]);
	if (!c)
		return NULL;
	/* Of a second change of the same request: the first one is over. */
	check(!rq->change || c->is_put == is_put);
	c->rq = rq;
	c->is_put = is_put;
	rq->change = c;
	return c;
}

struct store_put *
req_put_part(struct req *rq)
{
	bool is_new = !rq->change;
	struct req_change *c = change_get(rq, true);

	if (c && is_new)
		c->put.is_started = false;
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
	if (!rq->error)
		rq->error = pool_get(&rq->rs->parts[POOL_ERROR]);
	return rq->error;
}

void *
req_job(struct req *rq, size_t bytes, void (*fini)(struct req *rq))
{
	check(!rq->job);
	check(bytes <= REQ_LARGE_JOB_BYTES);
	rq->job_pool = bytes <= REQ_JOB_BYTES ? POOL_JOB : POOL_LARGE_JOB;
	rq->job = pool_get(&rq->rs->parts[rq->job_pool]);
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
	struct part_pool *pool = rq->rs->parts;

	if (rq->job && rq->job_fini)
		rq->job_fini(rq);
	pool_put(&pool[rq->job_pool], rq->job);
	if (rq->change && rq->change->is_put)
		store_put_abort(rq->rs->env.store, &rq->change->put);
	pool_put(&pool[POOL_CHANGE], rq->change);
	pool_put(&pool[POOL_ERROR], rq->error);
	free(rq->body);
	free(rq->cors);
	text_free(&rq->out);
	rq->rs->text_bytes -= rq->text_held;
}
