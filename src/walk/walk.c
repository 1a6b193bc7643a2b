/* SPDX-License-Identifier: Apache-2.0 */
/* The skeleton of a walk: see walk.h. */
#include "walk/walk.h"

#include "base/check.h"
#include "base/list.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LATE_NS (100 * NS_PER_MS)     /* so much of its time it may make up for */
#define HELD_MAX_NS (100 * NS_PER_MS) /* what counts of a piece of work */

static void step_begin(struct walk *w);
static void step_bucket(struct walk *w);

/* ---- going on ---- */

static void
on_timer(struct timer *t)
{
	struct walk *w = container_of(t, struct walk, timer);

	check(!w->busy && !w->paused);
	w->step(w);
}

static void
arm(struct walk *w)
{
	if (w->paused || w->due_ns == UINT64_MAX)
		timer_disarm(w->env.timers, &w->timer);
	else
		timer_arm(w->env.timers, &w->timer, w->due_ns, on_timer);
}

void
walk_go_at(struct walk *w, uint64_t at_ns, walk_fn step)
{
	check(!w->busy);
	if (w->running && w->cancelled) {
		walk_end(w, "on request");
		return;
	}
	w->step = step;
	w->due_ns = at_ns > w->free_ns ? at_ns : w->free_ns;
	arm(w);
}

void
walk_go(struct walk *w, walk_fn step)
{
	walk_go_at(w, 0, step);
}

void
walk_go_paced(struct walk *w, uint64_t units, walk_fn step)
{
	uint64_t now = clock_ns();

	if (w->pace_ns + LATE_NS < now)
		w->pace_ns = now - LATE_NS;
	w->pace_ns += units * NS_PER_S / w->rate;
	walk_go_at(w, w->pace_ns, step);
}

void
walk_held(struct walk *w, uint64_t ns)
{
	uint64_t now = clock_ns();

	/* A process that was stopped meanwhile did not work. */
	if (ns > HELD_MAX_NS)
		ns = HELD_MAX_NS;
	w->free_ns = (w->free_ns > now ? w->free_ns : now) + ns * (WALK_PART - 1);
}

void
walk_await(struct walk *w, struct store_op *op, int r, walk_fn then)
{
	check(!w->busy);
	if (r == 0) {
		w->busy = true;
		w->then = then;
		return;
	}
	if (r < 0)
		op->result = r;
	then(w);
}

void
walk_done(struct walk *w)
{
	check(w->busy);
	w->busy = false;
	w->then(w);
}

/* ---- from walk to walk ---- */

static void
rest(struct walk *w)
{
	uint64_t ns = w->interval_ns;

	if (w->first && ns > w->first_max_ns)
		ns = w->first_max_ns;
	walk_go_at(w, ns ? w->rest_ns + ns : UINT64_MAX, step_begin);
}

void
walk_end(struct walk *w, const char *why)
{
	check(w->running && !w->busy);
	w->running = w->cancelled = false;
	w->rest_ns = clock_ns();
	w->ops->ended(w, why);
	walk_publish(w);
	rest(w);
}

static void
step_begin(struct walk *w)
{
	int r;

	w->first = false;
	w->running = true;
	w->bucket[0] = 0;
	w->bucket_len = 0;
	w->left_out = 0;
	w->pace_ns = clock_ns();
	walk_publish(w);
	r = w->ops->begun(w);
	if (r < 0)
		walk_end(w, strerror(-r));
	else
		walk_go(w, step_bucket);
}

/* ---- from bucket to bucket ---- */

static bool
on_bucket(struct store_list *ls, const struct store_entry *e)
{
	struct walk *w = container_of(ls, struct walk, buckets);

	check(e->name_len <= STORE_BUCKET_MAX);
	memcpy(w->bucket, e->name, e->name_len);
	w->bucket[e->name_len] = 0;
	w->bucket_len = (uint16_t)e->name_len;
	return true;
}

