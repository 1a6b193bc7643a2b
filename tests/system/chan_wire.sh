#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The channel (src/chan, src/rdma) over the software NIC, towards a DC target and RC queue pairs in another process: asynchronous and inline.
# BUILD names the build directory.
. "$(dirname "$0")/../softnic/fabric.sh"
export PORTCTL="$BUILD/softnicctl"
rc=0
for mode in thread inline; do
	echo "== test_wire, SOFTNIC_EXEC=$mode"
	r=0
	SOFTNIC_EXEC=$mode scripts/with-softnic "$BUILD/unit/chan/test_wire" || r=$?
	# 77, no device: on the software NIC that is a failure, not a skip.
	[ $r -eq 0 ] || { echo "test_wire: exit $r"; rc=1; }
done
echo "== test_rc"
SOFTNIC_EXEC=thread scripts/with-softnic "$BUILD/unit/chan/test_rc" || { echo "test_rc failed"; rc=1; }
# A device without DC is a rail as well, by RC alone.
r=0
SOFTNIC_DC=0 scripts/with-softnic "$BUILD/unit/chan/test_wire" || r=$?
[ $r -eq 77 ] || { echo "SOFTNIC_DC=0 has DC: exit $r"; rc=1; }
echo "== test_rc, inline and without DC"
# A fabric of its own: the first run has changed the addresses, and the peer must not have one that the second takes away.
trap 'rm -rf "$SOFTNIC_DIR" "$SOFTNIC_DIR.2"' EXIT
mkdir "$SOFTNIC_DIR.2"
SOFTNIC_DIR=$SOFTNIC_DIR.2 SOFTNIC_EXEC=inline SOFTNIC_DC=0 scripts/with-softnic "$BUILD/unit/chan/test_rc" || { echo "test_rc without DC failed"; rc=1; }
exit $rc
