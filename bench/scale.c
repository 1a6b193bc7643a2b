/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load of several processes on one daemon, for bench/scaling: requests a second, latency, CPU of the daemon.
 *
 *	bench-scale -s HOST:PORT -p PID -c SOFTNICCTL -l CPU,CPU,... put|get SIZE IN_FLIGHT
 *
 * Each process runs on one of the CPUs and has objects, connections and windows of its own. All of them put their objects
 * once, run for a quarter of BENCH_MS, and then, all at the same time, for BENCH_MS. Prints a line, with tabs:
 *
 *	SCALE op size in_flight requests/s MB/s p50_us p99_us cpu_us copy_us busy_cores waited
 *
 * cpu_us, copy_us: CPU time of the daemon for a request, and the part of it in which the software NIC copied; waited: time that threads of
 * the daemon were ready and had no CPU, in seconds for each second.
 */
#include "bench/load.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 64
#define LIVE_BYTES_ALL (256 * MIB)
#define STRIDE_MIN (64u << 10) /* of windows (load.c) */

/* A process: it writes a byte when it is ready, waits for one, and writes its result. */
struct child {
	int up[2], down[2];
	pid_t pid;
};

static struct child child[PROCESSES_MAX];
static int cpus[PROCESSES_MAX], cpu_nr;

static void
read_all(int fd, void *p, size_t len)
{
	if (read(fd, p, len) != (ssize_t)len)
		bench_die("a process of the load has ended");
}

static void
write_all(int fd, const void *p, size_t len)
{
	if (write(fd, p, len) != (ssize_t)len)
		bench_die("pipe: %s", strerror(errno));
}

static void
child_main(const struct child *c, int nr, struct job j)
{
	size_t stride = j.size < STRIDE_MIN ? STRIDE_MIN : j.size;
	struct result r;
	char prefix[32], byte = 0;

	bench_pin(cpus[nr]);
	load.softnicctl = NULL; /* copies are counted by the parent */
	load_memory((size_t)j.conns * stride);
	snprintf(prefix, sizeof prefix, "s%d-%zu-", nr, j.size);
	j.prefix = prefix;
	load_put_all(&j);
	load_run(&j, bench_ns() / 4);
	write_all(c->up[1], &byte, 1);
	read_all(c->down[0], &byte, 1);
	r = load_run(&j, bench_ns());
	write_all(c->up[1], &r, sizeof r);
	exit(0);
}

static void
start(int nr, const struct job *j, int in_flight)
{
	struct job own = *j;
	uint64_t live = bench_live_bytes(LIVE_BYTES_ALL) / (uint64_t)cpu_nr / j->size;

	own.conns = in_flight / cpu_nr + (nr < in_flight % cpu_nr);
	own.live = live > 4096 ? 4096 : live < (uint64_t)own.conns ? (uint64_t)own.conns : live;
	if (pipe(child[nr].up) < 0 || pipe(child[nr].down) < 0)
		bench_die("pipe: %s", strerror(errno));
	child[nr].pid = fork();
	if (child[nr].pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (child[nr].pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_main(&child[nr], nr, own);
	}
	close(child[nr].up[1]);
	close(child[nr].down[0]);
}

static void
measure(struct job *j, int in_flight)
{
	const struct server *s = j->server;
	double p50[PROCESSES_MAX], rate = 0, p99 = 0, waited;
	uint64_t begin, cpu, copy, n = 0, ns;
	char byte = 0;

	if (in_flight < cpu_nr)
		cpu_nr = in_flight;
	for (int i = 0; i < cpu_nr; i++)
		start(i, j, in_flight);
	for (int i = 0; i < cpu_nr; i++)
		read_all(child[i].up[0], &byte, 1);
	copy = load_copy_ns(s);
	cpu = bench_cpu_ns(s->pid);
	waited = -bench_waited(s->pid);
	begin = clock_ns();
	for (int i = 0; i < cpu_nr; i++)
		write_all(child[i].down[1], &byte, 1);
	for (int i = 0; i < cpu_nr; i++) {
		struct result r;

		read_all(child[i].up[0], &r, sizeof r);
		n += r.n;
		rate += per_second(r.n, r.ns);
		p50[i] = r.p50_us;
		p99 = r.p99_us > p99 ? r.p99_us : p99;
	}
	ns = clock_ns() - begin;
	cpu = bench_cpu_ns(s->pid) - cpu;
	waited += bench_waited(s->pid);
	copy = load_copy_ns(s) - copy;
	for (int i = 0; i < cpu_nr; i++)
		waitpid(child[i].pid, NULL, 0);
	printf("SCALE\t%s\t%zu\t%d\t%.0f\t%.1f\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%.3f\n",
	       j->op == OP_PUT ? "put" : "get", j->size, in_flight, rate, rate * (double)j->size / 1e6,
	       bench_median(p50, cpu_nr), p99, us_each(cpu, n), us_each(copy, n), (double)cpu / (double)ns,
	       waited / (double)ns);
}

static void
take_cpus(char *list)
{
	for (char *w = strtok(list, ","); w && cpu_nr < PROCESSES_MAX; w = strtok(NULL, ","))
		cpus[cpu_nr++] = atoi(w);
}

int
main(int argc, char **argv)
{
	struct job j = { .server = &load.one };
	int opt, in_flight;

	load.one.is_gantry = true;
	while ((opt = getopt(argc, argv, "s:p:c:l:")) != -1) {
		switch (opt) {
		case 's':
			load.one.at = bench_address(optarg);
			break;
		case 'p':
			load.one.pid = atoi(optarg);
			break;
		case 'c':
			load.softnicctl = optarg;
			break;
		case 'l':
			take_cpus(optarg);
			break;
		default:
			return 2;
		}
	}
	if (!load.one.pid || !load.softnicctl || !cpu_nr || argc - optind != 3)
		bench_die("usage: see bench/scale.c");
	j.op = strcmp(argv[optind], "put") == 0 ? OP_PUT : OP_GET;
	j.size = strtoul(argv[optind + 1], NULL, 10);
	in_flight = atoi(argv[optind + 2]);
	if (!j.size || in_flight < 1 || in_flight > CONNS_MAX)
		bench_die("usage: see bench/scale.c");
	measure(&j, in_flight);
	return 0;
}
