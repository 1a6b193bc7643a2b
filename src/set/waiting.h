/* SPDX-License-Identifier: Apache-2.0 */
/* waiting - operations that wait at a port for a secondary or for a repair; used on the port's thread. */
#ifndef GANTRY_SET_WAITING_H
#define GANTRY_SET_WAITING_H

#include "base/list.h"

struct set_waiting {
	struct list changes;         /* changes that wait for their secondary (change.c) */
	struct list pieces;          /* pieces of PUTs that are being written to a secondary (put.c) */
	bool repairs;                /* true: a copy is being repaired from the other copy (mend.c) */
	struct list repairs_waiting; /* repairs that wait until the current repair has ended */
};

static inline void
waiting_init(struct set_waiting *w)
{
	list_init(&w->changes);
	list_init(&w->pieces);
	list_init(&w->repairs_waiting);
	w->repairs = false;
}

#endif
