/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of gantry bench, and one request at a time of each; see bench.h.
 *
 * Time runs from when a request is handed to libgantry, or was due (--rate), until it returns: connections, retries
 * and a repetition over HTTP are part of it.  Making and comparing bytes (--verify) is not, but a thread sends nothing
 * meanwhile.
 */
#include "client/cmd/bench/bench.h"

#include "base/clock.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/content.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAILURES_MAX 10 /* of one thread in a row */
#define TRIES 3
#define TOLD_MAX 5 /* what went wrong, in full */
#define NAP_NS (20 * NS_PER_MS)
#define GATHER_NS (200 * NS_PER_US)

/* GATHER: whoever has an answer waits for the others, so that what is measured begins with nothing under way. */
enum phase { WARM_UP, GATHER, MEASURE, END };

struct crew {
	struct bench *b;
	struct bench_row *row;
	enum bench_job job;
	int nr;
	_Atomic enum phase phase;
	_Atomic uint64_t begun; /* of --count */
	_Atomic int working, gathered;
	_Atomic bool gave_up;
	uint64_t round;
};

struct worker {
	struct crew *crew;
	int nr;
	uint64_t random, due_ns, puts;
	int failures; /* in a row */
	bool counts;  /* what it does now is measured */
};

/* ---- signals ---- */

static atomic_bool ended; /* free of locks, so good for a handler and for threads */

static void
on_signal(int sig)
{
	ended = true;
}

void
bench_catch_signals(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP };
	/* The second one ends us as if we had not asked. */
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_RESTART };

	for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++)
		sigaction(sigs[i], &sa, NULL);
}

bool
bench_ended(void)
{
	return ended;
}

/* ---- what is counted ---- */

static void
count_kind(struct bench_kinds *k, const char *name)
{
	int i = 0;

	while (i < k->nr && strcmp(k->kind[i].name, name) != 0)
		i++;
	if (i == BENCH_KINDS_MAX) {
		i = BENCH_KINDS_MAX - 1;
		snprintf(k->kind[i].name, sizeof k->kind[i].name, "others");
	}
	if (i == k->nr)
		snprintf(k->kind[k->nr++].name, sizeof k->kind[i].name, "%s", name);
	k->kind[i].nr++;
}

static void
count_failure(struct worker *w, enum bench_op op, const char *url, const char *kind, const char *message)
{
	static int told;
	struct bench *b = w->crew->b;
	struct bench_row *row = w->crew->row;

	if (++w->failures == FAILURES_MAX)
		w->crew->gave_up = true;
	pthread_mutex_lock(&b->lock);
	if (told < TOLD_MAX)
		fprintf(stderr, "gantry: bench: %s %s: %s%s%s\n", bench_op_name[op], url, kind,
			*message ? ": " : "", message);
	else if (told == TOLD_MAX)
		fprintf(stderr, "gantry: bench: further failures are only counted\n");
	told++;
	if (w->crew->job != BENCH_REMOVE) {
		count_kind(&row->error, kind);
		row->errors++;
	}
	pthread_mutex_unlock(&b->lock);
}

static void
count_error(struct worker *w, enum bench_op op, const char *url, int e, const struct gantry_result *res)
{
	char kind[64];

	if (*res->code)
		snprintf(kind, sizeof kind, "%s", res->code);
	else if (res->status >= 300)
		snprintf(kind, sizeof kind, "HTTP %d", res->status);
	else
		snprintf(kind, sizeof kind, "%s", strerrorname_np(-e) ? strerrorname_np(-e) : "?");
	count_failure(w, op, url, kind, res->message);
}

static void
count_success(struct worker *w, enum bench_op op, const struct gantry_result *res, uint64_t ns)
{
	struct bench *b = w->crew->b;
	struct bench_row *row = w->crew->row;
	enum bench_way went = res->path == GANTRY_PATH_RDMA ? BENCH_RDMA : BENCH_HTTP;
	bool moves = op == BENCH_PUT || op == BENCH_GET;
	uint64_t bytes = moves ? res->bytes : 0;

	w->failures = 0;
	b->total.nr[op]++;
	if (op == BENCH_PUT)
		b->total.put_bytes[went] += bytes;
	else if (op == BENCH_GET)
		b->total.get_bytes[went] += bytes;
	if (!w->counts)
		return;
	histogram_add(&row->op[op].latency, ns);
	row->op[op].nr++;
	row->op[op].bytes += bytes;
	if (went == BENCH_RDMA)
		row->rdma_bytes += bytes;
	else
		row->http_bytes += bytes;
	if (moves && went == BENCH_HTTP && row->way == BENCH_RDMA) {
		pthread_mutex_lock(&b->lock);
		count_kind(&row->not_rdma, res->reason);
		pthread_mutex_unlock(&b->lock);
	}
}

