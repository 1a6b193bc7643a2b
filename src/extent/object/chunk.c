/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of one chunk (or of an object that is not larger than one): space, checksums, CRC block, map,
 * and the hand-over of its record.  On the port's thread; the writers are the port's pool.
 *
 *	taking bytes ---> closed ---> handed over ---> the commit's end (put.c, large.c) ---> pool
 *	                   data <= 8 MiB: at once, its writes still in flight
 *	                   else: when they are over, to be flushed before the record enters the log
 */
#include "extent/object/chunk.h"

#include "extent/disk/rules.h"
#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <string.h>

#define GUESS_UNITS_MAX 1024u /* taken ahead when the size is not known */

struct chunk_writer *
writer_get(struct extent_port *p, struct put_int *put)
{
	struct chunk_writer *w = pool_get(&p->writers);

	if (!w)
		return NULL;
	/* Not the two arrays: they are large, and written before they are read. */
	memset(w, 0, offsetof(struct chunk_writer, granule));
	w->port = p;
	w->vol = p->vp.vol;
	w->put = put;
	return w;
}

uint64_t
writer_take(struct chunk_writer *w, const void *mem, uint32_t len)
{
	const char *at = mem;
	uint64_t all = 0;

	check(!w->is_closed && w->size_bytes % STORE_GRANULE == 0 && w->size_bytes + len <= FMT_CHUNK_BYTES);
	for (uint32_t left = len; left;) {
		uint32_t n = left < STORE_GRANULE ? left : STORE_GRANULE;
		uint64_t crc = crc64_nvme(0, at, n);

		all = left == len ? crc : crc64_nvme_combine(all, crc, n);
		w->granule[w->granule_nr++] = crc;
		at += n;
		left -= n;
	}
	w->crc64 = w->size_bytes ? crc64_nvme_combine(w->crc64, all, len) : all;
	w->size_bytes += len;
	return all;
}

/* ---- space ---- */

static void
add_extent(struct chunk_writer *w, const struct extent *x)
{
	uint64_t per_seg = geo_seg_units(&w->vol->disk.geo);

	w->units += x->units;
	if (w->ext_nr) {
		uint64_t last = w->ext[w->ext_nr - 1];

		if (ext_unit(last) + ext_nr(last) == x->unit && x->unit % per_seg != 0 &&
		    (uint64_t)ext_nr(last) + x->units <= EXT_NR_MAX) {
			w->ext[w->ext_nr - 1] = ext_make(ext_unit(last), ext_nr(last) + x->units);
			return;
		}
	}
	w->ext[w->ext_nr++] = ext_make(x->unit, x->units);
}

int
writer_reserve(struct chunk_writer *w, uint64_t upto_bytes, uint64_t expect_bytes)
{
	uint64_t unit = w->vol->disk.geo.unit_bytes;
	uint64_t need = align_up(upto_bytes, unit) / unit, want;
	uint64_t most = alloc_most(w->vol->disk.alloc);

	if (expect_bytes)
		want = align_up(expect_bytes, unit) / unit;
	else
		want = w->units < GUESS_UNITS_MAX ? 2 * w->units : w->units + GUESS_UNITS_MAX;
	want = want < need ? need : want;
	while (w->units < need) {
		struct extent x;
		uint64_t n = want - w->units < most ? want - w->units : most;

		if (w->ext_nr == WRITER_EXTENTS ||
		    alloc_take(w->vol->disk.alloc, &w->port->run, (uint32_t)n, &x) < 0)
			return -ENOSPC;
		add_extent(w, &x);
	}
	return 0;
}

/* Gives back all units after the first `units`. */
static void
trim(struct chunk_writer *w, uint64_t units)
{
	while (w->units > units) {
		uint64_t last = w->ext[w->ext_nr - 1];
		uint32_t cut = w->units - units < ext_nr(last) ? (uint32_t)(w->units - units) : ext_nr(last);

		disk_extents_free(&w->vol->disk,
				  &(uint64_t){ ext_make(ext_unit(last) + ext_nr(last) - cut, cut) }, 1);
		w->units -= cut;
		if (cut == ext_nr(last))
			w->ext_nr--;
		else
			w->ext[w->ext_nr - 1] = ext_make(ext_unit(last), ext_nr(last) - cut);
	}
}

/* ---- CRC block and map ---- */

uint32_t
writer_crc_block(struct chunk_writer *w, void *mem)
{
	uint32_t len = crc_block_bytes(w->size_bytes), padded = (uint32_t)align_up(len, FMT_ALIGN);

	if (len && mem != w->granule)
		memcpy(mem, w->granule, len);
	memset((char *)mem + len, 0, padded - len);
	w->has_crc_block = true;
	return padded;
}

static void
on_crc_block(struct xio *x)
{
	struct chunk_writer *w = container_of(x, struct chunk_writer, crc_block_io);

	writer_io_done(w, x->error);
}

int
writer_write_small(struct chunk_writer *w, const void *bytes, uint32_t len)
{
	/* Of one granule the checksum is in w->crc64 alone, so the table's place is free, and aligned. */
	check(len <= STORE_INLINE_MAX && w->size_bytes == len);
	if (writer_reserve(w, FMT_ALIGN, FMT_ALIGN) < 0)
		return -ENOSPC;
	memcpy(w->granule, bytes, len);
	memset((char *)w->granule + len, 0, FMT_ALIGN - len);
	w->io_left++;
	xio_start(&w->crc_block_io, &w->port->vp.io, &w->vol->disk, true, w->ext, w->ext_nr, 0, w->granule,
		  FMT_ALIGN, RING_NO_REGION, on_crc_block);
	return 0;
}

static void
on_map(struct map_out *m, int error)
{
	writer_io_done(container_of(m, struct chunk_writer, map), error);
}

