/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reply: status, headers and body of an outcome.  What an outcome looks like in each wire form is decided
 * by one table in dialect/ (protocol.md 4.1, 4.2); here it becomes header fields.
 */
#include "req/machine.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
reply_header(struct req *rq, const char *name, const char *fmt, ...)
{
	size_t room = sizeof rq->header_text - rq->header_used;
	va_list ap;
	int n;

	check(rq->header_nr < REQ_HEADERS_MAX);
	va_start(ap, fmt);
	n = vsnprintf(rq->header_text + rq->header_used, room, fmt, ap);
	va_end(ap);
	check(n >= 0 && (size_t)n < room);
	rq->header[rq->header_nr].name = name;
	rq->header[rq->header_nr++].value = rq->header_text + rq->header_used;
	rq->header_used += (size_t)n + 1;
}

/* Most values are texts that are there already, and each reply has ten: no format is read for those. */
void
reply_bytes(struct req *rq, const char *name, const char *value, size_t len)
{
	char *to = rq->header_text + rq->header_used;

	check(rq->header_nr < REQ_HEADERS_MAX);
	check(len < sizeof rq->header_text - rq->header_used);
	rq->header[rq->header_nr].name = name;
	rq->header[rq->header_nr++].value = to;
	memcpy(to, value, len);
	to[len] = 0;
	rq->header_used += len + 1;
}

/* A value that lives as long as the request. */
void
reply_ref(struct req *rq, const char *name, const char *value)
{
	check(rq->header_nr < REQ_HEADERS_MAX);
	rq->header[rq->header_nr].name = name;
	rq->header[rq->header_nr++].value = value;
}

void
reply_number(struct req *rq, const char *name, uint64_t v)
{
	char text[20], *end = text + sizeof text, *at = end;

	do
		*--at = (char)('0' + v % 10);
	while (v /= 10);
	reply_bytes(rq, name, at, (size_t)(end - at));
}

void
reply_etag(struct req *rq)
{
	char text[50];
	size_t n = etag_text(&rq->etag, text + 1);

	text[0] = text[n + 1] = '"';
	reply_bytes(rq, reply_name(rq, FIELD_ETAG), text, n + 2);
}

/* ---- pieces of the reply ---- */

/* The body of a refused signature says what it was held against.  A function of its own: it wants some
 * stack. */
static __attribute__((noinline)) size_t
signature_body(struct req *rq, enum fault f, struct error_detail *d, char *text)
{
	struct auth_explained x;
	struct auth_env ae;

	front_auth_env(rq, &ae);
	if (auth_explain(&ae, &rq->in, &x)) {
		d->to_sign = x.to_sign;
		d->canonical = x.canonical;
		d->canonical_len = x.canonical_len;
	}
	return dialect_error_body(rq->listen->dialect, f, d, text, REQ_ERROR_BYTES);
}

static void
error_body(struct req *rq, enum fault f)
{
	struct error_detail d;
	char id[17], range[64], *text;

	rq->reply.body = REPLY_EMPTY;
	if (f == FAULT_NOT_MODIFIED)
		return;
	/* HEAD has the type, as on S3, and no body. */
	reply_text(rq, reply_name(rq, FIELD_CONTENT_TYPE),
		   rq->listen->dialect == DIALECT_S3 ? "application/xml" : "text/plain");
	if (strcmp(rq->in.method, "HEAD") == 0 || !(text = req_error_part(rq)))
		return;
	memset(&d, 0, sizeof d);
	req_id_text(rq, id);
	d.message = rq->why;
	d.request_id = id;
	if (rq->uri.path.len) {
		d.resource = rq->uri.path.p;
		d.resource_len = rq->uri.path.len;
	}
	if (f == FAULT_RANGE) {
		const struct field *r = dialect_field(&rq->in, "range", NULL);

		d.have_size = true;
		d.size_bytes = rq->obj.size_bytes;
		snprintf(range, sizeof range, "%s", r ? r->value : "");
		d.range_text = range;
	}
	/* s3cmd and others sign again for the region that the answer names. */
	if (f == FAULT_AUTH_HEADER || f == FAULT_AUTH_QUERY)
		d.region = conf_region(rq->rs->env.conf);
	rq->reply.body = REPLY_TEXT;
	rq->reply.text = text;
	/* Not of a chunk's: those chain from one that held. */
	rq->reply.len_bytes = f == FAULT_SIGNATURE && !rq->identity.entry
				      ? signature_body(rq, f, &d, text)
				      : dialect_error_body(rq->listen->dialect, f, &d, text, REQ_ERROR_BYTES);
}

/* Tells whether a reply says where the bucket is: those about one, and refusals, since SDKs correct
 * themselves by it, on HEAD, too, where there is no body. */
