/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adaptor's life: daemons, connections from accept to close, running, draining, stopping; see http.h.
 *
 * A connection (struct hconn) is ours from http_add() until libmicrohttpd has closed it *and* our poll on its
 * socket came back.  That poll matters twice: it tells when the client went away, which the library does not
 * notice while a connection is suspended; and it keeps the socket open inside the kernel, so it has to be
 * cancelled when the library closes.
 */
#include "http/http_int.h"
#include "tls/handshake.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "stats/stats.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define STOP_ROUNDS 100
#define STOP_WAIT_NS (5 * NS_PER_S)

/* ---- connections ---- */

static void
on_conn_poll(struct ring_op *op, int res, bool more)
{
	struct hconn *c = container_of(op, struct hconn, poll);

	c->polling = false;
	c->l->h->polls--;
	switch (c->where) {
	case CONN_OPEN:
		c->gone = true;
		if (c->rq && req_is_tokened(c->rq))
			req_gone(c->rq);
		/* The library may have the end of the input before it, or may have missed it: let it run,
		 * then look. */
		c->l->hot = true;
		conn_todo(c);
		break;
	case CONN_LINGERS:
		linger_poll(c);
		break;
	case CONN_PREFACE:
		preface_read(c);
		break;
	default:
		conn_release(c);
	}
}

static unsigned
idle_s(const struct conf *conf)
{
	return (unsigned)((conf->limits.idle_ns + NS_PER_S - 1) / NS_PER_S);
}

