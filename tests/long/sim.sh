#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store simulation: a million random histories (HISTORIES=), in as many processes as there are CPUs, about twenty minutes of CPU time
# in all; then short ones cut everywhere for SECS seconds (default 200); then a twentieth as many of several disks; then for SECS seconds
# such as `make check` has 500 of: of several disks, with buckets of two copies; then short ones of two disks and three in every way, as far
# as three times SECS seconds go; then with each sector bad, half as long; then each rule switched off.
cd "$(dirname "$0")/../.." || exit 2
HISTORIES=${HISTORIES:-1000000}
SEED=${SEED:-$(($(date +%s) * 1000))}
cpus=$(nproc)
sim=${BUILD:-build/release}/sim/sim
pids=()
rc=0
for ((i = 0; i < cpus; i++)); do
	"$sim" --seed $((SEED + i * (HISTORIES / cpus + 1000))) --histories $((HISTORIES / cpus + 1)) 2>/dev/null &
	pids+=($!)
done
for p in "${pids[@]}"; do wait "$p" || rc=1; done
"$sim" --exhaustive --secs "${SECS:-200}" || rc=1
"$sim" --many --seed "$SEED" --histories "$((HISTORIES / 20))" || rc=1
"$sim" --pairs --seed "$SEED" --secs "${SECS:-200}" || rc=1
"$sim" --exhaustive --many --seed "$SEED" --secs "$((${SECS:-200} * 3))" || rc=1
"$sim" --sectors --secs "$((${SECS:-200} / 2))" || rc=1
"$sim" --rules --pairs || rc=1
exit $rc
