/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET and HEAD: one object (or a range of it) into the client's memory, or into the HTTP body.
 *
 *   start -> opened -> [ticket -> lease] -> leased -> pushed -> reply
 *                 \                  \-> declined -> over_http, or reply
 *                  \-> over_http -> ticketed -> first bytes -> reply (stream)
 *      any of them -> req_fail() -> drain -> reply
 *
 * An arrow goes over a wait where the name after it says so: opened, leased, pushed, ticketed.
 */
#include "ops/ops_int.h"

#include "base/age_clock.h"
#include "base/check.h"
#include "base/clock.h"
#include "dialect/tags.h"

#include <errno.h>
#include <string.h>

static enum verdict get_leased(struct req *rq);
static enum verdict get_declined(struct req *rq);
static enum verdict get_over_http(struct req *rq);
static enum verdict get_opened(struct req *rq);
static enum verdict get_pushed(struct req *rq);
static enum verdict get_http_ticketed(struct req *rq);
static enum verdict get_first_bytes(struct req *rq);

/* Not HEAD, and not where a cache asks whether it has the bytes already: it mostly does. */
static bool
wants_first_bytes(const struct target *t)
{
	const struct range *r = &t->range;

	return t->op != OP_HEAD_OBJECT && t->part_number <= 1 && !t->if_none_match.present &&
	       !t->have_if_modified_since &&
	       (r->kind == RANGE_NONE || r->kind == RANGE_SUFFIX || r->first < STORE_GRANULE);
}

/* How many bytes from the object's beginning on the first read will take, as far as can be said before it is open; 0: that
 * depends on its size. */
static uint64_t
first_bytes(const struct req *rq)
{
	const struct range *r = &rq->target.range;
	uint64_t first = r->kind == RANGE_NONE ? 0 : r->first;
	uint64_t len = rq->is_tokened ? rq->target.token.size : STORE_GRANULE;

	if (r->kind == RANGE_SUFFIX)
		return 0;
	if (r->kind == RANGE_FROM_TO && r->last - first < len)
		len = r->last - first + 1;
	return len < UINT64_MAX - first ? first + len : UINT64_MAX;
}

enum verdict
get_start(struct req *rq)
{
	struct store_key k = req_key(rq);

	/* A link to somebody's bytes could make them a page of this host. */
	if (rq->identity.anonymous && rq->target.attrs_len)
		return req_fail(rq, FAULT_BAD_REQUEST,
				"response-* is taken in signed requests only, as on S3.");
	if (wants_first_bytes(&rq->target))
		return req_open_to_read(rq, &k, first_bytes(rq), get_opened);
	return req_open(rq, &k, get_opened);
}

/*
 * A part of what was uploaded in parts, a range, or all of it.  An object of one PUT is its only part.  Parts
 * count from 1 in their order, whatever their numbers were: clients ask for 1 to x-amz-mp-parts-count.
 */
static enum fault
which_bytes(struct req *rq)
{
	const struct target *t = &rq->target;
	struct store_part part;

	/* The last bytes of nothing are all of it, as on S3 (RFC 9110 14.1.2). */
	if (t->range.kind == RANGE_SUFFIX && t->range.last && rq->obj.size_bytes == 0 &&
	    rq->listen->dialect == DIALECT_S3) {
		rq->off = rq->len = 0;
		rq->partial = false;
		return FAULT_NONE;
	}
	if (!t->part_number)
		return range_resolve(&t->range, rq->obj.size_bytes, &rq->off, &rq->len, &rq->partial) < 0
			       ? FAULT_RANGE
			       : FAULT_NONE;
	rq->partial = true;
	rq->off = 0;
	rq->len = rq->obj.size_bytes;
	if (rq->obj.part_nr == 0)
		return t->part_number == 1 ? FAULT_NONE : FAULT_INVALID_PART_NUMBER;
	if (store_obj_part_at(&rq->obj, t->part_number - 1, &part) < 0)
		return FAULT_INVALID_PART_NUMBER;
	rq->off = part.off_bytes;
	rq->len = part.size_bytes;
	return FAULT_NONE;
}

