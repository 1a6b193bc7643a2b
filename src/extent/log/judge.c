/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader fills a block: it judges preconditions in log order, against the index and the records of the
 * block, allocates the memory for publishing, and encodes the records. All functions run on the leader.
 */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"
#include "extent/log/decide.h"
#include "extent/log/judge.h"
#include "extent/log/parts.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* ---- gates ---- */

/* Returns the closed gate of the bucket with this key; NULL: the gate is open. */
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

/* ---- records made from existing ones ---- */

/* Makes the record of c: the published one with other attributes. */
static void
make_attrs(struct vol *vol, struct commit *c)
{
	const uint8_t *key = c->view.key;
	size_t len = c->view.key_len;
	const struct rec *r = tree_find(vol->tree, key, len);

	rec_view_of(r, key, len, &c->view);
	c->view.attrs = c->attrs;
	c->view.attrs_len = c->attrs_len;
	if (r->body != BODY_INLINE) {
		/* Its data was flushed before the record was published. */
		c->view.flags |= REC_SHARED | REC_FLUSHED;
		c->view.data_version = rec_data_version(r);
	}
}

/* Makes the records of c: the bucket with another number of copies, and its attributes with newer
 * versions. Attributes that do not exist, or belong to an earlier bucket, get a removal. */
static void
make_copies(struct vol *vol, struct commit *c)
{
	const uint8_t *key = c->view.key;
	size_t len = c->view.key_len;
	const struct rec *b = tree_find(vol->tree, key, len), *r;

	rec_view_of(b, key, len, &c->view);
	c->view.copies = c->copies;
	for (struct commit *a = c->also; a; a = a->also) {
		const struct rec_view gone = { .op = REC_DELETE,
					       .key = a->view.key,
					       .key_len = a->view.key_len };

		r = tree_find(vol->tree, gone.key, gone.key_len);
		if (r && model_is_of(r->version, b->version))
			rec_view_of(r, gone.key, gone.key_len, &a->view);
		else
			a->view = gone;
	}
}

/* Judges a repair. The repair is accepted if the record still has the version to be repaired, or if a part
 * that an object names is missing. It waits while the block has a record of the key. */
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

/* Decides a commit of the object model, and prepares its records. */
static enum verdict
judge_change(struct vol *vol, struct commit *c, struct model_answer *a)
{
	enum verdict refused, v = decide_commit(vol, c, a, &refused);

	if (v != V_PACKED) {
		if (v != V_LATER && c->kind == COMMIT_GATE_CLOSE && c->result == 0)
			c->result = gate_close(vol, c, -EAGAIN);
		return v;
	}
	c->result = c->kind == COMMIT_BUCKET_MAKE ? usage_judge_bucket(vol, c) : 0;
	if (c->result == 0 && c->is_gated)
		c->result = gate_close(vol, c, -ENXIO);
	if (c->kind == COMMIT_ATTRS)
		make_attrs(vol, c);
	if (c->kind == COMMIT_BUCKET_COPIES)
		make_copies(vol, c);
	return c->result < 0 ? refused : V_PACKED;
}

/* Judges a commit by its partition, the gates, and the object model. V_PACKED: *a has the change. */
static enum verdict
judge_state(struct vol *vol, struct commit *c, struct model_answer *a)
{
	uint8_t bucket[1 + STORE_BUCKET_MAX];
	size_t bucket_len = commit_bucket(c, bucket);
	const struct gate *g = bucket_len ? gate_find(vol, bucket, bucket_len) : NULL;
	struct key_state s;

	*a = (struct model_answer){ 0 };
	c->result = vol->slots ? slots_judge(vol, c) : 0;
	if (c->result == 0 && g)
		c->result = g->error;
	if (c->result < 0)
		return V_NOW;
	if (c->kind == COMMIT_SLOTS)
		return slots_command(vol, c);
	if (c->kind == COMMIT_GATE_OPEN) {
		gate_open(vol, c);
		return V_NOW;
	}
	if ((enum model_act)c->kind < MODEL_ACTS && !(c->sent && c->sent->is_repair))
		return judge_change(vol, c, a);
	if (bucket_len) {
		s = key_state(vol, bucket, bucket_len, key_hash(bucket, bucket_len));
		c->result = s.exists ? 0 : -ENXIO;
		if (c->result < 0)
			return s.depends ? V_AFTER : V_NOW;
	}
	s = key_state(vol, c->view.key, c->view.key_len, c->key_hash);
	a->result = 1;
	a->replaces = s.exists;
	a->old = s.record;
	return c->sent ? judge_repair(vol, c) : V_PACKED;
}

