/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps of the start of a set in order, and the removal of missing disks (--forget); see
 * start_int.h. */
#include "set/start/start_int.h"

#include "model/quota.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stops a disk that counted as drained. In the next attempt another map may be the newest map, and this map
 * may list the disk. */
static void
stop_drained(struct disk *d)
{
	if (!d->drained)
		return;
	store_stop(d->drained);
	d->drained = NULL;
	d->is_out = d->is_drained = false;
}

/* Determines whether there are buckets with two copies. Such buckets may exist even if no slot has a
 * secondary: the other disks were forgotten, or were away when the first such bucket was made. */
static int
find_two(struct start *s)
{
	char name[STORE_BUCKET_MAX + 1];
	int e = 0;

	s->has_two = false;
	for (int i = 0; i < STORE_SLOT_NR; i++)
		s->has_two |= s->table.second[i] != TABLE_NO_DISK;
	if (s->has_two)
		return 0;
	e = set_find_two(start_disk_at(s, __builtin_ctzll(s->present))->st, name);
	s->has_two = e > 0;
	return e < 0 ? start_refuse(s, e, "cannot list buckets: %s", strerror(-e)) : 0;
}

void
start_stop_all(struct start *s)
{
	for (int i = 0; i < s->nr; i++) {
		store_stop(s->disk[i].st);
		s->disk[i].st = NULL;
		stop_drained(&s->disk[i]);
	}
}

/* Writes the effective map to drained disks whose own map does not record the end of the drain. If a write
 * fails, the next start repeats the write; until then operators see the state of the disk according to the
 * disk's own map. */
static void
tell_drained(struct start *s, struct set_found *found)
{
	struct disk_table t = s->table;
	char why[256];

	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];
		int unit = found->member_nr;

		if (!d->drained)
			continue;
		/* The disk does not know the number of this start, so its map keeps the version of the disk's
		 * own map. */
		t.version = d->id.table->version;
		if (s->ops->set_table(d->drained, &t, why, sizeof why) < 0)
			log_warn("a drained disk cannot be told so: %s", why);
		if (unit < STORE_DISKS_MAX) {
			found->member[unit].engine = SET_NOWHERE;
			found->member[unit].number = TABLE_NO_DISK;
			uuid_write(found->member[unit].uuid, d->id.uuid);
			snprintf(found->member[unit].path, sizeof found->member[0].path, "%s", start_path(d));
			found->drained |= (uint64_t)1 << unit;
			found->member_nr++;
		}
		stop_drained(d);
	}
}

/* Makes one attempt of the start. Returns AGAIN if a disk failed during the attempt. */
static int
attempt(struct start *s)
{
	int e;

	start_open_all(s);
	/* A failed disk is not tried again in this start, because a failed flush is reported once, and the
	 * next flush would succeed. */
	for (int i = 0; i < s->nr; i++)
		s->disk[i].is_out |= !s->disk[i].st;
	e = start_judge(s);
	if (e < 0)
		return e;
	e = quota_book_new(start_count(s->present), &s->quotas);
	if (e < 0)
		return start_refuse(s, e, "no memory");
	start_each(s, false, start_recover_one);
	e = start_drop_failed(s);
	if (e == 0)
		e = start_begin_all(s);
	if (e == 0)
		e = start_align_all(s);
	if (e == 0)
		e = start_write_table(s);
	if (e == 0)
		e = start_align_copies(s);
	if (e == 0)
		e = find_two(s);
	if (e == 0) {
		start_each(s, false, start_serve_one);
		e = start_drop_failed(s);
	}
	return e;
}

/* Repeats the attempt until the start succeeds, or too few disks are left. */
static int
run(struct start *s)
{
	int e;

	do {
		e = attempt(s);
		if (e != 0) {
			start_stop_all(s);
			quota_book_free(s->quotas);
			s->quotas = NULL;
		}
	} while (e == AGAIN);
	return e;
}

