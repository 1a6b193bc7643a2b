/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots that move from one engine to another while both serve (docs/store.md §6, "Moves"):
 *
 *	filling	  the source tells of what changes; all keys are sent; those that changed are sent again, until few are left
 *	frozen	  writers wait; the rest is sent
 *	switching a table that names the target is written
 *	switched  the target takes the slots, keys are looked for there, every port is visited; then the source leaves them,
 *		  and who waited goes to the target
 *	removing  what the source has of them is no more than leftovers
 *
 * Up to the table what the target has is nothing but leftovers; if anything goes wrong before, the source goes on as if nothing had been.
 * A disk that fails while the table is written: without the target it falls back to the table before; any other is left out, and the
 * table stays, as both have the same by then.
 */
#include "set/replicas.h"
#include "set/mover.h"

#include "set/map/set_rules.h"
#include "base/check.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef FEW
#define FEW 64          /* keys that may be sent while writers wait */
#define KEYS_MAX 262144 /* changed keys that are remembered one by one */
#define WALK_KEYS 256   /* of a page */
#endif
#define FROZEN_SEND_NS (500 * NS_PER_MS) /* the others of a second are for the table */
#define PACE_AHEAD_NS (100 * NS_PER_MS)  /* so much that was not used may be caught up */
#define PACE_ASK_NS (100 * NS_PER_MS)    /* who waits longer asks again */
#define ROUNDS 50
#define AGAIN_NS (20 * NS_PER_MS)

/* ---- waiting ---- */

void
move_turn(struct mover *m)
{
	static const struct timespec a_moment = { .tv_nsec = NS_PER_MS };

	mailbox_run(&m->mb, 0);
	if (m->user)
		store_user_turn(m->user);
	else
		nanosleep(&a_moment, NULL);
}

static bool
is_to_end(const struct mover *m)
{
	return atomic_load(&m->stop) || atomic_load(&m->cancel) || atomic_load(&m->yields);
}

static void
on_turn(struct msg *msg)
{
	container_of(msg, struct mover, turn.msg)->has_gone = true;
}

/* The mover sees for itself that a disk has failed. */
static void
on_alarm(struct msg *msg)
{
	struct mover *m = container_of(msg, struct mover, turn.alarm);

	set_hear_alarm(m->set, &m->turn);
}

static void
wait_for_turn(struct mover *m, bool has_it)
{
	while (!has_it && !m->has_gone)
		move_turn(m);
	m->has_gone = false;
}

int
move_take_turn(struct mover *m)
{
	struct set *s = m->set;

	m->turn = (struct set_turn){ .mb = &m->mb, .go = on_turn, .on_alarm = on_alarm };
	m->has_gone = false;
	wait_for_turn(m, set_take_turn(s, &m->turn));
	wait_for_turn(m, set_settle(s, &m->turn));
	if (!atomic_load(&s->is_read_only))
		return 0;
	move_give_turn(m);
	return -EROFS;
}

void
move_give_turn(struct mover *m)
{
	bool comes;

	set_new_head(m->set);
	comes = set_give_turn(m->set, &m->turn);
	while (comes && m->turn.is_alarmed)
		move_turn(m);
}

int
move_change_table(struct mover *m, const struct disk_table *next, uint64_t all, uint64_t needs)
{
	wait_for_turn(m, set_change_table(m->set, &m->turn, next, all, needs));
	return set_change_result(m->set);
}

int
move_visit(struct mover *m)
{
	set_visit(m->set);
	while (!set_is_visited(m->set))
		move_turn(m);
	return atomic_load(&m->set->visit_error);
}

static struct store_port *
port(struct mover *m, int engine)
{
	return set_port(store_user_port(m->user, 0))->engine[engine];
}

/* ---- keys that have changed ---- */

static uint32_t
hash(const struct store_key *k)
{
	return table_slot(k->bucket, k->bucket_len, k->key, k->key_len) * 2654435761u +
	       (uint32_t)crc64_nvme(0, k->key, k->key_len);
}

static bool
is_key(const struct move_key *have, const struct store_key *k)
{
	return have->bucket_len == k->bucket_len && have->key_len == k->key_len &&
	       have->copies == k->copies && memcmp(have->name, k->bucket, k->bucket_len) == 0 &&
	       memcmp(have->name + k->bucket_len, k->key, k->key_len) == 0;
}

