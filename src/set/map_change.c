/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a set in service: what becomes of it when a disk fails, and whose turn it is to change something (M11).
 *
 *	a disk fails --> its turn comes --> a table without it, on all others --> effective: bucket changes go on
 *	                       ^                        | another fails
 *	                       |                        v
 *	                       +------ a newer one without both, or fewer than half are left: all is read-only (M9)
 *
 * A change of the table that somebody wants (set_change_table(): slots that have moved, members) is written in the same way; if a
 * disk that it needs fails meanwhile, what follows is a newer table of what was before (M7).
 *
 * Each engine writes the table by itself, so nobody waits for a disk here but who has the turn, and he only for disks that
 * work.  A disk that fails while one of the changes has the turn is seen by it, at its next step.
 *
 * Threads: engines tell of failures and of written tables on any; s->lock is held for moments.
 */
#include "set/map/set_rules.h"
#include "set/replicas.h"

#include "base/check.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>

static int
count(uint64_t bitmap)
{
	return __builtin_popcountll(bitmap);
}

static int
first_of(uint64_t bitmap)
{
	return __builtin_ctzll(bitmap);
}

/* ---- the table; under the lock ---- */

/* Of those in service, or in the table that was begun. */
static uint64_t
failed(const struct set *s)
{
	uint64_t in = atomic_load(&s->in) | s->begun, bits = 0;

	for (int i = 0; i < set_engines(s); i++) {
		if (in >> i & 1 && set_has_failed(s, i))
			bits |= (uint64_t)1 << i;
	}
	return bits;
}

static void
begin_table(struct set *s, uint64_t in)
{
	uint64_t first = s->start_no << TABLE_CHANGE_BITS | 1;

	s->table.version = s->table.version < first ? first : s->table.version + 1;
	s->table.in = 0;
	for (int i = 0; i < set_engines(s); i++)
		s->table.in |= in >> i & 1 ? (uint64_t)1 << set_number(s, i) : 0;
	if (s->copies)
		table_lose(&s->table, s->table.in);
	s->begun = in;
	s->unwritten = RULE_TABLE_ALL ? in : in & -in;
	for (int i = 0; i < set_engines(s); i++) {
		if (s->unwritten >> i & 1)
			set_engine_ops(s, i)->put_table(set_engine(s, i), &s->table, &s->write[i].w);
	}
}

static void
stop_writing(struct set *s, uint64_t left)
{
	atomic_store(&s->is_read_only, true);
	if (count(s->table.members) > 1)
		log_error("%d of %d disks are in service, fewer than half: the store is read-only until a "
			  "restart",
			  count(left), count(s->table.members));
}

/* A change that lost what it needs is none: the next table is what was before it. */
static void
fall_back(struct set *s, uint64_t bad)
{
	uint64_t version = s->table.version;

	if (!(s->needs & bad))
		return;
	s->other = s->all_next;
	s->other_nr = count(s->table.members);
	s->table = s->before;
	s->table.version = version;
	s->all_next = atomic_load(&s->all);
	/* One that was to go is still there. */
	s->begun = atomic_load(&s->in);
	s->needs = 0;
	s->change = -EIO;
}

/* Fewer than half (M9); where members change, of those before or of those after it: others may have either table, and be enough for
 * a start by it (M35). */
static bool
is_too_few(const struct set *s, uint64_t left)
{
	return (RULE_BELOW_HALF_READ_ONLY && 2 * count(left) < count(s->table.members)) ||
	       (RULE_MEMBERS_BOTH && 2 * count(left & s->other) < s->other_nr);
}

/* True: it is over. */
static bool
settle(struct set *s)
{
	while (!atomic_load(&s->is_read_only)) {
		uint64_t bad = failed(s), left = s->begun & ~bad;
		bool is_whole = left == s->begun;

		if (s->unwritten & ~bad)
			return false;
		s->unwritten = 0;
		if (!is_whole) {
			fall_back(s, bad);
			left = s->begun & ~bad;
		}
		if (!is_whole && (!left || is_too_few(s, left))) {
			stop_writing(s, left);
			return true;
		}
		if (is_whole || (!RULE_TABLE_REDO_SERVING && s->begun != atomic_load(&s->in))) {
			s->begun = left;
			atomic_store(&s->all, s->all_next);
			atomic_store(&s->in, left);
			s->needs = 0;
			s->other_nr = 0;
			return true;
		}
		log_note("a disk failed: the table of disks is written without it to the other %d",
			 count(left));
		begin_table(s, left);
	}
	return true;
}

/* ---- turns ---- */

/* A change of the table that belongs to nobody: it has the turn until it is over. */
static struct set_turn nobody;

static void
pass_turn(struct set *s)
{
	struct list *l;

	if (!s->settling && failed(s) && !atomic_load(&s->is_read_only)) {
		s->settling = &nobody;
		if (!settle(s))
			return;
		s->settling = NULL;
		set_new_head(s);
	}
	l = list_pop(&s->waiting);
	s->is_changing = l != NULL;
	if (l) {
		struct set_turn *t = container_of(l, struct set_turn, link);

		s->holder = t;
		mailbox_post(t->mb, &t->msg, t->go);
	}
}

/* Something happened that who waits for the table may have waited for. */
static void
look(struct set *s)
{
	struct set_turn *t = s->settling;

	if (!t || !settle(s))
		return;
	s->settling = NULL;
	if (t != &nobody) {
		mailbox_post(t->mb, &t->msg, t->go);
		return;
	}
	set_new_head(s);
	pass_turn(s);
}

