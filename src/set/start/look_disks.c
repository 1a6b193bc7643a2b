/* SPDX-License-Identifier: Apache-2.0 */
/* Examines disks without starting them, or checks them (fsck), and estimates the objects that are lost with disks
 * that are given up (--forget); see start.h. */
#include "set/start/start_int.h"

#include "base/clock.h"
#include "store/damage.h"
#include "model/quota.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest wait of a check, in ns, for a locked disk: a daemon that just ended may release it. A disk that is
 * locked for longer is in use. */
#define LOOK_WAIT_NS NS_PER_S

/* Returns a disk that cannot be identified now: a daemon uses it, or this user may read the configuration and
 * not the disk. NULL: there is no such disk. */
static const struct disk *
find_unseen(const struct start *s)
{
	for (int i = 0; i < s->nr; i++) {
		const struct disk *d = &s->disk[i];

		if (!d->st && (d->error == -EBUSY || d->error == -EACCES || d->error == -EPERM))
			return d;
	}
	return NULL;
}

/* Reports that no disk has a store. Returns 0, or the error of a disk on which no store can be made, such as
 * an absent device. */
static int
say_unmade(struct start *s)
{
	for (int i = 0; i < s->nr && !s->conf->disks.record; i++) {
		if (s->disk[i].error != -ENOTRECOVERABLE)
			return start_refuse_disk(s, &s->disk[i]);
	}
	start_say_unmade(&s->disk[0], s->err, s->err_len);
	return 0;
}

/* Recovers the present disks. Returns false if a disk cannot be recovered. */
static bool
recover_all(struct start *s)
{
	bool all = true;

	if (quota_book_new(start_count(s->present), &s->quotas) < 0)
		return false;
	start_each(s, false, start_recover_one);
	for (int i = 0; i < s->nr; i++)
		all &= !s->disk[i].st || s->disk[i].error >= 0;
	return all;
}

/* Adds the share that is lost to an estimate. there: usage of the slots that the present disks have; lost_nr: number of the other
 * slots. */
static void
add_share(struct store_use *estimate, const struct store_use *there, int lost_nr)
{
	double share = lost_nr < STORE_SLOT_NR ? (double)lost_nr / (STORE_SLOT_NR - lost_nr) : 0;

	estimate->objects += (uint64_t)((double)there->objects * share + 0.5);
	estimate->bytes += (uint64_t)((double)there->bytes * share + 0.5);
}

/* Recovers the present disks, and writes the number of objects and bytes that are lost with the disks to
 * forget, estimated from the contents of the present disks: a slot has about as much as another slot. Writes
 * "" if the present disks allow no estimate. Called after start_judge(); the caller frees s->quotas after
 * start_stop_all(). */
static void
say_estimate(struct start *s, char *text, size_t len)
{
	struct store_use one = { 0 }, two = { 0 }, lost = { 0 }, use;
	int lost_one = 0, lost_two = 0;

	text[0] = 0;
	if (!recover_all(s))
		return;
	quota_lock(s->quotas);
	quota_total(s->quotas, &one);
	quota_unlock(s->quotas);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		bool is_lost = slots_has(&s->lost, table_place((unsigned)i, true));
		const struct disk *d = start_disk_at(s, s->next.first[i]);

		lost_one += table_has(s->forgotten, s->table.home[i]);
		lost_two += is_lost;
		if (is_lost || !d)
			continue;
		s->ops->two_use(d->st, (unsigned)i, &use);
		two.objects += use.objects;
		two.bytes += use.bytes;
	}
	/* The ledger has the bytes of both copies. */
	one.objects -= two.objects < one.objects ? two.objects : one.objects;
	one.bytes -= 2 * two.bytes < one.bytes ? 2 * two.bytes : one.bytes;
	add_share(&lost, &one, lost_one);
	add_share(&lost, &two, lost_two);
	if (lost.objects)
		snprintf(text, len, ", about %llu object%s (%llu bytes) by what the other disks have",
			 (unsigned long long)lost.objects, lost.objects == 1 ? "" : "s",
			 (unsigned long long)lost.bytes);
}

