/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader fills a block: preconditions judged in log order, against the index and the records of the
 * block; memory for publishing set aside; the record encoded.  Everything here runs as leader.
 */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"
#include "extent/log/judge.h"
#include "extent/log/parts.h"
#include "base/check.h"
#include "base/clock.h"
#include "store/ops.h"

#include <errno.h>
#include <string.h>

/* What becomes of a commit that is looked at. */
enum verdict {
	V_PACKED, /* in the block */
	V_NOW,    /* c->result is the answer */
	V_AFTER,  /* is the answer if the block is flushed: it depends on a record in it */
	V_LATER,  /* stays in the queue */
	V_FULL,   /* so does everything behind it */
};

/* A key as it will be once the block is flushed. */
struct state {
	bool exists;
	bool depends; /* on the block */
	struct store_etag etag;
	uint64_t version, size_bytes;
	unsigned copies; /* of a bucket */
};

static struct state
state_of(const struct vol *vol, const uint8_t *key, size_t len, uint32_t hash)
{
	struct commit *c = block_find(vol, key, len, hash);
	const struct rec *r;

	if (c)
		return (struct state){ c->view.op == REC_PUT, true,          c->view.etag, c->view.version,
				       c->view.size_bytes,    c->view.copies };
	r = tree_find(vol->tree, key, len);
	return r ? (struct state){ true, false, rec_etag(r), r->version, r->size_bytes, rec_copies(r) }
		 : (struct state){ 0 };
}

/* A client's change of a key that was given to another kind of keys than those of the bucket are now: it began before the bucket was made,
 * or got another number of copies. */
static bool
is_of_other_kind(const struct vol *vol, const struct commit *c, const struct state *bucket)
{
	uint8_t type = c->view.key[0];

	return vol->slots && !c->sent && c->view.op != REC_DELETE &&
	       (key_is_object(type) || key_is_upload(type)) && key_has_two(type) != (bucket->copies > 1);
}

static int
pre_check(const struct store_pre *pre, const struct state *s)
{
	return store_judge(pre, s->exists ? &s->etag : NULL, s->version);
}

/* Is anything of this type and bucket in the index that is younger than `born`, but for what is left over of another disk's? */
static bool
bucket_has(const struct vol *vol, uint8_t type, const uint8_t *bucket_key, size_t len, uint64_t born)
{
	uint8_t first[2 + STORE_BUCKET_MAX];
	struct tree_cursor c;

	memcpy(first, bucket_key, len);
	first[0] = type;
	first[len] = 0;
	tree_cursor_init(&c, vol->tree, tree_root(vol->tree));
	for (bool there = tree_seek(&c, first, len + 1, false);
	     there && c.key_len > len && memcmp(c.key, first, len + 1) == 0; there = tree_next(&c)) {
		if (((const struct rec *)c.rec)->version > born &&
		    slots_own_key(vol->slots, (const uint8_t *)c.key, c.key_len))
			return true;
	}
	return false;
}

/* Is any object of this bucket in the index, but for what is left over of another disk's, or a copy of that? */
static bool
bucket_has_objects(const struct vol *vol, const uint8_t *bucket_key, size_t len)
{
	return bucket_has(vol, KEY_OBJECT, bucket_key, len, 0) ||
	       bucket_has(vol, KEY_OBJECT2, bucket_key, len, 0);
}

/* born: the bucket's version; what is older is an earlier bucket's. */
static bool
bucket_has_uploads(const struct vol *vol, const uint8_t *bucket_key, size_t len, uint64_t born)
{
	return bucket_has(vol, KEY_UPLOAD, bucket_key, len, born) ||
	       bucket_has(vol, KEY_UPLOAD2, bucket_key, len, born);
}

/* Does the block hold a record of this bucket, or of the bucket itself? */
static bool
bucket_is_pending(const struct vol *vol, const struct commit *c)
{
	for (const struct commit *b = vol->block.batch; RULE_JUDGE_PENDING && b; b = b->next) {
		const uint8_t *key = b->bucket_key ? b->bucket_key : b->view.key;
		size_t len = b->bucket_key ? b->bucket_key_len : b->view.key_len;

		if (len == c->view.key_len && memcmp(key, c->view.key, len) == 0)
			return true;
	}
	return false;
}

/* ---- gates ---- */

