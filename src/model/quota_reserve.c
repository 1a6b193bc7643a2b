/* SPDX-License-Identifier: Apache-2.0 */
/* The quota ledger: planned changes, reservations of PUTs, removed objects with readers; see quota.h. */
#include "model/quota_int.h"

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
	quota_row_add(book, counter, row, &(struct quota_sums){ .held = *c, .whole_bytes = whole_bytes });
}

int
quota_reserve(struct quota_book *book, int counter, const void *name, size_t len,
	      const struct quota_change *c, uint64_t whole_bytes, struct quota_hold *hold)
{
	const struct quota_change grown = quota_of_copies(*c, hold->has_two);
	const int64_t whole = (int64_t)whole_bytes * (1 + hold->has_two);
	struct quota_growth g = { grown, .reserves = true, .whole_bytes = whole,
				  .own_bytes = hold->whole_bytes };
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

		quota_add(&g.more, &less);
		e = quota_judge_growth(book, counter, row, &g);
		if (e == 0) {
			reserve(book, counter, row, &g.more, whole - hold->whole_bytes);
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
	row->user_nr++;
	reserve(book, counter, row, &(struct quota_change){ 0 }, bytes);
}

void
quota_keep_end(struct quota_book *book, int counter, struct quota_row *row, int64_t bytes)
{
	quota_release(book, counter, &(struct quota_hold){ .row = row, .whole_bytes = bytes });
}
