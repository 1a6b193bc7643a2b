/* SPDX-License-Identifier: Apache-2.0 */
/* I/O on the extents of a record; see xio.h. */
#include "extent/disk/xio.h"

#include "extent/disk/sync.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"

#include <errno.h>

#define REQUEST_BYTES (128u << 10) /* few devices take smaller requests */
#define PROGRESS_NS (5 * NS_PER_MS)

static void begin(struct xio *x);
static void xio_more(struct xio *x);
static void next_waiting(struct disk_port *p);

/*
 * Returns the number of places that a request needs in the queue of the device.
 *
 * A file system may block the submission of a request, although io_uring asks it not to: a write may wait for
 * the journal, which records the file's time (ext4), and any request for a place in the queue. On a disk that
 * hangs this would block the core forever. So a core submits a write to a file itself only while the disk
 * completes operations from time to time; otherwise workers of the kernel submit it. The same applies to all
 * requests while the queue may be full. Block devices do not block a submission.
 */
static uint32_t
queue_places(uint32_t len)
{
	return 1 + len / REQUEST_BYTES;
}

bool
xio_by_worker(const struct disk *d)
{
	return !d->is_device &&
	       (atomic_load_explicit(&d->queued, memory_order_relaxed) >= d->inline_max ||
		clock_ns() - atomic_load_explicit(&d->progress_ns, memory_order_relaxed) > PROGRESS_NS);
}

void
xio_note_progress(struct disk *d)
{
	if (!d->is_device)
		atomic_store_explicit(&d->progress_ns, clock_ns(), memory_order_relaxed);
}

static bool
wants_worker(const struct disk *d, bool is_write)
{
	return !d->is_device && ((is_write && xio_by_worker(d)) ||
				 atomic_load_explicit(&d->queued, memory_order_relaxed) >= d->inline_max);
}

static void
enqueue(struct disk *d, uint32_t len)
{
	if (!d->is_device)
		atomic_fetch_add_explicit(&d->queued, queue_places(len), memory_order_relaxed);
}

/* Keeps the first error; an error of the disk replaces lack of memory or space. */
static void
note_error(struct xio *x, int error)
{
	if (x->is_write)
		error = disk_wrote(x->d, DISK_ROOM_DATA, error);
	if (error == 0)
		return;
	/* A read cannot lack space. */
	if (!x->is_write && sync_is_no_room(error))
		error = -EIO;
	if (x->error == 0 || x->error == -EAGAIN || x->error == -ENOSPC)
		x->error = error;
	if (error != -ENOSPC && (error != -EAGAIN || x->tried))
		atomic_fetch_add_explicit(&x->d->stats.errors, 1, memory_order_relaxed);
}

static void
on_op(struct ring_op *op, int res, bool more)
{
	struct xio_op *o = container_of(op, struct xio_op, op);
	struct xio *x = o->x;
	struct disk_port *p = x->p;
	uint32_t len = o->len;
	bool is_over;

	if (x->is_write) {
		disk_touched(x->d, o->seg);
		watch_end(&x->p->watch, x->d, o->watched);
	}
	if (!x->d->is_device)
		atomic_fetch_sub_explicit(&x->d->queued, queue_places(len), memory_order_relaxed);
	xio_note_progress(x->d);
	o->x = NULL;
	x->inflight--;
	x->p->inflight--;
	p->workers -= o->has_worker;
	p->write_workers -= o->has_worker && x->is_write;
	note_error(x, x->is_write ? sync_write_error(res, len, x->tried) : sync_error(res, len));
	if (x->error == 0)
		xio_more(x);
	/* With bytes left, the transfer continues, or waits for a worker. */
	is_over = x->inflight == 0 && (x->error != 0 || x->left == 0);
	if (is_over && x->error == -EAGAIN && !x->tried) {
		x->tried = true;
		x->error = 0;
		is_over = false;
		begin(x);
	}
	/* Before done(), which may start another transfer: with the free worker, consecutive transfers
	 * would keep the waiting ones out. */
	next_waiting(p);
	if (is_over) {
		latency_count(&x->d->stats.latency[x->is_write ? DISK_WRITE : DISK_READ],
			      clock_ns() - x->began_ns);
		x->done(x);
	}
}

