/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue that is fair to clients. The entries of each client form a separate line, and the lines take turns:
 * an entry that arrives after a hundred entries of another client waits for only one of those entries. Within
 * a line the order is that of arrival. Every operation takes constant time.
 *
 * A client is a number below FAIR_CLIENTS (xfer_client_of()); clients with the same number share a line.
 * Links are embedded in the entries, as in list.h. No locking.
 */
#ifndef GANTRY_BASE_FAIR_H
#define GANTRY_BASE_FAIR_H

#include "base/list.h"

#define FAIR_CLIENTS 256

struct fair_line {
	struct list turn; /* link in fair.turns while the line is not empty */
	struct list waiting;
};

struct fair {
	struct list turns; /* lines that are not empty; the line whose turn is next is first */
	struct fair_line line[FAIR_CLIENTS];
};

static inline void
fair_init(struct fair *f)
{
	list_init(&f->turns);
	for (int i = 0; i < FAIR_CLIENTS; i++) {
		list_init(&f->line[i].turn);
		list_init(&f->line[i].waiting);
	}
}

static inline bool
fair_empty(const struct fair *f)
{
	return list_empty(&f->turns);
}

static inline void
fair_push(struct fair *f, unsigned client, struct list *l)
{
	struct fair_line *line = &f->line[client];

	if (list_empty(&line->waiting))
		list_push_tail(&f->turns, &line->turn);
	list_push_tail(&line->waiting, l);
}

/* Inserts an entry before `pos`, which is an entry or the head of the client's line. */
static inline void
fair_push_before(struct fair *f, unsigned client, struct list *pos, struct list *l)
{
	struct fair_line *line = &f->line[client];

	if (list_empty(&line->waiting))
		list_push_tail(&f->turns, &line->turn);
	list_insert_before(pos, l);
}

/* Removes an entry from the queue. The client of the entry keeps its turn, unless no other entry of this
 * client is left. */
static inline void
fair_del(struct fair *f, unsigned client, struct list *l)
{
	struct fair_line *line = &f->line[client];

	list_del(l);
	if (list_empty(&line->waiting))
		list_del(&line->turn);
}

/* Ends the turn of a line that is not empty: the line becomes the last one. */
static inline void
fair_yield(struct fair *f, struct fair_line *line)
{
	list_del(&line->turn);
	list_push_tail(&f->turns, &line->turn);
}

/* Returns the line whose turn it is now; NULL: the queue is empty. */
static inline struct fair_line *
fair_first(struct fair *f)
{
	struct list *l = list_first(&f->turns);

	return l ? container_of(l, struct fair_line, turn) : NULL;
}

static inline struct list *
fair_pop(struct fair *f)
{
	struct fair_line *line = fair_first(f);
	struct list *l;

	if (!line)
		return NULL;
	fair_yield(f, line);
	l = list_pop(&line->waiting);
	if (list_empty(&line->waiting))
		list_del(&line->turn);
	return l;
}

#endif