static void
note(struct mover *m, const struct store_key *k)
{
	struct move_key **list, *at;

	pthread_mutex_lock(&m->keys_lock);
	list = &m->changed->list[hash(k) % MOVE_KEY_LISTS];
	for (at = *list; at && !is_key(at, k);)
		at = at->next;
	if (!at && m->changed->nr < KEYS_MAX)
		at = malloc(sizeof *at + k->bucket_len + k->key_len);
	else if (at)
		list = NULL;
	if (!at) {
		m->no_memory = true;
	} else if (list) {
		at->bucket_len = k->bucket_len;
		at->key_len = k->key_len;
		at->copies = k->copies;
		memcpy(at->name, k->bucket, k->bucket_len);
		memcpy(at->name + k->bucket_len, k->key, k->key_len);
		at->next = *list;
		*list = at;
		m->changed->nr++;
	}
	pthread_mutex_unlock(&m->keys_lock);
}

static void
on_change(void *cookie, const struct store_key *k)
{
	struct mover *m = cookie;

	/* What is swapped has it by itself. */
	if (RULE_MOVE_WATCH && m->kind != MOVE_SWAP)
		note(m, k);
}

static void
keys_free(struct move_keys *keys)
{
	for (int i = 0; keys && i < MOVE_KEY_LISTS; i++) {
		for (struct move_key *k = keys->list[i], *next; k; k = next) {
			next = k->next;
			free(k);
		}
	}
	free(keys);
}

/* Takes those that have changed so far.  NULL: no memory. */
static struct move_keys *
take_changed(struct mover *m, bool *ret_lost)
{
	struct move_keys *fresh = calloc(1, sizeof *fresh), *old;

	if (!fresh)
		return NULL;
	pthread_mutex_lock(&m->keys_lock);
	old = m->changed;
	m->changed = fresh;
	*ret_lost = m->no_memory;
	m->no_memory = false;
	pthread_mutex_unlock(&m->keys_lock);
	return old;
}

static size_t
changed_nr(struct mover *m)
{
	size_t nr;

	pthread_mutex_lock(&m->keys_lock);
	nr = m->no_memory ? SIZE_MAX : m->changed->nr;
	pthread_mutex_unlock(&m->keys_lock);
	return nr;
}

/* ---- sending ---- */

/* Of the engine's: how long to wait before so many bytes are read.  What was read beyond the rate is owed; the rate may change, and
 * the job end, while it is paid. */
static uint64_t
pace(struct store_send *s, uint32_t bytes)
{
	struct mover *m = container_of(s, struct move_send, s)->m;
	uint64_t now = clock_ns(), rate = atomic_load(&m->rate);
	double most = (double)rate * PACE_AHEAD_NS / 1e9;

	if (m->limit_ns)
		return now < m->limit_ns ? 0 : STORE_SEND_STOP;
	if (is_to_end(m))
		return STORE_SEND_STOP;
	if (!rate)
		return 0;
	m->may += (double)(now - m->paced_ns) / 1e9 * (double)rate;
	m->may = m->may < most ? m->may : most;
	m->paced_ns = now;
	if (m->may < 0) {
		double ns = -m->may / (double)rate * 1e9;

		return ns < PACE_ASK_NS ? (uint64_t)ns + 1 : PACE_ASK_NS;
	}
	m->may -= bytes;
	return 0;
}

static void
take_error(struct mover *m, int error)
{
	/* What tells most: that a disk has failed, then what is damaged. */
	if (!m->error || error == -EROFS || (error == -EBADMSG && m->error == -EAGAIN))
		m->error = error;
}

static void
note_rotten(struct mover *m, const struct store_key *k)
{
	struct move_key *one = m->rotten_nr < MOVE_ROTTEN_MAX && store_has_two(k)
				       ? malloc(sizeof *one + k->bucket_len + k->key_len)
				       : NULL;

	if (!one)
		return;
	one->bucket_len = k->bucket_len;
	one->key_len = k->key_len;
	one->copies = k->copies;
	memcpy(one->name, k->bucket, k->bucket_len);
	memcpy(one->name + k->bucket_len, k->key, k->key_len);
	one->next = m->rotten;
	m->rotten = one;
	m->rotten_nr++;
}

static void
send_over(struct move_send *ms, int result)
{
	struct mover *m = ms->m;

	ms->is_busy = false;
	m->sending--;
	pthread_mutex_lock(&m->lock);
	m->info.bytes_done += ms->s.bytes;
	m->bytes_of_slots += ms->s.bytes;
	m->info.keys += ms->to != NULL && ms->s.changes > 0;
	pthread_mutex_unlock(&m->lock);
	if (result >= 0)
		return;
	if (result == -EBADMSG)
		m->damaged++;
	if ((result == -EBADMSG || result == -EIO) && ms->to)
		note_rotten(m, &ms->s.key);
	/* It is to be sent again, if the move goes on at all. */
	if (ms->to)
		note(m, &ms->s.key);
	take_error(m, result);
}

