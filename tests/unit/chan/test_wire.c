/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chan and rdma over a real DC target in another process: right bytes, wrong keys, dead peers, ports that go.
 * Needs a device: exits 77 without one (tests/system/chan_*.sh run it over the software NIC, in both modes).
 */
#include "wire.h"

#include "tests/fake/nic_trace.h"

#include "rdma/ep.h"

/* --- tests --- */

static void
fill(char *mem, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		mem[i] = (char)(seed >> 16);
	}
}

/* item 18, item 19, item 21: the bytes, at their place, and no other. */
static void
bytes_are_right(void **state)
{
	static const struct {
		uint32_t off, len;
		uint64_t at;
	} row[] = { { 0, 1, 0 },
		    { 1, 1, 1 },
		    { 3, 4096, 5 },
		    { 4095, 4097, 4093 },
		    { 17, 65521, 123457 },
		    { 0, 1u << 20, 1 },
		    { 7, (1u << 20) + 5000, 99 },
		    { 0, 1, WINDOW - 1 },
		    { 0, 1u << 20, WINDOW - (1u << 20) } };
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);
	uint64_t reads = stats()->read_bytes, writes = stats()->written_bytes;
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		fill(b->mem, b->cap_bytes + BUF_SLACK_BYTES, (unsigned)i);
		memset(f.peer.mem, 0xee, WINDOW);
		assert_int_equal(one(true, &f.peer.tok, b, row[i].off, row[i].len, row[i].at), 0);
		assert_memory_equal(f.peer.mem + row[i].at, b->mem + row[i].off, row[i].len);
		for (uint64_t k = 0; k < WINDOW; k++) {
			if (f.peer.mem[k] != 0xee && (k < row[i].at || k >= row[i].at + row[i].len))
				fail_msg("row %zu: byte %llu was touched", i, (unsigned long long)k);
		}
		fill((char *)f.peer.mem, WINDOW, (unsigned)i + 100);
		memset(b->mem, 0x11, b->cap_bytes + BUF_SLACK_BYTES);
		assert_int_equal(one(false, &f.peer.tok, b, row[i].off, row[i].len, row[i].at), 0);
		assert_memory_equal(b->mem + row[i].off, f.peer.mem + row[i].at, row[i].len);
		if (row[i].off)
			assert_int_equal(b->mem[row[i].off - 1], 0x11);
		assert_int_equal(b->mem[row[i].off + row[i].len], 0x11);
		sum += row[i].len;
	}
	assert_int_equal(stats()->read_bytes - reads, sum);
	assert_int_equal(stats()->written_bytes - writes, sum);
	bufpool_put(&f.bufs, b);
}

/* One completion of an endpoint of our own. */
static enum rdma_status
completion(struct rdma_cq *cq, struct rdma_completion *ret_wc)
{
	int n;

	turn_until((n = rdma_cq_poll(cq, ret_wc, 1)) != 0);
	assert_int_equal(n, 1);
	return ret_wc->status;
}

static _Atomic bool target_came;

static void
on_target(struct rdma_target_wait *w)
{
	atomic_store(&target_came, true);
}

/* A work request with as many pieces as the rail allows, of two regions, both ways; a region that was
 * removed; what the device says of a bad key. */
