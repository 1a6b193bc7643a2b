#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libgantry-server: channels over the software NIC, towards a client's window in another process.  What fails there, and how a channel
# is repaired, is a part of make check-cuobject (tests/server/repair.sh).  BUILD names the build directory.
. "$(dirname "$0")/../softnic/fabric.sh"
export PORTCTL="$BUILD/softnicctl"
scripts/with-softnic -d 2 "$BUILD/unit/server/test_channel" || exit 1
# A program with the two public headers and libraries, as others have them.
scripts/with-softnic "$BUILD/server-tests/pair"
# A program that links it gets nothing of the daemon: no YAML, no journal, no HTTP; and it exports its interface alone.
needed=$(readelf -d "$BUILD/libgantry-server.so.0" | sed -n "s/.*NEEDED.*\[\(.*\)\]/\1/p" | grep -vxE "lib(ibverbs|mlx5|rdmacm)\.so\.1|lib(c|m|pthread)\.so\.6|ld-linux.*|lib(asan|ubsan|tsan)\..*" || :)
[ -z "$needed" ] || { echo "libgantry-server needs $needed"; exit 1; }
others=$(nm -D --defined-only "$BUILD/libgantry-server.so.0" | grep -vE " gantry_[a-z_]+@@| GANTRY_SERVER_0$" || :)
[ -z "$others" ] || { echo "libgantry-server exports $others"; exit 1; }
readelf -d "$BUILD/libgantry-server.so.0" | grep -q "soname: .libgantry-server\.so\.0"
