/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of gantry bench, and one request at a time of each; see bench.h.
 *
 * Time runs from when a request is handed to libgantry, or was due (--rate), until it returns: connections, retries
 * and a repetition over HTTP are part of it.  Making and comparing bytes (--verify) is not, but a thread sends nothing
 * meanwhile.
 */
#include "client/cmd/bench/bench_int.h"

#include "base/clock.h"
#include "client/cmd/common/content.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIES 3
#define NAP_NS (20 * NS_PER_MS)
#define GATHER_NS (200 * NS_PER_US)

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

/* ---- requests ---- */

static uint64_t
random_of(struct worker *w)
{
	return w->random = content_scramble(w->random);
}

uint64_t
bench_id(const struct bench *b, uint64_t i)
{
	return content_scramble(((uint64_t)b->group << 32 | i) + b->seed);
}

static void
ask_init(struct worker *w, struct ask *a, uint64_t i)
{
	struct bench *b = w->crew->b;

	a->o = &b->object[i];
	a->id = bench_id(b, i);
	a->endpoint = (int)(((uint64_t)w->nr + w->asked++) % (uint64_t)b->endpoints);
	snprintf(a->url, sizeof a->url, "%s%s/%016llx", b->endpoint[a->endpoint], b->path,
		 (unsigned long long)a->id);
	a->req = request_of(b->c);
	a->req.busy_ms = w->crew->job == BENCH_REMOVE ? 1 : BUSY_MS;
	a->req.no_rdma = w->crew->row->way == BENCH_HTTP;
	a->res = (struct gantry_result){ .size = sizeof a->res };
}

static uint64_t
content_of(const struct ask *a, uint32_t version)
{
	return content_scramble(a->id ^ content_scramble(version));
}

/* The beginning of a request: when it was due, and how late it was. */
struct begin {
	uint64_t ns, late_ns;
};

static struct begin
begin(struct worker *w)
{
	uint64_t now = clock_ns();

	return w->due_ns ? (struct begin){ w->due_ns, now > w->due_ns ? now - w->due_ns : 0 }
			 : (struct begin){ now, 0 };
}

static void
put_one(struct worker *w, struct ask *a)
{
	struct bench *b = w->crew->b;
	const struct bench_sizes *s = w->crew->row->sizes;
	void *mem = b->buffer[w->nr].mem;
	int pick = bench_pick(s->weight, s->nr, random_of(w));
	struct begin from;
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
		bench_count_error(w, BENCH_PUT, a, e);
		return;
	}
	bench_count_success(w, BENCH_PUT, a, clock_ns() - from.ns, from.late_ns);
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
	bench_count_failure(w, op, a, "damaged", text);
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
	uint64_t want = w->crew->row->sizes->size[a->o->size], ns, good;
	struct begin from;
	void *mem = b->buffer[w->nr].mem;
	int e;

	/* What an earlier request left there must not pass. */
	if (b->c->verify)
		memset(mem, 0, want);
	from = begin(w);
	e = gantry_get(b->c->g, a->url, mem, want, 0, &a->req, &a->res);
	ns = clock_ns() - from.ns;
	if (e < 0) {
		bench_count_error(w, BENCH_GET, a, e);
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
	bench_count_success(w, BENCH_GET, a, ns, from.late_ns);
}

static void
head_one(struct worker *w, struct ask *a)
{
	uint64_t want = w->crew->row->sizes->size[a->o->size];
	struct begin from = begin(w);
	int e = gantry_head(w->crew->b->c->g, a->url, &a->req, &a->res);

	if (e < 0)
		bench_count_error(w, BENCH_HEAD, a, e);
	else if (!a->res.has_object_size || !has_other_size(w, BENCH_HEAD, a, a->res.object_size, want))
		bench_count_success(w, BENCH_HEAD, a, clock_ns() - from.ns, from.late_ns);
}

static void
remove_one(struct worker *w, struct ask *a)
{
	struct begin from = begin(w);
	int e = gantry_delete(w->crew->b->c->g, a->url, &a->req, &a->res);

	a->o->is_there = false;
	if (e < 0) {
		bench_count_error(w, BENCH_DELETE, a, e);
		return;
	}
	a->o->is_left = false;
	bench_count_success(w, BENCH_DELETE, a, clock_ns() - from.ns, from.late_ns);
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

/* Puts what is not there, some times should it fail, or deletes what may be, once. */
static void
tidy(struct worker *w, bool is_put)
{
	for (uint64_t k = 0; k < own_count(w) && !w->crew->gave_up && !(is_put && ended); k++) {
		uint64_t i = own(w, k);
		struct bench_object *o = &w->crew->b->object[i];
		struct ask a;

		/* The end does not wait: after one round it reports the objects that are left. */
		for (int tries = 0; tries < (is_put ? TRIES : 1) && (is_put ? !o->is_there : o->is_left);
		     tries++) {
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
	if (--w->crew->working == 0)
		w->crew->ended_ns = clock_ns();
	return NULL;
}

/* ---- a round ---- */

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
	uint64_t end;

	if (crew->phase == WARM_UP) {
		sleep_until(crew, clock_ns() + (uint64_t)(c->warm_up_s * 1e9));
		crew->phase = GATHER;
		while (crew->gathered < crew->working && !ended && !crew->gave_up)
			nap(GATHER_NS);
	}
	from = bench_cost_now(crew->b);
	bench_series_begin(crew, from.ns);
	crew->phase = MEASURE;
	end = c->count ? UINT64_MAX : from.ns + (uint64_t)(c->time_s * 1e9);
	while (crew->working > 0 && !ended && !crew->gave_up && clock_ns() < end) {
		uint64_t now = clock_ns();

		bench_series_turn(crew, now);
		if (now < end)
			nap(end - now < NAP_NS ? end - now : NAP_NS);
	}
	if (!c->count)
		crew->phase = END;
	return from;
}

static void
settle(struct crew *crew, const struct cost *from, uint64_t nr, uint64_t bytes)
{
	struct bench_row *row = crew->row;
	struct cost to = bench_cost_now(crew->b);
	double s = (double)(crew->ended_ns - from->ns) / 1e9;
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
		from = bench_cost_now(b);
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
		bench_series_end(&crew, crew.ended_ns);
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
