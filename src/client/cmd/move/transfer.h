/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers one file into an object (put.c), or one object into a file (get.c).
 */
#ifndef GANTRY_CLIENT_CMD_TRANSFER_H
#define GANTRY_CLIENT_CMD_TRANSFER_H

#include "client/cmd/common/cmd.h"

/* Uploads an open file to url. A file of more than whole_max bytes is sent in parts, `streams` at a time.
 * Stores the result in o, and prints nothing. */
void put_fd(struct cmd *c, struct buffer *b, int streams, uint64_t whole_max, int fd, const char *file,
	    const char *url, struct outcome *o);
void put_file(struct cmd *c, struct buffer *b, int streams, const char *file, const char *url,
	      struct outcome *o);
void get_file(struct cmd *c, struct buffer *b, int streams, const char *url, const char *file,
	      struct outcome *o);
void get_part(struct cmd *c, struct buffer *b, int streams, const char *url, const char *file,
	      const struct part *part, struct outcome *o);
struct written;
/* Downloads an object to the path `name` below the directory dir, and never to a file outside of dir. others:
 * files written by this run (files.h). Stores the result in o. */
void get_below(struct cmd *c, struct buffer *b, int streams, const char *url, int dir, const char *name,
	       struct written *others, struct outcome *o);
/* Parses a range of bytes: FIRST-LAST, FIRST- or -LENGTH. Returns false if the text is invalid. */
bool part_parse(const char *text, struct part *ret);
/* Path of the file that this thread has mapped into memory and reads; NULL: none. The message after a SIGBUS
 * names this file. */
extern _Thread_local const char *mapped_file;

#endif
