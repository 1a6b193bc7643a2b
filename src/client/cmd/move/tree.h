/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places (a directory, or a bucket with a prefix of keys), lists of their entries, and threads that share
 * the work on such a list. place.c, tree.c, batch.c.
 */
#ifndef GANTRY_CLIENT_CMD_TREE_H
#define GANTRY_CLIENT_CMD_TREE_H

#include "client/cmd/common/cmd.h"

/* ---- a place: place.c ---- */

struct place {
	const char *word; /* text given on the command line */
	bool is_url;
	char *bucket; /* URL of the bucket, or of the server */
	char *prefix; /* prefix of the keys, decoded; "": none */
	bool has_bucket;
};

/* Parses an argument of the command line. Ends the program if it is an invalid URL. */
void place_init(struct place *p, const char *word);
void place_fini(struct place *p);
/* Appends '/' to the prefix, unless it is empty or ends with '/', so that it names a directory. */
void place_as_directory(struct place *p);
/* Returns the URL of a name in the place, which the caller frees; NULL if there is no memory. */
char *place_url(const struct place *p, const char *name);

/* ---- lists of entries: tree.c ---- */

struct entry {
	char *name; /* name relative to the place, with '/' between its parts */
	size_t name_len;
	uint64_t size;
	struct timespec mtime; /* time of the last change, only of a file */
	char *date, *etag;     /* date and ETag, only of an object */
	bool is_prefix, is_raw;
};

struct tree {
	struct entry *all; /* sorted by the bytes of the names */
	size_t nr, cap;
	uint64_t bytes;
	uint64_t skipped; /* number of omitted links, devices etc. */
	bool is_whole;    /* true if no entry is missing because of an error */
};

/* Lists all objects of a place; with a delimiter only one level, with names relative to the place's
 * prefix. Returns 0; or another value after reporting the error, and *ret_exit is the exit code. */
int tree_of_place(struct cmd *c, const struct place *p, const char *delimiter, struct tree *t, int *ret_exit);
/* Lists the files below a directory, without following links. word: the directory's name in messages. */
int tree_of_directory(struct cmd *c, int dir, const char *word, struct tree *t);
void tree_fini(struct tree *t);

/* ---- several threads: batch.c ---- */

struct batch {
	struct cmd *c;
	pthread_mutex_t lock; /* protects the members from `stop` on, and printing */
	bool stop, gone;      /* stop: no work is left or the work is to end; gone: the server does not
	                       * answer */
	int errors;           /* number of errors reported */
	struct tally tally;
};

/* Does one piece of the work. Returns false if no work is left. b: buffer of the thread. */
typedef bool batch_fn(void *cookie, struct buffer *b);

void batch_init(struct batch *b, struct cmd *c);
/* Runs `jobs` threads until fn returns false, or the server does not answer. Returns false if no thread
 * could be started. */
bool batch_run(struct batch *b, int jobs, batch_fn *fn, void *cookie);
/* Notes the result of a piece of work, and reports an error; after some errors the others are only counted. */
void batch_done(struct batch *b, struct outcome *o);
/* Deletes the object of an entry of a place. Returns true if it was deleted; otherwise reports the error,
 * with `file` unless that is NULL. */
bool batch_delete(struct batch *b, const struct place *p, const struct entry *n, const char *op,
		  const char *file);
void batch_fini(struct batch *b);

#endif
