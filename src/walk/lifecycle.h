/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk that executes lifecycle rules: it deletes objects and aborts uploads that are due by the rules of
 * their bucket. Core 0 has the walk; all functions run on its thread.
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
	struct stats_core *stats; /* counters of walks, deletions and aborted uploads */
	/* true while a walk is in progress; read by other threads; owned by the caller */
	_Atomic bool *walks;
};

/* Makes a walk with the settings lifecycle.* and limits.upload_expire of conf. Returns 0 or -ENOMEM. */
int life_new(const struct life_env *env, const struct conf *conf, struct life **ret_life);
/* Applies the settings lifecycle.* and limits.upload_expire of another configuration, also to the current rest, and keeps no
 * reference to it. lf may be NULL in this function and the following ones. */
void life_set(struct life *lf, const struct conf *conf);
/* Begins a walk now. Returns 0; -EALREADY: a walk is in progress; -EBUSY: the walk is paused; -ENOSYS: lf is NULL. */
int life_begin(struct life *lf);
/* Pauses or resumes the walk at its current position. */
void life_pause(struct life *lf, bool on);
/* Returns the number of store operations in flight. */
int life_busy(const struct life *lf);
/* Frees a walk that has no operation in flight. */
void life_free(struct life *lf);

#endif
