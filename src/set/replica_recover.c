/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recovery task of a set applies a new placement map to keys with two copies. A round begins after a disk
 * has failed, or a secondary has missed an update, or before the first bucket with two copies is made:
 *
 * 1. The task takes the map change lock, and waits until a map that records the failure is effective.
 * 2. Before the first bucket with two copies is made, all slots get a secondary. Former secondaries receive no
 *    further changes.
 * 3. The new primaries accept their partitions, and the former primaries hand them over.
 * 4. Waiting operations continue.
 *
 * A round runs on the thread of a port, and one round runs at a time. A waiting operation continues at the
 * end of a round that began after the operation started to wait.
 */
#include "set/disk_names.h"

#include "base/check.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void begin_round(struct set *s);
static void go_on(struct set *s);

/* ---- the end of a round ---- */

static void
end_round(struct set *s)
{
	struct set_recovery *c = &s->recovery;
	struct set_port *p = c->keeper;
	bool again;

	for (struct list *l; (l = list_pop(&c->round)) != NULL;) {
		struct set_wait *w = container_of(l, struct set_wait, link);

		mailbox_post(w->mb, &w->msg, w->go);
	}
	pthread_mutex_lock(&c->lock);
	again = c->again || !list_empty(&c->waiting);
	c->is_keeping = again;
	pthread_mutex_unlock(&c->lock);
	if (again)
		begin_round(s);
	else
		port_unpin(p);
}

static void
give_turn(struct set *s)
{
	struct set_recovery *c = &s->recovery;
	bool heals;

	set_note_away(s, &c->table);
	heals = set_pairs_wait(s, &c->table);
	set_new_head(s);
	/* Resynchronisation is requested before the round ends, so an observer always sees one of the two as
	 * active. */
	if (heals)
		set_heal(s);
	set_give_turn(s, &c->turn);
	end_round(s);
}

/* ---- application of the newest map ---- */

/* Removes each secondary that the newest map does not list as in sync. Changes no longer wait for such a
 * secondary. */
static void
drop_seconds(struct set *s)
{
	struct set_recovery *c = &s->recovery;

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int engine = set_secondary_at(s, table_place((unsigned)i, true));
		bool stays = engine != SET_NOWHERE && table_is_full(&c->table, i) &&
			     c->table.second[i] == set_number(s, engine) && set_is_in(s, engine);

		if (!stays)
			set_assign(s, table_place((unsigned)i, true), SET_SECONDARY, SET_NOWHERE);
	}
}

/*
 * Finds the next partitions whose primary changes from one engine to another. The former primary may be a
 * missing disk, which had no keys in these partitions when the first bucket with two copies was made. Returns
 * false if there are no such partitions.
 */
static bool
next_places(struct set *s)
{
	struct set_recovery *c = &s->recovery;

	memset(&c->places, 0, sizeof c->places);
	c->from = c->to = -1;
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		unsigned place = (unsigned)(STORE_SLOT_NR + i);
		int from = set_primary_at(s, (unsigned)place), to = set_engine_of(s, c->table.first[i]);

		if (from == to || to < 0 || !set_is_in(s, to))
			continue;
		if (c->from < 0) {
			c->from = from;
			c->to = to;
		}
		if (from == c->from && to == c->to)
			slots_add(&c->places, place);
	}
	return c->from >= 0;
}

/* A request to the engine of a failed disk to hand over partitions. The request moves the usage in the quota
 * ledger, and may take long; no operation waits for its end. */
struct leaving {
	struct set_port *port;
	struct store_slots places;
	struct store_slots_op op;
};

static void
left(struct leaving *lv, int result)
{
	if (result < 0)
		log_error("keys of a disk that failed are not counted where they are: %s", strerror(-result));
	port_unpin(lv->port);
	free(lv);
}

static void
on_left(struct store_op *op)
{
	left(container_of(container_of(op, struct store_slots_op, op), struct leaving, op), op->result);
}

static void
leave(struct set *s, struct leaving *lv)
{
	struct set_recovery *c = &s->recovery;
	struct store_port *from = port_engine(c->keeper, c->from);
	int r;

	lv->port = c->keeper;
	lv->places = c->places;
	lv->op = (struct store_slots_op){
		.op.done = on_left, .slots = &lv->places, .moved = c->op.moved, .counter = c->op.counter
	};
	c->op.moved = NULL;
	port_pin(lv->port);
	from->ops->member->slots(from, SLOTS_DISOWN, &lv->op);
	r = from->ops->member->slots(from, SLOTS_LEAVE, &lv->op);
	if (r != 0)
		left(lv, r < 0 ? r : lv->op.op.result);
}

