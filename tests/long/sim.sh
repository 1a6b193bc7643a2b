#!/bin/bash
# The store simulation, SECS long (default 600): two thirds random histories, one third short ones cut everywhere.
set -e
cd "$(dirname "$0")/../.."
SECS=${SECS:-600}
sim=${BUILD:-build/release}/sim/sim
"$sim" --secs $((SECS * 2 / 3))
"$sim" --exhaustive --secs $((SECS / 3))
"$sim" --rules
