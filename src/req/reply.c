/*
 * The reply: status, headers and body of an outcome.  What an outcome looks like in each wire form is decided
 * by one table in dialect/ (protocol.md 4.1, 4.2); here it becomes header fields.
 */
#define LOG_MODULE "access"
#include "req/machine.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/hex.h"
#include "dialect/tags.h"

#include <arpa/inet.h>
#include <errno.h>
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
static void
reply_text(struct req *rq, const char *name, const char *value)
{
	size_t len = strlen(value);

	check(rq->header_nr < REQ_HEADERS_MAX);
	check(len < sizeof rq->header_text - rq->header_used);
	rq->header[rq->header_nr].name = name;
	rq->header[rq->header_nr++].value = rq->header_text + rq->header_used;
	memcpy(rq->header_text + rq->header_used, value, len + 1);
	rq->header_used += len + 1;
}

/* A value that lives as long as the request. */
static void
reply_ref(struct req *rq, const char *name, const char *value)
{
	check(rq->header_nr < REQ_HEADERS_MAX);
	rq->header[rq->header_nr].name = name;
	rq->header[rq->header_nr++].value = value;
}

static void
reply_number(struct req *rq, const char *name, uint64_t v)
{
	char text[21], *at = text + sizeof text - 1;

	*at = 0;
	do
		*--at = (char)('0' + v % 10);
	while (v /= 10);
	reply_text(rq, name, at);
}

/* ---- ETags ---- */

size_t
etag_text(const struct store_etag *e, char out[48])
{
	size_t n = 32;

	hex_write(out, e->sum, 16);
	if (e->parts == STORE_ETAG_RDMA) {
		memcpy(out + n, "-r", 2);
		n += 2;
	} else if (e->parts) {
		n += (size_t)snprintf(out + n, 16, "-%u", e->parts);
	}
	out[n] = 0;
	return n;
}

int
etag_parse(const char *text, size_t len, struct store_etag *ret_etag)
{
	struct store_etag e = { .parts = 0 };

	if (len < 32 || hex_bytes(text, e.sum, 16) < 0)
		return -EINVAL;
	if (len == 34 && text[32] == '-' && text[33] == 'r') {
		e.parts = STORE_ETAG_RDMA;
	} else if (len > 32) {
		if (text[32] != '-' || len == 33 || len > 38 || text[33] == '0')
			return -EINVAL;
		for (size_t i = 33; i < len; i++) {
			if (text[i] < '0' || text[i] > '9')
				return -EINVAL;
			e.parts = e.parts * 10 + (uint32_t)(text[i] - '0');
		}
	}
	*ret_etag = e;
	return 0;
}

/* ---- pieces of the reply ---- */

static void
crc64_text(uint64_t crc, char out[16])
{
	uint8_t b[8];

	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(crc >> (56 - 8 * i));
	base64_encode(b, sizeof b, out);
}

/* An SDK checks x-amz-checksum-* against the body it sees: only where it asked, and the whole object is that
 * body (not on an RDMA GET: item 71). */
static bool
gives_checksums(const struct req *rq)
{
	return rq->target.checksum_mode && !rq->partial && rq->rdma_bytes == 0 &&
	       (!rq->is_tokened || rq->declined);
}

/* size_bytes of the whole object. */
static void
expiration_header(struct req *rq, uint64_t size_bytes, const void *attrs, size_t attrs_len, uint64_t mtime_ns)
{
	const char *text = expiry_text(rq, size_bytes, attrs, attrs_len, mtime_ns);

	if (text)
		reply_ref(rq, "x-amz-expiration", text);
}

