/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RC transport: plain queue pairs, each connected to one client, posted to by ibv_post_send alone, since some
 * providers have nothing else.  A connection is made by a thread of rctable.c, before the lease that uses it, and
 * brings its completion queue, so that whichever core has the request can poll it.
 *
 * Our queue pairs grant no access and have no receives: a client can break its connection, and nothing else.
 */
#define LOG_MODULE "rdma"
#include "rdma/rc_int.h"

#include "base/check.h"
#include "base/fds.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RETRIES_MAX 6 /* Linux' Soft-RoCE repeats without end if the number is 7 */
#define RNR_TIMER 12  /* 0.64 ms; the server posts no receives, so the value has no effect */

static bool
rc_enabled(const struct conf_rdma *conf)
{
	return conf->rc.shim;
}

static struct ibv_qp *
qp_new(struct ibv_pd *pd, struct ibv_cq *cq, int depth, int sge)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = (uint32_t)depth, .max_send_sge = (uint32_t)sge },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &attr);
}

static int
to_init(struct ibv_qp *qp, int port, int pkey_index)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .pkey_index = (uint16_t)pkey_index,
				    .port_num = (uint8_t)port };

	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int
rc_probe(struct rdma_context *c, const char **ret_why)
{
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int r;

	*ret_why = "a queue pair cannot be created";
	errno = 0;
	cq = ibv_create_cq(c->ctx, RC_DEPTH, NULL, NULL, 0);
	if (!cq)
		return errno ? -errno : -ENOMEM;
	errno = 0;
	qp = qp_new(c->pd, cq, RC_DEPTH, 1);
	r = qp ? to_init(qp, 1, 0) : errno ? -errno : -EOPNOTSUPP;
	if (qp)
		ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	return r;
}

static void
rc_limits(const struct rdma_rail *rail, int want, struct rdma_ep_limits *ret_limits)
{
	*ret_limits = (struct rdma_ep_limits){ .send_depth = RC_DEPTH, .read_depth = 1, .max_sge = 1 };
}

/* ---- making one ---- */

/* Returns the service level of a connection. level: that of the path; -1: unknown, and then the client may have been
 * told it by its subnet manager. A number in the configuration holds for every client, and the priority of packets on
 * Ethernet is not a client's choice. */
static uint8_t
level_of(const struct rdma_rail *rail, const struct rdma_rc_ask *ask, int level)
{
	if (rail->rd->conf.service_level != CONF_LEVEL_AUTO || rail->is_ethernet)
		return rail_ah_params(rail).service_level;
	return (uint8_t)(level >= 0 ? level : ask->service_level);
}

