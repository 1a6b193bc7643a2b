#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The protocol of a store on many disks as a model (tests/model/many_disks.py): SECS seconds (default 120) of random histories in each of four
# profiles, of which none may go wrong; then every rule is switched off, and must be missed within SECS seconds.
cd "$(dirname "$0")/../model" || exit 1
SECS=${SECS:-120}
SEED=${SEED:-$(date +%s)}
echo "SEED=$SEED SECS=$SECS"
./many_disks.py run --seconds "$SECS" --seed "$SEED" & a=$!
./many_disks.py run --seconds "$SECS" --seed "$SEED" --profile tight & b=$!
./many_disks.py run --seconds "$SECS" --seed "$SEED" --profile buckets & c=$!
./many_disks.py run --seconds "$SECS" --seed "$SEED" --profile damage & d=$!
wait $a && wait $b && wait $c && wait $d || exit 1
exec ./many_disks.py rules --seconds "$SECS"
