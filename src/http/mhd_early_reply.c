/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers past the library.  libmicrohttpd takes an answer with the head of a request or behind its body
 * (0.9.75 and all that came since), so one that is known in between waits for the rest of the body.  It does
 * here while the body flows: the connection may then go on.  When nothing of the body has come for a while, or
 * the rest takes longer than limits.s3_progress, or the answer is not to wait (others do), it is written to
 * the socket and the connection ended.
 *
 * The request is over with that, and what it holds goes back at once.  The library closes the connection by
 * its own time-out, at most a second after the last of the body; the socket then lingers as behind every
 * answer that came before the end of a body (mhd_linger.c).
 */
#include "http/http_int.h"
#include "http/tls_int.h"

#include "base/clock.h"
#include "dialect/dialect.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define STALLED_NS (NS_PER_S / 4) /* a body of which nothing came for so long does not flow */

/* Does the body of c flow, so that its answer can wait for the end of it? */
static bool
flows(const struct hconn *c, uint64_t now)
{
	return c->body_ns + STALLED_NS > now && !req_reply(c->rq)->at_once;
}

void
early_reply_watch(struct hconn *c)
{
	uint64_t now;

	if (list_linked(&c->owed) || c->replied_early)
		return;
	now = clock_ns();
	c->owed_since_ns = c->look_ns = now;
	if (!flows(c, now)) {
		list_push_head(&c->l->h->owed, &c->owed);
		return;
	}
	c->look_ns += STALLED_NS;
	list_push_tail(&c->l->h->owed, &c->owed); /* in the order of look_ns, as all wait as long */
}

void
early_reply_forget(struct hconn *c)
{
	if (list_linked(&c->owed))
		list_del(&c->owed);
}

struct text {
	char s[8192 + 2048]; /* the largest text of an error, and headers */
	size_t len;
	bool cut;
};

static void
add(struct text *t, const char *s, size_t len)
{
	t->cut = t->cut || len > sizeof t->s - t->len;
	if (t->cut)
		return;
	memcpy(t->s + t->len, s, len);
	t->len += len;
}

static void
add_line(void *cookie, const char *name, const char *value)
{
	add(cookie, name, strlen(name));
	add(cookie, ": ", 2);
	add(cookie, value, strlen(value));
	add(cookie, "\r\n", 2);
}

/* Whole, or false.  Nothing of the library's can be in the way: it has sent all of the answer before. */
static bool
write_all(struct hconn *c, const struct text *t)
{
	const union MHD_ConnectionInfo *tls;

	if (!c->l->cert)
		return send(c->fd, t->s, t->len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)t->len;
	tls = MHD_get_connection_info(c->mc, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	for (size_t at = 0; at < t->len;) {
		ssize_t n = gnutls_record_send(tls->tls_session, t->s + at, t->len - at);

		if (n <= 0)
			return false; /* also a full socket: the client does not read */
		at += (size_t)n;
	}
	return true;
}

static bool
write_reply(struct hconn *c)
{
	const struct reply *r = req_reply(c->rq);
	struct text t = { .len = 0 };
	char line[96], date[30];

	/* Not of a known size here; and dialect/ refuses the bodies of requests that are answered so. */
	if (r->body == REPLY_STREAM && r->len_bytes)
		return false;
	add(&t, line,
	    (size_t)snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\n", r->status,
			     MHD_get_reason_phrase_for((unsigned)r->status)));
	http_date_format(clock_wall_ns() / NS_PER_S, date);
	add_line(&t, "date", date);
	req_reply_headers(c->rq, add_line, &t);
	if (r->status != 204 && r->status != 304) {
		snprintf(line, sizeof line, "%llu",
			 (unsigned long long)(r->body == REPLY_EMPTY ? 0 : r->len_bytes));
		add_line(&t, "content-length", line);
	}
	add_line(&t, "connection", "close");
	add(&t, "\r\n", 2);
	if (r->body == REPLY_TEXT)
		add(&t, r->text, (size_t)r->len_bytes);
	return !t.cut && write_all(c, &t);
}

/* Nobody but us may answer on this connection any more. */
static void
answer_early(struct hconn *c)
{
	struct req *rq = c->rq;
	bool sent = write_reply(c);

	c->replied_early = true;
	c->linger = sent;
	c->rq = NULL;
	req_end(rq, sent);
	if (!sent) {
		conn_abort(c);
		return;
	}
	MHD_set_connection_option(c->mc, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
	c->l->hot = true;
}

bool
early_reply_run(struct http *h)
{
	bool any = false;
	uint64_t now;

	if (list_empty(&h->owed))
		return false;
	now = clock_ns();
	list_for_each_safe(l, &h->owed)
	{
		struct hconn *c = container_of(l, struct hconn, owed);

		if (c->look_ns > now)
			break;
		list_del(&c->owed);
		if (!flows(c, now) || c->owed_since_ns + h->conf->limits.s3_progress_ns <= now) {
			answer_early(c);
			any = true;
		} else {
			c->look_ns = now + STALLED_NS;
			list_push_tail(&h->owed, &c->owed);
		}
	}
	return any;
}
