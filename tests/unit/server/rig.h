/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server on a device, a client's window in another process, and what the server has said: what test_channel.c
 * and test_repair.c work with.  Included once.
 */
#ifndef GANTRY_TESTS_SERVER_RIG_H
#define GANTRY_TESTS_SERVER_RIG_H

#include "tests/fake/nic_trace.h"
#include "tests/fake/peer.h"
#include "tests/fake/wait.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "server/server_int.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW (4u << 20)
#define DC_KEY 0xffeeddccull

static struct {
	struct gantry_server_params p;
	struct gantry_server *s;
	struct gantry_region *r;
	struct gantry_channel *c;
	struct peer peer;
	char token[TOKEN_DC_LEN + 1];
	unsigned char *mem; /* the region: WINDOW bytes, and not aligned */
	pthread_mutex_t lock;
	char lines[1 << 16];
	size_t len;
} f = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
on_line(void *cookie, enum gantry_server_log level, const char *text)
{
	assert_true(cookie == &f);
	pthread_mutex_lock(&f.lock);
	if (f.len + strlen(text) + 4 < sizeof f.lines)
		f.len += (size_t)sprintf(f.lines + f.len, "%c %s\n", "EID"[level], text);
	pthread_mutex_unlock(&f.lock);
}

/* Forgets what was said. */
static inline void
forget(void)
{
	pthread_mutex_lock(&f.lock);
	f.len = 0;
	f.lines[0] = 0;
	pthread_mutex_unlock(&f.lock);
}

/* What was said since has this in one of its lines. */
static inline bool
said(const char *what)
{
	bool is;

	pthread_mutex_lock(&f.lock);
	is = strstr(f.lines, what);
	if (!is)
		fprintf(stderr, "\"%s\" was not said, but:\n%s", what, f.lines);
	pthread_mutex_unlock(&f.lock);
	return is;
}

static inline void
defaults(void)
{
	gantry_server_defaults(&f.p, sizeof f.p);
	f.p.address = "mlx5_0";
	f.p.allow = "subnet, loopback, self, link-local"; /* those of the software NIC */
	f.p.log = on_line;
	f.p.log_cookie = &f;
	/* A try is 17 ms here, so that those that fail do so soon. */
	f.p.timeout = 12;
	f.p.retry_cnt = 1;
}

static inline void
open_server(void)
{
	int r = gantry_server_open(&f.p, &f.s);

	if (r < 0)
		fprintf(stderr, "%s\n", gantry_server_open_error());
	assert_int_equal(r, 0);
	assert_int_equal(gantry_region_add(f.s, f.mem, WINDOW, &f.r), 0);
	assert_int_equal(gantry_channel_new(f.s, &f.c), 0);
}

static inline void
close_server(void)
{
	assert_int_equal(gantry_channel_free(f.c), 0);
	assert_int_equal(gantry_region_del(f.r), 0);
	gantry_server_close(f.s);
	f.s = NULL;
	forget();
}

static inline void
start_peer(void)
{
	assert_int_equal(peer_start(&f.peer, WINDOW, DC_KEY), 0);
	assert_int_equal(token_format(&f.peer.tok, f.token), 0);
}

static inline int
set_up(void **state)
{
	static unsigned char memory[WINDOW + 64];

	f.mem = memory + 13;
	defaults();
	start_peer();
	open_server();
	forget();
	return 0;
}

static inline int
tear_down(void **state)
{
	close_server();
	peer_stop(&f.peer);
	return 0;
}

static inline void
fill(unsigned char *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525u + 1013904223u;
		p[i] = (unsigned char)(seed >> 24);
	}
}

/* So many work requests begin, and do not end. */
static inline void
wait_on_wire(const struct nic_trace *t, int nr)
{
	wait_until(nic_trace_count(t, false) == nr)
		usleep(1000);
}

/* Says whether fill() made these bytes, and nothing changed them since. */
static inline bool
is_filled(const unsigned char *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525u + 1013904223u;
		if (p[i] != (unsigned char)(seed >> 24))
			return false;
	}
	return true;
}

static inline struct gantry_piece
piece(size_t at, size_t len)
{
	return (struct gantry_piece){ .region = f.r, .mem = f.mem + at, .len = len };
}

static inline uint64_t
remote(size_t at)
{
	return f.peer.tok.addr + at;
}

/* Moves one piece, from or to the same place of the window. */
static inline ssize_t
move(enum gantry_dir d, size_t at, size_t len, int *status)
{
	struct gantry_piece p = piece(at, len);

	return gantry_channel_move(f.c, d, &p, 1, remote(at), f.token, GANTRY_INTERVAL, status);
}

static inline int
start(enum gantry_dir d, size_t at, size_t len, uintptr_t handle)
{
	struct gantry_piece p = piece(at, len);

	return gantry_channel_start(f.c, d, &p, 1, remote(at), f.token, (void *)handle);
}

/* Polls until so many have come. */
static inline int
collect(struct gantry_done *done, int nr)
{
	int n = 0;

	wait_until(n >= nr) {
		int r = gantry_channel_poll(f.c, done + n, nr - n);

		if (r < 0)
			return r;
		n += r;
	}
	return n;
}

/* Runs softnicctl. */
static inline void ctl(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void
ctl(const char *format, ...)
{
	char words[256], cmd[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(words, sizeof words, format, ap);
	va_end(ap);
	snprintf(cmd, sizeof cmd, "%s %s >/dev/null", getenv("PORTCTL"), words);
	assert_int_equal(system(cmd), 0);
}

#endif
