/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health: which reasons hold and since when, which of them are muted, and what /livez, /readyz and /healthz make of them.
 *
 * One look at a time, under a lock: the admin thread's, every second and for each page, and those of control calls.
 */
#define LOG_MODULE "admin"
#include "admin/admin_int.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/replace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *code;
	bool says;
} rows[REASON_NR] = {
#define REASON(id, code, says, ...) { code, says },
#include "admin/reason.def"
#undef REASON
};

struct admin_health {
	pthread_mutex_t lock; /* of a look, and of held */
	int held_nr;
	struct held {
		enum admin_reason_id id;
		char object[REASON_OBJECT_BYTES];
		uint64_t since_wall_ns;
		bool seen; /* in this look */
	} held[REASONS_MAX];

	pthread_mutex_t mute_lock; /* of the next ones, and of the file */
	char *path;                /* NULL: mutes end with the process */
	uint64_t muted_until_s[REASON_NR];
};

struct admin_health *
health_new(void)
{
	struct admin_health *h = calloc(1, sizeof *h);

	if (!h)
		return NULL;
	pthread_mutex_init(&h->lock, NULL);
	pthread_mutex_init(&h->mute_lock, NULL);
	return h;
}

void
health_free(struct admin_health *h)
{
	if (h)
		free(h->path);
	free(h);
}

void
admin_reason(struct admin_reasons *r, enum admin_reason_id id, const char *object, const char *fmt, ...)
{
	va_list ap;

	if (r->nr < REASONS_MAX) {
		r->reason[r->nr].id = id;
		snprintf(r->reason[r->nr].object, sizeof r->reason[0].object, "%s", object);
		va_start(ap, fmt);
		vsnprintf(r->reason[r->nr].text, sizeof r->reason[0].text, fmt, ap);
		va_end(ap);
	}
	r->nr++;
}

void
admin_show_codes(FILE *out)
{
	for (int i = 0; i < REASON_NR; i++)
		fprintf(out, "%s%s", i ? ", " : "", rows[i].code);
}

/* ---- mutes ---- */

static uint64_t
now_s(void)
{
	return clock_wall_ns() / NS_PER_S;
}

static int
find(const char *code)
{
	for (int i = 0; i < REASON_NR; i++) {
		if (strcmp(rows[i].code, code) == 0)
			return i;
	}
	return -ENOENT;
}

/* Lines "code seconds-since-1970"; a code of another version is passed over. */
int
health_keep(struct admin_health *h, const char *path)
{
	unsigned long long until_s;
	char code[64];
	int r = 0;
	FILE *f;

	pthread_mutex_lock(&h->mute_lock);
	h->path = strdup(path);
	f = fopen(path, "re");
	if (!h->path)
		r = -ENOMEM;
	else if (!f && errno != ENOENT)
		r = -errno;
	while (f && fscanf(f, "%63s %llu", code, &until_s) == 2) {
		int id = find(code);

		if (id >= 0)
			h->muted_until_s[id] = until_s;
	}
	if (f)
		fclose(f);
	pthread_mutex_unlock(&h->mute_lock);
	return r;
}

/* Called with the lock held. */
static int
write_mutes(const struct admin_health *h)
{
	char *text = NULL;
	size_t len = 0;
	int r = -ENOMEM;
	FILE *f;

	if (!h->path)
		return -ENODEV;
	f = open_memstream(&text, &len);
	for (int i = 0; f && i < REASON_NR; i++) {
		if (h->muted_until_s[i] > now_s())
			fprintf(f, "%s %llu\n", rows[i].code, (unsigned long long)h->muted_until_s[i]);
	}
	if (f && fclose(f) == 0)
		r = replace_file(h->path, text, len);
	free(text);
	return r;
}

int
health_mute(struct admin_health *h, const char *code, uint64_t for_s)
{
	int id = find(code), r;

	if (id < 0)
		return id;
	pthread_mutex_lock(&h->mute_lock);
	__atomic_store_n(&h->muted_until_s[id], for_s ? now_s() + for_s : 0, __ATOMIC_RELAXED);
	r = write_mutes(h);
	pthread_mutex_unlock(&h->mute_lock);
	return r;
}

/* ---- a look ---- */

static void
stuck_cores(const struct admin_env *env, uint64_t limit_ns, struct admin_reasons *r)
{
	int nr = env->core_nr && env->core ? env->core_nr(env->cookie) : 0;

	for (int i = 0; i < nr; i++) {
		struct admin_core c = { 0 };
		char object[16];

		env->core(env->cookie, i, &c);
		if (c.asleep || c.turned_ago_ns < limit_ns)
			continue;
		snprintf(object, sizeof object, "%d", i);
		admin_reason(r, REASON_CORE_STUCK, object,
			     "core %d is stuck: its loop has not turned for %llu.%01llu s", i,
			     (unsigned long long)(c.turned_ago_ns / NS_PER_S),
			     (unsigned long long)(c.turned_ago_ns % NS_PER_S / (NS_PER_S / 10)));
	}
}

/* Finds or begins to hold what a reason is about.  NULL: there are too many. */
static struct held *
hold(struct admin_health *h, enum admin_reason_id id, const char *object, const char *text)
{
	struct held *p = h->held;

	for (; p < h->held + h->held_nr; p++) {
		if (p->id == id && strcmp(p->object, object) == 0)
			return p;
	}
	if (h->held_nr == REASONS_MAX)
		return NULL;
	h->held_nr++;
	*p = (struct held){ .id = id, .since_wall_ns = clock_wall_ns() };
	snprintf(p->object, sizeof p->object, "%s", object);
	if (rows[id].says)
		log_warn("%s: %s", rows[id].code, text);
	return p;
}

