/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifecycle rules, executed: from time to time one core walks over all buckets, deletes the objects whose
 * bucket's rules say so, and ends the uploads that they, or limits.upload_expire, call abandoned.
 *
 * Made and owned by core 0; everything on that core's thread.  A walk as walk.h has it: it looks at
 * lifecycle.rate objects a second at most.  What it deletes is the version that it has seen: an object written
 * meanwhile stays.
 *
 *   bucket -> objects -> delete ... -> objects -> ...
 *          -> uploads -> abort ...  -> uploads -> ... -> the next bucket
 *
 * However many rules with however many tags a bucket has, comparing objects with them holds the core for no longer than
 * WALK_HOLD_NS and an object's worth at a time, and for no more than a part in WALK_PART of the time.
 *
 * What a rule calls a day is lifecycle.day long.  Where that is not a day, the ages that the rules are asked
 * about are stretched accordingly; dates stay what they are. The time is that of base/age_clock.h, which does
 * not follow a clock that jumps ahead for a moment.
 */
#define LOG_MODULE "life"
#include "audit/audit.h"
#include "base/age_clock.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "conf/conf.h"
#include "dialect/dialect.h"
#include "dialect/tags.h"
#include "s3doc/lifecycle.h"
#include "stats/stats.h"
#include "store/store.h"
#include "walk/bucket_config.h"
#include "walk/walks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DUE_MAX 64   /* collected before they are deleted */
#define PAGE_MAX 256 /* looked at in one go, or fewer: until WALK_HOLD_NS have passed over it */
#define DAY_NS (86400 * NS_PER_S)
/* Time from the start to the first walk; a daemon that is started often makes this one, too. */
#define FIRST_NS (60 * NS_PER_S)

struct due {
	uint64_t version;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint16_t key_len;
	char key[STORE_KEY_MAX];
};

struct life {
	struct walk walk;
	uint64_t day_ns, upload_expire_ns;

	struct store_list ls;
	struct store_del del;
	struct store_upload up;

	struct bucket_attrs attrs;     /* of the bucket, until all that was due of a page is gone */
	struct bucket_attrs old_attrs; /* those before, while they are read again */
	const void *rules;             /* in attrs; NULL: none */
	uint32_t rules_len;
	struct store_stat stat;
	walk_fn ruled; /* goes on when the rules are read */

	/* where the next page begins */
	struct place {
		char key[STORE_KEY_MAX];
		uint16_t key_len;
		uint8_t id[STORE_UPLOAD_ID_BYTES];
	} after, from; /* from: where this one does, which the store may look at until its end */
	bool have_after, full, uploads;
	uint32_t seen;
	uint64_t now_ns;  /* time of age_clock_ns() by which the ages of this page are computed */
	uint64_t held_ns; /* what comparing the entries of this page with the rules took */

	struct due *due; /* DUE_MAX of them, during a walk */
	int due_nr, due_at;
	uint64_t expired, aborted, left; /* in this bucket; left: their disk failed */
};

static void step_objects(struct walk *w);
static void step_uploads(struct walk *w);
static void step_due(struct walk *w);

static struct life *
life_of(struct walk *w)
{
	return container_of(w, struct life, walk);
}

/* ---- a walk ---- */

static void
drop_rules(struct life *lf)
{
	bucket_attrs_free(&lf->attrs);
	bucket_attrs_free(&lf->old_attrs);
	lf->rules = NULL;
}

static int
begun(struct walk *w)
{
	struct life *lf = life_of(w);

	lf->due = malloc(DUE_MAX * sizeof *lf->due);
	return lf->due ? 0 : -ENOMEM;
}

static void
ended(struct walk *w, const char *why)
{
	struct life *lf = life_of(w);

	if (why)
		log_warn("lifecycle: %s%.*s%s%s; the walk ends here", w->bucket_len ? "bucket " : "",
			 (int)w->bucket_len, w->bucket, w->bucket_len ? ": " : "", why);
	else
		stats_event(lf->walk.env.stats, STATS_LIFE_WALKS);
	drop_rules(lf);
	free(lf->due);
	lf->due = NULL;
}

static void
step_bucket(struct walk *w)
{
	struct life *lf = life_of(w);

	lf->have_after = false;
	lf->expired = lf->aborted = lf->left = 0;
	step_objects(w);
}

