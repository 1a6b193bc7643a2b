/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection manager (RDMA-CM) of the software NIC: both ends of a connection in this process, and one in another. Needs
 * `with-softnic -n -d 2`. Run in both modes.
 */
#include "sn_test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT = 7471, LEN = 64 << 10 };

/* An end of a connection. */
struct end {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t mem[LEN];
};
static struct rdma_event_channel *lch; /* channel of the id that listens, and of its requests */
static struct rdma_cm_id *listener;
static struct end a, b; /* active and passive end */

static struct sockaddr_in
at(const char *ip, uint16_t port)
{
	struct sockaddr_in s = { .sin_family = AF_INET, .sin_port = htons(port) };

	must(inet_pton(AF_INET, ip, &s.sin_addr) == 1);
	return s;
}

/* The next event of a channel, NULL if none comes. The caller acknowledges it. */
static struct rdma_cm_event *
next(struct rdma_event_channel *ch)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };
	struct rdma_cm_event *e;

	return poll(&p, 1, SN_PATIENCE_MS) == 1 && rdma_get_cm_event(ch, &e) == 0 ? e : NULL;
}

static bool
want(struct rdma_event_channel *ch, const struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *e = next(ch);
	bool good =
		ok(e && e->event == type && e->status == status && e->id == id, "%s %d, not %s %d",
		   rdma_event_str(type), status, e ? rdma_event_str(e->event) : "none", e ? e->status : 0);

	if (e)
		rdma_ack_cm_event(e);
	return good;
}

static void
listen_at(const char *ip, int backlog)
{
	struct sockaddr_in s = at(ip, PORT);

	must(rdma_create_id(lch, &listener, &listener, RDMA_PS_TCP) == 0);
	must(rdma_bind_addr(listener, (struct sockaddr *)&s) == 0 && rdma_listen(listener, backlog) == 0);
}

