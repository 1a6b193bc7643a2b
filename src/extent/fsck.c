/* SPDX-License-Identifier: Apache-2.0 */
/* --fsck: what a start would do, without changing anything, and then every byte of every object against its
 * checksum. */
#include "extent/engine.h"

#include "base/advice.h"
#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fsck {
	struct vol *vol;
	struct ring *r;
	struct recover_report *rep;
	const struct disk_table *table; /* of the set; NULL: not known */
	int number;                     /* this disk's in it */
	uint64_t objects, bytes, bad;
	uint64_t copied; /* objects and uploads that are second copies here */
	uint64_t strays; /* those that another disk should have */
	char stray[200]; /* the first of them */
	enum fsck_mode mode;
	uint64_t lost;               /* objects that have bytes in files that are not there */
	uint8_t last[KEY_BYTES_MAX]; /* key of the last one */
	size_t last_len;
};

static int
check_manifest(struct fsck *f, const struct rec *r)
{
	const struct chunk_ref *ch = rec_entries(r);

	for (uint32_t i = 0; i < r->entry_nr; i++) {
		uint8_t key[CHUNK_KEY_BYTES];
		const struct rec *c;

		key_chunk(key, ch[i].id, ch[i].index);
		if (r->body == BODY_PARTS)
			key[0] = KEY_PART;
		c = tree_find(f->vol->tree, key, sizeof key);
		if (!c || c->size_bytes != ch[i].len_bytes || c->crc64 != ch[i].crc64)
			return -EBADMSG;
	}
	return 0;
}

/* What the table gives to another disk is nobody's: what a move left behind, or a table that was lost. */
static void
check_place(struct fsck *f, const uint8_t *key, size_t len)
{
	const struct disk_table *t = f->table;
	struct slot_name n = slot_name(key, len);
	unsigned slot;

	if (!t || f->number < 0 || !n.at)
		return;
	slot = name_place(&n) % STORE_SLOT_NR;
	if ((n.has_two ? t->first[slot] : t->home[slot]) == f->number)
		return;
	if (n.has_two && t->second[slot] == f->number)
		f->copied++;
	else if (f->strays++ == 0)
		key_text(f->stray, sizeof f->stray, key, 1 + n.len);
}

/* Returns true if a record has bytes that are not there; reports it, and an object once for all of its parts. */
static bool
is_lost(struct fsck *f, const uint8_t *key, size_t len, const struct rec *r, const struct rec_view *v)
{
	bool is_object = key_is_object(key[0]);
	const uint8_t *of = is_object || !r->owner_len ? key : rec_owner(r);
	size_t of_len = is_object || !r->owner_len ? len : r->owner_len;
	char name[1 + KEY_BYTES_MAX * 2];

	if (!disk_lost(&f->vol->disk, v))
		return false;
	if (of_len == f->last_len && memcmp(of, f->last, of_len) == 0)
		return true;
	memcpy(f->last, of, of_len);
	f->last_len = of_len;
	f->lost++;
	key_text(name, sizeof name, of, of_len);
	report(f->rep, "%s: lost: %s'%s' (version %llu, %llu bytes)", f->vol->disk.path,
	       is_object ? "object " : "a part of ", name, (unsigned long long)r->version,
	       (unsigned long long)r->size_bytes);
	return true;
}

static int
check_record(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	struct fsck *f = cookie;
	bool is_list = r->body == BODY_MANIFEST || r->body == BODY_PARTS;
	struct rec_view v;
	char name[200];
	int e;

	rec_view_of(r, key, len, &v);
	if (key_is_object(key[0]))
		f->objects++;
	if (is_lost(f, key, len, r, &v) || f->mode == FSCK_PREVIEW)
		return 0;
	e = is_list ? check_manifest(f, r) : verify_data(&f->vol->disk, f->r, &v, v.entries);
	check_place(f, key, len);
	f->bytes += is_list ? 0 : r->size_bytes;
	if (e == 0)
		return 0;
	f->bad++;
	key_text(name, sizeof name, key, len);
	report(f->rep, "%s: %s '%s' (version %llu, %llu bytes): %s", f->vol->disk.path,
	       key[0] == KEY_CHUNK  ? "chunk"
	       : key[0] == KEY_PART ? "part"
				    : "object",
	       name, (unsigned long long)r->version, (unsigned long long)r->size_bytes,
	       e == -EBADMSG ? "does not match its checksum" : strerror(-e));
	return e == -ENOMEM ? e : 0;
}

