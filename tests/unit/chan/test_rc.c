/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chan and rdma over RC connections to another process: right bytes, the values of a connection, one lease at a time,
 * what ends a connection and what does not, limits, and a device that dies while connections are in each state.  Needs a
 * device: exits 77 without one (tests/system/chan_wire.sh runs it over the software NIC, in both modes).
 */
#include "wire.h"

#include "rdma/ep.h"
#include "rdma/rc.h"

#include <dirent.h>

#define IDLE_NS (5 * NS_PER_S) /* rdma.rc.idle */

static struct peer peer;

static void
ctl(const char *words)
{
	char cmd[512];

	snprintf(cmd, sizeof cmd, "%s %s >/dev/null", getenv("PORTCTL"), words);
	assert_int_equal(system(cmd), 0);
}

struct conn {
	struct rdma_rc_wait w;
	_Atomic bool came;
	struct token tok;
};

static void
on_connect(struct rdma_rc_wait *w)
{
	atomic_store(&container_of(w, struct conn, w)->came, true);
}

static const struct sockaddr *
address(const char *text, struct sockaddr_storage *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;

	memset(ret, 0, sizeof *ret);
	in->sin_family = AF_INET;
	inet_pton(AF_INET, text, &in->sin_addr);
	return (struct sockaddr *)ret;
}

/* our: address of ours to which the client speaks; NULL: unknown. */
static int
ask_at(struct conn *c, int nr, int reads, int mtu, const char *from, const struct sockaddr_storage *our)
{
	memset(c, 0, sizeof *c);
	c->w.done = on_connect;
	c->w.ask.have_gid = true;
	memcpy(c->w.ask.gid, peer.tok.gid, 16);
	c->w.ask.qpn = peer.qp[nr].qpn;
	c->w.ask.psn = peer.qp[nr].psn;
	c->w.ask.reads = reads;
	c->w.ask.mtu = mtu;
	address(from, &c->w.ask.peer);
	if (our)
		c->w.ask.local = *our;
	return rdma_rc_connect(f.rd, &c->w);
}

static int
ask(struct conn *c, int nr, int reads, int mtu, const char *from)
{
	return ask_at(c, nr, reads, mtu, from, NULL);
}

/* Makes our end of a connection of queue pair nr of the peer, and waits for the answer. */
static void
begin_join(struct conn *c, int nr, int reads, int mtu, const struct sockaddr_storage *our)
{
	assert_int_equal(peer_ask(&peer, 'n', nr), 0);
	assert_int_equal(ask_at(c, nr, reads, mtu, "127.0.0.1", our), 0);
	turn_until(atomic_load(&c->came));
}

/* Connects the peer's end. */
static void
end_join(struct conn *c, int nr)
{
	struct peer_qp *q = &peer.qp[nr];

	assert_int_equal(c->w.result, 0);
	q->their_qpn = c->w.answer.qpn;
	q->their_psn = c->w.answer.psn;
	memcpy(q->their_gid, c->w.answer.gid, 16);
	q->mtu = c->w.answer.mtu;
	q->reads = c->w.answer.reads;
	assert_int_equal(peer_ask(&peer, 'c', nr), 0);
	c->tok = (struct token){
		.kind = TOKEN_RC_SHIM, .addr = peer.tok.addr, .size = WINDOW, .rkey = peer.tok.rkey
	};
	memcpy(c->tok.id, c->w.answer.id, 16);
}

/* Connects queue pair nr of the peer, both ends. */
static void
join_to(struct conn *c, int nr, int reads, int mtu, const struct sockaddr_storage *our)
{
	begin_join(c, nr, reads, mtu, our);
	end_join(c, nr);
}

static void
join(struct conn *c, int nr, int reads, int mtu)
{
	join_to(c, nr, reads, mtu, NULL);
}

static struct rdma_rc_stats *
counts(void)
{
	return rdma_rc_stats(f.rd);
}

static void
leave(const struct conn *c)
{
	struct sockaddr_storage a;

	rdma_rc_disconnect(f.rd, c->w.answer.id, address("127.0.0.1", &a));
}

static void
expect_declined(const struct token *tok, enum chan_reason why)
{
	assert_int_equal(get(9, tok), -EOPNOTSUPP);
	assert_int_equal(f.l[9].ls.reason, why);
}

/* Waits until the connection is gone and nothing of it is left. */
static void
expect_gone(const struct conn *c, int open)
{
	wait_usual(2 * IDLE_NS, counts()->open == open)
		turn();
	expect_declined(&c->tok, CHAN_NOT_CONNECTED);
	turn_until(stats()->conns.recovering == 0 && stats()->conns.leased == 0);
	assert_int_equal(stats()->conns.free, stats()->conns.all);
}

static void
fill(char *mem, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		mem[i] = (char)(seed >> 16);
	}
}

