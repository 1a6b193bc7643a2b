#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random histories whose answers are compared between the store in memory, the engine and the store on RADOS (unit/store/test_diff), from
# a seed that was not used before: for SECS seconds (default 200) those of all three, and as long those without the engine, which are
# shorter. Without SECS= HISTORIES= of each, from SEED= on; a million take about 40 minutes of CPU time without the engine, and 90 with it.
cd "$(dirname "$0")/../.." || exit 2
program=${BUILD:-build/release}/unit/store/test_diff
export SEED=${SEED:-$(($(date +%s) * 1000))}
if [ -z "${SECS:-}" ] && [ -n "${HISTORIES:-}" ]; then
	ENDS=mr "$program" && "$program"
	exit
fi
for ends in mer mr; do
	for ((end = SECONDS + ${SECS:-200}; SECONDS < end; SEED++)); do
		ENDS=$ends HISTORIES=200 "$program" || exit 1
	done
done
