/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of RC connections through the daemon (rdma.rc, docs/protocol.md section 8): the same requests by rc: tokens and
 * by DC tokens, connects, and the memory of connections that are kept.
 *
 * rc_connects: the reference makes and destroys the same objects with verbs in this process, and sends two requests
 * without a token, since a connect and a disconnect are requests.
 *
 * rc_memory: private memory of the daemon's process for each connection, against that of this process for the same
 * objects made with verbs: what the device's library keeps for them.
 */
#include "bench/load.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEPTH 16      /* of the daemon's connections */
#define KEPT_FEW 1000 /* connections before the first look: they use memory that was freed before */
#define KEPT 4000     /* connections between the first look and the second */
#define PSN 0x4242

/* ---- connections of load.c's requests ---- */

static struct nic *
client(void)
{
	return nic_find("nic", false);
}

/* Makes queue pair rcI and connects it. */
static void
connect_one(const char *server, int i)
{
	static char *words[] = { "POST",
				 "/.s3rdma-rc/connect",
				 "x-amz-rdma-token:@rc%i_token",
				 "x-amz-rdma-psn:@rc%i_psn",
				 "x-gantry-rc:reads=16",
				 "content-length:0" };
	struct conn *c = conn_get("rc", server);
	struct words w;
	char name[16], *text;
	size_t len;
	bool head;

	snprintf(name, sizeof name, "rc%d", i);
	rc_qp_new(name, client(), true);
	words_expand(words, sizeof words / sizeof *words, i, -1, &w);
	text = request_build(server, w.w, w.nr, &len, &head);
	words_free(&w);
	conn_start(c, text, len, head);
	conns_drive(&c, 1, raw_now_ms() + 60000, false);
	if (!c->resp.done || c->resp.status != 200)
		bench_die("connection %d: %s", i, c->resp.head ? c->resp.head : c->resp.err);
	rc_qp_join(name, &c->resp);
}

const char *
load_rc_token(const char *server, int i, const struct window *w)
{
	static int made;
	char name[16];

	for (; made <= i; made++)
		connect_one(server, made);
	snprintf(name, sizeof name, "rc%d", i);
	rc_token(name, name, NULL, w, 0, 0);
	return token_find(name)->text;
}

/* ---- RC against DC ---- */

static const struct moved {
	const char *name;
	enum op op;
	size_t size;
	int conns;
} moved[] = {
	{ "rc_put_256k_q32", OP_PUT, 256u << 10, 32 },
	{ "rc_put_1m_q16", OP_PUT, MIB, 16 },
	{ "rc_get_256k_q32", OP_GET, 256u << 10, 32 },
	{ "rc_get_4m_q32", OP_GET, 4 * MIB, 32 },
};

static double
rate(const struct moved *m, bool is_rc)
{
	struct job j = { .server = &load.one,
			 .op = m->op,
			 .prefix = load_prefix(m->size),
			 .size = m->size,
			 .conns = m->conns,
			 .is_rc = is_rc };
	struct result res = load_run(&j, bench_ns());

	return per_second(res.bytes, res.ns) / 1e6;
}

static void
throughput(const struct moved *m)
{
	struct row row = { .figure = m->name, .unit = "MB/s" };
	struct job j = {
		.server = &load.one, .prefix = load_prefix(m->size), .size = m->size, .conns = m->conns
	};

	for (int i = 0; i < (m->op == OP_PUT ? 3 : 1); i++)
		load_put_all(&j);
	sleep(2);
	for (int n = -1; n < bench_rounds(); n++) {
		double ours = n & 1 ? rate(m, true) : 0, theirs = rate(m, false);

		if (!(n & 1))
			ours = rate(m, true);
		if (n >= 0)
			row_add(&row, ours, theirs);
	}
	row_print(&row);
}

/* ---- connects ---- */

static int http = -1;

