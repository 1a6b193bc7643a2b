/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_chan.h.  Operations lie on one list per fate: outstanding (in posting order), flushing, lost. */
#include "fake_chan_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "chan/connect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum lease_state { LEASE_NONE, LEASE_WAITING, LEASE_READY, LEASE_HELD };

struct lease_priv {
	struct chan *ch;
	enum lease_state state;
	uint64_t addr, size;
	uint64_t failed_ns; /* when the lease went to error */
	uint32_t conn;      /* connection of RC; 0: none */
};

_Static_assert(sizeof(struct lease_priv) <= sizeof(((struct chan_lease *)0)->priv), "fits");

const char *const chan_reason_name[CHAN_REASON_NR] = {
	"",
	"disabled",
	"no-device",
	"no-rail",
	"unreachable",
	"needs-router",
	"token-family",
	"no-channel",
	"not-allowed",
	"not-connected",
	"connection-busy",
};

/* No client connects here. */
int
chan_connect(struct chan *ch, struct chan_connect *c)
{
	return -EOPNOTSUPP;
}

static struct lease_priv *
priv_of(struct chan_lease *ls)
{
	return (struct lease_priv *)(void *)ls->priv;
}

static uint64_t
rnd(struct chan *ch)
{
	/* xorshift64* */
	ch->rng ^= ch->rng >> 12;
	ch->rng ^= ch->rng << 25;
	ch->rng ^= ch->rng >> 27;
	return ch->rng * 0x2545f4914f6cdd1dull;
}

/* ---- life ---- */

int
chan_new(const struct chan_params *params, struct chan **ret_chan)
{
	struct chan *ch = calloc(1, sizeof *ch);

	if (!ch)
		return -ENOMEM;
	ch->params = *params;
	ch->channels = 8;
	list_init(&ch->waiting);
	list_init(&ch->ready);
	*ret_chan = ch;
	return 0;
}

void
chan_free(struct chan *ch)
{
	if (!ch)
		return;
	check(ch->stats.leased == 0);
	check(ch->stats.waiting == 0);
	check(ch->stats.outstanding == 0);
	if (ch->params.timers)
		timer_disarm(ch->params.timers, &ch->lost_timer);
	free(ch->slots);
	free(ch->conn);
	free(ch);
}

/* --- leases --- */

void
fc_lease_take(struct chan *ch, struct chan_lease *ls)
{
	priv_of(ls)->state = LEASE_HELD;
	ls->result = 0;
	ls->reason = CHAN_OK;
	ch->stats.leased++;
	ch->stats.leases++;
}

int
chan_lease_get(struct chan *ch, struct chan_lease *ls, const struct token *tok, const struct sockaddr *local)
{
	struct lease_priv *p = priv_of(ls);

	(void)local;
	check(p->state == LEASE_NONE);
	check(ls->done);
	*p = (struct lease_priv){ .ch = ch, .addr = tok->addr, .size = tok->size };
	ls->outstanding = 0;
	ls->failed = ls->flushed_writes = false;
	ls->status = WCS_SUCCESS;
	if (!chan_serves(ch, tok->kind) || ch->decline) {
		bool family = !chan_serves(ch, tok->kind);

		ls->reason = family ? CHAN_FAMILY : ch->decline_reason;
		return ls->result = family ? -EOPNOTSUPP : ch->decline;
	}
	if (fc_conn_of(tok)) {
		ls->reason = fc_conn_take(ch, fc_conn_of(tok));
		if (ls->reason != CHAN_OK)
			return ls->result = -EOPNOTSUPP;
		p->conn = fc_conn_of(tok);
	}
	if (!ch->hold_leases && ch->stats.leased < ch->channels && list_empty(&ch->waiting)) {
		fc_lease_take(ch, ls);
		return 1;
	}
	if (ch->params.queue_max && ch->stats.waiting >= ch->params.queue_max) {
		fc_conn_put(ch, p->conn, false);
		return ls->result = -EAGAIN;
	}
	p->state = LEASE_WAITING;
	list_push_tail(&ch->waiting, &ls->link);
	ch->stats.waiting++;
	return 0;
}

