/* SPDX-License-Identifier: Apache-2.0 */
/* In place of model/rules.h, see extent/disk/rules.h. */
#ifndef GANTRY_MODEL_RULES_H
#define GANTRY_MODEL_RULES_H

#include "extent/disk/rules.h"

#define RULE_QUOTA_OF_ALL sim_rule_on[SIM_QUOTA_OF_ALL]

#endif
