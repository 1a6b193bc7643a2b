/* SPDX-License-Identifier: Apache-2.0 */
/* --fsck: what a start would do, without changing anything, and then every byte of every object against its
 * checksum. */
#include "extent/engine.h"

#include "extent/log/parts.h"
#include "base/advice.h"
#include "base/check.h"
#include "store/damage.h"

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
	uint64_t copied;  /* objects and uploads that are second copies here */
	uint64_t seconds; /* the objects of these */
	uint64_t strays;  /* those that another disk should have */
	char stray[200];  /* the first of them */
	enum fsck_mode mode;
	uint64_t lost;               /* objects that have bytes in files that are not there */
	uint8_t last[KEY_BYTES_MAX]; /* key of the last one */
	size_t last_len;
};

/* The object, or the upload in progress, to which a record belongs. */
struct owner {
	const uint8_t *key;
	size_t len;
	bool is_object;
	uint64_t version, size_bytes;
	uint8_t object[KEY_BYTES_MAX];
};

/* Returns the part to which a chunk belongs; NULL: the chunk belongs to an object, or the record is no chunk. */
static const struct rec *
part_of_chunk(const struct tree *t, const uint8_t *key, const struct rec *r)
{
	return key[0] == KEY_CHUNK && r->owner_len && rec_owner(r)[0] == KEY_PART
		       ? tree_find(t, rec_owner(r), r->owner_len)
		       : NULL;
}

/* Returns true if no object and no upload needs a chunk or part: a PUT that did not end has left it, and the next start frees its space. */
static bool
is_leftover(const struct tree *t, const uint8_t *key, const struct rec *r)
{
	const struct rec *part = part_of_chunk(t, key, r);

	return (key[0] == KEY_CHUNK || key[0] == KEY_PART) &&
	       (!has_owner(t, key, r) || (part && !has_owner(t, rec_owner(r), part)));
}

static void
find_owner(const struct fsck *f, const uint8_t *key, size_t len, const struct rec *r, struct owner *ret_o)
{
	const struct rec *of = part_of_chunk(f->vol->tree, key, r);

	if (of) {
		key = rec_owner(r);
		len = r->owner_len;
		r = of;
	}
	of = r;
	*ret_o = (struct owner){ .key = key, .len = len };
	if (!key_is_object(key[0]) && r->owner_len) {
		ret_o->key = rec_owner(r);
		ret_o->len = r->owner_len;
		if (key[0] == KEY_PART && object_names_part(f->vol->tree, rec_owner(r), r->owner_len, key)) {
			memcpy(ret_o->object, rec_owner(r), r->owner_len);
			ret_o->object[0] = key_object_type(key_has_two(ret_o->object[0]));
			ret_o->key = ret_o->object;
			ret_o->len -= UPLOAD_TAIL_BYTES;
		}
		of = tree_find(f->vol->tree, ret_o->key, ret_o->len);
	}
	ret_o->is_object = key_is_object(ret_o->key[0]);
	ret_o->version = of && ret_o->is_object ? of->version : r->version;
	ret_o->size_bytes = of && ret_o->is_object ? of->size_bytes : r->size_bytes;
}

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

/* Returns true if the table gives the key of a record to another disk, so that the record is needed by none: what a move left
 * behind, or a table that was lost. *ret_second: it is a second copy. */
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

/* Reports damage of an object, once for all of its parts if it is in the list of damage. Returns true if it is news. */
static bool
report_damage(struct fsck *f, const struct owner *o, enum damage_kind kind, const char *line)
{
	const struct damage what = {
		.kind = kind, .disk = f->rep->disk, .version = o->version, .size_bytes = o->size_bytes
	};
	bool is_news = o->len != f->last_len || memcmp(o->key, f->last, o->len) != 0;

	memcpy(f->last, o->key, o->len);
	f->last_len = o->len;
	if (is_news && (!o->is_object || !damage_add(f->rep->damage, &what, o->key, o->len, line)))
		report(f->rep, "%s: %s", f->vol->disk.path, line);
	return is_news;
}

/* Returns true if a record has bytes that are not there, and reports it. */
static bool
is_lost(struct fsck *f, const uint8_t *key, size_t len, const struct rec *r, const struct rec_view *v)
{
	char name[1 + KEY_BYTES_MAX * 2], line[KEY_BYTES_MAX * 2 + 200];
	struct slot_name n = slot_name(key, len);
	struct owner o;
	bool is_second;

	if (!disk_lost(&f->vol->disk, v))
		return false;
	if (is_stray(f, &n, &is_second) || is_leftover(f->vol->tree, key, r))
		return true;
	find_owner(f, key, len, r, &o);
	key_text(name, sizeof name, o.key, o.len);
	snprintf(line, sizeof line, "lost: %s'%s' (version %llu, %llu bytes)",
		 o.is_object ? "object " : "a part of ", name, (unsigned long long)o.version,
		 (unsigned long long)o.size_bytes);
	f->lost += report_damage(f, &o, DAMAGE_LOST, line);
	return true;
}

