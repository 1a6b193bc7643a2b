/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the buckets of all disks of a start equal, removes foreign records after a disk was forgotten, and makes
 * secondary copies that are in sync equal to the primary copies (M21), before a set serves; see start_int.h. */
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

struct disk *
start_disk_at(struct start *s, int number)
{
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].st && s->disk[i].number == number)
			return &s->disk[i];
	}
	return NULL;
}

/* Makes the buckets of all present disks equal to the buckets of the metadata leader (M30). */
static int
align_buckets(struct start *s)
{
	struct store *engine[STORE_DISKS_MAX];
	int head = start_find_head(s), nr = 0;

	engine[nr++] = start_disk_at(s, head)->st;
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (i == head || !table_has(s->present, i))
			continue;
		engine[nr++] = start_disk_at(s, i)->st;
	}
	return nr > 1 && RULE_BUCKETS_FROM_HEAD ? set_align_buckets(engine, nr, s->err, s->err_len) : 0;
}

/* A comparison of a primary and a secondary (M21), or a removal of foreign records: a page of the keys that
 * differ, or are foreign. */
struct aligner {
	struct key_page page;
	struct store_slots slots, damaged;
	struct store_send send;
	struct buf buf;
	uint64_t changes;
};

/* Pushes the keys of a->slots that the engine of port `walked` has, and that differ from those of the engine of
 * port `other` unless this is NULL, from port `from` to port `to`; removes the keys from `walked` if `from` is NULL. A key that
 * cannot be read at the source stays unchanged at the target, which is then not in sync. */
static int
send_all(struct start *s, struct aligner *a, struct store_user *user, struct store_port *from,
	 struct store_port *walked, struct store_port *other)
{
	struct store_port *to = from ? store_user_port(user, 1) : walked;
	int e;

	a->page.w = (struct store_walk){ .slots = &a->slots, .differs_from = other };
	do {
		e = key_page_next(&a->page, walked);
		for (int i = 0; e >= 0 && i < a->page.nr; i++) {
			const struct store_key *k = &a->page.at[i].key;

			a->send = (struct store_send){ .key = *k, .buf = from ? &a->buf : NULL };
			e = STORE_DO(user, &a->send.op, s->ops->send(from, to, &a->send));
			a->changes += a->send.changes;
			if (from && (e == -EBADMSG || e == -ENOSPC)) {
				slots_add(&a->damaged, store_place(k));
				e = 0;
			}
		}
	} while (e >= 0 && a->page.w.more);
	return e < 0 ? e : 0;
}

/* Removes foreign records after disks were forgotten. The slots of a forgotten disk are assigned to other disks,
 * and begin empty: therefore records of these slots are removed that another disk has from an interrupted
 * move. */
static int
drop_leftovers(struct start *s)
{
	struct aligner *a = calloc(1, sizeof *a);
	int e = a ? 0 : -ENOMEM;

	for (int i = 0; e == 0 && i < s->nr; i++) {
		struct store_user *user;

		if (!s->disk[i].st)
			continue;
		memset(a, 0, sizeof *a);
		for (int k = 0; k < STORE_SLOT_NR; k++) {
			if (s->table.home[k] != s->disk[i].number)
				slots_add(&a->slots, (unsigned)k);
			if (slots_has(&s->lost, (unsigned)(STORE_SLOT_NR + k)))
				slots_add(&a->slots, (unsigned)(STORE_SLOT_NR + k));
		}
		e = store_user_new(&s->disk[i].st, 1, &user);
		if (e < 0)
			break;
		e = send_all(s, a, user, NULL, store_user_port(user, 0), NULL);
		store_user_free(user);
	}
	free(a);
	return e < 0 ? start_refuse(s, e, "cannot remove the remains of a move: %s", strerror(-e)) : 0;
}

/* Handles the error of a write. Disks that failed count as missing from now on, also if the outcome of their last write is
 * unknown (-ECANCELED). Returns the result of start_drop_failed(). */
static int
drop_failed(struct start *s)
{
	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		if (!d->st)
			continue;
		d->error = s->ops->has_failed(d->st) ? -EIO : 0;
		snprintf(d->err, sizeof d->err, "%s: it failed while the start wrote to it", start_path(d));
	}
	return start_drop_failed(s);
}

int
start_align_all(struct start *s)
{
	int e = align_buckets(s), failed;

	if (e == 0 && s->forgotten)
		e = drop_leftovers(s);
	failed = e < 0 ? drop_failed(s) : 0;
	return failed ? failed : e;
}

/* ---- copies ---- */

static int
align_pair(struct start *s, struct aligner *a, struct disk *first, struct disk *second)
{
	struct store *pair[2] = { first->st, second->st };
	struct store_user *user = NULL;
	int e = store_user_new(pair, 2, &user);

	for (int i = 0; e == 0 && i < 2; i++)
		e = send_all(s, a, user, store_user_port(user, 0), store_user_port(user, i),
			     store_user_port(user, !i));
	store_user_free(user);
	return e;
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
	struct aligner *a;
	int e = 0, failed;

	if (!RULE_ALIGN_START || s->forgotten)
		return 0;
	a = calloc(1, sizeof *a);
	if (!a || !store_buf_make(&a->buf, BUF_LARGE_BYTES)) {
		free(a);
		return -ENOMEM;
	}
	for (int i = 0; e == 0 && i < s->nr; i++) {
		for (int j = 0; e == 0 && j < s->nr; j++) {
			struct disk *first = &s->disk[i], *second = &s->disk[j];

			if (i == j || !first->st || !second->st ||
			    !slots_of_pair(s, first, second, &a->slots))
				continue;
			e = align_pair(s, a, first, second);
			failed = e < 0 ? drop_failed(s) : 0;
			if (failed)
				e = failed;
			else if (e < 0)
				start_refuse(s, e, "%s, %s: their copies cannot be made equal: %s",
					     start_path(first), start_path(second), strerror(-e));
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