static void
leave_nowhere(struct set_recovery *c)
{
	for (struct store_moved *m = c->op.moved, *next; m; m = next) {
		next = m->next;
		free(m);
	}
	c->op.moved = NULL;
	free(c->leaving);
}

static void
on_taken(struct store_op *op)
{
	struct set_recovery *c = container_of(op, struct set_recovery, op.op);
	struct set *s = c->keeper->set;

	set_note_relocation(s);
	if (c->from == SET_NOWHERE)
		leave_nowhere(c);
	else
		leave(s, c->leaving);
	c->leaving = NULL;
	for (int i = STORE_SLOT_NR; i < STORE_PLACE_NR; i++) {
		if (slots_has(&c->places, (unsigned)i))
			set_assign(s, (unsigned)i, SET_PRIMARY, c->to);
	}
	set_note_relocation(s);
	go_on(s);
}

/* Makes the new engine the primary of its partitions. Returns false if there is no memory; another round then
 * repeats the step. */
static bool
take_over(struct set *s)
{
	struct set_recovery *c = &s->recovery;
	struct store_port *to = port_engine(c->keeper, c->to);
	int r;

	c->leaving = calloc(1, sizeof *c->leaving);
	if (!c->leaving)
		return false;
	c->op = (struct store_slots_op){ .op.done = on_taken, .slots = &c->places };
	r = to->ops->member->slots(to, SLOTS_TAKE, &c->op);
	if (r != 0)
		on_taken(&c->op.op);
	return true;
}

/* ---- the first bucket with two copies ---- */

/* Assigns the secondaries of an effective map to the slots. */
static void
use_pairs(struct set *s, const struct disk_table *t)
{
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int second = table_is_full(t, i) ? set_engine_of(s, t->second[i]) : -1;

		/* Both copies of a key are never on one disk, and only an existing secondary is in sync. */
		check(t->first[i] != t->second[i]);
		check(!table_is_full(t, i) || t->second[i] != TABLE_NO_DISK);
		set_assign(s, table_place((unsigned)i, true), SET_SECONDARY,
			   second < 0 ? SET_NOWHERE : second);
	}
	set_begin_pairs(s);
}

/* Returns true if a disk has records with two copies, left from an earlier bucket: the disk was a secondary,
 * and missed the removal of that bucket. */
static bool
has_two_left(const struct set *s, int number)
{
	struct store_unit_info info;
	int engine = set_engine_of(s, number);

	if (engine < 0)
		return true;
	store_unit_info(set_engine(s, engine), 0, &info);
	return store_unit_number(&info, "copy_objects") || store_unit_number(&info, "copy_uploads");
}

/* Marks secondaries as not in sync if their disks have old records of keys with two copies. Such disks may
 * lack records, so they are resynchronised first. While foreign records are removed, all secondaries are marked:
 * the removal does not know the new map, and would remove secondary copies. */
static void
keep_from_full(const struct set *s, struct disk_table *t)
{
	bool all = set_removes_foreign(s);

	for (int d = 0; d < STORE_DISKS_MAX; d++) {
		if (!table_has(t->members, d) || (!all && !has_two_left(s, d)))
			continue;
		for (int i = 0; i < STORE_SLOT_NR; i++) {
			if (t->second[i] == d)
				table_set_full(t, i, false);
		}
	}
}

/* Writes a map in which all slots have a secondary, in sync because no key has two copies yet, and assigns the
 * secondaries to the slots when the map is effective. Returns true if the round continues by itself; false if
 * no secondaries can be assigned, and the caller continues the round. */
static bool
assign_pairs(struct set *s)
{
	struct set_recovery *c = &s->recovery;
	uint64_t size[STORE_DISKS_MAX];
	bool is_new = true;

	atomic_store(&c->not_paired, 0);
	if (__builtin_popcountll(c->table.members & ~c->table.draining) < 2) {
		/* A drain will leave only one disk (-EDOM). If the drain was cancelled, a map will soon
		 * record that the disk remains (-EAGAIN). */
		atomic_store(&c->not_paired, table_gives_up(&c->table) ? -EAGAIN : -EDOM);
		return false;
	}
	for (int i = 0; i < STORE_SLOT_NR; i++)
		is_new &= c->table.second[i] == TABLE_NO_DISK;
	disk_sizes(s, size);
	/* A disk that is away gets no secondaries, because it does not take part in the newest map, even if it
	 * has missed no change yet. */
	for (int i = 0; i < STORE_DISKS_MAX; i++)
		size[i] = table_has(c->table.in, i) ? size[i] : 0;
	if (is_new && table_pair(&c->table, size, true)) {
		keep_from_full(s, &c->table);
		if (!set_change_table(s, &c->turn, &c->table, set_all(s), 0))
			return true;
		set_get_table(s, &c->table);
	}
	use_pairs(s, &c->table);
	c->pairs = false;
	/* A disk that failed meanwhile has not asked for a round, because no slot had a secondary (set_keep()). */
	go_on(s);
	return true;
}

