/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pin - the pin table: which object versions have readers, so that their extents are not used again under
 * them.
 *
 * A reader looks up a record and pins its version within one turn of its loop (it says no quiesce_point() in
 * between).  The writer that made a version unreachable waits for one grace period after that was published
 * (then nobody can be between looking up and pinning) and asks pin_wait_free(): "not pinned" means that it
 * may free now; else the last pin_drop() hands it the waiter.  A version may be pinned again by whoever holds
 * a pin on it already.
 *
 * Nodes lie in the callers' structs, so a pin allocates nothing and cannot fail.  Any thread; striped locks,
 * each held for a short walk of one chain.
 */
#ifndef GANTRY_EXTENT_INDEX_PIN_H
#define GANTRY_EXTENT_INDEX_PIN_H

#include <stdbool.h>
#include <stdint.h>

struct pin_table;

/* In the reader's operation.  Zeroed memory is a valid unused pin. */
struct pin {
	struct pin *next, **link; /* link: what points at us; NULL when not pinned */
	uint64_t id;
};

/* In whatever waits to be freed. */
struct pin_wait {
	struct pin_wait *next;
	uint64_t id;
	void (*fn)(struct pin_wait *w);
};

/* Makes a table.  expected: how many pins at once it should be quick for (it takes more).  0 or -ENOMEM. */
int pin_table_new(unsigned expected, struct pin_table **ret_t);
/* Frees t, in which nothing is pinned.  NULL is fine. */
void pin_table_free(struct pin_table *t);

/* Pins a version.  id: unique among all versions that share this table. */
void pin_add(struct pin_table *t, struct pin *pin, uint64_t id);
/* Drops a pin; fine on an unused one.  If this was the last one of its id and somebody waits, runs
 * w->fn(w) on this thread, with no lock held; several waiters of one id run one after the other. */
void pin_drop(struct pin_table *t, struct pin *pin);

/* Waits until id is not pinned.  true: it is not, fn will not run.  false: fn(w) runs once, on the
 * thread of the last pin_drop(). */
bool pin_wait_free(struct pin_table *t, struct pin_wait *w, uint64_t id, void (*fn)(struct pin_wait *w));

/* Returns how many pins there are; exact when nothing moves. */
uint64_t pin_nr(struct pin_table *t);

#endif
