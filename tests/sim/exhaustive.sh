#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store simulation: short histories, cut at every step with every subset of what was not flushed, and again while starting; and a
# sample of the ways of two disks or three (tests/sim/many_exact.c), another one each time: tests/long/sim.sh goes all of them.
cd "$(dirname "$0")/../.." || exit 2
sim=${BUILD:-build/release}/sim/sim
"$sim" --exhaustive --many --sample "${SAMPLE:-16}" || exit 1
exec "$sim" --exhaustive --secs "${SECS:-1}"
