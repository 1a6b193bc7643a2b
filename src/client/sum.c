/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum of the bytes that are put, wherever the memory is.  Runs on the caller's thread. */
#include "client/stage.h"

#include "base/crc64.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECE_BYTES 262144u /* of memory of a device, at a time */

/* By the program's copy function.  0 or -errno. */
static int
sum_by_program(struct call *c)
{
	const struct gantry *g = c->g;
	struct gantry_result *res = c->res;
	char *piece = malloc(PIECE_BYTES);
	int e = piece ? 0 : -ENOMEM;

	for (uint64_t at = 0; e == 0 && at < c->size; at += PIECE_BYTES) {
		size_t n = c->size - at < PIECE_BYTES ? (size_t)(c->size - at) : PIECE_BYTES;

		e = g->copy(g->copy_cookie, piece, c->memory.ptr + at, n, GANTRY_TO_HOST);
		e = e <= 0 ? e : -EIO;
		if (e == 0)
			res->crc64nvme = crc64_nvme(res->crc64nvme, piece, n);
		else
			snprintf(res->message, sizeof res->message,
				 "the copy function for memory of a device: %s", error_text(-e));
	}
	free(piece);
	return e;
}

/* Through the stage.  0 or -errno. */
static int
sum_by_stage(struct call *c)
{
	struct gantry_result *res = c->res;
	struct bounce *b = NULL;
	const char *bytes;
	size_t n;
	int e = bounce_open(c->g, c->memory.ptr, c->size, &b, res->message, sizeof res->message);

	for (uint64_t at = 0; e == 0 && at < c->size; at += n) {
		e = bounce_peek(b, at, &bytes, &n, res->message, sizeof res->message);
		if (e == 0)
			res->crc64nvme = crc64_nvme(res->crc64nvme, bytes, n);
	}
	bounce_close(b, res->message, e < 0 ? 0 : sizeof res->message);
	return e;
}

int
sum_up(struct call *c)
{
	struct gantry_result *res = c->res;
	int e = 0;

	if (!c->req.checksum || *c->checksum)
		return 0;
	if (!c->memory.is_device) {
		res->crc64nvme = crc64_nvme(0, c->memory.ptr, c->size);
	} else if (c->g->copy) {
		e = sum_by_program(c);
	} else if (stage_can(c->g, c->memory.ptr)) {
		e = sum_by_stage(c);
	} else {
		snprintf(res->message, sizeof res->message, "a checksum of %s takes a copy function",
			 memory_name(c->memory.ptr, c->size));
		e = -EOPNOTSUPP;
	}
	res->has_crc64nvme = e == 0;
	if (e == 0)
		gantry_crc64nvme_text(res->crc64nvme, c->checksum);
	return e;
}
