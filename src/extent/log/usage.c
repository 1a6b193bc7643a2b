/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage of buckets; see usage.h. An object counts by its record, wherever its bytes are stored; chunks are
 * not counted. Parts count while their upload exists: all of them end with it, and their records are removed
 * later. The primary of a key with two copies counts the bytes of both.
 */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"

#include <errno.h>
#include <string.h>

/* ---- quotas in records ---- */

/* Returns the quota in a record. A longer record is of a later version, which added a field. */
struct store_use
usage_bound_of(const struct rec *r)
{
	struct store_use max = { STORE_UNBOUNDED, STORE_UNBOUNDED, STORE_UNBOUNDED };

	if (r && r->attrs_len >= USE_BYTES)
		use_move(&max, (uint8_t *)(uintptr_t)rec_attrs(r), false);
	return max;
}

static bool
is_bound_key(const uint8_t *key, size_t len)
{
	return key[0] == KEY_BATTRS && key[len - 1] == '0' + BATTRS_QUOTA;
}

/* ---- rows ---- */

/* Returns the row of the bucket of a key, which begins with the bucket's name; NULL: no row. */
static struct quota_row *
row_of(const struct vol *vol, struct quota_book *book, const uint8_t *key, size_t len)
{
	const uint8_t *end = key[0] == KEY_BUCKET ? NULL : memchr(key, 0, len);

	return quota_find(book, vol->counter, key + 1, (end ? (size_t)(end - key) : len) - 1);
}

/* Returns the row of the bucket that must exist for a commit; NULL: no row, or no limit exists. */
static struct quota_row *
row_of_commit(const struct vol *vol, const struct commit *c)
{
	uint8_t bucket[1 + STORE_BUCKET_MAX];
	size_t len = vol->leader.judges_quotas ? commit_bucket(c, bucket) : 0;

	return len ? row_of(vol, vol->quotas, bucket, len) : NULL;
}

static uint64_t
parts_bytes(const struct vol *vol, const uint8_t *upload_key, size_t len)
{
	struct tree_cursor c;
	uint8_t key[CHUNK_KEY_BYTES];
	uint64_t bytes = 0;

	key_part(key, upload_key + len - CHUNK_ID_BYTES, 0);
	for (bool there = tree_begin(&c, vol->tree, key, sizeof key, false);
	     there && tree_begins(&c, key, 1 + CHUNK_ID_BYTES); there = tree_next(&c))
		bytes += quota_part_bytes(((const struct rec *)c.rec)->size_bytes);
	return bytes;
}

/* Returns the change of the usage when a record (NULL: none) replaces another, except for the parts of an upload. */
static struct quota_change
change_of(uint8_t type, const struct rec *r, const struct rec *old)
{
	return model_usage(disk_key_traits(type).kind, r ? &r->size_bytes : NULL,
			   old ? &old->size_bytes : NULL);
}

/* Returns the size of a bucket's documents after a change, which has a record or a removal for each of
 * them. */
static int64_t
docs_after(const struct commit *c)
{
	int64_t bytes = 0;

	for (; c; c = c->also)
		bytes += c->kind == COMMIT_BUCKET_ATTRS && c->view.op == REC_PUT ? c->view.attrs_len : 0;
	return bytes;
}

/* Returns true for a change of all documents of a bucket. */
static bool
is_docs(const struct commit *c)
{
	return c->kind == COMMIT_BUCKET_ATTRS && !is_bound_key(c->view.key, c->view.key_len);
}

/* ---- judging ---- */

void
usage_judge_begin(struct vol *vol)
{
	vol->leader.judges_quotas = quota_is_active(vol->quotas);
	if (vol->leader.judges_quotas)
		quota_lock(vol->quotas);
}

void
usage_judge_end(struct vol *vol)
{
	if (vol->leader.judges_quotas)
		quota_unlock(vol->quotas);
	vol->leader.judges_quotas = false;
}

int
usage_judge(struct vol *vol, const struct commit *c, struct quota_change *change)
{
	struct quota_row *row = row_of_commit(vol, c);

	*change = quota_of_copies(*change,
				  key_has_two((c->kind == COMMIT_PART ? c->upload_key : c->view.key)[0]));
	if (!row)
		return 0;
	if (is_docs(c))
		return quota_judge_docs(vol->quotas, vol->counter, row, docs_after(c), &change->bytes);
	return quota_judge(vol->quotas, vol->counter, row, change, RULE_QUOTA_PENDING);
}

void
usage_pend(struct vol *vol, const struct commit *c, const struct quota_change *change)
{
	struct quota_row *row = row_of_commit(vol, c);

	if (row && c->hold)
		quota_settle(vol->quotas, vol->counter, c->hold);
	if (row && is_docs(c))
		quota_pend_docs(vol->quotas, vol->counter, row, change->bytes);
	else if (row && quota_is_any(change))
		quota_pend(vol->quotas, vol->counter, row, change);
	vol->leader.has_usage |= row != NULL;
}

