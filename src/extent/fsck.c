/* SPDX-License-Identifier: Apache-2.0 */
/* --fsck: what a start would do, without changing anything, and then every byte of every object against its
 * checksum. */
#include "extent/engine.h"

#include "base/check.h"

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
	uint64_t copied; /* objects and uploads that are second copies here */
	uint64_t strays; /* those that another disk should have */
	char stray[200]; /* the first of them */
	int error;       /* the disk's */
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

static int
check_record(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	struct fsck *f = cookie;
	struct rec_view v;
	char name[200];
	int e;

	rec_view_of(r, key, len, &v);
	e = r->body == BODY_MANIFEST || r->body == BODY_PARTS
		    ? check_manifest(f, r)
		    : verify_data(&f->vol->disk, f->r, &v, v.entries);
	if (key_is_object(key[0]))
		f->objects++;
	check_place(f, key, len);
	f->bytes += r->body == BODY_MANIFEST || r->body == BODY_PARTS ? 0 : r->size_bytes;
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

int
extent_fsck(const struct store_conf *conf, bool repair, void (*say)(void *cookie, const char *line),
	    void *cookie)
{
	struct recover_report rep = { .say = say, .cookie = cookie, .check_only = !repair, .repair = repair };
	struct extent_store *st = NULL;
	char err[512] = "";
	uint64_t bad = 0;
	struct ring *r;
	int e = ring_new(&(struct ring_params){ .entries = 64 }, &r);

	if (e < 0) {
		report(&rep, "cannot make a ring: %s", strerror(-e));
		return e;
	}
	e = extent_open_with(conf, r, &rep, &st, err, sizeof err);
	if (e < 0)
		report(&rep, "%s", err);
	if (e == 0) {
		const struct disk_table *table = conf->disks.table;
		struct fsck f = { .vol = st->vol, .r = r, .rep = &rep, .table = table };

		if (table)
			f.number = table_find(table, st->vol->disk.sb.disk_uuid);

		if (atomic_load(&f.vol->disk.layout.odd_nr))
			report(&rep,
			       "%s: %u of %u segments have holes, unwritten or shared blocks, as a copy may "
			       "leave "
			       "them: the daemon will rewrite them",
			       f.vol->disk.path, atomic_load(&f.vol->disk.layout.odd_nr),
			       f.vol->disk.geo.seg_nr);
		e = each_record(f.vol, 0, check_record, &f);
		report(&rep,
		       "%s: %llu objects, %llu bytes read, %llu damaged; %llu unacknowledged records in the "
		       "log's tail",
		       f.vol->disk.path, (unsigned long long)f.objects, (unsigned long long)f.bytes,
		       (unsigned long long)f.bad, (unsigned long long)rep.cut_records);
		if (f.copied)
			report(&rep,
			       "%s: %llu records are second copies, of keys whose first copy another disk "
			       "has",
			       f.vol->disk.path, (unsigned long long)f.copied);
		if (f.strays)
			report(&rep,
			       "%s: %llu records are of keys that the table of disks gives to another disk, "
			       "'%s' the "
			       "first: leftovers, which nobody needs",
			       f.vol->disk.path, (unsigned long long)f.strays, f.stray);
		bad = f.bad;
		disk_release(&st->vol->disk, r);
	}
	extent_free(st);
	ring_free(r);
	if (e < 0)
		return e;
	return bad ? -ENOTRECOVERABLE : rep.was_damaged ? 1 : 0;
}
