/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store in memory as an engine of a set: disks that stay after its end, the steps of a start, the placement map, and the
 * owners of keys.  See mem_disks.h; sends from engine to engine are in mem_store_send.c.
 */
#include "tests/fake/mem_disks.h"
#include "tests/fake/mem_store_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DISKS_MAX 16

/* The content of a disk. */
struct content {
	struct version **index;
	size_t nr;
	struct mem_upload *uploads;
	uint64_t number;
	uint64_t start_no, size_bytes;
	bool is_made, is_behind;
	uint8_t store_uuid[UUID_BYTES], uuid[UUID_BYTES];
	struct disk_table table;
};

struct mem_disk {
	char path[64];
	struct content c; /* while the disk is open without index, nr, uploads and number */
	struct mem_store *st;
	bool is_absent;
	unsigned fails_after; /* after the next open */
};

struct mem_member {
	struct mem_disk *disk;
	struct store_watch *watch;
	bool has_slots, is_watched, has_failed, is_unreadable, refuses, is_told, serves;
	enum mem_hold holds;
	unsigned fails_after; /* number of further changes; 0: it does not fail */
	struct store_slots own, frozen, watched;
	void (*changed)(void *cookie, const struct store_key *k);
	void *cookie;
};

struct mem_image {
	bool is_all; /* true: of all disks that existed */
	int nr;
	struct {
		char path[64];
		struct content c;
	} disk[DISKS_MAX];
};

static struct mem_disk disks[DISKS_MAX];
static uint64_t seed, changes, cut_after;
static struct mem_image *cut;

/* ---- the disks ---- */

static struct mem_disk *
find_disk(const char *path)
{
	for (int i = 0; i < DISKS_MAX; i++) {
		if (strcmp(disks[i].path, path) == 0)
			return &disks[i];
	}
	return NULL;
}

static struct mem_disk *
new_disk(const char *path)
{
	struct mem_disk *d = find_disk(path);

	if (d)
		return d;
	d = find_disk("");
	check(d && strlen(path) < sizeof d->path);
	strcpy(d->path, path);
	return d;
}

static struct mem_disk *
get_disk(const char *path)
{
	struct mem_disk *d = find_disk(path);

	check(d && d->c.is_made);
	return d;
}

static struct mem_member *
member_of(const char *path)
{
	struct mem_disk *d = get_disk(path);

	check(d->st);
	return d->st->member;
}

static void
free_records(struct content *c)
{
	for (size_t i = 0; i < c->nr; i++) {
		c->index[i]->is_counted = false;
		mem_version_put(NULL, c->index[i]);
	}
	free(c->index);
	for (struct mem_upload *u = c->uploads, *next; u; u = next) {
		next = u->next;
		for (unsigned i = 0; i <= u->part_top; i++) {
			if (u->part[i])
				u->part[i]->is_counted = false;
			mem_version_put(NULL, u->part[i]);
		}
		free(u->attrs);
		free(u);
	}
	c->index = NULL;
	c->uploads = NULL;
	c->nr = 0;
}

static struct mem_upload *
upload_copy(const struct mem_upload *u)
{
	struct mem_upload *copy = mem_copy_of(u, sizeof *u);

	copy->next = NULL;
	copy->attrs = mem_copy_of(u->attrs, u->attrs_len);
	for (unsigned i = 0; i <= u->part_top; i++)
		copy->part[i] = u->part[i] ? mem_version_copy(u->part[i]) : NULL;
	return copy;
}

static void
copy_records(struct content *to, struct version *const *index, size_t nr, const struct mem_upload *uploads)
{
	struct mem_upload **end = &to->uploads;

	to->uploads = NULL;
	to->nr = nr;
	to->index = calloc(nr + 1, sizeof(struct version *));
	check(to->index);
	for (size_t i = 0; i < nr; i++) {
		to->index[i] = mem_version_copy(index[i]);
		to->index[i]->gate = 0;
	}
	for (const struct mem_upload *u = uploads; u; u = u->next) {
		*end = upload_copy(u);
		end = &(*end)->next;
	}
}

