/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xio - I/O on the extents of a record: on a port, a few operations in flight; or blocking (sio_*), for
 * start, helper and fsck.
 *
 * Offsets and lengths are multiples of FMT_ALIGN, within the extents. An operation without kernel memory, or
 * with a short result, is tried once more; -EAGAIN: the second try failed too, for a cause other than the
 * disk. -ENOSPC of a write: no room below the disk, whatever its errno there; the disk has noted it
 * (disk_wrote()) and lives on.
 *
 * Threads: xio_start() and x->done on the port's, x->done always from the ring; xio_by_worker() and
 * xio_note_progress() on any.
 */
#ifndef GANTRY_EXTENT_DISK_XIO_H
#define GANTRY_EXTENT_DISK_XIO_H

#include "extent/disk/disk.h"
#include "extent/disk/watch.h"
#include "base/list.h"
#include "ring/ring.h"

#define XIO_DEPTH 6

/* One thread's access to the disk; the first member of its port. */
struct disk_port {
	struct ring *ring;
	unsigned inflight; /* ring operations, and other work that must end before the port */
	struct disk_watch watch;
	bool is_threads;     /* every operation needs a worker */
	unsigned workers;    /* operations that have a worker */
	struct list waiting; /* struct xio: waits for a worker; its operations begin with the first one */
};

struct xio;
/* One operation of a struct xio: adjacent bytes in one extent. */
struct xio_op {
	struct ring_op op;
	struct xio *x; /* NULL: free */
	uint32_t len, seg;
	bool has_worker;
	uint8_t watched;
};

/* A range of stored bytes to or from one piece of memory, a few extents at a time. */
struct xio {
	struct disk_port *p;
	struct disk *d;
	const uint64_t *ext;
	uint64_t began_ns;
	uint32_t ext_nr, ext_at; /* ext_at: extent of the next operation */
	uint32_t ext_off;        /* bytes into the extent ext_at */
	uint32_t left;           /* bytes not submitted yet */
	uint64_t off;            /* offset of the whole range, for a retry */
	uint32_t len;
	char *mem;
	int16_t region;
	bool is_write, tried;
	uint8_t inflight;
	int error;
	void (*done)(struct xio *x);
	union {
		struct list link; /* on disk_port.waiting; no operation is in flight then */
		struct xio_op op[XIO_DEPTH];
	};
};

/* Starts reading or writing [off, off + len) of the extents; x->done runs later, with x->error. */
void xio_start(struct xio *x, struct disk_port *p, struct disk *d, bool is_write, const uint64_t *ext,
	       uint32_t ext_nr, uint64_t off, void *mem, uint32_t len, int region,
	       void (*done)(struct xio *x));
/* Returns true if a write now needs a worker (ring.h). */
bool xio_by_worker(const struct disk *d);
/* Notes a completion of the disk. */
void xio_note_progress(struct disk *d);

/* ---- blocking ---- */

struct sync_reading;
int sio_read(struct disk *d, struct ring *r, const uint64_t *ext, uint32_t nr, uint64_t off, void *buf,
	     size_t len);
/* Begins to read the first len bytes of one extent in the background; sio_read_end() waits for it. */
void sio_read_begin(struct disk *d, struct ring *r, struct sync_reading *s, uint64_t ext, void *buf,
		    size_t len);
int sio_read_end(struct sync_reading *s);
int sio_write(struct disk *d, struct ring *r, const uint64_t *ext, uint32_t nr, uint64_t off, const void *buf,
	      size_t len);

#endif
