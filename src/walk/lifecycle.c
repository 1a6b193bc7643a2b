/*
 * Lifecycle rules, executed: from time to time one core walks over all buckets, deletes the objects whose
 * bucket's rules say so, and ends the uploads that they, or limits.upload_expire, call abandoned.
 *
 * Made and owned by core 0; everything on that core's thread.  It does one thing at a
 * time and rests after each, so that it looks at lifecycle.rate objects a second at most.  What it deletes is
 * the version that it has seen: an object written meanwhile stays.
 *
 *   rest -> bucket -> objects -> delete ... -> objects -> ...
 *                  -> uploads -> abort ...  -> uploads -> ...
 *        -> bucket -> ... -> rest
 *
 * What a rule calls a day is lifecycle.day long.  Where that is not a day, the ages that the rules are asked
 * about are stretched accordingly; dates stay what they are.
 */
#define LOG_MODULE "life"
#include "walk/lifecycle.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/timer.h"
#include "conf/conf.h"
#include "dialect/dialect.h"
#include "dialect/tags.h"
#include "s3doc/lifecycle.h"
#include "stats/stats.h"
#include "store/store.h"
#include "walk/bucket_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DUE_MAX 64    /* collected before they are deleted */
#define PAGE_MAX 1000 /* looked at in one go */
#define DAY_NS (86400 * NS_PER_S)

struct due {
	uint64_t version;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint16_t key_len;
	char key[STORE_KEY_MAX];
};

struct life {
	struct life_env env;
	uint64_t interval_ns, day_ns, upload_expire_ns, rate;
	struct timer timer;
	void (*step)(struct life *lf);
	int inflight; /* operations of the store */
	bool paused;

	struct store_list ls;
	struct store_del del;
	struct store_upload up;

	char bucket[STORE_BUCKET_MAX + 1], last[STORE_BUCKET_MAX + 1];
	uint16_t bucket_len;
	bool have_bucket;
	struct bucket_attrs attrs; /* of the bucket, until all that was due of a page is gone */
	const void *rules;         /* in there; NULL: none */
	uint32_t rules_len;

	/* where the next page begins */
	char after[STORE_KEY_MAX];
	uint16_t after_len;
	uint8_t after_id[STORE_UPLOAD_ID_BYTES];
	bool have_after, full;
	uint32_t seen;

	struct due *due; /* DUE_MAX of them, during a walk */
	int due_nr, due_at;
	uint64_t expired, aborted; /* in this bucket */
};

static void step_bucket(struct life *lf);
static void step_objects(struct life *lf);
static void step_delete(struct life *lf);
static void step_uploads(struct life *lf);
static void step_abort(struct life *lf);

/* ---- going on ---- */

static void
on_timer(struct timer *t)
{
	struct life *lf = container_of(t, struct life, timer);

	if (!lf->paused && lf->inflight == 0)
		lf->step(lf);
}

static void
go(struct life *lf, uint64_t rest_ns, void (*step)(struct life *lf))
{
	lf->step = step;
	if (!lf->paused)
		timer_arm(lf->env.timers, &lf->timer, clock_ns() + rest_ns, on_timer);
}

/* The rest that n objects cost. */
static uint64_t
rest_ns(const struct life *lf, uint32_t n)
{
	return (uint64_t)n * NS_PER_S / lf->rate;
}

static void
walk_over(struct life *lf)
{
	free(lf->due);
	lf->due = NULL;
	lf->have_bucket = false;
	stats_event(lf->env.stats, STATS_LIFE_WALKS);
	go(lf, lf->interval_ns, step_bucket);
}

static void
drop_rules(struct life *lf)
{
	bucket_attrs_free(&lf->attrs);
	lf->rules = NULL;
}

/* A walk that cannot go on ends; the next one begins anew. */
static void
give_up(struct life *lf, int err)
{
	log_warn("lifecycle: bucket %.*s: %s; the walk ends here", (int)lf->bucket_len, lf->bucket,
		 strerror(-err));
	drop_rules(lf);
	free(lf->due);
	lf->due = NULL;
	lf->have_bucket = false;
	go(lf, lf->interval_ns, step_bucket);
}

/* ---- ages ---- */

