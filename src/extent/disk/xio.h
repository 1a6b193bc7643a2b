/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xio - I/O on the extents of a record. On a port a transfer has a few operations in flight; the functions
 * sio_*() block, and are for the start, the helper thread and fsck.
 *
 * Offsets and lengths are multiples of FMT_ALIGN, within the extents. An operation that fails for lack of
 * kernel memory, or transfers too few bytes, is tried once more, and ends with -EAGAIN if the second try
 * fails, too, for a cause other than the disk. A write ends with -ENOSPC if the file system or the device has
 * no space, for every errno with this meaning and for a second try that transfers too few bytes; the disk has noted the error (disk_wrote()) and has not
 * failed. Threads: xio_start() is called, and x->done runs, on the port's thread; x->done always runs from
 * the ring. Any thread may call xio_by_worker() and xio_note_progress().
 */
#ifndef GANTRY_EXTENT_DISK_XIO_H
#define GANTRY_EXTENT_DISK_XIO_H

#include "extent/disk/disk.h"
#include "extent/disk/watch.h"
#include "base/list.h"
#include "ring/ring.h"

#define XIO_DEPTH 6

/* The access of one thread to the disk; first member of its port. */
struct disk_port {
	struct ring *ring;
	/* number of ring operations, and of other work that must end before the port is freed */
	unsigned inflight;
	struct disk_watch watch;
	bool is_threads;        /* true: every operation needs a worker */
	unsigned workers;       /* number of operations that have a worker */
	unsigned write_workers; /* number of writes that have a worker */
	/* transfers (struct xio) that wait for a worker: [0] reads, [1] writes, each in the order in which
	 * their operations will be started */
	struct list waiting[2];
	bool turn_of_writes; /* true: a write of waiting[] starts next, if a write may have a worker */
};

struct xio;
/* An operation of a struct xio, on adjacent bytes of one extent. */
struct xio_op {
	struct ring_op op;
	struct xio *x; /* xio that uses this operation; NULL: the operation is free */
	uint32_t len, seg;
	bool has_worker;
	uint8_t watched;
};

/* A transfer of a range of stored bytes to or from one piece of memory, a few extents at a time. */
struct xio {
	struct disk_port *p;
	struct disk *d;
	const uint64_t *ext;
	uint64_t began_ns;
	/* ext_nr: number of extents; ext_at: index of the extent of the next operation */
	uint32_t ext_nr, ext_at;
	uint32_t ext_off; /* offset in bytes in the extent ext_at */
	uint32_t left;    /* number of bytes not submitted yet */
	/* offset of the range in the bytes of all extents together, in bytes; unchanged by operations, so that
	 * the transfer can be repeated */
	uint64_t off;
	uint32_t len;
	char *mem;
	int16_t region;
	bool is_write, tried;
	uint8_t inflight;
	int error;
	void (*done)(struct xio *x);
	union {
		struct list link; /* link in disk_port.waiting; no operation is in flight while linked */
		struct xio_op op[XIO_DEPTH];
	};
};

/* Starts a read or write of [off, off + len) of the extents. x->done runs later, with the result in
 * x->error. */
void xio_start(struct xio *x, struct disk_port *p, struct disk *d, bool is_write, const uint64_t *ext,
	       uint32_t ext_nr, uint64_t off, void *mem, uint32_t len, int region,
	       void (*done)(struct xio *x));
/* Returns true if a write that starts now needs a worker (ring.h). */
bool xio_by_worker(const struct disk *d);
/* Notes that the disk has completed an operation. */
void xio_note_progress(struct disk *d);

/* ---- blocking ---- */

struct sync_op;
int sio_read(struct disk *d, struct ring *r, const uint64_t *ext, uint32_t nr, uint64_t off, void *buf,
	     size_t len);
/* Begins to read the first len bytes of an extent in the background. sio_read_end() waits for the end. */
void sio_read_begin(struct disk *d, struct ring *r, struct sync_op *s, uint64_t ext, void *buf, size_t len);
int sio_read_end(struct sync_op *s);
int sio_write(struct disk *d, struct ring *r, const uint64_t *ext, uint32_t nr, uint64_t off, const void *buf,
	      size_t len);

#endif
