/* SPDX-License-Identifier: Apache-2.0 */
#include "main/meter.h"

#include "main/daemon.h"
#include "main/notify.h"

#include "store/conf.h"

#include "base/log.h"

#include <stdio.h>
#include <time.h>

#define START_ASK_NS (5 * NS_PER_S)
#define START_EXTEND_NS (60 * NS_PER_S)

static struct store_meter meter;

/* Names the disks in their order. */
static void
name_disks(const struct store_disk_conf *disk, int nr)
{
	meter.disks = nr;
	for (int i = 0; i < nr; i++)
		meter_of(&meter, disk[i].path);
}

/* ---- on standard error ---- */

static struct progress display = PROGRESS_INIT;

static void
look(void *cookie, struct progress_view *v)
{
	if (!meter_view(&meter, v))
		snprintf(v->what, sizeof v->what, "waiting for disks");
}

struct store_meter *
meter_show(const struct store_disk_conf *disk, int nr)
{
	name_disks(disk, nr);
	progress_start(&display, progress_form_of(stderr), stderr, "gantryd: ", look, NULL);
	return &meter;
}

void
meter_hide(void)
{
	progress_hide(&display);
}

void
meter_go_on(void)
{
	progress_show(&display);
}

void
meter_end(void)
{
	progress_stop(&display);
}

/* ---- a start ---- */

static struct {
	struct progress_rate rate;
	bool has_status;
	unsigned stage;
	uint64_t status_ns, logged_ns;
	/* time of the last request for time, and the CPU time of the start then, in ns */
	uint64_t asked_ns, used_ns;
} start_status;

struct store_meter *
meter_of_start(const struct store_disk_conf *disk, int nr)
{
	name_disks(disk, nr);
	return &meter;
}

/* Asks systemd for more time while a start uses the CPU, or waits for late disks or a cluster: the limit of the unit is for
 * a start that hangs, as on a disk that does not answer. */
static void
ask_for_time(const struct daemon *d, uint64_t now)
{
	struct timespec all, ours;
	uint64_t used;
	int phase = atomic_load(&d->phase);

	if (!start_status.asked_ns)
		start_status.asked_ns = now;
	if (now - start_status.asked_ns < START_ASK_NS || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all) < 0 ||
	    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ours) < 0)
		return;
	used = (uint64_t)(all.tv_sec - ours.tv_sec) * NS_PER_S + (uint64_t)all.tv_nsec -
	       (uint64_t)ours.tv_nsec;
	if (used - start_status.used_ns >= NS_PER_MS || phase == PHASE_CLUSTER || phase == PHASE_DISKS)
		notify_send("EXTEND_TIMEOUT_USEC=%llu", START_EXTEND_NS / NS_PER_US);
	start_status.asked_ns = now;
	start_status.used_ns = used;
}

static void
tell_progress(uint64_t now)
{
	struct progress_view v = { .what = "" };
	char text[PROGRESS_TEXT];
	uint64_t rate;

	if (!start_status.logged_ns)
		start_status.logged_ns = now;
	if (!meter_view(&meter, &v))
		return;
	rate = progress_note(&start_status.rate, &v, now);
	if (start_status.has_status && start_status.stage == v.stage &&
	    now - start_status.status_ns < NS_PER_S)
		return;
	progress_text(&v, &start_status.rate, rate, now, text, sizeof text);
	notify_send("STATUS=Recovering the store: %s", text);
	start_status.has_status = true;
	start_status.stage = v.stage;
	start_status.status_ns = now;
	if (now - start_status.logged_ns < PROGRESS_MINUTE_NS)
		return;
	log_note("start: %s", text);
	start_status.logged_ns = now;
}

void
meter_tell_start(const struct daemon *d, uint64_t now_ns)
{
	ask_for_time(d, now_ns);
	tell_progress(now_ns);
}
