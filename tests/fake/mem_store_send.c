/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store in memory as an engine of a set: the walk over its keys, and sends from one engine to another.
 *
 * A send compares the records of the key in both engines and removes the first difference with one operation of the target; then
 * it compares again.  So a cut, or a failure, can happen between any two operations.
 */
#include "tests/fake/mem_store_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- comparison ---- */

static bool
same_bytes(const struct version *v, const struct version *w)
{
	bool is_same = true;

#define META 0
#define BYTES(name, ...)
#define HERE(name, type, at) is_same &= memcmp(&v->name, &w->name, sizeof v->name) == 0;
#include "model/record.def"
	return is_same && v->data_version == w->data_version && v->size_bytes == w->size_bytes &&
	       v->crc64 == w->crc64 && v->part_nr == w->part_nr;
}

static bool
same(const struct version *v, const struct version *w)
{
	return v && w && v->number == w->number && same_bytes(v, w) && v->attrs_len == w->attrs_len &&
	       memcmp(v->attrs, w->attrs, v->attrs_len) == 0;
}

/* ---- the walk ---- */

#define WALK_SLICE 256

/* Returns true if the other engine lacks a record of that name, or has a different one. */
static bool
differs(const struct mem_store *st, struct mem_store *other, const struct mem_name *n)
{
	const struct version *v = mem_lookup(st, n->bucket, n->bucket_len, n->key, n->key_len);

	if (v && !same(v, mem_lookup(other, n->bucket, n->bucket_len, n->key, n->key_len)))
		return true;
	for (const struct mem_upload *u = st->uploads; u; u = u->next) {
		bool is_here = mem_compare(MEM_NAME(u), *n) == 0;
		struct version *like = mem_version_new(n->bucket, n->bucket_len, n->key, n->key_len);
		struct mem_upload **there = is_here ? mem_upload_find(other, like, u->id) : NULL;
		bool is_other = is_here && !there;

		mem_version_put(NULL, like);
		for (unsigned i = 0; there && !is_other && i <= STORE_PART_NR_MAX; i++)
			is_other = u->part[i] && !same(u->part[i], (*there)->part[i]);
		if (is_other)
			return true;
	}
	return false;
}

/* Finds the next name after w->at of keys with so many copies.  Returns false if there is none. */
static bool
next_name(const struct mem_store *st, const struct store_walk *w, struct mem_name *n)
{
	struct mem_name at = { .bucket = (const char *)w->at };
	bool there = false;

	if (w->at_len) {
		at.bucket_len = strlen(at.bucket);
		at.key = at.bucket + at.bucket_len + 1;
		at.key_len = w->at_len - at.bucket_len - 1;
	}
	for (size_t i = 0; i < st->nr; i++) {
		const struct version *v = st->index[i], *b = mem_lookup(st, v->bucket, v->bucket_len, "", 0);

		if (!v->key_len || !b || (b->copies > 1) != w->at_two ||
		    (w->at_len && mem_compare(MEM_NAME(v), at) <= 0))
			continue;
		/* The index is in order, so the name is the first. */
		*n = MEM_NAME(v);
		there = true;
		break;
	}
	for (const struct mem_upload *u = st->uploads; u; u = u->next) {
		const struct version *b = mem_lookup(st, u->bucket, u->bucket_len, "", 0);

		if (!b || (b->copies > 1) != w->at_two || (w->at_len && mem_compare(MEM_NAME(u), at) <= 0))
			continue;
		if (!there || mem_compare(MEM_NAME(u), *n) < 0)
			*n = MEM_NAME(u);
		there = true;
	}
	return there;
}

