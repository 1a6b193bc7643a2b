/*
 * chan and rdma over a real DC target in another process: right bytes, wrong keys, dead peers, ports that go.
 * Needs a device: exits 77 without one (tests/system/chan_*.sh run it over the software NIC, in both modes).
 */
#include "../../fake/dc_peer.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "chan/chan.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASES 64
#define OPS 16
#define WINDOW (4u << 20)
#define DC_KEY 0xffeeddccull

struct lease {
	struct chan_lease ls;
	struct chan_op op[OPS];
	int heard, op_done;
};

static struct {
	struct rdma *rd;
	struct chan *ch;
	struct conf_rdma conf;
	struct mailbox mb;
	struct timers timers;
	struct bufpool bufs;
	int map[BUF_REGIONS_MAX];
	struct peer peer;
	struct lease l[LEASES];
	int order[LEASES], order_nr;
	unsigned turns;
} f;

/* --- what a device does only when it is ill: two of its library's calls, bent --- */

static _Atomic bool events_are_fatal, errors_are_ignored;
static _Atomic int destroyed;

int
ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	int (*next)(struct ibv_context *, struct ibv_async_event *);
	int r;

	*(void **)&next = dlsym(RTLD_NEXT, "ibv_get_async_event");
	r = next(ctx, event);
	if (r == 0 && event->event_type == IBV_EVENT_PORT_ERR && atomic_load(&events_are_fatal))
		event->event_type = IBV_EVENT_DEVICE_FATAL;
	return r;
}

int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*next)(struct ibv_qp *, struct ibv_qp_attr *, int);

	if (attr->qp_state == IBV_QPS_ERR && atomic_load(&errors_are_ignored))
		return 0;
	*(void **)&next = dlsym(RTLD_NEXT, "ibv_modify_qp");
	return next(qp, attr, mask);
}

int
ibv_destroy_qp(struct ibv_qp *qp)
{
	int (*next)(struct ibv_qp *);
	int r;

	*(void **)&next = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	r = next(qp);
	atomic_fetch_add(&destroyed, 1);
	return r;
}

/* --- a core's loop, in small --- */

static void
turn(void)
{
	struct pollfd p[RDMA_RAILS_MAX + 1] = { { .fd = f.mb.efd, .events = POLLIN } };
	int fds[RDMA_RAILS_MAX], n, found;
	uint64_t now, next;

	found = mailbox_run(&f.mb, 0) + timers_run(&f.timers, clock_ns()) + chan_poll(f.ch);
	/* Every now and then it sleeps as a core does: arm, poll once more, wait. */
	if (found || ++f.turns % 64)
		return;
	chan_arm(f.ch);
	if (chan_poll(f.ch) || !mailbox_sleep(&f.mb))
		return;
	n = chan_fds(f.ch, fds, RDMA_RAILS_MAX);
	for (int i = 0; i < n; i++)
		p[i + 1] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	now = clock_ns();
	next = timers_next(&f.timers);
	poll(p, (nfds_t)n + 1,
	     next == UINT64_MAX            ? 20
	     : next <= now                 ? 0
	     : next - now > 20 * NS_PER_MS ? 20
					   : 1);
	mailbox_wake(&f.mb);
	for (int i = 0; i < n; i++) {
		if (p[i + 1].revents)
			chan_event(f.ch, fds[i]);
	}
}

#define WAIT(cond, ms)                                                                                       \
	do {                                                                                                 \
		uint64_t end_ = clock_ns() + (ms)*NS_PER_MS;                                                 \
		while (!(cond) && clock_ns() < end_)                                                         \
			turn();                                                                              \
		assert_true(cond);                                                                           \
	} while (0)

static void
on_lease(struct chan_lease *ls)
{
	struct lease *l = container_of(ls, struct lease, ls);

	l->heard = 1;
	f.order[f.order_nr++ % LEASES] = (int)(l - f.l);
}

static void
on_op(struct chan_op *op)
{
	container_of(op->lease, struct lease, ls)->op_done++;
}

static int
get(int i, const struct token *tok)
{
	memset(&f.l[i], 0, sizeof f.l[i]);
	f.l[i].ls.done = on_lease;
	for (int k = 0; k < OPS; k++)
		f.l[i].op[k].done = on_op;
	return chan_lease_get(f.ch, &f.l[i].ls, tok, NULL);
}

/* Gets a lease, waiting as long as it takes. */
static void
must_get(int i, const struct token *tok)
{
	int r = get(i, tok);

	assert_true(r >= 0);
	if (r == 0)
		WAIT(f.l[i].heard, 5000);
	assert_int_equal(f.l[i].ls.result, 0);
}