/* Writes and reads over the connection. */
static void
works(const struct conn *c)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);

	fill(b->mem, 3000, 17);
	assert_int_equal(one(true, &c->tok, b, 0, 3000, 5), 0);
	assert_memory_equal(peer.mem + 5, b->mem, 3000);
	memset(b->mem, 0, 3000);
	assert_int_equal(one(false, &c->tok, b, 0, 3000, 5), 0);
	assert_memory_equal(b->mem, peer.mem + 5, 3000);
	bufpool_put(&f.bufs, b);
}

/* item 18, item 19, item 21, item T66: the bytes, at their place, and no other. */
static void
bytes_are_right(void **state)
{
	static const struct {
		uint32_t off, len;
		uint64_t at;
	} row[] = { { 0, 1, 0 },
		    { 3, 4096, 5 },
		    { 4095, 4097, 4093 },
		    { 17, 65521, 123457 },
		    { 7, (1u << 20) + 5000, 99 },
		    { 0, 1, WINDOW - 1 },
		    { 0, 1u << 20, WINDOW - (1u << 20) } };
	static const int mtus[] = { 0, 256, 1024 };
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);
	struct conn c;

	for (size_t m = 0; m < sizeof mtus / sizeof *mtus; m++) {
		join(&c, 0, 4, mtus[m]);
		assert_int_equal(c.w.answer.mtu, mtus[m] ? mtus[m] : 4096);
		for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
			fill(b->mem, b->cap_bytes + BUF_SLACK_BYTES, (unsigned)i);
			memset(peer.mem, 0xee, WINDOW);
			assert_int_equal(one(true, &c.tok, b, row[i].off, row[i].len, row[i].at), 0);
			assert_memory_equal(peer.mem + row[i].at, b->mem + row[i].off, row[i].len);
			for (uint64_t k = 0; k < WINDOW; k++) {
				if (peer.mem[k] != 0xee && (k < row[i].at || k >= row[i].at + row[i].len))
					fail_msg("row %zu: byte %llu was touched", i, (unsigned long long)k);
			}
			fill((char *)peer.mem, WINDOW, (unsigned)i + 100);
			memset(b->mem, 0x11, b->cap_bytes + BUF_SLACK_BYTES);
			assert_int_equal(one(false, &c.tok, b, row[i].off, row[i].len, row[i].at), 0);
			assert_memory_equal(b->mem + row[i].off, peer.mem + row[i].at, row[i].len);
			assert_int_equal(b->mem[row[i].off + row[i].len], 0x11);
		}
		leave(&c);
		expect_gone(&c, 0);
	}
	bufpool_put(&f.bufs, b);
}

/* Returns the number of READs that the endpoint of a connection may have outstanding. */
static int
reads_allowed(const struct conn *c)
{
	struct rdma_asker asker = { .numa_node = -1 };
	struct rdma_target_wait w = { 0 };
	struct rdma_connection conn;
	struct rdma_target target;
	struct rail_route route;

	assert_int_equal(rdma_route(f.rd, &c->tok, &asker, &route), 0);
	assert_int_equal(rdma_target_get(rdma_rail(f.rd, 0), &c->tok, &route, &w, &target), 1);
	rdma_target_ep(&target, &conn);
	rdma_ep_put(conn.ep);
	return conn.limits.read_depth;
}

/* item T69: one READ at a time unless the client allows more, and as many work requests as the queue has room for. */
static void
reads_outstanding(void **state)
{
	static const int reads[] = { 0, 1, 4, 99 };
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);
	struct conn c;

	fill((char *)peer.mem, WINDOW, 3);
	for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
		int most = reads[i] == 0 ? 1 : reads[i] > 16 ? 16 : reads[i];

		join(&c, 1, reads[i], 0);
		assert_int_equal(c.w.answer.reads, most);
		assert_int_equal(reads_allowed(&c), most);
		must_get(0, &c.tok);
		for (int k = 0; k < OPS; k++)
			chan_pull(f.ch, &f.l[0].ls, &f.l[0].op[k], b, (uint32_t)k * 10000, 10000,
				  (uint64_t)k * 10000);
		turn_until(f.l[0].op_done == OPS);
		assert_false(f.l[0].ls.failed);
		assert_memory_equal(b->mem, peer.mem, OPS * 10000);
		put(0);
		leave(&c);
		expect_gone(&c, 0);
	}
	bufpool_put(&f.bufs, b);
}

/* item T68: one lease at a time; another peer has no connection of ours. */
static void
one_lease_at_a_time(void **state)
{
	struct sockaddr_storage a;
	struct conn c, d;
	struct token t;

	join(&c, 0, 1, 0);
	join(&d, 1, 1, 0);
	t = c.tok;
	t.id[3] ^= 1;
	expect_declined(&t, CHAN_NOT_CONNECTED);
	must_get(5, &c.tok);
	expect_declined(&c.tok, CHAN_CONNECTION_BUSY);
	assert_int_equal(counts()->leased, 1);
	works(&d);
	put(5);
	works(&c);
	assert_false(rdma_rc_find(f.rd, address("127.0.0.1", &a), &t));
	t = c.tok;
	assert_false(rdma_rc_find(f.rd, address("127.0.0.2", &a), &t));
	assert_false(t.have_gid);
	assert_true(rdma_rc_find(f.rd, address("127.0.0.1", &a), &t));
	assert_true(t.have_gid);
	assert_memory_equal(t.gid, peer.tok.gid, 16);
	rdma_rc_disconnect(f.rd, c.tok.id, address("127.0.0.2", &a));
	works(&c);
	/* With a lease it goes after it. */
	must_get(5, &c.tok);
	leave(&c);
	leave(&d);
	expect_declined(&d.tok, CHAN_NOT_CONNECTED);
	assert_int_equal(counts()->leased, 1);
	put(5);
	expect_gone(&c, 0);
}

