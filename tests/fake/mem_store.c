/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_store - the back end `mem`: the contract of store/store.h in memory, for tests of the layers above a store
 * without disks. The object model (model/decide.h) decides all changes (mem_store_decide.c); the state is a sorted
 * array of objects and buckets, and a sorted list of uploads.
 *
 * Every operation becomes a job.  A thread of the store does the job after a small random delay and posts the job to
 * its port's mailbox; done() runs from there.  The store reads buffers, attributes and last pieces only when it does
 * the job, and overwrites the slack after the bytes of a buffer, so that a test finds a caller that frees them too
 * early. Checks find the use of a port from another thread and operations that must not overlap; the leak checker
 * finds a PUT that is not ended.
 *
 * This file has versions and their index, jobs, start and stop, and faults. One lock protects all state.
 */
#include "tests/fake/mem_store_int.h"
#include "tests/fake/mem_disks.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t
now_ns(void)
{
	struct timespec t; /* the real time, also if a test replaces base/clock.h */

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t
rnd(struct mem_store *st)
{
	uint64_t s = st->tuning.seed;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return st->tuning.seed = s;
}

/* ---- versions and the index; under the lock ---- */

int
mem_compare(struct mem_name a, struct mem_name b)
{
	int c = memcmp(a.bucket, b.bucket, a.bucket_len < b.bucket_len ? a.bucket_len : b.bucket_len);

	if (c || a.bucket_len != b.bucket_len)
		return c ? c : a.bucket_len < b.bucket_len ? -1 : 1;
	c = memcmp(a.key, b.key, a.key_len < b.key_len ? a.key_len : b.key_len);
	return c ? c : (a.key_len > b.key_len) - (a.key_len < b.key_len);
}

size_t
mem_place(const struct mem_store *st, const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	const struct mem_name n = { bucket, bucket_len, key, key_len };
	size_t lo = 0, hi = st->nr;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (mem_compare(MEM_NAME(st->index[mid]), n) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct version *
mem_lookup(const struct mem_store *st, const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	const struct mem_name n = { bucket, bucket_len, key, key_len };
	size_t i = mem_place(st, bucket, bucket_len, key, key_len);

	return i < st->nr && mem_compare(MEM_NAME(st->index[i]), n) == 0 ? st->index[i] : NULL;
}

struct version *
mem_version_new(const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	struct version *v = calloc(1, sizeof *v);

	check(v);
	v->refs = 1;
	v->bad_granule = NO_GRANULE;
	v->bucket_len = (uint16_t)bucket_len;
	v->key_len = (uint16_t)key_len;
	memcpy(v->bucket, bucket, bucket_len);
	if (key_len)
		memcpy(v->key, key, key_len);
	v->slot = (uint16_t)table_slot(bucket, bucket_len, key, key_len);
	return v;
}

void
mem_version_put(struct mem_store *st, struct version *v)
{
	if (!v || --v->refs > 0)
		return;
	mem_quota_keep_end(v);
	mem_version_put(st, v->older);
	if (v->is_counted)
		st->used_bytes -= v->size_bytes;
	for (uint32_t i = 0; v->own_parts && i < v->part_nr; i++)
		free((void *)(uintptr_t)v->parts[i].attrs);
	free(v->parts);
	free(v->data);
	free(v->attrs);
	free(v);
}

void
mem_removed(struct mem_store *st, struct version *v)
{
	for (struct version *w = v; w; w = w->older)
		mem_quota_keep(st, w);
	mem_version_put(st, v);
}

void
mem_number(struct mem_store *st, struct version *v)
{
	if (!v->number)
		v->number = ++st->number;
	else if (v->number > st->number)
		st->number = v->number;
	if (!v->data_version)
		v->data_version = v->number;
	st->used_bytes += v->size_bytes;
	v->is_counted = true;
	st->records++;
}

void
mem_index_set(struct mem_store *st, struct version *v)
{
	size_t i = mem_place(st, v->bucket, v->bucket_len, v->key, v->key_len);

	mem_number(st, v);
	if (i < st->nr && mem_compare(MEM_NAME(st->index[i]), MEM_NAME(v)) == 0) {
		struct version *old = st->index[i];

		st->index[i] = v;
		if (old->data_version == v->data_version && (old->refs > 1 || old->older))
			v->older = old;
		else
			mem_removed(st, old);
		return;
	}
	if (st->nr == st->cap) {
		st->cap = st->cap ? 2 * st->cap : 64;
		st->index = realloc(st->index, st->cap * sizeof(struct version *));
		check(st->index);
	}
	memmove(&st->index[i + 1], &st->index[i], (st->nr++ - i) * sizeof(struct version *));
	st->index[i] = v;
}

void
mem_index_remove(struct mem_store *st, struct version *v)
{
	size_t i = mem_place(st, v->bucket, v->bucket_len, v->key, v->key_len);

	check(st->index[i] == v);
	memmove(&st->index[i], &st->index[i + 1], (--st->nr - i) * sizeof(struct version *));
	st->records++;
	mem_removed(st, v);
}

bool
mem_bucket_holds(const struct mem_store *st, const char *bucket, size_t len)
{
	for (size_t i = mem_place(st, bucket, len, "", 0) + 1; i < st->nr; i++) {
		const struct version *v = st->index[i];

		if (v->bucket_len != len || memcmp(v->bucket, bucket, len) != 0)
			break;
		if (mem_owns(st, v->bucket, len, v->key, v->key_len))
			return true;
	}
	return false;
}

struct version *
mem_object(const struct mem_store *st, const struct version *like)
{
	return mem_lookup(st, like->bucket, like->bucket_len, like->key, like->key_len);
}

struct version *
mem_bucket(const struct mem_store *st, const struct version *like)
{
	return mem_lookup(st, like->bucket, like->bucket_len, "", 0);
}

void
mem_spoil_slack(struct buf *buf, uint32_t len)
{
	memset(buf->mem + len, 0x5a, buf->cap_bytes + BUF_SLACK_BYTES - len);
}

/* ---- jobs ---- */

int
mem_fault_of(struct mem_store *st, enum mem_fault kind)
{
	struct fault *f = &st->fault[kind];

	if (!f->times)
		return 0;
	if (f->skip) {
		f->skip--;
		return 0;
	}
	f->times--;
	return f->error;
}

void
mem_on_port(struct mem_port *p)
{
	check(pthread_equal(p->thread, pthread_self()));
	check(!p->asleep);
}

struct job *
mem_job_new(struct mem_port *p, struct store_op *op, enum mem_fault kind,
	    void (*work)(struct mem_store *, struct job *))
{
	struct job *j = calloc(1, sizeof *j);

	check(j);
	mem_on_port(p);
	op->port = &p->base;
	op->result = -EINPROGRESS;
	j->port = p;
	j->op = op;
	j->kind = kind;
	j->work = work;
	return j;
}

static void
end_job(struct mem_store *st, struct job *j)
{
	pthread_mutex_lock(&st->lock);
	mem_version_put(st, j->v);
	pthread_mutex_unlock(&st->lock);
}

/* Makes a job whose v has the name alone, and which frees v at its end; a change of a key has `of`. */
static struct job *
job_of(struct store_port *sp, const struct store_key *k, const uint8_t *id, struct store_op *op,
       enum mem_fault kind, void (*work)(struct mem_store *, struct job *))
{
	struct job *j = mem_job_new(mem_port(sp), op, kind, work);

	j->finish = end_job;
	j->v = mem_version_new(k->bucket, k->bucket_len, k->key, k->key_len);
	j->has_two = store_has_two(k);
	if (k->key_len && (kind == MEM_COMMIT || kind == MEM_DELETE))
		j->of = j->v;
	if (id)
		memcpy(j->id, id, sizeof j->id);
	return j;
}

static void
on_over(struct msg *m)
{
	struct job *j = container_of(m, struct job, msg);
	struct mem_store *st = j->port->st;
	struct store_op *op = j->op;
	bool is_taken;

	mem_on_port(j->port);
	j->port->inflight--;
	op->result = j->result;
	if (j->finish)
		j->finish(st, j);
	pthread_mutex_lock(&st->lock);
	st->inflight--;
	pthread_mutex_unlock(&st->lock);
	is_taken = j->is_taken;
	free(j);
	if (!is_taken)
		op->done(op);
}

/* Longest wait of a change for the end of a gate or a freeze. */
#define PATIENCE_NS NS_PER_S

/* Does a job. Returns false if the job has to wait. */
static bool
do_work(struct mem_store *st, struct job *j)
{
	int error;

	if (st->member && (j->not_before_ns > clock_ns() || mem_member_holds(st, j)))
		return false;
	error = j->kind < MEM_FAULT_NR ? mem_fault_of(st, j->kind) : 0;
	j->result = error;
	if (!error && st->member && !mem_member_judge(st, j))
		error = 0;
	else if (!error || (error == -ECANCELED && j->kind == MEM_COMMIT && rnd(st) % 2))
		j->work(st, j);
	if (error)
		j->result = error;
	else if (st->member && j->of && j->result == -EAGAIN) {
		if (!j->came_ns)
			j->came_ns = clock_ns();
		if (clock_ns() - j->came_ns < PATIENCE_NS)
			return false;
	}
	if (st->member)
		mem_member_done(st, j);
	st->info.errors += error != 0;
	return true;
}

int
mem_job_start(struct job *j)
{
	struct mem_store *st = j->port->st;
	uint32_t at_once = j->kind == MEM_OPEN || j->kind == MEM_LIST ? st->tuning.open_at_once
			   : j->kind == MEM_STAT                      ? st->tuning.stat_at_once
								      : st->tuning.other_at_once;
	struct job **link;

	/* An engine of a set finishes all look-ups in the start call, and no commit of a PUT. */
	if (st->member && (j->is_quick || j->is_late || !st->is_tuned))
		at_once = j->is_quick ? 100 : 0;
	pthread_mutex_lock(&st->lock);
	if ((!st->hold || (j->is_quick && st->member)) && rnd(st) % 100 < at_once && do_work(st, j)) {
		pthread_mutex_unlock(&st->lock);
		if (st->member)
			mem_member_tell(st);
		j->op->result = j->result;
		if (j->finish)
			j->finish(st, j);
		free(j);
		return 1;
	}
	j->at_ns = now_ns() + rnd(st) % (st->tuning.delay_max_us + 1) * NS_PER_US;
	for (link = &st->jobs; *link && (*link)->at_ns <= j->at_ns; link = &(*link)->next)
		;
	j->next = *link;
	*link = j;
	st->inflight++;
	j->port->inflight++;
	if (!st->manual)
		pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
	return 0;
}

static void *
worker(void *arg)
{
	struct mem_store *st = arg;

	pthread_mutex_lock(&st->lock);
	while (!st->stop) {
		struct job *j = st->hold || st->manual ? NULL : st->jobs;

		if (j && j->at_ns <= now_ns()) {
			st->jobs = j->next;
			check(do_work(st, j));
			mailbox_post(j->port->mb, &j->msg, on_over);
		} else if (j) {
			struct timespec t = { (time_t)(j->at_ns / NS_PER_S), (long)(j->at_ns % NS_PER_S) };

			pthread_cond_timedwait(&st->work, &st->lock, &t);
		} else {
			pthread_cond_wait(&st->work, &st->lock);
		}
	}
	pthread_mutex_unlock(&st->lock);
	return NULL;
}

/* ---- life ---- */

int
mem_format(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	return conf->disks.nr > 0 ? 0 : -EINVAL;
}

struct mem_store *
mem_store_make(const struct store_conf *conf, const struct store_ops *ops, bool has_thread)
{
	struct mem_store *st = calloc(1, sizeof *st);
	const char *seed = getenv("SEED");
	pthread_condattr_t monotonic;

	check(st);
	st->size_bytes = conf->disks.nr && conf->disks.disk[0].size_bytes ? conf->disks.disk[0].size_bytes
									  : (uint64_t)1 << 40;
	strncpy(st->path, conf->disks.nr ? conf->disks.disk[0].path : "memory", sizeof st->path - 1);
	st->limits = (struct store_limits){ STORE_PIECE, STORE_PIECE, STORE_GRANULE, STORE_INLINE_MAX };
	st->tuning = (struct mem_store_tuning){ .seed = seed ? strtoull(seed, NULL, 0) : 1,
						.delay_max_us = 200,
						.open_at_once = 50,
						.stat_at_once = 50 };
	st->tuning.seed += !st->tuning.seed;
	st->base.ops = ops;
	st->ports_max = conf->ports_max;
	check(quota_book_new(1, &st->own_quotas) == 0);
	st->base.quotas = st->quotas = st->own_quotas;
	st->base.unit_nr = 1;
	pthread_mutex_init(&st->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&st->work, &monotonic);
	pthread_condattr_destroy(&monotonic);
	st->manual = !has_thread;
	st->has_thread = has_thread;
	if (has_thread)
		check(pthread_create(&st->thread, NULL, worker, st) == 0);
	return st;
}

int
mem_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len)
{
	*ret_store = &mem_store_make(conf, &mem_store_ops, true)->base;
	return 0;
}

void
mem_stop(struct store *store)
{
	struct mem_store *st = mem_store(store);
	if (!st)
		return;
	pthread_mutex_lock(&st->lock);
	check(st->ports == 0);
	st->stop = true;
	pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
	if (st->has_thread)
		pthread_join(st->thread, NULL);
	if (st->member)
		mem_member_keep(st);
	mem_uploads_drop(st, NULL, 0);
	while (st->nr)
		mem_index_remove(st, st->index[st->nr - 1]);
	free(st->index);
	quota_book_free(st->own_quotas);
	pthread_mutex_destroy(&st->lock);
	pthread_cond_destroy(&st->work);
	free(st);
}

int
mem_attach(struct store *store, struct ring *ring, struct mailbox *mb, struct timers *timers,
	   struct store_port **ret_port)
{
	struct mem_store *st = mem_store(store);
	struct mem_port *p = calloc(1, sizeof *p);
	int r = 0;

	check(p);
	pthread_mutex_lock(&st->lock);
	if (st->ports < st->ports_max)
		st->ports++;
	else
		r = -EUSERS;
	pthread_mutex_unlock(&st->lock);
	if (r < 0) {
		free(p);
		return r;
	}
	*p = (struct mem_port){ .base.ops = store->ops,
				.base.limits = &st->limits,
				.st = st,
				.mb = mb,
				.thread = pthread_self() };
	*ret_port = &p->base;
	return 0;
}

bool
mem_detach(struct store_port *sp)
{
	struct mem_port *p = mem_port(sp);
	mem_on_port(p);
	if (p->inflight)
		return false;
	pthread_mutex_lock(&p->st->lock);
	p->st->ports--;
	pthread_mutex_unlock(&p->st->lock);
	free(p);
	return true;
}

void
mem_turn(struct store_port *sp, enum store_turn turn)
{
	struct mem_port *p = mem_port(sp);

	if (turn == TURN_WAKES) {
		check(p->asleep);
		p->asleep = false;
	}
	mem_on_port(p);
	p->asleep = turn == TURN_SLEEPS;
}

bool
mem_share(struct store_port *sp, uint32_t shard)
{
	const struct mem_store *st = mem_port(sp)->st;

	return !st->shares || shard % st->shares == st->share;
}

/* ---- what operators see ---- */

void
mem_unit_info(const struct store *store, int unit, struct store_unit_info *ret_info)
{
	struct mem_store *st = mem_store(store);
	uint64_t objects = 0;

	pthread_mutex_lock(&st->lock);
	*ret_info = st->info;
	ret_info->name = st->path;
	ret_info->size_bytes = st->size_bytes;
	ret_info->free_bytes = st->size_bytes - st->used_bytes;
	for (size_t i = 0; i < st->nr; i++)
		objects += st->index[i]->key_len > 0;
	if (st->member)
		mem_member_info(st, ret_info);
	store_unit_add(ret_info, "objects", objects, false);
	store_unit_add(ret_info, "commits", st->commits, false);
	store_unit_add(ret_info, "records", st->records, false);
	store_unit_add(ret_info, "crc_errors", st->crc_errors, false);
	store_unit_add(ret_info, "pins", st->open_nr, false);
	pthread_mutex_unlock(&st->lock);
}

/* ---- mem_store.h ---- */

/* Ends a completion that cannot succeed. Returns 1; 0: it has to be made. */
static int
complete_init(struct store_port *p, struct store_complete *c)
{
	c->was_done = false;
	c->version = c->size_bytes = c->crc64 = 0;
	c->op.port = p;
	c->op.result = model_check_list(c);
	return c->op.result < 0;
}

static int
mem_apply(struct store_port *p, const struct store_change *c, struct store_op *op)
{
	static const struct {
		enum mem_fault kind;
		void (*work)(struct mem_store *st, struct job *j);
	} act[] = {
		[ACT_DELETE] = { MEM_DELETE, mem_delete_work },
		[ACT_SET_ATTRS] = { MEM_COMMIT, mem_set_attrs_work },
		[ACT_CREATE_UPLOAD] = { MEM_COMMIT, mem_create_upload_work },
		[ACT_ABORT_UPLOAD] = { MEM_DELETE, mem_abort_upload_work },
		[ACT_COMPLETE] = { MEM_COMMIT, mem_complete_work },
		[ACT_CREATE_BUCKET] = { MEM_DELETE, mem_make_bucket_work },
		[ACT_DELETE_BUCKET] = { MEM_DELETE, mem_delete_bucket_work },
		[ACT_SET_BUCKET_ATTRS] = { MEM_COMMIT, mem_set_bucket_attrs_work },
		[ACT_SET_QUOTA] = { MEM_COMMIT, mem_set_quota_work },
		[ACT_MAKE_BUCKET] = { MEM_DELETE, mem_make_bucket_work },
		[ACT_GATE_BUCKET] = { MEM_STAT, mem_gate_bucket_work },
		[ACT_SET_COPIES] = { MEM_DELETE, mem_set_copies_work },
	};
	struct job *j;

	if (c->act == ACT_CREATE_BUCKET && c->copies > 1)
		return -EDOM;
	if (c->act == ACT_COMPLETE && complete_init(p, container_of(op, struct store_complete, op)))
		return 1;
	j = job_of(p, &c->key, c->id, op, act[c->act].kind, act[c->act].work);
	j->c = *c;
	if (c->pre)
		j->pre = *c->pre;
	if (c->max)
		j->max = *c->max;
	if (c->act == ACT_CREATE_BUCKET) {
		j->c.copies = 1;
		j->c.ctime_ns = clock_wall_ns();
	}
	return mem_job_start(j);
}

static int
mem_look_up(struct store_port *p, const struct store_look *l, struct store_op *op)
{
	static const struct {
		enum mem_fault kind;
		void (*work)(struct mem_store *st, struct job *j);
		void (*finish)(struct mem_store *st, struct job *j);
	} look[LOOK_NR] = {
		[LOOK_OBJECT] = { MEM_OPEN, mem_open_work, mem_open_finish },
		[LOOK_PART] = { MEM_OPEN, mem_open_part_work, mem_open_finish },
		[LOOK_UPLOAD] = { MEM_STAT, mem_upload_stat_work, end_job },
		[LOOK_PARTS] = { MEM_LIST, mem_no_work, mem_list_parts_finish },
		[LOOK_BUCKET] = { MEM_STAT, mem_bucket_head_work, end_job },
		[LOOK_BUCKET_ATTRS] = { MEM_STAT, mem_bucket_get_attrs_work, end_job },
	};
	struct mem_store *st = mem_port(p)->st;
	struct job *j;

	if (l->is_second)
		return -ENODATA;
	if (l->kind == LOOK_PUT)
		return mem_open_put(p, l, op);
	if (l->is_to_read) {
		pthread_mutex_lock(&st->lock);
		st->to_read_nr++;
		st->to_read_want = l->want;
		pthread_mutex_unlock(&st->lock);
	}
	j = job_of(p, &l->key, l->id, op, look[l->kind].kind, look[l->kind].work);
	j->finish = look[l->kind].finish;
	j->is_quick = l->kind != LOOK_PARTS;
	j->to = l->attrs;
	j->len = l->kind == LOOK_PART ? l->number : l->cap;
	return mem_job_start(j);
}

/* Every change is durable already. */
static int
mem_snapshot(struct store *store)
{
	return 0;
}

#define MEM_OPS                                                                                              \
	.name = "mem", .stop = mem_stop, .attach = mem_attach, .share = mem_share, .detach = mem_detach,     \
	.turn = mem_turn, .look = mem_look_up, .close = mem_close, .read_plan = mem_read_plan,               \
	.read = mem_read, .put_init = mem_put_init, .put_write = mem_put_write,                              \
	.put_commit = mem_put_commit, .put_abort = mem_put_abort, .apply = mem_apply,                        \
	.obj_part = mem_obj_part, .list = mem_list, .unit_info = mem_unit_info

const struct store_ops mem_store_ops = {
	MEM_OPS,
	.format = mem_format,
	.start = mem_start,
};

const struct store_ops mem_engine_ops = {
	MEM_OPS,
	.format = mem_engine_format,
	.start = mem_engine_start,
	.snapshot = mem_snapshot,
	.member = &mem_member_ops,
};

void
mem_store_tune(struct store *store, const struct mem_store_tuning *tuning)
{
	struct mem_store *st = mem_store(store);
	pthread_mutex_lock(&st->lock);
	st->tuning = *tuning;
	st->tuning.seed += !st->tuning.seed;
	st->is_tuned = true;
	pthread_mutex_unlock(&st->lock);
}

void
mem_store_limit(struct store *store, const struct store_limits *limits)
{
	struct mem_store *st = mem_store(store);

	check(limits->piece_bytes <= STORE_PIECE && limits->read_bytes >= limits->piece_bytes &&
	      limits->read_bytes <= STORE_READ && limits->granule_bytes == STORE_GRANULE &&
	      limits->inline_bytes <= STORE_INLINE_MAX);
	pthread_mutex_lock(&st->lock);
	check(st->inflight == 0);
	st->limits = *limits;
	pthread_mutex_unlock(&st->lock);
}

void
mem_store_share(struct store *store, uint32_t shares, uint32_t share)
{
	struct mem_store *st = mem_store(store);

	st->shares = shares;
	st->share = share;
}

void
mem_store_hold(struct store *store, bool hold)
{
	struct mem_store *st = mem_store(store);
	pthread_mutex_lock(&st->lock);
	st->hold = hold;
	pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
}

void
mem_store_fail(struct store *store, enum mem_fault kind, int error, unsigned skip, unsigned times)
{
	struct mem_store *st = mem_store(store);
	pthread_mutex_lock(&st->lock);
	st->fault[kind] = (struct fault){ error, skip, times };
	pthread_mutex_unlock(&st->lock);
}

void
mem_store_manual(struct store *store, bool manual)
{
	struct mem_store *st = mem_store(store);
	pthread_mutex_lock(&st->lock);
	st->manual = manual;
	pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
}

unsigned
mem_store_step(struct store *store, unsigned nr)
{
	struct mem_store *st = mem_store(store);
	unsigned left = 0;

	pthread_mutex_lock(&st->lock);
	check(st->manual);
	for (struct job *j = st->jobs; j; j = j->next)
		left++;
	for (; nr && left && !st->hold; nr--) {
		struct job **link = &st->jobs, *j;

		for (uint64_t skip = rnd(st) % left; skip; skip--)
			link = &(*link)->next;
		j = *link;
		if (!do_work(st, j))
			continue;
		*link = j->next;
		left--;
		if (j->port) {
			mailbox_post(j->port->mb, &j->msg, on_over);
			continue;
		}
		pthread_mutex_unlock(&st->lock);
		j->over(j);
		free(j);
		pthread_mutex_lock(&st->lock);
	}
	pthread_mutex_unlock(&st->lock);
	if (st->member)
		mem_member_tell(st);
	return left;
}

int
mem_store_spoil(struct store *store, const char *bucket, const char *key, uint64_t off)
{
	struct mem_store *st = mem_store(store);
	struct version *v;
	int r = -ENOENT;

	pthread_mutex_lock(&st->lock);
	v = mem_lookup(st, bucket, strlen(bucket), key, strlen(key));
	if (v)
		r = off < v->size_bytes ? 0 : -ERANGE;
	if (r == 0) {
		v->data[off] ^= 1;
		v->bad_granule = off / STORE_GRANULE;
	}
	pthread_mutex_unlock(&st->lock);
	return r;
}

static unsigned
get(struct mem_store *st, const unsigned *value)
{
	unsigned n;

	pthread_mutex_lock(&st->lock);
	n = *value;
	pthread_mutex_unlock(&st->lock);
	return n;
}

unsigned
mem_store_inflight(struct store *store)
{
	struct mem_store *st = mem_store(store);
	return get(st, &st->inflight);
}

unsigned
mem_store_open_nr(struct store *store)
{
	struct mem_store *st = mem_store(store);
	return get(st, &st->open_nr);
}

unsigned
mem_store_to_read_nr(struct store *store)
{
	struct mem_store *st = mem_store(store);
	return get(st, &st->to_read_nr);
}

uint64_t
mem_store_to_read_want(struct store *store)
{
	struct mem_store *st = mem_store(store);
	uint64_t want;

	pthread_mutex_lock(&st->lock);
	want = st->to_read_want;
	pthread_mutex_unlock(&st->lock);
	return want;
}

unsigned
mem_store_put_nr(struct store *store)
{
	struct mem_store *st = mem_store(store);
	return get(st, &st->put_nr);
}
