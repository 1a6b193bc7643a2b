/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tree has let go and somebody may still read: nodes and records in the order in which they died, in
 * batches of one publish each, freed when the batch's epoch has passed.  Entries lie in pages of the arena,
 * since the dead themselves must not be written to.
 *
 * The pin sees what was born up to its state and died later.  The pin is older than that death, so the birth decides;
 * the entry waits in the list of the pin until its end.
 */
#include "extent/index/tree_int.h"

#include "base/check.h"
#include "extent/index/quiesce.h"

#define LOOK_AGAIN 4u

static struct limbo_entry *
add(struct tree *t, struct limbo *l, struct limbo_entry e)
{
	struct limbo_page *page = l->tail;

	if (!page || page->nr == LIMBO_PAGE_ENTRIES) {
		page = arena_alloc(&t->arena, sizeof *page, true);
		check(page); /* counted in every reservation */
		page->next = NULL;
		page->first = page->nr = 0;
		if (l->tail)
			l->tail->next = page;
		else
			l->head = page;
		l->tail = page;
		t->limbo_bytes += sizeof *page;
	}
	page->entry[page->nr] = e;
	if (e.kind != LIMBO_EPOCH)
		t->limbo_nr++;
	return &page->entry[page->nr++];
}

/* The oldest entry, in place, or NULL. */
static struct limbo_entry *
first(const struct limbo *l)
{
	return l->head && l->head->first < l->head->nr ? &l->head->entry[l->head->first] : NULL;
}

static void
drop_first(struct tree *t, struct limbo *l)
{
	struct limbo_page *page = l->head;

	if (page->entry[page->first].kind != LIMBO_EPOCH)
		t->limbo_nr--;
	if (++page->first < page->nr)
		return;
	l->head = page->next;
	if (!l->head)
		l->tail = NULL;
	arena_free(&t->arena, page);
	t->limbo_bytes -= sizeof *page;
}

/* Returns true if the pin sees an entry that was born in the state e->word, and has not walked past it. */
static bool
pin_sees(const struct tree *t, const struct limbo_entry *e)
{
	const struct tree_node *n = arena_ptr(&t->arena, e->ref);
	uint32_t walked = e->kind == LIMBO_NODE ? atomic_load_explicit(&n->walked, memory_order_acquire) : 0;

	return t->pin.used && t->pin.gen >= e->word && t->pin.mark != walked;
}

static void
retire(struct tree *t, struct limbo_entry e)
{
	if (pin_sees(t, &e)) {
		add(t, &t->pin.held, e);
		t->pin.look_nr += LOOK_AGAIN;
		return;
	}
	if (!t->open)
		t->open = add(t, &t->limbo, (struct limbo_entry){ .kind = LIMBO_EPOCH });
	add(t, &t->limbo, e);
}

static void
free_node(struct tree *t, struct tree_node *n)
{
	t->nodes--;
	t->node_bytes -= n->cap;
	arena_free(&t->arena, n);
}

void
limbo_node(struct tree *t, struct tree_node *n)
{
	if (n->birth == t->gen)
		free_node(t, n);
	else
		retire(t, (struct limbo_entry){ n->birth, arena_ref(&t->arena, n), LIMBO_NODE });
}

void
tree_rec_retire(struct tree *t, void *rec, uint64_t birth)
{
	t->owed -= t->owed > 0;
	retire(t, (struct limbo_entry){ birth, arena_ref(&t->arena, rec), LIMBO_REC });
}

void
limbo_seal(struct tree *t)
{
	if (!t->open)
		return;
	t->open->word = quiesce_now(t->quiesce);
	t->open = NULL;
}

/* A node that the pin's cursor has left since it died need not wait for the pin's end.  In turns, so many for
 * each that comes: the list is looked through while it grows by a part of itself. */
static void
look_again(struct tree *t)
{
	struct tree_pin *p = &t->pin;

	for (struct limbo_entry *e; p->look_nr && (e = first(&p->held)); p->look_nr--) {
		struct limbo_entry moved = *e;

		drop_first(t, &p->held);
		if (pin_sees(t, &moved))
			add(t, &p->held, moved);
		else
			retire(t, moved);
	}
	p->look_nr = 0;
}

unsigned
tree_reclaim(struct tree *t)
{
	unsigned n = 0;

	look_again(t);
	/* Retired since, by itself: what readers see is without it already. */
	if (!t->dirty)
		limbo_seal(t);
	for (struct limbo_entry *e; (e = first(&t->limbo));) {
		void *p = arena_ptr(&t->arena, e->ref);

		if (e->kind == LIMBO_EPOCH) {
			if (!e->word || !quiesce_passed(t->quiesce, e->word))
				break;
		} else if (e->kind == LIMBO_NODE) {
			free_node(t, p);
			n++;
		} else {
			arena_free(&t->arena, p);
			n++;
		}
		drop_first(t, &t->limbo);
	}
	tree_note_used(t);
	return n;
}

void
tree_pin(struct tree *t, const struct tree_node **ret_root)
{
	check(!t->dirty); /* retired nodes and records of the batch so far have passed the pin */
	check(!t->pin.used);
	t->pin = (struct tree_pin){ .used = true, .mark = t->pin.mark + 1, .gen = t->gen - 1 };
	*ret_root = tree_root(t);
}

void
tree_unpin(struct tree *t)
{
	struct tree_pin *p = &t->pin;

	check(p->used);
	p->used = false;
	for (struct limbo_entry *e; (e = first(&p->held));) {
		struct limbo_entry moved = *e;

		drop_first(t, &p->held);
		retire(t, moved);
	}
	tree_note_used(t);
}
