/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes in HTTP bodies: the daemon in turn with nginx, which serves and takes files on the same disk.
 *
 *	bench-http -s HOST:PORT -n HOST:PORT -d DIRECTORY FIGURE...
 *
 * -s: gantryd; -n: nginx, whose root is DIRECTORY, with directio, threads and WebDAV's PUT.  A thread for
 * each connection, all of them on the second CPU; the same code asks both.
 *
 * http_get_1m, http_get_64m: neither side reads from the page cache (O_DIRECT here, directio there), so the
 * set of files, BENCH_HTTP_MIB of them on each side, need not be larger than memory.
 *
 * http_put_durable: nginx has no fsync, so the client makes file and directory durable after the answer; it
 * runs on the same machine.  The daemon's answer says that much by itself.  No MD5 on either side (s3.etag:
 * random).
 *
 * http_put_md5: what an MD5 costs: the same PUTs with a Content-MD5 against those without.
 */
#include "bench/bench.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define CONNS_MAX 32
#define LOAD_CPU 1
#define DISCARD_BYTES (256u << 10)

static struct sockaddr_in gantry, nginx;
static const char *root;
static char *bytes; /* the body of every PUT */
static char md5_text[32];

struct job {
	bool is_nginx, put, durable, md5;
	size_t size;
	int conns;
	unsigned keys;
	unsigned max; /* requests; 0: as the time allows */
	uint64_t until_ns;
	_Atomic unsigned next;
	_Atomic uint64_t moved;
};

/* ---- one connection ---- */

static void
send_all(int fd, const char *head, size_t head_len, const char *body, size_t body_len)
{
	while (head_len + body_len) {
		struct iovec v[2] = { { (char *)(uintptr_t)head, head_len },
				      { (char *)(uintptr_t)body, body_len } };
		ssize_t n = writev(fd, v, 2);
		size_t of_head;

		if (n <= 0)
			bench_die("send: %s", strerror(errno));
		of_head = (size_t)n < head_len ? (size_t)n : head_len;
		head += of_head;
		head_len -= of_head;
		body += (size_t)n - of_head;
		body_len -= (size_t)n - of_head;
	}
}

/* Reads an answer; of its body, all bytes and none of them into memory. */
static void
take_answer(int fd, size_t want)
{
	char text[4097], *end = NULL;
	const char *len;
	size_t have = 0, left;

	while (!end) {
		ssize_t n = recv(fd, text + have, sizeof text - 1 - have, 0);

		if (n <= 0)
			bench_die("the server closed a connection: %s", n ? strerror(errno) : "end");
		have += (size_t)n;
		text[have] = 0;
		end = strstr(text, "\r\n\r\n");
	}
	len = strcasestr(text, "\r\ncontent-length: ");
	left = len ? strtoul(len + 18, NULL, 10) : 0;
	if (memcmp(text, "HTTP/1.1 20", 11) != 0 || (want && left != want))
		bench_die("unexpected answer: %.500s", text);
	have -= (size_t)(end + 4 - text);
	check(have <= left);
	for (left -= have; left;) {
		ssize_t n = recv(fd, NULL, left < DISCARD_BYTES ? left : DISCARD_BYTES, MSG_TRUNC);

		if (n <= 0)
			bench_die("the body ended: %s", n ? strerror(errno) : "end");
		left -= (size_t)n;
	}
}

/* What nginx leaves to the kernel's leisure. */
static void
make_durable(const char *path)
{
	char full[600], *slash;

	snprintf(full, sizeof full, "%s%s", root, path);
	for (int i = 0; i < 2; i++) {
		int fd = open(full, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || fsync(fd) < 0)
			bench_die("%s: %s", full, strerror(errno));
		close(fd);
		slash = strrchr(full, '/');
		*slash = 0;
	}
}

static void *
worker(void *arg)
{
	struct job *j = arg;
	int fd = bench_connect(j->is_nginx ? &nginx : &gantry);

	while (clock_ns() < j->until_ns) {
		unsigned key = atomic_fetch_add(&j->next, 1);
		char path[64], head[512];
		int n;

		if (j->max && key >= j->max)
			break;
		snprintf(path, sizeof path, "/bkt/h%zu-%u", j->size, key % j->keys);
		n = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: localhost\r\n",
			     j->put ? "PUT" : "GET", path);
		if (j->put)
			n += snprintf(head + n, sizeof head - (size_t)n, "Content-Length: %zu\r\n", j->size);
		if (j->md5)
			n += snprintf(head + n, sizeof head - (size_t)n, "Content-MD5: %s\r\n", md5_text);
		n += snprintf(head + n, sizeof head - (size_t)n, "\r\n");
		send_all(fd, head, (size_t)n, bytes, j->put ? j->size : 0);
		take_answer(fd, j->put ? 0 : j->size);
		if (j->durable && j->is_nginx)
			make_durable(path);
		atomic_fetch_add(&j->moved, j->size);
	}
	close(fd);
	return NULL;
}

