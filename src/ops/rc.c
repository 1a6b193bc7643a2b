/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two routes by which clients connect queue pairs of RC (protocol.md section 8, T65-T71). Neither is signed: what a
 * connect may do is bounded by rdma.rc and rdma.allow, and the requests that use the connection are authorised. The
 * core's thread.
 */
#include "ops/ops_int.h"

#include "base/hex.h"
#include "chan/connect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ID_LEN (2 * RDMA_RC_ID_BYTES)

struct rc_job {
	struct req *rq;
	struct chan_connect connect;
	char reply[4 + TOKEN_RC_LEN + 1];
};

/* Ends the connect with the answer after which a client uses plain HTTP. */
static enum verdict
decline(struct req *rq, enum chan_reason reason, const char *why)
{
	enum verdict v = req_fail(rq, FAULT_RDMA_NOT_SUPPORTED, why);

	rq->declined = true;
	rq->reason = reason;
	stats_decline(rq->rs->env.stats, (int)reason);
	return v;
}

static enum verdict
off(struct req *rq)
{
	enum verdict v =
		req_fail(rq, FAULT_RDMA_NOT_SUPPORTED, "RC connections are not served (rdma.rc.shim).");

	req_declined_control(rq);
	return v;
}

/* Returns the value of a header that must come exactly once; p NULL: it does not. */
static struct span
only(const struct req *rq, const char *name)
{
	int nr;
	const struct field *f = dialect_field(&rq->in, name, &nr);

	return f && nr == 1 ? span_trim((struct span){ f->value, f->value_len }) : (struct span){ 0 };
}

/* ---- what a client asks for ---- */

static const char *
take_psn(const struct req *rq, struct rdma_rc_ask *ask)
{
	struct span s = only(rq, "x-amz-rdma-psn");
	uint64_t psn;

	if (!s.p || s.len == 0 || s.len > 8 || hex_u64(s.p, s.len, &psn) < 0 || psn == 0 || psn > 0xffffff)
		return "x-amz-rdma-psn is not one number of 1 to 8 hexadecimal digits from 1 to ffffff.";
	ask->psn = (uint32_t)psn;
	return NULL;
}

/* Reads one wish, NAME=NUMBER. */
static bool
take_wish(struct span s, struct rdma_rc_ask *ask)
{
	struct span name = span_trim(span_cut(&s, '='));
	uint64_t v;

	s = span_trim(s);
	if (span_is(name, "pkey")) {
		if (s.len != 6 || s.p[0] != '0' || s.p[1] != 'x' || hex_u64(s.p + 2, 4, &v) < 0)
			return false;
		ask->pkey = (uint16_t)v;
		return true;
	}
	if (span_decimal(s, &v) < 0)
		return false;
	if (span_is(name, "reads") && v >= 1 && v <= 255)
		ask->reads = (int)v;
	else if (span_is(name, "mtu") && (v == 256 || v == 512 || v == 1024 || v == 2048 || v == 4096))
		ask->mtu = (int)v;
	else if (span_is(name, "sl") && v <= 15)
		ask->service_level = (int)v;
	else
		return false;
	return true;
}

/* Reads x-gantry-rc: reads=16; mtu=1024; sl=0; pkey=0xffff, each of which may be missing. */
static const char *
take_wishes(const struct req *rq, struct rdma_rc_ask *ask)
{
	const struct field *f = dialect_field(&rq->in, "x-gantry-rc", NULL);
	struct span list = only(rq, "x-gantry-rc");

	if (!f)
		return NULL;
	while (list.len) {
		if (!take_wish(span_cut(&list, ';'), ask))
			list.p = NULL;
		if (!list.p)
			break;
	}
	return list.p ? NULL : "x-gantry-rc is not a list of reads, mtu, sl and pkey.";
}

static const char *
take_ask(const struct req *rq, struct rdma_rc_ask *ask)
{
	struct span s = only(rq, "x-amz-rdma-token");
	const char *why = "x-amz-rdma-token must come once.";
	struct token tok;

	if (!s.p || token_parse_end(s.p, s.len, &tok, &why) < 0)
		return why;
	ask->qpn = tok.dctn;
	ask->have_gid = tok.have_gid;
	ask->lid = tok.lid;
	memcpy(ask->gid, tok.gid, 16);
	ask->local = rq->local;
	ask->peer = rq->peer;
	ask->client = rq->xfer.client;
	why = take_psn(rq, ask);
	return why ? why : take_wishes(rq, ask);
}

/* ---- the answer ---- */

