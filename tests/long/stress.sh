#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# softnic/stress in both modes of the software NIC, for SECS seconds (default 30) each program.
cd "$(dirname "$0")/../.." || exit 2
MODES='thread inline' SECS=${SECS:-30} exec tests/softnic/stress.sh
