/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules - a switch for each rule of quotas (docs/engine.md §2); set/map/set_rules.h has the rules of a set.
 * Private to src/model.
 */
#ifndef GANTRY_MODEL_RULES_H
#define GANTRY_MODEL_RULES_H

/* engine.md §2: a bucket's limit applies to the usage on all engines together, not only to the usage on the
 * engine that checks the limit. */
#define RULE_QUOTA_OF_ALL 1

#endif
