/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry bench: makes objects under a name of its own, measures row after row, and removes them, also when a signal
 * ends it; see bench.h.  Main thread.
 */
#include "client/cmd/bench/bench.h"

#include "client/cmd/bench/bench_hosts.h"
#include "client/cmd/bench/bench_meter.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/content.h"
#include "client/cmd/common/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define ROUNDS_OF_TWO 3 /* when two ways take turns */
#define FILES_EACH 4    /* a thread's connections, and what comes with them */

/* ---- what is asked for ---- */

static void
read_plan(struct cmd *c, struct bench_plan *p)
{
	if (!bench_plan_sizes(p, c->sizes ? c->sizes : "1m"))
		words_bad("bench", "--sizes wants sizes from 1 to 4 GiB - 1, such as 4k,1m or 4k:70+1m:30",
			  c->sizes);
	if (!bench_plan_at_once(p, c->at_once ? c->at_once : "8"))
		words_bad("bench", "--concurrency wants numbers from 1 to 1024, such as 1,8,64", c->at_once);
	if (!bench_plan_mix(p, c->mix ? c->mix : "put,get"))
		words_bad("bench",
			  "--mix wants put, get, head and delete, such as put,get or get:90+put:10, and no "
			  "more "
			  "deletes than puts",
			  c->mix);
	if (!bench_plan_ways(p, c->no_rdma ? "http" : c->ways ? c->ways : "rdma"))
		words_bad("bench", "--way wants rdma, http or rdma,http", c->ways);
	if (c->objects && c->objects < (uint64_t)bench_plan_most_at_once(p))
		words_bad("bench",
			  "--objects must be as many as --concurrency at least: each thread has its own",
			  NULL);
	if (c->csv && c->json)
		words_bad("bench", "--csv and --json are two forms of one output", NULL);
	if (!c->rounds)
		c->rounds = p->way_nr > 1 ? ROUNDS_OF_TWO : 1;
}

static uint64_t
random_number(void)
{
	uint64_t n;

	return getrandom(&n, sizeof n, 0) == sizeof n ? n : (uint64_t)now_s() * 1000003 + (uint64_t)getpid();
}

/* Adds a server: HOST:PORT, or a URL without a path. */
static int
add_endpoint(struct bench *b, const char *name, size_t len)
{
	bool is_url = words_is_url(name);
	const char *host = is_url ? strstr(name, "://") + 3 : name,
		   *scheme = is_url                               ? ""
			     : strncmp(b->base, "https:", 6) == 0 ? "https://"
								  : "http://";

	if (b->endpoints == BENCH_ENDPOINTS_MAX)
		words_bad("bench", "--endpoints takes 15 servers, besides that of the URL", NULL);
	while (len && name[len - 1] == '/')
		len--;
	if (name + len <= host || memchr(host, '/', (size_t)(name + len - host)))
		words_bad("bench", "--endpoints wants HOST:PORT, with commas between", b->c->endpoints);
	return asprintf(&b->endpoint[b->endpoints++], "%s%.*s", scheme, (int)len, name) < 0 ? -ENOMEM : 0;
}

/* Takes the servers: that of the URL first, then those of --endpoints. */
static int
take_endpoints(struct bench *b)
{
	const char *host = strstr(b->base, "://") + 3, *list = b->c->endpoints;
	int e;

	b->path = strchr(host, '/');
	e = add_endpoint(b, b->base, (size_t)(b->path - b->base));
	while (e == 0 && list) {
		size_t len = strcspn(list, ",");

		e = add_endpoint(b, list, len);
		list = list[len] ? list + len + 1 : NULL;
	}
	return e;
}

/* Where everything goes: below what the URL names, or without a bucket into one of our own. */
static int
name_base(struct bench *b, const char *url)
{
	const char *path = strchr(strstr(url, "://") + 3, '/');
	size_t len = strlen(url);

	while (len && url[len - 1] == '/')
		len--;
	b->own_bucket = !b->c->scality && (!path || !path[strspn(path, "/")]);
	if (asprintf(&b->base, "%.*s/gantry-bench-%016llx", (int)len, url,
		     (unsigned long long)random_number()) < 0)
		return -ENOMEM;
	return take_endpoints(b);
}

