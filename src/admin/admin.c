/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin thread: one libmicrohttpd daemon without a socket of its own, fed from up to two listening
 * sockets, all waited for in one poll().  It owns the sockets and the thread.  Started and stopped by main.
 */
#define LOG_MODULE "admin"
#include "admin/admin_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Scrapers and people: few, and none of them may keep a connection for ever. */
#define CONNECTIONS_MAX 64
#define CONNECTION_TIMEOUT_S 20

struct admin {
	struct admin_env env;
	struct control control;
	struct MHD_Daemon *mhd;
	int epoll_fd; /* libmicrohttpd's */
	int tcp_fd, unix_fd, stop_fd;
	int port;
	char *socket;
	dev_t socket_dev;
	ino_t socket_ino;
	pthread_t thread;
};

/*
 * The allocator gives a thread memory of its own with the first that it asks for.  Were that the first
 * question, /livez could not say how it is when others have used up what there is.
 */
static void
own_memory(void)
{
	void *volatile first = malloc(64u << 10);

	free(first);
}

/* ---- sockets ---- */

static int
fail(char *err, size_t err_len, int r, const char *where)
{
	snprintf(err, err_len, "admin: cannot listen on %s: %s", where, strerror(-r));
	return r;
}

static int
listen_tcp(struct admin *a, const struct admin_params *p, char *err, size_t err_len)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof sa;
	int on = 1, r;

	a->tcp_fd = socket(p->sa->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->tcp_fd < 0)
		return fail(err, err_len, -errno, p->address);
	/* A port in TIME_WAIT is free. */
	setsockopt(a->tcp_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(a->tcp_fd, (const struct sockaddr *)p->sa, p->sa_len) < 0 || listen(a->tcp_fd, 64) < 0 ||
	    getsockname(a->tcp_fd, (struct sockaddr *)&sa, &len) < 0) {
		r = -errno;
		return fail(err, err_len, r, p->address);
	}
	a->port = ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
						 : ((struct sockaddr_in *)&sa)->sin_port);
	return 0;
}

/* A socket that a dead process left behind refuses connections; a live one must stay. */
static bool
is_stale(const struct sockaddr_un *un)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	bool stale;

	if (fd < 0 || lstat(un->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	stale = connect(fd, (const struct sockaddr *)un, sizeof *un) < 0 && errno == ECONNREFUSED;
	close(fd);
	return stale;
}

static int
bind_unix(int fd, const struct sockaddr_un *un)
{
	/* On Linux a socket's mode is that of its file: nobody else can connect even for a moment. */
	if (fchmod(fd, 0600) < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)un, sizeof *un) == 0)
		return 0;
	if (errno != EADDRINUSE || !is_stale(un))
		return -errno;
	if (unlink(un->sun_path) < 0 || bind(fd, (const struct sockaddr *)un, sizeof *un) < 0)
		return -errno;
	return 0;
}

static int
listen_unix(struct admin *a, const struct admin_params *p, char *err, size_t err_len)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct stat st;
	int r;

	if (strlen(p->socket) >= sizeof un.sun_path)
		return fail(err, err_len, -ENAMETOOLONG, p->socket);
	strcpy(un.sun_path, p->socket);
	a->unix_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->unix_fd < 0)
		return fail(err, err_len, -errno, p->socket);
	r = bind_unix(a->unix_fd, &un);
	if (r < 0)
		return fail(err, err_len, r, p->socket);
	if (chmod(p->socket, 0600) < 0 || stat(p->socket, &st) < 0 || listen(a->unix_fd, 64) < 0) {
		r = -errno;
		return fail(err, err_len, r, p->socket);
	}
	a->socket_dev = st.st_dev;
	a->socket_ino = st.st_ino;
	a->socket = strdup(p->socket);
	return a->socket ? 0 : fail(err, err_len, -ENOMEM, p->socket);
}

/* Another daemon may have put its own in our place meanwhile. */
static void
remove_socket(const struct admin *a)
{
	struct stat st;

	if (a->socket && stat(a->socket, &st) == 0 && st.st_dev == a->socket_dev &&
	    st.st_ino == a->socket_ino)
		unlink(a->socket);
}

/* ---- requests ---- */