/* ---- requests ---- */

/* What one request is about. */
struct ask {
	struct bench_object *o;
	char url[2048];
	uint64_t id;
	struct gantry_request req;
	struct gantry_result res;
};

static uint64_t
random_of(struct worker *w)
{
	return w->random = content_scramble(w->random);
}

static void
ask_init(struct worker *w, struct ask *a, uint64_t i)
{
	struct bench *b = w->crew->b;

	a->o = &b->object[i];
	a->id = content_scramble(((uint64_t)b->group << 32 | i) + b->seed);
	snprintf(a->url, sizeof a->url, "%s/%016llx", b->base, (unsigned long long)a->id);
	a->req = request_of(b->c);
	a->req.no_rdma = w->crew->row->way == BENCH_HTTP;
	a->res = (struct gantry_result){ .size = sizeof a->res };
}

static uint64_t
content_of(const struct ask *a, uint32_t version)
{
	return content_scramble(a->id ^ content_scramble(version));
}

/* When the request begins, or was due to. */
static uint64_t
begin(struct worker *w)
{
	return w->due_ns ? w->due_ns : clock_ns();
}

static void
put_one(struct worker *w, struct ask *a)
{
	struct bench *b = w->crew->b;
	const struct bench_sizes *s = w->crew->row->sizes;
	void *mem = b->buffer[w->nr].mem;
	int pick = bench_pick(s->weight, s->nr, random_of(w));
	uint64_t from;
	int e;

	a->o->is_there = false;
	a->o->is_left = true;
	a->o->version++;
	a->o->size = (uint8_t)pick;
	if (b->c->verify)
		content_fill(mem, s->size[pick], content_of(a, a->o->version));
	from = begin(w);
	e = gantry_put(b->c->g, a->url, mem, s->size[pick], &a->req, &a->res);
	if (e < 0) {
		count_error(w, BENCH_PUT, a->url, e, &a->res);
		return;
	}
	count_success(w, BENCH_PUT, &a->res, clock_ns() - from);
	a->o->is_there = true;
}

/* What came is not what was stored. */
static void __attribute__((format(printf, 4, 5)))
damaged(struct worker *w, enum bench_op op, struct ask *a, const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	w->crew->row->damaged++;
	count_failure(w, op, a->url, "damaged", text);
}

static bool
has_other_size(struct worker *w, enum bench_op op, struct ask *a, uint64_t have, uint64_t want)
{
	if (have != want)
		damaged(w, op, a, "it has %llu bytes, and %llu were stored", (unsigned long long)have,
			(unsigned long long)want);
	return have != want;
}

static void
get_one(struct worker *w, struct ask *a)
{
	struct bench *b = w->crew->b;
	uint64_t want = w->crew->row->sizes->size[a->o->size], from, ns, good;
	void *mem = b->buffer[w->nr].mem;
	int e;

	/* What an earlier request left there must not pass. */
	if (b->c->verify)
		memset(mem, 0, want);
	from = begin(w);
	e = gantry_get(b->c->g, a->url, mem, want, 0, &a->req, &a->res);
	ns = clock_ns() - from;
	if (e < 0) {
		count_error(w, BENCH_GET, a->url, e, &a->res);
		return;
	}
	if (has_other_size(w, BENCH_GET, a, a->res.has_object_size ? a->res.object_size : a->res.bytes, want))
		return;
	good = b->c->verify ? content_compare(mem, want, content_of(a, a->o->version)) : want;
	if (good < want) {
		damaged(w, BENCH_GET, a, "byte %llu of %llu is not what was stored", (unsigned long long)good,
			(unsigned long long)want);
		return;
	}
	count_success(w, BENCH_GET, &a->res, ns);
}

static void
head_one(struct worker *w, struct ask *a)
{
	uint64_t want = w->crew->row->sizes->size[a->o->size], from = begin(w);
	int e = gantry_head(w->crew->b->c->g, a->url, &a->req, &a->res);

	if (e < 0)
		count_error(w, BENCH_HEAD, a->url, e, &a->res);
	else if (!a->res.has_object_size || !has_other_size(w, BENCH_HEAD, a, a->res.object_size, want))
		count_success(w, BENCH_HEAD, &a->res, clock_ns() - from);
}

