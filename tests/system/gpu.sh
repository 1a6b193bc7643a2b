#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Memory of a device, which the CPU can neither read nor write (gpu.c has it, and would die of a touch): objects go to and from it byte
# for byte by RDMA, registered as a dma-buf or by a peer-memory driver; where RDMA fails, by the program's copy function or with an error
# that says why.
OWN_NET=${OWN_NET:-1}
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
NICS=2
export SOFTNIC_RETRY_US=20000 # a wrong DC key is soon given up
start_daemon
san=''
case $BUILD in *asan*) san=-fsanitize=address,undefined ;; *tsan*) san=-fsanitize=thread ;; esac
mkdir "$T/cuda"
# shellcheck disable=SC2086
gcc -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror $san -I"$ROOT/src/client" -o "$T/gpu" "$ROOT/tests/system/gpu.c" "$BUILD/libgantry.so" \
	"-Wl,-rpath,$BUILD" >"$T/out" 2>&1 || fail "gpu.c: $(<"$T/out")"
cp "$BUILD/tests/gpu/libcuda.so.1" "$T/cuda" || fail "no stand-in: make toolbins"
gpu() { nic env "${@:2}" "$T/gpu" "$1" "$URL_S3/bkt" >"$T/out" 2>&1 || fail "$*: exit $?: $(<"$T/out")"; }

gpu dmabuf
gpu none SOFTNIC_DMABUF=0
gpu peer SOFTNIC_DMABUF=0 SOFTNIC_PEER_MEM=1
gpu fallback
cuda() { gpu "$1" LD_LIBRARY_PATH="$BUILD/softnic:$T/cuda" "${@:2}"; }
cuda cuda
cuda export
cuda off CUFILE_DMABUF_ENABLE=false
cuda off CUFILE_DMABUF_ENABLE=0 SOFTNIC_PEER_MEM=1
wait_for 60 nothing_is_held || fail "requests are left"
assert_alive
