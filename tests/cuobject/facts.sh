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
for on in true false; do
	echo '{ "properties": { "rdma_dev_addr_list": ["mlx5_0", "mlx5_1"], "rdma_multipath_enabled": '"$on"', "rdma_io_retry_count": 3 } }' >"$T/cuobj.json"
	word=off
	[ "$on" = false ] || word=on
	CUOBJ_ENV_PATH_JSON=$T/cuobj.json nic "$ROOT/scripts/with-gantry-cuobject" "$BUILD/cuobject-tests/multipath" "$S3" "$word" || fail "multipath $word: exit $?"
done
wait_for 10 nothing_is_held || fail "requests are left"
assert_alive