static void
put(int i)
{
	WAIT(f.l[i].ls.outstanding == 0, 5000);
	chan_lease_put(f.ch, &f.l[i].ls);
}

static struct rdma_rail_stats *
stats(void)
{
	return rdma_rail_stats(rdma_rail(f.rd, 0));
}

/* One operation, to its end; its result. */
static int
one(bool write, const struct token *tok, struct buf *b, uint32_t off, uint32_t len, uint64_t at)
{
	int r;

	must_get(0, tok);
	(write ? chan_push : chan_pull)(f.ch, &f.l[0].ls, &f.l[0].op[0], b, off, len, at);
	WAIT(f.l[0].op_done, 5000);
	r = f.l[0].op[0].result;
	put(0);
	return r;
}

/* After whatever went wrong: the channels come back, and a good request works. */
static void
next_works(void)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);

	if (!f.peer.mem)
		assert_int_equal(peer_start(&f.peer, WINDOW, DC_KEY), 0);
	memset(b->mem, 0x5a, 1000);
	memset(f.peer.mem, 0, 1000);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(one(true, &f.peer.tok, b, 0, 1000, 0), 0);
		assert_memory_equal(f.peer.mem, b->mem, 1000);
	}
	bufpool_put(&f.bufs, b);
	WAIT(stats()->dcis_recovering == 0, 5000);
	assert_int_equal(stats()->dcis_free, stats()->dcis);
}

/* --- life --- */

static int
open_all(void)
{
	char err[256];
	int r;

	f.conf.mode = RDMA_AUTO;
	f.conf.dc_key = DC_KEY;
	f.conf.channels = 8;
	f.conf.max_sge = 10;
	f.conf.traffic_class = 96;
	f.conf.hop_limit = 64;
	f.conf.timeout = 16; /* a try takes 268 ms: a dead target is known after 0.8 s */
	f.conf.retry_cnt = 3;
	f.conf.rnr_retry = 7;
	f.conf.delay_mode = DELAY_BATCH;
	f.conf.delay_interval_ns = 5000;
	f.conf.qp_reset_on_failure = true;
	f.conf.poll_batch = 16;
	f.conf.ah_cache = 16;
	r = rdma_open(&f.conf, &f.rd, err, sizeof err);
	if (r < 0) {
		fprintf(stderr, "rdma_open: %s\n", err);
		return 1;
	}
	if (rdma_rail_nr(f.rd) == 0) {
		printf("no RDMA device that can do DC: nothing to test with\n");
		rdma_close(f.rd);
		return 77;
	}
	if (bufpool_init(&f.bufs, 24u << 20) < 0 || mailbox_init(&f.mb) < 0)
		return 1;
	for (int i = 0; i < f.bufs.region_nr; i++) {
		if (rdma_region_add(f.rd, f.bufs.region[i].iov_base, f.bufs.region[i].iov_len, &f.map[i], err,
				    sizeof err) < 0) {
			fprintf(stderr, "%s\n", err);
			return 1;
		}
	}
	r = chan_new(&(struct chan_params){ .rdma = f.rd,
					    .conf = &f.conf,
					    .mb = &f.mb,
					    .timers = &f.timers,
					    .core_nr = 1,
					    .pieces_max = OPS,
					    .queue_max = 56,
					    .region_map = f.map,
					    .region_nr = f.bufs.region_nr },
		     &f.ch);
	return r < 0;
}

static int
setup(void **state)
{
	memset(f.l, 0, sizeof f.l);
	f.order_nr = 0;
	if (!f.peer.mem)
		assert_int_equal(peer_start(&f.peer, WINDOW, DC_KEY), 0);
	memset(f.peer.mem, 0xee, WINDOW);
	return 0;
}

static int
teardown(void **state)
{
	for (int i = 0; i < LEASES; i++)
		chan_lease_put(f.ch, &f.l[i].ls);
	return 0;
}

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
	WAIT(f.l[0].op_done == 3, 10000);
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
	uint64_t n = stats()->status[WCS_REM_ACCESS], resets = stats()->dci_resets;

	t.rkey ^= 0x100;
	expect_bad(&t, true, WCS_REM_ACCESS);
	expect_bad(&t, false, WCS_REM_ACCESS);
	assert_int_equal(stats()->status[WCS_REM_ACCESS] - n, 2); /* item 109 */
	next_works();
	assert_int_equal(stats()->dci_resets - resets, 2);
}

