/* SPDX-License-Identifier: Apache-2.0 */
/* What buckets hold and may hold, see quota.h. */
#include "store/quota.h"

#include "store/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 64u

struct quota_rule {
	char name[STORE_BUCKET_MAX];
	uint8_t len;
	bool any_suffix;
	struct store_use max;
	uint64_t max_buckets;
	struct quota_change used, pend; /* of all counters */
	struct quota_change held;       /* reserved by PUTs in progress */
	int64_t whole_bytes;            /* all bytes of these PUTs */
	int64_t buckets, doc_bytes;     /* rows that fit, and the bytes of their documents */
	uint64_t refused;
};

struct quota_part {
	uint64_t version; /* of the bucket; 0: not there */
	struct quota_change used, pend, held;
	int64_t whole_bytes, doc_bytes;
	int64_t pend_docs; /* growth of the documents by unpublished changes; counts for patterns alone */
	struct quota_row *next_pending;
	bool is_pending; /* in the counter's list */
};

struct quota_row {
	struct quota_row *next;
	struct quota_row *grown; /* while the book grows: what this has become */
	uint32_t hash;
	uint8_t len;
	bool has_bound;
	struct store_use max;
	uint64_t refused;
	int plan_nr;        /* plans that have not ended; the row stays until then */
	int64_t plan_bytes; /* growth of the documents by these plans */
	int rule_nr;
	int *rule; /* those that it fits */
	char name[STORE_BUCKET_MAX + 1];
	struct quota_part part[]; /* one for each counter */
};

static const struct store_use unbounded = { STORE_UNBOUNDED, STORE_UNBOUNDED, STORE_UNBOUNDED };

static bool
is_bound(const struct store_use *max)
{
	return memcmp(max, &unbounded, sizeof *max) != 0;
}

static void
add(struct quota_change *to, const struct quota_change *c)
{
	to->objects += c->objects;
	to->bytes += c->bytes;
	to->uploads += c->uploads;
}

static struct quota_change
negative(const struct quota_change *c)
{
	return (struct quota_change){ -c->objects, -c->bytes, -c->uploads };
}

static uint32_t
hash_of(const char *name, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return h;
}

static void
note_active(struct quota_book *book)
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
	if (row)
		free(row->rule);
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

/* The numbers of the rules that a name fits: a list to free(), NULL when there are none.  0 or -ENOMEM. */
static int
find_rules(const struct quota_rule *rules, int nr, const char *name, size_t len, int **ret_list, int *ret_nr)
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

static struct quota_row **
link_of(struct quota_book *book, const char *name, size_t len)
{
	uint32_t hash = hash_of(name, len);
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
		*last = *link_of(book, name, len);
	return *last;
}

/* Without memory the chains only get longer. */
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

/* The row of a bucket, made if there is none.  NULL: no memory. */
static struct quota_row *
row_for(struct quota_book *book, int counter, const void *name, size_t len)
{
	struct quota_row *row = quota_find(book, counter, name, len);

	if (row)
		return row;
	row = calloc(1, sizeof *row + (size_t)book->counter_nr * sizeof row->part[0]);
	if (!row)
		return NULL;
	memcpy(row->name, name, len);
	row->len = (uint8_t)len;
	row->max = unbounded;
	row->hash = hash_of(row->name, len);
	if (find_rules(book->rules, book->rule_nr, row->name, len, &row->rule, &row->rule_nr) < 0) {
		row_free(row);
		return NULL;
	}
	if (book->row_nr >= book->slot_nr)
		grow(book);
	*link_of(book, row->name, len) = row;
	book->row_nr++;
	for (int i = 0; i < row->rule_nr; i++)
		book->rules[row->rule[i]].buckets++;
	return row;
}

/* Each row becomes a larger one.  The larger ones are all made before one is put in its place, and the smaller one says which
 * it has become. */