static void
object_headers(struct req *rq)
{
	const char *tags;
	char date[30];
	size_t len;

	http_date_format(rq->obj.meta.mtime_ns / NS_PER_S, date);
	reply_text(rq, "last-modified", date);
	reply_text(rq, "accept-ranges", "bytes");
	if (rq->partial && rq->len > 0)
		reply_header(rq, "content-range", "bytes %llu-%llu/%llu", (unsigned long long)rq->off,
			     (unsigned long long)(rq->off + rq->len - 1),
			     (unsigned long long)rq->obj.size_bytes);
	if (gives_checksums(rq)) {
		struct xml_sums sums;
		char text[16];

		sums_of_obj(&rq->obj, &sums);
		crc64_text(rq->obj.crc64, text);
		reply_text(rq, checksum_header[SUM_CRC64NVME], text);
		if (!dialect_attr(rq->obj.meta.attrs, rq->obj.meta.attrs_len, ATTR_SUM_TYPE, &len))
			reply_text(rq, ATTR_SUM_TYPE,
				   sums.type == SUM_TYPE_COMPOSITE ? "COMPOSITE" : "FULL_OBJECT");
	}
	if (rq->target.part_number && rq->obj.part_nr)
		reply_number(rq, "x-amz-mp-parts-count", rq->obj.part_nr);
	tags = dialect_attr(rq->obj.meta.attrs, rq->obj.meta.attrs_len, ATTR_TAGGING, &len);
	if (tags && len)
		reply_number(rq, "x-amz-tagging-count", (unsigned)tags_count(tags, len));
	expiration_header(rq, rq->obj.size_bytes, rq->obj.meta.attrs, rq->obj.meta.attrs_len,
			  rq->obj.meta.mtime_ns);
	rq->send_attrs = true;
}

/* Checksums that the client gave or asked for, of a PUT that was done (protocol.md 4.6). */
static void
checksum_headers(struct req *rq)
{
	for (int k = 0; k < SUM_NR; k++) {
		const struct checksum *c = &rq->target.sum[k];
		char text[64];

		if (k == SUM_MD5 || c->payload_hash || !(c->given || c->wanted))
			continue;
		if (k == SUM_CRC64NVME)
			crc64_text(rq->put.crc64, text);
		else
			base64_encode(c->value, c->len, text);
		reply_text(rq, checksum_header[k], text);
	}
}

static void
error_body(struct req *rq, enum fault f)
{
	struct error_detail d;
	char id[17], range[64];

	if (rq->target.op == OP_HEAD_OBJECT || rq->target.op == OP_HEAD_BUCKET ||
	    strcmp(rq->in.method, "HEAD") == 0 || f == FAULT_NOT_MODIFIED) {
		rq->reply.body = REPLY_EMPTY;
		return;
	}
	memset(&d, 0, sizeof d);
	req_id_text(rq, id);
	d.message = rq->why;
	d.request_id = id;
	d.resource = rq->in.target;
	d.resource_len = strcspn(rq->in.target, "?");
	if (f == FAULT_RANGE) {
		const struct field *r = dialect_field(&rq->in, "range", NULL);

		d.have_size = true;
		d.size_bytes = rq->obj.size_bytes;
		snprintf(range, sizeof range, "%s", r ? r->value : "");
		d.range_text = range;
	}
	/* s3cmd and others sign anew for the region that the answer names. */
	if (f == FAULT_AUTH_HEADER)
		d.region = rq->rs->env.conf->auth.region;
	rq->reply.body = REPLY_TEXT;
	rq->reply.text = rq->text;
	rq->reply.len_bytes = dialect_error_body(rq->listen->dialect, f, &d, rq->text, sizeof rq->text);
	reply_text(rq, "content-type", rq->listen->dialect == DIALECT_S3 ? "application/xml" : "text/plain");
}

