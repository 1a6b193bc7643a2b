/*
 * The leader fills a block: preconditions judged in log order, against the index and the records of the
 * block; memory for publishing set aside; the record encoded.  Everything here runs as leader.
 */
#include "extent/extent_int.h"

#include "base/check.h"
#include "base/clock.h"

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

void
judge_reset(struct disk *d)
{
	for (struct commit *c = d->batch; c; c = c->next)
		d->overlay[c->key_hash % OVERLAY_SLOTS] = NULL;
	d->batch = NULL;
	d->batch_end = &d->batch;
	d->after = NULL;
	d->after_end = &d->after;
	d->block_used = BLOCK_HEAD_BYTES;
	d->block_records = 0;
	d->batch_bytes = 0;
	atomic_store(&d->block_left, 1);
	atomic_store(&d->block_error, 0);
}

enum room
judge_room(const struct disk *d, size_t rec_bytes, bool last_stand)
{
	uint64_t log = d->geo.log_bytes, block = d->geo.block_bytes;
	uint64_t used = log_linear(d, d->next.lap, d->next.pos) - atomic_load(&d->trim_at);
	uint64_t limit = log / 5 * 4;

	if (rec_bytes == 0) /* a stamp: leaves room for an epoch block */
		limit = log - 2 * block;
	else if (last_stand)
		limit = log - (3 * block > log / 20 ? 3 * block : log / 20);
	if (used > limit)
		return ROOM_LOG_FULL;
	if (d->block_used + rec_bytes > block || d->block_records >= BLOCK_RECORDS_MAX)
		return ROOM_NEXT_BLOCK;
	return ROOM_YES;
}

/* The newest record of the block with this key, or NULL. */
static struct commit *
pending_find(const struct disk *d, const uint8_t *key, size_t len, uint32_t hash)
{
	if (!RULE_JUDGE_PENDING)
		return NULL;
	for (struct commit *c = d->overlay[hash % OVERLAY_SLOTS]; c; c = c->hash_next) {
		if (c->key_hash == hash && c->view.key_len == len && memcmp(c->view.key, key, len) == 0)
			return c;
	}
	return NULL;
}

bool
judge_is_pending(const struct disk *d, const uint8_t *key, size_t len)
{
	return pending_find(d, key, len, key_hash(key, len)) != NULL;
}

/* A key as it will be once the block is flushed. */
struct state {
	bool exists;
	bool depends; /* on the block */
	struct store_etag etag;
	uint64_t version;
};

static struct state
state_of(const struct disk *d, const uint8_t *key, size_t len, uint32_t hash)
{
	struct commit *c = pending_find(d, key, len, hash);
	const struct rec *r;

	if (c)
		return (struct state){ c->view.op == REC_PUT, true, c->view.etag, c->view.version };
	r = tree_find(d->tree, key, len);
	return r ? (struct state){ true, false, rec_etag(r), r->version } : (struct state){ 0 };
}

static bool
etag_in(const struct store_pre *pre, const struct store_etag *e)
{
	for (int i = 0; i < pre->etag_nr && i < STORE_PRE_ETAGS; i++) {
		if (pre->etags[i].parts == e->parts && memcmp(pre->etags[i].sum, e->sum, 16) == 0)
			return true;
	}
	return false;
}

static int
pre_check(const struct store_pre *pre, const struct state *s)
{
	switch (pre->kind) {
	case PRE_ABSENT:
		return s->exists ? -EEXIST : 0;
	case PRE_MATCH_ANY:
		return s->exists ? 0 : -ENOENT;
	case PRE_MATCH:
		return !s->exists ? -ENOENT : etag_in(pre, &s->etag) ? 0 : -ESTALE;
	case PRE_NONE_MATCH:
		return s->exists && etag_in(pre, &s->etag) ? -EEXIST : 0;
	case PRE_VERSION:
		return !s->exists ? -ENOENT : s->version == pre->version ? 0 : -ESTALE;
	default:
		return 0;
	}
}

/* Is anything of this bucket left in the index? */
static bool
bucket_has_objects(const struct disk *d, const uint8_t *bucket_key, size_t len)
{
	uint8_t first[2 + STORE_BUCKET_MAX];
	struct tree_cursor c;

	memcpy(first, bucket_key, len);
	first[0] = KEY_OBJECT;
	first[len] = 0;
	tree_cursor_init(&c, d->tree, tree_root(d->tree));
	return tree_seek(&c, first, len + 1, false) && c.key_len > len && memcmp(c.key, first, len + 1) == 0;
}

