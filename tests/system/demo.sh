#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demonstration, with smaller objects.
cd "$(dirname "$0")/../.." || exit 1
LARGEST=${LARGEST:-16} exec scripts/demo