static void
leave_bucket(struct life *lf)
{
	struct walk *w = &lf->walk;

	drop_rules(lf);
	if (lf->expired || lf->aborted)
		log_info("lifecycle: bucket %.*s: %llu objects expired, %llu uploads aborted",
			 (int)w->bucket_len, w->bucket, (unsigned long long)lf->expired,
			 (unsigned long long)lf->aborted);
	if (lf->left)
		log_warn("lifecycle: bucket %.*s: %llu that were due are damaged, or on a disk that failed, "
			 "and stay",
			 (int)w->bucket_len, w->bucket, (unsigned long long)lf->left);
	walk_next_bucket(w);
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

/* Tells whether the rules say so.  There may be some hundred of them, each with tags. */
static bool
is_due(struct life *lf, const struct store_entry *e)
{
	uint64_t from_ns = clock_ns(), now_ns = lf->now_ns;
	bool due = e->upload_id ? upload_is_due(lf, e, now_ns) : object_is_due(lf, e, now_ns);

	lf->held_ns += clock_ns() - from_ns;
	return due;
}

static void
condemn(struct life *lf, const struct store_entry *e)
{
	struct due *d = &lf->due[lf->due_nr++];

	d->version = e->version;
	d->key_len = lf->after.key_len;
	memcpy(d->key, e->name, e->name_len);
	if (e->upload_id)
		memcpy(d->id, e->upload_id, sizeof d->id);
}

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct life *lf = container_of(ls, struct life, ls);
	bool upload = e->upload_id != NULL;

	if (lf->due_nr == DUE_MAX) {
		lf->full = true;
		return false;
	}
	check(e->name_len <= sizeof lf->after.key);
	memcpy(lf->after.key, e->name, e->name_len);
	lf->after.key_len = (uint16_t)e->name_len;
	lf->have_after = true;
	if (upload)
		memcpy(lf->after.id, e->upload_id, sizeof lf->after.id);
	lf->seen++;
	if (!walk_has(&lf->walk, e->name, e->name_len))
		return true;
	if (is_due(lf, e))
		condemn(lf, e);
	lf->full = lf->held_ns >= WALK_HOLD_NS;
	return !lf->full;
}

static void
page_done(struct walk *w)
{
	struct life *lf = life_of(w);
	int r = lf->ls.op.result;

	walk_held(w, lf->held_ns);
	if (r >= 0) {
		lf->full |= lf->ls.more;
		lf->due_at = 0;
		walk_go_paced(w, lf->seen, step_due);
	} else if (walk_leaves_bucket(w, r)) {
		leave_bucket(lf);
	}
}

static void
on_page(struct store_op *op)
{
	walk_done(&container_of(op, struct life, ls.op)->walk);
}

static void
list_page(struct life *lf, bool uploads)
{
	int r;

	lf->uploads = uploads;
	lf->due_nr = 0;
	lf->seen = 0;
	lf->held_ns = 0;
	lf->now_ns = age_clock_ns();
	lf->full = false;
	memset(&lf->ls, 0, sizeof lf->ls);
	lf->ls.bucket = lf->walk.bucket;
	lf->ls.bucket_len = lf->walk.bucket_len;
	lf->from = lf->after;
	lf->ls.after = lf->have_after ? lf->from.key : NULL;
	lf->ls.after_len = lf->have_after ? lf->from.key_len : 0;
	lf->ls.after_id = uploads && lf->have_after ? lf->from.id : NULL;
	lf->ls.max = PAGE_MAX;
	lf->ls.may_be_partial = true;
	lf->ls.entry = on_entry;
	lf->ls.op.done = on_page;
	r = uploads ? store_list_uploads(lf->walk.env.store, &lf->ls)
		    : store_list(lf->walk.env.store, &lf->ls);
	walk_await(&lf->walk, &lf->ls.op, r, page_done);
}

/* ---- rules ---- */

static void
rules_read(struct walk *w)
{
	struct life *lf = life_of(w);
	int r = lf->attrs.stat.op.result;

	if (r >= 0) {
		if (!bucket_attrs_find(&lf->attrs, BUCKET_LIFECYCLE, &lf->rules, &lf->rules_len))
			lf->rules = NULL;
		lf->ruled(w);
	} else if (walk_leaves_bucket(w, r)) {
		leave_bucket(lf);
	}
}

static void
on_rules(struct store_op *op)
{
	walk_done(&container_of(op, struct life, attrs.stat.op)->walk);
}

/* They may have changed since the last page. */
static void
read_rules(struct life *lf, walk_fn then)
{
	struct walk *w = &lf->walk;

	lf->rules = NULL;
	lf->ruled = then;
	lf->attrs.stat.op.done = on_rules;
	walk_await(w, &lf->attrs.stat.op,
		   bucket_attrs_read(lf->walk.env.store, w->bucket, w->bucket_len, &lf->attrs), rules_read);
}

/* ---- objects and uploads ---- */

static void
objects_ruled(struct walk *w)
{
	struct life *lf = life_of(w);

	if (lf->rules) {
		list_page(lf, false);
		return;
	}
	drop_rules(lf);
	lf->have_after = false;
	walk_go(w, step_uploads);
}

static void
step_objects(struct walk *w)
{
	read_rules(life_of(w), objects_ruled);
}

static void
uploads_ruled(struct walk *w)
{
	list_page(life_of(w), true);
}

static void
step_uploads(struct walk *w)
{
	read_rules(life_of(w), uploads_ruled);
}

/* ---- what is due of a page ---- */

/* The disk of the object has failed, or fails now, or the record of the object is damaged: the object stays. */
static bool
is_of_one(int r)
{
	return r == -EROFS || r == -ENODEV || r == -ECANCELED || r == -EBADMSG;
}