int
mem_walk(struct store_port *p, struct store_walk *w)
{
	struct mem_store *st = mem_port(p)->st,
			 *other = w->differs_from ? mem_port(w->differs_from)->st : NULL;
	int given = 0;

	mem_on_port(mem_port(p));
	w->more = true;
	for (int i = 0; i < WALK_SLICE; i++) {
		struct mem_name n;
		struct store_key k;

		if (!next_name(st, w, &n)) {
			if (w->at_two) {
				w->more = false;
				return given;
			}
			w->at_two = true;
			w->at_len = 0;
			continue;
		}
		memcpy(w->at, n.bucket, n.bucket_len);
		w->at[n.bucket_len] = 0;
		memcpy(w->at + n.bucket_len + 1, n.key, n.key_len);
		w->at_len = (uint16_t)(n.bucket_len + 1 + n.key_len);
		if ((w->slots && !mem_is_of(st, w->slots, n.bucket, n.bucket_len, n.key, n.key_len)) ||
		    (other && !differs(st, other, &n)))
			continue;
		k = (struct store_key){ (const char *)w->at, (const char *)w->at + n.bucket_len + 1,
					(uint16_t)n.bucket_len, (uint16_t)n.key_len, w->at_two ? 2 : 1 };
		given++;
		if (!w->key(w, &k))
			return given;
	}
	return given;
}

/* ---- sending ---- */

/* One difference between two engines, as the step that removes it. */
enum step { STEP_NONE, STEP_PUT, STEP_REMOVE, STEP_MAKE_UPLOAD, STEP_PUT_PART, STEP_REMOVE_PART, STEP_ABORT };

struct send {
	struct store_send *s;
	struct mem_port *from, *to; /* from NULL: removes all records */
	struct store_op op;         /* step at the target */
	bool is_starting;
	struct version *like; /* bucket and key */
	enum step step;
	struct version *v;    /* new record of the target */
	struct mem_upload *u; /* likewise */
	uint64_t born_ns;     /* creation time of the bucket in both engines, for a new upload */
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint32_t number;
	bool has_bytes; /* the target has the bytes of v */
};

static void next_step(struct send *sd);

static void
finish(struct send *sd, int result)
{
	struct store_send *s = sd->s;
	bool is_starting = sd->is_starting;

	if (sd->from)
		sd->from->inflight--;
	sd->to->inflight--;
	mem_version_put(NULL, sd->like);
	free(sd);
	s->priv = NULL;
	s->op.result = result;
	if (!is_starting)
		s->op.done(&s->op);
}

/* Makes an error of the target the error of the send. */
static int
word_of(const struct send *sd, int error)
{
	if (mem_member_failed(sd->to->st))
		return -EROFS;
	switch (error) {
	case -ENXIO:
	case -ENOENT:
	case -EBADR:
	case -ECANCELED:
		return -EAGAIN;
	case -ESTALE:
		return sd->s->is_repair ? -ESTALE : -EAGAIN;
	default:
		return error;
	}
}

static struct version *
object_of(const struct send *sd, const struct mem_store *st)
{
	return mem_object(st, sd->like);
}

static bool
is_of_key(const struct send *sd, const struct mem_upload *u)
{
	return mem_compare(MEM_NAME(u), MEM_NAME(sd->like)) == 0 &&
	       (!sd->s->only_upload || memcmp(u->id, sd->s->only_upload, sizeof u->id) == 0);
}

static struct mem_upload *
upload_of(const struct send *sd, struct mem_store *st, const uint8_t *id)
{
	struct mem_upload **link = mem_upload_find(st, sd->like, id);

	return link ? *link : NULL;
}

/* Makes the version for the target: of the source, with the bytes of the source, or, has_bytes, of the target. */
static int
take(struct send *sd, const struct version *from, const struct version *to, bool has_bytes)
{
	const struct version *bytes = has_bytes ? to : from;
	struct version *v;

	sd->has_bytes = has_bytes;
	if (!has_bytes && from->bad_granule != NO_GRANULE)
		return -EBADMSG;
	v = mem_version_copy(bytes);
	v->bad_granule = bytes->bad_granule;
	v->number = from->number;
	v->data_version = from->data_version;
	if (has_bytes && !sd->s->is_repair) {
		free(v->attrs);
		v->attrs = mem_copy_of(from->attrs, from->attrs_len);
		v->attrs_len = from->attrs_len;
	}
	sd->v = v;
	return 0;
}

