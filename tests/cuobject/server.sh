#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The server's interface against the client's, in two processes: what programs rely on beyond the text, decisions where it is silent,
# faults (server_facts.cpp).
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
NICS=2
export GANTRY_SERVER_ALLOW='subnet, loopback, self' CUFILE_ENV_PATH_JSON='' CUOBJ_ENV_PATH_JSON='' SOFTNIC_RETRY_US=20000 SOFTNICCTL="$BUILD/softnicctl"
# Clients are children that were forked before anything was opened.
export TSAN_OPTIONS="${TSAN_OPTIONS:-} die_after_fork=0"
nic "$ROOT/scripts/with-gantry-cuobject" "$BUILD/cuobject-tests/server_facts" || fail "exit $?"
nic "$ROOT/scripts/with-gantry-cuobject" "$BUILD/cuobject-tests/api_server" || fail "api_server: what is set is not what is got"