/* key: of the bucket.  NULL: it is open. */
static struct gate *
gate_find(struct vol *vol, const uint8_t *key, size_t len)
{
	for (uint32_t i = 0; i < vol->leader.gate_nr; i++) {
		struct gate *g = &vol->leader.gate[i];

		if (g->len == len - 1 && memcmp(g->name, key + 1, g->len) == 0)
			return g;
	}
	return NULL;
}

static int
gate_close(struct vol *vol, const struct commit *c, int error)
{
	struct gate *g = gate_find(vol, c->view.key, c->view.key_len);

	if (!g && vol->leader.gate_nr == GATES_MAX)
		return -EAGAIN;
	if (!g) {
		g = &vol->leader.gate[vol->leader.gate_nr++];
		g->len = (uint8_t)(c->view.key_len - 1);
		memcpy(g->name, c->view.key + 1, g->len);
	}
	g->error = error;
	return 0;
}

static void
gate_open(struct vol *vol, const struct commit *c)
{
	struct gate *g = gate_find(vol, c->view.key, c->view.key_len);

	if (g)
		*g = vol->leader.gate[--vol->leader.gate_nr];
}

/* ---- uploads ---- */

/* The upload that c belongs to is there, and of this bucket, not of an earlier one of its name.  0 or
 * -ENOENT. */
static int
upload_check(const struct vol *vol, const struct commit *c, uint64_t bucket_version, bool *depends)
{
	struct state u =
		state_of(vol, c->upload_key, c->upload_key_len, key_hash(c->upload_key, c->upload_key_len));

	*depends |= u.depends;
	return u.exists && u.version > bucket_version ? 0 : -ENOENT;
}

/* Does the block hold a part of this upload? */
static bool
part_is_pending(const struct vol *vol, const uint8_t *id)
{
	for (const struct commit *b = vol->block.batch; RULE_JUDGE_PENDING && b; b = b->next) {
		if (b->view.key[0] == KEY_PART && memcmp(b->view.key + 1, id, CHUNK_ID_BYTES) == 0)
			return true;
	}
	return false;
}

/* The view of c: what is there, with other attributes. */
static enum verdict
make_attrs(struct vol *vol, struct commit *c)
{
	const uint8_t *key = c->view.key;
	size_t len = c->view.key_len;
	const struct rec *r;

	/* What is pending shall be judged by what it became. */
	if (block_find(vol, key, len, c->key_hash))
		return V_LATER;
	r = tree_find(vol->tree, key, len);
	c->result = !r ? -ENOENT : c->want_version && c->want_version != r->version ? -ESTALE : 0;
	if (c->result < 0)
		return V_NOW;
	rec_view_of(r, key, len, &c->view);
	c->view.attrs = c->attrs;
	c->view.attrs_len = c->attrs_len;
	if (r->body != BODY_INLINE) {
		/* Its bytes were flushed when it was published, or before. */
		c->view.flags |= REC_SHARED | REC_FLUSHED;
		c->view.data_version = rec_data_version(r);
	}
	return V_PACKED;
}

/* The views of c and of what goes with it: what is there, with another number of copies.  A removal is made of attributes that
 * are not there, or an earlier bucket's. */
static enum verdict
make_copies(struct vol *vol, struct commit *c)
{
	const uint8_t *key = c->view.key;
	size_t len = c->view.key_len;
	const struct rec *b, *r;

	if (bucket_is_pending(vol, c))
		return V_LATER;
	b = tree_find(vol->tree, key, len);
	c->result = !b ? -ENXIO
		    : rec_copies(b) != c->copies && (bucket_has_objects(vol, key, len) ||
						     bucket_has_uploads(vol, key, len, b->version))
			    ? -ENOTEMPTY
			    : 0;
	if (c->result < 0 || rec_copies(b) == c->copies)
		return V_NOW;
	rec_view_of(b, key, len, &c->view);
	c->view.copies = c->copies;
	for (struct commit *a = c->also; a; a = a->also) {
		const struct rec_view gone = { .op = REC_DELETE,
					       .key = a->view.key,
					       .key_len = a->view.key_len };

		r = tree_find(vol->tree, gone.key, gone.key_len);
		if (r && r->version > b->version)
			rec_view_of(r, gone.key, gone.key_len, &a->view);
		else
			a->view = gone;
	}
	return V_PACKED;
}

