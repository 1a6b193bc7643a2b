/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output files that get their names only when they are complete (sink.c), and the check of keys that become
 * names of files (names.c). No file outside of the given directory is ever written: each component of a path
 * is opened by itself, and no symbolic link is followed.
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

/* Prefix of the names of incomplete files. An object whose name begins with it is not downloaded. */
#define UNFINISHED ".gantry-"

/* Returns the reason why a key cannot be the path of a file below a directory; NULL: the key can be such a
 * path. */
const char *name_fault(const char *name, size_t len);
/*
 * Opens the parent directory of the path `name` below dir. make: true: creates missing directories. Returns
 * its descriptor, and in *ret_leaf the last component of name; or -errno with the reason in *ret_why.
 */
int name_parent(int dir, const char *name, bool make, const char **ret_leaf, const char **ret_why);

/* The files that this run has written, by device and inode number. With them the run notices two names that
 * the file system takes for one, before the second file overwrites the first. */
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
	/* true: the file is standard output, a pipe or a device, so its bytes must be written in order */
	bool in_order;
	_Atomic uint64_t written;
	int dir;        /* descriptor of the directory of a regular file; -1: the file is not regular */
	char name[256]; /* name of the file in dir */
	/* part: temporary name of the file; state: name of the file with the state of the download */
	char part[64];
	char state[64];
	bool is_named;     /* true: the file with the temporary name exists */
	bool is_resumable; /* true: the file with the state exists as well */
	int state_fd;
	struct written *others; /* the files written by this run; NULL: they are not recorded */
	const char *why;        /* a sentence about the last error; "": errno describes it */
};

/* The state of an interrupted download, and its stored pieces. */
struct unfinished {
	uint64_t size;
	char etag[136];
	uint64_t *crc; /* array with the CRC of each stored piece; freed by the caller */
	bool *has;     /* array: true for each piece that is stored; freed by the caller */
};

/* Determines the destination of a download. file: "-" (standard output), a path, or a directory, to which the
 * last component of url is appended. Opens the destination unless it is a regular file, which stays unchanged
 * until sink_close(). Returns 0 or the -errno of opening it. */
int sink_open(struct sink *s, const char *file, const char *url);
/* Determines the destination of a download: the path `name` below the directory dir. Follows no symbolic
 * link. others: files written by this run; NULL: none are recorded. Returns 0 or -errno. */
int sink_open_below(struct sink *s, int dir, const char *name, struct written *others);
/*
 * Looks for the incomplete file of an earlier download of url, and checks its pieces of `piece` bytes by
 * their CRCs. mem: memory of `piece` bytes for the check. Returns 1 with *ret_u: the download can be
 * continued; 0: there is no such file, or it was invalid and was removed; -EBUSY: another run uses the file.
 */
int sink_resume(struct sink *s, const char *url, char *mem, size_t piece, struct unfinished *ret_u);
/* Parses the state of an interrupted download from f. Returns true; false: the state is invalid, or is about
 * another url. The caller clears *u before, and frees its arrays with either result. */
bool unfinished_parse(FILE *f, const char *url, size_t piece, struct unfinished *u);
/* Creates the output file under its temporary name. etag: ETag of the object, so that another run can
 * continue the download of this version; "": the download cannot be continued. Returns 0 or the -errno of
 * creating it. */
int sink_begin(struct sink *s, const char *url, const char *etag, uint64_t size);
/* Writes len bytes to offset `at` of the output file. Returns 0 or the -errno of the write. */
int sink_write(struct sink *s, const char *mem, size_t len, uint64_t at);
void sink_note(struct sink *s, uint64_t piece, uint64_t crc);
/* Ends the output file. good: true: the download succeeded; when all `size` bytes are durable, the file gets
 * its name. false: the file is removed or, if keep is true, kept for another run. Returns 0 or the -errno of
 * the failed step. */
int sink_close(struct sink *s, bool good, bool keep, uint64_t size);

#endif
