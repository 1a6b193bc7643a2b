#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A target registers anew all the time while its initiators write and are killed: no byte may land after dereg_mr.
# The negative control switches the protection off and must find late writes.  SECS= sets the seconds of each run.  A run has one of the two
# modes of the software NIC, the other one with the next commit: the number of commits says which.  MODES='thread inline': both, as in long/stress.
. "$(dirname "$0")/fabric.sh"
rc=0
if [ -z "${MODES:-}" ]; then
	turn=$(git rev-list --count HEAD 2>/dev/null) || turn=$(date +%j | sed 's/^0*//')
	[ $((turn % 2)) = 0 ] && MODES=inline || MODES=thread
fi
for mode in $MODES; do
	echo "== SOFTNIC_EXEC=$mode"
	SOFTNIC_EXEC=$mode scripts/with-softnic "$BUILD/softnic-tests/t_stress" "${SECS:-3}" || rc=1
	SOFTNIC_EXEC=$mode scripts/with-softnic "$BUILD/softnic-tests/t_chaos" "${SECS:-2}" || rc=1
done
echo "== negative control: protection off"
SOFTNIC_TEST_NO_HAZARD=1 SOFTNIC_EXEC=inline scripts/with-softnic "$BUILD/softnic-tests/t_stress" 6 expect || rc=1
exit $rc
