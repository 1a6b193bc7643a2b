/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage: which pieces are free, who waits for some, and the streams that copy.  Calls that wait are served in the order in
 * which they came, so that one that wants many pieces is not passed by for ever by those that want one.
 */
#include "client/stage.h"

#include "client/region.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PIECES_MAX 64u
#define PIECE_UNIT ((size_t)64 << 10)
#define PIECE_MOST ((size_t)16 << 20)
#define STAGE_LEAST ((uint64_t)256 << 10)
#define STAGE_DEFAULT ((uint64_t)64 << 20)

struct stage {
	size_t piece;
	unsigned nr;
	/* All below: lock. */
	pthread_mutex_t lock;
	pthread_cond_t freed;
	char *base; /* NULL: not yet made */
	bool is_taken[PIECES_MAX], is_lost[PIECES_MAX];
	uint64_t tickets, served; /* of those that wait */
	struct gpu_stream *idle;
	const struct gpu_driver *pinned_by; /* NULL: not pinned */
	int pinned_for;
	bool is_pin_tried;
};

int
stage_open(struct gantry *g, uint64_t bytes)
{
	struct stage *st;
	size_t piece;

	bytes = bytes ? bytes : STAGE_DEFAULT;
	if (bytes < STAGE_LEAST || bytes > GANTRY_REGISTER_MAX)
		return -EINVAL;
	piece = bytes / 4 < PIECE_MOST ? (size_t)bytes / 4 : PIECE_MOST;
	if (piece * PIECES_MAX < bytes)
		piece = (size_t)bytes / PIECES_MAX;
	piece &= ~(PIECE_UNIT - 1);
	st = calloc(1, sizeof *st);
	if (!st)
		return -ENOMEM;
	st->piece = piece;
	st->nr = (unsigned)(bytes / piece < PIECES_MAX ? bytes / piece : PIECES_MAX);
	pthread_mutex_init(&st->lock, NULL);
	pthread_cond_init(&st->freed, NULL);
	g->stage = st;
	return 0;
}

void
stage_close(struct gantry *g)
{
	struct stage *st = g->stage;

	if (!st)
		return;
	while (st->idle) {
		struct gpu_stream *s = st->idle;

		st->idle = s->next;
		gpu_stream_free(s);
	}
	if (st->pinned_by)
		gpu_unpin(st->pinned_by, st->pinned_for, st->base);
	if (st->base)
		munmap(st->base, stage_size(g));
	pthread_mutex_destroy(&st->lock);
	pthread_cond_destroy(&st->freed);
	free(st);
	g->stage = NULL;
}

bool
stage_can(const struct gantry *g, const void *ptr)
{
	struct gpu_range range;
	const struct gpu_driver *d = g->stage && is_mine(g) ? gpu_look(ptr, &range) : NULL;

	return d && d->can_stage();
}

size_t
stage_piece(const struct gantry *g)
{
	return g->stage->piece;
}

size_t
stage_size(const struct gantry *g)
{
	return g->stage->piece * g->stage->nr;
}

/* ---- pieces ---- */

/* Registers the memory with the ports, for good; without them it serves HTTP. */
static void
register_stage(struct gantry *g, struct stage *st)
{
	const struct wanted w = { .ptr = st->base, .size = stage_size(g), .fd = -1 };
	struct region *r;
	int e = g->port_nr ? region_new(g, &w, &r) : -ENODEV;

	if (e < 0)
		return;
	region_put(r);
	map_wrlock(g);
	e = map_add(&g->map, r);
	g->own_regions += e == 0;
	map_wrunlock(g);
	if (e < 0 && region_free(g, r) < 0)
		region_keep(g, r);
}

/* Makes the memory.  Locked: nobody has a piece yet. */
static int
make_memory(struct gantry *g, struct stage *st)
{
	size_t size = stage_size(g);
	char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return -ENOMEM;
	madvise(base, size, MADV_HUGEPAGE);
	/* Pages of a NIC's and a device's must not move when the program forks. */
	madvise(base, size, MADV_DONTFORK);
	st->base = base;
	register_stage(g, st);
	return 0;
}

/* The first of nr pieces side by side that are free (or, with ever, not lost); PIECES_MAX: there are none.  Locked. */
static unsigned
find(const struct stage *st, unsigned nr, bool ever)
{
	unsigned have = 0;

	for (unsigned i = 0; i < st->nr; i++) {
		have = st->is_lost[i] || (!ever && st->is_taken[i]) ? 0 : have + 1;
		if (have == nr)
			return i + 1 - nr;
	}
	return PIECES_MAX;
}

