/* SPDX-License-Identifier: Apache-2.0 */
/* The control calls of the admin listener: what each takes and answers.  On the admin thread, or (slow ones)
 * on its control threads; see admin.h. */
#include "main/daemon.h"
#include "main/notify.h"

#include "admin/admin.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/core.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TELL_NS (50 * NS_PER_MS)
#define WALK_TELL_NS (5 * NS_PER_S)
#define SNAPSHOT_WAIT_NS (60 * NS_PER_S)
#define TRACE_MAX 1000
#define SETTLE_DEFAULT_S 60
#define SETTLE_MAX_S 3600

static int
refuse(FILE *out, int status, const char *text)
{
	fputs("{\"error\":", out);
	json_string(out, text);
	putc('}', out);
	return status;
}

#define MUTE_MAX_S (365 * 86400ul)

/* NULL, with the answer written: there are no cores to tell. */
static struct cores *
serving(struct daemon *d, FILE *out)
{
	if (atomic_load(&d->phase) == PHASE_SERVING)
		return atomic_load(&d->cores);
	fprintf(out, "{\"error\":\"not now: %s\"}", phase_name[atomic_load(&d->phase)]);
	return NULL;
}

static int
requests(struct cores *cores)
{
	int n = 0;

	for (int i = 0; i < cores_nr(cores); i++) {
		struct core_info info;

		cores_get_info(cores, i, &info);
		n += info.requests;
	}
	return n;
}

/* ---- drain, resume ---- */

static void
show_drain(void *cookie, FILE *out)
{
	struct daemon *d = cookie;
	struct cores *cores = atomic_load(&d->cores);

	fprintf(out, "{\"draining\":%s,\"requests\":%d}",
		atomic_load(&d->drained) || atomic_load(&d->phase) == PHASE_DRAINING ? "true" : "false",
		cores ? requests(cores) : 0);
}

static int
set_drain(struct daemon *d, bool on, FILE *out)
{
	struct cores *cores;
	int r;

	cores = serving(d, out);
	if (!cores)
		return 503;
	/* Readiness first: who asks it must not send what is about to be refused. */
	atomic_store(&d->drained, on);
	r = cores_drain(cores, on, TELL_NS);
	if (r < 0) {
		atomic_store(&d->drained, !on);
		return refuse(out, 500, "out of memory");
	}
	log_event(LOG_EV_DRAIN, LOG_NOTE, on ? "draining: new requests are refused" : "serving again");
	notify_send("%s", on ? "STATUS=Draining (on request)" : "STATUS=Serving");
	show_drain(d, out);
	return 200;
}

static int
drain(void *cookie, const struct admin_args *args, FILE *out)
{
	return set_drain(cookie, true, out);
}

static int
resume(void *cookie, const struct admin_args *args, FILE *out)
{
	return set_drain(cookie, false, out);
}

/* ---- reload ---- */

static int
reload(void *cookie, const struct admin_args *args, FILE *out)
{
	return daemon_reload(cookie, out);
}

static void
show_reload(void *cookie, FILE *out)
{
	struct daemon *d = cookie;

	fprintf(out, "{\"last_success_unix_seconds\":%llu,\"failures\":%llu,\"restart_needed\":%d}",
		(unsigned long long)(atomic_load(&d->reloaded_ns) / NS_PER_S),
		(unsigned long long)atomic_load(&d->reload_failures), atomic_load(&d->restart_pending));
}

/* ---- log levels ---- */

static void
show_levels(void *cookie, FILE *out)
{
	fprintf(out, "{\"level\":\"%s\",\"modules\":{", log_level_name[log_get_level()]);
	for (int i = 0; i < LOG_MODULES_NR; i++) {
		int own = log_get_module_level(i);

		fprintf(out, "%s\"%s\":\"%s\"", i ? "," : "", log_module_name[i],
			own == LOG_LEVEL_COMMON ? "default" : log_level_name[own]);
	}
	fputs("}}", out);
}