/* MB/s */
static double
run(struct job j, uint64_t for_ns)
{
	pthread_t t[CONNS_MAX];
	uint64_t begin = clock_ns(), ns;
	double waited = -bench_waited(getpid());

	j.until_ns = for_ns == UINT64_MAX ? UINT64_MAX : begin + for_ns;
	for (int i = 0; i < j.conns; i++)
		check(pthread_create(&t[i], NULL, worker, &j) == 0);
	for (int i = 0; i < j.conns; i++)
		pthread_join(t[i], NULL);
	ns = clock_ns() - begin;
	bench_quiet_add(waited + bench_waited(getpid()), ns);
	return per_second(atomic_load(&j.moved), ns) / 1e6;
}

/* ---- figures ---- */

static unsigned
keys_of(size_t size)
{
	const char *e = getenv("BENCH_HTTP_MIB");
	uint64_t total = (e ? strtoul(e, NULL, 10) : 1024) * MIB;

	return total < 2 * size ? 2 : (unsigned)(total / size);
}

/* What is to be read; durable, so that nothing is written meanwhile. */
static void
fill(const struct job *of, bool is_nginx)
{
	struct job j = { .is_nginx = is_nginx, .put = true, .durable = true };

	j.size = of->size;
	j.conns = of->conns;
	j.keys = j.max = of->keys;
	run(j, UINT64_MAX);
}

static void
get(const char *name, size_t size, int conns)
{
	struct row row = { .figure = name, .unit = "MB/s" };
	struct job ours = { .size = size, .conns = conns, .keys = keys_of(size) },
		   theirs = { .size = size, .conns = conns, .keys = keys_of(size), .is_nginx = true };
	uint64_t ns = size > 16 * MIB ? 2 * bench_ns() : bench_ns();

	fill(&ours, false);
	fill(&theirs, true);
	for (int n = -1; n < bench_rounds(); n++) {
		double x = n & 1 ? run(ours, ns) : 0, y = run(theirs, ns);

		if (!(n & 1))
			x = run(ours, ns);
		if (n >= 0)
			row_add(&row, x, y);
	}
	row_print(&row);
}

/* against: md5, or nginx */
static void
put(const char *name, bool md5)
{
	struct row row = { .figure = name, .unit = "MB/s" };
	struct job ours = { .put = true, .durable = true, .md5 = md5, .size = MIB, .conns = 8, .keys = 256 },
		   other = { .put = true,
			     .durable = true,
			     .is_nginx = !md5,
			     .size = MIB,
			     .conns = 8,
			     .keys = 256 };

	fill(&ours, false);
	if (!md5)
		fill(&other, true);
	for (int n = -1; n < bench_rounds(); n++) {
		double x = n & 1 ? run(ours, bench_ns()) : 0, y = run(other, bench_ns());

		if (!(n & 1))
			x = run(ours, bench_ns());
		if (n >= 0)
			row_add(&row, x, y);
	}
	row_print(&row);
}

static void
make_bytes(void)
{
	unsigned char md5[16];

	bytes = malloc(64 * MIB);
	if (!bytes)
		bench_die("no memory");
	for (size_t i = 0; i < 64 * MIB; i += 8) {
		uint64_t v = (i + 1) * 0x9e3779b97f4a7c15u;

		memcpy(bytes + i, &v, 8);
	}
	if (EVP_Digest(bytes, MIB, md5, NULL, EVP_md5(), NULL) != 1)
		bench_die("no MD5");
	base64_encode(md5, sizeof md5, md5_text);
}

int
main(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "s:n:d:")) != -1) {
		if (opt == 's')
			gantry = bench_address(optarg);
		else if (opt == 'n')
			nginx = bench_address(optarg);
		else if (opt == 'd')
			root = optarg;
		else
			return 2;
	}
	if (!gantry.sin_port || !nginx.sin_port || !root)
		bench_die("usage: see bench/http.c");
	bench_pin(LOAD_CPU);
	make_bytes();
	for (int i = optind; i < argc; i++) {
		if (!strcmp(argv[i], "http_get_1m"))
			get(argv[i], MIB, 16);
		else if (!strcmp(argv[i], "http_get_64m"))
			get(argv[i], 64 * MIB, 4);
		else if (!strcmp(argv[i], "http_put_durable"))
			put(argv[i], false);
		else if (!strcmp(argv[i], "http_put_md5"))
			put(argv[i], true);
		else
			bench_die("no figure %s", argv[i]);
	}
	bench_quiet_say();
	return 0;
}
