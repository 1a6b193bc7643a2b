/* SPDX-License-Identifier: Apache-2.0 */
/* Keys are sent from one engine to another, paced; see mover.h. */
#include "set/map/set_rules.h"
#include "set/mover.h"
#include "set/replicas.h"

#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef WALK_KEYS
#define WALK_KEYS 256 /* of a page */
#endif
#define PACE_AHEAD_NS (100 * NS_PER_MS) /* so much that was not used may be caught up */
#define PACE_ASK_NS (100 * NS_PER_MS)   /* who waits longer asks again */

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
	if (move_is_to_end(m))
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
		move_note(m, &ms->s.key);
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

int
move_sends_end(struct mover *m)
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

int
move_walk(struct mover *m, int of, struct store_port *from, struct store_port *to,
	  const struct store_slots *slots)
{
	struct store_port *p = move_port(m, of);
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
		if (move_is_to_end(m))
			r = -EINTR;
	} while (r >= 0 && wk->w.more && !(m->error && m->error != -EBADMSG && m->error != -EAGAIN));
	free(wk);
	return r < 0 ? r : 0;
}

int
move_walk_both(struct mover *m, int from, int to)
{
	struct store_port *f = move_port(m, from), *t = move_port(m, to);
	int r = move_walk(m, from, f, t, &m->slots), e = move_sends_end(m), more;

	if (r == 0 && RULE_ALIGN_REMOVES)
		r = move_walk(m, to, f, t, &m->slots);
	more = move_sends_end(m);
	e = e ? e : more;
	/* What has to be tried again is among what has changed. */
	return r < 0 ? r : e == -EAGAIN ? 0 : e;
}

int
move_send_changed(struct mover *m, int from, int to, bool *ret_lost)
{
	struct move_keys *keys = move_take_changed(m, ret_lost);

	if (!keys)
		return -EAGAIN;
	for (int i = 0; i < MOVE_KEY_LISTS; i++) {
		for (const struct move_key *k = keys->list[i]; k; k = k->next)
			send_key(m, move_port(m, from), move_port(m, to),
				 &(struct store_key){ k->name, k->name + k->bucket_len, k->bucket_len,
						      k->key_len, k->copies });
	}
	move_keys_free(keys);
	return move_sends_end(m);
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
	r = set_hold(set_key_locks(s), &k, &m->hold);
	if (r < 0)
		return r;
	while (r == 0 && !m->has_hold)
		move_turn(m);
	second = set_secondary(s, &k);
	r = -ENODATA;
	if (!set_is_open(&m->hold) && set_primary(s, &k) == first && second != SET_NOWHERE &&
	    second != first && !set_has_failed(s, second)) {
		struct store_port *whole = move_port(m, second), *damaged = move_port(m, first);

		set_key(ms, m, &k);
		ms->s.is_repair = true;
		r = STORE_DO(m->user, &ms->s.op, whole->ops->member->send(whole, damaged, &ms->s));
	}
	set_release(set_key_locks(s), &m->hold);
	return r < 0 ? r : (int)ms->s.changes;
}

bool
move_end_rotten(struct mover *m, int first, bool mends)
{
	bool any = false;

	for (struct move_key *k = m->rotten, *next; k; k = next) {
		int r = mends && !move_is_to_end(m) ? mend_key(m, first, k) : 0;

		next = k->next;
		if (r > 0) {
			any = true;
			set_count(m->set, COUNT_REPAIRED);
			log_note("something damaged in bucket %.*s was written anew from its other copy",
				 k->bucket_len, k->name);
		}
		free(k);
	}
	m->rotten = NULL;
	m->rotten_nr = 0;
	return any;
}
