#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store simulation: random histories of sets of one to four disks (tests/sim/many.c), some of them away,
# with cuts in every step of a start; in a third of them disks are drained and added meanwhile (many_moves.c).
cd "$(dirname "$0")/../.." || exit 2
exec "${BUILD:-build/release}/sim/sim" --many --histories "${HISTORIES:-500}"