static void
pieces_of_memory(void **state)
{
	static char mem[2][8192];
	struct rdma_rail *rail = rdma_rail(f.rd, 0);
	const struct rdma_ep_ops *ops = rdma_rail_transport(rail, 0);
	struct rdma_target_wait w = { .done = on_target };
	struct rdma_sge sge[RDMA_SGE_MAX];
	struct rdma_completion wc;
	struct rdma_ep_limits lim;
	struct rail_route route;
	struct rdma_target to;
	struct rdma_wr wr;
	struct rdma_cq *cq;
	struct rdma_ep *ep;
	char err[128];
	uint64_t region[2];
	int n, at = 0;

	for (int i = 0; i < 2; i++) {
		fill(mem[i], sizeof mem[i], (unsigned)i + 7);
		assert_int_equal(rdma_region_add(f.rd, mem[i], sizeof mem[i], &region[i], err, sizeof err),
				 0);
	}
	assert_int_equal(rdma_route(f.rd, &f.peer.tok, &(struct rdma_asker){ .numa_node = -1 }, &route), 0);
	assert_ptr_equal(route.ops, ops);
	n = rdma_target_get(rail, &f.peer.tok, &route, &w, &to);
	turn_until(n != 0 || atomic_load(&target_came));
	to = n > 0 ? to : w.target;
	rdma_ep_limits(ops, rail, 4, &lim);
	assert_int_equal(lim.max_sge, 10); /* as configured */
	assert_int_equal(rdma_cq_new(ops, rail, 16, 0, &cq), 0);
	assert_int_equal(rdma_ep_new(ops, rail, cq, 4, &ep), 0);
	for (int i = 0; i < lim.max_sge; i++)
		sge[i] = (struct rdma_sge){ .mem = mem[i % 2] + i * 700,
					    .len = (uint32_t)(1 + i * 60),
					    .region = region[i % 2] };
	wr = (struct rdma_wr){ .is_write = true,
			       .target = &to,
			       .rkey = f.peer.tok.rkey,
			       .remote = f.peer.tok.addr + 5,
			       .sge = sge,
			       .sge_nr = lim.max_sge };
	assert_int_equal(rdma_ep_post(ep, &wr), 0);
	assert_int_equal(completion(cq, &wc), WCS_SUCCESS);
	assert_int_equal(wc.wc_status, IBV_WC_SUCCESS);
	for (int i = 0; i < lim.max_sge; i++) {
		assert_memory_equal(f.peer.mem + 5 + at, sge[i].mem, sge[i].len);
		at += (int)sge[i].len;
	}
	assert_int_equal(f.peer.mem[4], 0xee);
	assert_int_equal(f.peer.mem[5 + at], 0xee);
	/* And back, into the same places. */
	fill((char *)f.peer.mem, 8192, 99);
	memset(mem, 0x11, sizeof mem);
	wr.is_write = false;
	assert_int_equal(rdma_ep_post(ep, &wr), 0);
	assert_int_equal(completion(cq, &wc), WCS_SUCCESS);
	at = 0;
	for (int i = 0; i < lim.max_sge; i++) {
		assert_memory_equal(sge[i].mem, f.peer.mem + 5 + at, sge[i].len);
		assert_int_equal(((char *)sge[i].mem)[sge[i].len], 0x11);
		at += (int)sge[i].len;
	}
	/* One of its regions is no more: nothing leaves. */
	assert_int_equal(rdma_region_del(f.rd, region[1]), 0);
	assert_int_equal(rdma_ep_post(ep, &wr), -ESTALE);
	wr.sge_nr = 1;
	assert_int_equal(rdma_ep_post(ep, &wr), 0);
	assert_int_equal(completion(cq, &wc), WCS_SUCCESS);
	wr.rkey ^= 0x5500;
	assert_int_equal(rdma_ep_post(ep, &wr), 0);
	assert_int_equal(completion(cq, &wc), WCS_REM_ACCESS);
	assert_int_equal(wc.wc_status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(rdma_ep_free(ep, true), 0);
	rdma_cq_free(cq);
	rdma_target_put(rail, &to);
	assert_int_equal(rdma_region_del(f.rd, region[0]), 0);
}

/* A second instance in this process, with a chan of its own: neither knows of the other. */
static void
two_instances(void **state)
{
	struct rdma *first_rd = f.rd;
	struct chan *first = f.ch;
	uint64_t first_map[BUF_REGIONS_MAX];
	int first_fds = f.fd_nr;
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);
	struct mailbox first_mb = f.mb;

	memcpy(first_map, f.map, sizeof first_map);
	must_get(1, &f.peer.tok);
	assert_int_equal(mailbox_init(&f.mb), 0);
	assert_int_equal(open_chan(), 0);
	fill(b->mem, 1000, 3);
	assert_int_equal(one(true, &f.peer.tok, b, 0, 1000, 77), 0);
	assert_memory_equal(f.peer.mem + 77, b->mem, 1000);
	assert_int_equal(stats()->written_bytes, 1000);
	chan_free(f.ch);
	mailbox_run(&f.mb, 0);
	mailbox_fini(&f.mb);
	rdma_close(f.rd);
	f.rd = first_rd;
	f.ch = first;
	f.mb = first_mb;
	f.fd_nr = first_fds;
	memcpy(f.map, first_map, sizeof first_map);
	/* The lease of before has what it had. */
	chan_push(f.ch, &f.l[1].ls, &f.l[1].op[0], b, 0, 1000, 5000);
	turn_until(f.l[1].op_done);
	assert_int_equal(f.l[1].op[0].result, 0);
	assert_memory_equal(f.peer.mem + 5000, b->mem, 1000);
	put(1);
	bufpool_put(&f.bufs, b);
	next_works();
}

