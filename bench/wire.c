/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire's figures: RDMA WRITEs into another process's window through src/chan (lease, post, completion, as
 * a GET does it), and the same posted with verbs directly, on the same device: on a DC initiator, or on a queue pair
 * of RC that is connected to the other process like the one that chan leases.
 *
 *	bench-wire FIGURE...
 */
#include "bench/bench.h"
#include "bench/plain.h"
#include "bench/plain_rc.h"
#include "tests/fake/peer.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "chan/chan.h"
#include "rdma/rc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DC_KEY 0xffeeddccull
#define WINDOW (16u << 20)
#define DEPTH 16

/* Queue pairs of the peer. */
enum { FOR_CHAN, FOR_VERBS };

static struct {
	struct peer peer;
	bool is_rc;       /* family of the figures that are measured now */
	struct token tok; /* token of the window, for chan */
	struct bufpool bufs;
	struct buf *buf[DEPTH];
	/* through chan */
	struct conf_rdma conf;
	struct rdma *rd;
	struct chan *ch;
	struct mailbox mb;
	struct timers timers;
	uint64_t map[BUF_REGIONS_MAX];
	/* directly */
	struct plain plain;
	struct plain_rc plain_rc;
	struct ibv_cq *cq; /* of the one of both that is in use */
	struct ibv_mr *mr[BUF_REGIONS_MAX];
} b;

/* ---- through chan ---- */

struct stream {
	struct chan_lease ls;
	struct chan_op op[DEPTH];
	int granted;
	uint32_t len;
	uint64_t begin, for_ns, at, bytes;
};
static struct stream s;

static void
on_lease(struct chan_lease *ls)
{
	s.granted = 1;
}

static void
post(struct chan_op *op)
{
	if (s.at + s.len > WINDOW)
		s.at = 0;
	chan_push(b.ch, &s.ls, op, b.buf[op - s.op], 0, s.len, s.at);
	s.at += s.len;
}

static void
on_op(struct chan_op *op)
{
	if (op->result < 0)
		bench_die("push: %s", strerror(-op->result));
	s.bytes += s.len;
	if (clock_ns() - s.begin < s.for_ns)
		post(op);
}

static double
run_chan(uint32_t len, uint64_t for_ns)
{
	int r;

	memset(&s, 0, sizeof s);
	s.len = len;
	s.for_ns = for_ns;
	s.ls.done = on_lease;
	r = chan_lease_get(b.ch, &s.ls, &b.tok, NULL);
	while (r == 0 && !s.granted) {
		mailbox_run(&b.mb, 0);
		timers_run(&b.timers, clock_ns());
		chan_poll(b.ch);
	}
	if (r < 0 || s.ls.result < 0)
		bench_die("lease: %s", strerror(-(r < 0 ? r : s.ls.result)));
	s.begin = clock_ns();
	for (int i = 0; i < DEPTH; i++) {
		s.op[i].done = on_op;
		post(&s.op[i]);
	}
	while (s.ls.outstanding) {
		chan_poll(b.ch);
		timers_run(&b.timers, clock_ns());
	}
	for_ns = clock_ns() - s.begin;
	chan_lease_put(b.ch, &s.ls);
	return per_second(s.bytes, for_ns);
}

static void
open_chan(void)
{
	char err[256];

	b.conf = (struct conf_rdma){ .mode = RDMA_AUTO,
				     .dc_key = DC_KEY,
				     .channels = 8,
				     .max_sge = 10,
				     .traffic_class = 96,
				     .hop_limit = 64,
				     .timeout = 16,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .delay_mode = DELAY_BATCH,
				     .delay_interval_ns = 5000,
				     .qp_reset_on_failure = true,
				     .poll_batch = 16,
				     .ah_cache = 16,
				     .rc = { .shim = b.is_rc,
					     .connections = 1,
					     .per_peer = 1,
					     .connect_rate = 1,
					     .idle_ns = 3600 * NS_PER_S } };
	if (rdma_open(&b.conf, &b.rd, err, sizeof err) < 0)
		bench_die("%s", err);
	if (rdma_rail_nr(b.rd) == 0)
		bench_die("no RDMA device: run under scripts/with-softnic");
	check(mailbox_init(&b.mb) == 0);
	for (int i = 0; i < b.bufs.region_nr; i++) {
		if (rdma_region_add(b.rd, b.bufs.region[i].iov_base, b.bufs.region[i].iov_len, &b.map[i], err,
				    sizeof err) < 0)
			bench_die("%s", err);
	}
	check(chan_new(&(struct chan_params){ .rdma = b.rd,
					      .conf = &b.conf,
					      .mb = &b.mb,
					      .timers = &b.timers,
					      .core_nr = 1,
					      .pieces_max = DEPTH,
					      .queue_max = 8,
					      .region_map = b.map,
					      .region_nr = b.bufs.region_nr },
		       &b.ch) == 0);
}

static sem_t connected;

static void
on_connect(struct rdma_rc_wait *w)
{
	sem_post(&connected);
}