void
set_table_failed(struct set *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->has_table && !s->is_changing) {
		s->is_changing = true;
		pass_turn(s);
	} else if (s->has_table) {
		struct set_turn *t = s->holder;

		look(s);
		/* What it waits for may be long in coming: a disk that hangs has failed, too. */
		if (t && !t->is_alarmed) {
			t->is_alarmed = true;
			mailbox_post(t->mb, &t->alarm, t->on_alarm);
		}
	}
	pthread_mutex_unlock(&s->lock);
}

static void
on_written(struct store_table_write *w, int result)
{
	struct set_table_write *wr = container_of(w, struct set_table_write, w);
	struct set *s = wr->set;

	pthread_mutex_lock(&s->lock);
	s->unwritten &= ~((uint64_t)1 << wr->engine);
	if (s->has_table)
		look(s);
	pthread_mutex_unlock(&s->lock);
}

bool
set_take_turn(struct set *s, struct set_turn *t)
{
	bool has_it;

	pthread_mutex_lock(&s->lock);
	has_it = !RULE_ONE_CHANGE || !s->is_changing;
	s->is_changing = true;
	if (has_it)
		s->holder = t;
	else
		list_push_tail(&s->waiting, &t->link);
	pthread_mutex_unlock(&s->lock);
	return has_it;
}

bool
set_give_turn(struct set *s, struct set_turn *t)
{
	bool is_alarmed;

	pthread_mutex_lock(&s->lock);
	if (s->holder == t)
		s->holder = NULL;
	pass_turn(s);
	is_alarmed = t->is_alarmed;
	pthread_mutex_unlock(&s->lock);
	return is_alarmed;
}

void
set_hear_alarm(struct set *s, struct set_turn *t)
{
	pthread_mutex_lock(&s->lock);
	t->is_alarmed = false;
	pthread_mutex_unlock(&s->lock);
}

bool
set_settle(struct set *s, struct set_turn *t)
{
	bool is_over;

	pthread_mutex_lock(&s->lock);
	is_over = !RULE_AWAY_BEFORE_ANSWER || s->settling || !failed(s) || settle(s);
	if (!is_over)
		s->settling = t;
	pthread_mutex_unlock(&s->lock);
	return is_over;
}

int
set_engine_of(const struct set *s, int number)
{
	for (int i = 0; i < set_engines(s); i++) {
		if (set_all(s) >> i & 1 && set_number(s, i) == number)
			return i;
	}
	return -1;
}

void
set_get_table(struct set *s, struct disk_table *ret_table)
{
	pthread_mutex_lock(&s->lock);
	*ret_table = s->table;
	pthread_mutex_unlock(&s->lock);
}

bool
set_change_table(struct set *s, struct set_turn *t, const struct disk_table *next, uint64_t all,
		 uint64_t needs)
{
	uint64_t in;
	bool is_over;

	pthread_mutex_lock(&s->lock);
	check(!s->settling);
	/* Who comes takes part, who goes does not (M35: all others are in service). */
	in = (atomic_load(&s->in) | (all & ~atomic_load(&s->all))) & all;
	s->change = needs & ~in ? -EIO : 0;
	if (s->change) {
		pthread_mutex_unlock(&s->lock);
		return true;
	}
	s->before = s->table;
	s->table = *next;
	s->table.version = s->before.version;
	s->needs = needs;
	s->other = atomic_load(&s->all);
	s->other_nr = count(s->before.members);
	s->all_next = all;
	begin_table(s, in);
	is_over = settle(s);
	if (!is_over)
		s->settling = t;
	pthread_mutex_unlock(&s->lock);
	return is_over;
}

int
set_change_result(struct set *s)
{
	int r;

	pthread_mutex_lock(&s->lock);
	r = atomic_load(&s->is_read_only) ? -EROFS : s->change;
	pthread_mutex_unlock(&s->lock);
	return r;
}

bool
set_counts(const struct set *s, int engine)
{
	return set_is_in(s, engine) && (RULE_AWAY_BEFORE_ANSWER || !set_has_failed(s, engine));
}

void
set_new_head(struct set *s)
{
	if (RULE_FAILED_HAS_NO_BUCKETS)
		atomic_store(&s->head, first_of(atomic_load(&s->in)));
}

/* ---- life ---- */

void
set_table_begin(struct set *s, const struct disk_table *t, uint64_t start_no)
{
	pthread_mutex_lock(&s->lock);
	s->all_next = UINT64_MAX >> (STORE_SET_MAX - set_engines(s));
	atomic_store(&s->all, s->all_next);
	atomic_store(&s->in, s->all_next);
	s->begun = s->all_next;
	for (int i = 0; i < STORE_SET_MAX; i++)
		s->write[i] = (struct set_table_write){ .w.done = on_written, .set = s, .engine = i };
	s->has_table = t != NULL;
	if (t)
		s->table = *t;
	s->start_no = start_no;
	/* One may have failed by now. */
	s->is_changing = true;
	pass_turn(s);
	pthread_mutex_unlock(&s->lock);
}

void
set_table_end(struct set *s)
{
	pthread_mutex_lock(&s->lock);
	s->has_table = false;
	pthread_mutex_unlock(&s->lock);
}
