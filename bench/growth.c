/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How cost grows through the daemon: with the size of objects and the number of connections.  Each line, with
 * tabs:
 *
 *	GROW sizes <bytes> <name> <value>
 *	GROW connections <number> <name> <value>
 */
#include "bench/load.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define WINDOWS_BYTES (512 * MIB)
/* A token's length has 32 bits: the last step is one page less than 4 GiB. */
#define SIZE_MAX_BYTES (4096 * MIB - 4096)

static void
say(const char *curve, uint64_t x, const char *name, double value)
{
	printf("GROW\t%s\t%llu\t%s\t%.6g\n", curve, (unsigned long long)x, name, value);
	fflush(stdout);
}

/* CPU is net of softnic's copies. */
static void
say_run(const char *curve, uint64_t x, const char *op, const struct result *r)
{
	char name[64];
	double cpu = us_each(r->cpu_ns > r->copy_ns ? r->cpu_ns - r->copy_ns : 0, r->n);

	snprintf(name, sizeof name, "%s MB/s", op);
	if (r->bytes)
		say(curve, x, name, per_second(r->bytes, r->ns) / 1e6);
	snprintf(name, sizeof name, "%s per second", op);
	say(curve, x, name, per_second(r->n, r->ns));
	snprintf(name, sizeof name, "%s, CPU us", op);
	say(curve, x, name, cpu);
	snprintf(name, sizeof name, "%s p50 us", op);
	say(curve, x, name, r->p50_us);
	snprintf(name, sizeof name, "%s p99 us", op);
	say(curve, x, name, r->p99_us);
}

/* 8 at a time where their windows fit side by side, else 2 in the same memory: nobody looks at what came. */
static void
sizes(void)
{
	for (uint64_t step = 4096; step <= 4096 * MIB; step *= 4) {
		uint64_t size = step < SIZE_MAX_BYTES ? step : SIZE_MAX_BYTES;
		bool is_large = size * 8 > WINDOWS_BYTES;
		struct job j = { .server = &load.one,
				 .prefix = load_prefix(size),
				 .size = size,
				 .conns = is_large ? 2 : 8,
				 .one_window = is_large,
				 .live = is_large ? 2 : 0 };
		struct result r;

		if (size > WINDOWS_BYTES)
			load_memory(size);
		/* Three times over: space that was used once, and comes back. */
		for (int i = 0; i < 3; i++)
			load_put_all(&j);
		sleep(1);
		j.op = OP_PUT;
		r = load_run(&j, 2 * bench_ns());
		say_run("sizes", size, "PUT", &r);
		j.op = OP_GET;
		r = load_run(&j, 2 * bench_ns());
		say_run("sizes", size, "GET", &r);
		/* The largest would not fit beside each other. */
		if (size >= 256 * MIB)
			load_delete_all(&j);
	}
	load_memory(WINDOWS_BYTES);
}

static uint64_t
rss_bytes(int pid)
{
	unsigned long size = 0, resident = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/statm", pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2)
		bench_die("%s cannot be read", path);
	fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
connections(void)
{
	struct rlimit files = { 2 * CONNS_MAX, 2 * CONNS_MAX };
	uint64_t before = rss_bytes(load.one.pid);

	setrlimit(RLIMIT_NOFILE, &files);
	for (int conns = 1; conns <= CONNS_MAX; conns *= 4) {
		struct job j = { .server = &load.one,
				 .prefix = load_prefix(4096),
				 .size = 4096,
				 .conns = conns,
				 .one_window = true };
		struct result r;

		j.op = OP_GET;
		if (conns == 1) {
			j.conns = 32;
			load_put_all(&j);
			j.conns = conns;
		}
		r = load_run(&j, 2 * bench_ns());
		say_run("connections", (uint64_t)conns, "GET", &r);
		say("connections", (uint64_t)conns, "MiB more memory",
		    (double)(rss_bytes(load.one.pid) - before) / (double)MIB);
		j.op = OP_PUT;
		r = load_run(&j, 2 * bench_ns());
		say_run("connections", (uint64_t)conns, "PUT", &r);
	}
}

bool
growth(const char *name)
{
	if (!strcmp(name, "sizes"))
		sizes();
	else if (!strcmp(name, "connections"))
		connections();
	else
		return false;
	return true;
}