static void
conn_opened(struct listener *l, struct MHD_Connection *mc, void **ret_context)
{
	int fd = MHD_get_connection_info(mc, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	struct http *h = l->h;

	list_for_each(link, &h->coming)
	{
		struct hconn *c = container_of(link, struct hconn, link);

		if (c->fd != fd)
			continue;
		list_del(&c->link);
		list_push_tail(&h->open, &c->link);
		c->where = CONN_OPEN;
		c->mc = mc;
		*ret_context = c;
		admit_opened(c);
		if (idle_s(h->conf) != h->idle_s)
			MHD_set_connection_option(mc, MHD_CONNECTION_OPTION_TIMEOUT, idle_s(h->conf));
		c->polling = true;
		h->polls++;
		ring_poll(h->ring, &c->poll, fd, POLLRDHUP, false);
		return;
	}
	check(false); /* only http_add() gives connections to the library */
}

static void
conn_closed(struct hconn *c)
{
	struct http *h = c->l->h;

	check(!c->rq && !c->suspended);
	list_del(&c->link);
	if (list_linked(&c->todo))
		list_del(&c->todo);
	conn_uncount(c);
	conn_head_put(c); /* of a head that never was whole */
	c->mc = NULL;
	c->where = CONN_CLOSED;
	if (c->polling)
		ring_cancel(h->ring, &c->poll);
	if (c->linger && !c->aborted && !c->gone && !h->stopping)
		linger_begin(c);
	if (c->where == CONN_CLOSED && !c->polling)
		conn_release(c);
}

static void
on_connection(void *cls, struct MHD_Connection *mc, void **context, enum MHD_ConnectionNotificationCode what)
{
	struct listener *l = cls;

	l->calls++;
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		conn_opened(cls, mc, context);
	else if (*context)
		conn_closed(*context);
}

/* A connection that is nobody's.  NULL: there is none. */
static struct hconn *
conn_get(struct http *h)
{
	/* Those that linger have been answered: the oldest makes room, in a turn or two. */
	if (h->conns.nr - h->conns.used <= HTTP_SPARE / 2)
		linger_end_oldest(h);
	return pool_get(&h->conns);
}

static void
conn_init(struct hconn *c, struct listener *l, int fd, const struct sockaddr *peer, socklen_t peer_len)
{
	socklen_t local_len = sizeof(struct sockaddr_storage);
	int one = 1;

	memset(c, 0, sizeof *c);
	list_init(&c->todo);
	list_init(&c->owed);
	list_init(&c->unfinished);
	c->l = l;
	c->fd = fd;
	c->linger_fd = -1;
	c->poll.done = on_conn_poll;
	memcpy(&c->peer, peer, peer_len < sizeof c->peer ? peer_len : sizeof c->peer);
	if (getsockname(fd, (struct sockaddr *)&c->local, &local_len) < 0)
		c->local = c->peer;
	conn_unmap(&c->local);
	conn_unmap(&c->peer);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
}

int
conn_count_peer(struct hconn *c)
{
	struct http *h = c->l->h;
	int rc = peers_add(h->peers, (struct sockaddr *)&c->peer, h->conf->limits.connections_per_address,
			   &c->peer_count);

	if (rc == -EUSERS)
		stats_event(h->stats, STATS_CLOSED_ADDRESS);
	return rc;
}

int
conn_start(struct hconn *c)
{
	struct http *h = c->l->h;
	socklen_t len =
		c->peer.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	int rc;

	c->where = CONN_COMING;
	c->client = reqs_client_of(h->reqs, (struct sockaddr *)&c->peer);
	list_push_tail(&h->coming, &c->link);
	h->stirred = true;
	c->l->hot = true;
	if (MHD_add_connection(c->l->d, c->fd, (struct sockaddr *)&c->peer, len) == MHD_YES) {
		stats_event(h->stats, STATS_ACCEPTED);
		return 0;
	}
	rc = errno ? -errno : -EIO;
	if (c->where == CONN_COMING) {
		conn_uncount(c);
		list_del(&c->link);
		conn_release(c);
	}
	return rc;
}

int
http_add(struct http *h, int listener, int fd, const struct sockaddr *peer, socklen_t peer_len)
{
	struct listener *l = &h->listeners[listener];
	struct hconn *c = conn_get(h);
	int rc = 0;

	check(listener >= 0 && listener < h->listener_nr);
	if (!c) {
		stats_event(h->stats, STATS_CLOSED_NO_ROOM);
		close(fd);
		return -EBUSY;
	}
	conn_init(c, l, fd, peer, peer_len);
	if (l->conf->proxy.nr == 0)
		rc = conn_count_peer(c);
	if (rc == 0 && !admit_room(h)) {
		stats_event(h->stats, STATS_CLOSED_NO_ROOM);
		if (c->peer_count)
			peers_remove(h->peers, c->peer_count);
		rc = -EBUSY;
	}
	if (rc < 0) {
		close(fd);
		conn_release(c);
		return rc;
	}
	c->stamp = ++h->stamps;
	list_push_tail(&h->unfinished, &c->unfinished);
	h->open_nr++;
	if (l->conf->proxy.nr == 0)
		return conn_start(c);
	preface_begin(c);
	return 0;
}

bool
http_make_room(struct http *h)
{
	return admit_half_head(h);
}

int
http_connections_max(const struct conf *conf)
{
	return conf->limits.connections + HTTP_SPARE;
}

int
http_connections(const struct http *h)
{
	return h->open_nr;
}

/* ---- running ---- */

static void
on_epoll(struct ring_op *op, int res, bool more)
{
	struct listener *l = container_of(op, struct listener, poll);

	l->hot = true;
	l->h->stirred = true;
	if (more)
		return;
	l->polling = false;
	l->h->polls--;
	if (l->h->stopping)
		return;
	if (res < 0)
		log_limited(LOG_ERROR, "http: polling the connections of %s: %s", l->conf->address,
			    strerror(-res));
	l->polling = true;
	l->h->polls++;
	ring_poll(l->h->ring, op, l->epfd, POLLIN, true);
}

/*
 * A connection whose body is in chunks, and whose line is longer than the library's memory for it, counts as
 * work of the daemon, though nothing can be done until limits.s3_progress ends it.  So work that leads to no
 * call is looked at again after VAIN_NS, or with the next event, and not in the next turn.
 */
#define VAIN_RUNS 8
#define VAIN_NS NS_PER_MS

static void
run_daemon(struct listener *l)
{
	MHD_UNSIGNED_LONG_LONG ms;
	unsigned calls = l->calls;

	l->hot = false;
	tls_current = l->cert;
	mhd_run(l->d);
	l->due_ns = UINT64_MAX;
	if (MHD_get_timeout(l->d, &ms) != MHD_YES)
		ms = UINT64_MAX;
	l->vain = ms == 0 && l->calls == calls ? l->vain + 1 : 0;
	if (ms == 0 && l->vain < VAIN_RUNS)
		l->hot = true;
	else if (ms == 0)
		l->due_ns = clock_ns() + VAIN_NS;
	else if (ms != UINT64_MAX)
		l->due_ns = clock_ns() + ms * NS_PER_MS;
}

/* Does the library wait for input of this connection? */
static bool
reads_on(const struct hconn *c)
{
	return !c->suspended && (c->stage == STAGE_IDLE || (c->stage == STAGE_BODY && !c->body_ended));
}

/* What could not be done inside the library's calls. */
static void
after_run(struct http *h)
{
	list_for_each_safe(link, &h->todo)
	{
		struct hconn *c = container_of(link, struct hconn, todo);

		if (c->failed) {
			list_del(&c->todo);
			conn_remind(c);
			continue;
		}
		if (c->park) {
			c->park = false;
			MHD_suspend_connection(c->mc);
			c->suspended = true;
		}
		if (c->gone && reads_on(c)) {
			if (c->l->hot)
				continue; /* may have input left: look again */
			/* In edge-triggered mode 0.9.75 can miss the end of the input: this makes another
			 * edge. */
			shutdown(c->fd, SHUT_RD);
		}
		list_del(&c->todo);
	}
}

/* Sets the date of kept replies, if the second has changed. */
static void
set_date(struct http *h)
{
	uint64_t now_s = clock_wall_ns() / NS_PER_S;

	if (now_s == h->date_s)
		return;
	h->date_s = now_s;
	http_date_format(now_s, h->date);
}

bool
http_run(struct http *h)
{
	uint64_t now = clock_ns();
	bool more = false;

	set_date(h);
	for (int i = 0; i < h->listener_nr; i++) {
		struct listener *l = &h->listeners[i];

		if (l->hot || l->due_ns <= now)
			run_daemon(l);
		more |= l->hot;
	}
	after_run(h);
	more |= early_reply_run(h);
	linger_run(h, now, false);
	preface_run(h, now);
	admit_run(h, now);
	return more;
}

uint64_t
http_timeout_ns(const struct http *h)
{
	uint64_t at = UINT64_MAX, now = clock_ns();
	const struct list *first = list_first(&h->lingering), *owed = list_first(&h->owed);
	const struct list *preface = list_first(&h->prefacing);

	if (first)
		at = container_of(first, const struct hconn, link)->linger_until_ns;
	if (owed && container_of(owed, const struct hconn, owed)->look_ns < at)
		at = container_of(owed, const struct hconn, owed)->look_ns;
	if (preface &&
	    container_of(preface, const struct hconn, link)->head_ns + h->conf->limits.head_ns < at)
		at = container_of(preface, const struct hconn, link)->head_ns + h->conf->limits.head_ns;
	if (admit_due_ns(h) < at)
		at = admit_due_ns(h);
	for (int i = 0; i < h->listener_nr; i++) {
		const struct listener *l = &h->listeners[i];

		if (l->hot)
			return 0;
		at = l->due_ns < at ? l->due_ns : at;
	}
	if (at == UINT64_MAX)
		return UINT64_MAX;
	return at > now ? at - now : 0;
}

/* Nothing has begun on these. */
static void
drop_prefacing(struct http *h)
{
	list_for_each_safe(link, &h->prefacing)
	{
		conn_drop(container_of(link, struct hconn, link));
	}
}

void
http_drain(struct http *h)
{
	h->draining = true;
	drop_prefacing(h);
	list_for_each(link, &h->open)
	{
		struct hconn *c = container_of(link, struct hconn, link);

		if (c->stage == STAGE_IDLE && !c->aborted)
			conn_dismiss(c);
	}
}

void
http_abort(struct http *h)
{
	drop_prefacing(h);
	list_for_each(link, &h->open)
	{
		conn_abort(container_of(link, struct hconn, link));
	}
}

/* ---- life ---- */

/* Targets stay as they are: nobody looks at the library's decoded copy. */
static size_t
keep_escapes(void *cls, struct MHD_Connection *mc, char *text)
{
	return strlen(text);
}

static int
start_daemon(struct listener *l)
{
	const union MHD_DaemonInfo *info;

	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)(uintptr_t)tls_retrieve },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	};

	errno = 0;
	l->d = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
					(l->cert ? MHD_USE_TLS : 0),
				0, NULL, NULL, on_call, l, MHD_OPTION_NOTIFY_COMPLETED, on_completed, l,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_URI_LOG_CALLBACK,
				head_target, l, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
				MHD_OPTION_CONNECTION_LIMIT, (unsigned)l->h->conns.nr,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_POOL_BYTES,
				MHD_OPTION_CONNECTION_TIMEOUT, l->h->idle_s, MHD_OPTION_ARRAY,
				l->cert ? tls : &tls[2], MHD_OPTION_END);
	if (!l->d)
		return errno == EMFILE || errno == ENFILE ? -errno : -ENOMEM;
	info = MHD_get_daemon_info(l->d, MHD_DAEMON_INFO_EPOLL_FD);
	l->epfd = info->epoll_fd;
	l->poll.done = on_epoll;
	l->polling = true;
	l->h->polls++;
	ring_poll(l->h->ring, &l->poll, l->epfd, POLLIN, true);
	return 0;
}

