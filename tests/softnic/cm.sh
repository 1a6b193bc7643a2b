#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The connection manager of the software NIC (t_cm), in thread and in inline mode.  BUILD names the build.
. "$(dirname "$0")/fabric.sh"
rc=0
for mode in thread inline; do
	echo "== t_cm, SOFTNIC_EXEC=$mode"
	SOFTNIC_EXEC=$mode scripts/with-softnic -n -d 2 "$BUILD/softnic-tests/t_cm" || rc=1
done
exit $rc
