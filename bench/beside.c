/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a disk that is out costs those who want the others: the p99 of their PUTs and GETs over HTTP while one of four disks has
 * failed or hangs, against all four well, in turns with the same clients.
 *
 *	bench-beside FIGURE HOST:PORT OUT KEYS HOST:PORT KEYS
 *
 * The first daemon is the one whose fourth disk is out in every second turn: hangs, where OUT is the directory it lies on, a file
 * system that is frozen for as long; or has failed for good, where OUT is "-".  The other daemon, which may be the same, is
 * well.  A file of KEYS has a key in each line, behind 1 if it lies on the fourth disk, else behind 0.
 *
 * OTHERS connections with a request at a time PUT and GET keys of the three other disks, and are measured.  As many as OUTSIDERS
 * PUT keys of the fourth, wait a while after each answer, so that they are little load while they are served, and may be refused.
 * They are more than the daemon takes requests (limits.requests), so they would have all of it if a disk had no bound.
 *
 * Beside a disk that hangs they ask in both turns.  Those of one that has failed are told 503 at once, and would be served where all
 * are well, which costs the others there far more: they ask in its turns alone.
 */
#include "bench/bench.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOAD_CPU 1
#define OTHERS 8
#define OUTSIDERS 100
#define KEYS_MAX 256
#define SAMPLES_MAX (1 << 16)
#define BODY (256u << 10)
#define OUTSIDE_BODY (256u << 10)
#define PAUSE_US 2000000
#define STUCK_US 1000000

struct side {
	struct sockaddr_in at;
	char key[2][KEYS_MAX][32]; /* of the other disks, of the fourth */
	int key_nr[2];
};

static struct {
	struct side out, well;
	const struct side *now;
	int disk; /* what is frozen; -1: nothing */
	bool is_frozen;
	_Atomic bool others_end, outsiders_end;
	_Atomic uint64_t served, refused;
	_Atomic int sample_nr;
	double sample[SAMPLES_MAX];
	char body[BODY];
} b = { .disk = -1 };

/* ---- the disk ---- */

static void
freeze(bool on)
{
	if (b.disk < 0 || b.is_frozen == on)
		return;
	b.is_frozen = on;
	if (ioctl(b.disk, on ? FIFREEZE : FITHAW, 0) < 0)
		bench_die("%s: %s", on ? "freezing" : "thawing", strerror(errno));
}

static void
at_exit(void)
{
	if (b.is_frozen)
		ioctl(b.disk, FITHAW, 0);
}

/* ---- requests ---- */

/* Sends a PUT of so many bytes, or a GET, and reads its answer.  Returns the status; 0: the server closed the connection. */
static int
ask(int fd, const char *key, uint32_t put_bytes)
{
	char text[4097], *end = NULL;
	const char *len;
	size_t have = 0, left;
	int n = snprintf(text, sizeof text,
			 "%s /bkt/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %u\r\n\r\n",
			 put_bytes ? "PUT" : "GET", key, put_bytes);

	if (send(fd, text, (size_t)n, MSG_NOSIGNAL | (put_bytes ? MSG_MORE : 0)) != n)
		return 0;
	/* Who is refused is told before the body has come. */
	for (size_t at = 0; at < put_bytes;) {
		ssize_t sent = send(fd, b.body + at, put_bytes - at, MSG_NOSIGNAL);

		if (sent <= 0)
			break;
		at += (size_t)sent;
	}
	while (!end) {
		ssize_t got = recv(fd, text + have, sizeof text - 1 - have, 0);

		if (got <= 0)
			return 0;
		have += (size_t)got;
		text[have] = 0;
		end = strstr(text, "\r\n\r\n");
		if (!end && have == sizeof text - 1)
			bench_die("an answer without an end: %.500s", text);
	}
	len = strcasestr(text, "\r\ncontent-length: ");
	left = len ? strtoul(len + 18, NULL, 10) : 0;
	have -= (size_t)(end + 4 - text);
	for (left -= have < left ? have : left; left;) {
		ssize_t got = recv(fd, NULL, left, MSG_TRUNC);

		if (got <= 0)
			return 0;
		left -= (size_t)got;
	}
	return (int)strtol(text + 9, NULL, 10);
}

static void *
other(void *arg)
{
	const struct side *s = b.now;
	unsigned i = (unsigned)(uintptr_t)arg;
	int fd = bench_connect(&s->at);

	for (unsigned n = 0; !atomic_load(&b.others_end); n++) {
		const char *key = s->key[0][(i + n / 2 * OTHERS) % (unsigned)s->key_nr[0]];
		uint64_t begun_ns = clock_ns();
		int status = ask(fd, key, n % 2 ? 0 : BODY), at;

		if (status != 200)
			bench_die("%s of %s, on a disk that is well: %d", n % 2 ? "GET" : "PUT", key, status);
		at = atomic_fetch_add(&b.sample_nr, 1);
		if (at < SAMPLES_MAX)
			b.sample[at] = (double)(clock_ns() - begun_ns) / 1e3;
	}
	close(fd);
	return NULL;
}