static enum MHD_Result
answer(struct MHD_Connection *conn, struct page *page)
{
	struct MHD_Response *rsp =
		MHD_create_response_from_buffer(page->len, page->body, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result r;

	if (!rsp) {
		free(page->body);
		return MHD_NO;
	}
	MHD_add_response_header(rsp, MHD_HTTP_HEADER_CONTENT_TYPE, page->type);
	if (page->policy)
		MHD_add_response_header(rsp, "Content-Security-Policy", page->policy);
	MHD_add_response_header(rsp, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (page->allow)
		MHD_add_response_header(rsp, MHD_HTTP_HEADER_ALLOW, page->allow);
	if (page->status == 401)
		MHD_add_response_header(rsp, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"gantry\"");
	if (page->status == 503)
		MHD_add_response_header(rsp, MHD_HTTP_HEADER_RETRY_AFTER, "1");
	r = MHD_queue_response(conn, (unsigned)page->status, rsp);
	MHD_destroy_response(rsp);
	return r;
}

static enum MHD_Result
on_request(void *cls, struct MHD_Connection *conn, const char *url, const char *method, const char *version,
	   const char *upload, size_t *upload_len, void **state)
{
	struct admin *a = cls;
	struct call *c = *state;
	struct page page;
	bool wait;
	int r;

	/* First with the header alone, then with each piece of a body, then at its end; and once more when a
	 * slow call is over. */
	if (!c) {
		*state = calloc(1, sizeof *c);
		return *state ? MHD_YES : MHD_NO;
	}
	if (*upload_len) {
		if (*upload_len > CONTROL_BODY_MAX - c->len) {
			c->too_large = true;
		} else {
			memcpy(c->body + c->len, upload, *upload_len);
			c->len += *upload_len;
		}
		*upload_len = 0;
		return MHD_YES;
	}
	r = control_call(&a->control, c, conn, method, url, &wait, &page);
	if (r == 0 && wait)
		return MHD_YES;
	/* Without memory for a page: the connection is closed. */
	return r < 0 ? MHD_NO : answer(conn, &page);
}

static void
on_over(void *cls, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode why)
{
	struct call *c = *state;

	if (c)
		free(c->page.body);
	free(c);
	*state = NULL;
}

/* ---- the thread ---- */

static void
accept_all(struct admin *a, int fd)
{
	for (;;) {
		struct sockaddr_storage sa;
		socklen_t len = sizeof sa;
		int conn = accept4(fd, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

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
		/* libmicrohttpd closes it when it says no (too many connections). */
		MHD_add_connection(a->mhd, conn, (struct sockaddr *)&sa, len);
	}
}

static int
wait_ms(const struct admin *a)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(a->mhd, &ms) != MHD_YES)
		return -1;
	return ms > 1000 ? 1000 : (int)ms;
}

static void *
admin_main(void *arg)
{
	struct admin *a = arg;
	struct pollfd fds[] = {
		{ a->stop_fd, POLLIN, 0 },         { a->epoll_fd, POLLIN, 0 },
		{ a->tcp_fd, POLLIN, 0 },          { a->unix_fd, POLLIN, 0 }, /* -1 is passed over */
		{ a->control.done_fd, POLLIN, 0 },
	};

	pthread_setname_np(pthread_self(), "admin");
	own_memory();
	for (;;) {
		int n = poll(fds, 5, wait_ms(a));

		if (n < 0 && errno != EINTR)
			log_limited(LOG_ERROR, "poll: %s", strerror(errno));
		if (n > 0 && fds[0].revents)
			return NULL;
		for (int i = 2; n > 0 && i < 4; i++) {
			if (fds[i].revents)
				accept_all(a, fds[i].fd);
		}
		if (n > 0 && fds[4].revents)
			control_resume(&a->control);
		MHD_run(a->mhd);
	}
}

static void
release(struct admin *a)
{
	control_stop(&a->control);
	if (a->mhd)
		MHD_stop_daemon(a->mhd);
	remove_socket(a);
	for (int i = 0; i < 3; i++) {
		int fd = i == 0 ? a->tcp_fd : i == 1 ? a->unix_fd : a->stop_fd;

		if (fd >= 0)
			close(fd);
	}
	free(a->socket);
	free(a);
}

static int
start_daemon(struct admin *a)
{
	const union MHD_DaemonInfo *info;

	int r;

	a->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (a->stop_fd < 0)
		return -errno;
	r = control_start(&a->control, &a->env);
	if (r < 0)
		return r;
	a->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
				  NULL, NULL, on_request, a, MHD_OPTION_NOTIFY_COMPLETED, on_over, a,
				  MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
				  MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_TIMEOUT_S,
				  MHD_OPTION_END);
	if (!a->mhd)
		return -ENOMEM;
	info = MHD_get_daemon_info(a->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	check(info);
	a->epoll_fd = info->listen_fd;
	return -pthread_create(&a->thread, NULL, admin_main, a);
}

int
admin_start(const struct admin_params *params, const struct admin_env *env, struct admin **ret_admin,
	    char *err, size_t err_len)
{
	struct admin *a = calloc(1, sizeof *a);
	int r = 0;

	if (!a) {
		snprintf(err, err_len, "admin: out of memory");
		return -ENOMEM;
	}
	a->env = *env;
	a->control.s3 = params->s3;
	a->control.is_loopback = params->address && conf_is_loopback(params->sa);
	a->tcp_fd = a->unix_fd = a->stop_fd = a->epoll_fd = a->control.done_fd = -1;
	if (params->address)
		r = listen_tcp(a, params, err, err_len);
	if (r == 0 && params->socket)
		r = listen_unix(a, params, err, err_len);
	if (r == 0) {
		r = start_daemon(a);
		if (r < 0)
			snprintf(err, err_len, "admin: cannot start: %s", strerror(-r));
	}
	if (r < 0) {
		release(a);
		return r;
	}
	if (params->token)
		control_set_token(&a->control, params->token);
	*ret_admin = a;
	return 0;
}

void
admin_set_token(struct admin *a, const char *token)
{
	control_set_token(&a->control, token);
}

int
admin_port(const struct admin *a)
{
	return a->port;
}

void
admin_stop(struct admin *a)
{
	uint64_t one = 1;

	if (!a)
		return;
	check(write(a->stop_fd, &one, sizeof one) == sizeof one);
	pthread_join(a->thread, NULL);
	release(a);
}
