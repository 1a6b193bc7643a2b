/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and reading.  Open looks up and pins within one turn of the loop; a read checks every granule
 * before it says so.  On the port's thread.
 *
 *	part: data read --+
 *	      CRC block ----+--> both over: granules against the CRC block --> next part, or done
 */
#include "extent/object/read_int.h"

#include "extent/disk/rules.h"
#include "base/check.h"
#include "base/crc64.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct obj_int) <= STORE_PRIV_OBJ, "STORE_PRIV_OBJ is too small");
_Static_assert(sizeof(struct read_int) <= STORE_PRIV_READ, "STORE_PRIV_READ is too small");

void
obj_open(struct store_obj *obj, struct vol *vol, struct rec *r)
{
	struct obj_int *oi = obj_int(obj);

	*oi = (struct obj_int){ .vol = vol, .rec = r };
	/* Before this thread's next quiescent point: a thread that replaces the record meanwhile waits for
	 * that, and then sees the pin. */
	pin_add(vol->pins, &oi->pin, RULE_PIN_BYTES ? rec_pin_id(r) : r->version);
	obj->size_bytes = r->size_bytes;
	obj->version = r->version;
	obj->crc64 = r->crc64;
	obj->meta = rec_meta(r);
	obj->part_nr = r->body == BODY_PARTS ? r->entry_nr : 0;
	obj->is_open = true;
}

int
extent_open(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_obj *obj = container_of(op, struct store_obj, op);
	struct vol *vol = extent_port(sp)->vp.vol;
	uint8_t key[KEY_BYTES_MAX];
	size_t len = key_object(key, &l->key);
	struct rec *r = tree_get(vol->tree, key, len);

	obj->is_open = false;
	if (!r || !rec_is_there_now(r))
		return finish(&obj->op, bucket_of_key(vol->tree, key, len) ? -ENOENT : -ENXIO);
	obj_open(obj, vol, r);
	return finish(&obj->op, 0);
}

int
extent_open_part(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_obj *obj = container_of(op, struct store_obj, op);
	struct vol *vol = extent_port(sp)->vp.vol;
	uint8_t key[CHUNK_KEY_BYTES];
	const struct rec *upload;
	int e = upload_look(sp, l, &upload);
	struct rec *r;

	obj->is_open = false;
	if (e < 0)
		return finish(&obj->op, e);
	r = tree_get(vol->tree, key, (size_t)key_part(key, l->id, l->number));
	if (r)
		obj_open(obj, vol, r);
	return finish(&obj->op, r ? 0 : -ENOENT);
}

void
extent_close(struct store_port *sp, struct store_obj *obj)
{
	struct obj_int *oi = obj_int(obj);

	if (!obj->is_open)
		return;
	obj->is_open = false;
	obj->meta.attrs = NULL;
	oi->rec = NULL;
	pin_drop(oi->vol->pins, &oi->pin);
	free(oi->mem);
	oi->mem = NULL;
}

/* ---- reading ---- */

static void
read_done(struct read_int *ri, int error)
{
	struct store_op *op = &ri->rd->op;

	/* Of a disk that is known to have failed it says nothing of the object. */
	if (error == -EIO && disk_failed(&ri->obj->vol->disk))
		error = -ENODEV;
	op->result = error ? error : (int)ri->len;
	op->done(op);
}

/* The chunk of a manifest that holds byte *off, which becomes the offset in it. */
static const struct chunk_ref *
chunk_at(const struct rec *r, uint64_t *off)
{
	const struct chunk_ref *ch = rec_entries(r);

	for (uint32_t i = 0; r->body == BODY_MANIFEST && i < r->entry_nr; i++) {
		if (*off < ch[i].len_bytes)
			return &ch[i];
		*off -= ch[i].len_bytes;
	}
	return NULL;
}

/* The part that holds byte off of an object made of parts, and where it begins. */
static uint32_t
part_at(const struct obj_int *oi, uint64_t off, uint64_t *ret_begin)
{
	const struct chunk_ref *ref = rec_entries(oi->rec);
	bool behind = off >= oi->hint_off;
	uint64_t begin = behind ? oi->hint_off : 0;
	uint32_t i = behind ? oi->hint : 0;

	for (; i + 1 < oi->rec->entry_nr && off - begin >= ref[i].len_bytes; i++)
		begin += ref[i].len_bytes;
	*ret_begin = begin;
	return i;
}

/* The chunk that holds byte *off of the object, which becomes the offset in it.  NULL: something it names is
 * not there. */
