/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the walks over the store have in common: when one begins, which bucket is next, how fast it goes, and
 * how it is paused and ended.  A walker (scrub.c, lifecycle.c) embeds a struct walk and says in struct
 * walk_ops what it does in a bucket.  Everything on the thread of the port.
 *
 *   rest -> begun -> bucket -> steps of the walker ... -> bucket -> ... -> ended -> rest
 *
 * A step begins one thing and ends by saying what is next: walk_go(), walk_go_at(), walk_go_paced(),
 * walk_await(), walk_next_bucket() or walk_end().  At most one operation of the store is in flight.  Work whose amount a
 * tenant's settings decide is done by the piece, WALK_HOLD_NS each, and counted by walk_held().
 *
 * Nothing of a walk is kept over a restart: the next one begins anew, after its first rest.
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
	/* Says that a walk begins.  0, or -errno, which ends it. */
	int (*begun)(struct walk *w);
	/* Takes the first step in w->bucket.  The last one calls walk_next_bucket(). */
	walk_fn bucket;
	/* Says that it is over: why is NULL when it came to its end, else what ended it.  What the walker
	 * holds it gives back here. */
	void (*ended)(struct walk *w, const char *why);
	uint64_t bucket_units; /* what a bucket counts for */
};

struct walk {
	const struct walk_ops *ops;
	struct store_port *store;
	struct timers *timers;
	uint64_t interval_ns;  /* from the end of a walk to the next; 0: only those that are asked for */
	uint64_t first_max_ns; /* from walk_start() to the first, at most */
	uint64_t rate;         /* units a second, > 0; the walker knows of what */

	/* for the walker to look at */
	bool running, paused;
	char bucket[STORE_BUCKET_MAX + 1];
	uint16_t bucket_len; /* 0: none yet */

	/* the skeleton's own */
	struct timer timer;
	walk_fn step, then;
	uint64_t due_ns;  /* when the step is to be taken; UINT64_MAX: never */
	uint64_t pace_ns; /* when what was done so far should have been, by the rate */
	uint64_t rest_ns; /* since when it rests */
	uint64_t free_ns; /* no step before: the core is for others until then */
	bool first, busy, cancelled;
	struct store_list buckets;
	char last_bucket[STORE_BUCKET_MAX + 1];
};

/* ---- the walker's owner ---- */

/* Begins the first rest; everything up to rate is set, the rest zeroed. */
void walk_start(struct walk *w);
/* Takes another interval, for the rest that it is in or for the next. */
void walk_set_interval(struct walk *w, uint64_t interval_ns);
/* Begins nothing more, until it may again; a walk goes on where it was. */
void walk_pause(struct walk *w, bool on);
/* Begins a walk now.  0; -EALREADY: one is under way; -EBUSY: paused. */
int walk_begin(struct walk *w);
/* Ends the walk, when nothing of it is in flight any more.  0, or -EALREADY: there is none, or it ends
 * already. */
int walk_cancel(struct walk *w);
/* Ends for good; no operation may be in flight. */
void walk_fini(struct walk *w);

/* ---- steps ---- */

/* Takes that step next, when the loop turns. */
void walk_go(struct walk *w, walk_fn step);
/* Takes it at that time (clock_ns()). */
void walk_go_at(struct walk *w, uint64_t at_ns, walk_fn step);
/* Takes it when the rate allows for so many units more. */
void walk_go_paced(struct walk *w, uint64_t units, walk_fn step);
/* Says that the walker has kept the core busy for so long, in a step or in a callback of the store: the next step waits
 * until that was no more than one in WALK_PART of the time.  A walker sees to it that it is WALK_HOLD_NS at a time. */
void walk_held(struct walk *w, uint64_t ns);
#define WALK_PART 10
#define WALK_HOLD_NS (500 * NS_PER_US)
/* Waits for op, whose start returned r: then(w) runs when its result is there, now or from walk_done(). */
void walk_await(struct walk *w, struct store_op *op, int r, walk_fn then);
/* Says that the operation waited for is over: what done() of each calls. */
void walk_done(struct walk *w);
/* Goes on to the bucket behind w->bucket; where there is none the walk is at its end. */
void walk_next_bucket(struct walk *w);
/* Tells whether a key is this process's share: of several over one store each walks a part of every bucket. */
bool walk_has(const struct walk *w, const char *key, size_t len);
/* Ends the walk for that reason. */
void walk_end(struct walk *w, const char *why);

#endif
