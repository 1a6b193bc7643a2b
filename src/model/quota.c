/* SPDX-License-Identifier: Apache-2.0 */
/* The quota ledger: rows, usage, documents; see quota.h. */
#include "model/quota_int.h"

#include "base/crc64.h"
#include "model/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 64u

const struct store_use quota_unbounded = { STORE_UNBOUNDED, STORE_UNBOUNDED, STORE_UNBOUNDED };

void
quota_note_active(struct quota_book *book)
{
	atomic_store_explicit(&book->is_active, book->rule_nr > 0 || book->bound_nr > 0,
			      memory_order_relaxed);
}

/* ---- life ---- */

int
quota_book_new(int counter_nr, struct quota_book **ret_book)
{
	struct quota_book *book = calloc(1, sizeof *book);

	if (book)
		book->slots = calloc(SLOTS_FIRST, sizeof(struct quota_row *));
	if (!book || !book->slots) {
		free(book);
		return -ENOMEM;
	}
	book->slot_nr = SLOTS_FIRST;
	book->counter_nr = counter_nr;
	pthread_mutex_init(&book->lock, NULL);
	*ret_book = book;
	return 0;
}

static void
row_free(struct quota_row *row)
{
	if (!row)
		return;
	free(row->rule);
	free(row->part);
	free(row);
}

void
quota_book_free(struct quota_book *book)
{
	if (!book)
		return;
	for (size_t i = 0; i < book->slot_nr; i++) {
		for (struct quota_row *row = book->slots[i], *next; row; row = next) {
			next = row->next;
			row_free(row);
		}
	}
	pthread_mutex_destroy(&book->lock);
	free(book->rules);
	free(book->slots);
	free(book);
}

/* ---- rows ---- */

static bool
fits(const struct quota_rule *r, const char *name, size_t len)
{
	return len >= r->len && (r->any_suffix || len == r->len) && memcmp(r->name, name, r->len) == 0;
}

int
quota_find_rules(const struct quota_rule *rules, int nr, const char *name, size_t len, int **ret_list,
		 int *ret_nr)
{
	int n = 0, *list = NULL;

	for (int i = 0; i < nr; i++)
		n += fits(&rules[i], name, len);
	*ret_nr = n;
	*ret_list = NULL;
	if (!n)
		return 0;
	list = calloc((size_t)n, sizeof *list);
	if (!list)
		return -ENOMEM;
	n = 0;
	for (int i = 0; i < nr; i++) {
		if (fits(&rules[i], name, len))
			list[n++] = i;
	}
	*ret_list = list;
	return 0;
}

struct quota_row **
quota_link_of(struct quota_book *book, const char *name, size_t len)
{
	uint32_t hash = (uint32_t)crc64_nvme(0, name, len);
	struct quota_row **link = &book->slots[hash & (book->slot_nr - 1)];

	while (*link &&
	       ((*link)->hash != hash || (*link)->len != len || memcmp((*link)->name, name, len) != 0))
		link = &(*link)->next;
	return link;
}

struct quota_row *
quota_find(struct quota_book *book, int counter, const void *name, size_t len)
{
	struct quota_row **last = &book->counter[counter].last;

	if (!*last || (*last)->len != len || memcmp((*last)->name, name, len) != 0)
		*last = *quota_link_of(book, name, len);
	return *last;
}

/* Enlarges the hash table. Without memory the chains only become longer. */
static void
grow(struct quota_book *book)
{
	size_t nr = 2 * book->slot_nr;
	struct quota_row **slots = calloc(nr, sizeof(struct quota_row *));

	if (!slots)
		return;
	for (size_t i = 0; i < book->slot_nr; i++) {
		for (struct quota_row *row = book->slots[i], *next; row; row = next) {
			next = row->next;
			row->next = slots[row->hash & (nr - 1)];
			slots[row->hash & (nr - 1)] = row;
		}
	}
	free(book->slots);
	book->slots = slots;
	book->slot_nr = nr;
}

static void
note_pending(struct quota_book *book, int counter, struct quota_row *row)
{
	struct quota_part *part = &row->part[counter];

	if (part->is_pending)
		return;
	part->is_pending = true;
	part->next_pending = book->counter[counter].pending;
	book->counter[counter].pending = row;
}

