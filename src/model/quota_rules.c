/* SPDX-License-Identifier: Apache-2.0 */
/* The quota ledger: patterns, and the lists for operators; see quota.h. */
#include "model/quota_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists for operators ---- */

static uint64_t
shown(int64_t n)
{
	return n > 0 ? (uint64_t)n : 0;
}

void
quota_total(struct quota_book *book, struct store_use *ret_use)
{
	struct quota_change sum = { 0 };

	for (size_t i = 0; i < book->slot_nr; i++) {
		for (const struct quota_row *row = book->slots[i]; row; row = row->next) {
			const struct quota_sums of = quota_sums_of(book, QUOTA_ANY, row);

			quota_add(&sum, &of.used);
		}
	}
	*ret_use = (struct store_use){ shown(sum.objects), shown(sum.bytes), shown(sum.uploads) };
}

static struct store_quota_info
info_of(const char *name, size_t len, bool any_suffix, const struct quota_sums *sums,
	const struct store_use *max, uint64_t refused)
{
	struct store_quota_info info = {
		.used = { shown(sums->used.objects), shown(sums->used.bytes), shown(sums->used.uploads) },
		.max = *max,
		.max_buckets = STORE_UNBOUNDED,
		.has_bound = quota_is_bound(max),
		.in_progress_bytes = shown(sums->whole_bytes),
		.refused = refused,
	};

	memcpy(info.name, name, len);
	info.name[len] = any_suffix ? '*' : 0;
	return info;
}

static struct store_quota_info
row_info(const struct quota_book *book, const struct quota_row *row)
{
	const struct quota_sums sums = quota_sums_of(book, QUOTA_ANY, row);

	return info_of(row->name, row->len, false, &sums, &row->max, row->refused);
}

int
quota_look(struct quota_book *book, const void *name, size_t len, struct store_quota_info *ret_info)
{
	const struct quota_row *row;

	quota_lock(book);
	row = *quota_link_of(book, name, len);
	if (row && !quota_row_is_there(book, row))
		row = NULL;
	if (row)
		*ret_info = row_info(book, row);
	quota_unlock(book);
	return row ? 0 : -ENXIO;
}

void
quota_fill_stat(struct quota_book *book, const void *name, size_t len, struct store_stat *st)
{
	struct store_quota_info info;

	/* Without quotas the lock is not taken. */
	st->has_quota = quota_is_active(book) && quota_look(book, name, len, &info) == 0 && info.has_bound;
	if (!st->has_quota)
		return;
	st->used = info.used;
	st->max = info.max;
}

static int
by_name(const void *a, const void *b)
{
	const struct store_quota_info *x = a, *y = b;

	if (x->is_pattern != y->is_pattern)
		return x->is_pattern ? -1 : 1;
	return strcmp(x->name, y->name);
}

int
quota_list(struct quota_book *book, struct store_quota_info **ret_list)
{
	struct store_quota_info *list;
	int nr = 0;

	quota_lock(book);
	list = calloc((size_t)book->rule_nr + book->bound_nr + 1, sizeof *list);
	for (int i = 0; list && i < book->rule_nr; i++) {
		const struct quota_rule *r = &book->rules[i];
		const struct quota_sums sums = quota_sums_of_rule(r);

		list[nr] = info_of(r->name, r->len, r->any_suffix, &sums, &r->max, r->refused);
		list[nr].buckets = shown(r->buckets);
		list[nr].max_buckets = r->max_buckets;
		list[nr++].is_pattern = true;
	}
	for (size_t i = 0; list && book->bound_nr && i < book->slot_nr; i++) {
		for (const struct quota_row *row = book->slots[i]; row; row = row->next) {
			if (row->has_bound)
				list[nr++] = row_info(book, row);
		}
	}
	quota_unlock(book);
	if (!list)
		return -ENOMEM;
	qsort(list, (size_t)nr, sizeof *list, by_name);
	*ret_list = list;
	return nr;
}

/* Returns true if a is larger than b, or has the same size and the smaller name, so that the order of a list is
 * stable. */
static bool
is_larger(const struct store_quota_info *a, const struct store_quota_info *b)
{
	return a->used.bytes != b->used.bytes ? a->used.bytes > b->used.bytes : strcmp(a->name, b->name) < 0;
}

