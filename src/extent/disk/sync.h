/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sync - blocking I/O on a ring of its own: format, recovery, fsck and the helper thread. Not for cores. All
 * I/O goes through ring.h, so that a simulation can make it fail. Results are -errno. An operation without
 * kernel memory, or with a short result, is tried once more; -EAGAIN: the second try failed too. A flush is
 * never repeated.
 */
#ifndef GANTRY_EXTENT_DISK_SYNC_H
#define GANTRY_EXTENT_DISK_SYNC_H

#include "ring/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYNC_TRIES 2

/* Returns the result of a read or write of len bytes that ended with res: 0, -errno, or -EAGAIN if the disk
 * is not the cause of the error: no memory, a signal, a short transfer. */
int sync_error(int res, size_t len);
/* Returns true if a read failed because of its data, a bad sector, and not for lack of a resource. */
bool sync_is_unreadable(int error);
/* Returns true if an error means that there was no room: no space, a quota, a limit on the size of files. */
bool sync_is_no_room(int error);
struct disk;
/* Makes a disk fail when a write or flush of this thread exceeds the disk's timeout; NULL: ends this
 * watch. */
void sync_watch(struct disk *d);
/* Reads or writes; buf, len and off are multiples of FMT_ALIGN. */
int sync_read(struct ring *r, int fd, void *buf, size_t len, uint64_t off);
int sync_write(struct ring *r, int fd, const void *buf, size_t len, uint64_t off);
/* A read in the background, which begins immediately and ends with sync_read_end(). The caller calls
 * sync_read_end() before it frees buf; without a read, or after its end, sync_read_end() returns 0. Zeroed
 * memory is an ended read. */
struct sync_reading {
	struct ring_op op;
	struct ring *r; /* NULL: no read */
	bool done;
	int res;
	size_t len;
};
void sync_read_begin(struct sync_reading *s, struct ring *r, int fd, void *buf, size_t len, uint64_t off);
int sync_read_end(struct sync_reading *s);
int sync_flush(struct ring *r, int fd);
/* Writes zeros over [off, off + len), several writes at a time. */
int sync_zero(struct ring *r, int fd, uint64_t off, uint64_t len);

/* Returns zeroed memory for O_DIRECT, aligned, or NULL. sync_free(NULL) is allowed. */
void *sync_alloc(size_t len);
void sync_free(void *p);

#endif
