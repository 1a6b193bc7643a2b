/* The walker that executes lifecycle rules (life.c).  Core 0's thread. */
#ifndef GANTRY_WALK_LIFECYCLE_H
#define GANTRY_WALK_LIFECYCLE_H

#include "req/machine.h"

struct life;

/* env is kept by the caller.  NULL on any core but the first, and where lifecycle.interval is 0.  0 or
 * -ENOMEM. */
int life_new(const struct req_env *env, struct life **ret_life);
/* Begins nothing more (or again); NULL is fine, here and below. */
void life_stop(struct life *lf, bool stop);
/* Operations of the store in flight. */
int life_busy(const struct life *lf);
void life_free(struct life *lf);

#endif
