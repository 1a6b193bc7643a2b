/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of RC, on the software NIC: which call has which, what the server may do with one, and when it ends.  The
 * test is the server, and has a queue pair for each connection.
 */
#include "tests/fake/client_rig.h"

#include "base/hex.h"
#include "client/gid.h"
#include "client/rc.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FARS 64
#define MANY 8

/* The server's end of a connection. */
struct far {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	_Atomic int requests; /* that are under way */
	_Atomic bool is_gone; /* by a disconnect, or forgotten */
};

static struct far far_end[FARS];
static _Atomic int fars, connects, disconnects, shared, tokened;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char byte = 'x';
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int allowed; /* connections at a time; more get a 503 */
static _Atomic bool stalls; /* requests get no answer while it is set */
static _Atomic int lose;    /* requests that are answered not-connected */
static const char *volatile connect_answer, *volatile object_answer, *volatile values;
static enum ibv_wc_status written, read_back; /* by the server, during the last request */

static int
open_rc(struct fix *f, unsigned flags, unsigned life_ms, enum gantry_transport transport)
{
	struct gantry_options o = { .size = sizeof o,
				    .flags = flags,
				    .config_file = "",
				    .device = "mlx5_0",
				    .target_life_ms = life_ms,
				    .timeout_ms = 60000,
				    .transport = transport };

	return gantry_open(&o, &f->g);
}

/* ---- the server ---- */

/* What the server's queue pair can do to the window of a token. */
static enum ibv_wc_status
post(struct far *s, const struct token *t, enum ibv_wr_opcode op)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&byte, .length = 1, .lkey = mr->lkey };
	struct ibv_send_wr w = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = op,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = { .remote_addr = t->addr, .rkey = t->rkey } },
			   *bad;
	struct ibv_wc wc;

	if (ibv_post_send(s->qp, &w, &bad) != 0)
		return IBV_WC_GENERAL_ERR;
	wait_until(ibv_poll_cq(s->cq, 1, &wc) != 0)
		usleep(100);
	return wc.status;
}

