/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file - the few calls about files that are not I/O: opening, locking, renaming, sizes, what the file
 * system is.
 *
 * A seam: the simulation brings its own.  Blocking: start-up and the helper thread, never a core.  All
 * descriptors are close-on-exec; files are opened O_RDWR | O_DIRECT, and O_NOATIME where we may: a read
 * that has to note its time waits for the journal.  Errors are -errno.
 */
#ifndef GANTRY_EXTENT_DISK_FILE_H
#define GANTRY_EXTENT_DISK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int file_open_dir(const char *path, bool create);
/* Tells whether a directory is the root of a system: this one's, or what looks like another's, with etc and usr in it. */
bool file_is_root(int dir_fd);
/* Opens a file of the directory.  create: it must not exist yet. */
int file_open(int dir_fd, const char *name, bool create);
/* Opens a block device with O_EXCL: nobody has it mounted or claimed. */
int file_open_device(const char *path);
/* Opens one that somebody else has, to look at it and no more. */
int file_peek_device(const char *path);
/* Closes fd; -1 is fine. */
void file_close(int fd);

/* Takes an exclusive flock on this description: 0, or -EWOULDBLOCK while somebody else, or a dead
 * process's I/O, holds it. */
int file_lock(int fd);
int file_rename(int dir_fd, const char *from, const char *to);
int file_unlink(int dir_fd, const char *name);
int file_fsync(int fd);
int file_size(int fd, uint64_t *ret_bytes);
bool file_is_device(const char *path);

/* Bytes that have no place of their own in the file system yet: a hole, allocated but never written, or shared
 * with another file.  What is written there is sure to be found after a power cut only when this file itself has
 * been flushed since. */
struct file_odd {
	uint64_t off, len;
	bool is_shared; /* else they read as zeros */
};
/* Looks for the first of them in [*off, upto), a bounded part of it at a time.  1: ret_odd; 0: none up to *off,
 * which it sets (there is more to look at, unless that is upto); -EOPNOTSUPP: the file system does not say. */
int file_next_odd(int fd, uint64_t upto, uint64_t *off, struct file_odd *ret_odd);
/* Gives shared bytes a place of their own; what they read as does not change, and neither does it at a power
 * cut.  -EOPNOTSUPP: not here. */
int file_unshare(int fd, uint64_t off, uint64_t len);
/* Says how many bytes the file system of the directory can still take. */
int file_room(int dir_fd, uint64_t *ret_bytes);
/* Calls fn for each name in the directory, "." and ".." left out; stops at the first that is not 0 and
 * returns it. */
int file_each(int dir_fd, int (*fn)(void *cookie, const char *name), void *cookie);

/* Says which alignment O_DIRECT needs here, for offsets and for memory (512 where the kernel does not
 * say). */
int file_dio_align(int fd, uint32_t *ret_mem, uint32_t *ret_off);

/* Returns how many requests the devices below the file system take at a time; 0: the kernel does not say. */
unsigned file_queue_depth(int fd);

/*
 * Tells whether one fdatasync on one file covers the whole disk.  1: yes (ext4, XFS, with barriers); 0: no,
 * every touched file must be flushed (why says what it is, for a warning); -EINVAL: refused (why says it).
 */
int file_check_fs(int fd, char *why, size_t why_len);

/* ---- whose file it is: the extended attribute user.gantry.disk ---- */

#define FILE_MARK_MAX 96

/* Reads the mark of a file.  1: it is in text; 0: it has none; -EOPNOTSUPP: the file system has no such
 * attributes; -errno. */
int file_mark_get(int fd, char text[FILE_MARK_MAX]);
/* Sets it.  0 or -errno. */
int file_mark_set(int fd, const char *text);

/* ---- whose machine it is ---- */

struct host_id;

/* Says which machine this is, as far as it says so itself. */
void file_host_id(struct host_id *ret_id);

#endif