static void
on_sent(struct store_op *op)
{
	send_over(container_of(op, struct move_send, s.op), op->result);
}

static void
set_key(struct move_send *ms, struct mover *m, const struct store_key *k)
{
	memcpy(ms->name, k->bucket, k->bucket_len);
	memcpy(ms->name + k->bucket_len, k->key, k->key_len);
	memset(&ms->s, 0, offsetof(struct store_send, key));
	ms->s = (struct store_send){ .op.done = on_sent,
				     .key = { ms->name, ms->name + k->bucket_len, k->bucket_len, k->key_len,
					      k->copies },
				     .buf = ms->s.buf,
				     .pace = pace };
	ms->m = m;
}

/* Has a key sent, or (no `to`) removed, as soon as one of those before has ended. */
static void
send_key(struct mover *m, struct store_port *from, struct store_port *to, const struct store_key *k)
{
	struct move_send *ms = NULL;
	int r;

	while (!ms) {
		for (int i = 0; i < MOVE_SENDS && !ms; i++)
			ms = m->send[i].is_busy ? NULL : &m->send[i];
		if (!ms)
			move_turn(m);
	}
	set_key(ms, m, k);
	ms->from = from;
	ms->to = to;
	ms->is_busy = true;
	m->sending++;
	r = to ? from->ops->member->send(from, to, &ms->s) : from->ops->member->remove(from, &ms->s);
	if (r != 0)
		send_over(ms, r < 0 ? r : ms->s.op.result);
}

static int
sends_end(struct mover *m)
{
	int e;

	while (m->sending)
		move_turn(m);
	e = m->error;
	m->error = 0;
	return e;
}

/* ---- walking ---- */

/* A page of what an engine has. */
struct walk {
	struct store_walk w;
	int nr;
	struct {
		uint16_t bucket_len, key_len;
		uint8_t copies;
		char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
	} key[WALK_KEYS];
};

static bool
on_key(struct store_walk *w, const struct store_key *k)
{
	struct walk *wk = container_of(w, struct walk, w);

	wk->key[wk->nr].bucket_len = k->bucket_len;
	wk->key[wk->nr].key_len = k->key_len;
	wk->key[wk->nr].copies = k->copies;
	memcpy(wk->key[wk->nr].name, k->bucket, k->bucket_len);
	memcpy(wk->key[wk->nr].name + k->bucket_len, k->key, k->key_len);
	return ++wk->nr < WALK_KEYS;
}

/* Sends all that an engine has of these slots, or (no `to`) removes it. */
static int
walk(struct mover *m, int of, struct store_port *from, struct store_port *to, const struct store_slots *slots)
{
	struct store_port *p = port(m, of);
	struct walk *wk = calloc(1, sizeof *wk);
	int r = wk ? 0 : -EAGAIN;

	if (!wk)
		return r;
	wk->w.slots = slots;
	wk->w.key = on_key;
	do {
		wk->nr = 0;
		r = p->ops->member->walk(p, &wk->w);
		for (int i = 0; r >= 0 && i < wk->nr; i++) {
			struct store_key k = { wk->key[i].name, wk->key[i].name + wk->key[i].bucket_len,
					       wk->key[i].bucket_len, wk->key[i].key_len, wk->key[i].copies };

			send_key(m, from, to, &k);
		}
		move_turn(m);
		if (is_to_end(m))
			r = -EINTR;
	} while (r >= 0 && wk->w.more && !(m->error && m->error != -EBADMSG && m->error != -EAGAIN));
	free(wk);
	return r < 0 ? r : 0;
}

/* Everything of the slots, on both: what the source has not is removed (M22). */
static int
walk_both(struct mover *m, int from, int to)
{
	struct store_port *f = port(m, from), *t = port(m, to);
	int r = walk(m, from, f, t, &m->slots), e = sends_end(m), more;

	if (r == 0 && RULE_ALIGN_REMOVES)
		r = walk(m, to, f, t, &m->slots);
	more = sends_end(m);
	e = e ? e : more;
	/* What has to be tried again is among what has changed. */
	return r < 0 ? r : e == -EAGAIN ? 0 : e;
}

