/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places (a directory, or a bucket with a prefix of keys), their entries, and several threads that work on
 * each entry. place.c, tree.c, batch.c.
 */
#ifndef GANTRY_CLIENT_CMD_TREE_H
#define GANTRY_CLIENT_CMD_TREE_H

#include "client/cmd/common/cmd.h"

/* ---- a place: place.c ---- */

struct place {
	const char *word; /* as it was given */
	bool is_url;
	char *bucket; /* the URL of the bucket, or of the server */
	char *prefix; /* prefix of the keys, decoded; "" */
	bool has_bucket;
};

/* Parses a word of the command line; ends the program for an invalid URL. */
void place_init(struct place *p, const char *word);
void place_fini(struct place *p);
/* Makes the prefix that of a directory: ends it with '/', unless it is empty. */
void place_as_directory(struct place *p);
/* Returns the URL of a name in the place. free() it. NULL: no memory. */
char *place_url(const struct place *p, const char *name);

/* ---- what is there: tree.c ---- */

struct entry {
	char *name; /* below the place, with '/' between its parts */
	size_t name_len;
	uint64_t size;
	struct timespec mtime; /* of a file */
	char *date, *etag;     /* of an object */
	bool is_prefix, is_raw;
};

struct tree {
	struct entry *all; /* in the order of the names' bytes */
	size_t nr, cap;
	uint64_t bytes;
	uint64_t skipped; /* number of links, devices etc. */
	bool is_whole;    /* no entry was omitted because of an error */
};

/* Lists all objects of a place, or with a delimiter one level, names below its prefix. 0, or the error was
 * reported and *ret_exit has an exit code. */
int tree_of_place(struct cmd *c, const struct place *p, const char *delimiter, struct tree *t, int *ret_exit);
/* Lists the files below a directory, without following links. */
int tree_of_directory(struct cmd *c, int dir, const char *word, struct tree *t);
void tree_fini(struct tree *t);

/* ---- many things at once: batch.c ---- */

struct batch {
	struct cmd *c;
	pthread_mutex_t lock; /* protects the following members, and printing */
	bool stop, gone;      /* end the work: it has ended, or the server is gone */
	int errors;           /* reported so far */
	struct tally tally;
};

/* Does one piece of the work; false when none is left. b: buffer of the thread. */
typedef bool batch_fn(void *cookie, struct buffer *b);

void batch_init(struct batch *b, struct cmd *c);
/* Runs `jobs` threads until fn returns false, or the server is gone. False: no thread could be started. */
bool batch_run(struct batch *b, int jobs, batch_fn *fn, void *cookie);
/* Notes the result of a piece of work, and reports an error; further failures are only counted. */
void batch_done(struct batch *b, struct outcome *o);
/* Deletes the object of a place's entry; a failure is reported, with file (which may be NULL). True: it is
 * deleted. */
bool batch_delete(struct batch *b, const struct place *p, const struct entry *n, const char *op,
		  const char *file);
void batch_fini(struct batch *b);

#endif