int
http_new(const struct conf *conf, struct tls_cert *const *certs, struct peers *peers, struct ring *ring,
	 struct stats_core *stats, struct http **ret_http)
{
	struct http *h = calloc(1, sizeof *h);
	int rc;

	if (!h)
		return -ENOMEM;
	h->conf = conf;
	h->idle_s = idle_s(conf);
	h->ring = ring;
	h->stats = stats;
	h->folds_wrong = strcmp(MHD_get_version(), "0.9.77") < 0;
	list_init(&h->prefacing);
	list_init(&h->coming);
	list_init(&h->open);
	list_init(&h->todo);
	list_init(&h->lingering);
	list_init(&h->owed);
	list_init(&h->unfinished);
	h->peers = peers;
	rc = pool_init(&h->conns, sizeof(struct hconn), http_connections_max(conf));
	if (rc == 0)
		rc = pool_init(&h->heads, sizeof(struct head), http_connections_max(conf));
	if (rc == 0)
		rc = pool_init(&h->long_targets, HTTP_TARGET_MAX + 1, http_connections_max(conf));
	if (rc == 0)
		rc = pool_init(&h->prefaces, sizeof(struct preface), http_connections_max(conf));
	if (rc == 0)
		rc = answer_init(h);
	for (int i = 0; rc == 0 && i < conf->listen_nr; i++) {
		h->listeners[i] = (struct listener){ .h = h,
						     .conf = &conf->listen[i],
						     .cert = certs ? certs[i] : NULL,
						     .due_ns = UINT64_MAX };
		h->listener_nr++;
		rc = start_daemon(&h->listeners[i]);
	}
	if (rc < 0) {
		http_free(h);
		return rc;
	}
	*ret_http = h;
	return 0;
}

