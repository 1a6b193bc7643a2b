#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The shape of cuObject: a program that was compiled against it is what the published text says (api_client), one that knows nothing but
# linker names gets along (names), and an object goes there and back by RDMA (round_trip).  All else is in tests/cuobject/.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
tests=$BUILD/cuobject-tests
# Where there is no C++ compiler nothing of it is built, which the makefile said.
[ -x "$tests/names" ] || { command -v "${CXX:-g++}" >/dev/null && fail "$tests/names is not built"; skip "no C++ compiler, so no libcuobjclient"; }
export CUFILE_ENV_PATH_JSON='' CUOBJ_ENV_PATH_JSON=''
cuobject() { nic "$ROOT/scripts/with-gantry-cuobject" "$@" >"$T/out" 2>&1 || fail "$*: exit $?: $(cat "$T/out")"; }
start_daemon
cuobject "$tests/api_client"
cuobject "$tests/names"
cuobject "$tests/round_trip" "$S3"
assert_eq "$(nm -D --defined-only "$BUILD/cuobject/libcuobjclient.so.1" | grep -vc ' _ZN11cuObjClient')" 0 "exports that are not the client's"
assert_eq "$(readelf -d "$BUILD/cuobject/libcuobjclient.so.1" | grep -c 'soname: .libcuobjclient.so.1')" 1 "soname"
assert_alive
