/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things are (a directory, or a bucket with the beginning of keys), what is there, and several threads that do
 * something with each.  place.c, tree.c, batch.c.
 */
#ifndef GANTRY_CLIENT_CMD_TREE_H
#define GANTRY_CLIENT_CMD_TREE_H

#include "client/cmd/common/cmd.h"

/* ---- a place: place.c ---- */

struct place {
	const char *word; /* as it was given */
	bool is_url;
	char *bucket; /* the URL of the bucket, or of the server */
	char *prefix; /* what keys begin with, decoded; "" */
	bool has_bucket;
};

/* Takes a word of the command line apart; ends the program when it is a URL and a bad one. */
void place_init(struct place *p, const char *word);
void place_fini(struct place *p);
/* Makes the prefix that of a directory: ends it with '/', unless it is empty. */
void place_as_directory(struct place *p);
/* Returns the URL of what is called name there.  free() it.  NULL: no memory. */
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
	uint64_t skipped; /* links, devices and the like */
	bool is_whole;    /* nothing was left out because of an error */
};

/* Lists all objects of a place, or with a delimiter one level, names below its prefix.  0, or what was told and an exit
 * code is in *ret_exit. */
int tree_of_place(struct cmd *c, const struct place *p, const char *delimiter, struct tree *t, int *ret_exit);
/* Lists the files below a directory, without following links. */
int tree_of_directory(struct cmd *c, int dir, const char *word, struct tree *t);
void tree_fini(struct tree *t);

/* ---- many things at once: batch.c ---- */

struct batch {
	struct cmd *c;
	pthread_mutex_t lock; /* what follows, and printing */
	bool stop, gone;      /* no more: it ended, or the server is gone */
	int errors;           /* told so far */
	struct tally tally;
};

/* Does one of the things; false when there are no more.  b: the thread's own. */
typedef bool batch_fn(void *cookie, struct buffer *b);

void batch_init(struct batch *b, struct cmd *c);
/* Runs `jobs` threads until fn says that there is nothing left, or the server is gone.  False: not one thread could. */
bool batch_run(struct batch *b, int jobs, batch_fn *fn, void *cookie);
/* Takes account of one thing, and tells what went wrong; further failures are only counted. */
void batch_done(struct batch *b, struct outcome *o);
/* Deletes the object that an entry of a place is; a failure is told, with file (which may be NULL).  True: it is gone. */
bool batch_delete(struct batch *b, const struct place *p, const struct entry *n, const char *op,
		  const char *file);
void batch_fini(struct batch *b);

#endif
