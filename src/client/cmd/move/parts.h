/* SPDX-License-Identifier: Apache-2.0 */
/* Objects from files, and from other objects, in parts that survive an interruption: parts.c, resume.c. */
#ifndef GANTRY_CLIENT_CMD_PARTS_H
#define GANTRY_CLIENT_CMD_PARTS_H

#include "client/cmd/common/cmd.h"

/* What is stored: a file, or an object. */
struct origin {
	int fd;           /* -1: an object */
	const char *name; /* the file's path, or the object's URL */
	uint64_t size;
	char mark[160];         /* changes when the content does: an ETag, or times and numbers of the file */
	char content_type[128]; /* "" when it is not known */
	bool same_server;       /* the server can copy it by itself */
};

/* Fills in an origin of a file that is open.  0 or -errno. */
int origin_of_file(struct origin *from, int fd, const char *name);

/* Stores it in parts, several at once, or goes on with an earlier run's upload; o is filled. */
void put_parts(struct cmd *c, int streams, struct origin *from, const char *url, struct outcome *o);
/* Copies an object to url, on its server where that is one, else through b; o is filled. */
void copy_object(struct cmd *c, struct buffer *b, int streams, const char *from, const char *url,
		 struct outcome *o);

/* ---- what is known of an upload between runs: resume.c ---- */

struct resume {
	int fd; /* -1: nothing is kept */
	char path[512];
	char id[GANTRY_UPLOAD_ID_MAX]; /* of the upload that is under way; "": none */
	uint64_t part_size;
	char stale_id[GANTRY_UPLOAD_ID_MAX]; /* of one that another content was for; "": none */
};

/* Finds the upload of `from` to url.  0, or -EBUSY: another run is at it.  Where no state can be kept, r->fd is -1. */
int resume_open(struct resume *r, const struct origin *from, const char *url);
/* Takes the id and the size of parts behind the head from the text of a state, which is changed; else, of what only the
 * url is the same, the id of what is not gone on with. */
void resume_parse(struct resume *r, char *text, size_t len, const char *head, const char *url);
/* Keeps r->id and r->part_size, safe on the disk.  False: they could not be. */
bool resume_keep(struct resume *r, const struct origin *from, const char *url);
/* Ends it; unless keep, nothing is left. */
void resume_close(struct resume *r, bool keep);

#endif
