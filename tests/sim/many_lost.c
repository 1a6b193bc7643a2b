/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments of one of several disks that vanish between two lives, see sim.h and many.c.  A start refuses if they had something, and a
 * repair lists the objects that had bytes there.  Of two copies the other one serves from then on, and the lost one is restored from it, as
 * what rots is (many_pairs.c); of one copy the objects are damaged until they are written again or deleted.  Everything else is whole.
 */
#include "tests/sim/many_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_lost[IDS_MAX];           /* by what was put: its bytes are lost */
static uint32_t segs_of[BUCKETS][KEYS]; /* of the disk: in which segments it has bytes of the key */
static uint32_t id_of[BUCKETS][KEYS];
static char told[1 << 16]; /* by the repair */
static int repaired;
static bool had_damage; /* before files were lost: a repair finds it, too, and mends none of it */

void
lost_begin(void)
{
	memset(is_lost, 0, sizeof is_lost);
	had_damage = false;
}

bool
lost_is(uint32_t id)
{
	return id < IDS_MAX && is_lost[id];
}

struct places {
	const struct vol *vol;
	int disk;
	uint32_t named;
};

/* The disk has this key by the table, first or second: the record is none that a move has left. */
static bool
is_of_disk(int disk, int b, int k)
{
	const struct set *s = set_of(sim_store);
	int first = set_primary_at(s, many_place(b, k));
	int second = many_has_two(b) ? set_secondary_at(s, many_place(b, k)) : SET_NOWHERE;

	return (first != SET_NOWHERE && moves_disk(s, first) == disk) ||
	       (second != SET_NOWHERE && moves_disk(s, second) == disk);
}

static int
on_record(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	struct places *pl = cookie;
	uint32_t maps = 0, segs = sim_segs_of(pl->vol, key, len, r, &maps);
	struct rec_view v;

	pl->named |= segs;
	rec_view_of(r, key, len, &v);
	for (int b = 0; b < BUCKETS && key_is_object(key[0]); b++) {
		for (int k = 0; k < KEYS; k++) {
			struct store_key sk = many_key(b, k);
			uint8_t its[KEY_BYTES_MAX];

			sk.copies = many_has_two(b) ? 2 : 1;
			if (key_object(its, &sk) != (int)len || memcmp(its, key, len) != 0 ||
			    !is_of_disk(pl->disk, b, k))
				continue;
			segs_of[b][k] = segs;
			id_of[b][k] = (uint32_t)many_etag_nr(&v.etag);
		}
	}
	return 0;
}

/* Notes where a disk has what.  A repair does not list what a move has left there.  Returns the bits of all segments that records name. */
static uint32_t
note_places(int d, const struct vol *vol)
{
	struct places pl = { .vol = vol, .disk = d };

	memset(segs_of, 0, sizeof segs_of);
	check(each_record((struct vol *)(uintptr_t)vol, 0, on_record, &pl) == 0);
	return pl.named;
}

/* Returns the bits of the segments that are gone. */
static uint32_t
remove_segments(int d, uint32_t named, uint32_t keep)
{
	uint32_t gone = 0;

	for (int i = 0; i < SEGS_MAX; i++) {
		int name = d * SIM_FILES + FILE_SEG + i;

		if (!simdisk_exists(name) || keep >> i & 1 || !one_in(named >> i & 1 ? 2 : 16))
			continue;
		say("segment %d of disk %d is lost", i, d);
		simdisk_unlink(name);
		gone |= 1u << i;
		counts.lost_files++;
	}
	simdisk_sync_dir();
	return gone;
}

/* ---- the repair ---- */

static void
on_line(void *cookie, const char *line)
{
	size_t at = strlen(told);

	say("fsck: %s", line);
	snprintf(told + at, sizeof told - at, "%s\n", line);
}

static void
repair_main(int nr)
{
	struct store_conf conf = many_conf();

	told[0] = 0;
	repaired = store_fsck(&conf, FSCK_REPAIR, on_line, NULL);
}

static bool
repair_over(void)
{
	return !co_runs(CO_START, 0);
}

/* Lists the objects that have bytes there, and no others.  An object that is damaged as well has one line, which may be that of the damage. */
static void
check_told(uint32_t gone)
{
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < KEYS; k++) {
			bool is = segs_of[b][k] & gone;
			char line[100];

			snprintf(line, sizeof line, "lost: object '%s/%s' ", bucket_name(b), key_name(k));
			if (!strstr(told, is && had_damage ? line + strlen("lost: ") : line) == is)
				sim_fail("bucket %d key %d: it is lost: %d, and the repair says: %s", b, k,
					 is, told);
			counts.lost_objects += is;
		}
	}
}

/* Cut somewhere, it can be made again. */
static void
repair(uint32_t gone)
{
	bool was_cut = false;

	co_start(CO_START, 0, repair_main);
	if (!sim_go(repair_over, one_in(3) ? 1 + below(300) : 0)) {
		was_cut = true;
		many_dies(one_in(2));
		while (simdisk_late())
			simdisk_land_late(0);
		co_start(CO_START, 0, repair_main);
		sim_go(repair_over, 0);
	}
	/* The first one may have made the files, and then data is damaged and no file is lost. */
	if (repaired != 1 && !(was_cut && repaired == 0) &&
	    !((was_cut || had_damage) && repaired == -ENOTRECOVERABLE))
		sim_fail("a repair of lost files ended with %d: %s", repaired, told);
	if (!was_cut)
		check_told(gone);
	many_dies(false);
}

/* ---- all of it ---- */

/* NULL: the disk does not serve, or a snapshot is under way. */
static const struct vol *
vol_of(int d)
{
	const struct set *s = set_of(sim_store);

	for (int i = 0; i < set_engines(s); i++) {
		const struct vol *vol = extent_store(set_engine(s, i))->vol;

		if (moves_disk(s, i) == d && set_is_in(s, i))
			return disk_failed(&vol->disk) || atomic_load(&vol->snap.state) != SNAP_IDLE ? NULL
												     : vol;
	}
	return NULL;
}

/* -1: none can lose anything now. */
static int
choose_disk(void)
{
	int d;

	if (prof.two)
		return pairs_may_rot();
	do
		d = (int)below((uint32_t)prof.disks);
	while (!(many_serving() >> d & 1));
	return d;
}

static void
note_lost(uint32_t gone)
{
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < KEYS && !many_has_two(b); k++) {
			if (segs_of[b][k] & gone && id_of[b][k] < IDS_MAX)
				is_lost[id_of[b][k]] = true;
		}
	}
}

void
lost_files(void)
{
	const char *error;
	const struct vol *vol;
	uint32_t gone, named, keep;
	int d, r;

	many_choose(0);
	if (!many_start(0))
		return;
	d = choose_disk();
	vol = d < 0 ? NULL : vol_of(d);
	named = vol ? note_places(d, vol) : 0;
	keep = vol ? sim_snapshot_segs(vol) : 0;
	many_dies(one_in(2));
	if (!vol)
		return;
	while (simdisk_late())
		simdisk_land_late(0);
	gone = remove_segments(d, named, keep);
	if (!(gone & named))
		return;
	had_damage |= pairs_rotten() != 0;
	note_lost(gone);
	if (prof.two)
		pairs_has_rotten();
	r = many_try_start(&error);
	if (r == 0 || !strstr(error, "is not there"))
		sim_fail("lost files end the start like this: %d %s", r, error);
	repair(gone);
	had_damage = true;
	pairs_not_started();
}