/* When it would have been made, were a day a day. */
static uint64_t
stretched_s(const struct life *lf, uint64_t made_ns, uint64_t now_ns)
{
	uint64_t day_ns = lf->day_ns, age_ns = now_ns > made_ns ? now_ns - made_ns : 0;
	unsigned __int128 age = (unsigned __int128)age_ns * DAY_NS / day_ns;

	if (age > now_ns)
		age = now_ns;
	return (now_ns - (uint64_t)age) / NS_PER_S;
}

static bool
object_is_due(const struct life *lf, const struct store_entry *e, uint64_t now_ns)
{
	size_t tags_len = 0;
	const char *tags = dialect_attr(e->attrs, e->attrs_len, ATTR_TAGGING, &tags_len);

	return lifecycle_due(lf->rules, lf->rules_len, e->name, e->name_len, e->size_bytes, tags ? tags : "",
			     tags ? tags_len : 0, stretched_s(lf, e->mtime_ns, now_ns), now_ns / NS_PER_S);
}

static bool
upload_is_due(const struct life *lf, const struct store_entry *e, uint64_t now_ns)
{
	uint64_t expire_ns = lf->upload_expire_ns;

	if (expire_ns && now_ns > e->mtime_ns && now_ns - e->mtime_ns >= expire_ns)
		return true;
	return lf->rules && lifecycle_upload_due(lf->rules, lf->rules_len, e->name, e->name_len,
						 stretched_s(lf, e->mtime_ns, now_ns), now_ns / NS_PER_S);
}

/* ---- pages ---- */

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct life *lf = container_of(ls, struct life, ls);
	uint64_t now_ns = clock_wall_ns();
	bool upload = e->upload_id != NULL;

	if (lf->due_nr == DUE_MAX) {
		lf->full = true;
		return false;
	}
	check(e->name_len <= sizeof lf->after);
	memcpy(lf->after, e->name, e->name_len);
	lf->after_len = (uint16_t)e->name_len;
	lf->have_after = true;
	if (upload)
		memcpy(lf->after_id, e->upload_id, sizeof lf->after_id);
	lf->seen++;
	if (upload ? upload_is_due(lf, e, now_ns) : object_is_due(lf, e, now_ns)) {
		struct due *d = &lf->due[lf->due_nr++];

		d->version = e->version;
		d->key_len = lf->after_len;
		memcpy(d->key, e->name, e->name_len);
		if (upload)
			memcpy(d->id, e->upload_id, sizeof d->id);
	}
	return true;
}

static void
page_over(struct life *lf)
{
	bool uploads = lf->step == step_uploads;

	/* Without its bucket there is nothing left to do in it. */
	if (lf->ls.op.result == -ENXIO) {
		drop_rules(lf);
		go(lf, 0, step_bucket);
		return;
	}
	if (lf->ls.op.result < 0) {
		give_up(lf, lf->ls.op.result);
		return;
	}
	lf->full |= lf->ls.more;
	lf->due_at = 0;
	go(lf, rest_ns(lf, lf->seen), uploads ? step_abort : step_delete);
}

static void
on_page(struct store_op *op)
{
	struct life *lf = container_of(container_of(op, struct store_list, op), struct life, ls);

	lf->inflight--;
	page_over(lf);
}

/* The rules may have changed since the last page. */
static int
read_rules(struct life *lf)
{
	int r = bucket_attrs_read(lf->env.store, lf->bucket, lf->bucket_len, &lf->attrs);

	lf->rules = NULL;
	if (r < 0)
		return r;
	if (!bucket_attrs_find(&lf->attrs, BUCKET_LIFECYCLE, &lf->rules, &lf->rules_len))
		lf->rules = NULL;
	return 0;
}

/*
 * Between a page and its deletes lies time: rules that were changed or taken back meanwhile condemn nothing.
 * What is left of the page is for the next walk then.
 */
static bool
rules_hold(struct life *lf)
{
	struct bucket_attrs old = lf->attrs;
	const void *rules = lf->rules;
	uint32_t len = lf->rules_len;
	uint64_t version;
	bool same;

	if (store_bucket_get_attrs(lf->env.store, lf->bucket, lf->bucket_len, NULL, 0, &version) >= 0 &&
	    version == old.version)
		return true;
	same = read_rules(lf) == 0 && !rules == !lf->rules &&
	       (!rules || (len == lf->rules_len && memcmp(rules, lf->rules, len) == 0));
	bucket_attrs_free(&old);
	return same;
}

