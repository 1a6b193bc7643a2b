/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rawclient's queue pairs of RC: made, connected by the routes of protocol.md section 8, and named in rc: tokens.
 */
#include "raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rc_qp {
	char name[RAW_NAME_MAX];
	struct nic *nic;
	struct ibv_qp *qp;
	uint32_t qpn, psn;
	char token[89];
	char id[33];           /* of the connection; "": there is none */
	bool of_window, fresh; /* of_window: made by rc_window_new(); fresh: no token has named it */
	struct rc_qp *next;
};

static struct rc_qp *qps;

static struct rc_qp *
need(const char *name)
{
	for (struct rc_qp *q = qps; q; q = q->next) {
		if (!strcmp(q->name, name))
			return q;
	}
	raw_die(EXIT_SCRIPT, "no queue pair %s", name);
}

/* The variable NAME_WHAT. */
static void
set(const struct rc_qp *q, const char *what, const char *value)
{
	char name[2 * RAW_NAME_MAX];

	snprintf(name, sizeof name, "%s_%s", q->name, what);
	set_var(name, value);
}

static void
put_le(unsigned char *p, uint64_t v, int n)
{
	for (; n > 0; n--, v >>= 8)
		*p++ = (unsigned char)v;
}

static void
set_token(struct rc_qp *q, bool with_gid)
{
	unsigned char b[44] = { 1 };
	char *text = q->token;

	put_le(b + 1, q->qp->qp_num, 4);
	if (q->nic->ethernet || q->nic->lid == 0 || with_gid)
		memcpy(b + 5, q->nic->gid, 16);
	b[41] = 1;
	put_le(b + 42, q->nic->lid, 2);
	for (int i = 0; i < 44; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", b[i]);
	set(q, "token", text);
}

void
rc_qp_new(const char *name, struct nic *n, bool with_gid)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_WRITE };
	struct rc_qp *q = calloc(1, sizeof *q);
	static uint32_t psn = 0x31337;
	char text[16];

	snprintf(q->name, sizeof q->name, "%s", name);
	q->nic = n;
	q->psn = psn++;
	attr.send_cq = attr.recv_cq = n->cq;
	q->qp = ibv_create_qp(n->pd, &attr);
	if (!q->qp)
		raw_die(EXIT_NO_NIC, "queue pair: %s", strerror(errno));
	errno = ibv_modify_qp(q->qp, &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (errno)
		raw_die(EXIT_FAILED, "to INIT: %s", strerror(errno));
	q->qpn = q->qp->qp_num;
	q->next = qps;
	qps = q;
	set_token(q, with_gid);
	snprintf(text, sizeof text, "%06x", q->psn);
	set(q, "psn", text);
}

static enum ibv_mtu
mtu_of(int bytes)
{
	return bytes >= 4096   ? IBV_MTU_4096
	       : bytes >= 2048 ? IBV_MTU_2048
	       : bytes >= 1024 ? IBV_MTU_1024
	       : bytes >= 512  ? IBV_MTU_512
			       : IBV_MTU_256;
}

/* "name=NUMBER" in a list of them; dies without. */
static int
value(const char *list, const char *name)
{
	const char *at = list ? strstr(list, name) : NULL;

	if (!at)
		raw_die(EXIT_FAILED, "x-gantry-rc has no %s", name);
	return atoi(at + strlen(name));
}

