/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a set may start with the present disks, and with which placement map; see start_int.h. */
#include "set/start/start_int.h"

#include "set/map/set_rules.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <string.h>

void
start_sizes(const struct start *s, uint64_t ret_size[STORE_DISKS_MAX])
{
	memset(ret_size, 0, STORE_DISKS_MAX * sizeof *ret_size);
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].st)
			ret_size[s->disk[i].number] = s->disk[i].id.size_bytes;
	}
}

void
start_lose(const struct start *s, struct disk_table *t)
{
	table_lose(t, s->present & ~s->behind);
	table_wait(t, s->present, s->behind);
}

/* Computes the next map, with the primaries of all partitions among the present disks. */
static void
expect_table(struct start *s)
{
	uint64_t size[STORE_DISKS_MAX];

	start_sizes(s, size);
	memset(&s->lost, 0, sizeof s->lost);
	s->next = s->table;
	if (s->forgotten)
		table_forget(&s->next, s->forgotten, size, &s->lost);
	start_lose(s, &s->next);
}

/*
 * Finds stale disks (M41). The map of a start is written only when all participating disks know the number of
 * the start (M5). A disk that took part according to the map, and does not know the number, is therefore an
 * older copy of itself, restored from a backup; a power cut cannot cause this state. All acknowledged changes
 * of buckets and of keys with two copies are on other disks, so the stale disk counts as away. A stale disk
 * stores the number of this start, with a mark that the disk is stale, before it gets the map. A disk from
 * which a repair has dropped records is treated in the same way.
 */
static void
find_behind(struct start *s)
{
	uint64_t no = s->table.version >> TABLE_CHANGE_BITS;
	char name[DISK_NAME_BYTES];

	s->behind = 0;
	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		d->is_behind = RULE_BEHIND_IS_AWAY && d->st && table_has(s->table.in, d->number) &&
			       (d->id.start_no < no || d->id.is_behind);
		if (!d->is_behind)
			continue;
		s->behind |= (uint64_t)1 << d->number;
		log_warn("disk %s %s; what others have of buckets and of keys with two copies counts",
			 disk_name_of(name, d->id.uuid, start_path(d)),
			 d->id.start_no < no
				 ? "is an older copy of itself, of before the last start of the others"
				 : "was an older copy of itself, or a repair dropped something of it");
	}
	if ((s->table.in & s->present & ~s->behind) == 0)
		s->behind = 0;
	s->table.in &= ~s->behind;
}

int
start_judge(struct start *s)
{
	int e = start_check_opened(s);

	if (e == 0)
		e = start_check_store(s);
	if (e == 0)
		e = start_leave_drained(s);
	if (e == 0)
		e = start_find_table(s);
	if (e == 0) {
		start_leave_unnamed(s);
		e = start_find_numbers(s);
	}
	if (e == 0)
		e = start_find_forgotten(s);
	if (e == 0)
		e = start_check_missing(s);
	if (e == 0) {
		find_behind(s);
		expect_table(s);
	}
	return e;
}