/* item 18: beyond the window is our own mistake, and ends the daemon before a work request leaves. */
static void
the_window_is_a_wall(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);
	struct token small = f.peer.tok;

	small.size = 1000;
	for (int i = 0; i < 2; i++) {
		pid_t pid;
		int st;

		must_get(0, &small);
		fflush(NULL);
		pid = fork();
		if (pid == 0) {
			if (!freopen("/dev/null", "w", stderr))
				_exit(2);
			signal(SIGABRT, SIG_DFL);
			chan_push(f.ch, &f.l[0].ls, &f.l[0].op[0], b, 0, i ? 1001 : 1, i ? 0 : 1000);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &st, 0), pid);
		assert_true(WIFSIGNALED(st) && WTERMSIG(st) == SIGABRT);
		put(0);
	}
	assert_int_equal(one(true, &small, b, 0, 1, 999), 0);
	bufpool_put(&f.bufs, b);
}

static void
expect_bad(const struct token *tok, bool write, enum rdma_status status)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);

	must_get(0, tok);
	memset(b->mem, 0x77, 3000);
	for (int i = 0; i < 3; i++)
		(write ? chan_push : chan_pull)(f.ch, &f.l[0].ls, &f.l[0].op[i], b, (uint32_t)i * 1000, 1000,
						0);
	turn_until(f.l[0].op_done == 3);
	assert_true(f.l[0].ls.failed);
	assert_int_equal(f.l[0].ls.status, status);
	assert_int_equal(f.l[0].op[0].result, -EIO);
	assert_int_equal(f.l[0].op[1].result, -ECANCELED);
	assert_int_equal(f.l[0].ls.flushed_writes, write);
	if (f.peer.mem) {
		for (int i = 0; i < 3000; i++)
			assert_int_equal(f.peer.mem[i], 0xee);
	}
	put(0);
	bufpool_put(&f.bufs, b);
}

/* item 29: after each of these the initiator is reset and serves again. */
static void
wrong_rkey(void **state)
{
	struct token t = f.peer.tok;
	uint64_t n = stats()->status[WCS_REM_ACCESS], resets = stats()->ep_resets;

	t.rkey ^= 0x100;
	expect_bad(&t, true, WCS_REM_ACCESS);
	expect_bad(&t, false, WCS_REM_ACCESS);
	assert_int_equal(stats()->status[WCS_REM_ACCESS] - n, 2); /* item 109 */
	next_works();
	assert_int_equal(stats()->ep_resets - resets, 2);
}

static void
deregistered(void **state)
{
	struct token t = f.peer.tok;

	assert_int_equal(peer_ask(&f.peer, 'd', 0), 0);
	expect_bad(&t, true, WCS_REM_ACCESS);
	assert_int_equal(peer_ask(&f.peer, 'm', 0), 0);
	expect_bad(&t, false, WCS_REM_ACCESS); /* the old key stays dead */
	next_works();
}

/* item 31 */
static void
wrong_dct(void **state)
{
	struct token t = f.peer.tok;
	uint64_t misses = stats()->ah_misses;

	t.dctn ^= 0x10;
	expect_bad(&t, true, WCS_RETRY_EXC);
	next_works();
	assert_int_equal(stats()->ah_misses, misses + 1); /* forgotten, made anew */
}

static void
wrong_gid(void **state)
{
	struct token t = f.peer.tok;

	t.gid[15] = 77;
	expect_bad(&t, true, WCS_RETRY_EXC);
	next_works();
}

/* item 25: the default key works; another looks like a dead target. */
static void
wrong_dc_key(void **state)
{
	struct peer other;

	assert_int_equal(peer_start(&other, WINDOW, DC_KEY + 1), 0);
	expect_bad(&other.tok, true, WCS_RETRY_EXC);
	assert_int_equal(other.mem[0], 0);
	peer_stop(&other);
	next_works();
}

