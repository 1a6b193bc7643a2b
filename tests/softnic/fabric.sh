# SPDX-License-Identifier: Apache-2.0
# What a test of programs on the software NIC begins with (sourced): the top of the tree as its directory, BUILD (the
# build directory, absolute), and a fabric of its own in SOFTNIC_DIR, which goes when the test ends.
# shellcheck shell=sh
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build/release}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
SOFTNIC_DIR=$(mktemp -d /dev/shm/softnic-test-XXXXXX)
export BUILD SOFTNIC_DIR
trap 'rm -rf "$SOFTNIC_DIR"' EXIT
