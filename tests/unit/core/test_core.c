/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores as main sees them: starting, serving over real sockets, spreading, sleeping, being stuck, draining,
 * stopping; over the scripted requests of fake_req and the scripted channel, without a store.
 */
#include "rig.h"

#include "tests/fake/hook_clock.h"

#include <fcntl.h>
#include <pthread.h>

static void
test_serve(void **state)
{
	struct cores *cs;
	int fd;

	make_conf(2, 3);
	cs = start();
	assert_int_equal(cores_nr(cs), 2);
	for (int i = 0; i < 3; i++) {
		assert_true(cores_listen_port(cs, i) > 0);
		fd = call(cs, i);
		put_text(fd, GET("/now"));
		expect_ok(fd);
		put_text(fd, GET("/delay/5"));
		expect_ok(fd);
		close(fd);
	}
	wait_for(all_connections(cs) == 0);
	/* Completions of the log are looked for between requests. */
	assert_int_equal(fake_req_counts.between, fake_req_counts.begun);
	finish(cs, NS_PER_S);
}

/* A single core takes completions of the log in its turns alone. */
static void
test_serve_alone(void **state)
{
	int fd;
	struct cores *cs;

	make_conf(1, 1);
	cs = start();
	fd = call(cs, 0);
	put_text(fd, GET("/now"));
	expect_ok(fd);
	close(fd);
	wait_for(all_connections(cs) == 0);
	assert_true(fake_req_counts.begun > 0);
	assert_int_equal(fake_req_counts.between, 0);
	finish(cs, NS_PER_S);
}

/* Connections are spread: neither core is left out, neither has nearly all. */
static void
test_spread(void **state)
{
	enum { N = 64 };
	struct cores *cs;
	struct core_info info;
	int fd[N];

	make_conf(2, 1);
	cs = start();
	for (int i = 0; i < N; i++) {
		fd[i] = call(cs, 0);
		put_text(fd[i], GET("/now"));
		expect_ok(fd[i]);
	}
	wait_for(all_connections(cs) == N);
	print_message("%d + %d\n", connections(cs, 0), connections(cs, 1));
	assert_in_range(connections(cs, 0), N / 4, N / 4 * 3);
	cores_get_info(cs, 1, &info);
	assert_int_equal(info.cpu, 1);
	assert_true(info.bufs_total[BUF_LARGE] >= 1 &&
		    info.bufs_avail[BUF_LARGE] == info.bufs_total[BUF_LARGE]);
	assert_int_equal(info.bufs_low[BUF_SMALL], info.bufs_total[BUF_SMALL]);
	assert_true(info.http_bufs_total >= 1 && info.http_bufs_avail == info.http_bufs_total);
	for (int i = 0; i < N; i++)
		close(fd[i]);
	wait_for(all_connections(cs) == 0);
	finish(cs, NS_PER_S);
}

/* Idle cores, with idle connections, sleep. */
static void
test_idle(void **state)
{
	struct cores *cs;
	uint64_t hops;
	int fd[10];
	struct core_info info;

	make_conf(2, 2);
	cs = start();
	for (int i = 0; i < 10; i++) {
		fd[i] = call(cs, i % 2);
		put_text(fd[i], GET("/delay/1"));
		expect_ok(fd[i]);
	}
	hook_clock_skip(50 * NS_PER_MS);
	hops = hook_clock_hops();
	hook_clock_skip(NS_PER_S);
	hops = hook_clock_hops() - hops;
	print_message("woken in one idle second: %llu times\n", (unsigned long long)hops);
	assert_true(hops < 20);
	cores_get_info(cs, 0, &info);
	assert_true(info.asleep);
	assert_true(info.turned_ago_ns > 500 * NS_PER_MS);
	for (int i = 0; i < 10; i++)
		close(fd[i]);
	finish(cs, NS_PER_S);
}

static void
on_line(void *cookie, const char *text)
{
	char *all = cookie;

	strcat(all, text);
	strcat(all, "\n");
}

static bool
dumps_both(struct cores *cs, char *all)
{
	all[0] = 0;
	cores_dump(cs, on_line, all);
	return strstr(all, "/delay/4000\n") && strstr(all, "/delay/4001\n");
}

