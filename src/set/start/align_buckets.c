/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the buckets of all engines equal to the buckets of one engine (M30), before the set serves. A power
 * cut may have left a change on some engines only, and a disk that was away has missed changes.
 *
 * A bucket differs from an earlier or later one of its name by its creation time: the set uses the same time
 * on all engines. A bucket whose number of copies differs from the number on the first engine is treated as
 * another bucket, too. No object is lost by this, because a bucket is empty while its number of copies
 * changes. A start also searches an engine for buckets with two copies.
 */
#include "set/map/set_rules.h"
#include "set/start/start.h"
#include "store/user.h"

#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 256

struct bucket {
	char name[STORE_BUCKET_MAX];
	uint8_t len, copies;
	uint64_t ctime_ns;
};

struct buckets {
	struct bucket *bucket; /* buckets sorted by name */
	size_t nr, cap;
	bool no_memory;
};

/* A page of a list of buckets, copied into names. */
struct page {
	struct store_list ls;
	struct buckets *to;
	char last[STORE_KEY_MAX];
	uint16_t last_len;
	struct {
		char name[STORE_KEY_MAX];
		uint16_t len;
	} key[PAGE];
	uint32_t key_nr;
};

struct align {
	struct store_user *user;
	struct store_port *from, *to;
	struct page page;
	uint8_t attrs[STORE_BUCKET_ATTRS_MAX], its[STORE_BUCKET_ATTRS_MAX];
	uint64_t changes;
};

static bool
on_bucket(struct store_list *ls, const struct store_entry *e)
{
	struct page *p = container_of(ls, struct page, ls);
	struct buckets *b = p->to;

	if (b->nr == b->cap) {
		size_t cap = b->cap ? 2 * b->cap : 64;
		struct bucket *grown = realloc(b->bucket, cap * sizeof *grown);

		b->no_memory = !grown;
		if (!grown)
			return false;
		b->bucket = grown;
		b->cap = cap;
	}
	memcpy(b->bucket[b->nr].name, e->name, e->name_len);
	b->bucket[b->nr].len = (uint8_t)e->name_len;
	b->bucket[b->nr].copies = e->copies;
	b->bucket[b->nr++].ctime_ns = e->mtime_ns;
	memcpy(p->last, e->name, e->name_len);
	p->last_len = (uint16_t)e->name_len;
	return true;
}

static int
list_buckets(struct align *a, struct store_port *port, struct buckets *to)
{
	struct page *p = &a->page;

	p->to = to;
	p->last_len = 0;
	do {
		int r;

		memset(&p->ls, 0, sizeof p->ls);
		p->ls.max = PAGE;
		p->ls.entry = on_bucket;
		p->ls.after = p->last_len ? p->last : NULL;
		p->ls.after_len = p->last_len;
		r = STORE_DO(a->user, &p->ls.op, store_list(port, &p->ls));
		if (r < 0 || to->no_memory)
			return r < 0 ? r : -ENOMEM;
	} while (p->ls.more);
	return 0;
}

/* ---- one bucket ---- */

static bool
on_object(struct store_list *ls, const struct store_entry *e)
{
	struct page *p = container_of(ls, struct page, ls);

	memcpy(p->key[p->key_nr].name, e->name, e->name_len);
	p->key[p->key_nr++].len = (uint16_t)e->name_len;
	return true;
}

/* Removes a bucket with its contents. The contents were not acknowledged, or the bucket was removed after all
 * disks had confirmed that it is empty. */
static int
drop_bucket(struct align *a, const struct bucket *b)
{
	struct page *p = &a->page;
	struct store_del del;
	int r;

	do {
		memset(&p->ls, 0, sizeof p->ls);
		p->ls.bucket = b->name;
		p->ls.bucket_len = b->len;
		p->ls.max = PAGE;
		p->ls.entry = on_object;
		p->ls.shows_gone = true;
		p->key_nr = 0;
		r = STORE_DO(a->user, &p->ls.op, store_list(a->to, &p->ls));
		for (uint32_t i = 0; r >= 0 && i < p->key_nr; i++) {
			struct store_key k = { b->name, p->key[i].name, b->len, p->key[i].len, b->copies };

			r = STORE_DO(a->user, &del.op, store_delete(a->to, &k, NULL, &del));
		}
	} while (r >= 0 && p->ls.more);
	if (r >= 0)
		r = STORE_DO(a->user, &del.op, store_bucket_delete(a->to, b->name, b->len, &del));
	a->changes++;
	return r;
}

static int
make_bucket(struct align *a, const struct bucket *b)
{
	const struct store_change sc = { .act = ACT_MAKE_BUCKET,
					 .key = { .bucket = b->name, .bucket_len = (uint16_t)b->len },
					 .copies = b->copies,
					 .ctime_ns = b->ctime_ns };
	struct store_del op;

	a->changes++;
	return STORE_DO(a->user, &op.op, a->to->ops->apply(a->to, &sc, &op.op));
}

