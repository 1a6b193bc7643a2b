/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of the process: found by id, counted by peer, made and closed on threads of their own, since the
 * kernel may look for an absent client for a second; see rc.h.  One lock, after which only dev->lock is taken.
 *
 * A connection without a lease has no work request, so it is closed at once whatever became of its device: step 2
 * of "contexts" in ep.h.  A leased connection is released by its core, and comes back here when it is destroyed.
 */
#define LOG_MODULE "rdma"
#include "rdma/rc_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define REAP_NS NS_PER_S

static void
count(_Atomic uint64_t *n)
{
	atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

/* ---- connections.  Under the lock. ---- */

static struct rc_conn *
find(const struct rc_table *t, const uint8_t id[RDMA_RC_ID_BYTES])
{
	list_for_each(l, rc_bucket(t, t->ids, id))
	{
		struct rc_conn *c = container_of(l, struct rc_conn, bucket);

		if (memcmp(c->id, id, RDMA_RC_ID_BYTES) == 0)
			return atomic_load(&c->spent) ? NULL : c;
	}
	return NULL;
}

/* Subtracts the connection from the counts of the limits. */
static void
uncount(struct rc_table *t, struct rc_conn *c)
{
	c->peer->conns--;
	t->conn_nr--;
}

/* Adds to the numbers of open connections: of all, and of the connection's rail. */
static void
count_open(struct rc_table *t, const struct rc_conn *c, int by)
{
	atomic_fetch_add(&t->stats.open, by);
	atomic_fetch_add(&rdma_rail_stats(t->rd->rail[c->rail])->rc_open, by);
}

/* Removes a connection from the ids that tokens find, and has a thread of the table close it. It counts no longer: the threads
 * close what is to be closed before they make another. why: counter of the reason. */
static void
close_later(struct rc_table *t, struct rc_conn *c, _Atomic uint64_t *why)
{
	uncount(t, c);
	c->why = why;
	c->state = RC_CLOSING;
	list_del(&c->bucket);
	list_del(&c->all);
	list_push_tail(&t->closing, &c->all);
	count_open(t, c, -1);
	sem_post(&t->more);
}

static void
reap(struct rc_table *t, uint64_t now)
{
	t->reap_ns = now + REAP_NS;
	list_for_each_safe(l, &t->all)
	{
		struct rc_conn *c = container_of(l, struct rc_conn, all);
		bool lost, idle;

		if (c->state != RC_READY)
			continue;
		lost = rc_conn_is_lost(c);
		idle = now - c->used_ns > t->conf.idle_ns;
		if (lost || idle)
			close_later(t, c, lost ? &t->stats.lost : &t->stats.idle);
	}
}

/* ---- the threads ---- */

static void
make(struct rc_table *t, struct rdma_rc_wait *w)
{
	struct rc_conn *c = w->conn;
	int r = rc_conn_open(t->rd, c, &w->ask, &w->answer);

	if (r == 0 && getrandom(w->answer.id, sizeof w->answer.id, 0) != sizeof w->answer.id) {
		rc_conn_close(c);
		r = -EIO;
	}
	pthread_mutex_lock(&t->lock);
	t->waiting--;
	atomic_fetch_sub(&t->stats.waiting, 1);
	c->peer->waiting--;
	if (r == 0) {
		memcpy(c->id, w->answer.id, sizeof c->id);
		c->state = RC_READY;
		c->used_ns = clock_ns();
		list_push_tail(rc_bucket(t, t->ids, c->id), &c->bucket);
		list_push_tail(&t->all, &c->all);
		count_open(t, c, 1);
		count(&t->stats.made);
		/* The context may have been given up since the queue pair was made. */
		if (rc_conn_is_lost(c))
			t->reap_ns = 0;
	} else {
		count(&t->stats.failed);
		uncount(t, c);
		free(c);
	}
	pthread_mutex_unlock(&t->lock);
	if (r < 0)
		log_limited(LOG_INFO, "a client is not connected: %s", strerror(-r));
	w->result = r;
	w->done(w);
}

static void
close_one(struct rc_table *t, struct rc_conn *c)
{
	rc_conn_close(c);
	count(c->why);
	count(&t->stats.closed);
	free(c);
}

/* Reaps connections if it is time for that, then closes or makes one connection. Returns false if there is none to close or
 * make. */
static bool
step(struct rc_table *t)
{
	struct list *closing, *work = NULL;
	uint64_t now = clock_ns();

	pthread_mutex_lock(&t->lock);
	if (atomic_exchange(&t->rails_changed, false) || now >= t->reap_ns)
		reap(t, now);
	closing = list_pop(&t->closing);
	if (!closing)
		work = fair_pop(&t->work);
	pthread_mutex_unlock(&t->lock);
	if (closing)
		close_one(t, container_of(closing, struct rc_conn, all));
	else if (work)
		make(t, container_of(work, struct rdma_rc_wait, link));
	return closing || work;
}

static bool
is_over(struct rc_table *t)
{
	bool over;

	pthread_mutex_lock(&t->lock);
	over = t->stop;
	pthread_mutex_unlock(&t->lock);
	return over;
}

static void *
table_main(void *arg)
{
	struct rc_table *t = arg;
	struct timespec at;

	for (;;) {
		if (step(t))
			continue;
		if (is_over(t))
			return NULL;
		clock_gettime(CLOCK_MONOTONIC, &at);
		at.tv_sec++;
		sem_clockwait(&t->more, CLOCK_MONOTONIC, &at);
	}
}

/* Has a thread of the table look at all connections, because a rail has changed. Called by a helper thread that has locked
 * the rails, so the lock of the table must not be taken. */
static void
on_rails_changed(struct rdma_watch *w)
{
	struct rc_table *t = container_of(w, struct rc_table, watch);

	atomic_store(&t->rails_changed, true);
	sem_post(&t->more);
}

/* ---- what a lease calls ---- */

int
rc_take(struct rdma *rd, const uint8_t id[RDMA_RC_ID_BYTES], struct rc_conn **ret_conn)
{
	struct rc_table *t = rd->rcs;
	struct rc_conn *c;
	int r = 0;

	pthread_mutex_lock(&t->lock);
	c = find(t, id);
	if (!c || (c->state == RC_READY && rc_conn_is_lost(c)))
		r = -ENOTCONN;
	else if (c->state != RC_READY)
		r = -EBUSY;
	if (r == 0) {
		c->state = RC_LEASED;
		atomic_fetch_add(&t->stats.leased, 1);
		*ret_conn = c;
	}
	pthread_mutex_unlock(&t->lock);
	if (r < 0)
		count(r == -EBUSY ? &t->stats.busy : &t->stats.unknown);
	return r;
}

void
rc_put(struct rc_conn *c)
{
	struct rc_table *t = c->ep.base.rail->rd->rcs;

	pthread_mutex_lock(&t->lock);
	check(c->state == RC_LEASED);
	atomic_fetch_sub(&t->stats.leased, 1);
	c->state = RC_READY;
	c->used_ns = clock_ns();
	if (c->close || rc_conn_is_lost(c))
		close_later(t, c, c->close ? &t->stats.left : &t->stats.lost);
	pthread_mutex_unlock(&t->lock);
}

void
rc_gone(struct rc_conn *c)
{
	struct rc_table *t = c->ep.base.rail->rd->rcs;

	pthread_mutex_lock(&t->lock);
	check(c->state == RC_LEASED);
	list_del(&c->bucket);
	list_del(&c->all);
	uncount(t, c);
	count_open(t, c, -1);
	atomic_fetch_sub(&t->stats.leased, 1);
	count(rc_conn_is_lost(c) ? &t->stats.lost : &t->stats.broken);
	count(&t->stats.closed);
	pthread_mutex_unlock(&t->lock);
	free(c);
}

int
rc_find_rail(struct rdma *rd, const uint8_t id[RDMA_RC_ID_BYTES], unsigned *ret_rail)
{
	struct rc_table *t = rd->rcs;
	struct rc_conn *c;

	pthread_mutex_lock(&t->lock);
	c = find(t, id);
	if (c)
		*ret_rail = c->rail;
	pthread_mutex_unlock(&t->lock);
	if (!c)
		count(&t->stats.unknown);
	return c ? 0 : -ENOTCONN;
}

/* ---- what req/ calls ---- */

/* Returns true if the table has room for a connection of this peer. In a full table the peer with the most connections, if
 * it has more than this one would have, loses the connection that was unused for longest: no peer keeps others out. */
static bool
make_room(struct rc_table *t, const struct rc_peer *p)
{
	struct rc_conn *out = NULL;

	if (t->conn_nr < t->conf.connections)
		return true;
	list_for_each(l, &t->all)
	{
		struct rc_conn *c = container_of(l, struct rc_conn, all);

		if (c->state != RC_READY || c->peer->conns <= p->conns + 1)
			continue;
		if (!out || c->peer->conns > out->peer->conns ||
		    (c->peer == out->peer && c->used_ns < out->used_ns))
			out = c;
	}
	if (out)
		close_later(t, out, &t->stats.room);
	return t->conn_nr < t->conf.connections;
}

const char *const rdma_rc_limit_name[RDMA_RC_LIMIT_NR] = { [RDMA_RC_ALL] = "connections",
							   [RDMA_RC_PER_PEER] = "per_peer",
							   [RDMA_RC_RATE] = "connect_rate",
							   [RDMA_RC_QUEUE] = "queue" };

/* Returns the limit that one more connection of the peer would exceed; RDMA_RC_LIMIT_NR: none. */
static enum rdma_rc_limit
limit_reached(struct rc_table *t, struct rc_peer *p, uint64_t now)
{
	if (!p || t->stop)
		return RDMA_RC_ALL;
	if (p->conns >= t->conf.per_peer)
		return RDMA_RC_PER_PEER;
	if (t->waiting >= RC_WAITING_MAX || p->waiting >= RC_WAITING_PER_PEER)
		return RDMA_RC_QUEUE;
	if (!rc_rate_take(t, p, now))
		return RDMA_RC_RATE;
	return make_room(t, p) ? RDMA_RC_LIMIT_NR : RDMA_RC_ALL;
}

/* Makes a connection in state MAKING and counts it. Returns NULL if a limit is reached, or without memory. */
static struct rc_conn *
admit(struct rc_table *t, const struct rdma_rc_ask *ask)
{
	uint64_t now = clock_ns();
	struct rc_conn *c = NULL;
	enum rdma_rc_limit limit;
	struct rc_peer *p;
	uint8_t addr[16];

	rc_address((const struct sockaddr *)&ask->peer, addr);
	p = rc_peer_get(t, addr, now);
	limit = limit_reached(t, p, now);
	if (limit != RDMA_RC_LIMIT_NR)
		count(&t->stats.refused_by[limit]);
	else
		c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	memcpy(c->addr, addr, 16);
	memcpy(c->gid, ask->gid, 16);
	c->have_gid = ask->have_gid;
	c->peer = p;
	c->state = RC_MAKING;
	p->conns++;
	p->waiting++;
	t->conn_nr++;
	t->waiting++;
	return c;
}

int
rdma_rc_connect(struct rdma *rd, struct rdma_rc_wait *w)
{
	struct rc_table *t = rd ? rd->rcs : NULL;

	if (!t)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&t->lock);
	w->conn = admit(t, &w->ask);
	if (w->conn) {
		atomic_fetch_add(&t->stats.waiting, 1);
		fair_push(&t->work, w->ask.client, &w->link);
	}
	pthread_mutex_unlock(&t->lock);
	if (!w->conn) {
		count(&t->stats.refused);
		return -EAGAIN;
	}
	sem_post(&t->more);
	return 0;
}

