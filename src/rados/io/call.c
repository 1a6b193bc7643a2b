/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of librados: sent from the thread of a port, which receives the end as a message. A callback of
 * librados stores the result and posts the message; threads of librados do nothing else.
 */
#include "rados/io/call.h"

#include "base/check.h"
#include "base/clock.h"
#include "rados/io/rstore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
count(struct call *c)
{
	struct pool_stats *ps = &c->port->st->stats[c->pool];
	uint64_t ns = clock_ns() - c->begun_ns;

	latency_count(&ps->latency[c->io], ns);
	atomic_fetch_add_explicit(c->io == DISK_READ ? &ps->read_ops : &ps->write_ops, 1,
				  memory_order_relaxed);
	if (c->result >= 0)
		atomic_fetch_add_explicit(c->io == DISK_READ ? &ps->read_bytes : &ps->written_bytes, c->bytes,
					  memory_order_relaxed);
	if (c->result == -ENOSPC || c->result == -EDQUOT)
		atomic_store_explicit(&ps->refused_ns, clock_ns(), memory_order_relaxed);
	else if (c->result >= 0 && c->io == DISK_WRITE && c->bytes)
		atomic_store_explicit(&ps->refused_ns, 0, memory_order_relaxed);
	if (c->result == -EPERM || c->result == -EACCES)
		atomic_store_explicit(&ps->denied_ns, clock_ns(), memory_order_relaxed);
	if (c->result != -ECANCELED || !c->is_cancelled)
		atomic_store_explicit(&c->port->answered_ns, c->begun_ns + ns, memory_order_relaxed);
	/* These results are answers, not errors: an object or a value is absent or different. */
	if (c->result < 0 && c->result != -ENOENT && c->result != -ECANCELED && c->result != -EEXIST &&
	    c->result != -ENODATA)
		atomic_fetch_add_explicit(&ps->errors, 1, memory_order_relaxed);
}

static void
on_msg(struct msg *m)
{
	struct call *c = container_of(m, struct call, msg);
	struct rport *p = c->port;

	if (c->comp)
		rados_aio_release(c->comp);
	c->comp = NULL;
	pthread_mutex_lock(&p->calls_lock);
	list_del(&c->link);
	pthread_mutex_unlock(&p->calls_lock);
	count(c);
	if (c->is_cancelled && c->result == -ECANCELED)
		c->result = -ETIMEDOUT;
	if (c->result == -ESHUTDOWN) /* on the blocklist */
		gateway_fence(p->st);
	/* -ENOENT of a removed pool means nothing for the object. */
	if (c->result == -ENOENT &&
	    atomic_load_explicit(&p->st->stats[c->pool].is_gone, memory_order_relaxed))
		c->result = -ENODEV;
	check(p->inflight > 0);
	p->inflight--;
	/* Operations that back() starts have the same owner. */
	p->base.asker = c->asker;
	c->back(c);
	p->base.asker = NULL;
}

static void
on_complete(rados_completion_t comp, void *cookie)
{
	struct call *c = cookie;

	c->result = rados_aio_get_return_value(comp);
	mailbox_post(c->port->mb, &c->msg, on_msg);
}

/* Records the duration of a call of librados that began at begun_ns: the core was blocked for this time. */
static void
note_call(struct rport *p, enum pool pool, uint64_t begun_ns)
{
	_Atomic uint64_t *longest = &p->st->stats[pool].longest_call_ns;
	uint64_t ns = clock_ns() - begun_ns, was = atomic_load_explicit(longest, memory_order_relaxed);

	while (ns > was && !atomic_compare_exchange_weak_explicit(longest, &was, ns, memory_order_relaxed,
								  memory_order_relaxed)) {
	}
}

/* Sends a read, or (read NULL) a write. */
static void
call_send(struct rport *p, struct call *c, enum pool pool, const char *name, rados_read_op_t read,
	  rados_write_op_t write, uint64_t bytes, void (*back)(struct call *c))
{
	rados_ioctx_t io = p->client->io[pool];
	/* c->begun_ns is not valid after the send, because c may be used again */
	uint64_t begun_ns = clock_ns();
	int e;

	check(pool < POOL_NR && back && strlen(name) < sizeof c->name);
	c->port = p;
	c->asker = p->base.asker;
	c->back = back;
	c->pool = pool;
	c->io = read ? DISK_READ : DISK_WRITE;
	c->bytes = bytes;
	c->is_cancelled = false;
	c->begun_ns = begun_ns;
	p->inflight++;
	memccpy(c->name, name, 0, sizeof c->name - 1);
	pthread_mutex_lock(&p->calls_lock);
	list_push_tail(&p->calls, &c->link);
	pthread_mutex_unlock(&p->calls_lock);
	c->comp = NULL;
	e = rados_aio_create_completion2(c, on_complete, &c->comp);
	if (e == 0)
		e = read ? rados_aio_read_op_operate(read, io, c->comp, name, 0)
			 : rados_aio_write_op_operate(write, io, c->comp, name, NULL, 0);
	note_call(p, pool, begun_ns);
	if (e < 0) {
		c->result = e;
		mailbox_post(p->mb, &c->msg, on_msg);
	}
}

void
call_read(struct rport *p, struct call *c, enum pool pool, const char *name, rados_read_op_t op,
	  uint64_t bytes, void (*back)(struct call *c))
{
	call_send(p, c, pool, name, op, NULL, bytes, back);
	rados_release_read_op(op);
}

