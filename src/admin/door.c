/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two doors of the admin thread, TCP and the Unix socket: each has a daemon of libmicrohttpd and
 * connections of its own, so that nobody who reaches the address keeps the operator from the socket.
 *
 * A request has HEAD_NS from its first byte to its last; the first one of a connection with TLS from the first byte of the
 * handshake.  When all connections of a door are taken, a new one
 * takes the place of another: of the oldest that has not brought a whole request yet, of the address that has
 * most of these, else of the one that is idle longest, else of the one that is being answered longest.  So a
 * health check, which sends its request at once, is answered, however many others wait with theirs.  A control
 * call that runs stays.
 *
 * Everything on the admin thread.
 */
#define LOG_MODULE "admin"
#include "admin/admin_int.h"

#include "base/address.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/tcp.h"
#include "tls/handshake.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_S 20
#define HEAD_NS (5 * NS_PER_S)
#define LOOK_MS 250
#define LEAVING_MAX 64 /* connections beyond the door's, for those that are on their way out */

static void
turn(struct door *d)
{
	tls_current = d->cert;
	MHD_run(d->mhd);
}

/* ---- visitors ---- */

static void
dismiss(struct visitor *v)
{
	if (!v->leaving)
		v->door->leaving++;
	v->leaving = true;
	/* In edge-triggered mode 0.9.75 can miss the end of the input; so this is done again until it is
	 * gone. */
	shutdown(v->fd, SHUT_RDWR);
}

static bool
is_half(const struct visitor *v)
{
	return v->stage == VISIT_BODY || (v->stage == VISIT_HEAD && (!v->asked || v->head_ns));
}

/* Sees whether a head has begun.  What came over the Unix socket nobody counts; there it is the connection. */
static void
look_for_head(struct visitor *v, uint64_t now)
{
	struct tcp_came came;

	if (v->stage != VISIT_HEAD || v->head_ns)
		return;
	if (!v->door->tcp)
		v->head_ns = v->asked ? 0 : v->since_ns;
	else if (tcp_came(v->fd, &came) == 0 && came.bytes > v->taken)
		v->head_ns = came.last_ns < now ? now - came.last_ns : now;
}

static void
look(struct door *d, uint64_t now)
{
	list_for_each(l, &d->visitors)
	{
		struct visitor *v = container_of(l, struct visitor, link);

		look_for_head(v, now);
		if (v->leaving) {
			dismiss(v);
		} else if (is_half(v) && v->head_ns && now - v->head_ns >= HEAD_NS) {
			d->closed->late++;
			dismiss(v);
		}
	}
}

/* Counts the half requests that come from where that one does. */
static int
halves_like(const struct visitor *of)
{
	int nr = 0;

	list_for_each(l, &of->door->visitors)
	{
		const struct visitor *v = container_of(l, struct visitor, link);

		nr += !v->leaving && is_half(v) && IN6_ARE_ADDR_EQUAL(&v->from, &of->from);
	}
	return nr;
}

/* The oldest half request of the address that has most of them.  NULL: there is none. */
static struct visitor *
half_victim(const struct door *d)
{
	struct visitor *go = NULL;
	int most = 0;

	list_for_each(l, &d->visitors)
	{
		struct visitor *v = container_of(l, struct visitor, link);
		int nr = v->leaving || !is_half(v) || (go && IN6_ARE_ADDR_EQUAL(&go->from, &v->from))
				 ? 0
				 : halves_like(v);

		if (nr > most) {
			most = nr;
			go = v;
		}
	}
	return go;
}

static void
make_room(struct door *d)
{
	struct visitor *go;

	if (d->nr - d->leaving < d->max)
		return;
	go = half_victim(d);
	/* In the order in which they began to wait. */
	list_for_each(l, &d->visitors)
	{
		struct visitor *v = container_of(l, struct visitor, link);

		if (v->leaving || v->stage == VISIT_CALL || (go && is_half(go)))
			continue;
		if (!go || (go->stage == VISIT_ANSWER && v->stage == VISIT_HEAD))
			go = v;
	}
	if (!go)
		return; /* the library refuses the new one, if there are many such */
	d->closed->room++;
	dismiss(go);
}

static void
on_visit(void *cls, struct MHD_Connection *conn, void **context, enum MHD_ConnectionNotificationCode what)
{
	struct door *d = cls;
	struct visitor *v = *context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		v = calloc(1, sizeof *v);
		if (!v)
			return; /* one that is not counted, and goes with its idle time */
		v->door = d;
		v->fd = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		address_client(MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr,
			       &v->from);
		v->since_ns = clock_ns();
		list_push_tail(&d->visitors, &v->link);
		d->nr++;
		*context = v;
	} else if (v) {
		list_del(&v->link);
		d->nr--;
		d->leaving -= v->leaving;
		free(v);
		*context = NULL;
	}
}