struct quota_row *
quota_row_for(struct quota_book *book, int counter, const void *name, size_t len)
{
	struct quota_row *row = quota_find(book, counter, name, len);

	if (row)
		return row;
	row = calloc(1, sizeof *row);
	if (!row)
		return NULL;
	memcpy(row->name, name, len);
	row->part = calloc((size_t)book->counter_nr, sizeof *row->part);
	row->len = (uint8_t)len;
	row->max = quota_unbounded;
	row->hash = (uint32_t)crc64_nvme(0, name, len);
	if (!row->part ||
	    quota_find_rules(book->rules, book->rule_nr, row->name, len, &row->rule, &row->rule_nr) < 0) {
		row_free(row);
		return NULL;
	}
	if (book->row_nr >= book->slot_nr)
		grow(book);
	*quota_link_of(book, row->name, len) = row;
	book->row_nr++;
	for (int i = 0; i < row->rule_nr; i++)
		book->rules[row->rule[i]].buckets++;
	return row;
}

/* Allocates all memory before a row changes. */
int
quota_book_grow(struct quota_book *book, int counter_nr)
{
	struct quota_part **part;
	size_t n = 0, size;
	int e;

	quota_lock(book);
	size = (size_t)book->counter_nr * sizeof **part;
	part = calloc(book->row_nr + 1, sizeof *part);
	e = part ? 0 : -ENOMEM;
	for (; e == 0 && n < book->row_nr && counter_nr > book->counter_nr; n++) {
		part[n] = calloc((size_t)counter_nr, sizeof **part);
		e = part[n] ? 0 : -ENOMEM;
	}
	for (size_t i = 0; e == 0 && n && i < book->slot_nr; i++) {
		for (struct quota_row *row = book->slots[i]; row; row = row->next) {
			struct quota_part *old = row->part;

			row->part = part[--n];
			memcpy(row->part, old, size);
			free(old);
		}
	}
	while (n)
		free(part[--n]);
	if (e == 0 && counter_nr > book->counter_nr)
		book->counter_nr = counter_nr;
	free(part);
	quota_unlock(book);
	return e;
}

int
quota_make(struct quota_book *book, int counter, const void *name, size_t len)
{
	struct quota_row *row = quota_row_for(book, counter, name, len);

	if (!row)
		return -ENOMEM;
	note_pending(book, counter, row);
	return 0;
}

struct quota_row *
quota_enter(struct quota_book *book, int counter, const void *name, size_t len, uint64_t version)
{
	struct quota_row *row = quota_row_for(book, counter, name, len);

	if (row)
		row->part[counter].version = version;
	return row;
}

bool
quota_row_is_there(const struct quota_book *book, const struct quota_row *row)
{
	for (int i = 0; i < book->counter_nr; i++) {
		if (row->part[i].version || row->part[i].is_pending)
			return true;
	}
	return false;
}

void
quota_drop_row(struct quota_book *book, struct quota_row *row)
{
	struct quota_row **link;

	if (row->user_nr || quota_row_is_there(book, row))
		return;
	for (int i = 0; i < book->counter_nr; i++) {
		if (book->counter[i].last == row)
			book->counter[i].last = NULL;
	}
	quota_bound(book, row, &quota_unbounded);
	for (int i = 0; i < row->rule_nr; i++)
		book->rules[row->rule[i]].buckets--;
	link = quota_link_of(book, row->name, row->len);
	*link = row->next;
	book->row_nr--;
	row_free(row);
}

void
quota_born(struct quota_book *book, int counter, struct quota_row *row, uint64_t version)
{
	row->part[counter].version = version;
}

void
quota_gone(struct quota_book *book, int counter, struct quota_row *row)
{
	struct quota_part *part = &row->part[counter];
	struct quota_change less = quota_negative(&part->sums.used), held = quota_negative(&part->sums.pend);

	quota_count(book, counter, row, &less);
	/* quota_unpend() removes the pending changes. */
	if (!part->is_pending)
		quota_hold(book, counter, row, &held);
	quota_count_docs(book, counter, row, -part->doc_bytes);
	part->version = 0;
	/* The engine of the first counter is the last one to lose a bucket. */
	if (counter == 0)
		quota_bound(book, row, &quota_unbounded);
	quota_drop_row(book, row);
}

uint64_t
quota_version(const struct quota_row *row, int counter)
{
	return row->part[counter].version;
}