static const struct chunk_ref *
find_chunk(const struct obj_int *oi, uint64_t *off)
{
	const struct rec *r = oi->rec;

	if (r->body == BODY_PARTS) {
		uint64_t begin;
		uint32_t i = part_at(oi, *off, &begin);

		*off -= begin;
		r = ref_record(oi->vol->tree, (const struct chunk_ref *)rec_entries(r) + i, KEY_PART);
	}
	return r ? chunk_at(r, off) : NULL;
}

/* The record that holds byte `off` of the object, and where in it.  -EBADMSG: a manifest that names what is
 * not there. */
static int
locate(const struct obj_int *oi, uint64_t off, const struct rec **ret_rec, uint64_t *ret_off)
{
	const struct rec *r = oi->rec;
	const struct chunk_ref *ch;

	if (r->body == BODY_EXTENTS || r->body == BODY_PACKED) {
		*ret_rec = r;
		*ret_off = off;
		return 0;
	}
	ch = find_chunk(oi, &off);
	if (!ch)
		return -EBADMSG;
	/* The chunk stays while its manifest is pinned, so its record may be kept beyond this turn. */
	r = ref_record(oi->vol->tree, ch, KEY_CHUNK);
	if (!r || r->body != BODY_EXTENTS || off % STORE_GRANULE)
		return -EBADMSG;
	*ret_rec = r;
	*ret_off = off;
	return 0;
}

uint32_t
extent_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap, uint32_t *ret_skew)
{
	const struct obj_int *oi = (const struct obj_int *)obj->priv;
	uint64_t at = off, end = obj->size_bytes, from, to;

	if (obj->part_nr) {
		const struct chunk_ref *ch = find_chunk(oi, &at);

		/* What is damaged is for the read to say. */
		if (ch)
			end = ch->len_bytes;
		else
			at = off;
	}
	from = at & ~(uint64_t)(STORE_GRANULE - 1);
	to = at + (want < cap ? want : cap);
	to = (to + STORE_GRANULE - 1) & ~(uint64_t)(STORE_GRANULE - 1);
	if (to > end)
		to = end;
	if (to - from > cap)
		to = from + cap;
	*ret_skew = (uint32_t)(at - from);
	return (uint32_t)(to - from);
}

/* Is [off, off + len) what a read may ask for? */
static bool
range_ok(const struct store_obj *obj, uint64_t off, uint32_t len)
{
	const struct obj_int *oi = (const struct obj_int *)obj->priv;
	const struct chunk_ref *ch;

	if (len == 0 || off > obj->size_bytes || len > obj->size_bytes - off)
		return false;
	if (!obj->part_nr)
		return off % STORE_GRANULE == 0 && (len % STORE_GRANULE == 0 || off + len == obj->size_bytes);
	ch = find_chunk(oi, &off);
	/* Damage is told as such. */
	return !ch || (off % STORE_GRANULE == 0 && len <= ch->len_bytes - off &&
		       (len % STORE_GRANULE == 0 || off + len == ch->len_bytes));
}

static void
bad_bytes(const struct read_int *ri, const char *what)
{
	struct vol *vol = ri->obj->vol;
	uint64_t first = ext_unit(((const uint64_t *)rec_entries(ri->rec))[0]);

	atomic_fetch_add_explicit(&vol->disk.stats.crc_errors, 1, memory_order_relaxed);
	log_limited(LOG_ERROR,
		    "%s: %s at byte %llu of version %llu (%llu bytes from unit %llu on) does not match its "
		    "checksum",
		    vol->disk.name, what, (unsigned long long)ri->seg_off,
		    (unsigned long long)ri->rec->version, (unsigned long long)ri->rec->size_bytes,
		    (unsigned long long)first);
}

/* All bytes of the part are here, and so is the CRC block if it has one. */
static int
check_segment(struct read_int *ri)
{
	const struct rec *r = ri->rec;
	const char *mem = ri->buf->mem + ri->done + ri->rd->lead;
	const uint64_t *crc = &r->crc64;

	if (ri->has_tail) {
		crc = (const uint64_t *)(const void *)(mem + align_up(ri->seg_len, FMT_ALIGN));
		if (!crc_block_fits(crc, r->size_bytes, r->crc64)) {
			bad_bytes(ri, "the CRC block read");
			return -EBADMSG;
		}
	} else if (ri->crc_block) {
		crc = ri->crc_block->crc;
	}
	if (check_granules(mem, ri->seg_len, crc + ri->seg_off / STORE_GRANULE) == 0)
		return 0;
	bad_bytes(ri, "a granule read");
	return -EBADMSG;
}

