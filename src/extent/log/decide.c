/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the records of a volume to the object model; see decide.h. */
#include "extent/log/decide.h"

#include "extent/log/vol.h"

#include "extent/disk/rules.h"
#include "base/age_clock.h"
#include "base/check.h"

#include <errno.h>
#include <string.h>

struct key_state
key_state(const struct vol *vol, const uint8_t *key, size_t len, uint32_t hash)
{
	struct commit *c = block_find(vol, key, len, hash);
	const struct rec *r;

	if (c)
		return (struct key_state){ c->view.op == REC_PUT, true, rec_view_show(&c->view) };
	r = tree_find(vol->tree, key, len);
	return r ? (struct key_state){ true, false, rec_show(r) } : (struct key_state){ 0 };
}

/* ---- parts of a completion ---- */

/* The published parts of an upload, found in ascending order. */
struct part_cursor {
	struct tree_cursor at;
	const uint8_t *id;
	bool is_open, is_there;
};

static const struct rec *
find_part(struct part_cursor *pc, const struct tree *t, uint32_t number)
{
	uint8_t key[CHUNK_KEY_BYTES];

	key_part(key, pc->id, number);
	if (!pc->is_open) {
		pc->is_there = tree_begin(&pc->at, t, key, sizeof key, false);
		pc->is_open = true;
	}
	while (pc->is_there && pc->at.key_len == sizeof key && memcmp(pc->at.key, key, sizeof key) < 0)
		pc->is_there = tree_next(&pc->at);
	return pc->is_there && tree_begins(&pc->at, key, sizeof key) ? pc->at.rec : NULL;
}

/* A view of the published parts alone, which are noted in refs. */
struct parts_view {
	struct model_view view;
	const struct tree *tree;
	struct part_cursor parts;
	struct chunk_ref *ref;
};

static int
find_published(struct model_view *v, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	struct parts_view *pv = container_of(v, struct parts_view, view);
	const struct rec *r = find_part(&pv->parts, pv->tree, number);

	check(kind == MODEL_PART);
	if (!r)
		return 0;
	*pv->ref = (struct chunk_ref){ .index = number, .len_bytes = r->size_bytes, .crc64 = r->crc64 };
	memcpy(pv->ref->id, pv->parts.id, CHUNK_ID_BYTES);
	pv->ref++;
	*ret_record = rec_show(r);
	return 1;
}

int
decide_parts(const struct tree *t, const uint8_t *id, const struct store_complete *sc, struct chunk_ref *refs,
	     struct model_answer *ret)
{
	struct parts_view pv = { .view.find = find_published, .tree = t, .parts.id = id, .ref = refs };

	return model_judge_parts(sc, &pv.view, true, ret);
}

/* ---- the view of a commit ---- */

struct commit_view {
	struct model_view view;
	const struct vol *vol;
	const struct commit *c;
	bool depends;
	struct part_cursor parts;
	/* COMPLETE: next entry of the list that the submitter has added up */
	const struct chunk_ref *ref;
};

static bool
is_of_bucket(const struct commit *c, const uint8_t *key, size_t len)
{
	uint8_t of[1 + STORE_BUCKET_MAX];
	size_t of_len = commit_bucket(c, of);

	return of_len ? of_len == len && memcmp(of, key, len) == 0
		      : c->view.key_len == len && memcmp(c->view.key, key, len) == 0;
}

/* Returns true if the block has a record of the bucket with the key of c, or of its contents. */
static bool
bucket_is_pending(const struct vol *vol, const struct commit *c)
{
	if (c->kind == COMMIT_GATE_CLOSE && !RULE_GATE_PENDING)
		return false;
	for (const struct commit *b = vol->block.batch; RULE_JUDGE_PENDING && b; b = b->next) {
		if (is_of_bucket(b, c->view.key, c->view.key_len))
			return true;
	}
	return false;
}

/* Returns true if the block has a part of this upload. */
static bool
part_is_pending(const struct vol *vol, const uint8_t *id)
{
	for (const struct commit *b = vol->block.batch; RULE_JUDGE_PENDING && b; b = b->next) {
		if (b->view.key[0] == KEY_PART && memcmp(b->view.key + 1, id, CHUNK_ID_BYTES) == 0)
			return true;
	}
	return false;
}

/* Returns true if the index has a record of this type in the bucket, with a version above `after`, whose key is
 * assigned to the volume. */
static bool
index_has(const struct vol *vol, uint8_t type, const uint8_t *bucket_key, size_t len, uint64_t after)
{
	uint8_t first[2 + STORE_BUCKET_MAX];
	struct tree_cursor c;

	memcpy(first, bucket_key, len);
	first[0] = type;
	first[len] = 0;
	for (bool there = tree_begin(&c, vol->tree, first, len + 1, false);
	     there && tree_begins(&c, first, len + 1); there = tree_next(&c)) {
		if (((const struct rec *)c.rec)->version > after &&
		    slots_own_key(vol->slots, (const uint8_t *)c.key, c.key_len))
			return true;
	}
	return false;
}

static int
has_any(struct model_view *v, enum model_kind kind, uint64_t after)
{
	struct commit_view *cv = container_of(v, struct commit_view, view);
	const struct commit *c = cv->c;

	if (bucket_is_pending(cv->vol, c))
		return -EINPROGRESS;
	for (uint8_t type = 0; (type = disk_key_next(kind, type));) {
		if (index_has(cv->vol, type, c->view.key, c->view.key_len, after))
			return 1;
	}
	return 0;
}

