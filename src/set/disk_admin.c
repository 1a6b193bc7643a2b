/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that come and go while a set serves: one is drained, or one is added, and the slots go where the table says that they should be
 * (table_plan()).  What is under way stands in the table, so the next start goes on with it.
 *
 *	drain	bit in the table --> its slots go, some at a time --> a table without it --> it is told that it is no member
 *	add	made, opened, every port attaches to it --> buckets as on the others --> a table with it --> slots come
 *	cancel	the keys that are on their way end --> a table that says so: answered --> what is left over is removed --> bits
 *		cleared; what has moved stays where it is
 *
 * A thread of its own does it, and ends with it.
 */
#include "set/replicas.h"
#include "set/mover.h"

#include "store/quota.h"
#include "base/clock.h"
#include "base/path.h"
#include "ring/ring.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#ifndef PAUSE_NS
#define PAUSE_NS (2 * NS_PER_S)
#endif
#define THROUGH_NS (10 * NS_PER_S)
/* How long who asks for the next change waits for one that was cancelled. */
#define ENDS_NS (5 * NS_PER_S)

/* ---- who is who ---- */

static int
unit_of(const struct set *s, int engine)
{
	for (int i = 0; i < atomic_load(&s->member_nr); i++) {
		if (s->member[i].engine == engine)
			return i;
	}
	return -1;
}

static void
look_at(const struct set *s, int engine, struct store_unit_info *ret_info)
{
	store_unit_info(s->engine[engine], 0, ret_info);
}

/* Of each number, those of members that are there. */
void
move_sizes(const struct set *s, uint64_t ret_size[STORE_DISKS_MAX])
{
	struct store_unit_info info;

	memset(ret_size, 0, STORE_DISKS_MAX * sizeof *ret_size);
	for (int i = 0; i < atomic_load(&s->nr); i++) {
		if (!(set_all(s) >> i & 1))
			continue;
		look_at(s, i, &info);
		ret_size[s->number[i]] = info.size_bytes;
	}
}

/* What would go elsewhere with all that is on it: neither its log nor the room for its snapshots does. */
static uint64_t
used_bytes(const struct set *s, int engine)
{
	struct store_unit_info info;
	uint64_t stays;

	look_at(s, engine, &info);
	stays = info.free_bytes + info.own_bytes;
	return info.size_bytes - (stays < info.size_bytes ? stays : info.size_bytes);
}

static bool
is_named(const struct set *s, int unit, const char *which)
{
	struct store_unit_info info;

	if (strcmp(s->member[unit].uuid, which) == 0 ||
	    (s->member[unit].path[0] && strcmp(s->member[unit].path, which) == 0))
		return true;
	if (s->member[unit].engine == SET_NOWHERE)
		return false;
	look_at(s, s->member[unit].engine, &info);
	return strcmp(info.name, which) == 0;
}

/* The engine of a disk that such a path leads to, by whatever way; -1. */
static int
engine_at(const struct set *s, const char *path)
{
	struct store_unit_info info;

	for (int i = 0; path[0] == '/' && i < atomic_load(&s->nr); i++) {
		look_at(s, i, &info);
		if (info.name[0] && path_leads_same(info.name, path))
			return i;
	}
	return -1;
}

/* It was drained before this start, and no engine has its path: another one may be there. */
static bool
has_left(const struct set *s, int unit)
{
	return s->member[unit].engine == SET_NOWHERE && atomic_load(&s->drained) >> unit & 1;
}

/* The same disk in other letters: a UUID in capitals, a path with a slash behind it. */
static bool
is_written_so(const struct set *s, int unit, const char *which)
{
	struct store_unit_info info = { .name = s->member[unit].path };

	if (s->member[unit].engine != SET_NOWHERE)
		look_at(s, s->member[unit].engine, &info);
	return strcasecmp(s->member[unit].uuid, which) == 0 || path_same(info.name, which);
}

/* The member with that path, UUID or number, or one that has left; -1. */
static int
find_unit(const struct set *s, const char *which)
{
	int nr = atomic_load(&s->member_nr), left = -1;
	char number[12];

	for (int i = 0; i < nr; i++) {
		if (!is_named(s, i, which) && !is_written_so(s, i, which))
			continue;
		if (!has_left(s, i))
			return i;
		left = i;
	}
	if (left >= 0)
		return left;
	/* As /disks shows it: of what is merely like a number nobody knows what is meant. */
	for (int i = 0; i < nr; i++) {
		snprintf(number, sizeof number, "%d", i);
		if (strcmp(number, which) == 0)
			return i;
	}
	return -1;
}

static bool
all_serve(const struct set *s)
{
	return !set_misses_some(s) && atomic_load(&s->in) == set_all(s) && !atomic_load(&s->is_read_only);
}

/* Says which disk is not there, or has failed, and why.  False: none is so. */
static bool
say_who_is_out(const struct set *s, char *text, size_t len)
{
	int nr = 0, at = 0;

	for (int i = 0; i < atomic_load(&s->member_nr); i++) {
		int engine = s->member[i].engine;
		bool is_missing = engine == SET_NOWHERE;
		struct store_unit_info info = { .name = s->member[i].path };

		if (atomic_load(&s->drained) >> i & 1 || (!is_missing && !set_has_failed(s, engine)) || nr++)
			continue;
		if (!is_missing)
			look_at(s, engine, &info);
		at = snprintf(text, len, "disk %.90s%s%s%s %s%s%.60s", info.name, info.name[0] ? " (" : "",
			      s->member[i].uuid, info.name[0] ? ")" : "",
			      is_missing ? "is missing" : "has failed", info.reason[0] ? ": " : "",
			      info.reason);
	}
	if (nr > 1 && (size_t)at < len)
		snprintf(text + at, len - (size_t)at, ", and so %s %d more", nr == 2 ? "is" : "are", nr - 1);
	return nr > 0;
}

static int __attribute__((format(printf, 4, 5))) say(char *said, size_t len, int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, len, fmt, ap);
	va_end(ap);
	return r;
}

/* ---- what callers are told ---- */

/* The first answer is the caller's: healing that goes on behind a call that failed has none to give. */
static void
answer(struct mover *m, int r)
{
	pthread_mutex_lock(&m->lock);
	if (!m->is_answered)
		m->answer = r;
	m->is_answered = true;
	pthread_cond_broadcast(&m->cond);
	pthread_mutex_unlock(&m->lock);
}