/* Allocates the memory for publishing c and the further records of its operation: for all, or for none. */
static int
set_aside_all(struct vol *vol, struct commit *c, bool replaces)
{
	int e = 0;

	for (struct commit *a = c->also; a; a = a->also) {
		struct key_state s;

		a->key_hash = key_hash(a->view.key, a->view.key_len);
		s = key_state(vol, a->view.key, a->view.key_len, a->key_hash);
		a->is_idle = e < 0 || (a->view.op == REC_DELETE && !s.exists);
		if (!a->is_idle)
			e = commit_set_aside(vol, a, s.exists);
		a->is_idle |= e < 0;
	}
	if (e == 0)
		e = commit_set_aside(vol, c, replaces);
	/* The last step: a bucket that will not be made must not be in the ledger. */
	if (e == 0 && c->kind == COMMIT_BUCKET_MAKE && usage_make(vol, c) < 0) {
		commit_put_back(vol, c);
		e = -ENOSPC;
	}
	for (struct commit *a = c->also; e < 0 && a; a = a->also) {
		if (!a->is_idle)
			commit_put_back(vol, a);
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

/* Sets the version of c, also in its memory form, which was made without a version. */
static void
number(struct vol *vol, struct commit *c)
{
	c->view.version = c->sent ? slots_version(vol, c->sent) : atomic_fetch_add(&vol->version, 1) + 1;
	if (c->rec)
		c->rec->version = c->view.version;
}

/* Numbers and packs the further records of the operation, then c. A bucket is numbered first, because its
 * attributes must have higher versions. */
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

/* Lets a commit wait for space, or for room in the log. */
static enum verdict
stall(struct vol *vol, struct commit *c)
{
	return stall_for(vol, c, c->view.op == REC_DELETE ? 2 * STALL_NS : STALL_NS);
}

/* Returns true if the superblocks have the version that the records of c need; otherwise requests this
 * version. */
static bool
version_is_written(struct vol *vol, const struct commit *c)
{
	uint32_t needed = FMT_VERSION;

	for (; c; c = c->also) {
		uint32_t version = rec_version(c->view.flags);

		needed = version > needed ? version : needed;
	}
	if (needed <= FMT_VERSION || needed <= atomic_load(&vol->disk.records_version) || !RULE_VERSION_FIRST)
		return true;
	vol_ask_version(vol, needed);
	return needed <= atomic_load(&vol->disk.records_version);
}

/* Refuses a commit because the snapshots of the larger index would lack space; lets it wait if space may
 * become free. */
static enum verdict
no_room(struct vol *vol, struct commit *c)
{
	bool coming = atomic_load(&vol->disk.segs_coming);
	enum verdict v = V_NOW;

	/* The growth by the records in the block is known after they are published. */
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
	bool is_delete = commit_is_no_growth(c);
	uint64_t data_bytes = 0;
	struct model_answer a;
	size_t bytes;
	enum verdict v;

	if (atomic_load(&c->data_error)) {
		int e = atomic_load(&c->data_error);

		/* The log has no record of the commit. After other errors the disk has failed, and all
		 * later commits fail. */
		c->result = e == -ENOSPC || e == -EAGAIN ? e : -ECANCELED;
		return V_NOW;
	}
	if (RULE_LARGE_FLUSHED_FIRST && c->flush_ticket > vol->flush.done) {
		vol->leader.have_unflushed = true;
		return V_LATER;
	}
	v = judge_state(vol, c, &a);
	/* A closed gate or a freeze ends soon, and frees no space for which a delete could wait. */
	if (v == V_NOW && c->result == -EAGAIN && commit_has_bucket(c))
		return stall_for(vol, c, STALL_NS);
	if (v != V_PACKED)
		return v;
	if (!version_is_written(vol, c))
		return stall(vol, c);
	c->result = c->sent ? slots_reserve(vol) : usage_judge(vol, c, &a.usage);
	/* The result may depend on records in the block, whose flush may fail. */
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
	c->result = set_aside_all(vol, c, a.replaces);
	if (c->result < 0) {
		/* A delete frees memory, so it waits for memory that readers and snapshots still use. */
		if (is_delete)
			return stall(vol, c);
		atomic_fetch_add(&vol->disk.stats.index_refused, 1);
		return vol->block.records ? V_AFTER : V_NOW;
	}
	/* Only the data of packed records counts: an empty block that counts as full would never be
	 * written, and the queue would wait for it. */
	vol->block.data_bytes += data_bytes;
	if (c->kind == COMMIT_DELETE)
		c->result = a.result;
	number_and_pack(vol, c);
	if (!c->sent)
		usage_pend(vol, c, &a.usage);
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
