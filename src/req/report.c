/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people see of a request: its id, its line in the dump, its entry among the latest that were declined
 * or went wrong (stats/recent.c), and its line in the access log.  The core's thread.
 */
#define LOG_MODULE "access"
#include "req/machine.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"

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

/* ---- the dump ---- */

void
req_line(const struct req *rq, char *out, size_t cap)
{
	const char *signer = identity_access_key(&rq->identity);
	char id[17];

	req_id_text(rq, id);
	snprintf(out, cap,
		 "id=%s core=%d op=%s access_key=%.48s step=%s age_ms=%llu holds=%d pieces=%d "
		 "outstanding=%d%s%s%s",
		 id, rq->rs->env.core, op_name[rq->target.op], signer ? signer : "-",
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

/* ---- the access log ---- */

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

/* Three characters for a byte that is escaped. */
#define ESCAPED(bytes) (3 * (bytes) + 1)

/* As a URL has it: no byte of a client's ends a field, a string or a line.  "-" for nothing. */
static const char *
escaped(char *out, size_t cap, const char *text, size_t len)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (size_t i = 0; i < len && n + 4 <= cap; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '-' && c <= '9') || c == '_' ||
		    c == '~') {
			out[n++] = (char)c;
		} else {
			out[n++] = '%';
			out[n++] = digits[c >> 4];
			out[n++] = digits[c & 15];
		}
	}
	if (n == 0)
		out[n++] = '-';
	out[n] = 0;
	return out;
}

/* Who asked for what: the fields of a line, and room for their texts. */
struct who {
	struct log_field field[LOG_FIELDS_MAX];
	int nr;
	char access_key[ESCAPED(AUTH_ACCESS_KEY_MAX)], claimed[ESCAPED(AUTH_ACCESS_KEY_MAX)];
	char bucket[ESCAPED(sizeof((struct target *)0)->bucket)], key[ESCAPED(DIALECT_KEY_MAX)];
	char peer[ADDRESS_TEXT_BYTES];
};

static void
who_add(struct who *w, const char *name, const char *value)
{
	w->field[w->nr++] = (struct log_field){ name, value };
}

/* signer: NULL: nobody known; then claimed is who a form says it is from, and in what else the request
 * says.  secret_id: of the secret that signed; NULL like signer. */
static void
who_asks(struct who *w, const char *signer, const char *secret_id, struct span claimed,
	 const struct dialect_in *in)
{
	char text[AUTH_ACCESS_KEY_MAX];

	w->nr = 0;
	who_add(w, "access_key",
		escaped(w->access_key, sizeof w->access_key, signer, signer ? strlen(signer) : 0));
	if (secret_id)
		who_add(w, "secret_id", secret_id);
	if (signer)
		return;
	if (!claimed.len)
		claimed = (struct span){ text, auth_claimed_key(in, text, sizeof text) };
	if (claimed.len)
		who_add(w, "claimed_access_key",
			escaped(w->claimed, sizeof w->claimed, claimed.p, claimed.len));
}

static void
who_from(struct who *w, const struct sockaddr *peer)
{
	address_text(peer, w->peer);
}

static void
who_wants(struct who *w, const struct conf *conf, struct span bucket, struct span key)
{
	who_add(w, "bucket", escaped(w->bucket, sizeof w->bucket, bucket.p, bucket.len));
	if (conf->log.object_keys)
		who_add(w, "key", escaped(w->key, sizeof w->key, key.p, key.len));
}

static void
who_fill(struct who *w, const struct req *rq, struct span key)
{
	who_asks(w, identity_access_key(&rq->identity), identity_secret_id(&rq->identity), rq->claimed,
		 &rq->in);
	who_wants(w, rq->rs->env.conf, (struct span){ rq->target.bucket, rq->target.bucket_len }, key);
	who_from(w, (const struct sockaddr *)&rq->peer);
}

void
access_log(const struct req *rq)
{
	char id[17], phases[STATS_PHASE_NR * 24];
	struct who w;

	if (!log_on(LOG_INFO))
		return;
	req_id_text(rq, id);
	phases_text(rq, phases, sizeof phases);
	who_fill(&w, rq, (struct span){ rq->target.key, rq->target.key_len });
	log_write_fields(LOG_EV_ACCESS, LOG_INFO, LOG_MODULE, id, w.field, w.nr,
			 "peer=%s op=%s status=%d rdma_bytes=%llu http_bytes=%llu us=%llu%s%s%s%s%s", w.peer,
			 op_name[rq->target.op], rq->replied ? rq->reply.status : 0,
			 (unsigned long long)rq->rdma_bytes, (unsigned long long)rq->http_bytes,
			 (unsigned long long)((clock_ns() - rq->began_ns) / NS_PER_US), phases,
			 rq->declined ? " declined=" : "", rq->declined ? chan_reason_name[rq->reason] : "",
			 rq->fault ? " fault=" : "", rq->fault ? fault_info(rq->fault)->code : "");
}

void
access_log_key(const struct req *rq, const char *key, size_t len, enum fault f)
{
	const struct conf *c = rq->rs->env.conf;
	struct who w;
	char id[17];

	if (!c->log.access || !c->log.object_keys || !log_on(LOG_INFO))
		return;
	req_id_text(rq, id);
	who_fill(&w, rq, (struct span){ key, len });
	log_write_fields(LOG_EV_ACCESS, LOG_INFO, LOG_MODULE, id, w.field, w.nr, "peer=%s op=%s part=key%s%s",
			 w.peer, op_name[rq->target.op], f ? " fault=" : "", f ? fault_info(f)->code : "");
}

void
reqs_refused(struct reqs *rs, const struct req_in *in, enum fault f, char out[17])
{
	const struct span none = { "", 0 };
	struct who w;

	hex_write_u64(out, id_bits(rs, ++rs->next_id));
	if (!rs->env.conf->log.access || !log_on(LOG_INFO))
		return;
	who_asks(&w, NULL, NULL, none, &in->in);
	who_wants(&w, rs->env.conf, none, none);
	who_from(&w, in->peer);
	log_write_fields(LOG_EV_ACCESS, LOG_INFO, LOG_MODULE, out, w.field, w.nr,
			 "peer=%s op=%s status=%d rdma_bytes=0 http_bytes=0 us=0 fault=%s", w.peer,
			 op_name[OP_NONE], fault_info(f)->status, fault_info(f)->code);
}
