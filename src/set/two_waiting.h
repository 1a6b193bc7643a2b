/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on keys with two copies that wait at a port, on its thread: only for two_*.c. */
#ifndef GANTRY_SET_TWO_WAITING_H
#define GANTRY_SET_TWO_WAITING_H

#include "base/list.h"

struct two_waiting {
	struct list changes;         /* changes that wait for their secondary (two_change.c) */
	struct list pieces;          /* pieces of PUTs that wait for the secondary (two_put.c) */
	bool repairs;                /* a copy is being repaired from the other one (two_read.c) */
	struct list repairs_waiting; /* repairs that wait for their turn */
};

static inline void
two_waiting_init(struct two_waiting *w)
{
	list_init(&w->changes);
	list_init(&w->pieces);
	list_init(&w->repairs_waiting);
	w->repairs = false;
}

#endif
