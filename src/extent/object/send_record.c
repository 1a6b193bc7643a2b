/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of records in the target of a transfer, the comparison of records, and the end of the transfer; see
 * send_int.h.
 */
#include "extent/object/send_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the end ---- */

int
send_error(const struct send *sd, int error)
{
	if (disk_failed(&sd->to->vp.vol->disk))
		return -EROFS;
	switch (error) {
	case -ENXIO:     /* the bucket was removed meanwhile */
	case -ENOENT:    /* the upload in the target was removed meanwhile */
	case -EBADR:     /* a part was replaced meanwhile */
	case -ECANCELED: /* the block of the log may be lost */
		return -EAGAIN;
	case -ESTALE:
		return sd->s->is_repair ? -ESTALE : -EAGAIN;
	case -EILSEQ: /* the granules are undamaged, and the record differs */
		return -EBADMSG;
	default:
		return error;
	}
}

void
send_finish(struct send *sd, int result)
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

/* ---- changes without bytes ---- */

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
		send_finish(sd, send_error(sd, result));
		return;
	}
	sd->s->changes++;
	sd->next(sd);
}

struct commit *
send_record(struct send *sd, enum commit_kind kind, enum rec_op op, const uint8_t *key, uint16_t key_len)
{
	struct commit *c = &sd->c;

	*c = (struct commit){ .kind = kind,
			      .finished = on_record,
			      .state = CS_DATA_DONE,
			      .sent = &sd->ps.sent,
			      .view = { .op = (uint8_t)op, .key = key, .key_len = key_len } };
	sd->ps.sent = (struct commit_sent){ 0 };
	return c;
}

/* Submits sd->c. After success next() continues; after an error the transfer ends. */
static void
submit(struct send *sd, void (*next)(struct send *sd))
{
	sd->next = next;
	commit_submit(&sd->to->vp, &sd->c);
}

void
send_remove_object(struct send *sd, void (*next)(struct send *sd))
{
	send_record(sd, COMMIT_DELETE, REC_DELETE, sd->key, sd->key_len);
	submit(sd, next);
}

void
send_make_upload(struct send *sd, const struct rec *r, void (*next)(struct send *sd))
{
	struct commit *c = send_record(sd, COMMIT_UPLOAD_MAKE, REC_PUT, sd->upload_key, sd->upload_key_len);
	const struct rec *b = bucket_of_key(target(sd), sd->key, sd->key_len);

	c->want_version = b ? b->version : 0;
	c->view.body = BODY_NONE;
	if (r) {
		pin_add(sd->from->vp.vol->pins, &sd->record_pin, rec_pin_id(r));
		c->view.mtime_ns = r->mtime_ns;
		c->view.attrs = rec_attrs(r);
		c->view.attrs_len = r->attrs_len;
	}
	submit(sd, next);
}

void
send_abort_upload(struct send *sd, void (*next)(struct send *sd))
{
	struct commit *c =
		send_record(sd, COMMIT_UPLOAD_ABORT, REC_DELETE, sd->upload_key, sd->upload_key_len);

	c->job = gc_upload_job(sd->id, NULL, 0);
	if (!c->job)
		send_finish(sd, -EAGAIN);
	else
		submit(sd, next);
}

void
send_attrs(struct send *sd, const struct rec *r, const struct rec *there, void (*next)(struct send *sd))
{
	struct commit *c = send_record(sd, COMMIT_ATTRS, REC_PUT, sd->key, sd->key_len);

	pin_add(sd->from->vp.vol->pins, &sd->record_pin, rec_pin_id(r));
	sd->ps.sent.version = r->version;
	c->want_version = there->version;
	c->attrs = rec_attrs(r);
	c->attrs_len = r->attrs_len;
	submit(sd, next);
}

void
send_remove_part(struct send *sd, void (*next)(struct send *sd))
{
	struct commit *c = send_record(sd, COMMIT_DELETE, REC_DELETE, sd->part_key, CHUNK_KEY_BYTES);

	c->upload_key = sd->upload_key;
	c->upload_key_len = sd->upload_key_len;
	submit(sd, next);
}

/* ---- comparison ---- */

bool
send_same_bytes(const struct rec *r, const struct rec *there)
{
	struct rec_view x, y;
	bool is_whole, is_same = true;

	rec_view_of(r, NULL, 0, &x);
	rec_view_of(there, NULL, 0, &y);
#define META 0
#define BYTES(name, ...)
#define HERE(name, type, at) is_same &= memcmp(&x.name, &y.name, sizeof x.name) == 0;
#include "model/record.def"
	is_whole = x.body == BODY_EXTENTS || x.body == BODY_PACKED || x.body == BODY_MANIFEST;
	if (!is_same || rec_data_version(r) != rec_data_version(there) || x.size_bytes != y.size_bytes ||
	    x.crc64 != y.crc64 || x.sums_len != y.sums_len || memcmp(x.sums, y.sums, x.sums_len) != 0)
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
	return there && r->version == there->version && send_same_bytes(r, there) &&
	       r->attrs_len == there->attrs_len && memcmp(rec_attrs(r), rec_attrs(there), r->attrs_len) == 0;
}

/* ---- the event loop ---- */

static void
on_turn(struct msg *m)
{
	struct send *sd = container_of(m, struct send, msg);

	sd->next(sd);
}

void
send_later(struct send *sd, void (*next)(struct send *sd))
{
	sd->next = next;
	mailbox_post(sd->to->vp.mb, &sd->msg, on_turn);
}
