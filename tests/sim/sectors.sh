#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store simulation: a start with one bad sector, each of them in turn, of short histories that were stopped, killed or cut.
cd "$(dirname "$0")/../.." || exit 2
exec "${BUILD:-build/release}/sim/sim" --sectors --secs "${SECS:-4}"