/* Which bytes: the range against the object's size, then (tokened) against the window (protocol.md 4.3). */
static enum verdict
get_range(struct req *rq)
{
	const struct target *t = &rq->target;
	const char *why;
	enum fault f;
	bool ranged;

	f = which_bytes(rq);
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	ranged = rq->partial;
	if (!rq->is_tokened)
		return req_go(rq, get_over_http);
	if (!chan_serves(rq->rs->env.chan, t->token.kind))
		return req_lease(rq, get_leased, get_declined);
	if (rq->len == 0)
		return req_go(rq, req_reply_step); /* a zero-byte object moves nothing (item 64) */
	if (token_check_move(&t->token, &why) < 0)
		return req_fail(rq, FAULT_BAD_TOKEN, why);
	if (rq->len > t->token.size) {
		if (!ranged && !dialect_wire_clips(t->wire) && rq->rs->env.conf->rdma.short_get_reject)
			return req_fail(rq, FAULT_BAD_REQUEST,
					"The object is larger than the token's window.");
		rq->len = t->token.size;
		/* Scality's clients without Range want 200 for what fits (4.3); everybody else must see that
		 * it is a part. */
		rq->partial = ranged || !dialect_wire_clips(t->wire);
	}
	req_deadlines(rq, rq->len);
	return req_lease(rq, get_leased, get_declined);
}

static bool
is_conditional(const struct target *t)
{
	return t->if_match.present || t->if_none_match.present || t->have_if_modified_since ||
	       t->have_if_unmodified_since || t->have_if_range;
}

static enum verdict
get_opened(struct req *rq)
{
	char etag[48];
	size_t len;
	enum fault f;

	if (rq->obj.op.result < 0)
		return req_fail(rq, fault_of(rq->obj.op.result), NULL);
	rq->etag = rq->obj.meta.etag;
	if (!is_conditional(&rq->target))
		return req_go(rq, get_range);
	len = etag_text(&rq->etag, etag);
	f = dialect_conditions(&rq->target, etag, len, rq->obj.meta.mtime_ns / NS_PER_S);
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	return req_go(rq, get_range);
}

/* ---- by RDMA ---- */

static enum verdict
get_leased(struct req *rq)
{
	rq->phase = PHASE_MOVING;
	xfer_push(&rq->xfer, &rq->obj, rq->off, rq->len, &rq->lease, rq->rs->env.conf->rdma.inflight_bytes);
	return req_go(rq, get_pushed);
}

static enum verdict
get_pushed(struct req *rq)
{
	if (!rq->xfer.ended)
		return req_wait(rq, "push", get_pushed);
	/* Once we reply the client may reuse its memory. */
	check(rq->xfer.inflight == 0);
	check(rq->lease.outstanding == 0);
	rq->rdma_bytes = rq->xfer.moved;
	if (rq->xfer.result == -EBADMSG)
		return req_fail(rq, FAULT_DAMAGED, NULL);
	if (rq->xfer.result < 0) {
		rq->errno_seen = rq->xfer.result;
		return req_fail(rq, rq->lease.failed ? FAULT_TRANSFER : fault_of(rq->xfer.result), NULL);
	}
	check(rq->xfer.moved == rq->len);
	lease_release(rq);
	return req_go(rq, req_reply_step);
}

/* ---- over HTTP ---- */

static enum verdict
get_declined(struct req *rq)
{
	enum fault f;

	req_declined(rq);
	xfer_fini(&rq->xfer);
	/* Where a decline is a 2xx the data comes with it (4.1). */
	if (!rq->declined_2xx)
		return req_go(rq, req_reply_step);
	/* What a window would have clipped, a body need not. */
	f = which_bytes(rq);
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	rq->total_deadline_ns = UINT64_MAX;
	rq->progress_limit_ns = rq->rs->env.conf->limits.s3_progress_ns;
	return req_go(rq, get_over_http);
}

static enum verdict
get_over_http(struct req *rq)
{
	rq->reply.len_bytes = rq->len;
	if (rq->target.op == OP_HEAD_OBJECT) {
		rq->reply.body = REPLY_LENGTH_ONLY;
		return req_go(rq, req_reply_step);
	}
	if (rq->len == 0)
		return req_go(rq, req_reply_step);
	return req_http_ticket(rq, get_http_ticketed);
}

static enum verdict
get_http_ticketed(struct req *rq)
{
	if (!rq->xfer.have_ticket)
		return req_wait(rq, "ticket", get_http_ticketed);
	rq->phase = PHASE_MOVING;
	rq->reply.body = REPLY_STREAM;
	xfer_serve(&rq->xfer, &rq->obj, rq->off, rq->len);
	return req_go(rq, get_first_bytes);
}

