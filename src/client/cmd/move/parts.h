/* SPDX-License-Identifier: Apache-2.0 */
/* Objects from files, and from other objects, in parts that survive an interruption: parts.c, resume.c. */
#ifndef GANTRY_CLIENT_CMD_PARTS_H
#define GANTRY_CLIENT_CMD_PARTS_H

#include "client/cmd/common/cmd.h"

/* The source of an upload: a file, or an object. */
struct origin {
	int fd;           /* -1: an object */
	const char *name; /* the file's path, or the object's URL */
	uint64_t size;
	char mark[160];         /* changes with the content: an ETag, or times and numbers of the file */
	char content_type[128]; /* "": unknown */
	bool same_server;       /* the server can copy it itself */
};

/* Fills in the origin for an open file. 0 or -errno. */
int origin_of_file(struct origin *from, int fd, const char *name);

/* Stores the origin in parts, several at a time, or continues the upload of an earlier run; o is filled
 * in. */
void put_parts(struct cmd *c, int streams, struct origin *from, const char *url, struct outcome *o);
/* Copies the object `from` to url: by CopyObject if both are on the same server, else through the buffer b.
 * Stores the result in o. */
void copy_object(struct cmd *c, struct buffer *b, int streams, const char *from, const char *url,
		 struct outcome *o);

/* ---- what is known of an upload between runs: resume.c ---- */

struct resume {
	int fd; /* -1: no state is stored */
	char path[512];
	char id[GANTRY_UPLOAD_ID_MAX]; /* of the upload in progress; "": none */
	uint64_t part_size;
	char stale_id[GANTRY_UPLOAD_ID_MAX]; /* of an upload for other content; "": none */
};

/* Finds the upload of `from` to url. 0, or -EBUSY: another run uses it. If no state can be stored, r->fd is
 * -1. */
int resume_open(struct resume *r, const struct origin *from, const char *url);
/* Parses the id and the part size after the head of a state's text, which is modified; if only the url
 * matches, the id of an upload that cannot be continued. */
void resume_parse(struct resume *r, char *text, size_t len, const char *head, const char *url);
/* Stores r->id and r->part_size durably. False: that failed. */
bool resume_keep(struct resume *r, const struct origin *from, const char *url);
/* Ends it; unless keep, the state is removed. */
void resume_close(struct resume *r, bool keep);

#endif
