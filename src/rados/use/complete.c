/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of uploads: completions and aborts.
 *
 * The gateway that completes or aborts an upload closes the upload first: it sets its number and the id of
 * this operation, the act, in the row of the upload. Parts are refused from then on, so the list of parts
 * that is read next is final, however many pages it has. Then one change removes all rows of the upload from
 * the index. An upload whose closer has ended may be closed by another gateway.
 */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "base/crc64.h"
#include "rados/io/fault.h"
#include "rados/io/rstore.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct close_op {
	struct txn txn;           /* key 0: the upload; COMPLETE: key 1: the object */
	struct store_complete *c; /* NULL: the upload is aborted */
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct rid act; /* id of this operation in the row of the upload; id of the new record and the map */
	struct scan scan;
	char prefix[OMAP_KEY_MAX];
	struct found_parts found;
	uint64_t size_bytes, crc64; /* of the object */
	struct bytes list;          /* the parts, encoded */
	bool has_map;
	bool is_map_left;     /* the map was written, and no record names it */
	struct call call;     /* write of the map */
	struct map_read done; /* list of parts of the object that was completed from this upload */
	struct bytes there;   /* record of that completed object; decoded in `object` */
	struct record object;
	int said; /* result of the operation, kept while the upload is opened again */
};

static void
close_end(struct close_op *co, int result)
{
	found_free(&co->found);
	free(co->list.p);
	free(co->done.list.p);
	free(co->there.p);
	/* After -ESHUTDOWN another gateway removes the map. */
	if (co->is_map_left && result != -ESHUTDOWN)
		map_remove(co->txn.port, co->act);
	else
		gateway_id_over(co->txn.port->st, co->act);
	txn_op_end(&co->txn, result);
}

/* Returns true if this operation has closed the upload. */
static bool
is_ours(const struct txn *t, const struct close_op *co, struct upload *ret_upload)
{
	return upload_row(t, ret_upload) == 0 && ret_upload->closer == co->act.instance &&
	       rid_same(ret_upload->close, co->act);
}

/* -- opening the upload again after an error -- */

static enum txn_say
decide_open_again(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);
	struct upload u;

	t->result = 0;
	return is_ours(t, co, &u) ? upload_set(t, &u, (struct rid){ 0 }) : TXN_OVER;
}

static void
on_open_again(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);

	close_end(co, co->said);
}

static void
give_up(struct close_op *co, int result)
{
	co->said = result;
	fault_point("complete.given_up");
	if (result == -ESHUTDOWN)
		close_end(co, result);
	else
		txn_again(&co->txn, decide_open_again, on_open_again);
}

/* -- the last change: removes all rows of the upload, and sets the object -- */

/* Returns the operation for the model. list: the list with which the parts are compared; NULL: none. */
static struct model_op
op_of(const struct close_op *co, const struct store_complete *list)
{
	if (!co->c)
		return (struct model_op){ .act = MODEL_ABORT };
	return (struct model_op){ .act = MODEL_COMPLETE, .pre = &co->c->pre, .complete = list };
}

static enum txn_say
put_object(struct close_op *co, const struct record *old)
{
	struct store_complete *c = co->c;
	struct record new = { .kind = co->has_map ? REC_MAP : REC_PARTS,
			      .size_bytes = co->size_bytes,
			      .crc64 = co->crc64,
			      .id = co->act,
			      .data = co->act,
			      .upload_id = co->id,
			      .part_nr = c->part_nr,
			      .parts = (const uint8_t *)co->list.p,
			      .parts_len = (uint32_t)co->list.len };
	struct model_record shown;
	enum txn_say say;

	check(co->list.p && (co->has_map || co->list.len <= REC_PARTS_BYTES_MAX));
	if (co->has_map)
		new.parts_crc64 = crc64_nvme(0, co->list.p, co->list.len);
	say = txn_put_record(&co->txn, 1, &new, &c->meta, old);
	shown = record_show(&new);
	model_tell_object(c, &shown, new.mtime_ns);
	return say;
}