void
fc_unwait(struct chan *ch, struct chan_lease *ls)
{
	list_del(&ls->link);
	ch->stats.waiting--;
	priv_of(ls)->state = LEASE_NONE;
}

void
fc_leave(struct chan *ch, struct chan_lease *ls)
{
	fc_conn_put(ch, priv_of(ls)->conn, false);
}

void
chan_lease_cancel(struct chan *ch, struct chan_lease *ls)
{
	struct lease_priv *p = priv_of(ls);

	check(p->state != LEASE_HELD);
	if (p->state != LEASE_NONE)
		fc_leave(ch, ls);
	if (p->state == LEASE_WAITING) {
		fc_unwait(ch, ls);
	} else if (p->state == LEASE_READY) {
		list_del(&ls->link);
		ch->stats.leased--;
		p->state = LEASE_NONE;
		fc_grant_waiting(ch);
	}
}

/* A channel came free: the oldest waiter has it, and hears of it from chan_poll(). */
void
fc_grant_waiting(struct chan *ch)
{
	while (!ch->hold_leases && ch->stats.leased < ch->channels && !list_empty(&ch->waiting)) {
		struct chan_lease *ls = container_of(list_first(&ch->waiting), struct chan_lease, link);

		fc_unwait(ch, ls);
		fc_lease_take(ch, ls);
		priv_of(ls)->state = LEASE_READY;
		list_push_tail(&ch->ready, &ls->link);
	}
}

void
chan_lease_put(struct chan *ch, struct chan_lease *ls)
{
	struct lease_priv *p;

	if (!ls)
		return;
	p = priv_of(ls);
	if (p->state != LEASE_HELD) {
		chan_lease_cancel(ch, ls);
		return;
	}
	check(p->ch == ch);
	check(ls->outstanding == 0);
	fc_conn_put(ch, p->conn, ls->failed);
	p->state = LEASE_NONE;
	ch->stats.leased--;
	fc_grant_waiting(ch);
}

static void on_lost_timer(struct timer *t);

/* Everything outstanding on this lease ends as flushed, later; what was lost waits for the watch. */
void
fc_lease_error(struct chan *ch, struct chan_lease *ls)
{
	bool lost = false;

	if (!ls->failed) {
		ls->failed = true;
		priv_of(ls)->failed_ns = clock_ns();
		ch->stats.leases_failed++;
	}
	for (int i = 0; i < ch->slot_nr; i++) {
		struct slot *s = &ch->slots[i];

		if (s->op && s->op->lease == ls) {
			s->flushing = true;
			lost |= s->lost;
		}
	}
	if (lost && ch->params.timers && !ch->lost_timer.armed)
		timer_arm(ch->params.timers, &ch->lost_timer, clock_ns() + LOST_NS, on_lost_timer);
}

void
chan_lease_fail(struct chan *ch, struct chan_lease *ls)
{
	if (priv_of(ls)->state == LEASE_HELD)
		fc_lease_error(ch, ls);
}

/* --- operations --- */

static struct slot *
slot_new(struct chan *ch)
{
	int n = ch->slot_nr ? 2 * ch->slot_nr : 64;
	struct slot *more;

	for (int i = 0; i < ch->slot_nr; i++) {
		if (!ch->slots[i].op)
			return &ch->slots[i];
	}
	more = realloc(ch->slots, (size_t)n * sizeof *more);
	check(more);
	memset(more + ch->slot_nr, 0, (size_t)(n - ch->slot_nr) * sizeof *more);
	ch->slots = more;
	more += ch->slot_nr;
	ch->slot_nr = n;
	return more;
}

