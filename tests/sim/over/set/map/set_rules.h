/* SPDX-License-Identifier: Apache-2.0 */
/* In place of set/map/set_rules.h, see extent/disk/rules.h. */
#ifndef GANTRY_SET_RULES_H
#define GANTRY_SET_RULES_H

#include "extent/disk/rules.h"

#define RULE_TABLE_NEWEST sim_rule_on[SIM_TABLE_NEWEST]
#define RULE_QUORUM sim_rule_on[SIM_QUORUM]
#define RULE_HALF_ONLY_IF_ALL_IN sim_rule_on[SIM_HALF_ONLY_IF_ALL_IN]
#define RULE_START_NO sim_rule_on[SIM_START_NO]
#define RULE_TABLE_ALL sim_rule_on[SIM_TABLE_ALL]
#define RULE_TABLE_REDO sim_rule_on[SIM_TABLE_REDO]
#define RULE_TABLE_REDO_SERVING sim_rule_on[SIM_TABLE_REDO_SERVING]
#define RULE_BELOW_HALF_READ_ONLY sim_rule_on[SIM_BELOW_HALF_READ_ONLY]
#define RULE_ONE_CHANGE sim_rule_on[SIM_ONE_CHANGE]
#define RULE_MISSING_IS_503 sim_rule_on[SIM_MISSING_IS_503]
#define RULE_TABLE_DECIDES sim_rule_on[SIM_TABLE_DECIDES]
#define RULE_AWAY_BEFORE_ANSWER sim_rule_on[SIM_AWAY_BEFORE_ANSWER]
#define RULE_BUCKET_ON_ALL sim_rule_on[SIM_BUCKET_ON_ALL]
#define RULE_BUCKETS_FROM_HEAD sim_rule_on[SIM_BUCKETS_FROM_HEAD]
#define RULE_GATE_ALL_PRESENT sim_rule_on[SIM_GATE_ALL_PRESENT]
#define RULE_GATE_CLOSED sim_rule_on[SIM_GATE_CLOSED]
#define RULE_GATE_FORWARD sim_rule_on[SIM_GATE_FORWARD]
#define RULE_HEAD_REMOVES_FIRST sim_rule_on[SIM_HEAD_REMOVES_FIRST]
#define RULE_OLDER_THAN_BUCKET sim_rule_on[SIM_OLDER_THAN_BUCKET]
#define RULE_FAILED_HAS_NO_BUCKETS sim_rule_on[SIM_FAILED_HAS_NO_BUCKETS]
#define RULE_MEMBERS_BOTH sim_rule_on[SIM_MEMBERS_BOTH]
#define RULE_BEHIND_IS_AWAY sim_rule_on[SIM_BEHIND_IS_AWAY]
#define RULE_COPY_BEFORE_ANSWER sim_rule_on[SIM_COPY_BEFORE_ANSWER]
#define RULE_AWAY_BEFORE_COPY_ANSWER sim_rule_on[SIM_AWAY_BEFORE_COPY_ANSWER]
#define RULE_SETTLED_VISIBLE sim_rule_on[SIM_SETTLED_VISIBLE]
#define RULE_ONE_PER_KEY sim_rule_on[SIM_ONE_PER_KEY]
#define RULE_FULL_ONLY sim_rule_on[SIM_FULL_ONLY]
#define RULE_SAME_VERSION_READ sim_rule_on[SIM_SAME_VERSION_READ]
#define RULE_ALIGN_START sim_rule_on[SIM_ALIGN_START]
#define RULE_BOTH_TABLES sim_rule_on[SIM_BOTH_TABLES]
#define RULE_BOTH_AWAY_KEEP_FULL sim_rule_on[SIM_BOTH_AWAY_KEEP_FULL]

#endif
