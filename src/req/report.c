/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people see of a request: its id, its line in the dump, its entry among the latest that were declined
 * or went wrong (stats/recent.c), and its event, of which the access log, the audit stream and followers are
 * made.  The core's thread.
 */
#define LOG_MODULE "access"
#include "req/machine.h"

#include "audit/audit.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/hex.h"
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- ids ---- */

/* Unique in this process by the counter, across cores and restarts by the salt.  The first digit is a
 * letter, since parsers of XML make numbers of what may be one. */
static uint64_t
id_bits(const struct reqs *rs, uint64_t id)
{
	return (id * 0x9e3779b97f4a7c15ull ^ rs->id_salt) | 0xa000000000000000ull;
}

static uint64_t
req_id_bits(const struct req *rq)
{
	return id_bits(rq->rs, rq->id);
}

void
req_id_text(const struct req *rq, char out[17])
{
	hex_write_u64(out, req_id_bits(rq));
}

/* As a URL has it: no byte of a client's ends a field, a string or a line.  "-" for nothing. */
static const char *
escaped(char *out, size_t cap, const char *text, size_t len)
{
	if (escape_url(out, cap, text, len) == 0)
		memcpy(out, "-", 2);
	return out;
}

/* ---- the dump ---- */

static uint64_t
bytes_so_far(const struct req *rq)
{
	return rq->xfer.pool ? rq->xfer.moved : rq->rdma_bytes + rq->http_bytes;
}

/* 0: unknown, or none are moved. */
static uint64_t
bytes_in_all(const struct req *rq)
{
	if (rq->xfer.pool && rq->xfer.len != UINT64_MAX)
		return rq->xfer.len;
	if (!rq->wants_body)
		return 0;
	return rq->target.have_decoded_length ? rq->target.decoded_length : rq->target.content_length;
}

void
req_line(const struct req *rq, char *out, size_t cap)
{
	const char *signer = identity_access_key(&rq->identity);
	char id[17], peer[ADDRESS_TEXT_BYTES], bucket[ESCAPE_URL_BYTES(sizeof rq->target.bucket)];

	req_id_text(rq, id);
	snprintf(out, cap,
		 "id=%s core=%d op=%s access_key=%.48s peer=%s bucket=%s bytes=%llu length=%llu step=%s "
		 "age_ms=%llu "
		 "holds=%d pieces=%d outstanding=%d%s%s%s",
		 id, rq->rs->env.core, op_name[rq->target.op], signer ? signer : "-",
		 address_text((const struct sockaddr *)&rq->peer, peer),
		 escaped(bucket, sizeof bucket, rq->target.bucket, rq->target.bucket_len),
		 (unsigned long long)bytes_so_far(rq), (unsigned long long)bytes_in_all(rq),
		 rq->wait      ? rq->wait
		 : rq->replied ? "reply"
			       : "run",
		 (unsigned long long)((clock_ns() - rq->began_ns) / NS_PER_MS), rq->holds,
		 rq->xfer.pool ? rq->xfer.active : 0, rq->lease.outstanding, rq->gone ? " gone" : "",
		 rq->ended ? " ended" : "", rq->detached ? " detached" : "");
}

void
reqs_dump(const struct reqs *rs, void (*line)(void *cookie, const char *text), void *cookie)
{
	list_for_each(l, &rs->live)
	{
		char text[REQ_LINE_BYTES];

		req_line(container_of(l, struct req, link), text, sizeof text);
		line(cookie, text);
	}
}

/* ---- the status page ---- */

void
req_note(const struct req *rq)
{
	struct timespec now;
	struct stats_note n = { .id = req_id_bits(rq),
				.op = (int)rq->target.op,
				.status = rq->replied ? rq->reply.status : 0 };

	_Static_assert(sizeof n.whose.client >= ADDRESS_TEXT_BYTES, "an address");
	_Static_assert(sizeof n.whose.bucket >= sizeof rq->target.bucket, "a bucket");
	if (!rq->declined && n.status < 500)
		return;
	address_text((const struct sockaddr *)&rq->peer, n.whose.client);
	memcpy(n.whose.bucket, rq->target.bucket, rq->target.bucket_len);
	clock_gettime(CLOCK_REALTIME, &now);
	n.unix_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	if (rq->declined)
		n.reason = (int)rq->reason;
	else if (rq->fault != FAULT_NONE)
		n.code = fault_info(rq->fault)->code;
	stats_note(rq->rs->env.stats, &n);
}

