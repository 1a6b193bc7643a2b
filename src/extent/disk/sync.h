/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sync - blocking I/O on a separate ring, for format, recovery, fsck and the helper thread. Cores must not
 * use it. All I/O goes through ring.h, so that a simulation can make it fail. Results are -errno. An
 * operation that fails for lack of kernel memory, or transfers too few bytes, is tried once more, and ends
 * with -EAGAIN if the second try fails, too; a write whose second try transfers too few bytes ends with
 * -ENOSPC. A flush is never repeated.
 */
#ifndef GANTRY_EXTENT_DISK_SYNC_H
#define GANTRY_EXTENT_DISK_SYNC_H

#include "ring/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYNC_TRIES 2

/* Converts the result `res` of a read or write of len bytes. Returns 0, -errno, or -EAGAIN if the disk is not
 * the cause of the error (no memory, a signal, a short transfer). */
int sync_error(int res, size_t len);
/* Converts the result of a write, like sync_error(). is_last: the write is not tried again, so too few bytes
 * mean that the file or the device has no space for the others: -ENOSPC. */
int sync_write_error(int res, size_t len, bool is_last);
/* Returns true if a read failed because of a bad sector, and not for lack of a resource. */
bool sync_is_unreadable(int error);
/* Returns true if what was read is lost: damaged (-EBADMSG), or unreadable. Another error may pass. */
bool sync_is_lost(int error);
/* Returns true if the error means that there was no space: a full device, a quota, or a limit on the size of
 * files. */
bool sync_is_no_room(int error);
/* Returns -ENOSPC for each error that means that there was no room, and says so at the end of err if the text
 * of the error does not. Returns every other error unchanged, and 0 for 0. */
int sync_no_room(int error, char *err, size_t err_len);
struct disk;
/* Begins to watch the writes and flushes of the calling thread: the disk d fails if a write or flush takes
 * longer than the timeout of d. d NULL: ends the watch. */
void sync_watch(struct disk *d);
/* Reads or writes len bytes; buf, len and off are multiples of FMT_ALIGN. Returns 0 or -errno. */
int sync_read(struct ring *r, int fd, void *buf, size_t len, uint64_t off);
int sync_write(struct ring *r, int fd, const void *buf, size_t len, uint64_t off);
/* An operation, for a read in the background, begun by sync_read_begin(). Before the caller frees buf, the caller
 * calls sync_read_end(), which waits for the end of the read and returns its result. Zeroed memory means that no
 * read is in progress: sync_read_end() returns 0. */
struct sync_op {
	struct ring_op op;
	struct ring *r; /* ring of the operation; NULL: no operation is in progress */
	bool done;
	int res;
	size_t len;
};
void sync_read_begin(struct sync_op *s, struct ring *r, int fd, void *buf, size_t len, uint64_t off);
int sync_read_end(struct sync_op *s);
int sync_flush(struct ring *r, int fd);
/* Writes zeros over [off, off + len), with several writes in flight. Returns 0 or -errno. */
int sync_zero(struct ring *r, int fd, uint64_t off, uint64_t len);

/* Allocates a ring for blocking I/O. Returns 0, or -errno with the reason in err. */
int sync_ring(struct ring **ret_ring, char *err, size_t err_len);
/* Returns zeroed memory that is aligned for O_DIRECT, or NULL. The caller frees it with free(). */
void *sync_alloc(size_t len);

#endif