/* ---- what it takes ---- */

/* Buffers are registered once, and filled, so that no request is the first to touch them. */
static int
make_buffers(struct bench *b)
{
	int nr = bench_plan_most_at_once(&b->plan);
	uint64_t cap = bench_plan_largest(&b->plan),
		 have = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	char size[32];

	if (cap > have / (uint64_t)nr / 4 * 3) {
		fprintf(stderr, "gantry: bench: %d buffers of %s are more than the memory of this machine\n",
			nr, size_text(cap, size));
		return -ENOMEM;
	}
	b->buffer = calloc((size_t)nr, sizeof *b->buffer);
	while (b->buffer && b->buffers < nr) {
		if (buffer_make(&b->buffer[b->buffers], b->c->g, (size_t)cap) < 0)
			break;
		content_fill(b->buffer[b->buffers].mem, (size_t)cap, b->seed + (uint64_t)b->buffers);
		b->buffers++;
	}
	if (b->buffers == nr)
		return 0;
	fprintf(stderr, "gantry: bench: no memory for %d buffers of %s\n", nr, size_text(cap, size));
	return -ENOMEM;
}

static void
raise_files(int nr)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur > (rlim_t)nr * FILES_EACH + 64)
		return;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
}

/* The server's CPU is asked for only where --admin or the environment says whom to ask. */
static int
find_admin(struct bench *b)
{
	struct answer a;
	char err[512];

	if (!b->c->admin && !getenv("GANTRY_ADMIN"))
		return 0;
	if (admin_get(admin_name(b->c->admin), "/metrics", &a, err, sizeof err) < 0) {
		fprintf(stderr, "gantry: bench: --admin: %s\n", err);
		return -EIO;
	}
	b->has_server_cpu = strstr(a.text, "\nprocess_cpu_seconds_total ") != NULL;
	free(a.text);
	if (b->has_server_cpu)
		return 0;
	fprintf(stderr, "gantry: bench: --admin: %s/metrics does not say process_cpu_seconds_total\n",
		admin_name(b->c->admin));
	return -EPROTO;
}

static int
say_failed(struct bench *b, const char *op, int endpoint, int e, const struct gantry_result *res)
{
	struct outcome o;

	outcome_init(&o, op, endpoint ? b->endpoint[endpoint] : b->base, NULL);
	outcome_add(&o, e, res);
	explain(&o);
	report(b->c, &o, false);
	return o.error == -ENOENT ? EXIT_NOT_FOUND : EXIT_FAILED;
}

/* Asks one server for an object below our name, where there must be none. Returns an exit status. */
static int
ask_there(struct bench *b, int endpoint)
{
	struct gantry_request req = request_of(b->c);
	struct gantry_result res = { .size = sizeof res };
	char byte, *url;
	int e, rc;

	if (asprintf(&url, "%s%s/none", b->endpoint[endpoint], b->path) < 0)
		return EXIT_FAILED;
	req.no_rdma = 1;
	e = gantry_get(b->c->g, url, &byte, 1, 0, &req, &res);
	if (e == -ENOENT && (b->c->scality || !strcmp(res.code, "NoSuchKey"))) {
		rc = EXIT_OK;
	} else if (e == 0) {
		fprintf(stderr, "gantry: bench: there is an object below %s%s already, and it is not ours\n",
			b->endpoint[endpoint], b->path);
		rc = EXIT_FAILED;
	} else {
		rc = say_failed(b, "bench", endpoint, e, &res);
	}
	free(url);
	return rc;
}

/* One question before anything is made: is the server there, and the bucket?  Exit status. */
static int
begin_there(struct bench *b)
{
	struct gantry_result res = { .size = sizeof res };
	int e;

	if (b->own_bucket) {
		e = gantry_make_bucket(b->c->g, b->base, &res);
		if (e == 0 && res.status == 409) {
			fprintf(stderr, "gantry: bench: %s is there already, and not ours\n", b->base);
			b->own_bucket = false;
			return EXIT_FAILED;
		}
		b->own_bucket = e == 0;
		return e < 0 ? say_failed(b, "bench", 0, e, &res) : EXIT_OK;
	}
	return ask_there(b, 0);
}

