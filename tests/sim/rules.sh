#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each rule of src/extent/disk/rules.h switched off in turn: the simulation must find the loss, the same seed must fail the same way again,
# and must pass with the rule on.  That a loss is found says something of the simulation, not of the seed: so it is looked for from
# the same one on each time, and does not take ten times as long once in a while (SEED= and long/sim begin elsewhere).
cd "$(dirname "$0")/../.." || exit 2
SEED=${SEED:-1700074070} exec "${BUILD:-build/release}/sim/sim" --rules
