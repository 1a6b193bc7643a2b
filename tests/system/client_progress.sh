#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a terminal shows while put, get and cp wait and work: amounts, rate, time left, or, of one request, its size and how long it has
# taken; a line that fits the width; nothing with --quiet, with --json, and elsewhere for a minute.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
mkdir "$T/d" && cd "$T/d" || exit 1
nic /usr/bin/python3 "$ROOT/tests/system/client_progress.py" "$BUILD/gantry" || fail "client_progress.py"