void
http_set_conf(struct http *h, const struct conf *conf)
{
	bool idle = conf->limits.idle_ns != h->conf->limits.idle_ns;

	check(conf->listen_nr == h->listener_nr);
	h->conf = conf;
	for (int i = 0; i < h->listener_nr; i++)
		h->listeners[i].conf = &conf->listen[i];
	if (!idle)
		return;
	/* Those that are open keep their time otherwise. */
	list_for_each(link, &h->open)
	{
		struct hconn *c = container_of(link, struct hconn, link);

		if (c->replied_early)
			continue;
		MHD_set_connection_option(c->mc, MHD_CONNECTION_OPTION_TIMEOUT, idle_s(conf));
		c->l->hot = true;
	}
}

void
http_set_reqs(struct http *h, struct reqs *rs)
{
	h->reqs = rs;
}

/* Our operations must come back before the memory they lie in goes. */
static void
end_polls(struct http *h)
{
	uint64_t until = clock_ns() + STOP_WAIT_NS;

	for (int i = 0; i < h->listener_nr; i++) {
		if (h->listeners[i].polling)
			ring_cancel(h->ring, &h->listeners[i].poll);
	}
	linger_run(h, 0, true);
	while (h->polls && clock_ns() < until) {
		if (ring_turn(h->ring, 10 * NS_PER_MS) < 0)
			break;
	}
	check(h->polls == 0);
}

void
http_free(struct http *h)
{
	if (!h)
		return;
	h->stopping = true;
	http_abort(h);
	for (int i = 0; i < STOP_ROUNDS && h->open_nr; i++)
		http_run(h);
	for (int i = 0; i < h->listener_nr; i++) {
		if (h->listeners[i].d)
			MHD_stop_daemon(h->listeners[i].d);
	}
	check(h->open_nr == 0);
	end_polls(h);
	answer_fini(h);
	pool_fini(&h->heads);
	pool_fini(&h->long_targets);
	pool_fini(&h->prefaces);
	pool_fini(&h->conns);
	free(h);
}
