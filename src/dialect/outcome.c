/* How outcomes look on the wire: the matrix of protocol.md 4.1 and 4.2, from the rows of headers.c.  See
 * dialect.h. */
#include "dialect/dialect_int.h"

static struct outcome
done(const struct wire_row *row, enum wire_form w, enum op op, bool partial)
{
	struct outcome o = { .status = 200 };

	switch (op) {
	case OP_GET_OBJECT:
		o.status = partial ? 206 : 200;
		o.body_data = w == WIRE_NONE;
		o.etag = true;
		break;
	case OP_HEAD_OBJECT:
		/* Of a part. */
		o.status = partial ? 206 : 200;
		o.etag = true;
		break;
	case OP_PUT_OBJECT:
	case OP_UPLOAD_PART:
		o.etag = true;
		break;
	case OP_DELETE_OBJECT:
	case OP_DELETE_BUCKET:
	case OP_DELETE_OBJECT_TAGGING:
	case OP_DELETE_BUCKET_CORS:
	case OP_DELETE_BUCKET_LIFECYCLE:
	case OP_DELETE_BUCKET_TAGGING:
	case OP_ABORT_MULTIPART_UPLOAD:
	case OP_PUT_BUCKET_TAGGING:
	case OP_POST_OBJECT: /* unless the form wants another: form_target() */
		o.status = 204;
		break;
	default:
		break;
	}
	if (row->reply) {
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
	o.body_error = f != FAULT_NOT_MODIFIED && op != OP_HEAD_OBJECT && op != OP_HEAD_BUCKET;
	if (row->reply_always || (f == FAULT_RDMA_NOT_SUPPORTED && row->decline == DECLINE_501_REPLY))
		o.reply = o.status;
	return o;
}

static struct outcome
declined(const struct wire_row *row, enum op op, bool partial)
{
	struct outcome o;

	if (row->decline != DECLINE_BODY)
		return error(row, op, FAULT_RDMA_NOT_SUPPORTED);
	/* A PUT: no body, and above all no ETag, which two clients take for stored (4.1). */
	o = (struct outcome){ .status = 200, .reply = 501 };
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
		return declined(row, op, partial);
	case OUT_FAILED:
		o = error(row, op, f);
		if (row->reply && o.status == 500)
			o.reply = 500;
		return o;
	default:
		return error(row, op, f);
	}
}