static void __attribute__((format(printf, 2, 3))) trouble(struct mover *m, const char *fmt, ...)
{
	char text[sizeof m->info.trouble];
	va_list ap;
	bool is_new;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&m->lock);
	is_new = strcmp(text, m->info.trouble) != 0;
	m->waits_until_ns = 0;
	memcpy(m->info.trouble, text, sizeof text);
	pthread_mutex_unlock(&m->lock);
	if (is_new && text[0])
		log_warn("%s: %s",
			 m->job == JOB_HEAL ? "second copies are not being made"
					    : "a move of slots stands still",
			 text);
}

static void
pause_for(struct mover *m, uint64_t ns)
{
	uint64_t until = clock_ns() + ns;

	while (clock_ns() < until && !atomic_load(&m->stop) && !atomic_load(&m->cancel))
		move_turn(m);
}

/* ---- moving ---- */

/* Disks come or go. */
static bool
members_change(const struct disk_table *t)
{
	return (t->draining | t->filling) != 0;
}

static bool
is_under_way(struct set *s, const struct disk_table *t)
{
	return members_change(t) || move_pairs_wait(s, t);
}

/* Says the table so, whether anybody moves or not? */
static bool
is_begun(struct set *s)
{
	bool is;

	pthread_mutex_lock(&s->lock);
	is = members_change(&s->table);
	pthread_mutex_unlock(&s->lock);
	return is;
}

/* Does one have what is not its own?  A move that ended while its disk was away has left it there. */
static bool
has_leftovers(const struct set *s)
{
	bool has_pairs = s->copies && atomic_load(&s->copies->is_used);
	struct store_unit_info info;
	bool has = false;

	for (int i = 0; i < atomic_load(&s->nr); i++) {
		look_at(s, i, &info);
		has |= store_unit_number(&info, "leftover_objects") ||
		       store_unit_number(&info, "leftover_uploads");
		/* Else they are second copies. */
		has |= !has_pairs &&
		       (store_unit_number(&info, "copy_objects") || store_unit_number(&info, "copy_uploads"));
	}
	return has;
}

/*
 * Of a slot that has no keys with two copies: its first goes along with its home, and by itself where that has gone before, as when
 * another disk was given up.
 */
static void
next_of_slot(const struct disk_table *t, int slot, int planned, int *ret_from, int *ret_to)
{
	*ret_from = t->home[slot];
	*ret_to = planned;
	if (*ret_from == planned && t->second[slot] == TABLE_NO_DISK &&
	    table_has(t->draining, t->first[slot]))
		*ret_from = t->first[slot];
}

/* The next slots that go from one engine to one other.  False: there are none, or none that can go now: they are stuck, or one of
 * the disks is missing. */
static bool
next_slots(struct mover *m, const struct disk_table *t, int *ret_from, int *ret_to, int *ret_left)
{
	struct set *s = m->set;
	uint64_t size[STORE_DISKS_MAX];
	uint8_t home[STORE_SLOT_NR];
	int nr = 0;

	move_sizes(s, size);
	table_plan(t, size, home);
	memset(&m->slots, 0, sizeof m->slots);
	m->kind = MOVE_HOME;
	*ret_from = *ret_to = -1;
	*ret_left = 0;
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int from, to;

		next_of_slot(t, i, home[i], &from, &to);
		if (from == to)
			continue;
		++*ret_left;
		if (slots_has(&m->stuck, (unsigned)i) || set_engine_of(s, from) < 0 ||
		    set_engine_of(s, to) < 0)
			continue;
		if (*ret_from < 0) {
			*ret_from = from;
			*ret_to = to;
		}
		if (from == *ret_from && to == *ret_to && nr < MOVE_SLOTS) {
			if (t->home[i] == from)
				slots_add(&m->slots, (unsigned)i);
			if (t->second[i] == TABLE_NO_DISK && t->first[i] == from)
				slots_add(&m->slots, (unsigned)(STORE_SLOT_NR + i));
			nr++;
		}
	}
	if (!nr)
		return false;
	*ret_from = set_engine_of(s, *ret_from);
	*ret_to = set_engine_of(s, *ret_to);
	return true;
}

/* What is yet to go: places of slots, of keys with one copy and of either copy of those with two.  Where first and second of a slot swap
 * nothing has gone. */
struct to_go {
	uint64_t homes[STORE_DISKS_MAX]; /* from each disk */
	uint64_t pairs[STORE_DISKS_MAX]; /* from each that leaves */
	uint64_t come;                   /* of keys with two copies, to those that fill */
	uint64_t nr;                     /* of all these */
};

static uint64_t
lacks(int want, int has)
{
	return want > has ? (uint64_t)(want - has) : 0;
}

static void
count_pairs(const struct disk_table *t, const uint64_t size[STORE_DISKS_MAX], struct to_go *g)
{
	int want[STORE_DISKS_MAX], firsts[STORE_DISKS_MAX] = { 0 }, seconds[STORE_DISKS_MAX] = { 0 };

	table_shares(t->members & ~t->draining, size, want);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (t->second[i] == TABLE_NO_DISK)
			continue;
		firsts[t->first[i]]++;
		seconds[t->second[i]]++;
	}
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (table_has(t->draining, i))
			g->pairs[i] = (uint64_t)(firsts[i] + seconds[i]);
		else if (table_has(t->filling, i))
			g->come += lacks(want[i], firsts[i]) + lacks(want[i], seconds[i]);
		g->nr += g->pairs[i];
	}
	g->nr += g->come;
}

static void
count_to_go(struct set *s, const struct disk_table *t, struct to_go *g)
{
	uint64_t size[STORE_DISKS_MAX];
	uint8_t home[STORE_SLOT_NR];

	memset(g, 0, sizeof *g);
	if (table_gives_up(t))
		return;
	move_sizes(s, size);
	table_plan(t, size, home);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int from, to;

		next_of_slot(t, i, home[i], &from, &to);
		g->homes[t->home[i]] += home[i] != t->home[i];
		g->nr += from != to;
	}
	if (s->copies && atomic_load(&s->copies->is_used))
		count_pairs(t, size, g);
}

