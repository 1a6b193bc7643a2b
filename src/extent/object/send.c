/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key on its way from one engine to another, or off one where it is left over: what struct store_member_ops promises of
 * send() and remove().  On the thread that has both ports.
 *
 *	object:   gone there --> removed here        equal, and whole here --> nothing        other attributes alone --> these
 *	          else its bytes; of parts: the upload they came by is made here again, then each part, then it is completed
 *	uploads:  each that is missing here, and of each the parts that are missing here or are others
 *	          those that are not there any more are aborted
 *
 * So what is here was put here as clients put it, and a cut leaves what a cut leaves of them: parts always have an upload or
 * an object.  Chunks get new ids: old ones of an earlier try may be on their way out.
 *
 * What is read at the source is pinned and stays as it was; what changes meanwhile is sent again.
 *
 * A repair goes the other way, from a second copy to the first: each record that both have of one version is read here, and where
 * that fails its bytes come from there, for a record that is otherwise as it was.
 */
#include "extent/object/map.h"
#include "extent/object/put_int.h"
#include "extent/object/read_int.h"

#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_SLICE 256 /* that are compared in one go */

struct send {
	struct store_send *s;
	struct extent_port *from, *to; /* from NULL: nothing is there, all is removed */
	bool is_starting;
	struct timer timer;
	struct msg msg;
	void (*next)(struct send *sd); /* when what is under way is over */
	uint16_t key_len, bucket_key_len, upload_key_len;
	/* the object at the source, if it is one of parts: pinned until it is completed here */
	struct pin pin;
	const struct rec *whole;
	struct store_part_ref *parts;
	struct map_out map;
	/* the upload, or the one that the object came by; the part that is next: its index in the object, its number */
	uint8_t id[CHUNK_ID_BYTES];
	uint32_t at;
	bool has_id; /* uploads: this one was looked at */
	/* a repair: what is checked, here */
	bool is_checking, is_part;
	uint64_t version, pin_id; /* of it; what readers of the object of parts pin, or 0 */
	/* what has bytes: read here, written there */
	struct store_obj obj;
	struct store_read rd;
	struct store_put put;
	struct store_write w;
	struct put_sent ps;
	uint64_t off;
	uint32_t len;
	/* what has none */
	struct pin record_pin;
	struct commit_sent sent;
	struct commit c, del;
	uint8_t bucket_key[1 + STORE_BUCKET_MAX];
	uint8_t key[KEY_BYTES_MAX], upload_key[KEY_BYTES_MAX], part_key[CHUNK_KEY_BYTES];
};

static const struct tree *
source(const struct send *sd)
{
	return sd->from ? sd->from->vp.vol->tree : NULL;
}

static const struct tree *
target(const struct send *sd)
{
	return sd->to->vp.vol->tree;
}

/* ---- the end ---- */

/* What the target says, in the words of the whole. */
static int
word_of(const struct send *sd, int error)
{
	if (disk_failed(&sd->to->vp.vol->disk))
		return -EROFS;
	switch (error) {
	case -ENXIO:     /* the bucket was removed meanwhile, */
	case -ENOENT:    /* or the upload here, */
	case -EBADR:     /* or another part came */
	case -ECANCELED: /* what was in the block is not there */
		return -EAGAIN;
	case -ESTALE:
		return sd->s->is_repair ? -ESTALE : -EAGAIN;
	case -EILSEQ: /* granules are right, and not what the record says */
		return -EBADMSG;
	default:
		return error;
	}
}

static void
finish(struct send *sd, int result)
{
	struct store_send *s = sd->s;
	bool is_starting = sd->is_starting;

	extent_put_abort(&sd->to->base, &sd->put);
	extent_close(NULL, &sd->obj);
	if (sd->from) {
		pin_drop(sd->from->vp.vol->pins, &sd->pin);
		pin_drop(sd->from->vp.vol->pins, &sd->record_pin);
		sd->from->vp.io.inflight--;
	}
	sd->to->vp.io.inflight--;
	free(sd->parts);
	free(sd);
	s->priv = NULL;
	s->op.result = result;
	if (!is_starting)
		s->op.done(&s->op);
}

/* ---- records without bytes ---- */