/* Asks every server. Returns an exit status. */
static int
begin_everywhere(struct bench *b)
{
	int rc = begin_there(b);

	for (int i = 1; rc == EXIT_OK && i < b->endpoints; i++)
		rc = ask_there(b, i);
	return rc;
}

/* ---- rows ---- */

static bool
needs_objects(const struct bench_mix *m)
{
	return m->weight[BENCH_GET] || m->weight[BENCH_HEAD] || m->weight[BENCH_DELETE];
}

static void
free_rows(struct bench_row *row)
{
	for (int i = 0; row && i < BENCH_WAY_NR; i++) {
		for (int k = 0; k < row[i].second_nr; k++)
			json_decref(row[i].second[k].counts);
		free(row[i].second);
		free(row[i].endpoint);
	}
	free(row);
}

/* Makes a row for each way. NULL: no memory. */
static struct bench_row *
make_rows(const struct bench *b, const struct bench_sizes *s, int at_once, const struct bench_mix *m)
{
	struct bench_row *row = calloc(BENCH_WAY_NR, sizeof *row);

	for (int i = 0; row && i < BENCH_WAY_NR; i++) {
		row[i].sizes = s;
		row[i].mix = m;
		row[i].at_once = at_once;
		row[i].way = (enum bench_way)i;
		row[i].objects = b->objects;
		row[i].hosts = 1;
		if (b->endpoints > 1)
			row[i].endpoint = calloc((size_t)b->endpoints, sizeof *row[i].endpoint);
		if (b->endpoints > 1 && !row[i].endpoint) {
			free_rows(row);
			return NULL;
		}
	}
	return row;
}

/* Mixed operations of one size and so many at once: each way in turn, in each round. */
static void
run_rows(struct bench *b, const struct bench_sizes *s, int at_once, const struct bench_mix *m,
	 struct bench_verdict *v)
{
	const struct bench_plan *p = &b->plan;
	struct bench_row *row = make_rows(b, s, at_once, m);

	if (!row) {
		v->e = -ENOMEM;
		return;
	}
	bench_meter_row(&row[p->way[0]]);
	if (needs_objects(m))
		v->e = bench_work(b, BENCH_PREPARE, &row[p->way[0]]);
	for (int r = 0; v->e == 0 && r < b->c->rounds; r++) {
		/* The first way alternates, so that a machine that gets slower does not favour one of them. */
		for (int k = 0; v->e == 0 && k < p->way_nr; k++) {
			if (b->c->worker)
				v->e = bench_worker_wait();
			bench_meter_round();
			if (v->e == 0)
				v->e = bench_work(b, BENCH_MEASURE,
						  &row[p->way[r % 2 ? p->way_nr - 1 - k : k]]);
			bench_meter_round_end();
		}
	}
	bench_meter_hide();
	for (int k = 0; k < p->way_nr; k++) {
		bench_judge(v, &row[p->way[k]]);
		if (row[p->way[k]].rounds)
			bench_report_row(b, &row[p->way[k]]);
	}
	if (p->way_nr > 1 && v->e == 0)
		bench_report_ratio(b, &row[BENCH_RDMA], &row[BENCH_HTTP]);
	bench_meter_show();
	free_rows(row);
}

/* Removes what rows of one mix of sizes have made. */
static void
remove_objects(struct bench *b, const struct bench_sizes *s, struct bench_verdict *v)
{
	struct bench_row *row = calloc(1, sizeof *row);
	uint64_t left = 0;
	int e = -ENOMEM;

	if (row) {
		row->sizes = s;
		row->at_once = b->buffers;
		row->way = BENCH_HTTP;
		e = bench_work(b, BENCH_REMOVE, row);
	}
	for (uint64_t i = 0; i < b->objects; i++)
		left += b->object[i].is_left;
	if (left)
		bench_report_left(b, left);
	if (left && v->e == 0)
		v->e = e ? e : -EIO;
	free(row);
}

