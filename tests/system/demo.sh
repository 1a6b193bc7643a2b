#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demonstration, with smaller objects.
cd "$(dirname "$0")/../.." || exit 1
LARGEST=${LARGEST:-64} exec scripts/demo