struct slot *
fc_slot_of(struct chan *ch, struct chan_op *op)
{
	for (int i = 0; i < ch->slot_nr; i++) {
		if (ch->slots[i].op == op)
			return &ch->slots[i];
	}
	check(!"the operation is outstanding");
	return NULL;
}

/* The oldest outstanding operation that satisfies want(); NULL for none. */
struct slot *
fc_oldest(struct chan *ch, bool (*want)(const struct slot *))
{
	struct slot *best = NULL;

	for (int i = 0; i < ch->slot_nr; i++) {
		struct slot *s = &ch->slots[i];

		if (s->op && want(s) && (!best || s->order < best->order))
			best = s;
	}
	return best;
}

static void
move(struct chan *ch, const struct slot *s, uint32_t len)
{
	for (int i = 0; i < ch->window_nr; i++) {
		const struct window *w = &ch->window[i];

		if (s->remote < w->addr || s->remote - w->addr > w->len ||
		    len > w->len - (s->remote - w->addr))
			continue;
		if (s->op->is_write)
			memcpy(w->mem + (s->remote - w->addr), s->mem, len);
		else
			memcpy(s->mem, w->mem + (s->remote - w->addr), len);
		return;
	}
}

void
fc_finish(struct chan *ch, struct slot *s, enum rdma_status status)
{
	struct chan_op *op = s->op;
	struct chan_lease *ls = op->lease;
	bool refused = s->refused;

	check(op->magic == OP_MAGIC);
	if (status == WCS_SUCCESS) {
		move(ch, s, op->len_bytes);
		*(op->is_write ? &ch->stats.push_bytes : &ch->stats.pull_bytes) += op->len_bytes;
	} else if (status != WCS_FLUSHED) {
		move(ch, s, ch->torn < op->len_bytes ? ch->torn : op->len_bytes);
		ch->stats.failed++;
	} else {
		ch->stats.flushed++;
	}
	op->status = status;
	op->result = status == WCS_SUCCESS ? 0 : status == WCS_FLUSHED ? -ECANCELED : -EIO;
	op->posted = false;
	op->magic = 0;
	s->op = NULL;
	ls->outstanding--;
	ch->stats.outstanding--;
	if (status != WCS_SUCCESS) {
		if (ls->status == WCS_SUCCESS)
			ls->status = status;
		if (op->is_write && !refused)
			ls->flushed_writes = true;
		fc_lease_error(ch, ls);
	}
	op->done(op);
}

static void
post(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
     uint32_t len, uint64_t at, bool is_write)
{
	struct lease_priv *p = priv_of(ls);
	struct slot *s;

	check(p->state == LEASE_HELD);
	check(p->ch == ch);
	check(op->done);
	check(!op->posted);
	check(len > 0);
	check((uint64_t)buf_off + len <= (uint64_t)buf->cap_bytes + BUF_SLACK_BYTES);
	check(at <= p->size && len <= p->size - at); /* item 18 */
	check(!ch->params.pieces_max || ls->outstanding < ch->params.pieces_max);
	s = slot_new(ch);
	*s = (struct slot){
		.op = op, .order = ch->order++, .mem = buf->mem + buf_off, .remote = p->addr + at
	};
	op->lease = ls;
	op->len_bytes = len;
	op->magic = OP_MAGIC;
	op->is_write = is_write;
	op->posted = true;
	ls->outstanding++;
	if (++ch->stats.outstanding > ch->stats.outstanding_max)
		ch->stats.outstanding_max = ch->stats.outstanding;
	if (ls->failed) {
		s->flushing = s->refused = true;
		ch->stats.refused++;
		return;
	}
	if (is_write) {
		ch->stats.pushes++;
	} else {
		ch->stats.pulls++;
		memset(s->mem, 0xa5, len); /* nobody may look before done() */
	}
}

void
chan_push(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
	  uint32_t len, uint64_t at)
{
	post(ch, ls, op, buf, buf_off, len, at, true);
}

