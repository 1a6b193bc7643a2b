/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker that executes lifecycle rules: it deletes objects and ends uploads that the rules of their
 * bucket call due.  Core 0 has one; everything on its thread.
 */
#ifndef GANTRY_WALK_LIFECYCLE_H
#define GANTRY_WALK_LIFECYCLE_H

#include <stdatomic.h>
#include <stdbool.h>

struct conf;
struct life;
struct stats_core;
struct store_port;
struct timers;

struct life_env {
	struct store_port *store;
	struct timers *timers;
	struct stats_core *stats; /* where it counts walks, deletions and ends of uploads */
	_Atomic bool *walks; /* set while a walk is in progress, for readers on other threads; the caller's */
};

/* Makes one that walks as lifecycle.* and limits.upload_expire of conf say.  0 or -ENOMEM. */
int life_new(const struct life_env *env, const struct conf *conf, struct life **ret_life);
/* Takes those keys from another configuration, of which nothing is kept.  NULL is fine, here and below. */
void life_set(struct life *lf, const struct conf *conf);
/* Begins nothing more, until it may again; a walk goes on where it was. */
void life_pause(struct life *lf, bool on);
/* Returns how many operations of the store are in flight. */
int life_busy(const struct life *lf);
/* Frees it; no operation may be in flight. */
void life_free(struct life *lf);

#endif
