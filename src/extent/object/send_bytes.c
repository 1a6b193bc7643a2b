/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of objects and parts in a transfer: they are read at the source and written to the target, piece by
 * piece, and a repair first reads them at the target; see send_int.h.
 */
#include "extent/object/send_int.h"

#include "base/crc64.h"

#include <errno.h>
#include <string.h>

static void read_piece(struct send *sd);
static void on_checked(struct send *sd, int result);

static void
bytes_over(struct send *sd, int error)
{
	extent_close(NULL, &sd->obj);
	extent_put_abort(&sd->to->base, &sd->put);
	if (error) {
		send_finish(sd, error);
		return;
	}
	sd->s->changes++;
	sd->next(sd);
}

static void
on_put(struct store_op *op)
{
	struct send *sd = container_of(container_of(op, struct store_put, op), struct send, put);

	bytes_over(sd, op->result < 0 ? send_error(sd, op->result) : 0);
}

/* Commits the PUT. last: buffer with the last piece; NULL: the bytes are in the record. */
static void
commit(struct send *sd, struct buf *last)
{
	const struct rec *r = obj_int(&sd->obj)->rec;
	struct store_commit sc = {
		.meta = rec_meta(r),
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
		bytes_over(sd, send_error(sd, e));
}

static void
on_written(struct store_op *op)
{
	struct send *sd = container_of(container_of(op, struct store_write, op), struct send, w);

	if (op->result < 0)
		bytes_over(sd, send_error(sd, op->result));
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
		bytes_over(sd, send_error(sd, e));
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
	sd->obj.op.port = &p->base;
	obj_open(&sd->obj, p->vp.vol, r);
}

void
send_bytes(struct send *sd, struct rec *r, bool is_part, void (*next)(struct send *sd))
{
	const struct store_put_spec spec = { .key = sd->s->key,
					     .upload_id = is_part ? sd->id : NULL,
					     .part_number = is_part ? key_index(sd->part_key) : 0,
					     .size_bytes = r->size_bytes };
	int e;

	sd->next = next;
	sd->is_checking = false;
	open_record(sd, sd->from, r);
	sd->ps = (struct put_sent){ .rec = r, .sent = put_sent_of(r) };
	sd->ps.sent.is_repair = sd->s->is_repair;
	sd->ps.sent.pin_id = sd->pin_id;
	e = put_init_sent(sd->to, &sd->put, &spec, &sd->ps);
	if (e < 0) {
		bytes_over(sd, send_error(sd, e));
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

void
send_check(struct send *sd, struct rec *r, bool is_part, void (*next)(struct send *sd))
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
		send_finish(sd, -ESTALE);
}
