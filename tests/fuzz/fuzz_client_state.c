/* SPDX-License-Identifier: Apache-2.0 */
/* What an interrupted transfer has noted, damaged: one byte for which of the two files it is, then the file. */
#include "client/cmd/move/files.h"
#include "client/cmd/move/parts.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())
#define URL "http://h/b/k"
#define HEAD "gantry upload 1\n" URL "\n/f\n9 m\n"
#define PIECE (16u << 20)

static void
download(const char *text, size_t len)
{
	FILE *f = fmemopen((void *)text, len, "r");
	struct unfinished u = { 0 };

	must(f);
	if (unfinished_parse(f, URL, PIECE, &u)) {
		must(u.size > 0 && *u.etag && memchr(u.etag, 0, sizeof u.etag) && !strchr(u.etag, '\n'));
		/* The last piece has its place. */
		must(!u.has[(u.size - 1) / PIECE] || u.crc);
	}
	fclose(f);
	free(u.crc);
	free(u.has);
}

static void
upload(const char *text, size_t len)
{
	struct resume r = { .fd = -1 };
	bool is_same = len > strlen(HEAD) && !memcmp(text, HEAD, strlen(HEAD));
	char *copy = malloc(len);

	must(copy);
	memcpy(copy, text, len);
	resume_parse(&r, copy, len, HEAD, URL);
	must(memchr(r.id, 0, sizeof r.id) && memchr(r.stale_id, 0, sizeof r.stale_id));
	/* An upload goes on only behind the very head, with a size of parts. */
	must(!*r.id == !r.part_size && (!*r.id || is_same));
	must(!*r.id || !*r.stale_id);
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 2)
		return 0;
	if (data[0] & 1)
		upload((const char *)data + 1, len - 1);
	else
		download((const char *)data + 1, len - 1);
	return 0;
}