/* ---- a round ---- */

/* Writes a map in which secondaries with a missed update are not in sync. Returns true if the write is in
 * progress and the round continues after it; false if the round can continue now. */
static bool
write_missed(struct set *s)
{
	struct set_recovery *c = &s->recovery;
	struct store_slots missed;
	bool changes = false;

	set_take_missed(s, &missed);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (!slots_has(&missed, (unsigned)(STORE_SLOT_NR + i)) || !table_is_full(&c->table, i))
			continue;
		table_set_full(&c->table, i, false);
		changes = true;
	}
	if (!changes)
		return false;
	log_warn("a disk has not taken what another one has: it is copied again");
	return !set_change_table(s, &c->turn, &c->table, set_all(s), 0);
}

/* Advances the round. The caller holds the map change lock. */
static void
go_on(struct set *s)
{
	struct set_recovery *c = &s->recovery;

	if (!set_settle(s, &c->turn))
		return;
	if (set_is_read_only(s)) {
		give_turn(s);
		return;
	}
	set_get_table(s, &c->table);
	if (write_missed(s))
		return;
	set_get_table(s, &c->table);
	if (c->pairs && assign_pairs(s))
		return;
	drop_seconds(s);
	if (next_places(s) && take_over(s))
		return;
	if (c->from < 0)
		set_note_pairs_answer(s);
	give_turn(s);
}

static void
on_turn(struct msg *m)
{
	struct set_recovery *c = container_of(m, struct set_recovery, turn.msg);

	go_on(c->keeper->set);
}

static void
begin_round(struct set *s)
{
	struct set_recovery *c = &s->recovery;

	c->turn = (struct set_turn){ .mb = c->keeper->mb, .go = on_turn };
	pthread_mutex_lock(&c->lock);
	c->again = c->pairs = false;
	list_init(&c->round);
	for (struct list *l; (l = list_pop(&c->waiting)) != NULL;) {
		c->pairs |= container_of(l, struct set_wait, link)->pairs;
		list_push_tail(&c->round, l);
	}
	pthread_mutex_unlock(&c->lock);
	check(!c->leaving && c->is_keeping);
	if (set_take_turn(s, &c->turn))
		go_on(s);
}

static void
on_begin(struct msg *m)
{
	struct set_recovery *c = container_of(m, struct set_recovery, msg);

	port_take_sent(c->keeper);
	begin_round(c->keeper->set);
}

/* Requests a round and selects its thread. The caller holds the lock of the task. Without a port no operation
 * waits, and the first port that attaches begins the round. */
static void
begin(struct set *s)
{
	struct set_recovery *c = &s->recovery;

	c->again = true;
	if (!c->is_keeping)
		c->is_keeping = set_send_to_one(s, &c->msg, on_begin, &c->keeper);
}

void
set_keep(struct set *s)
{
	if (!set_uses_pairs(s))
		return;
	pthread_mutex_lock(&s->recovery.lock);
	begin(s);
	pthread_mutex_unlock(&s->recovery.lock);
}

void
set_keep_on(struct set *s)
{
	pthread_mutex_lock(&s->recovery.lock);
	if (s->recovery.again && !s->recovery.is_keeping)
		begin(s);
	pthread_mutex_unlock(&s->recovery.lock);
}

void
set_wait_kept(struct set *s, struct set_wait *w)
{
	pthread_mutex_lock(&s->recovery.lock);
	list_push_tail(&s->recovery.waiting, &w->link);
	begin(s);
	pthread_mutex_unlock(&s->recovery.lock);
}

int
set_pairs_error(const struct set *s)
{
	return atomic_load(&s->recovery.not_paired);
}

bool
set_recovers(struct set *s)
{
	struct set_recovery *c = &s->recovery;
	bool is;

	pthread_mutex_lock(&c->lock);
	is = c->is_keeping || c->again;
	pthread_mutex_unlock(&c->lock);
	return is;
}
