/* SPDX-License-Identifier: Apache-2.0 */
/* --fsck: what a start would do, without changing anything, and then every byte of every object against its
 * checksum. */
#include "extent/engine.h"

#include "extent/disk/sync.h"
#include "extent/log/parts.h"
#include "base/advice.h"
#include "base/check.h"
#include "store/damage.h"
#include "store/meter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct fsck {
	struct vol *vol;
	struct ring *r;
	struct recover_report *rep;
	const struct disk_table *table; /* of the set; NULL: not known */
	int number;                     /* this disk's in it */
	uint64_t objects, bytes, bad;
	uint64_t copied;  /* objects and uploads that are second copies here */
	uint64_t seconds; /* the objects of these */
	uint64_t strays;  /* those that another disk should have */
	char stray[200];  /* the first of them */
	enum fsck_mode mode;
	uint64_t lost;                   /* objects that have bytes in files that are not there */
	uint8_t last[KEY_BYTES_MAX + 4]; /* key of the last one, as in struct owner */
	size_t last_len;
};

/* Returns true if no object and no upload needs a chunk or part: a PUT that did not end has left it, and the next start frees its space. */
static bool
is_leftover(const struct tree *t, const uint8_t *key, const struct rec *r, const struct rec_view *v)
{
	const struct rec *part = part_of_chunk(t, v);

	return (key[0] == KEY_CHUNK || key[0] == KEY_PART) &&
	       (!has_owner(t, key, r) || (part && !has_owner(t, rec_owner(r), part)));
}

/* Returns true if a record refers to other records, and has no bytes of its own. */
static bool
is_list(const struct rec *r)
{
	return r->body == BODY_MANIFEST || r->body == BODY_PARTS;
}

/* Returns entry i of a list. NULL: the index lacks it, or has another one. */
static const struct rec *
listed(const struct fsck *f, const struct rec *r, uint32_t i)
{
	const struct chunk_ref *ch = rec_entries(r);

	return ref_record(f->vol->tree, &ch[i], r->body == BODY_PARTS ? KEY_PART : KEY_CHUNK);
}

static int
check_manifest(struct fsck *f, const struct rec *r)
{
	for (uint32_t i = 0; i < r->entry_nr; i++) {
		if (!listed(f, r, i))
			return -EBADMSG;
	}
	return 0;
}

/* Returns true if the table gives the key of a record to another disk, so that the record is needed by none: a move
 * or the loss of a table has left it. *ret_second: it is a second copy. */
static bool
is_stray(const struct fsck *f, const struct slot_name *n, bool *ret_second)
{
	const struct disk_table *t = f->table;
	unsigned slot;

	*ret_second = false;
	if (!t || f->number < 0 || !n->at)
		return false;
	slot = name_place(n) % STORE_SLOT_NR;
	*ret_second = n->has_two && t->first[slot] != f->number && t->second[slot] == f->number;
	return !*ret_second && (n->has_two ? t->first[slot] : t->home[slot]) != f->number;
}

static void
check_place(struct fsck *f, const uint8_t *key, size_t len)
{
	struct slot_name n = slot_name(key, len);
	bool is_second, is_left = is_stray(f, &n, &is_second);

	f->copied += is_second;
	f->seconds += key_is_object(key[0]) && (is_second || is_left);
	if (is_left && f->strays++ == 0)
		key_text(f->stray, sizeof f->stray, key, 1 + n.len);
}

/* Reports damage of an object, or of a part of an upload, once for all of its records if it is in the list of damage. Returns true if it
 * is news. */
static bool
report_damage(struct fsck *f, const struct owner *o, enum damage_kind kind, const char *line)
{
	const struct damage what = { .kind = kind,
				     .is_part = o->is_part,
				     .disk = f->rep->disk,
				     .version = o->version,
				     .size_bytes = o->size_bytes };
	bool is_news = o->len != f->last_len || memcmp(o->key, f->last, o->len) != 0,
	     is_known = o->is_object || o->is_part;

	memcpy(f->last, o->key, o->len);
	f->last_len = o->len;
	if (is_news && (!is_known || !damage_add(f->rep->damage, &what, o->key, o->len, line)))
		report(f->rep, "%s: %s", f->vol->disk.name, line);
	return is_news;
}

/* Writes what is damaged, with its version and size. */
static void
damage_text(const struct owner *o, const char *before, const char *after, char *line, size_t cap)
{
	char name[OWNER_TEXT];

	owner_text(o, name, sizeof name);
	snprintf(line, cap, "%s%s%s (version %llu, %llu bytes)%s", before, o->is_object ? "object " : "",
		 name, (unsigned long long)o->version, (unsigned long long)o->size_bytes, after);
}