static void
make_qp(struct end *e)
{
	struct ibv_qp_init_attr x = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	must(rdma_create_qp(e->id, NULL, &x) == 0);
	e->mr = ibv_reg_mr(e->id->pd, e->mem, LEN,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	must(e->mr);
}

/* An id of the active end with a route. */
static void
route_to(const char *ip, uint16_t port)
{
	struct sockaddr_in s = at(ip, port);

	must(rdma_create_id(a.ch, &a.id, NULL, RDMA_PS_TCP) == 0);
	must(rdma_resolve_addr(a.id, NULL, (struct sockaddr *)&s, 2000) == 0);
	must(want(a.ch, a.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0) && a.id->verbs && a.id->port_num == 1);
	must(rdma_resolve_route(a.id, 2000) == 0);
	must(want(a.ch, a.id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0) && a.id->route.num_paths == 1);
}

static void
free_end(struct end *e)
{
	if (e->mr)
		ibv_dereg_mr(e->mr);
	if (e->id->qp)
		rdma_destroy_qp(e->id);
	ok(rdma_destroy_id(e->id) == 0, "destroy an end");
	e->id = NULL;
	e->mr = NULL;
}

/* Takes the request that has arrived. */
static struct rdma_cm_event *
request(void)
{
	struct rdma_cm_event *e = next(lch);

	must(e && e->event == RDMA_CM_EVENT_CONNECT_REQUEST && e->listen_id == listener);
	b.id = e->id;
	return e;
}

/* Connects both ends, with queue pairs. */
static void
connect_both(void)
{
	struct rdma_conn_param p = { .responder_resources = 2, .initiator_depth = 1, .retry_count = 3 };

	make_qp(&a);
	must(rdma_connect(a.id, &p) == 0);
	must(rdma_ack_cm_event(request()) == 0);
	make_qp(&b);
	must(rdma_accept(b.id, NULL) == 0);
	must(want(a.ch, a.id, RDMA_CM_EVENT_ESTABLISHED, 0) && want(lch, b.id, RDMA_CM_EVENT_ESTABLISHED, 0));
}

static int
wc_status(struct ibv_cq *cq)
{
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;
	struct ibv_wc wc;

	while (sn_now_ms() < end) {
		if (ibv_poll_cq(cq, 1, &wc) == 1)
			return (int)wc.status;
	}
	return -1;
}

static int
write_to_b(void)
{
	must(rdma_post_write(a.id, NULL, a.mem, LEN, a.mr, 0, (uintptr_t)b.mem, b.mr->rkey) == 0);
	return wc_status(a.id->send_cq);
}

/* ---- connections ---- */

static void
test_params(void)
{
	struct rdma_conn_param p = { .private_data = "request",
				     .private_data_len = 8,
				     .responder_resources = 3,
				     .initiator_depth = 2,
				     .retry_count = 5,
				     .rnr_retry_count = 6 };
	struct rdma_cm_event *e;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr q;
	uint8_t big[57] = { 0 };

	listen_at("127.0.0.1", 4);
	route_to("127.0.0.1", PORT);
	ok(rdma_get_dst_port(a.id) == htons(PORT) && rdma_get_src_port(a.id) != 0, "ports");
	make_qp(&a);
	ok(rdma_connect(a.id, &(struct rdma_conn_param){ .private_data = big, .private_data_len = 57 }) < 0 &&
		   errno == EINVAL,
	   "57 bytes of private data in a request");
	must(rdma_connect(a.id, &p) == 0);
	e = request();
	ok(e->param.conn.private_data_len == 56 && memcmp(e->param.conn.private_data, "request\0\0", 9) == 0,
	   "private data of the request, %d bytes", e->param.conn.private_data_len);
	ok(e->param.conn.responder_resources == 2 && e->param.conn.initiator_depth == 3 &&
		   e->param.conn.rnr_retry_count == 6 && e->param.conn.qp_num == a.id->qp->qp_num,
	   "parameters of the request");
	ok(b.id->context == &listener && b.id->verbs == a.id->verbs &&
		   rdma_get_dst_port(b.id) == rdma_get_src_port(a.id) &&
		   rdma_get_src_port(b.id) == htons(PORT) &&
		   ((struct sockaddr_in *)rdma_get_peer_addr(b.id))->sin_addr.s_addr == htonl(0x7f000001),
	   "the id of the request");
	must(rdma_ack_cm_event(e) == 0);
	make_qp(&b);
	p.private_data = "answer";
	p.private_data_len = 7;
	p.responder_resources = 2;
	p.initiator_depth = 3;
	p.rnr_retry_count = 1;
	must(rdma_accept(b.id, &p) == 0);
	e = next(a.ch);
	must(e);
	ok(e->event == RDMA_CM_EVENT_ESTABLISHED && e->param.conn.private_data_len == 196 &&
		   strcmp(e->param.conn.private_data, "answer") == 0 &&
		   e->param.conn.responder_resources == 3,
	   "ESTABLISHED with the private data of the answer");
	must(rdma_ack_cm_event(e) == 0 && want(lch, b.id, RDMA_CM_EVENT_ESTABLISHED, 0));
	must(ibv_query_qp(a.id->qp, &q, 0, &init) == 0);
	ok(q.qp_state == IBV_QPS_RTS && q.dest_qp_num == b.id->qp->qp_num && q.retry_cnt == 5 &&
		   q.rnr_retry == 1 && q.max_rd_atomic == 2 && q.max_dest_rd_atomic == 3,
	   "the queue pair of the active end");
	must(ibv_query_qp(b.id->qp, &q, 0, &init) == 0);
	ok(q.qp_state == IBV_QPS_RTS && q.dest_qp_num == a.id->qp->qp_num && q.retry_cnt == 5 &&
		   q.rnr_retry == 6 && q.max_rd_atomic == 3 && q.max_dest_rd_atomic == 2,
	   "the queue pair of the passive end");
}

/* The connection of test_params(). */
static void
test_transfer(void)
{
	memset(a.mem, 0x5a, LEN);
	memset(b.mem, 0, LEN);
	must(rdma_post_recv(b.id, NULL, b.mem, LEN, b.mr) == 0);
	must(rdma_post_send(a.id, NULL, a.mem, 1000, a.mr, 0) == 0);
	ok(wc_status(b.id->recv_cq) == IBV_WC_SUCCESS && wc_status(a.id->send_cq) == IBV_WC_SUCCESS &&
		   b.mem[999] == 0x5a && b.mem[1000] == 0,
	   "SEND");
	ok(write_to_b() == IBV_WC_SUCCESS && memcmp(a.mem, b.mem, LEN) == 0, "WRITE");
	memset(b.mem, 0x11, LEN);
	must(rdma_post_read(a.id, NULL, a.mem, LEN, a.mr, 0, (uintptr_t)b.mem, b.mr->rkey) == 0);
	ok(wc_status(a.id->send_cq) == IBV_WC_SUCCESS && a.mem[LEN - 1] == 0x11, "READ");
	ok(rdma_disconnect(a.id) == 0 && sn_state(a.id->qp) == IBV_QPS_ERR, "disconnect");
	ok(want(lch, b.id, RDMA_CM_EVENT_DISCONNECTED, 0) && sn_state(b.id->qp) == IBV_QPS_RTS,
	   "the other end knows");
	ok(rdma_disconnect(b.id) == 0 && want(a.ch, a.id, RDMA_CM_EVENT_DISCONNECTED, 0), "and agrees");
	free_end(&a);
	free_end(&b);
}

static void
test_refused(void)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *twice;
	struct sockaddr_in s = at("127.0.0.1", PORT);

	must(rdma_create_id(lch, &twice, NULL, RDMA_PS_TCP) == 0);
	ok(rdma_bind_addr(twice, (struct sockaddr *)&s) < 0 && errno == EADDRINUSE, "a port that is in use");
	must(rdma_destroy_id(twice) == 0);

	route_to("127.0.0.1", PORT);
	make_qp(&a);
	must(rdma_connect(a.id, NULL) == 0 && rdma_ack_cm_event(request()) == 0);
	ok(rdma_reject(b.id, "no", 3) == 0, "reject");
	e = next(a.ch);
	must(e);
	ok(e->event == RDMA_CM_EVENT_REJECTED && e->status == 28 && e->param.conn.private_data_len == 148 &&
		   strcmp(e->param.conn.private_data, "no") == 0 && sn_state(a.id->qp) == IBV_QPS_ERR,
	   "REJECTED with private data");
	must(rdma_ack_cm_event(e) == 0);
	free_end(&b);
	free_end(&a);

	route_to("127.0.0.1", PORT);
	must(rdma_connect(a.id, NULL) == 0 && rdma_ack_cm_event(request()) == 0);
	free_end(&b);
	ok(want(a.ch, a.id, RDMA_CM_EVENT_REJECTED, 28), "an id destroyed before accept");
	free_end(&a);

	route_to("127.0.0.1", PORT + 1);
	must(rdma_connect(a.id, NULL) == 0);
	ok(want(a.ch, a.id, RDMA_CM_EVENT_REJECTED, 8), "no id listens");
	free_end(&a);
}

