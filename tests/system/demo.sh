#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demonstration, with smaller objects, and fewer large files.
cd "$(dirname "$0")/../.." || exit 1
LARGEST=${LARGEST:-16} LARGE=${LARGE:-40} exec scripts/demo