int
quota_largest(struct quota_book *book, struct store_quota_info *list, int max)
{
	int nr = 0, all = 0;

	quota_lock(book);
	for (size_t i = 0; i < book->slot_nr; i++) {
		for (const struct quota_row *row = book->slots[i]; row; row = row->next) {
			struct store_quota_info info;
			int at;

			if (!quota_row_is_there(book, row))
				continue;
			all++;
			info = row_info(book, row);
			for (at = nr; at > 0 && is_larger(&info, &list[at - 1]); at--) {
				if (at < max)
					list[at] = list[at - 1];
			}
			if (at < max)
				list[at] = info;
			nr += nr < max;
		}
	}
	quota_unlock(book);
	return all;
}

/* ---- patterns ---- */

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Adds the limits of a pattern to nr rules; of two limits of one pattern the smaller one applies. Returns the new number
 * of rules. */
static int
take_rule(struct quota_rule *rules, int nr, const struct store_pattern_quota *q)
{
	struct quota_rule *r = rules;

	while (r < rules + nr && (r->len != q->bucket_len || r->any_suffix != q->any_suffix ||
				  memcmp(r->name, q->bucket, q->bucket_len) != 0))
		r++;
	if (r == rules + nr) {
		*r = (struct quota_rule){ .len = q->bucket_len,
					  .any_suffix = q->any_suffix,
					  .max = quota_unbounded,
					  .max_buckets = STORE_UNBOUNDED };
		memcpy(r->name, q->bucket, q->bucket_len);
		nr++;
	}
	r->max.objects = least(r->max.objects, q->max.objects);
	r->max.bytes = least(r->max.bytes, q->max.bytes);
	r->max.uploads = least(r->max.uploads, q->max.uploads);
	r->max_buckets = least(r->max_buckets, q->max_buckets);
	return nr;
}

/* Replaces the rules of the ledger: computes the usage of their buckets, and keeps the number of refusals of patterns
 * that existed before. */
static void
fill_rules(struct quota_book *book, struct quota_rule *rules, int nr)
{
	for (int i = 0; i < nr; i++) {
		for (int k = 0; k < book->rule_nr; k++) {
			const struct quota_rule *old = &book->rules[k];

			if (old->len == rules[i].len && old->any_suffix == rules[i].any_suffix &&
			    memcmp(old->name, rules[i].name, old->len) == 0)
				rules[i].refused = old->refused;
		}
	}
	free(book->rules);
	book->rules = rules;
	book->rule_nr = nr;
	for (size_t s = 0; s < book->slot_nr; s++) {
		for (const struct quota_row *row = book->slots[s]; row; row = row->next) {
			struct quota_sums sums = quota_sums_of(book, QUOTA_ANY, row);
			struct quota_docs docs = quota_docs_of(book, row);

			sums.pend.bytes += docs.ahead;
			for (int i = 0; i < row->rule_nr; i++) {
				struct quota_rule *r = &rules[row->rule[i]];

				quota_sums_add(&r->sums, &sums);
				r->buckets++;
				r->doc_bytes += docs.bytes + row->plan_bytes;
			}
		}
	}
}

/* A row, with the indexes of its new rules. */
struct fit {
	struct quota_row *row;
	int *list, nr;
};

int
quota_set_rules(struct quota_book *book, const struct store_pattern_quota *quota, int nr)
{
	struct quota_rule *rules = calloc((size_t)nr + 1, sizeof *rules);
	struct fit *fit;
	size_t done = 0;
	int rule_nr = 0, e = 0;

	if (!rules)
		return -ENOMEM;
	for (int i = 0; i < nr; i++) {
		if (quota_is_bound(&quota[i].max) || quota[i].max_buckets != STORE_UNBOUNDED)
			rule_nr = take_rule(rules, rule_nr, &quota[i]);
	}
	quota_lock(book);
	fit = calloc(book->row_nr + 1, sizeof *fit);
	if (!fit)
		e = -ENOMEM;
	for (size_t s = 0; e == 0 && s < book->slot_nr; s++) {
		for (struct quota_row *row = book->slots[s]; e == 0 && row; row = row->next) {
			fit[done].row = row;
			e = quota_find_rules(rules, rule_nr, row->name, row->len, &fit[done].list,
					     &fit[done].nr);
			done += e == 0;
		}
	}
	/* All rows get their new rules, or, after an error, none does. */
	for (size_t i = 0; i < done; i++) {
		int *unused = fit[i].list;

		if (e == 0) {
			unused = fit[i].row->rule;
			fit[i].row->rule = fit[i].list;
			fit[i].row->rule_nr = fit[i].nr;
		}
		free(unused);
	}
	if (e == 0)
		fill_rules(book, rules, rule_nr);
	else
		free(rules);
	quota_note_active(book);
	quota_unlock(book);
	free(fit);
	return e;
}
