/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PUT: pieces to the disk, then a commit to the leader.  On the port's thread.
 *
 *   init --> write, write, ... --> commit --+-- inline -------------------------------------> handed over
 *                                           +-- up to 8 MiB: last piece and record together -> handed over
 *                                           +-- up to a chunk: pieces written, flushed ------> handed over
 *                                           +-- larger: chunks handed over as they fill;
 *                                               when all of them are in the log, the manifest -> handed over
 *
 * Before it is handed over an abort gives everything back; after that nothing cancels it.  Where the commit comes to -EXDEV its carrier
 * takes it over, if it has one (carried.c): all stays as it is until the abort.
 */
#include "extent/object/put_int.h"

#include "extent/log/parts.h"
#include "model/quota.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct put_int) <= STORE_PRIV_PUT, "STORE_PRIV_PUT is too small");
_Static_assert(sizeof(struct write_int) <= STORE_PRIV_WRITE, "STORE_PRIV_WRITE is too small");

/* ---- init ---- */

/* Returns 0 or -ENOSPC. is_copy: of a second copy also the reserve for snapshots has to be free, however small the copy is, as
 * the first one is committed by the time that this one's commit finds no room. */
static int
check_room(struct vol *vol, uint64_t units, bool is_copy)
{
	/* In this order: what has come back since is counted as free. */
	bool coming = atomic_load(&vol->dead_nr) || (is_copy && alloc_is_claimed(vol->disk.alloc));
	struct alloc_stats as;

	alloc_stats(vol->disk.alloc, &as);
	if (coming || units + (is_copy ? as.held_back : 0) <=
			      geo_units(&vol->disk.geo) - as.units + as.free + as.leased)
		return 0;
	atomic_fetch_add(&vol->disk.stats.space_refused, 1);
	return -ENOSPC;
}

/* Early: nothing that only the leader can know, but what is hopeless need not be pulled from a client's
 * memory. */
static int
early_check(struct extent_port *p, struct vol *vol, uint64_t size_bytes)
{
	if (disk_failed(&vol->disk))
		return -EROFS;
	if (vol_refuses_puts(vol)) {
		/* A snapshot gives the log room. If the last one failed, the leader has to begin the next one, and
		 * no commit of a refused PUT wakes the leader. */
		atomic_store(&vol->want_lead, true);
		return -EAGAIN;
	}
	if (size_bytes == STORE_SIZE_UNKNOWN || size_bytes <= STORE_PIECE)
		return 0;
	if (size_bytes / FMT_CHUNK_BYTES >= PUT_CHUNKS_MAX)
		return -EFBIG;
	return check_room(vol, size_bytes / vol->disk.geo.unit_bytes, false);
}

/* The keys are known, and for a part its upload's. */
static int
init(struct extent_port *p, struct store_put *put, uint64_t size_bytes)
{
	struct put_int *pi = put_int(put);
	uint64_t unit = p->vp.vol->disk.geo.unit_bytes;
	bool has_writer = size_bytes > (pi->is_part ? 0 : STORE_INLINE_MAX);
	int e;

	pi->vol = p->vp.vol;
	pi->hold.has_two = key_has_two(pi->name[0]);
	e = early_check(p, pi->vol, size_bytes);
	if (e == 0 && !pi->sent)
		e = usage_reserve(pi->vol, pi->name, pi->name_len, pi->key, pi->key_len, size_bytes,
				  &pi->hold);
	if (e == 0 && pi->sent == &pi->copy.ps && has_writer)
		e = check_room(pi->vol, size_bytes == STORE_SIZE_UNKNOWN ? 1 : size_bytes / unit + 1, true);
	if (e == 0 && has_writer && pool_avail(&p->writers) < (pi->is_part ? 2 : 1))
		e = -EAGAIN;
	if (e < 0) {
		quota_end(pi->vol->quotas, pi->vol->counter, &pi->hold);
		return e;
	}
	pi->put = put;
	pi->port = p;
	pi->expect_bytes = size_bytes;
	put->is_started = true;
	return 0;
}

static struct put_int *
init_none(struct extent_port *p, struct store_put *put)
{
	struct put_int *pi = put_int(put);

	put->is_started = false;
	put->size_bytes = put->crc64 = put->version = 0;
	put->carrier = NULL;
	put->op.port = &p->base;
	memset(pi, 0, offsetof(struct put_int, last));
	return pi;
}

