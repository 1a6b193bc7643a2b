/* SPDX-License-Identifier: Apache-2.0 */
/* Makes secondary copies that are in sync equal to the primary copies, before a set serves (M21); see
 * start_int.h. */
#include "set/start/start_int.h"

#include "set/map/set_rules.h"
#include "store/key_copy.h"
#include "store/own_buf.h"
#include "store/user.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State of the comparison of a primary and a secondary (M21): a page of the keys that differ. */
struct aligner {
	struct key_page page;
	struct store_slots slots, damaged;
	struct store_send send;
	struct buf buf;
	uint64_t changes;
};

/* Pushes one page of differing keys. A key that cannot be read at the primary stays unchanged at the
 * secondary, which is then not in sync. */
static int
align_page(struct start *s, struct aligner *a, struct store_user *user, struct store_port *walked)
{
	int e = key_page_next(&a->page, walked);

	for (int i = 0; e >= 0 && i < a->page.nr; i++) {
		const struct store_key *k = &a->page.at[i].key;

		memset(&a->send, 0, sizeof a->send);
		a->send.key = *k;
		a->send.buf = &a->buf;
		e = STORE_DO(user, &a->send.op,
			     s->ops->send(store_user_port(user, 0), store_user_port(user, 1), &a->send));
		a->changes += a->send.changes;
		if (e == -EBADMSG || e == -ENOSPC) {
			slots_add(&a->damaged, store_place(k));
			e = 0;
		}
	}
	return e < 0 ? e : 0;
}

static int
align_pair(struct start *s, struct aligner *a, struct disk *first, struct disk *second)
{
	struct store *pair[2] = { first->st, second->st };
	struct store_user *user;
	int e = store_user_new(pair, 2, &user);

	for (int i = 0; e == 0 && i < 2; i++) {
		struct store_port *p = store_user_port(user, i);

		a->page.w =
			(struct store_walk){ .slots = &a->slots, .differs_from = store_user_port(user, !i) };
		do
			e = align_page(s, a, user, p);
		while (e == 0 && a->page.w.more);
	}
	store_user_free(user);
	return e;
}

/* Handles an error of the alignment. A disk that failed counts as missing from now on, and the start begins
 * again. */
static int
pair_failed(struct start *s, struct disk *first, struct disk *second, int e)
{
	struct disk *both[2] = { first, second };

	for (int i = 0; i < s->nr; i++)
		s->disk[i].error = 0;
	for (int i = 0; i < 2; i++) {
		if (!s->ops->has_failed(both[i]->st))
			continue;
		both[i]->error = -EIO;
		snprintf(both[i]->err, sizeof both[i]->err, "%s: it failed while the start wrote to it",
			 start_path(both[i]));
	}
	return both[0]->error || both[1]->error
		       ? start_drop_failed(s)
		       : start_refuse(s, e, "%s, %s: their copies cannot be made equal: %s",
				      start_path(first), start_path(second), strerror(-e));
}

static bool
slots_of_pair(const struct start *s, const struct disk *first, const struct disk *second,
	      struct store_slots *ret_slots)
{
	bool any = false;

	memset(ret_slots, 0, sizeof *ret_slots);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (table_is_full(&s->table, i) && s->table.first[i] == first->number &&
		    s->table.second[i] == second->number) {
			slots_add(ret_slots, (unsigned)(STORE_SLOT_NR + i));
			any = true;
		}
	}
	return any;
}

static int
drop_damaged(struct start *s, const struct store_slots *damaged)
{
	bool any = false;

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (!slots_has(damaged, (unsigned)(STORE_SLOT_NR + i)))
			continue;
		table_set_full(&s->table, i, false);
		any = true;
	}
	if (!any)
		return 0;
	s->table.version++;
	start_each(s, false, start_set_table_one);
	return start_drop_failed(s);
}

int
start_align_copies(struct start *s)
{
	struct aligner *a = RULE_ALIGN_START && s->ops->send && !s->forgotten ? calloc(1, sizeof *a) : NULL;
	int e = 0;

	if (!a)
		return RULE_ALIGN_START && s->ops->send && !s->forgotten ? -ENOMEM : 0;
	for (int i = 0; e == 0 && i < s->nr; i++) {
		for (int j = 0; e == 0 && j < s->nr; j++) {
			struct disk *first = &s->disk[i], *second = &s->disk[j];

			if (i == j || !first->st || !second->st ||
			    !slots_of_pair(s, first, second, &a->slots))
				continue;
			if (!store_buf_make(&a->buf, BUF_LARGE_BYTES)) {
				e = -ENOMEM;
				break;
			}
			e = align_pair(s, a, first, second);
			if (e < 0)
				e = pair_failed(s, first, second, e);
		}
	}
	if (e == 0)
		e = drop_damaged(s, &a->damaged);
	if (e == 0 && a->changes)
		log_note("%llu records of keys with two copies were made equal on both disks",
			 (unsigned long long)a->changes);
	free(a->buf.mem);
	free(a);
	return e;
}
