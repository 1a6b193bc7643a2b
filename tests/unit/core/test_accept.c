/* Accepting and spreading where it is not all smooth: no descriptors, a core that does not turn, many who
 * come and go. */
#include "rig.h"

/* A socket that is not connected yet. */
static int
unconnected(void)
{
	struct timeval tv = { .tv_sec = 10 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	return fd;
}

static void
connect_to(int fd, int port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)port) };

	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
}

#define FEW 120

/* All descriptors are used up: accepting pauses, without turning in circles, those who are in are served; and
 * it goes on when there are some again. */
static void
test_no_descriptors(void **state)
{
	struct rlimit was, few;
	int held[FEW], n = 0, in, out;
	struct cores *cs;
	uint64_t used;
	char c;

	/* The ring takes the limit of when accepting begins. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = FEW;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	make_conf(1, 1);
	cs = start();
	in = call(cs, 0);
	put_text(in, GET("/now"));
	expect_ok(in);
	out = unconnected();
	while ((held[n] = dup(in)) >= 0)
		assert_true(++n < FEW);
	assert_int_equal(errno, EMFILE);
	connect_to(out, cores_listen_port(cs, 0));
	put_text(out, GET("/now"));
	used = cpu_ns();
	usleep(500000);
	used = cpu_ns() - used;
	print_message("CPU in half a second without descriptors: %llu us\n",
		      (unsigned long long)(used / NS_PER_US));
	assert_true(used < 50 * NS_PER_MS);
	assert_int_equal(recv(out, &c, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	put_text(in, GET("/now"));
	expect_ok(in);
	while (n)
		close(held[--n]);
	expect_ok(out);
	close(out);
	close(in);
	finish(cs, NS_PER_S);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

#define MANY 64

static void
open_many(struct cores *cs, int *fd, int nr)
{
	for (int i = 0; i < nr; i++)
		fd[i] = call(cs, 0);
}

/* Until one connection is core 1's: it serves.  How many there are in all. */
static int
reach_second(struct cores *cs, int first[], int max)
{
	int nr = 0;

	do {
		if (nr == max)
			close(first[--nr]);
		wait_for(all_connections(cs) == nr);
		first[nr] = call(cs, 0);
		nr++;
		wait_for(all_connections(cs) == nr);
	} while (connections(cs, 1) == 0);
	return nr;
}

/* Sockets on their way to a core count as its own: one that does not turn for a while is not given all of a
 * crowd. */
static void
test_crowd(void **state)
{
	int fd[MANY], first[4], nr;
	struct cores *cs;

	make_conf(2, 1);
	cs = start();
	/* Core 0 accepts; core 1 is kept busy. */
	nr = reach_second(cs, first, 4);
	assert_int_equal(connections(cs, 1), 1);
	put_text(first[nr - 1], GET("/block/1000"));
	wait_for(fake_req_counts.begun == 1);
	open_many(cs, fd, MANY);
	wait_for(all_connections(cs) == nr + MANY);
	print_message("%d + %d\n", connections(cs, 0), connections(cs, 1));
	assert_in_range(connections(cs, 0), MANY / 4, MANY / 4 * 3);
	expect_ok(first[nr - 1]);
	while (nr)
		close(first[--nr]);
	for (int i = 0; i < MANY; i++)
		close(fd[i]);
	finish(cs, NS_PER_S);
}

/* And no longer than until they are there: cores that many came to are as good as before when those are
 * gone. */
static void
test_crowds(void **state)
{
	int fd[MANY], first[4], nr;
	struct cores *cs;

	make_conf(2, 1);
	cs = start();
	nr = reach_second(cs, first, 4);
	while (nr)
		close(first[--nr]);
	wait_for(all_connections(cs) == 0);
	for (int round = 0; round < 5; round++) {
		open_many(cs, fd, MANY);
		wait_for(all_connections(cs) == MANY);
		print_message("%d + %d\n", connections(cs, 0), connections(cs, 1));
		assert_in_range(connections(cs, 0), MANY / 4, MANY / 4 * 3);
		for (int i = 0; i < MANY; i++)
			close(fd[i]);
		wait_for(all_connections(cs) == 0);
	}
	finish(cs, NS_PER_S);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_crowds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
