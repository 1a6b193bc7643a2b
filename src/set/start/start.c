/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a set whose engines have a table of disks: one path for every start, whatever was before (docs/store.md
 * §6).
 *
 *	open all, who are they? --> the newest table --> enough of its members? --> recover --> start number on all
 *	--> buckets as on the head --> a table of those present, on all --> serve
 *
 * Up to the start number nothing is written.  A disk that fails on the way counts as missing from there on, and all of
 * it begins anew without it.  Ordered by the table, not by the configuration.
 */
#include "set/start/start.h"

#include "set/map/set_rules.h"
#include "store/own_buf.h"
#include "store/quota.h"
#include "store/user.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define AGAIN 1 /* what is done begins anew, with a disk less */
/* How long a look waits for a disk that was just let go: longer, and a daemon serves it. */
#define LOOK_WAIT_NS NS_PER_S

/* One of the configured disks. */
struct disk {
	struct start *of;
	struct store_conf conf;
	struct store *st; /* NULL: it is not there */
	struct store_member id;
	int number; /* in the table */
	uint64_t start_no;
	bool is_out; /* it failed in an attempt before */
	bool is_behind;
	bool is_drained;
	struct store *drained; /* one that does not know yet that it is drained, until it does */
	int error;             /* why it is not there */
	char err[512];
	pthread_t thread;
	bool has_thread;
};

struct start {
	const struct store_conf *conf;
	const struct store_member_ops *ops;
	struct quota_book *quotas;
	struct disk_table table; /* the newest */
	struct disk_table next;  /* what it will be with those present */
	struct store_slots lost; /* places that begin empty, as a disk is given up */
	uint64_t present;        /* bitmap of numbers */
	uint64_t behind;         /* those that are older copies of themselves */
	uint64_t forgotten;      /* those that are given up */
	uint64_t start_no;
	bool has_two; /* there may be buckets with two copies */
	char *err;
	size_t err_len;
	int nr;
	struct disk disk[STORE_DISKS_MAX];
};

static int __attribute__((format(printf, 3, 4))) refuse(struct start *s, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->err, s->err_len, fmt, ap);
	va_end(ap);
	return error;
}

static const char *
path_of(const struct disk *d)
{
	return d->conf.disks.disk->path;
}

/* ---- what it is made from ---- */

int
set_check_conf(const struct store_conf *conf, char *err, size_t err_len)
{
	int max = conf->disks.engines_max < STORE_DISKS_MAX ? conf->disks.engines_max : STORE_DISKS_MAX;

	if (conf->default_copies > 1 && conf->disks.nr + conf->disks.accept_missing_nr == 1) {
		snprintf(err, err_len,
			 "store.default_copies is %u, and one disk is configured: copies are on disks of "
			 "their own",
			 conf->default_copies);
		return -EINVAL;
	}
	if (conf->disks.nr >= 1 && conf->disks.nr <= max)
		return 0;
	if (conf->disks.nr < 1)
		snprintf(err, err_len, "no disk is configured");
	else if (max == 1)
		snprintf(err, err_len, "%d disks are configured; this version serves one disk per store",
			 conf->disks.nr);
	else
		snprintf(err, err_len, "%d disks are configured; a store may have %d", conf->disks.nr, max);
	return -EINVAL;
}

struct store_conf
set_engine_conf(const struct store_conf *conf, int i)
{
	struct store_conf c = *conf;

	c.ops = conf->disks.engine;
	c.disks.disk = &conf->disks.disk[i];
	c.disks.nr = 1;
	c.disks.beside = conf->disks.nr - 1;
	c.disks.index_bytes = conf->disks.index_bytes / (uint64_t)conf->disks.nr;
	return c;
}

/* ---- all disks at once ---- */

struct step {
	struct disk *d;
	int (*fn)(struct disk *d);
};

static void *
step_main(void *arg)
{
	struct step *s = arg;

	s->d->error = s->fn(s->d);
	return NULL;
}

/* Runs fn() for each disk that is there (all: for each that did not fail yet), all at the same time. */
static void
each(struct start *s, bool all, int (*fn)(struct disk *d))
{
	struct step step[STORE_DISKS_MAX];
	struct disk *mine = NULL;

	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		if (all ? d->is_out : !d->st)
			continue;
		step[i] = (struct step){ d, fn };
		/* The first one on this thread: a store of one disk needs no other. */
		if (!mine)
			mine = d;
		else
			d->has_thread = pthread_create(&d->thread, NULL, step_main, &step[i]) == 0;
		if (d != mine && !d->has_thread)
			step_main(&step[i]);
	}
	if (mine)
		step_main(&step[mine - s->disk]);
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].has_thread)
			pthread_join(s->disk[i].thread, NULL);
		s->disk[i].has_thread = false;
	}
}

/* ---- who they are ---- */

static int
count(uint64_t bitmap)
{
	return __builtin_popcountll(bitmap);
}

static int
open_one(struct disk *d)
{
	return d->of->ops->open(&d->conf, &d->st, &d->id, d->err, sizeof d->err);
}

static bool
is_known(const struct disk *d)
{
	static const uint8_t none[UUID_BYTES];

	return memcmp(d->id.uuid, none, UUID_BYTES) != 0;
}

/* With what it ended for that one, and who it is if the reason does not say that. */
static int
refuse_disk(struct start *s, const struct disk *d)
{
	char text[UUID_TEXT];

	uuid_write(text, d->id.uuid);
	return is_known(d) && !strstr(d->err, text) ? refuse(s, d->error, "%s (disk %s)", d->err, text)
						    : refuse(s, d->error, "%s", d->err);
}

/* Whether it is known at all that there is no store on it. */
static bool
is_unmade(const struct disk *d)
{
	switch (-d->error) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
	case ENOTDIR:
	case ENOMEDIUM:
	case EROFS:
	case ENOTRECOVERABLE:
		return !d->st && !d->id.is_made;
	default:
		return false;
	}
}

