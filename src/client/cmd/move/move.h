/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of files and objects from one place to another: cp.c, sync.c, move.c, same.c. */
#ifndef GANTRY_CLIENT_CMD_MOVE_H
#define GANTRY_CLIENT_CMD_MOVE_H

#include "client/cmd/move/files.h"
#include "client/cmd/move/tree.h"

/* a larger object is moved in parts, and can be continued after an interruption */
#define WHOLE_MAX (64u << 20)

enum move_how { MOVE_PUT, MOVE_GET, MOVE_COPY };

/* The action for an entry of the source. */
enum move_todo { MOVE_NOTHING, MOVE_IT, MOVE_UNLESS_SAME };

struct move {
	struct cmd *c;
	const char *op; /* "cp", "sync" */
	enum move_how how;
	struct place from, to;
	int from_dir, to_dir; /* -1 for a server */
	struct written written;
	struct tree tree;
	unsigned char *todo; /* one for each entry of tree */
	size_t next;
	struct batch batch;
	uint64_t same, deleted;
};

/* Parses source and destination, opens or makes directories, and lists the source. Returns EXIT_OK, or the
 * exit code already reported. */
int move_begin(struct move *m, struct cmd *c, const char *op, const char *from, const char *to);
/* Moves the entries selected by todo, several at a time. */
void move_run(struct move *m);
/* Reports, frees all, and returns the program's exit status. */
int move_end(struct move *m);

/* Compares a file (an entry of it) with the object of the same size: 1 equal, 0 different, or -errno,
 * reported in o. */
int same_file(struct cmd *c, struct buffer *b, int fd, const struct entry *file, const char *url,
	      bool to_server, struct outcome *o);
/* Compares two objects in the same way. */
int same_object(struct cmd *c, const char *a, const char *b, struct outcome *o);

#endif