/* r: of what ended it.  Gone or changed meanwhile: not ours to end any more. */
static void
due_done(struct life *lf, int r)
{
	if (r < 0 && r != -ENOENT && r != -ESTALE && r != -ENXIO && !is_of_one(r)) {
		walk_end(&lf->walk, strerror(-r));
		return;
	}
	lf->left += r < 0 && is_of_one(r);
	lf->due_at++;
	walk_go_paced(&lf->walk, 1, step_due);
}

static void
record(const struct life *lf, const char *op)
{
	const struct due *d = &lf->due[lf->due_at];

	audit_expired(op, lf->walk.bucket, lf->walk.bucket_len, d->key, d->key_len);
}

static void
deleted(struct walk *w)
{
	struct life *lf = life_of(w);

	if (lf->del.op.result == 1) {
		record(lf, "Expire");
		lf->expired++;
		stats_event(lf->walk.env.stats, STATS_EXPIRED);
	}
	due_done(lf, lf->del.op.result);
}

static void
on_deleted(struct store_op *op)
{
	walk_done(&container_of(op, struct life, del.op)->walk);
}

static void
aborted(struct walk *w)
{
	struct life *lf = life_of(w);

	if (lf->up.op.result == 0) {
		record(lf, "ExpireUpload");
		lf->aborted++;
		stats_event(lf->walk.env.stats, STATS_UPLOAD_EXPIRED);
	}
	due_done(lf, lf->up.op.result);
}

static void
on_aborted(struct store_op *op)
{
	walk_done(&container_of(op, struct life, up.op)->walk);
}

static void
end_due(struct life *lf)
{
	struct walk *w = &lf->walk;
	struct due *d = &lf->due[lf->due_at];
	struct store_key k = {
		.bucket = w->bucket, .bucket_len = w->bucket_len, .key = d->key, .key_len = d->key_len
	};
	struct store_pre pre = { .kind = PRE_VERSION, .version = d->version };

	lf->del.op.done = on_deleted;
	lf->up.op.done = on_aborted;
	if (lf->uploads)
		walk_await(w, &lf->up.op, store_upload_abort(lf->walk.env.store, &k, d->id, &lf->up),
			   aborted);
	else
		walk_await(w, &lf->del.op, store_delete(lf->walk.env.store, &k, &pre, &lf->del), deleted);
}

/* Nothing is left to do of this page. */
static void
leave_page(struct life *lf)
{
	struct walk *w = &lf->walk;

	drop_rules(lf);
	if (lf->full) {
		walk_go(w, lf->uploads ? step_uploads : step_objects);
	} else if (lf->uploads) {
		leave_bucket(lf);
	} else {
		lf->have_after = false;
		walk_go(w, step_uploads);
	}
}

static void
rules_compared(struct walk *w)
{
	struct life *lf = life_of(w);
	const void *was = NULL;
	uint32_t len = 0;
	bool had = bucket_attrs_find(&lf->old_attrs, BUCKET_LIFECYCLE, &was, &len);
	bool same = had ? lf->rules && len == lf->rules_len && memcmp(was, lf->rules, len) == 0 : !lf->rules;

	bucket_attrs_free(&lf->old_attrs);
	if (same)
		end_due(lf);
	else
		leave_page(lf);
}

static void
version_seen(struct walk *w)
{
	struct life *lf = life_of(w);

	if (lf->stat.op.result == 0 && lf->stat.version == lf->attrs.stat.version) {
		end_due(lf);
		return;
	}
	lf->old_attrs = lf->attrs;
	lf->attrs.p = NULL;
	read_rules(lf, rules_compared);
}

static void
on_version(struct store_op *op)
{
	walk_done(&container_of(op, struct life, stat.op)->walk);
}

/*
 * Between a page and its deletes lies time: rules that were changed or taken back meanwhile condemn nothing.
 * What is left of the page is for the next walk then.
 */
static void
step_due(struct walk *w)
{
	struct life *lf = life_of(w);

	if (lf->due_at == lf->due_nr) {
		leave_page(lf);
		return;
	}
	lf->stat.op.done = on_version;
	walk_await(w, &lf->stat.op,
		   store_bucket_get_attrs(lf->walk.env.store, w->bucket, w->bucket_len, NULL, 0, &lf->stat),
		   version_seen);
}

/* ---- life ---- */

static void
set_conf(struct walk *w, const struct conf *conf)
{
	struct life *lf = life_of(w);

	check(conf->lifecycle.day_ns > 0);
	w->interval_ns = conf->lifecycle.interval_ns;
	w->first_max_ns = FIRST_NS;
	w->rate = (uint64_t)conf->lifecycle.rate;
	lf->day_ns = conf->lifecycle.day_ns;
	lf->upload_expire_ns = conf->limits.upload_expire_ns;
}

static void
fini(struct walk *w)
{
	struct life *lf = life_of(w);

	drop_rules(lf);
	free(lf->due);
}

const struct walk_ops lifecycle_walk = { .bytes = sizeof(struct life),
					 .set_conf = set_conf,
					 .begun = begun,
					 .bucket = step_bucket,
					 .ended = ended,
					 .bucket_units = 1,
					 .fini = fini };
