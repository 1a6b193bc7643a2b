/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How cost grows with the number of objects: memory, PUT, lookup, listing, snapshots, start.
 *
 *	bench-objects DIR MAX
 *
 * At 10^3, 10^4 ... MAX objects: small ones that live in their record, under keys of 66 bytes (as the index
 * holds them) in random order, the worst there is.  Each step is a process of its own, which opens the store
 * with what the steps before have put (that is the start that is timed: they ended without a word, as if
 * killed), fills it up and measures.  One line a step, with tabs:
 *
 *	GROW objects <number of objects> <name> <value>
 */
#include "bench/bench.h"
#include "bench/port.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/slice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STORE_GIB 64 /* or BENCH_STORE_GIB */
#define KEY_BYTES 59 /* and type, bucket, 0: 66 */
#define INLINE_BYTES 16
#define DEPTH 256 /* PUTs at a time */
#define PAGE 1000 /* of a listing */
#define LISTED_MAX 2000000
#define LOOKUPS 200000
#define SAMPLES_MAX (1u << 20)

/* What a step finds out; shared with its process. */
struct step {
	uint64_t objects, start_ns, start_rss, start_index, put_ns, put_cpu_ns, puts, rss, index_bytes;
	uint64_t lookups, lookup_cpu_ns, listed, list_cpu_ns;
	uint64_t snapshots, snapshot_bytes, snapshot_ns;
	double p50_us[2], p99_us[2], max_us[2]; /* of PUTs; [1]: begun while a snapshot was made */
	bool is_over;
};

struct work {
	struct store_put put;
	struct store_commit commit;
	struct store_key key;
	char text[KEY_BYTES + 1];
	uint64_t begun_ns;
	bool in_snapshot;
};

static struct {
	struct port port;
	struct step *step;
	struct work work[DEPTH];
	uint64_t next, until;
	int busy;
	bool in_snapshot;
	float *sample[2];
	uint32_t sample_nr[2];
	uint64_t listed;
	char last[KEY_BYTES + 1];
} b;

static uint64_t
mix(uint64_t v)
{
	v = (v ^ v >> 31) * 0x7fb5d329728ea185u;
	v = (v ^ v >> 27) * 0x81dadef4bc2dd44du;
	return v ^ v >> 33;
}

/* A path and a digest: the digests come in no order. */
static void
key_text(uint64_t n, char *out)
{
	snprintf(out, KEY_BYTES + 1, "data/2026/%016llx%016llx%016llx.", (unsigned long long)mix(n + 1),
		 (unsigned long long)mix(n ^ 0x5555555555u), (unsigned long long)mix(~n));
}

static uint64_t
store_bytes(void)
{
	const char *gib = getenv("BENCH_STORE_GIB");

	return (gib ? strtoull(gib, NULL, 10) : STORE_GIB) * 1024 * MIB;
}

static struct store_key
key_of(const char *text)
{
	return (struct store_key){ BENCH_BUCKET, text, sizeof BENCH_BUCKET - 1, KEY_BYTES };
}

