/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fails on the wire and what becomes of it: the call ends within its limit, the pieces are untouched
 * afterwards, the channel works again, and nothing is left over.  Needs two devices (tests/unit/on-nic).
 */
#include "rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define NR 16
#define PART 65536

/* 17 ms a try, four times, two of them, and 100 ms: and as much again for a machine that is busy. */
#define LIMIT_NS (20 * NS_PER_S)

static int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void
works_again(void)
{
	int status = 99;

	fill(f.mem, PART, 91);
	memset(f.peer.mem, 0, PART);
	assert_int_equal(move(GANTRY_PUSH, 0, PART, &status), PART);
	assert_int_equal(status, IBV_WC_SUCCESS);
	assert_memory_equal(f.peer.mem, f.mem, PART);
	assert_int_equal(f.r->uses, 0);
}

/* ---- one operation ---- */

/* claim TM72: a completion that never comes ends the call, and the client's late bytes do not come into the buffer. */
static void
lost_completion(void **state)
{
	for (int dir = GANTRY_PUSH; dir <= GANTRY_PULL; dir++) {
		struct nic_trace trace;
		uint64_t begin;
		int status = 0;

		forget();
		nic_trace_on(&trace);
		/* Of a PUSH the bytes arrive; of a PULL they would come later. */
		ctl("rule add limit=1 drop %s", dir == GANTRY_PULL ? "delay=3600s" : "");
		begin = clock_ns();
		assert_int_equal(move((enum gantry_dir)dir, 0, PART, &status), -EIO);
		assert_int_equal(status, IBV_WC_RESP_TIMEOUT_ERR);
		assert_true(clock_ns() - begin >= 100 * NS_PER_MS);
		assert_true(clock_ns() - begin < LIMIT_NS);
		assert_true(said("a completion is late"));
		/* What the client writes now is its own. */
		fill(f.mem, PART, 3);
		fill(f.peer.mem, PART, 4);
		ctl("rule clear");
		assert_int_equal(nic_trace_count(&trace, true), 1);
		assert_int_equal(nic_trace_count(&trace, false), 0);
		assert_true(is_filled(f.mem, PART, 3));
		assert_true(is_filled(f.peer.mem, PART, 4));
		nic_trace_off(&trace);
		works_again();
	}
}

/* The same where the caller sleeps. */
static void
lost_completion_asleep(void **state)
{
	struct gantry_done done;
	struct pollfd p = { .events = POLLIN };

	p.fd = gantry_channel_fd(f.c);
	for (int i = 0; i < 2; i++) {
		ctl("rule add limit=1 drop");
		assert_int_equal(start(GANTRY_PULL, 0, PART, 7), 0);
		if (i == 0)
			assert_int_equal(gantry_channel_wait(f.c, -1), 1);
		else
			while (gantry_channel_wait(f.c, 0) == 0)
				assert_int_equal(poll(&p, 1, 60000), 1);
		assert_int_equal(gantry_channel_poll(f.c, &done, 1), 1);
		assert_int_equal(done.wc_status, IBV_WC_RESP_TIMEOUT_ERR);
		assert_int_equal(done.error, -EIO);
		assert_int_equal(done.bytes, 0);
	}
	close_server();
	f.p.delay_mode = GANTRY_DELAY_ADAPTIVE;
	open_server();
	ctl("rule add limit=1 drop");
	assert_int_equal(move(GANTRY_PULL, 0, PART, NULL), -EIO);
	works_again();
}

