/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of the scrub: as metrics, and with its state and progress as JSON, for /status and /control/scrub. Any
 * thread. */
#include "base/clock.h"
#include "stats/stats.h"
#include "walk/scrub.h"

static uint64_t
get(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

void
scrub_get_info(const struct walk_public *walk, struct scrub_info *ret_info)
{
	const struct scrub_public *pub = (const struct scrub_public *)walk;
	struct scrub_info *i = ret_info;
	uint64_t last = get(&pub->last_errors);

	i->state = atomic_load(&walk->state);
	i->walks = get(&pub->walks);
	i->objects = get(&pub->objects);
	i->bytes = get(&pub->bytes);
	i->damaged = get(&pub->damaged);
	i->unreadable = get(&pub->unreadable);
	i->walk_objects = get(&pub->walk_objects);
	i->walk_bytes = get(&pub->walk_bytes);
	i->walk_errors = get(&pub->walk_errors);
	i->started_ns = get(&pub->started_ns);
	i->finished_ns = get(&pub->finished_ns);
	i->known_bad = last > i->walk_errors ? last : i->walk_errors;
}

void
scrub_metrics(const struct walk_public *pub, struct stats_out *out)
{
	struct scrub_info i;

	scrub_get_info(pub, &i);
	stats_emit(out, M_SCRUB_RUNNING, i.state != WALK_IDLE, NULL);
	stats_emit(out, M_SCRUB_WALKS, i.walks, NULL);
	stats_emit(out, M_SCRUB_OBJECTS, i.objects, NULL);
	stats_emit(out, M_SCRUB_BYTES, i.bytes, NULL);
	stats_emit(out, M_SCRUB_ERRORS, i.damaged, "crc", NULL);
	stats_emit(out, M_SCRUB_ERRORS, i.unreadable, "io", NULL);
	stats_emit(out, M_SCRUB_DAMAGED, i.known_bad, NULL);
	stats_emit_ns(out, M_SCRUB_FINISHED, i.finished_ns, NULL);
}

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
count_objects(struct store *store)
{
	struct store_unit_info info;
	uint64_t nr = 0;

	for (int i = 0; store && i < store_unit_nr(store); i++) {
		store_unit_info(store, i, &info);
		if (info.state != UNIT_DRAINED)
			nr += store_unit_number(&info, "objects");
	}
	return nr;
}

/* Writes the total of a scan that runs, as far as the objects that it has read allow an estimate, its rate, and the time that is left. */
static void
write_progress(struct store *store, const struct scrub_info *i, FILE *out)
{
	uint64_t now = clock_wall_ns(), all = count_objects(store), bytes;
	double s = now > i->started_ns ? (double)(now - i->started_ns) / 1e9 : 0, rate;

	if (i->state != WALK_RUNNING || !i->walk_objects || s <= 0)
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
scrub_show(const struct walk_public *pub, struct store *store, FILE *out)
{
	struct scrub_info i = { 0 };

	if (pub)
		scrub_get_info(pub, &i);
	fprintf(out,
		"{\"state\":\"%s\",\"bytes\":%llu,\"objects\":%llu,\"errors\":%llu,\"damaged_objects\":%llu,"
		"\"walks\":%llu",
		walk_state_text(pub), (unsigned long long)i.walk_bytes, (unsigned long long)i.walk_objects,
		(unsigned long long)i.walk_errors, (unsigned long long)i.known_bad,
		(unsigned long long)i.walks);
	write_progress(store, &i, out);
	json_time(out, "started_unix_seconds", i.started_ns);
	json_time(out, "last_finished_unix_seconds", i.finished_ns);
	putc('}', out);
}