/* None of them has anything of a store, as far as can be seen, nor has anybody said which of its disks may be missing. */
static bool
is_none_made(const struct start *s)
{
	int unmade = 0;

	for (int i = 0; i < s->nr; i++)
		unmade += is_unmade(&s->disk[i]);
	return unmade == s->nr && !s->conf->disks.accept_missing_nr;
}

/* Says what is wrong with one where none is made.  Where it could be looked at it can be made; where others are a store nobody should make one
 * of it, and lose them. */
static void
say_unmade(const struct disk *d, char *err, size_t err_len)
{
	bool is_seen = d->error == -ENOENT || d->error == -ENOTRECOVERABLE;

	snprintf(err, err_len, "%s%s", d->err, is_seen ? "; gantryd --format makes one" : "");
}

/* None of the store's own is left for it to be. */
static int
refuse_more(struct start *s, const struct disk *d)
{
	return is_unmade(d) ? refuse(s, d->error,
				     "%s; all disks of the store, %d, are others: take it off store.disks, "
				     "or add it "
				     "(gantryd --add %s)",
				     d->err, count(s->table.members), path_of(d))
			    : refuse_disk(s, d);
}

/* What may be said of a disk that is not there, or no store any more.  Anything else is for an operator. */
static bool
is_absence(int error)
{
	switch (-error) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
	case ENOTDIR:
	case ENOMEDIUM:
	case EIO:
	case ENODATA:
	case EREMOTEIO:
	case EUCLEAN:
	case EROFS:
	case ENOTRECOVERABLE:
		return true;
	default:
		return false;
	}
}

static int
check_opened(struct start *s)
{
	struct disk *first = NULL, *absent = NULL;

	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		/* Left alone by an attempt before this one. */
		if (d->is_drained)
			continue;
		first = first || !d->st ? first : d;
		absent = absent || d->st ? absent : d;
		if (!d->st && !is_absence(d->error))
			return refuse_disk(s, d);
	}
	if (!first && is_none_made(s)) {
		say_unmade(absent, s->err, s->err_len);
		return absent->error;
	}
	return first ? 0 : refuse_disk(s, absent);
}

/* The store that most of them are of. */
static const struct disk *
find_store(const struct start *s)
{
	const struct disk *best = NULL;
	int best_nr = 0;

	for (int i = 0; i < s->nr; i++) {
		int nr = 0;

		for (int j = 0; s->disk[i].st && j < s->nr; j++)
			nr += s->disk[j].st &&
			      memcmp(s->disk[i].id.store_uuid, s->disk[j].id.store_uuid, UUID_BYTES) == 0;
		if (nr > best_nr) {
			best = &s->disk[i];
			best_nr = nr;
		}
	}
	return best;
}

static int
check_store(struct start *s)
{
	const struct disk *of = find_store(s);

	for (int i = 0; i < s->nr; i++) {
		const struct disk *d = &s->disk[i];
		char disk[UUID_TEXT], its[UUID_TEXT], ours[UUID_TEXT];

		if (!d->st)
			continue;
		uuid_write(disk, d->id.uuid);
		uuid_write(its, d->id.store_uuid);
		uuid_write(ours, of->id.store_uuid);
		if (memcmp(d->id.store_uuid, of->id.store_uuid, UUID_BYTES) != 0)
			return refuse(
				s, -EINVAL,
				"%s: disk %s is of another store, %s; %s is of %s: take it off store.disks, "
				"or put the right one there",
				path_of(d), disk, its, path_of(of), ours);
		for (int j = 0; j < i; j++) {
			if (s->disk[j].st && memcmp(s->disk[j].id.uuid, d->id.uuid, UUID_BYTES) == 0)
				return refuse(
					s, -EINVAL,
					"%s and %s: both say to be disk %s, so one is a copy of the other; "
					"take the copy off store.disks",
					path_of(&s->disk[j]), path_of(d), disk);
		}
	}
	return 0;
}

/* Its table is the one that it was made with, before any of the store. */
static bool
is_half_added(const struct disk *d)
{
	return d->id.table->version >> TABLE_CHANGE_BITS == 0;
}

static int
refuse_stranger(struct start *s, const struct disk *d)
{
	char text[UUID_TEXT];

	uuid_write(text, d->id.uuid);
	if (is_half_added(d))
		return refuse(
			s, -EINVAL,
			"%s: disk %s was being added, and has not become one of this store: take it off "
			"store.disks, and add it once more (with --force)",
			path_of(d), text);
	return refuse(s, -EINVAL,
		      "%s: disk %s does not belong to this store (any more): it was given up, or drained; "
		      "take it off store.disks",
		      path_of(d), text);
}

/* A disk that was drained knows that it is no member: it is left alone, so that a start before anybody took it off the
 * configuration goes well. */
static int
leave_drained(struct start *s)
{
	int left = 0;

	for (int i = 0; i < s->nr; i++)
		left += s->disk[i].st && table_find(s->disk[i].id.table, s->disk[i].id.uuid) >= 0;
	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];
		char text[UUID_TEXT];

		if (!d->st || table_find(d->id.table, d->id.uuid) >= 0)
			continue;
		if (!left)
			return refuse_stranger(s, d);
		uuid_write(text, d->id.uuid);
		log_warn("%s: disk %s was drained, and is not used; take it off store.disks", path_of(d),
			 text);
		store_stop(d->st);
		d->st = NULL;
		d->is_out = d->is_drained = true;
	}
	return 0;
}

/*
 * A power cut came between the table without a drained disk and the writing of that table to the disk itself: its own newest table says
 * that it is draining and has no slot, the newest of all does not list it.  Slots come to a member by a table that it has, and whoever
 * went on by itself has given itself slots; so nothing is on it that anybody could miss, whatever became of it since.
 */