void
call_write(struct rport *p, struct call *c, enum pool pool, const char *name, rados_write_op_t op,
	   uint64_t bytes, void (*back)(struct call *c))
{
	call_send(p, c, pool, name, NULL, op, bytes, back);
	rados_release_write_op(op);
}

bool
call_cancel(struct call *c)
{
	uint64_t begun_ns;

	if (!c->comp || c->is_cancelled)
		return false;
	begun_ns = clock_ns();
	c->is_cancelled = rados_aio_cancel(c->port->client->io[c->pool], c->comp) == 0;
	note_call(c->port, c->pool, begun_ns);
	return c->is_cancelled;
}

/* ---- waiting calls ---- */

void
calls_waiting(struct rstore *st, enum pool pool, uint64_t longer_ns, struct waiting *ret_waiting)
{
	uint64_t now = clock_ns();

	*ret_waiting = (struct waiting){ 0 };
	pthread_mutex_lock(&st->ports_lock);
	list_for_each(l, &st->ports)
	{
		struct rport *p = container_of(l, struct rport, link);

		pthread_mutex_lock(&p->calls_lock);
		list_for_each(m, &p->calls)
		{
			const struct call *c = container_of(m, struct call, link);

			if (now - c->begun_ns < longer_ns)
				break;
			if (c->pool != pool)
				continue;
			ret_waiting->nr++;
			if (!ret_waiting->oldest_ns || c->begun_ns < ret_waiting->oldest_ns) {
				ret_waiting->oldest_ns = c->begun_ns;
				memcpy(ret_waiting->name, c->name, sizeof c->name);
			}
		}
		pthread_mutex_unlock(&p->calls_lock);
	}
	pthread_mutex_unlock(&st->ports_lock);
}

void
calls_give_up(struct store_port *sp, const void *asker, uint64_t older_ns)
{
	struct rport *p = rport(sp);
	uint64_t now = clock_ns();

	pthread_mutex_lock(&p->calls_lock);
	list_for_each(l, &p->calls)
	{
		struct call *c = container_of(l, struct call, link);

		if (now - c->begun_ns < older_ns)
			break;
		/* A write cannot be aborted. */
		if (c->asker == asker && c->io == DISK_READ && c->pool == POOL_META)
			call_cancel(c);
	}
	pthread_mutex_unlock(&p->calls_lock);
}

bool
calls_are_stuck(struct rstore *st, uint64_t longer_ns)
{
	uint64_t now = clock_ns(), answered_ns = 0, oldest_ns = UINT64_MAX;

	pthread_mutex_lock(&st->ports_lock);
	list_for_each(l, &st->ports)
	{
		struct rport *p = container_of(l, struct rport, link);
		uint64_t ns = atomic_load(&p->answered_ns);

		answered_ns = ns > answered_ns ? ns : answered_ns;
		pthread_mutex_lock(&p->calls_lock);
		if (!list_empty(&p->calls)) {
			ns = container_of(list_first(&p->calls), struct call, link)->begun_ns;
			oldest_ns = ns < oldest_ns ? ns : oldest_ns;
		}
		pthread_mutex_unlock(&p->calls_lock);
	}
	pthread_mutex_unlock(&st->ports_lock);
	/* The calls of a request may be aborted at its end; this gateway's row is written all the time. */
	if (atomic_load(&st->gw.last_beat_ns) < oldest_ns)
		oldest_ns = atomic_load(&st->gw.last_beat_ns);
	return oldest_ns + longer_ns <= now && answered_ns + longer_ns <= now;
}

int
result_of(int r)
{
	switch (r) {
	case -EDQUOT:
		return -ENOSPC;
	case -ETIMEDOUT:
		return -EAGAIN;
	case -EPERM:
	case -EACCES:
		return -ENODEV;
	default:
		return r;
	}
}

/* ---- removal of data objects ---- */

struct removal {
	struct call call;
	struct rid id;
	/* number of the next data object to remove; number of those that are not removed yet */
	uint32_t next, left;
	bool is_map, end_id;
};

static void on_removed(struct call *c);

static void
remove_next(struct rport *p, struct removal *r)
{
	rados_write_op_t op = rados_create_write_op();

	rados_write_op_remove(op);
	if (r->is_map)
		call_write(p, &r->call, POOL_META, map_name(r->id).text, op, 0, on_removed);
	else
		call_write(p, &r->call, POOL_DATA, data_name(r->id, r->next++).text, op, 0, on_removed);
}

static void
on_removed(struct call *c)
{
	struct removal *r = container_of(c, struct removal, call);
	struct rport *p = c->port;

	check(r->left > 0);
	if (--r->left) {
		remove_next(p, r);
		return;
	}
	if (r->end_id)
		gateway_id_over(p->st, r->id);
	free(r);
}

void
data_remove(struct rport *p, struct rid id, uint64_t size_bytes, bool end_id)
{
	uint64_t each = p->st->gw.format.object_bytes;
	struct removal *r = size_bytes ? malloc(sizeof *r) : NULL;

	if (!r) {
		/* Without memory the objects and the id stay, for the gateway that cleans up after this
		 * one. */
		if (end_id && !size_bytes)
			gateway_id_over(p->st, id);
		return;
	}
	check(each > 0);
	*r = (struct removal){ .id = id,
			       .left = (uint32_t)((size_bytes + each - 1) / each),
			       .end_id = end_id };
	remove_next(p, r);
}

void
map_remove(struct rport *p, struct rid id)
{
	struct removal *r = malloc(sizeof *r);

	/* Without memory the map and the id stay. */
	if (!r)
		return;
	*r = (struct removal){ .id = id, .left = 1, .is_map = true, .end_id = true };
	remove_next(p, r);
}
