/* SPDX-License-Identifier: Apache-2.0 */
/* How outcomes look on the wire: the matrix of protocol.md 4.1 and 4.2, from the rows of op.def and wire.def.
 * See dialect.h. */
#include "dialect/dialect_int.h"

static struct outcome
done(const struct wire_row *row, enum wire_form w, enum op op, bool partial)
{
	bool reads = op == OP_GET_OBJECT || op == OP_HEAD_OBJECT; /* HEAD may be of a part, too */
	struct outcome o = { .status = reads && partial ? 206 : op_info[op].ok };

	o.etag = reads || op_pulls(op);
	o.body_data = op == OP_GET_OBJECT && w == WIRE_NONE;
	if (row->reply != REPLY_NEVER) {
		o.reply = o.status;
		o.bytes = true;
	}
	return o;
}

static struct outcome
error(const struct wire_row *row, enum op op, enum fault f)
{
	struct outcome o = { .status = fault_info(f)->status };

	/* HEAD and 304 have no body; a 304 names the version that the client may keep. */
	o.etag = f == FAULT_NOT_MODIFIED;
	o.body_error = f != FAULT_NOT_MODIFIED && op_info[op].method != METHOD_HEAD;
	if (row->reply == REPLY_ALWAYS ||
	    (f == FAULT_RDMA_NOT_SUPPORTED && row->decline == DECLINE_501_REPLY))
		o.reply = o.status;
	return o;
}

/* For clients that turn to HTTP on a 2xx only.  A PUT: no body, and above all no ETag, which some of them
 * take for stored (4.1).  Where no reply code can say so, a 2xx would be a lie. */
static struct outcome
declined_2xx(const struct wire_row *row, enum op op, bool partial)
{
	struct outcome o = { .status = 200, .reply = 501 };

	if (row->decline != DECLINE_501_REPLY)
		return error(row, op, FAULT_RDMA_NOT_SUPPORTED);
	if (op == OP_GET_OBJECT) {
		o.status = partial ? 206 : 200;
		o.body_data = true;
		o.etag = true;
	}
	return o;
}

struct outcome
dialect_outcome(enum wire_form w, enum op op, enum outcome_kind kind, bool partial, enum fault f)
{
	const struct wire_row *row = &wire_rows[w];
	struct outcome o;

	switch (kind) {
	case OUT_DONE:
		return done(row, w, op, partial);
	case OUT_DECLINED:
		return error(row, op, FAULT_RDMA_NOT_SUPPORTED);
	case OUT_DECLINED_2XX:
		return declined_2xx(row, op, partial);
	case OUT_FAILED:
		o = error(row, op, f);
		if (row->reply != REPLY_NEVER && o.status == 500)
			o.reply = 500;
		return o;
	default:
		return error(row, op, f);
	}
}
