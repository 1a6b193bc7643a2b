/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an upload, and of the object that it became: listing and looking up.  On the port's thread.
 */
#include "extent/object/read_int.h"

#include "base/mailbox.h"

#include <errno.h>
#include <string.h>

#define PARTS_SLICE 256

struct parts_int {
	struct extent_port *port;
	uint32_t given, at; /* at: after this number */
	uint8_t id[CHUNK_ID_BYTES];
};
_Static_assert(sizeof(struct parts_int) <= STORE_PRIV_PARTS, "STORE_PRIV_PARTS is too small");

static struct store_part
part_of(const struct rec *r, uint32_t number, uint64_t off)
{
	return (struct store_part){ .number = number,
				    .size_bytes = r->size_bytes,
				    .crc64 = r->crc64,
				    .mtime_ns = r->mtime_ns,
				    .version = r->version,
				    .off_bytes = off,
				    .etag = rec_etag(r),
				    .attrs = rec_attrs(r),
				    .attrs_len = r->attrs_len };
}

/* One slice.  True: the page is over. */
static bool
slice(struct store_part_list *pl, struct parts_int *li)
{
	struct tree_cursor c;
	uint8_t key[CHUNK_KEY_BYTES];
	bool go_on = true, there;

	key_part(key, li->id, li->at);
	there = tree_begin(&c, li->port->vp.vol->tree, key, sizeof key, true);
	for (int i = 0; i < PARTS_SLICE; i++) {
		struct store_part part;

		if (!there || !tree_begins(&c, key, 1 + CHUNK_ID_BYTES))
			return true;
		if (!go_on || li->given == pl->max) {
			pl->more = true;
			return true;
		}
		li->at = key_index((const uint8_t *)c.key);
		li->given++;
		part = part_of(c.rec, li->at, 0);
		go_on = pl->part(pl, &part);
		there = tree_next(&c);
	}
	return false;
}

static void
on_turn(struct msg *m)
{
	struct store_part_list *pl =
		container_of(container_of(m, struct store_op, msg), struct store_part_list, op);
	struct parts_int *li = (struct parts_int *)pl->priv;

	if (!slice(pl, li)) {
		mailbox_post(li->port->vp.mb, &pl->op.msg, on_turn);
		return;
	}
	li->port->vp.io.inflight--;
	pl->op.result = (int)li->given;
	pl->op.done(&pl->op);
}

int
extent_list_parts(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_part_list *pl = container_of(op, struct store_part_list, op);
	struct extent_port *p = extent_port(sp);
	struct parts_int *li = (struct parts_int *)pl->priv;
	const struct rec *r;
	int e = upload_look(sp, l, &r);

	pl->more = false;
	if (e < 0)
		return finish(op, e);
	*li = (struct parts_int){ .port = p, .at = pl->after };
	memcpy(li->id, l->id, CHUNK_ID_BYTES);
	if (slice(pl, li))
		return finish(op, (int)li->given);
	p->vp.io.inflight++;
	mailbox_post(p->vp.mb, &pl->op.msg, on_turn);
	return 0;
}

/* ---- of an object ---- */

int
extent_obj_part(struct store_obj *obj, uint32_t nr, bool by_number, struct store_part *ret_part)
{
	struct obj_int *oi = obj_int(obj);
	const struct chunk_ref *ref = obj->part_nr ? rec_entries(oi->rec) : NULL;
	uint32_t index = by_number ? ref_index(ref, obj->part_nr, nr) : nr;
	const struct rec *r;

	if (index >= obj->part_nr)
		return -ENOENT;
	if (oi->hint > index)
		oi->hint_off = oi->hint = 0;
	for (; oi->hint < index; oi->hint++)
		oi->hint_off += ref[oi->hint].len_bytes;
	r = ref_record(oi->vol->tree, &ref[index], KEY_PART);
	if (!r)
		return -EBADMSG;
	*ret_part = part_of(r, ref[index].index, oi->hint_off);
	return 0;
}
