/* SPDX-License-Identifier: Apache-2.0 */
/* gantry doctor, the daemon: what a running gantryd says of itself, its disks, and why it declined. */
#include "client/cmd/doctor/doctor.h"

#include "client/cmd/admin/copies.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/disk_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
doctor_ask(struct doctor *d, const char *path, json_t **ret, int *ret_status, char *err, size_t err_len)
{
	int r = -ETIMEDOUT;

	if (d->silent[0])
		snprintf(err, err_len, "%s", d->silent);
	else
		r = admin_json(d->admin, path, ret, ret_status, err, err_len);
	if (r == -ETIMEDOUT)
		snprintf(d->silent, sizeof d->silent, "%s", err);
	return r;
}

static void
look_at_disks(struct doctor *d)
{
	json_t *disks;
	char err[512];

	if (doctor_ask(d, "/disks", &disks, NULL, err, sizeof err) < 0) {
		doctor_say(d, FOUND_WARN, "disks", "%s", err);
		return;
	}
	for (size_t i = 0; i < json_array_size(disks); i++) {
		const json_t *k = json_array_get(disks, i);
		char name[DISK_NAME_BYTES];
		const char *state = json_text_at(k, "state", "?");
		double size = json_at(k, "size_bytes"), left = json_at(k, "free_bytes");
		double used = size > 0 ? 100 * (1 - left / size) : 0;
		char text[32];

		if (strcmp(state, "serving") != 0 && strcmp(state, "moving") != 0 &&
		    strcmp(state, "drained") != 0)
			doctor_say(d, FOUND_WARN, "disks", "%s %s: %s", disk_name_in(k, name), state,
				   json_text_at(k, "reason", "see the journal"));
		else if (json_at(k, "crc_errors") > 0 || json_at(k, "errors") > 0)
			doctor_say(d, FOUND_WARN, "disks",
				   "%s has had %.0f errors and %.0f checksum mismatches; see the journal",
				   disk_name_in(k, name), json_at(k, "errors"), json_at(k, "crc_errors"));
		else
			doctor_say(d, used > 95 ? FOUND_WARN : FOUND_OK, "disks", "%s: %s free, %.0f %% used",
				   disk_name_in(k, name), size_text((uint64_t)left, text), used);
	}
	json_decref(disks);
}

static void
look_at_copies(struct doctor *d, const json_t *status)
{
	const json_t *copies = copies_of(status);
	char *text = NULL;
	size_t len;
	FILE *out = copies ? open_memstream(&text, &len) : NULL;

	if (!out)
		return;
	copies_print(out, copies);
	fclose(out);
	doctor_say(d, copies_are_whole(copies) ? FOUND_OK : FOUND_WARN, "copies", "%s", text);
	free(text);
}

static void
look_at_declines(struct doctor *d)
{
	struct answer a;
	struct sample s;
	double declined = 0;
	char err[512];
	int line, nr = 0;

	if (d->silent[0] || admin_get(d->admin, "/metrics", &a, err, sizeof err) < 0 ||
	    sample_parse(a.text, &s, &line) < 0)
		return;
	for (int i = 0; i < s.nr; i++) {
		char reason[64];

		if (strcmp(s.m[i].name, "gantry_declines_total") != 0 || s.m[i].value <= 0 ||
		    !metric_label(&s.m[i], "reason", reason, sizeof reason))
			continue;
		nr++;
		declined += s.m[i].value;
		doctor_say(d, FOUND_WARN, "declines", "%.0f requests since the start, %s: %s", s.m[i].value,
			   reason, decline_meaning(reason) ? decline_meaning(reason) : "see gantryd(8)");
	}
	if (sample_sum(&s, "gantry_token_requests_total", "result=\"served\"") <= 0)
		d->declined = declined;
	if (nr == 0)
		doctor_say(d, FOUND_OK, "declines", "none: %.0f requests were served by RDMA since the start",
			   sample_sum(&s, "gantry_requests_total", "transport=\"rdma\""));
	sample_free(&s);
}

static void
look_at_health(struct doctor *d, const char *path)
{
	json_t *page;
	const json_t *reasons;
	char err[512];
	int http;

	if (doctor_ask(d, path, &page, &http, err, sizeof err) < 0) {
		doctor_say(d, FOUND_WARN, "daemon", "%s", err);
		return;
	}
	reasons = json_object_get(page, "reasons");
	if (http == 200)
		doctor_say(d, FOUND_OK, "daemon", "%s: %s", path, json_text_at(page, "status", "?"));
	/* A daemon that is degraded serves. */
	for (size_t i = 0; i < json_array_size(reasons); i++) {
		const json_t *r = json_array_get(reasons, i);
		const char *muted = json_text_at(r, "muted", NULL);

		doctor_say(d, http == 200 ? FOUND_WARN : FOUND_STOP, "daemon", "%s: %s: %s%s%s", path,
			   json_text_at(r, "code", "?"), json_text_at(r, "text", "?"),
			   muted ? "; muted until " : "", muted ? muted : "");
	}
	json_decref(page);
}