static bool
leave_unaware(struct disk *d)
{
	int number = table_find(d->id.table, d->id.uuid);
	char text[UUID_TEXT];

	if (number < 0 || !table_is_drained(d->id.table, number))
		return false;
	uuid_write(text, d->id.uuid);
	log_note("%s: disk %s was drained, and is told so now; take it off store.disks", path_of(d), text);
	d->drained = d->st;
	d->st = NULL;
	d->is_out = d->is_drained = true;
	return true;
}

/* Neither says which one is wrong. */
static int
refuse_tables(struct start *s, const struct disk *a, const struct disk *b)
{
	char of_a[UUID_TEXT], of_b[UUID_TEXT];

	uuid_write(of_a, a->id.uuid);
	uuid_write(of_b, b->id.uuid);
	return refuse(s, -ENOTRECOVERABLE,
		      "%s (disk %s) and %s (disk %s): their tables of disks have one version and differ: the "
		      "superblocks of one were changed by something else; put them back from a copy, or take "
		      "that disk off store.disks and start without it (store.accept_missing)",
		      path_of(a), of_a, path_of(b), of_b);
}

/* M1: the newest, whole. */
static int
find_table(struct start *s)
{
	const struct disk *of = NULL;

	for (int i = 0; i < s->nr; i++) {
		const struct disk *d = &s->disk[i];

		if (!d->st)
			continue;
		if (of && d->id.table->version == of->id.table->version &&
		    memcmp(d->id.table, of->id.table, sizeof *of->id.table) != 0)
			return refuse_tables(s, of, d);
		if (!of || (RULE_TABLE_NEWEST && d->id.table->version > of->id.table->version))
			of = d;
	}
	s->table = *of->id.table;
	return 0;
}

/* Without M13: with the number that it had. */
static int
number_of_stranger(struct start *s, const struct disk *d)
{
	int number = table_find(d->id.table, d->id.uuid);

	memcpy(s->table.uuid[number], d->id.uuid, UUID_BYTES);
	s->table.members |= (uint64_t)1 << number;
	return number;
}

static int
find_numbers(struct start *s)
{
	s->present = 0;
	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		if (!d->st)
			continue;
		d->number = table_find(&s->table, d->id.uuid);
		if (d->number < 0 && !RULE_TABLE_DECIDES)
			d->number = number_of_stranger(s, d);
		if (d->number < 0 && leave_unaware(d))
			continue;
		if (d->number < 0)
			return refuse_stranger(s, d);
		s->present |= (uint64_t)1 << d->number;
	}
	return 0;
}

/* ---- who is missing ---- */

static bool
is_accepted(const struct start *s, int number)
{
	for (int i = 0; i < s->conf->disks.accept_missing_nr; i++) {
		if (memcmp(s->conf->disks.accept_missing[i], s->table.uuid[number], UUID_BYTES) == 0)
			return true;
	}
	return false;
}

static bool
is_absent(const struct disk *d)
{
	return !d->st && !d->is_drained;
}

/* Whether one that cannot be opened says to be that one. */
static const struct disk *
absent_by_uuid(const struct start *s, int number)
{
	for (int i = 0; i < s->nr; i++) {
		if (is_absent(&s->disk[i]) &&
		    memcmp(s->disk[i].id.uuid, s->table.uuid[number], UUID_BYTES) == 0)
			return &s->disk[i];
	}
	return NULL;
}

/* The configured disk that a missing one is, as far as that can be known: it says so, or no other is left for it.  NULL: it is
 * not known; *ret_unknown are then those of which it may be one. */
static const struct disk *
absent_of(const struct start *s, int number, int *ret_unknown)
{
	const struct disk *d = absent_by_uuid(s, number), *last = NULL;
	int unknown = 0, left = 0;

	for (int i = 0; !d && i < s->nr; i++) {
		if (!is_absent(&s->disk[i]) || is_known(&s->disk[i]))
			continue;
		last = &s->disk[i];
		unknown++;
	}
	for (int i = 0; !d && i < STORE_DISKS_MAX; i++)
		left += table_has(s->table.members & ~s->present, i) && !absent_by_uuid(s, i);
	if (unknown == 1 && left == 1)
		d = last;
	*ret_unknown = d ? 0 : unknown;
	return d;
}

/* Of more disks than this it is said how many they are: what is to be done comes behind them. */
#define NAMED_MAX 3
#define WHY_BYTES 256

static void __attribute__((format(printf, 3, 4))) add(char *to, size_t len, const char *fmt, ...)
{
	size_t at = strlen(to);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to + at, len - at, fmt, ap);
	va_end(ap);
}

/* Where a missing disk was looked for, and why it is not there. */
static void
add_why(const struct start *s, int number, char *to, size_t len)
{
	int unknown;
	const struct disk *d = absent_of(s, number, &unknown);

	if (d)
		add(to, len, " (%.*s)", WHY_BYTES, d->err);
	else if (!unknown)
		add(to, len, " (no path of store.disks is left for it)");
}

/* The reasons of those of which it is not known who they are, where that leaves more than one choice. */
static void
add_unknown(const struct start *s, uint64_t missing, char *to, size_t len)
{
	int unknown = 0, more = 0, named = 0;

	for (int i = 0; !unknown && i < STORE_DISKS_MAX; i++) {
		if (table_has(missing, i))
			absent_of(s, i, &unknown);
	}
	for (int i = 0; unknown && i < s->nr; i++) {
		if (!is_absent(&s->disk[i]) || is_known(&s->disk[i]))
			continue;
		if (named++ < NAMED_MAX)
			add(to, len, "%s%.*s", named > 1 ? "; " : " (not there: ", WHY_BYTES, s->disk[i].err);
		else
			more++;
	}
	if (more)
		add(to, len, "; %d more", more);
	add(to, len, "%s", unknown ? ")" : "");
}