static void
on_record(struct commit *c)
{
	struct send *sd = container_of(c, struct send, c);
	int result = c->result;

	free(c->job);
	free(sd->del.job);
	c->job = sd->del.job = NULL;
	map_end(&sd->map, result < 0 && result != -ECANCELED);
	if (sd->from)
		pin_drop(sd->from->vp.vol->pins, &sd->record_pin);
	if (result < 0) {
		finish(sd, word_of(sd, result));
		return;
	}
	sd->s->changes++;
	sd->next(sd);
}

static struct commit *
record(struct send *sd, enum commit_kind kind, enum rec_op op, const uint8_t *key, uint16_t key_len)
{
	struct commit *c = &sd->c;

	*c = (struct commit){ .kind = kind,
			      .finished = on_record,
			      .state = CS_DATA_DONE,
			      .sent = &sd->sent,
			      .view = { .op = (uint8_t)op, .key = key, .key_len = key_len } };
	sd->sent = (struct commit_sent){ 0 };
	return c;
}

static void
submit(struct send *sd, void (*next)(struct send *sd))
{
	sd->next = next;
	commit_submit(&sd->to->vp, &sd->c);
}

static void
set_bucket(struct send *sd, struct commit *c)
{
	c->bucket_key = sd->bucket_key;
	c->bucket_key_len = sd->bucket_key_len;
}

static void
remove_object(struct send *sd, void (*next)(struct send *sd))
{
	record(sd, COMMIT_DELETE, REC_DELETE, sd->key, sd->key_len);
	submit(sd, next);
}

/* Makes the upload, as the source has it (r), or had it (NULL).  Its version is a new one: later than the bucket's here. */
static void
make_upload(struct send *sd, const struct rec *r, void (*next)(struct send *sd))
{
	struct commit *c = record(sd, COMMIT_UPLOAD_MAKE, REC_PUT, sd->upload_key, sd->upload_key_len);

	set_bucket(sd, c);
	c->view.body = BODY_NONE;
	if (r) {
		pin_add(sd->from->vp.vol->pins, &sd->record_pin, rec_pin_id(r));
		c->view.mtime_ns = r->mtime_ns;
		c->view.attrs = rec_attrs(r);
		c->view.attrs_len = r->attrs_len;
	}
	submit(sd, next);
}

static void
abort_upload(struct send *sd, void (*next)(struct send *sd))
{
	struct commit *c = record(sd, COMMIT_UPLOAD_ABORT, REC_DELETE, sd->upload_key, sd->upload_key_len);

	c->job = gc_upload_job(sd->id, NULL, 0);
	if (!c->job)
		finish(sd, -EAGAIN);
	else
		submit(sd, next);
}

/* The record that is here gets the attributes and the version of the source's. */
static void
send_attrs(struct send *sd, const struct rec *r, const struct rec *there, void (*next)(struct send *sd))
{
	struct commit *c = record(sd, COMMIT_ATTRS, REC_PUT, sd->key, sd->key_len);

	set_bucket(sd, c);
	pin_add(sd->from->vp.vol->pins, &sd->record_pin, rec_pin_id(r));
	sd->sent.version = r->version;
	c->want_version = there->version;
	c->attrs = rec_attrs(r);
	c->attrs_len = r->attrs_len;
	submit(sd, next);
}

/* ---- what is equal ---- */

/* The same bytes, and but for the attributes the same of them. */
static bool
same_bytes(const struct rec *r, const struct rec *there)
{
	struct rec_view x, y;
	bool is_whole;

	rec_view_of(r, NULL, 0, &x);
	rec_view_of(there, NULL, 0, &y);
	is_whole = x.body == BODY_EXTENTS || x.body == BODY_PACKED || x.body == BODY_MANIFEST;
	if (rec_data_version(r) != rec_data_version(there) || x.size_bytes != y.size_bytes ||
	    x.crc64 != y.crc64 || x.mtime_ns != y.mtime_ns || x.etag.parts != y.etag.parts ||
	    memcmp(x.etag.sum, y.etag.sum, sizeof x.etag.sum) != 0 || x.expires_ns != y.expires_ns ||
	    x.sums_len != y.sums_len || memcmp(x.sums, y.sums, x.sums_len) != 0)
		return false;
	if (is_whole)
		return y.body == BODY_EXTENTS || y.body == BODY_PACKED || y.body == BODY_MANIFEST;
	if (x.body != y.body)
		return false;
	if (x.body == BODY_PARTS)
		return x.entry_nr == y.entry_nr &&
		       memcmp(x.entries, y.entries, x.entry_nr * sizeof(struct chunk_ref)) == 0;
	return x.inline_len == y.inline_len && memcmp(x.inline_data, y.inline_data, x.inline_len) == 0;
}