static void
on_connected(struct chan_connect *c)
{
	struct rc_job *job = container_of(c, struct rc_job, connect);
	struct req *rq = job->rq;

	/* The client has gone, or its time is over: no request would ever name the connection. */
	if (c->wait.result == 0 && rq->fault != FAULT_NONE)
		rdma_rc_disconnect(rq->rs->env.rdma, c->wait.answer.id, (struct sockaddr *)&rq->peer);
	req_on_store(rq);
}

static enum verdict
connected(struct req *rq)
{
	struct rc_job *job = rq->job;

	switch (job->connect.wait.result) {
	case 0:
		return req_go(rq, req_reply_step);
	case -EHOSTUNREACH:
		return decline(rq, CHAN_UNREACHABLE,
			       "No route leads to the token's address; use plain HTTP.");
	case -ENODEV:
		return decline(rq, CHAN_NO_DEVICE, "This server has no RDMA device; use plain HTTP.");
	case -EINVAL:
		return req_fail(rq, FAULT_BAD_TOKEN,
				"The token's address form does not fit the server's network.");
	default:
		return decline(rq, CHAN_NO_CHANNEL, "A queue pair cannot be connected; use plain HTTP.");
	}
}

static void
connect_headers(struct req *rq, const struct outcome *o, enum outcome_kind kind)
{
	struct rc_job *job = rq->job;
	char id[ID_LEN + 1] = { 0 };
	const struct rdma_rc_answer *a;
	struct token tok;

	if (kind != OUT_DONE) {
		if (o->status == 501)
			reply_text(rq, "x-amz-rdma-reply", "501");
		return;
	}
	a = &job->connect.wait.answer;
	tok = (struct token){ .kind = TOKEN_RC_V1, .dctn = a->qpn, .port = a->port, .lid = a->lid };
	memcpy(tok.gid, a->gid, 16);
	memcpy(job->reply, "200:", 4);
	token_format_rc(&tok, job->reply + 4);
	hex_write(id, a->id, sizeof a->id);
	reply_text(rq, "x-amz-rdma-reply", job->reply);
	reply_text(rq, "x-amz-rdma-session", id);
	reply_header(rq, "x-amz-rdma-psn", "%06x", a->psn);
	reply_header(rq, "x-gantry-rc", "reads=%d; mtu=%d; sl=%d; pkey=0x%04x", a->reads, a->mtu,
		     a->service_level, a->pkey);
}

const struct op_hooks rc_connect_hooks = { .headers = connect_headers };

static enum verdict
start(struct req *rq)
{
	const struct conf_rdma *conf = &rq->rs->env.conf->rdma;
	struct rc_job *job = rq->job;
	struct rdma_rc_ask *ask = &job->connect.wait.ask;
	const uint8_t *gid = ask->have_gid ? ask->gid : NULL;
	int r = auth_gid_allowed(&rq->identity, gid)
			? rdma_gid_allowed(rq->rs->env.rdma, conf, gid, (struct sockaddr *)&rq->peer)
			: -EACCES;

	if (r == -EACCES)
		return req_fail(rq, FAULT_ACCESS_DENIED,
				"The token names an address that no token of this client may name.");
	if (r < 0) {
		rdma_say_not_allowed(rq->rs->env.rdma, conf, gid);
		return decline(rq, CHAN_NOT_ALLOWED,
			       "The token's address is outside what this server may reach; use plain HTTP.");
	}
	ask->must_route = r > 0;
	job->connect.done = on_connected;
	r = chan_connect(rq->rs->env.chan, &job->connect);
	if (r == -EAGAIN)
		return req_fail(rq, FAULT_BUSY, "Too many connects (rdma.rc); try again.");
	return r < 0 ? off(rq) : req_await(rq, 0, "connect", connected);
}

enum verdict
rc_connect_start(struct req *rq)
{
	struct rc_job *job;
	const char *why;

	if (!rdma_rc_stats(rq->rs->env.rdma))
		return off(rq);
	job = req_job(rq, sizeof *job, NULL);
	if (!job)
		return req_fail(rq, FAULT_BUSY, NULL);
	job->rq = rq;
	why = take_ask(rq, &job->connect.wait.ask);
	return why ? req_fail(rq, FAULT_BAD_TOKEN, why) : start(rq);
}

/* Ends the connection that the request names (T70); an unknown id is no error. */
enum verdict
rc_disconnect_start(struct req *rq)
{
	struct span s = only(rq, "x-amz-rdma-session");
	uint8_t id[RDMA_RC_ID_BYTES];

	if (!rdma_rc_stats(rq->rs->env.rdma))
		return off(rq);
	if (s.p && s.len == ID_LEN && hex_bytes(s.p, id, sizeof id) == 0)
		rdma_rc_disconnect(rq->rs->env.rdma, id, (struct sockaddr *)&rq->peer);
	return req_go(rq, req_reply_step);
}
