/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The right to see pages and to make control calls; control calls: what they say, and the threads that run those that may take long (reading a
 * configuration from a disk that hangs, say, or making a disk), so that health is answered meanwhile.
 *
 * A slow call's connection is suspended; when it is done the admin thread, woken through an eventfd, resumes
 * it.  Everything here but the workers themselves runs on the admin thread.
 */
#define LOG_MODULE "admin"
#include "admin/admin_int.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const struct admin_control *
find(const struct admin_env *env, const char *path)
{
	for (int i = 0; i < env->control_nr; i++) {
		const struct admin_control *ctl = &env->controls[i];

		if (ctl->path && strcmp(ctl->path, path) == 0)
			return ctl;
	}
	return NULL;
}

/* ---- running ---- */

static void
run(struct control *ct, struct call *c)
{
	FILE *out = open_memstream(&c->page.body, &c->page.len);
	int status = 500;

	c->page.type = "application/json";
	if (out) {
		status = c->ctl->post(ct->env->cookie, &c->args, out);
		putc('\n', out);
		if (fclose(out) != 0) {
			free(c->page.body);
			c->page.body = NULL;
		}
	}
	c->page.status = status;
	c->failed = !c->page.body;
	record_call(c, status);
}

static void *
worker_main(void *arg)
{
	static const char *const names[CONTROL_LANE_NR] = {
		[CONTROL_SLOW] = "control", [CONTROL_DISKS] = "control-disks", [CONTROL_WAIT] = "control-wait"
	};
	struct lane *ln = arg;
	struct control *ct = ln->ct;
	uint64_t one = 1;

	pthread_setname_np(pthread_self(), names[ln - ct->lane]);
	pthread_mutex_lock(&ct->lock);
	for (;;) {
		struct list *l = list_pop(&ln->waiting);

		if (l) {
			struct call *c = container_of(l, struct call, link);

			pthread_mutex_unlock(&ct->lock);
			run(ct, c);
			pthread_mutex_lock(&ct->lock);
			list_push_tail(&ct->done, &c->link);
			check(write(ct->done_fd, &one, sizeof one) == sizeof one);
		} else if (ct->stop) {
			break;
		} else {
			pthread_cond_wait(&ln->cond, &ct->lock);
		}
	}
	pthread_mutex_unlock(&ct->lock);
	return NULL;
}

int
control_start(struct control *ct, const struct admin_env *env)
{
	int r = 0;

	ct->env = env;
	list_init(&ct->done);
	pthread_mutex_init(&ct->lock, NULL);
	for (int i = 0; i < CONTROL_LANE_NR; i++) {
		ct->lane[i].ct = ct;
		list_init(&ct->lane[i].waiting);
		pthread_cond_init(&ct->lane[i].cond, NULL);
	}
	ct->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ct->done_fd < 0)
		return -errno;
	for (int i = CONTROL_SLOW; r == 0 && i < CONTROL_LANE_NR; i++) {
		r = pthread_create(&ct->lane[i].worker, NULL, worker_main, &ct->lane[i]);
		ct->lane[i].has_worker = r == 0;
	}
	return -r;
}

void
control_stop(struct control *ct)
{
	bool any = false;

	for (int i = 0; i < CONTROL_LANE_NR; i++) {
		if (!ct->lane[i].has_worker)
			continue;
		any = true;
		pthread_mutex_lock(&ct->lock);
		ct->stop = true;
		pthread_cond_signal(&ct->lane[i].cond);
		pthread_mutex_unlock(&ct->lock);
		pthread_join(ct->lane[i].worker, NULL);
	}
	if (any)
		control_resume(ct);
	if (ct->done_fd >= 0)
		close(ct->done_fd);
	explicit_bzero(ct->token, sizeof ct->token);
}

void
control_resume(struct control *ct)
{
	struct list *l;
	uint64_t n;

	if (read(ct->done_fd, &n, sizeof n) < 0)
		n = 0;
	pthread_mutex_lock(&ct->lock);
	while ((l = list_pop(&ct->done))) {
		struct call *c = container_of(l, struct call, link);

		c->ready = true;
		MHD_resume_connection(c->conn);
	}
	pthread_mutex_unlock(&ct->lock);
}

