#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The software NIC's semantics, in thread and in inline mode: what one process sees, transfers to another process,
# receives, and what happens when processes and ports come and go.  BUILD names the build directory.
. "$(dirname "$0")/fabric.sh"
rc=0
for mode in thread inline; do
	for t in t_local t_xfer t_recv t_life; do
		echo "== $t, SOFTNIC_EXEC=$mode"
		SOFTNIC_EXEC=$mode scripts/with-softnic "$BUILD/softnic-tests/$t" || rc=1
	done
done
exit $rc
