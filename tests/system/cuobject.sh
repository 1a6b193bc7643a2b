#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The shape of cuObject: a program that was compiled against it is what the published text says (api_client), one that knows nothing but
# linker names gets along (names), and an object goes there and back by RDMA (round_trip); and the server's shape (api_server), with bytes there
# and back between a client's and a server's process.  All else is in tests/cuobject/.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
tests=$BUILD/cuobject-tests
# Where there is no C++ compiler nothing of it is built, which the makefile said.
[ -x "$tests/names" ] || { command -v "${CXX:-g++}" >/dev/null && fail "$tests/names is not built"; skip "no C++ compiler, so no libcuobjclient"; }
# Clients and servers are on this machine.
export GANTRY_SERVER_ALLOW='subnet, loopback, self' CUFILE_ENV_PATH_JSON='' CUOBJ_ENV_PATH_JSON=''
cuobject() { nic "$ROOT/scripts/with-gantry-cuobject" "$@" >"$T/out" 2>&1 || fail "$*: exit $?: $(<"$T/out")"; }
start_daemon
cuobject "$tests/api_client"
cuobject "$tests/names"
cuobject "$tests/round_trip" "$S3"
assert_eq "$(nm -D --defined-only "$BUILD/cuobject/libcuobjclient.so.1" | grep -vc ' _ZN11cuObjClient')" 0 "exports that are not the client's"
cuobject "$tests/api_server"
cuobject "$tests/server_facts" there-and-back
assert_eq "$(nm -D --defined-only "$BUILD/cuobject/libcuobjserver.so.1" | grep -vcE ' _ZN(11cuObjServer|14RDMAConnection)')" 0 "exports that are not the server's"
for l in client server; do
	assert_eq "$(readelf -d "$BUILD/cuobject/libcuobj$l.so.1" | grep -c "soname: .libcuobj$l.so.1")" 1 "soname"
done
assert_alive
