#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store simulation: random histories (tests/sim/sim.h) from a seed of today; SEED= and HISTORIES= choose others. long/sim runs a million.
cd "$(dirname "$0")/../.." || exit 2
exec "${BUILD:-build/release}/sim/sim" --histories "${HISTORIES:-3000}"
