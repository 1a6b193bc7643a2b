/* Snapshots at start: the newest good one becomes the index; the space of both is known. */
#include "store/recover_int.h"

#include "store/sync.h"
#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
snap_space_add(struct snap_space *s, const struct extent *x)
{
	if (s->nr == s->cap) {
		uint32_t cap = s->cap ? 2 * s->cap : 64;
		struct extent *more = realloc(s->ext, cap * sizeof *more);

		if (!more)
			return -ENOMEM;
		s->ext = more;
		s->cap = cap;
	}
	s->ext[s->nr++] = *x;
	return 0;
}

static int
apply_records(struct replay *rp, const uint8_t *buf, const struct snap_head *h)
{
	uint32_t at = SNAP_HEAD_BYTES;

	for (uint32_t i = 0; i < h->record_nr; i++) {
		struct rec_view v;
		int n = rec_decode(buf + at, h->used_bytes - at, &rp->d->geo, &v), e;

		if (n < 0 || v.op != REC_PUT)
			return -EBADMSG;
		e = apply_record(rp, &v);
		if (e < 0)
			return e;
		at += (uint32_t)n;
	}
	return 0;
}

/* Walks one chain.  apply: its records into the index. */
static int
walk(struct replay *rp, const struct snap_ref *ref, struct snap_space *space, bool apply)
{
	struct disk *d = rp->d;
	uint8_t *buf = sync_alloc(FMT_BLOCK_MAX);
	uint64_t ext = ref->head_ext, crc = 0, records = 0;
	uint32_t len = ref->head_bytes;
	int e = buf ? 0 : -ENOMEM;

	space->nr = 0;
	for (uint64_t i = 0; e == 0 && i < ref->block_nr; i++) {
		struct snap_head h;

		if (ext_nr(ext) == 0 || ext_unit(ext) + ext_nr(ext) > geo_units(&d->geo) ||
		    (uint64_t)ext_nr(ext) * d->geo.unit_bytes < len || len > FMT_BLOCK_MAX)
			e = -EBADMSG;
		else
			e = snap_space_add(space, &(struct extent){ ext_unit(ext), ext_nr(ext) });
		if (e == 0)
			e = sio_read(d, rp->r, &ext, 1, 0, buf, len);
		if (e == 0)
			e = snap_open(buf, len, &h);
		if (e < 0)
			break;
		if (h.id != ref->id || h.index != (uint32_t)i ||
		    memcmp(h.disk_uuid, d->sb.disk_uuid, 16) != 0 ||
		    (h.next_ext == SNAP_LAST) != (i + 1 == ref->block_nr)) {
			e = -EBADMSG;
			break;
		}
		crc = crc64_nvme(crc, &h.crc64, 8);
		records += h.record_nr;
		if (apply)
			e = apply_records(rp, buf, &h);
		ext = h.next_ext;
		len = h.next_bytes;
	}
	sync_free(buf);
	if (e == 0 && (crc != ref->crc64 || records != ref->record_nr))
		e = -EBADMSG;
	return e;
}

static int
empty_index(struct disk *d)
{
	records_drop_outside(d);
	tree_free(d->tree);
	d->tree = NULL;
	d->rec_bytes = d->rec_nr = 0;
	atomic_store(&d->stats.objects, 0);
	return tree_new(d->st->index_bytes, d->st->quiesce, &d->tree);
}

int
snapshots_load(struct replay *rp)
{
	struct disk *d = rp->d;
	struct snap_ref *snap = d->sb.snap;
	int e = walk(rp, &snap[0], &d->snap_space[0], true);

	if (e == -EBADMSG && snap[1].id) {
		/* The one before is as good, and the log goes back to it. */
		report(rp->rep, "%s: snapshot %llu is damaged; starting from the one before", d->path,
		       (unsigned long long)snap[0].id);
		e = empty_index(d);
		snap[0] = snap[1];
		snap[1] = (struct snap_ref){ 0 };
		if (e == 0)
			e = walk(rp, &snap[0], &d->snap_space[0], true);
	}
	if (e == -EBADMSG)
		return refuse(rp, -ENOTRECOVERABLE, "%s: snapshot %llu is damaged, and there is no other",
			      d->path, (unsigned long long)snap[0].id);
	if (e == -ENOSPC)
		return refuse(rp, -ENOSPC, "%s: the index does not fit into the memory it is given", d->path);
	if (e < 0)
		return refuse(rp, e, "%s: cannot load snapshot %llu: %s", d->path,
			      (unsigned long long)snap[0].id, strerror(-e));
	rp->version_max = rp->version_max > snap[0].version_max ? rp->version_max : snap[0].version_max;
	if (snap[1].id && (e = walk(rp, &snap[1], &d->snap_space[1], false)) < 0) {
		if (e != -EBADMSG)
			return refuse(rp, e, "%s: cannot read snapshot %llu: %s", d->path,
				      (unsigned long long)snap[1].id, strerror(-e));
		report(rp->rep, "%s: the older snapshot %llu is damaged and given up", d->path,
		       (unsigned long long)snap[1].id);
		snap[1] = (struct snap_ref){ 0 };
		d->snap_space[1].nr = 0;
	}
	return 0;
}