/* ---- who may ---- */

void
control_set_token(struct control *ct, const char *token)
{
	pthread_mutex_lock(&ct->lock);
	explicit_bzero(ct->token, sizeof ct->token);
	if (token)
		snprintf(ct->token, sizeof ct->token, "%s", token);
	pthread_mutex_unlock(&ct->lock);
}

/* Takes as long for a wrong text as for the right one of that length. */
static bool
same_text(const char *a, const char *b)
{
	size_t len = strlen(a);
	unsigned char differ = len != strlen(b);

	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(a[i] ^ b[differ ? 0 : i]);
	return !differ;
}

static bool
is_local(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	return info && info->client_addr && info->client_addr->sa_family == AF_UNIX;
}

static bool
copy_token(const char *text, char token[ADMIN_TOKEN_MAX + 1])
{
	return snprintf(token, ADMIN_TOKEN_MAX + 1, "%s", text) <= ADMIN_TOKEN_MAX;
}

/* Finds the token of a request: of "Bearer TOKEN", or of "Basic", whose name before the colon means nothing.  False: there is none. */
static bool
token_given(struct MHD_Connection *conn, bool may_be_basic, char token[ADMIN_TOKEN_MAX + 1])
{
	const char *given = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	char text[2 * ADMIN_TOKEN_MAX + 1], *colon;
	size_t len;

	if (given && strncasecmp(given, "Bearer ", 7) == 0)
		return copy_token(given + 7, token);
	if (!given || !may_be_basic || strncasecmp(given, "Basic ", 6) != 0 ||
	    base64_decode(given + 6, strlen(given + 6), text, sizeof text - 1, &len) < 0)
		return false;
	text[len] = 0;
	colon = strchr(text, ':');
	return colon && copy_token(colon + 1, token);
}

/* Judges a request that needs the token.  NULL: it may.  The Unix socket's mode has asked already. */
static const char *
refuse(struct control *ct, struct MHD_Connection *conn, bool is_get)
{
	char given[ADMIN_TOKEN_MAX + 1];
	const char *why = NULL;

	if (is_local(conn))
		return NULL;
	pthread_mutex_lock(&ct->lock);
	if (!ct->token[0])
		why = is_get ? NULL : ct->no_token;
	else if (!token_given(conn, is_get, given))
		why = is_get ? "pages other than those of health need the header Authorization: Bearer TOKEN "
			       "(admin.token_file)"
			     : "control calls over TCP need the header Authorization: Bearer TOKEN "
			       "(admin.token_file)";
	else if (!same_text(given, ct->token))
		why = "this is not the token of admin.token_file";
	pthread_mutex_unlock(&ct->lock);
	explicit_bzero(given, sizeof given);
	return why;
}

/* *ret_page is the answer to a GET without the token; false: the request may see the page. */
static bool
refuses_page(struct control *ct, struct MHD_Connection *conn, const char *path, struct page *ret_page,
	     int *ret)
{
	const char *why = ct->pages_need_a_token && !admin_is_health(path) ? refuse(ct, conn, true) : NULL;

	if (!why)
		return false;
	log_limited(LOG_WARN, "a page refused: %s", why);
	*ret = admin_error_page(401, why, ret_page);
	ret_page->basic = true;
	return true;
}

/* A page of somebody else, whose name was pointed at this machine after it was loaded, would read all that
 * is here. A request without Host is no browser's; over the socket a name means nothing. */
static bool
is_rebound(const struct control *ct, struct MHD_Connection *conn)
{
	const char *host = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	return ct->is_loopback && host && !is_local(conn) && !conf_host_is_ours(ct->s3, host, strlen(host));
}

/* ---- a call ---- */

struct query {
	struct admin_args *args;
	const char *known, *why; /* why: NULL while all is well */
};

