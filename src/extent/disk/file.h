/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file - file operations other than I/O: opening, locking, renaming, sizes, the kind of file system. The
 * simulation replaces this file by another implementation. All functions may block: they are called at
 * start-up and on the helper thread, never on a core.
 * All descriptors are close-on-exec; files are opened O_RDWR | O_DIRECT, and O_NOATIME where permitted: a
 * read that updates the access time waits for the journal. Errors are -errno.
 */
#ifndef GANTRY_EXTENT_DISK_FILE_H
#define GANTRY_EXTENT_DISK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int file_open_dir(const char *path, bool create);
/* Returns true if a directory is the root of a file system tree: the root of this system, or a directory that
 * contains etc and usr. */
bool file_is_root(int dir_fd);
/* Opens a file of the directory for I/O. create: true: makes the file; -EEXIST if it exists. Returns the
 * descriptor or -errno. */
int file_open(int dir_fd, const char *name, bool create);
/* Opens a file of the directory for reading only. Returns the descriptor or -errno. */
int file_peek(int dir_fd, const char *name);
/* Opens a block device with O_EXCL, which fails if the device is mounted or claimed; is_peek: opens it for reading only, also while
 * another process has it open. Returns the descriptor or -errno. */
int file_open_device(const char *path, bool is_peek);
/* Closes a descriptor; -1 is allowed. */
void file_close(int fd);

/* Takes an exclusive flock on this open file description. Returns 0, or -EWOULDBLOCK while another process,
 * or the I/O of a dead process, holds the lock. */
int file_lock(int fd);
int file_rename(int dir_fd, const char *from, const char *to);
int file_unlink(int dir_fd, const char *name);
int file_fsync(int fd);
int file_size(int fd, uint64_t *ret_bytes);
/* Results of the comparison of a name with an open file or directory. */
enum file_place {
	PLACE_SAME,
	PLACE_ABSENT, /* the name does not exist */
	PLACE_OTHER,  /* the name leads to another file or directory */
	PLACE_CUT,    /* the file has fewer bytes than it should have */
};
/* Compares a name of the directory, or a path (dir_fd AT_FDCWD), with the open file fd, which should have at
 * least `bytes` bytes. Returns an enum file_place, or -errno if the result is not known. */
int file_where(int dir_fd, const char *name, int fd, uint64_t bytes);
bool file_is_device(const char *path);

/* A range of a file for which the file system has no private blocks: a hole, a range that was allocated and
 * never written, or a range that is shared with another file. A write to such a range is certain to survive a
 * power cut only after a flush of this file. */
struct file_odd {
	uint64_t off, len;
	bool is_shared; /* true: the range is shared with another file; false: the range reads as zeros */
};
/* Finds the first range without private blocks (struct file_odd) in [*off, upto). Each call examines a
 * limited part, and advances *off. Returns 1 if *ret_odd is set; 0 if the range before the new *off has
 * private blocks (the search is complete when *off is upto); -EOPNOTSUPP if the file system does not report
 * private blocks. */
int file_next_odd(int fd, uint64_t upto, uint64_t *off, struct file_odd *ret_odd);
/* Gives private blocks to bytes that are shared with another file. The contents of the bytes do not change,
 * even at a power cut. Returns 0; -EOPNOTSUPP if the file system cannot do this; or another -errno. */
int file_unshare(int fd, uint64_t off, uint64_t len);
/* Sets *ret_bytes to the number of free bytes of the directory's file system. Returns 0 or -errno. */
int file_room(int dir_fd, uint64_t *ret_bytes);
/* Calls fn for each name in the directory except "." and "..". Stops at the first result of fn that is not 0,
 * and returns this result. */
int file_each(int dir_fd, int (*fn)(void *cookie, const char *name), void *cookie);

/* Determines the alignment in bytes that O_DIRECT needs for memory and for offsets of this file; 512 if the
 * kernel does not report it. Returns 0; -EOPNOTSUPP if the file does not allow O_DIRECT; or another
 * -errno. */
int file_dio_align(int fd, uint32_t *ret_mem, uint32_t *ret_off);

/* Returns the queue depth of the devices that the file system is on; 0: the kernel does not report it. */
unsigned file_queue_depth(int fd);

/*
 * Determines whether one fdatasync on one file covers the whole disk. Returns 1 if it does (ext4, XFS, with
 * barriers); 0 if every written file must be flushed, with a reason for a warning in why; -EINVAL if the file
 * system is refused, with the reason in why.
 */
int file_check_fs(int fd, char *why, size_t why_len);

/* ---- the disk to which a file belongs: the extended attribute user.gantry.disk ---- */

#define FILE_MARK_MAX 96

/* Reads the mark of a file: the extended attribute user.gantry.disk, which names the disk of the file.
 * Returns 1 with the mark in text; 0 if the file has no mark; -EOPNOTSUPP if the file system has no extended
 * attributes; or another -errno. */
int file_mark_get(int fd, char text[FILE_MARK_MAX]);
/* Sets the mark of a file: the extended attribute user.gantry.disk, which names the disk of the file. Returns
 * 0 or -errno. */
int file_mark_set(int fd, const char *text);

/* ---- identity of the machine ---- */

struct host_id;

/* Returns the identity of this machine and this process, as far as available. */
void file_host_id(struct host_id *ret_id);

enum file_process {
	PROCESS_UNKNOWN, /* the process is in a namespace that is not visible, or its state is not certain */
	PROCESS_GONE,    /* the process has ended, or is the calling process itself */
	PROCESS_LIVES,
};
/* Returns the state of the process `of`, which ran on this machine in the present boot. here: identity of the
 * calling process. */
enum file_process file_process(const struct host_id *of, const struct host_id *here);

#endif