/* Gives an engine the records of its disk. */
static void
load(struct mem_store *st, struct content *c)
{
	st->index = c->index;
	st->nr = st->cap = c->nr;
	st->uploads = c->uploads;
	st->number = c->number;
	for (size_t i = 0; i < st->nr; i++) {
		st->index[i]->is_counted = true;
		st->used_bytes += st->index[i]->size_bytes;
	}
	for (struct mem_upload *u = st->uploads; u; u = u->next) {
		for (unsigned i = 0; i <= u->part_top; i++) {
			if (!u->part[i])
				continue;
			u->part[i]->is_counted = true;
			st->used_bytes += u->part[i]->size_bytes;
		}
	}
	c->index = NULL;
	c->uploads = NULL;
	c->nr = 0;
}

void
mem_member_keep(struct mem_store *st)
{
	struct mem_disk *d = st->member->disk;

	/* Callers have ended all of them. */
	check(!st->open_nr && !st->put_nr);
	for (struct job *j = st->jobs, *next; j; j = next) {
		/* A table without a waiting caller. */
		check(!j->port);
		next = j->next;
		free(j->cookie);
		free(j);
	}
	st->jobs = NULL;
	d->c.index = st->index;
	d->c.nr = st->nr;
	d->c.uploads = st->uploads;
	d->c.number = st->number;
	for (size_t i = 0; i < d->c.nr; i++) {
		struct version *v = d->c.index[i], *older = v->older;

		/* No version is open. */
		v->older = NULL;
		mem_version_put(st, older);
		v->gate = 0;
	}
	st->index = NULL;
	st->nr = 0;
	st->uploads = NULL;
	/* A start may open the disk again. */
	d->fails_after = st->member->serves || st->member->has_failed ? 0 : st->member->fails_after;
	d->st = NULL;
	free(st->member);
	st->member = NULL;
}

void
mem_disks_begin(uint64_t new_seed)
{
	for (int i = 0; i < DISKS_MAX; i++) {
		check(!disks[i].st);
		free_records(&disks[i].c);
	}
	memset(disks, 0, sizeof disks);
	mem_image_free(cut);
	cut = NULL;
	changes = cut_after = 0;
	seed = new_seed + !new_seed;
}

static uint64_t
rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

bool
mem_disks_step(void)
{
	struct store *can[DISKS_MAX];
	unsigned nr = 0;

	for (int i = 0; i < DISKS_MAX; i++) {
		struct mem_store *st = disks[i].st;

		if (st && st->jobs && !st->hold)
			can[nr++] = &st->base;
	}
	for (; nr; nr--) {
		unsigned i = (unsigned)(rnd() % nr), left = mem_store_step(can[i], 0);

		if (mem_store_step(can[i], 1) < left)
			return true;
		can[i] = can[nr - 1];
	}
	return false;
}

/* ---- images ---- */

struct mem_image *
mem_disks_copy(const char *path)
{
	struct mem_image *image = calloc(1, sizeof *image);

	check(image);
	image->is_all = !path;
	for (int i = 0; i < DISKS_MAX; i++) {
		const struct mem_disk *d = &disks[i];
		struct content *to = &image->disk[image->nr].c;

		if (!d->c.is_made || (path && strcmp(path, d->path) != 0))
			continue;
		strcpy(image->disk[image->nr++].path, d->path);
		*to = d->c;
		if (d->st) {
			to->number = d->st->number;
			copy_records(to, d->st->index, d->st->nr, d->st->uploads);
		} else {
			copy_records(to, d->c.index, d->c.nr, d->c.uploads);
		}
	}
	return image;
}

void
mem_disks_put_back(const struct mem_image *image)
{
	for (int i = 0; image->is_all && i < DISKS_MAX; i++) {
		check(!disks[i].st);
		free_records(&disks[i].c);
		disks[i].c.is_made = false;
	}
	for (int i = 0; i < image->nr; i++) {
		const struct content *from = &image->disk[i].c;
		struct mem_disk *d = find_disk(image->disk[i].path);

		check(d && !d->st);
		free_records(&d->c);
		d->c = *from;
		copy_records(&d->c, from->index, from->nr, from->uploads);
	}
}

void
mem_image_free(struct mem_image *image)
{
	for (int i = 0; image && i < image->nr; i++)
		free_records(&image->disk[i].c);
	free(image);
}

uint64_t
mem_disks_changes(void)
{
	return changes;
}

void
mem_disks_cut_after(uint64_t nr)
{
	/* Clients may know the effects of the cut, so a second one would be later. */
	check(!cut);
	cut = nr ? NULL : mem_disks_copy(NULL);
	cut_after = nr ? changes + nr : 0;
}

