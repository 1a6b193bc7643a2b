/* SPDX-License-Identifier: Apache-2.0 */
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

/* ---- the body of a stream ---- */

static ssize_t
read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct hconn *c = cls;
	ssize_t n;

	c->l->calls++;
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

/* ---- replies ---- */

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
	/* Refuses what would break the framing (a line's end in a value): such a header is left out.  One
	 * without a value is left out, too; a blank means the same. */
	MHD_add_response_header(cookie, name, *value ? value : " ");
}

/* ---- replies without a body, over and over ---- */

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
	int i = k->at++;
	size_t len;

	if (k->other)
		return;
	k->other = i >= k->nr || strcmp(name, k->header[i].name) != 0;
	/* Most values say what they said before. */
	if (k->other || strcmp(value, k->header[i].value) == 0)
		return;
	len = strlen(value);
	k->other = len != k->header[i].len || !is_plain(value, len);
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

/* Passes the fields of a kept reply to header(), with the date, which the library would compute for each reply. */
static void
kept_headers(struct hconn *c, void (*header)(void *cookie, const char *name, const char *value), void *cookie)
{
	header(cookie, MHD_HTTP_HEADER_DATE, c->l->h->date);
	req_reply_headers(c->rq, header, cookie);
}

/* Does the reply of c fit in there?  Then it is there now. */
static bool
fits(struct kept *k, struct hconn *c)
{
	if (!k->resp)
		return false;
	k->at = 0;
	k->other = false;
	kept_headers(c, write_over, k);
	return !k->other && k->at == k->nr;
}

/*
 * The library makes text of the headers before MHD_queue_response() and the call that it came from return.
 * So those of a reply that another connection still sends may be written over; only its status and its body
 * of no bytes are still looked at, and they are alike in all of them.
 */
static struct MHD_Response *
kept_response(struct hconn *c, const struct reply *r)
{
	struct http *h = c->l->h;
	struct kept *k;

	for (unsigned i = 0; i < KEPT_NR; i++, c->kept++) {
		k = &h->kept[c->kept % KEPT_NR];
		if (fits(k, c))
			return k->resp;
	}
	c->kept = h->kept_next++;
	k = &h->kept[c->kept % KEPT_NR];
	if (k->resp)
		MHD_destroy_response(k->resp);
	k->resp = make_response(c, r);
	if (!k->resp)
		return NULL;
	kept_headers(c, add_header, k->resp);
	k->nr = 0;
	/* More headers than there is room for never fit, so they are not written over. */
	MHD_get_response_headers(k->resp, note_header, k);
	return k->resp;
}

static enum MHD_Result
queue(struct hconn *c, const struct reply *r, struct MHD_Response *resp)
{
	c->stage = STAGE_ANSWER;
	return resp ? mhd_queue(c->mc, (unsigned)r->status, resp) : MHD_NO;
}

enum MHD_Result
answer_reply(struct hconn *c)
{
	const struct reply *r = req_reply(c->rq);
	bool unread = c->has_body && !c->body_ended;
	bool ends = r->close || c->must_close || c->close_after || c->leaving || c->l->h->draining || unread;
	struct MHD_Response *resp;
	enum MHD_Result ok;

	/* Who was told to go, and had a request on its way, may have sent more. */
	c->linger = r->close || c->must_close || c->leaving || unread;
	if (r->body == REPLY_EMPTY && !ends)
		return queue(c, r, kept_response(c, r));
	resp = make_response(c, r);
	if (!resp)
		return MHD_NO;
	req_reply_headers(c->rq, add_header, resp);
	if (ends)
		MHD_add_response_header(resp, field_name[c->l->conf->dialect][FIELD_CONNECTION], "close");
	ok = queue(c, r, resp);
	MHD_destroy_response(resp);
	return ok;
}

/* ---- answers without a request ---- */

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
	MHD_add_response_header(resp, field_name[d][FIELD_CONTENT_TYPE],
				d == DIALECT_S3 ? "application/xml" : "text/plain");
	if (which == CANNED_BUSY)
		MHD_add_response_header(resp, field_name[d][FIELD_RETRY_AFTER], "1");
	if (id)
		MHD_add_response_header(resp, "x-amz-request-id", id);
	MHD_add_response_header(resp, field_name[d][FIELD_CONNECTION], "close");
	return resp;
}

enum MHD_Result
answer_canned(struct hconn *c, enum canned which, const struct req_in *in)
{
	enum conf_dialect d = c->l->conf->dialect;
	struct MHD_Response *resp;
	enum MHD_Result ok;
	char id[17];

	c->stage = STAGE_ANSWER;
	c->linger = true;
	reqs_refused(c->l->h->reqs, in, canned_fault[which], id);
	resp = make_canned(d, which, id);
	/* Where there is no memory, the one that was made at start. */
	ok = mhd_queue(c->mc, (unsigned)fault_info(canned_fault[which])->status,
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
	for (int i = 0; i < KEPT_NR; i++) {
		if (h->kept[i].resp)
			MHD_destroy_response(h->kept[i].resp);
	}
}
