/* SPDX-License-Identifier: Apache-2.0 */
/* Sends keys from one engine to another at a limited rate; see rebalance.h. */
#include "set/map/set_rules.h"
#include "set/mover.h"

#include "base/check.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>

/* longest idle time, in ns, for which later sends may make up by exceeding the rate */
#define PACE_AHEAD_NS (100 * NS_PER_MS)
#define PACE_ASK_NS (100 * NS_PER_MS) /* longest wait, in ns, before the rate is read again */

/* largest number of damaged keys that are kept for repair; the next scan finds further damaged keys again */
#define ROTTEN_MAX 4096

int
move_begin_sends(struct mover *m)
{
	struct move_sender *sn = &m->sender;
	int r;

	check(!sn->has_bufs && !sn->sending);
	r = bufpool_init_class(&sn->bufs, BUF_LARGE, MOVE_SENDS * (BUF_LARGE_BYTES + 2 * BUF_SLACK_BYTES), 0);
	for (int i = 0; r == 0 && i < MOVE_SENDS; i++)
		sn->send[i].s.buf = bufpool_get(&sn->bufs, BUF_LARGE);
	sn->has_bufs = r == 0;
	return r;
}

void
move_end_sends(struct mover *m)
{
	struct move_sender *sn = &m->sender;

	check(sn->has_bufs && !sn->sending);
	for (int i = 0; i < MOVE_SENDS; i++)
		bufpool_put(&sn->bufs, sn->send[i].s.buf);
	bufpool_fini(&sn->bufs);
	sn->has_bufs = false;
}

/* Returns the time in ns that an engine must wait before it reads `bytes`. Bytes that were read beyond the
 * rate delay later reads. The rate may change and the job may end during the wait. */
static uint64_t
pace(struct store_send *s, uint32_t bytes)
{
	struct mover *m = container_of(s, struct move_send, s)->m;
	struct move_sender *sn = &m->sender;
	uint64_t now = clock_ns(), rate = atomic_load(&m->rate);
	double most = (double)rate * PACE_AHEAD_NS / 1e9;

	if (sn->limit_ns)
		return now < sn->limit_ns ? 0 : STORE_SEND_STOP;
	if (move_is_to_end(m))
		return STORE_SEND_STOP;
	if (!rate)
		return 0;
	sn->may += (double)(now - sn->paced_ns) / 1e9 * (double)rate;
	sn->may = sn->may < most ? sn->may : most;
	sn->paced_ns = now;
	if (sn->may < 0) {
		double ns = -sn->may / (double)rate * 1e9;

		return ns < PACE_ASK_NS ? (uint64_t)ns + 1 : PACE_ASK_NS;
	}
	sn->may -= bytes;
	return 0;
}

static void
take_error(struct mover *m, int error)
{
	struct move_sender *sn = &m->sender;

	/* The most important error is kept: a failed disk (-EROFS) replaces any error, damage (-EBADMSG)
	 * replaces -EAGAIN. */
	if (!sn->error || error == -EROFS || (error == -EBADMSG && sn->error == -EAGAIN))
		sn->error = error;
}

static void
note_rotten(struct mover *m, const struct store_key *k)
{
	struct move_sender *sn = &m->sender;
	struct move_key *one = sn->rotten_nr < ROTTEN_MAX && store_has_two(k)
				       ? malloc(sizeof *one + k->bucket_len + k->key_len)
				       : NULL;

	if (!one)
		return;
	one->key = key_copy(one->name, k);
	one->next = sn->rotten;
	sn->rotten = one;
	sn->rotten_nr++;
}

static void
send_over(struct move_send *ms, int result)
{
	struct mover *m = ms->m;
	struct move_sender *sn = &m->sender;

	ms->is_busy = false;
	sn->sending--;
	pthread_mutex_lock(&m->lock);
	m->info.bytes_done += ms->s.bytes;
	m->info.slot_bytes += ms->s.bytes;
	m->info.keys += ms->to != NULL && ms->s.changes > 0;
	pthread_mutex_unlock(&m->lock);
	if (result >= 0)
		return;
	if (result == -EBADMSG)
		sn->damaged++;
	if ((result == -EBADMSG || result == -EIO) && ms->to)
		note_rotten(m, &ms->s.key);
	/* The key is noted as changed, so that it is sent again if the move continues. */
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
	ms->s = (struct store_send){
		.op.done = on_sent, .key = key_copy(ms->name, k), .buf = ms->s.buf, .pace = pace
	};
	ms->m = m;
}

