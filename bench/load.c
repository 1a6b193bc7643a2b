/*
 * The daemon's figures: a load generator with kept-alive connections and windows that were registered before,
 * in turn with the raw loop (same disk) or with nginx.
 *
 *	bench-load -s HOST:PORT -p PID -c SOFTNICCTL -r RAWFILE [-n HOST:PORT -q PID] [-t HOST:PORT -u PID]
 *FIGURE...
 *
 * -s, -p: gantryd on one core; -n, -q: nginx and its worker; -t, -u: gantryd on two cores.  CPU times are
 *those of whole processes.  softnic's copies are made by the daemon's processor, as no adapter's would be:
 *how long they took, softnicctl says, and figures that are given net have it taken off.
 */
#include "bench/bench.h"
#include "tests/tools/raw/raw.h"

#include "base/clock.h"
#include "base/crc64.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNS_MAX 128
#define SAMPLES_MAX 65536
#define HUGE_BYTES (2 * MIB)
#define LIVE_BYTES (1024 * MIB)
#define SERVER_CPU 0
#define LOAD_CPU 1

struct server {
	struct sockaddr_in at;
	int pid;
	bool is_gantry;
};

enum op { OP_PUT, OP_GET };

/* One kept-alive connection with a request at a time, and its window. */
struct link {
	int fd;
	struct window window;
	char request[1024], answer[4096];
	size_t request_len, answer_len, key_at;
	uint64_t begun_ns;
};

struct result {
	uint64_t n, bytes, ns, cpu_ns, copy_ns;
	double p50_us, waited_ns, load_waited_ns, load_cpu_ns;
};

