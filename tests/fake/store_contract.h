/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What store.h promises, as a suite that any back end must pass: `mem` does
 * (tests/unit/store/test_mem_store.c), and the engine on files. The test opens the store, attaches a port on
 * this thread and says how the loop turns.
 */
#ifndef TESTS_FAKE_STORE_CONTRACT_H
#define TESTS_FAKE_STORE_CONTRACT_H

#include "store/store.h"

struct contract {
	struct store *store;
	struct store_port *port;
	/* At least 16 large and 16 small ones, in runs where the store reads more than a piece at once; the store may have
	 * registered them. */
	struct bufpool *bufs;
	/* One turn of the loop: runs what has come (mailbox, ring, timers), waits a little if nothing has,
	 * store_turn(). */
	void (*turn)(struct contract *c);
	/* Whether an operation that was started on `port` may be done by p; NULL: by `port` alone. */
	bool (*is_ours)(const struct contract *c, const struct store_port *p);
	bool keeps_uncounted; /* removed objects that are being read count in no quota */
	bool has_two_copies;  /* each key is to have a second copy, which is looked at too */
	uint64_t seed;
	unsigned random_ops; /* of the random test; 0: 2000 */
};

/* The number of failed tests, as cmocka counts.  The store may hold other buckets; those of the suite are
 * deleted again. */
int store_contract_run(struct contract *c);

#endif
