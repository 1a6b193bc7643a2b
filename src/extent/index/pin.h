/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pin - the pin table: the object versions that have readers, so that their extents are not reused.
 *
 * A reader looks up a record and pins its version within one turn of its loop (without a quiesce_point() in
 * between). A writer that made a version unreachable waits for one grace period after the publication (then
 * no reader can be between look-up and pin) and calls pin_wait_free(): "not pinned" means that the writer
 * may free the version now; otherwise the last pin_drop() passes the waiter on. A holder of a pin may pin
 * the version again.
 *
 * Nodes are embedded in the callers' structs, so a pin allocates nothing and cannot fail. Any thread; striped
 * locks, each held for a short scan of one chain.
 */
#ifndef GANTRY_EXTENT_INDEX_PIN_H
#define GANTRY_EXTENT_INDEX_PIN_H

#include <stdbool.h>
#include <stdint.h>

struct pin_table;

/* A pin, embedded in the reader's operation. Zeroed memory is a valid unused pin. */
struct pin {
	struct pin *next, **link; /* link: the pointer to this pin; NULL when not pinned */
	uint64_t id;
};

/* Embedded in an object that waits to be freed. */
struct pin_wait {
	struct pin_wait *next;
	uint64_t id;
	void (*fn)(struct pin_wait *w);
};

/* Makes a table. expected: number of simultaneous pins for which the table is fast (more are allowed). 0 or
 * -ENOMEM. */
int pin_table_new(unsigned expected, struct pin_table **ret_t);
/* Frees t, in which nothing is pinned.  NULL is allowed. */
void pin_table_free(struct pin_table *t);

/* Pins a version.  id: unique among all versions that share this table. */
void pin_add(struct pin_table *t, struct pin *pin, uint64_t id);
/* Drops a pin; an unused pin is allowed. After the last pin of an id w->fn(w) runs for each waiter of the
 * id, one after the other, on this thread, without a lock. */
void pin_drop(struct pin_table *t, struct pin *pin);

/* Waits until id is not pinned. true: id is not pinned, and fn does not run. false: fn(w) runs once, on the
 * thread of the last pin_drop(). */
bool pin_wait_free(struct pin_table *t, struct pin_wait *w, uint64_t id, void (*fn)(struct pin_wait *w));

/* Returns the number of pins; exact when there are no concurrent calls. */
uint64_t pin_nr(struct pin_table *t);

#endif