/* Those that have changed so far.  *ret_lost: some are not known. */
static int
send_changed(struct mover *m, int from, int to, bool *ret_lost)
{
	struct move_keys *keys = take_changed(m, ret_lost);

	if (!keys)
		return -EAGAIN;
	for (int i = 0; i < MOVE_KEY_LISTS; i++) {
		for (const struct move_key *k = keys->list[i]; k; k = k->next)
			send_key(m, port(m, from), port(m, to),
				 &(struct store_key){ k->name, k->name + k->bucket_len, k->bucket_len,
						      k->key_len, k->copies });
	}
	keys_free(keys);
	return sends_end(m);
}

/* ---- what leaders are told ---- */

static int
tell(struct mover *m, struct store_port *p, int (*call)(struct store_port *, struct store_slots_op *),
     struct store_slots_op *o)
{
	return STORE_DO(m->user, &o->op, call(p, o));
}

static struct store_slots_op *
slots_op(struct mover *m, struct store_slots_op *o)
{
	struct store_moved *moved = o->moved;

	memset(o, 0, sizeof *o);
	o->slots = &m->slots;
	o->moved = moved;
	return o;
}

/* ---- what is damaged at the source ---- */

static void
on_hold(struct msg *msg)
{
	container_of(msg, struct mover, hold.msg)->has_hold = true;
}

/*
 * Has what a first cannot give of a key, its object and the parts of its uploads in progress, written anew from the second.  Nobody else
 * does that for these parts, which nobody reads.  Returns how many records got other bytes, or -errno.
 */
static int
mend_key(struct mover *m, int first, const struct move_key *rotten)
{
	struct set *s = m->set;
	struct store_key k = { rotten->name, rotten->name + rotten->bucket_len, rotten->bucket_len,
			       rotten->key_len, rotten->copies };
	struct move_send *ms = &m->send[0];
	int second, r;

	m->hold = (struct set_hold){ .mb = &m->mb, .go = on_hold };
	m->has_hold = false;
	r = set_hold(s->copies->holds, &k, &m->hold);
	if (r < 0)
		return r;
	while (r == 0 && !m->has_hold)
		move_turn(m);
	second = set_second(s, &k);
	r = -ENODATA;
	if (!set_is_open(&m->hold) && set_home(s, &k) == first && second != SET_NOWHERE && second != first &&
	    !set_has_failed(s, second)) {
		struct store_port *whole = port(m, second), *damaged = port(m, first);

		set_key(ms, m, &k);
		ms->s.is_repair = true;
		r = STORE_DO(m->user, &ms->s.op, whole->ops->member->send(whole, damaged, &ms->s));
	}
	set_release(s->copies->holds, &m->hold);
	return r < 0 ? r : (int)ms->s.changes;
}

/* Goes through what could not be read, with no key on its way, and forgets it.  mends: it is mended where that can be.  Tells whether
 * anything was. */
static bool
end_rotten(struct mover *m, int first, bool mends)
{
	bool any = false;

	for (struct move_key *k = m->rotten, *next; k; k = next) {
		int r = mends && !is_to_end(m) ? mend_key(m, first, k) : 0;

		next = k->next;
		if (r > 0) {
			any = true;
			atomic_fetch_add(&m->set->copies->repaired_nr, 1);
			log_note("something damaged in bucket %.*s was written anew from its other copy",
				 k->bucket_len, k->name);
		}
		free(k);
	}
	m->rotten = NULL;
	m->rotten_nr = 0;
	return any;
}

/* ---- the switch ---- */

/* M8: from before a table says that a second has all it gets what is answered; NULL: none of m->slots goes there. */
static void
set_seconds(struct mover *m, const uint8_t *was, int engine)
{
	for (int i = 0; i < STORE_SLOT_NR && m->set->copies; i++) {
		if (slots_has(&m->slots, (unsigned)(STORE_SLOT_NR + i)))
			atomic_store(&m->set->copies->second[i], was ? was[i] : (uint8_t)engine);
	}
}

/* Are the slots still whose they were when this was planned?  A disk may have failed, or the first bucket with two copies been made. */
static bool
is_as_planned(const struct mover *m, const struct disk_table *t, int from, int to)
{
	uint8_t f = m->set->number[from], g = m->set->number[to];

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (slots_has(&m->slots, (unsigned)i) && t->home[i] != f)
			return false;
		if (!slots_has(&m->slots, (unsigned)(STORE_SLOT_NR + i)))
			continue;
		if (t->first[i] != f || (m->kind == MOVE_HOME && t->second[i] != TABLE_NO_DISK) ||
		    (m->kind == MOVE_FIRST && t->second[i] == g) ||
		    (m->kind == MOVE_SWAP && (t->second[i] != g || !table_is_full(t, i))))
			return false;
	}
	return true;
}