bool
mem_disks_is_cut(void)
{
	return cut != NULL;
}

struct mem_image *
mem_disks_cut(void)
{
	struct mem_image *image = cut;

	cut = NULL;
	cut_after = 0;
	return image;
}

/* Notes a change on a disk. */
static void
note_change(void)
{
	if (++changes == cut_after)
		cut = mem_disks_copy(NULL);
}

/* ---- what a disk suffers ---- */

void
mem_disk_absent(const char *path, bool absent)
{
	get_disk(path)->is_absent = absent;
}

void
mem_disk_fail(const char *path, unsigned after)
{
	struct mem_disk *d = new_disk(path);
	struct mem_member *m;

	if (!d->st) {
		check(after);
		d->fails_after = after;
		return;
	}
	m = member_of(path);
	m->fails_after = after;
	if (after)
		return;
	m->has_failed = true;
	mem_member_tell(m->disk->st);
}

void
mem_disk_unreadable(const char *path, bool unreadable)
{
	member_of(path)->is_unreadable = unreadable;
}

void
mem_disk_refuse(const char *path, bool refuse)
{
	member_of(path)->refuses = refuse;
}

void
mem_disk_hang(const char *path, bool hang)
{
	mem_store_hold(&get_disk(path)->st->base, hang);
}

void
mem_disk_hold(const char *path, enum mem_hold what)
{
	member_of(path)->holds = what;
}

bool
mem_disk_holds_any(const char *path)
{
	const struct mem_store *st = get_disk(path)->st;

	for (const struct job *j = st->jobs; j; j = j->next) {
		if (mem_member_holds(st, j))
			return true;
	}
	return false;
}

bool
mem_disk_is_frozen(const char *path, const char *bucket, const char *key)
{
	const struct mem_member *m = member_of(path);

	return mem_is_of(m->disk->st, &m->frozen, bucket, strlen(bucket), key, strlen(key));
}

void
mem_disk_put_map(const char *path, const struct disk_table *t)
{
	struct mem_disk *d = get_disk(path);

	check(!d->st);
	d->c.table = *t;
}

void
mem_disk_leave_free(const char *path, uint64_t bytes)
{
	struct mem_disk *d = get_disk(path);

	check(d->st);
	d->c.size_bytes = d->st->size_bytes = d->st->used_bytes + bytes;
}

static int
spoil(struct version *v)
{
	if (!v || !v->size_bytes)
		return -ENOENT;
	v->data[0] ^= 1;
	v->bad_granule = 0;
	return 0;
}

int
mem_disk_spoil(const char *path, const char *bucket, const char *key)
{
	return spoil(mem_lookup(get_disk(path)->st, bucket, strlen(bucket), key, strlen(key)));
}

int
mem_disk_spoil_part(const char *path, const char *bucket, const char *key, uint32_t number)
{
	const struct mem_name n = { bucket, strlen(bucket), key, strlen(key) };

	for (struct mem_upload *u = get_disk(path)->st->uploads; u; u = u->next) {
		if (mem_compare(MEM_NAME(u), n) == 0)
			return spoil(u->part[number]);
	}
	return -ENOENT;
}

/* ---- what a disk has ---- */

static struct version *const *
index_of(const struct mem_disk *d, size_t *ret_nr)
{
	*ret_nr = d->st ? d->st->nr : d->c.nr;
	return d->st ? d->st->index : d->c.index;
}

bool
mem_disk_is_made(const char *path)
{
	struct mem_disk *d = find_disk(path);

	return d && d->c.is_made;
}

bool
mem_disk_is_absent(const char *path)
{
	return get_disk(path)->is_absent;
}

bool
mem_disk_is_open(const char *path)
{
	return get_disk(path)->st != NULL;
}

bool
mem_disk_has_failed(const char *path)
{
	return member_of(path)->has_failed;
}

const uint8_t *
mem_disk_uuid(const char *path)
{
	return get_disk(path)->c.uuid;
}

const struct disk_table *
mem_disk_table(const char *path)
{
	return &get_disk(path)->c.table;
}

static const struct version *
find_version(const struct mem_disk *d, const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	const struct mem_name n = { bucket, bucket_len, key, key_len };
	size_t nr;
	struct version *const *index = index_of(d, &nr);

	for (size_t i = 0; i < nr; i++) {
		if (mem_compare(MEM_NAME(index[i]), n) == 0)
			return index[i];
	}
	return NULL;
}