/* ---- the event ---- */

/* " open_us=12 wire_us=340" */
static void
phases_text(const struct req *rq, char *out, size_t cap)
{
	size_t n = 0;

	out[0] = 0;
	for (int i = 0; i < STATS_PHASE_NR; i++) {
		if (rq->phase_ns[i] >= NS_PER_US && n < cap)
			n += (size_t)snprintf(out + n, cap - n, " %s_us=%llu", stats_phase_name[i],
					      (unsigned long long)(rq->phase_ns[i] / NS_PER_US));
	}
}

/* An event and room for its texts. */
struct seen {
	struct audit_event e;
	char id[17], peer[ADDRESS_TEXT_BYTES], claimed[AUTH_ACCESS_KEY_MAX + 1], etag[48];
};

/* claimed: access key that a form names; without it the one that the rest of the request names, if there is
 * no signer. */
static void
see_client(struct seen *s, const char *signer, struct span claimed, const struct dialect_in *in,
	   const struct sockaddr *peer)
{
	s->e.peer = address_text(peer, s->peer);
	s->e.access_key = signer;
	if (signer)
		return;
	if (claimed.len > AUTH_ACCESS_KEY_MAX)
		claimed.len = AUTH_ACCESS_KEY_MAX;
	if (claimed.len)
		memcpy(s->claimed, claimed.p, claimed.len);
	else
		claimed.len = auth_claimed_key(in, s->claimed, AUTH_ACCESS_KEY_MAX);
	s->claimed[claimed.len] = 0;
	if (claimed.len)
		s->e.claimed_access_key = s->claimed;
}

/* Returns true for a request that names no operation, because its target cannot be parsed or the resource has no such
 * method, unless the method reads. */
static bool
is_unknown_change(const struct req *rq)
{
	const char *method = rq->in.method;

	return rq->target.op == OP_NONE && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 &&
	       strcmp(method, "OPTIONS") != 0;
}

static enum audit_kind
kind_of(const struct req *rq, enum fault f)
{
	int status = f ? fault_info(f)->status : 0;
	bool is_unknown =
		f && !identity_access_key(&rq->identity) &&
		(is_unknown_change(rq) || (rq->listen->dialect == DIALECT_S3 && !rq->listen->anonymous));

	if (status == 401 || status == 403 || is_unknown)
		return AUDIT_REFUSAL;
	return op_info[rq->target.op].writes ? AUDIT_CHANGE : AUDIT_OTHER;
}

static void
see(struct seen *s, const struct req *rq, struct span key, enum fault f)
{
	struct audit_event *e = &s->e;

	*e = (struct audit_event){ .kind = kind_of(rq, f),
				   .op = op_name[rq->target.op],
				   .has_status = true,
				   .fault = f ? fault_info(f)->code : NULL,
				   .bucket = { rq->target.bucket, rq->target.bucket_len },
				   .key = key,
				   .secret_id = identity_secret_id(&rq->identity),
				   .request = s->id };
	req_id_text(rq, s->id);
	see_client(s, identity_access_key(&rq->identity), rq->claimed, &rq->in,
		   (const struct sockaddr *)&rq->peer);
}

/* Adds how a request ended. */
static void
see_end(struct seen *s, const struct req *rq)
{
	struct audit_event *e = &s->e;

	e->status = rq->replied ? rq->reply.status : 0;
	e->is_request = true;
	e->us = (clock_ns() - rq->began_ns) / NS_PER_US;
	e->rdma_bytes = rq->rdma_bytes;
	e->http_bytes = rq->http_bytes;
	e->declined = rq->declined ? chan_reason_name[rq->reason] : NULL;
	if (op_pulls(rq->target.op) && rq->fault == FAULT_NONE) {
		e->has_size = true;
		e->size_bytes = rq->rdma_bytes + rq->http_bytes;
		etag_text(&rq->etag, s->etag);
		e->etag = s->etag;
	}
}

/* The searchable fields of a line, and room for their texts. */
struct fields {
	struct log_field field[LOG_FIELDS_MAX];
	int nr;
	char access_key[ESCAPE_URL_BYTES(AUTH_ACCESS_KEY_MAX)],
		claimed[ESCAPE_URL_BYTES(AUTH_ACCESS_KEY_MAX)];
	char bucket[ESCAPE_URL_BYTES(sizeof((struct target *)0)->bucket)],
		key[ESCAPE_URL_BYTES(DIALECT_KEY_MAX)];
};

