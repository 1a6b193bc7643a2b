/*
 * The scrub.  It lists objects one by one and reads each from end to end, which checks every granule against
 * its CRC; what it reads it throws away.  Made and owned by core 0, on that core's thread.
 *
 *   rest -> bucket -> next -> read ... -> next -> read ... -> bucket -> ... -> rest
 *
 * Requests come first: one read of a small buffer is in flight, and none while more than half of those are
 * out.  (Small ones are guaranteed to nobody, see xfer/pool.c, so no ticket is needed.)  Between two steps it
 * rests as store.scrub_rate says.  An object is open, and so pinned, during one read only: it is looked up
 * again for the next, and left when its bytes are others by then.  What was written during a walk is read by
 * the one after it.
 *
 * Nothing of it is kept over a restart: the walk begins anew.  Lines name bucket and version: no line that we
 * log has keys in it; --fsck names them.
 */
#define LOG_MODULE "core"
#include "walk/scrub.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/timer.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_NS (3600 * NS_PER_S) /* from the start to the first walk, unless the interval is shorter */
#define LATE_NS (100 * NS_PER_MS)  /* so much of its time it may make up for */
#define SCARCE_NS (20 * NS_PER_MS) /* until it looks for a buffer again */
#define COST_MIN 4096u             /* bytes that an object counts for at least */
#define DAMAGE_LINES 100           /* of one walk */

struct scrub {
	struct scrub_env env;
	uint64_t interval_ns, rate;
	struct timer timer;
	void (*step)(struct scrub *s);
	uint64_t due_ns;  /* when the step is to be taken */
	uint64_t pace_ns; /* when what was read so far should have been */
	uint64_t rest_ns; /* since when it rests */
	int inflight;     /* operations of the store */
	bool first, paused, running, cancelled;

	struct store_list ls;
	struct store_obj obj;
	struct store_read rd;
	struct buf *buf;

	char bucket[STORE_BUCKET_MAX + 1], last_bucket[STORE_BUCKET_MAX + 1];
	char key[STORE_KEY_MAX], last_key[STORE_KEY_MAX];
	uint16_t bucket_len, key_len, last_key_len;
	bool have_bucket, have_key;

	/* the object: where in it, how much the read brings, and what tells its bytes from others */
	uint64_t off;
	uint32_t skew, len;
	uint64_t size_bytes, crc64, mtime_ns;
};

static void step_bucket(struct scrub *s);
static void step_next(struct scrub *s);
static void step_read(struct scrub *s);
static void step_rest(struct scrub *s);

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

static void
set_state(struct scrub *s)
{
	atomic_store(&s->env.pub->state, !s->running ? SCRUB_IDLE : s->paused ? SCRUB_PAUSED : SCRUB_RUNNING);
}

void
scrub_get_info(const struct scrub_public *pub, struct scrub_info *ret_info)
{
	struct scrub_info *i = ret_info;
	uint64_t last = get(&pub->last_errors);

	i->state = atomic_load(&pub->state);
	i->walks = get(&pub->walks);
	i->objects = get(&pub->objects);
	i->bytes = get(&pub->bytes);
	i->damaged = get(&pub->damaged);
	i->unreadable = get(&pub->unreadable);
	i->walk_objects = get(&pub->walk_objects);
	i->walk_bytes = get(&pub->walk_bytes);
	i->walk_errors = get(&pub->walk_errors);
	i->started_ns = get(&pub->started_ns);
	i->finished_ns = get(&pub->finished_ns);
	i->known_bad = last > i->walk_errors ? last : i->walk_errors;
}

/* ---- going on ---- */

static void walk_over(struct scrub *s, const char *why);

static void
on_timer(struct timer *t)
{
	struct scrub *s = container_of(t, struct scrub, timer);

	check(s->inflight == 0 && !s->paused);
	s->step(s);
}

static void
arm(struct scrub *s)
{
	if (s->paused || s->due_ns == UINT64_MAX)
		timer_disarm(s->env.timers, &s->timer);
	else
		timer_arm(s->env.timers, &s->timer, s->due_ns, on_timer);
}