/* Waits in turn.  Locked. */
static unsigned
wait_for(struct stage *st, unsigned nr)
{
	uint64_t ticket = st->tickets++;
	unsigned first;

	while (ticket != st->served ||
	       (find(st, nr, true) != PIECES_MAX && find(st, nr, false) == PIECES_MAX))
		pthread_cond_wait(&st->freed, &st->lock);
	first = find(st, nr, false);
	st->served++;
	pthread_cond_broadcast(&st->freed);
	return first;
}

int
stage_take(struct gantry *g, size_t bytes, bool may_wait, struct stage_run *ret, char *why, size_t why_len)
{
	struct stage *st = g->stage;
	unsigned nr = (unsigned)((bytes + st->piece - 1) / st->piece), first = PIECES_MAX;
	int e = 0;

	pthread_mutex_lock(&st->lock);
	if (!st->base)
		e = make_memory(g, st);
	if (e == 0 && find(st, nr, true) == PIECES_MAX)
		e = -ENOBUFS;
	if (e == 0)
		first = may_wait                    ? wait_for(st, nr)
			: st->tickets == st->served ? find(st, nr, false)
						    : PIECES_MAX;
	if (e == 0 && first == PIECES_MAX)
		e = may_wait ? -ENOBUFS : -EAGAIN;
	for (unsigned i = 0; e == 0 && i < nr; i++)
		st->is_taken[first + i] = true;
	pthread_mutex_unlock(&st->lock);
	if (e < 0) {
		snprintf(why, why_len, "the stage has no %zu bytes: %s", bytes, error_text(-e));
		return e;
	}
	*ret = (struct stage_run){ .ptr = st->base + first * st->piece, .first = first, .nr = nr };
	return 0;
}

static void
end_run(struct stage *st, const struct stage_run *run, bool is_lost)
{
	pthread_mutex_lock(&st->lock);
	for (unsigned i = 0; i < run->nr; i++) {
		st->is_taken[run->first + i] = false;
		st->is_lost[run->first + i] |= is_lost;
	}
	pthread_cond_broadcast(&st->freed);
	pthread_mutex_unlock(&st->lock);
}

void
stage_give(struct gantry *g, const struct stage_run *run)
{
	end_run(g->stage, run, false);
}

void
stage_lose(struct gantry *g, const struct stage_run *run)
{
	end_run(g->stage, run, true);
}

/* ---- streams ---- */

/* An idle one of the same place.  Locked. */
static struct gpu_stream *
take_idle(struct stage *st, const struct gpu_driver *d, const struct gpu_range *range)
{
	for (struct gpu_stream **at = &st->idle; *at; at = &(*at)->next) {
		struct gpu_stream *s = *at;

		if (s->driver == d && s->ordinal == range->ordinal && s->home == range->ctx) {
			*at = s->next;
			s->is_used = false;
			return s;
		}
	}
	return NULL;
}

/* Pins the stage for the driver that copies, once.  Locked: it takes long, and everybody wants it. */
static void
pin_once(struct gantry *g, struct stage *st, struct gpu_stream *s)
{
	if (!st->base || st->is_pin_tried || s->ctx)
		return;
	st->is_pin_tried = true;
	if (gpu_pin(s, st->base, stage_size(g))) {
		st->pinned_by = s->driver;
		st->pinned_for = s->ordinal;
	}
}

int
stage_stream(struct gantry *g, const void *ptr, struct gpu_stream **ret, char *why, size_t why_len)
{
	struct stage *st = g->stage;
	struct gpu_range range;
	const struct gpu_driver *d = gpu_look(ptr, &range);
	int e = 0;

	if (!d) {
		explain_unmapped(ptr, 1, why, why_len);
		return -EFAULT;
	}
	pthread_mutex_lock(&st->lock);
	*ret = take_idle(st, d, &range);
	if (!st->base)
		make_memory(g, st);
	pthread_mutex_unlock(&st->lock);
	if (!*ret)
		e = gpu_stream_new(d, &range, ret, why, why_len);
	if (e < 0)
		return e;
	pthread_mutex_lock(&st->lock);
	pin_once(g, st, *ret);
	pthread_mutex_unlock(&st->lock);
	return 0;
}

void
stage_stream_give(struct gantry *g, struct gpu_stream *s)
{
	struct stage *st = g->stage;

	if (!s)
		return;
	/* One in a context of the program's own may not outlive the call. */
	if (s->has_failed || s->ctx) {
		gpu_stream_free(s);
		return;
	}
	pthread_mutex_lock(&st->lock);
	s->next = st->idle;
	st->idle = s;
	pthread_mutex_unlock(&st->lock);
}
