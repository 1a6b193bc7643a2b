/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the newest placement map of the disks of a start, and the number of each disk in it, and decides
 * whether a set may start with the present disks, and with which map; see start_int.h.
 *
 * Members that the configuration does not name are disks that were added while the daemon served, and have no
 * line in the file yet. The record (store/record.h) has the UUID and the last path of each member. The disk at
 * that path is used only if it has this UUID and belongs to this store.
 */
#include "set/start/start_int.h"

#include "set/map/set_rules.h"
#include "base/path.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <string.h>

/* ---- members that the configuration does not name ---- */

static bool
is_wanted(const struct start *s, const struct store_record_disk *r)
{
	for (int i = 0; i < s->conf->disks.forget_nr; i++) {
		if (memcmp(s->conf->disks.forget[i], r->uuid, UUID_BYTES) == 0)
			return false;
	}
	for (int i = 0; i < s->nr; i++) {
		if (memcmp(s->disk[i].id.uuid, r->uuid, UUID_BYTES) == 0 ||
		    path_leads_same(start_path(&s->disk[i]), r->path))
			return false;
	}
	return r->path[0];
}

void
start_open_all(struct start *s)
{
	const struct store_record *record = s->conf->disks.record;

	start_each(s, true, start_open_one);
	for (int i = 0; record && i < record->nr && s->nr < STORE_DISKS_MAX; i++) {
		const struct store_record_disk *r = &record->disk[i];
		struct disk *d = &s->disk[s->nr];

		if (!is_wanted(s, r))
			continue;
		d->of = s;
		d->unnamed = r;
		d->unnamed_conf = (struct store_disk_conf){ .path = r->path };
		d->conf = s->disk[0].conf;
		d->conf.disks.disk = &d->unnamed_conf;
		s->nr++;
		d->error = start_open_one(d);
	}
}

/* Removes from the start the unconfigured disks that are no longer members of the newest map. */
static void
leave_unnamed(struct start *s)
{
	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];
		int number = d->unnamed ? table_find(&s->table, d->unnamed->uuid) : 0;
		char name[DISK_NAME_BYTES];

		if (!d->unnamed || d->is_drained)
			continue;
		if (number < 0) {
			store_stop(d->st);
			d->st = NULL;
			d->is_out = d->is_drained = true;
		} else if (d->st) {
			log_warn("disk %s is used from where it was, and store.disks does not name it",
				 disk_name_of(name, d->unnamed->uuid, start_path(d)));
		}
	}
}

/* ---- the newest map, and the numbers in it ---- */

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

/* Leaves out drained disks whose own map records that they are no longer members. A start therefore succeeds
 * even if the configuration still names such disks. */
static int
leave_drained(struct start *s)
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
	log_note("disk %s was drained, and is marked so now; take it off store.disks",
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

/* Finds the newest placement map of the present disks. The newest map is valid as a whole (M1). Returns 0 or
 * -errno. */
static int
find_table(struct start *s)
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

/* Finds the number of each disk in the newest map, and the bitmap of present disks. Returns 0 or -errno. */
static int
find_numbers(struct start *s)
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

/* ---- the decision ---- */

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
		e = leave_drained(s);
	if (e == 0)
		e = find_table(s);
	if (e == 0) {
		leave_unnamed(s);
		e = find_numbers(s);
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