int
quota_book_grow(struct quota_book *book, int counter_nr)
{
	struct quota_row **grown, *rest = NULL;
	size_t n = 0;
	int e = 0;

	quota_lock(book);
	grown = calloc(book->row_nr + 1, sizeof *grown);
	e = grown ? 0 : -ENOMEM;
	for (size_t i = 0; e == 0 && i < book->row_nr && counter_nr > book->counter_nr; i++) {
		grown[i] = calloc(1, sizeof **grown + (size_t)counter_nr * sizeof grown[i]->part[0]);
		e = grown[i] ? 0 : -ENOMEM;
	}
	if (e < 0 || counter_nr <= book->counter_nr) {
		for (size_t i = 0; grown && i < book->row_nr; i++)
			free(grown[i]);
		free(grown);
		quota_unlock(book);
		return e;
	}
	for (size_t i = 0; i < book->slot_nr; i++) {
		for (struct quota_row **link = &book->slots[i]; *link; link = &(*link)->next) {
			struct quota_row *old = *link, *row = grown[n++];

			memcpy(row, old, sizeof *old + (size_t)book->counter_nr * sizeof old->part[0]);
			*link = row;
			old->grown = row;
			old->next = rest;
			rest = old;
		}
	}
	for (int c = 0; c < book->counter_nr; c++) {
		book->counter[c].last = NULL;
		if (book->counter[c].pending)
			book->counter[c].pending = book->counter[c].pending->grown;
	}
	for (struct quota_row *old = rest, *next; old; old = next) {
		for (int c = 0; c < book->counter_nr; c++) {
			struct quota_part *part = &old->grown->part[c];

			part->next_pending =
				part->is_pending && part->next_pending ? part->next_pending->grown : NULL;
		}
		next = old->next;
	}
	for (struct quota_row *old = rest, *next; old; old = next) {
		next = old->next;
		free(old);
	}
	book->counter_nr = counter_nr;
	free(grown);
	quota_unlock(book);
	return 0;
}

int
quota_make(struct quota_book *book, int counter, const void *name, size_t len)
{
	struct quota_row *row = row_for(book, counter, name, len);

	if (!row)
		return -ENOMEM;
	note_pending(book, counter, row);
	return 0;
}

struct quota_row *
quota_enter(struct quota_book *book, int counter, const void *name, size_t len, uint64_t version)
{
	struct quota_row *row = row_for(book, counter, name, len);

	if (row)
		row->part[counter].version = version;
	return row;
}

/* Forgets a bucket that no counter has any more. */
static void
drop_row(struct quota_book *book, struct quota_row *row)
{
	struct quota_row **link = link_of(book, row->name, row->len);

	if (row->plan_nr)
		return;
	for (int i = 0; i < book->counter_nr; i++) {
		if (row->part[i].version || row->part[i].is_pending)
			return;
	}
	for (int i = 0; i < book->counter_nr; i++) {
		if (book->counter[i].last == row)
			book->counter[i].last = NULL;
	}
	quota_bound(book, row, &unbounded);
	for (int i = 0; i < row->rule_nr; i++)
		book->rules[row->rule[i]].buckets--;
	*link = row->next;
	book->row_nr--;
	row_free(row);
}

void
quota_born(struct quota_book *book, int counter, struct quota_row *row, uint64_t version)
{
	row->part[counter].version = version;
}

/* Adds to what PUTs in progress have reserved. */
static void
reserve(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c,
	int64_t whole_bytes)
{
	add(&row->part[counter].held, c);
	row->part[counter].whole_bytes += whole_bytes;
	for (int i = 0; i < row->rule_nr; i++) {
		struct quota_rule *r = &book->rules[row->rule[i]];

		add(&r->held, c);
		r->whole_bytes += whole_bytes;
	}
}