static void
expect_bad(const struct conn *c, bool write, enum rdma_status status)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);

	memset(peer.mem, 0xee, WINDOW);
	must_get(0, &c->tok);
	for (int i = 0; i < 3; i++)
		(write ? chan_push : chan_pull)(f.ch, &f.l[0].ls, &f.l[0].op[i], b, (uint32_t)i * 1000, 1000,
						0);
	turn_until(f.l[0].op_done == 3);
	assert_true(f.l[0].ls.failed);
	assert_int_equal(f.l[0].ls.status, status);
	assert_int_equal(f.l[0].op[2].result, -ECANCELED);
	assert_int_equal(f.l[0].ls.flushed_writes, write);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(peer.mem[i], 0xee);
	/* A client that has its answer connects again, and does not wait for its turn. */
	expect_declined(&c->tok, CHAN_NOT_CONNECTED);
	put(0);
	bufpool_put(&f.bufs, b);
}

/* item T69: a failed work request ends the connection, and no other. */
static void
a_failure_ends_it(void **state)
{
	struct conn c, d;
	uint32_t key;

	join(&d, 7, 1, 0);
	for (int write = 0; write < 2; write++) {
		join(&c, 0, 1, 0);
		c.tok.rkey ^= 0x100;
		expect_bad(&c, write, WCS_REM_ACCESS);
		expect_gone(&c, 1);
		/* A window that is no more. */
		join(&c, 0, 1, 0);
		key = peer.tok.rkey;
		assert_int_equal(peer_ask(&peer, 'd', 0), 0);
		assert_int_equal(c.tok.rkey, key);
		expect_bad(&c, write, WCS_REM_ACCESS);
		assert_int_equal(peer_ask(&peer, 'm', 0), 0);
		d.tok.rkey = peer.tok.rkey;
		expect_gone(&c, 1);
		/* A queue pair that is no more. */
		join(&c, 0, 1, 0);
		assert_int_equal(peer_ask(&peer, 'x', 0), 0);
		expect_bad(&c, write, WCS_RETRY_EXC);
		expect_gone(&c, 1);
		works(&d);
	}
	leave(&d);
	expect_gone(&d, 0);
}

/* A client that connects, and never brings its end to RTR. */
static void
half_connected(void **state)
{
	struct conn c;

	assert_int_equal(peer_ask(&peer, 'n', 2), 0);
	assert_int_equal(ask(&c, 2, 1, 0, "127.0.0.1"), 0);
	turn_until(atomic_load(&c.came));
	assert_int_equal(c.w.result, 0);
	c.tok = (struct token){
		.kind = TOKEN_RC_SHIM, .addr = peer.tok.addr, .size = WINDOW, .rkey = peer.tok.rkey
	};
	memcpy(c.tok.id, c.w.answer.id, 16);
	expect_bad(&c, true, WCS_RETRY_EXC);
	expect_gone(&c, 0);
}

/* Cancelled with work on the wire: after the last done() nothing reaches the window. */
static void
cancelled_in_flight(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);
	struct conn c;

	memset(b->mem, 0x33, b->cap_bytes);
	for (int i = 0; i < 10; i++) {
		join(&c, 3, 1, 0);
		must_get(0, &c.tok);
		for (int k = 0; k < 8; k++)
			chan_push(f.ch, &f.l[0].ls, &f.l[0].op[k], b, 0, 1 << 20, 0);
		if (i % 2)
			turn();
		chan_lease_fail(f.ch, &f.l[0].ls);
		turn_until(f.l[0].op_done == 8);
		memset(peer.mem, 0xee, WINDOW);
		put(0);
		expect_gone(&c, 0);
		for (size_t k = 0; k < WINDOW; k++)
			assert_int_equal(peer.mem[k], 0xee);
	}
	bufpool_put(&f.bufs, b);
}

static void
killed_peer(void **state)
{
	struct conn c[3];

	for (int i = 0; i < 3; i++)
		join(&c[i], i, 1, 0);
	kill(peer.pid, SIGKILL);
	waitpid(peer.pid, NULL, 0);
	peer.pid = 0;
	for (int i = 0; i < 2; i++) {
		expect_bad(&c[i], i, WCS_RETRY_EXC);
		expect_gone(&c[i], 2 - i);
	}
	leave(&c[2]);
	expect_gone(&c[2], 0);
	peer_stop(&peer);
}

/* ---- limits ---- */