bool
quota_concerns(struct quota_book *book, const void *name, size_t len)
{
	const struct quota_row *row;
	bool does;

	quota_lock(book);
	row = *quota_link_of(book, name, len);
	does = row && row->has_bound;
	for (int i = 0; !does && i < book->rule_nr; i++)
		does = fits(&book->rules[i], name, len);
	quota_unlock(book);
	return does;
}

void
quota_bound(struct quota_book *book, struct quota_row *row, const struct store_use *max)
{
	book->bound_nr += (size_t)quota_is_bound(max) - (size_t)row->has_bound;
	row->has_bound = quota_is_bound(max);
	row->max = *max;
	quota_note_active(book);
}

/* ---- judging and counting ---- */

/* Returns true if `more` bytes or objects in addition to `there` exceed max. */
static bool
is_beyond(int64_t there, int64_t more, uint64_t max)
{
	return more > 0 && there + more > 0 && (uint64_t)(there + more) > max;
}

/*
 * Compares a growth with one set of limits. For a reservation, compares also the bytes in progress, of this
 * PUT and of others, which may be as many as the limit. So objects can be overwritten while the usage is at
 * its limit, and the disks have at most twice the limit. A single PUT of more bytes than the limit is refused
 * if it has also more bytes than the usage, which it may replace: then the usage would certainly exceed the
 * limit.
 */
static bool
may_grow(const struct quota_sums *sums, const struct quota_growth *g, const struct store_use *max)
{
	struct quota_change there = sums->used;
	int64_t others = sums->whole_bytes - g->own_bytes;

	if (!g->without_pending)
		quota_add(&there, &sums->pend);
	if (g->reserves && (others > 0 || g->whole_bytes > there.bytes) &&
	    is_beyond(others, g->whole_bytes, max->bytes))
		return false;
	if (g->reserves)
		quota_add(&there, &sums->held);
	return !is_beyond(there.objects, g->more.objects, max->objects) &&
	       !is_beyond(there.bytes, g->more.bytes, max->bytes) &&
	       !is_beyond(there.uploads, g->more.uploads, max->uploads);
}

void
quota_sums_add(struct quota_sums *to, const struct quota_sums *more)
{
	quota_add(&to->used, &more->used);
	quota_add(&to->pend, &more->pend);
	quota_add(&to->held, &more->held);
	to->whole_bytes += more->whole_bytes;
}

struct quota_sums
quota_sums_of(const struct quota_book *book, int counter, const struct quota_row *row)
{
	struct quota_sums sums = { .whole_bytes = 0 };

	for (int i = 0; i < book->counter_nr; i++) {
		if (RULE_QUOTA_OF_ALL || counter == QUOTA_ANY || i == counter)
			quota_sums_add(&sums, &row->part[i].sums);
	}
	return sums;
}

struct quota_sums
quota_sums_of_rule(const struct quota_rule *r)
{
	struct quota_sums sums = r->sums;

	sums.used.objects += r->buckets;
	sums.used.bytes += r->doc_bytes;
	return sums;
}

/* Compares a growth with the limits of a bucket's patterns. */
static int
judge_rules(struct quota_book *book, struct quota_row *row, const struct quota_growth *g)
{
	int e = 0;

	for (int i = 0; i < row->rule_nr; i++) {
		struct quota_rule *r = &book->rules[row->rule[i]];
		struct quota_sums sums = quota_sums_of_rule(r);

		if (may_grow(&sums, g, &r->max))
			continue;
		r->refused++;
		e = -EDQUOT;
	}
	return e;
}

int
quota_judge_growth(struct quota_book *book, int counter, struct quota_row *row, const struct quota_growth *g)
{
	int e = judge_rules(book, row, g);

	if (row->has_bound) {
		struct quota_sums sums = quota_sums_of(book, counter, row);

		if (!may_grow(&sums, g, &row->max)) {
			row->refused++;
			e = -EDQUOT;
		}
	}
	return e;
}

int
quota_judge(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c,
	    bool pending)
{
	const struct quota_growth g = { .more = *c, .without_pending = !pending };

	return quota_judge_growth(book, counter, row, &g);
}

void
quota_row_add(struct quota_book *book, int counter, struct quota_row *row, const struct quota_sums *more)
{
	quota_sums_add(&row->part[counter].sums, more);
	for (int i = 0; i < row->rule_nr; i++)
		quota_sums_add(&book->rules[row->rule[i]].sums, more);
}

void
quota_pend(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c)
{
	quota_hold(book, counter, row, c);
	note_pending(book, counter, row);
}

