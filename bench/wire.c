/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire's figures: RDMA WRITEs into another process's window through src/chan (lease, post, completion, as
 * a GET does it), and the same posted on a DC initiator with verbs directly, on the same device.
 *
 *	bench-wire FIGURE...
 */
#include "bench/bench.h"
#include "bench/plain.h"
#include "tests/fake/dc_peer.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "chan/chan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DC_KEY 0xffeeddccull
#define WINDOW (16u << 20)
#define DEPTH 16

static struct {
	struct peer peer;
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
	r = chan_lease_get(b.ch, &s.ls, &b.peer.tok, NULL);
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
				     .ah_cache = 16 };
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

/* ---- directly ---- */

static void
open_verbs(void)
{
	plain_open(&b.plain, &b.peer.tok, DC_KEY, DEPTH);
	for (int i = 0; i < b.bufs.region_nr; i++)
		b.mr[i] = plain_register(&b.plain, b.bufs.region[i].iov_base, b.bufs.region[i].iov_len);
}

static void
post_verbs(int i, uint32_t len, uint64_t at)
{
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
		int n = ibv_poll_cq(b.plain.cq, 16, wc);

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

int
main(int argc, char **argv)
{
	peer_main(argc, argv);
	log_init(LOG_PLAIN, LOG_WARN);
	if (peer_start(&b.peer, WINDOW, DC_KEY) < 0)
		bench_die("no peer");
	bench_pin(0);
	if (bufpool_init_class(&b.bufs, BUF_LARGE, (DEPTH + 1) * (MIB + BUF_SLACK_BYTES), 0) < 0)
		bench_die("no memory");
	for (int i = 0; i < DEPTH; i++) {
		b.buf[i] = bufpool_get(&b.bufs, BUF_LARGE);
		memset(b.buf[i]->mem, i, BUF_LARGE_BYTES);
	}
	open_chan();
	open_verbs();
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "wire_64k"))
			figure("wire_64k", 64u << 10);
		else if (!strcmp(argv[i], "wire_1m"))
			figure("wire_1m", 1u << 20);
		else
			bench_die("no figure %s", argv[i]);
	}
	chan_free(b.ch);
	rdma_close(b.rd);
	peer_stop(&b.peer);
	return 0;
}
