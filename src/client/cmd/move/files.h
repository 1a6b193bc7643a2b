/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that appear under their names when they are whole, and which names of objects may become names of files.
 * Nothing outside of the directory that is given is ever written: each part of a name is opened by itself, and no
 * symbolic link is followed.  sink.c, names.c.
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

/* Begins the names of what is not whole yet.  No object gets such a name. */
#define UNFINISHED ".gantry-"

/* Says why a key cannot be the name of a file below a directory; NULL: it can. */
const char *name_fault(const char *name, size_t len);
/*
 * Opens the directory that the last part of name is in, below dir; makes the directories in between when `make`.
 * Returns a descriptor, *ret_leaf then points at the last part; or -errno, and why in *ret_why.
 */
int name_parent(int dir, const char *name, bool make, const char **ret_leaf, const char **ret_why);

/* The files that this run has written, by their numbers: where a file system takes two names for one, the second
 * would overwrite the first. */
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
	int dir;        /* where a regular file will be; -1: it is none */
	char name[256]; /* of it, in dir */
	char part[64];  /* its name until then, and that of what is known about it */
	char state[64];
	bool is_named;     /* part has been made */
	bool is_resumable; /* state too */
	int state_fd;
	struct written *others; /* or NULL */
	const char *why;        /* a sentence for the last error; "": errno says it */
};

/* What an interrupted run has left. */
struct unfinished {
	uint64_t size;
	char etag[136];
	uint64_t *crc; /* of each piece that is there; free() */
	bool *has;     /* free() */
};

/* Finds out where `file` is: "-", a path, or a directory, in which the last part of url is taken.  Opens what is no
 * regular file, and takes nothing of what is.  0 or -errno. */
int sink_open(struct sink *s, const char *file, const char *url);
/* Does the same for a name below the directory `dir`, without following links. */
int sink_open_below(struct sink *s, int dir, const char *name, struct written *others);
/*
 * Takes up what an earlier run has left of url, pieces of `piece` bytes: 1 with *ret_u, when there is something that
 * fits together, else 0, and it is gone.  -EBUSY: another run is at it.  Bytes are read into mem, piece bytes.
 */
int sink_resume(struct sink *s, const char *url, char *mem, size_t piece, struct unfinished *ret_u);
/* Reads the state of such a run, pieces as they are noted: false when it is not of url, or makes no sense.  u is zeroes
 * before; what it has is freed by the caller either way. */
bool unfinished_parse(FILE *f, const char *url, size_t piece, struct unfinished *u);
/* Makes the file that is written to.  etag: of what it can be gone on with, "" when it cannot.  0 or -errno. */
int sink_begin(struct sink *s, const char *url, const char *etag, uint64_t size);
/* Writes a piece; its number is remembered with its CRC where the file is resumable.  0 or -errno. */
int sink_write(struct sink *s, const char *mem, size_t len, uint64_t at);
void sink_note(struct sink *s, uint64_t piece, uint64_t crc);
/* Gives the file its name, when good and all of size bytes are there, safe on the disk; or leaves nothing behind, or
 * with keep what another run can take up.  0 or -errno. */
int sink_close(struct sink *s, bool good, bool keep, uint64_t size);

#endif