static void
let_go(struct admin_health *h)
{
	int nr = 0;

	for (int i = 0; i < h->held_nr; i++) {
		if (h->held[i].seen)
			h->held[nr++] = h->held[i];
		else if (rows[h->held[i].id].says)
			log_note("%s%s%s: no more", rows[h->held[i].id].code,
				 h->held[i].object[0] ? ", " : "", h->held[i].object);
	}
	h->held_nr = nr;
}

/* Gives each reason the time when it began, and its mute.  is_all: reasons that are not here hold no more. */
static void
date(struct admin_health *h, struct admin_reasons *r, bool is_all)
{
	for (int i = 0; i < h->held_nr; i++)
		h->held[i].seen = !is_all;
	for (int i = 0; i < r->nr && i < REASONS_MAX; i++) {
		enum admin_reason_id id = r->reason[i].id;
		struct held *p = hold(h, id, r->reason[i].object, r->reason[i].text);
		uint64_t until_s = __atomic_load_n(&h->muted_until_s[id], __ATOMIC_RELAXED);

		if (p)
			p->seen = true;
		r->reason[i].since_wall_ns = p ? p->since_wall_ns : clock_wall_ns();
		r->reason[i].muted_until_s = until_s > now_s() ? until_s : 0;
	}
	if (is_all)
		let_go(h);
}

/* Collects all reasons; *ret_unready: how many of them, the first ones, are those of readiness. */
static struct admin_reasons *
look(const struct admin_env *env, int *ret_unready)
{
	struct admin_health *h = env->reasons;
	struct admin_reasons *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	pthread_mutex_lock(&h->lock);
	stuck_cores(env, ADMIN_STUCK_NS, r);
	if (env->ready)
		env->ready(env->cookie, r);
	*ret_unready = r->nr;
	if (env->health)
		env->health(env->cookie, r);
	date(h, r, true);
	pthread_mutex_unlock(&h->lock);
	return r;
}

void
health_look(const struct admin_env *env)
{
	int unready;

	free(look(env, &unready));
}

/* ---- pages ---- */

static void
write_time(uint64_t s, FILE *out)
{
	time_t t = (time_t)s;
	struct tm tm;
	char text[32];

	gmtime_r(&t, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(out, "\"%s\"", text);
}

static void
write_reasons(const struct admin_reasons *r, FILE *out)
{
	fputs("\"reasons\":[", out);
	for (int i = 0; i < r->nr && i < REASONS_MAX; i++) {
		const char *code = rows[r->reason[i].id].code;

		fprintf(out, "%s{\"code\":\"%s\",\"text\":", i ? "," : "", code);
		json_string(out, r->reason[i].text);
		fputs(",\"object\":", out);
		json_string(out, r->reason[i].object[0] ? r->reason[i].object : NULL);
		fputs(",\"since\":", out);
		write_time(r->reason[i].since_wall_ns / NS_PER_S, out);
		fprintf(out, ",\"link\":\"docs/health.md#%s\",\"muted\":", code);
		if (r->reason[i].muted_until_s)
			write_time(r->reason[i].muted_until_s, out);
		else
			fputs("null", out);
		putc('}', out);
	}
	fputs("]}\n", out);
}

static bool
is_degraded(const struct admin_reasons *r)
{
	for (int i = 0; i < r->nr && i < REASONS_MAX; i++) {
		if (!r->reason[i].muted_until_s)
			return true;
	}
	return false;
}

/* Writes the page of r, which is freed, and returns its HTTP status.  r NULL: there was no memory for it. */
static int
finish(struct admin_reasons *r, int unready, FILE *out)
{
	if (!r) {
		fputs("{\"status\":\"unavailable\",\"reasons\":[]}\n", out);
		return 503;
	}
	fprintf(out, "{\"status\":\"%s\",", unready ? "unavailable" : is_degraded(r) ? "degraded" : "ok");
	write_reasons(r, out);
	free(r);
	return unready ? 503 : 200;
}

/* Answers /livez, which fails for cores that are stuck for a long time, or /readyz. */
static int
page_of_part(const struct admin_env *env, bool live, FILE *out)
{
	struct admin_reasons *r = calloc(1, sizeof *r);

	if (r) {
		pthread_mutex_lock(&env->reasons->lock);
		stuck_cores(env, live ? ADMIN_DEAD_NS : ADMIN_STUCK_NS, r);
		if (!live && env->ready)
			env->ready(env->cookie, r);
		date(env->reasons, r, false);
		pthread_mutex_unlock(&env->reasons->lock);
	}
	return finish(r, r ? r->nr : 0, out);
}

int
health_page(const struct admin_env *env, const char *path, FILE *out)
{
	struct admin_reasons *r;
	int unready = 0;

	if (strcmp(path, "/healthz") != 0)
		return page_of_part(env, strcmp(path, "/livez") == 0, out);
	r = look(env, &unready);
	return finish(r, unready, out);
}

void
health_metrics(const struct admin_env *env, struct stats_out *out)
{
	int unready, nr[REASON_NR] = { 0 };
	struct admin_reasons *r = look(env, &unready);

	for (int i = 0; r && i < r->nr && i < REASONS_MAX; i++)
		nr[r->reason[i].id] += i < unready || !r->reason[i].muted_until_s;
	for (int i = 0; r && i < REASON_NR; i++)
		stats_emit(out, M_HEALTH_REASON, (uint64_t)nr[i], rows[i].code, NULL);
	free(r);
}
