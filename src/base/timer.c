/* SPDX-License-Identifier: Apache-2.0 */
/* A pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986): O(1) arm, O(log n) amortised run and disarm. */
#include "base/timer.h"

#include "base/check.h"

static struct timer *
meld(struct timer *a, struct timer *b)
{
	if (!a)
		return b;
	if (!b)
		return a;
	if (b->at_ns < a->at_ns) {
		struct timer *t = a;

		a = b;
		b = t;
	}
	b->prev = a;
	b->sibling = a->child;
	if (b->sibling)
		b->sibling->prev = b;
	a->child = b;
	return a;
}

/* The two-pass melding of a list of siblings, without recursion: pairs left to right, then right to left. */
static struct timer *
meld_all(struct timer *first)
{
	struct timer *pairs = NULL, *root = NULL;

	while (first) {
		struct timer *a = first, *b = a->sibling;

		first = b ? b->sibling : NULL;
		a->sibling = a->prev = NULL;
		if (b)
			b->sibling = b->prev = NULL;
		a = meld(a, b);
		a->sibling = pairs;
		pairs = a;
	}
	while (pairs) {
		struct timer *t = pairs;

		pairs = t->sibling;
		t->sibling = t->prev = NULL;
		root = meld(root, t);
	}
	return root;
}

void
timer_arm(struct timers *ts, struct timer *t, uint64_t at_ns, void (*fn)(struct timer *))
{
	timer_disarm(ts, t);
	*t = (struct timer){ .at_ns = at_ns, .fn = fn, .armed = true };
	ts->root = meld(ts->root, t);
}

void
timer_disarm(struct timers *ts, struct timer *t)
{
	struct timer *sub;

	if (!t->armed)
		return;
	t->armed = false;
	sub = meld_all(t->child);
	t->child = NULL;
	if (t == ts->root) {
		ts->root = sub;
		return;
	}
	check(t->prev);
	if (t->prev->child == t)
		t->prev->child = t->sibling;
	else
		t->prev->sibling = t->sibling;
	if (t->sibling)
		t->sibling->prev = t->prev;
	t->sibling = t->prev = NULL;
	ts->root = meld(ts->root, sub);
}

uint64_t
timers_next(const struct timers *ts)
{
	return ts->root ? ts->root->at_ns : UINT64_MAX;
}

int
timers_run(struct timers *ts, uint64_t now_ns)
{
	int n = 0;

	while (ts->root && ts->root->at_ns <= now_ns) {
		struct timer *t = ts->root;

		timer_disarm(ts, t);
		t->fn(t);
		n++;
	}
	return n;
}
