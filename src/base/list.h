/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive doubly linked list. A head and a link are both `struct list`; an unlinked link points at itself.
 * No locking: a list belongs to one thread or to a lock named by its owner.
 */
#ifndef GANTRY_BASE_LIST_H
#define GANTRY_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void
list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool
list_empty(const struct list *l)
{
	return l->next == l;
}

/* Returns true if a link is on a list. */
static inline bool
list_linked(const struct list *l)
{
	return l->next && l->next != l;
}

static inline void
list_insert_before(struct list *pos, struct list *l)
{
	l->prev = pos->prev;
	l->next = pos;
	pos->prev->next = l;
	pos->prev = l;
}

static inline void
list_push_tail(struct list *head, struct list *l)
{
	list_insert_before(head, l);
}

static inline void
list_push_head(struct list *head, struct list *l)
{
	list_insert_before(head->next, l);
}

static inline void
list_del(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

/* Returns the first link of a list; NULL: the list is empty. */
static inline struct list *
list_first(const struct list *head)
{
	return head->next == head ? NULL : head->next;
}

static inline struct list *
list_pop(struct list *head)
{
	struct list *l = list_first(head);

	if (l)
		list_del(l);
	return l;
}

/* Moves all links of a list, which is not empty, to a head of another one. */
static inline void
list_take(struct list *to, struct list *from)
{
	*to = *from;
	to->next->prev = to->prev->next = to;
	list_init(from);
}

#define list_for_each(pos, head) for (struct list *pos = (head)->next; pos != (head); pos = pos->next)
#define list_for_each_safe(pos, head)                                                                        \
	for (struct list *pos = (head)->next, *pos##_n = pos->next; pos != (head);                           \
	     pos = pos##_n, pos##_n = pos->next)

#endif