bool
send_is_same(const struct rec *r, const struct rec *there)
{
	return there && r->version == there->version && same_bytes(r, there) &&
	       r->attrs_len == there->attrs_len && memcmp(rec_attrs(r), rec_attrs(there), r->attrs_len) == 0;
}

/* ---- bytes ---- */

static void read_piece(struct send *sd);
static void on_checked(struct send *sd, int result);

static void
bytes_over(struct send *sd, int error)
{
	extent_close(NULL, &sd->obj);
	extent_put_abort(&sd->to->base, &sd->put);
	if (error) {
		finish(sd, error);
		return;
	}
	sd->s->changes++;
	sd->next(sd);
}

static void
on_put(struct store_op *op)
{
	struct send *sd = container_of(container_of(op, struct store_put, op), struct send, put);

	bytes_over(sd, op->result < 0 ? word_of(sd, op->result) : 0);
}

/* last: the piece that goes with the record; NULL: the bytes are in the record. */
static void
commit(struct send *sd, struct buf *last)
{
	const struct rec *r = obj_int(&sd->obj)->rec;
	struct store_commit sc = {
		.meta = { .etag = rec_etag(r), .attrs = rec_attrs(r), .attrs_len = r->attrs_len },
		.last = last,
		.last_len = last ? sd->len : 0,
		.inline_data = rec_inline(r),
		.inline_len = last ? 0 : r->inline_len,
		.have_expect_crc64 = true,
		.expect_crc64 = r->crc64,
	};
	int e;

	sd->put.op.done = on_put;
	e = extent_put_commit(&sd->to->base, &sd->put, &sc);
	if (e < 0)
		bytes_over(sd, word_of(sd, e));
}

static void
on_written(struct store_op *op)
{
	struct send *sd = container_of(container_of(op, struct store_write, op), struct send, w);

	if (op->result < 0)
		bytes_over(sd, word_of(sd, op->result));
	else
		read_piece(sd);
}

static void
write_piece(struct send *sd)
{
	struct buf *buf = sd->s->buf;
	int e;

	if (sd->rd.lead)
		memmove(buf->mem, buf->mem + sd->rd.lead, sd->len);
	sd->off += sd->len;
	sd->s->bytes += sd->len;
	if (sd->off == sd->obj.size_bytes) {
		commit(sd, buf);
		return;
	}
	sd->w.op.done = on_written;
	e = extent_put_write(&sd->to->base, &sd->put, &sd->w, buf, sd->len, false);
	if (e < 0)
		bytes_over(sd, word_of(sd, e));
}

static void
on_read(struct store_op *op)
{
	struct send *sd = container_of(container_of(op, struct store_read, op), struct send, rd);

	if (sd->is_checking)
		on_checked(sd, op->result);
	else if (op->result < 0)
		bytes_over(sd, op->result);
	else
		write_piece(sd);
}

static void
on_timer(struct timer *t)
{
	read_piece(container_of(t, struct send, timer));
}

static void
read_piece(struct send *sd)
{
	struct store_send *s = sd->s;
	uint64_t left = sd->obj.size_bytes - sd->off, wait_ns;
	uint32_t most = s->buf->cap_bytes < STORE_PIECE ? s->buf->cap_bytes : STORE_PIECE;
	int e;

	most -= most % STORE_GRANULE;
	sd->len = left < most ? (uint32_t)left : most;
	wait_ns = s->pace ? s->pace(s, sd->len) : 0;
	if (wait_ns == STORE_SEND_STOP) {
		bytes_over(sd, -EINTR);
		return;
	}
	if (wait_ns) {
		timer_arm(sd->to->vp.timers, &sd->timer, clock_ns() + wait_ns, on_timer);
		return;
	}
	sd->rd.op.done = on_read;
	sd->rd.lead = 0;
	e = extent_read(sd->obj.op.port, &sd->obj, &sd->rd, s->buf, sd->off, sd->len);
	e = e > 0 ? (sd->rd.op.result < 0 ? sd->rd.op.result : -EBADMSG) : e;
	if (e && sd->is_checking)
		on_checked(sd, e);
	else if (e)
		bytes_over(sd, e);
}