static bool
is_enough(const struct start *s)
{
	int members = count(s->table.members), present = count(s->present);
	bool half_suffices = !RULE_HALF_ONLY_IF_ALL_IN || (s->table.in & ~s->present) == 0;

	return !RULE_QUORUM || 2 * present > members || (2 * present == members && half_suffices);
}

/* The number of a member as /disks has it: in the order of the table's, which may have gaps. */
static int
shown_number(const struct start *s, int number)
{
	return count(s->table.members & (((uint64_t)1 << number) - 1));
}

static int
refuse_missing(struct start *s, uint64_t missing)
{
	char who[STORE_WHY_BYTES] = "", uuids[NAMED_MAX * UUID_TEXT + 16] = "", text[UUID_TEXT];
	char words[NAMED_MAX * (UUID_TEXT + 10) + 16] = "", accept[256] = "";
	bool is_one = count(missing) == 1;
	int nr = 0;

	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (!table_has(missing, i) || nr++ >= NAMED_MAX)
			continue;
		uuid_write(text, s->table.uuid[i]);
		if (nr == 1)
			add(who, sizeof who, "disk %s, number %d of a store of %d disks, is missing", text,
			    shown_number(s, i), count(s->table.members));
		else
			add(who, sizeof who, "; so is disk %s, number %d", text, shown_number(s, i));
		add_why(s, i, who, sizeof who);
		add(uuids, sizeof uuids, "%s%s", nr > 1 ? ", " : "", text);
		add(words, sizeof words, " --forget %s", text);
	}
	if (nr > NAMED_MAX) {
		add(who, sizeof who, "; so are %d more", nr - NAMED_MAX);
		add(uuids, sizeof uuids, ", ...");
		add(words, sizeof words, " ...");
	}
	add_unknown(s, missing, who, sizeof who);
	/* Where that is not enough, it would only be refused for another reason. */
	if (is_enough(s) && !s->forgotten)
		snprintf(accept, sizeof accept,
			 ", or start without %s (store.accept_missing: [%s]; what only %s answers 503 until "
			 "%s back)",
			 is_one ? "it" : "them", uuids, is_one ? "it has" : "they have",
			 is_one ? "it is" : "they are");
	return refuse(s, -EINVAL, "%s; bring %s back%s, or give %s up for good (gantryd%s)", who,
		      is_one ? "it" : "them", accept, is_one ? "it" : "them", words);
}

static int
refuse_few(struct start *s, uint64_t missing)
{
	char all[STORE_WHY_BYTES] = "", text[UUID_TEXT];
	int nr = 0;

	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (!table_has(missing, i) || nr++ >= NAMED_MAX)
			continue;
		uuid_write(text, s->table.uuid[i]);
		add(all, sizeof all, "%s %s", nr > 1 ? "," : "", text);
		add_why(s, i, all, sizeof all);
	}
	if (nr > NAMED_MAX)
		add(all, sizeof all, " and %d more", nr - NAMED_MAX);
	add_unknown(s, missing, all, sizeof all);
	return refuse(
		s, -EINVAL,
		"only %d of %d disks are there: the others may have gone on without them, so there "
		"must be more than half, or all that took part last; bring back one of%s, or give all of "
		"them up for good (gantryd --forget UUID, once for each)",
		count(s->present), count(s->table.members), all);
}

/* Whether one that is not there is known to be a member. */
static bool
is_member(const struct start *s, const struct disk *d)
{
	return is_known(d) && table_find(&s->table, d->id.uuid) >= 0;
}

/* M2, M3 */
static int
check_missing(struct start *s)
{
	uint64_t missing = s->table.members & ~s->present & ~s->forgotten, refused = missing;
	const struct disk *other = NULL;
	int absent = 0;

	for (int i = 0; i < s->nr; i++) {
		absent += is_absent(&s->disk[i]);
		if (is_absent(&s->disk[i]) && (!other || is_member(s, other)))
			other = &s->disk[i];
	}
	/* More paths than members: one of them is something else. */
	if (absent > count(missing | s->forgotten))
		return refuse_more(s, other);
	if (s->forgotten)
		return missing ? refuse_missing(s, missing) : 0;
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (table_has(missing, i) && is_accepted(s, i))
			refused &= ~((uint64_t)1 << i);
	}
	if (refused)
		return refuse_missing(s, refused);
	return is_enough(s) ? 0 : refuse_few(s, missing);
}

static int
find_forgotten(struct start *s)
{
	char text[UUID_TEXT];

	s->forgotten = 0;
	for (int i = 0; i < s->conf->disks.forget_nr; i++) {
		int number = table_find(&s->table, s->conf->disks.forget[i]);

		uuid_write(text, s->conf->disks.forget[i]);
		if (number < 0)
			return refuse(s, -EINVAL, "disk %s does not belong to this store", text);
		if (table_has(s->present, number))
			return refuse(s, -EINVAL,
				      "disk %s is there, and is given up only when it is not: take it off "
				      "store.disks first",
				      text);
		s->forgotten |= (uint64_t)1 << number;
	}
	return 0;
}

static void
sizes_of(const struct start *s, uint64_t ret_size[STORE_DISKS_MAX])
{
	memset(ret_size, 0, STORE_DISKS_MAX * sizeof *ret_size);
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].st)
			ret_size[s->disk[i].number] = s->disk[i].id.size_bytes;
	}
}

static void
lose(const struct start *s, struct disk_table *t)
{
	table_lose(t, s->present & ~s->behind);
	table_wait(t, s->present, s->behind);
}

/* Who will be the first of places with those that are there. */
static void
expect_table(struct start *s)
{
	uint64_t size[STORE_DISKS_MAX];

	sizes_of(s, size);
	memset(&s->lost, 0, sizeof s->lost);
	s->next = s->table;
	if (s->forgotten)
		table_forget(&s->next, s->forgotten, size, &s->lost);
	lose(s, &s->next);
}

