/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of RC between calls: see rc.h.  rc->lock protects all of this file's state, and is taken with no other
 * lock held; no verbs and no exchange run under it.
 */
#include "client/rc.h"

#include "base/clock.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONNS_MOST 64             /* to one server */
#define WAIT_NS (60 * NS_PER_S)   /* for a connection that another call has */
#define FULL_NS (200 * NS_PER_MS) /* before a server that has no more is asked again, unless it says when */
#define AGAIN_NS NS_PER_S         /* a queue pair that the driver keeps is tried again so often */

struct rc_server {
	struct list link;
	struct list conns; /* in any state; unused ones in front, the last used one first */
	uint64_t number;
	unsigned users; /* calls in rc_take(), and ends that are under way */
	int nr, making;
	unsigned refused; /* number of times that the server was found to be full */
	/* true: the server has answered 503 to the last connect, and is asked by one call at a time, from
	 * full_until_ns on */
	bool is_full;
	uint64_t full_until_ns;
	char base[]; /* beginning of the server's URLs */
};

struct rc {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a connection was given back, or has ended */
	pthread_cond_t wake;    /* the keeper has work, or ends */
	struct list servers;
	pthread_t keeper;
	bool keeper_runs, closes;
	uint64_t sleeps_until_ns; /* time until which the keeper sleeps */
};

/* ---- servers; locked ---- */

static struct rc_server *
server_get(struct rc *rc, const char *url)
{
	uint64_t number = server_of(url);
	size_t len = server_len(url);
	struct rc_server *s;

	list_for_each(pos, &rc->servers)
	{
		s = container_of(pos, struct rc_server, link);
		if (s->number == number) {
			s->users++;
			return s;
		}
	}
	s = calloc(1, sizeof *s + len + 1);
	if (!s)
		return NULL;
	s->number = number;
	s->users = 1;
	memcpy(s->base, url, len);
	list_init(&s->conns);
	list_push_tail(&rc->servers, &s->link);
	return s;
}

static void
server_put(struct rc_server *s)
{
	if (--s->users > 0 || s->nr > 0)
		return;
	list_del(&s->link);
	free(s);
}

static void
remove_conn(struct rc *rc, struct rc_conn *conn)
{
	list_del(&conn->link);
	conn->server->nr--;
	/* There is room for another one at the server. */
	conn->server->full_until_ns = 0;
	pthread_cond_broadcast(&rc->changed);
}

/* ---- the end of connections ---- */

/* Ends a connection that is out of its list. Returns false: the driver keeps the queue pair. Not locked. */
static bool
end_conn(struct gantry *g, struct rc_conn *conn, bool tells)
{
	if (conn->target.qp && ibv_destroy_qp(conn->target.qp) != 0)
		return false;
	conn->target.qp = NULL;
	if (*conn->id && tells)
		tells = rc_disconnect(g, conn->server->base, conn->id) == 0;
	*conn->id = 0;
	return true;
}

/* What the keeper ends now. *ret_next_ns: when there is more. Locked. */
static struct rc_conn *
collect(struct gantry *g, uint64_t *ret_next_ns)
{
	uint64_t now = clock_ns();

	*ret_next_ns = UINT64_MAX;
	list_for_each(pos, &g->rc->servers)
	{
		struct rc_server *s = container_of(pos, struct rc_server, link);

		list_for_each(at, &s->conns)
		{
			struct rc_conn *conn = container_of(at, struct rc_conn, link);
			uint64_t due = conn->used_ns;

			if (conn->state == RC_FREE)
				due += g->target_life_ns;
			else if (conn->state != RC_GONE)
				continue;
			if (now >= due)
				return conn;
			if (due < *ret_next_ns)
				*ret_next_ns = due;
		}
	}
	return NULL;
}

/* Sleeps until then, or until there is something new. Locked. */
static void
rest(struct rc *rc, pthread_cond_t *cond, uint64_t until_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(until_ns / NS_PER_S),
			       .tv_nsec = (long)(until_ns % NS_PER_S) };

	if (until_ns == UINT64_MAX)
		pthread_cond_wait(cond, &rc->lock);
	else
		pthread_cond_timedwait(cond, &rc->lock, &ts);
}

