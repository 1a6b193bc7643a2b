#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry bench: what it says it moved is what the daemon counted, by RDMA and over HTTP; it finds a damaged byte; it leaves nothing behind
# and touches nothing of others, also when a signal ends it or the daemon dies; and what it answers to options that make no sense.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
DISK_SIZE=256MiB
start_daemon
cd "$T" || exit 1
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GANTRY_ADMIN

# says RC WORDS...: standard output goes to out, errors to err
says() {
	local rc=$1 have
	shift
	gantry bench "$@" >out 2>err
	have=$?
	[ $have = "$rc" ] || fail "gantry bench $*: exit $have, want $rc: $(cat out err)"
}
error_has() { grep -qF -- "$1" err || fail "no \"$1\" in: $(<err)"; }
out_has() { grep -qE -- "$1" out || fail "no $1 in: $(<out)"; }
# json EXPRESSION: of the lines of out; `rows` are those of measured rows, `ratio` and `end` the others
json() {
	/usr/bin/python3 - "$1" <<-'END'
		import json, sys
		lines = [json.loads(x) for x in open("out")]
		rows = [x for x in lines if x["op"] == "bench"]
		ratio = [x for x in lines if x["op"] == "bench-ratio"]
		begin, end = lines[0], lines[-1]
		assert begin["op"] == "bench-begin" and end["op"] == "bench-end", lines
		print(eval(sys.argv[1]))
	END
}
holds() { [ "$(json "$1")" = True ] || fail "not so: $1 in $(<out)"; }
keys() { curl_s3 "/bkt?list-type=2" | grep -o '<Key>[^<]*' | cut -c6- | sort; }
buckets() { curl_s3 / | grep -o '<Name>[^<]*' | cut -c7- | sort | tr '\n' ' '; }
counters() {
	local w d
	for w in rdma http; do for d in pull push; do metric gantry_transfer_bytes_total "direction=\"$d\",transport=\"$w\""; done; done
	for w in PutObject GetObject HeadObject DeleteObject; do curl_admin /metrics | awk -v w="\"$w\"" '/^gantry_requests_total/ && index($0, w) && /code="20/ { s += $NF } END { print s + 0 }'; done
}
bytes pattern:1 5000 | curl -sS --fail -T - "$URL_S3/bkt/foreign" || fail curl
# The process of gantry below a job.
_bench_of() { local p; for p in $1 $(cat /proc/"$1"/task/*/children); do case $(readlink "/proc/$p/exe") in */gantry) echo "$p"; return ;; esac; done; fail "no gantry below $1"; }
nothing_left() {
	assert_eq "$(keys)" foreign "keys that are left"
	assert_eq "$(buckets)" "bkt "
	assert_eq "$(curl_s3 /bkt/foreign | md5)" "$(bytes pattern:1 5000 | md5)"
}

# ---- the daemon's counters move by what bench says that it moved
counters >before
says 0 --json --verify --admin "$URL_ADMIN" --way rdma,http --rounds 2 --count 40 --warm-up 0.02 --sizes 10000,1:3+300k:2 --concurrency 1,5 --objects 20 \
	--mix put,get:50+put:20+head:20+delete:10 "$URL_S3/bkt"
# Metrics are of a moment ago.
told() { counters >after; [ "$(json "[$(paste -d- after before | tr '\n' ',')] == [end['put_bytes']['rdma'], end['get_bytes']['rdma'], end['put_bytes']['http'], end['get_bytes']['http'], end['puts'], end['gets'], end['heads'], end['deletes']]")" = True ]; }
wait_for 60 told
holds "len(rows) == 16 and all(r['operations'] == 80 and r['errors'] == 0 and r['damaged'] == 0 and r['rounds'] == 2 for r in rows)"
holds "all((r['rdma_bytes'], r['http_bytes']) == ((r['bytes'], 0) if r['way'] == 'rdma' else (0, r['bytes'])) for r in rows)"
holds "all(r['put']['bytes'] == r['bytes'] == (80 * 10000 if r['sizes'] == '10000' else r['bytes']) for r in rows if r['mix'] == 'put')"
holds "all(r[o]['operations'] > 0 for r in rows if r['mix'] != 'put' for o in ('put', 'get', 'head'))"
holds "all(0 < l['p50'] <= l['p90'] <= l['p99'] <= l['p99_9'] <= l['max'] and 0 < l['mean'] <= l['max'] for r in rows for o in ('put', 'get', 'head', 'delete') if o in r and r[o]['operations'] for l in [r[o]['latency_us']])"
holds "all(r['client_cpu']['seconds'] > 0 and r['server_cpu']['seconds'] > 0 for r in rows)"
holds "len(ratio) == 8 and all(r['valid'] and r['rate'] > 0 and r['server_cpu'] > 0 for r in ratio) and begin['loop'] == 'closed' and not end['interrupted']"
nothing_left