static int
set_level(void *cookie, const struct admin_args *args, FILE *out)
{
	const char *level = admin_arg(args, "level"), *module = admin_arg(args, "module");
	int m = module ? log_module_find(module) : 0;
	enum log_level l = LOG_INFO;
	bool common = level && module && strcmp(level, "default") == 0;

	if (!level)
		return refuse(out, 400,
			      "\"level\" is missing: error, warning, notice, info, debug; for a module "
			      "default too");
	if (m < 0)
		return refuse(out, 400, "no such module; GET shows those there are");
	if (!common && log_level_parse(level, &l) < 0)
		return refuse(
			out, 400,
			"expected a level of error, warning, notice, info, debug (for a module: or default)");
	if (module)
		log_set_module_level(m, common ? LOG_LEVEL_COMMON : (int)l);
	else
		log_set_level(l);
	log_event(LOG_EV_CONTROL, LOG_NOTE, "log level of %s is now %s", module ? module : "everything",
		  level);
	show_levels(cookie, out);
	return 200;
}

/* ---- trace ---- */

static void
show_trace(void *cookie, FILE *out)
{
	struct daemon *d = cookie;
	struct cores *cores = atomic_load(&d->cores);

	fprintf(out, "{\"next\":%d}", cores ? cores_trace_left(cores) : 0);
}

static int
trace(void *cookie, const struct admin_args *args, FILE *out)
{
	const char *id = admin_arg(args, "id"), *next = admin_arg(args, "next");
	struct cores *cores = serving(cookie, out);
	long n;
	int r;

	if (!cores)
		return 503;
	if (!id == !next)
		return refuse(
			out, 400,
			"expected either \"id\" (of a live request, see /requests) or \"next\" (a number)");
	if (id) {
		r = cores_trace(cores, id, TELL_NS);
		if (r < 0)
			return r == -ENOENT ? refuse(out, 404, "no live request has that id")
					    : refuse(out, 500, "out of memory");
		log_event(LOG_EV_CONTROL, LOG_NOTE, "request %.40s is traced", id);
		fputs("{\"traced\":", out);
		json_string(out, id);
		putc('}', out);
		return 200;
	}
	n = strspn(next, "0123456789") == strlen(next) && strlen(next) < 6 ? atol(next) : -1;
	if (n < 0 || n > TRACE_MAX)
		return refuse(out, 400, "\"next\" is a number from 0 (stop) to 1000");
	cores_trace_next(cores, (int)n);
	log_event(LOG_EV_CONTROL, LOG_NOTE, "the next %ld requests are traced", n);
	show_trace(cookie, out);
	return 200;
}

/* ---- the walks ---- */

/* Answers a call of a walk that has failed. */
static int
refuse_walk(int r, FILE *out)
{
	return r == -EBUSY    ? refuse(out, 503, "not now: draining")
	       : r == -EAGAIN ? refuse(out, 503, "the core has not answered yet; GET shows what it does")
	       : r == -ENOSYS ? refuse(out, 501, "there is no store")
			      : refuse(out, 500, "out of memory");
}

static int
call_walk(struct daemon *d, enum walk_id id, const char *name, const char *action, FILE *out)
{
	bool stop = action && strcmp(action, "stop") == 0;
	struct cores *cores = serving(d, out);
	int r;

	if (!cores)
		return 503;
	if (action && !stop && strcmp(action, "start") != 0)
		return refuse(out, 400, "\"action\" is start (also without it) or stop");
	r = cores_walk(cores, id, !stop, WALK_TELL_NS);
	if (r < 0 && r != -EALREADY)
		return refuse_walk(r, out);
	if (r == 0)
		log_event(LOG_EV_CONTROL, LOG_NOTE, "%s: %s", name, stop ? "stopped" : "started");
	fprintf(out, "{\"%s\":%s,\"%s\":", stop ? "stopped" : "started", r == 0 ? "true" : "false", name);
	pages_walk(d, id, out);
	putc('}', out);
	return 200;
}