static void
begin_count(struct mover *m, const struct disk_table *t)
{
	struct set *s = m->set;
	uint64_t bytes = 0, all = 0, roles = 0;
	struct to_go g;

	count_to_go(s, t, &g);
	for (int i = 0; i < atomic_load(&s->nr); i++) {
		uint64_t has, go = g.homes[s->number[i]] + g.pairs[s->number[i]], used;

		if (!(set_all(s) >> i & 1))
			continue;
		has = (uint64_t)table_roles(t, s->number[i]);
		/* Where no key has two copies their slots have a first all the same. */
		if (!s->copies || !atomic_load(&s->copies->is_used))
			has = (uint64_t)table_count(t, s->number[i]);
		used = used_bytes(s, i);
		all += used;
		roles += has;
		if (go)
			bytes += (uint64_t)((double)used * (double)go / (double)has);
	}
	/* Those come from whoever is the first. */
	if (g.come && roles)
		bytes += (uint64_t)((double)all * (double)g.come / (double)roles);
	pthread_mutex_lock(&m->lock);
	m->info.slots_total = g.nr;
	m->info.slots_done = m->info.bytes_done = m->info.keys = 0;
	m->info.bytes_total = bytes;
	m->info.began_ns = clock_ns();
	m->info.draining = m->info.filling = 0;
	for (int i = 0; i < atomic_load(&s->member_nr); i++) {
		int engine = s->member[i].engine;
		uint64_t bit = (uint64_t)1 << i;

		if (engine == SET_NOWHERE)
			continue;
		m->info.draining |= table_has(t->draining, s->number[engine]) ? bit : 0;
		m->info.filling |= table_has(t->filling, s->number[engine]) ? bit : 0;
	}
	pthread_mutex_unlock(&m->lock);
}

/* Keys with two copies need two disks that stay. */
static bool
leaves_pairs(struct set *s, const struct disk_table *t, uint64_t draining)
{
	return !s->copies || !atomic_load(&s->copies->is_used) || !(draining & ~t->draining) ||
	       __builtin_popcountll(t->members & ~draining) > 1;
}

/*
 * Takes the seconds off a table by which one disk is to be left, if there is nothing that has two copies: the next bucket that has
 * makes them anew.  With the turn, so none is being made.  What any disk knows counts: of a removal that came to no end one may have the bucket,
 * and be the only one at the next start.
 */
static int
drop_pairs(struct mover *m, struct disk_table *next)
{
	struct set *s = m->set;
	char name[STORE_BUCKET_MAX + 1];
	int r = 0;

	if (!all_serve(s))
		return say(m->said, sizeof m->said, -EROFS,
			   "a disk is missing or has failed: members change only when all others serve");
	for (int i = 0; r == 0 && i < atomic_load(&s->nr); i++)
		r = set_all(s) >> i & 1 ? set_find_two(s->engine[i], name) : 0;
	if (r < 0)
		return say(m->said, sizeof m->said, r, "cannot list buckets: %s", strerror(-r));
	if (r > 0)
		return say(m->said, sizeof m->said, -EPERM,
			   "bucket %s has two copies of each object, which need two disks: add another disk "
			   "first, or remove the bucket",
			   name);
	memset(next->second, TABLE_NO_DISK, sizeof next->second);
	memset(next->full, 0, sizeof next->full);
	return 0;
}

/* A change of the table that is neither of slots nor of members.  -EPERM: too few disks would be left. */
static int
set_bits(struct mover *m, uint64_t draining, uint64_t filling)
{
	struct disk_table *next = malloc(sizeof *next);
	int r = next ? move_take_turn(m) : -EAGAIN;

	if (r == 0) {
		bool drops;

		set_get_table(m->set, next);
		/* Both bits of a disk: it does not leave after all. */
		drops = !(draining & filling) && !leaves_pairs(m->set, next, draining);
		if (drops)
			r = drop_pairs(m, next);
		if (r == 0) {
			next->draining = draining;
			next->filling = filling;
			r = move_change_table(m, next, set_all(m->set), 0);
		}
		if (r == 0 && drops)
			set_copies_end(m->set);
		move_give_turn(m);
	}
	free(next);
	return r;
}

/* ---- a drained disk leaves ---- */

struct last_write {
	struct store_table_write w;
	_Atomic bool is_over;
};

static void
on_last(struct store_table_write *w, int result)
{
	atomic_store(&container_of(w, struct last_write, w)->is_over, true);
}

/* Its superblock gets the table in which it is none: from then on no start takes it for one of the store. */
static void
tell_it(struct mover *m, int engine, const struct disk_table *t)
{
	/* Of a disk that hangs it is needed for as long as the set is there. */
	static struct last_write last[STORE_SET_MAX];
	struct store *st = m->set->engine[engine];
	uint64_t until = clock_ns() + 10 * NS_PER_S;

	last[engine] = (struct last_write){ .w.done = on_last };
	st->ops->member->put_table(st, t, &last[engine].w);
	while (!atomic_load(&last[engine].is_over) && clock_ns() < until)
		move_turn(m);
}

static int
leave(struct mover *m, int engine)
{
	struct set *s = m->set;
	struct disk_table *next = malloc(sizeof *next);
	int r = next ? move_take_turn(m) : -EAGAIN;

	if (r == 0 && !all_serve(s)) {
		move_give_turn(m);
		r = -EBUSY;
	}
	if (r == 0) {
		set_get_table(s, next);
		/* The first bucket with two copies was made meanwhile, or a disk has failed and come to be another's first. */
		if (table_roles(next, s->number[engine])) {
			move_give_turn(m);
			r = -EINTR;
		}
	}
	if (r == 0) {
		table_remove(next, s->number[engine]);
		/* With all that stay, or it stays too: those that were left out and it could be enough for a start (M35). */
		r = move_change_table(m, next, set_all(s) & ~((uint64_t)1 << engine),
				      set_all(s) & ~((uint64_t)1 << engine));
		if (r == 0) {
			int unit = unit_of(s, engine);

			atomic_fetch_or(&s->drained, (uint64_t)1 << unit);
			set_get_table(s, next);
			move_give_turn(m);
			tell_it(m, engine, next);
			log_note("disk %s is drained, and no member of the store any more",
				 s->member[unit].uuid);
		} else {
			move_give_turn(m);
		}
	}
	free(next);
	return r;
}

/* ---- a disk comes ---- */

/* A number that nobody has, nor had since the start: what a disk makes in one start is told from what others make by it. */
static int
free_number(struct set *s)
{
	struct disk_table *t = malloc(sizeof *t);
	uint64_t taken = UINT64_MAX;

	if (t) {
		set_get_table(s, t);
		taken = t->members;
	}
	free(t);
	for (int i = 0; i < atomic_load(&s->nr); i++)
		taken |= (uint64_t)1 << s->number[i];
	return taken == UINT64_MAX ? -1 : __builtin_ctzll(~taken);
}

/* A table of itself alone, older than all that the others have. */
static void
table_before(struct disk_table *t, int number, const uint8_t uuid[UUID_BYTES])
{
	memset(t, 0, sizeof *t);
	t->version = 1;
	t->members = t->in = (uint64_t)1 << number;
	memcpy(t->uuid[number], uuid, UUID_BYTES);
	memset(t->home, number, sizeof t->home);
	memset(t->first, number, sizeof t->first);
	memset(t->second, TABLE_NO_DISK, sizeof t->second);
}

