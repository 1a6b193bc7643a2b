/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the walks over the store: the start of a walk, the next bucket, the pace, and pause and
 * end. A walker (scrub.c, lifecycle.c, ttl.c) has a struct walk as its first member and defines in struct walk_ops
 * its work in a bucket; its row of walk.def makes it a walk of the daemon. All functions run on the thread of the
 * port, except those on struct walk_public.
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

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct bufpool;
struct conf;
struct stats_core;
struct stats_out;
struct ttl_queue;
struct walk;
typedef void (*walk_fn)(struct walk *w);

enum walk_state { WALK_IDLE, WALK_RUNNING, WALK_PAUSED };

/* The state of a walk that other threads read; a walker with more to show has a struct of its own with this one as
 * its first member. Written by the walk alone. */
struct walk_public {
	_Atomic int state;
};

struct walk_ops {
	size_t bytes;        /* size of the walker */
	size_t public_bytes; /* size of its public state; 0: struct walk_public */
	/* Applies the settings of a configuration, and keeps no reference to it: sets w->interval_ns and w->rate, and at
	 * the first call w->first_max_ns. */
	void (*set_conf)(struct walk *w, const struct conf *conf);
	/* Begins a walk. Returns 0, or -errno, which ends the walk. */
	int (*begun)(struct walk *w);
	/* Takes the first step in w->bucket. The last step calls walk_next_bucket(). */
	walk_fn bucket;
	/* Ends a walk: releases the resources of the walker. why: reason for the end; NULL: the walk is
	 * complete. */
	void (*ended)(struct walk *w, const char *why);
	uint64_t bucket_units; /* cost of a bucket, in units of the rate */

	/* The following functions may be NULL. */

	walk_fn made; /* prepares what the walker has in addition to its walk, before the first rest */
	walk_fn fini; /* ends what made() has begun, and releases the resources of the walker */
	/* Emits the metrics of the walk. Any thread. */
	void (*metrics)(const struct walk_public *pub, struct stats_out *out);
	/* Writes the state as a JSON object; NULL: the object has the state alone. pub NULL: the daemon has no walks
	 * now; store NULL: it has no store. Any thread. */
	void (*show)(const struct walk_public *pub, struct store *store, FILE *out);
};

/* The parts of a core that its walks use. */
struct walk_env {
	struct store_port *store;
	struct bufpool *bufs; /* pool of small buffers, which are taken only while most of them are free */
	struct timers *timers;
	struct stats_core *stats;
	struct ttl_queue *queue; /* objects that expire */
};

struct walk {
	const struct walk_ops *ops;
	struct walk_env env;
	struct walk_public *pub;
	uint64_t interval_ns;  /* time in ns from the end of a walk to the next; 0: walks only on request */
	uint64_t first_max_ns; /* longest time in ns from walk_new() to the first walk */
	uint64_t rate;         /* units a second, > 0; the walker defines the unit */

	int other_nr; /* number of store operations in flight apart from that of the walk; counted by the walker */
	/* running: true: a walk is in progress; paused: true: the walk is paused. For the walker to read. */
	bool running, paused;
	uint32_t left_out; /* number of damaged buckets that this walk has left out */
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

/* Makes a walker, whose first rest begins. pub: zeroed, and kept by the caller until walk_free(). Returns 0 or
 * -ENOMEM. */
int walk_new(const struct walk_ops *ops, const struct walk_env *env, const struct conf *conf,
	     struct walk_public *pub, struct walk **ret_walk);
/* Frees a walker that has no operation in flight. NULL is allowed. */
void walk_free(struct walk *w);
/* Applies the settings of another configuration, also to the current rest. */
void walk_set_conf(struct walk *w, const struct conf *conf);
/* Pauses (on: true) or resumes the walk at its current position. */
void walk_pause(struct walk *w, bool on);
/* Begins a walk now. Returns 0; -EALREADY: a walk is in progress; -EBUSY: the walk is paused. */
int walk_begin(struct walk *w);
/* Cancels the walk in progress: it ends as soon as it has no operation in flight. Returns 0, or -EALREADY if
 * no walk is in progress, or if the walk was cancelled already. */
int walk_cancel(struct walk *w);
/* Returns the number of store operations in flight. */
int walk_busy(const struct walk *w);
/* Makes the state of the walk visible to other threads. Called by walk.c; also by ended(), before it changes what
 * other threads take for the end of a walk. */
void walk_publish(struct walk *w);
/* Returns the text of a state; NULL: idle. Any thread. */
const char *walk_state_text(const struct walk_public *pub);

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
/* Returns true if the walker has to leave the bucket, because an operation had the error r: the bucket was removed,
 * or is damaged. Otherwise ends the walk. */
bool walk_leaves_bucket(struct walk *w, int r);
/* Returns true if a key belongs to the share of this process. If several processes use one store, each of
 * them walks a part of every bucket. */
bool walk_has(const struct walk *w, const char *key, size_t len);
/* Ends the walk. why: reason, for ended() of the walker; NULL: the walk is complete. */
void walk_end(struct walk *w, const char *why);

#endif