/* One that is lost is found out though others go on after it. */
static void
lost_among_others(void **state)
{
	struct gantry_done done[8];
	uintptr_t i = 2;
	bool lost = false;

	ctl("rule add limit=1 drop");
	assert_int_equal(start(GANTRY_PUSH, 0, 100, 1), 0);
	wait_until(lost) {
		int n;

		assert_int_equal(start(GANTRY_PUSH, 4096, 100, i++), 0);
		n = gantry_channel_poll(f.c, done, 8);
		for (int k = 0; k < n; k++) {
			if ((uintptr_t)done[k].handle != 1)
				continue;
			assert_int_equal(done[k].wc_status, IBV_WC_RESP_TIMEOUT_ERR);
			lost = true;
		}
		usleep(1000);
	}
	while (gantry_channel_wait(f.c, -1) == 1)
		assert_true(gantry_channel_poll(f.c, done, 8) > 0);
	works_again();
}

static void
nobody_answers(void **state)
{
	struct token tok = f.peer.tok;
	struct gantry_piece p = piece(0, PART);
	char text[TOKEN_DC_LEN + 1];
	int status = 0;

	tok.dctn ^= 0x1000;
	assert_int_equal(token_format(&tok, text), 0);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), text, 0, &status), -EIO);
	assert_int_equal(status, IBV_WC_RETRY_EXC_ERR);
	assert_true(said("is the client's DC key another"));
	works_again();
	/* A wrong key is what that says. */
	close_server();
	f.p.dc_key = DC_KEY + 1;
	open_server();
	assert_int_equal(move(GANTRY_PULL, 0, PART, &status), -EIO);
	assert_int_equal(status, IBV_WC_RETRY_EXC_ERR);
	close_server();
	defaults();
	open_server();
	works_again();
}

static void
no_longer_registered(void **state)
{
	int status = 0;

	assert_int_equal(peer_ask(&f.peer, 'd', 0), 0);
	assert_int_equal(move(GANTRY_PULL, 0, PART, &status), -EIO);
	assert_int_equal(status, IBV_WC_REM_ACCESS_ERR);
	assert_true(said("remote access error"));
	assert_int_equal(peer_ask(&f.peer, 'm', 0), 0);
	assert_int_equal(token_format(&f.peer.tok, f.token), 0);
	works_again();
}

/* ---- sixteen ---- */

/* One in the middle fails: those before it have succeeded, those behind it are flushed, every handle comes once,
 * and the channel was reset before they came. */
static void
in_the_middle(void **state)
{
	static const int status[] = { IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_REM_OP_ERR,
				      IBV_WC_LOC_PROT_ERR, IBV_WC_GENERAL_ERR };

	for (size_t k = 0; k < sizeof status / sizeof *status; k++) {
		struct gantry_done done[NR];
		unsigned seen = 0, good = 0;
		int bad = -1;

		ctl("rule add skip=7 limit=1 status=%d", status[k]);
		for (uintptr_t i = 0; i < NR; i++)
			assert_int_equal(start(GANTRY_PUSH, i * PART, PART, i), 0);
		assert_int_equal(collect(done, NR), NR);
		for (int i = 0; i < NR; i++) {
			uintptr_t h = (uintptr_t)done[i].handle;

			assert_true(h < NR && !(seen & 1u << h));
			seen |= 1u << h;
			if (done[i].wc_status == status[k])
				bad = (int)h;
			good += done[i].error == 0;
			assert_int_equal(done[i].error, done[i].wc_status ? -EIO : 0);
			assert_int_equal(done[i].bytes, done[i].wc_status ? 0 : PART);
			if (h < 7)
				assert_int_equal(done[i].wc_status, IBV_WC_SUCCESS);
			if (h > 7)
				assert_int_equal(done[i].wc_status, IBV_WC_WR_FLUSH_ERR);
		}
		assert_int_equal(bad, 7);
		assert_int_equal(good, 7);
		works_again();
		ctl("rule clear");
	}
}