static int
make_disk(struct mover *m, struct store_conf *c, int number, uint8_t uuid[UUID_BYTES])
{
	struct set *s = m->set;
	struct store_birth *birth = calloc(1, sizeof *birth);
	int r = birth ? 0 : -ENOMEM;

	if (r == 0 && getrandom(uuid, UUID_BYTES, 0) != UUID_BYTES)
		r = -EIO;
	if (r == 0) {
		memcpy(birth->store_uuid, s->store_uuid, UUID_BYTES);
		birth->number = number;
		table_before(&birth->table, number, uuid);
		c->disks.birth = birth;
		r = store_format(c, m->force, m->said, sizeof m->said);
		c->disks.birth = NULL;
	}
	free(birth);
	return r;
}

static int
open_disk(struct mover *m, struct store_conf *c, struct store **ret_store)
{
	const struct store_member_ops *ops = m->set->conf.disks.engine->member;
	static const struct store_slots none;
	struct set *s = m->set;
	struct store_member id;
	uint64_t start_no, total = 0;
	struct store *st = NULL;
	int r = ops->open(c, &st, &id, m->said, sizeof m->said);

	if (r < 0)
		return r;
	for (int i = 0; i < atomic_load(&s->nr); i++) {
		struct store_unit_info info;

		look_at(s, i, &info);
		total += info.size_bytes;
	}
	m->said[0] = 0;
	/* Engines have been given all of the budget: it comes on top until the next start. */
	m->index_bytes = set_share_of(s->conf.disks.index_bytes, id.size_bytes, total + id.size_bytes);
	r = ops->set_slots(st, &none);
	if (r == 0)
		r = ops->recover(st, m->index_bytes, s->quotas, atomic_load(&s->nr), &start_no, m->said,
				 sizeof m->said);
	if (r == 0 && start_no > s->start_no)
		r = say(m->said, sizeof m->said, -EINVAL, "%s: the disk has seen later starts than this one",
			m->path);
	if (r == 0)
		r = ops->begin(st, s->start_no, false, m->said, sizeof m->said);
	if (r == 0)
		r = ops->serve(st, m->said, sizeof m->said);
	if (r < 0)
		store_stop(st);
	else
		*ret_store = st;
	return r;
}

/* Every port attaches to it.  From here on it stays until the set ends, as a member or as none. */
static int
attach_all(struct mover *m, struct store *st)
{
	struct set *s = m->set;
	uint64_t until = clock_ns() + THROUGH_NS;
	int r;

	pthread_mutex_lock(&s->ports_lock);
	s->engine[s->nr] = st;
	atomic_fetch_add(&s->nr, 1);
	pthread_mutex_unlock(&s->ports_lock);
	r = move_visit(m);
	if (r < 0)
		return say(m->said, sizeof m->said, r, "not every core could use %s: %s", m->path,
			   strerror(-r));
	/* Changes of buckets take turns from now on; those that did not end. */
	while (atomic_load(&s->through) && clock_ns() < until)
		move_turn(m);
	if (atomic_load(&s->through))
		return say(m->said, sizeof m->said, -EAGAIN, "changes of buckets do not end; try again");
	return 0;
}

static int
align(struct mover *m, int engine)
{
	struct set *s = m->set;
	struct store *pair[2] = { s->engine[atomic_load(&s->head)], s->engine[engine] };

	return set_align_buckets(pair, 2, m->said, sizeof m->said);
}

/* With the turn, so no bucket changes. */
static int
enter(struct mover *m, int engine, const uint8_t uuid[UUID_BYTES])
{
	struct set *s = m->set;
	struct disk_table *next = malloc(sizeof *next);
	uint64_t bit = (uint64_t)1 << engine;
	int r = next ? align(m, engine) : -ENOMEM;

	if (r < 0) {
		free(next);
		return r;
	}
	set_get_table(s, next);
	table_add(next, s->number[engine], uuid);
	r = move_change_table(m, next, set_all(s) | bit, bit);
	free(next);
	if (r < 0)
		return say(m->said, sizeof m->said, r, "a disk failed while %s was added", m->path);
	s->member[s->member_nr].engine = (uint8_t)engine;
	uuid_write(s->member[s->member_nr].uuid, uuid);
	atomic_fetch_add(&s->member_nr, 1);
	log_note("disk %s, %s, is a member of the store now", m->path, s->member[s->member_nr - 1].uuid);
	return 0;
}

static int
add(struct mover *m)
{
	struct set *s = m->set;
	struct store_disk_conf disk = { .path = m->path, .size_bytes = m->size_bytes };
	struct store_conf c = s->conf;
	uint8_t uuid[UUID_BYTES];
	struct store *st;
	int engine = atomic_load(&s->nr), number = free_number(s), r;

	if (number < 0)
		return say(m->said, sizeof m->said, -EAGAIN, "a disk can be added after a restart");
	s->number[engine] = (uint8_t)number;
	c.ops = c.disks.engine;
	c.disks.disk = &disk;
	c.disks.nr = 1;
	c.disks.beside = engine;
	c.disks.index_bytes /= (uint64_t)engine + 1;
	r = quota_book_grow(s->quotas, engine + 1);
	if (r == 0)
		r = make_disk(m, &c, number, uuid);
	if (r == 0)
		r = open_disk(m, &c, &st);
	if (r == 0)
		r = attach_all(m, st);
	/* Most of them without the turn, which is then held for moments; a bucket that goes meanwhile is no reason to end. */
	if (r == 0 && align(m, engine) < 0)
		m->said[0] = 0;
	if (r == 0)
		r = move_take_turn(m);
	if (r < 0)
		return r;
	r = all_serve(s) ? enter(m, engine, uuid)
			 : say(m->said, sizeof m->said, -EROFS, "a disk of the store has failed");
	move_give_turn(m);
	return r;
}

/* ---- the job ---- */

static int
begin_job(struct mover *m)
{
	struct set *s = m->set;
	struct disk_table *t = malloc(sizeof *t);
	int r = t ? 0 : -ENOMEM;

	if (r == 0 && m->job == JOB_DRAIN) {
		set_get_table(s, t);
		r = set_bits(m, t->draining | (uint64_t)1 << s->number[s->member[m->unit].engine],
			     t->filling);
	}
	if (r == 0 && m->job == JOB_ADD)
		r = add(m);
	if (r == 0) {
		set_get_table(s, t);
		begin_count(m, t);
	}
	free(t);
	return r;
}

