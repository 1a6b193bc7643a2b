/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scrub.  It lists objects by the page and reads each from end to end, which checks every granule against
 * its CRC; what it reads it throws away.  A walk of core 0, at store.scrub_rate bytes a second.
 *
 *   bucket -> next -> read ... -> next -> read ... -> uploads -> next -> part -> read ... -> part -> next -> ... -> the next bucket
 *
 * Parts of uploads in progress, which nobody else reads, are read as objects are, one after the other.
 *
 * Requests come first: one read of a small buffer is in flight, and none while more than half of those are
 * out.  (Small ones are guaranteed to nobody, see xfer/pool.c, so no ticket is needed.) An object is open, and
 * so pinned, during one read only: it is looked up again for the next, and left when its bytes are others by
 * then.  What was written during a walk is read by the one after it.
 *
 * Lines name bucket and version: no line that we log has keys in it; --fsck names them.
 */
#define LOG_MODULE "core"
#include "walk/scrub.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "conf/conf.h"
#include "store/store.h"
#include "walk/walks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_NS (3600 * NS_PER_S) /* from the start to the first walk, unless the interval is shorter */
#define SCARCE_NS (20 * NS_PER_MS) /* until it looks for a buffer again */
#define COST_MIN 4096u             /* bytes that an object counts for at least */
#define DAMAGE_LINES 100           /* of one walk */
#define PAGE_MAX 256

struct scrub {
	struct walk walk; /* its `pub` is a struct scrub_public */

	struct store_list ls;
	struct store_obj obj;
	struct store_read rd;
	struct buf *buf;

	/* the keys of a page that are ours to read, and the last one listed; of uploads with their ids */
	bool uploads;
	struct scrub_key {
		uint16_t len;
		uint8_t id[STORE_UPLOAD_ID_BYTES];
		char name[STORE_KEY_MAX];
	} page[PAGE_MAX], *key, last, after;
	unsigned page_nr, page_at;
	bool have_last, listed;

	/* the parts of the upload of that key, a page of them; number: of the one that is read, 0: it is an object */
	struct store_part_list pl;
	uint32_t part[PAGE_MAX], number;
	unsigned part_nr, part_at;
	bool parts_listed;

	/* the object: where in it, how much the read brings, and what tells its bytes from others */
	uint64_t off;
	bool is_second; /* the second copy is read */
	uint32_t skew, len;
	uint64_t size_bytes, crc64, mtime_ns;
};

static void step_next(struct walk *w);
static void step_part(struct walk *w);
static void step_read(struct walk *w);

static struct scrub *
scrub_of(struct walk *w)
{
	return container_of(w, struct scrub, walk);
}

/* ---- what others see ---- */