/* Requests that wait: more than the backlog, and those of a listening id that is destroyed. */
static void
test_backlog(void)
{
	struct rdma_cm_id *first;
	struct rdma_cm_event *e;

	must(rdma_destroy_id(listener) == 0);
	listen_at("0.0.0.0", 1);
	ok(listener->verbs == NULL, "any address is of no device");
	route_to("127.0.0.1", PORT);
	must(rdma_connect(a.id, NULL) == 0);
	first = a.id;
	route_to("127.0.0.2", PORT);
	ok(strcmp(a.id->verbs->device->name, first->verbs->device->name) != 0, "by the other device");
	must(rdma_connect(a.id, NULL) == 0);
	e = request(); /* only here the library reads both requests */
	must(rdma_ack_cm_event(e) == 0);
	ok(want(a.ch, a.id, RDMA_CM_EVENT_REJECTED, 28), "one request more than the backlog");
	free_end(&b);
	ok(want(a.ch, first, RDMA_CM_EVENT_REJECTED, 28), "the other was taken");
	free_end(&a);
	a.id = first;
	free_end(&a);

	route_to("127.0.0.1", PORT);
	must(rdma_connect(a.id, NULL) == 0);
	must(rdma_destroy_id(listener) == 0);
	ok(want(a.ch, a.id, RDMA_CM_EVENT_REJECTED, 28), "the listening id is destroyed");
	free_end(&a);
	listen_at("0.0.0.0", 8);
}

/* Queue pairs that the program makes and changes itself. */
static void
test_own_qp(void)
{
	struct rdma_conn_param p = { .qp_num = 4242, .responder_resources = 1 };
	struct ibv_qp_attr q = { .qp_state = IBV_QPS_RTR };
	int mask;

	route_to("127.0.0.1", PORT);
	must(rdma_connect(a.id, &p) == 0 && rdma_ack_cm_event(request()) == 0);
	p.qp_num = 4343;
	p.responder_resources = 0;
	must(rdma_accept(b.id, &p) == 0);
	ok(want(a.ch, a.id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0), "CONNECT_RESPONSE");
	ok(rdma_init_qp_attr(a.id, &q, &mask) == 0 && q.dest_qp_num == 4343 && mask & IBV_QP_AV &&
		   q.ah_attr.is_global && q.max_dest_rd_atomic == 1,
	   "attributes for RTR");
	ok(rdma_establish(a.id) == 0 && want(lch, b.id, RDMA_CM_EVENT_ESTABLISHED, 0), "establish");
	free_end(&a);
	ok(want(lch, b.id, RDMA_CM_EVENT_DISCONNECTED, 0), "an end that is destroyed");
	free_end(&b);
}