/* Returns true if a record has bytes that are not there, and reports it. */
static bool
is_lost(struct fsck *f, const uint8_t *key, size_t len, const struct rec *r, const struct rec_view *v)
{
	char line[OWNER_TEXT + 100];
	struct slot_name n = slot_name(key, len);
	struct owner o;
	bool is_second;

	if (!disk_lost(&f->vol->disk, v))
		return false;
	if (is_stray(f, &n, &is_second) || is_leftover(f->vol->tree, key, r, v))
		return true;
	owner_find(f->vol->tree, v, &o);
	damage_text(&o, "lost: ", "", line, sizeof line);
	f->lost += report_damage(f, &o, DAMAGE_LOST, line);
	return true;
}

static void
report_bad(struct fsck *f, const uint8_t *key, const struct rec_view *v, int error)
{
	const char *why = error == -EBADMSG ? "does not match its checksum" : strerror(-error);
	char line[OWNER_TEXT + 200], after[100];
	struct owner o;

	f->bad++;
	owner_find(f->vol->tree, v, &o);
	snprintf(after, sizeof after, ": %s%s", o.is_object && !key_is_object(key[0]) ? "a part of it " : "",
		 why);
	damage_text(&o, "", after, line, sizeof line);
	report_damage(f, &o, DAMAGE_BAD, line);
}

static int
check_record(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	struct fsck *f = cookie;
	uint64_t bytes = is_list(r) ? 0 : r->size_bytes;
	struct rec_view v;
	int e;

	rec_view_of(r, key, len, &v);
	if (key_is_object(key[0]))
		f->objects++;
	check_place(f, key, len);
	if (is_lost(f, key, len, r, &v) || f->mode == FSCK_PREVIEW)
		return 0;
	e = is_list(r) ? check_manifest(f, r) : verify_data(&f->vol->disk, f->r, &v, v.entries);
	f->bytes += bytes;
	meter_add(f->rep->meter, bytes);
	if (e < 0)
		report_bad(f, key, &v, e);
	return e == -ENOMEM ? e : 0;
}

/* Adds up the bytes that a check reads. */
static int
add_bytes(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	uint64_t *bytes = cookie;

	*bytes += is_list(r) ? 0 : r->size_bytes;
	return 0;
}

static int
check_all(struct fsck *f)
{
	uint64_t bytes = 0;

	if (f->mode != FSCK_PREVIEW && each_record(f->vol, 0, add_bytes, &bytes) == 0)
		meter_step(f->rep->meter, METER_CHECK, bytes);
	return each_record(f->vol, 0, check_record, f);
}

/* ---- whole copies of what another disk has not ---- */

/* Returns true if this disk has all bytes of a record, and of the parts and chunks that it names. */
static bool
is_whole(struct fsck *f, const struct rec *r)
{
	struct rec_view v;
	bool all;

	rec_view_of(r, NULL, 0, &v);
	all = !disk_lost(&f->vol->disk, &v);
	if (all && !is_list(r))
		return verify_data(&f->vol->disk, f->r, &v, v.entries) == 0;
	for (uint32_t i = 0; all && i < r->entry_nr; i++) {
		const struct rec *entry = listed(f, r, i);

		all = entry && is_whole(f, entry);
	}
	return all;
}

/* Marks the objects and parts of other disks of which this disk has a whole copy, or, for a removal that is dropped, of which it has
 * none. */
static void
find_whole(struct fsck *f)
{
	meter_step(f->rep->meter, METER_COPIES, f->rep->damage->nr);
	for (struct damage *d = f->rep->damage->first; d; d = d->next, meter_add(f->rep->meter, 1)) {
		uint8_t part[CHUNK_KEY_BYTES];
		const struct rec *r;

		if (d->whole_on || strcmp(d->disk, f->rep->disk) == 0 || !key_has_two(d->key[0]))
			continue;
		r = d->is_part ? owner_part(f->vol->tree, d->key, d->len, part)
			       : tree_find(f->vol->tree, d->key, d->len);
		if (d->is_removal ? !r || r->version > d->version
				  : r && r->version >= d->version && is_whole(f, r))
			d->whole_on = f->rep->disk;
	}
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
		       d->name, atomic_load(&d->layout.odd_nr), d->geo.seg_nr);
	if (f->lost)
		report(f->rep,
		       "%s: %llu of %llu objects, and parts of uploads, are lost or not whole with %u files",
		       d->name, (unsigned long long)f->lost, (unsigned long long)f->objects,
		       f->rep->lost_files);
	if (f->mode == FSCK_PREVIEW)
		return;
	report(f->rep,
	       "%s: %llu objects, %llu bytes read, %llu damaged; %llu unacknowledged records in the log's "
	       "tail",
	       d->name, (unsigned long long)f->objects, (unsigned long long)f->bytes,
	       (unsigned long long)f->bad, (unsigned long long)f->rep->cut_records);
	if (f->bad && !f->rep->damage) {
		snprintf(text, sizeof text, "%s: %llu damaged records, in %llu objects and their parts",
			 d->name, (unsigned long long)f->bad, (unsigned long long)f->objects);
		advice_add(text, sizeof text, ADVICE_OBJECTS_DAMAGED, NULL);
		report(f->rep, "%s", text);
	}
	if (f->copied)
		report(f->rep,
		       "%s: %llu records are second copies, of keys whose first copy another disk has",
		       d->name, (unsigned long long)f->copied);
	if (f->strays)
		report(f->rep,
		       "%s: %llu records are of keys that the table of disks gives to another disk, '%s' the "
		       "first: leftovers, which are not needed",
		       d->name, (unsigned long long)f->strays, f->stray);
}

