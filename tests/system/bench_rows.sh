#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/run, on rows that a program of this test says: what the table and bench.json have of one above its floor, one below and one that is void;
# BENCH_STRICT fails for the last two; a figure without a row fails always.
. "$(dirname "$0")/lib.sh"
R=$T/tree
mkdir -p "$R/bench" "$R/tests/system" "$R/build" "$R/built/bench"
cp "$ROOT/bench/run" "$ROOT/bench/disks.sh" "$ROOT/bench/s3.sh" "$R/bench/"
cp "$ROOT/tests/system/lib.sh" "$R/tests/system/"
# bench/store, which is asked for figures behind a directory: of each there is a line in `rows`.
cat >"$R/built/bench/store" <<'END_STORE'
#!/bin/sh
shift
for f in "$@"; do [ "$f" = "${OMIT:-}" ] || grep "	$f	" "$ROWS" || exit 1; done
END_STORE
chmod +x "$R/built/bench/store"
export ROWS=$R/rows BENCH_SLICED=1 BENCH_DIR=$T NO_NIC=1
row() { printf 'ROW\t%s\t%s\t%s\t%s\t%s\t%s\t7\t0.010\n' "$@"; } # FIGURE UNIT OURS REFERENCE RATIO NET
{
	row store_get_4m_q32 MB/s 98 100 0.980 -        # floor 0.95, aim 0.97
	row store_get_256k_q32 MB/s 96 100 0.960 -      # the same
	row store_get_touch MB/s 50 100 0.500 -         # the same
	row store_small_room_4k x 5734 4096 1.400 -     # floor 1.50, less is better
	row store_small_room_1k x 3000 1024 2.930 -     # floor 2.50
	row store_get_crc MB/s 80 100 0.800 0.910       # floor 0.90, of the net ratio
	printf 'VOID\tstore_put_1m_q8\tbecause processors were busy for 82 %% of the time\n'
} >"$ROWS"
# ran EXIT STRICT FIGURE...
ran() {
	local rc=0
	rm -f "$R/build/bench.json"
	BENCH_STRICT=$2 BUILD=$R/built "$R/bench/run" "${@:3}" >"$T/table" 2>"$T/said" || rc=$?
	assert_eq "$rc" "$1" "BENCH_STRICT=$2 bench/run ${*:3}: $(cat "$T/table" "$T/said")"
	jq . "$R/build/bench.json" >/dev/null || fail "no JSON: $(<"$R/build/bench.json")"
	assert_eq "$(jq -r 'map(.figure) | join(" ")' "$R/build/bench.json")" "${*:3}"
}
line() { grep -E "^$1$" "$T/table" >/dev/null || fail "no line $1 in: $(<"$T/table")"; }
no_line() { ! grep -E "$1" "$T/table" >/dev/null || fail "a line $1 in: $(<"$T/table")"; }

# ---- void ----
ran 0 '' store_get_4m_q32 store_put_1m_q8
line 'store_get_4m_q32 +98 +100 MB/s +0\.980 +- +0\.010 +>=0\.95 +>=0\.97  '
line 'store_put_1m_q8 +void: because processors were busy for 82 % of the time'
line '1 void'
line '1 passed, 0 failed, 1 skipped'
no_line 'below the floor'
assert_eq "$(jq -c '.[1]' "$R/build/bench.json")" '{"figure":"store_put_1m_q8","void":"because processors were busy for 82 % of the time"}'
assert_eq "$(jq -c '.[0] | [.ours, .reference, .ratio, .net, .unit, .rounds, .spread]' "$R/build/bench.json")" '[98,100,0.98,null,"MB/s",7,0.01]'
ran 0 0 store_put_1m_q8
ran 1 1 store_put_1m_q8
ran 1 1 store_put_1m_q8 store_get_4m_q32
line '1 void'

# ---- below the floor, and not ----
ran 0 1 store_get_4m_q32 store_get_256k_q32 store_small_room_4k store_get_crc
line 'store_get_256k_q32 .*  short of the aim'
line 'store_small_room_4k .* <=1\.50 +<=1\.10  short of the aim'
line 'store_get_crc .* 0\.910 .*  short of the aim'
no_line '[0-9] (void|below the floor)$'
for f in store_get_touch store_small_room_1k; do
	ran 1 1 store_get_4m_q32 $f
	line "$f .*  below the floor"
	line '1 below the floor'
	line '1 passed, 1 failed, 0 skipped'
done
ran 0 '' store_get_touch store_put_1m_q8 store_small_room_1k
line '2 below the floor'
line '1 void'
line '2 passed, 0 failed, 1 skipped'

# ---- a figure whose program prints no row ----
rc=0
OMIT=store_get_touch BUILD=$R/built "$R/bench/run" store_get_4m_q32 store_get_touch >"$T/table" 2>"$T/said" || rc=$?
assert_eq "$rc" 1 "$(cat "$T/table" "$T/said")"
line 'store_get_touch was not measured'
line '1 passed, 1 failed, 0 skipped'
