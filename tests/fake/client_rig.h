/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of libgantry stand on: a small HTTP server in the test's own process that says exactly what
 * a test wants, a context and a buffer per test, and the software NIC under all of it.
 */
#ifndef GANTRY_TESTS_CLIENT_RIG_H
#define GANTRY_TESTS_CLIENT_RIG_H

#include "client/client_int.h"
#include "tests/fake/wait.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "token/token.h"

#include <infiniband/verbs.h>

struct request {
	char head[4096];
	char method[16], target[256];
	char *body;
	size_t body_len;
	int nr; /* how many came before it in this test */
};

/* Answers one request; runs on a thread of its connection. */
typedef void serve_fn(int fd, const struct request *rq);
extern _Atomic(serve_fn *) serve;
extern _Atomic bool hold; /* answers wait while it is set */
extern char url[64];      /* of an object on the server */

bool header_of(const struct request *rq, const char *name, char *out, size_t cap);
bool token_of(const struct request *rq, struct token *t);
void answer(int fd, const char *text);

int rig_start(void **state); /* of the group: the server */
int rig_stop(void **state);

#define BUF_LEN 100000
struct fix {
	struct gantry *g;
	unsigned char *buf; /* BUF_LEN known bytes */
	struct gantry_result res;
};

int open_with(struct fix *f, unsigned flags, enum gantry_dialect d, unsigned timeout_ms);
int setup(void **state);
int teardown(void **state);

/* Writes 'x' to the first byte of a token's window, as a server's NIC would: the completion's status. */
enum ibv_wc_status write_to(const struct port *p, const struct token *t);

/* The first thing in main(): starts the program again with the software NIC's libraries in front, in a fabric
 * of its own. Exits with 77 when they are not built. */
void start_on_the_nic(char **argv);
/* The last: removes the fabric; the exit status. */
int end_on_the_nic(int failed);

#endif
