/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that get their names when they are complete, and the keys that may become names of files. No file
 * outside of the given directory is ever written: each part of a name is opened by itself, and no symbolic
 * link is followed. sink.c, names.c.
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

/* Prefix of the names of incomplete files. No object gets such a name. */
#define UNFINISHED ".gantry-"

/* Returns the reason why a key cannot be the name of a file below a directory; NULL: it can. */
const char *name_fault(const char *name, size_t len);
/*
 * Opens the parent directory of name below dir; makes intermediate directories with `make`. Returns a
 * descriptor, and *ret_leaf points at the last part; or -errno, and the reason in *ret_why.
 */
int name_parent(int dir, const char *name, bool make, const char **ret_leaf, const char **ret_why);

/* The files written by this run, by their numbers: if a file system treats two names as one, the second would
 * overwrite the first. */
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
	bool in_order; /* standard output, a pipe, a device: bytes must come in order */
	_Atomic uint64_t written;
	int dir;        /* directory of a regular file; -1: not a regular file */
	char name[256]; /* of the file, in dir */
	char part[64];  /* its temporary name, and that of its state */
	char state[64];
	bool is_named;     /* the temporary file exists */
	bool is_resumable; /* the state exists too */
	int state_fd;
	struct written *others; /* or NULL */
	const char *why;        /* a sentence for the last error; "": errno says it */
};

/* The remains of an interrupted run. */
struct unfinished {
	uint64_t size;
	char etag[136];
	uint64_t *crc; /* of each stored piece; free() */
	bool *has;     /* free() */
};

/* Determines the destination `file`: "-", a path, or a directory, to which the last part of url is appended.
 * Opens a destination that is not a regular file; a regular file is not touched yet. 0 or -errno. */
int sink_open(struct sink *s, const char *file, const char *url);
/* Determines a name below the directory `dir` in the same way, without following links. */
int sink_open_below(struct sink *s, int dir, const char *name, struct written *others);
/*
 * Continues with the remains of an earlier run for url, in pieces of `piece` bytes: 1 with *ret_u if they are
 * consistent, else 0, and they are removed. -EBUSY: another run uses them. Bytes are read into mem, piece
 * bytes.
 */
int sink_resume(struct sink *s, const char *url, char *mem, size_t piece, struct unfinished *ret_u);
/* Parses the state that an interrupted download left in f. Returns false if the state is for another url, or
 * invalid. u is zeroed before; the caller frees its members in both cases. */
bool unfinished_parse(FILE *f, const char *url, size_t piece, struct unfinished *u);
/* Makes the output file. etag: of the version with which it can be continued, "" if it cannot. 0 or
 * -errno. */
int sink_begin(struct sink *s, const char *url, const char *etag, uint64_t size);
/* Writes a piece; its number is stored with its CRC if the file is resumable. 0 or -errno. */
int sink_write(struct sink *s, const char *mem, size_t len, uint64_t at);
void sink_note(struct sink *s, uint64_t piece, uint64_t crc);
/* Gives the file its name, if good and all of size bytes are durable; otherwise removes it, or with keep
 * leaves the remains for another run. 0 or -errno. */
int sink_close(struct sink *s, bool good, bool keep, uint64_t size);

#endif
