#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Device memory by RDMA on the software NIC, which asks the CUDA driver for its bytes (SOFTNIC_CUDA=1): tests/gpu/nic.c puts and gets
# every kind of it through the unmodified daemon and libgantry, and compares on the device; without SOFTNIC_CUDA nothing is registered.
# The driver is the stand-in of tests/gpu, or with CUDA=real the machine's.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
start_daemon
san=''
case $BUILD in *asan*) san=-fsanitize=address,undefined ;; *tsan*) san=-fsanitize=thread ;; esac
# shellcheck disable=SC2086
gcc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror $san -I"$ROOT/src/client" -o "$T/nic-test" "$ROOT/tests/gpu/nic.c" "$BUILD/libgantry.so" \
	"-Wl,-rpath,$BUILD" >"$T/out" 2>&1 || fail "nic.c: $(<"$T/out")"
cuda='' mib=256
if [ "${CUDA:-}" != real ]; then
	mkdir "$T/cuda"
	cp "$BUILD/tests/gpu/libcuda.so.1" "$T/cuda" || fail "no stand-in: make toolbins"
	cuda=:$T/cuda mib=32
fi
run() { env LD_LIBRARY_PATH="$BUILD/softnic$cuda" "$@" "$T/nic-test" "$URL_S3/bkt" "${MIB:-$mib}" >"$T/out" 2>&1; }

run SOFTNIC_CUDA=1 || fail "exit $?: $(<"$T/out")"
cat "$T/out"
[ "$(grep -c '^right' "$T/out")" -gt 60 ] || fail "rows are missing"
run SOFTNIC_CUDA=1 SOFTNIC_DMABUF=0 SOFTNIC_PEER_MEM=1 || fail "peer memory: exit $?: $(<"$T/out")"
# Without it the CPU would have to map the dma-buf.
run && fail "without SOFTNIC_CUDA: $(<"$T/out")"
{ grep -q '^WRONG' "$T/out" && grep -q '^right  and none' "$T/out"; } || fail "without SOFTNIC_CUDA: $(<"$T/out")"
wait_for 60 nothing_is_held || fail "requests are left"
assert_alive