int
usage_judge_bucket(struct vol *vol, const struct commit *c)
{
	return vol->leader.judges_quotas
		       ? quota_judge_bucket(vol->quotas, c->view.key + 1, c->view.key_len - 1u,
					    (uint64_t)docs_after(c->also))
		       : 0;
}

int
usage_make(struct vol *vol, const struct commit *c)
{
	int64_t docs = docs_after(c->also);
	int e;

	if (!vol->leader.judges_quotas)
		quota_lock(vol->quotas);
	e = quota_make(vol->quotas, vol->counter, c->view.key + 1, c->view.key_len - 1u);
	if (e == 0 && docs)
		quota_pend_docs(vol->quotas, vol->counter,
				row_of(vol, vol->quotas, c->view.key, c->view.key_len), docs);
	if (!vol->leader.judges_quotas)
		quota_unlock(vol->quotas);
	vol->leader.has_usage |= e == 0;
	return e;
}

/* ---- publishing ---- */

void
usage_publish_begin(struct vol *vol)
{
	quota_lock(vol->quotas);
}

/* Counts a change of a key, of one copy, for its partition. Returns 1: the bucket counts it as well; 0:
 * the record is foreign; or -ENOMEM. */
static int
count_place(struct vol *vol, const uint8_t *key, size_t len, const struct quota_change *change)
{
	struct slot_name n = slot_name(key, len);

	if (vol->slots && n.has_two)
		slots_count_two(vol->slots, &n, change);
	return slots_own_key(vol->slots, key, len) ? 1 : slots_count(vol->slots, &n, change);
}

/* Counts a change of a key, of one copy, for its bucket. row NULL: does nothing. */
static void
count(struct vol *vol, struct quota_book *book, struct quota_row *row, const uint8_t *key,
      const struct quota_change *change)
{
	const struct quota_change all = quota_of_copies(*change, key_has_two(key[0]));

	if (row)
		quota_count(book, vol->counter, row, &all);
}

/* Counts the attributes of a bucket: r replaces old; NULL: none. */
static void
count_battrs(struct vol *vol, struct quota_book *book, struct quota_row *row, const uint8_t *key, size_t len,
	     const struct rec *r, const struct rec *old)
{
	uint64_t born = quota_version(row, vol->counter);

	if (!is_bound_key(key, len)) {
		int64_t more = r ? r->attrs_len : 0;

		/* The attributes of an earlier bucket of the name were not counted. */
		if (old && born && model_is_of(old->version, born))
			more -= old->attrs_len;
		quota_count_docs(book, vol->counter, row, more);
	} else if (vol->counter == 0) {
		/* The quota on the disk of the first counter is in force. */
		struct store_use max = usage_bound_of(r);

		quota_bound(book, row, &max);
	}
}

/* Returns true if a collected record was not counted. */
static bool
is_uncounted(const struct vol *vol, const struct commit *c)
{
	return c->is_gc && !(vol->slots && key_has_two(c->view.key[0])) &&
	       slots_own_key(vol->slots, c->view.key, c->view.key_len);
}

void
usage_published(struct vol *vol, const struct commit *c, const struct rec *old)
{
	uint8_t type = c->view.key[0];
	bool is_part = type == KEY_PART, is_put = c->view.op == REC_PUT;
	const uint8_t *key = is_part ? c->upload_key : c->view.key;
	size_t len = is_part ? c->upload_key_len : c->view.key_len;
	const struct rec *r = is_put ? c->rec : NULL;
	struct quota_change change;
	struct quota_row *row;

	if (c->hold)
		quota_release(vol->quotas, vol->counter, c->hold);
	/* A repair changes the bytes, or restores a part that its object names: the record is counted
	 * already. */
	if (c->sent && c->sent->is_repair)
		return;
	/* Chunks count with their object, and parts with their upload. A collected record has no bucket
	 * any longer, but may still count as foreign, or for its partition. */
	if (type == KEY_CHUNK || (is_part && !is_put && !c->sent) || is_uncounted(vol, c))
		return;
	row = c->is_gc ? NULL : row_of(vol, vol->quotas, key, len);
	if (type == KEY_BUCKET) {
		if (row && is_put)
			quota_born(vol->quotas, vol->counter, row, c->view.version);
		else if (row && old)
			quota_gone(vol->quotas, vol->counter, row);
	} else if (type == KEY_BATTRS) {
		if (row)
			count_battrs(vol, vol->quotas, row, key, len, r, old);
	} else {
		change = change_of(type, r, old);
		if (key_is_upload(type))
			vol->leader.uploads_ended |= !is_put || (c->sent && !old);
		if (count_place(vol, key, len, &change) == 1)
			count(vol, vol->quotas, row, key, &change);
	}
}

