/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The remover of expired objects, see ttl.h. It runs on core 0.
 *
 *   tick -> take a name ... delete ... -> take a name ... -> tick
 *        \-> walk: bucket -> page of objects -> ... -> the next bucket
 *
 * A removal has the condition that the object has expired, so an object that was written in the meantime stays, and a
 * removal by another gateway does no harm.
 */
#define LOG_MODULE "ttl"
#include "walk/ttl.h"

#include "audit/audit.h"
#include "base/age_clock.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "conf/conf.h"
#include "stats/stats.h"
#include "store/store.h"
#include "walk/walks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REMOVALS_MAX 16           /* in flight */
#define TICK_NS (500 * NS_PER_MS) /* interval at which the queue is examined */
#define AGAIN_NS (5 * NS_PER_S)   /* time until a removal that is not possible now is tried again */
#define REST_NS (60 * NS_PER_S)   /* time from a failed walk, or a refused removal, to the next walk */
#define PAGE_MAX 256

struct removal {
	struct ttl *ttl;
	struct ttl_name *name; /* NULL: not in use */
	struct store_del del;
};

struct ttl {
	struct walk walk;
	struct timer timer;
	uint64_t grace_ns; /* time in ns from the expiry to the removal: 0, or TTL_GRACE_NS */
	uint64_t shards;   /* one bit for each of the first 64 shards; 1: the shard belongs to this process */
	struct removal of[REMOVALS_MAX];

	/* the walk */
	struct store_list ls;
	uint64_t rest_ns; /* time by clock_ns() before which no walk begins */
	uint32_t seen;
	bool is_started; /* a page of the bucket was listed */
	uint16_t after_len, from_len;
	char after[STORE_KEY_MAX], from[STORE_KEY_MAX];
};

static void remove_due(struct ttl *t);

/* ---- removals ---- */

static bool
is_for_later(int r)
{
	return r == -EAGAIN || r == -EXDEV || r == -ENOSPC || r == -ECANCELED || r == -ENOMEM;
}

/* Returns true for an error of a disk that is missing or has failed. */
static bool
is_of_disk(int r)
{
	return r == -EROFS || r == -ENODEV || r == -EIO;
}

/* Requests a walk after REST_NS. Further errors do not delay this walk. */
static void
walk_later(struct ttl *t)
{
	uint64_t now = clock_ns();

	if (t->rest_ns <= now)
		t->rest_ns = now + REST_NS;
	ttl_queue_missed(t->walk.env.queue);
}

void
ttl_removed(struct stats_core *stats, const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	stats_event(stats, STATS_TTL_REMOVED);
	audit_expired("Expire", bucket, bucket_len, key, key_len);
}

static void
removed(struct removal *rm, int r)
{
	struct ttl *t = rm->ttl;
	struct ttl_name *n = rm->name;
	const char *key = n->names + n->bucket_len;

	if (r == 1) {
		ttl_removed(t->walk.env.stats, n->names, n->bucket_len, key, n->key_len);
	} else if (is_for_later(r)) {
		ttl_queue_note(t->walk.env.queue, n->names, n->bucket_len, key, n->key_len,
			       age_clock_ns() - t->grace_ns + AGAIN_NS);
	} else if (is_of_disk(r)) {
		walk_later(t);
	}
	free(n);
	rm->name = NULL;
}

static void
on_removed(struct store_op *op)
{
	struct removal *rm = container_of(container_of(op, struct store_del, op), struct removal, del);
	struct ttl *t = rm->ttl;

	t->walk.other_nr--;
	removed(rm, op->result);
	remove_due(t);
}

/* Begins to remove the objects that are due. Each removal that ends begins further ones. */
static void
remove_due(struct ttl *t)
{
	uint64_t due_ns = age_clock_ns() - t->grace_ns;

	for (int i = 0; !t->walk.paused && i < REMOVALS_MAX; i++) {
		struct store_pre pre = { .kind = PRE_EXPIRED, .expired_ns = due_ns };
		struct removal *rm = &t->of[i];
		struct store_key k;
		int r;

		if (rm->name)
			continue;
		rm->name = ttl_queue_take(t->walk.env.queue, due_ns);
		if (!rm->name)
			return;
		k = (struct store_key){ .bucket = rm->name->names,
					.bucket_len = rm->name->bucket_len,
					.key = rm->name->names + rm->name->bucket_len,
					.key_len = rm->name->key_len };
		rm->del.op.done = on_removed;
		r = store_delete(t->walk.env.store, &k, &pre, &rm->del);
		if (r == 0)
			t->walk.other_nr++;
		else
			removed(rm, r < 0 ? r : rm->del.op.result);
	}
}

