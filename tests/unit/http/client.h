/* SPDX-License-Identifier: Apache-2.0 */
/* The other side of the tests of http/ and core/: raw sockets on loopback, and answers taken apart. */
#ifndef GANTRY_TESTS_HTTP_CLIENT_H
#define GANTRY_TESTS_HTTP_CLIENT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/fake/wait.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Returns a connection to that port of this machine; a read of it fails after a minute. */
int client_of(int port);

/* Sends all of it, or fails the test. */
void put_bytes(int fd, const void *data, size_t len);
void put_text(int fd, const char *text);

/* Returns everything until the other side ends, terminated; the caller frees it.  *ret_err: 0 for a clean
 * end. */
char *get_all(int fd, size_t *ret_len, int *ret_err);

struct answer {
	int status;
	char head[8192];
	size_t body_len;
	long long content_length;
	int lengths; /* how often Content-Length came */
	bool has_close;
};

/* Returns the value of a header, whose name is in lower case, in out; or NULL. */
const char *answer_header(const struct answer *a, const char *name, char *out, size_t cap);

/* Reads one answer: its head, byte by byte so that nothing of the next is taken, and its body into *ret_body
 * (may be NULL: thrown away).  False: the connection ended (or failed: errno) before the head was in. */
bool get_answer(int fd, struct answer *a, bool is_head, char **ret_body);

/* Reads one answer, which has that status and a body that does not matter. */
void expect_status(int fd, struct answer *a, int status);

/* Asserts that the other side closed without a reset, and said nothing more. */
void expect_end(int fd);

#define wait_for(cond)                                                                                       \
	do {                                                                                                 \
		wait_until(cond)                                                                             \
			usleep(1000);                                                                        \
	} while (0)

#endif