static void
say_forgotten(struct start *s)
{
	bool is_one = start_count(s->forgotten) == 1;
	char loss[200], estimate[200];

	/* These disks together may have both copies of an object. */
	start_say_loss(s, s->forgotten, loss, sizeof loss);
	say_estimate(s, estimate, sizeof estimate);
	start_refuse(s, 0, "%s are lost%s%s", loss, estimate, is_one ? ": " : "");
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		int one = 0, empty = 0, second = 0;
		char name[DISK_NAME_BYTES];

		if (!table_has(s->forgotten, i))
			continue;
		for (int slot = 0; slot < STORE_SLOT_NR; slot++) {
			bool is_lost = slots_has(&s->lost, table_place((unsigned)slot, true));

			one += s->table.home[slot] == i;
			empty += s->table.first[slot] == i && is_lost;
			second += s->table.first[slot] == i && !is_lost;
		}
		start_add(s->err, s->err_len, "%sdisk %s, of a store of %d disks", is_one ? "" : "\n",
			  start_name(s, i, name), start_count(s->table.members));
		start_add_why(s, i, s->err, s->err_len);
		start_add(s->err, s->err_len,
			  ": has %d of %d slots of keys with one copy, which begin empty on the others; of "
			  "keys "
			  "with "
			  "two copies %d slots begin empty, %d go to their second",
			  one, STORE_SLOT_NR, empty, second);
	}
}

int
set_look(const struct store_conf *conf, char *err, size_t err_len)
{
	const struct disk *unseen;
	struct start *s;
	bool forgets = conf->disks.forget_nr > 0;
	int e = set_check_conf(conf, err, err_len);

	if (e < 0)
		return e;
	e = start_new(conf, &s, err, err_len);
	if (e < 0)
		return e;
	err[0] = 0;
	for (int i = 0; i < s->nr; i++)
		if (!forgets && s->disk[i].conf.disks.lock_wait_ns > LOOK_WAIT_NS)
			s->disk[i].conf.disks.lock_wait_ns = LOOK_WAIT_NS;
	start_open_all(s);
	unseen = forgets ? NULL : find_unseen(s);
	if (unseen) {
		snprintf(err, err_len, "%.*s", (int)advice_problem(unseen->err), unseen->err);
		e = unseen->error == -EBUSY ? STORE_LOOK_IN_USE : STORE_LOOK_DENIED;
	} else if (start_is_none_made(s) && !forgets) {
		/* No disk has a store, so no map shows whether the start is permitted without a disk. */
		e = say_unmade(s);
	} else {
		e = start_judge(s);
	}
	if (e == 0 && forgets)
		say_forgotten(s);
	start_stop_all(s);
	quota_book_free(s->quotas);
	free(s);
	return e;
}

/* The disks to examine: disks that the configuration names, and members that only the record of the store
 * names. */
struct examined {
	struct store_disk_conf disk[STORE_DISKS_MAX];
	int nr;
};

/* Adds members that only the record of the store names, if they are at their last paths. */
static void
add_unnamed(const struct start *s, struct examined *all)
{
	for (int i = 0; i < s->nr && all->nr < STORE_DISKS_MAX; i++) {
		bool has = !s->disk[i].unnamed || !s->disk[i].st;

		for (int j = 0; j < all->nr; j++)
			has |= s->disk[i].unnamed && strcmp(all->disk[j].path, s->disk[i].unnamed->path) == 0;
		if (!has)
			all->disk[all->nr++] = (struct store_disk_conf){ .path = s->disk[i].unnamed->path };
	}
}

/* Finds the newest map of the disks, and the members that the configuration does not name. Returns 0, or the
 * error with which a start would end. *ret_has: true if a map was found. */
