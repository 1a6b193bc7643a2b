/* SPDX-License-Identifier: Apache-2.0 */
#include "client/cmd/bench/bench_meter.h"

#include "base/clock.h"

#include <stdio.h>

static struct {
	pthread_mutex_t lock; /* protects all members but progress */
	double round_s, all_s, done_s;
	uint64_t began_ns; /* beginning of the round in progress; 0: none is in progress */
	int row, rows;
	char text[160];
	struct progress progress;
} meter = { .lock = PTHREAD_MUTEX_INITIALIZER, .progress = PROGRESS_INIT };

static void
look(void *cookie, struct progress_view *v)
{
	double s;

	pthread_mutex_lock(&meter.lock);
	s = meter.began_ns ? (double)(clock_ns() - meter.began_ns) / 1e9 : 0;
	s = meter.done_s + (s < meter.round_s ? s : meter.round_s);
	v->is_time = meter.all_s > 0;
	v->done = v->is_time ? (uint64_t)s : (uint64_t)(meter.row > 0 ? meter.row - 1 : 0);
	v->total = v->is_time ? (uint64_t)meter.all_s : (uint64_t)meter.rows;
	v->unit = v->is_time ? NULL : "rows";
	snprintf(v->what, sizeof v->what, "row %d of %d%.150s", meter.row, meter.rows, meter.text);
	pthread_mutex_unlock(&meter.lock);
}

void
bench_meter_begin(const struct bench *b, double seconds)
{
	pthread_mutex_lock(&meter.lock);
	meter.rows = bench_plan_rows(&b->plan);
	meter.round_s = seconds;
	meter.all_s = bench_plan_seconds(&b->plan, b->c->rounds, seconds);
	pthread_mutex_unlock(&meter.lock);
	progress_start(&meter.progress, bar_form(b->c), stderr, "gantry: bench: ", look, NULL);
}

void
bench_meter_row(const struct bench_row *row)
{
	pthread_mutex_lock(&meter.lock);
	meter.row++;
	meter.text[0] = 0;
	if (row)
		snprintf(meter.text, sizeof meter.text, ", %s of %s, %d at once", row->mix->text,
			 row->sizes->text, row->at_once);
	pthread_mutex_unlock(&meter.lock);
}

void
bench_meter_note(const char *text)
{
	pthread_mutex_lock(&meter.lock);
	snprintf(meter.text, sizeof meter.text, ", %s", text);
	pthread_mutex_unlock(&meter.lock);
}

void
bench_meter_round(void)
{
	pthread_mutex_lock(&meter.lock);
	meter.done_s += meter.began_ns ? meter.round_s : 0;
	meter.began_ns = clock_ns();
	pthread_mutex_unlock(&meter.lock);
}

void
bench_meter_round_end(void)
{
	pthread_mutex_lock(&meter.lock);
	meter.done_s += meter.round_s;
	meter.began_ns = 0;
	pthread_mutex_unlock(&meter.lock);
}

void
bench_meter_hide(void)
{
	progress_hide(&meter.progress);
}

void
bench_meter_show(void)
{
	progress_show(&meter.progress);
}

void
bench_meter_end(void)
{
	progress_stop(&meter.progress);
}