static bool
begin_use(struct mover *m)
{
	struct store *st = &m->set->base;
	int r = bufpool_init_class(&m->bufs, BUF_LARGE, MOVE_SENDS * (BUF_LARGE_BYTES + 2 * BUF_SLACK_BYTES),
				   0);

	if (r == 0) {
		for (int i = 0; i < MOVE_SENDS; i++)
			m->send[i].s.buf = bufpool_get(&m->bufs, BUF_LARGE);
		r = store_user_new(&st, 1, &m->user);
		if (r < 0) {
			m->user = NULL;
			for (int i = 0; i < MOVE_SENDS; i++)
				bufpool_put(&m->bufs, m->send[i].s.buf);
			bufpool_fini(&m->bufs);
		}
	}
	if (r < 0)
		trouble(m, "no memory: %s", strerror(-r));
	return r == 0;
}

static void
end_use(struct mover *m)
{
	store_user_free(m->user);
	m->user = NULL;
	for (int i = 0; i < MOVE_SENDS; i++)
		bufpool_put(&m->bufs, m->send[i].s.buf);
	bufpool_fini(&m->bufs);
}

/* All has gone where it should be: what is left is to say so. */
static int
finish(struct mover *m, const struct disk_table *t)
{
	struct set *s = m->set;
	int leaves = t->draining ? set_engine_of(s, __builtin_ctzll(t->draining)) : -1, r;

	/* One that is missing may lack slots, or have leftovers. */
	if (!all_serve(s))
		return -EBUSY;
	/* What a disk has that leaves goes with it. */
	r = move_clean(m, leaves);
	if (r == 0 && leaves >= 0)
		return leave(m, leaves);
	return r == 0 ? set_bits(m, t->draining, 0) : r;
}

/* With lock: who asked for it is told. */
static void
tell_cancel(struct mover *m, int r)
{
	m->cancel_is_answered = true;
	m->cancelled = r;
	pthread_cond_broadcast(&m->cond);
}

static void
answer_cancel(struct mover *m, int r)
{
	pthread_mutex_lock(&m->lock);
	tell_cancel(m, r);
	pthread_mutex_unlock(&m->lock);
}

/* The table says so before who asked for it is told, and what is left over is removed behind that: a start on the way goes on here. */
static int
give_up(struct mover *m, const struct disk_table *t)
{
	uint64_t both = t->draining | t->filling;
	int r = table_gives_up(t) ? 0 : set_bits(m, both, both);

	/* Until it is done: a disk that fails meanwhile makes no drain of it again.  Who is told to try again has cancelled nothing. */
	m->gives_up |= r == 0;
	if (atomic_exchange(&m->cancel, false))
		answer_cancel(m, r);
	if (r == 0)
		r = move_clean(m, -1);
	if (r == 0)
		r = set_bits(m, 0, 0);
	if (r == 0)
		log_note("the move of slots was cancelled; those that have moved stay where they are");
	return r;
}

static void
explain(struct mover *m, int r)
{
	char out[STORE_TROUBLE_BYTES - 64];
	bool is_out = say_who_is_out(m->set, out, sizeof out);

	switch (-r) {
	case 0:
	case EINTR:
		trouble(m, "%s", "");
		break;
	case EROFS:
		trouble(m, "%s%s", is_out ? out : "a disk has failed",
			atomic_load(&m->set->is_read_only) ? "; the store is read-only until a restart" : "");
		break;
	case EBUSY:
		trouble(m, "%s: members change only when all others serve",
			is_out ? out : "a disk is missing or has failed");
		break;
	case ENOSPC:
		trouble(m, "the disks that are left have no room");
		break;
	case EBADMSG:
	case EIO:
	case ENODEV:
		trouble(m,
			"%llu times something could not be read; the log names it: delete it, or write it "
			"anew",
			(unsigned long long)m->damaged);
		break;
	case EXDEV:
		/* By the table, which is a moment ahead. */
		trouble(m,
			"%s: its keys are going over to the disks that have their second copies; it is tried "
			"again",
			is_out ? out : "a disk has failed");
		break;
	case EAGAIN:
		trouble(m, "%s%sit is tried again: too much changed meanwhile, or there was no memory",
			is_out ? out : "", is_out ? "; " : "");
		break;
	default:
		trouble(m, "%s%sit is tried again: %s", is_out ? out : "", is_out ? "; " : "", strerror(-r));
	}
}

/* Until when disks that are away are waited for: the first of them; 0: for none any more. */
static uint64_t
replaces_at(const struct set *s)
{
	uint64_t first = 0;

	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		uint64_t since = atomic_load(&s->copies->away_since_ns[i]),
			 at = since + s->conf.disks.heal_after_ns;

		if (since && at > clock_ns() && (!first || at < first))
			first = at;
	}
	return first;
}

static void
explain_wait(struct mover *m)
{
	uint64_t at = replaces_at(m->set);
	char out[STORE_TROUBLE_BYTES - 96];

	trouble(m, "%s%s", say_who_is_out(m->set, out, sizeof out) ? out : "a disk is away",
		at ? ": it is waited for until store.heal_after is over, then others take its place"
		   : ": nothing can be done before it is back");
	pthread_mutex_lock(&m->lock);
	m->waits_until_ns = at;
	pthread_mutex_unlock(&m->lock);
}

/* Notes what went, or which slots are left for later. */
static void
note_slots(struct mover *m, int r)
{
	for (int i = 0; i < STORE_SLOT_WORDS; i++) {
		if (r == -EBADMSG || r == -EIO || r == -ENODEV)
			m->stuck.bit[i] |= m->slots.bit[i];
	}
	pthread_mutex_lock(&m->lock);
	m->bytes_of_slots = 0;
	pthread_mutex_unlock(&m->lock);
}

/* By the table, whatever was done for it: a slot may go in several steps, and a disk that fails may have it go once more. */
static void
note_progress(struct mover *m, const struct disk_table *t)
{
	struct to_go g;

	if (table_gives_up(t))
		return;
	count_to_go(m->set, t, &g);
	pthread_mutex_lock(&m->lock);
	m->info.slots_total = g.nr > m->info.slots_total ? g.nr : m->info.slots_total;
	m->info.slots_done = m->info.slots_total - g.nr;
	pthread_mutex_unlock(&m->lock);
}

static bool
is_any_stuck(const struct mover *m)
{
	uint64_t any = 0;

	for (int i = 0; i < STORE_SLOT_WORDS; i++)
		any |= m->stuck.bit[i];
	return any != 0;
}