/* Looks at where the daemon keeps the record of its store. */
static void
look_at_record(struct doctor *d, const json_t *status)
{
	const json_t *record = json_object_get(json_object_get(status, "store"), "record");
	const char *file = json_text_at(record, "file", NULL),
		   *disk = json_text_at(record, "shares_with", NULL);

	if (!record || strcmp(json_text_at(status, "store.backend", ""), "rados") == 0)
		return;
	if (!file)
		doctor_say(d, FOUND_WARN, "record",
			   "it cannot remember its store outside of its disks, as there is no "
			   "store.state_dir: a "
			   "mount that is missing will look like a new machine");
	else if (disk)
		doctor_say(d, FOUND_WARN, "record",
			   "%s is on one file system with the record of the store, %s: disks belong on "
			   "mounts of "
			   "their own",
			   disk, file);
	else
		doctor_say(d, FOUND_OK, "record", "%s", file);
}

static void
look_at_keys(struct doctor *d, const json_t *status)
{
	int nr = (int)json_at(status, "access_keys");

	if (nr > 0)
		doctor_say(d, FOUND_OK, "keys", "%d access key%s", nr, nr == 1 ? "" : "s");
	else if (json_object_get(status, "access_keys"))
		doctor_say(d, FOUND_WARN, "keys",
			   "it has no access keys, so it refuses every client that signs: set "
			   "auth.credentials_file, then "
			   "`gantry key new`");
}

/* May tokens name that address, and which rail leads there? */
static void
look_at_client(struct doctor *d)
{
	char path[128], err[512];
	json_t *page;
	int http;

	snprintf(path, sizeof path, "/rails/%s", d->client);
	if (strlen(d->client) > 64 || doctor_ask(d, path, &page, &http, err, sizeof err) < 0)
		return;
	if (http == 200)
		doctor_say(d,
			   json_is_true(json_object_get(page, "allowed")) &&
					   json_is_integer(json_object_get(page, "rail"))
				   ? FOUND_OK
				   : FOUND_STOP,
			   "client", "%s", json_text_at(page, "text", "?"));
	json_decref(page);
}

static int
unregistered_cores(const json_t *status)
{
	const json_t *cores = json_object_get(status, "cores");
	int nr = 0;

	for (size_t i = 0; i < json_array_size(cores); i++) {
		const json_t *c = json_array_get(cores, i);

		nr += json_is_false(json_object_get(c, "buffers_registered"));
	}
	return nr;
}

void
doctor_daemon(struct doctor *d)
{
	json_t *status;
	char err[512];

	if (doctor_ask(d, "/status", &status, NULL, err, sizeof err) < 0) {
		doctor_say(d, FOUND_NOTE, "daemon",
			   "not looked at: %s (--admin URL or socket; it may not run here)", err);
		doctor_memlock(d, 0, 0);
		return;
	}
	doctor_say(d, FOUND_OK, "daemon", "gantryd %s, %s, %d of %d rails up",
		   json_text_at(status, "version", "?"), json_text_at(status, "phase", "?"),
		   (int)json_at(status, "rdma.rails_up"), (int)json_at(status, "rdma.rails"));
	if (strcmp(json_text_at(status, "rdma.devices", ""), "none") == 0)
		doctor_say(d, FOUND_STOP, "daemon",
			   "RDMA is switched off in its configuration (rdma.devices: none)");
	else if (json_at(status, "rdma.rails") == 0)
		doctor_say(
			d, FOUND_STOP, "daemon",
			"it has found no RDMA device that it can use; it looks again every 10 s: see gantryd "
			"--list-devices");
	doctor_memlock(d, (long)json_at(status, "pid"), unregistered_cores(status));
	look_at_keys(d, status);
	look_at_record(d, status);
	look_at_health(d, "/readyz");
	look_at_health(d, "/healthz");
	if (d->client)
		look_at_client(d);
	doctor_qos(d);
	doctor_rc(d, status);
	look_at_disks(d);
	look_at_copies(d, status);
	json_decref(status);
	look_at_declines(d);
}