static int
to_rtr(struct rc_conn *conn, const struct rdma_rc_ask *ask, const struct rail_route *route, int level,
       struct rdma_rc_answer *a)
{
	struct rdma_rail *rail = conn->ep.base.rail;
	struct ah_params p = rail_ah_params(rail);
	pthread_rwlock_t *lock = &rail->rd->table_lock;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .dest_qp_num = ask->qpn,
				    .rq_psn = ask->psn,
				    .min_rnr_timer = RNR_TIMER };
	int mtu;

	pthread_rwlock_rdlock(lock);
	conn->link = atomic_load(&rail->link);
	conn->addresses = atomic_load(&rail->addresses);
	conn->gid_index = route->key.sgid_index;
	mtu = min_int(mtu_bytes(rail->port_attr.active_mtu), 4096);
	a->lid = rail->view.lid;
	a->pkey = rail->pkey;
	for (int i = 0; i < rail->view.gid_nr; i++) {
		if (rail->view.gid[i].index == route->key.sgid_index)
			memcpy(a->gid, rail->view.gid[i].raw, 16);
	}
	memcpy(conn->own_gid, a->gid, 16);
	conn->own_lid = a->lid;
	pthread_rwlock_unlock(lock);
	/* The top bit is about membership; packets of another partition are dropped. */
	if (ask->pkey && (ask->pkey ^ a->pkey) & 0x7fff)
		return -ENETUNREACH;
	if (rail->rd->conf.path_mtu)
		mtu = rail->rd->conf.path_mtu;
	if (ask->mtu)
		mtu = min_int(mtu, ask->mtu);
	p.service_level = level_of(rail, ask, level);
	rdma_ah_build(&route->key, rail->port, &p, &attr.ah_attr);
	attr.path_mtu = mtu_enum(mtu);
	a->mtu = mtu_bytes(attr.path_mtu);
	a->service_level = p.service_level;
	a->port = rail->port;
	return -ibv_modify_qp(conn->ep.qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int
to_rts(struct rc_conn *conn, const struct rdma_rc_ask *ask, struct rdma_rc_answer *a)
{
	const struct conf_rdma *c = &conn->ep.base.rail->rd->conf;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .timeout = (uint8_t)c->timeout,
				    .retry_cnt = (uint8_t)min_int(c->retry_cnt, RETRIES_MAX),
				    .rnr_retry = (uint8_t)c->rnr_retry };

	if (getrandom(&a->psn, sizeof a->psn, 0) != sizeof a->psn)
		return -EIO;
	a->psn = a->psn % 0xffffff + 1;
	a->reads = min_int(ask->reads > 0 ? ask->reads : 1, rail_reads_max(conn->ep.base.rail));
	attr.sq_psn = a->psn;
	attr.max_rd_atomic = (uint8_t)a->reads;
	return -ibv_modify_qp(conn->ep.qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Makes the connection on the rail of the route, and connects it. Returns 0 with *a but for the id, or -errno. */
static int
open_on(struct rdma *rd, struct rc_conn *conn, const struct rdma_rc_ask *ask, const struct rail_route *route,
	int level, struct rdma_rc_answer *a)
{
	struct rdma_rail *rail = rd->rail[route->rail];
	struct verbs_cq *cq;
	int r;

	conn->rail = (unsigned)route->rail;
	conn->generation = rdma_rail_generation(rail);
	r = verbs_cq_new(rail, RC_DEPTH, ask->qpn, &cq);
	if (r < 0)
		return r;
	if (fd_is_kept(rdma_cq_fd(&cq->base), 1)) {
		rdma_cq_free(&cq->base);
		return -EMFILE;
	}
	verbs_ep_init(&conn->ep, &rdma_rc, rail, cq->c);
	conn->limits = (struct rdma_ep_limits){ .send_depth = RC_DEPTH, .max_sge = 1 };
	errno = 0;
	conn->ep.qp = qp_new(cq->pd, cq->cq, RC_DEPTH, 1);
	r = conn->ep.qp ? 0 : errno ? -errno : -ENOMEM;
	if (r == 0)
		r = to_init(conn->ep.qp, rail->port, rd->conf.pkey_index);
	if (r == 0)
		r = to_rtr(conn, ask, route, level, a);
	if (r == 0)
		r = to_rts(conn, ask, a);
	if (r < 0) {
		/* No work request was posted on the queue pair, so the device's answer does not matter. */
		if (conn->ep.qp)
			verbs_ep_destroy_qp(&conn->ep);
		rdma_cq_free(&cq->base);
		return r;
	}
	conn->limits.read_depth = a->reads;
	a->qpn = conn->ep.qp->qp_num;
	context_hold(cq->c);
	conn->cq = &cq->base;
	return 0;
}

int
rc_conn_open(struct rdma *rd, struct rc_conn *conn, const struct rdma_rc_ask *ask,
	     struct rdma_rc_answer *ret_answer)
{
	struct token tok = {
		.kind = TOKEN_RC_SHIM, .have_gid = ask->have_gid, .lid = ask->lid, .dctn = ask->qpn
	};
	struct rdma_asker asker = { .local = (const struct sockaddr *)&ask->local,
				    .numa_node = -1,
				    .turn = ask->qpn,
				    .must_route = ask->must_route };
	struct rail_route route;
	int r, why = 0, level;

	memcpy(tok.gid, ask->gid, 16);
	/* The search for a rail that leads to the client, as a lease does it with DC. */
	while ((r = route_by_address(rd, &tok, &asker, &route)) == 0) {
		asker.tried |= 1u << route.rail;
		r = rail_routes(rd->rail[route.rail], &route.key, &level);
		if (r == 0)
			r = open_on(rd, conn, ask, &route, level, ret_answer);
		if (r == 0)
			return 0;
		if (!why)
			why = r == -ENETUNREACH ? -EHOSTUNREACH : r;
	}
	return why ? why : r == -EINVAL || r == -ENODEV ? r : -EHOSTUNREACH;
}

void
rc_conn_close(struct rc_conn *conn)
{
	if (!conn->cq)
		return;
	/* Without work no answer of the device matters; a queue pair that the driver keeps goes with its context. */
	if (verbs_ep_release(&conn->ep, true) < 0) {
		log_limited(LOG_WARN, "%s: a connection's queue pair cannot be destroyed",
			    conn->ep.base.rail->dev->name);
		context_put(conn->ep.c);
	}
	rdma_cq_free(conn->cq);
	conn->cq = NULL;
}

/* Returns true if the rail still has the address to which the client's end is connected. */
static bool
has_address(struct rdma_rail *rail, const struct rc_conn *conn)
{
	pthread_rwlock_t *lock = &rail->rd->table_lock;
	const struct rail_view *v = &rail->view;
	bool has;

	/* No change since the connection was made. */
	if (atomic_load(&rail->addresses) == conn->addresses)
		return true;
	pthread_rwlock_rdlock(lock);
	has = !v->is_ethernet && v->lid == conn->own_lid;
	for (int i = 0; i < v->gid_nr && v->is_ethernet; i++)
		has |= v->gid[i].index == conn->gid_index && memcmp(v->gid[i].raw, conn->own_gid, 16) == 0;
	pthread_rwlock_unlock(lock);
	return has;
}

bool
rc_conn_is_lost(const struct rc_conn *conn)
{
	struct rdma_rail *rail = conn->ep.base.rail;

	return conn->ep.context != rdma_rail_context(rail) ||
	       conn->generation != rdma_rail_generation(rail) || conn->link != atomic_load(&rail->link) ||
	       rdma_rail_state(rail) == RAIL_LOST || !has_address(rail, conn);
}

/* ---- as the target of a token ---- */

static int
rc_route(struct rdma *rd, const struct token *tok, const struct rdma_asker *asker,
	 struct rail_route *ret_route)
{
	unsigned rail;
	int r = rc_find_rail(rd, tok->id, &rail);

	if (r < 0)
		return r;
	if (asker->tried & 1u << rail || rdma_rail_state(rd->rail[rail]) != RAIL_UP)
		return -ENETDOWN;
	*ret_route = (struct rail_route){ .rail = (int)rail, .ops = &rdma_rc };
	return 0;
}

static int
rc_target_get(struct rdma_rail *rail, const struct token *tok, const struct rail_route *route,
	      struct rdma_target_wait *w, struct rdma_target *ret_target)
{
	struct rc_conn *conn;
	int r = rc_take(rail->rd, tok->id, &conn);

	if (r < 0)
		return r;
	*ret_target = (struct rdma_target){ .ops = &rdma_rc, .at = conn };
	return 1;
}

/* Returns false: no wait for a connection ever begins. */
static bool
rc_target_leave(struct rdma_rail *rail, struct rdma_target_wait *w)
{
	return false;
}

static void
rc_target_put(struct rdma_rail *rail, const struct rdma_target *target)
{
	rc_put(target->at);
}

static void
rc_target_forget(struct rdma_rail *rail, const struct rdma_target *target)
{
}

static bool
rc_target_forgotten(const struct rdma_target *target)
{
	return rc_conn_is_lost(target->at);
}

static void
rc_target_ep(const struct rdma_target *target, struct rdma_connection *ret)
{
	struct rc_conn *conn = target->at;

	*ret = (struct rdma_connection){
		.ep = &conn->ep.base,
		.cq = conn->cq,
		.limits = conn->limits,
		.context = conn->ep.context,
		.generation = conn->generation,
	};
}

/* ---- as an endpoint ---- */

static void
rc_ep_put(struct rdma_ep *ep)
{
	rc_put(rc_conn_of(ep));
}

static void
rc_ep_spend(struct rdma_ep *ep)
{
	atomic_store(&rc_conn_of(ep)->spent, true);
}

static int
rc_post(struct rdma_ep *base, const struct rdma_wr *wr)
{
	struct verbs_ep *ep = verbs_ep_of(base);
	struct ibv_sge sge[RDMA_SGE_MAX];
	struct ibv_send_wr w = { .wr_id = wr->wr_id,
				 .sg_list = sge,
				 .num_sge = wr->sge_nr,
				 .opcode = wr->is_write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = { .remote_addr = wr->remote, .rkey = wr->rkey } },
			   *bad;
	int r;

	check(wr->sge_nr > 0);
	check(wr->sge_nr <= RDMA_SGE_MAX);
	for (int i = 0; i < wr->sge_nr; i++) {
		r = verbs_sge(ep->c, &wr->sge[i], &sge[i]);
		if (r < 0)
			return r;
	}
	r = ibv_post_send(ep->qp, &w, &bad);
	return r < 0 ? -EIO : -r;
}

static int
rc_free(struct rdma_ep *ep, bool idle)
{
	struct rc_conn *conn = rc_conn_of(ep);
	int r = verbs_ep_release(&conn->ep, idle);

	/* The queue goes with the queue pair, or with the context that keeps it. */
	if (conn->cq && (r == 0 || r == -EINPROGRESS)) {
		rdma_cq_free(conn->cq);
		conn->cq = NULL;
	}
	if (r == 0)
		rc_gone(conn);
	return r;
}

const struct rdma_ep_ops rdma_rc = {
	.name = "RC",
	.families = 1u << TOKEN_RC_SHIM,
	.enabled = rc_enabled,
	.setting = "rdma.rc.shim: on",
	.probe = rc_probe,
	.limits = rc_limits,
	.route = rc_route,
	.target_get = rc_target_get,
	.target_leave = rc_target_leave,
	.target_put = rc_target_put,
	.target_forget = rc_target_forget,
	.target_forgotten = rc_target_forgotten,
	.target_ep = rc_target_ep,
	.ep_put = rc_ep_put,
	.ep_spend = rc_ep_spend,
	.ep_post = rc_post,
	.ep_error = verbs_ep_error,
	.ep_free = rc_free,
};
