#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/numbers: a table of both ways, by a daemon of its own and against one that is named; a way that was not RDMA makes no row.
. "$(dirname "$0")/lib.sh"
cd "$T" || exit 1
export SIZES=4k,100k CONCURRENCY=2 ROUNDS=2 SECS=0.1 WARM_UP=0 OBJECTS=16 BENCH_DIR=$T OUT=$T/numbers.json
VERIFY=1 DISK_SIZE=1500MiB "$ROOT/bench/numbers" >table 2>err || fail "$(<err)"
assert_eq "$(sed -n 1p table | cut -d, -f2-)" " gantryd and the software NIC on one machine, 2 rounds of 0.1 s each way"
for row in 'PUT \| 4k' 'PUT \| 100k' 'GET \| 4k' 'GET \| 100k'; do
	grep -qE "^\| $row \| 2 \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ [mµ]s, [0-9.]+ [mµ]s \| [0-9.]+ [mµ]s, [0-9.]+ [mµ]s \| [0-9]+, [0-9]+ \| [0-9]+, [0-9]+ \|$" table || fail "no row $row: $(<table)"
done
assert_eq "$(wc -l <table)" 8
assert_eq "$(/usr/bin/python3 -c 'import json; o = json.load(open("numbers.json")); print(sum(x["op"] == "bench" for x in o))')" 8

# Another server, which has no RDMA: no number is passed off as one.
NO_NIC=1 RDMA='{ devices: none }'
start_daemon
"$ROOT/bench/numbers" "$URL_S3/bkt" >table 2>err && fail "a table without RDMA: $(<table)"
grep -q 'bench/numbers: put of 4k did not go by RDMA: [a-z]' err || fail "$(<err)"
assert_eq "$(curl_s3 '/bkt?list-type=2' | grep -c '<Key>')" 0
"$ROOT/bench/numbers" --wrong >table 2>err
assert_eq $? 2
