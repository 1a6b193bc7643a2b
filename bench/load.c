/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections, windows, requests and their answers; see load.h.
 */
#include "bench/load.h"

#include "base/clock.h"
#include "base/crc64.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define SAMPLES_MAX (1 << 18)
#define HUGE_BYTES (2 * MIB)
#define EVENTS 256
#define ANSWER_NS (120 * NS_PER_S)

/* One kept-alive connection with a request at a time, and its window. */
struct link {
	int fd;
	struct window window;
	char request[1536], answer[4096];
	size_t request_len, answer_len, key_at;
	uint64_t begun_ns;
};

struct load load;

static struct {
	struct nic *nic;
	char *mem;
	size_t mem_len;
	struct ibv_mr *mr;
	struct link link[CONNS_MAX];
	double sample[SAMPLES_MAX];
} b;

void
raw_die(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

/* ---- windows ---- */

void
load_memory(size_t len)
{
	char *p;

	if (b.mr) {
		ibv_dereg_mr(b.mr);
		munmap(b.mem, b.mem_len);
	}
	p = mmap(NULL, len + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_die("no memory");
	b.mem = (char *)(((uintptr_t)p + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
	b.mem_len = len;
	madvise(b.mem, len, MADV_HUGEPAGE);
	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = (i + 1) * 0x9e3779b97f4a7c15u;

		memcpy(b.mem + i, &v, 8);
	}
	if (!b.nic)
		b.nic = nic_open("nic", NULL, 0xffeeddcc, -1);
	b.mr = ibv_reg_mr(b.nic->pd, b.mem, len,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!b.mr)
		bench_die("registering %zu bytes: %s", len, strerror(errno));
}

const char *
load_bytes(size_t *ret_len)
{
	*ret_len = b.mem_len;
	return b.mem;
}

static void
set_window(struct link *l, int i, size_t size)
{
	size_t stride = size < 64 * 1024 ? 64 * 1024 : size;

	if ((size_t)(i + 1) * stride > b.mem_len)
		bench_die("%d windows of %zu bytes are too many", i + 1, size);
	l->window = (struct window){ .nic = b.nic,
				     .mem = (unsigned char *)b.mem + (size_t)i * stride,
				     .len = size,
				     .mr = b.mr,
				     .rkey = b.mr->rkey };
}

/* ---- one request ---- */

static void
send_request(struct link *l, uint64_t key)
{
	char digits[16];

	snprintf(digits, sizeof digits, "%08llu", (unsigned long long)(key % 100000000));
	memcpy(l->request + l->key_at, digits, 8);
	l->answer_len = 0;
	l->begun_ns = clock_ns();
	if (send(l->fd, l->request, l->request_len, MSG_NOSIGNAL) != (ssize_t)l->request_len)
		bench_die("send: %s", strerror(errno));
}

/* True: the answer is complete.  Any answer but the expected one ends the run. */
static bool
take_answer(struct link *l, bool is_tokened)
{
	ssize_t n = recv(l->fd, l->answer + l->answer_len, sizeof l->answer - 1 - l->answer_len, 0);
	const char *end, *len;

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0)
		bench_die("the server closed a connection: %s", n ? strerror(errno) : "end");
	l->answer_len += (size_t)n;
	l->answer[l->answer_len] = 0;
	end = strstr(l->answer, "\r\n\r\n");
	if (!end)
		return false;
	len = strcasestr(l->answer, "\r\ncontent-length: ");
	if (memcmp(l->answer, "HTTP/1.1 20", 11) != 0 || (len && strtoul(len + 18, NULL, 10) != 0) ||
	    (is_tokened && !strcasestr(l->answer, "\r\nx-amz-rdma-reply: 20")))
		bench_die("unexpected answer: %s", l->answer);
	return true;
}

static void
prepare_token(const struct link *l, int i, const struct job *j, char token[RAW_TOKEN_MAX])
{
	const struct sockaddr_in *at = &j->server->at;
	char server[64], ip[INET_ADDRSTRLEN];

	if (!j->is_rc) {
		token_of_window(&l->window, token);
		return;
	}
	snprintf(server, sizeof server, "%s:%d", inet_ntop(AF_INET, &at->sin_addr, ip, sizeof ip),
		 ntohs(at->sin_port));
	snprintf(token, RAW_TOKEN_MAX, "%s", load_rc_token(server, i, &l->window));
}

static void
prepare(struct link *l, int i, const struct job *j)
{
	static const char *const method[] = { "PUT", "GET", "DELETE" };
	char token[RAW_TOKEN_MAX] = "", sign[768] = "", path[128];
	bool tokened = !j->no_token;
	int n;

	if (tokened)
		prepare_token(l, i, j, token);
	if (j->is_signed) {
		snprintf(path, sizeof path, "/bkt/%s00000000", j->prefix);
		s3_sign(method[j->op], path, token, sign, sizeof sign);
	}
	n = snprintf(l->request, sizeof l->request, "%s /bkt/%s", method[j->op], j->prefix);
	l->key_at = (size_t)n;
	n += snprintf(l->request + n, sizeof l->request - (size_t)n,
		      "00000000 HTTP/1.1\r\nhost: localhost\r\n%s%s%s%s%s\r\n",
		      tokened ? "x-amz-rdma-token: " : "", token, tokened ? "\r\n" : "", sign,
		      j->op == OP_PUT ? "content-length: 0\r\n" : "");
	l->request_len = (size_t)n;
}

/* ---- a run ---- */

uint64_t
load_copy_ns(const struct server *s)
{
	char cmd[600], text[8192], *at;
	size_t n;
	FILE *f;

	if (!s || !s->is_gantry || !load.softnicctl)
		return 0;
	snprintf(cmd, sizeof cmd, "%s stats --json %d", load.softnicctl, s->pid);
	f = popen(cmd, "r");
	if (!f)
		bench_die("%s: %s", cmd, strerror(errno));
	n = fread(text, 1, sizeof text - 1, f);
	text[n] = 0;
	at = strstr(text, "\"copy_ns\":");
	if (pclose(f) != 0 || !at)
		bench_die("%s: said %s", cmd, text);
	return strtoull(at + 10, NULL, 10);
}

static uint64_t
cpu_ns_of(const struct server *s)
{
	return s ? bench_cpu_ns(s->pid) : 0;
}

static uint64_t
keys_of(const struct job *j)
{
	uint64_t nr = j->live ? j->live : j->size ? bench_live_bytes(LIVE_BYTES) / j->size : 1;

	if (!nr)
		nr = 1;
	return !j->live && nr > 4096 ? 4096 : nr;
}

/* Waits for events, and returns their number; 0: none came for ANSWER_NS. */
static int
next_events(const struct job *j, int ep, struct epoll_event ev[EVENTS])
{
	uint64_t begin = clock_ns();
	int n;

	if (!j->spins)
		return epoll_wait(ep, ev, EVENTS, (int)(ANSWER_NS / NS_PER_MS));
	do
		n = epoll_wait(ep, ev, EVENTS, 0);
	while (n == 0 && clock_ns() - begin < ANSWER_NS);
	return n;
}

struct result
load_run(const struct job *j, uint64_t for_ns)
{
	uint64_t live = keys_of(j), key = 0, begin, cpu, copy;
	struct result res = { 0 };
	int ep = epoll_create1(EPOLL_CLOEXEC), left = j->conns, samples = 0;

	for (int i = 0; i < j->conns; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.u32 = (uint32_t)i };
		struct link *l = &b.link[i];

		set_window(l, j->one_window ? 0 : i, j->size ? j->size : 4096);
		prepare(l, i, j);
		l->fd = bench_connect(&(j->other && (i & 1) ? j->other : j->server)->at);
		epoll_ctl(ep, EPOLL_CTL_ADD, l->fd, &ev);
	}
	copy = load_copy_ns(j->server) + load_copy_ns(j->other);
	cpu = cpu_ns_of(j->server) + cpu_ns_of(j->other);
	res.waited_ns = -bench_waited(j->server->pid);
	res.load_waited_ns = -bench_waited(getpid());
	res.load_cpu_ns = -(double)bench_cpu_ns(getpid());
	res.sleeps = -bench_sleeps(j->server->pid);
	res.load_sleeps = -bench_sleeps(getpid());
	begin = clock_ns();
	for (int i = 0; i < j->conns; i++)
		send_request(&b.link[i], key++ % live);
	while (left) {
		struct epoll_event ev[EVENTS];
		int n = next_events(j, ep, ev);
		uint64_t now = clock_ns();

		if (n <= 0)
			bench_die("no answer within 2 minutes");
		for (int i = 0; i < n; i++) {
			struct link *l = &b.link[ev[i].data.u32];

			if (!take_answer(l, !j->no_token && j->size && j->server->is_gantry))
				continue;
			res.n++;
			if (samples < SAMPLES_MAX)
				b.sample[samples++] = (double)(now - l->begun_ns) / 1e3;
			if (now - begin < for_ns && (!j->max || key < j->max))
				send_request(l, key++ % live);
			else
				left--;
		}
	}
	res.ns = clock_ns() - begin;
	res.cpu_ns = cpu_ns_of(j->server) + cpu_ns_of(j->other) - cpu;
	res.waited_ns += bench_waited(j->server->pid);
	res.load_waited_ns += bench_waited(getpid());
	res.load_cpu_ns += (double)bench_cpu_ns(getpid());
	res.sleeps += bench_sleeps(j->server->pid);
	res.load_sleeps += bench_sleeps(getpid());
	res.copy_ns = load_copy_ns(j->server) + load_copy_ns(j->other) - copy;
	bench_quiet_add((res.waited_ns > 0 ? res.waited_ns : 0) + res.load_waited_ns, res.ns);
	res.bytes = res.n * j->size;
	res.p50_us = bench_median(b.sample, samples);
	res.p99_us = samples ? b.sample[samples - 1 - samples / 100] : 0;
	for (int i = 0; i < j->conns; i++)
		close(b.link[i].fd);
	close(ep);
	return res;
}

const char *
load_prefix(size_t size)
{
	static char text[4][32];
	static unsigned turn;
	char *at = text[turn++ % 4];

	snprintf(at, sizeof *text, "o%zu-", size);
	return at;
}

void
load_put_all(const struct job *j)
{
	struct job put = *j;

	put.op = OP_PUT;
	put.no_token = j->size == 0;
	put.max = keys_of(j);
	load_run(&put, UINT64_MAX);
}

void
load_delete_all(const struct job *j)
{
	struct job del = *j;

	del.op = OP_DELETE;
	del.no_token = true;
	del.max = keys_of(j);
	load_run(&del, UINT64_MAX);
}

double
us_each(uint64_t ns, uint64_t n)
{
	return (double)ns / 1e3 / (double)(n ? n : 1);
}
