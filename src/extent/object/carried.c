/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PUT whose key went to another engine under its commit, as an object to read: so its carrier (struct
 * store_carrier) gives the same bytes to that engine, whichever sender they came from.  On the put's thread.
 *
 * What was written is on the disk by then, as a commit is answered when its writes are over.  Its record, which was never in the log, is
 * made once more, in no index: bytes in a chunk, or inline, or a manifest, whose chunks are in the index and stay until the abort.
 */
#include "extent/object/put_int.h"
#include "extent/object/read_int.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

static struct store_key
key_of(const struct put_int *pi)
{
	struct slot_name n = slot_name(pi->name, pi->name_len);

	return name_key(&n);
}

int
extent_open_put(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_obj *obj = container_of(op, struct store_obj, op);
	struct put_int *pi = put_int(l->put);
	const struct rec_view *was = &pi->c.view;
	struct rec_view v = *was;
	struct rec *r;

	check(l->put->is_started && pi->is_carried && !pi->is_committing && pi->writes == 0);
	/* One of its own, as the cache of CRC blocks goes by it. */
	v.version = atomic_fetch_add(&pi->vol->version, 1) + 1;
	r = rec_new(NULL, &v, v.entries);
	if (!r)
		return -EAGAIN;
	op->result = 0;
	obj_open(obj, pi->vol, r);
	obj_int(obj)->mem = r;
	*l->ret_args = (struct store_put_args){
		.spec = { .key = key_of(pi),
			  .upload_id = pi->is_part ? pi->name + pi->name_len - CHUNK_ID_BYTES : NULL,
			  .part_number = pi->is_part ? key_index(pi->key) : 0,
			  .size_bytes = v.size_bytes },
		.commit = { .meta = rec_view_meta(was),
			    .pre = pi->c.pre,
			    .progress_ns = pi->progress_ns,
			    .have_expect_crc64 = true,
			    .expect_crc64 = v.crc64 },
	};
	return 1;
}
