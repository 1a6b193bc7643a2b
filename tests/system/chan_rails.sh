#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Opening devices, routes over two rails, address handles, settings (src/rdma) on two devices of the software NIC.
# BUILD names the build directory.
. "$(dirname "$0")/../softnic/fabric.sh"
export PORTCTL="$BUILD/softnicctl"
rc=0
scripts/with-softnic -d 2 "$BUILD/unit/rdma/test_open" || rc=1
scripts/with-softnic -d 2 "$BUILD/unit/rdma/test_cmroute" || rc=1
exit $rc
