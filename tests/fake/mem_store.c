/*
 * The back end `mem`: all of store.h in memory, to keep the header honest and the layers above testable
 * without disks.
 *
 * Every operation becomes a job.  A thread of the store does it after a small random delay and posts it to
 * its port's mailbox; done() runs from there.  Buffers, attributes and last pieces are looked at only then,
 * and the slack behind a buffer is spoilt: who lets go of them too early is found out.  So is who uses a port
 * from another thread, overlaps what must not overlap, or forgets a put (the leak checker).
 *
 * One lock for everything.  Linked ahead of the archives in place of store.a.
 */
#include "tests/fake/mem_store.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "base/list.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PIECES_MAX 16384
#define NO_GRANULE UINT64_MAX

/* One version of an object, or a bucket (key_len 0). */
struct version {
	int refs; /* the index's and the open objects' */
	char bucket[STORE_BUCKET_MAX], key[STORE_KEY_MAX];
	uint16_t bucket_len, key_len;
	char *data, *attrs;
	uint64_t size_bytes, crc64, number, mtime_ns, bad_granule;
	struct store_etag etag;
	uint32_t attrs_len;
};

struct fault {
	int error;
	unsigned skip, times;
};

struct store {
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_t thread;
	bool stop, hold;
	struct job *jobs; /* by time */
	struct version **index;
	size_t nr, cap;
	struct mem_store_tuning tuning;
	struct fault fault[MEM_FAULT_NR];
	uint64_t number, size_bytes, used_bytes;
	int ports, ports_max;
	unsigned inflight, open_nr, put_nr;
	struct store_disk_info info;
	char path[256];
};

struct store_port {
	struct store *st;
	struct mailbox *mb;
	pthread_t thread;
	unsigned inflight;
	bool asleep;
};

struct put_state {
	struct version *v;
	char *piece[PIECES_MAX];
	uint32_t len[PIECES_MAX];
	uint32_t nr, writes;
	uint64_t expect_bytes;
	bool ended, committing;
};

struct obj_state {
	struct version *v;
	uint32_t reads;
};

struct job {
	struct msg msg;
	struct job *next;
	uint64_t at_ns;
	struct store_port *port;
	struct store_op *op;
	enum mem_fault kind;
	void (*work)(struct store *st, struct job *j);   /* under the lock, any thread; sets result */
	void (*finish)(struct store *st, struct job *j); /* on the port's thread, no lock */
	int result;
	struct version *v;
	struct buf *buf;
	char *to;
	uint64_t off;
	uint32_t len;
	struct store_pre pre;
	const void *attrs;
	bool is_create;
};