/* ---- differences ---- */

static int
find_object(struct send *sd, const struct version *from, const struct version *to)
{
	if (sd->s->only_upload || (!from && !to) || same(from, to))
		return 0;
	if (!from) {
		sd->step = STEP_REMOVE;
		return 0;
	}
	sd->step = STEP_PUT;
	return take(sd, from, to, to && same_bytes(from, to));
}

static int
find_part(struct send *sd, const struct mem_upload *from, const struct mem_upload *to)
{
	for (uint32_t i = 0; i <= STORE_PART_NR_MAX; i++) {
		if ((!from->part[i] && !to->part[i]) || same(from->part[i], to->part[i]))
			continue;
		sd->number = i;
		memcpy(sd->id, to->id, sizeof sd->id);
		sd->step = from->part[i] ? STEP_PUT_PART : STEP_REMOVE_PART;
		return from->part[i] ? take(sd, from->part[i], NULL, false) : 0;
	}
	return 0;
}

static int
find_upload(struct send *sd, struct mem_store *from, struct mem_store *to)
{
	const struct version *b = from ? mem_bucket(from, sd->like) : NULL, *next = mem_bucket(to, sd->like);

	/* Uploads of another bucket of the same name count as absent. */
	if (!b || !next || b->mtime_ns != next->mtime_ns)
		from = NULL;
	sd->born_ns = from ? b->mtime_ns : 0;
	for (struct mem_upload *u = from ? from->uploads : NULL; u; u = u->next) {
		struct mem_upload *there = is_of_key(sd, u) ? upload_of(sd, to, u->id) : NULL;
		int e;

		if (!is_of_key(sd, u))
			continue;
		if (!there) {
			sd->u = mem_copy_of(u, sizeof *u);
			memset(sd->u->part, 0, sizeof sd->u->part);
			sd->u->attrs = mem_copy_of(u->attrs, u->attrs_len);
			sd->step = STEP_MAKE_UPLOAD;
			return 0;
		}
		e = find_part(sd, u, there);
		if (e < 0 || sd->step)
			return e;
	}
	for (struct mem_upload *u = to->uploads; u; u = u->next) {
		if (!is_of_key(sd, u) || (from && upload_of(sd, from, u->id)))
			continue;
		memcpy(sd->id, u->id, sizeof sd->id);
		sd->step = STEP_ABORT;
		return 0;
	}
	return 0;
}

/* ---- damages ---- */

static bool
same_version(const struct version *v, const struct version *w)
{
	return v && w && v->number == w->number && v->data_version == w->data_version;
}

static int
find_damage(struct send *sd, struct mem_store *from, struct mem_store *to)
{
	const struct version *v = object_of(sd, from), *w = object_of(sd, to);

	if (sd->s->only_upload &&
	    (!upload_of(sd, from, sd->s->only_upload) || !upload_of(sd, to, sd->s->only_upload)))
		return -ESTALE;
	if (!sd->s->only_upload && (v || w)) {
		if (!same_version(v, w))
			return -ESTALE;
		if (w->bad_granule != NO_GRANULE) {
			sd->step = STEP_PUT;
			return take(sd, v, w, false);
		}
	}
	for (struct mem_upload *u = to->uploads; u && !sd->s->only_object; u = u->next) {
		const struct mem_upload *there = is_of_key(sd, u) ? upload_of(sd, from, u->id) : NULL;

		for (uint32_t i = 0; there && i <= STORE_PART_NR_MAX; i++) {
			if (!same_version(there->part[i], u->part[i]) ||
			    u->part[i]->bad_granule == NO_GRANULE)
				continue;
			sd->number = i;
			memcpy(sd->id, u->id, sizeof sd->id);
			sd->step = STEP_PUT_PART;
			return take(sd, there->part[i], u->part[i], false);
		}
	}
	return 0;
}

