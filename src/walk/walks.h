/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walks - the walks of the daemon, which walk.def lists, and the parts of them that requests use. Core 0 has the walks,
 * every core has a struct walks, and the daemon has one struct walks_public, which all threads read.
 */
#ifndef GANTRY_WALK_WALKS_H
#define GANTRY_WALK_WALKS_H

#include "walk/walk.h"

struct expiry;
struct walks_public;

enum walk_id {
#define WALK(id, name, settles, has_call, args) WALK_##id,
#include "walk/walk.def"
	WALK_NR
};

#define WALK(id, name, settles, has_call, args) extern const struct walk_ops name##_walk;
#include "walk/walk.def"

/* ---- the thread of the core ---- */

struct walks {
	struct walks_public *pub;
	struct expiry *
		expiry; /* source of the dates for x-amz-expiration (walk/expiry.h); NULL: there is no store */
	struct ttl_queue
		*queue; /* objects that expire (walk/ttl.h), shared by all cores; NULL: none are noted */
	struct walk *walk[WALK_NR]; /* NULL: another core than 0, or there is no store */
};

/* Makes the walks of a core; ws is zeroed. env->queue is not used. has_walks false: only the parts for requests are made;
 * env->store NULL: nothing is made. Returns 0 or -ENOMEM; the caller calls walks_end() in both cases. */
int walks_start(struct walks *ws, struct walks_public *pub, const struct walk_env *env,
		const struct conf *conf, bool has_walks);
/* Frees the walks of a core, which have no operation in flight, after its requests. */
void walks_end(struct walks *ws);
/* Applies the settings of another configuration. */
void walks_set_conf(struct walks *ws, const struct conf *conf);
/* Pauses or resumes all walks at their current positions. */
void walks_pause(struct walks *ws, bool on);
/* Returns the number of store operations in flight. */
int walks_busy(const struct walks *ws);
/* Begins a walk now (on: true), or ends the walk in progress. Returns the results of walk_begin() and walk_cancel();
 * -ENOSYS: the core does not have the walk. */
int walks_call(struct walks *ws, enum walk_id id, bool on);

/* ---- any thread ---- */

/* Makes the public state. has_all: no object has an expiry yet. Returns 0 or -ENOMEM. */
int walks_public_new(bool has_all, struct walks_public **ret_pub);
/* Frees the public state after all cores have ended. NULL is allowed. */
void walks_public_free(struct walks_public *pub);
/* Returns the public state of a walk. */
struct walk_public *walks_get(const struct walks_public *pub, enum walk_id id);
/* Returns the name of a walk in progress for whose end POST /control/settle waits; NULL: there is none. */
const char *walks_unsettled(const struct walks_public *pub);
/* Writes the state of a walk as a JSON object. pub NULL: there are no cores; store NULL: there is no store. */
void walks_show(const struct walks_public *pub, enum walk_id id, struct store *store, FILE *out);
/* Emits the metrics of all walks. */
void walks_metrics(const struct walks_public *pub, struct stats_out *out);

#endif