void
rdma_rc_set_limits(struct rdma *rd, const struct conf_rc *conf)
{
	struct rc_table *t = rd ? rd->rcs : NULL;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->conf = *conf;
	t->reap_ns = 0;
	pthread_mutex_unlock(&t->lock);
	sem_post(&t->more);
}

/* Finds the connection of this id, if it is the peer's own. Called under the lock. */
static struct rc_conn *
find_own(const struct rc_table *t, const uint8_t id[RDMA_RC_ID_BYTES], const struct sockaddr *peer)
{
	struct rc_conn *c = find(t, id);
	uint8_t addr[16];

	rc_address(peer, addr);
	return c && memcmp(c->addr, addr, 16) == 0 ? c : NULL;
}

void
rdma_rc_disconnect(struct rdma *rd, const uint8_t id[RDMA_RC_ID_BYTES], const struct sockaddr *peer)
{
	struct rc_table *t = rd ? rd->rcs : NULL;
	struct rc_conn *c;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	c = find_own(t, id, peer);
	if (c && c->state == RC_READY)
		close_later(t, c, &t->stats.left);
	else if (c)
		c->close = true;
	pthread_mutex_unlock(&t->lock);
}

bool
rdma_rc_find(struct rdma *rd, const struct sockaddr *peer, struct token *tok)
{
	struct rc_table *t = rd ? rd->rcs : NULL;
	const struct rc_conn *c;

	if (!t)
		return false;
	pthread_mutex_lock(&t->lock);
	c = find_own(t, tok->id, peer);
	if (c) {
		tok->have_gid = c->have_gid;
		memcpy(tok->gid, c->gid, 16);
	}
	pthread_mutex_unlock(&t->lock);
	if (!c)
		count(&t->stats.unknown);
	return c;
}

