#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/scaling on small stores: a row for each number of cores and disks, operation and size, whose efficiency, MB/s and number of cores
# follow from the row's other columns; the steps of a commit below each row of PUTs; nothing is left behind.
. "$(dirname "$0")/lib.sh"
mkdir "$T/stores"
export BENCH_MS=20 BENCH_LIVE_MIB=8 BUFFERS=48MiB DISK_SIZE=256MiB BENCH_MEM=$T/stores BENCH_DIR=$T/stores
# scaling WANTED-EXIT WORD: the table in $T/table.
scaling() {
	local rc=0
	"$ROOT/bench/scaling" "${@:2}" >"$T/table" 2>"$T/said" || rc=$?
	assert_eq "$rc" "$1" "bench/scaling ${*:2}: $(cat "$T/table" "$T/said")"
	assert_eq "$(ls "$T/stores")" "" "files of bench/scaling ${*:2}"
}
# Column 9 of `scale` is the efficiency, 13 the CPU time without copies; a size is two words.
cores='1 2'
[ "$(nproc)" -ge 2 ] || cores=1
CORES='1 2' scaling 0 scale
assert_eq "$(<"$T/said")" ""
want=$(for n in $cores; do for d in $(printf '%s\n' 1 "$n" | sort -u); do
	for r in 'put 4 128' 'get 4 128' 'put 256 64' 'get 256 64'; do echo "$n $d $r"; done
done; done)
assert_eq "$(awk '$3 == "put" || $3 == "get" { print $1, $2, $3, $4, $6 }' "$T/table")" "$want" "$(<"$T/table")"
assert_eq "$(awk '
	$3 == "put" || $3 == "get" {
		key = $3 " " $4; if (!(key in one)) one[key] = $7
		off = $9 - $7 / ($1 * one[key]); mb = $8 - $7 * $4 * 1024 / 1e6
		if (off < -.006 || off > .006 || mb < -1 || mb > 1 || $7 <= 0 || $10 <= 0 || $11 < $10 || $12 <= $13 || $14 <= 0) print
		# Both columns are rounded.
		marked = $(NF) == "work"; over = $15 - $14 / 20
		if (marked ? over < -.001 : over > .001) print "mark:", $0
	}' "$T/table")" "" "rows of $(<"$T/table")"
steps=$(grep -c '^ *commit, us: .*submitted [0-9]* led [0-9]* written [0-9]* flushed [0-9]* published [0-9]* answered [0-9]*$' "$T/table")
assert_eq "$steps" "$(awk '$3 == "put"' "$T/table" | wc -l)" "$(<"$T/table")"
SECS=0 CORES=1 scaling 0 scale
assert_eq "$(tail -n 1 "$T/table")" 'left out after 0 s: 1 cores with 1 disks'

# Columns: op, size (two words), in flight, MB/s, CPU, copies, net, GB/s of a core, busy, waited, cores.
GBIT=100 scaling 0 cores
assert_eq "$(<"$T/said")" ""
grep -q ' cores for 100 Gb/s$' "$T/table" || fail "no head: $(<"$T/table")"
assert_eq "$(awk '/^(get|put)/ { print $1, $2, $3, $4 }' "$T/table" | tr '\n' ,)" \
	'get 64 KiB 32,get 256 KiB 32,get 1 MiB 16,put 64 KiB 32,put 256 KiB 32,put 1 MiB 16,' "$(<"$T/table")"
assert_eq "$(awk '/^(get|put)/ {
	size = $2 * ($3 == "MiB" ? 1048576 : 1024); off = $12 - 12.5e9 * $8 / 1e6 / size; net = $6 - $7 - $8; gb = ($9 * $8 * 1e3 - size) / ($9 + $8 + 1) / 1e3
	if (net < -.016 || net > .016 || $7 <= 0 || $5 <= 0) print
	marked = $(NF) == "work"; over = $11 - $10 / 20
	if (marked ? over < -.001 : over > .001) print "mark:", $0
	# On a machine with much other work.
	if ($8 <= 0 ? $9 $12 != "--" : off < -.06 || off > .06 || gb < -.01 || gb > .01) print
	}' "$T/table")" "" "rows of $(<"$T/table")"
scaling 2
assert_eq "$(<"$T/said")" 'usage: bench/scaling scale|cores'