static uint64_t
get(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static void
set(_Atomic uint64_t *to, uint64_t v)
{
	atomic_store_explicit(to, v, memory_order_relaxed);
}

/* One writer. */
static void
add(_Atomic uint64_t *to, uint64_t n)
{
	set(to, get(to) + n);
}

static struct scrub_public *
public_of(struct scrub *s)
{
	return container_of(s->walk.pub, struct scrub_public, walk);
}

/* ---- a walk ---- */

static int
begun(struct walk *w)
{
	struct scrub *s = scrub_of(w);
	struct scrub_public *pub = public_of(s);

	set(&pub->walk_objects, 0);
	set(&pub->walk_bytes, 0);
	set(&pub->walk_errors, 0);
	set(&pub->started_ns, clock_wall_ns());
	store_reread(s->walk.env.store);
	log_info("scrub: a walk begins");
	return 0;
}

static void
ended(struct walk *w, const char *why)
{
	struct scrub *s = scrub_of(w);
	struct scrub_public *pub = public_of(s);
	uint64_t errors = get(&pub->walk_errors);
	char except[64] = "";

	if (w->left_out)
		snprintf(except, sizeof except, " except %u damaged bucket%s", w->left_out,
			 w->left_out == 1 ? "" : "s");
	/* Who sees that there is one walk more sees that it is over. */
	walk_publish(w);
	/* Errors that an earlier walk has found remain until a walk has read everything. */
	if ((!why && !w->left_out) || errors > get(&pub->last_errors))
		set(&pub->last_errors, errors);
	if (!why) {
		set(&pub->finished_ns, clock_wall_ns());
		add(&pub->walks, 1);
	}
	log_event(LOG_EV_SCRUB, errors || w->left_out ? LOG_WARN : LOG_NOTE,
		  "scrub: %s%s: %llu objects and %llu bytes read in %llu s, %llu objects are damaged or "
		  "cannot be read",
		  why ? "ended " : "all was read", why ? why : except,
		  (unsigned long long)get(&pub->walk_objects), (unsigned long long)get(&pub->walk_bytes),
		  (unsigned long long)((clock_wall_ns() - get(&pub->started_ns)) / NS_PER_S),
		  (unsigned long long)errors);
}

/* ---- the objects of a bucket ---- */

static void
step_bucket(struct walk *w)
{
	struct scrub *s = scrub_of(w);

	s->uploads = s->have_last = s->listed = false;
	s->page_nr = s->page_at = 0;
	step_next(w);
}

static bool
on_object(struct store_list *ls, const struct store_entry *e)
{
	struct scrub *s = container_of(ls, struct scrub, ls);

	check(e->name_len <= STORE_KEY_MAX);
	memcpy(s->last.name, e->name, e->name_len);
	s->last.len = (uint16_t)e->name_len;
	if (s->uploads)
		memcpy(s->last.id, e->upload_id, sizeof s->last.id);
	s->have_last = true;
	check(s->page_nr < PAGE_MAX);
	if (walk_has(&s->walk, e->name, e->name_len))
		s->page[s->page_nr++] = s->last;
	return true;
}

static void
page_listed(struct walk *w)
{
	struct scrub *s = scrub_of(w);
	int r = s->ls.op.result;

	s->listed = !s->ls.more;
	if (r >= 0)
		walk_go(w, step_next);
	else if ((r == -EOPNOTSUPP && s->uploads) || walk_leaves_bucket(w, r))
		walk_next_bucket(w);
}

static void
on_objects(struct store_op *op)
{
	walk_done(&container_of(op, struct scrub, ls.op)->walk);
}

/* The object after the one that was read, of this page or the next. */
static void
step_next(struct walk *w)
{
	struct scrub *s = scrub_of(w);

	if (s->page_at < s->page_nr) {
		s->key = &s->page[s->page_at++];
		s->off = 0;
		s->number = 0;
		s->part_nr = s->part_at = 0;
		s->parts_listed = false;
		if (s->uploads)
			step_part(w);
		else
			step_read(w);
		return;
	}
	if (s->listed && s->uploads) {
		walk_next_bucket(w);
		return;
	}
	if (s->listed) {
		s->uploads = true;
		s->have_last = s->listed = false;
	}
	s->page_nr = s->page_at = 0;
	memset(&s->ls, 0, sizeof s->ls);
	s->ls.bucket = w->bucket;
	s->ls.bucket_len = w->bucket_len;
	if (s->have_last) {
		s->after = s->last;
		s->ls.after = s->after.name;
		s->ls.after_len = s->after.len;
		s->ls.after_id = s->uploads ? s->after.id : NULL;
	}
	s->ls.max = PAGE_MAX;
	s->ls.may_be_partial = true;
	s->ls.entry = on_object;
	s->ls.op.done = on_objects;
	walk_await(w, &s->ls.op,
		   s->uploads ? store_list_uploads(s->walk.env.store, &s->ls)
			      : store_list(s->walk.env.store, &s->ls),
		   page_listed);
}

/* ---- the parts of an upload ---- */

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	struct scrub *s = container_of(pl, struct scrub, pl);

	check(s->part_nr < PAGE_MAX);
	s->part[s->part_nr++] = part->number;
	return true;
}

static void
parts_listed(struct walk *w)
{
	struct scrub *s = scrub_of(w);

	/* Whatever hinders it is told where it is an operation of clients'; the upload may be over as well. */
	s->parts_listed = s->pl.op.result < 0 || !s->pl.more;
	walk_go_paced(w, COST_MIN, step_part);
}