#define WALK(id, name, settles, has_call, args)                                                              \
	static int name##_post(void *cookie, const struct admin_args *given, FILE *out)                      \
	{                                                                                                    \
		return call_walk(cookie, WALK_##id, #name, admin_arg(given, "action"), out);                 \
	}                                                                                                    \
	static void name##_get(void *cookie, FILE *out)                                                      \
	{                                                                                                    \
		pages_walk(cookie, WALK_##id, out);                                                          \
	}
#include "walk/walk.def"

/* ---- the end of background work ---- */

static void
short_pause(void)
{
	nanosleep(&(struct timespec){ 0, 10 * (long)NS_PER_MS }, NULL);
}

/* The walks first, since what they delete is work for the store. */
static const char *
background(const struct store *st, const struct cores *cores)
{
	const char *walk = walks_unsettled(cores_walks(cores));

	return walk ? walk : store_background(st);
}

/* Returns the number of seconds in text, from 1 to max; 0: NULL, or another text. */
static uint64_t
seconds_of(const char *text, uint64_t max)
{
	bool is_number = text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 10;
	uint64_t n = is_number ? strtoull(text, NULL, 10) : 0;

	return n > max ? 0 : n;
}

static int
settle(void *cookie, const struct admin_args *args, FILE *out)
{
	struct daemon *d = cookie;
	const char *timeout = admin_arg(args, "timeout");
	uint64_t began = clock_ns(), seconds = timeout ? seconds_of(timeout, SETTLE_MAX_S) : SETTLE_DEFAULT_S;
	const char *busy;

	if (!seconds)
		return refuse(out, 400, "\"timeout\" is a number of seconds from 1 to 3600");
	for (;;) {
		const struct store *st = atomic_load(&d->store);
		struct cores *cores = serving(d, out);

		if (!st || !cores)
			return 503;
		busy = background(st, cores);
		if (!busy || clock_ns() - began >= seconds * NS_PER_S)
			break;
		short_pause();
	}
	if (busy)
		fprintf(out, "{\"error\":\"%s is in progress\",\"busy\":\"%s\"}", busy, busy);
	else
		fprintf(out, "{\"seconds\":%.3f}", (double)(clock_ns() - began) / 1e9);
	return busy ? 503 : 200;
}

/* ---- a snapshot ---- */

static bool
snapshots_run(const struct store *st)
{
	struct store_unit_info info;
	bool runs = false;

	for (int i = 0; i < store_unit_nr(st); i++) {
		store_unit_info(st, i, &info);
		runs |= store_unit_number(&info, "snapshot_runs") && store_unit_serves(info.state);
	}
	return runs;
}

static uint64_t
snapshots_made(const struct store *st)
{
	struct store_unit_info info;
	uint64_t n = 0;

	for (int i = 0; i < store_unit_nr(st); i++) {
		store_unit_info(st, i, &info);
		n += store_unit_number(&info, "snapshots");
	}
	return n;
}

static int
snapshot(void *cookie, const struct admin_args *args, FILE *out)
{
	struct daemon *d = cookie;
	struct store *st = atomic_load(&d->store);
	uint64_t before, until = clock_ns() + SNAPSHOT_WAIT_NS;
	char why[96];

	if (st && !store_has_snapshots(st)) {
		snprintf(why, sizeof why, "a store on %s makes no snapshots", store_name(st));
		return refuse(out, 501, why);
	}
	if (!st || !serving(d, out))
		return 503;
	before = snapshots_made(st);
	if (store_snapshot(st) < 0)
		return refuse(out, 500, "not every disk could be asked for a snapshot");
	while (snapshots_run(st) && clock_ns() < until)
		short_pause();
	if (snapshots_run(st))
		return refuse(out, 503,
			      "it is still being made; GET /disks shows when the number of snapshots grows");
	if (snapshots_made(st) == before)
		return refuse(out, 500, "no snapshot was made; the log says why");
	log_event(LOG_EV_CONTROL, LOG_NOTE, "a snapshot was made");
	fprintf(out, "{\"snapshots\":%llu,\"seconds\":%.3f}",
		(unsigned long long)(snapshots_made(st) - before),
		(double)(clock_ns() + SNAPSHOT_WAIT_NS - until) / 1e9);
	return 200;
}

/* ---- health ---- */

/* Names the codes that there are. */
static int
refuse_code(FILE *out)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f) {
		fputs("no reason has that code; there are ", f);
		admin_show_codes(f);
		fclose(f);
	}
	refuse(out, 400, text ? text : "no reason has that code");
	free(text);
	return 400;
}