static void
test_dump(void **state)
{
	struct cores *cs;
	char all[4096] = "";
	int fd[2];

	make_conf(2, 1);
	cs = start();
	for (int i = 0; i < 2; i++) {
		fd[i] = call(cs, 0);
		put_text(fd[i], i ? GET("/delay/4000") : GET("/delay/4001"));
	}
	wait_for(fake_req_counts.begun == 2);
	/* A core that has other work for longer than it is waited for is none the worse. */
	wait_for(dumps_both(cs, all));
	hook_clock_skip(4001 * NS_PER_MS);
	for (int i = 0; i < 2; i++) {
		expect_ok(fd[i]);
		close(fd[i]);
	}
	cores_stop(cs, NS_PER_S);
	all[0] = 0;
	cores_dump(cs, on_line, all); /* nobody left, and nobody waited for */
	assert_string_equal(all, "");
	finish(cs, 0);
}

/* A core whose thread is kept from turning shows as such; the other one serves. */
static void
test_stuck(void **state)
{
	struct cores *cs;
	char all[4096] = "";
	struct core_info info[2];
	uint64_t t;
	int fd;

	make_conf(2, 1);
	cs = start();
	fd = call(cs, 0);
	put_text(fd, GET("/block/6000"));
	wait_for(fake_req_counts.begun == 1);
	hook_clock_skip(300 * NS_PER_MS);
	for (int i = 0; i < 2; i++)
		cores_get_info(cs, i, &info[i]);
	assert_int_equal(info[0].asleep + info[1].asleep, 1);
	assert_true(info[info[0].asleep ? 1 : 0].turned_ago_ns > 200 * NS_PER_MS);
	t = clock_ns();
	cores_dump(cs, on_line, all);
	assert_true(clock_ns() - t < 4000 * NS_PER_MS);
	assert_non_null(strstr(all, "does not answer"));
	hook_clock_skip(6 * NS_PER_S);
	expect_ok(fd);
	close(fd);
	finish(cs, NS_PER_S);
}

struct stopper {
	struct cores *cs;
	uint64_t drain_ns;
	_Atomic bool done;
};

static void *
stop_thread(void *arg)
{
	struct stopper *s = arg;

	cores_stop(s->cs, s->drain_ns);
	s->done = true;
	return NULL;
}

/* Stopping lets a running request end and closes idle connections. */
static void
test_drain(void **state)
{
	struct stopper s = { .drain_ns = 30 * NS_PER_S };
	struct answer a;
	pthread_t t;
	int busy, idle;

	make_conf(2, 1);
	s.cs = start();
	busy = call(s.cs, 0);
	idle = call(s.cs, 0);
	put_text(idle, GET("/now"));
	expect_ok(idle);
	put_text(busy, GET("/delay/4000"));
	wait_for(fake_req_counts.begun == 2);
	assert_int_equal(pthread_create(&t, NULL, stop_thread, &s), 0);
	expect_end(idle);
	assert_false(s.done);
	hook_clock_skip(4 * NS_PER_S);
	assert_true(get_answer(busy, &a, false, NULL));
	assert_int_equal(a.status, 200);
	assert_true(a.has_close);
	pthread_join(t, NULL);
	close(busy);
	close(idle);
	finish(s.cs, 0);
}

/* Another configuration reaches every core without a connection being dropped, and the one before goes when
 * nobody looks at it; draining is told the same way and taken back. */