static int
look_across(const struct store_conf *conf, struct examined *all, struct disk_table *ret_table, bool *ret_has,
	    char *err, size_t err_len)
{
	struct start *s;
	bool any = false;
	int e = start_new(conf, &s, err, err_len);

	*ret_has = false;
	if (e < 0)
		return e;
	start_open_all(s);
	for (int i = 0; i < s->nr; i++)
		any |= s->disk[i].st != NULL;
	/* The error of a single disk is left out, because the examination of that disk reports it. */
	e = any ? start_judge(s) : 0;
	*ret_has = e == 0 && any;
	*ret_table = s->table;
	for (int i = 0; i < s->nr && e < 0; i++) {
		if (!s->disk[i].st && strcmp(err, s->disk[i].err) == 0)
			e = 0;
	}
	add_unnamed(s, all);
	start_stop_all(s);
	free(s);
	return e;
}

/* Lets each disk look for whole copies of the objects that are damaged on other disks, then reports the list
 * of damage. */
static void
report_damage(const struct store_conf *conf, const struct disk_table *table, struct store_damage *damage,
	      void (*say)(void *cookie, const char *line), void *cookie)
{
	int nr = conf->disks.nr;

	for (int i = 0; i < nr && nr > 1 && damage->nr; i++) {
		struct store_conf c = set_engine_conf(conf, i);

		c.disks.table = table;
		c.disks.damage = damage;
		c.disks.index_bytes = conf->disks.index_bytes;
		store_fsck(&c, FSCK_FIND, NULL, NULL);
	}
	damage_report(damage, nr > 1, say, cookie);
}

int
set_fsck(const struct store_conf *conf, enum fsck_mode mode, void (*say)(void *cookie, const char *line),
	 void *cookie)
{
	struct examined all = { .nr = 0 };
	struct store_damage *own = conf->disks.damage ? NULL : damage_new(),
			    *damage = conf->disks.damage ? conf->disks.damage : own;
	struct store_conf with_all = *conf;
	struct disk_table table;
	bool has_table = false;
	char err[STORE_WHY_BYTES];
	int refused = set_check_conf(conf, err, sizeof err), looked = refused, r = 0;
	bool has_more = conf->disks.record && conf->disks.record->nr > conf->disks.nr,
	     looks = refused == 0 && (conf->disks.nr > 1 || has_more);

	for (; refused == 0 && all.nr < conf->disks.nr; all.nr++)
		all.disk[all.nr] = conf->disks.disk[all.nr];
	if (looks)
		looked = look_across(conf, &all, &table, &has_table, err, sizeof err);
	if (looked < 0 && say && (mode == FSCK_LOOK || refused < 0))
		say(cookie, err);
	if (refused < 0) {
		damage_free(own);
		return refused;
	}
	/* All disks are examined, whatever the results of the first disks are. */
	with_all.disks.disk = all.disk;
	with_all.disks.nr = all.nr;
	for (int i = 0; i < all.nr; i++) {
		struct store_conf c = set_engine_conf(&with_all, i);
		int one;

		c.disks.table = has_table ? &table : NULL;
		c.disks.damage = say ? damage : NULL;
		/* The disks are examined one after the other, so each may use the whole memory limit. */
		c.disks.index_bytes = conf->disks.index_bytes;
		one = store_fsck(&c, mode, say, cookie);
		if (one < 0 ? r >= 0 : r == 0)
			r = one;
	}
	if (damage && say)
		report_damage(&with_all, has_table ? &table : NULL, damage, say, cookie);
	damage_free(own);
	/* A disk that could not be opened may be the disk that needs the repair. */
	if (looked < 0 && mode == FSCK_PREVIEW && r == 1)
		return r;
	if (looked < 0 && mode == FSCK_REPAIR && looks)
		looked = look_across(conf, &all, &table, &has_table, err, sizeof err);
	if (looked < 0 && say && mode != FSCK_LOOK)
		say(cookie, err);
	return looked < 0 ? looked : r;
}