/* Sends a request, and waits for its answer, which has no body; its header of this name goes to ret, of cap bytes. */
static void
ask(const char *head, const char *header, char *ret, size_t cap)
{
	char text[4096], *at;
	size_t have = 0;

	if (http < 0)
		http = bench_connect(&load.one.at);
	if (send(http, head, strlen(head), MSG_NOSIGNAL) != (ssize_t)strlen(head))
		bench_die("send: %s", strerror(errno));
	do {
		ssize_t n;

		n = recv(http, text + have, sizeof text - 1 - have, 0);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			bench_die("the server closed a connection");
		have += (size_t)n;
		text[have] = 0;
	} while (!strstr(text, "\r\n\r\n"));
	if (memcmp(text, "HTTP/1.1 20", 11) != 0)
		bench_die("unexpected answer: %s", text);
	if (!header)
		return;
	at = strcasestr(text, header);
	if (!at)
		bench_die("no %s: %s", header, text);
	snprintf(ret, cap, "%.*s", (int)strcspn(at + strlen(header), "\r"), at + strlen(header));
}

/* A connect of a queue pair that stays in INIT; its id. */
static void
connect_to(const char *token, char ret_id[64])
{
	char head[512];

	snprintf(head, sizeof head,
		 "POST /.s3rdma-rc/connect HTTP/1.1\r\nhost: localhost\r\nx-amz-rdma-token: %s\r\n"
		 "x-amz-rdma-psn: %06x\r\ncontent-length: 0\r\n\r\n",
		 token, PSN);
	ask(head, "\r\nx-amz-rdma-session: ", ret_id, 64);
}

static void
disconnect(const char *id)
{
	char head[256];

	snprintf(head, sizeof head,
		 "POST /.s3rdma-rc/disconnect HTTP/1.1\r\nhost: localhost\r\nx-amz-rdma-session: %.63s\r\n"
		 "content-length: 0\r\n\r\n",
		 id);
	ask(head, NULL, NULL, 0);
}

/* The client's end of all of these. */
static const char *
end_token(void)
{
	static char *token;

	if (!token) {
		rc_qp_new("end", client(), true);
		token = expand("@end_token", -1, -1);
	}
	return token;
}

/* What a connection is made of, with verbs. */
struct objects {
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void
make(struct objects *o)
{
	const struct nic *n = client();
	struct ibv_qp_init_attr x = { .qp_type = IBV_QPT_RC,
				      .cap = { .max_send_wr = DEPTH, .max_send_sge = 1 } };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = 1,
				   .rq_psn = PSN,
				   .min_rnr_timer = 12,
				   .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
				   .timeout = 16,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .sq_psn = PSN,
				   .max_rd_atomic = 1 };