static uint64_t
own_shards(struct store_port *p)
{
	uint64_t shards = 0;

	for (uint32_t i = 0; i < 64; i++)
		shards |= (uint64_t)store_share(p, i) << i;
	return shards;
}

/* Requests a walk if the share of this process has changed: another process may have ended, and lost its queue. */
static void
look_at_share(struct ttl *t)
{
	uint64_t shards = own_shards(t->walk.env.store);

	if (shards != t->shards)
		ttl_queue_missed(t->walk.env.queue);
	t->shards = shards;
}

static void
on_tick(struct timer *timer)
{
	struct ttl *t = container_of(timer, struct ttl, timer);
	uint64_t now = clock_ns();

	if (!t->walk.paused) {
		remove_due(t);
		look_at_share(t);
		if (!t->walk.running && now >= t->rest_ns && ttl_queue_wants_walk(t->walk.env.queue))
			walk_begin(&t->walk);
	}
	timer_arm(t->walk.env.timers, &t->timer, now + TICK_NS, on_tick);
}

/* ---- the walk ---- */

static void step_page(struct walk *w);

static struct ttl *
ttl_of(struct walk *w)
{
	return container_of(w, struct ttl, walk);
}

static int
begun(struct walk *w)
{
	ttl_queue_walks(w->env.queue);
	return 0;
}

static void
ended(struct walk *w, const char *why)
{
	struct ttl *t = ttl_of(w);

	if (!why)
		return;
	log_info("expired objects: %s%.*s%s%s; the walk ends here, and another one begins later",
		 w->bucket_len ? "bucket " : "", (int)w->bucket_len, w->bucket, w->bucket_len ? ": " : "",
		 why);
	walk_later(t);
}

static void
step_bucket(struct walk *w)
{
	ttl_of(w)->is_started = false;
	step_page(w);
}

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct ttl *t = container_of(ls, struct ttl, ls);
	const struct walk *w = &t->walk;

	check(e->name_len <= sizeof t->after);
	memcpy(t->after, e->name, e->name_len);
	t->after_len = (uint16_t)e->name_len;
	t->is_started = true;
	t->seen++;
	if (e->expires_ns && walk_has(w, e->name, e->name_len))
		ttl_queue_note(t->walk.env.queue, w->bucket, w->bucket_len, e->name, e->name_len,
			       e->expires_ns);
	return true;
}

static void
page_done(struct walk *w)
{
	struct ttl *t = ttl_of(w);
	int r = t->ls.op.result;

	if (r >= 0 && t->ls.more)
		walk_go_paced(w, t->seen, step_page);
	else if (r >= 0 || walk_leaves_bucket(w, r))
		walk_next_bucket(w);
}

static void
on_page(struct store_op *op)
{
	walk_done(&container_of(op, struct ttl, ls.op)->walk);
}

static void
step_page(struct walk *w)
{
	struct ttl *t = ttl_of(w);
	struct store_list *ls = &t->ls;

	t->seen = 0;
	memcpy(t->from, t->after, t->after_len);
	t->from_len = t->after_len;
	*ls = (struct store_list){ .bucket = w->bucket,
				   .bucket_len = w->bucket_len,
				   .max = PAGE_MAX,
				   .shows_gone = true,
				   .may_be_partial = true,
				   .entry = on_entry,
				   .op.done = on_page };
	if (t->is_started) {
		ls->after = t->from;
		ls->after_len = t->from_len;
	}
	walk_await(w, &ls->op, store_list(t->walk.env.store, ls), page_done);
}

/* ---- life ---- */

static void
set_conf(struct walk *w, const struct conf *conf)
{
	w->rate = (uint64_t)conf->lifecycle.rate;
	ttl_of(w)->grace_ns = conf->store.backend == BACKEND_RADOS ? TTL_GRACE_NS : 0;
}

static void
made(struct walk *w)
{
	struct ttl *t = ttl_of(w);

	for (int i = 0; i < REMOVALS_MAX; i++)
		t->of[i].ttl = t;
	t->shards = own_shards(w->env.store);
	timer_arm(w->env.timers, &t->timer, clock_ns() + TICK_NS, on_tick);
}

static void
fini(struct walk *w)
{
	struct ttl *t = ttl_of(w);

	timer_disarm(w->env.timers, &t->timer);
}

const struct walk_ops ttl_walk = { .bytes = sizeof(struct ttl),
				   .set_conf = set_conf,
				   .begun = begun,
				   .bucket = step_bucket,
				   .ended = ended,
				   .bucket_units = 1,
				   .made = made,
				   .fini = fini };