static struct token *
tok_of(struct conn *c)
{
	c->tok.kind = TOKEN_RC_SHIM;
	memcpy(c->tok.id, c->w.answer.id, 16);
	return &c->tok;
}

static void
limits_hold(void **state)
{
	uint64_t refused = counts()->refused;
	struct conn c[20];
	int n = 0, other = 0;

	/* per_peer: 6; with connections still being made. */
	for (int i = 0; i < 10; i++)
		n += ask(&c[i], 4, 1, 0, "127.0.0.1") == 0;
	assert_int_equal(n, 6);
	assert_int_equal(counts()->refused - refused, 4);
	for (int i = 0; i < 6; i++)
		turn_until(atomic_load(&c[i].came) && c[i].w.result == 0);
	/* Others are not affected; connections: 10. Of a full table they get a share as large as that of who has most: 4, 3, 3. */
	for (int i = 1; i < 6; i++) {
		must_get(5, tok_of(&c[i]));
		put(5);
	}
	must_get(5, tok_of(&c[0]));
	for (int i = 10; i < 20; i++)
		other += ask(&c[i], 4, 1, 0, i % 2 ? "127.0.0.3" : "127.0.0.2") == 0;
	assert_int_equal(other, 6);
	turn_until(counts()->room == 2);
	turn_until(counts()->open == 10 && counts()->waiting == 0);
	/* Those that were unused for longest had to go, and not one that is used. */
	for (int i = 1; i < 4; i++)
		assert_int_equal(rdma_rc_find(f.rd, (struct sockaddr *)&c[i].w.ask.peer, tok_of(&c[i])),
				 i == 3);
	put(5);
	wait_usual(2 * IDLE_NS, counts()->open == 0)
		turn();
	for (int i = 0; i < 6; i++) {
		memcpy(c[i].tok.id, c[i].w.answer.id, 16);
		c[i].tok.kind = TOKEN_RC_SHIM;
		expect_declined(&c[i].tok, CHAN_NOT_CONNECTED);
	}
}

static uint64_t at[3];

/* Connects as often as it may, up to 200 times, at a time that does not move. */
static int
connects(const char *from, const uint64_t *now)
{
	struct conn c;
	int n = 0;

	clock_fake((uint64_t *)now);
	for (; n < 200 && ask(&c, 4, 1, 0, from) == 0; n++) {
		turn_until(atomic_load(&c.came));
		assert_int_equal(c.w.result, 0);
		rdma_rc_disconnect(f.rd, c.w.answer.id, (struct sockaddr *)&c.w.ask.peer);
		turn_until(counts()->closed == counts()->made);
	}
	return n;
}

/* rdma.rc.connect_rate: 50 connects a second, and as many at once, of each peer. */
static void
the_rate_is_limited(void **state)
{
	at[0] = clock_ns();
	at[1] = at[0] + 20 * NS_PER_MS;
	at[2] = at[1] + 10 * NS_PER_S;
	assert_int_equal(connects("127.0.0.9", &at[0]), 50);
	assert_int_equal(connects("127.0.0.9", &at[1]), 1);
	assert_int_equal(connects("127.0.0.8", &at[1]), 50);
	assert_int_equal(connects("127.0.0.9", &at[2]), 50);
	clock_fake(NULL);
}

/* ---- asleep ---- */

/* How many descriptors the descriptor of chan waits on. */
static int
watched(int fd)
{
	char path[64], line[256];
	FILE *in;
	int n = 0;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	in = fopen(path, "r");
	assert_non_null(in);
	while (fgets(line, sizeof line, in))
		n += strncmp(line, "tfd:", 4) == 0;
	fclose(in);
	return n;
}

/* The core sleeps while the device works: the completion wakes it, and once the lease is put this core does not watch the
 * connection any longer. */
static void
completions_wake(void **state)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);
	int fds[2] = { -1, -1 }, n = 0;
	struct conn c;

	if (!getenv("PORTCTL"))
		skip();
	/* The one descriptor of chan that is an epoll's own is that of the connections. */
	for (int i = 0; i < f.fd_nr; i++) {
		char path[64], to[64] = "";

		snprintf(path, sizeof path, "/proc/self/fd/%d", f.fds[i]);
		if (readlink(path, to, sizeof to - 1) > 0 && strcmp(to, "anon_inode:[eventpoll]") == 0)
			fds[n++ ? 1 : 0] = f.fds[i];
	}
	assert_int_equal(n, 1);
	join(&c, 0, 1, 0);
	ctl("rule add op=write delay=100ms");
	for (int i = 0; i < 3; i++) {
		struct pollfd p = { .fd = fds[0], .events = POLLIN };

		must_get(0, &c.tok);
		chan_push(f.ch, &f.l[0].ls, &f.l[0].op[0], b, 0, 1000, 0);
		chan_arm(f.ch);
		assert_int_equal(watched(fds[0]), 1);
		if (chan_poll(f.ch) == 0) {
			assert_int_equal(poll(&p, 1, 60000), 1);
			chan_event(f.ch, fds[0]);
			assert_int_equal(poll(&p, 1, 0), 0);
		}
		turn_until(f.l[0].op_done == 1);
		assert_int_equal(f.l[0].op[0].result, 0);
		put(0);
		assert_int_equal(watched(fds[0]), 0);
	}
	/* One that fails while it is watched. */
	must_get(0, &c.tok);
	chan_push(f.ch, &f.l[0].ls, &f.l[0].op[0], b, 0, 1000, 0);
	chan_arm(f.ch);
	assert_int_equal(watched(fds[0]), 1);
	chan_lease_fail(f.ch, &f.l[0].ls);
	turn_until(f.l[0].op_done == 1);
	put(0);
	ctl("rule clear");
	expect_gone(&c, 0);
	assert_int_equal(watched(fds[0]), 0);
	bufpool_put(&f.bufs, b);
}