/* All counters have the same bytes, except during a change. */
struct quota_docs
quota_docs_of(const struct quota_book *book, const struct quota_row *row)
{
	int64_t most = 0, later = 0;

	for (int i = 0; i < book->counter_nr; i++) {
		int64_t bytes = row->part[i].doc_bytes, then = bytes + row->part[i].pend_docs;

		most = bytes > most ? bytes : most;
		later = then > later ? then : later;
	}
	return (struct quota_docs){ most, later > most ? later - most : 0 };
}

static void
change_docs(struct quota_book *book, struct quota_row *row, int counter, int64_t more, int64_t pend_more)
{
	struct quota_docs was = quota_docs_of(book, row), is;

	row->part[counter].doc_bytes += more;
	row->part[counter].pend_docs += pend_more;
	is = quota_docs_of(book, row);
	for (int i = 0; i < row->rule_nr; i++) {
		book->rules[row->rule[i]].doc_bytes += is.bytes - was.bytes;
		book->rules[row->rule[i]].sums.pend.bytes += is.ahead - was.ahead;
	}
}

void
quota_pend_docs(struct quota_book *book, int counter, struct quota_row *row, int64_t more)
{
	change_docs(book, row, counter, 0, more);
	note_pending(book, counter, row);
}

void
quota_hold(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c)
{
	quota_row_add(book, counter, row, &(struct quota_sums){ .pend = *c });
}

void
quota_count(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c)
{
	quota_row_add(book, counter, row, &(struct quota_sums){ .used = *c });
}

void
quota_move(struct quota_book *book, int from, int to, const void *name, size_t len,
	   const struct store_use *use, bool has_two)
{
	const struct quota_change one = { (int64_t)use->objects, (int64_t)use->bytes, (int64_t)use->uploads };
	const struct quota_change more = quota_of_copies(one, has_two), less = quota_negative(&more);
	struct quota_row *row = quota_find(book, from, name, len);

	if (!row)
		return;
	quota_count(book, to, row, &more);
	quota_count(book, from, row, &less);
}

void
quota_unpend(struct quota_book *book, int counter)
{
	struct quota_row *row;

	while ((row = book->counter[counter].pending) != NULL) {
		struct quota_change less = quota_negative(&row->part[counter].sums.pend);

		book->counter[counter].pending = row->part[counter].next_pending;
		row->part[counter].is_pending = false;
		quota_hold(book, counter, row, &less);
		change_docs(book, row, counter, 0, -row->part[counter].pend_docs);
		quota_drop_row(book, row);
	}
}

/* ---- buckets and their documents ---- */

int
quota_judge_bucket(struct quota_book *book, const void *name, size_t len, uint64_t doc_bytes)
{
	const struct quota_row *row = *quota_link_of(book, name, len);
	/* If the row of a removed bucket remains, because of its space, it counts as a bucket already. */
	const struct quota_growth g = { .more = { .objects = !row, .bytes = (int64_t)doc_bytes } };
	int e = 0;

	if (!quota_is_active(book) || (row && (row->plan_nr || quota_row_is_there(book, row))))
		return 0;
	for (int i = 0; i < book->rule_nr; i++) {
		struct quota_rule *r = &book->rules[i];
		struct quota_sums sums = quota_sums_of_rule(r);

		if (!fits(r, name, len))
			continue;
		if (!row && is_beyond(r->buckets, 1, r->max_buckets))
			e = -EMLINK;
		else if (may_grow(&sums, &g, &r->max))
			continue;
		else if (e == 0)
			e = -EDQUOT;
		r->refused++;
	}
	return e;
}

int
quota_judge_docs(struct quota_book *book, int counter, struct quota_row *row, int64_t doc_bytes,
		 int64_t *ret_more)
{
	const struct quota_docs docs = quota_docs_of(book, row);
	int64_t now = docs.bytes + docs.ahead;
	const struct quota_growth g = { .more.bytes = doc_bytes > now ? doc_bytes - now : 0 };

	*ret_more = g.more.bytes;
	return judge_rules(book, row, &g);
}

void
quota_count_docs(struct quota_book *book, int counter, struct quota_row *row, int64_t more)
{
	change_docs(book, row, counter, more, 0);
}

int64_t
quota_docs(const struct quota_row *row, int counter)
{
	return row->part[counter].doc_bytes;
}