/* ---- the fabric ---- */

/* Ends the connection from the active end, and frees both ends. */
static void
disconnect_both(void)
{
	must(rdma_disconnect(a.id) == 0 && want(lch, b.id, RDMA_CM_EVENT_DISCONNECTED, 0));
	free_end(&a);
	free_end(&b);
}

static int
post_read(void)
{
	return rdma_post_read(a.id, NULL, a.mem, LEN, a.mr, 0, (uintptr_t)b.mem, b.mr->rkey);
}

/* The fault rules of WRITE, READ and SEND; a failed work request breaks the connection's queue pair, and no other. */
static void
test_faults(void)
{
	static const char *const op[] = { "write", "read", "send" };
	struct ibv_wc wc;
	char cmd[100];

	for (int n = 0; n < 3; n++) {
		route_to("127.0.0.1", PORT);
		connect_both();
		memset(n == 1 ? b.mem : a.mem, 0x5a, LEN);
		memset(n == 1 ? a.mem : b.mem, 0, LEN);
		snprintf(cmd, sizeof(cmd), "rule add op=%s corrupt=100 >/dev/null", op[n]);
		sn_ctl(cmd);
		must(rdma_post_recv(b.id, NULL, b.mem, LEN, b.mr) == 0);
		if (n == 2)
			must(rdma_post_send(a.id, NULL, a.mem, LEN, a.mr, 0) == 0);
		ok((n == 2   ? wc_status(a.id->send_cq)
		    : n == 1 ? post_read() + wc_status(a.id->send_cq)
			     : write_to_b()) == IBV_WC_SUCCESS &&
			   (n < 2 || wc_status(b.id->recv_cq) == IBV_WC_SUCCESS) &&
			   (n == 1 ? a.mem : b.mem)[100] == 0xa5 && (n == 1 ? a.mem : b.mem)[101] == 0x5a,
		   "%s: an inverted byte", op[n]);
		sn_ctl("rule clear");
		snprintf(cmd, sizeof(cmd), "rule add op=%s status=REM_OP_ERR limit=1 >/dev/null", op[n]);
		sn_ctl(cmd);
		if (n == 2)
			must(rdma_post_recv(b.id, NULL, b.mem, LEN, b.mr) == 0 &&
			     rdma_post_send(a.id, NULL, a.mem, LEN, a.mr, 0) == 0);
		ok((n == 2   ? wc_status(a.id->send_cq)
		    : n == 1 ? post_read() + wc_status(a.id->send_cq)
			     : write_to_b()) == IBV_WC_REM_OP_ERR,
		   "%s: a status", op[n]);
		sn_ctl("rule clear");
		ok(sn_state(a.id->qp) == IBV_QPS_ERR && sn_state(b.id->qp) == IBV_QPS_RTS &&
			   write_to_b() == IBV_WC_WR_FLUSH_ERR && ibv_poll_cq(b.id->recv_cq, 1, &wc) == 0,
		   "the active end is broken, and not the other");
		disconnect_both();
	}
}