/*
 * M41: the table of a start is written when all that take part have heard of the start (M5).  So one that the table says took part, and that
 * has not heard of it, is an older copy of itself that was put back; no cut leaves one so.  The others have all that was acknowledged of
 * buckets, and of keys with two copies: it is as one that was away.  As it hears of this start before it has a table of it, it is told to
 * remember that.  So is one of which a repair has dropped something.
 */
static void
find_behind(struct start *s)
{
	uint64_t no = s->table.version >> TABLE_CHANGE_BITS;
	char text[UUID_TEXT];

	s->behind = 0;
	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		d->is_behind = RULE_BEHIND_IS_AWAY && d->st && table_has(s->table.in, d->number) &&
			       (d->id.start_no < no || d->id.is_behind);
		if (!d->is_behind)
			continue;
		s->behind |= (uint64_t)1 << d->number;
		uuid_write(text, d->id.uuid);
		log_warn("%s: disk %s %s; what others have of buckets and of keys with two copies counts",
			 path_of(d), text,
			 d->id.start_no < no
				 ? "is an older copy of itself, of before the last start of the others"
				 : "was an older copy of itself, or a repair dropped something of it");
	}
	if ((s->table.in & s->present & ~s->behind) == 0)
		s->behind = 0;
	s->table.in &= ~s->behind;
}

static int
judge(struct start *s)
{
	int e = check_opened(s);

	if (e == 0)
		e = check_store(s);
	if (e == 0)
		e = leave_drained(s);
	if (e == 0)
		e = find_table(s);
	if (e == 0)
		e = find_numbers(s);
	if (e == 0)
		e = find_forgotten(s);
	if (e == 0)
		e = check_missing(s);
	if (e == 0) {
		find_behind(s);
		expect_table(s);
	}
	return e;
}

/* ---- recovering ---- */

/* The head has what counts of buckets: the lowest that took part in the newest table. */
static int
find_head(const struct start *s)
{
	uint64_t of = s->table.in & s->present;

	return __builtin_ctzll(of ? of : s->present);
}

static uint64_t
total_bytes(const struct start *s)
{
	uint64_t bytes = 0;

	for (int i = 0; i < s->nr; i++)
		bytes += s->disk[i].st ? s->disk[i].id.size_bytes : 0;
	return bytes;
}

/* Counter 0 of the quotas is the head's. */
static int
counter_of(const struct disk *d)
{
	uint64_t before = d->of->present & (((uint64_t)1 << d->number) - 1);
	int head = find_head(d->of);

	return d->number == head ? 0 : count(before) + (d->number < head);
}

/* M13: what the table does not give it is not there. */
static int
set_slots(struct disk *d)
{
	struct store_slots slots = { .bit = { 0 } };
	int r;

	if (!RULE_TABLE_DECIDES || !d->of->ops->set_slots)
		return 0;
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (d->of->table.home[i] == d->number)
			slots_add(&slots, table_place((unsigned)i, false));
		if (d->of->next.first[i] == d->number &&
		    !slots_has(&d->of->lost, table_place((unsigned)i, true)))
			slots_add(&slots, table_place((unsigned)i, true));
	}
	r = d->of->ops->set_slots(d->st, &slots);
	if (r < 0)
		snprintf(d->err, sizeof d->err, "%s: no memory", path_of(d));
	return r;
}

static int
recover_one(struct disk *d)
{
	uint64_t index_bytes = d->of->conf->disks.index_bytes;
	int r = set_slots(d);

	if (r < 0)
		return r;
	return d->of->ops->recover(d->st, set_share_of(index_bytes, d->id.size_bytes, total_bytes(d->of)),
				   d->of->quotas, counter_of(d), &d->start_no, d->err, sizeof d->err);
}

static int
begin_one(struct disk *d)
{
	return d->of->ops->begin(d->st, d->of->start_no, d->is_behind, d->err, sizeof d->err);
}

static int
set_table_one(struct disk *d)
{
	if (!RULE_TABLE_ALL && d->number != find_head(d->of))
		return 0;
	return d->of->ops->set_table(d->st, &d->of->table, d->err, sizeof d->err);
}

static int
serve_one(struct disk *d)
{
	return d->of->ops->serve(d->st, d->err, sizeof d->err);
}

/* One that failed is missing from here on.  0; AGAIN: one did; or -errno, if it is the only one of the store. */
static int
drop_failed(struct start *s)
{
	int e = 0;

	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		if (!d->st || d->error >= 0)
			continue;
		if (count(s->table.members) == 1)
			return refuse_disk(s, d);
		d->is_out = true;
		e = AGAIN;
	}
	return e;
}

/* M5: a number above all that any of them has heard of, on all of them before a table has it. */
static int
begin_all(struct start *s)
{
	s->start_no = 0;
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].st && s->disk[i].start_no > s->start_no)
			s->start_no = s->disk[i].start_no;
	}
	each(s, false, begin_one);
	return drop_failed(s);
}

static bool
all_have_table(const struct start *s)
{
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].st && memcmp(s->disk[i].id.table, &s->table, sizeof s->table) != 0)
			return false;
	}
	return true;
}

/* M6, M7: that of this start, on all of them.  The table of one disk needs no successor; of several, one that is missing may have a newer
 * one, which was begun in its last start and would count when it is back, and who is put back from an older copy is known by it (M41). */