static void
show_health(void *cookie, FILE *out)
{
	struct daemon *d = cookie;

	admin_show_health(d->admin, out);
}

static int
health(void *cookie, const struct admin_args *args, FILE *out)
{
	const char *action = admin_arg(args, "action"), *code = admin_arg(args, "code");
	struct daemon *d = cookie;
	bool is_mute = action && strcmp(action, "mute") == 0;
	uint64_t s = is_mute ? seconds_of(admin_arg(args, "seconds"), MUTE_MAX_S) : 0;
	int r;

	if (!action || (!is_mute && strcmp(action, "unmute") != 0) || !code)
		return refuse(out, 400, "expected \"action\" mute or unmute, and the \"code\" of a reason");
	if (is_mute && !s)
		return refuse(out, 400, "expected \"seconds\", from 1 to a year");
	r = admin_mute(d->admin, code, s);
	if (r == -ENOENT)
		return refuse_code(out);
	log_event(LOG_EV_CONTROL, r < 0 ? LOG_WARN : LOG_NOTE, "health: %s was %sd%s%s", code, action,
		  r < 0 ? "; a restart ends that: " : "", r < 0 ? strerror(-r) : "");
	admin_show_health(d->admin, out);
	return 200;
}

static const struct admin_control controls[] = {
	{ "/control/health", "action code seconds", CONTROL_SLOW, health, show_health },
	{ "/control/drain", "", CONTROL_AT_ONCE, drain, show_drain },
	{ "/control/resume", "", CONTROL_AT_ONCE, resume, NULL },
	{ "/control/reload", "", CONTROL_SLOW, reload, show_reload },
	{ "/control/log-level", "level module", CONTROL_AT_ONCE, set_level, show_levels },
	{ "/control/trace", "id next", CONTROL_AT_ONCE, trace, show_trace },
	{ "/control/trace/live", "id end bucket access_key client op errors slow_us", CONTROL_AT_ONCE,
	  audit_trace_live, NULL, true },
	{ "/control/snapshot", "", CONTROL_SLOW, snapshot, NULL },
	{ "/control/settle", "timeout", CONTROL_WAIT, settle, NULL, true },
#define WALK(id, name, settles, has_call, args)                                                              \
	{ has_call ? "/control/" #name : NULL, args, CONTROL_SLOW, name##_post, name##_get },
#include "walk/walk.def"
	{ "/control/disk/drain", "disk", CONTROL_DISKS, disks_drain, disks_show_move },
	{ "/control/disk/add", "disk size force", CONTROL_DISKS, disks_add, disks_show_move },
	{ "/control/disk/cancel", "", CONTROL_DISKS, disks_cancel, disks_show_move },
	{ "/control/bucket", "bucket max_objects max_bytes max_uploads expire_days", CONTROL_SLOW,
	  control_bucket, NULL },
	{ "/control/keys", "", CONTROL_AT_ONCE, control_keys, NULL },
};

void
control_env(struct admin_env *env)
{
	env->controls = controls;
	env->control_nr = (int)(sizeof controls / sizeof *controls);
}
