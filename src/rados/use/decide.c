/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the rows that a transaction has read to the object model (model/decide.h). */
#include "rados/use/use_int.h"

#include "base/age_clock.h"
#include "base/check.h"
#include "rados/io/rstore.h"

#include <errno.h>

/* Finds the object or part, which is the last key; the keys before it are conditions. */
static int
find_old(struct rows *rows, struct model_record *ret_record)
{
	const struct bytes *row = &rows->txn->key[rows->txn->key_nr - 1].old;
	int e = row->p ? record_decode(row->p, row->len, &rows->old) : 0;

	if (!row->p || e < 0)
		return e;
	*ret_record = record_show(&rows->old);
	return 1;
}

/* Finds the upload. If a running gateway is completing or aborting it, the result is unknown until that
 * gateway has ended or has opened the upload again; a gateway with an unknown number is taken for a
 * running one. If the closer has ended, the upload is open again: a late change of the closer loses,
 * because it compares the row of the upload. */
static int
find_upload(struct rows *rows, struct model_record *ret_record)
{
	const struct txn *t = rows->txn;
	const struct bytes *row = &t->key[0].old;
	struct upload *u = &rows->upload;
	int e = row->p ? upload_decode(row->p, row->len, u) : 0;

	if (!row->p || e < 0)
		return e;
	if (u->closer && !(rows->act && rid_same(u->close, *rows->act)) &&
	    !gateway_is_gone(t->port->st, u->closer))
		return -EINPROGRESS;
	*ret_record = (struct model_record){ .version = 1, .size_bytes = rows->upload_bytes };
	return 1;
}

static int
find(struct model_view *v, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	struct rows *rows = container_of(v, struct rows, view);

	switch (kind) {
	case MODEL_BUCKET:
		/* The generation of the shard has proved that the bucket exists. The rows of a shard are
		 * removed together with their bucket, so all of them belong to it: the model
		 * accepts them, because the version of the bucket is given as 0. */
		*ret_record = (struct model_record){ .copies = 1 };
		return 1;
	case MODEL_UPLOAD:
		return find_upload(rows, ret_record);
	case MODEL_PART:
		if (rows->parts)
			return rows->parts->find(rows->parts, kind, number, ret_record);
		break;
	default:
		check(kind == MODEL_OBJECT);
		break;
	}
	return find_old(rows, ret_record);
}

bool
record_is_there(const struct record *r)
{
	const struct model_record shown = record_show(r);

	return model_is_there(&shown, age_clock_ns());
}

enum txn_say
rows_decide(struct rows *rows, const struct model_op *op)
{
	struct txn *t = rows->txn;
	struct model_op now = *op;
	struct model_answer a;
	bool changes;

	now.now_ns = age_clock_ns();
	check(t->object && op->act < MODEL_MAKE_BUCKET);
	rows->view.find = find;
	changes = model_decide(&now, &rows->view, &a);
	rows->replaced = changes && a.replaces ? &rows->old : NULL;
	t->result = a.result;
	t->delta = a.usage;
	return changes ? TXN_COMMIT : a.result == -EINPROGRESS ? TXN_AGAIN : TXN_OVER;
}
