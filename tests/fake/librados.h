/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster in memory (librados.c and librados_*.c) in the place of librados: the functions of librados that src/rados calls, and the
 * functions of a test that are declared here. A test links it by LINK-module/test_x := librados.
 *
 * The pools gantry.meta and gantry.data exist. An operation with a callback waits until fake_rados_step() carries it out and calls the
 * callback; all other operations are carried out at once. Operations of one connection on one object keep their order. A write
 * operation is applied completely or not at all; its conditions are judged first.
 *
 * The helpers of a gateway (base/periodic.c) are replaced too: no thread is started, and fake_rados_turn_helpers() makes their turns.
 * A program is therefore deterministic: one thread, and all random choices follow from the seed. No function is thread-safe.
 */
#ifndef TESTS_FAKE_LIBRADOS_H
#define TESTS_FAKE_LIBRADOS_H

#include "base/mailbox.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/* Faults. Each probability is one in so many; 0: never. */
struct fake_rados_tuning {
	uint64_t seed;
	/* largest number of entries in a page of an omap that an operation with a callback reads; 0: as requested */
	uint32_t page_max;
	/* a change of the index ends with -ECANCELED, without effect, as if another gateway had been faster */
	uint32_t conflict;
	/* a change of the index is carried out twice, as if it was sent again after its reply was lost, to an OSD that no longer knows
	 * the operation; the second result is the answer */
	uint32_t twice;
	/* the generation of an index shard is raised before a change of the shard, as a gateway does that cleans up */
	uint32_t raise;
};

/* Removes all objects; no connection may exist. tuning NULL: no faults, seed 1. */
void fake_rados_reset(const struct fake_rados_tuning *tuning);
/* Changes the faults, and the seed unless it is 0. */
void fake_rados_tune(const struct fake_rados_tuning *tuning);
/* Carries out, or answers, one operation that waits. Returns false if no operation waits. */
bool fake_rados_step(void);
/* Returns the number of operations that wait. */
unsigned fake_rados_waiting(void);
/* Assigns the connections that are made from now on to a number, for fake_rados_kill(). */
void fake_rados_owner(unsigned owner);
/* Cuts off the connections of a number: some of the waiting operations are carried out first, and all operations end with -ESHUTDOWN
 * from now on. */
void fake_rados_kill(unsigned owner);
/* Raises the generation of every index shard. */
void fake_rados_raise(void);
/* Returns the number of objects in both pools. */
unsigned fake_rados_objects(void);
/* Returns the number of faults that were injected since the reset. */
uint64_t fake_rados_faults(void);

/* Makes one turn of each helper of each gateway; the row of each gateway is written first. */
void fake_rados_turn_helpers(void);
/* Makes a turn of the loop of a port: one operation that waits, the messages of its mailbox, and the turns that periodic_wake() has
 * requested. Returns true if there was any. */
bool fake_rados_turn(struct mailbox *mb);
/* Returns the configuration of a store on the cluster, in a namespace. */
struct store_conf fake_rados_conf(const char *ns, uint32_t index_shards);

#endif
