/* SPDX-License-Identifier: Apache-2.0 */
/* What each path answers.  Called by admin.c on the admin thread, once per request. */
#include "admin/admin_int.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_JSON "application/json"
#define EVENTS_MAX 128

/* ---- routes ---- */

/* Other servers' names for the same questions; load balancers are set up with them. */
static const char *const aliases[][2] = {
	{ "/health", "/healthz" },
	{ "/health/live", "/livez" },
	{ "/health/ready", "/readyz" },
	{ "/minio/health/live", "/livez" },
	{ "/minio/health/ready", "/readyz" },
	{ "/minio/health/cluster", "/readyz" },
};

static const char *
name_of(const char *path)
{
	for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
		if (strcmp(path, aliases[i][0]) == 0)
			return aliases[i][1];
	}
	return path;
}

static int
metrics_page(const struct admin_env *env, struct page *page)
{
	struct stats_out *out;
	int r = stats_out_new(&out);

	if (r < 0)
		return r;
	if (env->stats)
		stats_collect(env->stats, out);
	if (env->closed) {
		stats_emit(out, M_ADMIN_CLOSED, (double)env->closed->late, "late_head", NULL);
		stats_emit(out, M_ADMIN_CLOSED, (double)env->closed->room, "room", NULL);
	}
	if (env->reasons)
		health_metrics(env, out);
	if (env->metrics)
		env->metrics(env->cookie, out);
	r = stats_out_text(out, &page->body, &page->len);
	stats_out_free(out);
	page->status = 200;
	page->type = STATS_CONTENT_TYPE;
	return r;
}

/* The latest declines and errors, newest first. */
static void
write_events(const struct stats *st, FILE *out)
{
	struct stats_note notes[EVENTS_MAX];
	int nr = stats_recent(st, notes, EVENTS_MAX);

	fputs("[", out);
	for (int i = 0; i < nr; i++) {
		const struct stats_note *n = &notes[i];

		fprintf(out, "%s{\"time\":%llu.%03llu,\"id\":\"%016llx\",\"operation\":", i ? ",\n" : "",
			(unsigned long long)(n->unix_ns / NS_PER_S),
			(unsigned long long)(n->unix_ns % NS_PER_S / NS_PER_MS), (unsigned long long)n->id);
		json_string(out, stats_op_name(st, n->op));
		fprintf(out, ",\"status\":%d,\"declined\":", n->status);
		json_string(out, n->reason ? stats_reason_name(st, n->reason) : NULL);
		fputs(",\"code\":", out);
		json_string(out, n->code);
		fputs(",\"client\":", out);
		json_string(out, n->whose.client[0] ? n->whose.client : NULL);
		fputs(",\"bucket\":", out);
		json_string(out, n->whose.bucket[0] ? n->whose.bucket : NULL);
		fputs("}", out);
	}
	fputs("]\n", out);
}

typedef void (*json_fn)(void *cookie, FILE *out);

static json_fn
json_page(const struct admin_env *env, const char *path)
{
	const struct {
		const char *path;
		json_fn fn;
	} pages[] = {
		{ "/status", env->status },     { "/rails", env->rails },   { "/disks", env->disks },
		{ "/requests", env->requests }, { "/config", env->config }, { "/quotas", env->quotas },
		{ "/buckets", env->buckets },
	};

	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		if (strcmp(pages[i].path, path) == 0)
			return pages[i].fn;
	}
	return NULL;
}

/* Answers with bytes of the program. */
static int
fixed_page(struct page *page, const char *type, const char *begin, const char *end)
{
	page->type = type;
	page->len = (size_t)(end - begin);
	page->body = malloc(page->len);
	if (!page->body)
		return -ENOMEM;
	memcpy(page->body, begin, page->len);
	return 0;
}

/* The status page: one file, which asks the JSON pages, /metrics and /runbook. */
static int
html_page(struct page *page)
{
	page->policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
		       "connect-src 'self'; "
		       "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
	return fixed_page(page, "text/html; charset=utf-8", admin_html, admin_html_end);
}

static bool
is_health(const char *path)
{
	return strcmp(path, "/livez") == 0 || strcmp(path, "/readyz") == 0 || strcmp(path, "/healthz") == 0;
}

#define REQUESTS "/requests/"
#define RAILS "/rails/"

/* What a path ends in, asked of fn; with another status than 200 the page is an error. */
static int
one_page(const struct admin_env *env, int (*fn)(void *cookie, const char *what, FILE *out), const char *what,
	 const char *not_found, struct page *page)
{
	FILE *out = open_memstream(&page->body, &page->len);

	if (!out)
		return -ENOMEM;
	page->status = fn(env->cookie, what, out);
	putc('\n', out);
	if (fclose(out) != 0) {
		free(page->body);
		return -ENOMEM;
	}
	if (page->status == 200)
		return 0;
	free(page->body);
	return admin_error_page(page->status,
				page->status == 404
					? not_found
					: "a core does not answer, and the others have none of that id",
				page);
}

int
admin_page(const struct admin_env *env, const char *path, struct page *ret_page)
{
	bool is_events;
	json_fn fn;
	FILE *out;

	*ret_page = (struct page){ .status = 200, .type = TYPE_JSON };
	path = name_of(path);
	if (strcmp(path, "/metrics") == 0)
		return metrics_page(env, ret_page);
	if (strcmp(path, "/") == 0)
		return html_page(ret_page);
	if (strcmp(path, "/runbook") == 0)
		return fixed_page(ret_page, "text/plain; charset=utf-8", admin_runbook, admin_runbook_end);
	if (strncmp(path, REQUESTS, strlen(REQUESTS)) == 0 && env->request)
		return one_page(env, env->request, path + strlen(REQUESTS), "no live request has that id",
				ret_page);
	if (strncmp(path, RAILS, strlen(RAILS)) == 0 && env->reach)
		return one_page(env, env->reach, path + strlen(RAILS), "that is no address", ret_page);
	fn = json_page(env, path);
	is_events = strcmp(path, "/events") == 0 && env->stats;
	if (!fn && !is_health(path) && !is_events && (strcmp(path, "/config") != 0 || !env->conf))
		return admin_error_page(404, "no such page", ret_page);
	out = open_memstream(&ret_page->body, &ret_page->len);
	if (!out)
		return -ENOMEM;
	if (fn) {
		fn(env->cookie, out);
		putc('\n', out);
	} else if (is_events) {
		write_events(env->stats, out);
	} else if (is_health(path)) {
		ret_page->status = health_page(env, path, out);
	} else {
		conf_print_json(env->conf, out);
	}
	if (fclose(out) != 0) {
		free(ret_page->body);
		return -ENOMEM;
	}
	return 0;
}

int
admin_error_page(int status, const char *text, struct page *ret_page)
{
	FILE *out;

	*ret_page = (struct page){ .status = status, .type = TYPE_JSON };
	out = open_memstream(&ret_page->body, &ret_page->len);
	if (!out)
		return -ENOMEM;
	fputs("{\"error\":", out);
	json_string(out, text);
	fputs("}\n", out);
	if (fclose(out) == 0)
		return 0;
	free(ret_page->body);
	return -ENOMEM;
}

bool
admin_is_health(const char *path)
{
	return is_health(name_of(path));
}

bool
admin_is_page(const struct admin_env *env, const char *path)
{
	struct page page;
	bool is;

	if (admin_page(env, path, &page) < 0)
		return true;
	is = page.status != 404;
	free(page.body);
	return is;
}