int
start_new(const struct store_conf *conf, struct start **ret_start, char *err, size_t err_len)
{
	struct start *s = calloc(1, sizeof *s);

	if (!s)
		return -ENOMEM;
	s->conf = conf;
	s->ops = conf->disks.engine->member;
	s->err = err;
	s->err_len = err_len;
	s->nr = conf->disks.nr;
	for (int i = 0; i < s->nr; i++) {
		s->disk[i].of = s;
		s->disk[i].conf = set_engine_conf(conf, i);
	}
	*ret_start = s;
	return 0;
}

/* Returns the path at which a missing disk should be, if known. */
static const char *
missing_path(const struct start *s, int number)
{
	int unknown;
	const struct disk *d = start_absent_of(s, number, &unknown);

	return d ? start_path(d) : "";
}

static void
tell(const struct start *s)
{
	char name[DISK_NAME_BYTES], why[512];

	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (!table_has(s->table.members & ~s->present, i))
			continue;
		why[0] = 0;
		start_add_why(s, i, why, sizeof why);
		log_warn("disk %s is missing%s, as store.accept_missing allows: what only it has answers 503",
			 start_name(s, i, name), why);
	}
}

int
set_start_disks(const struct store_conf *conf, struct set_found *ret_found, char *err, size_t err_len)
{
	struct set_found *found = ret_found;
	struct start *s;
	int e = start_new(conf, &s, err, err_len);

	if (e < 0)
		return e;
	e = run(s);
	if (e == 0) {
		tell(s);
		*found = (struct set_found){ .quotas = s->quotas };
		for (int i = 0; i < STORE_DISKS_MAX; i++) {
			struct disk *d = start_disk_at(s, i);
			struct set_member *m = &found->member[found->member_nr];

			found->engine_of[i] = SET_NOWHERE;
			if (!table_has(s->table.members, i))
				continue;
			if (d) {
				found->engine_of[i] = (uint8_t)found->nr;
				found->number[found->nr] = (uint8_t)i;
				found->counter[found->nr] = (uint8_t)d->counter;
				found->engine[found->nr++] = d->st;
			} else {
				snprintf(m->path, sizeof m->path, "%s", missing_path(s, i));
			}
			uuid_write(m->uuid, s->table.uuid[i]);
			m->engine = found->engine_of[i];
			m->number = (uint8_t)i;
			found->member_nr++;
		}
		found->missing_nr = found->member_nr - found->nr;
		tell_drained(s, found);
		memcpy(found->store_uuid, start_find_store(s)->id.store_uuid, UUID_BYTES);
		found->table = s->table;
		found->start_no = s->start_no;
		found->has_two = s->has_two;
	}
	free(s);
	return e;
}

/* ---- removal of missing disks (--forget) ---- */

/* Returns the number of lost slots of keys with two copies. A slot is lost if only forgotten disks had all of
 * its records. */
static int
lost_pairs(const struct start *s)
{
	int nr = 0;

	for (int i = 0; i < STORE_SLOT_NR; i++)
		nr += slots_has(&s->lost, table_place((unsigned)i, true));
	return nr;
}

int
set_forget(const struct store_conf *conf, char *said, size_t said_len)
{
	struct start *s;
	int e;

	e = start_new(conf, &s, said, said_len);
	if (e < 0)
		return e;
	e = run(s);
	if (e == 0) {
		int len = snprintf(said, said_len, "given up: %d disk%s; the store has %d now",
				   conf->disks.forget_nr, conf->disks.forget_nr == 1 ? "" : "s",
				   start_count(s->table.members));

		if (s->has_two && len > 0 && (size_t)len < said_len)
			snprintf(said + len, said_len - (size_t)len,
				 "; %d of %d slots of keys with two copies begin empty", lost_pairs(s),
				 STORE_SLOT_NR);
		for (int i = 0; conf->disks.ret_unused && i < conf->disks.nr; i++)
			*conf->disks.ret_unused |= (uint64_t)!s->disk[i].st << i;
		start_stop_all(s);
		quota_book_free(s->quotas);
	}
	free(s);
	return e;
}