static enum txn_say
decide_last(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);
	struct found_view fv = found_view(&co->found);
	struct rows rows = { .txn = t, .act = &co->act, .parts = &fv.view, .upload_bytes = co->found.bytes };
	const struct model_op op = op_of(co, co->c);
	enum txn_say say;
	struct upload u;

	if (!is_ours(t, co, &u)) {
		/* Another gateway has taken over the upload of a gateway that seemed to have ended. */
		t->result = -ECANCELED;
		return TXN_OVER;
	}
	say = rows_decide(&rows, &op);
	if (say != TXN_COMMIT)
		return say;
	t->result = found_remove(&co->found, t, co->id);
	if (t->result < 0)
		return TXN_OVER;
	txn_remove(t, 0);
	fault_point(co->c ? "complete.decided" : "abort.decided");
	return co->c ? put_object(co, rows.replaced) : TXN_COMMIT;
}

static void
on_last(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);

	fault_point(co->c ? "complete.done" : "abort.done");
	/* After -ECANCELED the change can no longer be made; or it was made, and later changes have named
	 * the map as garbage. */
	co->is_map_left &= t->result != 0 && t->result != -ECANCELED;
	if (t->result == 0 || t->result == -ECANCELED || t->result == -ESHUTDOWN)
		close_end(co, t->result);
	else
		give_up(co, t->result);
}

/* -- the map -- */

static void
on_map_written(struct call *c)
{
	struct close_op *co = container_of(c, struct close_op, call);

	fault_point("complete.map_written");
	co->is_map_left = true;
	if (c->result < 0)
		give_up(co, result_of(c->result));
	else
		txn_again(&co->txn, decide_last, on_last);
}

static void
write_map(struct close_op *co)
{
	rados_write_op_t op = rados_create_write_op();
	uint64_t crc = crc64_nvme(0, co->list.p, co->list.len);

	check(co->has_map && !co->is_map_left && co->list.len > REC_PARTS_BYTES_MAX);
	rados_write_op_write_full(op, co->list.p, co->list.len);
	rados_write_op_setxattr(op, XATTR_CRC, (const char *)&crc, sizeof crc);
	txn_set_owner(op, &co->txn);
	call_write(co->txn.port, &co->call, POOL_META, map_name(co->act).text, op, co->list.len,
		   on_map_written);
}

/* -- the parts -- */

/* Compares the parts with the list of the completion, and encodes the parts of the object. */
static int
judge_parts(struct close_op *co)
{
	struct found_view fv = found_view(&co->found);
	struct model_answer a;
	int e = model_judge_parts(co->c, &fv.view, true, &a);

	co->c->bad = a.bad;
	if (e == 0)
		e = found_encode(&co->found, &co->list);
	co->size_bytes = a.size_bytes;
	co->crc64 = a.crc64;
	co->has_map = co->list.len > REC_PARTS_BYTES_MAX;
	return e;
}

static int
on_part(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct close_op *co = container_of(cookie, struct close_op, scan);

	return found_add(&co->found, key, key_len, val, val_len);
}

static void
on_all_found(struct scan *s, int e)
{
	struct close_op *co = container_of(s, struct close_op, scan);

	if (e < 0) {
		give_up(co, result_of(e));
		return;
	}
	e = co->c ? judge_parts(co) : 0;
	fault_point("complete.judged");
	if (e < 0)
		give_up(co, e);
	else if (co->has_map)
		write_map(co);
	else
		txn_again(&co->txn, decide_last, on_last);
}

static void
on_closed(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);

	if (t->result < 0) {
		close_end(co, t->result);
		return;
	}
	fault_point(co->c ? "complete.closed" : "abort.closed");
	key_part(co->prefix, co->id, 0);
	scan_begin(t->port, &co->scan, t->shard->name, co->prefix, UINT32_MAX, on_part, on_all_found);
}

