/* SPDX-License-Identifier: Apache-2.0 */
/* Makes objects from files or other objects by uploads in parts, so that an interrupted upload can be
 * continued: parts.c, resume.c. */
#ifndef GANTRY_CLIENT_CMD_PARTS_H
#define GANTRY_CLIENT_CMD_PARTS_H

#include "client/cmd/common/cmd.h"

/* The source of an upload: a file or an object. */
struct origin {
	int fd;           /* descriptor of the file; -1: the source is an object */
	const char *name; /* path of the file, or URL of the object */
	uint64_t size;
	/* a text that changes with the content: the ETag of the object, or the times and the inode number of
	 * the file */
	char mark[160];
	char content_type[128]; /* Content-Type; "": unknown */
	/* true: the source is an object on the server of the destination, which can copy it */
	bool same_server;
};

/* Fills in *from for an open file. Returns 0 or the -errno of fstat(). */
int origin_of_file(struct origin *from, int fd, const char *name);

/* Uploads the source to url in parts, `streams` at a time. Continues the upload of an earlier run, if there
 * is one. Stores the result in o. */
void put_parts(struct cmd *c, int streams, struct origin *from, const char *url, struct outcome *o);
/* Copies the object `from` (a URL) to url. If both are on the same server, this server copies the object
 * itself; otherwise the bytes move through the buffer b, `streams` parts at a time. Stores the result in
 * o. */
void copy_object(struct cmd *c, struct buffer *b, int streams, const char *from, const char *url,
		 struct outcome *o);

/* ---- the state of an upload between runs: resume.c ---- */

struct resume {
	int fd; /* descriptor of the file with the state; -1: there is none */
	char path[512];
	char id[GANTRY_UPLOAD_ID_MAX]; /* id of the upload to continue; "": there is none */
	uint64_t part_size;
	/* id of an upload to this URL whose source has changed since; "": there is none */
	char stale_id[GANTRY_UPLOAD_ID_MAX];
};

/* Opens the file with the state of the upload of `from` to url. Returns 0, also if no state can be stored
 * (r->fd is -1); -EBUSY: another run uses the state. */
int resume_open(struct resume *r, const struct origin *from, const char *url);
/* Parses the text of a state into r, and modifies the text. head: lines with which the state of this upload
 * begins. If the text begins with head, sets r->id and r->part_size. If only the url in text matches, sets
 * r->stale_id, because that upload cannot be continued. */
void resume_parse(struct resume *r, char *text, size_t len, const char *head, const char *url);
/* Stores r->id and r->part_size durably in the file with the state. Returns false if this fails. */
bool resume_keep(struct resume *r, const struct origin *from, const char *url);
/* Closes the file with the state. keep: false: removes the file. */
void resume_close(struct resume *r, bool keep);

#endif