static int
write_table(struct start *s)
{
	uint64_t size[STORE_DISKS_MAX];
	bool has_all = !RULE_TABLE_REDO || (count(s->table.members) == 1 && all_have_table(s)), changes;
	uint64_t no = RULE_START_NO ? s->start_no : (s->table.version >> TABLE_CHANGE_BITS) + 1;

	sizes_of(s, size);
	/* M35: members change when all that stay are there; M4: a majority is of them, whoever took part. */
	check(!s->forgotten || s->present == (s->table.members & ~s->forgotten));
	check((s->present & ~s->table.members) == 0);
	if (s->forgotten)
		table_forget(&s->table, s->forgotten, size, &s->lost);
	lose(s, &s->table);
	changes = table_start(&s->table, s->present, no);
	if (!changes && !s->forgotten && has_all)
		return 0;
	s->start_no = no;
	s->table.version = no << TABLE_CHANGE_BITS | 1;
	each(s, false, set_table_one);
	return drop_failed(s);
}

/* ---- all of it ---- */

static struct disk *
disk_at(struct start *s, int number)
{
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].st && s->disk[i].number == number)
			return &s->disk[i];
	}
	return NULL;
}

/* M30 */
static int
align_buckets(struct start *s)
{
	struct store *engine[STORE_DISKS_MAX];
	int head = find_head(s), nr = 0;

	engine[nr++] = disk_at(s, head)->st;
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (i == head || !table_has(s->present, i))
			continue;
		engine[nr++] = disk_at(s, i)->st;
	}
	return nr > 1 && RULE_BUCKETS_FROM_HEAD ? set_align_buckets(engine, nr, s->err, s->err_len) : 0;
}

/* Slots of a disk that is given up go to others and begin empty: what they have of them from a move that was cut short goes. */
struct leftovers {
	struct store_walk w;
	struct store_slots slots;
	int nr;
	struct {
		uint16_t bucket_len, key_len;
		uint8_t copies;
		char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
	} key[64];
};

static bool
on_leftover(struct store_walk *w, const struct store_key *k)
{
	struct leftovers *l = container_of(w, struct leftovers, w);

	l->key[l->nr].bucket_len = k->bucket_len;
	l->key[l->nr].key_len = k->key_len;
	l->key[l->nr].copies = k->copies;
	memcpy(l->key[l->nr].name, k->bucket, k->bucket_len);
	memcpy(l->key[l->nr].name + k->bucket_len, k->key, k->key_len);
	return ++l->nr < (int)(sizeof l->key / sizeof *l->key);
}

static int
drop_page(struct start *s, struct leftovers *l, struct store_user *user)
{
	struct store_port *p = store_user_port(user, 0);
	struct store_send *send = calloc(1, sizeof *send);
	int e = send ? 0 : -ENOMEM;

	l->nr = 0;
	if (e == 0)
		e = s->ops->walk(p, &l->w);
	for (int i = 0; e >= 0 && i < l->nr; i++) {
		memset(send, 0, sizeof *send);
		send->key = (struct store_key){ l->key[i].name, l->key[i].name + l->key[i].bucket_len,
						l->key[i].bucket_len, l->key[i].key_len, l->key[i].copies };
		e = STORE_DO(user, &send->op, s->ops->remove(p, send));
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
		l->w.slots = &l->slots;
		l->w.key = on_leftover;
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
		while (e == 0 && l->w.more);
		store_user_free(user);
	}
	free(l);
	return e < 0 ? refuse(s, e, "cannot remove what is left over of a move: %s", strerror(-e)) : 0;
}

/* A disk that failed meanwhile may be why. */
static int
align_all(struct start *s)
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
		snprintf(d->err, sizeof d->err, "%s: it failed while the start wrote to it", path_of(d));
	}
	failed = drop_failed(s);
	return failed ? failed : e;
}

/* ---- keys with two copies ---- */

/* M21: pages of what differs between a first and a second. */
struct aligner {
	struct store_walk w;
	struct store_slots slots, damaged;
	int nr;
	struct {
		uint16_t bucket_len, key_len;
		char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
	} key[64];
	struct store_send send;
	struct buf buf;
	uint64_t changes;
};

static bool
on_different(struct store_walk *w, const struct store_key *k)
{
	struct aligner *a = container_of(w, struct aligner, w);

	a->key[a->nr].bucket_len = k->bucket_len;
	a->key[a->nr].key_len = k->key_len;
	memcpy(a->key[a->nr].name, k->bucket, k->bucket_len);
	memcpy(a->key[a->nr].name + k->bucket_len, k->key, k->key_len);
	return ++a->nr < (int)(sizeof a->key / sizeof *a->key);
}

/* What cannot be read at the first stays as it is at the second, which has not all then. */
static int
align_page(struct start *s, struct aligner *a, struct store_user *user, struct store_port *walked)
{
	int e;

	a->nr = 0;
	e = s->ops->walk(walked, &a->w);
	for (int i = 0; e >= 0 && i < a->nr; i++) {
		struct store_key k = { .bucket = a->key[i].name,
				       .key = a->key[i].name + a->key[i].bucket_len,
				       .bucket_len = a->key[i].bucket_len,
				       .key_len = a->key[i].key_len,
				       .copies = 2 };

		memset(&a->send, 0, sizeof a->send);
		a->send.key = k;
		a->send.buf = &a->buf;
		e = STORE_DO(user, &a->send.op,
			     s->ops->send(store_user_port(user, 0), store_user_port(user, 1), &a->send));
		a->changes += a->send.changes;
		if (e == -EBADMSG || e == -ENOSPC) {
			slots_add(&a->damaged, store_place(&k));
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

		a->w = (struct store_walk){ .slots = &a->slots,
					    .differs_from = store_user_port(user, !i),
					    .key = on_different };
		do
			e = align_page(s, a, user, p);
		while (e == 0 && a->w.more);
	}
	store_user_free(user);
	return e;
}

/* One that failed under it is missing from here on. */
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
			 path_of(both[i]));
	}
	return both[0]->error || both[1]->error
		       ? drop_failed(s)
		       : refuse(s, e, "%s, %s: their copies cannot be made equal: %s", path_of(first),
				path_of(second), strerror(-e));
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
	each(s, false, set_table_one);
	return drop_failed(s);
}

