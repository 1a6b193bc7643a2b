/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the walks share: the store in memory, whose operations end when the test says so, and a
 * clock that stands still until nothing is left to do.  So a walk of hours takes no time and a seed repeats
 * it (SEED=).  Included once per program.
 */
#ifndef GANTRY_TESTS_WALK_RIG_H
#define GANTRY_TESTS_WALK_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "store/store.h"
#include "tests/fake/mem_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGAN_NS (1700000000 * NS_PER_S) /* November 2023: it is the wall clock too */

static struct {
	struct store *store;
	struct store_port *port;
	struct mailbox mb;
	struct timers timers;
	uint64_t now_ns;
	bool is_held; /* what was started does not end */
} rig;

static inline int
rig_start(void **state)
{
	struct store_disk_conf disk = { .path = "memory", .size_bytes = 1u << 30 };
	struct store_conf conf = { .ops = &mem_store_ops,
				   .disks.disk = &disk,
				   .disks.nr = 1,
				   .disks.index_bytes = 64u << 20,
				   .ports_max = 1 };
	const char *seed = getenv("SEED");
	struct mem_store_tuning t = { .seed = seed ? strtoull(seed, NULL, 0) : 1,
				      .open_at_once = 50,
				      .stat_at_once = 50,
				      .other_at_once = 50 };
	char err[256] = "";

	log_set_level((enum log_level) - 1);
	memset(&rig, 0, sizeof rig);
	rig.now_ns = BEGAN_NS;
	clock_fake(&rig.now_ns);
	assert_int_equal(mailbox_init(&rig.mb), 0);
	if (store_start(&conf, &rig.store, err, sizeof err) < 0)
		fail_msg("%s", err);
	mem_store_manual(rig.store, true);
	mem_store_tune(rig.store, &t);
	assert_int_equal(store_attach(rig.store, NULL, &rig.mb, &rig.timers, &rig.port), 0);
	return 0;
}

/* Whoever walked is gone by then. */
static inline int
rig_stop(void **state)
{
	assert_int_equal(timers_next(&rig.timers), UINT64_MAX);
	assert_int_equal(mem_store_inflight(rig.store), 0);
	assert_int_equal(mem_store_open_nr(rig.store), 0);
	assert_true(store_detach(rig.port));
	store_stop(rig.store);
	mailbox_fini(&rig.mb);
	clock_fake(NULL);
	return 0;
}

/* Ends one operation and runs what is due.  Time stands still. */
static inline void
rig_turn(void)
{
	if (!rig.is_held)
		mem_store_step(rig.store, 1);
	mailbox_run(&rig.mb, 0);
	timers_run(&rig.timers, rig.now_ns);
	store_turn(rig.port, TURN_QUIESCENT);
}

/* Is there something that goes on without time passing? */
static inline bool
rig_is_busy(void)
{
	return (!rig.is_held && mem_store_inflight(rig.store) > 0) || timers_next(&rig.timers) <= rig.now_ns;
}

/* Time passes, and what is due in it happens. */
static inline void
rig_pass(uint64_t ns)
{
	uint64_t end = rig.now_ns + ns;

	for (;;) {
		uint64_t at;

		while (rig_is_busy())
			rig_turn();
		at = timers_next(&rig.timers);
		if (at > end)
			break;
		rig.now_ns = at;
	}
	rig.now_ns = end;
}

/* Turns until cond, and lets time pass to the next timer where nothing else goes on. */
#define rig_until(cond)                                                                                      \
	do {                                                                                                 \
		for (int rig_left_ = 1000000; !(cond); rig_left_--) {                                        \
			if (rig_left_ == 0 || (!rig_is_busy() && timers_next(&rig.timers) == UINT64_MAX))    \
				fail_msg("never: %s", #cond);                                                \
			if (!rig_is_busy())                                                                  \
				rig.now_ns = timers_next(&rig.timers);                                       \
			rig_turn();                                                                          \
		}                                                                                            \
	} while (0)

/* ---- what is in the store ---- */

static bool rig_op_done;

static inline void
rig_on_done(struct store_op *op)
{
	rig_op_done = true;
}

/* Waits for the operation alone: no timer runs. */
static inline int
rig_wait(struct store_op *op, int r)
{
	while (r == 0 && !rig_op_done) {
		mem_store_step(rig.store, 1);
		mailbox_run(&rig.mb, 0);
	}
	return r < 0 ? r : op->result;
}

#define RIG_DO(op_, call) ((op_)->done = rig_on_done, rig_op_done = false, rig_wait(op_, call))

static inline struct store_key
rig_key(const char *bucket, const char *key)
{
	return (struct store_key){ .bucket = bucket,
				   .key = key,
				   .bucket_len = (uint16_t)strlen(bucket),
				   .key_len = (uint16_t)strlen(key) };
}

static inline void
make_bucket(const char *name)
{
	static struct store_del op;

	assert_int_equal(RIG_DO(&op.op, store_bucket_create(rig.port, name, strlen(name), 0, &op)), 0);
}

static inline void
remove_bucket(const char *name)
{
	static struct store_del op;

	assert_int_equal(RIG_DO(&op.op, store_bucket_delete(rig.port, name, strlen(name), &op)), 0);
}

static inline void
make_object(const char *bucket, const char *key)
{
	static struct store_put put;
	struct store_key k = rig_key(bucket, key);
	struct store_commit c = { .inline_data = "abc", .inline_len = 3 };

	assert_int_equal(store_put_init(rig.port, &put, &k, 3), 0);
	assert_int_equal(RIG_DO(&put.op, store_put_commit(rig.port, &put, &c)), 0);
}

static inline void
make_objects(const char *bucket, const char *prefix, int nr)
{
	for (int i = 0; i < nr; i++) {
		char key[64];

		snprintf(key, sizeof key, "%s%04d", prefix, i);
		make_object(bucket, key);
	}
}

/* 1: it was there. */
static inline int
remove_object(const char *bucket, const char *key)
{
	static struct store_del op;
	struct store_key k = rig_key(bucket, key);

	return RIG_DO(&op.op, store_delete(rig.port, &k, NULL, &op));
}

static inline bool
is_there(const char *bucket, const char *key)
{
	static struct store_obj obj;
	struct store_key k = rig_key(bucket, key);
	int r = RIG_DO(&obj.op, store_open(rig.port, &k, &obj));

	store_close(rig.port, &obj);
	return r == 0;
}

#endif