/* The record is there that gets other bytes, or a part that an object names is not; and nothing of its key is pending. */
static enum verdict
judge_repair(struct vol *vol, struct commit *c)
{
	const struct commit_sent *sent = c->sent;
	const struct rec *r;

	if (block_find(vol, c->view.key, c->view.key_len, c->key_hash))
		return V_LATER;
	r = tree_find(vol->tree, c->view.key, c->view.key_len);
	if (!r && c->kind == COMMIT_PART &&
	    object_names_part(vol->tree, c->upload_key, c->upload_key_len, c->view.key))
		return V_PACKED;
	if (r && r->version == sent->version &&
	    rec_data_version(r) == (sent->data_version ? sent->data_version : sent->version))
		return V_PACKED;
	c->result = -ESTALE;
	return V_NOW;
}

/* Everything that speaks against c or makes it needless; 0: it is to be packed. */
static enum verdict
judge_state(struct vol *vol, struct commit *c, const struct state *s)
{
	bool depends = s->depends;
	uint64_t bucket_version = 0;

	if (vol->slots && (c->result = slots_judge(vol, c)) < 0)
		return V_NOW;
	if (c->bucket_key) {
		uint32_t hash = key_hash(c->bucket_key, c->bucket_key_len);
		struct state b = state_of(vol, c->bucket_key, c->bucket_key_len, hash);
		const struct gate *g = gate_find(vol, c->bucket_key, c->bucket_key_len);

		if (g) {
			c->result = g->error;
			return V_NOW;
		}
		depends |= b.depends;
		bucket_version = b.version;
		if (!b.exists) {
			c->result = -ENXIO;
			return depends ? V_AFTER : V_NOW;
		}
		if (is_of_other_kind(vol, c, &b)) {
			c->result = -EAGAIN;
			return depends ? V_AFTER : V_NOW;
		}
	}
	if (c->sent && c->sent->is_repair)
		return judge_repair(vol, c);
	switch (c->kind) {
	case COMMIT_BUCKET_MAKE:
		c->result = s->exists ? -EEXIST : usage_judge_bucket(vol, c);
		if (c->result == 0 && c->is_gated)
			c->result = gate_close(vol, c, -ENXIO);
		break;
	case COMMIT_GATE_CLOSE:
		if (RULE_GATE_PENDING && bucket_is_pending(vol, c))
			return V_LATER;
		c->result = !s->exists ? -ENXIO
			    : bucket_has_objects(vol, c->view.key, c->view.key_len) ||
					    (c->is_bare && bucket_has_uploads(vol, c->view.key,
									      c->view.key_len, s->version))
				    ? -ENOTEMPTY
				    : gate_close(vol, c, -EAGAIN);
		return V_NOW;
	case COMMIT_GATE_OPEN:
		gate_open(vol, c);
		return V_NOW;
	case COMMIT_SLOTS: {
		int r = slots_command(vol, c);

		c->result = 0;
		return r == 1 ? V_AFTER : r == 0 ? V_NOW : V_LATER;
	}
	case COMMIT_BUCKET_REMOVE:
		if (bucket_is_pending(vol, c))
			return V_LATER;
		c->result = !s->exists                                              ? -ENXIO
			    : bucket_has_objects(vol, c->view.key, c->view.key_len) ? -ENOTEMPTY
										    : 0;
		break;
	case COMMIT_BUCKET_COPIES:
		return make_copies(vol, c);
	case COMMIT_BUCKET_ATTRS:
		/* Those of an earlier bucket of the name are none. */
		c->result =
			c->want_version == STORE_VERSION_ANY ||
					c->want_version ==
						(s->exists && s->version > bucket_version ? s->version : 0)
				? 0
				: -ESTALE;
		break;
	case COMMIT_UPLOAD_ABORT:
		c->result = s->exists && s->version > bucket_version ? 0 : -ENOENT;
		break;
	case COMMIT_PART:
		c->result = upload_check(vol, c, bucket_version, &depends);
		break;
	case COMMIT_COMPLETE:
		c->result = upload_check(vol, c, bucket_version, &depends);
		if (c->result == 0 &&
		    part_is_pending(vol, c->upload_key + c->upload_key_len - CHUNK_ID_BYTES))
			return V_LATER;
		if (c->result == 0)
			c->result = pre_check(&c->pre, s);
		if (c->result == 0)
			c->result = parts_match(vol->tree, ((const struct chunk_ref *)c->view.entries)->id,
						c->parts, (struct chunk_ref *)(uintptr_t)c->view.entries,
						c->view.entry_nr, false, &c->bad);
		break;
	case COMMIT_ATTRS: {
		enum verdict v = make_attrs(vol, c);

		return v == V_NOW && depends ? V_AFTER : v;
	}
	default:
		c->result = pre_check(&c->pre, s);
		break;
	}
	if (c->result == 0 && (c->view.op != REC_DELETE || s->exists))
		return V_PACKED;
	return depends ? V_AFTER : V_NOW;
}