static int
align_copies(struct start *s)
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

/* Another table may say another thing of one that was taken for drained. */
static void
stop_drained(struct disk *d)
{
	if (!d->drained)
		return;
	store_stop(d->drained);
	d->drained = NULL;
	d->is_out = d->is_drained = false;
}

/* Finds out whether there are buckets with two copies.  Where no slot has a second there may be some all the same: the other disks
 * were given up, or were away when the first was made. */
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
	e = set_find_two(disk_at(s, __builtin_ctzll(s->present))->st, name);
	s->has_two = e > 0;
	return e < 0 ? refuse(s, e, "cannot list buckets: %s", strerror(-e)) : 0;
}

static void
stop_all(struct start *s)
{
	for (int i = 0; i < s->nr; i++) {
		store_stop(s->disk[i].st);
		s->disk[i].st = NULL;
		stop_drained(&s->disk[i]);
	}
}

/* Writes the table, when it is effective, on those that do not know yet that they are drained.  Where that cannot be done the next start
 * does the same.  They are shown as what they are until then. */
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
		/* It has not heard of this start, so no table of it may be there. */
		t.version = d->id.table->version;
		if (s->ops->set_table(d->drained, &t, why, sizeof why) < 0)
			log_warn("a drained disk cannot be told so: %s", why);
		if (unit < STORE_DISKS_MAX) {
			found->member[unit].engine = SET_NOWHERE;
			uuid_write(found->member[unit].uuid, d->id.uuid);
			snprintf(found->member[unit].path, sizeof found->member[0].path, "%s", path_of(d));
			found->drained |= (uint64_t)1 << unit;
			found->member_nr++;
		}
		stop_drained(d);
	}
}

/* AGAIN: a disk failed on the way. */
static int
attempt(struct start *s)
{
	int e;

	each(s, true, open_one);
	/* Not tried again in this start: that a flush failed is told once, and the next one would end well. */
	for (int i = 0; i < s->nr; i++)
		s->disk[i].is_out |= !s->disk[i].st;
	e = judge(s);
	if (e < 0)
		return e;
	e = quota_book_new(count(s->present), &s->quotas);
	if (e < 0)
		return refuse(s, e, "no memory");
	each(s, false, recover_one);
	e = drop_failed(s);
	if (e == 0)
		e = begin_all(s);
	if (e == 0)
		e = align_all(s);
	if (e == 0)
		e = write_table(s);
	if (e == 0)
		e = align_copies(s);
	if (e == 0)
		e = find_two(s);
	if (e == 0) {
		each(s, false, serve_one);
		e = drop_failed(s);
	}
	return e;
}

/* Until all goes well, or what is left is not enough. */
static int
run(struct start *s)
{
	int e;

	do {
		e = attempt(s);
		if (e != 0) {
			stop_all(s);
			quota_book_free(s->quotas);
			s->quotas = NULL;
		}
	} while (e == AGAIN);
	return e;
}

static int
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

/* The path at which a missing disk should be, if that can be known. */
static const char *
missing_path(const struct start *s, int number)
{
	int unknown;
	const struct disk *d = absent_of(s, number, &unknown);

	return d ? path_of(d) : "";
}

static void
tell(const struct start *s)
{
	char text[UUID_TEXT], why[512];

	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (!table_has(s->table.members & ~s->present, i))
			continue;
		uuid_write(text, s->table.uuid[i]);
		why[0] = 0;
		add_why(s, i, why, sizeof why);
		log_warn("disk %s is missing%s, as store.accept_missing allows: what only it has answers 503",
			 text, why);
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
			struct disk *d = disk_at(s, i);
			struct set_member *m = &found->member[found->member_nr];

			found->engine_of[i] = SET_NOWHERE;
			if (!table_has(s->table.members, i))
				continue;
			if (d) {
				found->engine_of[i] = (uint8_t)found->nr;
				found->number[found->nr] = (uint8_t)i;
				found->engine[found->nr++] = d->st;
			} else {
				snprintf(m->path, sizeof m->path, "%s", missing_path(s, i));
			}
			uuid_write(m->uuid, s->table.uuid[i]);
			m->engine = found->engine_of[i];
			found->member_nr++;
		}
		found->missing_nr = found->member_nr - found->nr;
		tell_drained(s, found);
		memcpy(found->store_uuid, find_store(s)->id.store_uuid, UUID_BYTES);
		found->table = s->table;
		found->start_no = s->start_no;
		found->has_two = s->has_two;
	}
	free(s);
	return e;
}

/* ---- looking ---- */

/* Whether it can be told now who they are.  *ret_unmade: none of them has a store, which may still be made. */
static bool
can_judge(const struct start *s, bool *ret_unmade)
{
	*ret_unmade = false;
	for (int i = 0; i < s->nr; i++) {
		const struct disk *d = &s->disk[i];

		/* A daemon serves it; or whoever asks may only read the configuration. */
		if (!d->st && (d->error == -EBUSY || d->error == -EACCES || d->error == -EPERM))
			return false;
	}
	/* Who may be missing is known of a store that was made. */
	*ret_unmade = is_none_made(s);
	return !*ret_unmade;
}

static void
say_forgotten(struct start *s)
{
	s->err[0] = 0;
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		int one = 0, empty = 0, second = 0;
		char text[UUID_TEXT];

		if (!table_has(s->forgotten, i))
			continue;
		for (int slot = 0; slot < STORE_SLOT_NR; slot++) {
			bool is_lost = slots_has(&s->lost, table_place((unsigned)slot, true));

			one += s->table.home[slot] == i;
			empty += s->table.first[slot] == i && is_lost;
			second += s->table.first[slot] == i && !is_lost;
		}
		uuid_write(text, s->table.uuid[i]);
		add(s->err, s->err_len, "%sdisk %s, number %d of a store of %d disks", s->err[0] ? "\n" : "",
		    text, shown_number(s, i), count(s->table.members));
		add_why(s, i, s->err, s->err_len);
		add(s->err, s->err_len,
		    ": has %d of %d slots of keys with one copy, which begin empty on the others; of keys "
		    "with "
		    "two copies %d slots begin empty, %d go to their second",
		    one, STORE_SLOT_NR, empty, second);
	}
}

