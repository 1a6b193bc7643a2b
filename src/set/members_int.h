/* SPDX-License-Identifier: Apache-2.0 */
/* members_int - fields of the members of a set, for members.c, and for tests that make a disk missing. */
#ifndef GANTRY_SET_MEMBERS_INT_H
#define GANTRY_SET_MEMBERS_INT_H

#include "set/members.h"
#include "set/set.h"

#include <pthread.h>
#include <stdatomic.h>

struct set_members {
	pthread_mutex_t lock;  /* protects the tables that grow */
	_Atomic int engine_nr; /* number of entries in engine[] and number[] */
	struct store *engine[STORE_SET_MAX];
	uint8_t number[STORE_SET_MAX]; /* number of each engine's disk in the placement map */
	struct set_member unit[STORE_SET_MAX];
	_Atomic uint64_t drained; /* bitmap of units that were drained since the start */
	int missing_nr;           /* number of units that were missing at the start */
	uint8_t store_uuid[UUID_BYTES];
	/* true: set_has_failed() asks the engines; false: they have no member functions, or the set ends */
	_Atomic bool can_fail;
};

#endif