/* Sets the keys of a PUT. */
static void
set_keys(struct put_int *pi, const struct store_put_spec *spec)
{
	uint8_t *name = spec->upload_id ? pi->upload_key : pi->key;

	pi->name = name;
	pi->name_len = pi->key_len = key_upload(name, &spec->key, spec->upload_id);
	pi->is_part = spec->upload_id != NULL;
	if (pi->is_part)
		pi->key_len = (uint16_t)key_part(pi->key, spec->upload_id, spec->part_number);
}

/* Checks bucket, upload and, for a secondary copy, the assignment of the key. The commit judges again. */
static int
check_place(struct vol *vol, const struct put_int *pi, const struct store_put_spec *spec)
{
	const struct rec *r;

	if (spec->is_copy && slots_own_key(vol->slots, pi->name, pi->name_len))
		return -EPERM;
	if (pi->is_part)
		return upload_find(vol, pi->name, pi->name_len, &r);
	return bucket_of_key(vol->tree, pi->name, pi->name_len) ? 0 : -ENXIO;
}

int
extent_put_init(struct store_port *sp, struct store_put *put, const struct store_put_spec *spec)
{
	struct extent_port *p = extent_port(sp);
	struct put_int *pi = init_none(p, put);
	int e;

	set_keys(pi, spec);
	e = check_place(p->vp.vol, pi, spec);
	if (spec->is_copy)
		pi->sent = &pi->copy.ps;
	return e < 0 ? e : init(p, put, spec->size_bytes);
}

int
put_init_sent(struct extent_port *p, struct store_put *put, const struct store_put_spec *spec,
	      const struct put_sent *ps)
{
	struct put_int *pi = init_none(p, put);

	set_keys(pi, spec);
	pi->sent = ps;
	return init(p, put, spec->size_bytes);
}

/* ---- pieces ---- */

/* The chunk that is full gives way to the next.  Writers were counted before. */
static void
next_writer(struct put_int *pi)
{
	if (pi->cw && pi->cw->size_bytes == FMT_CHUNK_BYTES)
		large_chunk_full(pi);
	if (pi->is_part)
		large_begin(pi);
	if (!pi->cw) {
		pi->cw = writer_get(pi->port, pi);
		check(pi->cw);
		pi->cw->index = pi->chunk_nr;
	}
}

/* How many writers these bytes may take from the pool. */
static int
writers_needed(const struct put_int *pi, uint32_t len)
{
	uint64_t in_chunk = pi->cw ? pi->cw->size_bytes : 0;
	int nr = !pi->cw || in_chunk == FMT_CHUNK_BYTES;

	if (in_chunk == FMT_CHUNK_BYTES)
		in_chunk = 0;
	nr += in_chunk + len > FMT_CHUNK_BYTES;
	return nr + !pi->list;
}

/* Takes the bytes in: which part goes to which chunk, checksums, sizes, CRC block. */
static void
take_in(struct put_int *pi, struct write_int *wi, struct buf *buf, uint32_t len, bool last)
{
	struct store_put *put = pi->put;
	uint32_t done = 0;

	memset(wi, 0, sizeof *wi);
	wi->pi = pi;
	wi->buf = buf;
	while (done < len) {
		struct chunk_io *io = &wi->io[wi->io_nr++];
		uint64_t room, crc;

		next_writer(pi);
		room = FMT_CHUNK_BYTES - pi->cw->size_bytes;
		io->w = pi->cw;
		io->off = (uint32_t)pi->cw->size_bytes;
		io->mem = buf->mem + done;
		io->len = len - done < room ? len - done : (uint32_t)room;
		crc = writer_take(pi->cw, io->mem, io->len);
		put->crc64 = put->size_bytes ? crc64_nvme_combine(put->crc64, crc, io->len) : crc;
		put->size_bytes += io->len;
		pi->cw->io_left++;
		done += io->len;
		io->len = (uint32_t)align_up(io->len, FMT_ALIGN);
		memset(buf->mem + done, 0, (size_t)(io->mem + io->len - (buf->mem + done)));
		/* After the last byte of the buffer there is room for the CRC block, and one write does for
		 * both. */
		if (done == len && (last || pi->cw->size_bytes == FMT_CHUNK_BYTES))
			io->len += writer_crc_block(pi->cw, io->mem + io->len);
	}
}

static int
check_piece(const struct put_int *pi, const struct buf *buf, uint32_t len, bool last)
{
	if (pi->error)
		return pi->error;
	if (disk_failed(&pi->vol->disk))
		return -EROFS;
	if (pi->is_ended || len == 0 || len > buf->cap_bytes || len > STORE_PIECE ||
	    (!last && len % STORE_GRANULE))
		return -EINVAL;
	if (pi->put->size_bytes / FMT_CHUNK_BYTES >= PUT_CHUNKS_MAX - 1)
		return -EFBIG;
	return pool_avail(&pi->port->writers) < writers_needed(pi, len) ? -EAGAIN : 0;
}

