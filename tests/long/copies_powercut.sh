#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/long/disks_powercut.sh with two copies of everything.
COPIES=2 exec "$(dirname "$0")/disks_powercut.sh"