static void
on_parts(struct store_op *op)
{
	walk_done(&container_of(op, struct scrub, pl.op)->walk);
}

static struct store_key
key_of(const struct scrub *s)
{
	return (struct store_key){ .bucket = s->walk.bucket,
				   .bucket_len = s->walk.bucket_len,
				   .key = s->key->name,
				   .key_len = s->key->len };
}

/* The part after the one that was read, of this page or the next. */
static void
step_part(struct walk *w)
{
	struct scrub *s = scrub_of(w);
	struct store_key k = key_of(s);

	if (s->part_at < s->part_nr) {
		s->number = s->part[s->part_at++];
		s->off = 0;
		step_read(w);
		return;
	}
	if (s->parts_listed) {
		walk_go(w, step_next);
		return;
	}
	s->part_nr = s->part_at = 0;
	s->pl = (struct store_part_list){ .after = s->number, .max = PAGE_MAX, .part = on_part };
	s->pl.op.done = on_parts;
	walk_await(w, &s->pl.op, store_list_parts(s->walk.env.store, &k, s->key->id, &s->pl), parts_listed);
}

/* ---- an object, or a part ---- */

/* What follows it. */
static walk_fn
step_behind(const struct scrub *s)
{
	return s->number ? step_part : step_next;
}

static void
object_done(struct scrub *s, uint32_t cost)
{
	add(&public_of(s)->objects, 1);
	add(&public_of(s)->walk_objects, 1);
	walk_go_paced(&s->walk, cost < COST_MIN ? COST_MIN : cost, step_behind(s));
}

/* err: of the read. */
static void
object_is_bad(struct scrub *s, int err)
{
	struct scrub_public *pub = public_of(s);
	uint64_t nr = get(&pub->walk_errors) + 1;
	char part[48] = "";

	set(&pub->walk_errors, nr);
	add(err == -EBADMSG ? &pub->damaged : &pub->unreadable, 1);
	if (s->number)
		snprintf(part, sizeof part, "part %u of an upload in progress, ", s->number);
	if (nr <= DAMAGE_LINES)
		log_event(LOG_EV_DAMAGED, LOG_ERROR,
			  "scrub: bucket %.*s, %sversion %llu, %llu bytes: bytes %llu to %llu %s%s",
			  s->walk.bucket_len, s->walk.bucket, part, (unsigned long long)s->obj.version,
			  (unsigned long long)s->size_bytes, (unsigned long long)(s->off - s->skew),
			  (unsigned long long)(s->off - s->skew + s->len - 1),
			  err == -EBADMSG ? "do not match their checksums" : "cannot be read: ",
			  err == -EBADMSG ? "" : strerror(-err));
	if (nr == DAMAGE_LINES)
		log_warn("scrub: more are counted, not named");
}

static void step_read(struct walk *w);

/* All of the first copy was read, whole or not.  The second is read if the first is whole: it mends it otherwise. */
static void
copy_done(struct scrub *s, uint64_t cost, bool is_whole)
{
	if (!is_whole || s->is_second || !s->obj.has_second) {
		s->is_second = false;
		object_done(s, cost);
		return;
	}
	s->is_second = true;
	s->off = 0;
	walk_go_paced(&s->walk, cost < COST_MIN ? COST_MIN : cost, step_read);
}

static void
read_done(struct walk *w)
{
	struct scrub *s = scrub_of(w);
	int r = s->rd.op.result;
	uint32_t len = s->len;

	bufpool_put(s->walk.env.bufs, s->buf);
	s->buf = NULL;
	/* A disk that failed: it stands still for that one. */
	if (r < 0 && r != -ENODEV)
		object_is_bad(s, r);
	store_close(s->walk.env.store, &s->obj);
	add(&public_of(s)->bytes, len);
	add(&public_of(s)->walk_bytes, len);
	s->off += len - s->skew;
	/* An object damaged somewhere is lost to a reader of all of it: no need to know where else. */
	if (r < 0 || s->off >= s->size_bytes)
		copy_done(s, len, r >= 0);
	else
		walk_go_paced(w, len, step_read);
}

