#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/store with figures of a full store and of small objects in one run, on small stores: the second store that small objects are put
# into is an empty one again, whatever order the figures are asked for in. Where io_uring is forbidden, the refusal says so, and leaves nothing.
NO_NIC=1
. "$(dirname "$0")/lib.sh"
mkdir "$T/bench"
measure() {
	BENCH_STORE_MIB=512 BENCH_ROUNDS=1 BENCH_MS=20 "$@" "$BUILD/bench/store" "$T/bench" store_small_256k store_small_put store_full_256k_q32 \
		store_put_256k_q32 >"$T/rows" 2>"$T/said"
}
refused() {
	grep -q '^bench: a raw disk is measured with io_uring, which cannot be used: ' "$T/said" || fail "$(<"$T/said")"
	assert_eq "$(ls "$T/bench")" "" "left by the refusal"
}
! measure "$BUILD/tools/no_uring" || fail "measured without io_uring: $(<"$T/rows")"
refused
if ! measure env; then
	refused
	exit 0
fi
assert_eq "$(awk '{ print $1, $2 }' "$T/rows" | tr '\n' ,)" \
	"ROW store_put_256k_q32,ROW store_full_256k_q32,ROW store_small_256k,ROW store_small_put,"
grep -q '^bench: [89][0-9] % used by ' "$T/said" || fail "no store was full: $(<"$T/said")"
assert_eq "$(ls "$T/bench")" "" "what was put there"