/* Every work request of a connection is in the trace, with the number of its queue pair. */
static void
test_trace(void)
{
	char file[300], cmd[700];

	snprintf(file, sizeof(file), "%s/trace.cm", getenv("SOFTNIC_DIR"));
	route_to("127.0.0.1", PORT);
	connect_both();
	snprintf(cmd, sizeof(cmd), "trace on %s", file);
	sn_ctl(cmd);
	must(rdma_post_recv(b.id, NULL, b.mem, LEN, b.mr) == 0);
	must(rdma_post_send(a.id, NULL, a.mem, 1000, a.mr, 0) == 0);
	ok(wc_status(a.id->send_cq) == IBV_WC_SUCCESS && write_to_b() == IBV_WC_SUCCESS && post_read() == 0 &&
		   wc_status(a.id->send_cq) == IBV_WC_SUCCESS,
	   "one of each");
	sn_ctl("rule add op=write torn=50 status=REM_OP_ERR >/dev/null");
	ok(write_to_b() == IBV_WC_REM_OP_ERR, "half of a WRITE");
	sn_ctl("rule clear");
	sn_ctl("trace off");
	for (int n = 0; n < 4; n++) {
		static const char *const rec[] = { "send [^ ]+ [^ ]+ [^ ]+ 1000 1000 SUCCESS",
						   "write [^ ]+ [^ ]+ [^ ]+ 65536 65536 SUCCESS",
						   "read [^ ]+ [^ ]+ [^ ]+ 65536 65536 SUCCESS",
						   "write [^ ]+ [^ ]+ [^ ]+ 65536 32768 REM_OP_ERR" };

		snprintf(cmd, sizeof(cmd), "trace show %s | grep -Ec '%x +%s' | grep -qx 1", file,
			 a.id->qp->qp_num, rec[n]);
		sn_ctl(cmd);
	}
	disconnect_both();
}

/* `softnicctl qp N fatal` for the queue pair of one end: its program has the event and flushed completions; the other learns of it by
 * its own work. */
static void
test_fatal(void)
{
	struct ibv_async_event ev;
	char cmd[64];

	for (int n = 0; n < 2; n++) {
		struct end *broken = n ? &b : &a;

		route_to("127.0.0.1", PORT);
		connect_both();
		must(rdma_post_recv(broken->id, NULL, broken->mem, LEN, broken->mr) == 0);
		snprintf(cmd, sizeof(cmd), "qp %#x fatal", broken->id->qp->qp_num);
		sn_ctl(cmd);
		ok(sn_next_event(broken->id->verbs, SN_PATIENCE_MS, &ev) == IBV_EVENT_QP_FATAL &&
			   ev.element.qp == broken->id->qp,
		   "QP_FATAL");
		ok(sn_state(broken->id->qp) == IBV_QPS_ERR &&
			   wc_status(broken->id->recv_cq) == IBV_WC_WR_FLUSH_ERR,
		   "its receive is flushed");
		ok(write_to_b() == (n ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR), "a WRITE of the %s end",
		   n ? "other" : "broken");
		disconnect_both();
		route_to("127.0.0.1", PORT);
		connect_both();
		ok(write_to_b() == IBV_WC_SUCCESS, "the next connection");
		disconnect_both();
	}
}