void
quota_gone(struct quota_book *book, int counter, struct quota_row *row)
{
	struct quota_part *part = &row->part[counter];
	struct quota_change less = negative(&part->used), held = negative(&part->pend);

	quota_count(book, counter, row, &less);
	/* What is pending is taken back by quota_unpend(). */
	if (!part->is_pending)
		quota_hold(book, counter, row, &held);
	less = negative(&part->held);
	reserve(book, counter, row, &less, -part->whole_bytes);
	quota_count_docs(book, counter, row, -part->doc_bytes);
	part->version = 0;
	/* The first counter is the last to lose a bucket. */
	if (counter == 0)
		quota_bound(book, row, &unbounded);
	drop_row(book, row);
}

uint64_t
quota_version(const struct quota_row *row, int counter)
{
	return row->part[counter].version;
}

bool
quota_concerns(struct quota_book *book, const void *name, size_t len)
{
	const struct quota_row *row = *link_of(book, name, len);

	if (row)
		return row->has_bound || row->rule_nr;
	for (int i = 0; i < book->rule_nr; i++) {
		if (fits(&book->rules[i], name, len))
			return true;
	}
	return false;
}

void
quota_bound(struct quota_book *book, struct quota_row *row, const struct store_use *max)
{
	book->bound_nr += (size_t)is_bound(max) - (size_t)row->has_bound;
	row->has_bound = is_bound(max);
	row->max = *max;
	note_active(book);
}

/* ---- judging and counting ---- */

/* Does `more` on top of what is there go beyond max? */
static bool
is_beyond(int64_t there, int64_t more, uint64_t max)
{
	return more > 0 && there + more > 0 && (uint64_t)(there + more) > max;
}

static bool
may_grow(const struct quota_change *there, const struct quota_change *c, const struct store_use *max)
{
	return !is_beyond(there->objects, c->objects, max->objects) &&
	       !is_beyond(there->bytes, c->bytes, max->bytes) &&
	       !is_beyond(there->uploads, c->uploads, max->uploads);
}

/* counter: who judges by it; ANY: nobody does. */
#define ANY (-1)

static struct quota_change
sum_of(const struct quota_book *book, int counter, const struct quota_row *row, bool pending)
{
	struct quota_change sum = { 0 };

	for (int i = 0; i < book->counter_nr; i++) {
		if (!RULE_QUOTA_OF_ALL && counter != ANY && i != counter)
			continue;
		add(&sum, &row->part[i].used);
		if (pending)
			add(&sum, &row->part[i].pend);
	}
	return sum;
}

/* Returns what the buckets of a pattern hold: they themselves are objects, their documents bytes. */
static struct quota_change
sum_of_rule(const struct quota_rule *r, bool pending)
{
	struct quota_change sum = r->used;

	sum.objects += r->buckets;
	sum.bytes += r->doc_bytes;
	if (pending)
		add(&sum, &r->pend);
	return sum;
}

int
quota_judge(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c,
	    bool pending)
{
	int e = 0;

	if (row->has_bound) {
		struct quota_change there = sum_of(book, counter, row, pending);

		if (!may_grow(&there, c, &row->max)) {
			row->refused++;
			e = -EDQUOT;
		}
	}
	for (int i = 0; i < row->rule_nr; i++) {
		struct quota_rule *r = &book->rules[row->rule[i]];
		struct quota_change there = sum_of_rule(r, pending);

		if (!may_grow(&there, c, &r->max)) {
			r->refused++;
			e = -EDQUOT;
		}
	}
	return e;
}

static void
change(struct quota_book *book, struct quota_row *row, int counter, const struct quota_change *c,
       bool pending)
{
	add(pending ? &row->part[counter].pend : &row->part[counter].used, c);
	for (int i = 0; i < row->rule_nr; i++) {
		struct quota_rule *r = &book->rules[row->rule[i]];

		add(pending ? &r->pend : &r->used, c);
	}
}

void
quota_pend(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c)
{
	change(book, row, counter, c, true);
	note_pending(book, counter, row);
}