static void *
keeper(void *arg)
{
	struct gantry *g = arg;
	struct rc *rc = g->rc;

	pthread_mutex_lock(&rc->lock);
	while (!rc->closes) {
		uint64_t next_ns;
		struct rc_conn *conn = collect(g, &next_ns);
		bool ended;

		rc->sleeps_until_ns = conn ? 0 : next_ns;
		if (!conn) {
			rest(rc, &rc->wake, next_ns);
			continue;
		}
		/* It stays in the list, so that no more are made than the server allows. */
		conn->state = RC_ENDING;
		pthread_mutex_unlock(&rc->lock);
		ended = end_conn(g, conn, true);
		pthread_mutex_lock(&rc->lock);
		if (!ended) {
			conn->state = RC_GONE;
			conn->used_ns = clock_ns() + AGAIN_NS;
			continue;
		}
		conn->server->users++;
		remove_conn(rc, conn);
		server_put(conn->server);
		free(conn);
	}
	pthread_mutex_unlock(&rc->lock);
	return NULL;
}

/* Has the keeper look at what is due then; starts it. Without a thread connections end with the context. Locked. */
static void
wake_keeper(struct gantry *g, uint64_t due_ns)
{
	struct rc *rc = g->rc;
	sigset_t all, before;

	if (rc->keeper_runs && due_ns < rc->sleeps_until_ns)
		pthread_cond_signal(&rc->wake);
	if (rc->keeper_runs)
		return;
	/* Signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc->keeper_runs = pthread_create(&rc->keeper, NULL, keeper, g) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Leaves a connection, whose queue pair is destroyed if that was possible, to the keeper. Locked. */
static void
abandon(struct gantry *g, struct rc_conn *conn)
{
	conn->state = RC_GONE;
	conn->used_ns = conn->target.qp ? clock_ns() + AGAIN_NS : 0;
	wake_keeper(g, conn->used_ns);
}

/* ---- taking ---- */

/* Takes the unused connection from a port that was used last. *ret_other: an unused one from another port. Locked. */
static struct rc_conn *
unused(struct rc_server *s, const struct port *p, struct rc_conn **ret_other)
{
	*ret_other = NULL;
	list_for_each(pos, &s->conns)
	{
		struct rc_conn *conn = container_of(pos, struct rc_conn, link);

		if (conn->state != RC_FREE)
			continue;
		if (conn->port == p && conn->target.changes == p->changes)
			return conn;
		*ret_other = conn;
	}
	return NULL;
}

static bool
may_connect(const struct rc_server *s)
{
	if (s->nr >= CONNS_MOST)
		return false;
	return !s->is_full || (!s->making && clock_ns() >= s->full_until_ns);
}

/* The number of connections that calls have, one of which may become unused. Locked. */
static int
in_use(const struct rc_server *s)
{
	int nr = 0;

	list_for_each(pos, &s->conns) nr += container_of(pos, struct rc_conn, link)->state == RC_USED;
	return nr;
}

/* Makes a connection. Locked, but not while it does so. Returns 0 with *ret_conn, or an error of rc_take(). */
static int
make(struct call *c, struct rc_server *s, struct port *p, int access, struct rc_conn **ret_conn,
     bool *ret_final, char *why, size_t why_len)
{
	struct rc *rc = c->g->rc;
	struct rc_conn *conn = calloc(1, sizeof *conn);
	bool was_full = s->is_full;
	int e;

	if (!conn)
		return -ENOMEM;
	*conn = (struct rc_conn){
		.server = s, .port = p, .state = RC_MAKING, .access = access, .is_fresh = true
	};
	conn->target.conn = conn;
	list_push_tail(&s->conns, &conn->link);
	s->nr++;
	s->making++;
	pthread_mutex_unlock(&rc->lock);
	e = rc_connect(c, conn, ret_final, why, why_len);
	pthread_mutex_lock(&rc->lock);
	s->making--;
	if (e == 0) {
		conn->state = RC_USED;
		*ret_conn = conn;
	} else if (conn->target.qp || *conn->id) {
		abandon(c->g, conn);
	} else {
		remove_conn(rc, conn);
		free(conn);
	}
	/* A connect that the server took before it was full says nothing. */
	if (e == 0 && was_full)
		s->is_full = false;
	if (e == -EAGAIN) {
		/* Of connects at the same time one counts. */
		s->refused += was_full || !s->is_full;
		s->is_full = true;
		s->full_until_ns =
			clock_ns() + (c->r.retry_after_s ? c->r.retry_after_s * NS_PER_S : FULL_NS);
	}
	/* Calls that wait may connect now, or have to wait for longer. */
	pthread_cond_broadcast(&rc->changed);
	return e;
}

/* Waits for a connection, or for the time at which the server is asked again. Locked. Returns 0 or -EAGAIN. */
static int
await(struct rc *rc, const struct rc_server *s, uint64_t until_ns)
{
	uint64_t next = until_ns;

	if (clock_ns() >= until_ns)
		return -EAGAIN;
	if (s->is_full && !s->making && s->nr < CONNS_MOST && s->full_until_ns < next)
		next = s->full_until_ns;
	rest(rc, &rc->changed, next);
	return 0;
}

/* Returns true if no connection can be expected: the server has refused several since the call began, and calls of this
 * context, which could give one back, have none. Others, of other processes, may keep theirs for hours. Locked. */
static bool
is_hopeless(const struct rc_server *s, unsigned refused_before)
{
	return s->refused - refused_before >= BUSY_TRIES && !s->making && in_use(s) == 0;
}

/* Locked. */
static int
find(struct call *c, struct rc_server *s, struct port *p, int access, struct rc_conn **ret_conn,
     bool *ret_final, char *why, size_t why_len)
{
	struct exchange x = call_exchange(c, METHOD_GET);
	uint64_t until = clock_ns() + (x.timeout_ms ? x.timeout_ms * NS_PER_MS : WAIT_NS);
	unsigned refused_before = s->refused;
	int e = 0;

	*ret_conn = NULL;
	while (e == 0 && !*ret_conn) {
		struct rc_conn *other, *conn = unused(s, p, &other);

		if (conn) {
			conn->state = RC_USED;
			*ret_conn = conn;
		} else if (!other && is_hopeless(s, refused_before)) {
			snprintf(why, why_len, "rc: the server allows no further connection now");
			e = -EUSERS;
		} else if (may_connect(s)) {
			e = make(c, s, p, access, ret_conn, ret_final, why, why_len);
			if (e == -EAGAIN && !*ret_final)
				e = 0;
		} else {
			if (other)
				abandon(c->g, other);
			e = await(c->g->rc, s, until);
			if (e < 0) {
				snprintf(why, why_len, "rc: no connection became free");
				e = in_use(s) ? -EBUSY : -EUSERS;
			}
		}
	}
	return e;
}

int
rc_take(struct call *c, struct port *p, bool is_put, struct target **ret_target, bool *ret_final, char *why,
	size_t why_len)
{
	struct rc *rc = c->g->rc;
	int access = is_put ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	struct rc_conn *conn;
	struct rc_server *s;
	int e;

	*ret_final = false;
	snprintf(why, why_len, "rc: no memory");
	for (;;) {
		pthread_mutex_lock(&rc->lock);
		s = server_get(rc, c->url);
		e = s ? find(c, s, p, access, &conn, ret_final, why, why_len) : -ENOMEM;
		if (s)
			server_put(s);
		pthread_mutex_unlock(&rc->lock);
		if (e < 0)
			break;
		if (conn->is_fresh)
			client_log(c->g, GANTRY_LOG_INFO, "%s: connected by RC to %.*s", p->name,
				   (int)server_len(c->url), c->url);
		if (rc_allow(conn, access) == 0) {
			*ret_target = &conn->target;
			return 0;
		}
		rc_give(c->g, &conn->target, false);
	}
	if (e == -EOPNOTSUPP)
		transport_lacks(c->g, c->url, GANTRY_TRANSPORT_RC, why);
	return e;
}

int
rc_dial(struct gantry *g, struct port *p, bool is_put, unsigned wait_ms, struct target **ret_target,
	char *why, size_t why_len)
{
	const struct gantry_request req = { .size = sizeof req, .timeout_ms = wait_ms };
	struct gantry_result own;
	struct call c;
	bool is_final = false;
	int e = call_begin(&c, g, g->rc_endpoint, &req, NULL, &own);

	if (e == 0 && transport_take(g, p, server_of(c.url), why, why_len) != GANTRY_TRANSPORT_RC)
		e = -EOPNOTSUPP;
	if (e == 0)
		e = rc_take(&c, p, is_put, ret_target, &is_final, why, why_len);
	if (is_final)
		snprintf(why, why_len, "rc: %s: %.100s", g->rc_endpoint, own.message);
	call_end(&c, e, NULL);
	return e;
}

/* ---- giving back ---- */

int
rc_give(struct gantry *g, struct target *t, bool clean)
{
	struct rc_conn *conn = t->conn;
	struct rc *rc = g->rc;
	int r = 0;

	clean = clean && g->target_life_ns && t->changes == conn->port->changes;
	if (!clean) {
		r = ibv_destroy_qp(t->qp);
		if (r == 0)
			t->qp = NULL;
	}
	pthread_mutex_lock(&rc->lock);
	if (clean) {
		conn->state = RC_FREE;
		conn->is_fresh = false;
		conn->used_ns = clock_ns();
		/* The last used one first: those that are not needed grow old. */
		list_del(&conn->link);
		list_push_head(&conn->server->conns, &conn->link);
		wake_keeper(g, conn->used_ns + g->target_life_ns);
	} else {
		abandon(g, conn);
	}
	pthread_cond_broadcast(&rc->changed);
	pthread_mutex_unlock(&rc->lock);
	return -r;
}

bool
rc_lost(struct gantry *g, struct target *t)
{
	struct rc_conn *conn = t->conn;
	bool was_fresh = conn->is_fresh;

	pthread_mutex_lock(&g->rc->lock);
	*conn->id = 0;
	list_for_each(pos, &conn->server->conns)
	{
		struct rc_conn *other = container_of(pos, struct rc_conn, link);

		if (other->state == RC_FREE)
			abandon(g, other);
	}
	pthread_mutex_unlock(&g->rc->lock);
	return was_fresh;
}

void
rc_mint(const struct target *t, const void *ptr, size_t size, uint32_t rkey, char *text, size_t text_len)
{
	snprintf(text, text_len, "rc:%s:%016llx:%08llx:%08x", t->conn->id, (unsigned long long)(uintptr_t)ptr,
		 (unsigned long long)size, rkey);
}

/* ---- the context ---- */

int
rc_open(struct gantry *g)
{
	struct rc *rc = calloc(1, sizeof *rc);
	pthread_condattr_t a;

	if (!rc)
		return -ENOMEM;
	list_init(&rc->servers);
	pthread_mutex_init(&rc->lock, NULL);
	pthread_condattr_init(&a);
	/* That of clock_ns(). */
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(&rc->changed, &a);
	pthread_cond_init(&rc->wake, &a);
	pthread_condattr_destroy(&a);
	g->rc = rc;
	return 0;
}

/* Ends all connections to a server; one that does not answer is not asked again. */
static void
server_close(struct gantry *g, struct rc_server *s)
{
	bool tells = true;

	list_for_each_safe(pos, &s->conns)
	{
		struct rc_conn *conn = container_of(pos, struct rc_conn, link);

		if (conn->target.qp && ibv_destroy_qp(conn->target.qp) == 0)
			conn->target.qp = NULL;
		if (*conn->id && tells)
			tells = rc_disconnect(g, s->base, conn->id) == 0;
		list_del(pos);
		free(conn);
	}
	list_del(&s->link);
	free(s);
}

void
rc_close(struct gantry *g)
{
	struct rc *rc = g->rc;

	if (!rc)
		return;
	pthread_mutex_lock(&rc->lock);
	rc->closes = true;
	pthread_cond_signal(&rc->wake);
	pthread_mutex_unlock(&rc->lock);
	if (rc->keeper_runs)
		pthread_join(rc->keeper, NULL);
	list_for_each_safe(pos, &rc->servers) server_close(g, container_of(pos, struct rc_server, link));
	pthread_cond_destroy(&rc->changed);
	pthread_cond_destroy(&rc->wake);
	pthread_mutex_destroy(&rc->lock);
	free(rc);
	g->rc = NULL;
}
