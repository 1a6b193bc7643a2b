#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# softnic/third_party in both modes of the software NIC.
cd "$(dirname "$0")/../.." || exit 2
MODES='thread inline' exec tests/softnic/third_party.sh