static void
add_field(struct fields *w, const char *name, const char *value)
{
	w->field[w->nr++] = (struct log_field){ name, value };
}

static void
add_fields(struct fields *w, const struct audit_event *e, const struct conf *conf)
{
	const char *key = e->access_key, *claimed = e->claimed_access_key;

	w->nr = 0;
	add_field(w, "access_key", escaped(w->access_key, sizeof w->access_key, key, key ? strlen(key) : 0));
	if (e->secret_id)
		add_field(w, "secret_id", e->secret_id);
	if (claimed)
		add_field(w, "claimed_access_key",
			  escaped(w->claimed, sizeof w->claimed, claimed, strlen(claimed)));
	add_field(w, "bucket", escaped(w->bucket, sizeof w->bucket, e->bucket.p, e->bucket.len));
	if (conf->log.object_keys)
		add_field(w, "key", escaped(w->key, sizeof w->key, e->key.p, e->key.len));
}

/* fmt: text of the line after the operation. */
static void __attribute__((format(printf, 3, 4)))
access_log(const struct audit_event *e, const struct conf *conf, const char *fmt, ...)
{
	struct fields w;
	char more[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(more, sizeof more, fmt, ap);
	va_end(ap);
	add_fields(&w, e, conf);
	log_write_fields(LOG_EV_ACCESS, LOG_INFO, LOG_MODULE, e->request, w.field, w.nr,
			 "peer=%s op=%s %s%s%s%s%s", e->peer, e->op, more, e->declined ? " declined=" : "",
			 e->declined ? e->declined : "", e->fault ? " fault=" : "", e->fault ? e->fault : "");
}

static bool
logs_access(const struct reqs *rs)
{
	return rs->env.conf->log.access && log_on(LOG_INFO);
}

void
report_end(const struct req *rq)
{
	/* The sentences about tokens are constant: nothing of the token is in them. */
	const char *why = rq->fault == FAULT_BAD_TOKEN ? rq->why : NULL;
	char phases[STATS_PHASE_NR * 24];
	bool logs = logs_access(rq->rs);
	struct seen s;

	if (!logs && !audit_wants(kind_of(rq, rq->fault)))
		return;
	see(&s, rq, (struct span){ rq->target.key, rq->target.key_len }, rq->fault);
	see_end(&s, rq);
	audit_put(&s.e);
	if (!logs)
		return;
	phases_text(rq, phases, sizeof phases);
	access_log(&s.e, rq->rs->env.conf, "status=%d rdma_bytes=%llu http_bytes=%llu us=%llu%s%s%s%s",
		   s.e.status, (unsigned long long)s.e.rdma_bytes, (unsigned long long)s.e.http_bytes,
		   (unsigned long long)s.e.us, phases, why ? " why=\"" : "", why ? why : "", why ? "\"" : "");
}

void
report_key(const struct req *rq, const char *key, size_t len, enum fault f)
{
	bool logs = logs_access(rq->rs) && rq->rs->env.conf->log.object_keys;
	struct seen s;

	if (!logs && !audit_wants(kind_of(rq, f)))
		return;
	see(&s, rq, (struct span){ key, len }, f);
	s.e.status = f ? fault_info(f)->status : op_info[OP_DELETE_OBJECT].ok;
	audit_put(&s.e);
	if (logs)
		access_log(&s.e, rq->rs->env.conf, "part=key");
}

void
reqs_refused(struct reqs *rs, const struct req_in *in, enum fault f, char out[17])
{
	const struct span none = { "", 0 };
	struct seen s = { .e = { .kind = AUDIT_OTHER,
				 .op = op_name[OP_NONE],
				 .has_status = true,
				 .status = fault_info(f)->status,
				 .fault = fault_info(f)->code,
				 .is_request = true,
				 .request = out } };
	bool logs = logs_access(rs);

	hex_write_u64(out, id_bits(rs, ++rs->next_id));
	if (!logs && !audit_wants(AUDIT_OTHER))
		return;
	see_client(&s, NULL, none, &in->in, in->peer);
	audit_put(&s.e);
	if (logs)
		access_log(&s.e, rs->env.conf, "status=%d rdma_bytes=0 http_bytes=0 us=0", s.e.status);
}
