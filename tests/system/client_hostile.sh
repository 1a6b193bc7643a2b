#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM15: the gantry command against servers and caches that lie (client_hostile.py): answers that are a part of the object are never
# taken for the whole, trailers change nothing, and what a server says does nothing to the terminal.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
mkdir "$T/d" && cd "$T/d" || exit 1
nic /usr/bin/python3 "$ROOT/tests/system/client_hostile.py" "$BUILD/gantry" || fail "client_hostile.py"
