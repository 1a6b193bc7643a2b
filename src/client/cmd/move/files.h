/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that get their names only when they are complete, and keys that are allowed as names of files. No
 * file outside of the given directory is ever written: each part of a name is opened by itself, and no
 * symbolic link is followed. sink.c, names.c.
 */
#ifndef GANTRY_CLIENT_CMD_FILES_H
#define GANTRY_CLIENT_CMD_FILES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- names ---- */

/* Prefix of the names of incomplete files. The name of no object may have it. */
#define UNFINISHED ".gantry-"

/* Returns the reason why a key cannot be the name of a file below a directory; NULL if it can. */
const char *name_fault(const char *name, size_t len);
/*
 * Opens the parent directory of `name` below dir; make: missing directories are created. Returns a
 * descriptor, and *ret_leaf points to the last part of name; or -errno, with the reason in *ret_why.
 */
int name_parent(int dir, const char *name, bool make, const char **ret_leaf, const char **ret_why);

/* The files written by this run, by device and inode. They show when a file system treats two names as
 * one, so that the second file would overwrite the first. */
struct written {
	pthread_mutex_t lock;
	struct inode {
		uint64_t dev, ino;
	} * all;
	size_t nr, cap;
};

void written_init(struct written *w);
void written_fini(struct written *w);

/* ---- a file that is being written ---- */

struct sink {
	int fd;
	bool in_order; /* the file is standard output, a pipe or a device, to which bytes are written in
	                * order */
	_Atomic uint64_t written;
	int dir;        /* directory of a regular file; -1: the file is not regular */
	char name[256]; /* name of the file in dir */
	char part[64];  /* part: temporary name of the file; state: name of the state of an interrupted
	                 * download */
	char state[64];
	bool is_named;     /* the temporary file exists */
	bool is_resumable; /* the state exists, too */
	int state_fd;
	struct written *others; /* files written by this run; NULL: they are not recorded */
	const char *why;        /* a sentence about the last error; "": errno describes it */
};

/* The remains of an interrupted download. */
struct unfinished {
	uint64_t size;
	char etag[136];
	uint64_t *crc; /* CRC of each stored piece; the caller frees the array */
	bool *has;     /* true for each stored piece; the caller frees the array */
};

/* Determines the destination `file`: "-", a path, or a directory, to which the last part of url is
 * appended. Opens a destination that is not a regular file; does not change a regular file. Returns 0 or
 * the -errno of opening it. */
int sink_open(struct sink *s, const char *file, const char *url);
/* Does as sink_open() for a name below the directory `dir`, without following links. */
int sink_open_below(struct sink *s, int dir, const char *name, struct written *others);
/*
 * Looks for the remains of an earlier download of url, in pieces of `piece` bytes, and reads them into mem
 * (piece bytes) to check them. Returns 1 with *ret_u if they are consistent; 0, after removing them, if they
 * are not, or if there are none; -EBUSY if another run uses them.
 */
int sink_resume(struct sink *s, const char *url, char *mem, size_t piece, struct unfinished *ret_u);
/* Parses the state of an interrupted download from f. Returns false if the state is invalid or is about
 * another url. The caller zeroes u before, and frees its members in both cases. */
bool unfinished_parse(FILE *f, const char *url, size_t piece, struct unfinished *u);
/* Creates the output file. etag: version of the object with which another run can continue the download;
 * "": the download cannot be continued. Returns 0 or the -errno of creating it. */
int sink_begin(struct sink *s, const char *url, const char *etag, uint64_t size);
/* Writes a piece to offset `at`. Returns 0 or the -errno of the write. */
int sink_write(struct sink *s, const char *mem, size_t len, uint64_t at);
void sink_note(struct sink *s, uint64_t piece, uint64_t crc);
/* Completes the file. If good is true and all `size` bytes are durable, the file gets its name. Otherwise
 * it is removed, or kept for another run if keep is true. Returns 0 or the -errno of the failed step. */
int sink_close(struct sink *s, bool good, bool keep, uint64_t size);

#endif