/* Opens a record of one of the two as clients open an object; it is published. */
static void
open_record(struct send *sd, struct extent_port *p, struct rec *r)
{
	struct obj_int *oi = obj_int(&sd->obj);

	*oi = (struct obj_int){ .vol = p->vp.vol, .rec = r };
	pin_add(oi->vol->pins, &oi->pin, rec_pin_id(r));
	sd->obj.op.port = &p->base;
	sd->obj.size_bytes = r->size_bytes;
	sd->obj.part_nr = 0;
	sd->obj.is_open = true;
}

/* Sends what has bytes: the object, or (is_part) the part of sd->part_key. */
static void
send_bytes(struct send *sd, struct rec *r, bool is_part, void (*next)(struct send *sd))
{
	int e;

	sd->next = next;
	sd->is_checking = false;
	open_record(sd, sd->from, r);
	sd->ps = (struct put_sent){ .key = is_part ? sd->part_key : sd->key,
				    .key_len = is_part ? CHUNK_KEY_BYTES : sd->key_len,
				    .upload_key = is_part ? sd->upload_key : NULL,
				    .upload_key_len = is_part ? sd->upload_key_len : 0,
				    .bucket_key = sd->bucket_key,
				    .bucket_key_len = sd->bucket_key_len,
				    .rec = r,
				    .sent = put_sent_of(r) };
	sd->ps.sent.is_repair = sd->s->is_repair;
	sd->ps.sent.pin_id = sd->pin_id;
	e = put_init_sent(sd->to, &sd->put, &sd->ps);
	if (e < 0) {
		bytes_over(sd, word_of(sd, e));
		return;
	}
	sd->off = 0;
	if (r->body != BODY_INLINE)
		read_piece(sd);
	else if (crc64_nvme(0, rec_inline(r), r->inline_len) != r->crc64)
		bytes_over(sd, -EBADMSG);
	else
		commit(sd, NULL);
}

/* ---- a repair ---- */

/* Reads what is here (r) of the object, or (is_part) of the part of sd->part_key; where that fails, the bytes come from there. */
static void
check_bytes(struct send *sd, struct rec *r, bool is_part, void (*next)(struct send *sd))
{
	sd->next = next;
	sd->is_checking = true;
	sd->is_part = is_part;
	sd->version = r->version;
	open_record(sd, sd->to, r);
	sd->off = 0;
	read_piece(sd);
}

static void
on_checked(struct send *sd, int result)
{
	const uint8_t *key = sd->is_part ? sd->part_key : sd->key;
	struct rec *r;

	sd->off += sd->len;
	if (result >= 0 && sd->off < sd->obj.size_bytes) {
		read_piece(sd);
		return;
	}
	extent_close(NULL, &sd->obj);
	if (result >= 0) {
		sd->next(sd);
		return;
	}
	r = tree_get(source(sd), key, sd->is_part ? CHUNK_KEY_BYTES : sd->key_len);
	if (r && r->version == sd->version)
		send_bytes(sd, r, sd->is_part, sd->next);
	else
		finish(sd, -ESTALE);
}

/* ---- uploads ---- */

static void next_part(struct send *sd);
static void next_upload(struct send *sd);
static void next_gone(struct send *sd);

