#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The channel (src/chan, src/rdma) over the software NIC, towards a DC target and RC queue pairs in another process: asynchronous and inline.
# BUILD names the build directory.
. "$(dirname "$0")/../softnic/fabric.sh"
export PORTCTL="$BUILD/softnicctl"
# The programs wait most of the time, for time-outs of queue pairs and of a device that died, so they run at the same time. Each has a fabric
# of its own: the programs remove addresses and devices.
run() { # NAME WANT PROGRAM [VARIABLE=VALUE...]: the exit status WANT passes
	name=$1 want=$2 program=$3 r=0
	shift 3
	mkdir "$SOFTNIC_DIR/$name"
	env SOFTNIC_DIR="$SOFTNIC_DIR/$name" "$@" scripts/with-softnic "$BUILD/unit/chan/$program" >"$SOFTNIC_DIR/$name.log" 2>&1 || r=$?
	echo "exit $r" >>"$SOFTNIC_DIR/$name.log"
	[ $r -eq "$want" ] || touch "$SOFTNIC_DIR/$name.failed"
}
run wire-thread 0 test_wire SOFTNIC_EXEC=thread &
run wire-inline 0 test_wire SOFTNIC_EXEC=inline &
run rc-thread 0 test_rc SOFTNIC_EXEC=thread &
# A device without DC is a rail as well, by RC alone, and test_wire skips.
run rc-inline-no-dc 0 test_rc SOFTNIC_EXEC=inline SOFTNIC_DC=0 &
run wire-no-dc 77 test_wire SOFTNIC_DC=0 &
wait
rc=0
for log in "$SOFTNIC_DIR"/*.log; do
	name=$(basename "$log" .log)
	echo "== $name"
	cat "$log"
	[ ! -e "$SOFTNIC_DIR/$name.failed" ] || rc=1
done
for log in "$SOFTNIC_DIR"/*.failed; do
	[ ! -e "$log" ] || echo "chan_wire: $(basename "$log" .failed) FAILED"
done
exit $rc
