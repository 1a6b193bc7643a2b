/* SPDX-License-Identifier: Apache-2.0 */
#include "store/meter.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *text, *unit;
} steps[METER_STEPS] = {
	[METER_WAITS] = { "", NULL },
	[METER_INDEX] = { "reads the snapshot", NULL },
	[METER_LOG] = { "reads the log", NULL },
	[METER_SPACE] = { "marks the space of objects", "records" },
	[METER_CHECK] = { "compares objects with their checksums", NULL },
	[METER_COPIES] = { "looks for other copies", "objects" },
	[METER_MAKE] = { "writes the files of the store", NULL },
	[METER_INDEX_ALL] = { "reads the index", "records" },
	[METER_NAMES] = { "looks at the names of data objects", "objects" },
};

struct meter_disk *
meter_of(struct store_meter *m, const char *path)
{
	int nr = m ? atomic_load(&m->nr) : 0, i;

	for (i = 0; i < nr && i < STORE_DISKS_MAX; i++)
		if (atomic_load(&m->disk[i].is_named) && strcmp(m->disk[i].path, path) == 0)
			return &m->disk[i];
	if (!m || (i = atomic_fetch_add(&m->nr, 1)) >= STORE_DISKS_MAX)
		return NULL;
	snprintf(m->disk[i].path, sizeof m->disk[i].path, "%s", path);
	atomic_store(&m->disk[i].is_named, true);
	return &m->disk[i];
}

void
meter_step(struct meter_disk *d, enum meter_step step, uint64_t total)
{
	if (!d)
		return;
	/* A reader in between takes the step for one that waits, and never old counts for new ones. */
	atomic_store(&d->step, METER_WAITS);
	atomic_store(&d->done, 0);
	atomic_store(&d->total, total);
	atomic_store(&d->is_estimate, false);
	atomic_store(&d->step, (int)step);
}

void
meter_add(struct meter_disk *d, uint64_t amount)
{
	if (d)
		atomic_fetch_add_explicit(&d->done, amount, memory_order_relaxed);
}

void
meter_estimate(struct meter_disk *d, uint64_t part, uint64_t all)
{
	uint64_t done;

	if (!d || !part)
		return;
	done = atomic_load(&d->done);
	atomic_store(&d->is_estimate, true);
	atomic_store(&d->total, all > part ? (uint64_t)((double)done / (double)part * (double)all) : done);
}

static uint64_t
left_of(const struct meter_disk *d)
{
	uint64_t total = atomic_load(&d->total), done = atomic_load(&d->done);

	return !total ? UINT64_MAX : total > done ? total - done : 0;
}

bool
meter_view(struct store_meter *m, struct progress_view *v)
{
	int nr = atomic_load(&m->nr), best = -1, step;
	const struct meter_disk *d;
	char of[48] = "";

	nr = nr < STORE_DISKS_MAX ? nr : STORE_DISKS_MAX;
	for (int i = 0; i < nr; i++) {
		d = &m->disk[i];
		if (!atomic_load(&d->is_named) || atomic_load(&d->step) == METER_WAITS)
			continue;
		if (best < 0 || left_of(d) > left_of(&m->disk[best]))
			best = i;
	}
	if (m->shown && atomic_load(&m->disk[m->shown - 1].step) != METER_WAITS)
		best = m->shown - 1;
	if (best < 0)
		return false;
	d = &m->disk[best];
	step = atomic_load(&d->step);
	m->shown = best + 1;
	if (m->disks > 1)
		snprintf(of, sizeof of, " (%d of %d disks)", best + 1, m->disks);
	snprintf(v->what, sizeof v->what, "%.120s%s %s", d->path, of, steps[step].text);
	v->unit = steps[step].unit;
	v->done = atomic_load(&d->done);
	v->total = atomic_load(&d->total);
	v->is_estimate = atomic_load(&d->is_estimate);
	v->stage = (unsigned)(best * METER_STEPS + step);
	return step != METER_WAITS;
}
