/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit stream of the daemon: which file it is, the events that are no request, its reason of health and
 * its metrics; and POST /control/trace/live, which shows events as they come.
 */
#include "main/daemon.h"

#include "audit/audit.h"
#include "auth/keys.h"
#include "base/advice.h"
#include "base/clock.h"
#include "base/log.h"
#include "stats/stats.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define WAITS_NS (10 * NS_PER_S) /* a record that has waited for so long is a reason of health */
#define AUDIT_END_NS (2 * NS_PER_S)

void
daemon_audit(const struct conf *conf)
{
	const char *managers = getenv("LOGS_DIRECTORY");
	struct audit_conf c = { .path = conf->audit.file,
				.size_bytes = conf->audit.size_bytes,
				.keep = conf->audit.keep,
				.reads = conf->audit.reads };
	char path[PATH_MAX];
	int r;

	if (c.path && strcmp(c.path, "auto") == 0) {
		/* A list with colons; ours is the first. */
		snprintf(path, sizeof path, "%.*s/audit.jsonl", managers ? (int)strcspn(managers, ":") : 0,
			 managers ? managers : "");
		c.path = managers && *managers ? path : NULL;
	}
	r = audit_set(&c);
	if (r < 0)
		log_error("audit: %s", strerror(-r));
}

void
daemon_audit_stop(void)
{
	audit_stop(AUDIT_END_NS);
}

/* ---- access keys ---- */

static void
key_event(const char *op, const struct auth_key_info *k)
{
	audit_put(&(struct audit_event){ .op = op, .subject = k->access_key, .secret_id = k->secret_id });
}

void
daemon_audit_keys(const struct auth_keys *old, const struct auth_keys *new)
{
	struct auth_key_info a, b;
	int i = 0, j = 0;

	/* Both are in the order of their names. */
	for (;;) {
		bool has_a = old && auth_keys_info(old, i, &a), has_b = new &&auth_keys_info(new, j, &b);
		int order = !has_a ? 1 : !has_b ? -1 : strcmp(a.access_key, b.access_key);

		if (!has_a && !has_b)
			return;
		if (order < 0)
			key_event("KeyRemoved", &a);
		else if (order > 0)
			key_event("KeyAdded", &b);
		else if (!auth_keys_same(old, i, new, j))
			key_event("KeyChanged", &b);
		i += order <= 0;
		j += order >= 0;
	}
}

/* ---- health and metrics ---- */

void
daemon_audit_health(struct admin_reasons *r)
{
	struct audit_info info;
	char text[200];

	audit_get_info(&info);
	if (!info.is_on || (!info.unreported && !info.error && info.waits_ns < WAITS_NS))
		return;
	advice_first(text, sizeof text, ADVICE_AUDIT_FILE, NULL);
	admin_reason(r, REASON_AUDIT_FAILS, "",
		     "%llu records of the audit stream are lost, others wait in memory: %s; %s",
		     (unsigned long long)info.unreported,
		     info.error ? strerror(-info.error) : "the file takes no bytes", text);
}

void
daemon_audit_metrics(struct stats_out *out)
{
	struct audit_info info;

	audit_get_info(&info);
	stats_emit(out, M_AUDIT_RECORDS, info.records, NULL);
	stats_emit(out, M_AUDIT_DROPPED, info.dropped, NULL);
	stats_emit(out, M_AUDIT_HELD, info.held, NULL);
}

/* ---- POST /control/trace/live ---- */

static int
refuse(FILE *out, int status, const char *text)
{
	fputs("{\"error\":", out);
	json_string(out, text);
	putc('}', out);
	return status;
}

/* Copies an argument, if it was given.  Returns false if it is too long. */
static bool
take(const struct admin_args *args, const char *name, char *out, size_t cap)
{
	const char *value = admin_arg(args, name);

	snprintf(out, cap, "%s", value ? value : "");
	return !value || strlen(value) < cap;
}

static int
begin(const struct admin_args *args, FILE *out)
{
	const char *slow = admin_arg(args, "slow_us"), *errors = admin_arg(args, "errors");
	struct audit_filter f = { .errors = errors && strcmp(errors, "true") == 0 };
	char id[17];
	int r;

	if (!take(args, "bucket", f.bucket, sizeof f.bucket) ||
	    !take(args, "access_key", f.access_key, sizeof f.access_key) ||
	    !take(args, "client", f.client, sizeof f.client) || !take(args, "op", f.op, sizeof f.op))
		return refuse(out, 400, "a bucket, access_key, client or op is too long");
	if (errors && !f.errors && strcmp(errors, "false") != 0)
		return refuse(out, 400, "\"errors\" is true or false");
	if (slow) {
		if (!*slow || strspn(slow, "0123456789") != strlen(slow) || strlen(slow) > 18)
			return refuse(out, 400, "\"slow_us\" is a number of microseconds");
		f.slow_us = strtoull(slow, NULL, 10);
	}
	r = audit_follow(&f, id);
	if (r == -EBUSY)
		return refuse(out, 503, "as many traces run as there may be: 8");
	if (r < 0)
		return refuse(out, 500, strerror(-r));
	fprintf(out, "{\"id\":\"%s\"}", id);
	return 200;
}

int
audit_trace_live(void *cookie, const struct admin_args *args, FILE *out)
{
	const char *id = admin_arg(args, "id"), *end = admin_arg(args, "end");
	int r;

	if (!id)
		return end ? refuse(out, 400, "\"end\" needs the \"id\" of a trace") : begin(args, out);
	if (end) {
		audit_follow_end(id);
		fputs("{}", out);
		return 200;
	}
	r = audit_follow_read(id, out);
	return r == 0         ? 200
	       : r == -ENOENT ? refuse(out, 404, "there is no such trace: one that is not read for 10 s ends")
			      : refuse(out, 500, strerror(-r));
}