/* ---- a step ---- */

static void
put_object(struct mem_store *st, struct job *j, struct send *sd)
{
	const struct version *there = object_of(sd, st);

	if (sd->s->is_repair && !same_version(there, sd->v)) {
		j->result = -ESTALE;
		return;
	}
	if (sd->v->size_bytes > st->size_bytes - st->used_bytes + (there ? there->size_bytes : 0)) {
		j->result = -ENOSPC;
		return;
	}
	mem_index_set(st, sd->v);
	sd->v = NULL;
}

static void
put_part(struct mem_store *st, struct job *j, struct send *sd)
{
	struct mem_upload *u = upload_of(sd, st, sd->id);

	if (!u || (sd->s->is_repair && !same_version(u->part[sd->number], sd->v)))
		j->result = u ? -ESTALE : -ENOENT;
	else if (sd->v->size_bytes > st->size_bytes - st->used_bytes)
		j->result = -ENOSPC;
	else {
		mem_part_set(st, u, sd->number, sd->v);
		sd->v = NULL;
	}
}

static void
step_work(struct mem_store *st, struct job *j)
{
	struct send *sd = container_of(j->op, struct send, op);
	const struct version *b = mem_bucket(st, sd->like);
	struct mem_upload *u;

	j->result = b ? b->gate : -ENXIO;
	if (j->result < 0)
		return;
	switch (sd->step) {
	case STEP_PUT:
		put_object(st, j, sd);
		break;
	case STEP_REMOVE:
		if (object_of(sd, st))
			mem_index_remove(st, object_of(sd, st));
		break;
	case STEP_MAKE_UPLOAD:
		if (b->mtime_ns != sd->born_ns) {
			j->result = -ESTALE;
			break;
		}
		/* A new version, above those of the source, of which its upload IDs are made, and of the bucket here. */
		if (sd->u->number > st->number)
			st->number = sd->u->number;
		sd->u->number = ++st->number;
		if (!upload_of(sd, st, sd->u->id)) {
			mem_upload_enter(st, sd->u);
			sd->u = NULL;
		}
		break;
	case STEP_PUT_PART:
		put_part(st, j, sd);
		break;
	case STEP_REMOVE_PART:
		u = upload_of(sd, st, sd->id);
		if (u)
			mem_part_set(st, u, sd->number, NULL);
		break;
	default:
		if (upload_of(sd, st, sd->id))
			mem_upload_drop(st, mem_upload_find(st, sd->like, sd->id));
		break;
	}
}

static void
nothing(struct mem_store *st, struct job *j)
{
}

static void
on_step(struct store_op *op)
{
	struct send *sd = container_of(op, struct send, op);
	int result = op->result;

	mem_version_put(NULL, sd->v);
	sd->v = NULL;
	if (sd->u)
		free(sd->u->attrs);
	free(sd->u);
	sd->u = NULL;
	if (result < 0) {
		finish(sd, word_of(sd, result));
		return;
	}
	sd->s->changes += sd->step != STEP_NONE;
	next_step(sd);
}

/* Starts the step at the target.  wait_ns: only waits for this time. */
static void
go(struct send *sd, uint64_t wait_ns)
{
	struct job *j = mem_job_new(sd->to, &sd->op, MEM_FAULT_NR, wait_ns ? nothing : step_work);

	sd->op.done = on_step;
	j->runs_failed = wait_ns > 0;
	j->not_before_ns = clock_ns() + wait_ns;
	if (!wait_ns) {
		j->of = sd->like;
		j->has_two = store_has_two(&sd->s->key);
		j->is_repair = sd->s->is_repair;
		j->is_sent = !j->is_repair;
	}
	if (mem_job_start(j) > 0)
		on_step(&sd->op);
}