static void
test_news(void **state)
{
	struct conf *next = calloc(1, sizeof *next);
	struct cores *cs;
	char all[1024];
	int fd, rc;

	make_conf(2, 1);
	cs = start();
	fd = call(cs, 0);
	put_text(fd, GET("/now"));
	expect_ok(fd);
	assert_int_equal(conf.refs, 2);
	memcpy(next, &conf, sizeof *next);
	next->refs = 0;
	next->limits.idle_ns = 50 * NS_PER_S;
	assert_int_equal(fake_req_counts.confs, 2);
	assert_int_equal(cores_set_conf(cs, next, NULL, 60 * NS_PER_S), 2);
	assert_int_equal(fake_req_counts.confs, 4);
	assert_int_equal(conf.refs, 0);
	assert_int_equal(next->refs, 2);
	put_text(fd, GET("/now"));
	expect_ok(fd);
	/* The idle time is another now, for this old connection too. */
	hook_clock_skip(10 * NS_PER_S);
	assert_int_equal(recv(fd, all, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	hook_clock_skip(40 * NS_PER_S);
	expect_end(fd);
	close(fd);
	assert_int_equal(cores_set_conf(cs, &conf, NULL, 60 * NS_PER_S), 2);
	assert_int_equal(next->refs, 0);
	free(next);
	assert_int_equal(cores_trace(cs, "here", 60 * NS_PER_S), 0);
	assert_int_equal(cores_trace(cs, "nowhere", 60 * NS_PER_S), -ENOENT);
	all[0] = 0;
	while ((rc = cores_show(cs, "here", on_line, all)) == -EAGAIN)
		;
	assert_int_equal(rc, 0);
	assert_non_null(strstr(all, "id=here"));
	assert_non_null(strstr(all, "us=1 did=runs"));
	while ((rc = cores_show(cs, "nowhere", on_line, all)) == -EAGAIN)
		;
	assert_int_equal(rc, -ENOENT);
	assert_int_equal(cores_show(cs, "", on_line, all), -ENOENT);
	/* There is no store. */
	assert_int_equal(cores_walk(cs, WALK_SCRUB, true, 60 * NS_PER_S), -ENOSYS);
	assert_int_equal(cores_drain(cs, true, 60 * NS_PER_S), 2);
	assert_int_equal(cores_drain(cs, false, 60 * NS_PER_S), 2);
	finish(cs, NS_PER_S);
	assert_int_equal(conf.refs, 0);
}

/* What does not end is cut off: when the drain time is over, or at once at the second signal. */
static void
test_stop_now(void **state)
{
	for (int now = 0; now < 2; now++) {
		struct stopper s = { .drain_ns = now ? 600 * NS_PER_S : 30 * NS_PER_S };
		pthread_t t;
		uint64_t began;
		int fd[5];

		make_conf(2, 1);
		s.cs = start();
		for (int i = 0; i < 5; i++)
			fd[i] = call(s.cs, 0);
		put_text(fd[0], GET("/delay/1000000"));
		put_text(
			fd[1],
			"PUT /never HTTP/1.1\r\nHost: x\r\nx-amz-rdma-token: t\r\nContent-Length: 0\r\n\r\n");
		put_text(fd[2], GET("/stream/1000000000"));
		put_text(fd[3], "PUT /slow/10/100000 HTTP/1.1\r\nHost: x\r\nContent-Length: "
				"10000\r\n\r\nabcdefghijklmnop");
		wait_for(fake_req_counts.begun == 4);
		began = clock_ns();
		assert_int_equal(pthread_create(&t, NULL, stop_thread, &s), 0);
		if (now) {
			hook_clock_skip(100 * NS_PER_MS);
			assert_false(s.done);
			cores_stop_now(s.cs);
		} else {
			/* The drain has begun when the idle one ends. */
			expect_end(fd[4]);
			assert_false(s.done);
			hook_clock_skip(s.drain_ns);
		}
		pthread_join(t, NULL);
		assert_in_range(clock_ns() - began, 80 * NS_PER_MS, 300 * NS_PER_S);
		for (int i = 0; i < 5; i++)
			close(fd[i]);
		finish(s.cs, 0);
	}
}

/* Stopping while clients come and go all the time. */
struct churn {
	int port;
	_Atomic bool stop;
	_Atomic int served;
};

static void *
churn_thread(void *arg)
{
	struct churn *ch = arg;
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)ch->port) };

	while (!ch->stop) {
		struct timeval tv = { .tv_sec = 2 };
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		char buf[4096];

		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
		if (connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0) {
			for (int i = 0; i < 3; i++) {
				if (send(fd, GET("/delay/1"), sizeof GET("/delay/1") - 1, MSG_NOSIGNAL) < 0)
					break;
				if (recv(fd, buf, sizeof buf, 0) <= 0)
					break;
				ch->served++;
			}
		}
		close(fd);
	}
	return NULL;
}

