#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random histories of a set over disks in memory, from a seed that is printed and was not used before: for SECS seconds (default 200), or
# without SECS= HISTORIES= of them, from SEED= on.
cd "$(dirname "$0")/../.." || exit 2
program=${BUILD:-build/release}/unit/set/test_mem_random
SEED=${SEED:-$(($(date +%s) * 1000))}
[ -n "${SECS:-}" ] || [ -z "${HISTORIES:-}" ] || SEED=$SEED HISTORIES=$HISTORIES exec "$program"
for ((end = SECONDS + ${SECS:-200}; SECONDS < end; SEED += 200)); do
	SEED=$SEED HISTORIES=200 "$program" 2>&1 | grep -v 'fewer than half: the store is read-only'
	[ "${PIPESTATUS[0]}" = 0 ] || exit 1
done
