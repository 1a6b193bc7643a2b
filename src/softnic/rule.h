/* SPDX-License-Identifier: Apache-2.0 */
/* The table of fault rules in the fabric, as the process that executes an operation reads it (rule.c). Any thread; no lock. */
#ifndef SOFTNIC_RULE_H
#define SOFTNIC_RULE_H

#include "softnic/softnic.h"

/* Returns the n-th number of a seed (SplitMix64), so that a run can be repeated without a stored state of a generator. */
uint64_t sn_draw(uint64_t seed, uint64_t n);
bool sn_rule_there(uint32_t id);
/* Copies the rule in place i. Returns false if there is no rule, or if the rule changed during the copy. */
bool sn_rule_read(int i, uint32_t *ret_id, struct fab_match *ret_match, struct fab_act *ret_act);
/* Returns true if a rule with this match is for an operation on a device, of len bytes. */
bool sn_rule_is_for(const struct fab_match *m, enum fab_op op, uint32_t dev, uint64_t len);
/* Decides whether a rule that is for the operation hits it, and counts. asked: number of earlier operations of this queue pair
 * that the rule has checked. */
bool sn_rule_hits(struct fab_rule *r, const struct fab_match *m, uint32_t asked);

#endif
