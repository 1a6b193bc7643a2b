/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_1m: ListObjectsV2 over a million keys, pages of 1000, against the store's own walk over as many keys
 * in this process, without HTTP and XML; keys a second.
 *
 *	bench-list fill DIR KEYS BYTES            makes a store of that size in DIR with so many objects of
 *	                                          16 bytes
 *	bench-list two ONE MANY KEYS              asks two daemons, of which the second has its store on several disks:
 *	                                          disks4_list_1m
 *	bench-list list HOST:PORT DIR KEYS BYTES  asks the daemon, which has another such store, and walks
 *	                                          this one
 */
#include "bench/bench.h"
#include "bench/port.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEPTH 256
#define PAGE 1000
#define ANSWER_MAX (2 * MIB)
#define INDEX_BYTES (1024 * MIB)
#define LOAD_CPU 1

struct work {
	struct store_put put;
	struct store_commit commit;
	struct store_key key;
	char text[64];
};

static struct {
	struct port port;
	struct work work[DEPTH];
	uint64_t next, keys;
	int busy;
	char last[STORE_KEY_MAX];
	uint32_t last_len;
	uint64_t listed;
} b;

/* ---- filling ---- */

static void put_next(struct work *w);

static void
on_put(struct store_op *op)
{
	if (op->result < 0)
		bench_die("PUT: %s", strerror(-op->result));
	put_next(container_of(op, struct work, put.op));
}

static void
put_next(struct work *w)
{
	static const char data[16] = "sixteen bytes  ";

	if (b.next == b.keys) {
		b.busy--;
		return;
	}
	snprintf(w->text, sizeof w->text, "data/2026/%010llu/object.bin",
		 (unsigned long long)(b.next++ * 7919 % b.keys));
	w->key = (struct store_key){ BENCH_BUCKET, w->text, sizeof BENCH_BUCKET - 1, strlen(w->text) };
	w->put.op.done = on_put;
	w->commit = (struct store_commit){ .inline_data = data, .inline_len = sizeof data };
	port_put_inline(&b.port, &w->put, &w->key, &w->commit);
}

static void
fill(const char *dir, uint64_t size_bytes)
{
	port_format(dir, size_bytes);
	port_open(&b.port, dir, size_bytes, INDEX_BYTES, NULL);
	b.busy = DEPTH;
	for (int i = 0; i < DEPTH; i++)
		put_next(&b.work[i]);
	while (b.busy)
		port_turn(&b.port);
	port_close(&b.port);
}

/* ---- the store's own walk ---- */

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	memcpy(b.last, e->name, e->name_len);
	b.last_len = (uint32_t)e->name_len;
	b.listed++;
	return true;
}

static void
on_page(struct store_op *op)
{
	b.busy--;
}

/* Keys a second, over all of them, as often as fit into the time; at least once. */
static double
walk(uint64_t for_ns)
{
	static struct store_list ls;
	uint64_t begin = clock_ns();
	int r;

	b.listed = 0;
	b.last_len = 0;
	do {
		char after[STORE_KEY_MAX];

		memcpy(after, b.last, b.last_len);
		memset(&ls, 0, offsetof(struct store_list, priv));
		ls.bucket = BENCH_BUCKET;
		ls.bucket_len = sizeof BENCH_BUCKET - 1;
		ls.after = b.last_len ? after : NULL;
		ls.after_len = (uint16_t)b.last_len;
		ls.max = PAGE;
		ls.entry = on_entry;
		ls.op.done = on_page;
		b.busy = 1;
		r = store_list(b.port.p, &ls);
		if (r < 0 || ls.op.result < 0)
			bench_die("list: %s", strerror(r < 0 ? -r : -ls.op.result));
		while (r == 0 && b.busy)
			port_turn(&b.port);
		store_turn(b.port.p, TURN_QUIESCENT);
		if (!ls.more)
			b.last_len = 0;
	} while (ls.more || clock_ns() - begin < for_ns);
	if (b.listed % b.keys)
		bench_die("%llu keys walked, not %llu", (unsigned long long)b.listed,
			  (unsigned long long)b.keys);
	return per_second(b.listed, clock_ns() - begin);
}

/* ---- the daemon's list ---- */

static char answer[ANSWER_MAX + 1];

static int
connect_to(const char *text)
{
	struct sockaddr_in at = bench_address(text);

	return bench_connect(&at);
}