/* Reports the sums. */
static void
say_sums(struct fsck *f)
{
	const struct disk *d = &f->vol->disk;
	char text[500];

	if (atomic_load(&d->layout.odd_nr))
		report(f->rep,
		       "%s: %u of %u segments have holes, unwritten or shared blocks, as a copy may leave "
		       "them: the daemon will rewrite them",
		       d->path, atomic_load(&d->layout.odd_nr), d->geo.seg_nr);
	if (f->lost)
		report(f->rep,
		       "%s: %llu of %llu objects, and parts of uploads, are lost or not whole with %u files",
		       d->path, (unsigned long long)f->lost, (unsigned long long)f->objects,
		       f->rep->lost_files);
	if (f->mode == FSCK_PREVIEW)
		return;
	report(f->rep,
	       "%s: %llu objects, %llu bytes read, %llu damaged; %llu unacknowledged records in the log's "
	       "tail",
	       d->path, (unsigned long long)f->objects, (unsigned long long)f->bytes,
	       (unsigned long long)f->bad, (unsigned long long)f->rep->cut_records);
	if (f->bad) {
		snprintf(text, sizeof text, "%s: %llu damaged records, in %llu objects and their parts",
			 d->path, (unsigned long long)f->bad, (unsigned long long)f->objects);
		advice_add(text, sizeof text, ADVICE_OBJECTS_DAMAGED, NULL);
		report(f->rep, "%s", text);
	}
	if (f->copied)
		report(f->rep,
		       "%s: %llu records are second copies, of keys whose first copy another disk has",
		       d->path, (unsigned long long)f->copied);
	if (f->strays)
		report(f->rep,
		       "%s: %llu records are of keys that the table of disks gives to another disk, '%s' the "
		       "first: leftovers, which are not needed",
		       d->path, (unsigned long long)f->strays, f->stray);
}

/* Opens the disk and goes through all of it.  1: something is dropped, or would be. */
static int
run(const struct store_conf *conf, struct recover_report *rep, enum fsck_mode mode, struct ring *r,
    uint64_t *ret_bad)
{
	const struct disk_table *table = conf->disks.table;
	struct extent_store *st = NULL;
	char err[1200] = "";
	struct fsck *f;
	int e = extent_open_with(conf, r, rep, &st, err, sizeof err);

	*ret_bad = 0;
	if (e < 0) {
		report(rep, "%s", err);
		return e;
	}
	f = calloc(1, sizeof *f);
	if (f) {
		*f = (struct fsck){ .vol = st->vol, .r = r, .rep = rep, .table = table, .mode = mode };
		if (table)
			f->number = table_find(table, st->vol->disk.sb.disk_uuid);
		e = each_record(f->vol, 0, check_record, f);
		say_sums(f);
		*ret_bad = f->bad;
		rep->was_damaged |= f->lost != 0;
	} else {
		e = -ENOMEM;
	}
	/* Last: until then a start refuses, and this can be done again. */
	if (e == 0 && mode == FSCK_REPAIR && (e = disk_mend_segments(&st->vol->disk, r, err, sizeof err)) < 0)
		report(rep, "%s", err);
	disk_release(&st->vol->disk, r);
	free(f);
	extent_free(st);
	return e < 0 ? e : rep->was_damaged;
}

int
extent_fsck(const struct store_conf *conf, enum fsck_mode mode, void (*say)(void *cookie, const char *line),
	    void *cookie)
{
	struct recover_report rep = {
		.say = say, .cookie = cookie, .check_only = mode != FSCK_REPAIR, .repair = mode != FSCK_LOOK
	};
	struct ring *r;
	uint64_t bad;
	int e = ring_new(&(struct ring_params){ .entries = 64 }, &r);

	if (e < 0) {
		report(&rep, "cannot make a ring: %s", strerror(-e));
		return e;
	}
	e = run(conf, &rep, mode, r, &bad);
	/* A start would be refused: what would a repair drop, and how is the rest? */
	if (mode == FSCK_LOOK && (e == -ENOTRECOVERABLE || e == -EIO)) {
		struct recover_report would = {
			.say = say, .cookie = cookie, .check_only = true, .repair = true
		};

		report(&rep, "%s: a repair would do this:", conf->disks.disk[0].path);
		run(conf, &would, mode, r, &bad);
	}
	ring_free(r);
	return e < 0 ? e : bad ? -ENOTRECOVERABLE : e;
}
