#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store simulation: short histories, cut at every step with every subset of what was not flushed, and again while starting.
cd "$(dirname "$0")/../.." || exit 2
exec "${BUILD:-build/release}/sim/sim" --exhaustive --secs "${SECS:-8}"