void
chan_pull(struct chan *ch, struct chan_lease *ls, struct chan_op *op, struct buf *buf, uint32_t buf_off,
	  uint32_t len, uint64_t at)
{
	post(ch, ls, op, buf, buf_off, len, at, false);
}

bool
fc_is_held_back(const struct slot *s)
{
	return s->flushing;
}

static bool
is_lost_and_failed(const struct slot *s)
{
	return s->flushing && s->lost;
}

/* The watch: the queue pair was destroyed, so what was lost is over. */
static void
on_lost_timer(struct timer *t)
{
	struct chan *ch = container_of(t, struct chan, lost_timer);
	struct slot *s;

	while ((s = fc_oldest(ch, is_lost_and_failed)))
		fc_finish(ch, s, WCS_FLUSHED);
}

static enum rdma_status
scripted(struct chan *ch, const struct slot *s)
{
	for (int i = 0; i < ch->script_nr; i++) {
		if (ch->script[i].at == s->order)
			return ch->script[i].status;
	}
	if (ch->random && rnd(ch) % 1000000 < ch->lose_ppm)
		return WCS_NR;
	if (ch->random && rnd(ch) % 1000000 < ch->fail_ppm)
		return rnd(ch) % 2 ? WCS_RETRY_EXC : WCS_REM_ACCESS;
	return WCS_SUCCESS;
}

static bool
is_deliverable(const struct chan *ch, const struct slot *s, uint64_t end)
{
	return s->op && !s->lost && s->order < end && (s->flushing ? !ch->hold_flush : !ch->hold);
}

/* What completes next: the oldest operation, or, when random, the oldest of some lease. */
static struct slot *
next_deliverable(struct chan *ch, uint64_t end)
{
	struct slot *best = NULL;
	struct chan_lease *ls = NULL;
	uint64_t start = ch->random && ch->slot_nr ? rnd(ch) : 0;

	for (int i = 0; ch->random && i < ch->slot_nr && !ls; i++) {
		struct slot *s = &ch->slots[(start + (uint64_t)i) % (uint64_t)ch->slot_nr];

		if (is_deliverable(ch, s, end))
			ls = s->op->lease;
	}
	for (int i = 0; i < ch->slot_nr; i++) {
		struct slot *s = &ch->slots[i];

		if (is_deliverable(ch, s, end) && (!ls || s->op->lease == ls) &&
		    (!best || s->order < best->order))
			best = s;
	}
	return best;
}

int
chan_poll(struct chan *ch)
{
	uint64_t end = ch->order; /* done() may post the next piece: that one is for the next poll */
	struct slot *s;
	int n = 0;

	for (struct list *l; (l = list_pop(&ch->ready)); n++) {
		struct chan_lease *ls = container_of(l, struct chan_lease, link);

		priv_of(ls)->state = LEASE_HELD;
		ls->done(ls);
	}
	while ((s = next_deliverable(ch, end))) {
		enum rdma_status status = s->flushing ? WCS_FLUSHED : scripted(ch, s);

		if (ch->random && rnd(ch) % 4 == 0)
			break;
		if (status == WCS_NR) {
			fake_chan_lose(ch, s->op);
			continue;
		}
		fc_finish(ch, s, status);
		n++;
	}
	return n;
}

bool
chan_serves(const struct chan *ch, enum token_kind kind)
{
	return kind == TOKEN_DC || (kind == TOKEN_RC_SHIM && ch->conn);
}

int
chan_waiting(const struct chan *ch)
{
	return ch->stats.waiting;
}

bool
chan_busy(const struct chan *ch)
{
	return ch->stats.outstanding > 0 || !list_empty(&ch->ready);
}

void
chan_fd_unwatched(struct chan *ch, int fd)
{
}

void
chan_arm(struct chan *ch)
{
	(void)ch;
}

void
chan_event(struct chan *ch, int fd)
{
	(void)ch, (void)fd;
}