static uint64_t
cpu_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t
rss_bytes(void)
{
	unsigned long size, resident;
	FILE *f = fopen("/proc/self/statm", "r");
	int n = f ? fscanf(f, "%lu %lu", &size, &resident) : 0;

	if (f)
		fclose(f);
	return n == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* ---- filling ---- */

static void put_next(struct work *w);
static void put(struct work *w);

static void
sample(struct work *w)
{
	/* One that any part of a snapshot fell into counts for it. */
	int i = w->in_snapshot || b.in_snapshot;

	if (b.sample_nr[i] < SAMPLES_MAX)
		b.sample[i][b.sample_nr[i]++] = (float)(clock_ns() - w->begun_ns) / 1e3f;
}

static void
on_put(struct store_op *op)
{
	struct work *w = container_of(op, struct work, put.op);

	/* No room in the log for two seconds, since a snapshot takes that long: asked again, as clients do. */
	if (op->result == -EAGAIN) {
		put(w);
		return;
	}
	if (op->result < 0)
		bench_die("PUT: %s", strerror(-op->result));
	b.step->puts++;
	sample(w);
	put_next(w);
}

static void
put(struct work *w)
{
	static const char data[INLINE_BYTES] = "sixteen bytes  ";

	w->put.op.done = on_put;
	w->commit = (struct store_commit){ .inline_data = data, .inline_len = sizeof data };
	port_put_inline(&b.port, &w->put, &w->key, &w->commit);
}

static void
put_next(struct work *w)
{
	if (b.next == b.until) {
		b.busy--;
		return;
	}
	key_text(b.next++, w->text);
	w->key = key_of(w->text);
	w->begun_ns = clock_ns();
	w->in_snapshot = b.in_snapshot;
	put(w);
}

static int
by_value(const void *x, const void *y)
{
	float a = *(const float *)x, c = *(const float *)y;

	return a < c ? -1 : a > c;
}

static void
percentiles(struct step *s)
{
	for (int i = 0; i < 2; i++) {
		uint32_t n = b.sample_nr[i];

		if (!n)
			continue;
		qsort(b.sample[i], n, sizeof(float), by_value);
		s->p50_us[i] = (double)b.sample[i][n / 2];
		s->p99_us[i] = (double)b.sample[i][n - 1 - n / 100];
		s->max_us[i] = (double)b.sample[i][n - 1];
	}
}

static void
fill(struct step *s)
{
	struct store_unit_info info;
	uint64_t begun = clock_ns(), cpu = cpu_ns(CLOCK_THREAD_CPUTIME_ID);

	b.busy = DEPTH;
	for (int i = 0; i < DEPTH; i++)
		put_next(&b.work[i]);
	while (b.busy) {
		port_turn(&b.port);
		store_unit_info(b.port.st, 0, &info);
		b.in_snapshot = store_unit_number(&info, "snapshot_runs");
	}
	s->put_ns = clock_ns() - begun;
	s->put_cpu_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	/* What is under way is part of the cost. */
	do {
		port_turn(&b.port);
		store_unit_info(b.port.st, 0, &info);
	} while (store_unit_number(&info, "snapshot_runs"));
	s->snapshots = store_unit_number(&info, "snapshots");
	s->snapshot_bytes = store_unit_number(&info, "snapshot_bytes");
	s->snapshot_ns = store_unit_number(&info, "snapshot_ns");
	s->index_bytes = store_unit_number(&info, "index_bytes");
	percentiles(s);
}

/* ---- reading ---- */

static void
look_up(struct step *s)
{
	uint64_t cpu = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	struct store_obj obj;
	char text[KEY_BYTES + 1];

	for (s->lookups = 0; s->lookups < LOOKUPS; s->lookups++) {
		struct store_key k = key_of(text);

		key_text(mix(s->lookups) % s->objects, text);
		if (store_open(b.port.p, &k, &obj) <= 0 || obj.op.result < 0)
			bench_die("%s is not there", text);
		store_close(b.port.p, &obj);
		if (s->lookups % 64 == 0)
			store_turn(b.port.p, TURN_QUIESCENT);
	}
	s->lookup_cpu_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	check(e->name_len == KEY_BYTES);
	memcpy(b.last, e->name, KEY_BYTES);
	return true;
}

static void
on_page(struct store_op *op)
{
	b.busy--;
}

static void
list_all(struct step *s)
{
	uint64_t cpu = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	static struct store_list ls;
	int r;

	do {
		char after[KEY_BYTES + 1];
		bool more = s->listed;

		memcpy(after, b.last, sizeof after);
		memset(&ls, 0, offsetof(struct store_list, priv));
		ls.bucket = BENCH_BUCKET;
		ls.bucket_len = sizeof BENCH_BUCKET - 1;
		ls.after = more ? after : NULL;
		ls.after_len = more ? KEY_BYTES : 0;
		ls.max = PAGE;
		ls.entry = on_entry;
		ls.op.done = on_page;
		b.busy = 1;
		r = store_list(b.port.p, &ls);
		if (r < 0)
			bench_die("list: %s", strerror(-r));
		while (r == 0 && b.busy)
			port_turn(&b.port);
		if (ls.op.result < 0)
			bench_die("list: %s", strerror(-ls.op.result));
		s->listed += (uint64_t)ls.op.result;
		store_turn(b.port.p, TURN_QUIESCENT);
	} while (ls.more && s->listed < LISTED_MAX);
	s->list_cpu_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

/* ---- steps ---- */

/* Makes a snapshot of what is there, so that a start reads nothing else. */
static void
snapshot(void)
{
	struct store_unit_info info;
	uint64_t before;

	store_unit_info(b.port.st, 0, &info);
	before = store_unit_number(&info, "snapshots");
	if (store_snapshot(b.port.st) < 0)
		bench_die("no snapshot can be asked for");
	do {
		port_turn(&b.port);
		store_unit_info(b.port.st, 0, &info);
	} while (store_unit_number(&info, "snapshots") == before ||
		 store_unit_number(&info, "snapshot_runs"));
}

/* The control group that bounds what a start reads (bench/starts). */
static void
enter_group(void)
{
	const char *name = getenv("BENCH_START_GROUP");
	char path[400];
	FILE *f;

	if (!name || !*name)
		return;
	snprintf(path, sizeof path, "%s/cgroup.procs", name);
	f = fopen(path, "w");
	if (!f || fprintf(f, "%d", (int)getpid()) < 0 || fclose(f) != 0)
		bench_die("%s: %s", path, strerror(errno));
}

/* In a process of its own.  before: what is there already; this one's number: no more.  snapshots: so many are made at
 * the end. */
static void
run_step(const char *dir, uint64_t before, int snapshots, struct step *s)
{
	struct store_unit_info info;
	uint64_t begun, rss, had;

	slice_short();
	if (s->objects == before && !snapshots)
		enter_group();
	begun = clock_ns();
	rss = rss_bytes();
	b.step = s;
	port_open(&b.port, dir, store_bytes(), 16384 * MIB, NULL);
	s->start_ns = clock_ns() - begun;
	s->start_rss = rss_bytes() - rss;
	store_unit_info(b.port.st, 0, &info);
	had = store_unit_number(&info, "objects");
	s->start_index = store_unit_number(&info, "index_bytes");
	if (had != before)
		bench_die("%llu objects are there, not %llu", (unsigned long long)had,
			  (unsigned long long)before);
	if (s->objects > before) {
		for (int i = 0; i < 2; i++)
			b.sample[i] = malloc(SAMPLES_MAX * sizeof(float));
		rss = rss_bytes() - s->start_rss;
		b.next = before;
		b.until = s->objects;
		fill(s);
		for (int i = 0; i < 2; i++)
			free(b.sample[i]);
		s->rss = rss_bytes() - rss;
		look_up(s);
		list_all(s);
	}
	for (int i = 0; i < snapshots; i++)
		snapshot();
	s->is_over = true;
	_exit(0);
}

static struct step
step(const char *dir, uint64_t before, uint64_t objects, int snapshots)
{
	struct step *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), r;
	int status = 0;
	pid_t pid;

	check(s != MAP_FAILED);
	s->objects = objects;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_step(dir, before, snapshots, s);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !s->is_over)
		bench_die("the step to %llu objects failed", (unsigned long long)objects);
	r = *s;
	munmap(s, sizeof *s);
	return r;
}

