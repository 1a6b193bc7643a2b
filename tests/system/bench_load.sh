#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/run with bench/load and a daemon, for the CPU of a request: a PUT and a GET have a row each, in microseconds, and the net value is
# without the copies of the software NIC.
. "$(dirname "$0")/lib.sh"
R=$T/tree
mkdir -p "$R/bench" "$R/tests/system" "$R/scripts" "$R/build"
cp "$ROOT/bench/run" "$ROOT/bench/disks.sh" "$ROOT/bench/s3.sh" "$R/bench/"
cp "$ROOT/tests/system/lib.sh" "$R/tests/system/"
cp "$ROOT/scripts/with-softnic" "$R/scripts/"
BENCH_SLICED=1 BENCH_DISK_SIZE=1GiB BENCH_BUFFERS=64MiB BENCH_DIR=$T BENCH_ROUNDS=1 BENCH_MS=20 BENCH_LIVE_MIB=8 "$R/bench/run" put_us_256k get_us_256k >"$T/table" 2>"$T/said" ||
	fail "exit $?: $(cat "$T/table" "$T/said")"
for f in put get; do
	grep -qE "^${f}_us_256k +[0-9.]+ +1 us +[0-9.]+ +-?[0-9.]+ +[0-9.]+ +<=2[04] +<=[12][82] " "$T/table" || fail "no row ${f}_us_256k: $(cat "$T/table" "$T/said")"
done
# The ratio is in microseconds; a request takes some, and copies are a part of them.
assert_eq "$(jq -c 'map([.figure, .unit, .reference, (.ours / .ratio * 100 | round), .ratio > 1, .net < .ratio])' "$R/build/bench.json")" \
	'[["put_us_256k","us",1,100,true,true],["get_us_256k","us",1,100,true,true]]' "$(<"$R/build/bench.json")"