bool
mem_disk_has(const char *path, const char *bucket, const char *key, uint64_t *ret_version)
{
	const struct version *v = find_version(get_disk(path), bucket, strlen(bucket), key, strlen(key));

	if (v && ret_version)
		*ret_version = v->number;
	return v != NULL;
}

unsigned
mem_disk_records(const char *path)
{
	const struct mem_disk *d = get_disk(path);
	size_t nr;
	struct version *const *index = index_of(d, &nr);
	unsigned records = 0;

	for (size_t i = 0; i < nr; i++)
		records += index[i]->key_len > 0;
	for (const struct mem_upload *u = d->st ? d->st->uploads : d->c.uploads; u; u = u->next)
		records++;
	return records;
}

bool
mem_disks_same(const char *a, const char *b)
{
	const struct mem_disk *other = get_disk(b);
	size_t nr;
	struct version *const *index = index_of(get_disk(a), &nr);

	for (size_t i = 0; i < nr; i++) {
		const struct version *v = index[i], *w, *bucket;

		bucket = find_version(get_disk(a), v->bucket, v->bucket_len, "", 0);
		if (!v->key_len || !bucket || bucket->copies < 2)
			continue;
		w = find_version(other, v->bucket, v->bucket_len, v->key, v->key_len);
		if (!w || (w->number == v->number && w->data_version == v->data_version &&
			   w->size_bytes == v->size_bytes && w->attrs_len == v->attrs_len &&
			   memcmp(w->attrs, v->attrs, v->attrs_len) == 0 &&
			   memcmp(w->data, v->data, v->size_bytes) == 0))
			continue;
		printf("%.*s/%.*s: version %llu on %s, %llu on %s\n", v->bucket_len, v->bucket, v->key_len,
		       v->key, (unsigned long long)v->number, a, (unsigned long long)w->number, b);
		return false;
	}
	return true;
}

/* ---- whose keys are whose ---- */

/* Returns the place of a key, by the number of copies in the engine's record of the bucket. */
static unsigned
place_of(const struct mem_store *st, const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	const struct version *b = mem_lookup(st, bucket, bucket_len, "", 0);

	return table_place(table_slot(bucket, bucket_len, key, key_len), b && b->copies > 1);
}

bool
mem_is_of(const struct mem_store *st, const struct store_slots *slots, const char *bucket, size_t bucket_len,
	  const char *key, size_t key_len)
{
	return slots_has(slots, place_of(st, bucket, bucket_len, key, key_len));
}

bool
mem_owns(const struct mem_store *st, const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	return !st->member || !st->member->has_slots ||
	       mem_is_of(st, &st->member->own, bucket, bucket_len, key, key_len);
}

bool
mem_is_shown(const struct mem_store *st, const struct store_list *ls, const char *bucket, size_t bucket_len,
	     const char *key, size_t key_len)
{
	return ls->slots && st->member ? mem_is_of(st, ls->slots, bucket, bucket_len, key, key_len)
				       : mem_owns(st, bucket, bucket_len, key, key_len);
}

/* ---- jobs ---- */

bool
mem_member_failed(const struct mem_store *st)
{
	return st->member->has_failed;
}

bool
mem_member_unreadable(const struct mem_store *st)
{
	return st->member->is_unreadable;
}

bool
mem_member_has_slots(const struct mem_store *st)
{
	return st->member->has_slots;
}

bool
mem_member_owns(const struct mem_store *st, const struct store_key *k)
{
	return !st->member->has_slots || slots_has(&st->member->own, store_place(k));
}

/* Judges a change of a key by its owner. Returns 0, -EXDEV, -EPERM or -EAGAIN. */
static int
judge_key(const struct mem_store *st, const struct job *j)
{
	const struct mem_member *m = st->member;
	const struct version *k = j->of;
	unsigned place = table_place(table_slot(k->bucket, k->bucket_len, k->key, k->key_len), j->has_two);
	bool own = slots_has(&m->own, place);

	if (j->is_sent)
		return own ? -EPERM : 0;
	if (j->is_repair && !own)
		return 0;
	if (!own)
		return -EXDEV;
	return slots_has(&m->frozen, place) ? -EAGAIN : 0;
}