/* ---- what is left over ---- */

static int
open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void
nothing_is_left(void **state)
{
	struct conn c;
	int before;

	join(&c, 5, 1, 0);
	works(&c);
	leave(&c);
	turn_until(counts()->closed == counts()->made);
	before = open_files();
	for (int i = 0; i < 40; i++) {
		join(&c, 5, 1, 0);
		if (i % 4 == 1)
			works(&c);
		if (i % 4 == 2) {
			c.tok.rkey ^= 0x100;
			expect_bad(&c, i % 8 == 2, WCS_REM_ACCESS);
		}
		leave(&c);
		turn_until(counts()->open == 0);
		usleep(20000); /* the rate */
	}
	turn_until(counts()->closed == counts()->made);
	assert_int_equal(open_files(), before);
}

/* Number of queue pairs of this process that the software NIC has. */
static int
queue_pairs(void)
{
	char cmd[512], text[4096];
	const char *qps;
	FILE *in;
	size_t n;

	snprintf(cmd, sizeof cmd, "%s stats --json %d", getenv("PORTCTL"), getpid());
	in = popen(cmd, "re");
	assert_non_null(in);
	n = fread(text, 1, sizeof text - 1, in);
	text[n] = 0;
	assert_int_equal(pclose(in), 0);
	qps = strstr(text, "\"qps\":");
	assert_non_null(qps);
	return atoi(qps + 6);
}

/* A step of a connection during which the client destroys its queue pair. */
enum step { MAKING, READY, LEASED, LEASED_UNUSED, WRITING, READING, DRAINING, CLOSING, CLOSED, STEP_NR };

/* Makes a connection, and destroys the client's end while it is made. */
static void
destroy_while_made(struct conn *c)
{
	assert_int_equal(peer_ask(&peer, 'n', 0), 0);
	atomic_store(&held, false);
	atomic_store(&hold_before, IBV_QPS_RTR);
	assert_int_equal(ask(c, 0, 1, 0, "127.0.0.1"), 0);
	turn_until(atomic_load(&held));
	assert_int_equal(peer_ask(&peer, 'x', 0), 0);
	atomic_store(&hold_before, 0);
	turn_until(atomic_load(&c->came));
	assert_int_equal(c->w.result, 0);
	c->tok = (struct token){
		.kind = TOKEN_RC_SHIM, .addr = peer.tok.addr, .size = WINDOW, .rkey = peer.tok.rkey
	};
	memcpy(c->tok.id, c->w.answer.id, 16);
	expect_bad(c, true, WCS_RETRY_EXC);
}

static void
destroy_while_leased(struct conn *c, enum step step)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);
	bool read = step == READING;

	must_get(0, &c->tok);
	if (step >= WRITING) {
		ctl("rule add delay=50ms");
		(read ? chan_pull : chan_push)(f.ch, &f.l[0].ls, &f.l[0].op[0], b, 0, 1000, 0);
	}
	if (step == DRAINING)
		chan_lease_fail(f.ch, &f.l[0].ls);
	assert_int_equal(peer_ask(&peer, 'x', 0), 0);
	if (step == LEASED)
		chan_push(f.ch, &f.l[0].ls, &f.l[0].op[0], b, 0, 1000, 0);
	if (step != LEASED_UNUSED) {
		turn_until(f.l[0].op_done == 1);
		assert_true(f.l[0].ls.failed);
		assert_true(f.l[0].op[0].result < 0);
	}
	if (step != LEASED_UNUSED && step != DRAINING)
		assert_int_equal(f.l[0].ls.status, WCS_RETRY_EXC);
	put(0);
	ctl("rule clear");
	/* A lease without a work request has told us nothing. */
	if (step == LEASED_UNUSED)
		expect_bad(c, true, WCS_RETRY_EXC);
	bufpool_put(&f.bufs, b);
}

/* Disconnects, and destroys the client's end before or after ours. */
static void
destroy_while_closed(struct conn *c, enum step step)
{
	char cmd[128];

	snprintf(cmd, sizeof cmd, "rule add op=destroy_qp pid=%d delay=50ms", getpid());
	if (step == CLOSING)
		ctl(cmd);
	leave(c);
	if (step == CLOSED)
		turn_until(counts()->closed == counts()->made - 1);
	assert_int_equal(peer_ask(&peer, 'x', 0), 0);
	ctl("rule clear");
}

