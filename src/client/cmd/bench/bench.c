/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry bench: makes objects under a name of its own, measures row after row, and removes them, also when a signal
 * ends it; see bench.h.  Main thread.
 */
#include "client/cmd/bench/bench.h"

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
	if (!c->rounds)
		c->rounds = p->way_nr > 1 ? ROUNDS_OF_TWO : 1;
}

static uint64_t
random_number(void)
{
	uint64_t n;

	return getrandom(&n, sizeof n, 0) == sizeof n ? n : (uint64_t)now_s() * 1000003 + (uint64_t)getpid();
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
	return asprintf(&b->base, "%.*s/gantry-bench-%016llx", (int)len, url,
			(unsigned long long)random_number()) < 0
		       ? -ENOMEM
		       : 0;
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
say_failed(struct bench *b, const char *op, int e, const struct gantry_result *res)
{
	struct outcome o;

	outcome_init(&o, op, b->base, NULL);
	outcome_add(&o, e, res);
	explain(&o);
	report(b->c, &o, false);
	return o.error == -ENOENT ? EXIT_NOT_FOUND : EXIT_FAILED;
}

/* One question before anything is made: is the server there, and the bucket?  Exit status. */
static int
begin_there(struct bench *b)
{
	struct gantry_request req = request_of(b->c);
	struct gantry_result res = { .size = sizeof res };
	char byte, *url;
	int e;

	if (b->own_bucket) {
		e = gantry_make_bucket(b->c->g, b->base, &res);
		if (e == 0 && res.status == 409) {
			fprintf(stderr, "gantry: bench: %s is there already, and not ours\n", b->base);
			b->own_bucket = false;
			return EXIT_FAILED;
		}
		b->own_bucket = e == 0;
		return e < 0 ? say_failed(b, "bench", e, &res) : EXIT_OK;
	}
	url = gantry_url_join(b->base, "none");
	req.no_rdma = 1;
	e = url ? gantry_get(b->c->g, url, &byte, 1, 0, &req, &res) : -ENOMEM;
	free(url);
	if (e == -ENOENT && (b->c->scality || !strcmp(res.code, "NoSuchKey")))
		return EXIT_OK;
	if (e == 0) {
		fprintf(stderr, "gantry: bench: there is an object below %s already, and it is not ours\n",
			b->base);
		return EXIT_FAILED;
	}
	return say_failed(b, "bench", e, &res);
}

/* ---- rows ---- */

static bool
needs_objects(const struct bench_mix *m)
{
	return m->weight[BENCH_GET] || m->weight[BENCH_HEAD] || m->weight[BENCH_DELETE];
}

/* What all rows say together. */
struct verdict {
	uint64_t errors, damaged, not_rdma;
	int e;
};

static void
judge(struct verdict *v, const struct bench_row *row)
{
	v->errors += row->errors;
	v->damaged += row->damaged;
	if (row->way == BENCH_RDMA)
		v->not_rdma += row->http_bytes;
}

/* Mixed operations of one size and so many at once: each way in turn, in each round. */
static void
run_rows(struct bench *b, const struct bench_sizes *s, int at_once, const struct bench_mix *m,
	 struct verdict *v)
{
	const struct bench_plan *p = &b->plan;
	struct bench_row *row = calloc(BENCH_WAY_NR, sizeof *row);

	if (!row) {
		v->e = -ENOMEM;
		return;
	}
	for (int i = 0; i < BENCH_WAY_NR; i++) {
		row[i].sizes = s;
		row[i].mix = m;
		row[i].at_once = at_once;
		row[i].way = (enum bench_way)i;
		row[i].objects = b->objects;
	}
	if (needs_objects(m))
		v->e = bench_work(b, BENCH_PREPARE, &row[p->way[0]]);
	for (int r = 0; v->e == 0 && r < b->c->rounds; r++) {
		/* Who is first changes, so that a machine that gets slower does not favour one of them. */
		for (int k = 0; v->e == 0 && k < p->way_nr; k++)
			v->e = bench_work(b, BENCH_MEASURE, &row[p->way[r % 2 ? p->way_nr - 1 - k : k]]);
	}
	for (int k = 0; k < p->way_nr; k++) {
		judge(v, &row[p->way[k]]);
		if (row[p->way[k]].rounds)
			bench_report_row(b, &row[p->way[k]]);
	}
	if (p->way_nr > 1 && v->e == 0)
		bench_report_ratio(b, &row[BENCH_RDMA], &row[BENCH_HTTP]);
	free(row);
}

/* Removes what rows of one mix of sizes have made. */
static void
remove_objects(struct bench *b, const struct bench_sizes *s, struct verdict *v)
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
		fprintf(stderr, "gantry: bench: %llu objects could not be removed: %s/\n",
			(unsigned long long)left, b->base);
	if (left && v->e == 0)
		v->e = e ? e : -EIO;
	free(row);
}

static void
run_sizes(struct bench *b, const struct bench_sizes *s, struct verdict *v)
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
	if (bench_ended())
		fprintf(stderr,
			"gantry: bench: stopped; removing what was made (a second signal leaves it)\n");
	remove_objects(b, s, v);
	free(b->object);
}

/* Removes the bucket, if we made it.  What somebody else put into it keeps it. */
static void
end_there(struct bench *b, struct verdict *v)
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
exit_of(const struct bench *b, const struct verdict *v)
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

int
cmd_bench(struct cmd *c, const char *url)
{
	struct bench *b = calloc(1, sizeof *b);
	struct verdict v = { 0 };
	int rc;

	if (!b)
		return EXIT_FAILED;
	b->c = c;
	pthread_mutex_init(&b->lock, NULL);
	read_plan(c, &b->plan);
	b->seed = c->has_seed ? c->seed : random_number() >> 32;
	raise_files(bench_plan_most_at_once(&b->plan));
	rc = name_base(b, url) < 0 || find_admin(b) < 0 || make_buffers(b) < 0 ? EXIT_FAILED : EXIT_OK;
	if (rc == EXIT_OK) {
		bench_catch_signals();
		rc = begin_there(b);
	}
	if (rc == EXIT_OK) {
		bench_report_head(b);
		for (int i = 0; v.e == 0 && i < b->plan.sizes_nr; i++)
			run_sizes(b, &b->plan.sizes[i], &v);
		end_there(b, &v);
		bench_report_total(b);
		rc = exit_of(b, &v);
	}
	for (int i = 0; i < b->buffers; i++)
		buffer_fini(&b->buffer[i]);
	free(b->buffer);
	free(b->base);
	free(b);
	return rc;
}
