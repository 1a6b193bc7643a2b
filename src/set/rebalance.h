/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebalance - the rebalancer of a set, for all others: it moves slots, adds and drains disks, and makes secondaries in sync again.
 *
 * A thread does it, one job at a time; its locks come before all others of the set (set_int.h).  Any thread, but for what says otherwise.
 */
#ifndef GANTRY_SET_REBALANCE_H
#define GANTRY_SET_REBALANCE_H

#include "set/map/disk_table.h"
#include "store/ops.h"

struct set;
struct mover;

/* Makes the rebalancer, which resumes what the placement map says.  Before there is a port.  0, or -errno with the reason in err. */
int set_move_begin(struct set *s, char *err, size_t err_len);
/* Ends its job and frees it, before engines stop. */
void set_move_end(struct set *s);
/* Has seconds made in sync: by the job in progress, or by one of its own.  Never blocks. */
void set_heal(struct set *s);
/* Returns true if slots of keys with two copies wait for a secondary in sync, now or when their time comes. */
bool set_pairs_wait(const struct set *s, const struct disk_table *t);
/* Reports the progress of making secondaries in sync: bytes_done of it, and (the result) those of them that belong to the slots in progress. */
uint64_t set_heal_info(const struct set *s, struct store_move_info *ret_info);
/* Returns the name of the work in progress, or wanted; NULL: none. */
const char *set_move_work(const struct set *s);

/* ---- calls of store.h ---- */

int set_change_disks(struct store *st, const struct store_disk_change *c, char *said, size_t said_len);
void set_move_info(const struct store *st, struct store_move_info *ret_info);
void set_move_rate(struct store *st, uint64_t bytes);

#endif