static enum MHD_Result
add_query(void *cookie, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct query *q = cookie;

	return args_add(q->args, q->known, name, value, &q->why) == 0 ? MHD_YES : MHD_NO;
}

/* Reads the members of body and query.  NULL, or what is wrong with them. */
static const char *
read_args(struct call *c, struct MHD_Connection *conn)
{
	struct query q = { .args = &c->args, .known = c->ctl->args };

	c->body[c->len] = 0;
	if (strlen(c->body) != c->len)
		return "a byte 0 in the body";
	if (args_parse(c->body, q.known, q.args, &q.why) < 0)
		return q.why;
	q.why = NULL;
	MHD_get_connection_values(conn, MHD_GET_ARGUMENT_KIND, add_query, &q);
	return q.why;
}

static int
show(const struct control *ct, const struct admin_control *ctl, struct page *page)
{
	FILE *out = open_memstream(&page->body, &page->len);

	if (!out)
		return -ENOMEM;
	page->status = 200;
	page->type = "application/json";
	ctl->get(ct->env->cookie, out);
	putc('\n', out);
	if (fclose(out) == 0)
		return 0;
	free(page->body);
	return -ENOMEM;
}

static int
not_allowed(const char *allow, struct page *page)
{
	char text[96];
	int r;

	snprintf(text, sizeof text, "this page takes %s", allow);
	r = admin_error_page(405, text, page);
	page->allow = allow;
	return r;
}

int
control_call(struct control *ct, struct call *c, struct MHD_Connection *conn, const char *method,
	     const char *path, const char *version, bool *ret_wait, struct page *ret_page)
{
	bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0,
	     is_post = strcmp(method, "POST") == 0;
	const char *why = NULL;
	int r;

	*ret_wait = false;
	*ret_page = (struct page){ .status = 0 };
	if (c->ready) {
		*ret_page = c->page;
		c->page.body = NULL;
		return c->failed ? -ENOMEM : 0;
	}
	/* What is encoded so stays as it is (door.c). */
	if (strstr(path, "%00") || door_hides(conn, version))
		return admin_error_page(400, "a byte 0 in the path", ret_page);
	if (is_rebound(ct, conn))
		return admin_error_page(403, "Host: expected an address, localhost, or a name in s3.domain",
					ret_page);
	if (is_get && refuses_page(ct, conn, path, ret_page, &r))
		return r;
	c->ctl = find(ct->env, path);
	if (!c->ctl) {
		if (is_get)
			return admin_page(ct->env, path, ret_page);
		return admin_is_page(ct->env, path) ? not_allowed("GET, HEAD", ret_page)
						    : admin_error_page(404, "no such page", ret_page);
	}
	if (is_get && c->ctl->get)
		return show(ct, c->ctl, ret_page);
	if (!is_post)
		return not_allowed(c->ctl->get ? "GET, HEAD, POST" : "POST", ret_page);
	why = refuse(ct, conn, false);
	record_peer(conn, c->peer);
	if (why) {
		record_call(c, 401);
		log_limited(LOG_WARN, "%s refused: %s", path, why);
		return admin_error_page(401, why, ret_page);
	}
	if (c->too_large)
		return admin_error_page(413, "the body is larger than 4 KiB", ret_page);
	why = read_args(c, conn);
	if (why) {
		char text[192];

		snprintf(text, sizeof text, "%s; members: %s", why, *c->ctl->args ? c->ctl->args : "none");
		return admin_error_page(400, text, ret_page);
	}
	if (c->ctl->lane != CONTROL_AT_ONCE) {
		struct lane *ln = &ct->lane[c->ctl->lane];

		c->conn = conn;
		MHD_suspend_connection(conn);
		pthread_mutex_lock(&ct->lock);
		list_push_tail(&ln->waiting, &c->link);
		pthread_cond_signal(&ln->cond);
		pthread_mutex_unlock(&ct->lock);
		*ret_wait = true;
		return 0;
	}
	run(ct, c);
	*ret_page = c->page;
	r = c->failed ? -ENOMEM : 0;
	c->page.body = NULL;
	return r;
}
