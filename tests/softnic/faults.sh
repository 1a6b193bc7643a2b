#!/bin/sh
# Fault rules, lost devices and the trace of the software NIC, in thread and in inline mode.  BUILD names the build.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build/release}
export BUILD

SOFTNIC_DIR=$(mktemp -d /dev/shm/softnic-test-XXXXXX)
export SOFTNIC_DIR
trap 'rm -rf "$SOFTNIC_DIR"' EXIT
rc=0
for mode in thread inline; do
	for t in t_fault t_trace; do
		echo "== $t, SOFTNIC_EXEC=$mode"
		SOFTNIC_EXEC=$mode scripts/with-softnic "$BUILD/softnic-tests/$t" || rc=1
	done
done
exit $rc