static struct visitor *
visitor_of(struct MHD_Connection *conn)
{
	return MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Before the library decodes its copy, which lies in the same place. */
static void *
on_target(void *cookie, const char *uri, struct MHD_Connection *conn)
{
	struct visitor *v = visitor_of(conn);

	if (v)
		v->target_end = uri + strlen(uri);
	return NULL;
}

bool
door_hides(struct MHD_Connection *conn, const char *version)
{
	const struct visitor *v = visitor_of(conn);

	return v && version != v->target_end + 1;
}

void
door_request(struct MHD_Connection *conn)
{
	struct visitor *v = visitor_of(conn);
	const union MHD_ConnectionInfo *size =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	if (!v)
		return;
	v->stage = VISIT_BODY;
	v->asked = true;
	v->taken += size ? size->header_size : 0;
	if (!v->head_ns)
		v->head_ns = clock_ns();
}

void
door_body(struct MHD_Connection *conn, size_t len)
{
	struct visitor *v = visitor_of(conn);

	if (v)
		v->taken += len;
}

void
door_whole(struct MHD_Connection *conn, bool waits)
{
	struct visitor *v = visitor_of(conn);

	if (v)
		v->stage = waits ? VISIT_CALL : VISIT_ANSWER;
}

void
door_over(struct MHD_Connection *conn)
{
	struct visitor *v = visitor_of(conn);

	if (!v)
		return;
	v->stage = VISIT_HEAD;
	v->head_ns = 0;
	v->since_ns = clock_ns();
	list_del(&v->link);
	list_push_tail(&v->door->visitors, &v->link);
}

/* ---- doors ---- */

void
door_accept(struct door *d)
{
	for (;;) {
		struct sockaddr_storage sa;
		socklen_t len = sizeof sa;
		int conn = accept4(d->fd, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (conn < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			if (errno != EAGAIN) {
				log_limited(LOG_WARN, "accept: %s", strerror(errno));
				/* Out of descriptors: the socket stays readable, so do not spin on it. */
				usleep(10000);
			}
			return;
		}
		make_room(d);
		/* libmicrohttpd closes it when it says no.  It takes it in, and closes who has to go, in a
		 * turn of its own. */
		MHD_add_connection(d->mhd, conn, (struct sockaddr *)&sa, len);
		turn(d);
	}
}

void
door_run(struct door *d)
{
	if (!d->mhd)
		return;
	look(d, clock_ns());
	turn(d);
}

int
door_wait_ms(const struct door *d)
{
	MHD_UNSIGNED_LONG_LONG ms;
	int most = d->nr ? LOOK_MS : -1;

	if (!d->mhd || MHD_get_timeout(d->mhd, &ms) != MHD_YES)
		return most;
	return most >= 0 && ms > (unsigned)most ? most : ms > 1000 ? 1000 : (int)ms;
}

/* Decodes a text as the library does. A text with an encoded NUL is not changed, because readers would stop there. */
static size_t
unescape(void *cookie, struct MHD_Connection *conn, char *text)
{
	return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

int
door_open(struct door *d, MHD_AccessHandlerCallback on_request, MHD_RequestCompletedCallback on_over,
	  void *cookie)
{
	const union MHD_DaemonInfo *info;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)(uintptr_t)tls_retrieve },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	};

	errno = 0;
	d->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
			(d->cert ? MHD_USE_TLS : 0),
		0, NULL, NULL, on_request, cookie, MHD_OPTION_NOTIFY_COMPLETED, on_over, cookie,
		MHD_OPTION_NOTIFY_CONNECTION, on_visit, d, MHD_OPTION_URI_LOG_CALLBACK, on_target, d,
		MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)(d->max + LEAVING_MAX), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
		MHD_OPTION_ARRAY, d->cert ? tls : &tls[2], MHD_OPTION_END);
	if (!d->mhd)
		return errno == EMFILE || errno == ENFILE ? -errno : -ENOMEM;
	info = MHD_get_daemon_info(d->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	check(info);
	d->epoll_fd = info->listen_fd;
	return 0;
}

void
door_close(struct door *d)
{
	if (d->mhd)
		MHD_stop_daemon(d->mhd);
	if (d->fd >= 0)
		close(d->fd);
}
