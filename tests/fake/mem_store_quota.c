/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: quotas.  A change that is checked counts at once, without a pending state.  See mem_store.c. */
#include "tests/fake/mem_store_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns the bytes for which a removed and open version counts; bytes of small objects are in the index. */
static int64_t
kept_bytes(const struct version *v)
{
	return quota_kept_bytes(v->size_bytes, v->size_bytes <= STORE_INLINE_MAX);
}

int
mem_quota_change(struct mem_store *st, const struct version *like, const struct quota_change *c)
{
	const struct version *bucket = mem_bucket(st, like);
	/* Without a placement map each key has one copy. */
	const struct quota_change all = quota_of_copies(*c, st->member && bucket->copies > 1);
	struct quota_row *row;
	int e = 0;

	quota_lock(st->quotas);
	row = quota_find(st->quotas, st->counter, like->bucket, like->bucket_len);
	check(row && quota_version(row, st->counter));
	e = quota_judge(st->quotas, st->counter, row, &all, true);
	if (e == 0)
		quota_count(st->quotas, st->counter, row, &all);
	quota_unlock(st->quotas);
	return e;
}

void
mem_quota_keep(struct mem_store *st, struct version *v)
{
	if (v->refs < 2 || v->kept_in || !v->key_len || !quota_is_active(st->quotas))
		return;
	quota_lock(st->quotas);
	v->kept_in = quota_find(st->quotas, st->counter, v->bucket, v->bucket_len);
	v->kept_by = st;
	if (v->kept_in)
		quota_keep(st->quotas, st->counter, v->kept_in, kept_bytes(v));
	quota_unlock(st->quotas);
}

void
mem_quota_keep_end(struct version *v)
{
	if (!v->kept_in)
		return;
	quota_lock(v->kept_by->quotas);
	quota_keep_end(v->kept_by->quotas, v->kept_by->counter, v->kept_in, kept_bytes(v));
	quota_unlock(v->kept_by->quotas);
	v->kept_in = NULL;
}

int
mem_quota_judge_bucket(struct mem_store *st, const struct version *v)
{
	int e;

	quota_lock(st->quotas);
	e = quota_judge_bucket(st->quotas, v->bucket, v->bucket_len, v->attrs_len);
	quota_unlock(st->quotas);
	return e;
}

int
mem_quota_docs(struct mem_store *st, const struct version *b, uint32_t doc_bytes)
{
	struct quota_row *row;
	int64_t more;
	int e;

	quota_lock(st->quotas);
	row = quota_find(st->quotas, st->counter, b->bucket, b->bucket_len);
	e = quota_judge_docs(st->quotas, st->counter, row, doc_bytes, &more);
	if (e == 0)
		quota_count_docs(st->quotas, st->counter, row, doc_bytes - quota_docs(row, st->counter));
	quota_unlock(st->quotas);
	return e;
}

void
mem_quota_bucket(struct mem_store *st, const struct version *v, bool is_there)
{
	struct quota_row *row;

	quota_lock(st->quotas);
	if (is_there)
		check(quota_make(st->quotas, st->counter, v->bucket, v->bucket_len) == 0);
	row = quota_find(st->quotas, st->counter, v->bucket, v->bucket_len);
	if (is_there) {
		quota_born(st->quotas, st->counter, row, v->number);
		quota_count_docs(st->quotas, st->counter, row, v->attrs_len);
		quota_unpend(st->quotas, st->counter);
	} else if (row) {
		/* The set may have removed the row already, if the disk is no member yet. */
		quota_gone(st->quotas, st->counter, row);
	}
	quota_unlock(st->quotas);
}

void
mem_set_quota_work(struct mem_store *st, struct job *j)
{
	const struct model_op op = { .act = MODEL_SET_BUCKET_ATTRS, .version = STORE_VERSION_ANY };
	struct version *b = mem_bucket(st, j->v);
	struct model_answer a;
	struct quota_row *row;

	if (!mem_decide(st, j, op, &a))
		return;
	b->has_max = true;
	b->max = j->max;
	if (st->counter != 0)
		return;
	quota_lock(st->quotas);
	row = quota_find(st->quotas, st->counter, j->v->bucket, j->v->bucket_len);
	quota_bound(st->quotas, row, &j->max);
	quota_unlock(st->quotas);
}