static bool
is_change(const struct job *j)
{
	return j->of || j->kind == MEM_COMMIT || j->kind == MEM_DELETE || j->kind == MEM_WRITE ||
	       (j->kind == MEM_FAULT_NR && !j->port);
}

bool
mem_member_holds(const struct mem_store *st, const struct job *j)
{
	enum mem_hold what = st->member->holds;

	return what == HOLD_CHANGES   ? is_change(j)
	       : what == HOLD_FOREIGN ? j->is_sent
				      : what == HOLD_MAPS && !j->port;
}

bool
mem_member_judge(struct mem_store *st, struct job *j)
{
	struct mem_member *m = st->member;
	int e = 0;

	if (!m->has_failed && is_change(j) && m->fails_after && --m->fails_after == 0) {
		m->has_failed = true;
		j->result = -ECANCELED;
		/* The change may be there at the next start. */
		return false;
	}
	if (m->has_failed && (is_change(j) || j->kind == MEM_FAULT_NR) && !j->runs_failed)
		e = -EROFS;
	/* Bytes of small objects are in their record. */
	else if (j->kind == MEM_READ && m->is_unreadable && j->v->size_bytes > STORE_INLINE_MAX)
		e = -EIO;
	else if (j->is_sent && m->refuses)
		e = -ENOMEM;
	else if (j->of && m->has_slots)
		e = judge_key(st, j);
	j->result = e;
	return e == 0;
}

void
mem_member_done(struct mem_store *st, struct job *j)
{
	struct mem_member *m = st->member;
	const struct version *v = j->of;

	if (j->result < 0 || !is_change(j) || j->kind == MEM_WRITE)
		return;
	note_change();
	if (v && m->is_watched && mem_is_of(st, &m->watched, v->bucket, v->bucket_len, v->key, v->key_len)) {
		struct store_key k = { v->bucket, v->key, v->bucket_len, v->key_len, j->has_two ? 2 : 1 };

		m->changed(m->cookie, &k);
	}
}

void
mem_member_tell(struct mem_store *st)
{
	struct mem_member *m = st->member;
	bool tells = m->has_failed && !m->is_told;

	m->is_told |= tells;
	if (tells && m->watch)
		m->watch->failed(m->watch);
}

/* ---- use by place ---- */

/* Calls fn() for each object and upload of these places, with its usage. */
static void
each_record(struct mem_store *st, const struct store_slots *slots,
	    void (*fn)(void *cookie, const char *bucket, size_t len, unsigned place,
		       const struct store_use *use),
	    void *cookie)
{
	for (size_t i = 0; i < st->nr; i++) {
		const struct version *v = st->index[i];
		unsigned place;

		/* The bucket is looked up only for a key whose slot matters: the set asks for each slot by itself. */
		if (!v->key_len || (!slots_has(slots, table_place(v->slot, false)) &&
				    !slots_has(slots, table_place(v->slot, true))))
			continue;
		place = place_of(st, v->bucket, v->bucket_len, v->key, v->key_len);
		if (slots_has(slots, place))
			fn(cookie, v->bucket, v->bucket_len, place,
			   &(struct store_use){ .objects = 1, .bytes = v->size_bytes });
	}
	for (const struct mem_upload *u = st->uploads; u; u = u->next) {
		unsigned place = place_of(st, u->bucket, u->bucket_len, u->key, u->key_len);

		if (slots_has(slots, place))
			fn(cookie, u->bucket, u->bucket_len, place,
			   &(struct store_use){ .uploads = 1, .bytes = mem_upload_bytes(u) });
	}
}

static void
add_use(void *cookie, const char *bucket, size_t len, unsigned place, const struct store_use *use)
{
	struct store_use *to = cookie;

	to->objects += use->objects;
	to->bytes += use->bytes;
	to->uploads += use->uploads;
}

static void
others_of(const struct mem_member *m, bool has_two, struct store_slots *ret_slots)
{
	memset(ret_slots, 0, sizeof *ret_slots);
	for (unsigned i = 0; i < STORE_SLOT_NR && m->has_slots; i++) {
		unsigned place = table_place(i, has_two);

		if (!slots_has(&m->own, place))
			slots_add(ret_slots, place);
	}
}

