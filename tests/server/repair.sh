#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libgantry-server where something fails: completions that are lost, clients that die, ports and devices that go away, too little of
# everything; on the software NIC, asynchronous and inline.  BUILD names the build directory.
. "$(dirname "$0")/../softnic/fabric.sh"
export PORTCTL="$BUILD/softnicctl"
rc=0
for mode in thread inline; do
	echo "== test_repair, SOFTNIC_EXEC=$mode"
	SOFTNIC_EXEC=$mode scripts/with-softnic -d 2 "$BUILD/unit/server/test_repair" || rc=1
done
exit $rc
