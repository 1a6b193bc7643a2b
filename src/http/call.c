/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd's calls about a request, turned into those of req/.
 *
 * The library calls with no data when the head is in (STAGE_HEAD), with data for each part of a body, and
 * with no data again at its end.  It calls the same way once more after a suspended connection was resumed.
 * An answer queued in STAGE_HEAD makes it close the connection, so a request without a body is let through to
 * the last call even when its reply is there already.
 */
#include "http/http_int.h"

#include "base/clock.h"
#include "stats/stats.h"

#include <string.h>

static enum MHD_Result
suspend(struct hconn *c)
{
	MHD_suspend_connection(c->mc);
	c->suspended = true;
	return MHD_YES;
}

static enum MHD_Result
refuse(struct hconn *c, enum canned which, const struct req_in *in)
{
	stats_event(c->l->h->stats, STATS_HTTP_REFUSED);
	return answer_canned(c, which, in);
}

/* Counts the bytes of a head.  A blank line in front of it, which the library passes over, is not among them:
 * then the connection is taken for one with half a head, which costs it a part of its idle time. */
static size_t
head_bytes(const struct hconn *c)
{
	const union MHD_ConnectionInfo *size =
		MHD_get_connection_info(c->mc, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return size ? size->header_size : 0;
}

/* The head is in. */
static enum MHD_Result
begin(struct hconn *c, const char *method, const char *version)
{
	struct http *h = c->l->h;
	enum canned bad = head_check(c, method, version);
	struct req_in in = { .in = { .listen = c->l->conf,
				     .rdma = &h->conf->rdma,
				     .s3 = &h->conf->s3,
				     .method = method,
				     .fields = c->head->fields,
				     .field_nr = c->head->field_nr,
				     .absent_lengths = c->head->absent_lengths,
				     .http_1_0 = strcmp(version, "HTTP/1.0") == 0,
				     .is_clean = bad == CANNED_NR },
			     .target = c->head->target,
			     .target_len = c->head->target_len,
			     .local = (struct sockaddr *)&c->local,
			     .peer = (struct sockaddr *)&c->peer,
			     .client = c->client,
			     .conn = c };

	c->taken += head_bytes(c);
	if (list_linked(&c->unfinished))
		list_del(&c->unfinished);
	if (bad != CANNED_NR)
		return refuse(c, bad, &in);
	c->offered = 0;
	c->rq = req_begin(h->reqs, &in);
	if (!c->rq)
		return refuse(c, CANNED_BUSY, &in);
	if (c->gone && req_is_tokened(c->rq))
		req_gone(c->rq);
	c->stage = STAGE_HEAD;
	return MHD_YES;
}

/* Nothing of a body was read yet: answer at once, read it, or wait until one of the two can be said. */
static enum MHD_Result
head(struct hconn *c)
{
	if (c->has_body) {
		if (req_is_ready(c->rq))
			return answer_reply(c);
		if (!req_wants_body(c->rq))
			return suspend(c);
	}
	c->stage = STAGE_BODY;
	if (c->has_body)
		c->body_ns = clock_ns();
	return MHD_YES;
}

static enum MHD_Result
body(struct hconn *c, const char *data, size_t *len)
{
	size_t n;

	c->body_ns = clock_ns();
	if (!req_is_ready(c->rq) && req_wants_body(c->rq)) {
		n = req_body(c->rq, data, *len);
		if (n < *len && !req_is_ready(c->rq)) {
			*len -= n;
			c->taken += n;
			c->offered = *len;
			return suspend(c);
		}
	}
	c->taken += *len;
	*len = 0; /* taken, or read and thrown away */
	if (req_is_ready(c->rq))
		early_reply_watch(c);
	return MHD_YES;
}

static enum MHD_Result
last(struct hconn *c)
{
	if (!c->body_ended) {
		c->body_ended = true;
		early_reply_forget(c);
		if (c->has_body && req_wants_body(c->rq) && !req_is_ready(c->rq))
			req_body_end(c->rq);
	}
	if (req_is_ready(c->rq))
		return answer_reply(c);
	/*
	 * What is suspended from in here is read from once more when it is resumed, and an end of the input
	 * there counts as an abort, although the request is in.  Suspended between calls, the library has
	 * noted by then that it wants nothing to read (and a system call is saved).
	 */
	c->park = true;
	conn_todo(c);
	return MHD_YES;
}

enum MHD_Result
on_call(void *cls, struct MHD_Connection *mc, const char *url, const char *method, const char *version,
	const char *data, size_t *data_len, void **req_cls)
{
	struct hconn *c = *req_cls;

	c->l->calls++;
	if (c->aborted || c->replied_early)
		return MHD_NO;
	if (c->gone)
		conn_todo(c);
	switch (c->stage) {
	case STAGE_IDLE:
		if (begin(c, method, version) == MHD_NO)
			return MHD_NO;
		return c->stage == STAGE_HEAD ? head(c) : MHD_YES;
	case STAGE_HEAD:
		return head(c);
	case STAGE_BODY:
		return *data_len ? body(c, data, data_len) : last(c);
	case STAGE_ANSWER:
		/* Part of a body after an answer: thrown away. */
		*data_len = 0;
		return MHD_YES;
	}
	return MHD_NO;
}

void
on_completed(void *cls, struct MHD_Connection *mc, void **req_cls, enum MHD_RequestTerminationCode why)
{
	struct hconn *c = *req_cls;
	struct req *rq;

	if (!c)
		return;
	rq = c->rq;
	c->rq = NULL;
	early_reply_forget(c);
	if (rq)
		req_end(rq, c->stage == STAGE_ANSWER && why == MHD_REQUEST_TERMINATED_COMPLETED_OK &&
				    !c->aborted);
	conn_head_put(c);
	admit_request_over(c);
	c->stage = STAGE_IDLE;
	c->park = false;
	c->failed = why != MHD_REQUEST_TERMINATED_COMPLETED_OK;
	if (c->gone || c->failed)
		conn_todo(c);
	if (c->failed && !c->replied_early)
		c->linger = false;
	*req_cls = NULL;
}