static void
test_addresses(void)
{
	struct sockaddr_in s = at("10.9.9.9", PORT), any = at("0.0.0.0", 0);
	struct rdma_cm_id *id;
	uint64_t start;

	must(rdma_create_id(a.ch, &id, NULL, RDMA_PS_TCP) == 0);
	ok(rdma_bind_addr(id, (struct sockaddr *)&s) < 0 && errno == ENODEV, "an address of no device");
	ok(rdma_bind_addr(id, (struct sockaddr *)&any) == 0 && rdma_get_src_port(id) != 0, "a free port");
	must(rdma_resolve_addr(id, NULL, (struct sockaddr *)&s, 100) == 0);
	want(a.ch, id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	sn_ctl("reach absent=50ms");
	start = sn_now_ms();
	must(rdma_resolve_addr(id, NULL, (struct sockaddr *)&s, 60000) == 0);
	ok(want(a.ch, id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT) && sn_now_ms() - start >= 49,
	   "an absent neighbour");
	sn_ctl("reach all absent=0");
	sn_ctl("reach subnet");
	must(rdma_resolve_addr(id, NULL, (struct sockaddr *)&s, 100) == 0);
	want(a.ch, id, RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH);
	sn_ctl("reach all");
	must(rdma_destroy_id(id) == 0);
}

static void
test_port(void)
{
	struct rdma_cm_event *e;

	route_to("127.0.0.1", PORT);
	sn_ctl("port mlx5_0 down");
	must(rdma_connect(a.id, NULL) == 0);
	must(fcntl(lch->fd, F_SETFL, O_NONBLOCK) == 0);
	ok(rdma_get_cm_event(lch, &e) < 0 && errno == EAGAIN, "no request passes a port that is down");
	must(fcntl(lch->fd, F_SETFL, 0) == 0);
	sn_ctl("port mlx5_0 up");
	/* The active end tries again when the program looks for events. */
	must(fcntl(a.ch->fd, F_SETFL, O_NONBLOCK) == 0);
	for (struct pollfd p[2] = { { a.ch->fd, POLLIN, 0 }, { lch->fd, POLLIN, 0 } };
	     !(p[1].revents & POLLIN) && poll(p, 2, SN_PATIENCE_MS) > 0;)
		ok(rdma_get_cm_event(a.ch, &e) < 0, "no event before an answer");
	must(fcntl(a.ch->fd, F_SETFL, 0) == 0);
	must(rdma_ack_cm_event(request()) == 0 && rdma_accept(b.id, NULL) == 0);
	want(a.ch, a.id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	free_end(&a);
	ok(want(lch, b.id, RDMA_CM_EVENT_REJECTED, 28), "an end that is destroyed before RTU");
	free_end(&b);

	must(setenv("SOFTNIC_RETRY_US", "20000", 1) == 0);
	route_to("127.0.0.1", PORT);
	sn_ctl("port mlx5_0 down");
	must(rdma_connect(a.id, NULL) == 0);
	want(a.ch, a.id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	sn_ctl("port mlx5_0 up");
	free_end(&a);
	/* The message of the end is lost, and the peer does not answer. */
	must(unsetenv("SOFTNIC_RETRY_US") == 0);
	route_to("127.0.0.1", PORT);
	connect_both();
	must(setenv("SOFTNIC_RETRY_US", "20000", 1) == 0);
	sn_ctl("port mlx5_0 down");
	must(rdma_disconnect(a.id) == 0);
	want(a.ch, a.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	must(fcntl(lch->fd, F_SETFL, O_NONBLOCK) == 0);
	free_end(&a);
	ok(rdma_get_cm_event(lch, &e) < 0 && errno == EAGAIN, "the other end knows nothing");
	must(fcntl(lch->fd, F_SETFL, 0) == 0);
	sn_ctl("port mlx5_0 up");
	free_end(&b);
	must(unsetenv("SOFTNIC_RETRY_US") == 0);
}

/* A process that connects and waits: `t_cm --far`. */
static _Noreturn void
far_end(void)
{
	route_to("127.0.0.1", PORT);
	make_qp(&a);
	must(rdma_connect(a.id, NULL) == 0);
	must(want(a.ch, a.id, RDMA_CM_EVENT_ESTABLISHED, 0));
	for (;;)
		pause();
}

static void
test_process(const char *self)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(self, self, "--far", NULL);
		_exit(127);
	}
	must(rdma_ack_cm_event(request()) == 0);
	make_qp(&b);
	must(rdma_accept(b.id, NULL) == 0);
	want(lch, b.id, RDMA_CM_EVENT_ESTABLISHED, 0);
	kill(pid, SIGKILL);
	must(waitpid(pid, NULL, 0) == pid);
	ok(want(lch, b.id, RDMA_CM_EVENT_DISCONNECTED, 0), "a process that was killed");
	free_end(&b);
}

/* Data of a connection while its port is down: as long as retries last, and longer. */
static void
test_port_of_connection(void)
{
	struct hw_token nobody = { .dctn = 1 };
	struct ibv_wc wc;
	struct hw_port p;
	struct hw_dci i;

	route_to("127.0.0.1", PORT);
	connect_both();
	p = (struct hw_port){
		.ctx = a.id->verbs, .pd = a.id->pd, .nr = 1, .gid_index = SN_GID_ROW, .mtu = IBV_MTU_1024
	};
	must(ibv_query_gid(p.ctx, 1, SN_GID_ROW, &nobody.gid) == 0);
	sn_dci_init(&i, &p, NULL);
	sn_dci_to(&i, &nobody);
	memset(a.mem, 0x77, LEN);
	memset(b.mem, 0, LEN);
	sn_ctl("port mlx5_0 down");
	must(rdma_post_write(a.id, NULL, a.mem, LEN, a.mr, 0, (uintptr_t)b.mem, b.mr->rkey) == 0);
	/* The engine has tried it before that of another queue pair, which gives up sooner. */
	ok(sn_post(&i, false, &nobody, 0, a.mr, a.mem, 8, 1) == 0 &&
		   sn_wait(&i, NULL) == IBV_WC_RETRY_EXC_ERR,
	   "another queue pair gives up");
	sn_dci_fini(&i);
	ok(ibv_poll_cq(a.id->send_cq, 1, &wc) == 0 && b.mem[0] == 0, "port down: nothing is written");
	sn_ctl("port mlx5_0 up");
	ok(wc_status(a.id->send_cq) == IBV_WC_SUCCESS && b.mem[LEN - 1] == 0x77, "the retry writes");
	sn_ctl("port mlx5_0 down");
	ok(write_to_b() == IBV_WC_RETRY_EXC_ERR && sn_state(a.id->qp) == IBV_QPS_ERR, "no retry is left");
	sn_ctl("port mlx5_0 up");
	disconnect_both();
}

static void
other_is_there(void)
{
	struct sockaddr_in s = at("127.0.0.2", PORT);

	must(rdma_create_id(a.ch, &a.id, NULL, RDMA_PS_TCP) == 0);
	must(rdma_resolve_addr(a.id, NULL, (struct sockaddr *)&s, 2000) == 0);
	ok(want(a.ch, a.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0), "the other device is still there");
	must(rdma_destroy_id(a.id) == 0);
}

/* A device that is lost and comes back, and one that is reset, so that ids have another context afterwards. */
static void
test_lost(void)
{
	struct ibv_context *before;

	for (int n = 0; n < 2; n++) {
		route_to("127.0.0.1", PORT);
		connect_both();
		before = a.id->verbs;
		must(rdma_post_recv(b.id, NULL, b.mem, LEN, b.mr) == 0);
		sn_ctl(n ? "device mlx5_0 reset flush" : "device mlx5_0 lost");
		ok(want(a.ch, a.id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0) &&
			   want(lch, b.id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0),
		   "both ends of a connection learn of it");
		ok(wc_status(b.id->recv_cq) == IBV_WC_WR_FLUSH_ERR && write_to_b() == IBV_WC_WR_FLUSH_ERR,
		   "their work is flushed");
		free_end(&a);
		free_end(&b);
		other_is_there();
		if (n == 0)
			sn_ctl("device mlx5_0 back");
		route_to("127.0.0.1", PORT);
		connect_both();
		ok(write_to_b() == IBV_WC_SUCCESS, "a device that is back");
		ok(n == 0 || a.id->verbs != before, "another context after a reset");
		free_end(&a);
		want(lch, b.id, RDMA_CM_EVENT_DISCONNECTED, 0);
		free_end(&b);
	}
}

/* ---- endpoints without an event channel ---- */

static void *
serve(void *arg)
{
	struct rdma_cm_id *ep = arg, *id;

	must(rdma_get_request(ep, &id) == 0);
	must(id->qp && rdma_accept(id, NULL) == 0);
	must(rdma_disconnect(id) == 0);
	rdma_destroy_ep(id);
	return NULL;
}

static void
test_endpoints(void)
{
	struct ibv_qp_init_attr x = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *res;
	struct rdma_cm_id *ep, *id;
	pthread_t t;

	must(rdma_getaddrinfo("127.0.0.2", "7475", &hints, &res) == 0);
	ok(res->ai_qp_type == IBV_QPT_RC && res->ai_src_len && !res->ai_dst_len, "rdma_getaddrinfo");
	must(rdma_create_ep(&ep, res, NULL, &x) == 0 && rdma_listen(ep, 1) == 0);
	rdma_freeaddrinfo(res);
	must(pthread_create(&t, NULL, serve, ep) == 0);
	hints.ai_flags = 0;
	must(rdma_getaddrinfo("127.0.0.2", "7475", &hints, &res) == 0);
	must(rdma_create_ep(&id, res, NULL, &x) == 0);
	rdma_freeaddrinfo(res);
	ok(rdma_connect(id, NULL) == 0 && sn_state(id->qp) == IBV_QPS_RTS, "connect waits for the answer");
	ok(rdma_disconnect(id) == 0, "both ends disconnect");
	pthread_join(t, NULL);
	rdma_destroy_ep(id);
	rdma_destroy_ep(ep);
}

int
main(int argc, char **argv)
{
	lch = rdma_create_event_channel();
	a.ch = rdma_create_event_channel();
	must(lch && a.ch);
	if (argc == 2)
		far_end();
	test_params();
	test_transfer();
	test_refused();
	test_backlog();
	test_own_qp();
	test_faults();
	test_trace();
	test_fatal();
	test_addresses();
	test_port();
	test_port_of_connection();
	test_process(argv[0]);
	test_lost();
	test_endpoints();
	ok(rdma_destroy_id(listener) == 0, "destroy the listening id");
	rdma_destroy_event_channel(a.ch);
	rdma_destroy_event_channel(lch);

	return sn_summary("connection manager");
}
