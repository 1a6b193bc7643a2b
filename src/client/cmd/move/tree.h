/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places (place.c), lists of their entries (tree.c), and threads that share the work on a list (batch.c). A
 * place is a directory, or a bucket with a prefix of keys.
 */
#ifndef GANTRY_CLIENT_CMD_TREE_H
#define GANTRY_CLIENT_CMD_TREE_H

#include "client/cmd/common/cmd.h"

/* ---- a place: place.c ---- */

struct place {
	const char *word; /* text given on the command line */
	bool is_url;
	char *bucket; /* URL of the bucket or, without has_bucket, of the server */
	char *prefix; /* prefix of the keys, not percent-encoded; "": none */
	bool has_bucket;
};

/* Parses an argument of the command line. Ends the program if it is an invalid URL. */
void place_init(struct place *p, const char *word);
void place_fini(struct place *p);
/* Makes the prefix name a directory: appends '/', unless the prefix is empty or ends with '/' already. */
void place_as_directory(struct place *p);
/* Returns the URL of the entry `name` of the place, which the caller frees; NULL: no memory. */
char *place_url(const struct place *p, const char *name);

/* ---- lists of entries: tree.c ---- */

struct entry {
	char *name; /* name relative to the place, with '/' between its components */
	size_t name_len;
	uint64_t size;
	struct timespec mtime; /* time of the last change; only of a file */
	char *date, *etag;     /* date and ETag, only of an object */
	bool is_prefix, is_raw;
};

struct tree {
	struct entry *all; /* entries, sorted by the bytes of their names */
	size_t nr, cap;
	uint64_t bytes;
	uint64_t skipped; /* number of entries that were omitted because they are links, devices etc. */
	bool is_whole;    /* true: no entry is missing because of an error */
};

/* Lists the objects of a place; delimiter: "/": only one level of them; NULL: all. Names are relative to the
 * prefix of the place. Returns 0; or another value after reporting the error, with the exit code of the
 * program in *ret_exit. */
int tree_of_place(struct cmd *c, const struct place *p, const char *delimiter, struct tree *t, int *ret_exit);
/* Lists the files below a directory, and follows no symbolic link. word: name of the directory in
 * messages. */
int tree_of_directory(struct cmd *c, int dir, const char *word, struct tree *t);
void tree_fini(struct tree *t);

/* ---- several threads: batch.c ---- */

struct batch {
	struct cmd *c;
	pthread_mutex_t lock; /* protects the members from `stop` on, and printing */
	/* stop: true: no work is left, or the work must end early; gone: true: the server does not answer */
	bool stop, gone;
	int errors; /* number of errors that were reported */
	struct tally tally;
};

/* Does one piece of the work. b: buffer of the thread. Returns false if no work is left. */
typedef bool batch_fn(void *cookie, struct buffer *b);

void batch_init(struct batch *b, struct cmd *c);
/* Runs `jobs` threads, which call fn until it returns false or the server does not answer. Returns false if
 * no thread could be started. */
bool batch_run(struct batch *b, int jobs, batch_fn *fn, void *cookie);
/* Adds the result of a piece of work to the tally, and reports its error. After some reported errors, further
 * errors are only counted. */
void batch_done(struct batch *b, struct outcome *o);
/* Deletes the object of entry n of a place. Returns true if the object was deleted; otherwise reports the
 * error. file: name of the file in this message; NULL: none. */
bool batch_delete(struct batch *b, const struct place *p, const struct entry *n, const char *op,
		  const char *file);
void batch_fini(struct batch *b);

#endif
