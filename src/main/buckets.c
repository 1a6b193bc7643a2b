/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon does to buckets by itself: it makes those that listeners name (a scality listener's keys live in one,
 * and its dialect has no way to make it), once, between opening the store and starting the cores; and it sets their
 * quotas when an operator says so, on the thread of slow control calls.  Each time it is a user of the store like a core,
 * with a ring, a mailbox and timers of its own.
 */
#include "main/daemon.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "ring/ring.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct maker {
	struct ring *ring;
	struct mailbox mb;
	struct timers timers;
	struct store_port *port;
	struct store_stat stat; /* the bucket being looked for */
	struct store_del op;    /* ... or made */
	struct store_bucket_set set;
	bool done;
};

static void
on_made(struct store_op *op)
{
	struct maker *m = container_of(op, struct maker, op.op);

	m->done = true;
}

static void
on_seen(struct store_op *op)
{
	struct maker *m = container_of(op, struct maker, stat.op);

	m->done = true;
}

static void
on_set(struct store_op *op)
{
	struct maker *m = container_of(op, struct maker, set.op);

	m->done = true;
}

static void
turn(struct maker *m)
{
	/* The mailbox is looked at each time round, so nobody has to ring. */
	check(ring_turn(m->ring, NS_PER_MS) >= 0);
	mailbox_run(&m->mb, 0);
	timers_run(&m->timers, clock_ns());
	store_quiesce(m->port);
}

/* Waits for what was started with r: 0 or -errno. */
static int
finish(struct maker *m, int r, const struct store_op *op)
{
	if (r < 0)
		return r;
	while (r == 0 && !m->done)
		turn(m);
	m->done = false;
	return op->result;
}

/* 0 or -errno. */
static int
make_bucket(struct maker *m, const char *name)
{
	size_t len = strlen(name);
	int r;

	m->stat.op.done = on_seen;
	r = finish(m, store_bucket_head(m->port, name, len, &m->stat), &m->stat.op);
	if (r != -ENXIO)
		return r;
	memset(&m->op, 0, sizeof m->op);
	m->op.op.done = on_made;
	r = finish(m, store_bucket_create(m->port, name, len, &m->op), &m->op.op);
	if (r == -EEXIST)
		return 0;
	if (r == 0)
		log_note("made bucket %s", name);
	return r;
}

static int
make_all(struct maker *m, const void *what)
{
	const struct conf *conf = what;
	int r = 0;

	for (int i = 0; i < conf->listen_nr && r >= 0; i++) {
		if (conf->listen[i].dialect != DIALECT_SCALITY)
			continue;
		r = make_bucket(m, conf->listen[i].bucket);
		/* A store that is full or failed is served all the same, so that it can be read and emptied. */
		if (r == -ENOSPC || r == -EAGAIN || r == -EROFS) {
			log_warn("cannot make bucket %s of listener %s: %s", conf->listen[i].bucket,
				 conf->listen[i].address, strerror(-r));
			r = 0;
		}
		if (r < 0)
			log_error("cannot make bucket %s of listener %s: %s", conf->listen[i].bucket,
				  conf->listen[i].address, strerror(-r));
	}
	return r;
}

/* Does fn() as a user of the store: 0 or -errno. */
static int
with_port(struct store *store, int (*fn)(struct maker *m, const void *what), const void *what)
{
	/* Too large for a stack, with all its operations. */
	struct maker *m = calloc(1, sizeof *m);
	bool have_mailbox = false;
	int r;

	if (!m)
		return -ENOMEM;
	r = ring_new(&(struct ring_params){ .entries = 32 }, &m->ring);
	if (r == 0) {
		r = mailbox_init(&m->mb);
		have_mailbox = r == 0;
	}
	if (r == 0)
		r = store_attach(store, m->ring, &m->mb, &m->timers, &m->port);
	if (r < 0)
		log_error("cannot use the store: %s", strerror(-r));
	else
		r = fn(m, what);
	while (m->port && !store_detach(m->port))
		turn(m);
	if (have_mailbox)
		mailbox_fini(&m->mb);
	if (m->ring)
		ring_free(m->ring);
	free(m);
	return r;
}

int
daemon_make_buckets(const struct conf *conf, struct store *store)
{
	return with_port(store, make_all, conf);
}

struct wish {
	const char *name;
	const struct store_use *max;
};

static int
set_quota(struct maker *m, const void *what)
{
	const struct wish *w = what;

	m->set.op.done = on_set;
	return finish(m, store_bucket_set_quota(m->port, w->name, strlen(w->name), w->max, &m->set),
		      &m->set.op);
}

int
daemon_set_bucket_quota(struct store *store, const char *name, const struct store_use *max)
{
	return with_port(store, set_quota, &(struct wish){ name, max });
}