void
rc_qp_join(const char *name, const struct resp *r)
{
	struct rc_qp *q = need(name);
	const char *reply = resp_header(r, "x-amz-rdma-reply");
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .min_rnr_timer = 12,
				   .ah_attr = { .port_num = 1, .grh = { .hop_limit = 64 } } };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = q->psn
	};
	unsigned char b[44];

	if (!reply || strlen(reply) != 92 || strncmp(reply, "200:", 4) != 0)
		raw_die(EXIT_FAILED, "x-amz-rdma-reply is not 200: and 88 digits: %s", reply ? reply : "-");
	for (int i = 0; i < 44; i++) {
		unsigned v;

		if (sscanf(reply + 4 + 2 * i, "%2x", &v) != 1)
			raw_die(EXIT_FAILED, "x-amz-rdma-reply: %s", reply);
		b[i] = (unsigned char)v;
	}
	if (b[0] != 1)
		raw_die(EXIT_FAILED, "the transport of the reply is %u", b[0]);
	rtr.dest_qp_num = (uint32_t)(b[1] | b[2] << 8 | b[3] << 16 | b[4] << 24);
	if (q->nic->ethernet) {
		rtr.ah_attr.is_global = 1;
		memcpy(rtr.ah_attr.grh.dgid.raw, b + 5, 16);
		rtr.ah_attr.grh.sgid_index = (uint8_t)q->nic->gid_index;
	}
	rtr.ah_attr.dlid = (uint16_t)(b[42] | b[43] << 8);
	rtr.rq_psn = (uint32_t)strtoul(resp_header(r, "x-amz-rdma-psn"), NULL, 16);
	if (rtr.rq_psn == 0 || rtr.rq_psn > 0xffffff)
		raw_die(EXIT_FAILED, "x-amz-rdma-psn is 0 or too large");
	rtr.ah_attr.sl = (uint8_t)value(resp_header(r, "x-gantry-rc"), "sl=");
	rtr.path_mtu = mtu_of(value(resp_header(r, "x-gantry-rc"), "mtu="));
	rtr.max_dest_rd_atomic = (uint8_t)value(resp_header(r, "x-gantry-rc"), "reads=");
	snprintf(q->id, sizeof q->id, "%s", resp_header(r, "x-amz-rdma-session"));
	set(q, "id", q->id);
	errno = ibv_modify_qp(q->qp, &rtr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (errno)
		raw_die(EXIT_FAILED, "to RTR: %s", strerror(errno));
	errno = ibv_modify_qp(q->qp, &rts,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (errno)
		raw_die(EXIT_FAILED, "to RTS: %s", strerror(errno));
}

void
rc_qp_destroy(const char *name)
{
	struct rc_qp *q = need(name);

	if (q->qp && ibv_destroy_qp(q->qp))
		raw_die(EXIT_FAILED, "ibv_destroy_qp: %s", strerror(errno));
	q->qp = NULL;
}

void
rc_token(const char *name, const char *qp, const char *id, const struct window *w, uint64_t off,
	 uint64_t size)
{
	char text[RAW_TOKEN_MAX];

	snprintf(text, sizeof text, "rc:%s:%016llx:%08llx:%08x", id ? id : need(qp)->id,
		 (unsigned long long)(uintptr_t)w->mem + off,
		 (unsigned long long)(size ? size : w->len - off), w->rkey);
	token_set(name, text);
}

/* ---- windows with queue pairs of their own (RAW_RC) ---- */

static const char *connect_at; /* HOST:PORT[/FROM] */

bool
rc_is_on(void)
{
	if (!connect_at)
		connect_at = getenv("RAW_RC") ? getenv("RAW_RC") : "";
	return *connect_at;
}

/* A POST to one of the two routes; its response is good until the next one. */
static const struct resp *
post(const char *route, char *header, char *header2)
{
	struct conn *c = conn_get("of RC", connect_at);
	char *words[] = { (char *)"POST", (char *)route, (char *)"content-length:0", header, header2 };
	size_t len;
	bool head;
	char *bytes = request_build(c->server, words, header2 ? 5 : 4, &len, &head);

	conn_start(c, bytes, len, head);
	conns_drive(&c, 1, raw_now_ms() + 60000, false);
	return &c->resp;
}

/* Whoever leaves says so, where the server still answers. */
static void
leave(void)
{
	char header[64];

	for (const struct rc_qp *q = qps; q; q = q->next) {
		if (!q->of_window || !*q->id)
			continue;
		snprintf(header, sizeof header, "x-amz-rdma-session:%s", q->id);
		if (post("/.s3rdma-rc/disconnect", header, NULL)->status != 204)
			return;
	}
}

void
rc_window_new(struct window *w)
{
	static int nr;
	char name[RAW_NAME_MAX], token[128], psn[64];
	const struct resp *r;

	if (nr == 0)
		atexit(leave);
	snprintf(name, sizeof name, "of_window_%d", nr++);
	rc_qp_new(name, w->nic, true);
	snprintf(token, sizeof token, "x-amz-rdma-token:%s", qps->token);
	snprintf(psn, sizeof psn, "x-amz-rdma-psn:%06x", qps->psn);
	/* A window begins with a connection, also where the port is down for a moment. */
	for (double until = raw_now_ms() + 10000;;) {
		r = post("/.s3rdma-rc/connect", token, psn);
		if (r->status != 501 || w->rc || raw_now_ms() > until)
			break;
		usleep(10000);
	}
	if (r->status != 200 && (r->status != 501 || !w->rc))
		raw_die(EXIT_FAILED, "a window is not connected: status %d %s", r->status, r->err);
	if (r->status != 200)
		return;
	rc_qp_join(name, r);
	qps->of_window = qps->fresh = true;
	w->rc = qps;
}

const char *
rc_window_id(struct window *w)
{
	if (!w->rc->fresh)
		rc_window_new(w);
	w->rc->fresh = false;
	return w->rc->id;
}

uint32_t
window_qpn(const struct window *w)
{
	return w->rc ? w->rc->qpn : w->nic->dctn;
}

void
rc_destroy_all(const struct nic *n)
{
	for (struct rc_qp *q = qps; q; q = q->next) {
		if (q->nic == n)
			rc_qp_destroy(q->name);
	}
}
