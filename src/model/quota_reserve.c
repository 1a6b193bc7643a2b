/* SPDX-License-Identifier: Apache-2.0 */
/* The quota ledger: planned changes, reservations of PUTs, removed objects with readers; see quota.h. */
#include "model/quota_int.h"

#include "model/rules.h"

#include <errno.h>

/* ---- planned buckets and documents ---- */

/* Adds a plan to a row, or (nr -1) ends it. */
static void
plan(struct quota_book *book, struct quota_row *row, int nr, int64_t bytes)
{
	row->plan_nr += nr;
	row->user_nr += nr;
	row->plan_bytes += bytes;
	for (int i = 0; i < row->rule_nr; i++)
		book->rules[row->rule[i]].doc_bytes += bytes;
}

int
quota_plan(struct quota_book *book, int counter, const void *name, size_t len, bool makes, int64_t doc_bytes,
	   struct quota_plan *ret_plan)
{
	struct quota_row *row;
	int64_t more = doc_bytes;
	int e = 0;

	*ret_plan = (struct quota_plan){ .is_made = false };
	quota_lock(book);
	row = quota_find(book, counter, name, len);
	if (makes ? !row || !row->part[counter].version : row != NULL) {
		e = row ? quota_judge_docs(book, counter, row, doc_bytes, &more)
			: quota_judge_bucket(book, name, len, (uint64_t)doc_bytes);
		if (e == 0 && !row)
			e = (row = quota_row_for(book, counter, name, len)) ? 0 : -ENOMEM;
		if (e == 0) {
			*ret_plan = (struct quota_plan){ true, more };
			plan(book, row, 1, more);
		}
	}
	quota_unlock(book);
	return e;
}

void
quota_plan_end(struct quota_book *book, int counter, const void *name, size_t len, struct quota_plan *p)
{
	struct quota_row *row;

	if (!p->is_made)
		return;
	quota_lock(book);
	row = quota_find(book, counter, name, len);
	if (row) {
		plan(book, row, -1, -p->doc_bytes);
		quota_drop_row(book, row);
	}
	quota_unlock(book);
	p->is_made = false;
}

/* ---- PUTs in progress, and removed objects that are read ---- */

/* Changes the growth that PUTs in progress have reserved, and the bytes in progress. */
static void
reserve(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c,
	int64_t whole_bytes)
{
	quota_add(&row->part[counter].held, c);
	row->part[counter].whole_bytes += whole_bytes;
	for (int i = 0; i < row->rule_nr; i++) {
		struct quota_rule *r = &book->rules[row->rule[i]];

		quota_add(&r->held, c);
		r->whole_bytes += whole_bytes;
	}
}

/*
 * Checks the growth of a reservation against one limit; and all bytes in progress, whole_bytes of this PUT and `others`, which may be as
 * many as the limit: so overwriting works while as many bytes are there, and the disks hold twice the limit at most.  A PUT of more bytes than
 * the limit and than all that it may replace grows for certain.
 */
static bool
may_reserve(struct quota_change there, const struct quota_change *held, int64_t others,
	    const struct quota_change *more, int64_t whole_bytes, const struct store_use *max)
{
	if ((others > 0 || whole_bytes > there.bytes) && quota_is_beyond(others, whole_bytes, max->bytes))
		return false;
	quota_add(&there, held);
	return quota_may_grow(&there, more, max);
}

static int
judge_reserve(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *more,
	      int64_t whole_bytes, int64_t own_bytes)
{
	int e = 0;

	if (row->has_bound) {
		struct quota_change held = { 0 };
		int64_t whole = -own_bytes;

		for (int i = 0; i < book->counter_nr; i++) {
			if (!RULE_QUOTA_OF_ALL && i != counter)
				continue;
			quota_add(&held, &row->part[i].held);
			whole += row->part[i].whole_bytes;
		}
		if (!may_reserve(quota_sum_of(book, counter, row, true), &held, whole, more, whole_bytes,
				 &row->max)) {
			row->refused++;
			e = -EDQUOT;
		}
	}
	for (int i = 0; i < row->rule_nr; i++) {
		struct quota_rule *r = &book->rules[row->rule[i]];

		if (!may_reserve(quota_sum_of_rule(r, true), &r->held, r->whole_bytes - own_bytes, more,
				 whole_bytes, &r->max)) {
			r->refused++;
			e = -EDQUOT;
		}
	}
	return e;
}

int
quota_reserve(struct quota_book *book, int counter, const void *name, size_t len,
	      const struct quota_change *c, uint64_t whole_bytes, struct quota_hold *hold)
{
	const struct quota_change grown = quota_of_copies(*c, hold->has_two);
	const int64_t whole = (int64_t)whole_bytes * (1 + hold->has_two);
	struct quota_change more = grown;
	struct quota_row *row;
	int e = 0;

	if (!quota_is_active(book) && !hold->row)
		return 0;
	quota_lock(book);
	row = hold->row ? hold->row : *quota_link_of(book, name, len);
	if (!row || (!hold->row && !row->part[counter].version)) {
		e = -ENXIO;
	} else if (hold->row || row->has_bound || row->rule_nr) {
		struct quota_change less = quota_negative(&hold->more);

		quota_add(&more, &less);
		e = judge_reserve(book, counter, row, &more, whole, hold->whole_bytes);
		if (e == 0) {
			reserve(book, counter, row, &more, whole - hold->whole_bytes);
			row->user_nr += !hold->row;
			*hold = (struct quota_hold){ hold->has_two, row, grown, whole };
		}
	}
	quota_unlock(book);
	return e;
}

void
quota_settle(struct quota_book *book, int counter, struct quota_hold *hold)
{
	struct quota_change less = quota_negative(&hold->more);

	if (hold->row)
		reserve(book, counter, hold->row, &less, 0);
	hold->more = (struct quota_change){ 0 };
}

void
quota_release(struct quota_book *book, int counter, struct quota_hold *hold)
{
	struct quota_change less = quota_negative(&hold->more);
	struct quota_row *row = hold->row;

	if (!row)
		return;
	reserve(book, counter, row, &less, -hold->whole_bytes);
	*hold = (struct quota_hold){ .has_two = hold->has_two };
	row->user_nr--;
	quota_drop_row(book, row);
}

void
quota_end(struct quota_book *book, int counter, struct quota_hold *hold)
{
	if (!hold->row)
		return;
	quota_lock(book);
	quota_release(book, counter, hold);
	quota_unlock(book);
}

void
quota_keep(struct quota_book *book, int counter, struct quota_row *row, int64_t bytes)
{
	static const struct quota_change none;

	row->user_nr++;
	reserve(book, counter, row, &none, bytes);
}

void
quota_keep_end(struct quota_book *book, int counter, struct quota_row *row, int64_t bytes)
{
	static const struct quota_change none;

	reserve(book, counter, row, &none, -bytes);
	row->user_nr--;
	quota_drop_row(book, row);
}