int
writer_map_list(struct chunk_writer *w, uint32_t len)
{
	int e;

	w->io_left++;
	e = map_begin(&w->map, w->port, w->ext, len, on_map);
	if (e < 0)
		w->io_left--;
	return e;
}

static bool
needs_crc_block(const struct chunk_writer *w)
{
	return crc_block_bytes(w->size_bytes) && !w->has_crc_block;
}

/* There is space for all bytes, and the CRC block.  As writer_close(). */
static int
close_rest(struct chunk_writer *w)
{
	uint64_t stored = stored_bytes(w->size_bytes), unit = w->vol->disk.geo.unit_bytes;
	int e = 0;

	trim(w, align_up(stored, unit) / unit);
	/* More extents than a record names. */
	if (w->ext_nr > FMT_ENTRY_MAX)
		e = writer_map_list(w, w->ext_nr * (uint32_t)sizeof w->ext[0]);
	if (e < 0)
		return e;
	/* From here on only the disk fails, and waiting for space: w->error. */
	w->is_closed = true;
	if (needs_crc_block(w)) {
		uint32_t padded = writer_crc_block(w, w->granule);

		w->io_left++;
		xio_start(&w->crc_block_io, &w->port->vp.io, &w->vol->disk, true, w->ext, w->ext_nr,
			  stored - padded, w->granule, padded, RING_NO_REGION, on_crc_block);
	}
	return e;
}

static bool
take_for_crc_block(struct space_wait *sw)
{
	struct chunk_writer *w = container_of(sw, struct chunk_writer, wait);
	uint64_t stored = stored_bytes(w->size_bytes);

	return writer_reserve(w, stored, stored) == 0;
}

static void
on_waited(struct space_wait *sw, int error)
{
	struct chunk_writer *w = container_of(sw, struct chunk_writer, wait);

	int e = error ? -ENOSPC : close_rest(w);

	writer_io_done(w, e < 0 ? e : 0);
}

int
writer_close(struct chunk_writer *w)
{
	int e;

	if (w->is_closed)
		return 0;
	e = needs_crc_block(w) ? space_get(w->port, &w->wait, take_for_crc_block, on_waited) : 0;
	if (e == 1)
		w->io_left++;
	return e ? e : close_rest(w);
}

/* ---- hand-over ---- */

void
writer_view(const struct chunk_writer *w, struct rec_view *v)
{
	v->op = REC_PUT;
	v->body = BODY_EXTENTS;
	v->flags |= w->size_bytes > FMT_FLUSHED_BYTES ? REC_FLUSHED : 0;
	v->size_bytes = w->size_bytes;
	v->crc64 = w->crc64;
	v->entry_nr = w->ext_nr;
	v->entries = w->ext;
}

static void
submit(struct chunk_writer *w)
{
	struct commit *c = w->commit;

	/* A manifest without a map has nothing of its own on the disk,
	 * and its chunks' records are flushed. */
	bool is_flushed = RULE_MANIFEST_AFTER_CHUNKS && c->view.body == BODY_MANIFEST && !w->map.ref.nr;

	map_view(&w->map, &c->view);
	if (c->view.flags & REC_FLUSHED && !is_flushed) {
		/* A flush that begins from now on covers all of its writes. */
		c->flush_ticket = vol_flush_ticket(w->vol);
	}
	atomic_store(&c->state, w->io_left ? 0 : CS_DATA_DONE);
	atomic_store(&c->data_error, w->error);
	commit_submit(&w->port->vp, c);
}

void
writer_hand_over(struct chunk_writer *w, struct commit *c)
{
	w->commit = c;
	/* Where writes find no room, a record that comes after its data spares the others of its block. */
	if ((c->view.flags & REC_FLUSHED || disk_is_short(&w->vol->disk)) && w->io_left)
		w->hand_over_when_written = true;
	else
		submit(w);
}

void
writer_hand_over_later(struct chunk_writer *w, struct commit *c)
{
	w->commit = c;
	w->hand_over_when_written = w->close_when_written = true;
}

/* All that was begun is written.  Closing may begin more, and wait for space; then this comes again. */
static void
all_written(struct chunk_writer *w)
{
	if (w->close_when_written) {
		int e = w->error ? 0 : writer_close(w);

		if (e < 0)
			w->error = e;
		if (w->io_left)
			return;
		w->close_when_written = false;
		writer_view(w, &w->commit->view);
	}
	w->hand_over_when_written = false;
	submit(w);
}

/* It never got as far as the disk, for want of space or of the kernel's memory: nothing touches the space any
 * more. */
static bool
is_harmless(int error)
{
	return error == -ENOSPC || error == -EAGAIN;
}

void
writer_io_done(struct chunk_writer *w, int error)
{
	if (error) {
		/* Anything that the disk said weighs more. */
		if (!w->error || is_harmless(w->error))
			w->error = error;
		if (!is_harmless(error))
			disk_fail(&w->vol->disk, "writing data failed: %s", strerror(-error));
	}
	if (--w->io_left || !w->commit)
		return;
	if (w->hand_over_when_written) {
		all_written(w);
		return;
	}
	commit_data_done(&w->port->vp, w->commit, w->error);
}

void
writer_put(struct chunk_writer *w, bool give_back)
{
	struct extent_port *p = w->port;

	check(w->io_left == 0);
	/* After a failed write nobody knows what it may still touch: quarantined until a restart. */
	give_back = give_back && (!w->error || is_harmless(w->error) || !RULE_REUSE_WRITES_OVER);
	if (give_back)
		disk_extents_free(&w->vol->disk, w->ext, w->ext_nr);
	map_end(&w->map, give_back);
	pool_put(&p->writers, w);
}