static void
report_bad(struct fsck *f, const uint8_t *key, size_t len, const struct rec *r, int error)
{
	const char *why = error == -EBADMSG ? "does not match its checksum" : strerror(-error);
	char name[200], line[400];
	struct owner o;

	f->bad++;
	find_owner(f, key, len, r, &o);
	key_text(name, sizeof name, key, len);
	if (!o.is_object || !f->rep->damage) {
		report(f->rep, "%s: %s '%s' (version %llu, %llu bytes): %s", f->vol->disk.path,
		       key[0] == KEY_CHUNK  ? "chunk"
		       : key[0] == KEY_PART ? "part"
					    : "object",
		       name, (unsigned long long)r->version, (unsigned long long)r->size_bytes, why);
		return;
	}
	key_text(name, sizeof name, o.key, o.len);
	snprintf(line, sizeof line, "object '%s' (version %llu, %llu bytes): %s%s", name,
		 (unsigned long long)o.version, (unsigned long long)o.size_bytes,
		 o.key == key ? "" : "a part of it ", why);
	report_damage(f, &o, DAMAGE_BAD, line);
}

static int
check_record(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	struct fsck *f = cookie;
	bool is_list = r->body == BODY_MANIFEST || r->body == BODY_PARTS;
	struct rec_view v;
	int e;

	rec_view_of(r, key, len, &v);
	if (key_is_object(key[0]))
		f->objects++;
	check_place(f, key, len);
	if (is_lost(f, key, len, r, &v) || f->mode == FSCK_PREVIEW)
		return 0;
	e = is_list ? check_manifest(f, r) : verify_data(&f->vol->disk, f->r, &v, v.entries);
	f->bytes += is_list ? 0 : r->size_bytes;
	if (e < 0)
		report_bad(f, key, len, r, e);
	return e == -ENOMEM ? e : 0;
}

/* ---- whole copies of what another disk has not ---- */

static bool
is_whole(struct fsck *f, const uint8_t *key, size_t len, const struct rec *r)
{
	const struct chunk_ref *ch = rec_entries(r);
	struct rec_view v;
	bool is_whole = true;

	if (r->body != BODY_MANIFEST && r->body != BODY_PARTS) {
		rec_view_of(r, key, len, &v);
		return !disk_lost(&f->vol->disk, &v) && verify_data(&f->vol->disk, f->r, &v, v.entries) == 0;
	}
	if (check_manifest(f, r) < 0)
		return false;
	for (uint32_t i = 0; i < r->entry_nr && is_whole; i++) {
		uint8_t part[CHUNK_KEY_BYTES];

		key_chunk(part, ch[i].id, ch[i].index);
		if (r->body == BODY_PARTS)
			part[0] = KEY_PART;
		rec_view_of(tree_find(f->vol->tree, part, sizeof part), part, sizeof part, &v);
		is_whole =
			!disk_lost(&f->vol->disk, &v) && verify_data(&f->vol->disk, f->r, &v, v.entries) == 0;
	}
	return is_whole;
}

/* Marks the objects of other disks of which this disk has a whole copy, or, for a removal that is dropped, of which it has none. */
static void
find_whole(struct fsck *f)
{
	for (struct damage *d = f->rep->damage->first; d; d = d->next) {
		const struct rec *r = NULL;

		if (d->whole_on || strcmp(d->disk, f->rep->disk) == 0 || !key_has_two(d->key[0]))
			continue;
		r = tree_find(f->vol->tree, d->key, d->len);
		if (d->is_removal ? !r || r->version > d->version
				  : r && r->version >= d->version && is_whole(f, d->key, d->len, r))
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
	if (f->bad && !f->rep->damage) {
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
run_on(const struct store_conf *conf, struct recover_report *rep, enum fsck_mode mode, struct ring *r,
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
		if (rep->damage && mode != FSCK_FIND)
			rep->damage->sums.refused++;
		return e;
	}
	f = calloc(1, sizeof *f);
	if (f) {
		*f = (struct fsck){ .vol = st->vol, .r = r, .rep = rep, .table = table, .mode = mode };
		if (table)
			f->number = table_find(table, st->vol->disk.sb.disk_uuid);
		if (mode == FSCK_FIND) {
			find_whole(f);
		} else {
			e = each_record(f->vol, 0, check_record, f);
			say_sums(f);
		}
		if (rep->damage && mode != FSCK_FIND)
			rep->damage->sums.objects += f->objects - f->seconds;
		*ret_bad = f->bad;
		rep->was_damaged |= f->lost != 0 || rep->lost_files != 0;
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

/* Runs on a ring of its own. The kernel may let go of a closed file only when the thread enters the ring of the last operation
 * on that file again, or when this ring is freed; until then the file keeps its lock, and the next run would wait for it. */
static int
run(const struct store_conf *conf, struct recover_report *rep, enum fsck_mode mode, uint64_t *ret_bad)
{
	struct ring *r;
	int e = ring_new(&(struct ring_params){ .entries = 64 }, &r);

	*ret_bad = 0;
	if (e < 0) {
		report(rep, "cannot make a ring: %s", strerror(-e));
		return e;
	}
	e = run_on(conf, rep, mode, r, ret_bad);
	ring_free(r);
	return e;
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

		report(&rep, "%s: a repair would do this:", conf->disks.disk[0].path);
		run(conf, &would, mode, &bad);
	}
	return e < 0 ? e : bad ? -ENOTRECOVERABLE : e;
}
