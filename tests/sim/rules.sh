#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Rules of src/extent/disk/rules.h switched off in turn: the simulation must find the loss, the same seed must fail the same way again,
# and must pass with the rule on.  A run has a twelfth of the rules, another one with each commit: the number of commits says which, so
# that a commit has the same ones each time (PART=2/12: that twelfth; PART=0/1: all, as long/sim has them).
# That a loss is found says something of the simulation, not of the seed: so it is looked for from
# the same one on each time, and does not take ten times as long once in a while (SEED= and long/sim begin elsewhere).
cd "$(dirname "$0")/../.." || exit 2
if [ -z "${PART:-}" ]; then
	n=''
	[ "$(git rev-parse --is-shallow-repository 2>/dev/null)" != false ] || n=$(git rev-list --count HEAD)
	PART=$((${n:-$(($(date +%s) / 86400))} % 12))/12
fi
echo "PART=$PART"
SEED=${SEED:-1700074070} exec "${BUILD:-build/release}/sim/sim" --rules --part "$PART"