static void
killed_peer(void **state)
{
	struct token t = f.peer.tok;

	kill(f.peer.pid, SIGKILL);
	waitpid(f.peer.pid, NULL, 0);
	f.peer.pid = 0;
	close(f.peer.fd);
	expect_bad(&t, true, WCS_RETRY_EXC);
	expect_bad(&t, false, WCS_RETRY_EXC);
	peer_stop(&f.peer);
	next_works();
}

static void
stopped_peer(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);

	kill(f.peer.pid, SIGSTOP);
	fill(b->mem, 100000, 5);
	assert_int_equal(one(true, &f.peer.tok, b, 0, 100000, 0),
			 0); /* one-sided: nobody there needs to run */
	assert_memory_equal(f.peer.mem, b->mem, 100000);
	kill(f.peer.pid, SIGCONT);
	bufpool_put(&f.bufs, b);
}

/* item 27, item 28, claim TM13: cancelled in mid-flight; when the last done() ran,
 * nothing touches the window any more. */
static void
cancel_in_flight(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);
	static unsigned char seen[WINDOW];
	struct nic_trace trace;

	nic_trace_on(&trace);
	for (int round = 0; round < 10; round++) {
		memset(f.peer.mem, 0xee, WINDOW);
		fill(b->mem, b->cap_bytes, (unsigned)round);
		must_get(0, &f.peer.tok);
		for (int i = 0; i < 12; i++)
			chan_push(f.ch, &f.l[0].ls, &f.l[0].op[i], b, 0, BUF_LARGE_BYTES,
				  (uint64_t)(i % 4) << 20);
		for (int i = 0; i < round * 3; i++)
			turn();
		chan_lease_fail(f.ch, &f.l[0].ls);
		turn_until(f.l[0].ls.outstanding == 0);
		memset(b->mem, 0x42, b->cap_bytes); /* ours again */
		memcpy(seen, f.peer.mem, WINDOW);
		put(0);
		assert_int_equal(nic_trace_count(&trace, false), 0);
		assert_memory_equal(seen, f.peer.mem, WINDOW);
	}
	assert_true(nic_trace_count(&trace, true) > 0);
	nic_trace_off(&trace);
	bufpool_put(&f.bufs, b);
	next_works();
}

/* Cancelled while the target does not answer: the retries (here 0.8 s) are not waited for. */
static void
cancel_towards_the_dead(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);
	struct token t = f.peer.tok;

	t.dctn ^= 0x20;
	must_get(0, &t);
	for (int i = 0; i < 4; i++)
		chan_push(f.ch, &f.l[0].ls, &f.l[0].op[i], b, 0, 1000, 0);
	chan_lease_fail(f.ch, &f.l[0].ls);
	turn_until(f.l[0].ls.outstanding == 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(f.l[0].op[i].result, -ECANCELED);
	put(0);
	bufpool_put(&f.bufs, b);
	next_works();
}

/* The flush stays away: 100 ms later the queue pair is destroyed, and only then the operations end. */
static void
a_flush_that_never_comes(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);
	uint64_t recreated = stats()->ep_recreated, start;
	struct token t = f.peer.tok;
	int before;

	t.dctn ^= 0x20;
	must_get(0, &t);
	before = atomic_load(&destroyed);
	atomic_store(&errors_are_ignored, true);
	for (int i = 0; i < 4; i++)
		chan_push(f.ch, &f.l[0].ls, &f.l[0].op[i], b, 0, 1000, 0);
	start = clock_ns();
	chan_lease_fail(f.ch, &f.l[0].ls);
	turn_until(f.l[0].op_done);
	assert_true(clock_ns() - start >= 100 * NS_PER_MS);
	assert_int_equal(atomic_load(&destroyed), before + 1);
	assert_int_equal(f.l[0].op_done, 4);
	assert_int_equal(f.l[0].op[3].result, -ECANCELED);
	assert_true(f.l[0].ls.flushed_writes);
	put(0);
	atomic_store(&errors_are_ignored, false);
	bufpool_put(&f.bufs, b);
	next_works();
	assert_int_equal(stats()->ep_recreated, recreated + 1);
}