/* Makes the attributes and the quota of a bucket equal. The quota is read from the record, because the quota
 * ledger has one limit for all engines. */
static int
same_attrs(struct align *a, const struct bucket *b)
{
	static const struct store_stat unbounded = { .max = { STORE_UNBOUNDED, STORE_UNBOUNDED,
							      STORE_UNBOUNDED } };
	struct store_stat from = unbounded, to = unbounded;
	struct store_bucket_set set;
	int r;

	r = STORE_DO(a->user, &from.op,
		     store_bucket_get_attrs(a->from, b->name, b->len, a->attrs, sizeof a->attrs, &from));
	if (r >= 0)
		r = STORE_DO(a->user, &to.op,
			     store_bucket_get_attrs(a->to, b->name, b->len, a->its, sizeof a->its, &to));
	if (r >= 0 && (from.attrs_len != to.attrs_len || memcmp(a->attrs, a->its, to.attrs_len) != 0)) {
		a->changes++;
		r = STORE_DO(a->user, &set.op,
			     store_bucket_set_attrs(a->to, b->name, b->len, STORE_VERSION_ANY, a->attrs,
						    from.attrs_len, &set));
	}
	if (r >= 0 && memcmp(&from.max, &to.max, sizeof to.max) != 0) {
		a->changes++;
		r = STORE_DO(a->user, &set.op,
			     store_bucket_set_quota(a->to, b->name, b->len, &from.max, &set));
	}
	return r;
}

/* ---- all of them ---- */

static int
compare(const struct bucket *x, const struct bucket *y)
{
	int c = memcmp(x->name, y->name, x->len < y->len ? x->len : y->len);

	return c ? c : x->len - y->len;
}

/* Returns true if x and y, which have one name, are different buckets. */
static bool
is_other(const struct bucket *x, const struct bucket *y)
{
	return (RULE_OLDER_THAN_BUCKET && x->ctime_ns != y->ctime_ns) || x->copies != y->copies;
}

static int
align_one(struct align *a, const struct buckets *from, const struct buckets *to)
{
	size_t j = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && (i < from->nr || j < to->nr);) {
		int c = i == from->nr ? 1 : j == to->nr ? -1 : compare(&from->bucket[i], &to->bucket[j]);
		bool is_made = c < 0;

		if (c > 0) {
			r = drop_bucket(a, &to->bucket[j++]);
			continue;
		}
		if (c == 0 && is_other(&from->bucket[i], &to->bucket[j])) {
			r = drop_bucket(a, &to->bucket[j]);
			is_made = true;
		}
		j += c == 0;
		if (r >= 0 && is_made)
			r = make_bucket(a, &from->bucket[i]);
		if (r >= 0)
			r = same_attrs(a, &from->bucket[i]);
		i++;
	}
	return r;
}

int
set_align_buckets(struct store *const *engine, int nr, char *err, size_t err_len)
{
	struct buckets from = { 0 };
	struct align *a = calloc(1, sizeof *a);
	int r = a ? store_user_new(engine, nr, &a->user) : -ENOMEM;

	if (r == 0) {
		a->from = store_user_port(a->user, 0);
		r = list_buckets(a, a->from, &from);
	}
	for (int i = 1; r >= 0 && i < nr; i++) {
		struct buckets to = { 0 };

		a->to = store_user_port(a->user, i);
		r = list_buckets(a, a->to, &to);
		if (r >= 0)
			r = align_one(a, &from, &to);
		free(to.bucket);
	}
	if (r < 0)
		snprintf(err, err_len, "cannot make the buckets of all disks alike: %s", strerror(-r));
	else if (a->changes)
		log_note("buckets of disks that were away, or of changes that were cut short: %llu made as "
			 "on the "
			 "others",
			 (unsigned long long)a->changes);
	if (a)
		store_user_free(a->user);
	free(a);
	free(from.bucket);
	return r < 0 ? r : 0;
}

int
set_find_two(struct store *engine, char ret_name[STORE_BUCKET_MAX + 1])
{
	struct buckets all = { 0 };
	struct align *a = calloc(1, sizeof *a);
	int r = a ? store_user_new(&engine, 1, &a->user) : -ENOMEM;
	bool is_found = false;

	if (r == 0)
		r = list_buckets(a, store_user_port(a->user, 0), &all);
	for (size_t i = 0; r >= 0 && !is_found && i < all.nr; i++) {
		is_found = all.bucket[i].copies > 1;
		snprintf(ret_name, STORE_BUCKET_MAX + 1, "%.*s", all.bucket[i].len, all.bucket[i].name);
	}
	if (a)
		store_user_free(a->user);
	free(a);
	free(all.bucket);
	return r < 0 ? r : is_found;
}
