/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pin - the pin table: it contains the object versions that have readers. The extents of these versions must
 * not be reused.
 *
 * A reader looks up a record and pins its version within one turn of its loop (without a quiesce_point() in
 * between). A writer that made a version unreachable waits for one grace period after the publication (then
 * no reader can be between look-up and pin) and calls pin_wait_free(): if the version is not pinned, the
 * writer can free it immediately; otherwise the last pin_drop() calls the waiter's fn(). A holder of a pin
 * may pin the version again.
 *
 * Nodes are embedded in the callers' structs, so a pin allocates nothing and cannot fail. Any thread may call
 * these functions. The locks are striped; each is held for a short scan of one chain.
 */
#ifndef GANTRY_EXTENT_INDEX_PIN_H
#define GANTRY_EXTENT_INDEX_PIN_H

#include <stdbool.h>
#include <stdint.h>

struct pin_table;

/* A pin of a version. Embedded in the reader's operation. Zeroed memory is an unused pin. */
struct pin {
	/* next pin in the chain, and the pointer that refers to this pin; link NULL: not pinned */
	struct pin *next, **link;
	uint64_t id;
};

/* A wait until a version is not pinned. Embedded in the object that is freed after the wait. */
struct pin_wait {
	struct pin_wait *next;
	uint64_t id;
	void (*fn)(struct pin_wait *w);
};

/* Allocates a table. expected: number of simultaneous pins for which the table is sized; more pins make the
 * table slower. Returns 0 or -ENOMEM. */
int pin_table_new(unsigned expected, struct pin_table **ret_t);
/* Frees a table without pins. NULL is allowed. */
void pin_table_free(struct pin_table *t);

/* Pins a version. id: number of the version, unique in this table. */
void pin_add(struct pin_table *t, struct pin *pin, uint64_t id);
/* Drops a pin. An unused pin is allowed. After the last pin of an id was dropped, w->fn(w) runs for each
 * waiter of the id, one after the other, on this thread, without a lock. */
void pin_drop(struct pin_table *t, struct pin *pin);

/* Waits until id is not pinned. Returns true if id is not pinned now; fn does not run. Returns false if fn(w)
 * will run once, on the thread of the last pin_drop(). */
bool pin_wait_free(struct pin_table *t, struct pin_wait *w, uint64_t id, void (*fn)(struct pin_wait *w));

/* Returns the number of pins. The number is exact if there are no concurrent calls. */
uint64_t pin_nr(struct pin_table *t);

#endif
