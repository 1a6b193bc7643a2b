/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebalance - the interface of a set's rebalancer, which moves slots, adds and drains disks, and
 * resynchronises secondaries.
 *
 * The rebalancer is a thread with one job at a time; its locks are the first in the lock order of the set
 * (set_int.h). Any thread may call these functions, unless stated otherwise.
 */
#ifndef GANTRY_SET_REBALANCE_H
#define GANTRY_SET_REBALANCE_H

#include "set/map/disk_table.h"
#include "store/ops.h"

struct set;
struct mover;

/* Allocates the rebalancer, which resumes the job recorded in the placement map. Called before the first
 * port is attached. Returns 0, or -errno with the reason in err. */
int set_move_begin(struct set *s, char *err, size_t err_len);
/* Ends the job of the rebalancer and frees the rebalancer, before the engines stop. */
void set_move_end(struct set *s);
/* Asks for the resynchronisation of secondaries, by the job in progress or by a separate one. Never
 * blocks. */
void set_heal(struct set *s);
/* Returns true if resynchronisation has work according to the map t: a secondary in service is not in sync,
 * or another disk can replace a secondary that has been away for heal_after_ns. */
bool set_pairs_wait(const struct set *s, const struct disk_table *t);
/* Returns true if the rebalancer removes foreign records according to an earlier map. The caller holds the map
 * change lock. */
bool set_removes_foreign(const struct set *s);
/* Returns the name of the work that is in progress or requested; NULL: the rebalancer has no work. */
const char *set_move_work(const struct set *s);

/* ---- calls of store.h ---- */

int set_change_disks(struct store *st, const struct store_disk_change *c, char *said, size_t said_len);
void set_move_info(const struct store *st, struct store_move_info *ret_info);

#endif