struct rdma_rc_stats *
rdma_rc_stats(struct rdma *rd)
{
	return rd && rd->rcs ? &rd->rcs->stats : NULL;
}

/* ---- life ---- */

int
rc_table_new(struct rdma *rd)
{
	struct rc_table *t;
	int r = 0;

	if (!rd->conf.rc.shim)
		return 0;
	t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->rd = rd;
	t->conf = rd->conf.rc;
	pthread_mutex_init(&t->lock, NULL);
	sem_init(&t->more, 0, 0);
	list_init(&t->all);
	list_init(&t->closing);
	fair_init(&t->work);
	for (int i = 0; i < RC_BUCKETS; i++) {
		list_init(&t->ids[i]);
		list_init(&t->peers[i]);
	}
	t->watch.changed = on_rails_changed;
	rdma_watch_add(rd, &t->watch);
	rd->rcs = t;
	if (getrandom(t->key, sizeof t->key, 0) != sizeof t->key)
		return -EIO;
	while (r == 0 && t->thread_nr < RC_THREADS) {
		r = thread_start(&t->thread[t->thread_nr], "gantry-connect", table_main, t);
		t->thread_nr += r == 0;
	}
	return r;
}

/* Closes all connections and frees all peers, after the threads have ended. */
static void
end(struct rc_table *t)
{
	struct list *l;

	while ((l = list_pop(&t->all)) || (l = list_pop(&t->closing))) {
		struct rc_conn *c = container_of(l, struct rc_conn, all);

		/* The job that destroys its queue pair has not returned from the kernel, so its memory is kept. */
		if (c->state == RC_LEASED)
			continue;
		rc_conn_close(c);
		free(c);
	}
	for (int i = 0; i < RC_BUCKETS; i++) {
		while ((l = list_first(&t->peers[i])))
			rc_peer_drop(t, container_of(l, struct rc_peer, bucket));
	}
}

void
rc_table_free(struct rdma *rd)
{
	struct rc_table *t = rd->rcs;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_mutex_unlock(&t->lock);
	for (int i = 0; i < RC_THREADS; i++)
		sem_post(&t->more);
	for (int i = 0; i < t->thread_nr; i++)
		pthread_join(t->thread[i], NULL);
	rdma_watch_del(rd, &t->watch);
	end(t);
	rd->rcs = NULL;
	sem_destroy(&t->more);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