/* Returns the bytes of the documents of a bucket. Every counter has the same, except while they change. */
static int64_t
docs_of(const struct quota_book *book, const struct quota_row *row)
{
	int64_t most = 0;

	for (int i = 0; i < book->counter_nr; i++)
		most = row->part[i].doc_bytes > most ? row->part[i].doc_bytes : most;
	return most;
}

/* Returns the growth of the documents of a bucket by unpublished changes, which each counter makes. */
static int64_t
docs_ahead(const struct quota_book *book, const struct quota_row *row)
{
	int64_t most = 0;

	for (int i = 0; i < book->counter_nr; i++) {
		int64_t bytes = row->part[i].doc_bytes + row->part[i].pend_docs;

		most = bytes > most ? bytes : most;
	}
	most -= docs_of(book, row);
	return most > 0 ? most : 0;
}

static void
change_docs(struct quota_book *book, struct quota_row *row, int counter, int64_t more, int64_t pend_more)
{
	int64_t was = docs_of(book, row), ahead = docs_ahead(book, row);

	row->part[counter].doc_bytes += more;
	row->part[counter].pend_docs += pend_more;
	more = docs_of(book, row) - was;
	ahead = docs_ahead(book, row) - ahead;
	for (int i = 0; i < row->rule_nr; i++) {
		book->rules[row->rule[i]].doc_bytes += more;
		book->rules[row->rule[i]].pend.bytes += ahead;
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
	change(book, row, counter, c, true);
}

void
quota_count(struct quota_book *book, int counter, struct quota_row *row, const struct quota_change *c)
{
	change(book, row, counter, c, false);
}

void
quota_unpend(struct quota_book *book, int counter)
{
	struct quota_row *row;

	while ((row = book->counter[counter].pending) != NULL) {
		struct quota_change less = negative(&row->part[counter].pend);

		book->counter[counter].pending = row->part[counter].next_pending;
		row->part[counter].is_pending = false;
		change(book, row, counter, &less, true);
		change_docs(book, row, counter, 0, -row->part[counter].pend_docs);
		drop_row(book, row);
	}
}

/* ---- buckets and their documents ---- */

int
quota_judge_bucket(struct quota_book *book, const void *name, size_t len, uint64_t doc_bytes)
{
	const struct quota_change c = { .objects = 1, .bytes = (int64_t)doc_bytes };
	int e = 0;

	if (!quota_is_active(book) || *link_of(book, name, len))
		return 0;
	for (int i = 0; i < book->rule_nr; i++) {
		struct quota_rule *r = &book->rules[i];
		struct quota_change there = sum_of_rule(r, true);

		if (!fits(r, name, len))
			continue;
		if (is_beyond(r->buckets, 1, r->max_buckets))
			e = -EMLINK;
		else if (may_grow(&there, &c, &r->max))
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
	int64_t now = docs_of(book, row) + docs_ahead(book, row);
	const struct quota_change c = { .bytes = doc_bytes > now ? doc_bytes - now : 0 };
	int e = 0;

	*ret_more = c.bytes;
	for (int i = 0; i < row->rule_nr; i++) {
		struct quota_rule *r = &book->rules[row->rule[i]];
		struct quota_change there = sum_of_rule(r, true);

		if (may_grow(&there, &c, &r->max))
			continue;
		r->refused++;
		e = -EDQUOT;
	}
	return e;
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

/* Adds a plan to a row, or (negative) ends it. */
static void
plan(struct quota_book *book, struct quota_row *row, int nr, int64_t bytes)
{
	row->plan_nr += nr;
	row->plan_bytes += bytes;
	for (int i = 0; i < row->rule_nr; i++)
		book->rules[row->rule[i]].doc_bytes += bytes;
}

int
quota_plan_bucket(struct quota_book *book, int counter, const void *name, size_t len, int64_t doc_bytes,
		  struct quota_plan *ret_plan)
{
	struct quota_row *row = quota_find(book, counter, name, len);
	int e;

	*ret_plan = (struct quota_plan){ .is_made = false };
	if (row && row->part[counter].version)
		return 0;
	if (row)
		return quota_plan_docs(book, counter, name, len, doc_bytes, ret_plan);
	e = quota_judge_bucket(book, name, len, (uint64_t)doc_bytes);
	if (e < 0)
		return e;
	row = row_for(book, counter, name, len);
	if (!row)
		return -ENOMEM;
	*ret_plan = (struct quota_plan){ true, doc_bytes };
	plan(book, row, 1, doc_bytes);
	return 0;
}

int
quota_plan_docs(struct quota_book *book, int counter, const void *name, size_t len, int64_t doc_bytes,
		struct quota_plan *ret_plan)
{
	struct quota_row *row = quota_find(book, counter, name, len);
	int64_t more;
	int e;

	*ret_plan = (struct quota_plan){ .is_made = false };
	if (!row)
		return 0;
	e = quota_judge_docs(book, counter, row, doc_bytes, &more);
	if (e < 0)
		return e;
	*ret_plan = (struct quota_plan){ true, more };
	plan(book, row, 1, more);
	return 0;
}

void
quota_plan_end(struct quota_book *book, int counter, const void *name, size_t len, struct quota_plan *p)
{
	struct quota_row *row = p->is_made ? quota_find(book, counter, name, len) : NULL;

	if (row) {
		plan(book, row, -1, -p->doc_bytes);
		drop_row(book, row);
	}
	p->is_made = false;
}

/* ---- PUTs in progress ---- */

/*
 * Judges the growth of a reservation by one bound; and all bytes in progress, whole_bytes of this PUT and `others` of other ones, which may be as
 * many as the bound: so overwriting goes while as much is there, and the disks hold twice the bound at most.  A PUT of more bytes than the bound
 * and than all that it may replace grows for certain.
 */
static bool
may_reserve(struct quota_change there, const struct quota_change *held, int64_t others,
	    const struct quota_change *more, int64_t whole_bytes, const struct store_use *max)
{
	if ((others > 0 || whole_bytes > there.bytes) && is_beyond(others, whole_bytes, max->bytes))
		return false;
	add(&there, held);
	return may_grow(&there, more, max);
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
			add(&held, &row->part[i].held);
			whole += row->part[i].whole_bytes;
		}
		if (!may_reserve(sum_of(book, counter, row, true), &held, whole, more, whole_bytes,
				 &row->max)) {
			row->refused++;
			e = -EDQUOT;
		}
	}
	for (int i = 0; i < row->rule_nr; i++) {
		struct quota_rule *r = &book->rules[row->rule[i]];

		if (!may_reserve(sum_of_rule(r, true), &r->held, r->whole_bytes - own_bytes, more,
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

	if (!quota_is_active(book))
		return 0;
	quota_lock(book);
	row = *link_of(book, name, len);
	if (row && hold->version != row->part[counter].version)
		*hold = (struct quota_hold){ .has_two = hold->has_two };
	if (row && row->part[counter].version && (row->has_bound || row->rule_nr)) {
		struct quota_change less = negative(&hold->more);

		add(&more, &less);
		e = judge_reserve(book, counter, row, &more, whole, hold->whole_bytes);
		if (e == 0) {
			reserve(book, counter, row, &more, whole - hold->whole_bytes);
			*hold = (struct quota_hold){ hold->has_two, row->part[counter].version, grown,
						     whole };
		}
	}
	quota_unlock(book);
	return e;
}

void
quota_release(struct quota_book *book, int counter, struct quota_row *row, struct quota_hold *hold)
{
	struct quota_change less = negative(&hold->more);

	if (hold->version && row && row->part[counter].version == hold->version)
		reserve(book, counter, row, &less, -hold->whole_bytes);
	hold->version = 0;
}

void
quota_end(struct quota_book *book, int counter, const void *name, size_t len, struct quota_hold *hold)
{
	if (!hold->version)
		return;
	quota_lock(book);
	quota_release(book, counter, *link_of(book, name, len), hold);
	quota_unlock(book);
}

/* ---- what operators see ---- */

static uint64_t
shown(int64_t n)
{
	return n > 0 ? (uint64_t)n : 0;
}

static struct store_quota_info
info_of(const char *name, size_t len, bool any_suffix, const struct quota_change *used,
	const struct store_use *max, int64_t in_progress, uint64_t refused)
{
	struct store_quota_info info = {
		.used = { shown(used->objects), shown(used->bytes), shown(used->uploads) },
		.max = *max,
		.max_buckets = STORE_UNBOUNDED,
		.has_bound = is_bound(max),
		.in_progress_bytes = shown(in_progress),
		.refused = refused,
	};

	memcpy(info.name, name, len);
	info.name[len] = any_suffix ? '*' : 0;
	return info;
}

static struct store_quota_info
row_info(const struct quota_book *book, const struct quota_row *row)
{
	struct quota_change used = sum_of(book, ANY, row, false);
	int64_t in_progress = 0;

	for (int i = 0; i < book->counter_nr; i++)
		in_progress += row->part[i].whole_bytes;
	return info_of(row->name, row->len, false, &used, &row->max, in_progress, row->refused);
}

int
quota_look(struct quota_book *book, const void *name, size_t len, struct store_quota_info *ret_info)
{
	const struct quota_row *row;

	quota_lock(book);
	row = *link_of(book, name, len);
	if (row)
		*ret_info = row_info(book, row);
	quota_unlock(book);
	return row ? 0 : -ENXIO;
}

void
quota_fill_stat(struct quota_book *book, const void *name, size_t len, struct store_stat *st)
{
	struct store_quota_info info;

	/* Who has no quotas takes no lock. */
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

		const struct quota_change there = sum_of_rule(r, false);

		list[nr] =
			info_of(r->name, r->len, r->any_suffix, &there, &r->max, r->whole_bytes, r->refused);
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

/* ---- patterns ---- */

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Two bounds of one pattern are one: the smaller.  Returns how many there are. */
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
					  .max = unbounded,
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

/* What a rule's buckets hold already, and what was refused under its name. */
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
			for (int i = 0; i < row->rule_nr; i++) {
				for (int k = 0; k < book->counter_nr; k++) {
					add(&rules[row->rule[i]].used, &row->part[k].used);
					add(&rules[row->rule[i]].pend, &row->part[k].pend);
					add(&rules[row->rule[i]].held, &row->part[k].held);
					rules[row->rule[i]].whole_bytes += row->part[k].whole_bytes;
				}
				rules[row->rule[i]].buckets++;
				rules[row->rule[i]].pend.bytes += docs_ahead(book, row);
				rules[row->rule[i]].doc_bytes += docs_of(book, row) + row->plan_bytes;
			}
		}
	}
}

/* One row's rules, old and new. */
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
		if (is_bound(&quota[i].max) || quota[i].max_buckets != STORE_UNBOUNDED)
			rule_nr = take_rule(rules, rule_nr, &quota[i]);
	}
	quota_lock(book);
	fit = calloc(book->row_nr + 1, sizeof *fit);
	if (!fit)
		e = -ENOMEM;
	for (size_t s = 0; e == 0 && s < book->slot_nr; s++) {
		for (struct quota_row *row = book->slots[s]; e == 0 && row; row = row->next) {
			fit[done].row = row;
			e = find_rules(rules, rule_nr, row->name, row->len, &fit[done].list, &fit[done].nr);
			done += e == 0;
		}
	}
	/* All of it, or nothing. */
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
	note_active(book);
	quota_unlock(book);
	free(fit);
	return e;
}