static struct {
	struct server one, two, nginx;
	const char *softnicctl;
	struct raw *raw;
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

/* ---- windows ------------------------------------------------------------------------- */

static void
make_memory(size_t len)
{
	char *p = mmap(NULL, len + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_die("no memory");
	b.mem = (char *)(((uintptr_t)p + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
	b.mem_len = len;
	madvise(b.mem, len, MADV_HUGEPAGE);
	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = (i + 1) * 0x9e3779b97f4a7c15u;

		memcpy(b.mem + i, &v, 8);
	}
	b.nic = nic_open("nic", NULL, 0xffeeddcc, -1);
	b.mr = ibv_reg_mr(b.nic->pd, b.mem, len,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!b.mr)
		bench_die("registering %zu bytes: %s", len, strerror(errno));
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

/* ---- one request --------------------------------------------------------------------- */

static void
send_request(struct link *l, uint64_t key)
{
	char digits[16];

	snprintf(digits, sizeof digits, "%08llu", (unsigned long long)key);
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

static int
connect_to(const struct server *s)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&s->at, sizeof s->at) < 0)
		bench_die("connect: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static void
prepare(struct link *l, const struct server *s, enum op op, const char *prefix, size_t window, bool tokened)
{
	char token[RAW_TOKEN_MAX] = "";
	int n;

	if (tokened)
		token_of_window(&l->window, token);
	n = snprintf(l->request, sizeof l->request, "%s /bkt/%s", op == OP_PUT ? "PUT" : "GET", prefix);
	l->key_at = (size_t)n;
	n += snprintf(l->request + n, sizeof l->request - (size_t)n,
		      "00000000 HTTP/1.1\r\nhost: bench\r\n%s%s%s%s\r\n", tokened ? "x-amz-rdma-token: " : "",
		      token, tokened ? "\r\n" : "", op == OP_PUT ? "content-length: 0\r\n" : "");
	l->request_len = (size_t)n;
}

/* ---- a run --------------------------------------------------------------------------- */

static uint64_t
copy_ns_of(const struct server *s)
{
	char cmd[600], text[8192], *at;
	size_t n;
	FILE *f;

	if (!s->is_gantry)
		return 0;
	snprintf(cmd, sizeof cmd, "%s stats --json %d", b.softnicctl, s->pid);
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

struct job {
	const struct server *server;
	enum op op;
	const char *prefix;
	size_t size; /* of the objects and the windows; 0: an empty object, a small window */
	int conns;
	bool no_token;
	uint64_t max; /* operations; 0: as the time allows */
};

static struct result
run(const struct job *j, uint64_t for_ns)
{
	uint64_t live = j->size ? LIVE_BYTES / j->size : 1, key = 0, begin, cpu, copy;
	struct result res = { 0 };
	int ep = epoll_create1(EPOLL_CLOEXEC), left = j->conns, samples = 0;

	live = live > 4096 ? 4096 : live;
	for (int i = 0; i < j->conns; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.u32 = (uint32_t)i };
		struct link *l = &b.link[i];

		set_window(l, i, j->size ? j->size : 4096);
		prepare(l, j->server, j->op, j->prefix, j->size, !j->no_token);
		l->fd = connect_to(j->server);
		epoll_ctl(ep, EPOLL_CTL_ADD, l->fd, &ev);
	}
	copy = copy_ns_of(j->server);
	cpu = bench_cpu_ns(j->server->pid);
	res.waited_ns = -bench_waited(j->server->pid);
	res.load_waited_ns = -bench_waited(getpid());
	res.load_cpu_ns = -(double)bench_cpu_ns(getpid());
	begin = clock_ns();
	for (int i = 0; i < j->conns; i++)
		send_request(&b.link[i], key++ % live);
	while (left) {
		struct epoll_event ev[CONNS_MAX];
		int n = epoll_wait(ep, ev, CONNS_MAX, 30000);
		uint64_t now = clock_ns();

		if (n <= 0)
			bench_die("no answer within 30 s");
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
	res.cpu_ns = bench_cpu_ns(j->server->pid) - cpu;
	res.waited_ns += bench_waited(j->server->pid);
	res.load_waited_ns += bench_waited(getpid());
	res.load_cpu_ns += (double)bench_cpu_ns(getpid());
	res.copy_ns = copy_ns_of(j->server) - copy;
	bench_quiet_add((res.waited_ns > 0 ? res.waited_ns : 0) + res.load_waited_ns, res.ns);
	res.bytes = res.n * j->size;
	res.p50_us = bench_median(b.sample, samples);
	for (int i = 0; i < j->conns; i++)
		close(b.link[i].fd);
	close(ep);
	return res;
}

/* One set of keys for each size: figures of the same size overwrite each other's objects. */
static const char *
size_prefix(size_t size)
{
	static char text[4][32];
	static unsigned turn;
	char *at = text[turn++ % 4];

	snprintf(at, sizeof *text, "o%zu-", size);
	return at;
}

/* Objects of that size, as many as there are keys. */
static void
put_all(const struct server *s, const char *prefix, size_t size, int conns)
{
	uint64_t live = size ? LIVE_BYTES / size : 1;
	struct job j = { .server = s,
			 .op = OP_PUT,
			 .prefix = prefix,
			 .size = size,
			 .conns = conns,
			 .no_token = size == 0,
			 .max = live > 4096 ? 4096 : live };

	run(&j, UINT64_MAX);
}

static struct raw_result
raw_on_server_cpu(bool write, uint32_t len, int qd, bool flush, uint64_t ns)
{
	struct raw_result res;

	bench_pin(SERVER_CPU);
	res = raw_run(b.raw, write, len, qd, flush, ns);
	bench_pin(LOAD_CPU);
	return res;
}

static double
us_each(uint64_t ns, uint64_t n)
{
	return (double)ns / 1e3 / (double)(n ? n : 1);
}

/* ---- figures: throughput --------------------------------------------------------------- */

static const struct moved {
	const char *name;
	enum op op;
	size_t size;
	int conns;
} moved[] = {
	{ "put_256k_q32", OP_PUT, 256u << 10, 32 }, { "put_1m_q16", OP_PUT, MIB, 16 },
	{ "put_64m_q8", OP_PUT, 64 * MIB, 8 },      { "get_256k_q32", OP_GET, 256u << 10, 32 },
	{ "get_4m_q32", OP_GET, 4 * MIB, 32 },
};

static void
say_run(const char *name, const struct result *res, const struct raw_result *raw)
{
	double n = (double)res->n * 1e3;

	fprintf(stderr, "%s: %.0f MB/s, raw %.0f; %.1f us each: CPU %.1f (copies %.1f), none free %.1f; ",
		name, per_second(res->bytes, res->ns) / 1e6, per_second(raw->bytes, raw->ns) / 1e6,
		us_each(res->ns, res->n), us_each(res->cpu_ns, res->n), us_each(res->copy_ns, res->n),
		res->waited_ns / n);
	fprintf(stderr, "the load's CPU %.1f, none free %.1f\n", res->load_cpu_ns / n,
		res->load_waited_ns / n);
}

static void
throughput(const struct moved *m)
{
	struct row row = { .figure = m->name, .unit = "MB/s", .has_net = true };
	struct job j = { .server = &b.one,
			 .op = m->op,
			 .prefix = size_prefix(m->size),
			 .size = m->size,
			 .conns = m->conns };
	uint32_t len = m->size < MIB ? (uint32_t)m->size : (uint32_t)MIB;
	size_t pieces = m->size / len < 8 ? m->size / len : 8;
	uint64_t ns = m->size > 16 * MIB ? 2 * bench_ns() : bench_ns();

	/* Three times over: space that was used once, and comes back, is what a store lives on. */
	for (int i = 0; i < (m->op == OP_PUT ? 3 : 1); i++)
		put_all(&b.one, j.prefix, m->size, m->conns);
	sleep(2);
	for (int n = -1; n < bench_rounds(); n++) {
		struct raw_result raw = { 0 };
		struct result res;

		if (n & 1)
			raw = raw_on_server_cpu(m->op == OP_PUT, len, m->conns * (int)pieces, false, ns);
		res = run(&j, ns);
		if (!(n & 1))
			raw = raw_on_server_cpu(m->op == OP_PUT, len, m->conns * (int)pieces, false, ns);
		if (n < 0)
			continue;
		if (getenv("BENCH_VERBOSE"))
			say_run(m->name, &res, &raw);
		row_add_net(&row, per_second(res.bytes, res.ns) / 1e6,
			    per_second(res.bytes, res.ns - res.copy_ns) / 1e6,
			    per_second(raw.bytes, raw.ns) / 1e6);
	}
	row_print(&row);
}

/* ---- figures: CPU and latency ------------------------------------------------------------ */

static const struct job *
no_op(const struct server *s)
{
	static struct job j;

	j = (struct job){ .server = s, .op = OP_GET, .prefix = "empty", .conns = 64 };
	return &j;
}

static void
http_cpu(void)
{
	struct row row = { .figure = "http_cpu", .unit = "us" };

	if (!b.nginx.pid)
		bench_die("http_cpu needs nginx");
	put_all(&b.one, "empty", 0, 1);
	for (int n = -1; n < bench_rounds(); n++) {
		struct result ours = { 0 }, theirs;

		if (n & 1)
			ours = run(no_op(&b.one), bench_ns());
		theirs = run(no_op(&b.nginx), bench_ns());
		if (!(n & 1))
			ours = run(no_op(&b.one), bench_ns());
		if (n >= 0)
			row_add(&row, us_each(ours.cpu_ns, ours.n), us_each(theirs.cpu_ns, theirs.n));
	}
	row_print(&row);
}

/* CRC64-NVME of 256 KiB that lie in no cache of the core's own. */
static double
crc_us(size_t len)
{
	uint64_t begin = clock_ns();
	volatile uint64_t sum = 0;
	unsigned n = 0;

	for (size_t at = 0; at + len <= b.mem_len && at < 256 * MIB; at += len, n++)
		sum = crc64_nvme(sum, b.mem + at, len);
	return us_each(clock_ns() - begin, n);
}

static void
put_cpu(void)
{
	struct row row = { .figure = "put_cpu", .unit = "us", .has_net = true };
	size_t size = 256u << 10;
	struct job j = {
		.server = &b.one, .op = OP_PUT, .prefix = size_prefix(size), .size = size, .conns = 32
	};

	put_all(&b.one, "empty", 0, 1);
	for (int i = 0; i < 3; i++)
		put_all(&b.one, j.prefix, size, 32);
	sleep(2);
	for (int n = -1; n < bench_rounds(); n++) {
		struct raw_result raw = raw_on_server_cpu(true, (uint32_t)size, 32, false, bench_ns() / 2);
		struct result put = run(&j, bench_ns()), nop = run(no_op(&b.one), bench_ns() / 2);
		double a = us_each(nop.cpu_ns, nop.n), c = us_each(raw.cpu_ns, raw.ops), sum = crc_us(size);

		if (n < 0)
			continue;
		if (getenv("BENCH_VERBOSE"))
			fprintf(stderr,
				"put_cpu: %.1f us, copies %.1f; no-op %.1f, raw write %.1f, CRC %.1f\n",
				us_each(put.cpu_ns, put.n), us_each(put.copy_ns, put.n), a, c, sum);
		row_add_net(&row, us_each(put.cpu_ns, put.n), us_each(put.cpu_ns - put.copy_ns, put.n),
			    a + c + sum);
	}
	row_print(&row);
}

static void
put_p50(void)
{
	struct row row = { .figure = "put_p50_q1", .unit = "us", .has_net = true };
	size_t size = 256u << 10;
	struct job j = {
		.server = &b.one, .op = OP_PUT, .prefix = size_prefix(size), .size = size, .conns = 1
	};
	struct job nop = { .server = &b.one, .op = OP_GET, .prefix = "empty", .conns = 1 };

	put_all(&b.one, "empty", 0, 1);
	for (int i = 0; i < 3; i++)
		put_all(&b.one, j.prefix, size, 32);
	sleep(2);
	for (int n = -1; n < bench_rounds(); n++) {
		struct raw_result raw = raw_on_server_cpu(true, (uint32_t)size, 1, true, bench_ns());
		struct result put = run(&j, bench_ns()), none = run(&nop, bench_ns() / 2);

		if (n < 0)
			continue;
		if (getenv("BENCH_VERBOSE"))
			fprintf(stderr,
				"put_p50: %.1f us, copies %.1f; no-op %.1f, raw write and flush %.1f\n",
				put.p50_us, us_each(put.copy_ns, put.n), none.p50_us, raw.p50_us);
		row_add_net(&row, put.p50_us, put.p50_us - us_each(put.copy_ns, put.n),
			    none.p50_us + raw.p50_us);
	}
	row_print(&row);
}

static void
cpu_2_cores(void)
{
	struct row row = { .figure = "cpu_2_cores", .unit = "us" };
	size_t size = 4096;
	struct job one = { .server = &b.one,
			   .op = OP_GET,
			   .prefix = size_prefix(size),
			   .size = size,
			   .conns = 64 },
		   two = one;

	if (!b.two.pid)
		bench_die("cpu_2_cores needs a second daemon");
	two.server = &b.two;
	put_all(&b.one, one.prefix, size, 32);
	put_all(&b.two, one.prefix, size, 32);
	for (int n = -1; n < bench_rounds(); n++) {
		struct result x = { 0 }, y;

		if (n & 1)
			x = run(&one, bench_ns());
		y = run(&two, bench_ns());
		if (!(n & 1))
			x = run(&one, bench_ns());
		if (n >= 0)
			row_add(&row, us_each(y.cpu_ns - y.copy_ns, y.n), us_each(x.cpu_ns - x.copy_ns, x.n));
	}
	row_print(&row);
}

/* ---- main ------------------------------------------------------------------------------ */

static void
figure(const char *name)
{
	for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
		if (!strcmp(moved[i].name, name)) {
			throughput(&moved[i]);
			return;
		}
	}
	if (!strcmp(name, "http_cpu"))
		http_cpu();
	else if (!strcmp(name, "put_cpu"))
		put_cpu();
	else if (!strcmp(name, "put_p50_q1"))
		put_p50();
	else if (!strcmp(name, "cpu_2_cores"))
		cpu_2_cores();
	else
		bench_die("no figure %s", name);
}

static struct sockaddr_in
address(const char *text)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	const char *colon = strrchr(text, ':');
	char host[64];

	snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - text) : 0, text);
	if (!colon || inet_pton(AF_INET, host, &sa.sin_addr) != 1)
		bench_die("%s is no address and port", text);
	sa.sin_port = htons((uint16_t)atoi(colon + 1));
	return sa;
}

int
main(int argc, char **argv)
{
	const char *raw_path = NULL;
	int opt;

	b.one.is_gantry = b.two.is_gantry = true;
	while ((opt = getopt(argc, argv, "s:p:n:q:t:u:c:r:")) != -1) {
		switch (opt) {
		case 's':
			b.one.at = address(optarg);
			break;
		case 'p':
			b.one.pid = atoi(optarg);
			break;
		case 'n':
			b.nginx.at = address(optarg);
			break;
		case 'q':
			b.nginx.pid = atoi(optarg);
			break;
		case 't':
			b.two.at = address(optarg);
			break;
		case 'u':
			b.two.pid = atoi(optarg);
			break;
		case 'c':
			b.softnicctl = optarg;
			break;
		case 'r':
			raw_path = optarg;
			break;
		default:
			return 2;
		}
	}
	if (!b.one.pid || !b.softnicctl || !raw_path || optind == argc)
		bench_die("usage: see bench/load.c");
	bench_pin(LOAD_CPU);
	make_memory(512 * MIB);
	b.raw = raw_open(raw_path, LIVE_BYTES, 260);
	for (int i = optind; i < argc; i++)
		figure(argv[i]);
	raw_close(b.raw);
	bench_quiet_say();
	return 0;
}
