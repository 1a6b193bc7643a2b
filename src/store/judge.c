/*
 * The leader fills a block: preconditions judged in log order, against the index and the records of the
 * block; memory for publishing set aside; the record encoded.  Everything here runs as leader.
 */
#include "store/store_int.h"

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

/* Everything that speaks against c or makes it needless; 0: it is to be packed. */
static enum verdict
judge_state(struct disk *d, struct commit *c, const struct state *s)
{
	bool depends = s->depends;

	if (c->bucket_key) {
		uint32_t hash = key_hash(c->bucket_key, c->bucket_key_len);
		struct state b = state_of(d, c->bucket_key, c->bucket_key_len, hash);

		depends |= b.depends;
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
	default:
		c->result = pre_check(&c->pre, s);
		break;
	}
	if (c->result == 0 && (c->kind != COMMIT_DELETE || s->exists))
		return V_PACKED;
	return depends ? V_AFTER : V_NOW;
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
	rec_drop(d->tree, c->rec);
	c->rec = NULL;
	if (c->dead)
		dead_put(d, c->dead);
	c->dead = NULL;
	tree_unreserve(d->tree, 1);
	return -ENOSPC;
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
	if (c->is_gc)
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
	switch (judge_room(d, rec_encoded_bytes(&c->view), is_delete)) {
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
	c->result = set_aside(d, c, s.exists);
	if (c->result < 0) {
		/* A delete makes room: it waits for what is on its way back from readers and snapshots. */
		if (is_delete)
			return stall(d, c);
		return s.depends ? V_AFTER : V_NOW;
	}
	/* One number for the record, its memory form and the answer; the record was made with none. */
	c->view.version = atomic_fetch_add(&d->st->version, 1) + 1;
	if (c->rec)
		c->rec->version = c->view.version;
	if (c->kind == COMMIT_DELETE)
		c->result = 1;
	judge_pack(d, c);
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
