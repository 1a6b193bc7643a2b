#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/rados.sh [FIGURE...]: the store on RADOS in turns with librados' own calls, on a cluster that this script brings up and ends;
# `make bench-rados [F=figure]` builds and runs it.  A table on standard output, the same in build/bench-rados.json.
#   BENCH_DIR=/var/tmp    where the cluster lies; CEPH_CONF=... takes one that is there
#   BENCH_ROUNDS=12       rounds of each figure, every four on other objects
#   BENCH_MS=500          how long each side of a round runs
#   BENCH_STRICT=1        exit 1 when a figure misses its floor
# Needs 16 GiB below BENCH_DIR, 2 GiB of memory and two CPUs that have nothing else to do, the OSD included.
set -u
cd "$(dirname "$0")/.." || exit 2
# figure, floor; < means lower is better.
figures='
rados_get_4m_q8     0.90
rados_get_1m_q32    0.85
rados_get_64k_q32   0.60
rados_get_cpu<      1.20
rados_put_4m_q8     0.85
rados_put_1m_q32    0.75
rados_put_64k_q32   0.50
rados_put_4m_over   -
rados_put_64k_over  -
rados_put_64k_whole -
rados_put_cpu       -
rados_put_small     3.00
'
names=$(awk 'NF { sub(/<$/, "", $1); print $1 }' <<<"$figures")
for f in "$@"; do grep -qx -- "$f" <<<"$names" || { echo "bench/rados.sh: no figure $f; have:" $names >&2; exit 2; }; done
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $names
dir=$(mktemp -d "${BENCH_DIR:-/var/tmp}/gantry-bench-rados.XXXXXX")
trap 'tests/rados/rados-one down "$dir/c" 2>/dev/null; rm -rf "$dir"' EXIT
if [ -z "${CEPH_CONF:-}" ]; then
	OSD_BYTES=16G tests/rados/rados-one up "$dir/c" || exit 1
	export CEPH_CONF=$dir/c/ceph.conf
fi
BENCH_ROUNDS=${BENCH_ROUNDS:-12} "build/${VARIANT:-release}/bench/rados" "$@" >"$dir/rows" || exit 1
awk -F'\t' -v floors="$figures" -v json=build/bench-rados.json '
	BEGIN {
		n = split(floors, line, "\n")
		for (i = 1; i <= n; i++) {
			if (split(line[i], w, / +/) < 2) continue
			less = sub(/<$/, "", w[1])
			floor[w[1]] = w[2]
			lower[w[1]] = less
		}
		printf "%-20s %-7s %9s %9s %7s %7s %7s  %s\n", "figure", "unit", "ours", "librados", "ratio", "spread", "floor", "verdict"
		printf "{\n" >json
	}
	$1 == "ROW" {
		f = $2; ok = floor[f] == "-" || (lower[f] ? $6 <= floor[f] : $6 >= floor[f])
		verdict = floor[f] == "-" ? "stated" : ok ? "ok" : "BELOW ITS FLOOR"
		missed += !ok
		printf "%-20s %-7s %9.1f %9.1f %7.2f %7.2f %7s  %s\n", f, $3, $4, $5, $6, $9, floor[f], verdict
		printf "%s  \"%s\": { \"unit\": \"%s\", \"ours\": %s, \"librados\": %s, \"ratio\": %s }", comma, f, $3, $4, $5, $6 >json
		comma = ",\n"
	}
	END { printf "\n}\n" >json; printf "%d below their floor\n", missed; exit missed > 0 }' "$dir/rows"
missed=$?
[ "$missed" = 0 ] || [ -z "${BENCH_STRICT:-}" ]
