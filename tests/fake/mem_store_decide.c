/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: decisions by the object model (model/decide.h), to which it shows its index and its uploads. */
#include "tests/fake/mem_store_int.h"

#include "base/age_clock.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"

#include <errno.h>
#include <string.h>

struct mem_view {
	struct model_view view;
	struct mem_store *st;
	const struct version *like; /* bucket and key */
	const uint8_t *id;          /* of the upload, or NULL */
	bool minds_gate;            /* true: a closed gate of the bucket ends the decision */
	unsigned copies;            /* number of copies for which the key was placed; 0: not checked */
};

static struct mem_view *
view_of(struct model_view *v)
{
	return container_of(v, struct mem_view, view);
}

struct model_record
mem_show(const struct version *v)
{
	return (struct model_record){
		.version = v->number,
		.size_bytes = v->size_bytes,
		.crc64 = v->crc64,
		.etag = v->etag,
		.copies = v->copies,
#define FIELD(name, type, kinds, places)
#define BYTES(name, type, len, len_type, max, kinds, places)
#define VIEW 0
#define HERE(name, type, at) .name = v->name,
#include "model/record.def"
	};
}

struct store_meta
mem_meta(const struct version *v)
{
	return (struct store_meta){
		.attrs = v->attrs,
#define META 0
#define HERE(name, type, at) .name = v->name,
#include "model/record.def"
	};
}

void
mem_take(struct version *v, const struct store_meta *m)
{
#define META 0
#define HERE(name, type, at) v->name = m->name;
#include "model/record.def"
	if (!v->mtime_ns)
		v->mtime_ns = clock_wall_ns();
}

bool
mem_is_there(const struct version *v, uint64_t now_ns)
{
	const struct model_record shown = v ? mem_show(v) : (struct model_record){ 0 };

	return v && model_is_there(&shown, now_ns);
}

static int
show(const struct version *v, struct model_record *ret_record)
{
	if (v)
		*ret_record = mem_show(v);
	return v != NULL;
}

static int
find(struct model_view *v, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	const struct mem_view *mv = view_of(v);
	const struct version *b = mem_bucket(mv->st, mv->like);
	struct mem_upload **link =
		kind == MODEL_UPLOAD || kind == MODEL_PART ? mem_upload_find(mv->st, mv->like, mv->id) : NULL;

	/* A key that was placed for another number of copies is another key. */
	if (kind != MODEL_BUCKET && mv->copies && (mv->copies > 1) != (b->copies > 1))
		return 0;
	switch (kind) {
	case MODEL_BUCKET:
		return b && b->gate && mv->minds_gate ? b->gate : show(b, ret_record);
	case MODEL_BUCKET_ATTRS:
		ret_record->version = b->battrs_number;
		return b->battrs_number != 0;
	case MODEL_UPLOAD:
		if (link)
			*ret_record = (struct model_record){ .version = (*link)->number,
							     .size_bytes = mem_upload_bytes(*link) };
		return link != NULL;
	case MODEL_PART:
		return link ? show((*link)->part[number], ret_record) : 0;
	default:
		return show(mem_object(mv->st, mv->like), ret_record);
	}
}

static int
has_any(struct model_view *v, enum model_kind kind, uint64_t after)
{
	const struct mem_view *mv = view_of(v);
	const struct version *b = mv->like;

	return kind == MODEL_OBJECT ? mem_bucket_holds(mv->st, b->bucket, b->bucket_len)
				    : mem_uploads_any(mv->st, b->bucket, b->bucket_len);
}

bool
mem_look(struct mem_store *st, const struct version *like, const uint8_t *id, const struct model_op *op,
	 struct model_answer *ret)
{
	struct mem_view mv = { .view = { find, has_any }, .st = st, .like = like, .id = id };
	struct model_op now = *op;

	now.now_ns = age_clock_ns();
	return model_decide(&now, &mv.view, ret);
}

bool
mem_decide(struct mem_store *st, struct job *j, struct model_op op, struct model_answer *ret)
{
	const bool is_key = op.act < MODEL_MAKE_BUCKET;
	struct mem_view mv = { .view = { find, has_any },
			       .st = st,
			       .like = j->of ? j->of : j->v,
			       .id = j->id,
			       .minds_gate = is_key };

	if (is_key && st->member && mem_member_has_slots(st) && !j->is_sent)
		op.copies = mv.copies = 1 + j->has_two;
	op.now_ns = age_clock_ns();
	if (!model_decide(&op, &mv.view, ret)) {
		j->result = ret->result;
		return false;
	}
	if (op.size_bytes > st->size_bytes - st->used_bytes)
		j->result = -ENOSPC;
	else
		j->result = is_key && !j->is_sent ? mem_quota_change(st, mv.like, &ret->usage) : 0;
	return j->result == 0;
}

/* A view of the parts of an object that a completion has made. */
struct made_view {
	struct model_view view;
	const struct version *v;
};

static int
find_made(struct model_view *view, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	const struct version *v = container_of(view, struct made_view, view)->v;

	for (uint32_t i = 0; i < v->part_nr; i++) {
		const struct store_part *part = &v->parts[i];

		if (part->number != number)
			continue;
		*ret_record = (struct model_record){ .version = part->version,
						     .size_bytes = part->size_bytes,
						     .crc64 = part->crc64,
						     .etag = part->etag };
		return 1;
	}
	return 0;
}

bool
mem_was_done(const struct version *v, const uint8_t *id, struct store_complete *c)
{
	struct made_view mv = { .view.find = find_made, .v = v };
	struct model_record object;

	return mem_is_there(v, age_clock_ns()) && show(v, &object) && memcmp(v->id, id, sizeof v->id) == 0 &&
	       model_was_done(c, &object, v->mtime_ns, v->part_nr, &mv.view);
}
