/* SPDX-License-Identifier: Apache-2.0 */
/* gantry status: what an operator asks first, on one screen, from the daemon's admin listener. */
#include "client/cmd/admin/copies.h"
#include "client/cmd/admin/jobs.h"
#include "client/cmd/admin/rcline.h"
#include "client/cmd/admin/reasons.h"
#include "client/cmd/admin/room.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/disk_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *
duration_text(double s, char out[32])
{
	long t = (long)s;

	if (t < 120)
		snprintf(out, 32, "%ld s", t);
	else if (t < 7200)
		snprintf(out, 32, "%ld min", t / 60);
	else if (t < 48 * 3600)
		snprintf(out, 32, "%ld h %ld min", t / 3600, t / 60 % 60);
	else
		snprintf(out, 32, "%ld days", t / 86400);
	return out;
}

/* Says until when the certificate of a listener is valid; out is empty where there is none. */
static const char *
certificate_text(const json_t *listener, char out[96])
{
	time_t end = (time_t)json_at(listener, "certificate.expires_unix_seconds");
	double left = difftime(end, time(NULL));
	char date[16], span[32];
	struct tm tm;

	*out = 0;
	if (!end || !gmtime_r(&end, &tm))
		return out;
	strftime(date, sizeof date, "%Y-%m-%d", &tm);
	if (left < 0)
		snprintf(out, 96, ", its certificate has expired (%s)", date);
	else
		snprintf(out, 96, ", certificate until %s (%s)", date, duration_text(left, span));
	return out;
}

/* What a reload could not change. */
static void
print_restart(const json_t *status)
{
	const json_t *keys = json_object_get(json_object_get(status, "configuration"), "restart_needed");

	for (size_t i = 0; i < json_array_size(keys); i++)
		printf(i ? ", %s" : "restart    needed for: %s", json_string_value(json_array_get(keys, i)));
	if (json_array_size(keys))
		putchar('\n');
}

static void
print_listeners(const json_t *status)
{
	const json_t *all = json_object_get(status, "listeners");

	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *l = json_array_get(all, i);
		char certificate[96];

		printf("%-10s %s %s://%s%s%s\n", i ? "" : "listeners", json_text_at(l, "dialect", "?"),
		       json_is_true(json_object_get(l, "https")) ? "https" : "http",
		       json_text_at(l, "address", "?"),
		       json_is_true(json_object_get(l, "anonymous")) ? ", serves unsigned requests" : "",
		       certificate_text(l, certificate));
	}
}

static void
print_admin(const json_t *status)
{
	const json_t *admin = json_object_get(status, "admin");
	const char *address = json_text_at(admin, "address", NULL);
	char certificate[96];

	if (address)
		printf("%-10s %s://%s%s%s\n", "admin",
		       json_is_true(json_object_get(admin, "https")) ? "https" : "http", address,
		       json_is_true(json_object_get(admin, "pages_need_token")) ? ", pages need the token"
										: "",
		       certificate_text(admin, certificate));
}

static void
print_rails(const json_t *rails)
{
	for (size_t i = 0; i < json_array_size(rails); i++) {
		const json_t *r = json_array_get(rails, i);
		char in[32], out[32];

		printf("%-10s %s:%d %s, %s, %s read, %s written, channels %d free of %d\n", i ? "" : "rails",
		       json_text_at(r, "device", "?"), (int)json_at(r, "port"), json_text_at(r, "state", "?"),
		       json_text_at(r, "link", "?"), size_text((uint64_t)json_at(r, "read_bytes"), in),
		       size_text((uint64_t)json_at(r, "written_bytes"), out),
		       (int)json_at(rail_channels(r), "free"), (int)json_at(rail_channels(r), "all"));
	}
	if (json_array_size(rails) == 0)
		printf("%-10s none: nothing moves by RDMA; `gantry doctor` says why\n", "rails");
}

static double
percent(double part, double all)
{
	return all > 0 ? 100 * part / all : 0;
}

static void
print_disks(const json_t *disks)
{
	for (size_t i = 0; i < json_array_size(disks); i++) {
		const json_t *d = json_array_get(disks, i);
		double size = json_at(d, "size_bytes"), left = json_at(d, "free_bytes"),
		       own = json_at(d, "reserved_bytes");
		const char *state = json_text_at(d, "state", "?");
		char a[32], b[32], objects[40] = "", reserved[40] = "", name[DISK_NAME_BYTES];

		if (strcmp(state, "missing") == 0) {
			printf("%-10s %s missing: %s\n", i ? "" : "disks", disk_name_in(d, name),
			       json_text_at(d, "reason", "?"));
			continue;
		}
		/* How many a pool has only the cluster knows. */
		if (json_object_get(d, "objects"))
			snprintf(objects, sizeof objects, ", %.0f objects", json_at(d, "objects"));
		if (own > 0)
			snprintf(reserved, sizeof reserved, "%.0f %% reserved, ", percent(own, size));
		printf("%-10s %s %s, %s of %s free (%s%.0f %% data)%s%s%s\n", i ? "" : "disks",
		       disk_name_in(d, name), state, size_text((uint64_t)left, a),
		       size_text((uint64_t)size, b), reserved, percent(size - left - own, size), objects,
		       json_at(d, "errors") > 0 || json_at(d, "crc_errors") > 0 ? ", has had errors: "
		       : *json_text_at(d, "reason", "")                         ? ": "
										: "",
		       json_text_at(d, "reason", json_at(d, "errors") > 0 ? "see the journal" : ""));
	}
}