void
mem_member_info(struct mem_store *st, struct store_unit_info *info)
{
	struct store_use left = { 0 };
	struct store_slots others;

	others_of(st->member, false, &others);
	each_record(st, &others, add_use, &left);
	store_unit_add(info, "leftover_objects", left.objects, true);
	store_unit_add(info, "leftover_bytes", left.bytes, true);
	store_unit_add(info, "leftover_uploads", left.uploads, true);
	info->state = st->member->has_failed ? UNIT_FAILED : UNIT_OK;
	if (st->member->has_failed)
		snprintf(info->reason, sizeof info->reason, "the test failed it");
}

static void
member_two_use(const struct store *store, unsigned slot, struct store_use *ret_use)
{
	struct mem_store *st = mem_store(store);
	struct store_slots one = { .bit = { 0 } };

	*ret_use = (struct store_use){ 0 };
	slots_add(&one, table_place(slot, true));
	pthread_mutex_lock(&st->lock);
	each_record(st, &one, add_use, ret_use);
	pthread_mutex_unlock(&st->lock);
	ret_use->uploads = 0;
}

/* ---- commands about places ---- */

static void
set_bits(struct store_slots *of, const struct store_slots *slots, bool on)
{
	for (size_t i = 0; i < STORE_SLOT_WORDS; i++)
		of->bit[i] = on ? of->bit[i] | slots->bit[i] : of->bit[i] & ~slots->bit[i];
}

static struct store_slots_op *
slots_op(const struct job *j)
{
	return container_of(j->op, struct store_slots_op, op);
}

static void
watch_work(struct mem_store *st, struct job *j)
{
	struct mem_member *m = st->member;
	const struct store_slots_op *o = slots_op(j);

	m->is_watched = o->slots != NULL;
	if (o->slots)
		m->watched = *o->slots;
	m->changed = o->changed;
	m->cookie = o->cookie;
}

static void
freeze_work(struct mem_store *st, struct job *j)
{
	set_bits(&st->member->frozen, slots_op(j)->slots, true);
}

static void
thaw_work(struct mem_store *st, struct job *j)
{
	set_bits(&st->member->frozen, slots_op(j)->slots, false);
}

static void
add_moved(void *cookie, const char *bucket, size_t len, unsigned place, const struct store_use *use)
{
	struct store_slots_op *o = cookie;
	struct store_moved *m = o->moved;

	while (m && (m->place != place || m->len != len || memcmp(m->name, bucket, len) != 0))
		m = m->next;
	if (!m) {
		m = calloc(1, sizeof *m);
		check(m);
		m->place = place;
		m->len = (uint8_t)len;
		memcpy(m->name, bucket, len);
		m->next = o->moved;
		o->moved = m;
	}
	add_use(&m->use, bucket, len, place, use);
}

static void
take_work(struct mem_store *st, struct job *j)
{
	struct store_slots_op *o = slots_op(j);
	struct store_slots come = *o->slots;

	/* The ledger already has the usage of the own places. */
	set_bits(&come, &st->member->own, false);
	each_record(st, &come, add_moved, o);
	set_bits(&st->member->own, o->slots, true);
	o->counter = st->counter;
}

static void
leave_work(struct mem_store *st, struct job *j)
{
	struct store_slots_op *o = slots_op(j);

	set_bits(&st->member->own, o->slots, false);
	set_bits(&st->member->frozen, o->slots, false);
	quota_lock(st->quotas);
	while (o->moved) {
		struct store_moved *m = o->moved;

		quota_move(st->quotas, st->counter, o->counter, m->name, m->len, &m->use,
			   m->place >= STORE_SLOT_NR);
		o->moved = m->next;
		free(m);
	}
	quota_unlock(st->quotas);
}

static int
member_slots(struct store_port *p, enum store_slots_act act, struct store_slots_op *o)
{
	static void (*const work[])(struct mem_store *, struct job *) = {
		[SLOTS_WATCH] = watch_work, [SLOTS_FREEZE] = freeze_work, [SLOTS_THAW] = thaw_work,
		[SLOTS_TAKE] = take_work,   [SLOTS_LEAVE] = leave_work,
	};
	struct mem_member *m = mem_port(p)->st->member;
	struct job *j;

	if (!m->has_slots)
		return -EOPNOTSUPP;
	if (act == SLOTS_DISOWN) {
		set_bits(&m->own, o->slots, false);
		return 1;
	}
	j = mem_job_new(mem_port(p), &o->op, MEM_FAULT_NR, work[act]);
	j->runs_failed = act == SLOTS_TAKE || act == SLOTS_LEAVE;
	return mem_job_start(j);
}

