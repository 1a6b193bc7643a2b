#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/lint of all files, of which a fresh clone otherwise checks a share (scripts/unseen).
cd "$(dirname "$0")/../.." || exit 2
EVERY=1 exec scripts/lint