static void
put_back(struct vol *vol, struct commit *c)
{
	rec_drop(vol->tree, c->rec);
	c->rec = NULL;
	if (c->dead)
		dead_put(vol, c->dead);
	c->dead = NULL;
	tree_unreserve(vol->tree, 1);
}

/* Takes no more room than it gives back. */
static bool
is_no_growth(const struct commit *c)
{
	return c->view.op == REC_DELETE || c->kind == COMMIT_BUCKET_COPIES;
}

/* Allocates all memory for publishing c, before anything is written. Returns 0 or -ENOSPC. Memory that no
 * reader uses any longer was freed at the beginning of the leader's step (publish_reclaim()). */
static int
set_aside(struct vol *vol, struct commit *c, bool replaces)
{
	bool is_put = c->view.op == REC_PUT;

	/* The tree keeps back what deletes need. */
	if ((!is_no_growth(c) ? tree_reserve(vol->tree, 1) : tree_reserve_deletes(vol->tree, 1)) < 0)
		return -ENOSPC;
	if (is_put)
		c->rec = rec_new(vol->tree, &c->view, c->view.entries);
	if (replaces)
		c->dead = dead_get(vol);
	if ((!is_put || c->rec) && (!replaces || c->dead))
		return 0;
	put_back(vol, c);
	return -ENOSPC;
}

/* The same for c and the records that go with it: all, or none. */
static int
set_aside_all(struct vol *vol, struct commit *c, bool replaces)
{
	int e = 0;

	for (struct commit *a = c->also; a; a = a->also) {
		struct state s;

		a->key_hash = key_hash(a->view.key, a->view.key_len);
		s = state_of(vol, a->view.key, a->view.key_len, a->key_hash);
		a->is_idle = e < 0 || (a->view.op == REC_DELETE && !s.exists);
		if (!a->is_idle)
			e = set_aside(vol, a, s.exists);
		a->is_idle |= e < 0;
	}
	if (e == 0)
		e = set_aside(vol, c, replaces);
	/* Last: what is not made must not be in the book. */
	if (e == 0 && c->kind == COMMIT_BUCKET_MAKE && usage_make(vol, c) < 0) {
		put_back(vol, c);
		e = -ENOSPC;
	}
	for (struct commit *a = c->also; e < 0 && a; a = a->also) {
		if (!a->is_idle)
			put_back(vol, a);
	}
	return e;
}

static size_t
encoded_bytes_all(const struct commit *c)
{
	size_t bytes = 0;

	for (; c; c = c->also)
		bytes += rec_encoded_bytes(&c->view);
	return bytes;
}

/* One number for the record, its memory form and the answer; the record was made with none. */
static void
number(struct vol *vol, struct commit *c)
{
	c->view.version = c->sent ? slots_version(vol, c->sent) : atomic_fetch_add(&vol->version, 1) + 1;
	if (c->rec)
		c->rec->version = c->view.version;
}

/* All in order, but for a bucket, whose attributes are younger than it is. */
static void
number_and_pack(struct vol *vol, struct commit *c)
{
	bool is_bucket = c->kind == COMMIT_BUCKET_COPIES || c->kind == COMMIT_BUCKET_MAKE;

	if (is_bucket)
		number(vol, c);
	for (struct commit *a = c->also; a; a = a->also) {
		if (a->is_idle)
			continue;
		number(vol, a);
		block_pack(vol, a);
	}
	if (!is_bucket)
		number(vol, c);
	block_pack(vol, c);
}

static enum verdict
stall_for(struct vol *vol, struct commit *c, uint64_t ns)
{
	uint64_t now = clock_ns();

	if (c->came_ns == 0)
		c->came_ns = now;
	if (now - c->came_ns < ns) {
		vol->leader.have_stalled = true;
		return V_LATER;
	}
	c->result = -EAGAIN;
	return V_NOW;
}

/* For space, or for the log. */
static enum verdict
stall(struct vol *vol, struct commit *c)
{
	return stall_for(vol, c, c->view.op == REC_DELETE ? 2 * STALL_NS : STALL_NS);
}