static void
destroy_in(enum step step)
{
	struct conn c;

	memset(f.l, 0, sizeof f.l);
	if (step == MAKING) {
		destroy_while_made(&c);
	} else {
		join(&c, 0, 1, 0);
		if (step == READY) {
			assert_int_equal(peer_ask(&peer, 'x', 0), 0);
			expect_bad(&c, false, WCS_RETRY_EXC);
		} else if (step < CLOSING) {
			destroy_while_leased(&c, step);
		} else {
			destroy_while_closed(&c, step);
		}
	}
	expect_gone(&c, 1);
	/* All but the one of another client. */
	turn_until(counts()->closed == counts()->made - 1);
	assert_int_equal(counts()->waiting, 0);
	assert_int_equal(counts()->leased, 0);
}

/* A client that destroys its queue pair hurts its own request alone, and leaves no queue pair, descriptor or memory. */
static void
destroyed_in_every_state(void **state)
{
	struct conn d, c[6];
	int files, qps;

	if (!getenv("PORTCTL"))
		skip();
	join(&d, 1, 1, 0);
	works(&d);
	files = open_files();
	qps = queue_pairs();
	for (int step = 0; step < STEP_NR; step++) {
		destroy_in((enum step)step);
		works(&d);
	}
	assert_int_equal(open_files(), files);
	assert_int_equal(queue_pairs(), qps);
	leave(&d);
	expect_gone(&d, 0);
	/* None is counted any longer: per_peer is 6. */
	for (int i = 0; i < 6; i++)
		join(&c[i], i, 1, 0);
	for (int i = 0; i < 6; i++)
		leave(&c[i]);
	expect_gone(&c[5], 0);
}

/* ---- a device that dies ---- */

static void
wait_up(unsigned context)
{
	struct rdma_rail *rail = rdma_rail(f.rd, 0);

	turn_until(rdma_rail_context(rail) > context && rdma_rail_state(rail) == RAIL_UP);
}

/* READY ones go at once, LEASED ones when their work is over, those that are draining do not hold anything up; what is
 * still on the wire when the device is lost ends only when the hardware can do nothing more. */
static void
device_reset(void **state)
{
	static const char *const how[] = { "flush", "runs", "runs destroy=lies", "flush destroy=fails" };
	struct rdma_rail *rail = rdma_rail(f.rd, 0);
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);
	char cmd[128];
	struct conn c[6];

	if (!getenv("PORTCTL"))
		skip();
	memset(b->mem, 0x44, b->cap_bytes);
	for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
		unsigned context = rdma_rail_context(rail);

		for (int i = 0; i < 5; i++)
			join(&c[i], i, 1, 0);
		/* 0, 4: READY; 1: LEASED without work; 2: with work; 3: DRAINING. */
		must_get(1, &c[1].tok);
		must_get(2, &c[2].tok);
		must_get(3, &c[3].tok);
		ctl("rule add op=write delay=300ms");
		for (int i = 2; i < 4; i++)
			for (int k = 0; k < 8; k++)
				chan_push(f.ch, &f.l[i].ls, &f.l[i].op[k], b, 0, 100000,
					  (uint64_t)k * 100000);
		chan_lease_fail(f.ch, &f.l[3].ls);
		snprintf(cmd, sizeof cmd, "device mlx5_0 reset pid=%d %s", getpid(), how[h]);
		ctl(cmd);
		turn_until(f.l[2].op_done == 8 && f.l[3].op_done == 8);
		/* The promise: both are over, so nothing of ours comes any more. */
		memset(peer.mem, 0xee, WINDOW);
		put(1);
		put(2);
		put(3);
		wait_up(context);
		ctl("rule clear");
		for (size_t k = 0; k < WINDOW; k++)
			assert_int_equal(peer.mem[k], 0xee);
		turn_until(counts()->open == 0);
		for (int i = 0; i < 5; i++)
			expect_declined(&c[i].tok, CHAN_NOT_CONNECTED);
		turn_until(stats()->conns.free == stats()->conns.all);
		peer_stop(&peer);
		assert_int_equal(peer_start(&peer, WINDOW, 0), 0);
		join(&c[5], 5, 1, 0);
		works(&c[5]);
		leave(&c[5]);
		expect_gone(&c[5], 0);
	}
	bufpool_put(&f.bufs, b);
}

/* The promise of a reply: a queue pair that cannot be destroyed for certain may write until its context is closed, so its
 * operations do not end before. */
