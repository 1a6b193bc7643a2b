/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that are written to the socket, past libmicrohttpd: those for which it has no call at that time
 * (mhd_early_reply.c), and refusals of what never became a request (admit.c, preface.c, mhd_own_answer.c).
 * Each is the last of its connection.
 */
#include "http/http_int.h"
#include "tls/handshake.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void
past_add(struct past_answer *a, const char *s, size_t len)
{
	a->cut = a->cut || len > sizeof a->s - a->len;
	if (a->cut)
		return;
	memcpy(a->s + a->len, s, len);
	a->len += len;
}

void
past_line(void *cookie, const char *name, const char *value)
{
	past_add(cookie, name, strlen(name));
	past_add(cookie, ": ", 2);
	past_add(cookie, value, strlen(value));
	past_add(cookie, "\r\n", 2);
}

void
past_begin(struct past_answer *a, const struct hconn *c, int status)
{
	char line[96], date[30];

	a->len = 0;
	a->cut = false;
	a->dialect = c->l->conf->dialect;
	past_add(a, line,
		 (size_t)snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\n", status,
				  MHD_get_reason_phrase_for((unsigned)status)));
	http_date_format(clock_wall_ns() / NS_PER_S, date);
	past_line(a, field_name[a->dialect][FIELD_DATE], date);
}

void
past_end(struct past_answer *a, bool has_length, const char *body, uint64_t len)
{
	char text[21];

	if (has_length) {
		snprintf(text, sizeof text, "%llu", (unsigned long long)len);
		past_line(a, field_name[a->dialect][FIELD_CONTENT_LENGTH], text);
	}
	past_line(a, field_name[a->dialect][FIELD_CONNECTION], "close");
	past_add(a, "\r\n", 2);
	if (body)
		past_add(a, body, (size_t)len);
}

/* Nothing of the library's can be in the way: it has sent all of the answer before. */
bool
past_send(struct hconn *c, const struct past_answer *a)
{
	const union MHD_ConnectionInfo *tls;

	if (a->cut)
		return false;
	if (!c->l->cert)
		return send(c->fd, a->s, a->len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)a->len;
	tls = MHD_get_connection_info(c->mc, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	for (size_t at = 0; at < a->len;) {
		ssize_t n = gnutls_record_send(tls->tls_session, a->s + at, a->len - at);

		if (n <= 0)
			return false; /* also a full socket: the client does not read */
		at += (size_t)n;
	}
	return true;
}

void
past_close(struct hconn *c)
{
	if (c->l->cert)
		gnutls_bye(MHD_get_connection_info(c->mc, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session,
			   GNUTLS_SHUT_WR);
	shutdown(c->fd, SHUT_WR);
}

bool
past_refuse(struct hconn *c, enum fault f, const char *why)
{
	enum conf_dialect d = c->l->conf->dialect;
	struct req_in in = { .in = { .listen = c->l->conf, .method = "" },
			     .peer = (const struct sockaddr *)&c->peer };
	struct past_answer a;
	char id[17], body[1024];
	struct error_detail e = { .message = why, .request_id = id };
	size_t len;

	reqs_refused(c->l->h->reqs, &in, f, id);
	len = dialect_error_body(d, f, &e, body, sizeof body);
	past_begin(&a, c, fault_info(f)->status);
	past_line(&a, field_name[d][FIELD_CONTENT_TYPE], d == DIALECT_S3 ? "application/xml" : "text/plain");
	past_line(&a, "x-amz-request-id", id);
	past_end(&a, true, body, len);
	return past_send(c, &a);
}
