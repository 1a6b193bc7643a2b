/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of engines in memory with one port or several, and the operations as blocking calls: what the tests
 * of the set share.  Threads take turns (tests/fake/turns.h).
 */
#ifndef GANTRY_TESTS_SET_RIG_H
#define GANTRY_TESTS_SET_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "set/set_int.h"
#include "tests/fake/mem_disks.h"
#include "tests/fake/mem_store.h"
#include "tests/fake/store_loop.h"
#include "tests/fake/turns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENGINES_MAX 3

static struct store *st;

static inline struct store *
engine(int i)
{
	return set_engine(set_of(st), i);
}

static inline uint64_t
seed_from_env(void)
{
	const char *s = getenv("SEED");
	uint64_t seed = s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);

	printf("SEED=%llu\n", (unsigned long long)seed);
	return seed + !seed;
}

static inline uint64_t
rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static inline struct store_conf
set_conf(struct store_disk_conf disks[ENGINES_MAX], int engines, int ports)
{
	static const char *const paths[ENGINES_MAX] = { "memory-0", "memory-1", "memory-2" };

	for (int i = 0; i < ENGINES_MAX; i++)
		disks[i] = (struct store_disk_conf){ .path = paths[i], .size_bytes = 1 << 30 };
	return (struct store_conf){ .ops = &store_set_ops,
				    .disks.engine = &mem_engine_ops,
				    .disks.engines_max = ENGINES_MAX,
				    .disks.disk = disks,
				    .disks.nr = engines,
				    .ports_max = ports };
}

static inline void
set_begin(int engines, int ports, const struct mem_store_tuning *tuning)
{
	struct store_disk_conf disks[ENGINES_MAX];
	struct store_conf conf = set_conf(disks, engines, ports);
	char err[128];

	turns_begin(tuning->seed);
	turns_step = mem_disks_step;
	mem_disks_begin(tuning->seed);
	assert_int_equal(store_format(&conf, true, err, sizeof err), 0);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), 0);
	for (int i = 0; i < engines; i++) {
		struct mem_store_tuning t = *tuning;

		t.seed += (uint64_t)i;
		mem_store_tune(engine(i), &t);
	}
}

static inline void
loop_begin(struct loop *l)
{
	assert_int_equal(mailbox_init(&l->mb), 0);
	assert_int_equal(store_attach(st, NULL, &l->mb, NULL, &l->port), 0);
}

/* Nothing may be left of what the tests did. */
static inline void
set_end(void)
{
	for (int i = 0; i < set_engines(set_of(st)); i++) {
		assert_int_equal(mem_store_inflight(engine(i)), 0);
		assert_int_equal(mem_store_open_nr(engine(i)), 0);
		assert_int_equal(mem_store_put_nr(engine(i)), 0);
	}
	store_stop(st);
	mem_disks_begin(0);
}

/* ---- blocking operations ---- */

/* That it has none to call is waited for. */
static inline void
on_done(struct store_op *op)
{
	op->done = NULL;
}

static inline int
wait_for(struct loop *l, struct store_op *op, int r)
{
	if (r)
		return r < 0 ? r : op->result;
	while (op->done)
		loop_turn(l);
	return op->result;
}

/* The value of a start call, waited for. */
#define DO(l, op_, call) ((op_)->done = on_done, wait_for((l), (op_), (call)))

static inline struct store_key
key_of(const char *bucket, const char *key)
{
	return (struct store_key){ bucket, key, (uint16_t)strlen(bucket), (uint16_t)strlen(key) };
}

static inline int
make(struct loop *l, const char *bucket)
{
	struct store_del op;

	return DO(l, &op.op, store_bucket_create(l->port, bucket, strlen(bucket), 0, &op));
}

static inline int
make_with(struct loop *l, const char *bucket, unsigned copies)
{
	struct store_del op;

	return DO(l, &op.op, store_bucket_create(l->port, bucket, strlen(bucket), copies, &op));
}

/* On how many disks p says that a bucket's keys are, or an error. */
static inline int
copies_of(struct loop *l, struct store_port *p, const char *bucket)
{
	struct store_stat s = { .copies = 77 };
	int r = DO(l, &s.op, store_bucket_head(p, bucket, strlen(bucket), &s));

	return r < 0 ? r : (int)s.copies;
}

static inline int
removed(struct loop *l, const char *bucket)
{
	struct store_del op;

	return DO(l, &op.op, store_bucket_delete(l->port, bucket, strlen(bucket), &op));
}

static inline int
head(struct loop *l, struct store_port *p, const char *bucket, uint64_t *ret_ctime_ns)
{
	struct store_stat s = { .ctime_ns = 0 };
	int r = DO(l, &s.op, store_bucket_head(p, bucket, strlen(bucket), &s));

	if (ret_ctime_ns)
		*ret_ctime_ns = s.ctime_ns;
	return r;
}

static inline int
put(struct loop *l, struct store_port *p, const char *bucket, const char *key)
{
	struct store_key k = key_of(bucket, key);
	struct store_commit c = { .inline_data = key, .inline_len = (uint32_t)strlen(key) % 200 };
	struct store_put op;
	int r;

	c.meta.attrs = key;
	c.meta.attrs_len = (uint32_t)strlen(key);
	r = store_put_init(p, &op, &k, c.inline_len);
	if (r < 0)
		return r;
	r = DO(l, &op.op, store_put_commit(p, &op, &c));
	store_put_abort(p, &op);
	return r;
}

static inline int
del(struct loop *l, struct store_port *p, const char *bucket, const char *key)
{
	struct store_key k = key_of(bucket, key);
	struct store_del op;

	return DO(l, &op.op, store_delete(p, &k, NULL, &op));
}

/* 1: there; 0: not there. */
static inline int
is_there(struct loop *l, struct store_port *p, const char *bucket, const char *key)
{
	struct store_key k = key_of(bucket, key);
	struct store_obj o;
	int r = DO(l, &o.op, store_open(p, &k, &o));

	store_close(p, &o);
	return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

/* Writes a name whose key the i-th engine has, the nr-th of such. */
static inline const char *
key_on(char name[32], const char *bucket, int i, int nr)
{
	for (int n = 0;; n++) {
		struct store_key k;

		snprintf(name, 32, "key-%d", n);
		k = key_of(bucket, name);
		if (set_primary(set_of(st), &k) == i && nr-- == 0)
			return name;
	}
}

static inline struct store_port *
port_of(struct loop *l, int i)
{
	return port_engine(set_port(l->port), i);
}

#endif