/* ---- a start in steps ---- */

static int
refuse(char *err, size_t err_len, int e, const char *path, const char *why)
{
	snprintf(err, err_len, "%s: %s", path, why);
	return e;
}

static int
member_open(const struct store_conf *conf, struct store **ret_store, struct store_member *ret_member,
	    char *err, size_t err_len)
{
	const char *path = conf->disks.disk->path;
	struct mem_disk *d = find_disk(path);
	struct mem_store *st;

	memset(ret_member, 0, sizeof *ret_member);
	if (!d || !d->c.is_made)
		return refuse(err, err_len, -ENOENT, path, "there is no store");
	if (d->is_absent)
		return refuse(err, err_len, -ENODEV, path, "the test took it away");
	if (d->st)
		return refuse(err, err_len, -EBUSY, path, "it is in use");
	st = mem_store_make(conf, &mem_engine_ops, false);
	st->member = calloc(1, sizeof *st->member);
	check(st->member);
	st->member->disk = d;
	st->member->watch = conf->disks.watch;
	st->member->fails_after = d->fails_after;
	d->fails_after = 0;
	st->tuning.seed = rnd();
	st->size_bytes = d->c.size_bytes;
	d->st = st;
	load(st, &d->c);
	memcpy(ret_member->store_uuid, d->c.store_uuid, UUID_BYTES);
	memcpy(ret_member->uuid, d->c.uuid, UUID_BYTES);
	ret_member->size_bytes = d->c.size_bytes;
	ret_member->start_no = d->c.start_no;
	ret_member->is_behind = d->c.is_behind;
	ret_member->table = &d->c.table;
	ret_member->is_made = true;
	*ret_store = &st->base;
	return 0;
}

static void
count_own(void *cookie, const char *bucket, size_t len, unsigned place, const struct store_use *use)
{
	struct mem_store *st = cookie;
	struct quota_row *row = quota_find(st->quotas, st->counter, bucket, len);
	const struct quota_change one = { (int64_t)use->objects, (int64_t)use->bytes, (int64_t)use->uploads };
	const struct quota_change all = quota_of_copies(one, place >= STORE_SLOT_NR);

	check(row);
	quota_count(st->quotas, st->counter, row, &all);
}

static int
member_recover(struct store *store, const struct store_slots *slots, uint64_t index_bytes,
	       struct quota_book *quotas, int counter, uint64_t *ret_start_no, char *err, size_t err_len)
{
	struct mem_store *st = mem_store(store);

	st->base.quotas = st->quotas = quotas;
	st->counter = counter;
	for (size_t i = 0; i < st->nr; i++) {
		const struct version *b = st->index[i];

		if (b->key_len)
			continue;
		mem_quota_bucket(st, b, true);
		if (!b->has_max || counter != 0)
			continue;
		quota_lock(quotas);
		quota_bound(quotas, quota_find(quotas, counter, b->bucket, b->bucket_len), &b->max);
		quota_unlock(quotas);
	}
	st->member->has_slots = slots != NULL;
	memset(&st->member->own, 0xff, sizeof st->member->own);
	if (slots)
		st->member->own = *slots;
	quota_lock(quotas);
	each_record(st, &st->member->own, count_own, st);
	quota_unlock(quotas);
	*ret_start_no = st->member->disk->c.start_no + 1;
	return 0;
}

/* Writes the superblock in a start. */
static int
write_super(struct mem_store *st, char *err, size_t err_len)
{
	struct mem_member *m = st->member;

	if (!m->has_failed && m->fails_after && --m->fails_after == 0)
		m->has_failed = true;
	return m->has_failed ? refuse(err, err_len, -EIO, m->disk->path, "the test failed it") : 0;
}

static int
member_begin(struct store *store, uint64_t start_no, bool is_behind, char *err, size_t err_len)
{
	struct mem_store *st = mem_store(store);
	int e = write_super(st, err, err_len);

	if (e < 0)
		return e;
	st->member->disk->c.start_no = start_no;
	st->member->disk->c.is_behind = is_behind;
	/* No key gets a version of this start twice. */
	if (st->number < start_no << 32)
		st->number = start_no << 32;
	note_change();
	return 0;
}