/* The first upload of the key behind sd->id in that index, which becomes sd->id and sd->upload_key; NULL: none. */
static struct rec *
find_upload(struct send *sd, const struct tree *t)
{
	uint8_t from[KEY_BYTES_MAX];
	size_t len = sd->upload_key_len;
	struct tree_cursor c;

	memcpy(from, sd->upload_key, len - CHUNK_ID_BYTES);
	memcpy(from + len - CHUNK_ID_BYTES, sd->id, CHUNK_ID_BYTES);
	tree_cursor_init(&c, t, tree_root(t));
	if (!tree_seek(&c, from, sd->has_id ? len : len - CHUNK_ID_BYTES, sd->has_id) || c.key_len != len ||
	    memcmp(c.key, from, len - CHUNK_ID_BYTES) != 0)
		return NULL;
	memcpy(sd->upload_key, c.key, len);
	memcpy(sd->id, c.key + len - CHUNK_ID_BYTES, CHUNK_ID_BYTES);
	sd->has_id = true;
	return c.rec;
}

/* The upload of sd->upload_key in that index, if it is not of an earlier bucket of the name. */
static struct rec *
get_upload(const struct send *sd, const struct tree *t)
{
	const struct rec *b = t ? tree_get(t, sd->bucket_key, sd->bucket_key_len) : NULL;
	struct rec *r = b ? tree_get(t, sd->upload_key, sd->upload_key_len) : NULL;

	return r && r->version > b->version ? r : NULL;
}

static void
set_id(struct send *sd, const uint8_t *id)
{
	memcpy(sd->id, id, CHUNK_ID_BYTES);
	memcpy(sd->upload_key + sd->upload_key_len - CHUNK_ID_BYTES, id, CHUNK_ID_BYTES);
}

static void
on_turn(struct msg *m)
{
	struct send *sd = container_of(m, struct send, msg);

	sd->next(sd);
}

/* Goes on in another turn of the loop. */
static void
later(struct send *sd, void (*next)(struct send *sd))
{
	sd->next = next;
	mailbox_post(sd->to->vp.mb, &sd->msg, on_turn);
}

/* The number of the part of the upload where the cursor stands; UINT32_MAX: there is no more. */
static uint32_t
part_at(const struct send *sd, const struct tree_cursor *c, bool there)
{
	return there && c->key_len == CHUNK_KEY_BYTES && memcmp(c->key, sd->part_key, 1 + CHUNK_ID_BYTES) == 0
		       ? key_index((const uint8_t *)c->key)
		       : UINT32_MAX;
}

/* Is the part of the source's record r here, with its bytes?  there: the record of that key, or NULL. */
static bool
has_part(const struct send *sd, const struct rec *r, const struct rec *there)
{
	uint32_t at = 0;

	return send_is_same(r, there) && (sd->s->only_upload || rec_is_whole(sd->to->vp.vol, there, &at, 1));
}

/* What is here, and never was answered there: the disk that had it before is not the first one any more. */
static void
remove_part(struct send *sd)
{
	struct commit *c = record(sd, COMMIT_DELETE, REC_DELETE, sd->part_key, CHUNK_KEY_BYTES);

	c->upload_key = sd->upload_key;
	c->upload_key_len = sd->upload_key_len;
	submit(sd, next_part);
}

/* The parts of an upload in progress, in both side by side. */
static void
next_part(struct send *sd)
{
	struct tree_cursor c, h;
	bool there, here;

	key_part(sd->part_key, sd->id, sd->at);
	tree_cursor_init(&c, source(sd), tree_root(source(sd)));
	tree_cursor_init(&h, target(sd), tree_root(target(sd)));
	there = tree_seek(&c, sd->part_key, CHUNK_KEY_BYTES, true);
	here = tree_seek(&h, sd->part_key, CHUNK_KEY_BYTES, true);
	for (int i = 0; i < PARTS_SLICE; i++) {
		uint32_t from = part_at(sd, &c, there), to = part_at(sd, &h, here);
		bool is_repair = sd->s->is_repair;

		sd->at = from < to ? from : to;
		if (sd->at == UINT32_MAX) {
			next_upload(sd);
			return;
		}
		key_part(sd->part_key, sd->id, sd->at);
		if (is_repair) {
			const struct rec *r = h.rec;

			if (from == to && r->version == ((const struct rec *)c.rec)->version &&
			    r->size_bytes) {
				check_bytes(sd, h.rec, true, next_part);
				return;
			}
		} else if (to < from) {
			if (RULE_MOVE_REMOVES) {
				remove_part(sd);
				return;
			}
		} else if (!has_part(sd, c.rec, from == to ? h.rec : NULL)) {
			send_bytes(sd, c.rec, true, next_part);
			return;
		}
		there = from == sd->at ? tree_next(&c) : there;
		here = to == sd->at ? tree_next(&h) : here;
	}
	later(sd, next_part);
}