static void
test_stop_in_churn(void **state)
{
	for (int round = 0; round < 3; round++) {
		struct churn ch = { 0 };
		struct cores *cs;
		pthread_t t[4];

		make_conf(2, 1);
		cs = start();
		ch.port = cores_listen_port(cs, 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&t[i], NULL, churn_thread, &ch), 0);
		wait_for(ch.served > 100);
		cores_stop(cs, 100 * NS_PER_MS);
		ch.stop = true;
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		finish(cs, 0);
	}
}

static void
test_bad_listeners(void **state)
{
	struct cores *cs = NULL;
	struct sockaddr_in *sa;
	char err[256];
	int fd, fds[2] = { -1, -1 };

	/* In use: the address is named. */
	make_conf(1, 1);
	sa = (struct sockaddr_in *)&conf.listen[0].sa;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)sa, sizeof *sa), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)sa, &(socklen_t){ sizeof *sa }), 0);
	conf.listen[0].address = "the.address:1";
	assert_int_equal(try_start(&cs, NULL, err, sizeof err), -EADDRINUSE);
	assert_non_null(strstr(err, "the.address:1"));
	close(fd);
	/* Not ours; the second of two: the first is closed again. */
	make_conf(2, 2);
	sa = (struct sockaddr_in *)&conf.listen[1].sa;
	sa->sin_addr.s_addr = inet_addr("192.0.2.1");
	assert_int_equal(try_start(&cs, NULL, err, sizeof err), -EADDRNOTAVAIL);
	/* Handed in, but no listener. */
	make_conf(1, 1);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(try_start(&cs, fds, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "handed in"));
	close(fds[0]);
}

/* A listening socket from outside, non-blocking as some managers have them. */
static void
test_handed_in(void **state)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct cores *cs;
	char err[256];
	int fds[2] = { -1, -1 }, fd;

	make_conf(2, 2);
	fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(fds[1], (struct sockaddr *)&sa, sizeof sa), 0);
	assert_int_equal(listen(fds[1], 10), 0);
	assert_int_equal(try_start(&cs, fds, err, sizeof err), 0);
	for (int i = 0; i < 2; i++) {
		fd = call(cs, i);
		put_text(fd, GET("/now"));
		expect_ok(fd);
		close(fd);
	}
	finish(cs, NS_PER_S);
	/* Still the manager's. */
	assert_int_equal(fcntl(fds[1], F_GETFD), FD_CLOEXEC);
	close(fds[1]);
}

/* "[::1]" alone, and "*" for both families, whose IPv4 peers have IPv4 addresses (fake_req checks that they
 * agree). */
static void
test_families(void **state)
{
	struct sockaddr_in6 *sa;
	struct cores *cs;
	int fd;

	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		skip();
	make_conf(1, 1);
	sa = (struct sockaddr_in6 *)&conf.listen[0].sa;
	*sa = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT };
	conf.listen[0].sa_len = sizeof *sa;
	conf.listen[0].address = "*:0";
	cs = start();
	sa->sin6_addr = in6addr_loopback;
	sa->sin6_port = htons((uint16_t)cores_listen_port(cs, 0));
	if (connect(fd, (struct sockaddr *)sa, sizeof *sa) == 0) {
		put_text(fd, GET("/now"));
		expect_ok(fd);
	}
	close(fd);
	fd = call(cs, 0);
	put_text(fd, GET("/now"));
	expect_ok(fd);
	close(fd);
	finish(cs, NS_PER_S);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serve),         cmocka_unit_test(test_serve_alone),
		cmocka_unit_test(test_spread),        cmocka_unit_test(test_idle),
		cmocka_unit_test(test_dump),          cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_drain),         cmocka_unit_test(test_news),
		cmocka_unit_test(test_stop_now),      cmocka_unit_test(test_stop_in_churn),
		cmocka_unit_test(test_bad_listeners), cmocka_unit_test(test_handed_in),
		cmocka_unit_test(test_families),
	};

	if (getenv("T"))
		cmocka_set_test_filter(getenv("T"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
