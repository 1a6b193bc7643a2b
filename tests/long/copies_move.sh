#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/system/copies_move.sh for SECS seconds.
SECS=${SECS:-60} exec "$(dirname "$0")/../system/copies_move.sh"