/* Connects the peer's queue pair as POST /.s3rdma-rc/connect does, and makes the token that names the connection. */
static void
connect_chan(void)
{
	const struct peer *p = &b.peer;
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_rc_wait w = {
		.done = on_connect,
		.ask = { .have_gid = true, .qpn = p->qp[FOR_CHAN].qpn, .psn = p->qp[FOR_CHAN].psn }
	};

	memcpy(w.ask.gid, p->tok.gid, 16);
	memcpy(&w.ask.peer, &from, sizeof from);
	check(sem_init(&connected, 0, 0) == 0);
	if (rdma_rc_connect(b.rd, &w) < 0)
		bench_die("no connection");
	while (sem_wait(&connected) < 0)
		;
	if (w.result < 0)
		bench_die("no connection: %s", strerror(-w.result));
	plain_rc_join(&b.peer, FOR_CHAN,
		      &(struct peer_qp){ .their_qpn = w.answer.qpn,
					 .their_psn = w.answer.psn,
					 .mtu = w.answer.mtu,
					 .reads = w.answer.reads },
		      w.answer.gid);
	b.tok.kind = TOKEN_RC_SHIM;
	memcpy(b.tok.id, w.answer.id, sizeof b.tok.id);
}

/* ---- directly ---- */

static void
open_verbs(void)
{
	struct ibv_pd *pd;

	if (b.is_rc) {
		plain_rc_open(&b.plain_rc, &b.peer, FOR_VERBS, DEPTH);
		pd = b.plain_rc.pd;
		b.cq = b.plain_rc.cq;
	} else {
		plain_open(&b.plain, &b.peer.tok, DC_KEY, DEPTH);
		pd = b.plain.pd;
		b.cq = b.plain.cq;
	}
	for (int i = 0; i < b.bufs.region_nr; i++)
		b.mr[i] = plain_register(pd, b.bufs.region[i].iov_base, b.bufs.region[i].iov_len);
}

static void
post_verbs(int i, uint32_t len, uint64_t at)
{
	if (b.is_rc)
		plain_rc_post(&b.plain_rc, (uint64_t)i, b.mr[b.buf[i]->region], b.buf[i]->mem, len, at);
	else
		plain_post(&b.plain, true, (uint64_t)i, b.mr[b.buf[i]->region], b.buf[i]->mem, len, at);
}

static double
run_verbs(uint32_t len, uint64_t for_ns)
{
	uint64_t begin = clock_ns(), at = 0, bytes = 0;
	int left = DEPTH;

	for (int i = 0; i < DEPTH; i++, at = (at + len) % WINDOW)
		post_verbs(i, len, at);
	while (left) {
		struct ibv_wc wc[16];
		int n = ibv_poll_cq(b.cq, 16, wc);

		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				bench_die("write: %s", ibv_wc_status_str(wc[i].status));
			bytes += len;
			if (clock_ns() - begin < for_ns) {
				post_verbs((int)wc[i].wr_id, len, at);
				at = (at + len) % WINDOW;
			} else {
				left--;
			}
		}
	}
	return per_second(bytes, clock_ns() - begin);
}

/* ---- figures ---- */

static void
figure(const char *name, uint32_t len)
{
	struct row row = { .figure = name, .unit = "MB/s" };

	for (int n = -1; n < bench_rounds(); n++) {
		double ours = 0, theirs;

		if (n & 1)
			ours = run_chan(len, bench_ns());
		theirs = run_verbs(len, bench_ns());
		if (!(n & 1))
			ours = run_chan(len, bench_ns());
		if (n >= 0)
			row_add(&row, ours / 1e6, theirs / 1e6);
	}
	row_print(&row);
}

static const struct {
	const char *name;
	uint32_t len;
	bool is_rc;
} figures[] = {
	{ "wire_64k", 64u << 10, false },
	{ "wire_1m", 1u << 20, false },
	{ "wire_rc_64k", 64u << 10, true },
	{ "wire_rc_1m", 1u << 20, true },
};

/* Both sides of a family's figures, with a peer of that family. */
static void
begin(bool is_rc)
{
	b.is_rc = is_rc;
	if (peer_start(&b.peer, WINDOW, is_rc ? 0 : DC_KEY) < 0)
		bench_die("no peer");
	b.tok = b.peer.tok;
	open_chan();
	if (is_rc)
		connect_chan();
	open_verbs();
}

static void
end(void)
{
	chan_free(b.ch);
	rdma_close(b.rd);
	peer_stop(&b.peer);
}

int
main(int argc, char **argv)
{
	int nr = sizeof figures / sizeof *figures, done = 0;

	peer_main(argc, argv);
	log_init(LOG_PLAIN, LOG_WARN);
	bench_pin(0);
	if (bufpool_init_class(&b.bufs, BUF_LARGE, (DEPTH + 1) * (MIB + BUF_SLACK_BYTES), 0) < 0)
		bench_die("no memory");
	for (int i = 0; i < DEPTH; i++) {
		b.buf[i] = bufpool_get(&b.bufs, BUF_LARGE);
		memset(b.buf[i]->mem, i, BUF_LARGE_BYTES);
	}
	for (int i = 1; i < argc; i++) {
		int k = 0;

		while (k < nr && strcmp(figures[k].name, argv[i]) != 0)
			k++;
		if (k == nr)
			bench_die("no figure %s", argv[i]);
		if (done++ == 0 || figures[k].is_rc != b.is_rc) {
			if (done > 1)
				end();
			begin(figures[k].is_rc);
		}
		figure(argv[i], figures[k].len);
	}
	if (done)
		end();
	return 0;
}
