#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Memory of a device that no adapter registers goes through the stage of libgantry (gpu_stage.c): by RDMA where it can, else in bodies of
# HTTP, in the order of the program's streams; every refusal is named by who gave it, and freed memory is an error and not the end of
# the program.  The driver is the stand-in of tests/gpu, or ROCm's.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
NICS=2
export SOFTNIC_RETRY_US=20000 # a wrong DC key is soon given up
start_daemon
san=''
case $BUILD in *asan*) san=-fsanitize=address,undefined ;; *tsan*) san=-fsanitize=thread ;; esac
mkdir "$T/cuda"
# shellcheck disable=SC2086
gcc -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-parameter $san -I"$ROOT/src/client" -o "$T/stage" "$ROOT/tests/system/gpu_stage.c" "$BUILD/libgantry.so" \
	"-Wl,-rpath,$BUILD" -lpthread >"$T/out" 2>&1 || fail "gpu_stage.c: $(<"$T/out")"
for part in libcuda.so.1 libamdhip64.so.6 libhsa-runtime64.so.1; do
	cp "$BUILD/tests/gpu/$part" "$T/cuda" || fail "no stand-in: make toolbins"
done
stage() {
	nic env LD_LIBRARY_PATH="$BUILD/softnic:$T/cuda" "${@:2}" "$T/stage" "$1" "$URL_S3/bkt" >"$T/out" 2>&1 ||
		fail "$*: exit $?: $(<"$T/out")"
}
for mode in ${MODES:-staged http order refusals freed again threads replaced to_host_alone}; do
	stage "$mode"
done
[ -n "${MODES:-}" ] || stage peer SOFTNIC_PEER_MEM=1
[ -n "${MODES:-}" ] || stage unpinned CUDA_STANDIN=pin=801
# Where the CPU could read memory of the device, as in a BAR that has all of it, it does not.
[ -n "${MODES:-}" ] || stage http CUDA_STANDIN=visible=1
for mode in ${MODES:-staged order freed again}; do
	stage "$mode" ROCM=libamdhip64.so.6
done
wait_for 60 nothing_is_held || fail "requests are left"
assert_alive