void
usage_publish_end(struct vol *vol)
{
	/* With an upload its parts end; with an upload that arrives again, its parts that still exist
	 * count again. */
	for (const struct commit *c = vol->leader.uploads_ended ? vol->block.batch : NULL; c; c = c->next) {
		struct quota_change change = { 0 };
		bool is_put = c->view.op == REC_PUT;
		struct quota_row *row;

		if (!key_is_upload(c->view.key[0]) || (is_put && !c->sent) || is_uncounted(vol, c))
			continue;
		change.bytes = (int64_t)parts_bytes(vol, c->view.key, c->view.key_len);
		change.bytes = is_put ? change.bytes : -change.bytes;
		row = c->is_gc ? NULL : row_of(vol, vol->quotas, c->view.key, c->view.key_len);
		if (count_place(vol, c->view.key, c->view.key_len, &change) == 1)
			count(vol, vol->quotas, row, c->view.key, &change);
	}
	vol->leader.uploads_ended = vol->leader.has_usage = false;
	quota_unpend(vol->quotas, vol->counter);
	quota_unlock(vol->quotas);
}

/* ---- removed records with readers ---- */

struct quota_row *
usage_row_of_dead(const struct vol *vol, const uint8_t *key, size_t len, const struct rec *r)
{
	if (!quota_is_active(vol->quotas))
		return NULL;
	if (key[0] == KEY_PART)
		return row_of(vol, vol->quotas, rec_owner(r), r->owner_len);
	return key_is_object(key[0]) ? row_of(vol, vol->quotas, key, len) : NULL;
}

void
usage_keep(struct vol *vol, struct dead *dead)
{
	const struct rec *r = dead->rec;

	dead->kept_bytes = quota_kept_bytes(r->size_bytes, r->body == BODY_INLINE);
	quota_keep(vol->quotas, vol->counter, dead->row, dead->kept_bytes);
}

void
usage_keep_end(struct dead *dead)
{
	struct vol *vol = dead->vol;

	/* Before the fields are read, because usage_keep() sets them under the lock. */
	quota_lock(vol->quotas);
	quota_keep_end(vol->quotas, vol->counter, dead->row, dead->kept_bytes);
	quota_unlock(vol->quotas);
}

void
usage_drop(struct vol *vol)
{
	if (!vol->leader.has_usage)
		return;
	quota_lock(vol->quotas);
	quota_unpend(vol->quotas, vol->counter);
	quota_unlock(vol->quotas);
	vol->leader.has_usage = false;
}

/* ---- start ---- */

int
usage_start(struct vol *vol, struct quota_book *book, const uint8_t *key, size_t len, const struct rec *r)
{
	const bool is_bucket = key[0] == KEY_BUCKET, is_object = key_is_object(key[0]);
	const bool is_counted = disk_key_traits(key[0]).copies;
	struct quota_change change = { 0 };
	struct quota_row *row;
	uint64_t born;
	int e = 0;

	if (key[0] == KEY_PART || key[0] == KEY_CHUNK)
		return 0;
	if (is_counted) {
		change = change_of(key[0], r, NULL);
		change.bytes += is_object ? 0 : (int64_t)parts_bytes(vol, key, len);
		/* Before the lock, which all disks of a store share, and which start at the same time. */
		e = count_place(vol, key, len, &change);
		if (e != 1)
			return e;
		e = 0;
	}
	quota_lock(book);
	row = is_bucket ? quota_enter(book, vol->counter, key + 1, len - 1, r->version)
			: row_of(vol, book, key, len);
	/* An older upload, and older attributes, belong to an earlier bucket of the name. An object may
	 * come from another disk, where the bucket was made earlier. */
	born = row ? quota_version(row, vol->counter) : 0;
	if (!born || (!is_object && !is_bucket && !model_is_of(r->version, born)))
		row = NULL;
	if (is_counted)
		count(vol, book, row, key, &change);
	else if (is_bucket)
		e = row ? 0 : -ENOMEM;
	else if (row)
		count_battrs(vol, book, row, key, len, r, NULL);
	quota_unlock(book);
	return e;
}

/* ---- reservations ---- */

int
usage_reserve(struct vol *vol, const uint8_t *name, size_t name_len, const uint8_t *key, size_t key_len,
	      uint64_t size_bytes, struct quota_hold *hold)
{
	const enum model_kind kind = disk_key_traits(key[0]).kind;
	const bool is_known = size_bytes != STORE_SIZE_UNKNOWN;
	const uint64_t size = is_known ? size_bytes : 0;
	struct quota_change change;
	const struct rec *r;

	if (!quota_is_active(vol->quotas))
		return 0;
	r = tree_get(vol->tree, key, key_len);
	change = model_usage(kind, &size, r ? &r->size_bytes : NULL);
	if (change.bytes < 0 || !is_known)
		change.bytes = 0;
	return quota_reserve(vol->quotas, vol->counter, name + 1,
			     (size_t)((const uint8_t *)memchr(name, 0, name_len) - name) - 1, &change,
			     is_known ? (uint64_t)model_usage(kind, &size, NULL).bytes : 0, hold);
}