# ---- the table; a bucket of its own; a prefix; the scality dialect
says 0 --count 20 --objects 8 --warm-up 0 --sizes 4k --concurrency 2 --way rdma,http --rounds 1 --admin "$T/admin.sock" "$URL_S3"
out_has '^http://.*/gantry-bench-[0-9a-f]{16}/, seed [0-9]+$'
out_has '^closed loop'
out_has '^put +4k +2 rdma +100% +[0-9.]+ +[0-9.]+ +[0-9.]+ [mu]?s .* [0-9]+\.[0-9]+ +[0-9]+\.[0-9]+$'
out_has '^get +4k +2 http +0% '
out_has '^ratio  RDMA : HTTP = [0-9.]+ objects/s .* server$'
nothing_left
says 0 -q --count 5 --objects 2 --warm-up 0 --sizes 1 --concurrency 1 "$URL_S3/bkt/some/where/"
nothing_left
says 0 --json --verify --count 30 --objects 8 --warm-up 0 --sizes 20000 --concurrency 3 --scality "$URL_SCAL"
holds "all(r['rdma_bytes'] == 600000 for r in rows)"
says 0 --json --rate 40 --time 0.5 --warm-up 0 --sizes 4k --concurrency 4 --mix put "$URL_S3/bkt"
holds "begin['loop'] == 'open' and 0 < rows[0]['operations'] <= 40 * rows[0]['seconds'] + 4"

# ---- while it runs: top shows it, a byte of somebody else's is found, the keys follow from the seed
gantry bench --verify --mix get --objects 4 --concurrency 2 --sizes 100k --time 600 --warm-up 0 --seed 5 "$URL_S3/bkt" >out 2>err &
job=$!
objects() { [ "$(keys | wc -l)" = 5 ]; }
gets() { [ "$(metric gantry_requests_total 'operation="GetObject"')" -gt $((so_far + 10)) ]; }
so_far=$(metric gantry_requests_total 'operation="GetObject"')
wait_for 60 objects
wait_for 60 gets
top_shows() { # in an interval in which the machine had time for some
	gantry --admin "$URL_ADMIN" --interval 0.3 --count 1 top >top.out && awk '$1 == "rdma" { exit !($2 > 0 && $5 > 0) }' top.out && grep -q GetObject top.out
}
wait_for 60 top_shows
keys | grep -o '[0-9a-f]*$' | grep -v foreign | tail -n 4 >keys.first
victim=$(keys | grep gantry-bench | head -n 1)
curl_s3 "/bkt/$victim" >victim
assert_eq "$(stat -c %s victim)" 102400
printf '\377' | dd of=victim bs=1 seek=54321 conv=notrunc status=none
printf '\376' | dd of=victim bs=1 seek=54322 conv=notrunc status=none
curl -sS --fail -T victim "$URL_S3/bkt/$victim" || fail curl
found() { grep -q damaged err; }
wait_for 60 found
kill -INT "$(_bench_of $job)"
wait $job
assert_eq $? 130 "exit status after SIGINT: $(<err)"
grep -qE "gantry: bench: get http://[^ ]*/$victim: damaged: byte 5432[12] of 102400 is not what was stored" err || fail "$(<err)"
error_has "answers were not what had been stored"
error_has "stopped; removing what was made"
nothing_left