static void
operations_end_with_the_context(void **state)
{
	static const char *const how[] = { "runs destroy=lies", "runs destroy=fails" };
	struct rdma_rail *rail = rdma_rail(f.rd, 0);
	struct buf *b = bufpool_get(&f.bufs, BUF_LARGE);
	struct conn c;

	if (!getenv("PORTCTL"))
		skip();
	for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
		unsigned context = rdma_rail_context(rail);
		char cmd[128];
		int done;

		join(&c, 0, 1, 0);
		must_get(2, &c.tok);
		ctl("rule add op=write delay=20s");
		for (int k = 0; k < 8; k++)
			chan_push(f.ch, &f.l[2].ls, &f.l[2].op[k], b, 0, 100000, (uint64_t)k * 100000);
		atomic_store(&held, false);
		atomic_store(&hold_close, true);
		snprintf(cmd, sizeof cmd, "device mlx5_0 reset pid=%d %s", getpid(), how[h]);
		ctl(cmd);
		turn_until(atomic_load(&held));
		/* The thread that closes the device has told us before what became of the queue pair. */
		for (int i = 0; i < 10; i++)
			turn();
		done = f.l[2].op_done;
		atomic_store(&hold_close, false);
		assert_int_equal(done, 0);
		turn_until(f.l[2].op_done == 8);
		assert_true(f.l[2].ls.failed);
		put(2);
		ctl("rule clear");
		wait_up(context);
		turn_until(counts()->open == 0 && stats()->conns.free == stats()->conns.all);
		peer_stop(&peer);
		assert_int_equal(peer_start(&peer, WINDOW, 0), 0);
	}
	bufpool_put(&f.bufs, b);
}

/* Loses the device while a connection is made: the connect is answered, and nothing is left.  item T65: it is not answered before the queue pair
 * is in RTS. */
static void
lost_while_made(_Atomic int *hold_at, enum ibv_qp_state to, const char *how)
{
	bool comes_back = strcmp(how, "lost") == 0;
	struct rdma_rail *rail = rdma_rail(f.rd, 0);
	uint64_t failed = counts()->failed, lost = counts()->lost;
	unsigned context = rdma_rail_context(rail);
	struct conn c;
	bool early;
	char cmd[128];
	int waiting;

	assert_int_equal(peer_ask(&peer, 'n', 0), 0);
	atomic_store(&held, false);
	atomic_store(hold_at, to);
	assert_int_equal(ask(&c, 0, 1, 0, "127.0.0.1"), 0);
	turn_until(atomic_load(&held));
	snprintf(cmd, sizeof cmd, "device mlx5_0 %s", how);
	ctl(cmd);
	if (comes_back) {
		turn_until(rdma_rail_state(rail) == RAIL_LOST);
		ctl("device mlx5_0 back");
	} else {
		turn_until(rdma_rail_context(rail) != context);
	}
	early = atomic_load(&c.came);
	waiting = counts()->waiting;
	atomic_store(hold_at, 0);
	assert_false(early);
	assert_int_equal(waiting, 1);
	turn_until(atomic_load(&c.came));
	if (hold_at == &hold_after)
		assert_int_equal(c.w.result, 0);
	else if (!comes_back)
		assert_true(c.w.result < 0);
	turn_until(counts()->open == 0 && counts()->closed == counts()->made);
	assert_int_equal(counts()->waiting, 0);
	/* It did not serve until it was idle. */
	assert_int_equal(counts()->failed - failed + counts()->lost - lost, 1);
	if (c.w.result == 0) {
		c.tok = (struct token){ .kind = TOKEN_RC_SHIM, .size = WINDOW };
		memcpy(c.tok.id, c.w.answer.id, 16);
		expect_declined(&c.tok, CHAN_NOT_CONNECTED);
	}
	turn_until(rdma_rail_state(rail) == RAIL_UP);
	turn_until(stats()->conns.recovering == 0 && stats()->conns.free == stats()->conns.all);
	peer_stop(&peer);
	assert_int_equal(peer_start(&peer, WINDOW, 0), 0);
	join(&c, 1, 1, 0);
	works(&c);
	leave(&c);
	expect_gone(&c, 0);
}

static void
device_lost_while_connecting(void **state)
{
	/* A queue pair that cannot be destroyed, or only for the looks of it, ends with its context. */
	static const char *const how[] = { "reset", "lost", "reset destroy=fails", "reset destroy=lies",
					   "lost" };
	int files = 0, qps = 0;

	if (!getenv("PORTCTL"))
		skip();
	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
		for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++)
			lost_while_made(&hold_before, to, how[i]);
		lost_while_made(&hold_after, IBV_QPS_RTS, how[i]);
		turn_until(counts()->closed == counts()->made);
		if (i == 1) {
			files = open_files();
			qps = queue_pairs();
		}
	}
	assert_int_equal(open_files(), files);
	assert_int_equal(queue_pairs(), qps);
}

/* A port that is down declines, and a connection survives it. */
static void
port_down_and_up(void **state)
{
	struct rdma_rail *rail = rdma_rail(f.rd, 0);
	struct conn c;

	if (!getenv("PORTCTL"))
		skip();
	join(&c, 6, 1, 0);
	ctl("port mlx5_0 down");
	turn_until(rdma_rail_state(rail) == RAIL_DOWN);
	expect_declined(&c.tok, CHAN_NO_RAIL);
	ctl("port mlx5_0 up");
	turn_until(rdma_rail_state(rail) == RAIL_UP);
	join(&c, 6, 1, 0);
	works(&c);
	leave(&c);
	turn_until(counts()->open <= 1);
	wait_usual(2 * IDLE_NS, counts()->open == 0)
		turn();
}