static void
done_headers(struct req *rq, const struct outcome *o, enum outcome_kind kind)
{
	bool get = rq->target.op == OP_GET_OBJECT, head = rq->target.op == OP_HEAD_OBJECT;
	char etag[50];

	if (o->etag) {
		size_t n = etag_text(&rq->etag, etag + 1);

		etag[0] = etag[n + 1] = '"';
		etag[n + 2] = 0;
		reply_text(rq, "etag", etag);
	}
	if (o->bytes) {
		reply_number(rq, "x-amz-rdma-bytes-transferred", rq->rdma_bytes);
		if (get)
			reply_number(rq, "x-amz-rdma-bytes", rq->rdma_bytes);
	}
	if ((get || head) && o->etag)
		object_headers(rq);
	if (kind != OUT_DONE)
		return;
	if (get && o->bytes && rq->off == 0 && rq->len == rq->obj.size_bytes) {
		char text[32] = "CRC64NVME ";

		/* Every granule was checked against this sum on its way out (protocol.md section 8). */
		crc64_text(rq->obj.crc64, text + strlen(text));
		reply_text(rq, "x-amz-rdma-checksum", text);
	}
	if (op_pulls(rq->target.op))
		checksum_headers(rq);
	if (rq->target.op == OP_PUT_OBJECT)
		expiration_header(rq, rq->http_bytes + rq->rdma_bytes, rq->target.attrs, rq->target.attrs_len,
				  clock_wall_ns());
	if (rq->is_form) {
		size_t n = etag_text(&rq->etag, etag + 1);

		etag[0] = etag[n + 1] = '"';
		etag[n + 2] = 0;
		reply_text(rq, "etag", etag);
		if (form_location(rq))
			reply_ref(rq, "location", form_location(rq));
	}
	if (rq->target.op == OP_CREATE_MULTIPART_UPLOAD && rq->target.have_algorithm) {
		struct declared d;

		if (upload_declared(rq->target.attrs, rq->target.attrs_len, &d) == 0 && d.have) {
			reply_text(rq, ATTR_SUM_ALGORITHM, checksum_name(d.kind));
			reply_text(rq, ATTR_SUM_TYPE,
				   d.type == SUM_TYPE_COMPOSITE ? "COMPOSITE" : "FULL_OBJECT");
		}
	}
	if (rq->target.op == OP_GET_OBJECT_ATTRIBUTES) {
		char date[30];

		http_date_format(rq->obj.meta.mtime_ns / NS_PER_S, date);
		reply_text(rq, "last-modified", date);
	}
	if (rq->target.op == OP_HEAD_BUCKET)
		reply_text(rq, "x-amz-bucket-region", rq->rs->env.conf->auth.region);
	if (rq->target.op == OP_CREATE_BUCKET)
		reply_header(rq, "location", "/%s", rq->target.bucket);
	if (rq->reply.body == REPLY_TEXT)
		reply_text(rq, "content-type", "application/xml");
}

void
reply_build(struct req *rq, enum outcome_kind kind)
{
	enum op op = rq->target.op;
	struct outcome o = dialect_outcome(rq->target.wire, op, kind, rq->partial, rq->fault);
	char id[17];

	rq->reply.status = kind == OUT_DONE && rq->status_instead ? rq->status_instead : o.status;
	req_id_text(rq, id);
	reply_text(rq, "x-amz-request-id", id);
	reply_text(rq, "server", "gantry");
	if (o.reply)
		reply_number(rq, "x-amz-rdma-reply", (unsigned)o.reply);
	if (rq->is_tokened && rq->target.rdma_agent_cuobj)
		reply_text(rq, "x-amz-rdma-agent", "cuobj");
	if (kind == OUT_DECLINED)
		reply_text(rq, "x-gantry-rdma-reason", chan_reason_name[rq->reason]);
	done_headers(rq, &o, kind);
	if (o.body_error) {
		enum fault f = kind == OUT_DECLINED ? FAULT_RDMA_NOT_SUPPORTED : rq->fault;

		error_body(rq, f);
		if (f == FAULT_RANGE)
			reply_header(rq, "content-range", "bytes */%llu",
				     (unsigned long long)rq->obj.size_bytes);
	} else if (kind == OUT_FAILED || kind == OUT_ERROR) {
		rq->reply.body = REPLY_EMPTY;
	}
	if (o.status == 503)
		reply_text(rq, "retry-after", "1");
	/* The one answer on which a client of that protocol turns to plain HTTP (protocol.md section 8). */
	if (kind == OUT_ERROR && rq->fault == FAULT_RC_OFF)
		reply_text(rq, "x-amz-rdma-protocol-status", "unsupported");
	/* A body that nobody will read, or framing that nobody can trust, ends the connection. */
	if ((rq->wants_body && !rq->body_ended) || rq->bad_framing)
		rq->reply.close = true;
}

