/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a program: its beginning, its requests over HTTP, its end.  Runs on the caller's thread. */
#include "client/client_int.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- beginning and end of a call ---- */

void
call_say(struct call *c, const char *why)
{
	snprintf(c->res->message, sizeof c->res->message, "%s", why);
}

void
call_reason(struct call *c, const char *why)
{
	/* The server's own word is more precise than our reading of its answer. */
	snprintf(c->res->reason, sizeof c->res->reason, "%s", *c->r.reason ? c->r.reason : why);
}

int
call_begin(struct call *c, struct gantry *g, const char *url, const struct gantry_request *req,
	   struct gantry_result *res, struct gantry_result *own)
{
	size_t size = res && res->size ? res->size : sizeof *res;

	*c = (struct call){ .g = g, .began_ns = clock_ns() };
	*own = (struct gantry_result){ .size = size };
	/* A caller with a smaller struct gets as much as fits, at the end. */
	c->res = own;
	if (req)
		memcpy(&c->req, req, req->size && req->size < sizeof c->req ? req->size : sizeof c->req);
	if (!url || !*url) {
		call_say(c, "no URL");
		return -EINVAL;
	}
	if (!fits_header(c->req.if_match) || !fits_header(c->req.if_none_match) ||
	    !fits_header(c->req.content_type) || !fits_header(c->req.source_if_match)) {
		call_say(c, "a condition or the content type has a control character");
		return -EINVAL;
	}
	c->url = url_clean(url);
	c->h = c->url ? handle_get(g) : NULL;
	return c->h ? 0 : -ENOMEM;
}

int
call_begin_bucket(struct call *c, struct gantry *g, const char *url, const struct gantry_request *req,
		  struct gantry_result *res, struct gantry_result *own)
{
	int e = call_begin(c, g, url, req, res, own);

	if (e == 0 && (url_names_key(url) || strchr(url, '?'))) {
		call_say(c, strchr(url, '?') ? "the URL has a query, and a bucket is wanted"
					     : "the URL names a key, and a bucket is wanted");
		e = -EINVAL;
	}
	return e;
}

static void
copy_text(char *out, size_t cap, const char *text)
{
	snprintf(out, cap, "%s", text);
}

int
call_end(struct call *c, int e, struct gantry_result *res)
{
	struct gantry_result *own = c->res;

	if (!c->is_filled_in) {
		copy_text(own->etag, sizeof own->etag, c->r.etag);
		copy_text(own->checksum, sizeof own->checksum, c->r.stored_checksum);
		copy_text(own->last_modified, sizeof own->last_modified, c->r.last_modified);
	}
	if (c->r.first_ns > c->began_ns && !c->is_filled_in)
		own->first_byte_ns = c->r.first_ns - c->began_ns;
	if (e < 0) {
		own->path = GANTRY_PATH_NONE;
		own->bytes = 0;
		if (!c->is_filled_in)
			reply_xml(&c->r, "Code", own->code, sizeof own->code);
		if (c->r.status >= 300)
			reply_xml(&c->r, "Message", own->message, sizeof own->message);
		if (!*own->message && c->r.status)
			snprintf(own->message, sizeof own->message, "the server answered %d%s", c->r.status,
				 c->g->dialect == GANTRY_S3 && !c->r.has_request_id ? ", and not as S3 does"
										    : "");
		if (!*own->message)
			call_say(c, error_text(-e));
	}
	if (c->memory.region)
		region_put(c->memory.region);
	if (c->h)
		handle_put(c->g, c->h);
	free(c->url);
	if (res)
		memcpy(res, own, own->size < sizeof *own ? own->size : sizeof *own);
	return e;
}

static void
nap(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

struct exchange
call_exchange(const struct call *c, enum method method)
{
	uint64_t bytes = method == METHOD_PUT || method == METHOD_GET ? c->size : 0;
	uint64_t ms = c->req.timeout_ms ? c->req.timeout_ms : c->g->timeout_ms;

	return (struct exchange){ .method = method,
				  .url = c->url,
				  .dialect = c->g->dialect,
				  .if_match = c->req.if_match,
				  .if_none_match = c->req.if_none_match,
				  .content_type = c->req.content_type,
				  .ttl_s = c->req.ttl_s,
				  .size = bytes,
				  .buffer_size = bytes,
				  .is_device = c->memory.is_device,
				  .connect_timeout_ms = c->g->connect_timeout_ms,
				  .timeout_ms = ms > INT32_MAX ? INT32_MAX : (unsigned)ms };
}

int
call_run(struct call *c, const struct exchange *x)
{
	int e = http_exchange(c->h, x, &c->r, c->res->message, sizeof c->res->message);

	c->res->requests++;
	c->res->status = c->r.status;
	if (x->token)
		c->res->reply = c->r.has_reply ? c->r.code : 0;
	return e;
}

bool
call_back_off(const struct call *c, int turn)
{
	unsigned ms = c->r.retry_after_s ? c->r.retry_after_s * 1000 : 50u << (2 * turn);

	if (turn + 1 >= BUSY_TRIES || (c->req.busy_ms && ms > c->req.busy_ms))
		return false;
	nap(ms);
	return true;
}

int
call_run_plain(struct call *c, const struct exchange *x)
{
	for (int turn = 0;; turn++) {
		int e = call_run(c, x);

		if (e < 0 || judge_plain(&c->r) != VERDICT_BUSY || !call_back_off(c, turn))
			return e;
	}
}

int
call_s3(struct call *c, const struct exchange *x)
{
	int e;

	if (c->g->dialect != GANTRY_S3) {
		call_say(c, "the scality dialect has no such request");
		return -EOPNOTSUPP;
	}
	e = call_run_plain(c, x);
	return e == 0 && judge_plain(&c->r) != VERDICT_BODY ? status_errno(&c->r) : e;
}