/* What waits behind a full queue is flushed too, and a synchronous one says so. */
static void
behind_the_queue(void **state)
{
	struct gantry_done done[40];
	int status = 0;

	close_server();
	f.p.cq_depth = 8;
	open_server();
	ctl("rule add skip=2 limit=1 delay=20ms status=REM_ACCESS");
	for (uintptr_t i = 0; i < 40; i++)
		assert_int_equal(start(GANTRY_PUSH, i * 4096, 4096, i), 0);
	assert_int_equal(move(GANTRY_PUSH, 0, 4096, &status), -EIO);
	assert_int_equal(status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(collect(done, 40), 40);
	for (int i = 0; i < 40; i++)
		assert_int_equal(done[i].error, (uintptr_t)done[i].handle < 2 ? 0 : -EIO);
	works_again();
	ctl("rule clear");
}

/* The client is killed while bytes move. */
static void
client_killed(void **state)
{
	int status = 0;
	ssize_t r;

	ctl("rule add limit=1 kill=target at=%d", PART / 2);
	r = move(GANTRY_PULL, 0, PART, &status);
	assert_int_equal(r, -EIO);
	assert_int_not_equal(status, IBV_WC_SUCCESS);
	assert_int_equal(move(GANTRY_PUSH, 0, PART, &status), -EIO);
	assert_int_equal(status, IBV_WC_RETRY_EXC_ERR);
	peer_stop(&f.peer);
	start_peer();
	works_again();
	ctl("rule clear");
}

/* With the switch off the channel does not work any more, and another one does. */
static void
fenced(void **state)
{
	struct gantry_channel *was;
	struct gantry_done done;

	close_server();
	f.p.qp_reset_on_failure = 0;
	open_server();
	assert_int_equal(move(GANTRY_PUSH, 0, PART, NULL), PART);
	ctl("rule add limit=1 status=REM_ACCESS");
	assert_int_equal(start(GANTRY_PUSH, 0, PART, 5), 0);
	assert_int_equal(collect(&done, 1), 1);
	assert_int_equal(done.wc_status, IBV_WC_REM_ACCESS_ERR);
	assert_true(said("is fenced"));
	assert_int_equal(move(GANTRY_PUSH, 0, PART, NULL), -EIO);
	assert_int_equal(start(GANTRY_PUSH, 0, PART, 5), -EIO);
	assert_int_equal(gantry_channel_poll(f.c, &done, 1), -EIO);
	was = f.c;
	assert_int_equal(gantry_channel_new(f.s, &f.c), 0);
	assert_int_equal(gantry_channel_free(was), 0);
	works_again();
	ctl("rule clear");
}

/* ---- what there is too little of ---- */

static void
used_up(void **state)
{
	struct gantry_channel *c = f.c;
	struct rlimit was, few;
	int last;

	assert_int_equal(gantry_channel_free(f.c), 0);
	assert_int_equal(gantry_channel_new(f.s, &f.c), 0);
	c = f.c;
	/* Descriptors: each queue needs one, and each channel that somebody waits on three. */
	last = open("/dev/null", O_RDONLY);
	assert_true(last >= 0);
	close(last);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = (rlim_t)last;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(move(GANTRY_PUSH, 0, PART, NULL), -ENOMEM);
	assert_true(gantry_channel_fd(c) < 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(said("no queue pair: Too many open files"));
	works_again();
	few.rlim_cur = (rlim_t)open("/dev/null", O_RDONLY);
	close((int)few.rlim_cur);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	/* One that has its queue goes on, and waits without sleeping. */
	assert_int_equal(start(GANTRY_PUSH, 0, PART, 1), 0);
	assert_int_equal(gantry_channel_wait(f.c, 60000), 1);
	assert_int_equal(gantry_channel_poll(f.c, &(struct gantry_done){ 0 }, 1), 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);

	/* Queue pairs. */
	assert_int_equal(gantry_channel_free(f.c), 0);
	assert_int_equal(gantry_channel_new(f.s, &f.c), 0);
	ctl("rule add op=create_qp limit=1");
	assert_int_equal(move(GANTRY_PUSH, 0, PART, NULL), -ENOMEM);
	works_again();
	ctl("rule clear");
	/* Registrations. */
	ctl("rule add op=reg_mr limit=1");
	assert_int_equal(gantry_region_add(f.s, f.mem, PART, &(struct gantry_region *){ NULL }), -ENOMEM);
	assert_true(said("raise it (ulimit -l, LimitMEMLOCK=)"));
	ctl("rule clear");
}

/* No address handle: nobody answers for the address, or it takes its time. */
static void
no_way_there(void **state)
{
	uint64_t begin = clock_ns();

	ctl("rule add op=create_ah limit=1 error=ETIMEDOUT");
	assert_int_equal(move(GANTRY_PUSH, 0, PART, NULL), -EIO);
	assert_true(said("127.0.0.1 cannot be reached"));
	ctl("rule clear");
	close_server();
	open_server();
	/* Slower than a core would wait for. */
	ctl("rule add op=create_ah limit=1 delay=700ms");
	assert_int_equal(move(GANTRY_PUSH, 0, PART, NULL), PART);
	assert_true(clock_ns() - begin >= 700 * NS_PER_MS);
	ctl("rule clear");
}

/* ---- ports and devices ---- */

static void
wait_alive(int alive)
{
	wait_until(gantry_server_is_alive(f.s) == alive)
		usleep(1000);
}

/* The device was opened for so many a time, and is up. */
static void
wait_opened(unsigned context)
{
	wait_until(rdma_rail_context(rdma_rail(f.s->rd, 0)) == context)
		usleep(1000);
	wait_alive(1);
}

static void
port_down(void **state)
{
	struct gantry_done done;

	works_again();
	ctl("port mlx5_0 down");
	wait_alive(0);
	assert_int_equal(move(GANTRY_PUSH, 0, PART, NULL), -ENODEV);
	assert_true(said("no port is up that leads there"));
	assert_int_equal(gantry_channel_poll(f.c, &done, 1), -ENODEV);
	ctl("port mlx5_0 up");
	wait_alive(1);
	works_again();
}

/* Two ports lead to the client: where one goes down, the channel goes on by the other. */
static void
one_of_two_ports(void **state)
{
	int used = -1;

	close_server();
	f.p.address = NULL;
	open_server();
	works_again();
	for (int i = 0; i < 2; i++) {
		if (f.c->lane[i] && f.c->lane[i]->state == LANE_ON)
			used = i;
	}
	assert_true(used >= 0);
	assert_null(f.c->lane[1 - used]);
	ctl("port mlx5_%d down", used);
	wait_until(rdma_rail_state(rdma_rail(f.s->rd, used)) != RAIL_UP)
		usleep(1000);
	assert_true(gantry_server_is_alive(f.s));
	/* The client's own port may be that one: then nobody answers, and that is what is said. */
	if (used == 0) {
		int status = 0;

		assert_int_equal(move(GANTRY_PUSH, 0, PART, &status), -EIO);
		assert_int_equal(status, IBV_WC_RETRY_EXC_ERR);
	} else {
		works_again();
	}
	assert_non_null(f.c->lane[1 - used]);
	ctl("port mlx5_%d up", used);
	wait_until(rdma_rail_state(rdma_rail(f.s->rd, used)) == RAIL_UP)
		usleep(1000);
	works_again();
}

struct sleeper {
	struct gantry_channel *c;
	struct gantry_piece p;
	struct gantry_done done;
	int wait, poll;
};

static void *
sleep_on(void *arg)
{
	struct sleeper *s = arg;

	if (gantry_channel_start(s->c, GANTRY_PULL, &s->p, 1, remote(0), f.token, s) < 0)
		abort();
	s->wait = gantry_channel_wait(s->c, -1);
	s->poll = gantry_channel_poll(s->c, &s->done, 1);
	return NULL;
}

static void *
move_on(void *arg)
{
	int *status = arg;

	return (void *)(intptr_t)move(GANTRY_PULL, 0, PART, status);
}

/* A device dies: under a synchronous call, under one that sleeps, under asynchronous ones that nobody polls, and
 * with a channel that nobody uses; everything ends, the device is opened anew, and all of them work again, with their regions. */
static void
device_dies(void **state)
{
	static const char *const how[] = { "", "flush", "runs", "destroy=fails", "destroy=lies" };
	static unsigned char other[PART];
	struct gantry_channel *idle, *asleep, *mine = f.c;
	struct sleeper sleeper = { 0 };
	struct gantry_region *r;
	int fds = 0;

	assert_int_equal(gantry_region_add(f.s, other, sizeof other, &r), 0);
	assert_int_equal(gantry_channel_new(f.s, &idle), 0);
	assert_int_equal(gantry_channel_new(f.s, &asleep), 0);
	assert_int_equal(gantry_channel_new(f.s, &sleeper.c), 0);
	for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
		struct gantry_done done[4];
		struct gantry_piece p = { r, other, PART };
		int status = 0, got = 0;
		struct nic_trace trace;
		pthread_t t, sleeps;
		void *ret;

		f.c = idle;
		works_again();
		f.c = mine;
		works_again();
		if (k == 1)
			fds = open_fds();
		/* What is under way waits for an hour. */
		nic_trace_on(&trace);
		ctl("rule add op=any delay=3600s");
		for (uintptr_t i = 0; i < 4; i++)
			assert_int_equal(gantry_channel_start(asleep, GANTRY_PULL, &p, 1, remote(0), f.token,
							      (void *)i),
					 0);
		assert_int_equal(pthread_create(&t, NULL, move_on, &status), 0);
		sleeper.p = p;
		assert_int_equal(pthread_create(&sleeps, NULL, sleep_on, &sleeper), 0);
		/* The first of the four, and one of each thread, are on the wire. */
		wait_on_wire(&trace, 3);
		forget();
		ctl("device mlx5_0 reset pid=%d %s", getpid(), how[k]);
		pthread_join(t, &ret);
		pthread_join(sleeps, NULL);
		assert_int_equal(sleeper.wait, 1);
		assert_int_equal(sleeper.poll, 1);
		assert_ptr_equal(sleeper.done.handle, &sleeper);
		assert_int_equal(sleeper.done.error, -EIO);
		assert_int_equal((intptr_t)ret, -EIO);
		assert_int_not_equal(status, IBV_WC_SUCCESS);
		/* Nothing comes into its buffer any more. */
		fill(f.mem, PART, 5);
		ctl("rule clear");
		wait_opened((unsigned)k + 2);
		while (got < 4) {
			int n = gantry_channel_poll(asleep, done, 4);

			if (n == 0)
				assert_int_equal(gantry_channel_wait(asleep, 60000), 1);
			assert_true(n >= 0);
			for (int i = 0; i < n; i++)
				assert_int_equal(done[i].error, -EIO);
			got += n;
		}
		fill(other, PART, 6);
		assert_in_range(nic_trace_count(&trace, true), 3, 6);
		assert_int_equal(nic_trace_count(&trace, false), 0);
		assert_true(is_filled(f.mem, PART, 5));
		assert_true(is_filled(other, PART, 6));
		nic_trace_off(&trace);
		works_again();
		f.c = asleep;
		works_again();
		f.c = mine;
		assert_int_equal(r->uses, 0);
	}
	/* Nothing was left over. */
	f.c = idle;
	works_again();
	f.c = mine;
	assert_int_equal(open_fds(), fds);
	assert_int_equal(gantry_channel_free(idle), 0);
	assert_int_equal(gantry_channel_free(asleep), 0);
	assert_int_equal(gantry_channel_free(sleeper.c), 0);
	assert_int_equal(gantry_region_del(r), 0);
}

/* One that is gone for some time: calls say so at once, and memory is registered for the time afterwards. */
static void
device_away(void **state)
{
	struct gantry_channel *c;
	struct gantry_region *r;
	static char mem[4096];

	works_again();
	ctl("device mlx5_0 reset pid=%d away=60s", getpid());
	wait_alive(0);
	assert_int_equal(move(GANTRY_PUSH, 0, PART, NULL), -ENODEV);
	wait_until(server_is_dead(f.s))
		usleep(1000);
	assert_int_equal(gantry_region_add(f.s, mem, sizeof mem, &r), -ENODEV);
	assert_int_equal(gantry_channel_new(f.s, &c), -ENODEV);
	assert_true(said("is not back yet"));
	ctl("device mlx5_0 back");
	wait_alive(1);
	works_again();
	/* One that comes back as it was: queue pairs have to be reset. */
	ctl("device mlx5_0 lost");
	wait_alive(0);
	ctl("device mlx5_0 back");
	wait_alive(1);
	peer_stop(&f.peer);
	start_peer();
	works_again();
}

/* ---- threads ---- */

struct worker {
	pthread_t thread;
	unsigned nr;
	_Atomic uint64_t moves;
};
static _Atomic bool stop;

static void *
work(void *arg)
{
	struct worker *w = arg;
	size_t at = w->nr * 4 * PART;
	unsigned seed = w->nr + 1;

	while (!atomic_load(&stop)) {
		struct gantry_channel *c;
		struct gantry_region *r;
		struct gantry_done done[4];
		int left = 4;

		if (gantry_region_add(f.s, f.mem + at, 4 * PART, &r) < 0 || gantry_channel_new(f.s, &c) < 0)
			abort();
		for (int i = 0; i < 4; i++) {
			struct gantry_piece p = { r, f.mem + at + (size_t)i * PART, PART };

			fill(p.mem, PART, seed + (unsigned)i);
			if (gantry_channel_start(c, GANTRY_PUSH, &p, 1, remote(at + (size_t)i * PART),
						 f.token, NULL) < 0)
				abort();
		}
		while (left > 0) {
			int n;

			if (w->nr % 2)
				gantry_channel_wait(c, -1);
			n = gantry_channel_poll(c, done, 4);
			if (n < 0)
				abort();
			for (int i = 0; i < n; i++) {
				if (done[i].error)
					abort();
			}
			left -= n;
		}
		if (memcmp(f.mem + at, f.peer.mem + at, 4 * PART) != 0)
			abort();
		if (gantry_channel_move(c, GANTRY_PULL, &(struct gantry_piece){ r, f.mem + at, PART }, 1,
					remote(at), f.token, GANTRY_INTERVAL, NULL) != PART)
			abort();
		if (gantry_channel_free(c) != 0 || gantry_region_del(r) != 0)
			abort();
		w->moves += 5;
		seed += 4;
	}
	return NULL;
}

/* Channels and regions come and go on four threads, each with a channel of its own. */
static void
four_threads(void **state)
{
	struct worker w[4] = { 0 };

	for (unsigned i = 0; i < 4; i++) {
		w[i].nr = i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		wait_until(w[i].moves >= 50)
			usleep(1000);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 4; i++)
		pthread_join(w[i].thread, NULL);
}

int
main(int argc, char **argv)
{
#define WITH(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH(lost_completion),
		WITH(lost_completion_asleep),
		WITH(lost_among_others),
		WITH(nobody_answers),
		WITH(no_longer_registered),
		WITH(in_the_middle),
		WITH(behind_the_queue),
		WITH(client_killed),
		WITH(fenced),
		WITH(used_up),
		WITH(no_way_there),
		WITH(port_down),
		WITH(one_of_two_ports),
		WITH(device_dies),
		WITH(device_away),
		WITH(four_threads),
	};

	peer_main(argc, argv);
	if (!getenv("PORTCTL")) {
		printf("no software NIC: run it by tests/server/repair.sh\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