/* One answer, head and body; where the body begins. */
static const char *
take_answer(int fd)
{
	size_t have = 0, want = SIZE_MAX;
	char *end = NULL;
	const char *len;

	while (have < want) {
		ssize_t n = recv(fd, answer + have, ANSWER_MAX - have, 0);

		if (n <= 0)
			bench_die("the server closed the connection");
		have += (size_t)n;
		answer[have] = 0;
		if (end || !(end = strstr(answer, "\r\n\r\n")))
			continue;
		len = strcasestr(answer, "\r\ncontent-length: ");
		if (!len || memcmp(answer, "HTTP/1.1 200", 12) != 0)
			bench_die("unexpected answer: %.300s", answer);
		want = (size_t)(end + 4 - answer) + strtoul(len + 18, NULL, 10);
		if (want > ANSWER_MAX)
			bench_die("a page of %zu bytes", want);
	}
	return end + 4;
}

/* The token of the next page, fit for a URL; false: this was the last. */
static bool
next_page(const char *body, char *out, size_t cap)
{
	const char *p = strstr(body, "<NextContinuationToken>");
	size_t n = 0;

	if (!p)
		return false;
	for (p += sizeof "<NextContinuationToken>" - 1; *p != '<' && n + 4 < cap; p++)
		n += (size_t)snprintf(out + n, cap - n, strchr("+/=", *p) ? "%%%02X" : "%c", *p);
	return true;
}

static double
ask(int fd, uint64_t for_ns)
{
	uint64_t begin = clock_ns(), listed = 0;
	char token[4096] = "", request[5000];
	bool more;

	do {
		int n = snprintf(request, sizeof request,
				 "GET /" BENCH_BUCKET
				 "?list-type=2&max-keys=%d%s%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
				 PAGE, token[0] ? "&continuation-token=" : "", token);
		const char *body;

		if (send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
			bench_die("send: %s", strerror(errno));
		body = take_answer(fd);
		body = strstr(body, "<KeyCount>");
		listed += body ? strtoul(body + 10, NULL, 10) : 0;
		more = next_page(answer, token, sizeof token);
		if (!more)
			token[0] = 0;
	} while (more || clock_ns() - begin < for_ns);
	if (listed == 0 || listed % b.keys)
		bench_die("%llu keys listed, not %llu", (unsigned long long)listed,
			  (unsigned long long)b.keys);
	return per_second(listed, clock_ns() - begin);
}

static void
list(const char *at, const char *dir, uint64_t size_bytes)
{
	struct row row = { .figure = "list_1m", .unit = "keys/s" };
	int fd = connect_to(at);

	bench_pin(LOAD_CPU);
	port_open(&b.port, dir, size_bytes, INDEX_BYTES, NULL);
	for (int n = -1; n < bench_rounds(); n++) {
		double x = n & 1 ? ask(fd, bench_ns()) : 0, y = walk(bench_ns());

		if (!(n & 1))
			x = ask(fd, bench_ns());
		if (n >= 0)
			row_add(&row, x, y);
	}
	port_close(&b.port);
	close(fd);
	row_print(&row);
}

static void
two(const char *one, const char *many)
{
	struct row row = { .figure = "disks4_list_1m", .unit = "keys/s" };
	int fd[2] = { connect_to(one), connect_to(many) };

	bench_pin(LOAD_CPU);
	for (int n = -1; n < bench_rounds(); n++) {
		double v[2];

		for (int i = 0; i < 2; i++)
			v[i ^ (n & 1)] = ask(fd[i ^ (n & 1)], bench_ns());
		if (n >= 0)
			row_add(&row, v[1], v[0]);
	}
	close(fd[0]);
	close(fd[1]);
	row_print(&row);
}

int
main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "fill")) {
		b.keys = strtoull(argv[3], NULL, 10);
		fill(argv[2], strtoull(argv[4], NULL, 10));
	} else if (argc == 5 && !strcmp(argv[1], "two")) {
		b.keys = strtoull(argv[4], NULL, 10);
		two(argv[2], argv[3]);
	} else if (argc == 6 && !strcmp(argv[1], "list")) {
		b.keys = strtoull(argv[4], NULL, 10);
		list(argv[2], argv[3], strtoull(argv[5], NULL, 10));
	} else {
		bench_die("usage: see bench/list.c");
	}
	return 0;
}
