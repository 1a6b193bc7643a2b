/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, on one engine, a change of one key that consists of one step. */
#include "set/set_int.h"

int
set_start_call(struct store_port *e, const struct store_key *k, struct store_op *op, const struct set_call *c)
{
	switch (c->kind) {
	case CALL_DELETE:
		return e->ops->delete (e, k, c->pre, container_of(op, struct store_del, op));
	case CALL_SET_ATTRS:
		return e->ops->set_attrs(e, k, c->version, c->attrs, c->attrs_len,
					 container_of(op, struct store_del, op));
	case CALL_CREATE:
		return e->ops->upload_create(e, k, c->attrs, c->attrs_len,
					     container_of(op, struct store_upload, op));
	case CALL_ABORT:
		return e->ops->upload_abort(e, k, c->id, container_of(op, struct store_upload, op));
	default:
		return e->ops->upload_complete(e, k, c->id, container_of(op, struct store_complete, op));
	}
}

void
set_give_completed(struct store_complete *to, const struct store_complete *from)
{
	to->version = from->version;
	to->size_bytes = from->size_bytes;
	to->crc64 = from->crc64;
	to->mtime_ns = from->mtime_ns;
	to->etag = from->etag;
	to->was_done = from->was_done;
	to->bad = from->bad;
}