static int
find_step(struct send *sd)
{
	struct mem_store *from = sd->from ? sd->from->st : NULL, *to = sd->to->st;
	int e;

	sd->step = STEP_NONE;
	if (sd->s->is_repair)
		return find_damage(sd, from, to);
	e = find_object(sd, from ? object_of(sd, from) : NULL, object_of(sd, to));
	if (e == 0 && !sd->step && !sd->s->only_object)
		e = find_upload(sd, from, to);
	return e;
}

static void
next_step(struct send *sd)
{
	struct store_send *s = sd->s;
	uint32_t bytes;
	uint64_t wait_ns;
	int e = find_step(sd);

	if (e < 0 || !sd->step) {
		finish(sd, e);
		return;
	}
	/* Bytes of small objects are in their record. */
	bytes = sd->v && !sd->has_bytes && sd->v->size_bytes > STORE_INLINE_MAX ? (uint32_t)sd->v->size_bytes
										: 0;
	if (bytes && sd->from && mem_member_unreadable(sd->from->st)) {
		mem_version_put(NULL, sd->v);
		sd->v = NULL;
		finish(sd, -EIO);
		return;
	}
	wait_ns = bytes && s->pace ? s->pace(s, bytes) : 0;
	if (wait_ns) {
		mem_version_put(NULL, sd->v);
		sd->v = NULL;
		sd->step = STEP_NONE;
	}
	if (wait_ns == STORE_SEND_STOP) {
		finish(sd, -EINTR);
		return;
	}
	if (!wait_ns)
		s->bytes += bytes;
	go(sd, wait_ns);
}

int
mem_send(struct store_port *source, struct store_port *target, struct store_send *s)
{
	struct mem_port *from = source ? mem_port(source) : NULL, *to = mem_port(target);
	const struct store_key *k = &s->key;
	struct send *sd;

	mem_on_port(to);
	s->op.port = &to->base;
	s->op.result = 0;
	s->bytes = s->changes = 0;
	if (!mem_member_has_slots(to->st))
		return -EPERM;
	if (from && !mem_member_owns(from->st, k) && !(s->is_repair && mem_member_owns(to->st, k)))
		return -EXDEV;
	sd = calloc(1, sizeof *sd);
	check(sd);
	sd->s = s;
	sd->from = from;
	sd->to = to;
	sd->like = mem_version_new(k->bucket, k->bucket_len, k->key, k->key_len);
	s->priv = sd;
	to->inflight++;
	if (from)
		from->inflight++;
	sd->is_starting = true;
	next_step(sd);
	if (!s->priv)
		return 1;
	sd->is_starting = false;
	return 0;
}

/* ---- the second copy of a PUT ---- */

int
mem_copy_commit(struct store_port *to, struct store_put *put, struct store_port *from, uint64_t version,
		const struct store_commit *sc)
{
	const struct put_state *ps = mem_put_state(put);
	struct mem_store *st = mem_port(from)->st;
	const struct version *r = NULL;
	struct mem_upload *u;
	struct store_commit c;

	check(put->is_started && ps->is_copy);
	if (!ps->part_number)
		r = mem_object(st, ps->v);
	else if (mem_upload_get(st, ps->v, ps->id, &u) == 0)
		r = u->part[ps->part_number];
	if (!r || r->number != version ||
	    r->size_bytes != put->size_bytes + (sc->last ? sc->last_len : sc->inline_len))
		return -EAGAIN;
	c = (struct store_commit){ .meta = mem_meta(r),
				   .last = sc->last,
				   .last_len = sc->last_len,
				   .inline_data = sc->inline_data,
				   .inline_len = sc->inline_len,
				   .have_expect_crc64 = true,
				   .expect_crc64 = r->crc64 };
	return mem_put_go(mem_port(to), put, &c, r);
}
