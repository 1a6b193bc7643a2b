/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that are too long for their record; see map.h. */
#include "extent/object/map.h"

#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "extent/object/port.h"
#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
on_written(struct xio *x)
{
	struct map_out *m = container_of(x, struct map_out, io);

	m->done(m, x->error);
}

/* Takes what is missing, and when nothing is, writes.  What was taken stays, until there is all. */
static bool
take(struct space_wait *sw)
{
	struct map_out *m = container_of(sw, struct map_out, wait);
	struct disk *d = &m->port->vp.vol->disk;

	while (m->units < m->units_wanted) {
		uint32_t n = m->units_wanted - m->units, most = alloc_most(d->alloc);
		struct extent x;

		if (alloc_take(d->alloc, &m->port->run, n < most ? n : most, &x) < 0)
			return false;
		m->ext[m->ext_nr++] = ext_make(x.unit, x.units);
		m->units += x.units;
	}
	m->ref = (struct map_ref){
		.ext = m->ext, .nr = m->ext_nr, .len_bytes = m->len_bytes, .crc64 = m->crc64
	};
	m->is_on_disk = true;
	xio_start(&m->io, &m->port->vp.io, d, true, m->ext, m->ext_nr, 0, m->mem,
		  (uint32_t)map_image_bytes(&d->geo, m->len_bytes), RING_NO_REGION, on_written);
	return true;
}

static void
over(struct space_wait *sw, int error)
{
	struct map_out *m = container_of(sw, struct map_out, wait);

	/* What a failed disk is to others they see for themselves: nothing was written here. */
	if (error)
		m->done(m, -ENOSPC);
}

int
map_begin(struct map_out *m, struct extent_port *p, const void *entries, uint32_t len,
	  void (*done)(struct map_out *m, int error))
{
	const struct geometry *g = &p->vp.vol->disk.geo;
	uint32_t units = map_units(g, len);
	size_t image = align_up(map_image_bytes(g, len), FMT_ALIGN);
	int e;

	check(units <= FMT_MAP_EXT_MAX);
	*m = (struct map_out){ .port = p, .units_wanted = units, .len_bytes = len, .done = done };
	m->mem = sync_alloc(image + align_up(units * sizeof *m->ext, FMT_ALIGN));
	if (!m->mem)
		return -EAGAIN;
	m->ext = (uint64_t *)(void *)((char *)m->mem + image);
	map_lay_out(m->mem, entries, len, g);
	m->crc64 = crc64_nvme(0, entries, len);
	e = space_get(p, &m->wait, take, over);
	if (e < 0)
		map_end(m, true);
	return e;
}

static void
on_map(struct map_out *m, int error)
{
	struct vol *vol = m->port->vp.vol;
	struct commit *c = m->c;

	m->is_failed = error && error != -EAGAIN && error != -ENOSPC;
	if (m->is_failed)
		disk_fail(&vol->disk, "writing data failed: %s", strerror(-error));
	if (error) {
		c->result = disk_failed(&vol->disk) ? -EROFS : error;
		c->finished(c);
		return;
	}
	/* The listed parts are flushed, because their commits have ended. */
	if (RULE_PARTS_MAP_FLUSHED_FIRST)
		c->flush_ticket = vol_flush_ticket(vol);
	map_view(m, &c->view);
	commit_submit(&m->port->vp, c);
}

int
map_commit(struct map_out *m, struct extent_port *p, struct commit *c)
{
	int e;

	if (c->view.entry_nr <= FMT_ENTRY_MAX) {
		commit_submit(&p->vp, c);
		return 0;
	}
	e = map_begin(m, p, c->view.entries, c->view.entry_nr * (uint32_t)sizeof(struct chunk_ref), on_map);
	m->c = c;
	return e < 0 ? e : 0;
}

void
map_end(struct map_out *m, bool give_back)
{
	/* Of what waits in vain some was taken, and nothing was written there. */
	if (m->ext_nr && ((give_back && !m->is_failed) || !m->is_on_disk))
		disk_extents_free(&m->port->vp.vol->disk, m->ext, m->ext_nr);
	free(m->mem);
	*m = (struct map_out){ 0 };
}

void
map_view(const struct map_out *m, struct rec_view *v)
{
	if (!m->ref.nr)
		return;
	v->flags |= REC_MAPPED | (m->ref.nr > 1 ? REC_MAP_LIST : 0);
	v->map = m->ref;
}