int
extent_put_write(struct store_port *sp, struct store_put *put, struct store_write *w, struct buf *buf,
		 uint32_t len, bool last)
{
	struct extent_port *p = extent_port(sp);
	struct put_int *pi = put_int(put);
	struct write_int *wi = (struct write_int *)w->priv;
	int e;

	check(put->is_started && !pi->is_committing);
	w->op.port = &p->base;
	w->op.result = 0;
	e = check_piece(pi, buf, len, last);
	/* Without a length the reservation grows piece by piece. */
	if (e == 0 && pi->expect_bytes == STORE_SIZE_UNKNOWN && !pi->sent)
		e = usage_reserve(pi->vol, pi->name, pi->name_len, pi->key, pi->key_len,
				  put->size_bytes + len, &pi->hold);
	if (e < 0)
		return e;
	take_in(pi, wi, buf, len, last);
	wi->op = &w->op;
	pi->is_ended = last;
	e = put_write_begin(pi, wi);
	return e < 0 ? e : 0;
}

/* ---- commit ---- */

static int hand_over(struct put_int *pi);

/* The end of the operation, on its thread. */
void
put_done(struct put_int *pi, int result)
{
	struct store_put *put = pi->put;

	/* Before the answer, and before another engine reserves for the same bytes. */
	quota_end(pi->vol->quotas, pi->vol->counter, &pi->hold);
	if (result == -EXDEV && put->carrier) {
		pi->is_committing = false;
		pi->is_carried = true;
		pi->error = -EXDEV; /* it takes nothing more */
		if (put->carrier->carry(put->carrier, put))
			return;
	}
	/* -ECANCELED: the record may be on the disk, so what it names must stay as it is. */
	if (pi->cw)
		writer_put(pi->cw, result < 0 && result != -ECANCELED);
	pi->cw = NULL;
	large_done(pi, result);
	put_copy_over(pi);
	if (result == 0)
		put->version = pi->c.view.version;
	pi->is_committing = false;
	put->is_started = false;
	put->op.result = result;
	put->op.done(&put->op);
}

static void
on_committed(struct commit *c)
{
	put_done(container_of(c, struct put_int, c), c->result);
}

static void
prepare(struct put_int *pi, const struct store_commit *sc)
{
	struct commit *c = &pi->c;

	*c = (struct commit){
		.finished = on_committed,
		.kind = pi->is_part ? COMMIT_PART : COMMIT_PUT,
		.pre = sc->pre,
		.step_ns = clock_ns(),
		.view = { .op = REC_PUT, .key = pi->key, .key_len = pi->key_len },
	};
	rec_view_take(&c->view, &sc->meta);
	pi->progress_ns = sc->progress_ns;
	if (!pi->sent)
		c->hold = &pi->hold;
	if (pi->is_part) {
		c->upload_key = c->view.owner = pi->name;
		c->upload_key_len = c->view.owner_len = pi->name_len;
	}
	if (pi->sent) {
		const struct rec *r = pi->sent->rec;

		c->sent = &pi->sent->sent;
		c->view.mtime_ns = r->mtime_ns;
		c->view.sums = rec_owner(r) + r->owner_len;
		c->view.sums_len = r->sums_len;
	}
}

/* A part is a manifest of chunks, even of a few bytes; of none it is inline. */
static int
commit_small_part(struct put_int *pi, const struct store_commit *sc)
{
	struct store_put *put = pi->put;
	int e;

	if (pool_avail(&pi->port->writers) < 2)
		return -EAGAIN;
	next_writer(pi);
	put->crc64 = writer_take(pi->cw, pi->inline_data, sc->inline_len);
	put->size_bytes = sc->inline_len;
	if (sc->have_expect_crc64 && sc->expect_crc64 != put->crc64)
		return -EILSEQ;
	e = writer_write_small(pi->cw, pi->inline_data, sc->inline_len);
	if (e < 0)
		return e;
	pi->is_ended = pi->is_committing = pi->handed_over = true;
	return hand_over(pi);
}

