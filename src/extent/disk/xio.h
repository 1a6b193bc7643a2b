/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xio - I/O on the extents of a record: on a port, a few operations in flight; or blocking (sio_*), for
 * start, helper and fsck.
 *
 * Offsets and lengths are multiples of FMT_ALIGN, within the extents.  What the kernel had no memory for, or
 * ended early, is tried once more; -EAGAIN: again in vain, and the disk has said nothing.  The device's own
 * -ENOSPC is -EIO: -ENOSPC is the allocator's word here.
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

/* One thread's way to the disk; the first member of its port. */
struct disk_port {
	struct ring *ring;
	unsigned inflight; /* ring operations, and whatever else the port must not go before */
	struct disk_watch watch;
	bool is_threads;     /* every operation takes a worker */
	unsigned workers;    /* operations that have one */
	struct list waiting; /* struct xio: for a worker; begun with the first one */
};

struct xio;
/* One operation of it: what lies together in one extent. */
struct xio_op {
	struct ring_op op;
	struct xio *x; /* NULL: free */
	uint32_t len, seg;
	bool has_worker;
	uint8_t watched;
};

/* One range of stored bytes to or from one piece of memory, a few extents at a time. */
struct xio {
	struct disk_port *p;
	struct disk *d;
	const uint64_t *ext;
	uint64_t began_ns;
	uint32_t ext_nr, ext_at; /* ext_at: where the next operation begins */
	uint32_t ext_off;        /* bytes into that extent; < 256 GiB needs 64 bits only there */
	uint32_t left;           /* bytes not submitted yet */
	uint64_t off;            /* all of it, for another try */
	uint32_t len;
	char *mem;
	int16_t region;
	bool is_write, tried;
	uint8_t inflight;
	int error;
	void (*done)(struct xio *x);
	union {
		struct list link; /* of disk_port.waiting; no operation is out then */
		struct xio_op op[XIO_DEPTH];
	};
};

/* Starts reading or writing [off, off + len) of what the extents hold; x->done runs later, with x->error. */
void xio_start(struct xio *x, struct disk_port *p, struct disk *d, bool is_write, const uint64_t *ext,
	       uint32_t ext_nr, uint64_t off, void *mem, uint32_t len, int region,
	       void (*done)(struct xio *x));
/* Tells whether a write of now is for a worker (ring.h). */
bool xio_by_worker(const struct disk *d);
/* Notes that the disk has ended something. */
void xio_note_progress(struct disk *d);

/* ---- blocking ---- */

struct sync_reading;
int sio_read(struct disk *d, struct ring *r, const uint64_t *ext, uint32_t nr, uint64_t off, void *buf,
	     size_t len);
/* Begins to read the first len bytes of one extent, while the caller goes on; sio_read_end() waits for it. */
void sio_read_begin(struct disk *d, struct ring *r, struct sync_reading *s, uint64_t ext, void *buf,
		    size_t len);
int sio_read_end(struct sync_reading *s);
int sio_write(struct disk *d, struct ring *r, const uint64_t *ext, uint32_t nr, uint64_t off, const void *buf,
	      size_t len);

#endif