static void
remove_one(struct worker *w, struct ask *a)
{
	uint64_t from = begin(w);
	int e = gantry_delete(w->crew->b->c->g, a->url, &a->req, &a->res);

	a->o->is_there = false;
	if (e < 0) {
		count_error(w, BENCH_DELETE, a->url, e, &a->res);
		return;
	}
	a->o->is_left = false;
	count_success(w, BENCH_DELETE, &a->res, clock_ns() - from);
}

/* ---- which object ---- */

/* How many objects are this thread's: nr, nr + crew, nr + 2 crew, ... */
static uint64_t
own_count(const struct worker *w)
{
	uint64_t all = w->crew->b->objects;

	return (uint64_t)w->nr >= all ? 0 : (all - (uint64_t)w->nr - 1) / (uint64_t)w->crew->nr + 1;
}

static uint64_t
own(const struct worker *w, uint64_t i)
{
	return (uint64_t)w->nr + i * (uint64_t)w->crew->nr;
}

/* One of ours that is there, by chance; false: none is. */
static bool
find_one(struct worker *w, uint64_t *ret)
{
	uint64_t nr = own_count(w), from = random_of(w) % nr;

	for (uint64_t i = 0; i < nr; i++) {
		*ret = own(w, (from + i) % nr);
		if (w->crew->b->object[*ret].is_there)
			return true;
	}
	return false;
}

static void
one_of_mix(struct worker *w)
{
	static void (*const act[BENCH_OP_NR])(struct worker *,
					      struct ask *) = { [BENCH_PUT] = put_one,
								[BENCH_GET] = get_one,
								[BENCH_HEAD] = head_one,
								[BENCH_DELETE] = remove_one };
	int op = bench_pick(w->crew->row->mix->weight, BENCH_OP_NR, random_of(w));
	struct ask a;
	uint64_t i;

	/* Where there is nothing to get, head or delete, there is room for a put. */
	if (op == BENCH_PUT || !find_one(w, &i)) {
		op = BENCH_PUT;
		i = own(w, w->puts++ % own_count(w));
	}
	ask_init(w, &a, i);
	act[op](w, &a);
}

/* ---- threads ---- */

static void
nap(uint64_t ns)
{
	struct timespec ts = { .tv_nsec = (long)ns };

	nanosleep(&ts, NULL);
}

static void
sleep_until(struct crew *crew, uint64_t ns)
{
	for (uint64_t now = clock_ns(); now < ns && !ended && crew->phase != END && crew->phase != GATHER;
	     now = clock_ns())
		nap(ns - now < NAP_NS ? ns - now : NAP_NS);
}

static void
gather(struct crew *crew)
{
	crew->gathered++;
	while (crew->phase == GATHER && !ended && !crew->gave_up)
		nap(GATHER_NS);
}

static void
measure(struct worker *w)
{
	struct crew *crew = w->crew;
	struct cmd *c = crew->b->c;
	double interval_ns = c->rate > 0 ? crew->nr / c->rate * 1e9 : 0;
	double due = (double)clock_ns() + interval_ns * w->nr / crew->nr;

	while (!ended && !crew->gave_up) {
		if (crew->phase == GATHER) {
			gather(crew);
			due = (double)clock_ns() + interval_ns * w->nr / crew->nr;
		}
		if (interval_ns > 0) {
			w->due_ns = (uint64_t)due;
			sleep_until(crew, w->due_ns);
			due += interval_ns;
		}
		enum phase phase = crew->phase;

		if (phase == END)
			return;
		if (phase == GATHER)
			continue;
		w->counts = phase == MEASURE;
		if (w->counts && c->count && atomic_fetch_add(&crew->begun, 1) >= (uint64_t)c->count)
			return;
		one_of_mix(w);
	}
}

/* Puts what is not there, or deletes what may be: each some times, should it fail. */
static void
tidy(struct worker *w, bool is_put)
{
	for (uint64_t k = 0; k < own_count(w) && !w->crew->gave_up && !(is_put && ended); k++) {
		uint64_t i = own(w, k);
		struct bench_object *o = &w->crew->b->object[i];
		struct ask a;

		for (int tries = 0; tries < TRIES && (is_put ? !o->is_there : o->is_left); tries++) {
			ask_init(w, &a, i);
			if (is_put)
				put_one(w, &a);
			else
				remove_one(w, &a);
		}
	}
}

static void *
work(void *arg)
{
	struct worker *w = arg;

	if (w->crew->job == BENCH_MEASURE)
		measure(w);
	else
		tidy(w, w->crew->job == BENCH_PREPARE);
	w->crew->working--;
	return NULL;
}

/* ---- what it costs ---- */

struct cost {
	uint64_t ns;
	double client_s, server_s;
};