/* Goes through all of an open disk. */
static int
check_disk(const struct store_conf *conf, struct vol *vol, struct recover_report *rep, enum fsck_mode mode,
	   struct ring *r, uint64_t *ret_bad)
{
	struct fsck f = { .vol = vol, .r = r, .rep = rep, .table = conf->disks.table, .mode = mode };
	int e = 0;

	if (f.table)
		f.number = table_find(f.table, vol->disk.sb.disk_uuid);
	if (mode == FSCK_FIND) {
		find_whole(&f);
	} else {
		e = check_all(&f);
		say_sums(&f);
		if (rep->damage)
			rep->damage->sums.objects += f.objects - f.seconds;
	}
	meter_step(rep->meter, METER_WAITS, 0);
	*ret_bad = f.bad;
	rep->was_damaged |= f.lost != 0 || rep->lost_files != 0;
	/* Last: until then a start refuses, and this can be done again. */
	if (e == 0 && mode == FSCK_REPAIR && (e = disk_mend_segments(&vol->disk, r)) < 0)
		report(rep, "%s", vol->disk.why);
	return e;
}

/* Opens and recovers the disk, and claims the disk, without starting a thread. */
static int
open_disk(const struct store_conf *conf, struct recover_report *rep, struct ring *r,
	  struct quota_book *quotas, struct extent_store **ret_store, char *err, size_t err_len)
{
	struct store_member who;
	char name[DISK_NAME_BYTES];
	uint64_t start_no;
	struct vol *vol;
	int e = extent_open_disk(conf, r, rep, ret_store, &who, err, err_len);

	if (e < 0) {
		if (!strstr(err, disk_name_of(name, who.uuid, "")))
			advice_insert(err, err_len, " (disk %s)", name);
		return e;
	}
	vol = (*ret_store)->vol;
	vol->quotas = quotas;
	e = vol_recover(vol, conf->disks.index_bytes, r, rep, &start_no);
	/* What a repair drops other disks may have: of keys with two copies, and of buckets, theirs count. */
	if (e == 0 && rep->repair && rep->was_damaged)
		vol->disk.sb.is_behind = __builtin_popcountll(vol->disk.sb.table.members) > 1;
	if (e == 0)
		e = vol_begin(vol, start_no, r);
	e = engine_refuse(*ret_store, e, err, err_len);
	if (e < 0)
		extent_free(*ret_store);
	return e;
}

/* Opens the disk and goes through all of it.  1: something is dropped, or would be. Runs on a ring of its own: the kernel may let go of
 * a closed file only when the thread enters the ring of the last operation on that file again, or when this ring is freed; until then
 * the file keeps its lock, and the next run would wait for it. */
static int
run(const struct store_conf *conf, struct recover_report *rep, enum fsck_mode mode, uint64_t *ret_bad)
{
	struct extent_store *st = NULL;
	struct quota_book *quotas = NULL;
	char err[DISK_WHY_BYTES] = "";
	struct ring *r = NULL;
	int e = sync_ring(&r, err, sizeof err);

	*ret_bad = 0;
	if (e == 0 && (e = quota_book_new(1, &quotas)) < 0)
		snprintf(err, sizeof err, "no memory");
	if (e == 0)
		e = open_disk(conf, rep, r, quotas, &st, err, sizeof err);
	if (e == 0) {
		e = check_disk(conf, st->vol, rep, mode, r, ret_bad);
		disk_release(&st->vol->disk, r);
		extent_free(st);
	} else {
		report(rep, "%s", err);
		if (r && rep->damage && mode != FSCK_FIND)
			rep->damage->sums.refused++;
	}
	quota_book_free(quotas);
	ring_free(r);
	return e < 0 ? e : rep->was_damaged;
}

static void
say_nothing(void *cookie, const char *line)
{
}

int
extent_fsck(const struct store_conf *conf, enum fsck_mode mode, void (*say)(void *cookie, const char *line),
	    void *cookie)
{
	struct recover_report rep = { .say = mode == FSCK_FIND ? say_nothing : say,
				      .cookie = cookie,
				      .check_only = mode != FSCK_REPAIR,
				      .repair = mode != FSCK_LOOK,
				      .damage = conf->disks.damage,
				      .disk = conf->disks.disk[0].path };
	uint64_t bad;
	int e = run(conf, &rep, mode, &bad);

	/* A start would be refused: what would a repair drop, and how is the rest? */
	if (mode == FSCK_LOOK && (e == -ENOTRECOVERABLE || e == -EIO)) {
		struct recover_report would = rep;

		would.repair = true;

		report(&rep, "%s: a repair would do this:", rep.disk);
		run(conf, &would, mode, &bad);
	}
	return e < 0 ? e : bad ? -ENOTRECOVERABLE : e;
}
