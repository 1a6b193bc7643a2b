/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the placement map of a set in service, for example after the failure of a disk, and manages the map
 * change lock (M11).
 *
 * After the failure of a disk, the set waits until the map change lock is free, and writes a map without the
 * disk to all other disks. When all of them have the map, the map is effective, and changes of buckets
 * continue. If another disk fails during the write, a newer map without both disks is written. If fewer than
 * half of the members are left, the set becomes read-only instead (M9).
 *
 * A requested change of the map (set_change_table(): moved slots, members) is written in the same way. If a
 * disk that the change needs fails during the write, the result is a newer map with the previous contents
 * (M7). Each engine writes the map by itself. Only the holder of the map change lock waits for disks, and it
 * waits only for disks that have not failed. In each of its steps the holder checks whether a disk has
 * failed.
 *
 * Threads: engines report failures and written maps on any thread; the mutex of the map is held briefly.
 */
#include "set/set_int.h"

#include "set/map/set_rules.h"

#include "base/check.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>

static int
count(uint64_t bitmap)
{
	return __builtin_popcountll(bitmap);
}

/* ---- the table; under the lock ---- */

/* Returns the bitmap of the failed engines. Only engines in service, and engines that take part in the map
 * being written, are included. */
static uint64_t
failed(const struct set *s)
{
	const struct set_map *m = &s->map;
	uint64_t in = set_in(s) | m->begun, bits = 0;

	for (int i = 0; i < set_engines(s); i++) {
		if (in >> i & 1 && set_has_failed(s, i))
			bits |= (uint64_t)1 << i;
	}
	return bits;
}

static void
begin_table(struct set *s, uint64_t in)
{
	struct set_map *m = &s->map;
	uint64_t first = m->start_no << TABLE_CHANGE_BITS | 1;

	/* M9: no map is written while fewer than half of the members are in service. */
	check(in && !set_is_read_only(s));
	m->table.version = m->table.version < first ? first : m->table.version + 1;
	m->table.in = 0;
	for (int i = 0; i < set_engines(s); i++)
		m->table.in |= in >> i & 1 ? (uint64_t)1 << set_number(s, i) : 0;
	table_lose(&m->table, m->table.in);
	m->begun = in;
	m->unwritten = RULE_TABLE_ALL ? in : in & -in;
	for (int i = 0; i < set_engines(s); i++) {
		if (m->unwritten >> i & 1)
			set_engine_ops(s, i)->put_table(set_engine(s, i), &m->table, &m->write[i].w);
	}
}

static void
stop_writing(struct set *s, uint64_t left)
{
	struct set_map *m = &s->map;

	set_publish_read_only(s);
	if (count(m->table.members) > 1)
		log_error("%d of %d disks are in service, fewer than half: the store is read-only until a "
			  "restart",
			  count(left), count(m->table.members));
}

/* Cancels a change of the map if a disk without which the change must not take effect has failed: the next
 * map has the contents from before the change. */
static void
fall_back(struct set *s, uint64_t bad)
{
	struct set_map *m = &s->map;
	uint64_t version = m->table.version;

	if (!(m->needs & bad))
		return;
	m->other = m->all_next;
	m->other_nr = count(m->table.members);
	m->table = m->before;
	m->table.version = version;
	m->all_next = set_all(s);
	/* The engine that the cancelled change would have removed remains a member. */
	m->begun = set_in(s);
	m->needs = 0;
	m->change = -EIO;
}

/* Returns true if the engines of the bitmap `left` are fewer than half of the members (M9). While a change of
 * the members is in progress, a start may find the map before or after the change; the result is then true if
 * `left` is fewer than half of the members of either map (M35). */
static bool
is_too_few(const struct set *s, uint64_t left)
{
	const struct set_map *m = &s->map;

	return (RULE_BELOW_HALF_READ_ONLY && 2 * count(left) < count(m->table.members)) ||
	       (RULE_MEMBERS_BOTH && 2 * count(left & m->other) < m->other_nr);
}

/* Advances the write of the newest map. Returns true if the map is effective or the set is read-only. */
static bool
settle(struct set *s)
{
	struct set_map *m = &s->map;

	while (!set_is_read_only(s)) {
		uint64_t bad = failed(s), left = m->begun & ~bad;
		bool is_whole = left == m->begun;

		if (m->unwritten & ~bad)
			return false;
		m->unwritten = 0;
		if (!is_whole) {
			fall_back(s, bad);
			left = m->begun & ~bad;
		}
		if (!is_whole && (!left || is_too_few(s, left))) {
			stop_writing(s, left);
			return true;
		}
		if (is_whole || (!RULE_TABLE_REDO_SERVING && m->begun != set_in(s))) {
			/* M6: a map takes effect only when all its disks have stored it. */
			check(!m->unwritten);
			m->begun = left;
			set_publish_in(s, m->all_next, left);
			m->needs = 0;
			m->other_nr = 0;
			return true;
		}
		log_note("a disk failed: the table of disks is written without it to the other %d",
			 count(left));
		begin_table(s, left);
	}
	return true;
}