static void
go(struct scrub *s, uint64_t at_ns, void (*step)(struct scrub *s))
{
	if (s->running && s->cancelled) {
		walk_over(s, "on request");
		return;
	}
	s->step = step;
	s->due_ns = at_ns;
	arm(s);
}

/* The same, when the rate allows for bytes more. */
static void
go_paced(struct scrub *s, uint64_t bytes, void (*step)(struct scrub *s))
{
	uint64_t now = clock_ns();

	if (s->pace_ns + LATE_NS < now)
		s->pace_ns = now - LATE_NS;
	s->pace_ns += bytes * NS_PER_S / s->rate;
	go(s, s->pace_ns, step);
}

static void
rest(struct scrub *s)
{
	uint64_t ns = s->interval_ns;

	if (s->first && ns > FIRST_NS)
		ns = FIRST_NS;
	go(s, ns ? s->rest_ns + ns : UINT64_MAX, step_rest);
}

/* why: NULL, or what ended it before its end. */
static void
walk_over(struct scrub *s, const char *why)
{
	struct scrub_public *pub = s->env.pub;
	uint64_t errors = get(&pub->walk_errors);

	s->running = s->cancelled = false;
	s->rest_ns = clock_ns();
	/* Who sees that there is one walk more sees that it is over. */
	set_state(s);
	/* What an earlier walk has found is not healed by one that did not get there. */
	if (!why || errors > get(&pub->last_errors))
		set(&pub->last_errors, errors);
	if (!why) {
		set(&pub->finished_ns, clock_wall_ns());
		add(&pub->walks, 1);
	}
	log_event(LOG_EV_SCRUB, errors ? LOG_WARN : LOG_NOTE,
		  "scrub: %s%s: %llu objects and %llu bytes read in %llu s, %llu objects are damaged or "
		  "cannot be read",
		  why ? "ended " : "all was read", why ? why : "",
		  (unsigned long long)get(&pub->walk_objects), (unsigned long long)get(&pub->walk_bytes),
		  (unsigned long long)((clock_wall_ns() - get(&pub->started_ns)) / NS_PER_S),
		  (unsigned long long)errors);
	rest(s);
}

static void
step_rest(struct scrub *s)
{
	struct scrub_public *pub = s->env.pub;

	s->first = false;
	s->running = true;
	s->have_bucket = false;
	s->pace_ns = clock_ns();
	set(&pub->walk_objects, 0);
	set(&pub->walk_bytes, 0);
	set(&pub->walk_errors, 0);
	set(&pub->started_ns, clock_wall_ns());
	set_state(s);
	log_info("scrub: a walk begins");
	go(s, 0, step_bucket);
}

/* ---- what there is ---- */

static void
list_begin(struct scrub *s, bool (*entry)(struct store_list *, const struct store_entry *),
	   void (*over)(struct scrub *s), void (*done)(struct store_op *op))
{
	int r;

	s->ls.max = 1;
	s->ls.entry = entry;
	s->ls.op.done = done;
	r = store_list(s->env.store, &s->ls);
	if (r == 0) {
		s->inflight++;
		return;
	}
	if (r < 0)
		s->ls.op.result = r;
	over(s);
}

static struct scrub *
scrub_of_list(struct store_op *op)
{
	return container_of(container_of(op, struct store_list, op), struct scrub, ls);
}

static bool
on_bucket(struct store_list *ls, const struct store_entry *e)
{
	struct scrub *s = container_of(ls, struct scrub, ls);

	check(e->name_len <= STORE_BUCKET_MAX);
	memcpy(s->bucket, e->name, e->name_len);
	s->bucket[e->name_len] = 0;
	s->bucket_len = (uint16_t)e->name_len;
	s->have_bucket = true;
	return true;
}

static void
bucket_found(struct scrub *s)
{
	int r = s->ls.op.result;

	if (r < 0) {
		walk_over(s, strerror(-r));
	} else if (r == 0) {
		walk_over(s, NULL);
	} else {
		s->have_key = false;
		go_paced(s, COST_MIN, step_next);
	}
}

