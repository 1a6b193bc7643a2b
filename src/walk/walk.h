/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the walks over the store: the start of a walk, the next bucket, the pace, and pause and
 * end. A walker (scrub.c, lifecycle.c) embeds a struct walk and defines in struct walk_ops its work in a
 * bucket. All functions run on the thread of the port.
 *
 *   rest -> begun -> bucket -> steps of the walker ... -> bucket -> ... -> ended -> rest
 *
 * A step begins one operation and ends with the choice of the next step: walk_go(), walk_go_at(),
 * walk_go_paced(), walk_await(), walk_next_bucket() or walk_end(). At most one operation of the store is in
 * flight. Work whose amount a tenant's settings decide is done in pieces of WALK_HOLD_NS, and counted
 * by walk_held().
 *
 * A restart of the daemon loses the position of a walk: the next walk begins with the first bucket, after its
 * first rest.
 */
#ifndef GANTRY_WALK_WALK_H
#define GANTRY_WALK_WALK_H

#include "base/clock.h"
#include "base/timer.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct walk;
typedef void (*walk_fn)(struct walk *w);

struct walk_ops {
	/* Begins a walk. Returns 0, or -errno, which ends the walk. */
	int (*begun)(struct walk *w);
	/* Takes the first step in w->bucket. The last step calls walk_next_bucket(). */
	walk_fn bucket;
	/* Ends a walk: releases the resources of the walker. why: reason for the end; NULL: the walk is
	 * complete. */
	void (*ended)(struct walk *w, const char *why);
	uint64_t bucket_units; /* cost of a bucket, in units of the rate */
};

struct walk {
	const struct walk_ops *ops;
	struct store_port *store;
	struct timers *timers;
	uint64_t interval_ns;  /* time in ns from the end of a walk to the next; 0: walks only on request */
	uint64_t first_max_ns; /* longest time in ns from walk_start() to the first walk */
	uint64_t rate;         /* units a second, > 0; the walker defines the unit */

	/* running: true: a walk is in progress; paused: true: the walk is paused. For the walker to read. */
	bool running, paused;
	char bucket[STORE_BUCKET_MAX + 1];
	uint16_t bucket_len; /* length of bucket; 0: there is no bucket yet */

	/* private to walk.c */
	struct timer timer;
	walk_fn step, then;
	uint64_t due_ns;  /* time by clock_ns() of the next step; UINT64_MAX: never */
	uint64_t pace_ns; /* time by clock_ns() at which the work done so far is due, according to the rate */
	uint64_t rest_ns; /* time by clock_ns() at which the current rest began */
	/* earliest time by clock_ns() of the next step; until then the core is free for other work */
	uint64_t free_ns;
	bool first, busy, cancelled;
	struct store_list buckets;
	char last_bucket[STORE_BUCKET_MAX + 1];
};

/* ---- the walker's owner ---- */

/* Begins the first rest. The caller has set all members up to `rate`, and has zeroed the others. */
void walk_start(struct walk *w);
/* Sets another interval, for the current rest and later ones. */
void walk_set_interval(struct walk *w, uint64_t interval_ns);
/* Pauses (on: true) or resumes the walk at its current position. */
void walk_pause(struct walk *w, bool on);
/* Begins a walk now. Returns 0; -EALREADY: a walk is in progress; -EBUSY: the walk is paused. */
int walk_begin(struct walk *w);
/* Cancels the walk in progress: it ends as soon as it has no operation in flight. Returns 0, or -EALREADY if
 * no walk is in progress, or if the walk was cancelled already. */
int walk_cancel(struct walk *w);
/* Stops the timer of the walk, before its memory is freed. No operation may be in flight. */
void walk_fini(struct walk *w);

/* ---- steps ---- */

/* Runs `step` in the next turn of the loop. */
void walk_go(struct walk *w, walk_fn step);
/* Runs `step` at the time at_ns of clock_ns(). */
void walk_go_at(struct walk *w, uint64_t at_ns, walk_fn step);
/* Runs `step` as soon as the rate allows `units` further units. */
void walk_go_paced(struct walk *w, uint64_t units, walk_fn step);
/* Notes that the walker has kept the core busy for ns, in a step or in a callback of the store. The next step
 * is delayed, so that the walker has at most 1/WALK_PART of the time. A walker works for about WALK_HOLD_NS
 * before it calls this function. */
void walk_held(struct walk *w, uint64_t ns);
#define WALK_PART 10
#define WALK_HOLD_NS (500 * NS_PER_US)
/* Waits for op, whose start returned r: runs then(w) when the result of op is available, immediately or from
 * walk_done(). */
void walk_await(struct walk *w, struct store_op *op, int r, walk_fn then);
/* Notes the end of the operation for which walk_await() waits; called by done() of every operation. */
void walk_done(struct walk *w);
/* Continues with the bucket after w->bucket; ends the walk after the last bucket. */
void walk_next_bucket(struct walk *w);
/* Returns true if a key belongs to the share of this process. If several processes use one store, each of
 * them walks a part of every bucket. */
bool walk_has(const struct walk *w, const char *key, size_t len);
/* Ends the walk. why: reason, for ended() of the walker; NULL: the walk is complete. */
void walk_end(struct walk *w, const char *why);

#endif