/* ---- turns ---- */

/* Stands for the set itself in m->settling: after a failure the set itself holds the map change lock, until a
 * map without the failed disk is effective. */
static struct set_turn the_set;

static void
pass_turn(struct set *s)
{
	struct set_map *m = &s->map;
	struct list *l;

	if (!m->settling && failed(s) && !set_is_read_only(s)) {
		m->settling = &the_set;
		if (!settle(s))
			return;
		m->settling = NULL;
		set_new_head(s);
	}
	l = list_pop(&m->waiting);
	m->is_changing = l != NULL;
	if (l) {
		struct set_turn *t = container_of(l, struct set_turn, link);

		m->holder = t;
		mailbox_post(t->mb, &t->msg, t->go);
	}
}

/* Advances the write of the map, and wakes the thread that waits for the map if the write has ended. */
static void
look(struct set *s)
{
	struct set_map *m = &s->map;
	struct set_turn *t = m->settling;

	if (!t || !settle(s))
		return;
	m->settling = NULL;
	if (t != &the_set) {
		mailbox_post(t->mb, &t->msg, t->go);
		return;
	}
	set_new_head(s);
	pass_turn(s);
}

void
set_table_failed(struct set *s)
{
	struct set_map *m = &s->map;

	pthread_mutex_lock(&m->lock);
	if (m->serves && !m->is_changing) {
		m->is_changing = true;
		pass_turn(s);
	} else if (m->serves) {
		struct set_turn *t = m->holder;

		look(s);
		/*
		 * The owner is notified of the failure, because the owner may be waiting for an answer of a
		 * disk that hangs.
		 */
		if (t && t->on_alarm && !t->is_alarmed) {
			t->is_alarmed = true;
			mailbox_post(t->mb, &t->alarm, t->on_alarm);
		}
	}
	pthread_mutex_unlock(&m->lock);
}

static void
on_written(struct store_table_write *w, int result)
{
	struct set_table_write *wr = container_of(w, struct set_table_write, w);
	struct set *s = wr->set;
	struct set_map *m = &s->map;

	pthread_mutex_lock(&m->lock);
	m->unwritten &= ~((uint64_t)1 << wr->engine);
	atomic_fetch_and(&m->left, ~((uint64_t)1 << wr->engine));
	if (m->serves)
		look(s);
	pthread_mutex_unlock(&m->lock);
}

bool
set_take_turn(struct set *s, struct set_turn *t)
{
	struct set_map *m = &s->map;
	bool has_it;

	pthread_mutex_lock(&m->lock);
	check(t->mb && t->go && m->holder != t);
	has_it = !RULE_ONE_CHANGE || !m->is_changing;
	m->is_changing = true;
	if (has_it)
		m->holder = t;
	else
		list_push_tail(&m->waiting, &t->link);
	pthread_mutex_unlock(&m->lock);
	return has_it;
}

bool
set_give_turn(struct set *s, struct set_turn *t)
{
	struct set_map *m = &s->map;
	bool is_alarmed;

	pthread_mutex_lock(&m->lock);
	check(!RULE_ONE_CHANGE || (m->is_changing && m->holder == t && m->settling != t));
	if (m->holder == t)
		m->holder = NULL;
	pass_turn(s);
	is_alarmed = t->is_alarmed;
	pthread_mutex_unlock(&m->lock);
	return is_alarmed;
}

void
set_hear_alarm(struct set *s, struct set_turn *t)
{
	struct set_map *m = &s->map;

	pthread_mutex_lock(&m->lock);
	check(t->is_alarmed);
	t->is_alarmed = false;
	pthread_mutex_unlock(&m->lock);
}

bool
set_settle(struct set *s, struct set_turn *t)
{
	struct set_map *m = &s->map;
	bool is_over;

	pthread_mutex_lock(&m->lock);
	check(!RULE_ONE_CHANGE || (m->is_changing && m->holder == t));
	is_over = !RULE_AWAY_BEFORE_ANSWER || m->settling || !failed(s) || settle(s);
	if (!is_over)
		m->settling = t;
	pthread_mutex_unlock(&m->lock);
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
	struct set_map *m = &s->map;

	pthread_mutex_lock(&m->lock);
	*ret_table = m->table;
	pthread_mutex_unlock(&m->lock);
}