/* One step; false: the job is over. */
static bool
move_on(struct mover *m)
{
	struct set *s = m->set;
	struct disk_table *t = malloc(sizeof *t);
	int from, to, left, pairs = 0, r = -EAGAIN;
	bool goes_on = true, waits = false;

	if (t) {
		set_get_table(s, t);
		note_progress(m, t);
		if (!is_under_way(s, t)) {
			r = m->job == JOB_MOVE || m->job == JOB_HEAL ? move_clean(m, -1) : 0;
			goes_on = r < 0;
		} else if (members_change(t) &&
			   (m->gives_up || atomic_load(&m->cancel) || table_gives_up(t))) {
			r = give_up(m, t);
		} else if ((pairs = move_next_pairs(m, t, &from, &to)) > 0) {
			r = move_slots(m, from, to);
			note_slots(m, r);
			/* Who was the second before has it for nothing. */
			if (r == 0 && !table_has(t->draining, s->number[from]))
				r = move_clean(m, -1);
		} else if (pairs < 0 && pairs != -EAGAIN) {
			r = pairs;
		} else if (!members_change(t)) {
			waits = !is_any_stuck(m);
			r = waits ? -EAGAIN : -EBADMSG;
			memset(&m->stuck, 0, sizeof m->stuck);
		} else if (next_slots(m, t, &from, &to, &left)) {
			r = move_slots(m, from, to);
			note_slots(m, r);
			/* Room is made at once, but where all goes. */
			if (r == 0 && !table_has(t->draining, s->number[from]))
				r = move_clean(m, -1);
		} else if (!left && pairs == 0) {
			r = finish(m, t);
		} else {
			memset(&m->stuck, 0, sizeof m->stuck);
			r = set_misses_some(s) ? -EBUSY : -EBADMSG;
		}
	}
	if (waits)
		explain_wait(m);
	else
		explain(m, r);
	free(t);
	if (r < 0 && r != -EINTR)
		pause_for(m, PAUSE_NS);
	return goes_on;
}

/* No disk comes or goes any more: what is left is healing, which others may interrupt. */
static void
note_job(struct mover *m)
{
	struct disk_table *t = m->job == JOB_HEAL ? NULL : malloc(sizeof *t);

	if (!t)
		return;
	set_get_table(m->set, t);
	if (!members_change(t)) {
		pthread_mutex_lock(&m->lock);
		m->job = JOB_HEAL;
		/* Who asked behind the last look is told as who asks from now on. */
		if (atomic_exchange(&m->cancel, false))
			tell_cancel(m, -ENOENT);
		pthread_mutex_unlock(&m->lock);
	}
	free(t);
}

static void
job_main(struct mover *m)
{
	struct set *s = m->set;
	int r = begin_job(m);

	if (r == 0) {
		/* What was to be healed until now this job heals. */
		pthread_mutex_lock(&m->lock);
		m->heal_wanted = false;
		pthread_mutex_unlock(&m->lock);
	}
	answer(m, r);
	if (r < 0)
		return;
	atomic_store(&s->is_moving, true);
	/* Whatever is asked from now on is kept until it is done. */
	if (move_visit(m) < 0)
		log_warn("moving slots: a core did not answer");
	while (!atomic_load(&m->stop) && !atomic_load(&m->yields)) {
		if (!m->user && !begin_use(m)) {
			pause_for(m, PAUSE_NS);
			continue;
		}
		if (!move_on(m))
			break;
		note_job(m);
	}
	if (m->user)
		end_use(m);
	atomic_store(&s->is_moving, false);
}

static void *
thread_main(void *arg)
{
	struct mover *m = arg;
	bool again;

	pthread_setname_np(pthread_self(), "store-mover");
	do {
		job_main(m);
		pthread_mutex_lock(&m->lock);
		if (atomic_exchange(&m->cancel, false))
			tell_cancel(m, atomic_load(&m->stop) ? -EAGAIN : -ENOENT);
		/* Healing that yields is not over: who it yields to may do nothing. */
		m->heal_wanted |= m->job == JOB_HEAL && atomic_load(&m->yields);
		again = m->heal_wanted && !atomic_load(&m->stop) && !atomic_load(&m->yields);
		m->job = again ? JOB_HEAL : JOB_NONE;
		m->info = (struct store_move_info){ .rate = m->info.rate, .is_running = again };
		m->waits_until_ns = 0;
		atomic_store(&m->is_over, !again);
		pthread_mutex_unlock(&m->lock);
	} while (again);
	return NULL;
}

/* Tells whether a job goes on that yields to nobody. */
static bool
has_job(struct mover *m)
{
	bool has;

	pthread_mutex_lock(&m->lock);
	has = m->job != JOB_NONE && m->job != JOB_HEAL;
	pthread_mutex_unlock(&m->lock);
	return has;
}

static void
set_job(struct mover *m, enum mover_job job)
{
	pthread_mutex_lock(&m->lock);
	m->job = job;
	m->info.is_running = job != JOB_NONE;
	m->is_answered = m->cancel_is_answered = false;
	pthread_mutex_unlock(&m->lock);
	atomic_store(&m->is_over, job == JOB_NONE);
}

/* With job_lock. */
static int
begin_thread(struct mover *m, enum mover_job job)
{
	int r;

	if (has_job(m))
		return -EBUSY;
	if (m->has_thread) {
		atomic_store(&m->yields, true);
		pthread_join(m->thread, NULL);
		m->has_thread = false;
	}
	atomic_store(&m->yields, false);
	atomic_store(&m->cancel, false);
	m->gives_up = false;
	m->said[0] = 0;
	m->damaged = 0;
	memset(&m->stuck, 0, sizeof m->stuck);
	set_job(m, job);
	r = pthread_create(&m->thread, NULL, thread_main, m);
	m->has_thread = r == 0;
	if (r != 0)
		set_job(m, JOB_NONE);
	return -r;
}

static int
wait_for_answer(struct mover *m)
{
	int r;

	pthread_mutex_lock(&m->lock);
	while (!m->is_answered)
		pthread_cond_wait(&m->cond, &m->lock);
	r = m->answer;
	pthread_mutex_unlock(&m->lock);
	return r;
}

/* ---- what operators ask for ---- */

/*
 * Reckons what would come to each number when an engine is drained.  Keys with one copy lie evenly in slots; those with two are known slot by
 * slot, and go where the other copy is not.
 */