static void
on_buckets(struct store_op *op)
{
	struct scrub *s = scrub_of_list(op);

	s->inflight--;
	bucket_found(s);
}

/* The bucket behind the one that was walked, or the first. */
static void
step_bucket(struct scrub *s)
{
	memset(&s->ls, 0, sizeof s->ls);
	if (s->have_bucket) {
		memcpy(s->last_bucket, s->bucket, sizeof s->last_bucket);
		s->ls.after = s->last_bucket;
		s->ls.after_len = s->bucket_len;
	}
	list_begin(s, on_bucket, bucket_found, on_buckets);
}

static bool
on_object(struct store_list *ls, const struct store_entry *e)
{
	struct scrub *s = container_of(ls, struct scrub, ls);

	check(e->name_len <= STORE_KEY_MAX);
	memcpy(s->key, e->name, e->name_len);
	s->key_len = (uint16_t)e->name_len;
	s->have_key = true;
	return true;
}

static void
object_found(struct scrub *s)
{
	int r = s->ls.op.result;

	s->off = 0;
	if (r > 0)
		step_read(s);
	else if (r == 0 || r == -ENXIO)
		go(s, 0, step_bucket);
	else
		walk_over(s, strerror(-r));
}

static void
on_objects(struct store_op *op)
{
	struct scrub *s = scrub_of_list(op);

	s->inflight--;
	object_found(s);
}

static void
step_next(struct scrub *s)
{
	memset(&s->ls, 0, sizeof s->ls);
	s->ls.bucket = s->bucket;
	s->ls.bucket_len = s->bucket_len;
	if (s->have_key) {
		memcpy(s->last_key, s->key, s->key_len);
		s->last_key_len = s->key_len;
		s->ls.after = s->last_key;
		s->ls.after_len = s->last_key_len;
	}
	list_begin(s, on_object, object_found, on_objects);
}

/* ---- an object ---- */

static void
object_over(struct scrub *s, uint32_t cost)
{
	add(&s->env.pub->objects, 1);
	add(&s->env.pub->walk_objects, 1);
	go_paced(s, cost < COST_MIN ? COST_MIN : cost, step_next);
}

/* err: of the read. */
static void
object_is_bad(struct scrub *s, int err)
{
	struct scrub_public *pub = s->env.pub;
	uint64_t nr = get(&pub->walk_errors) + 1;

	set(&pub->walk_errors, nr);
	add(err == -EBADMSG ? &pub->damaged : &pub->unreadable, 1);
	if (nr <= DAMAGE_LINES)
		log_event(LOG_EV_DAMAGED, LOG_ERROR,
			  "scrub: bucket %.*s, version %llu, %llu bytes: bytes %llu to %llu %s%s",
			  s->bucket_len, s->bucket, (unsigned long long)s->obj.version,
			  (unsigned long long)s->size_bytes, (unsigned long long)(s->off - s->skew),
			  (unsigned long long)(s->off - s->skew + s->len - 1),
			  err == -EBADMSG ? "do not match their checksums" : "cannot be read: ",
			  err == -EBADMSG ? "" : strerror(-err));
	if (nr == DAMAGE_LINES)
		log_warn("scrub: more are counted, not named");
}

static void
read_over(struct scrub *s)
{
	int r = s->rd.op.result;
	uint32_t len = s->len;

	bufpool_put(s->env.bufs, s->buf);
	s->buf = NULL;
	if (r < 0)
		object_is_bad(s, r);
	store_close(s->env.store, &s->obj);
	add(&s->env.pub->bytes, len);
	add(&s->env.pub->walk_bytes, len);
	s->off += len - s->skew;
	/* One that is damaged somewhere is lost to whoever wants all of it: no need to know where else. */
	if (r < 0 || s->off >= s->size_bytes)
		object_over(s, len);
	else
		go_paced(s, len, step_read);
}

