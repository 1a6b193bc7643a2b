/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sync - blocking I/O over a ring of one's own: format, recovery, fsck and the helper thread.  Not for cores.
 * Everything goes through ring.h, so that a simulation can let it fail too.  -errno.  What the kernel had no
 * memory for, or ended early, is tried once more; -EAGAIN: again in vain.  A flush is never repeated.
 */
#ifndef GANTRY_EXTENT_DISK_SYNC_H
#define GANTRY_EXTENT_DISK_SYNC_H

#include "ring/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYNC_TRIES 2

/* Returns what a read or write of len bytes that ended with res came to: 0, -errno, or -EAGAIN when the disk
 * has said nothing about it: no memory, a signal, a short transfer. */
int sync_error(int res, size_t len);
/* Tells whether a read failed because of what it wanted to read, a bad sector, and not for want of anything. */
bool sync_is_unreadable(int error);
struct disk;
/* Has this thread's writes and flushes fail a disk once one takes longer than its timeout; NULL: none any more. */
void sync_watch(struct disk *d);
/* Reads or writes; buf, len and off are multiples of FMT_ALIGN. */
int sync_read(struct ring *r, int fd, void *buf, size_t len, uint64_t off);
int sync_write(struct ring *r, int fd, const void *buf, size_t len, uint64_t off);
/* A read that goes on while the caller does something else: begun at once, over with sync_read_end(), which
 * must be called before buf is freed (and may be, when none was begun or it is over: 0).  Zeroed memory is a
 * reading that is over. */
struct sync_reading {
	struct ring_op op;
	struct ring *r; /* NULL: none */
	bool done;
	int res;
	size_t len;
};
void sync_read_begin(struct sync_reading *s, struct ring *r, int fd, void *buf, size_t len, uint64_t off);
int sync_read_end(struct sync_reading *s);
int sync_flush(struct ring *r, int fd);
/* Writes zeros over [off, off + len), several writes at a time. */
int sync_zero(struct ring *r, int fd, uint64_t off, uint64_t len);

/* Returns zeroed memory for O_DIRECT, aligned, or NULL.  sync_free(NULL) is fine. */
void *sync_alloc(size_t len);
void sync_free(void *p);

#endif
