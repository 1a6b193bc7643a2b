#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Requests that S3 servers are reported to answer wrongly, from the JavaScript clients that the file npm names: the AWS SDKs of version 3
# and 2, and Bun.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/../clients.sh"
# shellcheck source=tests/clients/reports/npm.sh
. "$ROOT/tests/clients/reports/npm.sh"
# Bun's program is in a package for each kind of machine; the one whose name has no "baseline" wants a newer CPU.
bun=
for program in "$modules"/node_modules/@oven/bun-*/bin/bun; do ! "$program" --version >"$T/out" 2>&1 || bun=$program; done
[ -n "$bun" ] || fail "no Bun that runs here"
clients_daemon
signed_curl bun -X PUT || fail "a bucket for Bun, which makes none"
export NODE_NO_WARNINGS=1
rc=0
js sdk3 || rc=1
js sdk2 || rc=1
js bun "$bun" || rc=1
[ $rc = 0 ] || fail "answers that clients mind"
assert_alive