static uint64_t
now_ns(void)
{
	struct timespec t; /* the real one, whatever a test does to base/clock.h */

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t
rnd(struct store *st)
{
	uint64_t s = st->tuning.seed;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return st->tuning.seed = s;
}

/* ---- versions and the index; under the lock ---- */

static int
compare(const struct version *a, const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	int c = memcmp(a->bucket, bucket, a->bucket_len < bucket_len ? a->bucket_len : bucket_len);

	if (c || a->bucket_len != bucket_len)
		return c ? c : a->bucket_len < bucket_len ? -1 : 1;
	c = memcmp(a->key, key, a->key_len < key_len ? a->key_len : key_len);
	return c ? c : (a->key_len > key_len) - (a->key_len < key_len);
}

/* The place of the first entry that is not smaller. */
static size_t
place(const struct store *st, const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	size_t lo = 0, hi = st->nr;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (compare(st->index[mid], bucket, bucket_len, key, key_len) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct version *
lookup(const struct store *st, const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	size_t i = place(st, bucket, bucket_len, key, key_len);

	return i < st->nr && compare(st->index[i], bucket, bucket_len, key, key_len) == 0 ? st->index[i]
											  : NULL;
}

static struct version *
version_new(const char *bucket, size_t bucket_len, const char *key, size_t key_len)
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
	return v;
}

static void
version_put(struct store *st, struct version *v)
{
	if (!v || --v->refs > 0)
		return;
	if (v->number)
		st->used_bytes -= v->size_bytes;
	free(v->data);
	free(v->attrs);
	free(v);
}

/* Takes the reference of v. */
static void
index_set(struct store *st, struct version *v)
{
	size_t i = place(st, v->bucket, v->bucket_len, v->key, v->key_len);

	v->number = ++st->number;
	st->used_bytes += v->size_bytes;
	st->info.records++;
	if (i < st->nr && compare(st->index[i], v->bucket, v->bucket_len, v->key, v->key_len) == 0) {
		version_put(st, st->index[i]);
		st->index[i] = v;
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

static void
index_remove(struct store *st, struct version *v)
{
	size_t i = place(st, v->bucket, v->bucket_len, v->key, v->key_len);

	check(st->index[i] == v);
	memmove(&st->index[i], &st->index[i + 1], (--st->nr - i) * sizeof(struct version *));
	st->info.records++;
	version_put(st, v);
}

static bool
bucket_exists(const struct store *st, const struct version *like)
{
	return lookup(st, like->bucket, like->bucket_len, "", 0) != NULL;
}

/* ---- jobs ---- */

static int
fault_of(struct store *st, enum mem_fault kind)
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

static void
on_port(struct store_port *p)
{
	check(pthread_equal(p->thread, pthread_self()));
	check(!p->asleep);
}

static struct job *
job_new(struct store_port *p, struct store_op *op, enum mem_fault kind,
	void (*work)(struct store *, struct job *))
{
	struct job *j = calloc(1, sizeof *j);

	check(j);
	on_port(p);
	op->port = p;
	op->result = -EINPROGRESS;
	j->port = p;
	j->op = op;
	j->kind = kind;
	j->work = work;
	return j;
}

static void
on_over(struct msg *m)
{
	struct job *j = container_of(m, struct job, msg);
	struct store *st = j->port->st;
	struct store_op *op = j->op;

	on_port(j->port);
	j->port->inflight--;
	op->result = j->result;
	if (j->finish)
		j->finish(st, j);
	pthread_mutex_lock(&st->lock);
	st->inflight--;
	pthread_mutex_unlock(&st->lock);
	free(j);
	op->done(op);
}

static void
do_work(struct store *st, struct job *j)
{
	int error = fault_of(st, j->kind);

	j->result = error;
	if (!error || (error == -ECANCELED && j->kind == MEM_COMMIT && rnd(st) % 2))
		j->work(st, j);
	if (error)
		j->result = error;
	st->info.errors += error != 0;
}

/* What a start returns. */
static int
job_start(struct job *j)
{
	struct store *st = j->port->st;
	bool often = j->kind == MEM_OPEN || j->kind == MEM_LIST;
	struct job **link;

	pthread_mutex_lock(&st->lock);
	if (!st->hold && rnd(st) % 100 < (often ? st->tuning.open_at_once : st->tuning.other_at_once)) {
		do_work(st, j);
		pthread_mutex_unlock(&st->lock);
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
	pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
	return 0;
}

static void *
worker(void *arg)
{
	struct store *st = arg;

	pthread_mutex_lock(&st->lock);
	while (!st->stop) {
		struct job *j = st->hold ? NULL : st->jobs;

		if (j && j->at_ns <= now_ns()) {
			st->jobs = j->next;
			do_work(st, j);
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
store_format(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	return conf->disk_nr > 0 ? 0 : -EINVAL;
}

int
store_open_disks(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len)
{
	struct store *st = calloc(1, sizeof *st);
	const char *seed = getenv("SEED");
	pthread_condattr_t monotonic;

	check(st);
	st->size_bytes =
		conf->disk_nr && conf->disks[0].size_bytes ? conf->disks[0].size_bytes : (uint64_t)1 << 40;
	strncpy(st->path, conf->disk_nr ? conf->disks[0].path : "memory", sizeof st->path - 1);
	st->tuning = (struct mem_store_tuning){ .seed = seed ? strtoull(seed, NULL, 0) : 1,
						.delay_max_us = 200,
						.open_at_once = 50 };
	st->tuning.seed += !st->tuning.seed;
	st->ports_max = conf->ports_max;
	pthread_mutex_init(&st->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&st->work, &monotonic);
	pthread_condattr_destroy(&monotonic);
	check(pthread_create(&st->thread, NULL, worker, st) == 0);
	*ret_store = st;
	return 0;
}

int
store_fsck(const struct store_conf *conf, bool repair, void (*say)(void *cookie, const char *line),
	   void *cookie)
{
	return 0;
}

void
store_close_disks(struct store *st)
{
	if (!st)
		return;
	pthread_mutex_lock(&st->lock);
	check(st->ports == 0);
	st->stop = true;
	pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
	pthread_join(st->thread, NULL);
	while (st->nr)
		index_remove(st, st->index[st->nr - 1]);
	free(st->index);
	pthread_mutex_destroy(&st->lock);
	pthread_cond_destroy(&st->work);
	free(st);
}

int
store_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
	     struct store_port **ret_port)
{
	struct store_port *p = calloc(1, sizeof *p);
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
	*p = (struct store_port){ .st = st, .mb = mb, .thread = pthread_self() };
	*ret_port = p;
	return 0;
}

bool
store_detach(struct store_port *p)
{
	on_port(p);
	if (p->inflight)
		return false;
	pthread_mutex_lock(&p->st->lock);
	p->st->ports--;
	pthread_mutex_unlock(&p->st->lock);
	free(p);
	return true;
}

void
store_quiesce(struct store_port *p)
{
	on_port(p);
}

void
store_sleep(struct store_port *p)
{
	on_port(p);
	p->asleep = true;
}

void
store_wake(struct store_port *p)
{
	check(p->asleep);
	p->asleep = false;
	on_port(p);
}

/* ---- open, read ---- */

static int
key_check(const struct store_key *k)
{
	if (k->bucket_len > STORE_BUCKET_MAX || k->key_len > STORE_KEY_MAX)
		return -ENAMETOOLONG;
	if (!k->bucket_len || !k->key_len || memchr(k->bucket, 0, k->bucket_len) ||
	    memchr(k->key, 0, k->key_len))
		return -EINVAL;
	return 0;
}

static struct obj_state *
obj_state(struct store_obj *obj)
{
	return (struct obj_state *)obj->priv;
}

static void
open_work(struct store *st, struct job *j)
{
	struct version *want = j->v,
		       *v = lookup(st, want->bucket, want->bucket_len, want->key, want->key_len);

	j->result = v ? 0 : bucket_exists(st, want) ? -ENOENT : -ENXIO;
	if (!v)
		return;
	version_put(st, want);
	j->v = v;
	v->refs++;
	st->open_nr++;
}

static void
open_finish(struct store *st, struct job *j)
{
	struct store_obj *obj = container_of(j->op, struct store_obj, op);
	struct version *v = j->v;

	if (j->result < 0) { /* v is what was asked for */
		free(v);
		return;
	}
	obj_state(obj)->v = v;
	obj->size_bytes = v->size_bytes;
	obj->version = v->number;
	obj->crc64 = v->crc64;
	obj->meta = (struct store_meta){
		.etag = v->etag, .mtime_ns = v->mtime_ns, .attrs = v->attrs, .attrs_len = v->attrs_len
	};
	obj->is_open = true;
}

int
store_open(struct store_port *p, const struct store_key *k, struct store_obj *obj)
{
	struct job *j;
	int r = key_check(k);

	obj->is_open = false;
	if (r < 0)
		return r;
	*obj_state(obj) = (struct obj_state){ 0 };
	j = job_new(p, &obj->op, MEM_OPEN, open_work);
	j->finish = open_finish;
	j->v = version_new(k->bucket, k->bucket_len, k->key, k->key_len);
	return job_start(j);
}

void
store_close(struct store_port *p, struct store_obj *obj)
{
	on_port(p);
	if (!obj || !obj->is_open)
		return;
	check(obj_state(obj)->reads == 0);
	pthread_mutex_lock(&p->st->lock);
	version_put(p->st, obj_state(obj)->v);
	p->st->open_nr--;
	pthread_mutex_unlock(&p->st->lock);
	obj->is_open = false;
}

/* What lies behind len bytes of a buffer is nobody's but the store's. */
static void
spoil_slack(struct buf *buf, uint32_t len)
{
	memset(buf->mem + len, 0x5a, buf->cap_bytes + BUF_SLACK_BYTES - len);
}

static void
read_work(struct store *st, struct job *j)
{
	struct version *v = j->v;

	memcpy(j->buf->mem, v->data + j->off, j->len);
	spoil_slack(j->buf, j->len);
	j->result = (int)j->len;
	st->info.read_ops++;
	st->info.read_bytes += j->len;
	if (v->bad_granule >= j->off / STORE_GRANULE &&
	    v->bad_granule <= (j->off + j->len - 1) / STORE_GRANULE) {
		st->info.crc_errors++;
		j->result = -EBADMSG;
	}
}

static void
read_finish(struct store *st, struct job *j)
{
	struct store_read *rd = container_of(j->op, struct store_read, op);
	struct store_obj *obj;

	memcpy(&obj, rd->priv, sizeof obj);
	obj_state(obj)->reads--;
}

int
store_read(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf, uint64_t off,
	   uint32_t len)
{
	struct job *j;

	check(obj->is_open);
	check(off % STORE_GRANULE == 0);
	check(off <= obj->size_bytes && len <= obj->size_bytes - off);
	check(len > 0 && len <= buf->cap_bytes);
	check(len % STORE_GRANULE == 0 || off + len == obj->size_bytes);
	j = job_new(p, &rd->op, MEM_READ, read_work);
	j->finish = read_finish;
	j->v = obj_state(obj)->v;
	j->buf = buf;
	j->off = off;
	j->len = len;
	memcpy(rd->priv, &obj, sizeof obj);
	obj_state(obj)->reads++;
	return job_start(j);
}

/* ---- put ---- */

static struct put_state *
put_state(const struct store_put *put)
{
	struct put_state *ps;

	memcpy(&ps, put->priv, sizeof ps);
	return ps;
}

static void
put_end(struct store_port *p, struct store_put *put)
{
	struct put_state *ps = put_state(put);

	for (uint32_t i = 0; i < ps->nr; i++)
		free(ps->piece[i]);
	pthread_mutex_lock(&p->st->lock);
	p->st->put_nr--;
	version_put(p->st, ps->v);
	pthread_mutex_unlock(&p->st->lock);
	free(ps);
	put->is_started = false;
}

int
store_put_init(struct store_port *p, struct store_put *put, const struct store_key *k, uint64_t size_bytes)
{
	struct store *st = p->st;
	struct put_state *ps;
	int r = key_check(k);

	on_port(p);
	put->is_started = false;
	put->size_bytes = put->crc64 = put->version = 0;
	put->op.port = p;
	if (r < 0)
		return r;
	pthread_mutex_lock(&st->lock);
	r = fault_of(st, MEM_PUT_INIT);
	if (!r && !lookup(st, k->bucket, k->bucket_len, "", 0))
		r = -ENXIO;
	if (!r && size_bytes != STORE_SIZE_UNKNOWN && size_bytes > st->size_bytes - st->used_bytes)
		r = -ENOSPC;
	st->put_nr += r == 0;
	pthread_mutex_unlock(&st->lock);
	if (r < 0)
		return r;
	ps = calloc(1, sizeof *ps);
	check(ps);
	ps->v = version_new(k->bucket, k->bucket_len, k->key, k->key_len);
	ps->expect_bytes = size_bytes;
	memcpy(put->priv, &ps, sizeof ps);
	put->is_started = true;
	return 0;
}

/* Takes note of a piece; its bytes are fetched from the buffer later.  0 or -EINVAL. */
static int
add_piece(struct store_put *put, struct put_state *ps, struct buf *buf, uint32_t len, bool last)
{
	check(!ps->committing && !ps->ended);
	check(len > 0 && len <= buf->cap_bytes && len <= STORE_PIECE);
	check(last || len % STORE_GRANULE == 0);
	if (put->size_bytes + len > ps->expect_bytes || ps->nr == PIECES_MAX)
		return -EINVAL;
	ps->ended = last;
	ps->piece[ps->nr] = malloc(len);
	check(ps->piece[ps->nr]);
	ps->len[ps->nr++] = len;
	put->size_bytes += len;
	put->crc64 = crc64_nvme(put->crc64, buf->mem, len);
	return 0;
}

static void
write_work(struct store *st, struct job *j)
{
	memcpy(j->to, j->buf->mem, j->len);
	spoil_slack(j->buf, j->len);
	st->info.write_ops++;
	st->info.written_bytes += j->len;
}

static void
write_finish(struct store *st, struct job *j)
{
	struct store_write *w = container_of(j->op, struct store_write, op);
	struct put_state *ps;

	memcpy(&ps, w->priv, sizeof ps);
	ps->writes--;
}

int
store_put_write(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
		uint32_t len, bool last)
{
	struct put_state *ps = put_state(put);
	struct job *j;
	int r;

	check(put->is_started);
	r = add_piece(put, ps, buf, len, last);
	if (r < 0)
		return r;
	j = job_new(p, &w->op, MEM_WRITE, write_work);
	j->finish = write_finish;
	j->buf = buf;
	j->to = ps->piece[ps->nr - 1];
	j->len = len;
	memcpy(w->priv, &ps, sizeof ps);
	ps->writes++;
	return job_start(j);
}

static bool
etag_in(const struct store_pre *pre, const struct store_etag *e)
{
	for (int i = 0; i < pre->etag_nr; i++) {
		if (pre->etags[i].parts == e->parts && memcmp(pre->etags[i].sum, e->sum, sizeof e->sum) == 0)
			return true;
	}
	return false;
}

static int
judge(const struct store *st, const struct version *v, const struct store_pre *pre)
{
	const struct version *old = lookup(st, v->bucket, v->bucket_len, v->key, v->key_len);

	if (!bucket_exists(st, v))
		return -ENXIO;
	switch (pre->kind) {
	case PRE_ABSENT:
		return old ? -EEXIST : 0;
	case PRE_MATCH_ANY:
		return old ? 0 : -ENOENT;
	case PRE_MATCH:
		return !old ? -ENOENT : etag_in(pre, &old->etag) ? 0 : -ESTALE;
	case PRE_NONE_MATCH:
		return old && etag_in(pre, &old->etag) ? -EEXIST : 0;
	default:
		return 0;
	}
}

static void
commit_work(struct store *st, struct job *j)
{
	struct store_put *put = container_of(j->op, struct store_put, op);
	struct put_state *ps = put_state(put);
	struct version *v = ps->v;
	uint64_t at = 0;

	if (j->buf)
		write_work(st, j);
	j->result = judge(st, v, &j->pre);
	if (!j->result && v->size_bytes > st->size_bytes - st->used_bytes)
		j->result = -ENOSPC;
	if (j->result < 0)
		return;
	v->data = malloc(v->size_bytes ? v->size_bytes : 1);
	v->attrs = malloc(v->attrs_len ? v->attrs_len : 1);
	check(v->data && v->attrs);
	for (uint32_t i = 0; i < ps->nr; i++) {
		memcpy(v->data + at, ps->piece[i], ps->len[i]);
		at += ps->len[i];
	}
	check(at == v->size_bytes);
	check(crc64_nvme(0, v->data, at) == v->crc64); /* somebody wrote to a buffer that was the store's */
	if (v->attrs_len)
		memcpy(v->attrs, j->attrs, v->attrs_len);
	ps->v = NULL;
	index_set(st, v);
	put->version = v->number;
	st->info.commits++;
}

static void
commit_finish(struct store *st, struct job *j)
{
	put_end(j->port, container_of(j->op, struct store_put, op));
}

int
store_put_commit(struct store_port *p, struct store_put *put, const struct store_commit *c)
{
	struct put_state *ps = put_state(put);
	struct version *v;
	struct job *j;
	int r = 0;

	check(put->is_started && !ps->committing && ps->writes == 0);
	v = ps->v;
	if (c->meta.attrs_len > STORE_ATTRS_MAX || c->pre.etag_nr > STORE_PRE_ETAGS)
		return -EINVAL;
	if (c->last && c->last_len) {
		r = add_piece(put, ps, c->last, c->last_len, true);
	} else if (!ps->nr && c->inline_len) {
		struct buf in = { .mem = (char *)c->inline_data, .cap_bytes = STORE_INLINE_MAX };

		check(c->inline_len <= STORE_INLINE_MAX);
		r = add_piece(put, ps, &in, c->inline_len, true);
		if (r == 0)
			memcpy(ps->piece[0], c->inline_data, c->inline_len);
	}
	if (r < 0)
		return r;
	if (c->have_expect_crc64 && c->expect_crc64 != put->crc64)
		return -EILSEQ;
	if (ps->expect_bytes != STORE_SIZE_UNKNOWN && ps->expect_bytes != put->size_bytes)
		return -EINVAL;
	j = job_new(p, &put->op, MEM_COMMIT, commit_work);
	j->finish = commit_finish;
	j->pre = c->pre;
	j->attrs = c->meta.attrs;
	if (c->last && c->last_len) {
		j->buf = c->last;
		j->to = ps->piece[ps->nr - 1];
		j->len = c->last_len;
	}
	v->size_bytes = put->size_bytes;
	v->crc64 = put->crc64;
	v->etag = c->meta.etag;
	v->mtime_ns = c->meta.mtime_ns ? c->meta.mtime_ns : clock_wall_ns();
	v->attrs_len = c->meta.attrs_len;
	ps->committing = true;
	return job_start(j);
}

void
store_put_abort(struct store_port *p, struct store_put *put)
{
	on_port(p);
	if (!put || !put->is_started)
		return;
	check(put_state(put)->writes == 0);
	check(!put_state(put)->committing);
	put_end(p, put);
}

/* ---- delete, buckets ---- */

static void
delete_work(struct store *st, struct job *j)
{
	struct version *old = lookup(st, j->v->bucket, j->v->bucket_len, j->v->key, j->v->key_len);

	j->result = judge(st, j->v, &j->pre);
	if (j->result < 0 || !old)
		return;
	index_remove(st, old);
	st->info.commits++;
	j->result = 1;
}

static void
bucket_work(struct store *st, struct job *j)
{
	size_t i = place(st, j->v->bucket, j->v->bucket_len, "", 0);
	struct version *old = lookup(st, j->v->bucket, j->v->bucket_len, "", 0),
		       *next = i + 1 < st->nr ? st->index[i + 1] : NULL;

	if (j->is_create) {
		j->result = old ? -EEXIST : 0;
		if (!old) {
			j->v->refs++;
			index_set(st, j->v);
		}
	} else {
		bool holds = old && next && next->bucket_len == old->bucket_len &&
			     memcmp(next->bucket, old->bucket, old->bucket_len) == 0;

		j->result = !old ? -ENXIO : holds ? -ENOTEMPTY : 0;
		if (j->result == 0)
			index_remove(st, old);
	}
}

static void
delete_finish(struct store *st, struct job *j)
{
	pthread_mutex_lock(&st->lock);
	version_put(st, j->v);
	pthread_mutex_unlock(&st->lock);
}

int
store_delete(struct store_port *p, const struct store_key *k, const struct store_pre *pre,
	     struct store_del *del)
{
	struct job *j;
	int r = key_check(k);

	if (r < 0)
		return r;
	j = job_new(p, &del->op, MEM_DELETE, delete_work);
	j->finish = delete_finish;
	j->v = version_new(k->bucket, k->bucket_len, k->key, k->key_len);
	if (pre)
		j->pre = *pre;
	return job_start(j);
}

static int
bucket_start(struct store_port *p, const char *name, size_t len, struct store_del *op, bool is_create)
{
	struct job *j;

	if (len > STORE_BUCKET_MAX)
		return -ENAMETOOLONG;
	if (!len || memchr(name, 0, len))
		return -EINVAL;
	j = job_new(p, &op->op, MEM_DELETE, bucket_work);
	j->finish = delete_finish;
	j->v = version_new(name, len, "", 0);
	j->v->mtime_ns = clock_wall_ns();
	j->is_create = is_create;
	return job_start(j);
}

int
store_bucket_create(struct store_port *p, const char *name, size_t len, struct store_del *op)
{
	return bucket_start(p, name, len, op, true);
}

int
store_bucket_delete(struct store_port *p, const char *name, size_t len, struct store_del *op)
{
	return bucket_start(p, name, len, op, false);
}

int
store_bucket_head(struct store_port *p, const char *name, size_t len, uint64_t *ret_ctime_ns)
{
	struct version *v;

	on_port(p);
	pthread_mutex_lock(&p->st->lock);
	v = lookup(p->st, name, len, "", 0);
	if (v && ret_ctime_ns)
		*ret_ctime_ns = v->mtime_ns;
	pthread_mutex_unlock(&p->st->lock);
	return v ? 0 : -ENXIO;
}

/* ---- listing ---- */

static void
list_work(struct store *st, struct job *j)
{
	struct store_list *ls = container_of(j->op, struct store_list, op);

	j->result = ls->bucket && !lookup(st, ls->bucket, ls->bucket_len, "", 0) ? -ENXIO : 0;
}

/* Is v on the page's list, and behind `after`? */
static bool
listed(const struct store_list *ls, const struct version *v)
{
	const char *name = ls->bucket ? v->key : v->bucket;
	size_t len = ls->bucket ? v->key_len : v->bucket_len;
	int c;

	if (ls->bucket ? !v->key_len || v->bucket_len != ls->bucket_len ||
				 memcmp(v->bucket, ls->bucket, ls->bucket_len) != 0
		       : v->key_len != 0)
		return false;
	if (len < ls->prefix_len || (ls->prefix_len && memcmp(name, ls->prefix, ls->prefix_len) != 0))
		return false;
	if (!ls->after)
		return true;
	c = memcmp(name, ls->after, len < ls->after_len ? len : ls->after_len);
	return c ? c > 0 : len > ls->after_len;
}

static void
list_finish(struct store *st, struct job *j)
{
	struct store_list *ls = container_of(j->op, struct store_list, op);
	struct version **page;
	size_t nr = 0, given = 0;
	bool go_on = true;

	if (j->result < 0)
		return;
	pthread_mutex_lock(&st->lock);
	page = calloc(st->nr + 1, sizeof(struct version *));
	check(page);
	for (size_t i = 0; i < st->nr; i++) {
		if (listed(ls, st->index[i])) {
			st->index[i]->refs++;
			page[nr++] = st->index[i];
		}
	}
	pthread_mutex_unlock(&st->lock);
	while (go_on && given < nr && given < ls->max) {
		const struct version *v = page[given++];
		struct store_entry e = { .name = ls->bucket ? v->key : v->bucket,
					 .name_len = ls->bucket ? v->key_len : v->bucket_len,
					 .size_bytes = v->size_bytes,
					 .mtime_ns = v->mtime_ns,
					 .version = v->number,
					 .etag = v->etag };

		go_on = ls->entry(ls, &e);
	}
	ls->more = given < nr;
	ls->op.result = (int)given;
	pthread_mutex_lock(&st->lock);
	for (size_t i = 0; i < nr; i++)
		version_put(st, page[i]);
	pthread_mutex_unlock(&st->lock);
	free(page);
}

int
store_list(struct store_port *p, struct store_list *ls)
{
	struct job *j;

	if (ls->bucket_len > STORE_BUCKET_MAX || ls->prefix_len > STORE_KEY_MAX ||
	    ls->after_len > STORE_KEY_MAX)
		return -ENAMETOOLONG;
	ls->more = false;
	j = job_new(p, &ls->op, MEM_LIST, list_work);
	j->finish = list_finish;
	return job_start(j);
}

/* ---- what operators see ---- */

int
store_disk_nr(const struct store *st)
{
	return 1;
}

void
store_disk_info(const struct store *const_st, int disk, struct store_disk_info *ret_info)
{
	struct store *st = (struct store *)const_st;

	pthread_mutex_lock(&st->lock);
	*ret_info = st->info;
	ret_info->path = st->path;
	ret_info->size_bytes = st->size_bytes;
	ret_info->free_bytes = st->size_bytes - st->used_bytes;
	ret_info->pins = st->open_nr;
	ret_info->objects = 0;
	for (size_t i = 0; i < st->nr; i++)
		ret_info->objects += st->index[i]->key_len > 0;
	pthread_mutex_unlock(&st->lock);
}

/* ---- mem_store.h ---- */

void
mem_store_tune(struct store *st, const struct mem_store_tuning *tuning)
{
	pthread_mutex_lock(&st->lock);
	st->tuning = *tuning;
	st->tuning.seed += !st->tuning.seed;
	pthread_mutex_unlock(&st->lock);
}

void
mem_store_hold(struct store *st, bool hold)
{
	pthread_mutex_lock(&st->lock);
	st->hold = hold;
	pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
}

void
mem_store_fail(struct store *st, enum mem_fault kind, int error, unsigned skip, unsigned times)
{
	pthread_mutex_lock(&st->lock);
	st->fault[kind] = (struct fault){ error, skip, times };
	pthread_mutex_unlock(&st->lock);
}

int
mem_store_spoil(struct store *st, const char *bucket, const char *key, uint64_t off)
{
	struct version *v;
	int r = -ENOENT;

	pthread_mutex_lock(&st->lock);
	v = lookup(st, bucket, strlen(bucket), key, strlen(key));
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
get(struct store *st, const unsigned *value)
{
	unsigned n;

	pthread_mutex_lock(&st->lock);
	n = *value;
	pthread_mutex_unlock(&st->lock);
	return n;
}

unsigned
mem_store_inflight(struct store *st)
{
	return get(st, &st->inflight);
}

unsigned
mem_store_open_nr(struct store *st)
{
	return get(st, &st->open_nr);
}

unsigned
mem_store_put_nr(struct store *st)
{
	return get(st, &st->put_nr);
}
