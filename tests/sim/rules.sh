#!/bin/bash
# Each rule of src/store/rules.h switched off in turn: the simulation must find the loss, the same seed must fail the same way again,
# and must pass with the rule on.
cd "$(dirname "$0")/../.." || exit 2
exec "${BUILD:-build/release}/sim/sim" --rules
