/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault rules of the fabric: which operation a rule hits (softnicctl writes the rules), and the calls of verbs
 * that a rule refuses or delays. fault.c has the effect on work requests. Called on the application's threads, and
 * by the threads that execute work.
 */
#include "softnic/rule.h"

uint64_t
sn_draw(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;

	return z ^ z >> 31;
}

bool
sn_rule_there(uint32_t id)
{
	for (int i = 0; i < FAB_RULES; i++) {
		if (atomic_load(&sn_self.fab->rule[i].id) == id)
			return true;
	}

	return false;
}

bool
sn_rule_read(int i, uint32_t *ret_id, struct fab_match *ret_match, struct fab_act *ret_act)
{
	struct fab_rule *r = &sn_self.fab->rule[i];
	uint32_t id = atomic_load(&r->id);

	if (id == 0)
		return false;
	*ret_match = r->match;
	*ret_act = r->act;
	*ret_id = id;

	return atomic_fetch_add(&r->id, 0) == id; /* a read-modify-write stays after the copies */
}

bool
sn_rule_is_for(const struct fab_match *m, enum fab_op op, uint32_t dev, uint64_t len)
{
	bool any = m->op == FAB_OP_ANY && (op == FAB_OP_READ || op == FAB_OP_WRITE || op == FAB_OP_SEND);

	return (m->op == op || any) && (!m->dev || m->dev == dev + 1) &&
	       (!m->pid || m->pid == sn_self.proc->pid) && len >= m->min_len;
}

bool
sn_rule_hits(struct fab_rule *r, const struct fab_match *m, uint32_t asked)
{
	uint64_t n = atomic_fetch_add(&r->seen, 1), had;

	if (n < m->skip || (m->every && (n - m->skip + 1) % m->every != 0))
		return false;
	if (sn_draw(m->seed, asked) >> 32 >= m->prob)
		return false;
	had = atomic_load(&r->hits);
	do {
		if (m->limit && had >= m->limit)
			return false;
	} while (!atomic_compare_exchange_weak(&r->hits, &had, had + 1));

	return true;
}

bool
sn_lost(const struct sn_ctx *ctx)
{
	return sn_self.fab && (atomic_load(&sn_port(ctx)->down) & FAB_DOWN_LOST || sn_dead(ctx));
}

int
sn_refused(struct ibv_context *context, enum fab_op op, uint64_t len)
{
	return sn_lost(sn_ctx(context)) ? EIO : sn_refused_by_rule(context, op, len);
}

int
sn_refused_by_rule(struct ibv_context *context, enum fab_op op, uint64_t len)
{
	struct sn_ctx *ctx = sn_ctx(context);

	/* Address handles are the kernel's; a target is created by the command that all queue pairs are. */
	if (op != FAB_OP_CREATE_AH && op != FAB_OP_CREATE_DCT)
		sn_sleep_ns(atomic_load_explicit(&sn_self.fab->call_ns, memory_order_relaxed));
	if (!(sn_active() & FAB_ACTIVE_RULES))
		return 0;
	for (int i = 0; i < FAB_RULES; i++) {
		struct fab_match m;
		struct fab_act a;
		uint32_t id;

		if (!sn_rule_read(i, &id, &m, &a) || !sn_rule_is_for(&m, op, ctx->dev->index, len))
			continue;
		/* No queue pair is in it, so the order is that of all calls. */
		if (!sn_rule_hits(&sn_self.fab->rule[i], &m,
				  (uint32_t)atomic_load(&sn_self.fab->rule[i].seen)))
			continue;
		for (uint64_t end = sn_now_ns() + a.delay_ns, now;
		     (now = sn_now_ns()) < end && sn_rule_there(id);)
			sn_sleep_ns(end - now < SN_NAP_NS ? end - now : SN_NAP_NS);
		return (int)a.error;
	}

	return 0;
}