/* -- a repeated completion -- */

/* A view of the parts of an object, for queries in the order of the numbers. */
struct parts_of_object {
	struct model_view view;
	struct cur list;
	struct record part; /* part that was decoded last */
};

static int
find_of_object(struct model_view *v, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	struct parts_of_object *po = container_of(v, struct parts_of_object, view);
	int e = 1;

	while (e > 0 && po->part.number < number)
		e = part_next(&po->list, &po->part);
	if (e <= 0 || po->part.number != number)
		return e < 0 ? e : 0;
	*ret_record = record_show(&po->part);
	return 1;
}

static int
judge_done(struct close_op *co, const void *encoded)
{
	const struct record *r = &co->object;
	const struct model_record object = record_show(r);
	struct parts_of_object po = { .view.find = find_of_object, .list = cursor(encoded, r->parts_len) };

	return model_was_done(co->c, &object, r->mtime_ns, r->part_nr, &po.view) ? 0 : -ENOENT;
}

static void
on_done_map(struct call *call)
{
	struct close_op *co = container_of(call, struct close_op, done.call);
	int e = map_read_check(&co->done, &co->object);

	if (e == 0)
		e = judge_done(co, co->done.list.p);
	close_end(co, result_of(e));
}

static void
on_first(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);

	if (!co->there.p) {
		on_closed(t);
		return;
	}
	if (co->object.kind == REC_MAP) {
		t->result = map_read_send(t->port, &co->done, &co->object, on_done_map);
		if (t->result == 0)
			return;
	} else {
		t->result = judge_done(co, co->object.parts);
	}
	close_end(co, t->result);
}

/* -- closing the upload -- */

/* Finds out, after the upload was not found, whether the object was completed from this upload and with
 * this list. */
static enum txn_say
look_for_done(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);
	struct record *r = &co->object;

	t->result = -ENOENT;
	if (!co->c || !t->key[1].old.p || record_decode(t->key[1].old.p, t->key[1].old.len, r) < 0 ||
	    (r->kind != REC_PARTS && r->kind != REC_MAP) || r->part_nr != co->c->part_nr ||
	    memcmp(r->upload_id, co->id, sizeof co->id) != 0 || !record_is_there(r))
		return TXN_OVER;
	t->result = 0;
	co->there = t->key[1].old;
	t->key[1].old = (struct bytes){ 0 };
	return TXN_OVER;
}

static enum txn_say
decide_close(struct txn *t)
{
	struct close_op *co = container_of(t, struct close_op, txn);
	struct rows rows = { .txn = t };
	const struct model_op op = op_of(co, NULL);
	enum txn_say say;
	struct upload u;

	t->result = 0;
	if (!t->key[0].old.p)
		return look_for_done(t);
	if (is_ours(t, co, &u))
		return TXN_OVER;
	say = rows_decide(&rows, &op);
	if (say != TXN_COMMIT)
		return say;
	/* The usage changes only with the last change of the operation. */
	t->delta = (struct quota_change){ 0 };
	return upload_set(t, &rows.upload, co->act);
}

int
rstore_upload_close(struct store_port *sp, const struct store_change *sc, struct store_op *op)
{
	struct store_complete *c =
		sc->act == ACT_COMPLETE ? container_of(op, struct store_complete, op) : NULL;
	struct close_op *co;
	int e;

	op->port = sp;
	if (c) {
		c->was_done = false;
		c->version = c->size_bytes = c->crc64 = 0;
		op->result = model_check_list(c);
		if (op->result < 0)
			return 1;
	}
	co = txn_op_new(rport(sp), sizeof *co, &sc->key, sc->id, c != NULL);
	e = co ? gateway_id(rport(sp)->st, &co->act) : -ENOMEM;
	if (e < 0) {
		txn_op_drop(co);
		return e;
	}
	co->c = c;
	memcpy(co->id, sc->id, sizeof co->id);
	return txn_op_start(&co->txn, op, decide_close, on_first);
}
