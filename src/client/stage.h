/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage - the stage of a context: host memory that is pinned for the driver of a device, and is registered
 * once with the ports. The stage is divided into equal pieces, which calls of the program take for a while. A
 * call that has a piece never waits for another one, so calls cannot block each other. Any thread may call
 * these functions.
 */
#ifndef GANTRY_CLIENT_STAGE_H
#define GANTRY_CLIENT_STAGE_H

#include "client/client_int.h"

/* A run of adjacent pieces of the stage. */
struct stage_run {
	char *ptr;
	unsigned first, nr;
};

/* Makes the stage of a context; its memory is allocated at the first use. Returns 0; -EINVAL: bytes is out of
 * range; -ENOMEM. */
int stage_open(struct gantry *g, uint64_t bytes);
/* Frees the stage. No call may be running, and the memory of the stage was deregistered. */
void stage_close(struct gantry *g);
/* Returns true if the memory at ptr can be staged: the context has a stage, and a driver that can copy knows
 * the memory. */
bool stage_can(const struct gantry *g, const void *ptr);
/* Returns the size of a piece in bytes. */
size_t stage_piece(const struct gantry *g);
/* Returns the size of all pieces together in bytes. */
size_t stage_size(const struct gantry *g);
/*
 * Takes as many adjacent pieces as are needed for `bytes`. may_wait: true: waits in turn until these pieces
 * are free; false: does not wait, and takes the pieces only if no other call waits. Returns 0; or, with the
 * reason in why, -EAGAIN: the pieces are not free now; -ENOMEM or -ENOBUFS: waiting does not help.
 */
int stage_take(struct gantry *g, size_t bytes, bool may_wait, struct stage_run *ret, char *why,
	       size_t why_len);
void stage_give(struct gantry *g, const struct stage_run *run);
/* Removes pieces from the stage for good, because a device may still write to them. */
void stage_lose(struct gantry *g, const struct stage_run *run);
/* Takes an idle stream for copies between the stage and memory of a device at ptr, or makes one. Returns 0,
 * or -errno with the reason in why. */
int stage_stream(struct gantry *g, const void *ptr, struct gpu_stream **ret, char *why, size_t why_len);
/* Adds a stream that has no queued work to the idle streams. */
void stage_stream_give(struct gantry *g, struct gpu_stream *s);

/* ---- puts and gets through it: staged.c ---- */

/* Puts the object of call c by way of the stage. Returns 0; 1: HTTP must be used, with the reason in
 * c->res->reason; or the -errno with which call c fails. */
int staged_put(struct call *c);
/* Gets the object of call c by way of the stage. Returns 0; 1: HTTP must be used, with the reason in
 * c->res->reason; or the -errno with which call c fails. */
int staged_get(struct call *c);

/* ---- bodies of HTTP, and checksums, through it: bounce.c ---- */

struct bounce;
/* Begins to move size bytes between memory of a device at ptr and an HTTP body or a checksum. Returns 0, or
 * -errno with the reason in why. */
int bounce_open(struct gantry *g, const void *ptr, uint64_t size, struct bounce **ret_b, char *why,
		size_t why_len);
/* Makes bytes of the device's memory readable, from byte `at` on. *ret: the bytes, valid until the next call;
 * *ret_n: their number. The bytes after them are copied in the background. Returns 0 or the -errno of the
 * copy. */
int bounce_peek(struct bounce *b, uint64_t at, const char **ret, size_t *ret_n, char *why, size_t why_len);
/* Copies n bytes to the device's memory from byte `at` on, which is the end of the bytes of the previous
 * call. Returns 0 or the -errno of the copy. */
int bounce_push(struct bounce *b, uint64_t at, const void *bytes, size_t n, char *why, size_t why_len);
/* Waits until all pushed bytes are copied, and ends the transfer. NULL is allowed. Returns 0 or the -errno of
 * a copy. */
int bounce_close(struct bounce *b, char *why, size_t why_len);

#endif