static void
segment_done(struct read_int *ri)
{
	struct extent_port *p = ri->port;
	struct crc_block *t = ri->crc_block;

	if (!ri->data_done || !ri->crc_block_done)
		return;
	if (ri->error == 0)
		ri->error = check_segment(ri);
	ri->crc_block = NULL;
	if (t)
		crc_block_put(p, t);
	ri->done += ri->seg_len;
	if (ri->error || ri->done == ri->len)
		read_done(ri, ri->error);
	else
		read_segment_begin(ri);
}

static void
on_data(struct xio *x)
{
	struct read_int *ri = container_of(x, struct read_int, x);

	if (x->error && !ri->error)
		ri->error = -EIO;
	ri->data_done = true;
	segment_done(ri);
}

void
read_crc_block_done(struct read_int *ri, int error)
{
	if (error && !ri->error)
		ri->error = error == -EBADMSG ? error : -EIO;
	ri->crc_block_done = true;
	segment_done(ri);
}

/* The pages go into the buffer, which has room for two more after its end.  A packed object is of one granule, so that all
 * of it is read. */
static void
read_packed(struct read_int *ri)
{
	struct place_pages pg = place_pages(*(const uint64_t *)rec_entries(ri->rec), ri->rec->size_bytes);

	ri->unit = pg.ext;
	ri->rd->lead = pg.skew;
	check(ri->done == 0 && pg.len <= ri->buf->cap_bytes + BUF_SLACK_BYTES);
	xio_start(&ri->x, &ri->port->vp.io, &ri->obj->vol->disk, false, &ri->unit, 1, pg.off, ri->buf->mem,
		  pg.len, ri->buf->region, on_data);
}

void
read_segment_begin(struct read_int *ri)
{
	const struct rec *r;
	uint32_t padded, tail;

	if (locate(ri->obj, ri->off + ri->done, &ri->rec, &ri->seg_off) < 0) {
		read_done(ri, -EBADMSG);
		return;
	}
	r = ri->rec;
	ri->seg_len = ri->len - ri->done;
	if (ri->seg_len > r->size_bytes - ri->seg_off)
		ri->seg_len = (uint32_t)(r->size_bytes - ri->seg_off);
	padded = (uint32_t)align_up(ri->seg_len, FMT_ALIGN);
	tail = (uint32_t)align_up(crc_block_bytes(r->size_bytes), FMT_ALIGN);
	/* The whole record in one piece: its CRC block comes along, where there is room for it. */
	ri->has_tail = tail && ri->seg_off == 0 && ri->seg_len == r->size_bytes &&
		       ri->done + padded + tail <= ri->buf->cap_bytes + BUF_SLACK_BYTES;
	ri->data_done = ri->crc_block_done = false;
	if (ri->has_tail || !tail) {
		ri->crc_block_done = true;
		padded += ri->has_tail ? tail : 0;
	} else {
		int t = crc_block_get(ri->port, ri);

		if (t < 0)
			return;
		ri->crc_block_done = t > 0;
	}
	if (r->body == BODY_PACKED) {
		read_packed(ri);
		return;
	}
	xio_start(&ri->x, &ri->port->vp.io, &ri->obj->vol->disk, false, rec_entries(r), r->entry_nr,
		  ri->seg_off, ri->buf->mem + ri->done, padded, ri->buf->region, on_data);
}

int
extent_read(struct store_port *sp, struct store_obj *obj, struct store_read *rd, struct buf *buf,
	    uint64_t off, uint32_t len)
{
	struct extent_port *p = extent_port(sp);
	struct obj_int *oi = obj_int(obj);
	struct read_int *ri = (struct read_int *)rd->priv;
	const struct rec *r;
	uint64_t seg_off;

	check(obj->is_open);
	rd->op.port = &p->base;
	if (len > buf->cap_bytes || !range_ok(obj, off, len))
		return -EINVAL;
	if (obj->part_nr)
		oi->hint = part_at(oi, off, &oi->hint_off);
	if (oi->rec->body == BODY_INLINE) {
		memcpy(buf->mem, rec_inline(oi->rec) + off, len);
		if (crc64_nvme(0, buf->mem, len) != oi->rec->crc64)
			return finish(&rd->op, -EBADMSG);
		return finish(&rd->op, (int)len);
	}
	if (locate(oi, off, &r, &seg_off) < 0) {
		atomic_fetch_add_explicit(&oi->vol->disk.stats.crc_errors, 1, memory_order_relaxed);
		return finish(&rd->op, -EBADMSG);
	}
	memset(ri, 0, offsetof(struct read_int, x));
	ri->port = p;
	ri->rd = rd;
	ri->obj = oi;
	ri->buf = buf;
	ri->off = off;
	ri->len = len;
	read_segment_begin(ri);
	return 0;
}
