#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What programs rely on beyond the text, and decisions where it is silent (facts.cpp), against gantryd.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
NICS=2
export CUFILE_ENV_PATH_JSON='' CUOBJ_ENV_PATH_JSON='' SOFTNIC_RETRY_US=20000
# A child that was forked opens ports of its own.
export TSAN_OPTIONS="${TSAN_OPTIONS:-} die_after_fork=0"
start_daemon
nic "$ROOT/scripts/with-gantry-cuobject" "$BUILD/cuobject-tests/facts" "$S3" || fail "exit $?"
wait_for 10 nothing_is_held || fail "requests are left"
assert_alive
