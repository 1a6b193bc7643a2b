#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# softnic/third_party with all programs, in both modes of the software NIC.
cd "$(dirname "$0")/../.." || exit 2
MODES='thread inline' PART=0/1 exec tests/softnic/third_party.sh