static int
find_key(struct commit_view *cv, const uint8_t *key, size_t len, uint32_t hash,
	 struct model_record *ret_record)
{
	struct key_state s = key_state(cv->vol, key, len, hash);

	cv->depends |= s.depends;
	*ret_record = s.record;
	return s.exists;
}

/* A removal that another disk sends needs no bucket. */
static int
find_bucket(struct commit_view *cv, struct model_record *ret_record)
{
	uint8_t bucket[1 + STORE_BUCKET_MAX];
	const struct commit *c = cv->c;
	size_t len = commit_bucket(c, bucket);

	if (len)
		return find_key(cv, bucket, len, key_hash(bucket, len), ret_record);
	if (c->view.key[0] == KEY_BUCKET)
		return find_key(cv, c->view.key, c->view.key_len, c->key_hash, ret_record);
	*ret_record = (struct model_record){ .copies = 1 };
	return 1;
}

/* A completion ends the parts, so none may be in the block. */
static int
find_upload(struct commit_view *cv, struct model_record *ret_record)
{
	const struct commit *c = cv->c;
	int r;

	if (c->kind == COMMIT_UPLOAD_ABORT)
		return find_key(cv, c->view.key, c->view.key_len, c->key_hash, ret_record);
	r = find_key(cv, c->upload_key, c->upload_key_len, key_hash(c->upload_key, c->upload_key_len),
		     ret_record);
	if (c->kind != COMMIT_COMPLETE)
		return r;
	/* The usage loses the parts when they are removed (usage.c). */
	ret_record->size_bytes = c->view.size_bytes;
	return r && part_is_pending(cv->vol, c->upload_key + c->upload_key_len - CHUNK_ID_BYTES)
		       ? -EINPROGRESS
		       : r;
}

/* Finds a part of the list. A part counts as absent if it is not the one that the submitter has added up. */
static int
find_listed(struct commit_view *cv, uint32_t number, struct model_record *ret_record)
{
	const struct chunk_ref *ref = cv->ref++;
	const struct rec *r = find_part(&cv->parts, cv->vol->tree, number);

	if (!r || ref->index != number || ref->len_bytes != r->size_bytes || ref->crc64 != r->crc64)
		return 0;
	*ret_record = rec_show(r);
	return 1;
}

static int
find(struct model_view *v, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	struct commit_view *cv = container_of(v, struct commit_view, view);
	const struct commit *c = cv->c;

	switch (kind) {
	case MODEL_BUCKET:
		return find_bucket(cv, ret_record);
	case MODEL_UPLOAD:
		return find_upload(cv, ret_record);
	case MODEL_PART:
		if (c->kind == COMMIT_COMPLETE)
			return find_listed(cv, number, ret_record);
		break;
	default:
		/* The new record is made of the published one. */
		if (c->kind == COMMIT_ATTRS && block_find(cv->vol, c->view.key, c->view.key_len, c->key_hash))
			return -EINPROGRESS;
		break;
	}
	return find_key(cv, c->view.key, c->view.key_len, c->key_hash, ret_record);
}

/* The number of copies for which a client's key was placed; 0: a volume that has all keys, a copy from another
 * disk, and a record that is no object or upload have none. */
static unsigned
copies_of(const struct vol *vol, const struct commit *c)
{
	if (c->kind == COMMIT_BUCKET_COPIES)
		return c->copies;
	return !vol->slots || c->sent ? 0 : disk_key_traits(c->view.key[0]).copies;
}

enum verdict
decide_commit(const struct vol *vol, struct commit *c, struct model_answer *ret, enum verdict *ret_refused)
{
	const bool completes = c->kind == COMMIT_COMPLETE;
	const struct store_complete list = { .parts = c->parts, .part_nr = c->view.entry_nr };
	const struct model_op op = {
		.act = (enum model_act)c->kind,
		.pre = &c->pre,
		.version = c->want_version,
		.size_bytes = c->view.size_bytes,
		.copies = copies_of(vol, c),
		.complete = completes ? &list : NULL,
		.removes = c->view.op == REC_DELETE,
		.is_alone = c->is_bare,
		.now_ns = age_clock_ns(),
	};
	struct commit_view cv = {
		.view = { find, has_any }, .vol = vol, .c = c, .ref = completes ? c->view.entries : NULL
	};
	bool changes;

	check(op.act < MODEL_ACTS);
	if (completes)
		cv.parts.id = ((const struct chunk_ref *)c->view.entries)->id;
	changes = model_decide(&op, &cv.view, ret);
	if (ret->result == -EINPROGRESS)
		return V_LATER;
	c->result = ret->result;
	c->bad = ret->bad;
	/* A record from another disk replaces the existing one. */
	if (c->kind == COMMIT_UPLOAD_MAKE) {
		struct key_state s = key_state(vol, c->view.key, c->view.key_len, c->key_hash);

		ret->replaces = s.exists;
		ret->old = s.record;
	}
	*ret_refused = cv.depends ? V_AFTER : V_NOW;
	return changes ? V_PACKED : *ret_refused;
}
