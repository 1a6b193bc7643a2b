/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cmd/admin/jobs.h"

#include "client/cmd/admin/copies.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { JOB_MOVES, JOB_COPIES };

static uint64_t
bytes_at(const json_t *o, const char *path)
{
	double n = json_at(o, path);

	return n > 0 ? (uint64_t)n : 0;
}

/* Takes the first of the disks that a job moves; all of them have the counts of the job. */
static bool
view_moves(const json_t *disks, struct progress_view *v)
{
	for (size_t i = 0; i < json_array_size(disks); i++) {
		const json_t *d = json_array_get(disks, i);
		const char *move = json_text_at(d, "move", "");

		if (!*move)
			continue;
		v->done = bytes_at(d, "move_bytes_done");
		v->total = bytes_at(d, "move_bytes_total");
		v->is_estimate = true;
		v->stage = JOB_MOVES;
		snprintf(v->what, sizeof v->what, "%.80s %s%s%.80s",
			 json_text_at(d, "path", json_text_at(d, "uuid", "a disk")),
			 strcmp(move, "drain") == 0 ? "is drained" : "fills",
			 *json_text_at(d, "reason", "") ? ": " : "", json_text_at(d, "reason", ""));
		return true;
	}
	return false;
}

static bool
view_copies(const json_t *copies, struct progress_view *v)
{
	const char *trouble = json_text_at(copies, "trouble", "");

	if (!json_is_true(json_object_get(copies, "healing")) && !*trouble)
		return false;
	v->done = bytes_at(copies, "healed_bytes");
	v->total = bytes_at(copies, "to_heal_bytes");
	v->is_estimate = true;
	v->stage = JOB_COPIES;
	snprintf(v->what, sizeof v->what, "second copies are made%s%.120s", *trouble ? ": " : "", trouble);
	return true;
}

/* Fills in the progress of the moves of slots, else of the resynchronisation. Returns false if neither is under way. */
static bool
view_jobs(const json_t *disks, const json_t *status, struct progress_view *v)
{
	const json_t *copies = copies_of(status);

	return view_moves(disks, v) || (copies && view_copies(copies, v));
}

bool
jobs_scrub_text(const json_t *status, char *text, size_t cap)
{
	const json_t *scrub = json_object_get(status, "scrub");
	struct progress_view v = { .done = bytes_at(scrub, "bytes"),
				   .total = bytes_at(scrub, "bytes_total"),
				   .is_estimate = true };
	struct progress_rate r = { .has_marks = true };

	if (strcmp(json_text_at(scrub, "state", ""), "running") != 0)
		return false;
	progress_text(&v, &r, bytes_at(scrub, "bytes_per_second"), 0, text, cap);
	return true;
}

/* ---- waiting ---- */

static struct {
	pthread_mutex_t lock;
	struct progress_view view;
	struct progress progress;
} shown = { .lock = PTHREAD_MUTEX_INITIALIZER, .progress = PROGRESS_INIT };

static void
look(void *cookie, struct progress_view *v)
{
	pthread_mutex_lock(&shown.lock);
	*v = shown.view;
	pthread_mutex_unlock(&shown.lock);
}

/* Asks the daemon once. Returns 1: a job is under way; 0: none is; -1 with the reason in err. */
static int
ask(const char *admin, char *err, size_t len)
{
	struct progress_view v = { .what = "" };
	json_t *disks = NULL, *status = NULL;
	int r = -1;

	if (admin_json(admin, "/disks", &disks, NULL, err, len) == 0 &&
	    admin_json(admin, "/status", &status, NULL, err, len) == 0)
		r = view_jobs(disks, status, &v);
	if (r == 1) {
		pthread_mutex_lock(&shown.lock);
		shown.view = v;
		pthread_mutex_unlock(&shown.lock);
	}
	json_decref(disks);
	json_decref(status);
	return r;
}

int
jobs_wait(const struct cmd *c, const char *admin)
{
	struct timespec second = { .tv_sec = 1 };
	char err[1024] = "";
	int r = ask(admin, err, sizeof err);

	progress_start(&shown.progress, bar_form(c), stderr, "gantry: ", look, NULL);
	for (; r == 1; r = ask(admin, err, sizeof err))
		nanosleep(&second, NULL);
	progress_stop(&shown.progress);
	if (r < 0)
		fprintf(stderr, "gantry: %s\n", err);
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}
