/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the buckets of all disks of a start equal, and removes foreign records after a disk was forgotten;
 * see start_int.h. */
#include "set/start/start_int.h"

#include "set/map/set_rules.h"
#include "store/key_copy.h"
#include "store/user.h"

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

/* A page of foreign records to remove after a disk was forgotten. The slots of the forgotten disk are
 * assigned to other disks, and begin empty: therefore records of these slots are removed that another disk
 * has from an interrupted move. */
struct leftovers {
	struct key_page page;
	struct store_slots slots;
};

static int
drop_page(struct start *s, struct leftovers *l, struct store_user *user)
{
	struct store_port *p = store_user_port(user, 0);
	struct store_send *send = calloc(1, sizeof *send);
	int e = send ? key_page_next(&l->page, p) : -ENOMEM;

	for (int i = 0; e >= 0 && i < l->page.nr; i++) {
		*send = (struct store_send){ .key = l->page.at[i].key };
		e = STORE_DO(user, &send->op, s->ops->send(NULL, p, send));
	}
	free(send);
	return e < 0 ? e : 0;
}

static int
drop_leftovers(struct start *s)
{
	struct leftovers *l = calloc(1, sizeof *l);
	int e = l ? 0 : -ENOMEM;

	for (int i = 0; e == 0 && i < s->nr; i++) {
		struct store_user *user;

		if (!s->disk[i].st || !s->ops->walk)
			continue;
		memset(l, 0, sizeof *l);
		l->page.w.slots = &l->slots;
		for (int k = 0; k < STORE_SLOT_NR; k++) {
			if (s->table.home[k] != s->disk[i].number)
				slots_add(&l->slots, (unsigned)k);
			if (slots_has(&s->lost, (unsigned)(STORE_SLOT_NR + k)))
				slots_add(&l->slots, (unsigned)(STORE_SLOT_NR + k));
		}
		e = store_user_new(&s->disk[i].st, 1, &user);
		if (e < 0)
			break;
		do
			e = drop_page(s, l, user);
		while (e == 0 && l->page.w.more);
		store_user_free(user);
	}
	free(l);
	return e < 0 ? start_refuse(s, e, "cannot remove the remains of a move: %s", strerror(-e)) : 0;
}

int
start_align_all(struct start *s)
{
	int e = align_buckets(s), failed;

	if (e == 0 && s->forgotten)
		e = drop_leftovers(s);
	if (e == 0)
		return 0;
	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		if (!d->st)
			continue;
		d->error = s->ops->has_failed(d->st) ? e : 0;
		snprintf(d->err, sizeof d->err, "%s: it failed while the start wrote to it", start_path(d));
	}
	failed = start_drop_failed(s);
	return failed ? failed : e;
}