/* An object that fits into its record. */
static int
commit_inline(struct put_int *pi, const struct store_commit *sc)
{
	struct store_put *put = pi->put;

	if (sc->inline_len > STORE_INLINE_MAX || put->size_bytes)
		return -EINVAL;
	if (sc->inline_len)
		memcpy(pi->inline_data, sc->inline_data, sc->inline_len);
	if (pi->is_part && sc->inline_len)
		return commit_small_part(pi, sc);
	put->size_bytes = sc->inline_len;
	put->crc64 = crc64_nvme(0, pi->inline_data, sc->inline_len);
	if (sc->have_expect_crc64 && sc->expect_crc64 != put->crc64)
		return -EILSEQ;
	pi->c.view.body = BODY_INLINE;
	pi->c.view.size_bytes = put->size_bytes;
	pi->c.view.crc64 = put->crc64;
	pi->c.view.inline_data = pi->inline_data;
	pi->c.view.inline_len = (uint16_t)sc->inline_len;
	atomic_store(&pi->c.state, CS_DATA_DONE);
	pi->is_committing = true;
	commit_submit(&pi->port->vp, &pi->c);
	return 0;
}

/* All bytes are with the disk: closes what is open and hands over.  0 or -errno. */
static int
hand_over(struct put_int *pi)
{
	int e;

	if (pi->list)
		return large_hand_over(pi);
	e = writer_close(pi->cw);
	if (e < 0)
		return e;
	if (e == 1) {
		writer_hand_over_later(pi->cw, &pi->c);
		return 0;
	}
	writer_view(pi->cw, &pi->c.view);
	writer_hand_over(pi->cw, &pi->c);
	return 0;
}

void
put_last_issued(struct put_int *pi)
{
	/* One piece, one chunk, nothing else to be written: it rides with its record.  All others are written
	 * first. */
	if (pi->last.io_nr > 1 || pi->list || pi->cw->ext_nr > FMT_ENTRY_MAX || pi->handed_over)
		return;
	pi->handed_over = true;
	check(hand_over(pi) == 0);
}

void
put_last_written(struct put_int *pi)
{
	int e;

	if (pi->handed_over)
		return;
	pi->handed_over = true;
	e = pi->error ? pi->error : hand_over(pi);
	if (e < 0)
		put_done(pi, e);
}

static int
commit_last(struct put_int *pi, const struct store_commit *sc)
{
	struct store_put *put = pi->put;
	int e = check_piece(pi, sc->last, sc->last_len, true);

	if (e < 0)
		return e;
	take_in(pi, &pi->last, sc->last, sc->last_len, true);
	pi->is_ended = true;
	if (sc->have_expect_crc64 && sc->expect_crc64 != put->crc64) {
		put_write_give_up(&pi->last, -EILSEQ);
		return -EILSEQ;
	}
	e = put_write_begin(pi, &pi->last);
	if (e < 0)
		return e;
	pi->is_committing = true;
	if (e == 0)
		put_last_issued(pi);
	return 0;
}

/* Returns true if the PUT has as many bytes as were declared at its beginning. */
static bool
is_whole(const struct put_int *pi, const struct store_commit *sc)
{
	uint64_t bytes = pi->put->size_bytes;

	if (sc->last && sc->last_len)
		bytes += sc->last_len;
	else if (!pi->cw)
		bytes += sc->inline_len;
	return pi->expect_bytes == STORE_SIZE_UNKNOWN || bytes == pi->expect_bytes;
}

int
extent_put_commit(struct store_port *sp, struct store_put *put, const struct store_commit *sc)
{
	struct put_int *pi = put_int(put);
	int e;

	check(put->is_started && !pi->is_committing && pi->writes == 0);
	if (pi->error)
		return pi->error;
	if (disk_failed(&pi->vol->disk))
		return -EROFS;
	if ((pi->is_part && sc->meta.attrs_len > STORE_PART_ATTRS_MAX) || !is_whole(pi, sc))
		return -EINVAL;
	prepare(pi, sc);
	if (sc->last && sc->last_len)
		return commit_last(pi, sc);
	if (!pi->cw)
		return commit_inline(pi, sc);
	if (sc->have_expect_crc64 && sc->expect_crc64 != put->crc64)
		return -EILSEQ;
	pi->is_ended = true;
	pi->is_committing = true;
	pi->handed_over = true;
	e = hand_over(pi);
	if (e < 0)
		pi->is_committing = false;
	return e;
}

void
extent_put_abort(struct store_port *sp, struct store_put *put)
{
	struct put_int *pi = put_int(put);

	if (!put->is_started)
		return;
	check(pi->writes == 0 && !pi->is_committing);
	quota_end(pi->vol->quotas, pi->vol->counter, &pi->hold);
	put->is_started = false;
	if (pi->cw)
		writer_put(pi->cw, true);
	pi->cw = NULL;
	large_done(pi, -EINTR);
	put_copy_over(pi);
}