/*
 * Returns true if an operation may have a worker. With several disks no disk may have all workers of a
 * thread: operations for a disk that hangs, or is busy, wait until one of its own workers is free. Writes of
 * a disk, also of the only one, may have three quarters of its workers, so that reads continue while writes
 * hang.
 */
static bool
may_have_worker(const struct disk_port *p, const struct disk *d, bool is_write)
{
	unsigned max = d->workers_max ? d->workers_max : RING_WORKERS, writes_max = max > 1 ? max * 3 / 4 : 1;

	return (!d->workers_max || p->workers < max) && (!is_write || p->write_workers < writes_max);
}

static void
wait_for_worker(struct xio *x)
{
	struct disk_port *p = x->p;

	for (int i = 0; i < 2; i++) {
		if (!p->waiting[i].next)
			list_init(&p->waiting[i]);
	}
	p->inflight++;
	_Static_assert(sizeof x->link <= offsetof(struct xio_op, x),
		       "the link covers no mark of a free operation");
	list_push_tail(&p->waiting[x->is_write], &x->link);
}

/* Starts waiting transfers while workers are free. Reads and writes alternate: with reads first, a write
 * would wait as long as reads keep coming. */
static void
next_waiting(struct disk_port *p)
{
	for (int refused = 0; refused < 2; refused++) {
		struct list *waiting = &p->waiting[p->turn_of_writes];
		struct list *l = waiting->next ? list_first(waiting) : NULL;
		struct xio *x = l ? container_of(l, struct xio, link) : NULL;

		p->turn_of_writes = !p->turn_of_writes;
		if (!x || !may_have_worker(p, x->d, x->is_write))
			continue;
		list_del(&x->link);
		p->inflight--;
		xio_more(x);
		refused = -1;
	}
}

static struct xio_op *
free_op(struct xio *x)
{
	for (int i = 0; i < XIO_DEPTH; i++) {
		if (!x->op[i].x)
			return &x->op[i];
	}
	return NULL;
}

static void
xio_more(struct xio *x)
{
	struct disk_stats *st = &x->d->stats;
	struct xio_op *o;

	while (x->left && (o = free_op(x)) != NULL) {
		uint64_t off;
		uint64_t room = (uint64_t)ext_nr(x->ext[x->ext_at]) * x->d->geo.unit_bytes - x->ext_off;
		int fd = disk_addr(x->d, ext_unit(x->ext[x->ext_at]), &off);
		bool by_worker;

		o->len = room < x->left ? (uint32_t)room : x->left;
		by_worker = wants_worker(x->d, x->is_write);
		o->has_worker = by_worker || x->p->is_threads;
		if (o->has_worker && !may_have_worker(x->p, x->d, x->is_write)) {
			/* Its operations in flight will continue it. */
			if (x->inflight == 0)
				wait_for_worker(x);
			return;
		}
		o->x = x;
		o->seg = (uint32_t)(ext_unit(x->ext[x->ext_at]) / geo_seg_units(&x->d->geo));
		o->op = (struct ring_op){ .done = on_op, .by_worker = by_worker };
		enqueue(x->d, o->len);
		x->p->workers += o->has_worker;
		x->p->write_workers += o->has_worker && x->is_write;
		off += x->ext_off;
		x->inflight++;
		x->p->inflight++;
		if (x->is_write) {
			o->watched = watch_begin(&x->p->watch, x->d);
			ring_write(x->p->ring, &o->op, fd, x->mem, o->len, off, x->region);
			atomic_fetch_add_explicit(&st->write_ops, 1, memory_order_relaxed);
			atomic_fetch_add_explicit(&st->written_bytes, o->len, memory_order_relaxed);
		} else {
			ring_read(x->p->ring, &o->op, fd, x->mem, o->len, off, x->region);
			atomic_fetch_add_explicit(&st->read_ops, 1, memory_order_relaxed);
			atomic_fetch_add_explicit(&st->read_bytes, o->len, memory_order_relaxed);
		}
		x->mem += o->len;
		x->left -= o->len;
		x->ext_off += o->len;
		if (o->len == room) {
			x->ext_at++;
			x->ext_off = 0;
		}
		check(!x->left || x->ext_at < x->ext_nr);
	}
}