/* item 30: 64 leases over 8 initiators, one of them towards nobody:
 * in order, all served, no innocent harmed. */
static void
sixty_four_leases(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);
	struct token bad = f.peer.tok;
	int next = 0, done = 0;
	bool started[LEASES] = { false };

	bad.rkey ^= 0x100;
	must_get(0, &f.peer.tok); /* the address handle is there from now on */
	put(0);
	f.order_nr = 0;
	for (int i = 0; i < LEASES; i++) {
		int r = get(i, i % 8 == 3 ? &bad : &f.peer.tok);

		assert_int_equal(r, i < 8 ? 1 : 0);
		f.l[i].heard = r;
	}
	fill(b->mem, b->cap_bytes, 9);
	wait_until(done >= LEASES) {
		turn();
		for (int i = 0; i < LEASES; i++) {
			struct lease *l = &f.l[i];

			if (l->heard && !started[i]) {
				started[i] = true;
				assert_int_equal(l->ls.result, 0);
				for (int k = 0; k < 4; k++)
					chan_push(f.ch, &l->ls, &l->op[k], b, (uint32_t)k * 16384, 16384,
						  (uint64_t)i * 65536 + (uint64_t)k * 16384);
			}
			if (started[i] && l->op_done == 4) {
				assert_int_equal(l->ls.failed, i % 8 == 3);
				chan_lease_put(f.ch, &l->ls);
				l->op_done = -1;
				l->heard = 0;
				done++;
			}
		}
	}
	for (next = 0; next < f.order_nr; next++)
		assert_int_equal(f.order[next], next + 8); /* first come, first served */
	assert_int_equal(f.order_nr, 56);
	for (int i = 0; i < LEASES; i++) {
		if (i % 8 != 3)
			assert_memory_equal(f.peer.mem + (size_t)i * 65536, b->mem, 65536);
	}
	bufpool_put(&f.bufs, b);
	next_works();
}

/* item 32: more READs than the wire may carry, in order. */
static void
many_reads(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);

	fill((char *)f.peer.mem, WINDOW, 3);
	for (int round = 0; round < 50; round++) {
		must_get(0, &f.peer.tok);
		for (int i = 0; i < OPS; i++)
			chan_pull(f.ch, &f.l[0].ls, &f.l[0].op[i], b, (uint32_t)i * 60001, 60001,
				  (uint64_t)i * 60001);
		turn_until(f.l[0].op_done == OPS);
		assert_memory_equal(b->mem, f.peer.mem, OPS * 60001);
		put(0);
	}
	bufpool_put(&f.bufs, b);
}

/* item 31: bounded, the least recently used goes; what is held stays. */
static void
address_handles_are_bounded(void **state)
{
	struct token t = f.peer.tok;
	uint64_t misses = stats()->ah_misses, hits = stats()->ah_hits[0];

	for (int i = 0; i < 200; i++) {
		t.gid[14] = 9;
		t.gid[15] = (uint8_t)(i + 1);
		must_get(0, &t);
		put(0);
	}
	assert_int_equal(stats()->ah_misses - misses, 200);
	for (int i = 184; i < 200; i++) {
		t.gid[15] = (uint8_t)(i + 1);
		must_get(0, &t);
		put(0);
	}
	assert_int_equal(stats()->ah_hits[0] - hits, 16);
	/* Sixteen in use: the seventeenth target has to wait its turn. */
	f.order_nr = 0;
	for (int i = 0; i < 16; i++) {
		t.gid[15] = (uint8_t)(i + 1);
		assert_int_equal(get(i, &t), 0);
	}
	t.gid[15] = 17;
	assert_int_equal(get(20, &t), -EAGAIN);
	/* They come in the order in which their handles were made. */
	for (int i = 0; i < 16; i++) {
		turn_until(f.order_nr > i);
		chan_lease_put(f.ch, &f.l[f.order[i]].ls);
	}
	assert_true(get(20, &t) >= 0);
	turn_until(f.l[20].heard);
	chan_lease_put(f.ch, &f.l[20].ls);
	next_works();
}