static void
on_read(struct store_op *op)
{
	struct scrub *s = container_of(container_of(op, struct store_read, op), struct scrub, rd);

	s->inflight--;
	read_over(s);
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
	int r;

	s->len = store_read_plan(&s->obj, s->off, s->size_bytes - s->off, s->buf->cap_bytes, &s->skew);
	memset(&s->rd, 0, sizeof s->rd);
	s->rd.op.done = on_read;
	r = store_read(s->env.store, &s->obj, &s->rd, s->buf, s->off - s->skew, s->len);
	if (r == 0) {
		s->inflight++;
		return;
	}
	if (r < 0)
		s->rd.op.result = r;
	read_over(s);
}

static void
opened(struct scrub *s)
{
	if (s->obj.op.result < 0 || !is_same(s)) {
		store_close(s->env.store, &s->obj);
		go_paced(s, COST_MIN, step_next);
	} else if (s->size_bytes == 0) {
		store_close(s->env.store, &s->obj);
		object_over(s, 0);
	} else {
		s->buf = bufpool_get(s->env.bufs, BUF_SMALL);
		if (s->buf) {
			read_begin(s);
			return;
		}
		store_close(s->env.store, &s->obj);
		go(s, clock_ns() + SCARCE_NS, step_read);
	}
}

static void
on_opened(struct store_op *op)
{
	struct scrub *s = container_of(container_of(op, struct store_obj, op), struct scrub, obj);

	s->inflight--;
	opened(s);
}

/* The next bytes of the object, if it is still there. */
static void
step_read(struct scrub *s)
{
	const struct bufpool *bp = s->env.bufs;
	struct store_key k = { .bucket = s->bucket, .bucket_len = s->bucket_len };
	int r;

	if (bp->avail[BUF_SMALL] * 2 < bp->total[BUF_SMALL]) {
		go(s, clock_ns() + SCARCE_NS, step_read);
		return;
	}
	k.key = s->key;
	k.key_len = s->key_len;
	memset(&s->obj, 0, sizeof s->obj);
	s->obj.op.done = on_opened;
	r = store_open(s->env.store, &k, &s->obj);
	if (r == 0) {
		s->inflight++;
		return;
	}
	if (r < 0)
		s->obj.op.result = r;
	opened(s);
}

/* ---- life ---- */

int
scrub_new(const struct scrub_env *env, uint64_t interval_ns, uint64_t rate, struct scrub **ret_scrub)
{
	struct scrub *s = calloc(1, sizeof *s);

	check(rate > 0);
	*ret_scrub = s;
	if (!s)
		return -ENOMEM;
	s->env = *env;
	s->first = true;
	s->rest_ns = clock_ns();
	s->interval_ns = interval_ns;
	s->rate = rate;
	rest(s);
	return 0;
}

void
scrub_set(struct scrub *s, uint64_t interval_ns, uint64_t rate)
{
	if (!s)
		return;
	check(rate > 0);
	s->rate = rate;
	if (s->interval_ns == interval_ns)
		return;
	s->interval_ns = interval_ns;
	if (!s->running)
		rest(s);
}

void
scrub_pause(struct scrub *s, bool on)
{
	if (!s || s->paused == on)
		return;
	s->paused = on;
	set_state(s);
	if (s->inflight == 0)
		arm(s);
}

int
scrub_begin(struct scrub *s)
{
	if (!s)
		return -ENOSYS;
	if (s->running)
		return -EALREADY;
	if (s->paused)
		return -EBUSY;
	step_rest(s);
	return 0;
}

int
scrub_cancel(struct scrub *s)
{
	if (!s)
		return -ENOSYS;
	if (!s->running || s->cancelled)
		return -EALREADY;
	s->cancelled = true;
	if (s->inflight == 0) {
		timer_disarm(s->env.timers, &s->timer);
		walk_over(s, "on request");
	}
	return 0;
}

int
scrub_busy(const struct scrub *s)
{
	return s ? s->inflight : 0;
}

void
scrub_free(struct scrub *s)
{
	if (!s)
		return;
	check(s->inflight == 0);
	timer_disarm(s->env.timers, &s->timer);
	free(s);
}