/* Starts to send a key, or to remove the key if `to` is NULL, as soon as fewer than MOVE_SENDS keys are in
 * flight. */
static void
send_key(struct mover *m, struct store_port *from, struct store_port *to, const struct store_key *k)
{
	struct move_sender *sn = &m->sender;
	struct move_send *ms = NULL;
	int r;

	while (!ms) {
		for (int i = 0; i < MOVE_SENDS && !ms; i++)
			ms = sn->send[i].is_busy ? NULL : &sn->send[i];
		if (!ms)
			move_turn(m);
	}
	set_key(ms, m, k);
	ms->to = to;
	ms->is_busy = true;
	sn->sending++;
	r = from->ops->member->send(to ? from : NULL, to ? to : from, &ms->s);
	if (r != 0)
		send_over(ms, r < 0 ? r : ms->s.op.result);
}

int
move_sends_end(struct mover *m)
{
	struct move_sender *sn = &m->sender;
	int e;

	while (sn->sending)
		move_turn(m);
	e = sn->error;
	sn->error = 0;
	return e;
}

/* ---- walking ---- */

int
move_walk(struct mover *m, int of, struct store_port *from, struct store_port *to,
	  const struct store_slots *slots)
{
	struct move_sender *sn = &m->sender;
	struct store_port *p = move_port(m, of);
	struct key_page *kp = calloc(1, sizeof *kp);
	int r;

	if (!kp)
		return -EAGAIN;
	kp->w.slots = slots;
	do {
		r = key_page_next(kp, p);
		for (int i = 0; r >= 0 && i < kp->nr; i++)
			send_key(m, from, to, &kp->at[i].key);
		move_turn(m);
		if (move_is_to_end(m))
			r = -EINTR;
	} while (r >= 0 && kp->w.more && !(sn->error && sn->error != -EBADMSG && sn->error != -EAGAIN));
	free(kp);
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
	/* -EAGAIN is no error of the scan, because the keys concerned are noted as changed, and are sent
	 * again. */
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
			send_key(m, move_port(m, from), move_port(m, to), &k->key);
	}
	move_keys_free(keys);
	return move_sends_end(m);
}

/* ---- what is damaged at the source ---- */

static void
on_hold(struct msg *msg)
{
	container_of(msg, struct move_sender, hold.msg)->has_hold = true;
}

/* Repairs the unreadable data of a key at the primary from the secondary: the object, and the parts of
 * uploads in progress. No other function repairs parts of uploads, because no reader reads them. Returns the
 * number of repaired records, or -errno. */
static int
mend_key(struct mover *m, int first, const struct store_key *k)
{
	struct move_sender *sn = &m->sender;
	struct set *s = m->set;
	struct move_send *ms = &sn->send[0];
	int second, r;

	sn->hold = (struct set_hold){ .mb = &m->mb, .go = on_hold };
	sn->has_hold = false;
	r = set_hold(set_key_locks(s), k, &sn->hold);
	if (r < 0)
		return r;
	while (r == 0 && !sn->has_hold)
		move_turn(m);
	second = set_secondary(s, k);
	r = -ENODATA;
	if (!set_is_open(&sn->hold) && set_primary(s, k) == first && second != SET_NOWHERE &&
	    second != first && !set_has_failed(s, second)) {
		struct store_port *whole = move_port(m, second), *damaged = move_port(m, first);

		set_key(ms, m, k);
		ms->s.is_repair = true;
		r = STORE_DO(m->user, &ms->s.op, whole->ops->member->send(whole, damaged, &ms->s));
	}
	set_release(set_key_locks(s), &sn->hold, false);
	return r < 0 ? r : (int)ms->s.changes;
}

bool
move_end_rotten(struct mover *m, int first, bool mends)
{
	struct move_sender *sn = &m->sender;
	bool any = false;

	for (struct move_key *k = sn->rotten, *next; k; k = next) {
		int r = mends && !move_is_to_end(m) ? mend_key(m, first, &k->key) : 0;

		next = k->next;
		if (r > 0) {
			any = true;
			set_count(m->set, COUNT_REPAIRED);
			log_note("something damaged in bucket %.*s was rewritten from its other copy",
				 k->key.bucket_len, k->key.bucket);
		}
		free(k);
	}
	sn->rotten = NULL;
	sn->rotten_nr = 0;
	return any;
}
