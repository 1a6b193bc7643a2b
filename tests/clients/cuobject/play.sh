#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The programs that are written to cuObject's client, as the library sees each (programs.cpp, shim.py, addon.js), against gantryd, and those that
# are written to its server (servers.cpp, server_addon.js), against a client.  They are built by with-gantry-cuobject with the link lines and
# pkg-config names that they have.
#   T_PROGRAM=name   one of programs.cpp alone
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/../clients.sh"
HERE=$ROOT/tests/clients/cuobject
# shellcheck disable=SC2034
WITH_NIC=1 NICS=2 RDMA='{ allow_special: [loopback, self] }'
/usr/bin/python3 -c 'import boto3' 2>/dev/null || fail "no python3-boto3: scripts/deps clients"
for d in /usr/include/node /usr/include/nodejs/src; do [ ! -e "$d/node_api.h" ] || node_headers=$d; done
[ -n "${node_headers:-}" ] || fail "no node_api.h: scripts/deps clients"
# The software adapter's address is a loopback address, which a server takes from no token by default.
export CUFILE_ENV_PATH_JSON='' CUOBJ_ENV_PATH_JSON='' GANTRY_SERVER_ALLOW='subnet, loopback, self'
make -s -C "$ROOT" cuobject || fail "make cuobject"
with() { "$ROOT/scripts/with-gantry-cuobject" "$@"; }
built() { with "$@" >"$T/out" 2>&1 || fail "$*: $(cat "$T/out")"; }

mkdir "$T/cuda"
built gcc -std=gnu17 -D_GNU_SOURCE -shared -fPIC -Wall -Wextra -Werror -Wl,-soname,libcuda.so.1 -o "$T/cuda/libcuda.so.1" "$ROOT/tests/gpu/cuda_standin.c"
flags=$(with pkg-config --cflags --libs cuobjclient-13.1) || fail "pkg-config cuobjclient-13.1"
warn='-std=c++14 -Wall -Wextra -Werror'
# shellcheck disable=SC2086
{
	built g++ $warn -I"$ROOT/tests/cuobject" -I"$HERE" -o "$T/programs" "$HERE/programs.cpp" -lcuobjclient -lcufile -lcurl -lpthread -ldl
	built g++ $warn -shared -fPIC -o "$T/libshim.so" "$HERE/shim.cpp" $flags
	built g++ $warn -shared -fPIC -I"$node_headers" -o "$T/addon.node" "$HERE/addon.cpp" -lcuobjclient
	built g++ $warn -I"$ROOT/tests/cuobject" -o "$T/servers" "$HERE/servers.cpp" -lcuobjserver -lcuobjclient -lcufile -lpthread -ldl
	built g++ $warn -shared -fPIC -I"$node_headers" -o "$T/server.node" "$HERE/server_addon.cpp" -lcuobjserver
}

clients_daemon
# Programs without keys use the listener that needs none.
open=$(sed 's/^[^=]*s3=//; s/ .*//' "$T/ready")
curl -sS --fail -o /dev/null -X PUT "http://$open/bkt" || fail "making a bucket"
export LD_LIBRARY_PATH="$T/cuda"
nic "$ROOT/scripts/with-gantry-cuobject" "$T/programs" "$open" ${T_PROGRAM:+"$T_PROGRAM"} || fail "programs.cpp"
nic "$ROOT/scripts/with-gantry-cuobject" /usr/bin/python3 "$HERE/shim.py" "$T/libshim.so" || fail "shim.py"
nic "$ROOT/scripts/with-gantry-cuobject" node "$HERE/addon.js" "$T/addon.node" "$open" || fail "addon.js"
nic "$ROOT/scripts/with-gantry-cuobject" "$T/servers" ${T_PROGRAM:+"$T_PROGRAM"} || fail "servers.cpp"
nic "$ROOT/scripts/with-gantry-cuobject" node --expose-gc "$HERE/server_addon.js" "$T/server.node" "$T/servers" || fail "server_addon.js"
wait_for 20 nothing_is_held || fail "requests are left"
assert_alive