static void
on_read(struct store_op *op)
{
	walk_done(&container_of(op, struct scrub, rd.op)->walk);
}

/* Is it what it was when its first byte was read?  Other attributes alone do not matter. */
static bool
is_same(struct scrub *s)
{
	const struct store_obj *o = &s->obj;

	if (s->off == 0) {
		s->size_bytes = o->size_bytes;
		s->crc64 = o->crc64;
		s->mtime_ns = o->meta.mtime_ns;
	}
	return o->size_bytes == s->size_bytes && o->crc64 == s->crc64 && o->meta.mtime_ns == s->mtime_ns;
}

static void
read_begin(struct scrub *s)
{
	s->len = store_read_plan(&s->obj, s->off, s->size_bytes - s->off, s->buf->cap_bytes, &s->skew);
	memset(&s->rd, 0, sizeof s->rd);
	s->rd.op.done = on_read;
	walk_await(&s->walk, &s->rd.op,
		   store_read(s->walk.env.store, &s->obj, &s->rd, s->buf, s->off - s->skew, s->len),
		   read_done);
}

static void
opened(struct walk *w)
{
	struct scrub *s = scrub_of(w);

	if (s->obj.op.result == -EBADMSG) {
		/* Its record, or its list of parts, is: nothing of it can be read. */
		s->obj.version = 0;
		s->off = s->skew = 0;
		s->len = 1;
		object_is_bad(s, -EBADMSG);
		copy_done(s, 0, false);
	} else if (s->is_second && s->obj.op.result < 0) {
		copy_done(s, 0, true);
	} else if (s->obj.op.result < 0 || !is_same(s)) {
		store_close(s->walk.env.store, &s->obj);
		s->is_second = false;
		/* Where parts are not opened one is enough to know. */
		if (s->obj.op.result == -EOPNOTSUPP && s->number)
			walk_next_bucket(w);
		else
			walk_go_paced(w, COST_MIN, step_behind(s));
	} else if (s->size_bytes == 0) {
		store_close(s->walk.env.store, &s->obj);
		copy_done(s, 0, true);
	} else {
		s->buf = bufpool_get(s->walk.env.bufs, BUF_SMALL);
		if (s->buf) {
			/* What this walk passes by another one finds in a month. */
			s->obj.mends_first = true;
			read_begin(s);
			return;
		}
		store_close(s->walk.env.store, &s->obj);
		walk_go_at(w, clock_ns() + SCARCE_NS, step_read);
	}
}

static void
on_opened(struct store_op *op)
{
	walk_done(&container_of(op, struct scrub, obj.op)->walk);
}

/* The next bytes of the object, if it is still there. */
static void
step_read(struct walk *w)
{
	struct scrub *s = scrub_of(w);
	const struct bufpool *bp = s->walk.env.bufs;
	struct store_key k = key_of(s);
	int r;

	if (bp->avail[BUF_SMALL] * 2 < bp->total[BUF_SMALL]) {
		walk_go_at(w, clock_ns() + SCARCE_NS, step_read);
		return;
	}
	memset(&s->obj, 0, sizeof s->obj);
	s->obj.op.done = on_opened;
	r = s->number ? store_open_part(s->walk.env.store, &k, s->key->id, s->number, s->is_second, &s->obj)
	    : s->is_second ? store_open_second(s->walk.env.store, &k, &s->obj)
			   : store_open(s->walk.env.store, &k, &s->obj);
	walk_await(w, &s->obj.op, r, opened);
}

/* ---- life ---- */

static void
set_conf(struct walk *w, const struct conf *conf)
{
	w->interval_ns = conf->store.scrub_interval_ns;
	w->first_max_ns = FIRST_NS;
	w->rate = conf->store.scrub_rate;
}

const struct walk_ops scrub_walk = { .bytes = sizeof(struct scrub),
				     .public_bytes = sizeof(struct scrub_public),
				     .set_conf = set_conf,
				     .begun = begun,
				     .bucket = step_bucket,
				     .ended = ended,
				     .bucket_units = COST_MIN,
				     .metrics = scrub_metrics,
				     .show = scrub_show };
