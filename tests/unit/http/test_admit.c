/* SPDX-License-Identifier: Apache-2.0 */
/* Who may have a connection, and for how long without a request: heads that do not end, tables that are full,
 * addresses that have many. */
#include "serve.h"

#include "base/tcp.h"
#include "tests/fake/hook_clock.h"

#include <arpa/inet.h>
#include <poll.h>
#include <semaphore.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define HEAD_NS (300 * NS_PER_MS)
#define COARSE_NS (20 * NS_PER_MS) /* the kernel says when bytes came in its ticks */

/* Returns a connection that comes from 127.0.0.n. */
static int
client_from(struct serve *s, int n)
{
	struct sockaddr_in from = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (unsigned)n - 1) };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)s->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval tv = { .tv_sec = 60 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	return fd;
}

/* Has the other side closed, or said anything? */
static bool
stirs(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static void
expect_served(int fd)
{
	struct answer a;

	put_text(fd, GET("/now"));
	assert_true(get_answer(fd, &a, false, NULL));
	assert_int_equal(a.status, 200);
}

/* Drips text, again from its beginning at its end, until the other side closes; returns how long that
 * took. */
static uint64_t
drip(int fd, const char *text)
{
	uint64_t began = clock_ns();

	for (size_t i = 0; !stirs(fd); i++) {
		assert_true(clock_ns() - began < 60 * NS_PER_S);
		if (send(fd, text + i % strlen(text), 1, MSG_NOSIGNAL) < 0)
			break;
		usleep(10000);
	}
	return clock_ns() - began;
}

/* A head has limits.head, however it is cut. */
static void
test_late_head(void **state)
{
	static const char *const texts[] = { "GET /now HTTP/1.1\r\nHost: x\r\nX: ", "abcdefgh", "\r\n", "G" };
	struct serve *s;
	int silent, fd;
	struct answer a;

	serve_head_ns = HEAD_NS;
	s = serve_start(16, 60 * NS_PER_S);
	silent = client(s);
	for (int round = 0; round < 8; round++) {
		fd = client(s);
		/* Behind a request, too. */
		if (round >= 4)
			expect_served(fd);
		assert_true(drip(fd, texts[round % 4]) >= HEAD_NS - COARSE_NS);
		/* What was on its way to it may have met a reset; nothing but the one answer came. */
		if (get_answer(fd, &a, false, NULL)) {
			assert_int_equal(a.status, 408);
			assert_true(a.has_close);
		}
		close(fd);
		wait_for(s->conns == 1);
	}
	/* One that says nothing more. */
	for (int round = 0; round < 2; round++) {
		uint64_t began = clock_ns();

		fd = client(s);
		if (round)
			put_text(fd, GET("/now") GET("/now") "GET /half");
		else
			put_text(fd, "G");
		for (int i = 0; i < 2 * round; i++)
			expect_status(fd, &a, 200);
		expect_status(fd, &a, 408);
		assert_true(a.has_close);
		assert_true(clock_ns() - began >= HEAD_NS - COARSE_NS);
		expect_end(fd);
		close(fd);
		wait_for(s->conns == 1);
	}
	assert_int_equal(s->stats.events[STATS_CLOSED_LATE_HEAD], 10);
	/* And one that says nothing at all is idle. */
	assert_false(stirs(silent));
	expect_served(silent);
	close(silent);
	serve_stop(s);
	serve_head_ns = 60 * NS_PER_S;
}

/* What is no head has its own limits: bodies that drip, answers that wait, connections that are kept. */
static void
test_not_a_head(void **state)
{
	struct serve *s;
	int body, waits, kept;
	struct answer a;

	serve_head_ns = HEAD_NS;
	s = serve_start(16, 60 * NS_PER_S);
	body = client(s);
	waits = client(s);
	kept = client(s);
	expect_served(kept);
	put_text(body, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 60\r\n\r\n");
	put_text(waits, GET("/delay/900"));
	for (int i = 0; i < 60; i++) {
		put_text(body, "b");
		hook_clock_skip(15 * NS_PER_MS);
	}
	expect_status(body, &a, 200);
	expect_status(waits, &a, 200);
	expect_served(body);
	expect_served(waits);
	hook_clock_skip(2 * HEAD_NS);
	expect_served(kept);
	expect_served(body);
	assert_int_equal(s->stats.events[STATS_CLOSED_LATE_HEAD], 0);
	close(body);
	close(waits);
	close(kept);
	serve_stop(s);
	serve_head_ns = 60 * NS_PER_S;
}

/* With all connections taken a new one gets in: the oldest goes that has not sent a whole head. */
static void
test_half_heads_go(void **state)
{
	enum { N = 8 };
	struct serve *s = serve_start(N, 60 * NS_PER_S);
	int good = client_from(s, 2), half[N + 40];

	expect_served(good);
	for (int i = 0; i < N + 40; i++) {
		half[i] = client(s);
		put_text(half[i], i % 2 ? "GET /now HT" : "G");
		if (i < N - 1)
			wait_for(s->conns == i + 2);
	}
	/* In the order in which they came. */
	wait_for(s->stats.events[STATS_CLOSED_HALF_HEAD] == 41);
	for (int i = 0; i < 41; i++)
		wait_for(stirs(half[i]));
	for (int i = 41; i < N + 40; i++)
		assert_false(stirs(half[i]));
	wait_for(s->conns == N);
	/* Who was in still is, and who comes is served. */
	expect_served(good);
	for (int i = 0; i < 3; i++) {
		int fd = client_from(s, 3);

		expect_served(fd);
		close(fd);
	}
	assert_int_equal(s->stats.events[STATS_CLOSED_NO_ROOM], 0);
	assert_int_equal(s->stats.events[STATS_CLOSED_IDLE], 0);
	close(good);
	for (int i = 0; i < N + 40; i++)
		close(half[i]);
	wait_for(s->conns == 0);
	serve_stop(s);
}

/* Then the oldest idle one of the address that has most. */
static void
test_idle_goes(void **state)
{
	struct serve *s = serve_start(8, 60 * NS_PER_S);
	int two[5], three[3], fd[3];

	for (int i = 0; i < 3; i++) {
		three[i] = client_from(s, 3);
		expect_served(three[i]);
	}
	for (int i = 0; i < 5; i++) {
		two[i] = client_from(s, 2);
		expect_served(two[i]);
	}
	/* The oldest is not the one that came first: idle begins with the last answer. */
	expect_served(two[0]);
	fd[0] = client_from(s, 4);
	expect_served(fd[0]);
	wait_for(stirs(two[1]));
	fd[1] = client_from(s, 5);
	expect_served(fd[1]);
	wait_for(stirs(two[2]));
	/* It has as many now as the other; the third goes to one of the two, and that is no longer idle
	 * long. */
	expect_end(two[1]);
	expect_end(two[2]);
	fd[2] = client_from(s, 6);
	expect_served(fd[2]);
	wait_for(s->stats.events[STATS_CLOSED_IDLE] == 3);
	assert_int_equal(stirs(two[3]) + stirs(three[0]), 1);
	assert_false(stirs(two[0]) || stirs(two[4]) || stirs(three[1]) || stirs(three[2]));
	assert_int_equal(s->stats.events[STATS_CLOSED_NO_ROOM], 0);
	for (int i = 0; i < 5; i++)
		close(two[i]);
	for (int i = 0; i < 3; i++) {
		close(three[i]);
		close(fd[i]);
	}
	wait_for(s->conns == 0);
	serve_stop(s);
}

static struct serve *crowded;
static sem_t stopped, go_on;

/* Tells the connection to go, as somebody who comes to a full table has it done. */
static void
dismiss_first(struct msg *m)
{
	sem_post(&stopped);
	while (sem_wait(&go_on) < 0)
		;
	conn_dismiss(container_of(list_first(&crowded->http->open), struct hconn, link));
}

/* An idle one that is told to go when its next requests are in already: the first is answered, and the
 * answer says that it was the last.  Otherwise who goes on asking stays, beside the one that came in its
 * place. */
static void
test_told_to_go(void **state)
{
	struct msg m;
	struct answer a;
	int fd;

	crowded = serve_start(3, 60 * NS_PER_S);
	fd = client(crowded);
	expect_served(fd);
	sem_init(&stopped, 0, 0);
	sem_init(&go_on, 0, 0);
	mailbox_post(&crowded->mb, &m, dismiss_first);
	while (sem_wait(&stopped) < 0)
		;
	put_text(fd, GET("/now") GET("/now"));
	sem_post(&go_on);
	assert_true(get_answer(fd, &a, false, NULL));
	assert_int_equal(a.status, 200);
	assert_true(a.has_close);
	expect_end(fd);
	close(fd);
	wait_for(crowded->conns == 0);
	serve_stop(crowded);
	sem_destroy(&stopped);
	sem_destroy(&go_on);
}

/* A request is never ended for somebody who comes later. */
static void
test_requests_stay(void **state)
{
	struct serve *s = serve_start(3, 60 * NS_PER_S);
	int fd[3], more;
	struct answer a;

	for (int i = 0; i < 3; i++) {
		fd[i] = client(s);
		put_text(fd[i], GET("/delay/50000"));
	}
	wait_for(fake_req_counts.begun == 3);
	more = client_from(s, 2);
	expect_end(more);
	assert_int_equal(s->stats.events[STATS_CLOSED_NO_ROOM], 1);
	hook_clock_skip(50 * NS_PER_S);
	for (int i = 0; i < 3; i++)
		expect_status(fd[i], &a, 200);
	close(more);
	more = client_from(s, 2);
	expect_served(more);
	close(more);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	serve_stop(s);
}

/* Many in little time, more than there are connections to spare: somebody is always served in between. */
static void
test_flood(void **state)
{
	enum { N = 400 };
	struct serve *s = serve_start(40, 60 * NS_PER_S);
	static int fd[N];

	for (int i = 0; i < N; i++) {
		fd[i] = client(s);
		send(fd[i], "G", 1, MSG_NOSIGNAL);
		if (i % 50 == 49) {
			int good = client_from(s, 2);

			expect_served(good);
			close(good);
		}
	}
	for (int i = 0; i < N; i++)
		close(fd[i]);
	wait_for(s->conns == 0);
	serve_stop(s);
}

/* limits.connections_per_address: one too many is refused, and others are none the worse. */
static void
test_per_address(void **state)
{
	struct serve *s;
	int fd[4], more;

	serve_per_address = 4;
	s = serve_start(16, 60 * NS_PER_S);
	for (int i = 0; i < 4; i++) {
		fd[i] = client_from(s, 2);
		expect_served(fd[i]);
	}
	more = client_from(s, 2);
	expect_end(more);
	close(more);
	assert_int_equal(s->stats.events[STATS_CLOSED_ADDRESS], 1);
	more = client_from(s, 3);
	expect_served(more);
	close(more);
	close(fd[0]);
	wait_for(s->conns == 3);
	fd[0] = client_from(s, 2);
	expect_served(fd[0]);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	wait_for(s->conns == 0);
	serve_stop(s);
	serve_per_address = 0;
}

static void
test_peers(void **state)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6 }, b, c;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001) };
	struct peer *p[5];
	struct peers *t;

	inet_pton(AF_INET6, "2001:db8:0:1::1", &a.sin6_addr);
	b = c = a;
	inet_pton(AF_INET6, "2001:db8:0:1:ffff::2", &b.sin6_addr);
	inet_pton(AF_INET6, "2001:db8:0:2::1", &c.sin6_addr);
	assert_int_equal(peers_new(4, &t), 0);
	assert_int_equal(peers_add(t, (struct sockaddr *)&a, 2, &p[0]), 0);
	assert_int_equal(peers_add(t, (struct sockaddr *)&b, 2, &p[1]), 0);
	assert_ptr_equal(p[0], p[1]);
	assert_int_equal(peers_count(p[0]), 2);
	assert_int_equal(peers_add(t, (struct sockaddr *)&a, 2, &p[4]), -EUSERS);
	assert_int_equal(peers_add(t, (struct sockaddr *)&c, 2, &p[2]), 0);
	assert_int_equal(peers_add(t, (struct sockaddr *)&v4, 2, &p[3]), 0);
	assert_true(p[2] != p[0] && p[3] != p[0] && p[3] != p[2]);
	assert_int_equal(peers_count(p[3]), 1);
	for (int i = 0; i < 4; i++)
		peers_remove(t, p[i]);
	/* As many addresses as there may be connections. */
	for (int i = 0; i < 4; i++) {
		v4.sin_addr.s_addr = htonl(0x0b000000 + (unsigned)i);
		assert_int_equal(peers_add(t, (struct sockaddr *)&v4, 0, &p[i]), 0);
	}
	v4.sin_addr.s_addr = htonl(0x0c000000);
	assert_int_equal(peers_add(t, (struct sockaddr *)&v4, 0, &p[4]), -ENOSPC);
	for (int i = 0; i < 4; i++)
		peers_remove(t, p[i]);
	peers_free(t);
}

/* The kernel counts what came, whether somebody has read it or not. */
static void
test_came(void **state)
{
	struct serve *s = serve_start(4, 60 * NS_PER_S);
	int fd = client(s), pair[2];
	struct tcp_came came;

	assert_int_equal(tcp_came(fd, &came), 0);
	assert_int_equal(came.bytes, 0);
	put_text(fd, GET("/now"));
	wait_for(tcp_came(fd, &came) == 0 && came.bytes > 50);
	close(fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_true(tcp_came(pair[0], &came) < 0);
	close(pair[0]);
	close(pair[1]);
	serve_stop(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_head),     cmocka_unit_test(test_not_a_head),
		cmocka_unit_test(test_half_heads_go), cmocka_unit_test(test_idle_goes),
		cmocka_unit_test(test_told_to_go),    cmocka_unit_test(test_requests_stay),
		cmocka_unit_test(test_flood),         cmocka_unit_test(test_per_address),
		cmocka_unit_test(test_peers),         cmocka_unit_test(test_came),
	};

	if (getenv("T"))
		cmocka_set_test_filter(getenv("T"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