/* No room for the snapshots of what the index would be.  Some may be on its way. */
static enum verdict
no_room(struct vol *vol, struct commit *c)
{
	bool coming = atomic_load(&vol->disk.segs_coming);
	enum verdict v = V_NOW;

	/* How much is in the block is known when it is published. */
	if (vol->block.records)
		return V_FULL;
	if (coming) {
		atomic_store(&vol->disk.seg_hungry, true);
		helper_ring(&vol->helper);
	}
	if (coming || atomic_load(&vol->dead_nr))
		v = stall(vol, c);
	if (v == V_NOW)
		atomic_fetch_add(&vol->disk.stats.space_refused, 1);
	c->result = -ENOSPC;
	return v;
}

static enum verdict
judge_one(struct vol *vol, struct commit *c)
{
	bool is_delete = is_no_growth(c);
	struct quota_change change;
	uint64_t data_bytes = 0;
	size_t bytes;
	struct state s;
	enum verdict v;

	if (atomic_load(&c->data_error)) {
		int e = atomic_load(&c->data_error);

		/* Nothing of it is in the log.  But for want of space or memory, the disk has failed; so will
		 * everything else. */
		c->result = e == -ENOSPC || e == -EAGAIN ? e : -ECANCELED;
		return V_NOW;
	}
	if (RULE_LARGE_FLUSHED_FIRST && c->flush_ticket > vol->flush.done) {
		vol->leader.have_unflushed = true;
		return V_LATER;
	}
	s = state_of(vol, c->view.key, c->view.key_len, c->key_hash);
	v = judge_state(vol, c, &s);
	/* Behind a gate, or a freeze: that is over soon, and makes no room that a delete could wait for. */
	if (v == V_NOW && c->result == -EAGAIN && c->bucket_key)
		return stall_for(vol, c, STALL_NS);
	if (v != V_PACKED)
		return v;
	change = usage_change(c, s.exists, s.size_bytes);
	c->result = c->sent ? slots_reserve(vol) : usage_judge(vol, c, &change);
	/* What it was judged by may be pending, and may not come. */
	if (c->result < 0)
		return vol->block.records ? V_AFTER : V_NOW;
	bytes = encoded_bytes_all(c);
	if (!is_delete && !rec_may_grow(vol, c, bytes))
		return no_room(vol, c);
	switch (block_room(vol, bytes, is_delete)) {
	case ROOM_NEXT_BLOCK:
		return V_FULL;
	case ROOM_LOG_FULL:
		vol->leader.log_is_full = true;
		return stall(vol, c);
	default:
		break;
	}
	if (!is_delete && !(c->view.flags & REC_FLUSHED) && c->view.body == BODY_EXTENTS)
		data_bytes = c->view.size_bytes;
	if (data_bytes && vol->block.data_bytes && vol->block.data_bytes + data_bytes > TAIL_BYTES_MAX)
		return V_FULL;
	c->result = set_aside_all(vol, c, s.exists);
	if (c->result < 0) {
		/* A delete makes room: it waits for what is on its way back from readers and snapshots. */
		if (is_delete)
			return stall(vol, c);
		atomic_fetch_add(&vol->disk.stats.index_refused, 1);
		return s.depends ? V_AFTER : V_NOW;
	}
	/* Only what is in it: a block that counts as full and is empty is never written, and the queue waits for it. */
	vol->block.data_bytes += data_bytes;
	if (c->kind == COMMIT_DELETE)
		c->result = 1;
	number_and_pack(vol, c);
	if (!c->sent)
		usage_pend(vol, c, &change);
	return V_PACKED;
}

void
judge_queue(struct vol *vol)
{
	struct leader *ld = &vol->leader;

	ld->have_stalled = ld->log_is_full = ld->have_unflushed = false;
	ld->queue_end = &ld->queue;
	usage_judge_begin(vol);
	for (struct commit *c; (c = *ld->queue_end) != NULL;) {
		struct commit *next = c->next;
		enum verdict v = judge_one(vol, c);

		if (v == V_LATER || v == V_FULL) {
			ld->queue_end = &c->next;
			if (v == V_FULL)
				break;
			continue;
		}
		*ld->queue_end = next;
		if (v == V_NOW) {
			commit_answer(c, c->result);
		} else if (v == V_AFTER) {
			c->next = NULL;
			*vol->block.after_end = c;
			vol->block.after_end = &c->next;
		}
	}
	usage_judge_end(vol);
	while (*ld->queue_end)
		ld->queue_end = &(*ld->queue_end)->next;
}
