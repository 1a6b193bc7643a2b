/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage - the stage of a context: host memory that is pinned for the driver of a device and registered once
 * with the ports. It is divided into equal pieces, which calls take for a while. Any thread may call these
 * functions. A call that has a piece never waits for another piece.
 */
#ifndef GANTRY_CLIENT_STAGE_H
#define GANTRY_CLIENT_STAGE_H

#include "client/client_int.h"

/* A run of adjacent pieces of the stage. */
struct stage_run {
	char *ptr;
	unsigned first, nr;
};

/* Makes the stage of a context, without allocating its memory. Returns 0; -EINVAL if bytes is out of range;
 * -ENOMEM. */
int stage_open(struct gantry *g, uint64_t bytes);
/* Frees the stage. No call may be running, and its memory was deregistered. */
void stage_close(struct gantry *g);
/* Returns true if this memory can be staged: the context has a stage, and a driver that can copy knows the
 * memory. */
bool stage_can(const struct gantry *g, const void *ptr);
/* Returns the size of a piece in bytes. */
size_t stage_piece(const struct gantry *g);
/* Returns the size of all pieces in bytes. */
size_t stage_size(const struct gantry *g);
/*
 * Takes as many adjacent pieces as `bytes` need, and waits in turn until they are free. With may_wait false
 * the call succeeds only if the pieces are free and no other call waits. Returns 0, or with the reason:
 * -EAGAIN if the pieces are not free now; -ENOMEM or -ENOBUFS if they will never be.
 */
int stage_take(struct gantry *g, size_t bytes, bool may_wait, struct stage_run *ret, char *why,
	       size_t why_len);
void stage_give(struct gantry *g, const struct stage_run *run);
/* Abandons pieces to which a device may still write. */
void stage_lose(struct gantry *g, const struct stage_run *run);
/* Takes an idle stream for copies between the stage and memory of a device, or makes a stream. Returns 0, or
 * -errno with the reason. */
int stage_stream(struct gantry *g, const void *ptr, struct gpu_stream **ret, char *why, size_t why_len);
/* Returns a stream that has no queued work to the idle streams. */
void stage_stream_give(struct gantry *g, struct gpu_stream *s);

/* ---- puts and gets through it: staged.c ---- */

/* Puts the object of call c through the stage. Returns 0; 1 if HTTP must be used, with the reason in
 * c->res->reason; or the -errno of the call. */
int staged_put(struct call *c);
/* Gets the object of call c through the stage. Results are those of staged_put(). */
int staged_get(struct call *c);

/* ---- bodies of HTTP, and checksums, through it: bounce.c ---- */

struct bounce;
/* Begins to move size bytes between memory of a device and the CPU. Returns 0, or -errno with the reason. */
int bounce_open(struct gantry *g, const void *ptr, uint64_t size, struct bounce **ret_b, char *why,
		size_t why_len);
/* Sets *ret to the bytes from byte `at` of the device's memory on, and *ret_n to their available number. The
 * pointer is valid until the next call. The following bytes are copied in the background. Returns 0 or the
 * -errno of the copy. */
int bounce_peek(struct bounce *b, uint64_t at, const char **ret, size_t *ret_n, char *why, size_t why_len);
/* Copies bytes to the device's memory from byte `at` on, which is the end of the previous bytes. Returns 0 or
 * the -errno of the copy. */
int bounce_push(struct bounce *b, uint64_t at, const void *bytes, size_t n, char *why, size_t why_len);
/* Ends the transfer when all pushed bytes are copied. NULL is allowed. Returns 0 or the -errno of a copy. */
int bounce_close(struct bounce *b, char *why, size_t why_len);

#endif