static void
begin(struct xio *x)
{
	uint64_t off = x->off;

	/* A second attempt begins at the start of the memory. */
	if (x->tried)
		x->mem -= x->len - x->left;
	x->left = x->len;
	x->ext_at = 0;
	while (x->ext_at < x->ext_nr && off >= (uint64_t)ext_nr(x->ext[x->ext_at]) * x->d->geo.unit_bytes)
		off -= (uint64_t)ext_nr(x->ext[x->ext_at++]) * x->d->geo.unit_bytes;
	check(x->ext_at < x->ext_nr);
	x->ext_off = (uint32_t)off;
	xio_more(x);
}

void
xio_start(struct xio *x, struct disk_port *p, struct disk *d, bool is_write, const uint64_t *ext, uint32_t nr,
	  uint64_t off, void *mem, uint32_t len, int region, void (*done)(struct xio *x))
{
	check(len && len % FMT_ALIGN == 0 && off % FMT_ALIGN == 0);
	*x = (struct xio){ .p = p,
			   .d = d,
			   .ext = ext,
			   .ext_nr = nr,
			   .mem = mem,
			   .off = off,
			   .len = len,
			   .region = (int16_t)region,
			   .is_write = is_write,
			   .began_ns = clock_ns(),
			   .done = done };
	begin(x);
}

/* ---- blocking ---- */

static int
sio(struct disk *d, struct ring *r, bool is_write, const uint64_t *ext, uint32_t nr, uint64_t off, char *mem,
    size_t len)
{
	for (uint32_t i = 0; i < nr && len; i++) {
		uint64_t bytes = (uint64_t)ext_nr(ext[i]) * d->geo.unit_bytes, at;
		size_t n;
		int fd, e;

		if (off >= bytes) {
			off -= bytes;
			continue;
		}
		n = bytes - off < len ? bytes - off : len;
		fd = disk_addr(d, ext_unit(ext[i]), &at);
		/* A missing part of a file counts as a bad sector. */
		if (!disk_has(d, ext_unit(ext[i]), (off + n + d->geo.unit_bytes - 1) / d->geo.unit_bytes))
			return -EIO;
		e = is_write ? sync_write(r, fd, mem, n, at + off) : sync_read(r, fd, mem, n, at + off);
		if (is_write)
			disk_touched(d, (uint32_t)(ext_unit(ext[i]) / geo_seg_units(&d->geo)));
		e = is_write ? disk_wrote(d, DISK_ROOM_DATA, e) : sync_is_no_room(e) ? -EIO : e;
		if (e < 0)
			return e;
		mem += n;
		len -= n;
		off = 0;
	}
	return len ? -EBADMSG : 0;
}

int
sio_read(struct disk *d, struct ring *r, const uint64_t *ext, uint32_t nr, uint64_t off, void *buf,
	 size_t len)
{
	return sio(d, r, false, ext, nr, off, buf, len);
}

void
sio_read_begin(struct disk *d, struct ring *r, struct sync_op *s, uint64_t ext, void *buf, size_t len)
{
	uint64_t off;
	int fd = disk_addr(d, ext_unit(ext), &off);

	check(len <= (uint64_t)ext_nr(ext) * d->geo.unit_bytes);
	if (disk_has(d, ext_unit(ext), ext_nr(ext)))
		sync_read_begin(s, r, fd, buf, len, off);
	else
		*s = (struct sync_op){ .r = r, .done = true, .res = -EIO, .len = len };
}

int
sio_read_end(struct sync_op *s)
{
	int e = sync_read_end(s);

	return sync_is_no_room(e) ? -EIO : e;
}

int
sio_write(struct disk *d, struct ring *r, const uint64_t *ext, uint32_t nr, uint64_t off, const void *buf,
	  size_t len)
{
	return sio(d, r, true, ext, nr, off, (char *)(uintptr_t)buf, len);
}