static void
reckon(const struct set *s, int engine, const struct disk_table *t, struct disk_table *end,
       uint64_t ret_come[STORE_DISKS_MAX])
{
	uint64_t size[STORE_DISKS_MAX], used = used_bytes(s, engine), two = 0;
	const struct store_member_ops *ops = s->engine[engine]->ops->member;
	int number = s->number[engine], homes = table_count(t, number), come[STORE_DISKS_MAX] = { 0 };
	uint8_t home[STORE_SLOT_NR];

	memset(ret_come, 0, STORE_DISKS_MAX * sizeof *ret_come);
	*end = *t;
	end->draining |= (uint64_t)1 << number;
	move_sizes(s, size);
	table_plan(end, size, home);
	move_plan_drain(s, end);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		struct store_use use = { 0 };
		int to = end->first[i];

		come[home[i]] += t->home[i] == number;
		if (t->second[i] == TABLE_NO_DISK || (t->first[i] != number && t->second[i] != number))
			continue;
		if (to == t->first[i] || to == t->second[i])
			to = end->second[i];
		ops->two_use(s->engine[engine], (unsigned)i, &use);
		two += use.bytes;
		ret_come[to] += use.bytes;
	}
	used -= two < used ? two : used;
	for (int i = 0; homes && i < STORE_DISKS_MAX; i++)
		ret_come[i] += (uint64_t)((double)used * (double)come[i] / homes);
}

/* Every other disk has room for what would come to it. */
static int
check_room(struct set *s, int engine, char *said, size_t len)
{
	struct disk_table *t = malloc(2 * sizeof *t);
	uint64_t come[STORE_DISKS_MAX];
	int r = 0;

	if (!t)
		return -ENOMEM;
	set_get_table(s, &t[0]);
	reckon(s, engine, &t[0], &t[1], come);
	free(t);
	for (int i = 0; r == 0 && i < atomic_load(&s->nr); i++) {
		struct store_unit_info info;

		if (i == engine || !(set_all(s) >> i & 1))
			continue;
		look_at(s, i, &info);
		if (come[s->number[i]] > info.free_bytes - info.free_bytes / 20)
			r = say(said, len, -ENOSPC,
				"there is no room: %s would get %llu MiB and has %llu MiB left", info.name,
				(unsigned long long)(come[s->number[i]] >> 20),
				(unsigned long long)(info.free_bytes >> 20));
	}
	return r;
}

/* Its table says that no disk comes or goes any more, or it was cancelled: it is about to end. */
static bool
is_ending(struct set *s)
{
	struct mover *m = s->mover;
	bool changes = is_begun(s), is;

	pthread_mutex_lock(&m->lock);
	is = m->job != JOB_HEAL && (!changes || (m->cancel_is_answered && m->cancelled == 0));
	pthread_mutex_unlock(&m->lock);
	return is;
}

/* Tells whether a job goes on; one that is about to end is waited for. */
static bool
is_busy(struct set *s)
{
	struct mover *m = s->mover;
	uint64_t until = clock_ns() + ENDS_NS;

	while (!atomic_load(&m->is_over) && is_ending(s) && clock_ns() < until)
		nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS }, NULL);
	return has_job(m);
}

static int
may_begin(struct set *s, char *said, size_t len)
{
	struct mover *m = s->mover;

	if (!m)
		return say(said, len, -EOPNOTSUPP,
			   "the disks of this store do not come and go while it serves");
	if (is_busy(s))
		return say(said, len, -EBUSY,
			   "a disk is being drained or filled already; wait for its end, or cancel it");
	if (!all_serve(s))
		return say(said, len, -EROFS,
			   "a disk is missing or has failed: members change only when all others serve");
	return 0;
}

static int
drain(struct set *s, const char *which, char *said, size_t len)
{
	struct mover *m = s->mover;
	int unit = find_unit(s, which), r = may_begin(s, said, len);

	if (r < 0)
		return r;
	if (unit < 0)
		return say(said, len, -ENOENT,
			   "no disk has that path, UUID or number; GET /disks shows those there are");
	if (atomic_load(&s->drained) >> unit & 1)
		return say(said, len, -EALREADY, "it is drained already, and may be pulled");
	if (is_begun(s))
		return say(said, len, -EBUSY,
			   "a disk is being drained or filled already; the next start goes on with it");
	if (__builtin_popcountll(set_all(s)) == 1)
		return say(said, len, -EPERM, "it is the last disk of the store: add another one first");
	r = check_room(s, s->member[unit].engine, said, len);
	if (r < 0)
		return r;
	m->unit = unit;
	r = begin_thread(m, JOB_DRAIN);
	if (r == 0)
		r = wait_for_answer(m);
	return r < 0 ? say(said, len, r, "%s", m->said[0] ? m->said : strerror(-r))
		     : say(said, len, 0, "disk %s is being drained", s->member[unit].uuid);
}

/* A disk that this daemon has already, or that is missing.  A drained one may come again, but its engine has the path until the restart. */
static int
refuse_member(const struct set *s, const char *path, int unit, char *said, size_t len)
{
	struct store_unit_info info = { .name = s->member[unit].path };
	bool is_other;

	if (s->member[unit].engine != SET_NOWHERE)
		look_at(s, s->member[unit].engine, &info);
	is_other = info.name[0] && strcmp(path, info.name) != 0;
	return say(said, len, -EEXIST, "%s is disk %s of this store%s%s%s; %s", path, s->member[unit].uuid,
		   is_other ? " (" : "", is_other ? info.name : "", is_other ? ")" : "",
		   atomic_load(&s->drained) >> unit & 1 ? "it was drained, and can come again after a restart"
							: "give the path of another one");
}

static int
add_disk(struct set *s, const struct store_disk_change *c, char *said, size_t len)
{
	struct mover *m = s->mover;
	int unit = find_unit(s, c->disk), r = may_begin(s, said, len), engine = engine_at(s, c->disk);

	if (r < 0)
		return r;
	if (engine >= 0)
		unit = unit_of(s, engine);
	if (unit >= 0 && !has_left(s, unit) && c->disk[0] == '/')
		return refuse_member(s, c->disk, unit, said, len);
	if (strlen(c->disk) >= sizeof m->path)
		return say(said, len, -EINVAL, "the path is too long");
	if (atomic_load(&s->nr) == STORE_SET_MAX || atomic_load(&s->member_nr) == STORE_SET_MAX ||
	    atomic_load(&s->nr) >= s->conf.disks.engines_max)
		return set_disks(s) < s->conf.disks.engines_max
			       ? say(said, len, -EAGAIN,
				     "a store may have %d disks, and until the restart those count that were "
				     "drained: "
				     "take them off store.disks, restart, and add it then",
				     s->conf.disks.engines_max)
			       : say(said, len, -EINVAL, "a store may have %d disks",
				     s->conf.disks.engines_max);
	snprintf(m->path, sizeof m->path, "%s", c->disk);
	m->size_bytes = c->size_bytes;
	m->force = c->force;
	r = begin_thread(m, JOB_ADD);
	if (r == 0)
		r = wait_for_answer(m);
	return r < 0 ? say(said, len, r, "%s", m->said[0] ? m->said : strerror(-r))
		     : say(said, len, 0,
			   "disk %s was added, and fills; until the restart its index may take %llu MiB "
			   "besides memory.index",
			   s->member[atomic_load(&s->member_nr) - 1].uuid,
			   (unsigned long long)(m->index_bytes >> 20));
}

