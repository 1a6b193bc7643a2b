/* SPDX-License-Identifier: Apache-2.0 */
/* The state and the progress of the scrub as JSON, for /status and /control/scrub. Any thread. */
#include "main/pages.h"

#include "base/clock.h"

static void
json_time(FILE *out, const char *name, uint64_t unix_ns)
{
	if (unix_ns)
		fprintf(out, ",\"%s\":%.3f", name, (double)unix_ns / 1e9);
	else
		fprintf(out, ",\"%s\":null", name);
}

/* Returns the number of objects of the store, each counted once. */
static uint64_t
count_objects(struct daemon *d)
{
	struct store_unit_info info;
	uint64_t nr = 0;

	for (int i = 0; i < unit_nr(d); i++) {
		store_unit_info(atomic_load(&d->store), i, &info);
		if (info.state != UNIT_DRAINED)
			nr += store_unit_number(&info, "objects");
	}
	return nr;
}

/* Writes the total of a scan that runs, as far as the objects that it has read allow an estimate, its rate, and the time that is left. */
static void
write_progress(struct daemon *d, const struct scrub_info *i, FILE *out)
{
	uint64_t now = clock_wall_ns(), all = count_objects(d), bytes;
	double s = now > i->started_ns ? (double)(now - i->started_ns) / 1e9 : 0, rate;

	if (i->state != SCRUB_RUNNING || !i->walk_objects || s <= 0)
		return;
	all = all > i->walk_objects ? all : i->walk_objects;
	bytes = (uint64_t)((double)i->walk_bytes / (double)i->walk_objects * (double)all);
	rate = (double)i->walk_bytes / s;
	fprintf(out, ",\"objects_total\":%llu,\"bytes_total\":%llu,\"bytes_per_second\":%.0f",
		(unsigned long long)all, (unsigned long long)bytes, rate);
	if (rate >= 1)
		fprintf(out, ",\"seconds_left\":%.0f", (double)(bytes - i->walk_bytes) / rate);
}

void
pages_scrub_state(struct daemon *d, FILE *out)
{
	static const char *const state[] = {
		[SCRUB_IDLE] = "idle", [SCRUB_RUNNING] = "running", [SCRUB_PAUSED] = "paused"
	};
	struct cores *cores = atomic_load(&d->cores);
	struct scrub_info i = { 0 };

	if (cores)
		cores_get_scrub(cores, &i);
	fprintf(out,
		"{\"state\":\"%s\",\"bytes\":%llu,\"objects\":%llu,\"errors\":%llu,\"damaged_objects\":%llu,"
		"\"walks\":%llu",
		state[i.state], (unsigned long long)i.walk_bytes, (unsigned long long)i.walk_objects,
		(unsigned long long)i.walk_errors, (unsigned long long)i.known_bad,
		(unsigned long long)i.walks);
	write_progress(d, &i, out);
	json_time(out, "started_unix_seconds", i.started_ns);
	json_time(out, "last_finished_unix_seconds", i.finished_ns);
	putc('}', out);
}
