/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of RC (protocol.md section 8): a queue pair, the exchange with the server, and the states up to RTS.
 * The server initiates everything: the queue pair grants access and posts nothing.  Plain verbs, since some providers
 * have nothing else.
 */
#include "client/rc.h"

#include "base/hex.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#define READS_MOST 16       /* that a server may have outstanding */
#define RNR_TIMER 12        /* as for DC */
#define DISCONNECT_MS 2000u /* nothing depends on the answer */

/* The server's end, and the values that hold. */
struct far_end {
	struct token end;
	bool has_end, is_bad;
	char id[RC_ID_LEN + 1];
	uint32_t psn;
	int reads, mtu, service_level;
};

/* ---- the queue pair ---- */

static int
to_init(struct rc_conn *conn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = conn->port->port_num,
				    .pkey_index = conn->port->pkey_index,
				    .qp_access_flags = (unsigned)conn->access };

	return -ibv_modify_qp(conn->target.qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static enum ibv_mtu
mtu_of(int bytes)
{
	return (enum ibv_mtu)(__builtin_ctz((unsigned)bytes) - 7);
}

static int
bytes_of(int mtu)
{
	return 128 << mtu;
}

/* InfiniBand: with a GRH only where the server is in another subnet; it decides likewise. */
static bool
needs_grh(const struct port *p, const struct address *own, const struct token *end)
{
	return p->is_ethernet || !end->lid || memcmp(own->gid, end->gid, 8) != 0;
}

static int
to_rtr(struct rc_conn *conn, const struct address *own, const struct far_end *far)
{
	const struct port *p = conn->port;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_of(far->mtu),
		.dest_qp_num = far->end.dctn,
		.rq_psn = far->psn,
		.max_dest_rd_atomic = (uint8_t)far->reads,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = { .port_num = p->port_num, .dlid = far->end.lid, .sl = p->service_level }
	};

	/* On InfiniBand both ends have one level, and ours was a wish (T75); on Ethernet it is a priority of this host. */
	if (!p->is_ethernet)
		attr.ah_attr.sl = (uint8_t)far->service_level;
	if (needs_grh(p, own, &far->end)) {
		attr.ah_attr.is_global = 1;
		memcpy(attr.ah_attr.grh.dgid.raw, far->end.gid, 16);
		attr.ah_attr.grh.sgid_index = own->gid_index;
		attr.ah_attr.grh.hop_limit = HOP_LIMIT;
		attr.ah_attr.grh.traffic_class = p->traffic_class;
	}
	return -ibv_modify_qp(conn->target.qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int
to_rts(struct rc_conn *conn, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = psn
	};

	return -ibv_modify_qp(conn->target.qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int
rc_allow(struct rc_conn *conn, int access)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .qp_access_flags = (unsigned)access };
	int r = 0;

	if (conn->access != access)
		r = -ibv_modify_qp(conn->target.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
	if (r == 0)
		conn->access = access;
	return r;
}

/* ---- the exchange ---- */

/* Reads "NAME=NUMBER" of a list of them; -1: it is not there, or out of range. */
static int
value_of(const char *list, const char *name, int most)
{
	size_t len = strlen(name);

	for (; *list; list += strcspn(list, ";"), list += strspn(list, "; ")) {
		long n;

		if (strncmp(list, name, len) != 0 || list[len] != '=')
			continue;
		n = strtol(list + len + 1, NULL, 10);
		return n >= 0 && n <= most ? (int)n : -1;
	}
	return -1;
}

static void
take_values(struct far_end *far, const char *value)
{
	int mtu = value_of(value, "mtu", 4096), reads = value_of(value, "reads", READS_MOST),
	    service_level = value_of(value, "sl", 15);

	if (mtu >= 256 && !(mtu & (mtu - 1)))
		far->mtu = mtu;
	if (reads > 0)
		far->reads = reads;
	if (service_level >= 0)
		far->service_level = service_level;
}

/* A header of the answer. */
static void
on_header(void *cookie, const char *name, const char *value)
{
	struct far_end *far = cookie;
	const char *why;
	uint64_t psn = 0;
	size_t len = strlen(value);

	if (!strcmp(name, "x-amz-rdma-reply")) {
		far->has_end = strncmp(value, "200:", 4) == 0 &&
			       token_parse_end(value + 4, len - 4, &far->end, &why) == 0;
	} else if (!strcmp(name, "x-amz-rdma-session")) {
		uint8_t id[RC_ID_LEN / 2];

		if (len == RC_ID_LEN && hex_bytes(value, id, sizeof id) == 0)
			memcpy(far->id, value, RC_ID_LEN);
	} else if (!strcmp(name, "x-amz-rdma-psn")) {
		if (len >= 1 && len <= 8 && hex_u64(value, len, &psn) == 0 && psn <= 0xffffff)
			far->psn = (uint32_t)psn;
	} else if (!strcmp(name, "x-gantry-rc")) {
		take_values(far, value);
	}
}

/* Tells in why what an answer without a connection means; the error of rc_take(). */
static int
refusal(const struct call *c, const struct far_end *far, char *why, size_t why_len)
{
	const struct reply *r = &c->r;

	if (r->status == 503) {
		snprintf(why, why_len, "rc: the server allows no further connection now");
		return -EAGAIN;
	}
	if (r->status == 200) {
		snprintf(why, why_len, "rc: the server's answer to the connect has no %s",
			 !far->has_end ? "queue pair"
			 : !*far->id   ? "session"
				       : "psn");
	} else if (r->status == 501 && !strcmp(r->reason, "token-family")) {
		snprintf(why, why_len, "rc: off at the server");
	} else if (r->status == 501 && *r->reason) {
		snprintf(why, why_len, "rc: %.80s", r->reason);
		return strcmp(r->reason, "unreachable") == 0 || strcmp(r->reason, "not-allowed") == 0 ||
				       strcmp(r->reason, "needs-router") == 0
			       ? -EHOSTUNREACH
			       : -EOPNOTSUPP;
	} else {
		snprintf(why, why_len, "rc: the server does not connect (HTTP %d)", r->status);
	}
	return -EOPNOTSUPP;
}

static int
reads_of(const struct port *p)
{
	struct ibv_device_attr attr;
	int reads = ibv_query_device(p->ctx, &attr) == 0 ? attr.max_qp_rd_atom : 1;

	return reads < 1 ? 1 : reads < READS_MOST ? reads : READS_MOST;
}

/* Asks the server to connect the queue pair. Returns 0 with *far, or an error of rc_take(). */
static int
ask(struct call *c, const struct rc_conn *conn, const struct address *own, uint32_t psn, struct far_end *far,
    bool *ret_final, char *why, size_t why_len)
{
	const struct port *p = conn->port;
	struct token end = { .dctn = conn->target.qp->qp_num, .port = p->port_num, .lid = own->lid };
	char url[1024], text[TOKEN_RC_LEN + 1], psn_text[16], values[80];
	uint16_t pkey = 0;
	struct exchange x = call_exchange(c, METHOD_POST);
	size_t n;
	int e;

	memcpy(end.gid, own->gid, 16);
	token_format_rc(&end, text);
	snprintf(psn_text, sizeof psn_text, "%06x", psn);
	n = (size_t)snprintf(values, sizeof values, "reads=%d; mtu=%d", reads_of(p), bytes_of(p->mtu));
	if (ibv_query_pkey(p->ctx, p->port_num, p->pkey_index, &pkey) == 0 && pkey)
		snprintf(values + n, sizeof values - n, "; pkey=0x%04x", ntohs(pkey));
	if (!p->is_ethernet && p->service_level)
		snprintf(values + strlen(values), sizeof values - strlen(values), "; sl=%d",
			 p->service_level);
	snprintf(url, sizeof url, "%.*s/.s3rdma-rc/connect", (int)server_len(c->url), c->url);
	x.url = url;
	x.if_match = x.if_none_match = NULL;
	x.content_type = NULL;
	x.extra[0] = (struct field){ "x-amz-rdma-token", text };
	x.extra[1] = (struct field){ "x-amz-rdma-psn", psn_text };
	x.extra[2] = (struct field){ "x-gantry-rc", values };
	x.header = on_header;
	x.header_cookie = far;
	if (!x.timeout_ms)
		x.timeout_ms = 10000;
	*far = (struct far_end){ .reads = 1, .mtu = bytes_of(p->mtu), .service_level = p->service_level };
	e = call_run(c, &x);
	*ret_final = e < 0;
	if (e < 0)
		return e;
	return c->r.status == 200 && far->has_end && *far->id && far->psn ? 0 : refusal(c, far, why, why_len);
}

int
rc_connect(struct call *c, struct rc_conn *conn, bool *ret_final, char *why, size_t why_len)
{
	struct port *p = conn->port;
	struct target *t = &conn->target;
	struct far_end far = { .reads = 0 };
	struct address own;
	const char *step = "making";
	uint32_t psn;
	int e;

	*ret_final = false;
	map_rdlock(c->g);
	t->changes = p->changes;
	own = (struct address){ .lid = p->lid, .gid_index = p->gid_index };
	memcpy(own.gid, p->gid, sizeof own.gid);
	map_rdunlock(c->g);
	if (getrandom(&psn, sizeof psn, 0) != sizeof psn)
		return -EIO;
	psn = psn % 0xffffff + 1;
	errno = 0;
	t->qp = port_qp(p);
	e = t->qp ? to_init(conn) : errno ? -errno : -ENOMEM;
	if (e == 0) {
		e = ask(c, conn, &own, psn, &far, ret_final, why, why_len);
		memcpy(conn->id, far.id, sizeof conn->id);
		step = NULL;
	}
	if (e == 0) {
		step = "connecting";
		e = to_rtr(conn, &own, &far);
		if (e == 0)
			e = to_rts(conn, psn);
	}
	if (e == 0)
		return 0;
	/* The errors of rc_take() are the server's. */
	if (step) {
		snprintf(why, why_len, "rc: %s a queue pair: %s", step, error_text(-e));
		e = -EIO;
	}
	if (t->qp && ibv_destroy_qp(t->qp) == 0)
		t->qp = NULL;
	return e;
}

int
rc_disconnect(struct gantry *g, const char *base, const char *id)
{
	char url[1024], why[160];
	struct exchange x = { .method = METHOD_POST,
			      .url = url,
			      .connect_timeout_ms = DISCONNECT_MS,
			      .timeout_ms = DISCONNECT_MS,
			      .extra = { { "x-amz-rdma-session", id } } };
	struct handle *h = handle_get(g);
	struct reply r;
	int e;

	if (!h)
		return -ENOMEM;
	snprintf(url, sizeof url, "%s/.s3rdma-rc/disconnect", base);
	e = http_exchange(h, &x, &r, why, sizeof why);
	handle_put(g, h);
	return e;
}