static int
cancel(struct set *s, char *said, size_t len)
{
	struct mover *m = s->mover;
	int r = -ENOENT;

	pthread_mutex_lock(&m->lock);
	if (m->job != JOB_NONE && m->job != JOB_HEAL) {
		m->cancel_is_answered = false;
		atomic_store(&m->cancel, true);
		while (!m->cancel_is_answered)
			pthread_cond_wait(&m->cond, &m->lock);
		r = m->cancelled;
	}
	pthread_mutex_unlock(&m->lock);
	switch (-r) {
	case 0:
		return say(said, len, 0,
			   "cancelled: what has moved stays where it is, what is left over is removed");
	case ENOENT:
		return say(said, len, r, "no disk is being drained or filled");
	case EROFS:
		return say(said, len, r,
			   "nothing moves until the restart, which goes on with it: a disk has failed, and "
			   "the store is read-only");
	default:
		return say(said, len, r, "not yet, try again: %s", strerror(-r));
	}
}

/* Nobody heals, and somebody should. */
static bool
lacks_healing(struct mover *m)
{
	bool lacks;

	pthread_mutex_lock(&m->lock);
	lacks = m->heal_wanted && atomic_load(&m->is_over) && !atomic_load(&m->stop);
	pthread_mutex_unlock(&m->lock);
	return lacks;
}

/* Who finds another one here leaves it to that one, which looks again behind its own. */
static void
heal_if_wanted(struct mover *m)
{
	int r = 0;

	while (r == 0 && lacks_healing(m)) {
		if (pthread_mutex_trylock(&m->job_lock) != 0)
			return;
		if (lacks_healing(m))
			r = begin_thread(m, JOB_HEAL);
		pthread_mutex_unlock(&m->job_lock);
	}
}

int
set_change_disks(struct store *st, const struct store_disk_change *c, char *said, size_t len)
{
	struct set *s = set_of(st);
	int r;

	if (!s->mover)
		return may_begin(s, said, len);
	pthread_mutex_lock(&s->mover->job_lock);
	r = c->kind == DISK_DRAIN ? drain(s, c->disk, said, len)
	    : c->kind == DISK_ADD ? add_disk(s, c, said, len)
				  : cancel(s, said, len);
	pthread_mutex_unlock(&s->mover->job_lock);
	/* What was told meanwhile nobody could begin. */
	heal_if_wanted(s->mover);
	return r;
}

void
set_heal(struct set *s)
{
	struct mover *m = s->mover;

	if (!m || s->conf.disks.moves_wait)
		return;
	pthread_mutex_lock(&m->lock);
	m->heal_wanted = true;
	pthread_mutex_unlock(&m->lock);
	heal_if_wanted(m);
}

void
set_move_info(const struct store *st, struct store_move_info *ret_info)
{
	struct mover *m = set_of(st)->mover;
	uint64_t ran, until, now;

	*ret_info = (struct store_move_info){ .is_running = false };
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	*ret_info = m->info;
	until = m->waits_until_ns;
	pthread_mutex_unlock(&m->lock);
	now = clock_ns();
	ret_info->waits_ns = until > now ? until - now : 0;
	ran = now - ret_info->began_ns;
	/* What is written meanwhile is sent, too. */
	if (ret_info->slots_done == ret_info->slots_total)
		ret_info->bytes_total = ret_info->bytes_done;
	else if (ret_info->bytes_done > ret_info->bytes_total && ret_info->slots_done)
		ret_info->bytes_total =
			(uint64_t)((double)ret_info->bytes_done * (double)ret_info->slots_total /
				   (double)ret_info->slots_done);
	else if (ret_info->bytes_done > ret_info->bytes_total)
		ret_info->bytes_total = ret_info->bytes_done;
	if (ret_info->is_running && ret_info->bytes_done && ret_info->began_ns)
		ret_info->left_ns =
			(uint64_t)((double)ran * (double)(ret_info->bytes_total - ret_info->bytes_done) /
				   (double)ret_info->bytes_done);
}

void
set_move_rate(struct store *st, uint64_t bytes)
{
	struct mover *m = set_of(st)->mover;

	if (m)
		atomic_store(&m->rate, bytes);
}

/* ---- life ---- */

int
set_move_begin(struct set *s, char *err, size_t err_len)
{
	struct mover *m;
	void *mem;
	bool heals;
	int r;

	if (!s->has_table || !s->conf.disks.engine->member->send)
		return 0;
	/* A mailbox begins at a cache line. */
	m = posix_memalign(&mem, _Alignof(struct mover), sizeof *m) == 0 ? memset(mem, 0, sizeof *m) : NULL;
	r = m ? mailbox_init(&m->mb) : -ENOMEM;
	if (r < 0) {
		free(m);
		return say(err, err_len, r, "nothing to move slots with: %s", strerror(-r));
	}
	pthread_mutex_init(&m->job_lock, NULL);
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->keys_lock, NULL);
	pthread_cond_init(&m->cond, NULL);
	m->set = s;
	atomic_store(&m->is_over, true);
	atomic_store(&m->rate, s->conf.disks.move_rate);
	s->mover = m;
	heals = s->copies && atomic_load(&s->copies->is_used) && atomic_load(&s->nr) > 1;
	if ((!members_change(&s->table) && !heals && !has_leftovers(s)) || s->conf.disks.moves_wait)
		return 0;
	if (members_change(&s->table))
		log_note("goes on with what it moved before the restart");
	r = begin_thread(m, members_change(&s->table) || !heals ? JOB_MOVE : JOB_HEAL);
	return r < 0 ? say(err, err_len, r, "no thread to move slots: %s", strerror(-r)) : 0;
}

void
set_move_end(struct set *s)
{
	struct mover *m = s->mover;

	if (!m)
		return;
	atomic_store(&m->stop, true);
	if (m->has_thread)
		pthread_join(m->thread, NULL);
	mailbox_fini(&m->mb);
	pthread_mutex_destroy(&m->job_lock);
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->keys_lock);
	pthread_cond_destroy(&m->cond);
	free(m);
}