/* The status line waits for the first bytes: a damaged object can still be an honest 500. */
static enum verdict
get_first_bytes(struct req *rq)
{
	if (rq->xfer.result < 0) {
		if (rq->xfer.inflight > 0)
			return req_wait(rq, "read", get_first_bytes);
		rq->reply.body = REPLY_EMPTY;
		return req_fail(rq, fault_of(rq->xfer.result), NULL);
	}
	if (!xfer_has_bytes(&rq->xfer))
		return req_wait(rq, "read", get_first_bytes);
	return req_go(rq, req_reply_step);
}

/* ---- what the reply says ---- */

/* An SDK checks x-amz-checksum-* against the body it sees: only where it asked, and that body is the whole
 * object, or a part of it that has one of its own (not on an RDMA GET: item 71). */
static bool
gives_checksums(const struct req *rq)
{
	return rq->target.checksum_mode && (!rq->partial || rq->target.part_number) && rq->rdma_bytes == 0 &&
	       (!rq->is_tokened || rq->declined_2xx);
}

static bool
is_of_part(const struct req *rq)
{
	return rq->target.part_number && rq->obj.part_nr;
}

/*
 * One checksum only: clients skip the check of a composite where it stands alone, and fail where it does
 * not.  The object's is among its attributes and goes out with them, but for CRC64NVME, which every object
 * has.
 */
static void
checksum_headers(struct req *rq)
{
	struct xml_sums object, sums;
	struct store_part part;
	char text[64];
	size_t len;

	sums_of_obj(&rq->obj, &object);
	sums = object;
	if (is_of_part(rq)) {
		if (store_obj_part_at(&rq->obj, rq->target.part_number - 1, &part) < 0)
			return;
		sums_stored(part.attrs, part.attrs_len, &part.crc64, &sums);
	}
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		if (!sums.sum[k].have || !(is_of_part(rq) || k == SUM_CRC64NVME))
			continue;
		text[sum_text(sums.sum[k].value, k, 0, text)] = 0;
		reply_text(rq, checksum_header[k], text);
	}
	if (!dialect_attr(rq->obj.meta.attrs, rq->obj.meta.attrs_len, ATTR_SUM_TYPE, &len))
		reply_text(rq, ATTR_SUM_TYPE,
			   object.type == SUM_TYPE_COMPOSITE ? "COMPOSITE" : "FULL_OBJECT");
}

/* Would a browser look into the bytes for what they are, and perhaps find a page in them? It does where
 * nothing says it, or what says it is no type (WHATWG MIME Sniffing). */
static bool
is_sniffed(const struct req *rq)
{
	static const char *const none[] = { "unknown/unknown", "application/unknown", "*/*" };
	size_t len;
	const char *v = dialect_attr(rq->target.attrs, rq->target.attrs_len, "content-type", &len);
	struct span type;

	if (!v)
		v = dialect_attr(rq->obj.meta.attrs, rq->obj.meta.attrs_len, "content-type", &len);
	if (!v || !memchr(v, '/', len))
		return true;
	type = span_trim(span_cut(&(struct span){ v, len }, ';'));
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		if (span_is_nocase(type, none[i]))
			return true;
	}
	return false;
}

static uint64_t
seconds_left(uint64_t expires_ns)
{
	uint64_t now_ns = age_clock_ns();

	return now_ns < expires_ns ? (expires_ns - now_ns + NS_PER_S - 1) / NS_PER_S : 0;
}

static void
object_headers(struct req *rq)
{
	const char *tags;
	char date[30];
	size_t len;

	http_date_format(rq->obj.meta.mtime_ns / NS_PER_S, date);
	reply_text(rq, reply_name(rq, FIELD_LAST_MODIFIED), date);
	reply_ref(rq, reply_name(rq, FIELD_ACCEPT_RANGES), "bytes");
	if (rq->partial && rq->len > 0)
		reply_header(rq, reply_name(rq, FIELD_CONTENT_RANGE), "bytes %llu-%llu/%llu",
			     (unsigned long long)rq->off, (unsigned long long)(rq->off + rq->len - 1),
			     (unsigned long long)rq->obj.size_bytes);
	if (gives_checksums(rq))
		checksum_headers(rq);
	if ((!rq->is_tokened || rq->declined_2xx) && is_sniffed(rq))
		reply_text(rq, reply_name(rq, FIELD_TYPE_OPTIONS), "nosniff");
	if (is_of_part(rq))
		reply_number(rq, "x-amz-mp-parts-count", rq->obj.part_nr);
	tags = dialect_attr(rq->obj.meta.attrs, rq->obj.meta.attrs_len, ATTR_TAGGING, &len);
	if (tags && len)
		reply_number(rq, "x-amz-tagging-count", (unsigned)tags_count(tags, len));
	reply_expiration(rq, rq->obj.size_bytes, &rq->obj.meta);
	if (rq->obj.meta.expires_ns)
		reply_number(rq, "x-gantry-expires", seconds_left(rq->obj.meta.expires_ns));
	rq->send_attrs = true;
}