/* Does the block hold a record of this bucket, or of the bucket itself? */
static bool
bucket_is_pending(const struct disk *d, const struct commit *c)
{
	for (const struct commit *b = d->batch; RULE_JUDGE_PENDING && b; b = b->next) {
		const uint8_t *key = b->bucket_key ? b->bucket_key : b->view.key;
		size_t len = b->bucket_key ? b->bucket_key_len : b->view.key_len;

		if (len == c->view.key_len && memcmp(key, c->view.key, len) == 0)
			return true;
	}
	return false;
}

/* ---- uploads ---- */

/* The upload that c belongs to is there, and of this bucket, not of an earlier one of its name.  0 or
 * -ENOENT. */
static int
upload_check(const struct disk *d, const struct commit *c, uint64_t bucket_version, bool *depends)
{
	struct state u =
		state_of(d, c->upload_key, c->upload_key_len, key_hash(c->upload_key, c->upload_key_len));

	*depends |= u.depends;
	return u.exists && u.version > bucket_version ? 0 : -ENOENT;
}

/* Does the block hold a part of this upload? */
static bool
part_is_pending(const struct disk *d, const uint8_t *id)
{
	for (const struct commit *b = d->batch; RULE_JUDGE_PENDING && b; b = b->next) {
		if (b->view.key[0] == KEY_PART && memcmp(b->view.key + 1, id, CHUNK_ID_BYTES) == 0)
			return true;
	}
	return false;
}

