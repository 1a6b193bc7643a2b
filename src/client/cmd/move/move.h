/* SPDX-License-Identifier: Apache-2.0 */
/* Moves trees of files and objects between directories and servers: cp.c, sync.c, move.c, same.c. */
#ifndef GANTRY_CLIENT_CMD_MOVE_H
#define GANTRY_CLIENT_CMD_MOVE_H

#include "client/cmd/move/files.h"
#include "client/cmd/move/tree.h"

/* size, bytes, above which an object is moved in parts, so that an interrupted move can be continued */
#define WHOLE_MAX (64u << 20)

enum move_how { MOVE_PUT, MOVE_GET, MOVE_COPY };

/* The action for an entry of the source. */
enum move_todo { MOVE_NOTHING, MOVE_IT, MOVE_UNLESS_SAME };

struct move {
	struct cmd *c;
	const char *op; /* "cp", "sync" */
	enum move_how how;
	struct place from, to;
	int from_dir, to_dir; /* descriptors of directories; -1 for a server */
	struct written written;
	struct tree tree;
	unsigned char *todo; /* an enum move_todo for each entry of tree */
	size_t next;
	struct batch batch;
	uint64_t same, deleted;
};

/* Parses source and destination, opens or creates directories, and lists the source. Returns EXIT_OK, or
 * the exit code of an error that was reported. */
int move_begin(struct move *m, struct cmd *c, const char *op, const char *from, const char *to);
/* Moves the entries that `todo` selects, several at a time. */
void move_run(struct move *m);
/* Reports the result, frees the memory, and returns the exit code of the program. */
int move_end(struct move *m);

/* Compares a file with an object of the same size; fd, file: descriptor and entry of the file. Returns 1
 * if they are equal, 0 if they differ, or -errno, after noting the error in o. */
int same_file(struct cmd *c, struct buffer *b, int fd, const struct entry *file, const char *url,
	      bool to_server, struct outcome *o);
/* Compares two objects of the same size. The result is that of same_file(). */
int same_object(struct cmd *c, const char *a, const char *b, struct outcome *o);

#endif