/* A 304 says what a cache goes by, and nothing of the bytes that it does not bring (RFC 9110 15.4.5): SDKs
 * would look for those that a checksum is of. */
static bool
is_for_caches(const char *name)
{
	return strcmp(name, "cache-control") == 0 || strcmp(name, "expires") == 0;
}

static void
not_modified_headers(struct req *rq)
{
	char date[30];

	http_date_format(rq->obj.meta.mtime_ns / NS_PER_S, date);
	reply_text(rq, reply_name(rq, FIELD_LAST_MODIFIED), date);
	rq->send_attrs = true;
}

static void
get_headers(struct req *rq, const struct outcome *o, enum outcome_kind kind)
{
	if (!o->etag)
		return;
	if (rq->fault == FAULT_NOT_MODIFIED) {
		not_modified_headers(rq);
		return;
	}
	object_headers(rq);
	if (kind == OUT_DONE && o->bytes && rq->off == 0 && rq->len == rq->obj.size_bytes) {
		char text[32] = "CRC64NVME ";

		/* Every granule was checked against this sum on its way out (protocol.md section 8). */
		sum_text64(rq->obj.crc64, text + strlen(text));
		reply_text(rq, "x-amz-rdma-checksum", text);
	}
}

struct attr_walk {
	struct req *rq;
	bool stored; /* with the object, in contrast to what the request asks to be said */
	bool typed;  /* a Content-Type was handed out */
	header_fn header;
	void *cookie;
};

/* Copies a stored value and terminates it, as http/ wants it; metadata that no header can carry as it is
 * becomes encoded words.  False: there is no room. */
static bool
attr_value(const struct req *rq, const char *name, const char *value, size_t len, char *out, size_t cap)
{
	bool words = rq->listen->dialect == DIALECT_S3 && strncmp(name, "x-amz-meta-", 11) == 0 &&
		     dialect_needs_words(value, len);
	size_t n = len;

	if (len >= cap)
		return false;
	if (words)
		n = dialect_words(value, len, out, cap);
	else
		memcpy(out, value, len);
	out[n] = 0;
	return !words || n;
}

static void
on_attr(void *cookie, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct attr_walk *w = cookie;
	char n[256], v[DIALECT_ATTRS_MAX];
	enum reply_field h;
	size_t len;

	if (name_len >= sizeof n || !dialect_attr_is_header(name, name_len))
		return;
	memcpy(n, name, name_len);
	n[name_len] = 0;
	if (strncmp(n, "x-amz-checksum-", 15) == 0 &&
	    (!gives_checksums(w->rq) || (is_of_part(w->rq) && strcmp(n, ATTR_SUM_TYPE) != 0)))
		return;
	if (w->rq->fault == FAULT_NOT_MODIFIED && !is_for_caches(n))
		return;
	/* response-content-type and its kin say it instead. */
	if (w->stored && w->rq->target.attrs_len &&
	    dialect_attr(w->rq->target.attrs, w->rq->target.attrs_len, n, &len))
		return;
	if (!attr_value(w->rq, n, value, value_len, v, sizeof v))
		return;
	h = name[0] == 'x' ? FIELD_NR : reply_field_find(name, name_len);
	w->typed |= h == FIELD_CONTENT_TYPE;
	w->header(w->cookie, h == FIELD_NR ? n : reply_name(w->rq, h), v);
}

static void
get_stored(struct req *rq, header_fn header, void *cookie)
{
	struct attr_walk w = { rq, true, false, header, cookie };

	if (!rq->send_attrs || !rq->obj.is_open)
		return;
	dialect_attrs_each(rq->obj.meta.attrs, rq->obj.meta.attrs_len, on_attr, &w);
	w.stored = false;
	dialect_attrs_each(rq->target.attrs, rq->target.attrs_len, on_attr, &w);
	/* What S3 says of an object of which nobody said what it is: programs count on the field. */
	if (!w.typed && rq->listen->dialect == DIALECT_S3 && rq->fault != FAULT_NOT_MODIFIED)
		header(cookie, reply_name(rq, FIELD_CONTENT_TYPE), "binary/octet-stream");
}

const struct op_hooks get_hooks = { .headers = get_headers, .stored = get_stored };