static void
next_upload(struct send *sd)
{
	const struct rec *r;

	if (sd->s->only_upload) {
		finish(sd, 0);
		return;
	}
	do {
		r = find_upload(sd, source(sd));
	} while (r && (!get_upload(sd, source(sd)) || (sd->s->is_repair && !get_upload(sd, target(sd)))));
	if (!r && sd->s->is_repair) {
		finish(sd, 0);
		return;
	}
	if (!r) {
		sd->has_id = false;
		next_gone(sd);
		return;
	}
	sd->at = 0;
	if (get_upload(sd, target(sd)))
		next_part(sd);
	else
		make_upload(sd, r, next_part);
}

/* What is here, and not there any more. */
static void
next_gone(struct send *sd)
{
	const struct rec *r;

	do {
		r = RULE_MOVE_REMOVES || !sd->from ? find_upload(sd, target(sd)) : NULL;
	} while (r && get_upload(sd, source(sd)));
	if (r)
		abort_upload(sd, next_gone);
	else
		finish(sd, 0);
}

static void
begin_uploads(struct send *sd)
{
	if (sd->from)
		pin_drop(sd->from->vp.vol->pins, &sd->pin);
	sd->whole = NULL;
	sd->has_id = false;
	sd->pin_id = 0;
	if (sd->s->only_object)
		finish(sd, 0);
	else if (sd->from)
		next_upload(sd);
	else
		next_gone(sd);
}

static void
upload_over(struct send *sd)
{
	finish(sd, 0);
}

/* One upload, and nothing else of the key. */
static void
begin_upload(struct send *sd)
{
	const struct rec *r, *there;

	set_id(sd, sd->s->only_upload);
	r = get_upload(sd, source(sd));
	there = get_upload(sd, target(sd));
	sd->at = 0;
	if (sd->s->is_repair && (!r || !there))
		finish(sd, -ESTALE);
	else if (r && there)
		next_part(sd);
	else if (r)
		make_upload(sd, r, next_part);
	else if (there && (RULE_MOVE_REMOVES || !sd->from))
		abort_upload(sd, upload_over);
	else
		finish(sd, 0);
}

/* ---- an object of parts ---- */

static void
submit_whole(struct send *sd)
{
	/* What its list names is flushed: parts were answered. */
	if (sd->map.ref.nr) {
		sd->c.flush_ticket = vol_flush_ticket(sd->to->vp.vol);
		map_view(&sd->map, &sd->c.view);
	}
	submit(sd, begin_uploads);
}

static void
on_map(struct map_out *m, int error)
{
	struct send *sd = container_of(m, struct send, map);

	if (!error) {
		submit_whole(sd);
		return;
	}
	if (error != -EAGAIN && error != -ENOSPC)
		disk_fail(&sd->to->vp.vol->disk, "writing data failed: %s", strerror(-error));
	map_end(m, error == -EAGAIN || error == -ENOSPC);
	free(sd->del.job);
	sd->del.job = NULL;
	finish(sd, word_of(sd, error));
}