static bool
join(struct far *s, const struct token *end, uint32_t psn)
{
	struct ibv_qp_init_attr ia = { .qp_type = IBV_QPT_RC, .cap = { 4, 1, 1, 1, 0 } };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = end->dctn,
				   .rq_psn = psn,
				   .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 4 } } };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 1, .sq_psn = 7, .max_rd_atomic = 1
	};
	uint8_t own[16];

	s->cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	ia.send_cq = ia.recv_cq = s->cq;
	s->qp = ibv_create_qp(pd, &ia);
	port_gid(ctx, 1, NULL, &rtr.ah_attr.grh.sgid_index, own);
	memcpy(rtr.ah_attr.grh.dgid.raw, end->gid, 16);
	return s->qp &&
	       ibv_modify_qp(s->qp, &init,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0 &&
	       ibv_modify_qp(s->qp, &rtr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0 &&
	       ibv_modify_qp(s->qp, &rts,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

static void
serve_connect(int fd, const struct request *rq)
{
	char text[300], token[128], psn[16], end_text[TOKEN_RC_LEN + 1];
	struct token end, own = { .port = 1 };
	const char *why;
	uint8_t index;
	struct far *s;
	int i, open = 0;

	connects++;
	if (connect_answer) {
		answer(fd, connect_answer);
		return;
	}
	pthread_mutex_lock(&lock);
	for (i = 0; i < fars; i++)
		open += !far_end[i].is_gone;
	if (open >= allowed) {
		pthread_mutex_unlock(&lock);
		answer(fd, "HTTP/1.1 503 Slow Down\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n");
		return;
	}
	i = fars++;
	s = &far_end[i];
	s->is_gone = false;
	pthread_mutex_unlock(&lock);
	if (!header_of(rq, "x-amz-rdma-token", token, sizeof token) ||
	    !header_of(rq, "x-amz-rdma-psn", psn, sizeof psn) ||
	    token_parse_end(token, strlen(token), &end, &why) < 0 ||
	    !join(s, &end, (uint32_t)strtoul(psn, NULL, 16))) {
		answer(fd, "HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n");
		return;
	}
	own.dctn = s->qp->qp_num;
	port_gid(ctx, 1, NULL, &index, own.gid);
	token_format_rc(&own, end_text);
	snprintf(text, sizeof text,
		 "HTTP/1.1 200 OK\r\nx-amz-rdma-reply: 200:%s\r\nx-amz-rdma-session: %032x\r\n"
		 "x-amz-rdma-psn: 000007\r\nx-gantry-rc: %s\r\n"
		 "content-length: 0\r\n\r\n",
		 end_text, i + 1, values);
	answer(fd, text);
}

static struct far *
far_of(const uint8_t id[16])
{
	int i = id[14] << 8 | id[15];

	return i >= 1 && i <= fars ? &far_end[i - 1] : NULL;
}

static void
serve_object(int fd, const struct request *rq)
{
	struct token t;
	struct far *s = token_of(rq, &t) && t.kind == TOKEN_RC_SHIM ? far_of(t.id) : NULL;

	if (!s) {
		answer(fd, "HTTP/1.1 200 OK\r\netag: \"h\"\r\ncontent-length: 0\r\n\r\n");
		return;
	}
	tokened++;
	if (s->is_gone || lose > 0) {
		lose--;
		s->is_gone = true;
		answer(fd,
		       "HTTP/1.1 501 No\r\nx-amz-rdma-reply: 501\r\nx-gantry-rdma-reason: not-connected\r\n"
		       "content-length: 0\r\n\r\n");
		return;
	}
	shared += s->requests++ > 0;
	if (!strcmp(rq->method, "PUT"))
		read_back = post(s, &t, IBV_WR_RDMA_READ);
	else
		written = post(s, &t, IBV_WR_RDMA_WRITE);
	usleep(2000);
	while (stalls)
		usleep(1000);
	s->requests--;
	if (object_answer)
		answer(fd, object_answer);
	else if (!strcmp(rq->method, "PUT"))
		answer(fd, "HTTP/1.1 200 OK\r\netag: \"r\"\r\nx-amz-rdma-reply: 200\r\ncontent-length: "
			   "0\r\n\r\n");
	else
		answer(fd, "HTTP/1.1 206 OK\r\nx-amz-rdma-reply: 206\r\nx-amz-rdma-bytes-transferred: 1\r\n"
			   "content-range: bytes 0-0/1\r\ncontent-length: 0\r\n\r\n");
}

static void
serve_rc(int fd, const struct request *rq)
{
	char text[64];
	uint8_t id[16];

	if (!strcmp(rq->target, "/.s3rdma-rc/connect")) {
		serve_connect(fd, rq);
	} else if (!strcmp(rq->target, "/.s3rdma-rc/disconnect")) {
		if (header_of(rq, "x-amz-rdma-session", text, sizeof text) && hex_bytes(text, id, 16) == 0 &&
		    far_of(id))
			far_of(id)->is_gone = true;
		disconnects++;
		answer(fd, "HTTP/1.1 204 No Content\r\n\r\n");
	} else {
		serve_object(fd, rq);
	}
}

static int
begin(void **state)
{
	struct fix *f;

	setup(state);
	f = *state;
	gantry_close(f->g);
	f->g = NULL;
	connects = disconnects = shared = tokened = fars = lose = 0;
	stalls = false;
	memset(far_end, 0, sizeof far_end);
	allowed = FARS;
	connect_answer = object_answer = NULL;
	values = "reads=1; mtu=1024; sl=0; pkey=0xffff";
	serve = serve_rc;
	return 0;
}

static int
end(void **state)
{
	teardown(state);
	for (int i = 0; i < fars; i++) {
		if (far_end[i].qp)
			ibv_destroy_qp(far_end[i].qp);
		if (far_end[i].cq)
			ibv_destroy_cq(far_end[i].cq);
	}
	return 0;
}

static int
open_device(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	mr = ibv_reg_mr(pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE);
	return mr ? rig_start(state) : -1;
}

static int
close_device(void **state)
{
	rig_stop(state);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	return ibv_close_device(ctx);
}

static void
put(struct fix *f, enum gantry_path path)
{
	assert_int_equal(gantry_put(f->g, url, f->buf, 100, NULL, &f->res), 0);
	assert_int_equal(f->res.path, path);
}

static void
get(struct fix *f, enum gantry_path path)
{
	assert_int_equal(gantry_get(f->g, url, f->buf, 1, 0, NULL, &f->res), 0);
	assert_int_equal(f->res.path, path);
}

/* ---- calls and connections ---- */

static void
calls_share_a_connection_in_turn(void **state)
{
	struct fix *f = *state;

	assert_int_equal(open_rc(f, 0, 60000, GANTRY_TRANSPORT_RC), 0);
	put(f, GANTRY_PATH_RDMA);
	assert_int_equal(f->res.transport, GANTRY_TRANSPORT_RC);
	assert_int_equal(f->res.requests, 2);
	for (int i = 0; i < 5; i++) {
		f->buf[0] = 'y';
		get(f, GANTRY_PATH_RDMA);
		assert_int_equal(f->res.requests, 1);
		assert_int_equal(f->buf[0], byte);
		put(f, GANTRY_PATH_RDMA);
	}
	assert_int_equal(read_back, IBV_WC_SUCCESS);
	assert_int_equal(written, IBV_WC_SUCCESS);
	assert_int_equal(connects, 1);
	gantry_close(f->g);
	f->g = NULL;
	assert_int_equal(disconnects, 1);
}

/* Values that a server leaves out, or that cannot be. */
static void
odd_values_leave_the_default(void **state)
{
	struct fix *f = *state;
	static const char *const odd[] = { "", "reads=0; mtu=0; sl=0", "reads=-1; mtu=1500; sl=16",
					   "reads=17; mtu=8192; sl=-1", "reads; mtu=; sl=x" };

	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		values = odd[i];
		assert_int_equal(open_rc(f, 0, 60000, GANTRY_TRANSPORT_RC), 0);
		put(f, GANTRY_PATH_RDMA);
		assert_int_equal(read_back, IBV_WC_SUCCESS);
		gantry_close(f->g);
		f->g = NULL;
	}
}

/* claim TM94: a put lets the server read, a get lets it write, and nothing more. */
static void
rights_are_those_of_the_call(void **state)
{
	struct fix *f = *state;
	struct target *t;
	struct call c;
	struct gantry_result own;
	bool is_final;
	char why[160], text[96];
	struct token tok;
	const char *bad;

	assert_int_equal(open_rc(f, 0, 60000, GANTRY_TRANSPORT_RC), 0);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	for (int is_put = 0; is_put < 2; is_put++) {
		for (int op = 0; op < 2; op++) {
			enum ibv_wc_status s;

			assert_int_equal(call_begin(&c, f->g, url, NULL, NULL, &own), 0);
			assert_int_equal(rc_take(&c, &f->g->port[0], is_put, &t, &is_final, why, sizeof why),
					 0);
			rc_mint(t, f->buf, 100, f->g->map.at[0].region->mr[0]->rkey, text, sizeof text);
			assert_int_equal(token_parse(text, strlen(text), &tok, &bad), 0);
			assert_null(tok.bad);
			s = post(far_of(tok.id), &tok, op ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
			assert_int_equal(s == IBV_WC_SUCCESS, is_put == op);
			assert_int_equal(rc_give(f->g, t, s == IBV_WC_SUCCESS), 0);
			call_end(&c, 0, NULL);
		}
	}
}

/* claim TM94: the server cannot reach the memory once a call has failed. */
static void
a_failed_call_takes_the_memory_back(void **state)
{
	struct fix *f = *state;
	struct token t;

	assert_int_equal(open_rc(f, GANTRY_RDMA_ONLY, 60000, GANTRY_TRANSPORT_RC), 0);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	object_answer = "HTTP/1.1 500 Oops\r\nx-amz-rdma-reply: 500\r\ncontent-length: 0\r\n\r\n";
	assert_int_equal(gantry_get(f->g, url, f->buf, 1, 0, NULL, &f->res), -EOPNOTSUPP);
	assert_int_equal(tokened, 2);
	assert_int_equal(connects, 2);
	t = (struct token){ .addr = (uintptr_t)f->buf, .rkey = f->g->map.at[0].region->mr[0]->rkey };
	for (int i = 0; i < 2; i++)
		assert_int_not_equal(post(&far_end[i], &t, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
	/* The servers are told, by the keeper. */
	wait_until(disconnects >= 2)
		usleep(1000);
}

/* Nor once a call has run out of time, while the server is still at it. */
static void
a_late_call_takes_the_memory_back(void **state)
{
	struct fix *f = *state;
	const struct gantry_request rq = { .size = sizeof rq, .timeout_ms = 300 };
	struct token t;

	assert_int_equal(open_rc(f, 0, 60000, GANTRY_TRANSPORT_RC), 0);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	put(f, GANTRY_PATH_RDMA);
	stalls = true;
	assert_int_equal(gantry_get(f->g, url, f->buf, 1, 0, &rq, &f->res), -ETIMEDOUT);
	t = (struct token){ .addr = (uintptr_t)f->buf, .rkey = f->g->map.at[0].region->mr[0]->rkey };
	assert_int_not_equal(post(&far_end[0], &t, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
	stalls = false;
	put(f, GANTRY_PATH_RDMA);
	assert_int_equal(connects, 2);
	wait_until(!far_end[0].requests)
		usleep(1000);
}

struct job {
	struct fix *f;
	int i;
};

static void *
many_puts(void *arg)
{
	struct job *j = arg;
	struct gantry_result res = { .size = sizeof res };
	intptr_t bad = 0;

	for (int i = 0; i < 20; i++)
		bad += gantry_put(j->f->g, url, j->f->buf + 100 * j->i, 100, NULL, &res) != 0 ||
		       res.path != GANTRY_PATH_RDMA;
	return (void *)bad;
}

static void
run_many(struct fix *f)
{
	struct job job[MANY];
	pthread_t thread[MANY];
	void *bad;

	for (int i = 0; i < MANY; i++) {
		job[i] = (struct job){ f, i };
		assert_int_equal(pthread_create(&thread[i], NULL, many_puts, &job[i]), 0);
	}
	for (int i = 0; i < MANY; i++) {
		pthread_join(thread[i], &bad);
		assert_null(bad);
	}
}

static void
no_two_calls_have_one(void **state)
{
	struct fix *f = *state;

	assert_int_equal(open_rc(f, 0, 60000, GANTRY_TRANSPORT_RC), 0);
	run_many(f);
	assert_int_equal(shared, 0);
	assert_in_range(connects, 2, MANY);
	assert_int_equal(tokened, MANY * 20);
}

/* Where the server allows no more, calls wait for those of others, and do not ask again and again. */
static void
calls_wait_where_the_server_has_no_more(void **state)
{
	struct fix *f = *state;

	assert_int_equal(open_rc(f, 0, 60000, GANTRY_TRANSPORT_RC), 0);
	allowed = 2;
	run_many(f);
	assert_int_equal(shared, 0);
	assert_int_equal(fars, 2);
	assert_int_equal(tokened, MANY * 20);
	assert_in_range(connects, 3, MANY);
}

static void
unused_ones_are_closed(void **state)
{
	struct fix *f = *state;

	assert_int_equal(open_rc(f, 0, 50, GANTRY_TRANSPORT_RC), 0);
	put(f, GANTRY_PATH_RDMA);
	wait_until(disconnects >= 1)
		usleep(1000);
	put(f, GANTRY_PATH_RDMA);
	assert_int_equal(connects, 2);
	gantry_close(f->g);
	assert_int_equal(open_rc(f, GANTRY_TARGET_PER_CALL, 0, GANTRY_TRANSPORT_RC), 0);
	for (int i = 1; i <= 3; i++) {
		put(f, GANTRY_PATH_RDMA);
		assert_int_equal(connects, 2 + i);
	}
}

/* ---- connections that the server does not know ---- */

static void
lost_ones_are_replaced(void **state)
{
	struct fix *f = *state;

	assert_int_equal(open_rc(f, 0, 60000, GANTRY_TRANSPORT_RC), 0);
	run_many(f);
	tokened = connects = 0;
	/* As after a restart of the server: it knows none. */
	for (int i = 0; i < fars; i++)
		far_end[i].is_gone = true;
	put(f, GANTRY_PATH_RDMA);
	assert_int_equal(connects, 1);
	assert_int_equal(tokened, 2);
	/* One that was just made, too. */
	lose = 2;
	get(f, GANTRY_PATH_RDMA);
	assert_int_equal(connects, 3);
	assert_int_equal(f->res.transport, GANTRY_TRANSPORT_RC);
}

static void
servers_that_know_no_new_one_have_no_rc(void **state)
{
	struct fix *f = *state;

	assert_int_equal(open_rc(f, 0, 60000, GANTRY_TRANSPORT_RC), 0);
	lose = 1000;
	put(f, GANTRY_PATH_HTTP);
	assert_string_equal(f->res.reason, "not-connected");
	assert_int_equal(connects, 2);
	put(f, GANTRY_PATH_HTTP);
	assert_int_equal(connects, 2);
	assert_int_equal(f->res.requests, 1);
}

/* ---- servers without RC ---- */

static void
refusals_are_remembered(void **state)
{
	struct fix *f = *state;
	static const struct {
		const char *text, *reason;
	} row[] = {
		{ "HTTP/1.1 501 No\r\nx-amz-rdma-reply: 501\r\nx-gantry-rdma-reason: "
		  "token-family\r\ncontent-length: 0\r\n\r\n",
		  "rc: off at the server" },
		{ "HTTP/1.1 501 No\r\nx-amz-rdma-reply: 501\r\nx-gantry-rdma-reason: "
		  "no-device\r\ncontent-length: 0\r\n\r\n",
		  "rc: no-device" },
		{ "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
		  "rc: the server does not connect (HTTP 404)" },
		{ "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
		  "rc: the server's answer to the connect has no queue pair" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		assert_int_equal(open_rc(f, 0, 0, GANTRY_TRANSPORT_RC), 0);
		connects = 0;
		connect_answer = row[i].text;
		for (int n = 0; n < 3; n++) {
			put(f, GANTRY_PATH_HTTP);
			assert_string_equal(f->res.reason, row[i].reason);
			assert_int_equal(f->res.transport, GANTRY_TRANSPORT_AUTO);
			assert_int_equal(f->res.requests, n ? 1 : 2);
		}
		assert_int_equal(connects, 1);
		gantry_close(f->g);
	}
	/* A server that is full for all of the time is not: the next call asks again. */
	assert_int_equal(open_rc(f, GANTRY_RDMA_ONLY, 0, GANTRY_TRANSPORT_RC), 0);
	connects = 0;
	connect_answer = "HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\n\r\n";
	assert_int_equal(gantry_put(f->g, url, f->buf, 100, NULL, &f->res), -EOPNOTSUPP);
	assert_string_equal(f->res.message, "not by RDMA: rc: the server allows no further connection now");
	assert_int_equal(connects, BUSY_TRIES);
	connect_answer = NULL;
	put(f, GANTRY_PATH_RDMA);
}

static void *
one_put(void *arg)
{
	struct fix *f = arg;
	struct gantry_result res;
	int e = gantry_put(f->g, url, f->buf, 100, NULL, &res);

	return (void *)(uintptr_t)(e != 0 || res.path != GANTRY_PATH_HTTP);
}

/* A server that gives all its connections to other processes costs one wait, and not one for each request. */
static void
a_full_server_is_waited_for_once(void **state)
{
	struct fix *f = *state;
	pthread_t thread[MANY];
	void *bad;

	connect_answer = "HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\n\r\n";
	assert_int_equal(open_rc(f, 0, 0, GANTRY_TRANSPORT_RC), 0);
	for (int n = 0; n < 3; n++) {
		put(f, GANTRY_PATH_HTTP);
		assert_string_equal(f->res.reason, "rc: the server allows no further connection now");
		assert_int_equal(f->res.requests, n ? 1 : 1 + BUSY_TRIES);
	}
	gantry_close(f->g);
	/* Calls of other threads count the same refusals. */
	assert_int_equal(open_rc(f, 0, 0, GANTRY_TRANSPORT_RC), 0);
	connects = 0;
	for (int i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, one_put, f), 0);
	for (int i = 0; i < MANY; i++) {
		pthread_join(thread[i], &bad);
		assert_null(bad);
	}
	assert_in_range(connects, BUSY_TRIES, MANY * BUSY_TRIES - 1);
}

/* A server that declines DC as such is asked for RC in the same call; what it said of DC is the reason where it has neither. */
static void
dc_then_rc_then_http(void **state)
{
	struct fix *f = *state;

	assert_int_equal(open_rc(f, 0, 0, GANTRY_TRANSPORT_AUTO), 0);
	assert_true(f->g->port[0].has_dc);
	transport_lacks(f->g, url, GANTRY_TRANSPORT_DC, "no-device");
	put(f, GANTRY_PATH_RDMA);
	assert_int_equal(f->res.transport, GANTRY_TRANSPORT_RC);
	transport_lacks(f->g, url, GANTRY_TRANSPORT_RC, "rc: off at the server");
	put(f, GANTRY_PATH_HTTP);
	assert_string_equal(f->res.reason, "no-device");
	assert_int_equal(f->res.requests, 1);
	/* It is of this server alone. */
	assert_int_equal(
		transport_take(f->g, &f->g->port[0], server_of("http://127.0.0.2:1"), (char[160]){ 0 }, 160),
		GANTRY_TRANSPORT_DC);
}

/* ---- tokens that programs send themselves ---- */

static struct token
parsed(const char *text)
{
	struct token t;
	const char *why;

	assert_int_equal(token_parse(text, strlen(text), &t, &why), 0);
	return t;
}

static int
open_for_tokens(struct fix *f, enum gantry_transport transport)
{
	int e;

	setenv("GANTRY_RC_ENDPOINT", url, 1);
	e = open_rc(f, 0, 60000, transport);
	unsetenv("GANTRY_RC_ENDPOINT");
	return e < 0 ? e : gantry_register(f->g, f->buf, BUF_LEN, 0);
}

static void
a_token_has_a_connection(void **state)
{
	struct fix *f = *state;
	struct token t;
	char *one, *two;
	size_t len;

	assert_int_equal(open_for_tokens(f, GANTRY_TRANSPORT_RC), 0);
	assert_int_equal(gantry_token_get(f->g, f->buf, 100, 10, GANTRY_OP_PUT, &one, &len), 0);
	assert_int_equal(len, strlen(one) + 1);
	t = parsed(one);
	assert_int_equal(t.kind, TOKEN_RC_SHIM);
	assert_null(t.bad);
	assert_int_equal(t.addr, (uintptr_t)f->buf + 10);
	assert_int_equal(t.size, 100);
	assert_int_equal(post(far_of(t.id), &t, IBV_WR_RDMA_READ), IBV_WC_SUCCESS);
	/* Each has its own, and hands it on. */
	assert_int_equal(gantry_token_get(f->g, f->buf, 50, 0, GANTRY_OP_GET, &two, NULL), 0);
	assert_string_not_equal(one, two);
	assert_int_equal(connects, 2);
	assert_int_equal(gantry_token_put(f->g, one), 0);
	assert_int_equal(gantry_token_put(f->g, one), -ENOENT);
	assert_int_equal(gantry_token_get(f->g, f->buf, 10, 0, GANTRY_OP_PUT, &one, NULL), 0);
	assert_int_equal(connects, 2);
	/* One that is withdrawn works no more; one of memory that is not registered any more is given back. */
	t = parsed(two);
	assert_int_equal(gantry_token_drop(f->g, two, EIO), 0);
	assert_int_not_equal(post(far_of(t.id), &t, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_int_equal(gantry_token_put(f->g, one), 0);
	put(f, GANTRY_PATH_RDMA);
	assert_int_equal(connects, 2);
}

static struct token seen;
static ssize_t call_back_says;

static ssize_t
on_put(const void *handle, const char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	assert_int_equal(info->descr_len, strlen(info->descr) + 1);
	seen = parsed(info->descr);
	assert_int_equal(post(far_of(seen.id), &seen, IBV_WR_RDMA_READ), IBV_WC_SUCCESS);
	return call_back_says ? call_back_says : (ssize_t)size;
}

static void
a_callback_has_a_connection(void **state)
{
	struct fix *f = *state;
	const struct gantry_ops ops = { .put = on_put };

	assert_int_equal(open_for_tokens(f, GANTRY_TRANSPORT_RC), 0);
	call_back_says = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_PUT, &ops, NULL, f->buf, 100, 0, 0), 100);
	assert_int_equal(connects, 1);
	/* The server may be at the memory still when a callback fails. */
	call_back_says = -EIO;
	assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_PUT, &ops, NULL, f->buf, 100, 0, 0), -EIO);
	assert_int_not_equal(post(far_of(seen.id), &seen, IBV_WR_RDMA_READ), IBV_WC_SUCCESS);
	assert_int_equal(connects, 1);
}

static char told[300];

static void
on_log(void *cookie, enum gantry_log_level level, const char *text)
{
	if (level == GANTRY_LOG_ERROR)
		snprintf(told, sizeof told, "%s", text);
}

static void
tokens_without_a_connection(void **state)
{
	struct fix *f = *state;
	char *text;

	/* With DC at hand tokens are of DC. */
	assert_int_equal(open_for_tokens(f, GANTRY_TRANSPORT_AUTO), 0);
	assert_int_equal(gantry_token_get(f->g, f->buf, 10, 0, GANTRY_OP_PUT, &text, NULL), 0);
	assert_int_equal(parsed(text).kind, TOKEN_DC);
	gantry_close(f->g);
	assert_int_equal(open_rc(f, 0, 0, GANTRY_TRANSPORT_RC), 0);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	gantry_set_log(f->g, on_log, NULL);
	assert_int_equal(gantry_token_get(f->g, f->buf, 10, 0, GANTRY_OP_PUT, &text, NULL), -ENODEV);
	assert_non_null(strstr(told, "rdma_rc_endpoint is not set"));
	gantry_close(f->g);
	assert_int_equal(open_for_tokens(f, GANTRY_TRANSPORT_RC), 0);
	gantry_set_log(f->g, on_log, NULL);
	assert_int_equal(connects, 0);
	connect_answer = "HTTP/1.1 501 No\r\nx-amz-rdma-reply: 501\r\nx-gantry-rdma-reason: token-family\r\n"
			 "content-length: 0\r\n\r\n";
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gantry_token_get(f->g, f->buf, 10, 0, GANTRY_OP_PUT, &text, NULL), -ENODEV);
		assert_non_null(strstr(told, "no RDMA: rc: off at the server"));
	}
	assert_int_equal(connects, 1);
}

int
main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		T(calls_share_a_connection_in_turn),
		T(odd_values_leave_the_default),
		T(rights_are_those_of_the_call),
		T(a_failed_call_takes_the_memory_back),
		T(a_late_call_takes_the_memory_back),
		T(no_two_calls_have_one),
		T(calls_wait_where_the_server_has_no_more),
		T(unused_ones_are_closed),
		T(lost_ones_are_replaced),
		T(servers_that_know_no_new_one_have_no_rc),
		T(refusals_are_remembered),
		T(a_full_server_is_waited_for_once),
		T(dc_then_rc_then_http),
		T(a_token_has_a_connection),
		T(a_callback_has_a_connection),
		T(tokens_without_a_connection),
	};
#undef T

	start_on_the_nic(argv);
	return end_on_the_nic(cmocka_run_group_tests(tests, open_device, close_device));
}
