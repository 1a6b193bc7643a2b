/* SPDX-License-Identifier: Apache-2.0 */
/* two_waiting - operations on keys with two copies that wait at a port; used on the port's thread, only in
 * two_*.c. */
#ifndef GANTRY_SET_TWO_WAITING_H
#define GANTRY_SET_TWO_WAITING_H

#include "base/list.h"

struct two_waiting {
	struct list changes;         /* changes that wait for their secondary (two_change.c) */
	struct list pieces;          /* PUT pieces that wait for their secondary (two_put.c) */
	bool repairs;                /* true: a copy is being repaired from the other copy (two_read.c) */
	struct list repairs_waiting; /* repairs that wait until the current repair has ended */
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