	memcpy(rtr.ah_attr.grh.dgid.raw, n->gid, 16);
	rtr.ah_attr.grh.sgid_index = (uint8_t)n->gid_index;
	o->ch = ibv_create_comp_channel(n->ctx);
	o->cq = o->ch ? ibv_create_cq(n->ctx, DEPTH, NULL, o->ch, 0) : NULL;
	x.send_cq = x.recv_cq = o->cq;
	o->qp = o->cq ? ibv_create_qp(n->pd, &x) : NULL;
	if (!o->qp ||
	    ibv_modify_qp(o->qp, &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0 ||
	    ibv_modify_qp(o->qp, &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0 ||
	    ibv_modify_qp(o->qp, &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		bench_die("verbs: %s", strerror(errno));
}

static void
destroy(const struct objects *o)
{
	if (ibv_destroy_qp(o->qp) || ibv_destroy_cq(o->cq) || ibv_destroy_comp_channel(o->ch))
		bench_die("verbs: %s", strerror(errno));
}

static double
connects(bool is_ours, uint64_t for_ns)
{
	uint64_t begin = clock_ns(), nr = 0;

	for (; clock_ns() - begin < for_ns; nr++) {
		struct objects o;
		char id[64];

		if (is_ours) {
			connect_to(end_token(), id);
			disconnect(id);
			continue;
		}
		ask("GET /bkt/empty00000000 HTTP/1.1\r\nhost: localhost\r\n\r\n", NULL, NULL, 0);
		make(&o);
		ask("GET /bkt/empty00000000 HTTP/1.1\r\nhost: localhost\r\n\r\n", NULL, NULL, 0);
		destroy(&o);
	}
	return per_second(nr, clock_ns() - begin);
}

static void
figure_connects(void)
{
	struct row row = { .figure = "rc_connects", .unit = "1/s" };

	load_put_all(&(struct job){ .server = &load.one, .prefix = "empty", .conns = 1 });
	for (int n = -1; n < bench_rounds(); n++) {
		double ours = n & 1 ? connects(true, bench_ns()) : 0, theirs = connects(false, bench_ns());

		if (!(n & 1))
			ours = connects(true, bench_ns());
		if (n >= 0)
			row_add(&row, ours, theirs);
	}
	row_print(&row);
}

/* ---- memory ---- */

/* A number of /proc/PID/status, in bytes. */
static double
memory_of(int pid, const char *what)
{
	char path[64], line[256];
	double kib = -1;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		bench_die("%s: %s", path, strerror(errno));
	while (kib < 0 && fgets(line, sizeof line, f)) {
		if (!strncmp(line, what, strlen(what)))
			kib = strtod(line + strlen(what) + 1, NULL);
	}
	fclose(f);
	return kib * 1024;
}

static int
descriptors_of(int pid)
{
	char path[64];
	DIR *d;
	int n = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	d = opendir(path);
	if (!d)
		bench_die("%s: %s", path, strerror(errno));
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void
keep(int nr, bool is_ours, char (*ids)[64], struct objects *o)
{
	for (int i = 0; i < nr; i++) {
		if (is_ours)
			connect_to(end_token(), ids[i]);
		else
			make(&o[i]);
	}
}

/* Bytes of the process that has them, for each of KEPT connections beyond the first few. */
static double
bytes_each(bool is_ours)
{
	static char ids[KEPT_FEW + KEPT][64];
	static struct objects o[KEPT_FEW + KEPT];
	int pid = is_ours ? load.one.pid : getpid(), fds;
	double private, shared;

	memset(ids, 1, sizeof ids);
	memset(o, 1, sizeof o);
	keep(KEPT_FEW, is_ours, ids, o);
	private = memory_of(pid, "RssAnon");
	shared = memory_of(pid, "RssShmem");
	fds = descriptors_of(pid);
	keep(KEPT, is_ours, ids + KEPT_FEW, o + KEPT_FEW);
	private = (memory_of(pid, "RssAnon") - private) / KEPT;
	shared = (memory_of(pid, "RssShmem") - shared) / KEPT;
	if (getenv("BENCH_VERBOSE"))
		fprintf(stderr, "%s: %.0f bytes each, %.0f of the device's file, %.2f descriptors\n",
			is_ours ? "a connection" : "the same objects", private, shared,
			(double)(descriptors_of(pid) - fds) / KEPT);
	for (int i = 0; i < KEPT_FEW + KEPT; i++) {
		if (is_ours)
			disconnect(ids[i]);
		else
			destroy(&o[i]);
	}
	return private;
}

static void
figure_memory(void)
{
	struct row row = { .figure = "rc_memory", .unit = "bytes" };
	double ours, theirs;

	/* Once: memory that was freed is used again, and would not be counted. */
	theirs = bytes_each(false);
	ours = bytes_each(true);
	row_add(&row, ours, theirs);
	row_print(&row);
}

bool
rc_figure(const char *name)
{
	for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
		if (!strcmp(moved[i].name, name)) {
			throughput(&moved[i]);
			return true;
		}
	}
	if (!strcmp(name, "rc_connects"))
		figure_connects();
	else if (!strcmp(name, "rc_memory"))
		figure_memory();
	else
		return false;
	return true;
}