static double
server_cpu_s(const struct bench *b)
{
	struct sample s;
	struct answer a;
	char err[512];
	double cpu;
	int line;

	if (!b->has_server_cpu || admin_get(admin_name(b->c->admin), "/metrics", &a, err, sizeof err) < 0)
		return 0;
	if (sample_parse(a.text, &s, &line) < 0)
		return 0;
	cpu = sample_sum(&s, "process_cpu_seconds_total", "");
	sample_free(&s);
	return cpu;
}

static struct cost
cost_now(const struct bench *b)
{
	struct cost c = { .server_s = server_cpu_s(b) };
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	c.client_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		     (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	c.ns = clock_ns();
	return c;
}

static uint64_t
moved(const struct bench_row *row, uint64_t *ret_nr)
{
	uint64_t bytes = 0;

	*ret_nr = 0;
	for (int i = 0; i < BENCH_OP_NR; i++) {
		bytes += row->op[i].bytes;
		*ret_nr += row->op[i].nr;
	}
	return bytes;
}

/* Begins the measuring of a round, and ends it; what was spent meanwhile goes to the row. */
static struct cost
run_clock(struct crew *crew)
{
	struct cmd *c = crew->b->c;
	struct cost from;

	if (crew->phase == WARM_UP) {
		sleep_until(crew, clock_ns() + (uint64_t)(c->warm_up_s * 1e9));
		crew->phase = GATHER;
		while (crew->gathered < crew->working && !ended && !crew->gave_up)
			nap(GATHER_NS);
	}
	from = cost_now(crew->b);
	crew->phase = MEASURE;
	if (!c->count) {
		uint64_t end = from.ns + (uint64_t)(c->time_s * 1e9);

		while (crew->working > 0 && !ended && clock_ns() < end)
			sleep_until(crew, clock_ns() + NAP_NS < end ? clock_ns() + NAP_NS : end);
		crew->phase = END;
	}
	return from;
}

static void
settle(struct crew *crew, const struct cost *from, uint64_t nr, uint64_t bytes)
{
	struct bench_row *row = crew->row;
	struct cost to = cost_now(crew->b);
	double s = (double)(to.ns - from->ns) / 1e9;
	uint64_t nr_now, bytes_now = moved(row, &nr_now);

	row->seconds += s;
	row->client_cpu_s += to.client_s - from->client_s;
	row->server_cpu_s += to.server_s - from->server_s;
	if (s > 0 && row->rounds < BENCH_ROUNDS_MAX) {
		row->rate[row->rounds] = (double)(nr_now - nr) / s;
		row->byte_rate[row->rounds++] = (double)(bytes_now - bytes) / s;
	}
}

int
bench_work(struct bench *b, enum bench_job job, struct bench_row *row)
{
	static uint64_t rounds;
	struct crew crew = { .b = b, .row = row, .job = job, .nr = row->at_once };
	struct worker *w = calloc((size_t)row->at_once, sizeof *w);
	pthread_t *thread = calloc((size_t)row->at_once, sizeof *thread);
	uint64_t nr, bytes = moved(row, &nr);
	struct cost from = { 0 };
	int started = 0;

	if (job == BENCH_MEASURE)
		crew.phase = b->c->warm_up_s > 0 ? WARM_UP : MEASURE;
	rounds++;
	crew.working = row->at_once;
	/* Without a warm-up everything counts, and with it what it costs. */
	if (crew.phase == MEASURE)
		from = cost_now(b);
	while (w && thread && started < row->at_once) {
		w[started] = (struct worker){ .crew = &crew, .nr = started };
		w[started].random = content_scramble(b->seed + (rounds << 16) + (uint64_t)started);
		if (pthread_create(&thread[started], NULL, work, &w[started]) != 0)
			break;
		started++;
	}
	if (started < row->at_once) {
		fprintf(stderr, "gantry: bench: only %d of %d threads could be started\n", started,
			row->at_once);
		crew.gave_up = true;
		crew.working -= row->at_once - started;
	} else if (job == BENCH_MEASURE) {
		struct cost now = run_clock(&crew);

		if (!from.ns)
			from = now;
	}
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	if (job == BENCH_MEASURE && from.ns)
		settle(&crew, &from, nr, bytes);
	free(w);
	free(thread);
	if (crew.gave_up && started == row->at_once)
		fprintf(stderr,
			"gantry: bench: given up: %d requests of one thread failed one after the other\n",
			FAILURES_MAX);
	return crew.gave_up ? -EIO : ended && job != BENCH_REMOVE ? -EINTR : 0;
}
