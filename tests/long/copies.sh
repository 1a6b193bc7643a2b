#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/system/copy_resume.sh with as many rounds of kills anywhere as SECS (600) leave time for.
export SEED=${SEED:-$(date +%s)} ROUNDS=$((${SECS:-600} / 5 + 1))
exec "$(dirname "$0")/../system/copy_resume.sh"
