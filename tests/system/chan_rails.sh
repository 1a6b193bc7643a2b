#!/bin/sh
# Opening devices, routes over two rails, address handles, settings (src/rdma) on two devices of the software NIC.
# BUILD names the build directory.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build/release}
export BUILD

SOFTNIC_DIR=$(mktemp -d /dev/shm/softnic-test-XXXXXX)
export SOFTNIC_DIR
trap 'rm -rf "$SOFTNIC_DIR"' EXIT
PORTCTL=$PWD/$BUILD/softnicctl
case $BUILD in /*) PORTCTL=$BUILD/softnicctl ;; esac
export PORTCTL
rc=0
scripts/with-softnic -d 2 "$BUILD/unit/rdma/test_open" || rc=1
exit $rc
