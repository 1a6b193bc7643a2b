/* SPDX-License-Identifier: Apache-2.0 */
/* Copies trees of files and objects between directories and servers, for the commands cp and sync: cp.c,
 * sync.c, move.c, same.c. */
#ifndef GANTRY_CLIENT_CMD_MOVE_H
#define GANTRY_CLIENT_CMD_MOVE_H

#include "client/cmd/move/files.h"
#include "client/cmd/move/tree.h"

/* largest size in bytes of an object that is moved as a whole; a larger one is moved in parts, so that an
 * interrupted move can be continued */
#define WHOLE_MAX (64u << 20)

enum move_how { MOVE_PUT, MOVE_GET, MOVE_COPY };

/* The action for an entry of the source: none, to move it, or to move it unless the destination has equal
 * content. */
enum move_todo { MOVE_NOTHING, MOVE_IT, MOVE_UNLESS_SAME };

struct move {
	struct cmd *c;
	const char *op; /* name of the command: "cp" or "sync" */
	enum move_how how;
	struct place from, to;
	int from_dir, to_dir; /* descriptors of the directories from and to; -1: the place is on a server */
	struct written written;
	struct tree tree;
	unsigned char *todo; /* array with an enum move_todo for each entry of tree */
	size_t next;
	struct batch batch;
	uint64_t same, deleted;
};

/* Parses source and destination, opens or creates directories, and lists the source. Returns EXIT_OK, or
 * the exit code of an error that was reported. */
int move_begin(struct move *m, struct cmd *c, const char *op, const char *from, const char *to);
/* Moves the entries that `todo` selects, several at a time. */
void move_run(struct move *m);
/* Reports the result and frees the memory. Returns the exit code of the program. */
int move_end(struct move *m);

/* Compares a file with an object of the same size. fd, file: descriptor and entry of the file; to_server:
 * true: the object is the destination. Returns 1: they are equal; 0: they differ; or -errno, after storing
 * the error in o. */
int same_file(struct cmd *c, struct buffer *b, int fd, const struct entry *file, const char *url,
	      bool to_server, struct outcome *o);
/* Compares two objects of the same size; a, b: their URLs. Returns 1: they are equal; 0: they differ; or
 * -errno, after storing the error in o. */
int same_object(struct cmd *c, const char *a, const char *b, struct outcome *o);

#endif