/* Is there something left to do of this page? */
static bool
is_more_due(struct life *lf)
{
	if (lf->due_at < lf->due_nr && rules_hold(lf))
		return true;
	drop_rules(lf);
	return false;
}

static void
list_page(struct life *lf, bool uploads)
{
	int r;

	lf->due_nr = 0;
	lf->seen = 0;
	lf->full = false;
	memset(&lf->ls, 0, sizeof lf->ls);
	lf->ls.bucket = lf->bucket;
	lf->ls.bucket_len = lf->bucket_len;
	lf->ls.after = lf->have_after ? lf->after : NULL;
	lf->ls.after_len = lf->have_after ? lf->after_len : 0;
	lf->ls.after_id = uploads && lf->have_after ? lf->after_id : NULL;
	lf->ls.max = PAGE_MAX;
	lf->ls.entry = on_entry;
	lf->ls.op.done = on_page;
	r = uploads ? store_list_uploads(lf->env.store, &lf->ls) : store_list(lf->env.store, &lf->ls);
	if (r == 0) {
		lf->inflight++;
		return;
	}
	if (r < 0)
		lf->ls.op.result = r;
	page_over(lf);
}

/* ---- buckets ---- */

static bool
on_bucket(struct store_list *ls, const struct store_entry *e)
{
	struct life *lf = container_of(ls, struct life, ls);

	check(e->name_len <= STORE_BUCKET_MAX);
	memcpy(lf->bucket, e->name, e->name_len);
	lf->bucket[e->name_len] = 0;
	lf->bucket_len = (uint16_t)e->name_len;
	lf->have_bucket = true;
	return true;
}

static void
bucket_found(struct life *lf)
{
	if (lf->ls.op.result < 0) {
		give_up(lf, lf->ls.op.result);
	} else if (lf->ls.op.result == 0) {
		walk_over(lf);
	} else {
		lf->have_after = false;
		lf->expired = lf->aborted = 0;
		go(lf, rest_ns(lf, 1), step_objects);
	}
}

static void
on_found(struct store_op *op)
{
	struct life *lf = container_of(container_of(op, struct store_list, op), struct life, ls);

	lf->inflight--;
	bucket_found(lf);
}

/* The bucket behind the one that was walked, or the first. */
static void
step_bucket(struct life *lf)
{
	int r;

	if (lf->have_bucket && (lf->expired || lf->aborted))
		log_info("lifecycle: bucket %.*s: %llu objects expired, %llu uploads aborted",
			 (int)lf->bucket_len, lf->bucket, (unsigned long long)lf->expired,
			 (unsigned long long)lf->aborted);
	if (!lf->due)
		lf->due = malloc(DUE_MAX * sizeof *lf->due);
	if (!lf->due) {
		give_up(lf, -ENOMEM);
		return;
	}
	memcpy(lf->last, lf->bucket, sizeof lf->last);
	memset(&lf->ls, 0, sizeof lf->ls);
	lf->ls.after = lf->have_bucket ? lf->last : NULL;
	lf->ls.after_len = lf->have_bucket ? lf->bucket_len : 0;
	lf->ls.max = 1;
	lf->ls.entry = on_bucket;
	lf->ls.op.done = on_found;
	r = store_list(lf->env.store, &lf->ls);
	if (r == 0) {
		lf->inflight++;
		return;
	}
	if (r < 0)
		lf->ls.op.result = r;
	bucket_found(lf);
}

/* ---- objects ---- */

static void
step_objects(struct life *lf)
{
	int r = read_rules(lf);

	if (r < 0) {
		go(lf, 0, step_bucket);
		return;
	}
	if (lf->rules) {
		list_page(lf, false);
		return;
	}
	drop_rules(lf);
	lf->have_after = false;
	go(lf, 0, step_uploads);
}

static void
deleted(struct life *lf)
{
	if (lf->del.op.result == 1) {
		lf->expired++;
		stats_event(lf->env.stats, STATS_EXPIRED);
	}
	/* Gone or changed meanwhile: not ours to delete any more.  A disk that fails ends the walk. */
	if (lf->del.op.result < 0 && lf->del.op.result != -ENOENT && lf->del.op.result != -ESTALE &&
	    lf->del.op.result != -ENXIO) {
		give_up(lf, lf->del.op.result);
		return;
	}
	lf->due_at++;
	go(lf, rest_ns(lf, 1), step_delete);
}

