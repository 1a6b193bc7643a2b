/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_alone - starts an engine that stores a placement map, and is started by a set (struct store_member_ops), without a set: one
 * disk, all keys, and a quota ledger of its own.
 */
#ifndef GANTRY_TESTS_FAKE_ENGINE_ALONE_H
#define GANTRY_TESTS_FAKE_ENGINE_ALONE_H

#include "extent/extent.h"
#include "model/quota.h"
#include "store/ops.h"

static struct store_ops engine_alone_ops;

static inline void
engine_alone_stop(struct store *st)
{
	struct quota_book *quotas = st->quotas;

	extent_ops.stop(st);
	quota_book_free(quotas);
}

static inline int
engine_alone_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len)
{
	const struct store_member_ops *m = extent_ops.member;
	struct store_member who;
	struct quota_book *quotas;
	struct store *st;
	uint64_t start_no;
	int e = m->open(conf, &st, &who, err, err_len);

	if (e < 0)
		return e;
	st->ops = &engine_alone_ops;
	e = quota_book_new(1, &quotas);
	if (e == 0) {
		st->quotas = quotas;
		e = m->recover(st, NULL, conf->disks.index_bytes, quotas, 0, &start_no, err, err_len);
	}
	if (e == 0)
		e = m->begin(st, start_no, who.is_behind, err, err_len);
	if (e == 0)
		e = m->serve(st, err, err_len);
	if (e < 0)
		engine_alone_stop(st);
	else
		*ret_store = st;
	return e;
}

/* Returns the operations of such an engine. */
static inline const struct store_ops *
engine_alone(void)
{
	engine_alone_ops = extent_ops;
	engine_alone_ops.start = engine_alone_start;
	engine_alone_ops.stop = engine_alone_stop;
	return &engine_alone_ops;
}

#endif