enum verdict
req_reply_xml(struct req *rq)
{
	if (!text_ok(&rq->out))
		return req_fail(rq, FAULT_BUSY, NULL);
	rq->reply.body = REPLY_TEXT;
	rq->reply.text = rq->out.p;
	rq->reply.len_bytes = rq->out.len;
	return req_go(rq, req_reply_step);
}

const struct reply *
req_reply(struct req *rq)
{
	check(rq->replied);
	return &rq->reply;
}

struct attr_walk {
	struct req *rq;
	bool stored; /* with the object, in contrast to what the request asks to be said */
	void (*header)(void *cookie, const char *name, const char *value);
	void *cookie;
};

/* Stored values are not terminated, and http/ wants them so. */
static void
on_attr(void *cookie, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct attr_walk *w = cookie;
	char n[256], v[DIALECT_ATTRS_MAX];
	size_t len;

	if (name_len >= sizeof n || value_len >= sizeof v || !dialect_attr_is_header(name, name_len))
		return;
	if (name_len > 15 && memcmp(name, "x-amz-checksum-", 15) == 0 && !gives_checksums(w->rq))
		return;
	memcpy(n, name, name_len);
	n[name_len] = 0;
	/* response-content-type and its kin say it instead. */
	if (w->stored && w->rq->target.attrs_len &&
	    dialect_attr(w->rq->target.attrs, w->rq->target.attrs_len, n, &len))
		return;
	memcpy(v, value, value_len);
	v[value_len] = 0;
	w->header(w->cookie, n, v);
}

void
req_reply_headers(struct req *rq, void (*header)(void *cookie, const char *name, const char *value),
		  void *cookie)
{
	struct attr_walk w = { rq, true, header, cookie };

	for (int i = 0; i < rq->header_nr; i++)
		header(cookie, rq->header[i].name, rq->header[i].value);
	cors_headers(rq, header, cookie);
	if (!rq->send_attrs || !rq->obj.is_open)
		return;
	dialect_attrs_each(rq->obj.meta.attrs, rq->obj.meta.attrs_len, on_attr, &w);
	w.stored = false;
	dialect_attrs_each(rq->target.attrs, rq->target.attrs_len, on_attr, &w);
}

/* ---- the access log ---- */

void
access_log(const struct req *rq)
{
	char id[17], peer[INET6_ADDRSTRLEN] = "-", phases[STATS_PHASE_NR * 24];

	if (!log_on(LOG_INFO))
		return;
	req_id_text(rq, id);
	req_phases_text(rq, phases, sizeof phases);
	if (rq->peer.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&rq->peer)->sin6_addr, peer, sizeof peer);
	else
		inet_ntop(AF_INET, &((const struct sockaddr_in *)&rq->peer)->sin_addr, peer, sizeof peer);
	log_write_event(LOG_EV_ACCESS, LOG_INFO, LOG_MODULE, id,
			"peer=%s op=%s status=%d rdma_bytes=%llu http_bytes=%llu us=%llu%s%s%s%s%s", peer,
			op_name[rq->target.op], rq->replied ? rq->reply.status : 0,
			(unsigned long long)rq->rdma_bytes, (unsigned long long)rq->http_bytes,
			(unsigned long long)((clock_ns() - rq->began_ns) / NS_PER_US), phases,
			rq->declined ? " declined=" : "", rq->declined ? chan_reason_name[rq->reason] : "",
			rq->fault ? " fault=" : "", rq->fault ? fault_info(rq->fault)->code : "");
}
