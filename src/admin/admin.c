/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin thread: two doors (door.c), one for TCP and one for the Unix socket, all waited for in one
 * poll(). It owns the sockets and the thread.  Started and stopped by main.
 */
#define LOG_MODULE "admin"
#include "admin/admin_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Scrapers and people are few, the operator's commands fewer. */
#define TCP_MAX 64
#define UNIX_MAX 16
/* Connections wait in line in the kernel, after those of a client that floods the port: one that finds the
 * line full tries again after a second. */
#define BACKLOG 4096
#define LOOK_MS 1000 /* between two looks at the reasons of health */

struct admin {
	struct admin_env env;
	struct control control;
	struct admin_closed closed;
	struct door tcp, local;
	int stop_fd;
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
	/* "*" is both families through one socket, as of the listeners for clients. */
	int on = 1, six_only = p->address && p->address[0] != '*', r;

	a->tcp.fd = socket(p->sa->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->tcp.fd < 0)
		return fail(err, err_len, -errno, p->address);
	/* A port in TIME_WAIT is free. */
	setsockopt(a->tcp.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (p->sa->ss_family == AF_INET6)
		setsockopt(a->tcp.fd, IPPROTO_IPV6, IPV6_V6ONLY, &six_only, sizeof six_only);
	if (bind(a->tcp.fd, (const struct sockaddr *)p->sa, p->sa_len) < 0 ||
	    listen(a->tcp.fd, BACKLOG) < 0 || getsockname(a->tcp.fd, (struct sockaddr *)&sa, &len) < 0) {
		r = -errno;
		return fail(err, err_len, r, p->address);
	}
	a->port = ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
						 : ((struct sockaddr_in *)&sa)->sin_port);
	return 0;
}

/* The socket of a dead process refuses connections; a live one must stay. */
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
	a->local.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->local.fd < 0)
		return fail(err, err_len, -errno, p->socket);
	r = bind_unix(a->local.fd, &un);
	if (r < 0)
		return fail(err, err_len, r, p->socket);
	if (chmod(p->socket, 0600) < 0 || stat(p->socket, &st) < 0 || listen(a->local.fd, BACKLOG) < 0) {
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
	if (page->basic)
		MHD_add_response_header(rsp, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
					"Basic realm=\"gantry: the token as the password\"");
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
		door_request(conn);
		*state = calloc(1, sizeof *c);
		return *state ? MHD_YES : MHD_NO;
	}
	if (*upload_len) {
		door_body(conn, *upload_len);
		if (*upload_len > CONTROL_BODY_MAX - c->len) {
			c->too_large = true;
		} else {
			memcpy(c->body + c->len, upload, *upload_len);
			c->len += *upload_len;
		}
		*upload_len = 0;
		return MHD_YES;
	}
	r = control_call(&a->control, c, conn, method, url, version, &wait, &page);
	door_whole(conn, wait);
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
	door_over(conn);
}

/* ---- the thread ---- */

/* Until the earlier of two; -1 is never. */
static int
wait_ms(const struct admin *a)
{
	int tcp = door_wait_ms(&a->tcp), local = door_wait_ms(&a->local);
	int ms = tcp < 0 || (local >= 0 && local < tcp) ? local : tcp;

	/* The reasons of health are looked at as often. */
	return ms < 0 || ms > LOOK_MS ? LOOK_MS : ms;
}

static void *
admin_main(void *arg)
{
	struct admin *a = arg;
	uint64_t looked_ns = 0;
	struct pollfd fds[] = {
		{ a->stop_fd, POLLIN, 0 },      { a->control.done_fd, POLLIN, 0 },
		{ a->tcp.fd, POLLIN, 0 },       { a->local.fd, POLLIN, 0 }, /* -1 is passed over */
		{ a->tcp.epoll_fd, POLLIN, 0 }, { a->local.epoll_fd, POLLIN, 0 },
	};

	pthread_setname_np(pthread_self(), "admin");
	own_memory();
	for (;;) {
		int n = poll(fds, sizeof fds / sizeof *fds, wait_ms(a));

		if (clock_ns() - looked_ns >= LOOK_MS * NS_PER_MS) {
			health_look(&a->env);
			looked_ns = clock_ns();
		}

		if (n < 0 && errno != EINTR)
			log_limited(LOG_ERROR, "poll: %s", strerror(errno));
		if (n > 0 && fds[0].revents)
			return NULL;
		if (n > 0 && fds[1].revents)
			control_resume(&a->control);
		if (n > 0 && fds[2].revents)
			door_accept(&a->tcp);
		if (n > 0 && fds[3].revents)
			door_accept(&a->local);
		door_run(&a->tcp);
		door_run(&a->local);
	}
}

static void
release(struct admin *a)
{
	control_stop(&a->control);
	door_close(&a->tcp);
	remove_socket(a);
	door_close(&a->local);
	if (a->stop_fd >= 0)
		close(a->stop_fd);
	free(a->socket);
	health_free(a->env.reasons);
	free(a);
}

static int
start_thread(struct admin *a)
{
	int r;

	a->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (a->stop_fd < 0)
		return -errno;
	r = control_start(&a->control, &a->env);
	if (r == 0 && a->tcp.fd >= 0)
		r = door_open(&a->tcp, on_request, on_over, a);
	if (r == 0 && a->local.fd >= 0)
		r = door_open(&a->local, on_request, on_over, a);
	return r < 0 ? r : -pthread_create(&a->thread, NULL, admin_main, a);
}

static void
init_door(struct admin *a, struct door *d, bool tcp, int max)
{
	*d = (struct door){ .fd = -1, .epoll_fd = -1, .tcp = tcp, .max = max, .closed = &a->closed };
	list_init(&d->visitors);
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
	a->control.pages_need_a_token = params->address && !a->control.is_loopback;
	a->env.closed = &a->closed;
	a->env.reasons = health_new();
	init_door(a, &a->tcp, true, TCP_MAX);
	a->tcp.cert = params->cert;
	init_door(a, &a->local, false, UNIX_MAX);
	a->stop_fd = a->control.done_fd = -1;
	if (!a->env.reasons) {
		snprintf(err, err_len, "admin: out of memory");
		r = -ENOMEM;
	}
	if (r == 0 && params->address)
		r = listen_tcp(a, params, err, err_len);
	if (r == 0 && params->socket)
		r = listen_unix(a, params, err, err_len);
	snprintf(a->control.no_token, sizeof a->control.no_token,
		 "control calls over TCP need admin.token_file, which is not set; %s%s",
		 a->socket ? "the Unix socket takes them: " : "there is no Unix socket (admin.socket) either",
		 a->socket ? a->socket : "");
	if (r == 0) {
		r = start_thread(a);
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

int
admin_mute(struct admin *a, const char *code, uint64_t for_s)
{
	return health_mute(a->env.reasons, code, for_s);
}

int
admin_keep_mutes(struct admin *a, const char *path)
{
	return health_keep(a->env.reasons, path);
}

void
admin_show_health(struct admin *a, FILE *out)
{
	health_page(&a->env, "/healthz", out);
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