static int
member_set_table(struct store *store, const struct disk_table *t, char *err, size_t err_len)
{
	struct mem_store *st = mem_store(store);
	int e = write_super(st, err, err_len);

	if (e < 0)
		return e;
	st->member->disk->c.table = *t;
	st->member->disk->c.is_behind = false;
	note_change();
	return 0;
}

static int
member_serve(struct store *store, char *err, size_t err_len)
{
	struct mem_member *m = mem_store(store)->member;

	m->serves = true;
	return m->has_failed ? refuse(err, err_len, -EIO, m->disk->path, "the test failed it") : 0;
}

struct table_write {
	struct disk_table t;
	struct store_table_write *w;
};

static void
table_work(struct mem_store *st, struct job *j)
{
	const struct table_write *tw = j->cookie;

	st->member->disk->c.table = tw->t;
	st->member->disk->c.is_behind = false;
}

static void
table_over(struct job *j)
{
	struct table_write *tw = j->cookie;

	tw->w->done(tw->w, j->result < 0 ? -EIO : 0);
	free(tw);
}

static void
member_put_table(struct store *store, const struct disk_table *t, struct store_table_write *w)
{
	struct mem_store *st = mem_store(store);
	struct job *j = calloc(1, sizeof *j);
	struct table_write *tw = malloc(sizeof *tw);

	check(j && tw);
	tw->t = *t;
	tw->w = w;
	j->kind = MEM_FAULT_NR;
	j->work = table_work;
	j->over = table_over;
	j->cookie = tw;
	pthread_mutex_lock(&st->lock);
	j->next = st->jobs;
	st->jobs = j;
	pthread_mutex_unlock(&st->lock);
}

static bool
member_has_failed(const struct store *store)
{
	return mem_store(store)->member->has_failed;
}

/* ---- a store is made ---- */

/* A placement map of one disk. */
static void
table_alone(struct disk_table *t, const uint8_t uuid[UUID_BYTES])
{
	memset(t, 0, sizeof *t);
	t->version = (uint64_t)1 << TABLE_CHANGE_BITS | 1;
	t->members = t->in = 1;
	memcpy(t->uuid[0], uuid, UUID_BYTES);
	memset(t->second, TABLE_NO_DISK, sizeof t->second);
}

int
mem_engine_format(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	const struct store_disk_conf *dc = conf->disks.disk;
	const struct store_birth *birth = conf->disks.birth;
	struct mem_disk *d = find_disk(dc->path);
	uint64_t size_bytes = dc->size_bytes ? dc->size_bytes : d ? d->c.size_bytes : (uint64_t)1 << 30;

	if (d && d->c.is_made && !force)
		return refuse(err, err_len, -EALREADY, dc->path, "there is a store");
	if (d && d->st)
		return refuse(err, err_len, -EBUSY, dc->path, "it is in use");
	if (birth && birth->is_look) {
		conf->disks.birth->size_bytes = size_bytes;
		return 0;
	}
	d = new_disk(dc->path);
	free_records(&d->c);
	d->c = (struct content){ .is_made = true, .size_bytes = size_bytes };
	/* The start of the map. */
	d->c.start_no = birth ? birth->table.version >> TABLE_CHANGE_BITS : 1;
	for (int i = 0; i < UUID_BYTES; i++)
		d->c.uuid[i] = d->c.store_uuid[i] = (uint8_t)rnd();
	if (birth) {
		memcpy(d->c.store_uuid, birth->store_uuid, UUID_BYTES);
		memcpy(d->c.uuid, birth->table.uuid[birth->number], UUID_BYTES);
		d->c.table = birth->table;
		conf->disks.birth->size_bytes = size_bytes;
	} else {
		table_alone(&d->c.table, d->c.uuid);
	}
	note_change();
	return 0;
}

/* Fails: a set starts the engine in steps. */
int
mem_engine_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len)
{
	return refuse(err, err_len, -EOPNOTSUPP, conf->disks.disk->path, "a set starts it");
}

const struct store_member_ops mem_member_ops = {
	.open = member_open,
	.recover = member_recover,
	.begin = member_begin,
	.set_table = member_set_table,
	.serve = member_serve,
	.put_table = member_put_table,
	.has_failed = member_has_failed,
	.walk = mem_walk,
	.send = mem_send,
	.copy_commit = mem_copy_commit,
	.slots = member_slots,
	.two_use = member_two_use,
};