static void
deregistered(void **state)
{
	struct token t = f.peer.tok;

	assert_int_equal(peer_ask(&f.peer, 'd'), 0);
	expect_bad(&t, true, WCS_REM_ACCESS);
	assert_int_equal(peer_ask(&f.peer, 'm'), 0);
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

/* item 27, item 28: cancelled in mid-flight; when the last done() ran, nothing touches the window any more.
 */
static void
cancel_in_flight(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);
	static unsigned char seen[WINDOW];

	for (int round = 0; round < 10; round++) {
		uint64_t start;

		memset(f.peer.mem, 0xee, WINDOW);
		fill(b->mem, b->cap_bytes, (unsigned)round);
		must_get(0, &f.peer.tok);
		for (int i = 0; i < 12; i++)
			chan_push(f.ch, &f.l[0].ls, &f.l[0].op[i], b, 0, BUF_LARGE_BYTES,
				  (uint64_t)(i % 4) << 20);
		for (int i = 0; i < round * 3; i++)
			turn();
		start = clock_ns();
		chan_lease_fail(f.ch, &f.l[0].ls);
		WAIT(f.l[0].ls.outstanding == 0, 5000);
		assert_true(clock_ns() - start < 5 * NS_PER_S);
		memset(b->mem, 0x42, b->cap_bytes); /* ours again */
		memcpy(seen, f.peer.mem, WINDOW);
		put(0);
		usleep(5000);
		assert_memory_equal(seen, f.peer.mem, WINDOW);
	}
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
	WAIT(f.l[0].ls.outstanding == 0, 5000);
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
	uint64_t recreated = stats()->dci_recreated, start;
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
	WAIT(f.l[0].op_done, 5000);
	assert_true(clock_ns() - start >= 100 * NS_PER_MS);
	assert_int_equal(atomic_load(&destroyed), before + 1);
	assert_int_equal(f.l[0].op_done, 4);
	assert_int_equal(f.l[0].op[3].result, -ECANCELED);
	assert_true(f.l[0].ls.flushed_writes);
	put(0);
	atomic_store(&errors_are_ignored, false);
	bufpool_put(&f.bufs, b);
	next_works();
	assert_int_equal(stats()->dci_recreated, recreated + 1);
}

/* item 30: 64 leases over 8 initiators, one of them towards nobody: in order, all served, no innocent harmed.
 */
static void
sixty_four_leases(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);
	struct token bad = f.peer.tok;
	int next = 0, done = 0, granted = 0;
	bool started[LEASES] = { false };

	bad.rkey ^= 0x100;
	must_get(0, &f.peer.tok); /* the address handle is there from now on */
	put(0);
	f.order_nr = 0;
	for (int i = 0; i < LEASES; i++) {
		int r = get(i, i % 8 == 3 ? &bad : &f.peer.tok);

		assert_int_equal(r, i < 8 ? 1 : 0);
		f.l[i].heard = r;
		granted += r;
	}
	fill(b->mem, b->cap_bytes, 9);
	while (done < LEASES) {
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
		WAIT(f.l[0].op_done == OPS, 5000);
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
	uint64_t misses = stats()->ah_misses, hits = stats()->ah_hits;

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
	assert_int_equal(stats()->ah_hits - hits, 16);
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
		WAIT(f.order_nr > i, 5000);
		chan_lease_put(f.ch, &f.l[f.order[i]].ls);
	}
	assert_true(get(20, &t) >= 0);
	WAIT(f.l[20].heard, 5000);
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
	WAIT(f.l[0].op_done == 4, 10000);
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
	uint64_t recreated = stats()->dci_recreated;
	struct rdma_rail_info info;

	if (!getenv("PORTCTL"))
		skip();
	must_get(0, &f.peer.tok);
	must_get(1, &f.peer.tok);
	atomic_store(&events_are_fatal, true);
	assert_int_equal(port("down"), 0);
	chan_push(f.ch, &f.l[0].ls, &f.l[0].op[0], b, 0, 1000, 0);
	WAIT(f.l[0].ls.failed && f.l[1].ls.failed, 5000);
	rdma_rail_get_info(rail, &info);
	assert_int_equal(info.state, RAIL_LOST);
	WAIT(f.l[0].ls.outstanding == 0, 5000);
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
	WAIT(stats()->dcis_free == stats()->dcis, 5000);
	assert_int_equal(stats()->dci_recreated - recreated, 9);
	next_works();
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(bytes_are_right),
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
