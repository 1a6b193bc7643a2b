/* SPDX-License-Identifier: Apache-2.0 */
/* The walks of the daemon, see walks.h. */
#include "walk/walks.h"

#include "walk/expiry.h"
#include "walk/ttl.h"

#include <errno.h>
#include <stdlib.h>

static const struct walk_ops *const all[WALK_NR] = {
#define WALK(id, name, settles, has_call, args) &name##_walk,
#include "walk/walk.def"
};

static const char *const names[WALK_NR] = {
#define WALK(id, name, settles, has_call, args) #name,
#include "walk/walk.def"
};

static const bool settle[WALK_NR] = {
#define WALK(id, name, settles, has_call, args) settles,
#include "walk/walk.def"
};

struct walks_public {
	struct ttl_queue *queue;
	struct walk_public *of[WALK_NR];
};

/* ---- the thread of the core ---- */

int
walks_start(struct walks *ws, struct walks_public *pub, const struct walk_env *env, const struct conf *conf,
	    bool has_walks)
{
	struct walk_env with_queue = *env;
	int r;

	ws->pub = pub;
	ws->queue = with_queue.queue = pub->queue;
	r = env->store ? expiry_new(env->store, &ws->expiry) : 0;
	for (int i = 0; r == 0 && env->store && has_walks && i < WALK_NR; i++)
		r = walk_new(all[i], &with_queue, conf, pub->of[i], &ws->walk[i]);
	return r;
}

void
walks_end(struct walks *ws)
{
	for (int i = 0; i < WALK_NR; i++)
		walk_free(ws->walk[i]);
	expiry_free(ws->expiry);
	*ws = (struct walks){ 0 };
}

void
walks_set_conf(struct walks *ws, const struct conf *conf)
{
	for (int i = 0; i < WALK_NR; i++) {
		if (ws->walk[i])
			walk_set_conf(ws->walk[i], conf);
	}
}

void
walks_pause(struct walks *ws, bool on)
{
	for (int i = 0; i < WALK_NR; i++) {
		if (ws->walk[i])
			walk_pause(ws->walk[i], on);
	}
}

int
walks_busy(const struct walks *ws)
{
	int busy = 0;

	for (int i = 0; i < WALK_NR; i++)
		busy += ws->walk[i] ? walk_busy(ws->walk[i]) : 0;
	return busy;
}

int
walks_call(struct walks *ws, enum walk_id id, bool on)
{
	struct walk *w = ws->walk[id];

	return !w ? -ENOSYS : on ? walk_begin(w) : walk_cancel(w);
}

/* ---- any thread ---- */

int
walks_public_new(bool has_all, struct walks_public **ret_pub)
{
	struct walks_public *pub = calloc(1, sizeof *pub);
	int r = pub ? ttl_queue_new(TTL_QUEUE_MAX, TTL_QUEUE_BYTES, has_all, &pub->queue) : -ENOMEM;

	for (int i = 0; r == 0 && i < WALK_NR; i++) {
		pub->of[i] = calloc(1, all[i]->public_bytes ? all[i]->public_bytes : sizeof *pub->of[i]);
		r = pub->of[i] ? 0 : -ENOMEM;
	}
	if (r == 0)
		*ret_pub = pub;
	else
		walks_public_free(pub);
	return r;
}

void
walks_public_free(struct walks_public *pub)
{
	for (int i = 0; pub && i < WALK_NR; i++)
		free(pub->of[i]);
	if (pub)
		ttl_queue_free(pub->queue);
	free(pub);
}

struct walk_public *
walks_get(const struct walks_public *pub, enum walk_id id)
{
	return pub->of[id];
}

const char *
walks_unsettled(const struct walks_public *pub)
{
	for (int i = 0; i < WALK_NR; i++) {
		if (settle[i] && atomic_load(&pub->of[i]->state) != WALK_IDLE)
			return names[i];
	}
	return NULL;
}

void
walks_show(const struct walks_public *pub, enum walk_id id, struct store *store, FILE *out)
{
	const struct walk_public *of = pub ? pub->of[id] : NULL;

	if (all[id]->show)
		all[id]->show(of, store, out);
	else
		fprintf(out, "{\"state\":\"%s\"}", walk_state_text(of));
}

void
walks_metrics(const struct walks_public *pub, struct stats_out *out)
{
	for (int i = 0; i < WALK_NR; i++) {
		if (all[i]->metrics)
			all[i]->metrics(pub->of[i], out);
	}
}
