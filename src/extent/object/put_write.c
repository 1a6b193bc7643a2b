/* SPDX-License-Identifier: Apache-2.0 */
/* The writes of a PUT's pieces, one part after the other; each may wait for space first (space.h).  On the
 * port's thread. */
#include "extent/object/put_int.h"

#include <errno.h>

static void
write_done(struct write_int *wi)
{
	struct put_int *pi = wi->pi;

	pi->writes--;
	if (wi->error && !pi->error)
		pi->error = wi->error;
	if (wi == &pi->last) {
		put_last_written(pi);
		return;
	}
	wi->op->result = wi->error;
	wi->op->done(wi->op);
}

static void write_more(struct write_int *wi);

static void
on_chunk_io(struct xio *x)
{
	struct write_int *wi = container_of(x, struct write_int, x);
	struct chunk_writer *w = wi->io[wi->at++].w;

	/* Not now; or the disk is done for, and this PUT is known not to be there: as what comes after it. */
	if (x->error && !wi->error)
		wi->error = x->error == -EAGAIN || x->error == -ENOSPC ? x->error : -EROFS;
	writer_io_done(w, x->error);
	if (wi->at < wi->io_nr)
		write_more(wi);
	else
		write_done(wi);
}

static uint64_t
expected_stored(const struct put_int *pi, const struct chunk_writer *w)
{
	uint64_t left;

	if (pi->expect_bytes == STORE_SIZE_UNKNOWN)
		return 0;
	left = pi->expect_bytes - (uint64_t)w->index * FMT_CHUNK_BYTES;
	return pi->expect_bytes <= (uint64_t)w->index * FMT_CHUNK_BYTES
		       ? 0
		       : stored_bytes(left < FMT_CHUNK_BYTES ? left : FMT_CHUNK_BYTES);
}

/* Issues the next part.  False: no space. */
static bool
issue(struct space_wait *sw)
{
	struct write_int *wi = container_of(sw, struct write_int, wait);
	struct chunk_io *io = &wi->io[wi->at];
	struct chunk_writer *w = io->w;

	if (writer_reserve(w, (uint64_t)io->off + io->len, expected_stored(wi->pi, w)) < 0)
		return false;
	xio_start(&wi->x, &wi->pi->port->vp.io, &wi->pi->vol->disk, true, w->ext, w->ext_nr, io->off, io->mem,
		  io->len, wi->buf->region, on_chunk_io);
	return true;
}

void
put_write_give_up(struct write_int *wi, int error)
{
	wi->error = wi->error ? wi->error : error;
	for (; wi->at < wi->io_nr; wi->at++)
		writer_io_done(wi->io[wi->at].w, -ENOSPC);
}

static void
on_waited(struct space_wait *sw, int error)
{
	struct write_int *wi = container_of(sw, struct write_int, wait);

	if (error) {
		put_write_give_up(wi, error);
		write_done(wi);
	} else if (wi == &wi->pi->last) {
		put_last_issued(wi->pi);
	}
}

static void
write_more(struct write_int *wi)
{
	if (wi->error || disk_failed(&wi->pi->vol->disk)) {
		put_write_give_up(wi, -EROFS);
		write_done(wi);
	} else if (!issue(&wi->wait)) {
		space_wait_on(wi->pi->port, &wi->wait);
	}
}

int
put_write_begin(struct put_int *pi, struct write_int *wi)
{
	int r;

	pi->writes++;
	r = space_get(pi->port, &wi->wait, issue, on_waited);
	if (r < 0) {
		pi->writes--;
		pi->error = r;
		put_write_give_up(wi, r);
	}
	return r;
}
