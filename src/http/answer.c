/*
 * Replies: from struct reply to what libmicrohttpd sends.  Called from call.c, inside the library's handler
 * only (it takes a response nowhere else).
 */
#include "http/http_int.h"

#include "dialect/dialect.h"
#include "dialect/fault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* ---- the body of a stream
 * ----------------------------------------------------------------------------------------- */

static ssize_t
read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct hconn *c = cls;
	ssize_t n;

	if (c->aborted)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	n = req_stream_read(c->rq, pos, buf, max);
	if (n > 0)
		return n;
	if (n == 0) {
		/* Nothing yet.  While suspended the library neither calls again nor counts the idle time. */
		MHD_suspend_connection(c->mc);
		c->suspended = true;
		return 0;
	}
	conn_reset(c);
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* HEAD: the library asks for no byte; should it ever, there is none. */
static ssize_t
read_nothing(void *cls, uint64_t pos, char *buf, size_t max)
{
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* ---- replies
 * ------------------------------------------------------------------------------------------------------ */

static struct MHD_Response *
make_response(struct hconn *c, const struct reply *r)
{
	switch (r->body) {
	case REPLY_TEXT:
		return MHD_create_response_from_buffer((size_t)r->len_bytes, (void *)(uintptr_t)r->text,
						       MHD_RESPMEM_PERSISTENT);
	case REPLY_STREAM:
		if (r->len_bytes)
			return MHD_create_response_from_callback(r->len_bytes, HTTP_STREAM_BYTES, read_stream,
								 c, NULL);
		break;
	case REPLY_LENGTH_ONLY:
		/* A buffer of no bytes with a Content-Length of its own would send two of them. */
		if (r->len_bytes)
			return MHD_create_response_from_callback(r->len_bytes, 1, read_nothing, NULL, NULL);
		break;
	case REPLY_EMPTY:
		break;
	}
	return MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
}

static void
add_header(void *cookie, const char *name, const char *value)
{
	/* Refuses what would break the framing (a line's end in a value): such a header is left out. */
	MHD_add_response_header(cookie, name, value);
}

/* ---- replies without a body, over and over
 * ------------------------------------------------------------------------------------ */

void
answer_forget(struct hconn *c)
{
	if (c->kept.resp)
		MHD_destroy_response(c->kept.resp);
	c->kept.resp = NULL;
}

/* What the library would refuse in a value. */
static bool
is_plain(const char *value, size_t len)
{
	return len && !memchr(value, '\n', len) && !memchr(value, '\r', len) && !memchr(value, '\t', len);
}

/* Over the value of the header in the same place, if it is the same header and as long. */
static void
write_over(void *cookie, const char *name, const char *value)
{
	struct kept *k = cookie;
	size_t len = strlen(value);
	int i = k->at++;

	k->other = k->other || i >= k->nr || len != k->header[i].len ||
		   strcmp(name, k->header[i].name) != 0 || !is_plain(value, len);
	if (!k->other)
		memcpy(k->header[i].value, value, len);
}

static enum MHD_Result
note_header(void *cookie, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct kept *k = cookie;

	if (k->nr == KEPT_HEADERS_MAX)
		return MHD_NO;
	k->header[k->nr].name = name;
	k->header[k->nr].value = (char *)(uintptr_t)value;
	k->header[k->nr++].len = strlen(value);
	return MHD_YES;
}

/* Nobody but the connection holds what it kept: it has one request at a time, and the one before is over. */
static struct MHD_Response *
kept_response(struct hconn *c, const struct reply *r)
{
	struct kept *k = &c->kept;

	k->at = 0;
	k->other = !k->resp;
	if (k->resp)
		req_reply_headers(c->rq, write_over, k);
	if (!k->other && k->at == k->nr)
		return k->resp;
	answer_forget(c);
	k->resp = make_response(c, r);
	if (!k->resp)
		return NULL;
	req_reply_headers(c->rq, add_header, k->resp);
	k->nr = 0;
	/* More headers than there is room for never fit, so they are not written over. */
	MHD_get_response_headers(k->resp, note_header, k);
	return k->resp;
}

static enum MHD_Result
queue(struct hconn *c, const struct reply *r, struct MHD_Response *resp)
{
	c->stage = STAGE_ANSWER;
	return resp ? MHD_queue_response(c->mc, (unsigned)r->status, resp) : MHD_NO;
}

enum MHD_Result
answer_reply(struct hconn *c)
{
	const struct reply *r = req_reply(c->rq);
	bool unread = c->has_body && !c->body_ended;
	bool ends = r->close || c->must_close || c->close_after || c->l->h->draining || unread;
	struct MHD_Response *resp;
	enum MHD_Result ok;

	c->linger = r->close || c->must_close || unread;
	if (r->body == REPLY_EMPTY && !ends)
		return queue(c, r, kept_response(c, r));
	resp = make_response(c, r);
	if (!resp)
		return MHD_NO;
	req_reply_headers(c->rq, add_header, resp);
	if (ends)
		MHD_add_response_header(resp, "connection", "close");
	ok = queue(c, r, resp);
	MHD_destroy_response(resp);
	return ok;
}

struct text {
	char s[8192];
	size_t len;
};

static void
add_line(void *cookie, const char *name, const char *value)
{
	struct text *t = cookie;
	int n = snprintf(t->s + t->len, sizeof t->s - t->len, "%s: %s\r\n", name, value);

	if (n > 0 && (size_t)n < sizeof t->s - t->len)
		t->len += (size_t)n;
}

void
answer_past(struct hconn *c)
{
	const struct reply *r = req_reply(c->rq);
	size_t body_len = r->body == REPLY_TEXT ? (size_t)r->len_bytes : 0;
	struct text t;
	char length[24];

	/* Only the library can write into a TLS session. */
	if (c->l->cert) {
		conn_reset(c);
		return;
	}
	/* Nothing can be in the way: the library has sent all of the answer before, and no 100 (door.c). */
	t.len = (size_t)snprintf(t.s, sizeof t.s, "HTTP/1.1 %d %s\r\n", r->status,
				 MHD_get_reason_phrase_for((unsigned)r->status));
	req_reply_headers(c->rq, add_line, &t);
	snprintf(length, sizeof length, "%zu", body_len);
	add_line(&t, "content-length", length);
	add_line(&t, "connection", "close");
	if (t.len + 2 + body_len > sizeof t.s)
		return;
	memcpy(t.s + t.len, "\r\n", 2);
	if (body_len)
		memcpy(t.s + t.len + 2, r->text, body_len);
	/* What a full socket does not take goes to a client that does not read. */
	if (send(c->fd, t.s, t.len + 2 + body_len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		c->linger = false;
}

/* ---- answers without a request
 * ------------------------------------------------------------------------------------ */

static const enum fault canned_fault[CANNED_NR] = {
	[CANNED_BAD] = FAULT_BAD_REQUEST,
	[CANNED_BAD_URI] = FAULT_BAD_URI,
	[CANNED_TOO_LARGE] = FAULT_HEADERS_TOO_LARGE,
	[CANNED_BUSY] = FAULT_BUSY,
};

/* id: NULL for one that is kept, and says of no request in particular which it was. */
static struct MHD_Response *
make_canned(enum conf_dialect d, enum canned which, const char *id)
{
	char text[1024];
	struct error_detail e = { .request_id = id };
	size_t len = dialect_error_body(d, canned_fault[which], &e, text, sizeof text);
	struct MHD_Response *resp = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_COPY);

	if (!resp)
		return NULL;
	MHD_add_response_header(resp, "content-type", d == DIALECT_S3 ? "application/xml" : "text/plain");
	if (which == CANNED_BUSY)
		MHD_add_response_header(resp, "retry-after", "1");
	if (id)
		MHD_add_response_header(resp, "x-amz-request-id", id);
	MHD_add_response_header(resp, "connection", "close");
	return resp;
}

enum MHD_Result
answer_canned(struct hconn *c, enum canned which)
{
	enum conf_dialect d = c->l->conf->dialect;
	struct MHD_Response *resp;
	enum MHD_Result ok;
	char id[17];

	c->stage = STAGE_ANSWER;
	c->linger = true;
	reqs_next_id(c->l->h->reqs, id);
	resp = make_canned(d, which, id);
	/* Where there is no memory, the one that was made at start. */
	ok = MHD_queue_response(c->mc, (unsigned)fault_info(canned_fault[which])->status,
				resp ? resp : c->l->h->canned[d][which]);
	if (resp)
		MHD_destroy_response(resp);
	return ok;
}

int
answer_init(struct http *h)
{
	static const enum conf_dialect dialects[] = { DIALECT_S3, DIALECT_SCALITY };

	for (int d = 0; d < 2; d++) {
		for (int i = 0; i < CANNED_NR; i++) {
			h->canned[dialects[d]][i] = make_canned(dialects[d], (enum canned)i, NULL);
			if (!h->canned[dialects[d]][i])
				return -ENOMEM;
		}
	}
	return 0;
}

void
answer_fini(struct http *h)
{
	for (int d = 0; d < 2; d++) {
		for (int i = 0; i < CANNED_NR; i++) {
			if (h->canned[d][i])
				MHD_destroy_response(h->canned[d][i]);
		}
	}
}