static int
write_homes(struct mover *m, int from, int to)
{
	struct set *s = m->set;
	struct disk_table *next = malloc(sizeof *next);
	uint8_t was[STORE_SLOT_NR];
	int r = -EAGAIN;

	if (!next)
		return r;
	set_get_table(s, next);
	if (!is_as_planned(m, next, from, to)) {
		free(next);
		return -EINTR;
	}
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (slots_has(&m->slots, (unsigned)i))
			table_move(next, i, s->number[to]);
		if (slots_has(&m->slots, (unsigned)(STORE_SLOT_NR + i)))
			move_change_pair(next, m->kind, i, s->number[to]);
		was[i] = s->copies ? atomic_load(&s->copies->second[i]) : SET_NOWHERE;
	}
	if (m->kind == MOVE_SECOND && RULE_BOTH_TABLES)
		set_seconds(m, NULL, to);
	r = move_change_table(m, next, set_all(s), (uint64_t)1 << to);
	if (m->kind == MOVE_SECOND)
		/* All is read-only: the next start may find that they have all. */
		set_seconds(m, r == 0 || r == -EROFS ? NULL : was, to);
	free(next);
	return r;
}

/* was_first: the second now, if it is one.  The table is effective: who looks for one of these keys goes there from now on. */
static void
go_over(struct mover *m, struct store_port *from, struct store_port *to, int was_first, int engine,
	struct store_slots_op *o)
{
	struct set *s = m->set;
	int r;

	o->moved = NULL;
	r = tell(m, to, to->ops->member->take, slots_op(m, o));
	/* Before who looks for them comes here: at the source all wait. */
	if (was_first >= 0)
		set_seconds(m, NULL, was_first);
	for (int i = 0; i < STORE_PLACE_NR; i++) {
		if (slots_has(&m->slots, (unsigned)i))
			atomic_store_explicit(&s->home[i], (uint8_t)engine, memory_order_release);
	}
	atomic_fetch_add(&s->home_changes, 1);
	if (RULE_REMOVE_AFTER_SWITCH)
		move_visit(m);
	if (r >= 0)
		r = tell(m, from, from->ops->member->leave, slots_op(m, o));
	atomic_fetch_add(&s->home_changes, 1);
	if (r < 0)
		log_error("slots that have moved are not counted where they are: %s", strerror(-r));
}

/*
 * Behind a freeze: those who have changed something at the first, and wait for the second, have it there.  The visit is behind
 * what their ports were told.
 */
static int
wait_unsettled(struct mover *m)
{
	struct set *s = m->set;
	uint64_t until = clock_ns() + FROZEN_SEND_NS;

	move_visit(m);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (!slots_has(&m->slots, (unsigned)(STORE_SLOT_NR + i)))
			continue;
		while (atomic_load(&s->copies->unsettled[i])) {
			if (clock_ns() > until)
				return -EAGAIN;
			move_turn(m);
		}
		/* It is none any more, or missed something. */
		if (atomic_load(&s->copies->second[i]) == SET_NOWHERE || s->copies->has_missed)
			return -EAGAIN;
	}
	return 0;
}

/* With the turn, and every writer waiting. */
static int
switch_over(struct mover *m, int from, int to, uint64_t removed, struct store_slots_op *o)
{
	struct set *s = m->set;
	struct store_port *f = port(m, from), *t = port(m, to);
	bool lost = false, is_open = false;
	int r = RULE_MOVE_FREEZE ? tell(m, f, f->ops->member->freeze, slots_op(m, o)) : 0;

	/* What ended with its bucket nobody told. */
	if (r >= 0 && atomic_load(&s->buckets_removed) != removed)
		r = -ESTALE;
	if (r >= 0) {
		m->limit_ns = clock_ns() + FROZEN_SEND_NS;
		r = send_changed(m, from, to, &lost);
		m->limit_ns = 0;
		if (r == -EINTR)
			r = -EAGAIN;
	}
	if (r >= 0 && (lost || (RULE_MOVE_WATCH && changed_nr(m))))
		r = -EAGAIN;
	if (r >= 0 && m->kind == MOVE_SWAP)
		r = wait_unsettled(m);
	if (r >= 0) {
		r = write_homes(m, from, to);
		/* All is read-only, and the next start finds the one or the other: nothing may be written here any more. */
		is_open = r == -EROFS;
	}
	if (m->kind == MOVE_SECOND) {
		/* The first is what it was. */
		if (RULE_MOVE_FREEZE)
			tell(m, f, f->ops->member->thaw, slots_op(m, o));
	} else if (r == 0 || is_open)
		go_over(m, f, t, r == 0 && m->kind == MOVE_SWAP ? from : -1, r == 0 ? to : from, o);
	else if (RULE_MOVE_FREEZE)
		tell(m, f, f->ops->member->thaw, slots_op(m, o));
	return r;
}

