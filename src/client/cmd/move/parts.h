/* SPDX-License-Identifier: Apache-2.0 */
/* Creates objects from files or other objects, in parts, so that an interrupted upload can be continued:
 * parts.c, resume.c. */
#ifndef GANTRY_CLIENT_CMD_PARTS_H
#define GANTRY_CLIENT_CMD_PARTS_H

#include "client/cmd/common/cmd.h"

/* The source of an upload: a file or an object. */
struct origin {
	int fd;           /* descriptor of the file; -1: the source is an object */
	const char *name; /* path of the file, or URL of the object */
	uint64_t size;
	char mark[160];         /* a text that changes with the content: the ETag, or times and numbers of
	                         * the file */
	char content_type[128]; /* Content-Type; "": unknown */
	bool same_server;       /* true if the destination's server has the source, and can copy it */
};

/* Fills in *from for an open file. Returns 0 or the -errno of examining it. */
int origin_of_file(struct origin *from, int fd, const char *name);

/* Uploads the source in parts, `streams` at a time, or continues the upload of an earlier run. Stores the
 * result in o. */
void put_parts(struct cmd *c, int streams, struct origin *from, const char *url, struct outcome *o);
/* Copies the object `from` to url: by CopyObject if both are on the same server, otherwise through the
 * buffer b. Stores the result in o. */
void copy_object(struct cmd *c, struct buffer *b, int streams, const char *from, const char *url,
		 struct outcome *o);

/* ---- the state of an upload between runs: resume.c ---- */

struct resume {
	int fd; /* descriptor of the state; -1: no state is stored */
	char path[512];
	char id[GANTRY_UPLOAD_ID_MAX]; /* id of the upload in progress; "": none */
	uint64_t part_size;
	char stale_id[GANTRY_UPLOAD_ID_MAX]; /* id of an upload for other content; "": none */
};

/* Opens the state of the upload of `from` to url. Returns 0, or -EBUSY if another run uses it. If no state
 * can be stored, r->fd is -1. */
int resume_open(struct resume *r, const struct origin *from, const char *url);
/* Parses the text of a state, which is modified, into r. If the text begins with head, r gets the upload's
 * id and part size. If only the url matches, r->stale_id gets the id of the upload, which cannot be
 * continued. */
void resume_parse(struct resume *r, char *text, size_t len, const char *head, const char *url);
/* Stores r->id and r->part_size durably. Returns false if that fails. */
bool resume_keep(struct resume *r, const struct origin *from, const char *url);
/* Closes the state; removes it unless keep is true. */
void resume_close(struct resume *r, bool keep);

#endif
