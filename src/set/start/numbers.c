/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the newest placement map of the disks of a start, and the number of each disk in it; see
 * start_int.h. */
#include "set/start/start_int.h"

#include "set/map/set_rules.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <string.h>

/* Returns true if the disk has only the map with which it was formatted, which is older than every map of a
 * store. */
static bool
is_half_added(const struct disk *d)
{
	return d->id.table->version >> TABLE_CHANGE_BITS == 0;
}

static int
refuse_stranger(struct start *s, const struct disk *d)
{
	char name[DISK_NAME_BYTES];

	disk_name_of(name, d->id.uuid, start_path(d));
	if (is_half_added(d))
		return start_refuse_with(s, -EINVAL, ADVICE_HALF_ADDED, start_path(d),
					 "disk %s was being added, and has not become one of this store",
					 name);
	return start_refuse_with(
		s, -EINVAL, ADVICE_NO_MEMBER, start_path(d),
		"disk %s does not belong to this store (any more): it was given up, or drained", name);
}

int
start_leave_drained(struct start *s)
{
	int left = 0;

	for (int i = 0; i < s->nr; i++)
		left += s->disk[i].st && table_find(s->disk[i].id.table, s->disk[i].id.uuid) >= 0;
	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];
		char name[DISK_NAME_BYTES];

		if (!d->st || table_find(d->id.table, d->id.uuid) >= 0)
			continue;
		if (!left)
			return refuse_stranger(s, d);
		if (!d->unnamed)
			log_warn("disk %s was drained, and is not used; take it off store.disks",
				 disk_name_of(name, d->id.uuid, start_path(d)));
		store_stop(d->st);
		d->st = NULL;
		d->is_out = d->is_drained = true;
	}
	return 0;
}

/*
 * Leaves out a drained disk whose own map does not record the end of the drain. A power cut causes this state
 * if the map without the disk was written to the other disks, and not yet to the disk itself. The disk's own
 * map lists the disk as draining and without slots; the newest map does not list the disk. A member receives
 * slots only by a map that it stores, and the map of a disk that was once started alone assigns slots to this
 * disk. This disk has no slots in its own map, and therefore holds no data of the store. Returns true if the
 * disk was left out.
 */
static bool
leave_unaware(struct disk *d)
{
	int number = table_find(d->id.table, d->id.uuid);
	char name[DISK_NAME_BYTES];

	if (number < 0 || !table_is_drained(d->id.table, number))
		return false;
	log_note("disk %s was drained, and is told so now; take it off store.disks",
		 disk_name_of(name, d->id.uuid, start_path(d)));
	d->drained = d->st;
	d->st = NULL;
	d->is_out = d->is_drained = true;
	return true;
}

/* Refuses the start, because two different maps have one version. The maps do not show which disk is
 * wrong. */
static int
refuse_tables(struct start *s, const struct disk *a, const struct disk *b)
{
	char of_a[DISK_NAME_BYTES], of_b[DISK_NAME_BYTES];

	return start_refuse_with(
		s, -ENOTRECOVERABLE, ADVICE_TABLES_DIFFER, start_path(b),
		"disk %s and disk %s: their tables of disks have one version and differ: the superblocks of "
		"one were changed by something else",
		disk_name_of(of_a, a->id.uuid, start_path(a)), disk_name_of(of_b, b->id.uuid, start_path(b)));
}

/* Refuses the start of a disk whose add was cut short by a power loss, without the disks of the store: its own map says that it is all of
 * the store, and it has none of the objects. */
static int
refuse_alone(struct start *s, const struct disk *d)
{
	char text[UUID_TEXT];

	uuid_write(text, d->id.uuid);
	return start_refuse_with(
		s, -EINVAL, ADVICE_HALF_ALONE, start_path(d),
		"%s: disk %s was being added to a store, and no other disk of this store is there",
		start_path(d), text);
}

int
start_find_table(struct start *s)
{
	const struct disk *of = NULL;

	for (int i = 0; i < s->nr; i++) {
		const struct disk *d = &s->disk[i];

		if (!d->st)
			continue;
		if (of && d->id.table->version == of->id.table->version &&
		    memcmp(d->id.table, of->id.table, sizeof *of->id.table) != 0)
			return refuse_tables(s, of, d);
		if (!of || (RULE_TABLE_NEWEST && d->id.table->version > of->id.table->version))
			of = d;
	}
	if (is_half_added(of))
		return refuse_alone(s, of);
	s->table = *of->id.table;
	return 0;
}

/* Returns the number of a disk in its own map; the newest map does not list the disk. Used only without
 * M13. */
static int
number_of_stranger(struct start *s, const struct disk *d)
{
	int number = table_find(d->id.table, d->id.uuid);

	memcpy(s->table.uuid[number], d->id.uuid, UUID_BYTES);
	s->table.members |= (uint64_t)1 << number;
	return number;
}

int
start_find_numbers(struct start *s)
{
	s->present = 0;
	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		if (!d->st)
			continue;
		d->number = table_find(&s->table, d->id.uuid);
		if (d->number < 0 && !RULE_TABLE_DECIDES)
			d->number = number_of_stranger(s, d);
		if (d->number < 0 && leave_unaware(d))
			continue;
		if (d->number < 0)
			return refuse_stranger(s, d);
		s->present |= (uint64_t)1 << d->number;
	}
	return 0;
}
