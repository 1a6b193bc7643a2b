/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for the tests of http/: one thread with a loop of its own, on loopback, over the scripted requests
 * of fake_req. The test's thread is the client, with raw sockets.
 */
#ifndef GANTRY_TESTS_HTTP_SERVE_H
#define GANTRY_TESTS_HTTP_SERVE_H

#include "tests/fake/fake_req.h"

#include "client.h"

#include "base/clock.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "http/http_int.h"
#include "ring/ring.h"
#include "stats/stats.h"

#include <pthread.h>

struct serve {
	struct conf conf;
	struct ring *ring;
	struct http *http;
	struct peers *peers;
	struct reqs *reqs;
	struct timers timers;
	struct mailbox mb;
	struct ring_op accept_op, mail_op;
	struct stats_core stats;
	int lfd, port;
	pthread_t thread;
	_Atomic bool ready, stop, drain, abandon;
	_Atomic int conns;
	_Atomic int heads_begun, heads_used, long_targets_begun, long_targets_used; /* told before conns */
	_Atomic uint64_t turns;
	struct msg wake;
};

/* Is limits.s3_progress of the servers that are started from now on; a minute at first. */
extern uint64_t serve_progress_ns;
/* Is limits.head of the servers that are started from now on; a minute at first. */
extern uint64_t serve_head_ns;
/* Is their limits.connections_per_address; 0 at first. */
extern int serve_per_address;
/* Is the block of their listener's balancers; NULL at first: there are none. */
extern const char *serve_proxy;

/* Starts a server for so many connections at a time, which may be idle for so long. */
struct serve *serve_start(int connections, uint64_t idle_ns);

/* Wakes the server's thread, so that it looks at what the test has set. */
void serve_nudge(struct serve *s);

/* Ends the server, asserts that nothing of it is left, and frees it. */
void serve_stop(struct serve *s);

/* Returns a new connection to the server. */
int client(struct serve *s);

#endif
