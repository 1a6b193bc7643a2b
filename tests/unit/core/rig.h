/* SPDX-License-Identifier: Apache-2.0 */
/* Cores over scripted requests: what the tests of core/ as main sees it share. */
#ifndef GANTRY_TESTS_CORE_RIG_H
#define GANTRY_TESTS_CORE_RIG_H

#include "tests/fake/fake_req.h"
#include "tests/unit/http/client.h"

#include "base/buf.h"
#include "core/core.h"
#include "stats/stats.h"

#include <arpa/inet.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

/* Are what the cores are started with, until finish(). */
extern struct conf conf;
extern struct stats *stats;

/* Makes conf anew, with listeners on ports that the kernel chooses. */
void make_conf(int cores, int listeners);
/* Starts the cores of conf, on sockets that were handed in if fds says so; as cores_start(). */
int try_start(struct cores **ret_cores, const int *fds, char *err, size_t err_len);
/* Starts the cores of conf, or fails the test. */
struct cores *start(void);
/* Stops and frees the cores, and asserts that every request has ended. */
void finish(struct cores *cs, uint64_t drain_ns);

/* Returns a new connection to a listener. */
int call(struct cores *cs, int listener);
/* Reads one answer, which is a 200. */
void expect_ok(int fd);

/* Returns how many connections a core has, or all of them. */
int connections(struct cores *cs, int core);
int all_connections(struct cores *cs);

#endif
