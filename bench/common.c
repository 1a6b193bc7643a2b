/* SPDX-License-Identifier: Apache-2.0 */
/* Samples, medians, rows; see bench.h. */
#include "bench/bench.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

void
bench_die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "bench: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static long
number(const char *name, long otherwise, long max)
{
	const char *e = getenv(name);
	long v = e ? strtol(e, NULL, 10) : otherwise;

	if (v < 1 || v > max)
		bench_die("%s must be between 1 and %ld", name, max);
	return v;
}

int
bench_rounds(void)
{
	return (int)number("BENCH_ROUNDS", 7, ROUNDS_MAX);
}

uint64_t
bench_ns(void)
{
	return (uint64_t)number("BENCH_MS", 500, 100000) * NS_PER_MS;
}

uint64_t
bench_live_bytes(uint64_t usual)
{
	return (uint64_t)number("BENCH_LIVE_MIB", (int)(usual / MIB), 1 << 20) * MIB;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* v is sorted. */
static double
quantile(const double *v, int nr, double q)
{
	double at = q * (nr - 1);
	int i = (int)at;

	return i + 1 < nr ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[i];
}

double
bench_median(double *v, int nr)
{
	if (nr == 0)
		return 0;
	qsort(v, (size_t)nr, sizeof *v, by_value);
	return quantile(v, nr, 0.5);
}

void
row_add_net(struct row *r, double ours, double ours_net, double reference)
{
	if (r->nr == ROUNDS_MAX || reference <= 0)
		bench_die("%s: nothing was measured", r->figure);
	r->ours[r->nr] = ours;
	r->reference[r->nr] = reference;
	r->ratio[r->nr] = ours / reference;
	r->net[r->nr++] = ours_net / reference;
}

void
row_add(struct row *r, double ours, double reference)
{
	row_add_net(r, ours, ours, reference);
}

void
row_print(const struct row *r)
{
	struct row s = *r;
	double ours = bench_median(s.ours, s.nr), reference = bench_median(s.reference, s.nr);
	double ratio = bench_median(s.ratio, s.nr), net = bench_median(s.net, s.nr);
	const double *v = s.has_net ? s.net : s.ratio;
	char net_text[32] = "-";

	if (s.has_net)
		snprintf(net_text, sizeof net_text, "%.3f", net);
	printf("ROW\t%s\t%s\t%.6g\t%.6g\t%.3f\t%s\t%d\t%.3f\n", s.figure, s.unit, ours, reference, ratio,
	       net_text, s.nr, quantile(v, s.nr, 0.75) - quantile(v, s.nr, 0.25));
	fflush(stdout);
}

void
bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set); /* one CPU only: then there is nothing to choose */
}

uint64_t
bench_cpu_ns(int pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) < 0)
		bench_die("process %d: no CPU time: %s", pid, strerror(errno));
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Adds up a figure of each thread of a process. one: reads it from the open file. */
static double
sum_of_threads(int pid, const char *file, double (*one)(FILE *f))
{
	char path[64];
	double sum = 0;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/%d/task/%.12s/%s", pid, e->d_name, file);
		f = fopen(path, "r");
		sum += f ? one(f) : 0;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return sum;
}

static double
waited_of(FILE *f)
{
	unsigned long long ran, waited;

	return fscanf(f, "%llu %llu", &ran, &waited) == 2 ? (double)waited : 0;
}

double
bench_waited(int pid)
{
	return sum_of_threads(pid, "schedstat", waited_of);
}

static double
sleeps_of(FILE *f)
{
	unsigned long long n = 0;
	char line[128];

	while (fgets(line, sizeof line, f) && sscanf(line, "voluntary_ctxt_switches: %llu", &n) != 1)
		;
	return (double)n;
}

double
bench_sleeps(int pid)
{
	return sum_of_threads(pid, "status", sleeps_of);
}

static double quiet_waited, quiet_ns;

void
bench_quiet_add(double waited_ns, uint64_t ns)
{
	quiet_waited += waited_ns > 0 ? waited_ns : 0;
	quiet_ns += (double)ns;
}

void
bench_quiet_say(void)
{
	double share = quiet_ns > 0 ? quiet_waited / quiet_ns : 0;

	if (share > 0.05)
		fprintf(stderr,
			"bench: the machine is not quiet: %.0f %% of the time a thread of ours waited for a "
			"CPU; rates and "
			"latencies are too low, CPU times too high\n",
			share * 100);
}

struct sockaddr_in
bench_address(const char *text)
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
bench_connect(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof *at) < 0)
		bench_die("connect: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

/* ---- threads ---- */

struct crew {
	uint64_t (*work)(int thread, const _Atomic bool *ends);
	_Atomic bool ends;
	_Atomic uint64_t done;
	_Atomic int next;
};

static void *
crew_main(void *arg)
{
	struct crew *c = arg;

	c->done += c->work(c->next++, &c->ends);
	return NULL;
}

double
bench_threads(int nr, uint64_t (*work)(int thread, const _Atomic bool *ends))
{
	const struct timespec ts = { .tv_sec = (time_t)(bench_ns() / NS_PER_S),
				     .tv_nsec = (long)(bench_ns() % NS_PER_S) };
	struct crew c = { .work = work };
	pthread_t t[BENCH_THREADS];
	uint64_t begin = clock_ns();

	for (int i = 0; i < nr; i++) {
		if (pthread_create(&t[i], NULL, crew_main, &c) != 0)
			bench_die("no thread");
	}
	nanosleep(&ts, NULL);
	c.ends = true;
	for (int i = 0; i < nr; i++)
		pthread_join(t[i], NULL);
	return per_second(c.done, clock_ns() - begin);
}

void
bench_note_us(double *samples, int *nr, int cap, uint64_t begun_ns)
{
	if (*nr < cap)
		samples[(*nr)++] = (double)(clock_ns() - begun_ns) / 1e3;
}