# ---- a signal while objects are made, in a bucket of its own
gantry bench --sizes 4k --objects 1000000 --mix get --seed 5 "$URL_S3" >out 2>err &
job=$!
made() { [ "$(buckets)" != "bkt " ] && [ "$(metric gantry_store_objects)" -gt 50 ]; }
wait_for 60 made
own=$(buckets | tr ' ' '\n' | grep gantry-bench)
[ "$(wc -l <keys.first)" = 4 ] || fail "keys: $(<keys.first)"
while read -r key; do assert_eq "$(head_status "/$own/$key")" 200 "a key of the same seed"; done <keys.first
kill -TERM "$(_bench_of $job)"
wait $job
assert_eq $? 130 "exit status after SIGTERM: $(<err)"
nothing_left

# ---- not by RDMA: it says why, and --require-rdma makes it an error; what is asked for over HTTP is none
softnicctl port mlx5_0 down || fail softnicctl
says 4 --require-rdma --count 10 --objects 4 --warm-up 0 --sizes 4k --concurrency 2 --way rdma,http --rounds 1 "$URL_S3/bkt"
out_has '^no RDMA: mlx5_0 port 1 is not active'
out_has 'not by RDMA: 10: mlx5_0 port 1 is not active'
out_has '^put +4k +2 rdma +0%'
out_has '^ratio  none'
says 2 --require-rdma --way http "$URL_S3/bkt"
softnicctl port mlx5_0 up || fail softnicctl
says 0 --require-rdma --count 10 --objects 4 --warm-up 0 --sizes 4k --concurrency 2 --way rdma,http --rounds 1 "$URL_S3/bkt"
nothing_left

# ---- words
for bad in "--sizes 0:--sizes wants sizes from 1 to 4 GiB - 1, such as 4k,1m or 4k:70+1m:30: 0" "--concurrency 2000:--concurrency wants numbers from 1 to 1024" \
	"--mix delete:--mix wants put, get, head and delete" "--way tcp:--way wants rdma, http or rdma,http: tcp" "--time 0:--time wants seconds" \
	"--warm-up x:--warm-up wants seconds" "--rounds 101:--rounds wants a number from 1 to 100" "--objects 3:--objects must be as many as --concurrency" \
	"--rate 0:--rate wants requests a second" "--seed -1:--seed wants a number"; do
	# shellcheck disable=SC2086
	says 2 ${bad%%:*} "$URL_S3/bkt"
	error_has "${bad#*:}"
	[ ! -s out ] || fail "bad words and an output: $(<out)"
done
says 2 bkt
error_has "not a URL"
says 2 "$URL_S3/bkt?x=y"
error_has "bench: the URL has a query"
says 1 http://127.0.0.1:1/bkt
error_has "no answer at 127.0.0.1:1"
says 1 "$URL_ADMIN"
error_has "this is gantryd's admin port"
says 3 "$URL_S3/no-such-bucket"
error_has "NoSuchBucket"
says 1 --admin 127.0.0.1:1 "$URL_S3/bkt"
error_has "--admin: "
says 1 --admin "$S3" "$URL_S3/bkt"
error_has "does not say process_cpu_seconds_total"
nothing_left

# ---- the disk is full; the daemon is gone
says 1 --json --sizes 50m --concurrency 1 --objects 6 --mix put --count 6 --warm-up 0 --no-rdma "$URL_S3/bkt"
holds "rows[0]['errors_by_kind'].get('InsufficientStorage', 0) > 0 and rows[0]['errors'] == sum(rows[0]['errors_by_kind'].values())"
nothing_left
gantry bench --sizes 4k --objects 8 --time 600 "$URL_S3/bkt" >out 2>err &
job=$!
so_far=$(metric gantry_requests_total 'operation="PutObject"')
puts() { [ "$(metric gantry_requests_total 'operation="PutObject"')" -gt $((so_far + 20)) ]; }
wait_for 60 puts
kill_daemon
wait $job
assert_eq $? 1 "exit status without a server"
error_has "given up: 10 requests of one thread failed one after the other"
grep -qE "gantry: bench: [0-9]+ objects could not be removed: $URL_S3/bkt/gantry-bench-[0-9a-f]+/" err || fail "what is left is not told: $(<err)"
