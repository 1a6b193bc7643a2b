/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of files and objects from one place to another: cp.c, sync.c, move.c, same.c. */
#ifndef GANTRY_CLIENT_CMD_MOVE_H
#define GANTRY_CLIENT_CMD_MOVE_H

#include "client/cmd/move/files.h"
#include "client/cmd/move/tree.h"

#define WHOLE_MAX (64u << 20) /* what is larger goes in parts, and can go on after an interruption */

enum move_how { MOVE_PUT, MOVE_GET, MOVE_COPY };

/* What to do with an entry of the source. */
enum move_todo { MOVE_NOTHING, MOVE_IT, MOVE_UNLESS_SAME };

struct move {
	struct cmd *c;
	const char *op; /* "cp", "sync" */
	enum move_how how;
	struct place from, to;
	int from_dir, to_dir; /* -1 where it is a server's */
	struct written written;
	struct tree tree;
	unsigned char *todo; /* of each entry of tree */
	size_t next;
	struct batch batch;
	uint64_t same, deleted;
};

/* Takes the two words, opens or makes directories, and lists the source.  EXIT_OK, or what was told. */
int move_begin(struct move *m, struct cmd *c, const char *op, const char *from, const char *to);
/* Moves what todo says, several at once. */
void move_run(struct move *m);
/* Reports, frees all, and returns the program's exit status. */
int move_end(struct move *m);

/* Tells whether a file (an entry of it) and the object of the same size are the same: 1, 0, or -errno, told in o. */
int same_file(struct cmd *c, struct buffer *b, int fd, const struct entry *file, const char *url,
	      bool to_server, struct outcome *o);
/* Tells the same of two objects. */
int same_object(struct cmd *c, const char *a, const char *b, struct outcome *o);

#endif
