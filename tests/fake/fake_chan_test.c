/* SPDX-License-Identifier: Apache-2.0 */
/* The test's side of the fake channel, see fake_chan.h. */
#include "fake_chan_int.h"

#include "base/check.h"

void
fake_chan_window(struct chan *ch, uint64_t addr, void *mem, size_t len)
{
	check(ch->window_nr < WINDOWS_MAX);
	ch->window[ch->window_nr++] = (struct window){ .addr = addr, .mem = mem, .len = len };
}

void
fake_chan_channels(struct chan *ch, int nr)
{
	ch->channels = nr;
	fc_grant_waiting(ch);
}

void
fake_chan_decline(struct chan *ch, int result, enum chan_reason reason)
{
	ch->decline = result;
	ch->decline_reason = reason;
}

void
fake_chan_hold_leases(struct chan *ch, bool hold)
{
	ch->hold_leases = hold;
	fc_grant_waiting(ch);
}

bool
fake_chan_grant(struct chan *ch)
{
	struct chan_lease *ls;

	if (list_empty(&ch->waiting))
		return false;
	ls = container_of(list_first(&ch->waiting), struct chan_lease, link);
	fc_unwait(ch, ls);
	fc_lease_take(ch, ls);
	ls->done(ls);
	return true;
}

bool
fake_chan_deny(struct chan *ch, int result, enum chan_reason reason)
{
	struct chan_lease *ls;

	if (list_empty(&ch->waiting))
		return false;
	ls = container_of(list_first(&ch->waiting), struct chan_lease, link);
	fc_unwait(ch, ls);
	fc_leave(ch, ls);
	ls->result = result;
	ls->reason = reason;
	ls->done(ls);
	return true;
}

void
fake_chan_hold(struct chan *ch, bool hold)
{
	ch->hold = hold;
}

int
fake_chan_op_nr(const struct chan *ch)
{
	return ch->stats.outstanding;
}

struct chan_op *
fake_chan_op(struct chan *ch, int i)
{
	uint64_t from = 0;

	/* The i-th smallest order; the table is small. */
	for (;;) {
		struct slot *best = NULL;

		for (int k = 0; k < ch->slot_nr; k++) {
			struct slot *s = &ch->slots[k];

			if (s->op && s->order >= from && (!best || s->order < best->order))
				best = s;
		}
		check(best);
		if (i-- == 0)
			return best->op;
		from = best->order + 1;
	}
}

void
fake_chan_complete(struct chan *ch, struct chan_op *op)
{
	fc_finish(ch, fc_slot_of(ch, op), WCS_SUCCESS);
}

void
fake_chan_fail(struct chan *ch, struct chan_op *op, enum rdma_status status)
{
	check(status != WCS_SUCCESS);
	fc_finish(ch, fc_slot_of(ch, op), status);
}

void
fake_chan_lose(struct chan *ch, struct chan_op *op)
{
	struct slot *s = fc_slot_of(ch, op);

	s->lost = true;
	ch->stats.lost++;
	if (op->lease->failed)
		fc_lease_error(ch, op->lease);
}

static bool
is_not_lost(const struct slot *s)
{
	return !s->lost;
}

int
fake_chan_complete_all(struct chan *ch)
{
	uint64_t end = ch->order;
	struct slot *s;
	int n = 0;

	for (; (s = fc_oldest(ch, is_not_lost)) && s->order < end; n++)
		fc_finish(ch, s, s->flushing ? WCS_FLUSHED : WCS_SUCCESS);
	return n;
}

void
fake_chan_torn(struct chan *ch, uint32_t bytes)
{
	ch->torn = bytes;
}

void
fake_chan_script(struct chan *ch, uint64_t nth, enum rdma_status status)
{
	check(ch->script_nr < SCRIPTS_MAX);
	ch->script[ch->script_nr].at = ch->order + nth - 1;
	ch->script[ch->script_nr++].status = status;
}

void
fake_chan_random(struct chan *ch, uint64_t seed, uint32_t fail_ppm, uint32_t lose_ppm)
{
	ch->random = true;
	ch->rng = seed | 1;
	ch->fail_ppm = fail_ppm;
	ch->lose_ppm = lose_ppm;
}

void
fake_chan_hold_flush(struct chan *ch, bool hold)
{
	ch->hold_flush = hold;
}

int
fake_chan_release(struct chan *ch)
{
	struct slot *s;
	int n = 0;

	for (; (s = fc_oldest(ch, fc_is_held_back)); n++)
		fc_finish(ch, s, WCS_FLUSHED);
	return n;
}

const struct fake_chan_stats *
fake_chan_stats(const struct chan *ch)
{
	return &ch->stats;
}