/* As a client completes it, with the source's version; the leader looks at each part once more. */
static void
complete(struct send *sd)
{
	const struct rec *r = sd->whole;
	struct gc_job *job = gc_upload_job(sd->id, sd->parts, r->entry_nr);
	struct commit *c = record(sd, COMMIT_COMPLETE, REC_PUT, sd->key, sd->key_len);
	int e;

	if (!job) {
		finish(sd, -EAGAIN);
		return;
	}
	rec_view_of(r, sd->key, sd->key_len, &c->view);
	c->view.flags = REC_FLUSHED;
	c->view.map = (struct map_ref){ 0 };
	sd->sent = (struct commit_sent){ .version = r->version, .expires_ns = c->view.expires_ns };
	if (r->flags & REC_SHARED)
		sd->sent.data_version = rec_data_version(r);
	set_bucket(sd, c);
	c->upload_key = sd->upload_key;
	c->upload_key_len = sd->upload_key_len;
	c->parts = sd->parts;
	sd->del = (struct commit){
		.kind = COMMIT_DELETE,
		.is_also = true,
		.state = CS_DATA_DONE,
		.job = job,
		.view = { .op = REC_DELETE, .key = sd->upload_key, .key_len = sd->upload_key_len }
	};
	c->also = &sd->del;
	if (r->entry_nr <= FMT_ENTRY_MAX) {
		submit_whole(sd);
		return;
	}
	e = map_begin(&sd->map, sd->to, rec_entries(r), r->entry_nr * (uint32_t)sizeof(struct chunk_ref),
		      on_map);
	if (e < 0) {
		free(sd->del.job);
		sd->del.job = NULL;
		finish(sd, word_of(sd, e));
	}
}

static void
next_of_whole(struct send *sd)
{
	const struct chunk_ref *ref = rec_entries(sd->whole);

	for (int i = 0; sd->at < sd->whole->entry_nr; i++) {
		const struct rec *r = part_record(sd->from->vp.vol, &ref[sd->at]);
		struct store_part_ref *part = &sd->parts[sd->at];

		if (!r) {
			finish(sd, -EBADMSG);
			return;
		}
		if (i == PARTS_SLICE) {
			later(sd, next_of_whole);
			return;
		}
		*part = (struct store_part_ref){ .number = ref[sd->at].index,
						 .etag = rec_etag(r),
						 .version = r->version };
		key_part(sd->part_key, sd->id, part->number);
		sd->at++;
		if (!has_part(sd, r, tree_get(target(sd), sd->part_key, CHUNK_KEY_BYTES))) {
			send_bytes(sd, (struct rec *)(uintptr_t)r, true, next_of_whole);
			return;
		}
	}
	complete(sd);
}

static void
send_parts(struct send *sd, struct rec *r)
{
	const struct chunk_ref *ref = rec_entries(r);

	sd->parts = calloc(r->entry_nr, sizeof *sd->parts);
	if (!sd->parts) {
		finish(sd, -EAGAIN);
		return;
	}
	pin_add(sd->from->vp.vol->pins, &sd->pin, rec_pin_id(r));
	sd->whole = r;
	sd->at = 0;
	set_id(sd, ref[0].id);
	if (get_upload(sd, target(sd)))
		next_of_whole(sd);
	else
		make_upload(sd, NULL, next_of_whole);
}

/* ---- its repair ---- */

static void
repair_of_whole(struct send *sd)
{
	const struct chunk_ref *ref = rec_entries(sd->whole);

	for (int i = 0; sd->at < sd->whole->entry_nr; i++) {
		const struct rec *r = part_record(sd->from->vp.vol, &ref[sd->at]);
		struct rec *there;

		if (i == PARTS_SLICE) {
			later(sd, repair_of_whole);
			return;
		}
		key_part(sd->part_key, sd->id, ref[sd->at].index);
		there = tree_get(target(sd), sd->part_key, CHUNK_KEY_BYTES);
		if (!r || (there && r->version != there->version)) {
			finish(sd, r ? -ESTALE : -EBADMSG);
			return;
		}
		sd->at++;
		if (!there) {
			send_bytes(sd, (struct rec *)(uintptr_t)r, true, repair_of_whole);
			return;
		}
		if (there->size_bytes) {
			check_bytes(sd, there, true, repair_of_whole);
			return;
		}
	}
	begin_uploads(sd);
}

static void
repair_object(struct send *sd)
{
	struct rec *r = tree_get(source(sd), sd->key, sd->key_len);
	struct rec *there = tree_get(target(sd), sd->key, sd->key_len);

	if (!r && !there) {
		begin_uploads(sd);
	} else if (!r || !there || r->version != there->version ||
		   rec_data_version(r) != rec_data_version(there)) {
		finish(sd, -ESTALE);
	} else if (r->body == BODY_PARTS) {
		const struct chunk_ref *ref = rec_entries(r);

		pin_add(sd->from->vp.vol->pins, &sd->pin, rec_pin_id(r));
		sd->whole = r;
		sd->at = 0;
		set_id(sd, ref[0].id);
		sd->pin_id = rec_pin_id(there);
		repair_of_whole(sd);
	} else if (there->body == BODY_INLINE) {
		/* It is in the index, which is whole. */
		begin_uploads(sd);
	} else {
		check_bytes(sd, there, false, begin_uploads);
	}
}