/* The view of c: what is there, with other attributes. */
static enum verdict
make_attrs(struct disk *d, struct commit *c)
{
	const uint8_t *key = c->view.key;
	size_t len = c->view.key_len;
	const struct rec *r;

	/* What is pending shall be judged by what it became. */
	if (pending_find(d, key, len, c->key_hash))
		return V_LATER;
	r = tree_find(d->tree, key, len);
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

/* Everything that speaks against c or makes it needless; 0: it is to be packed. */
static enum verdict
judge_state(struct disk *d, struct commit *c, const struct state *s)
{
	bool depends = s->depends;
	uint64_t bucket_version = 0;

	if (c->bucket_key) {
		uint32_t hash = key_hash(c->bucket_key, c->bucket_key_len);
		struct state b = state_of(d, c->bucket_key, c->bucket_key_len, hash);

		depends |= b.depends;
		bucket_version = b.version;
		if (!b.exists) {
			c->result = -ENXIO;
			return depends ? V_AFTER : V_NOW;
		}
	}
	switch (c->kind) {
	case COMMIT_BUCKET_MAKE:
		c->result = s->exists ? -EEXIST : 0;
		break;
	case COMMIT_BUCKET_REMOVE:
		if (bucket_is_pending(d, c))
			return V_LATER;
		c->result = !s->exists                                            ? -ENXIO
			    : bucket_has_objects(d, c->view.key, c->view.key_len) ? -ENOTEMPTY
										  : 0;
		break;
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
		c->result = upload_check(d, c, bucket_version, &depends);
		break;
	case COMMIT_COMPLETE:
		c->result = upload_check(d, c, bucket_version, &depends);
		if (c->result == 0 && part_is_pending(d, c->upload_key + c->upload_key_len - CHUNK_ID_BYTES))
			return V_LATER;
		if (c->result == 0)
			c->result = pre_check(&c->pre, s);
		if (c->result == 0)
			c->result = upload_match(d, ((const struct chunk_ref *)c->view.entries)->id, c->parts,
						 (struct chunk_ref *)(uintptr_t)c->view.entries,
						 c->view.entry_nr, false, &c->bad);
		break;
	case COMMIT_ATTRS: {
		enum verdict v = make_attrs(d, c);

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
put_back(struct disk *d, struct commit *c)
{
	rec_drop(d->tree, c->rec);
	c->rec = NULL;
	if (c->dead)
		dead_put(d, c->dead);
	c->dead = NULL;
	tree_unreserve(d->tree, 1);
}

/* Memory for publishing c, all of it, before anything is written.  0 or -ENOSPC. */
static int
set_aside(struct disk *d, struct commit *c, bool replaces)
{
	bool is_put = c->view.op == REC_PUT;

	/* The tree keeps back what deletes need. */
	if ((is_put ? tree_reserve(d->tree, 1) : tree_reserve_deletes(d->tree, 1)) < 0)
		return -ENOSPC;
	if (is_put)
		c->rec = rec_new(d->tree, &c->view, c->view.entries);
	if (replaces)
		c->dead = dead_get(d);
	if ((!is_put || c->rec) && (!replaces || c->dead))
		return 0;
	put_back(d, c);
	return -ENOSPC;
}

/* The same for c and the records that go with it: all, or none. */
static int
set_aside_all(struct disk *d, struct commit *c, bool replaces)
{
	int e = 0;

	for (struct commit *a = c->also; a; a = a->also) {
		struct state s;

		a->key_hash = key_hash(a->view.key, a->view.key_len);
		s = state_of(d, a->view.key, a->view.key_len, a->key_hash);
		a->is_idle = e < 0 || (a->view.op == REC_DELETE && !s.exists);
		if (!a->is_idle)
			e = set_aside(d, a, s.exists);
		a->is_idle |= e < 0;
	}
	if (e == 0)
		e = set_aside(d, c, replaces);
	for (struct commit *a = c->also; e < 0 && a; a = a->also) {
		if (!a->is_idle)
			put_back(d, a);
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
number_and_pack(struct disk *d, struct commit *c)
{
	c->view.version = atomic_fetch_add(&d->st->version, 1) + 1;
	if (c->rec)
		c->rec->version = c->view.version;
	judge_pack(d, c);
}

void
judge_pack(struct disk *d, struct commit *c)
{
	/* Mapped entries are in memory, but in the record only their place. */
	d->block_used += (uint32_t)rec_encode(d->block + d->block_used, &c->view);
	d->block_records++;
	c->next = NULL;
	*d->batch_end = c;
	d->batch_end = &c->next;
	c->hash_next = d->overlay[c->key_hash % OVERLAY_SLOTS];
	d->overlay[c->key_hash % OVERLAY_SLOTS] = c;
	if (c->is_gc || c->is_also)
		return;
	/* Counted first, so that a completion that comes now finds the share; taken back when there is none
	 * to come. */
	atomic_fetch_add(&d->block_left, 1);
	if (atomic_fetch_or(&c->state, CS_IN_BLOCK) & CS_DATA_OVER)
		atomic_fetch_sub(&d->block_left, 1);
}

static enum verdict
stall(struct disk *d, struct commit *c)
{
	uint64_t now = clock_ns();

	if (c->came_ns == 0)
		c->came_ns = now;
	if (now - c->came_ns < STALL_NS) {
		d->have_stalled = true;
		return V_LATER;
	}
	c->result = -EAGAIN;
	return V_NOW;
}

static enum verdict
judge_one(struct disk *d, struct commit *c)
{
	bool is_delete = c->view.op == REC_DELETE;
	struct state s;
	enum verdict v;

	if (atomic_load(&c->data_error)) {
		/* Nothing of it is in the log.  But for want of space, the disk has failed; so will
		 * everything else. */
		c->result = atomic_load(&c->data_error) == -ENOSPC ? -ENOSPC : -ECANCELED;
		return V_NOW;
	}
	if (RULE_LARGE_FLUSHED_FIRST && c->flush_ticket > d->flush_done) {
		d->have_unflushed = true;
		return V_LATER;
	}
	s = state_of(d, c->view.key, c->view.key_len, c->key_hash);
	v = judge_state(d, c, &s);
	if (v != V_PACKED)
		return v;
	switch (judge_room(d, encoded_bytes_all(c), is_delete)) {
	case ROOM_NEXT_BLOCK:
		return V_FULL;
	case ROOM_LOG_FULL:
		d->log_is_full = true;
		return stall(d, c);
	default:
		break;
	}
	if (!is_delete && !(c->view.flags & REC_FLUSHED) && c->view.body == BODY_EXTENTS) {
		if (d->batch_bytes && d->batch_bytes + c->view.size_bytes > TAIL_BYTES_MAX)
			return V_FULL;
		d->batch_bytes += c->view.size_bytes;
	}
	c->result = set_aside_all(d, c, s.exists);
	if (c->result < 0) {
		/* A delete makes room: it waits for what is on its way back from readers and snapshots. */
		if (is_delete)
			return stall(d, c);
		return s.depends ? V_AFTER : V_NOW;
	}
	if (c->kind == COMMIT_DELETE)
		c->result = 1;
	for (struct commit *a = c->also; a; a = a->also) {
		if (!a->is_idle)
			number_and_pack(d, a);
	}
	number_and_pack(d, c);
	return V_PACKED;
}

void
judge_queue(struct disk *d)
{
	d->have_stalled = d->log_is_full = d->have_unflushed = false;
	d->queue_end = &d->queue;
	for (struct commit *c; (c = *d->queue_end) != NULL;) {
		struct commit *next = c->next;
		enum verdict v = judge_one(d, c);

		if (v == V_LATER || v == V_FULL) {
			d->queue_end = &c->next;
			if (v == V_FULL)
				break;
			continue;
		}
		*d->queue_end = next;
		if (v == V_NOW) {
			commit_answer(c, c->result);
		} else if (v == V_AFTER) {
			c->next = NULL;
			*d->after_end = c;
			d->after_end = &c->next;
		}
	}
	while (*d->queue_end)
		d->queue_end = &(*d->queue_end)->next;
}