int
set_look(const struct store_conf *conf, char *err, size_t err_len)
{
	struct start *s;
	bool unmade, forgets = conf->disks.forget_nr > 0;
	int e = set_check_conf(conf, err, err_len);

	if (e < 0 || !conf->disks.engine->member)
		return e;
	e = start_new(conf, &s, err, err_len);
	if (e < 0)
		return e;
	err[0] = 0;
	for (int i = 0; i < s->nr; i++)
		if (!forgets && s->disk[i].conf.disks.lock_wait_ns > LOOK_WAIT_NS)
			s->disk[i].conf.disks.lock_wait_ns = LOOK_WAIT_NS;
	each(s, true, open_one);
	e = can_judge(s, &unmade) || forgets ? judge(s) : 0;
	if (e == 0 && forgets)
		say_forgotten(s);
	else if (e == 0 && unmade)
		say_unmade(&s->disk[0], err, err_len);
	stop_all(s);
	free(s);
	return e;
}

/* Finds the newest table, and says what a start would refuse: 0, or what it would end with.  *ret_has: there is a table. */
static int
look_across(const struct store_conf *conf, struct disk_table *ret_table, bool *ret_has, char *err,
	    size_t err_len)
{
	struct start *s;
	bool any = false;
	int e = start_new(conf, &s, err, err_len);

	*ret_has = false;
	if (e < 0)
		return e;
	each(s, true, open_one);
	for (int i = 0; i < s->nr; i++)
		any |= s->disk[i].st != NULL;
	/* What is wrong with each by itself is said when its turn comes. */
	e = any ? judge(s) : 0;
	*ret_has = e == 0 && any;
	*ret_table = s->table;
	for (int i = 0; i < s->nr && e < 0; i++) {
		if (!s->disk[i].st && strcmp(err, s->disk[i].err) == 0)
			e = 0;
	}
	stop_all(s);
	free(s);
	return e;
}

int
set_fsck(const struct store_conf *conf, bool repair, void (*say)(void *cookie, const char *line),
	 void *cookie)
{
	struct disk_table table;
	bool has_table = false;
	char err[1024];
	int refused = set_check_conf(conf, err, sizeof err), r = refused;

	if (r == 0 && conf->disks.nr > 1 && conf->disks.engine->member)
		r = look_across(conf, &table, &has_table, err, sizeof err);
	if (r < 0 && say)
		say(cookie, err);
	if (refused < 0)
		return r;
	/* All of them are looked at, whatever the first ones say. */
	for (int i = 0; i < conf->disks.nr; i++) {
		struct store_conf c = set_engine_conf(conf, i);
		int one;

		c.disks.table = has_table ? &table : NULL;
		/* One after the other: each may take all of it. */
		c.disks.index_bytes = conf->disks.index_bytes;
		one = store_fsck(&c, repair, say, cookie);
		if (one < 0 ? r >= 0 : r == 0)
			r = one;
	}
	return r;
}

/* ---- giving up a disk ---- */

/* How many slots of keys with two copies nobody had all of but who was given up. */
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

	if (!conf->disks.engine->member)
		return -EOPNOTSUPP;
	e = start_new(conf, &s, said, said_len);
	if (e < 0)
		return e;
	e = run(s);
	if (e == 0) {
		int len = snprintf(said, said_len, "given up: %d disk%s; the store has %d now",
				   conf->disks.forget_nr, conf->disks.forget_nr == 1 ? "" : "s",
				   count(s->table.members));

		if (s->has_two && len > 0 && (size_t)len < said_len)
			snprintf(said + len, said_len - (size_t)len,
				 "; %d of %d slots of keys with two copies begin empty", lost_pairs(s),
				 STORE_SLOT_NR);
		stop_all(s);
		quota_book_free(s->quotas);
	}
	free(s);
	return e;
}

/* ---- making ---- */

static int
format_all(const struct store_conf *conf, bool force, struct store_birth *birth,
	   uint64_t size[STORE_DISKS_MAX], char *err, size_t err_len)
{
	uint64_t total = 0;

	for (int i = 0; i < conf->disks.nr; i++)
		total += size[i];
	for (int i = 0; i < conf->disks.nr; i++) {
		struct store_conf c = set_engine_conf(conf, i);
		int e;

		birth->number = i;
		c.disks.birth = birth;
		if (!birth->is_look)
			c.disks.index_bytes = set_share_of(conf->disks.index_bytes, size[i], total);
		e = store_format(&c, force, err, err_len);
		if (e < 0)
			return e;
		size[i] = birth->size_bytes;
	}
	return 0;
}

/* What stands in the way on any of them is told before anything is written on one. */
int
set_format_disks(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	uint64_t size[STORE_DISKS_MAX] = { 0 };
	uint8_t uuid[STORE_DISKS_MAX][UUID_BYTES];
	struct store_birth birth = { .is_look = true };
	int e = format_all(conf, force, &birth, size, err, err_len);

	if (e < 0)
		return e;
	birth.is_look = false;
	if (getrandom(birth.store_uuid, UUID_BYTES, 0) != UUID_BYTES ||
	    getrandom(uuid, sizeof uuid, 0) != (ssize_t)sizeof uuid) {
		snprintf(err, err_len, "no random numbers: %s", strerror(errno));
		return -EIO;
	}
	table_make(&birth.table, (const uint8_t(*)[UUID_BYTES])uuid, size, conf->disks.nr, 1);
	return format_all(conf, force, &birth, size, err, err_len);
}