/* Connects queue pair nr to the address `own` of ours. */
static void
join_at(struct conn *c, int nr, const char *own)
{
	struct sockaddr_storage a;
	uint8_t last = (uint8_t)atoi(strrchr(own, '.') + 1);
	uint64_t closed;

	/* The change of the table may not have been read yet: the answer has an address that is no more, or our end finds it gone. */
	for (int i = 0; i < 600; i++) {
		memset(c, 0, sizeof *c);
		address(own, &a);
		begin_join(c, nr, 1, 0, &a);
		if (c->w.result == 0 && c->w.answer.gid[15] == last) {
			end_join(c, nr);
			return;
		}
		closed = counts()->closed;
		if (c->w.result == 0) {
			leave(c);
			turn_until(counts()->closed > closed);
		}
		usleep(100000);
	}
	fail_msg("no connection at %s", own);
}

/* The first RoCE v2 address of the device. */
static void
first_gid(char text[INET6_ADDRSTRLEN])
{
	int nr;
	struct ibv_device **list = ibv_get_device_list(&nr);
	struct ibv_context *ctx = ibv_open_device(list[0]);
	struct ibv_gid_entry row[32];
	ssize_t n = ibv_query_gid_table(ctx, row, 32, 0);

	for (ssize_t i = n - 1; i >= 0; i--) {
		if (row[i].gid_type == IBV_GID_TYPE_ROCE_V2)
			inet_ntop(AF_INET6, row[i].gid.raw, text, INET6_ADDRSTRLEN);
	}
	ibv_close_device(ctx);
	ibv_free_device_list(list);
}

/* The address of our end is removed: the connection is lost, also one that is leased, and no other is. */
static void
own_address_goes(void **state)
{
	uint64_t lost = counts()->lost;
	char text[INET6_ADDRSTRLEN], cmd[128];
	struct conn c, d, e;

	if (!getenv("PORTCTL"))
		skip();
	ctl("gid mlx5_0 add 127.0.0.77");
	join_at(&c, 0, "127.0.0.77");
	join_at(&d, 1, "127.0.0.1");
	ctl("gid mlx5_0 add 127.0.0.78");
	join_at(&e, 2, "127.0.0.78");
	works(&c);
	works(&d);
	works(&e);
	ctl("gid mlx5_0 del 127.0.0.77");
	expect_gone(&c, 2);
	turn_until(counts()->lost == lost + 1);
	works(&d);
	must_get(5, &e.tok);
	ctl("gid mlx5_0 del 127.0.0.78");
	ctl("gid mlx5_0 add 127.0.0.79");
	join_at(&c, 3, "127.0.0.79");
	put(5);
	expect_gone(&e, 2);
	turn_until(counts()->lost == lost + 2);
	works(&d);
	works(&c);
	/* The first address, at which DC initiators are connected, is none of theirs. */
	first_gid(text);
	snprintf(cmd, sizeof cmd, "gid mlx5_0 del %s", text);
	ctl(cmd);
	ctl("gid mlx5_0 add 127.0.0.80");
	join_at(&e, 4, "127.0.0.80");
	works(&d);
	works(&c);
	snprintf(cmd, sizeof cmd, "gid mlx5_0 add %s", text);
	ctl(cmd);
	leave(&c);
	leave(&d);
	leave(&e);
	turn_until(counts()->open == 0);
}

static int
setup_rc(void **state)
{
	memset(f.l, 0, sizeof f.l);
	f.order_nr = 0;
	if (!peer.mem)
		assert_int_equal(peer_start(&peer, WINDOW, 0), 0);
	memset(peer.mem, 0xee, WINDOW);
	return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup_rc, teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(bytes_are_right),
		T(reads_outstanding),
		T(one_lease_at_a_time),
		T(a_failure_ends_it),
		T(half_connected),
		T(cancelled_in_flight),
		T(killed_peer),
		T(limits_hold),
		T(the_rate_is_limited),
		T(completions_wake),
		T(nothing_is_left),
		T(destroyed_in_every_state),
		T(device_reset),
		T(operations_end_with_the_context),
		T(device_lost_while_connecting),
		T(port_down_and_up),
		T(own_address_goes),
	};
	int r;

	peer_main(argc, argv);
	log_init(LOG_PLAIN, getenv("VERBOSE") ? LOG_DEBUG : LOG_ERROR);
	f.conf.rc = (struct conf_rc){
		.shim = true, .connections = 10, .per_peer = 6, .connect_rate = 50, .idle_ns = IDLE_NS
	};
	r = open_all();
	if (r)
		return r;
	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	r = cmocka_run_group_tests(tests, NULL, NULL);
	peer_stop(&peer);
	for (int i = 0; i < 100; i++)
		turn();
	chan_free(f.ch);
	mailbox_run(&f.mb, 0);
	rdma_close(f.rd);
	bufpool_fini(&f.bufs);
	mailbox_fini(&f.mb);
	return r ? 1 : 0;
}