static void step_bucket(struct walk *w);

static void
bucket_found(struct walk *w)
{
	int r = w->buckets.op.result;

	if (r < 0)
		walk_end(w, strerror(-r));
	else if (r == 0)
		walk_end(w, NULL);
	else
		walk_go_paced(w, w->ops->bucket_units, w->ops->bucket);
}

static void
on_buckets(struct store_op *op)
{
	walk_done(container_of(op, struct walk, buckets.op));
}

/* The bucket after the one that was walked, or the first. */
static void
step_bucket(struct walk *w)
{
	struct store_list *ls = &w->buckets;

	memset(ls, 0, sizeof *ls);
	if (w->bucket_len) {
		memcpy(w->last_bucket, w->bucket, sizeof w->last_bucket);
		ls->after = w->last_bucket;
		ls->after_len = w->bucket_len;
	}
	ls->max = 1;
	ls->entry = on_bucket;
	ls->op.done = on_buckets;
	walk_await(w, &ls->op, store_list(w->env.store, ls), bucket_found);
}

void
walk_next_bucket(struct walk *w)
{
	walk_go(w, step_bucket);
}

bool
walk_leaves_bucket(struct walk *w, int r)
{
	check(r < 0);
	w->left_out += r == -EBADMSG;
	if (r == -EBADMSG)
		log_warn("bucket %s is left out by a walk: its row, or a part of its index, is damaged",
			 w->bucket);
	else if (r != -ENXIO)
		walk_end(w, strerror(-r));
	return r == -EBADMSG || r == -ENXIO;
}

bool
walk_has(const struct walk *w, const char *key, size_t len)
{
	return store_share(w->env.store, store_shard(key, len));
}

/* ---- the owner's ---- */

int
walk_new(const struct walk_ops *ops, const struct walk_env *env, const struct conf *conf,
	 struct walk_public *pub, struct walk **ret_walk)
{
	struct walk *w = calloc(1, ops->bytes);

	if (!w)
		return -ENOMEM;
	w->ops = ops;
	w->env = *env;
	w->pub = pub;
	w->first = true;
	w->rest_ns = clock_ns();
	if (ops->made)
		ops->made(w);
	walk_set_conf(w, conf);
	*ret_walk = w;
	return 0;
}

void
walk_free(struct walk *w)
{
	if (!w)
		return;
	check(walk_busy(w) == 0);
	timer_disarm(w->env.timers, &w->timer);
	if (w->ops->fini)
		w->ops->fini(w);
	free(w);
}

void
walk_set_conf(struct walk *w, const struct conf *conf)
{
	w->ops->set_conf(w, conf);
	check(w->rate > 0);
	if (!w->running)
		rest(w);
}

void
walk_publish(struct walk *w)
{
	atomic_store(&w->pub->state, !w->running ? WALK_IDLE : w->paused ? WALK_PAUSED : WALK_RUNNING);
}

const char *
walk_state_text(const struct walk_public *pub)
{
	static const char *const text[] = {
		[WALK_IDLE] = "idle", [WALK_RUNNING] = "running", [WALK_PAUSED] = "paused"
	};

	return text[pub ? atomic_load(&pub->state) : WALK_IDLE];
}

void
walk_pause(struct walk *w, bool on)
{
	if (w->paused == on)
		return;
	w->paused = on;
	if (!w->busy)
		arm(w);
	walk_publish(w);
}

int
walk_begin(struct walk *w)
{
	if (w->running)
		return -EALREADY;
	if (w->paused)
		return -EBUSY;
	step_begin(w);
	return 0;
}

int
walk_cancel(struct walk *w)
{
	if (!w->running || w->cancelled)
		return -EALREADY;
	w->cancelled = true;
	if (!w->busy) {
		timer_disarm(w->env.timers, &w->timer);
		walk_end(w, "on request");
	}
	return 0;
}

int
walk_busy(const struct walk *w)
{
	return w->busy + w->other_nr;
}
