/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage of a context: host memory, pinned for the driver of a device and registered with the ports once,
 * in equal pieces that calls take for a while. Any thread; a call that has a piece never waits for another.
 */
#ifndef GANTRY_CLIENT_STAGE_H
#define GANTRY_CLIENT_STAGE_H

#include "client/client_int.h"

/* Adjacent pieces. */
struct stage_run {
	char *ptr;
	unsigned first, nr;
};

/* Makes the stage of a context, without its memory.  0; -EINVAL: bytes is out of range; -ENOMEM. */
int stage_open(struct gantry *g, uint64_t bytes);
/* Frees the stage; no call may be running, and its memory is deregistered. */
void stage_close(struct gantry *g);
/* Returns true if this memory can be staged: the context has a stage, and a driver that copies knows the
 * memory. */
bool stage_can(const struct gantry *g, const void *ptr);
/* Returns the bytes of a piece. */
size_t stage_piece(const struct gantry *g);
/* Returns the bytes of all pieces. */
size_t stage_size(const struct gantry *g);
/*
 * Takes the number of adjacent pieces that bytes need. Waits in turn until they are free; with may_wait false
 * it succeeds only if they are free and no call waits. 0; -EAGAIN: not now; -ENOMEM, -ENOBUFS: never; with
 * the reason.
 */
int stage_take(struct gantry *g, size_t bytes, bool may_wait, struct stage_run *ret, char *why,
	       size_t why_len);
void stage_give(struct gantry *g, const struct stage_run *run);
/* Abandons pieces to which a device may still write. */
void stage_lose(struct gantry *g, const struct stage_run *run);
/* Takes an idle stream for copies between the stage and memory of a device, or makes one. 0 or -errno and the
 * reason. */
int stage_stream(struct gantry *g, const void *ptr, struct gpu_stream **ret, char *why, size_t why_len);
/* Returns a stream without queued work. */
void stage_stream_give(struct gantry *g, struct gpu_stream *s);

/* ---- puts and gets through it: staged.c ---- */

/* Puts the object of call c. 0; 1: HTTP must be used, for the reason in c->res->reason; -errno. */
int staged_put(struct call *c);
/* Gets the object; results as staged_put(). */
int staged_get(struct call *c);

/* ---- bodies of HTTP, and checksums, through it: bounce.c ---- */

struct bounce;
/* Begins to move size bytes between memory of a device and the CPU. 0 or -errno and the reason. */
int bounce_open(struct gantry *g, const void *ptr, uint64_t size, struct bounce **ret_b, char *why,
		size_t why_len);
/* Returns a pointer to the bytes from byte `at` of the device's memory on, as many as are available; valid
 * until the next call. The following bytes are copied in the meantime. 0 or -errno. */
int bounce_peek(struct bounce *b, uint64_t at, const char **ret, size_t *ret_n, char *why, size_t why_len);
/* Takes bytes for the device's memory from byte `at` on, the end of the previous ones. 0 or -errno. */
int bounce_push(struct bounce *b, uint64_t at, const void *bytes, size_t n, char *why, size_t why_len);
/* Ends the transfer when all pushed bytes are copied. NULL is allowed. 0 or -errno. */
int bounce_close(struct bounce *b, char *why, size_t why_len);

#endif