static void *
outsider(void *arg)
{
	const struct side *s = b.now;
	unsigned i = (unsigned)(uintptr_t)arg;

	/* One after the other, but all before the others are measured. */
	usleep(STUCK_US * 9 / 10 / OUTSIDERS * i);
	for (unsigned n = 0; !atomic_load(&b.outsiders_end); n++) {
		int fd = bench_connect(&s->at);
		int status = ask(fd, s->key[1][(i + n * OUTSIDERS) % (unsigned)s->key_nr[1]], OUTSIDE_BODY);

		if (status != 200 && status != 503 && status != 0)
			bench_die("PUT on the fourth disk: %d", status);
		atomic_fetch_add(status == 200 ? &b.served : &b.refused, 1);
		close(fd);
		usleep(PAUSE_US);
	}
	return NULL;
}

/* ---- turns ---- */

/* Returns the p99 of the others' requests, in microseconds. */
static double
turn(const struct side *s, bool is_out, uint64_t for_ns)
{
	pthread_t o[OTHERS], x[OUTSIDERS];
	bool has_failed = is_out && b.disk < 0;
	uintptr_t outsiders = has_failed || b.disk >= 0 ? OUTSIDERS : 0;
	int nr;

	b.now = s;
	b.sample_nr = 0;
	b.others_end = b.outsiders_end = false;
	b.served = b.refused = 0;
	if (is_out)
		freeze(true);
	for (uintptr_t i = 0; i < outsiders; i++)
		check(pthread_create(&x[i], NULL, outsider, (void *)i) == 0);
	usleep(STUCK_US);
	for (uintptr_t i = 0; i < OTHERS; i++)
		check(pthread_create(&o[i], NULL, other, (void *)i) == 0);
	usleep((useconds_t)(for_ns / 1000));
	b.others_end = true;
	for (int i = 0; i < OTHERS; i++)
		pthread_join(o[i], NULL);
	nr = b.sample_nr < SAMPLES_MAX ? b.sample_nr : SAMPLES_MAX;
	if (getenv("BENCH_VERBOSE"))
		fprintf(stderr,
			"bench: %s: %d requests of the others; on the fourth disk %llu served, %llu "
			"refused\n",
			is_out ? "out" : "well", nr, (unsigned long long)b.served,
			(unsigned long long)b.refused);
	if (is_out && atomic_load(&b.served) > 0)
		bench_die("a PUT on the disk that is out was served");
	if (has_failed && atomic_load(&b.refused) == 0)
		bench_die("nobody asked for the disk that has failed");
	if (!is_out && outsiders && atomic_load(&b.served) == 0)
		bench_die("no PUT on the fourth disk was served while it was well");
	freeze(false);
	b.outsiders_end = true;
	for (uintptr_t i = 0; i < outsiders; i++)
		pthread_join(x[i], NULL);
	if (nr < 200)
		bench_die("only %d requests: p99 says nothing", nr);
	bench_median(b.sample, nr); /* sorts */
	return b.sample[nr - 1 - nr / 100];
}

static void
read_keys(struct side *s, const char *path)
{
	char text[32];
	int fourth;
	FILE *f = fopen(path, "re");

	if (!f)
		bench_die("%s: %s", path, strerror(errno));
	while (fscanf(f, "%d %31s", &fourth, text) == 2) {
		int i = fourth != 0;

		if (s->key_nr[i] < KEYS_MAX)
			memcpy(s->key[i][s->key_nr[i]++], text, sizeof text);
	}
	fclose(f);
	if (!s->key_nr[0] || !s->key_nr[1])
		bench_die("%s: %d keys of other disks, %d of the fourth", path, s->key_nr[0], s->key_nr[1]);
}

int
main(int argc, char **argv)
{
	struct row row = { .unit = "us" };
	uint64_t ns = 4 * bench_ns();

	if (argc != 7)
		bench_die("usage: see bench/beside.c");
	row.figure = argv[1];
	b.out.at = bench_address(argv[2]);
	if (strcmp(argv[3], "-") != 0 && (b.disk = open(argv[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		bench_die("%s: %s", argv[3], strerror(errno));
	atexit(at_exit);
	read_keys(&b.out, argv[4]);
	b.well.at = bench_address(argv[5]);
	read_keys(&b.well, argv[6]);
	for (size_t i = 0; i < BODY; i++)
		b.body[i] = (char)(i * 0x9e3779b97f4a7c15u >> 56);
	bench_pin(LOAD_CPU);
	turn(&b.well, false, ns); /* so that whatever is read is there */
	for (int n = 0; n < bench_rounds(); n++) {
		double v[2];

		for (int i = 0; i < 2; i++) {
			int is_out = i ^ (n & 1);

			v[is_out] = turn(is_out ? &b.out : &b.well, is_out, ns);
		}
		row_add(&row, v[1], v[0]);
	}
	row_print(&row);
	return 0;
}