static void
say(uint64_t objects, const char *name, double value)
{
	printf("GROW\tobjects\t%llu\t%s\t%.6g\n", (unsigned long long)objects, name, value);
}

static void
say_step(const struct step *s)
{
	double n = (double)s->objects;

	say(s->objects, "index bytes per object", (double)s->index_bytes / n);
	say(s->objects, "process bytes per object", (double)s->rss / n);
	say(s->objects, "PUT, CPU us", (double)s->put_cpu_ns / 1e3 / (double)s->puts);
	say(s->objects, "PUT per second", per_second(s->puts, s->put_ns));
	say(s->objects, "lookup, CPU us", (double)s->lookup_cpu_ns / 1e3 / (double)s->lookups);
	say(s->objects, "listed, CPU us", (double)s->list_cpu_ns / 1e3 / (double)s->listed);
	say(s->objects, "PUT p50 us", s->p50_us[0]);
	say(s->objects, "PUT p99 us", s->p99_us[0]);
	if (s->snapshots) {
		say(s->objects, "snapshots", (double)s->snapshots);
		say(s->objects, "snapshot bytes", (double)s->snapshot_bytes);
		say(s->objects, "snapshot s", (double)s->snapshot_ns / 1e9);
	}
	if (s->p50_us[1] > 0) {
		say(s->objects, "PUT p50 us, snapshot", s->p50_us[1]);
		say(s->objects, "PUT p99 us, snapshot", s->p99_us[1]);
		say(s->objects, "PUT max us, snapshot", s->max_us[1]);
	}
}

/* What a start leaves in memory. */
static void
say_started(uint64_t objects, const struct step *s)
{
	say(objects, "index bytes per object, started", (double)s->start_index / (double)objects);
	say(objects, "process bytes per object, started", (double)s->start_rss / (double)objects);
}

int
main(int argc, char **argv)
{
	uint64_t max = argc == 3 ? strtoull(argv[2], NULL, 10) : 0, before = 0;
	char dir[400];

	if (max < 1000)
		bench_die("usage: see bench/objects.c");
	snprintf(dir, sizeof dir, "%s/objects", argv[1]);
	port_format(dir, store_bytes());
	for (uint64_t n = 1000; before < max; n *= 10) {
		struct step s;

		s = step(dir, before, n < max ? n : max, 0);
		if (before) {
			say(before, "start s", (double)s.start_ns / 1e9);
			say_started(before, &s);
		}
		say_step(&s);
		before = s.objects;
	}
	for (int i = 0; i < 4; i++) {
		/* The first start finds what the log held; two snapshots are made then, and the others find those. */
		struct step s = step(dir, before, before, i ? 0 : 2);

		say(before, i ? "start s, snapshot only" : "start s", (double)s.start_ns / 1e9);
		if (!i)
			say_started(before, &s);
	}
	port_remove(dir);
	return 0;
}