/* What went over which wire since the start, and why not by RDMA. */
static void
print_traffic(const struct sample *s)
{
	static const char *const ways[][2] = { { "rdma", "by RDMA" }, { "http", "over HTTP" } };
	char labels[96], in[32], out[32];

	for (int i = 0; i < 2; i++) {
		double requests;

		snprintf(labels, sizeof labels, "transport=\"%s\"", ways[i][0]);
		requests = sample_sum(s, "gantry_requests_total", labels);
		snprintf(labels, sizeof labels, "direction=\"pull\",transport=\"%s\"", ways[i][0]);
		size_text((uint64_t)sample_sum(s, "gantry_transfer_bytes_total", labels), in);
		snprintf(labels, sizeof labels, "direction=\"push\",transport=\"%s\"", ways[i][0]);
		size_text((uint64_t)sample_sum(s, "gantry_transfer_bytes_total", labels), out);
		printf("%-10s %s: %.0f requests, %s in, %s out\n", i ? "" : "traffic", ways[i][1], requests,
		       in, out);
	}
	for (int i = 0; i < s->nr; i++) {
		char reason[64];

		if (!strcmp(s->m[i].name, "gantry_declines_total") && s->m[i].value > 0 &&
		    metric_label(&s->m[i], "reason", reason, sizeof reason))
			printf("%-10s declined, %s: %.0f (%s)\n", "", reason, s->m[i].value,
			       decline_meaning(reason) ? decline_meaning(reason) : "see gantryd(8)");
	}
}

/* Somebody may be reading requests on their way, and whose they were is what an operator asks next. */
static void
print_replays(const json_t *replay)
{
	const char *key;
	json_t *nr;

	if (json_at(replay, "refused") <= 0)
		return;
	printf("%-10s %.0f requests refused whose signature had been used before (auth.replay):", "replays",
	       json_at(replay, "refused"));
	json_object_foreach(json_object_get(replay, "refused_by_key"), key, nr)
		printf(" %s %.0f", key, json_number_value(nr));
	putchar('\n');
}

/* Everything as one JSON object, as the daemon gives it. */
static int
print_json(json_t *status, json_t *health, json_t *rails, json_t *disks)
{
	json_t *all = json_pack("{sO sO sO sO}", "status", status, "health", health, "rails", rails, "disks",
				disks);
	int r = all ? json_dumpf(all, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) : -1;

	json_decref(all);
	putchar('\n');
	return r == 0 ? EXIT_OK : EXIT_FAILED;
}

static void
print_all(const json_t *status, const json_t *health, const json_t *rails, const json_t *disks,
	  const struct sample *s)
{
	char up[32], scrub[PROGRESS_TEXT];
	const char *healthy = json_text_at(health, "status", "?");

	printf("%-10s gantryd %s, %s for %s, %s\n", "daemon", json_text_at(status, "version", "?"),
	       json_text_at(status, "phase", "?"), duration_text(json_at(status, "uptime_seconds"), up),
	       strcmp(healthy, "ok") == 0 ? "healthy" : healthy);
	reasons_print(stdout, health);
	host_print(stdout, status);
	print_restart(status);
	print_listeners(status);
	print_admin(status);
	printf("%-10s %zu, %d connections, %d requests running\n", "cores",
	       json_array_size(json_object_get(status, "cores")), (int)json_at(status, "connections"),
	       (int)json_at(status, "requests"));
	print_rails(rails);
	rcline_print(stdout, status);
	room_print(stdout, status);
	print_disks(disks);
	if (copies_of(status)) {
		printf("%-10s ", "copies");
		copies_print(stdout, copies_of(status));
		putchar('\n');
	}
	if (jobs_scrub_text(status, scrub, sizeof scrub))
		printf("%-10s %s\n", "scrub", scrub);
	print_traffic(s);
	print_replays(json_object_get(status, "replay"));
}

int
cmd_status(struct cmd *c)
{
	const char *name = admin_name(c->admin);
	static const char *const pages[] = { "/status", "/healthz", "/rails", "/disks" };
	json_t *page[4] = { NULL };
	struct sample s = { 0 };
	struct answer a;
	char err[512];
	int line, rc = EXIT_FAILED, http = 0;
	bool is_ok;

	for (int i = 0; i < 4; i++)
		if (admin_json(name, pages[i], &page[i], i == 1 ? &http : NULL, err, sizeof err) < 0)
			goto out;
	if (admin_get(name, "/metrics", &a, err, sizeof err) < 0)
		goto out;
	if (sample_parse(a.text, &s, &line) < 0) {
		snprintf(err, sizeof err, "%s/metrics makes no sense", name);
		goto out;
	}
	*err = 0;
	rc = EXIT_OK;
	is_ok = strcmp(json_text_at(page[1], "status", "?"), "ok") == 0;
	if (c->json)
		rc = print_json(page[0], page[1], page[2], page[3]);
	else if (c->quiet && !is_ok)
		reasons_print(stderr, page[1]);
	else if (!c->quiet)
		print_all(page[0], page[1], page[2], page[3], &s);
	/* For scripts: a daemon that is not well is no success. */
	if (rc == EXIT_OK && !is_ok)
		rc = EXIT_FAILED;
out:
	if (*err)
		fprintf(stderr, "gantry: %s\n", err);
	sample_free(&s);
	for (int i = 0; i < 4; i++)
		json_decref(page[i]);
	return rc;
}
