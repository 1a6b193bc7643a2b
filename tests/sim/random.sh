#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store simulation: random histories (tests/sim/sim.h) from a seed of today; SEED= and HISTORIES= choose others. long/sim runs a million.
# Before them those that went wrong once.
cd "$(dirname "$0")/../.." || exit 2
sim=${BUILD:-build/release}/sim/sim
# An upload beyond the limit, whose bucket is made in the block that removes the bucket with the usage.
seeds="1795969147133"
for seed in $seeds; do
	"$sim" --replay "$seed" >/dev/null || { "$sim" --replay "$seed"; exit 1; }
done
exec "$sim" --histories "${HISTORIES:-1500}"