static void
on_deleted(struct store_op *op)
{
	struct life *lf = container_of(container_of(op, struct store_del, op), struct life, del);

	lf->inflight--;
	deleted(lf);
}

static void
step_delete(struct life *lf)
{
	struct due *d = &lf->due[lf->due_at];
	struct store_key k = { .bucket = lf->bucket, .bucket_len = lf->bucket_len };
	struct store_pre pre = { .kind = PRE_VERSION };
	int r;

	if (!is_more_due(lf)) {
		if (!lf->full)
			lf->have_after = false;
		go(lf, 0, lf->full ? step_objects : step_uploads);
		return;
	}
	k.key = d->key;
	k.key_len = d->key_len;
	pre.version = d->version;
	lf->del.op.done = on_deleted;
	r = store_delete(lf->env.store, &k, &pre, &lf->del);
	if (r == 0) {
		lf->inflight++;
		return;
	}
	if (r < 0)
		lf->del.op.result = r;
	deleted(lf);
}

/* ---- uploads ---- */

static void
step_uploads(struct life *lf)
{
	int r = read_rules(lf);

	if (r < 0) {
		go(lf, 0, step_bucket);
		return;
	}
	list_page(lf, true);
}

static void
aborted(struct life *lf)
{
	if (lf->up.op.result == 0) {
		lf->aborted++;
		stats_event(lf->env.stats, STATS_UPLOAD_EXPIRED);
	}
	if (lf->up.op.result < 0 && lf->up.op.result != -ENOENT && lf->up.op.result != -ENXIO) {
		give_up(lf, lf->up.op.result);
		return;
	}
	lf->due_at++;
	go(lf, rest_ns(lf, 1), step_abort);
}

static void
on_aborted(struct store_op *op)
{
	struct life *lf = container_of(container_of(op, struct store_upload, op), struct life, up);

	lf->inflight--;
	aborted(lf);
}

static void
step_abort(struct life *lf)
{
	struct due *d = &lf->due[lf->due_at];
	struct store_key k = { .bucket = lf->bucket, .bucket_len = lf->bucket_len };
	int r;

	if (!is_more_due(lf)) {
		go(lf, 0, lf->full ? step_uploads : step_bucket);
		return;
	}
	k.key = d->key;
	k.key_len = d->key_len;
	lf->up.op.done = on_aborted;
	r = store_upload_abort(lf->env.store, &k, d->id, &lf->up);
	if (r == 0) {
		lf->inflight++;
		return;
	}
	if (r < 0)
		lf->up.op.result = r;
	aborted(lf);
}

/* ---- life ---- */

int
life_new(const struct life_env *env, const struct conf *conf, struct life **ret_life)
{
	struct life *lf = calloc(1, sizeof *lf);

	if (!lf)
		return -ENOMEM;
	lf->env = *env;
	life_set(lf, conf);
	go(lf, lf->interval_ns, step_bucket);
	*ret_life = lf;
	return 0;
}

void
life_set(struct life *lf, const struct conf *conf)
{
	if (!lf)
		return;
	check(conf->lifecycle.rate > 0 && conf->lifecycle.day_ns > 0);
	lf->interval_ns = conf->lifecycle.interval_ns;
	lf->day_ns = conf->lifecycle.day_ns;
	lf->rate = (uint64_t)conf->lifecycle.rate;
	lf->upload_expire_ns = conf->limits.upload_expire_ns;
}

void
life_pause(struct life *lf, bool on)
{
	if (!lf || lf->paused == on)
		return;
	lf->paused = on;
	if (on)
		timer_disarm(lf->env.timers, &lf->timer);
	else if (lf->inflight == 0)
		go(lf, lf->interval_ns, lf->step);
}

int
life_busy(const struct life *lf)
{
	return lf ? lf->inflight : 0;
}

void
life_free(struct life *lf)
{
	if (!lf)
		return;
	check(lf->inflight == 0);
	timer_disarm(lf->env.timers, &lf->timer);
	bucket_attrs_free(&lf->attrs);
	free(lf->due);
	free(lf);
}
