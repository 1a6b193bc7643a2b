/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes on their way between memory of a device and the CPU, through one or two pieces of the stage: while one is read or
 * filled, the driver copies the other.
 */
#include "client/stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A piece and the stream that copies it. */
struct lane {
	struct stage_run run;
	struct gpu_stream *stream;
	uint64_t at; /* of the device's memory, what is in it */
	size_t n;
	bool is_taken;
	bool is_busy; /* a copy is queued */
};

struct bounce {
	struct gantry *g;
	char *ptr;
	uint64_t size;
	struct lane lane[2];
	int now;      /* the lane that the caller reads or fills */
	bool is_push; /* what that lane has is for the device */
};

/* Has a lane.  0; -EAGAIN: no second piece is free now; another -errno. */
static int
have(struct bounce *b, struct lane *l, bool may_wait, char *why, size_t why_len)
{
	size_t piece = stage_piece(b->g);
	int e = 0;

	if (!l->is_taken)
		e = stage_take(b->g, b->size < piece ? (size_t)b->size : piece, may_wait, &l->run, why,
			       why_len);
	if (e < 0)
		return e;
	l->is_taken = true;
	return l->stream ? 0 : stage_stream(b->g, b->ptr, &l->stream, why, why_len);
}

static int
settle(struct lane *l, char *why, size_t why_len)
{
	int e = l->is_busy ? gpu_copy_wait(l->stream, why, why_len) : 0;

	l->is_busy = false;
	if (e < 0)
		l->n = 0;
	return e;
}

int
bounce_open(struct gantry *g, const void *ptr, uint64_t size, struct bounce **ret_b, char *why,
	    size_t why_len)
{
	struct bounce *b = calloc(1, sizeof *b);
	int e;

	if (!b)
		return -ENOMEM;
	*b = (struct bounce){ .g = g, .ptr = (char *)(uintptr_t)ptr, .size = size };
	e = have(b, &b->lane[0], true, why, why_len);
	if (e < 0) {
		bounce_close(b, why, 0);
		return e;
	}
	*ret_b = b;
	return 0;
}

/* ---- from the device ---- */

/* Queues the copy of what begins at `at`. */
static int
fetch(struct bounce *b, struct lane *l, uint64_t at, char *why, size_t why_len)
{
	size_t piece = stage_piece(b->g), n = b->size - at < piece ? (size_t)(b->size - at) : piece;
	int e = gpu_copy_start(l->stream, l->run.ptr, b->ptr + at, n, GANTRY_TO_HOST, why, why_len);

	l->is_busy = e == 0;
	l->at = at;
	l->n = e == 0 ? n : 0;
	return e;
}

static bool
holds(const struct lane *l, uint64_t at)
{
	return l->is_taken && at >= l->at && at - l->at < l->n;
}

/* Has the bytes that will be asked for next copied meanwhile, where a piece is free. */
static int
fetch_ahead(struct bounce *b, char *why, size_t why_len)
{
	const struct lane *l = &b->lane[b->now];
	struct lane *other = &b->lane[!b->now];
	uint64_t next = l->at + l->n;
	int e;

	if (next >= b->size || holds(other, next))
		return 0;
	e = have(b, other, false, why, why_len);
	if (e == -EAGAIN || e == -ENOBUFS)
		return 0;
	if (e == 0)
		e = settle(other, why, why_len);
	return e == 0 ? fetch(b, other, next, why, why_len) : e;
}

int
bounce_peek(struct bounce *b, uint64_t at, const char **ret, size_t *ret_n, char *why, size_t why_len)
{
	struct lane *l = &b->lane[b->now];
	int e = 0;

	if (!holds(l, at) && holds(&b->lane[!b->now], at)) {
		b->now = !b->now;
		l = &b->lane[b->now];
	} else if (!holds(l, at)) {
		e = settle(l, why, why_len);
		e = e == 0 ? fetch(b, l, at, why, why_len) : e;
	}
	if (e == 0)
		e = settle(l, why, why_len);
	if (e == 0)
		e = fetch_ahead(b, why, why_len);
	if (e < 0)
		return e;
	*ret = l->run.ptr + (at - l->at);
	*ret_n = l->n - (size_t)(at - l->at);
	return 0;
}

/* ---- to the device ---- */

/* Queues the copy of what a lane has. */
static int
flush(struct bounce *b, struct lane *l, char *why, size_t why_len)
{
	int e;

	if (!l->n)
		return 0;
	e = gpu_copy_start(l->stream, b->ptr + l->at, l->run.ptr, l->n, GANTRY_TO_DEVICE, why, why_len);
	l->is_busy = e == 0;
	return e;
}

/* Goes to a lane that is empty: the other one, where there is a piece for it, when its copy has ended. */
static int
turn(struct bounce *b, char *why, size_t why_len)
{
	struct lane *other = &b->lane[!b->now];
	int e = have(b, other, false, why, why_len);

	if (e == 0)
		b->now = !b->now;
	else if (e != -EAGAIN && e != -ENOBUFS)
		return e;
	e = settle(&b->lane[b->now], why, why_len);
	b->lane[b->now].n = 0;
	return e;
}

int
bounce_push(struct bounce *b, uint64_t at, const void *bytes, size_t n, char *why, size_t why_len)
{
	const char *from = bytes;
	size_t piece = stage_piece(b->g);

	b->is_push = true;
	while (n > 0) {
		struct lane *l = &b->lane[b->now];
		size_t take = piece - l->n < n ? piece - l->n : n;

		if (!l->n)
			l->at = at;
		memcpy(l->run.ptr + l->n, from, take);
		l->n += take;
		from += take;
		at += take;
		n -= take;
		if (l->n == piece) {
			int e = flush(b, l, why, why_len);

			if (e == 0)
				e = turn(b, why, why_len);
			if (e < 0)
				return e;
		}
	}
	return 0;
}

int
bounce_close(struct bounce *b, char *why, size_t why_len)
{
	int e = b && b->is_push ? flush(b, &b->lane[b->now], why, why_len) : 0;

	for (int i = 0; b && i < 2; i++) {
		struct lane *l = &b->lane[i];
		int r = settle(l, why, why_len);

		e = r < 0 ? r : e;
		stage_stream_give(b->g, l->stream);
		if (l->is_taken)
			stage_give(b->g, &l->run);
	}
	free(b);
	return e;
}