bool
set_change_table(struct set *s, struct set_turn *t, const struct disk_table *next, uint64_t all,
		 uint64_t needs)
{
	struct set_map *m = &s->map;
	uint64_t in;
	bool is_over;

	pthread_mutex_lock(&m->lock);
	/* M11: the caller owns the map change lock, and no other change is in progress. */
	check(!RULE_ONE_CHANGE || (!m->settling && m->is_changing && m->holder == t));
	/* Every member is an attached engine, and every needed engine is a member. */
	check(all && !(needs & ~all) && !(all & ~(UINT64_MAX >> (STORE_SET_MAX - set_engines(s)))));
	/* An engine that joins takes part in the new map, and an engine that leaves does not. All other
	 * engines are in service (M35). */
	in = (set_in(s) | (all & ~set_all(s))) & all;
	m->change = needs & ~in ? -EIO : 0;
	if (m->change) {
		pthread_mutex_unlock(&m->lock);
		return true;
	}
	m->before = m->table;
	/* M4: members change one at a time. */
	check(count(m->before.members ^ next->members) <= 1);
	m->table = *next;
	m->table.version = m->before.version;
	m->needs = needs;
	m->other = set_all(s);
	m->other_nr = count(m->before.members);
	m->all_next = all;
	begin_table(s, in);
	is_over = settle(s);
	if (!is_over)
		m->settling = t;
	pthread_mutex_unlock(&m->lock);
	return is_over;
}

int
set_change_result(struct set *s)
{
	struct set_map *m = &s->map;
	int r;

	pthread_mutex_lock(&m->lock);
	r = set_is_read_only(s) ? -EROFS : m->change;
	pthread_mutex_unlock(&m->lock);
	return r;
}

void
set_write_left(struct set *s, int engine, const struct disk_table *t)
{
	uint64_t bit = (uint64_t)1 << engine;

	check(!((set_all(s) | atomic_load(&s->map.left)) & bit));
	atomic_fetch_or(&s->map.left, bit);
	set_engine_ops(s, engine)->put_table(set_engine(s, engine), t, &s->map.write[engine].w);
}

bool
set_left_is_written(const struct set *s, int engine)
{
	return !(atomic_load(&s->map.left) >> engine & 1);
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
		set_publish_head(s, __builtin_ctzll(set_in(s)));
}

/* ---- look-ups ---- */

bool
set_look_up_slot(struct set *s, int slot, int *ret_first)
{
	struct set_map *m = &s->map;
	bool is_full;

	check(slot >= 0 && slot < STORE_SLOT_NR);
	pthread_mutex_lock(&m->lock);
	*ret_first = m->table.first[slot];
	is_full = table_is_full(&m->table, slot);
	pthread_mutex_unlock(&m->lock);
	return is_full;
}

uint64_t
set_start_no(const struct set *s)
{
	return s->map.start_no;
}

bool
set_members_change(struct set *s)
{
	struct set_map *m = &s->map;
	bool do_change;

	pthread_mutex_lock(&m->lock);
	do_change = (m->table.draining | m->table.filling) != 0;
	pthread_mutex_unlock(&m->lock);
	return do_change;
}

/* ---- life ---- */

void
set_table_begin(struct set *s, const struct disk_table *t, uint64_t start_no)
{
	struct set_map *m = &s->map;

	check(!m->serves && !m->is_changing && set_engines(s) > 0);
	pthread_mutex_lock(&m->lock);
	m->all_next = UINT64_MAX >> (STORE_SET_MAX - set_engines(s));
	set_publish_in(s, m->all_next, m->all_next);
	m->begun = m->all_next;
	for (int i = 0; i < STORE_SET_MAX; i++)
		m->write[i] = (struct set_table_write){ .w.done = on_written, .set = s, .engine = i };
	m->serves = true;
	m->table = *t;
	m->start_no = start_no;
	/* A disk may have failed already. The lock is marked as taken, so that pass_turn() either writes a
	 * map without the failed disk or releases the lock. */
	m->is_changing = true;
	pass_turn(s);
	pthread_mutex_unlock(&m->lock);
}

void
set_table_end(struct set *s)
{
	struct set_map *m = &s->map;

	pthread_mutex_lock(&m->lock);
	m->serves = false;
	pthread_mutex_unlock(&m->lock);
}