static void
run_sizes(struct bench *b, const struct bench_sizes *s, struct bench_verdict *v)
{
	const struct bench_plan *p = &b->plan;

	b->objects = b->c->objects ? b->c->objects : bench_usual_objects(s, bench_plan_most_at_once(p));
	b->object = calloc(b->objects, sizeof *b->object);
	b->group++;
	if (!b->object) {
		v->e = -ENOMEM;
		fprintf(stderr, "gantry: bench: no memory for %llu objects\n",
			(unsigned long long)b->objects);
		return;
	}
	for (int i = 0; v->e == 0 && i < p->at_once_nr; i++)
		for (int k = 0; v->e == 0 && k < p->mix_nr; k++)
			run_rows(b, s, p->at_once[i], &p->mix[k], v);
	bench_meter_note("removing objects");
	if (bench_ended())
		fprintf(stderr,
			"gantry: bench: stopped; removing what was made (a second signal leaves it)\n");
	remove_objects(b, s, v);
	free(b->object);
}

/* Removes the bucket, if we made it.  What somebody else put into it keeps it. */
static void
end_there(struct bench *b, struct bench_verdict *v)
{
	struct gantry_result res = { .size = sizeof res };
	int e = b->own_bucket ? gantry_remove_bucket(b->c->g, b->base, &res) : 0;

	if (e == 0)
		return;
	fprintf(stderr, "gantry: bench: %s could not be removed: %s\n", b->base, res.message);
	if (v->e == 0)
		v->e = e;
}

static int
exit_of(const struct bench *b, const struct bench_verdict *v)
{
	if (v->damaged)
		fprintf(stderr, "gantry: bench: %llu answers were not what had been stored\n",
			(unsigned long long)v->damaged);
	if (bench_ended())
		return EXIT_INTERRUPTED;
	if (v->e < 0 || v->errors)
		return EXIT_FAILED;
	return b->c->require_rdma && v->not_rdma ? EXIT_NOT_RDMA : EXIT_OK;
}

/* Measures from this host. Returns an exit status. */
static int
run_here(struct bench *b, struct bench_verdict *v)
{
	int rc = find_admin(b) < 0 || make_buffers(b) < 0 ? EXIT_FAILED : EXIT_OK;

	if (rc == EXIT_OK) {
		bench_catch_signals();
		rc = begin_everywhere(b);
	}
	if (rc != EXIT_OK)
		return rc;
	bench_report_head(b);
	bench_meter_begin(b, b->c->count ? 0 : b->c->warm_up_s + b->c->time_s);
	for (int i = 0; v->e == 0 && i < b->plan.sizes_nr; i++)
		run_sizes(b, &b->plan.sizes[i], v);
	end_there(b, v);
	bench_meter_end();
	bench_report_total(b);
	return exit_of(b, v);
}

/* Measures from other hosts. Returns an exit status. */
static int
run_there(struct bench *b, const char *url, struct bench_verdict *v)
{
	int rc;

	bench_catch_signals();
	bench_report_head(b);
	bench_meter_begin(b, b->c->count ? 0 : b->c->warm_up_s + b->c->time_s);
	rc = bench_hosts(b, url, v);
	bench_meter_end();
	bench_report_total(b);
	return rc == EXIT_OK || bench_ended() ? exit_of(b, v) : rc;
}

int
cmd_bench(struct cmd *c, const char *url)
{
	struct bench *b = c->key.compare ? NULL : calloc(1, sizeof *b);
	struct bench_verdict v = { 0 };
	int rc = EXIT_FAILED;

	if (c->key.compare)
		return bench_compare(c, c->key.compare, url);
	if (!b)
		return EXIT_FAILED;
	b->c = c;
	/* A worker writes lines for the process that has started it. */
	c->json |= c->worker;
	pthread_mutex_init(&b->lock, NULL);
	read_plan(c, &b->plan);
	b->seed = c->has_seed ? c->seed : random_number() >> 32;
	raise_files(bench_plan_most_at_once(&b->plan));
	if (name_base(b, url) == 0)
		rc = c->hosts ? run_there(b, url, &v) : run_here(b, &v);
	for (int i = 0; i < b->buffers; i++)
		buffer_fini(&b->buffer[i]);
	for (int i = 0; i < b->endpoints; i++)
		free(b->endpoint[i]);
	free(b->buffer);
	free(b->base);
	free(b);
	return rc;
}