static bool
names_region(const struct req *rq, enum outcome_kind kind)
{
	if (rq->listen->dialect != DIALECT_S3 || rq->target.bucket_len == 0 ||
	    rq->fault == FAULT_NOT_MODIFIED)
		return false;
	return kind == OUT_ERROR || kind == OUT_FAILED || op_info[rq->target.op].level == LEVEL_BUCKET;
}

/* Of objects and uploads S3 says how they are encrypted; here the disks do it, or nobody. */
static bool
says_encryption(const struct req *rq, const struct outcome *o, enum outcome_kind kind)
{
	if (!rq->rs->env.conf->s3.encrypted_below || rq->listen->dialect != DIALECT_S3)
		return false;
	switch (rq->target.op) {
	case OP_COPY_OBJECT:
	case OP_UPLOAD_PART_COPY:
	case OP_CREATE_MULTIPART_UPLOAD:
	case OP_COMPLETE_MULTIPART_UPLOAD:
	case OP_POST_OBJECT:
		return kind == OUT_DONE;
	default:
		return o->etag && (kind == OUT_DONE || kind == OUT_DECLINED);
	}
}

void
reply_build(struct req *rq, enum outcome_kind kind)
{
	enum op op = rq->target.op;
	struct outcome o = dialect_outcome(rq->target.wire, op, kind, rq->partial, rq->fault);
	bool declined = kind == OUT_DECLINED || kind == OUT_DECLINED_2XX;
	char id[17];

	rq->reply.status = kind == OUT_DONE && rq->status_instead ? rq->status_instead : o.status;
	req_id_text(rq, id);
	reply_bytes(rq, "x-amz-request-id", id, sizeof id - 1);
	reply_ref(rq, reply_name(rq, FIELD_SERVER), "gantry");
	if (names_region(rq, kind))
		reply_text(rq, "x-amz-bucket-region", conf_region(rq->rs->env.conf));
	if (o.reply)
		reply_number(rq, "x-amz-rdma-reply", (unsigned)o.reply);
	if (rq->is_tokened && rq->target.rdma_agent_cuobj)
		reply_text(rq, "x-amz-rdma-agent", "cuobj");
	if (rq->declined && (declined || kind == OUT_ERROR))
		reply_text(rq, "x-gantry-rdma-reason", chan_reason_name[rq->reason]);
	if (o.etag)
		reply_etag(rq);
	if (o.bytes) {
		reply_number(rq, "x-amz-rdma-bytes-transferred", rq->rdma_bytes);
		if (!op_pulls(op))
			reply_number(rq, "x-amz-rdma-bytes", rq->rdma_bytes);
	}
	if (says_encryption(rq, &o, kind))
		reply_text(rq, "x-amz-server-side-encryption", "AES256");
	if (rq->hooks && rq->hooks->headers)
		rq->hooks->headers(rq, &o, kind);
	if (kind == OUT_DONE && rq->reply.body == REPLY_TEXT)
		reply_text(rq, reply_name(rq, FIELD_CONTENT_TYPE), "application/xml");
	if (o.body_error || kind == OUT_FAILED || kind == OUT_ERROR)
		error_body(rq, declined ? FAULT_RDMA_NOT_SUPPORTED : rq->fault);
	/* Of HEAD, too, which has no body. */
	if ((kind == OUT_ERROR || kind == OUT_FAILED) && rq->fault == FAULT_RANGE)
		reply_header(rq, reply_name(rq, FIELD_CONTENT_RANGE), "bytes */%llu",
			     (unsigned long long)rq->obj.size_bytes);
	if (o.status == 503)
		reply_text(rq, reply_name(rq, FIELD_RETRY_AFTER),
			   kind == OUT_ERROR && rq->fault == FAULT_NO_DISK ? "30" : "1");
	if (kind == OUT_ERROR && rq->fault == FAULT_METHOD) {
		char allow[DIALECT_ALLOW_BYTES];

		dialect_allow(&rq->target, allow);
		reply_text(rq, reply_name(rq, FIELD_ALLOW), allow);
	}
	/* The one answer on which a client of that protocol turns to plain HTTP (protocol.md section 8). */
	if (kind == OUT_ERROR && rq->fault == FAULT_RC_OFF)
		reply_text(rq, "x-amz-rdma-protocol-status", "unsupported");
	/* A body that nobody will read, or framing that nobody can trust, ends the connection. */
	if ((rq->wants_body && !rq->body_ended) || rq->bad_framing)
		rq->reply.close = true;
	rq->reply.at_once = rq->revoked;
}

const struct reply *
req_reply(struct req *rq)
{
	check(rq->replied);
	return &rq->reply;
}

void
req_reply_headers(struct req *rq, header_fn header, void *cookie)
{
	for (int i = 0; i < rq->header_nr; i++)
		header(cookie, rq->header[i].name, rq->header[i].value);
	cors_headers(rq, header, cookie);
	if (rq->hooks && rq->hooks->stored)
		rq->hooks->stored(rq, header, cookie);
}