/* ---- a set of slots ---- */

static int
fill(struct mover *m, int from, int to, struct store_slots_op *o)
{
	struct set *s = m->set;
	int r = -ESTALE;
	uint64_t removed = 0;

	for (int round = 0; round < ROUNDS; round++) {
		bool lost = false;

		if (r == -ESTALE) {
			removed = atomic_load(&s->buckets_removed);
			r = m->kind == MOVE_SWAP ? 0 : walk_both(m, from, to);
		} else if (changed_nr(m) > FEW || r == -EAGAIN) {
			uint64_t until = clock_ns() + AGAIN_NS;

			while (r == -EAGAIN && clock_ns() < until)
				move_turn(m);
			r = send_changed(m, from, to, &lost);
			if (lost && r >= 0)
				r = -ESTALE;
		}
		if (is_to_end(m))
			return -EINTR;
		if (r == 0 && changed_nr(m) <= FEW) {
			r = move_take_turn(m);
			if (r < 0)
				return r;
			r = switch_over(m, from, to, removed, o);
			move_give_turn(m);
			if (r == 0)
				return 0;
		}
		/* All of it once more. */
		if ((r == -EBADMSG || r == -EIO) && end_rotten(m, from, true))
			r = -ESTALE;
		if (r < 0 && r != -EAGAIN && r != -ESTALE)
			return r;
	}
	return -EAGAIN;
}

int
move_slots(struct mover *m, int from, int to)
{
	struct store_slots_op *o = calloc(1, sizeof *o), *watch = calloc(1, sizeof *watch);
	struct store_port *f = port(m, from);
	int r = -EAGAIN;

	m->changed = calloc(1, sizeof *m->changed);
	m->no_memory = false;
	m->error = 0;
	if (o && watch && m->changed) {
		slots_op(m, watch);
		watch->changed = on_change;
		watch->cookie = m;
		r = tell(m, f, f->ops->member->watch, watch);
	}
	if (r >= 0) {
		int e;

		r = fill(m, from, to, o);
		slots_op(m, o)->slots = NULL;
		e = tell(m, f, f->ops->member->watch, o);
		if (e < 0 && !set_has_failed(m->set, from))
			log_error("a watch on slots that move does not end: %s", strerror(-e));
	}
	if (set_has_failed(m->set, from) || set_has_failed(m->set, to))
		r = r < 0 ? -EROFS : r;
	end_rotten(m, from, false);
	keys_free(m->changed);
	m->changed = NULL;
	free(watch);
	free(o);
	return r;
}

/* ---- leftovers ---- */

int
move_clean(struct mover *m, int but)
{
	struct set *s = m->set;
	struct store_slots *theirs = malloc(sizeof *theirs);
	struct disk_table *t = malloc(sizeof *t);
	int r = theirs && t ? 0 : -EAGAIN, e;

	m->error = 0;
	if (r == 0)
		set_get_table(s, t);
	for (int i = 0; r == 0 && i < atomic_load(&s->nr); i++) {
		if (i == but || !set_is_in(s, i) || set_has_failed(s, i))
			continue;
		memset(theirs, 0, sizeof *theirs);
		for (int place = 0; place < STORE_PLACE_NR; place++) {
			int slot = place - STORE_SLOT_NR;
			/* One that the keeper is about to make the first of it is not yet. */
			bool is_of_pair = slot >= 0 &&
					  (t->first[slot] == s->number[i] || t->second[slot] == s->number[i]);

			if (atomic_load(&s->home[place]) != i && !is_of_pair)
				slots_add(theirs, (unsigned)place);
		}
		r = walk(m, i, port(m, i), NULL, theirs);
		/* There was no room in the log, say: all of it once more. */
		e = sends_end(m);
		if (e == -EROFS || (e == -EAGAIN && r == 0))
			r = e;
	}
	free(theirs);
	free(t);
	return r;
}
