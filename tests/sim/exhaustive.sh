#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store simulation: a short history, cut at a seventh of its steps with every subset of the writes that were not flushed, and again while
# starting; and a sample of the ways of two disks or three (tests/sim/many_exact.c). The seed of each run is another one, and with it the
# sample; tests/long/sim.sh has all steps and all ways.
cd "$(dirname "$0")/../.." || exit 2
sim=${BUILD:-build/release}/sim/sim
"$sim" --exhaustive --many --sample "${SAMPLE:-16}" || exit 1
exec "$sim" --exhaustive --sample 7 --secs "${SECS:-1}"
