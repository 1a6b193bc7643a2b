#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shape of the software NIC's network (t_shape), in thread and in inline mode.  BUILD names the build.
. "$(dirname "$0")/fabric.sh"
export SOFTNIC_GIDS='10.1.1.1/24;10.1.2.1/24;fd00:5::3' SOFTNIC_IB=2,3
rc=0
for mode in thread inline; do
	echo "== t_shape, SOFTNIC_EXEC=$mode"
	SOFTNIC_EXEC=$mode scripts/with-softnic -d 4 "$BUILD/softnic-tests/t_shape" || rc=1
done
for n in 1 8 16; do
	have=$(SOFTNIC_DC_RD_ATOMIC=$n scripts/with-softnic -d 4 "$BUILD/softnic-tests/t_shape" --reads)
	[ "$have" = "$n" ] || { echo "SOFTNIC_DC_RD_ATOMIC=$n: $have"; rc=1; }
done
# Its queue is on vector 5.
"$BUILD/softnicctl" stats --json | grep -q '"cqs":\[0,0,0,0,0,1,0,0\]' || { echo "stats: vectors"; rc=1; }
# Unneeded 2, disabled 0, enabled 1.
for row in '=2 0 2' 'init=0 0 1' 'late=0 1 0'; do
	have=$(SOFTNIC_FORK=${row%%=*} scripts/with-softnic -d 4 "$BUILD/softnic-tests/t_shape" --fork)
	[ "$have" = "${row#*=}" ] || { echo "SOFTNIC_FORK=${row%%=*}: $have"; rc=1; }
done
names() { scripts/with-softnic -d 4 "$BUILD/softnic-tests/t_shape" --names; }
was=$(names)
"$BUILD/softnicctl" device 0 name rocep1s0f0
[ "$(names)" = "$(echo "$was" | sed 's/mlx5_0:/rocep1s0f0:/')" ] || { echo "device name: $(names)"; rc=1; }
"$BUILD/softnicctl" device 0 name mlx5_0
[ "$(names)" = "$was" ] || { echo "device name, back: $(names)"; rc=1; }
for mode in thread inline; do
	SOFTNIC_PIN=check SOFTNIC_EXEC=$mode scripts/with-softnic -d 4 "$BUILD/softnic-tests/t_shape" --pin || rc=1
done
exit $rc
