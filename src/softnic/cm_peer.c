/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the two ends of a connection. Each end sends and expects these messages:
 *
 *     active:  REQ -> | REP <- RTU -> | DREQ -> DREP <-
 *     passive: REQ <- | REP -> RTU <- | DREQ <- DREP ->
 *
 * The end of a socket stands for the messages with which the kernel ends the connections of a process that has died. A message
 * that would pass a port that is down is lost.
 */
#include "softnic/cm.h"
#include "softnic/cm_fabric.h"
#include "softnic/cm_name.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AGAIN_NS 100000000ull

/* ---- messages to the peer ---- */

void
cm_hang_up(struct cm_id *i)
{
	if (i->fd < 0)
		return;
	cm_unwatch(i, i->fd);
	close(i->fd);
	i->fd = -1;
}

void
cm_send(struct cm_id *i, struct cm_msg *m, enum cm_kind kind)
{
	m->version = CM_VERSION;
	m->kind = kind;
	if (i->fd >= 0)
		send(i->fd, m, sizeof(*m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void
cm_send_kind(struct cm_id *i, enum cm_kind kind)
{
	struct cm_msg m = { 0 };

	cm_send(i, &m, kind);
}

void
cm_send_rej(struct cm_id *i, uint32_t reason, const void *data, uint8_t len)
{
	struct cm_msg m = { .reason = reason, .data_len = len };

	if (len)
		memcpy(m.data, data, len);
	cm_send(i, &m, CM_REJ);
}

/* Copies the parameters of REQ or REP to an event; room: length of the private data that the event shows. */
static void
show(struct cm_event *e, const struct cm_msg *m, uint8_t room)
{
	struct rdma_conn_param *p = &e->ev.param.conn;

	memcpy(e->data, m->data, room);
	p->private_data = e->data;
	p->private_data_len = room;
	/* The resources of the peer, as this end would name them. */
	p->responder_resources = m->initiator_depth;
	p->initiator_depth = m->responder_resources;
	p->flow_control = m->flow_control;
	p->retry_count = m->retry_count;
	p->rnr_retry_count = m->rnr_retry_count;
	p->srq = m->srq;
	p->qp_num = m->qpn;
}

/* ---- attempts to connect ---- */

/* The connection does not come about. An id that the program does not know yet is freed. */
static void
refused(struct cm_id *i, uint32_t reason, const struct cm_msg *m)
{
	struct cm_event *e;

	if (i->listener) { /* The program does not know the id yet. */
		i->listener->waiting -= i->dev != NULL;
		cm_id_free(i);
		return;
	}
	cm_forget(i);
	cm_hang_up(i);
	cm_qp_err(i);
	i->state = CM_LEFT;
	e = cm_raise(i, RDMA_CM_EVENT_REJECTED, (int)reason, 0);
	if (e && m)
		show(e, m, CM_REJ_DATA);
}

void
cm_try(struct cm_id *i)
{
	uint64_t now = cm_now(), left = i->give_up_ns > now ? i->give_up_ns - now : 0;
	int r = EAGAIN;

	if (softnic_cm_passes(i->pub.verbs, &i->to))
		r = cm_name_connect(&i->pub.route.addr.dst_addr, &i->fd);
	if (r == 0 && (!cm_name_trusted(i->fd) || cm_watch(i, i->fd))) {
		close(i->fd);
		i->fd = -1;
		r = ECONNREFUSED;
	}
	if (r == 0) {
		cm_send(i, &i->own, CM_REQ);
		cm_raise(i, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, left);
	} else if (r != EAGAIN) {
		refused(i, CM_REJ_NO_SERVICE, NULL);
	} else if (left) {
		cm_retry(i, left < AGAIN_NS ? left : AGAIN_NS);
	} else {
		cm_raise(i, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, 0);
	}
}

/* ---- messages that arrive ---- */

static void
took_req(struct cm_id *i, const struct cm_msg *m)
{
	struct cm_id *l = i->listener;
	struct cm_event *e = NULL;

	i->peer = *m;
	i->from = m->to;
	i->to = m->from;
	i->dev = cm_dev_of_gid(&i->from, &i->sgid_index);
	if (l->waiting < l->backlog && i->dev && cm_dev_open(i->dev) == 0)
		e = cm_raise(l, RDMA_CM_EVENT_CONNECT_REQUEST, 0, 0);
	if (!e) {
		cm_send_rej(i, CM_REJ_CONSUMER, NULL, 0);
		cm_id_free(i);
		return;
	}
	l->waiting++;
	i->pub.route.addr.src_storage = m->to_addr;
	i->pub.route.addr.dst_storage = m->from_addr;
	cm_id_bind_dev(i, i->dev);
	cm_id_path(i);
	e->ev.id = &i->pub;
	e->ev.listen_id = &l->pub;
	show(e, m, CM_REQ_DATA);
}

static void
took_rep(struct cm_id *i, const struct cm_msg *m)
{
	struct cm_event *e;
	int r = 0;

	cm_forget(i);
	i->peer = *m;
	if (i->pub.qp)
		r = cm_qp_connect(i);
	if (r) {
		cm_send_rej(i, CM_REJ_CONSUMER, NULL, 0);
		cm_hang_up(i);
		cm_qp_err(i);
		i->state = CM_LEFT;
		cm_raise(i, RDMA_CM_EVENT_CONNECT_ERROR, -r, 0);
		return;
	}
	if (i->pub.qp)
		cm_send_kind(i, CM_RTU);
	i->state = i->pub.qp ? CM_CONNECTED : CM_ANSWERED;
	e = cm_raise(i, i->pub.qp ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE, 0, 0);
	if (e)
		show(e, m, CM_REP_DATA);
}

/* The peer has ended the connection, or agrees that this end has. */
static void
left(struct cm_id *i)
{
	if (!softnic_cm_passes(i->pub.verbs, &i->to))
		return;
	if (i->state == CM_LEAVING)
		cm_forget(i);
	cm_raise(i, RDMA_CM_EVENT_DISCONNECTED, 0, 0);
	cm_leave(i);
}

static void
ended(struct cm_id *i)
{
	cm_hang_up(i);
	if (i->state == CM_CONNECTED || i->state == CM_LEAVING)
		left(i);
	else if (i->state != CM_LEFT)
		refused(i, CM_REJ_CONSUMER, NULL);
}

static void
took(struct cm_id *i, const struct cm_msg *m)
{
	switch ((enum cm_kind)m->kind) {
	case CM_REQ:
		if (i->listener && !i->dev)
			took_req(i, m);
		break;
	case CM_REP:
		if (i->state == CM_CONNECTING)
			took_rep(i, m);
		break;
	case CM_RTU:
		if (i->state == CM_ACCEPTED) {
			i->state = CM_CONNECTED;
			cm_raise(i, RDMA_CM_EVENT_ESTABLISHED, 0, 0);
		}
		break;
	case CM_REJ:
		if (i->state != CM_LEFT)
			refused(i, m->reason, m);
		break;
	case CM_DREQ:
		if (i->state == CM_ACCEPTED || i->state == CM_CONNECTED || i->state == CM_LEAVING)
			left(i);
		break;
	case CM_DREP:
		if (i->state == CM_LEAVING)
			left(i);
		break;
	}
}

static void
accept_socket(struct cm_id *l)
{
	int fd = accept4(l->bound, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct cm_id *i;

	if (fd < 0)
		return;
	i = cm_name_trusted(fd)
		    ? cm_id_new(l->pub.channel, l->pub.context, l->pub.ps, (uint8_t)l->pub.qp_type)
		    : NULL;
	if (!i) {
		close(fd);
		return;
	}
	i->state = CM_REQUESTED;
	i->listener = l;
	i->fd = fd;
	if (cm_watch(i, fd))
		cm_id_free(i);
}

void
cm_socket(struct cm_id *i)
{
	struct cm_msg m;
	ssize_t n;

	if (i->state == CM_LISTEN) {
		accept_socket(i);
		return;
	}
	n = i->fd >= 0 ? recv(i->fd, &m, sizeof(m), MSG_DONTWAIT) : 0;
	if (n == sizeof(m) && m.version == CM_VERSION)
		took(i, &m);
	else if (n >= 0 || errno != EAGAIN)
		ended(i);
}
