/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in a directory of its own, one loop per thread, and the operations as blocking calls: what the
 * tests of the engine share.  Each test program gets its own directory under TMPDIR (default /var/tmp, which
 * should be on a disk).
 */
#ifndef GANTRY_TESTS_STORE_HARNESS_H
#define GANTRY_TESTS_STORE_HARNESS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "base/log.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "ring/ring.h"
#include "extent/extent.h"
#include "store/store.h"
#include "tests/fake/engine_alone.h"
#include "tests/fake/wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

/* How long to ask again for what comes by and by: no disk is so slow. */
#define PATIENCE_NS (100 * NS_PER_S)
/* Usual time of a wait for packed objects: a batch begins half a second after the last change, and rests follow. */
#define PACK_USUAL_NS (5 * NS_PER_S)

/* ---- random ---- */

static inline uint64_t
rnd(uint64_t *s)
{
	*s += 0x9e3779b97f4a7c15u;
	uint64_t z = *s;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint64_t
seed_from_env(void)
{
	const char *e = getenv("SEED");
	uint64_t seed = e ? strtoull(e, NULL, 0) : clock_wall_ns();

	printf("SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

/* The bytes of an object follow from its seed. */
static inline void
fill(void *mem, size_t len, uint64_t seed, uint64_t off)
{
	uint64_t *p = mem;

	for (size_t i = 0; i < (len + 7) / 8; i++)
		p[i] = (seed + 1) * 0x9e3779b97f4a7c15u ^ (off / 8 + i) * 0xd6e8feb86659fd93u;
}

/* ---- directory ---- */

static inline void
dir_make(char path[128])
{
	const char *base = getenv("TMPDIR");

	snprintf(path, 128, "%s/gantry-store-XXXXXX", base ? base : "/var/tmp");
	check(mkdtemp(path));
}

static inline void
dir_remove(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

static inline struct store_conf
conf_for(struct store_disk_conf *dc, const char *path, uint64_t size)
{
	*dc = (struct store_disk_conf){ .path = path, .size_bytes = size };
	return (struct store_conf){ .ops = engine_alone(),
				    .disks.disk = dc,
				    .disks.nr = 1,
				    .disks.index_bytes = 64 * MIB,
				    .disks.lock_wait_ns = PATIENCE_NS,
				    .ports_max = 4 };
}

/* ---- one thread's loop ---- */

struct loop {
	struct ring *ring;
	struct mailbox mb;
	struct timers timers;
	struct store_port *p;
	struct bufpool bufs;
};

static inline void
loop_turn(struct loop *l)
{
	mailbox_run(&l->mb, 0);
	timers_run(&l->timers, clock_ns());
	store_turn(l->p, TURN_QUIESCENT);
	check(ring_turn(l->ring, 100 * NS_PER_US) >= 0);
}

static inline void
loop_start_with(struct loop *l, struct store *st, size_t buf_bytes)
{
	memset(l, 0, sizeof *l);
	check(ring_new(&(struct ring_params){ .entries = 128 }, &l->ring) == 0);
	check(mailbox_init(&l->mb) == 0);
	check(bufpool_init(&l->bufs, buf_bytes) == 0);
	check(store_attach(st, l->ring, &l->mb, &l->timers, &l->p) == 0);
}

static inline void
loop_start(struct loop *l, struct store *st)
{
	loop_start_with(l, st, 24 * MIB);
}

static inline void
loop_stop(struct loop *l)
{
	wait_until(store_detach(l->p))
		loop_turn(l);
	l->p = NULL;
	ring_free(l->ring);
	mailbox_fini(&l->mb);
	bufpool_fini(&l->bufs);
}

/* A turn for each millisecond at least, also when somebody else had the CPU meanwhile. */
static inline void
loop_for(struct loop *l, uint64_t ns)
{
	uint64_t until = clock_ns() + ns;

	for (uint64_t turns = 0; clock_ns() < until || turns < ns / NS_PER_MS; turns++)
		loop_turn(l);
}

/* ---- blocking operations ---- */

/* Buckets whose names begin with a 2 are those of keys with two copies. */
static inline bool
has_two(const char *bucket)
{
	return bucket[0] == '2';
}

static inline struct store_key
key_of(const char *bucket, const char *key)
{
	return (struct store_key){ .bucket = bucket,
				   .key = key,
				   .bucket_len = (uint16_t)strlen(bucket),
				   .key_len = (uint16_t)strlen(key),
				   .copies = has_two(bucket) ? 2 : 1 };
}

struct waiter {
	bool done;
};

static inline void
on_put(struct store_op *op)
{
	op->msg.fn = NULL;
	op->port = NULL;
}

static inline void
op_arm(struct store_op *op, struct store_port *p)
{
	op->done = on_put;
	op->port = p;
}

/* Turns the loop until op is over (done() cleared its port). */
static inline int
op_wait(struct loop *l, struct store_op *op)
{
	wait_until(!op->port)
		loop_turn(l);
	return op->result;
}

static inline int
bucket_make(struct loop *l, const char *name)
{
	struct store_del *op = calloc(1, sizeof *op);
	int r;

	op->op.done = on_put;
	r = store_bucket_create(l->p, name, strlen(name), 0, op);
	if (r == 0)
		r = op_wait(l, &op->op);
	free(op);
	return r;
}

static inline int
bucket_remove(struct loop *l, const char *name)
{
	struct store_del *op = calloc(1, sizeof *op);
	int r;

	op->op.done = on_put;
	r = store_bucket_delete(l->p, name, strlen(name), op);
	if (r == 0)
		r = op_wait(l, &op->op);
	free(op);
	return r;
}

/* The engine looks at published state: it finishes when it starts. */
static inline int
bucket_head(struct loop *l, const char *name, uint64_t *ret_ctime_ns)
{
	struct store_stat s = { .ctime_ns = 0 };

	check(store_bucket_head(l->p, name, strlen(name), &s) > 0);
	if (s.op.result == 0 && ret_ctime_ns)
		*ret_ctime_ns = s.ctime_ns;
	return s.op.result;
}

/* Their length, of which up to cap bytes are copied, or -ENXIO. */
static inline int
bucket_get_attrs(struct loop *l, const char *name, void *attrs, uint32_t cap)
{
	struct store_stat s = { .attrs_len = 0 };

	check(store_bucket_get_attrs(l->p, name, strlen(name), attrs, cap, &s) > 0);
	return s.op.result < 0 ? s.op.result : (int)s.attrs_len;
}

static inline int
upload_stat(struct loop *l, const struct store_key *k, const uint8_t *id, void *attrs, uint32_t cap,
	    uint32_t *ret_len)
{
	struct store_stat s = { .attrs_len = 0 };

	check(store_upload_stat(l->p, k, id, attrs, cap, &s) > 0);
	if (ret_len)
		*ret_len = s.attrs_len;
	return s.op.result;
}

static inline int
obj_delete(struct loop *l, const char *bucket, const char *key, const struct store_pre *pre)
{
	struct store_del *op = calloc(1, sizeof *op);
	struct store_key k = key_of(bucket, key);
	int r;

	op->op.done = on_put;
	r = store_delete(l->p, &k, pre, op);
	if (r == 0)
		r = op_wait(l, &op->op);
	free(op);
	return r;
}

struct put_args {
	const char *bucket, *key;
	uint64_t size, seed;
	uint64_t announce; /* 0: size */
	const struct store_pre *pre;
	struct store_etag etag;
	const void *attrs;
	uint32_t attrs_len;
	uint32_t piece; /* 0: 1 MiB */
	bool no_ride;   /* the last piece by store_put_write() */
	bool wrong_crc; /* expects another content */
	uint64_t ret_version;
};

/* One PUT, pieces one after the other. */
static inline int
obj_put(struct loop *l, struct put_args *a)
{
	struct store_put *put = calloc(1, sizeof *put);
	struct store_write *w = calloc(1, sizeof *w);
	struct store_key k = key_of(a->bucket, a->key);
	struct store_commit c = { .meta = { .etag = a->etag, .attrs = a->attrs, .attrs_len = a->attrs_len } };
	uint32_t piece = a->piece ? a->piece : STORE_PIECE;
	struct buf *b = NULL;
	char small[STORE_INLINE_MAX + 8];
	uint64_t off = 0;
	int r = store_put_init(l->p, put, &k, a->announce ? a->announce : a->size);

	if (a->pre)
		c.pre = *a->pre;
	while (r == 0 && a->size > STORE_INLINE_MAX && off < a->size) {
		uint64_t n = a->size - off < piece ? a->size - off : piece;
		bool last = off + n == a->size;

		b = bufpool_get(&l->bufs, n > BUF_SMALL_BYTES ? BUF_LARGE : BUF_SMALL);
		check(b);
		fill(b->mem, n, a->seed, off);
		off += n;
		if (last && !a->no_ride) {
			c.last = b;
			c.last_len = (uint32_t)n;
			break;
		}
		w->op.done = on_put;
		r = store_put_write(l->p, put, w, b, (uint32_t)n, last);
		if (r == 0)
			r = op_wait(l, &w->op);
		bufpool_put(&l->bufs, b);
		b = NULL;
	}
	if (r == 0 && a->size <= STORE_INLINE_MAX) {
		fill(small, a->size, a->seed, 0);
		c.inline_data = small;
		c.inline_len = (uint32_t)a->size;
	}
	if (a->wrong_crc) {
		c.have_expect_crc64 = true;
		c.expect_crc64 = 12345;
	}
	put->op.done = on_put;
	if (r == 0) {
		r = store_put_commit(l->p, put, &c);
		if (r == 0)
			r = op_wait(l, &put->op);
	}
	store_put_abort(l->p, put);
	a->ret_version = put->version;
	if (b)
		bufpool_put(&l->bufs, b);
	free(w);
	free(put);
	return r;
}

static inline int
put_simple(struct loop *l, const char *bucket, const char *key, uint64_t size, uint64_t seed)
{
	struct put_args a = { .bucket = bucket, .key = key, .size = size, .seed = seed };

	return obj_put(l, &a);
}

/* Reads an open object whole and compares.  0, or what the read said; -EILSEQ: other bytes. */
static inline int
obj_read(struct loop *l, struct store_obj *obj, uint64_t seed)
{
	struct store_read *rd = calloc(1, sizeof *rd);
	struct buf *b = bufpool_get(&l->bufs, BUF_LARGE);
	char *want = malloc(STORE_PIECE + 8);
	uint64_t crc = 0;
	int r = 0;

	check(b);
	for (uint64_t off = 0; r == 0 && off < obj->size_bytes;) {
		uint64_t n = obj->size_bytes - off < STORE_PIECE ? obj->size_bytes - off : STORE_PIECE;

		rd->op.done = on_put;
		memset(b->mem, 0xee, b->cap_bytes);
		r = store_read(l->p, obj, rd, b, off, (uint32_t)n);
		if (r >= 0)
			r = r ? rd->op.result : op_wait(l, &rd->op);
		if (r < 0)
			break;
		if (r != (int)n) {
			r = -EPROTO;
			break;
		}
		fill(want, n, seed, off);
		r = memcmp(want, b->mem + rd->lead, n) == 0 ? 0 : -EILSEQ;
		crc = off ? crc64_nvme_combine(crc, crc64_nvme(0, b->mem + rd->lead, n), n)
			  : crc64_nvme(0, b->mem + rd->lead, n);
		off += n;
	}
	if (r == 0 && obj->size_bytes && crc != obj->crc64)
		r = -EILSEQ;
	free(want);
	bufpool_put(&l->bufs, b);
	free(rd);
	return r;
}

static inline int
obj_open(struct loop *l, const char *bucket, const char *key, struct store_obj *obj)
{
	struct store_key k = key_of(bucket, key);
	int r;

	memset(obj, 0, sizeof *obj);
	obj->op.done = on_put;
	r = store_open(l->p, &k, obj);
	if (r == 0) {
		r = op_wait(l, &obj->op);
		obj->op.port = l->p; /* which reads go to */
		return r;
	}
	return r < 0 ? r : obj->op.result;
}

/* 0: there, of this size and content. */
static inline int
obj_check(struct loop *l, const char *bucket, const char *key, uint64_t size, uint64_t seed)
{
	struct store_obj *obj = calloc(1, sizeof *obj);
	int r = obj_open(l, bucket, key, obj);

	if (r == 0)
		r = obj->size_bytes == size ? obj_read(l, obj, seed) : -EMSGSIZE;
	store_close(l->p, obj);
	free(obj);
	return r;
}

#endif