/* ---- all of it ---- */

/* has_bytes: the record that is here has the bytes of r, and all is here that it names. */
static void
send_object(struct send *sd, struct rec *r, const struct rec *there, bool has_bytes)
{
	if (has_bytes && send_is_same(r, there))
		begin_uploads(sd);
	else if (has_bytes && r->version > rec_data_version(r))
		send_attrs(sd, r, there, begin_uploads);
	else if (r->body == BODY_PARTS)
		send_parts(sd, r);
	else
		send_bytes(sd, r, false, begin_uploads);
}

static void begin_object(struct send *sd);

/* What is here, slice by slice, from sd->at on. */
static void
look_whole(struct send *sd)
{
	struct rec *r = tree_get(source(sd), sd->key, sd->key_len);
	const struct rec *there = tree_get(target(sd), sd->key, sd->key_len);

	/* It is another one by now. */
	if (!r || !there || !same_bytes(r, there))
		begin_object(sd);
	else if (!rec_is_whole(sd->to->vp.vol, there, &sd->at, PARTS_SLICE))
		send_object(sd, r, there, false);
	else if (there->body == BODY_PARTS && sd->at < there->entry_nr)
		later(sd, look_whole);
	else
		send_object(sd, r, there, true);
}

static void
begin_object(struct send *sd)
{
	struct rec *r = sd->from ? tree_get(source(sd), sd->key, sd->key_len) : NULL;
	const struct rec *there = tree_get(target(sd), sd->key, sd->key_len);

	sd->at = 0;
	if (!r && there && (RULE_MOVE_REMOVES || !sd->from))
		remove_object(sd, begin_uploads);
	else if (!r)
		begin_uploads(sd);
	else if (!there || !same_bytes(r, there))
		send_object(sd, r, there, false);
	else if (sd->s->only_object)
		/* A client's change, one of many: what is behind the record is as it was. */
		send_object(sd, r, there, true);
	else
		look_whole(sd);
}

static int
begin(struct extent_port *from, struct extent_port *to, struct store_send *s)
{
	static const uint8_t no_id[CHUNK_ID_BYTES];
	struct send *sd;
	int len;

	s->op.port = &to->base;
	s->op.result = 0;
	s->bytes = s->changes = 0;
	if (!to->vp.vol->slots)
		return -EPERM;
	sd = calloc(1, sizeof *sd);
	if (!sd)
		return -EAGAIN;
	sd->s = s;
	sd->from = from;
	sd->to = to;
	len = key_upload(sd->upload_key, &s->key, no_id);
	if (len < 0) {
		free(sd);
		return len;
	}
	sd->upload_key_len = (uint16_t)len;
	sd->key_len = (uint16_t)key_object(sd->key, &s->key);
	sd->bucket_key_len = (uint16_t)key_bucket(sd->bucket_key, s->key.bucket, s->key.bucket_len);
	if (from && !slots_own_key(from->vp.vol->slots, sd->key, sd->key_len) &&
	    !(s->is_repair && slots_own_key(to->vp.vol->slots, sd->key, sd->key_len))) {
		free(sd);
		return -EXDEV;
	}
	s->priv = sd;
	to->vp.io.inflight++;
	if (from)
		from->vp.io.inflight++;
	sd->is_starting = true;
	if (s->only_upload)
		begin_upload(sd);
	else if (s->is_repair)
		repair_object(sd);
	else
		begin_object(sd);
	if (!s->priv)
		return 1;
	sd->is_starting = false;
	return 0;
}

int
extent_send(struct store_port *from, struct store_port *to, struct store_send *s)
{
	return begin(extent_port(from), extent_port(to), s);
}

int
extent_remove(struct store_port *p, struct store_send *s)
{
	return begin(NULL, extent_port(p), s);
}
