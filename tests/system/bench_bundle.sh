#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/bench-bundle: the folder, moved to another place, measures with an empty environment, while the tree that it was made from is out of
# sight; what takes longer than its limit is ended and leaves nothing; another folder is not replaced.
. "$(dirname "$0")/lib.sh"
"$ROOT/scripts/bench-bundle" "$T/made" >"$T/said" 2>&1 || fail "$(<"$T/said")"
assert_match "$(<"$T/said")" "^$T/made: [0-9]+ MiB; copy it "
mkdir "$T/far" "$T/stores"
mv "$T/made" "$T/far/bundle"
B=$T/far/bundle/build
# All libraries but those of the C library and of the compiler come from the folder.
assert_eq "$(LD_LIBRARY_PATH=$B/softnic:$B/lib ldd "$B/gantryd" "$B/softnicctl" "$B/bench/scale" | awk -v own="$B/" '$2 == "=>" && index($3, own) != 1 { print $1 }' |
	sort -u | grep -vE '^lib(c|m|dl|rt|pthread|resolv|gcc_s)\.so')" ""
root=''
[ "$(id -u)" = 0 ] || root=-r
# apart VARIABLES...: run of the bundle, in a mount namespace in which the tree is empty.
apart() {
	unshare -m $root sh -c 'mount -t tmpfs none "$1" && shift && cd / && exec "$@"' sh "$ROOT" env -i \
		BENCH_MEM="$T/stores" BENCH_DIR="$T/stores" BUFFERS=48MiB DISK_SIZE=256MiB BENCH_LIVE_MIB=8 "$@" "$T/far/bundle/run"
}
apart BENCH_MS=20 CORES=1 >"$T/table" 2>"$T/errors" || fail "exit $?: $(cat "$T/table" "$T/errors")"
assert_eq "$(<"$T/errors")" ""
assert_eq "$(grep -E '^(get|put) .* ([0-9.]+|-)(  other work)?$' "$T/table" | cut -d ' ' -f 1 | tr '\n' ' ')" 'get get get put put put ' "$(<"$T/table")"
assert_eq "$(awk '$1 == 1 { print $3, $4, $9 }' "$T/table" | tr '\n' ,)" 'put 4 1.00,get 4 1.00,put 256 1.00,get 256 1.00,' "$(<"$T/table")"
assert_eq "$(grep -c 'Linux .*; [0-9a-f.v]' "$T/table")" 2 "the head of each table in: $(<"$T/table")"
assert_eq "$(ls "$T/stores")" ""

# Six rows of two seconds do not fit into one.
apart BENCH_MS=2000 LIMIT=1 >"$T/table" 2>"$T/errors"
assert_eq "$?" 124 "$(cat "$T/table" "$T/errors")"
assert_eq "$(ls "$T/stores")" "" "after the limit"

mkdir "$T/other"
touch "$T/other/file"
"$ROOT/scripts/bench-bundle" "$T/other" >"$T/said" 2>&1 && fail "a folder with other files was replaced"
assert_eq "$(<"$T/said")" "bench-bundle: $T/other is there, and is no bundle"
assert_eq "$(ls "$T/other")" file