static int
port(const char *state)
{
	char cmd[512];

	snprintf(cmd, sizeof cmd, "%s port mlx5_0 %s", getenv("PORTCTL"), state);
	return system(cmd);
}

/* item 111: declined while the port is down, served again when it is back. */
static void
port_down_and_up(void **state)
{
	struct rdma_rail *rail = rdma_rail(f.rd, 0);
	struct rdma_rail_info info;

	if (!getenv("PORTCTL"))
		skip();
	next_works();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(port("down"), 0);
		do {
			rdma_rail_get_info(rail, &info);
			turn();
		} while (info.state == RAIL_UP);
		assert_int_equal(info.state, RAIL_DOWN);
		assert_int_equal(get(0, &f.peer.tok), -EOPNOTSUPP);
		assert_int_equal(f.l[0].ls.reason, CHAN_NO_RAIL);
		assert_int_equal(port("up"), 0);
		do {
			rdma_rail_get_info(rail, &info);
			turn();
		} while (info.state != RAIL_UP);
		next_works();
	}
	/* With work under way: it fails, and is over. */
	must_get(0, &f.peer.tok);
	assert_int_equal(port("down"), 0);
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);

	for (int i = 0; i < 4; i++)
		chan_push(f.ch, &f.l[0].ls, &f.l[0].op[i], b, 0, 1000, 0);
	turn_until(f.l[0].op_done == 4);
	assert_true(f.l[0].ls.failed);
	put(0);
	assert_int_equal(port("up"), 0);
	do {
		rdma_rail_get_info(rail, &info);
		turn();
	} while (info.state != RAIL_UP);
	next_works();
	bufpool_put(&f.bufs, b);
}

/* item 111: the device reports itself dead: every queue pair of then is replaced, and requests run again. */
static void
device_fatal(void **state)
{
	struct rdma_rail *rail = rdma_rail(f.rd, 0);
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);
	uint64_t recreated = stats()->ep_recreated;
	struct rdma_rail_info info;

	if (!getenv("PORTCTL"))
		skip();
	must_get(0, &f.peer.tok);
	must_get(1, &f.peer.tok);
	atomic_store(&events_are_fatal, true);
	assert_int_equal(port("down"), 0);
	chan_push(f.ch, &f.l[0].ls, &f.l[0].op[0], b, 0, 1000, 0);
	turn_until(f.l[0].ls.failed && f.l[1].ls.failed);
	rdma_rail_get_info(rail, &info);
	assert_int_equal(info.state, RAIL_LOST);
	turn_until(f.l[0].ls.outstanding == 0);
	assert_int_equal(get(2, &f.peer.tok), -EOPNOTSUPP);
	assert_int_equal(f.l[2].ls.reason, CHAN_NO_RAIL);
	put(0);
	put(1);
	atomic_store(&events_are_fatal, false);
	assert_int_equal(port("up"), 0);
	do {
		rdma_rail_get_info(rail, &info);
		turn();
	} while (info.state != RAIL_UP);
	bufpool_put(&f.bufs, b);
	turn_until(stats()->eps.free == stats()->eps.all);
	assert_int_equal(stats()->ep_recreated - recreated, 9);
	next_works();
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(bytes_are_right),
		T(pieces_of_memory),
		T(two_instances),
		T(the_window_is_a_wall),
		T(wrong_rkey),
		T(deregistered),
		T(wrong_dct),
		T(wrong_gid),
		T(wrong_dc_key),
		T(killed_peer),
		T(stopped_peer),
		T(cancel_in_flight),
		T(cancel_towards_the_dead),
		T(a_flush_that_never_comes),
		T(sixty_four_leases),
		T(many_reads),
		T(address_handles_are_bounded),
		T(port_down_and_up),
		T(device_fatal),
	};
	int r;

	peer_main(argc, argv);
	log_init(LOG_PLAIN, getenv("VERBOSE") ? LOG_DEBUG : LOG_ERROR);
	r = open_all();
	if (r)
		return r;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	peer_stop(&f.peer);
	for (int i = 0; i < 100; i++)
		turn();
	chan_free(f.ch);
	mailbox_run(&f.mb, 0);
	rdma_close(f.rd);
	bufpool_fini(&f.bufs);
	mailbox_fini(&f.mb);
	return r ? 1 : 0;
}
