#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# When the cluster fails: OSDs that stand still, a pool that is full, a gateway on the blocklist, monitors that are gone.  Requests end
# by their deadlines and give back what they held, no core waits for librados, and operators are told which pool and why.
MORE='limits: { s3_progress: 4s, s3_total: 8s, scality_total: 8s }'
. "$(dirname "$0")/lib.sh"
own_cluster OSDS=2
# The index is on one of them, the data on the other.
for o in 0 1; do
	ceph osd crush rm-device-class osd.$o
	ceph osd crush set-device-class only$o osd.$o
	ceph osd crush rule create-replicated only$o default osd only$o
done >>"$T/ceph.log"
ceph osd pool set gantry.meta crush_rule only0
ceph osd pool set gantry.data crush_rule only1
start_daemon
reasons() { curl_admin /healthz | jq -r '.reasons[].text'; }
ready_is() { [ "$(curl -sS -o "$T/readyz" -w '%{http_code}' "$URL_ADMIN/readyz")" = "$1" ]; }
late() { [ "$(number_of operations_late)" -gt 0 ]; }
used_buffers() { metric gantry_buffers '"used"'; }
head -c 3000000 /dev/urandom >"$T/body"
for i in $(seq 16); do assert_status PUT "/bkt/k$i" 200 -T "$T/body"; done

# What cores have waited for a CPU, in us, is the machine's; one that waits for an OSD sleeps.  And the most that a call of librados took.
cpu_wait() { grep -lx 'core[0-9]*' "/proc/$DAEMON_PID"/task/*/comm | sed 's/comm$/schedstat/' | xargs cat | awk '{ if ($2 > m) m = $2 } END { print int(m / 1000) }'; }
longest_call() { curl_admin /disks | jq '[.[].longest_call_us] | max'; }
rss() { awk '/^VmRSS/ { print $2 * 1024 }' "/proc/$DAEMON_PID/status"; }
unwritten() { metric gantry_store_unwritten_bytes 'disk="gantry.data"'; }

# ---- OSDs that stand still, with 64 requests under way, some of them by RDMA
# Data that was sent waits until it is written, beyond its request: so something waits, however long it takes to look at it from all sides.
status_of PUT /bkt/slow -T "$T/body" --limit-rate 500k >"$T/slow" &
pids[0]=$!
sleep 1
waited=$(cpu_wait)
for o in 0 1; do kill -STOP "$(cat "$CLUSTER/osd.$o.pid")"; done
began=$(date +%s)
for i in $(seq 28); do
	{ status_of GET "/bkt/k$((i % 16 + 1))"; echo; } >"$T/got$i" &
	pids[i]=$!
	{ status_of PUT "/bkt/new$i" -T "$T/body"; echo; } >"$T/put$i" &
	pids[i + 100]=$!
done
for i in 1 2 3 4; do
	(nic "$BUILD/gantry" --require-rdma put "$T/body" "$URL_S3/bkt/rdma$i" >"$T/wire$i" 2>&1) &
	pids[i + 200]=$!
	(nic "$BUILD/gantry" --require-rdma get "$URL_S3/bkt/k$i" "$T/wire.out$i" >"$T/wireget$i" 2>&1) &
	pids[i + 300]=$!
done
# Requests that came later have their own time, whatever is ended of those that came before.
sleep 2
for i in $(seq 8); do
	{ curl -sS -o /dev/null -w '%{http_code} %{time_total}\n' "$URL_S3/bkt/k$i"; } >"$T/later$i" &
	pids[i + 400]=$!
done
wait_for 20 late
# Every metric that only this back end has is there.
for m in late_operations oldest_wait_seconds unwritten_bytes longest_call_seconds epoch_age_seconds gateways gateways_cleaned_up_total; do
	[ -n "$(metric gantry_store_$m)" ] || fail "no metric gantry_store_$m"
done
# ... and names the pool.
of_pools() { metric "$1" 'disk="gantry.' | cut -d. -f1; }
waits_long() { [ "$(of_pools gantry_store_oldest_wait_seconds)" -gt 2 ] && [ "$(of_pools gantry_store_late_operations)" -gt 0 ]; }
wait_for 20 waits_long
assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' "$URL_ADMIN/livez")" 200 "livez"
told() { reasons | grep -qE '^pool gantry\.(data|meta): [0-9]+ operations? waits?, the oldest since [0-9]+ s for pg [0-9]+\.[0-9a-f]+ on osd\.[01]$'; }
wait_for 20 told
assert_match "$(nic "$BUILD/gantry" --admin "$T/admin.sock" doctor 2>&1)" 'pool gantry.(data|meta): [0-9]+ operations? waits?, the oldest since [0-9]+ s' "doctor"
# The status page, and what operators type, say it of the pool.
assert_eq "$(curl_admin /status | jq -r '.store | [.backend, .disks, .disks_failed] | join(" ")')" "rados 2 0" "status"
page() { /usr/bin/node "$ROOT/tests/rados/page.js" "$T/admin.sock" "$ROOT/src/admin/page.html" >"$T/page" 2>&1; }
page || fail "the status page: $(cat "$T/page")"
grep -qE '^reasons: .*pool gantry\.(data|meta): [0-9]+ operations? waits?, the oldest since [0-9]+ s for pg [0-9.a-f]+ on osd\.[01]' "$T/page" ||
	fail "the status page does not say why: $(cat "$T/page")"
grep -qE '^disks: .*gantry\.(data|meta) pool serving .*[0-9]+ operations? waits?, the oldest since [0-9]+ s' "$T/page" || fail "the status page's pools: $(cat "$T/page")"
! grep -qP '^disks: .*the oldest since(?:(?!gantry\.).)*the oldest since' "$T/page" || fail "the status page says it twice of one pool: $(cat "$T/page")"
assert_match "$(nic "$BUILD/gantry" --admin "$T/admin.sock" status 2>&1)" 'gantry\.(data|meta) serving, [^:]*: [0-9]+ operations? waits?, the oldest since' "gantry status"
wait_for 30 ready_is 503
grep -qE 'the store does not answer: pool gantry\.(data|meta): ' "$T/readyz" || fail "readyz: $(cat "$T/readyz")"
[ "$(jq -r '.reasons[].code' "$T/readyz")" = store_silent ] || fail "readyz: $(cat "$T/readyz")"
wait "${pids[@]}"
assert_eq "$(cat "$T"/got[0-9]* "$T"/put[0-9]* | sort | uniq -c | xargs)" '56 503' "what they were told"
answered=$(($(stat -c %Y "$T"/got[0-9]* "$T"/put[0-9]* "$T"/wire* | sort -n | tail -n 1) - began))
[ $answered -lt 60 ] || fail "the last one was answered after $answered s"
# The OSDs stand still yet: buffers are back.
nothing_used() { [ "$(used_buffers)" = 0 ]; }
wait_for 10 nothing_used
awk '$1 != 503 || $2 < 3.9 { print; e = 1 } END { exit e }' "$T"/later* || fail "requests of 4 s were ended when others had to"
longest=$(longest_call) waited=$(($(cpu_wait) - waited))
[ "$longest" -lt $((100000 + waited)) ] || fail "a call of librados took $longest us; $waited us were waited for a CPU"
# Of OSDs that stood still the leases for reads have run out ("laggy"), and who is marked down then may not learn of it for minutes: only
# those that start anew serve for sure.  (That one goes on is two_osds'.)
anew() {
	local o
	for o in "$@"; do
		"$ROOT/tests/rados/rados-one" kill "$CLUSTER" "$o" >>"$T/ceph.log" 2>&1
		"$ROOT/tests/rados/rados-one" start "$CLUSTER" "$o" >>"$T/ceph.log" 2>&1 || fail "OSD $o does not start: $(tail -3 "$T/ceph.log")"
	done
}
anew 0 1
serves() { [ "$(status_of GET /bkt/k1)" = 200 ] && [ "$(status_of PUT /bkt/after -T "$T/body")" = 200 ]; }
wait_for 60 serves
wait_for 20 ready_is 200
quiet() { [ -z "$(reasons)" ]; }
wait_for 30 quiet
curl -sS "$URL_S3/bkt/k1" | cmp - "$T/body" || fail "k1"
# With bytes that move: rates are the pools' own, and no number is none.
busy() { while [ ! -e "$T/over" ]; do curl -sS -o /dev/null "$URL_S3/bkt/k1"; done; }
busy &
worker=$!
page || fail "the status page: $(cat "$T/page")"
grep -qE '^disks: .*gantry\.data pool serving +[0-9.]+[^0-9]{1,2}[KMG]iB/s' "$T/page" || fail "what moves is not seen on the status page: $(cat "$T/page")"
! grep -E 'NaN|undefined' "$T/page" || fail "a number that is none"
nic "$BUILD/gantry" --admin "$T/admin.sock" --interval 1 --count 2 top >"$T/top" 2>&1 || fail "gantry top: $(cat "$T/top")"
grep -qE ' serving +[0-9.]+[^0-9]{1,2}[KMG]iB .* gantry\.data$' "$T/top" || fail "gantry top: $(cat "$T/top")"
touch "$T/over"
wait $worker
assert_alive

# ---- data that nobody answers for, while clients try their PUTs again: they are given buffers, and librados keeps what they have sent before
# up to a bound, which is beyond what it would block a core for by itself (100 MiB), and no further.
bound=$((2 * 64 << 20)) before=$(longest_call) waited=$(cpu_wait) rss=$(rss)
kill -STOP "$(cat "$CLUSTER/osd.1.pid")"
at_bound() { [ "$(unwritten)" -ge $bound ]; }
# Each leaves what a request may have under way, half a MiB.
curl -sS --parallel --parallel-immediate --parallel-max 100 -o /dev/null -w '%{http_code}\n' -T "$T/body" "$URL_S3/bkt/again[1-600]" >"$T/again" 2>/dev/null &
again=$!
wait_for 60 at_bound
told() { reasons | grep -qE '^pool gantry\.data: .*; 1[2-9][0-9] MiB unwritten: PUTs are refused$'; }
wait_for 10 told
began=$(date +%s)
assert_status PUT /bkt/refused 503 -T "$T/body"
assert_status PUT /bkt/refused 503 -d small
[ $(($(date +%s) - began)) -le 3 ] || fail "PUTs that are refused waited for $(($(date +%s) - began)) s"
assert_status DELETE /bkt/k6 204
assert_eq "$(curl_s3 '/bkt?list-type=2&max-keys=1' | grep -c '<Key>')" 1 "list"
wait $again
assert_eq "$(sort "$T/again" | uniq -c | xargs)" '600 503' "what they were told who tried again"
most=$((bound + (64 << 20))) # who has buffers goes on
[ "$(unwritten)" -le $most ] || fail "librados keeps $(unwritten) bytes, at most $most"
grown=$(($(rss) - rss))
[ $grown -lt $((most + (64 << 20))) ] || fail "the process has grown by $grown bytes"
longest=$(longest_call) waited=$(($(cpu_wait) - waited))
[ "$longest" = "$before" ] || [ "$longest" -lt $((100000 + waited)) ] || fail "a call of librados took $longest us; $waited us were waited for a CPU"
echo "librados kept $(unwritten) bytes, the process grew by $grown, the longest call took $longest us, cores waited $waited us for a CPU"
anew 1
wait_for 60 serves
written() { [ "$(unwritten)" -lt 1000000 ]; }
wait_for 60 written
wait_for 30 quiet

# ---- an index that nobody answers for, while clients try again: what waits for it are their requests, and nothing when these are over,
# but for the PUTs of keys that were remembered, which came before it was late
many() { curl -sS --parallel --parallel-immediate --parallel-max 100 -o /dev/null -w '%{http_code}\n' "$@" 2>/dev/null | sort | uniq -c | xargs; }
live_requests() { curl_admin /requests | jq length; }
echo small >"$T/little"
echo '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>' >"$T/tags"
for i in $(seq 20); do assert_status PUT "/bkt/new$i" 200 -T "$T/little"; done
kill -STOP "$(cat "$CLUSTER/osd.0.pid")"
assert_eq "$(many -T "$T/little" "$URL_S3/bkt/late[1-100]")" '100 503' "PUTs"
sent=$(unwritten) left=$(live_requests)
assert_eq "$(many -T "$T/little" "$URL_S3/bkt/later[1-200]")" '200 503' "PUTs of clients that try again"
assert_eq "$(many -X DELETE "$URL_S3/bkt/new[1-80]")" '80 503' "DELETEs"
assert_eq "$(many -T "$T/tags" "$URL_S3/bkt/k[1-16]?tagging")" '16 503' "tags"
not_more() { [ "$(unwritten)" -le "$sent" ] && [ "$(live_requests)" -le "$left" ]; }
wait_for 20 not_more
# One change of each shard is under way, and nothing else.
few_wait() { [ "$(metric gantry_store_late_operations 'disk="gantry.meta"')" -le 4 ]; }
wait_for 20 few_wait
anew 0
wait_for 60 serves
wait_for 60 written
wait_for 30 quiet

# ---- a pool that is full
ceph osd pool set-quota gantry.data max_bytes 1000000
refused() { [ "$(status_of PUT /bkt/full -T "$T/body")" = 507 ]; }
# A piece that was on its way to an OSD that had not heard of it may be taken behind the first refusal; then it is not full, until the next.
says_full() { refused; reasons | grep -q '^pool gantry.data: full: new objects are refused$'; }
wait_for 90 refused
assert_status GET /bkt/k2 200
assert_eq "$(curl_s3 '/bkt?list-type=2&max-keys=1' | grep -c '<Key>')" 1 "list"
assert_status DELETE /bkt/k2 204
assert_status GET /bkt/k2 404
wait_for 20 says_full
ceph osd pool set-quota gantry.data max_bytes 0
takes() { [ "$(status_of PUT /bkt/full -T "$T/body")" = 200 ]; }
wait_for 60 takes
wait_for 10 quiet

# ---- a cluster that is full: the same; and what is deleted makes room, although no OSD takes anything
full_from() { ceph osd set-nearfull-ratio "$1" && ceph osd set-backfillfull-ratio "$2" && ceph osd set-full-ratio "$3" || fail "$(tail -3 "$T/ceph.log")"; }
full_from 0.0001 0.0002 0.0003
wait_for 90 refused
assert_status GET /bkt/k3 200
assert_eq "$(curl_s3 '/bkt?list-type=2&max-keys=1' | grep -c '<Key>')" 1 "list"
data_objects() { rados -p gantry.data ls | wc -l; }
before=$(data_objects)
for k in k3 k4 k5; do assert_status DELETE "/bkt/$k" 204; done
assert_status GET /bkt/k3 404
made_room() { [ "$(data_objects)" -le $((before - 3)) ]; }
wait_for 60 made_room
wait_for 20 says_full
full_from 0.80 0.82 0.85
wait_for 60 takes
wait_for 10 quiet

# ---- monitors that are gone: what is connected goes on
kill -STOP "$(cat "$CLUSTER/mon.pid")"
for i in 1 2 3 4 5 6; do
	assert_status PUT "/bkt/mon$i" 200 -T "$T/body"
	assert_status GET "/bkt/mon$i" 200
done
silent() { reasons | grep -qE '^pool gantry.meta: no monitor has answered for [0-9]+ s$'; }
wait_for 60 silent
assert_status GET /bkt/mon1 200
ready_is 200 || fail "without monitors: $(cat "$T/readyz")"
# A gateway that is started meanwhile waits, says so, and can be told to end.
admin() { curl -sS -o "$T/admin.out" -w '%{http_code}' --unix-socket "$T/late.sock" "http://x$1" 2>/dev/null; }
late_gateway() {
	sed "s|admin[0-9]*\.sock|late.sock|" "$T/gantryd.yaml" >"$T/late.yaml"
	"$BUILD/gantryd" -c "$T/late.yaml" -o rdma.devices=none >>"$T/late.log" 2>&1 &
	late=$!
	alive_not_ready() { [ "$(admin /livez)" = 200 ] && [ "$(admin /readyz)" = 503 ] && grep -q 'waiting for the cluster' "$T/admin.out"; }
	wait_for 20 alive_not_ready
}
late_gateway
says_so() { grep -q 'the cluster of .* cannot be reached as client.admin: .*; trying again' "$T/late.log"; }
wait_for 30 says_so
kill "$late"
wait "$late"
assert_eq $? 0 "ended while it waits"
late_gateway
kill -CONT "$(cat "$CLUSTER/mon.pid")"
late_ready() { [ "$(admin /readyz)" = 200 ]; }
wait_for 40 late_ready
kill "$late"
wait "$late"
assert_eq $? 0 "the one that waited"
wait_for 40 quiet

# ---- on the blocklist: the process ends, with a status after which systemd starts it anew, and that one serves
for a in $(ceph osd dump -f json | jq -r '.blocklist | keys[]?'); do fail "on the blocklist already: $a"; done
# shellcheck disable=SC2016
row=$(rados -p gantry.meta listomapkeys gantry | grep '^i' | head -1)
addr=$(rados -p gantry.meta getomapval gantry "$row" "$T/row" >/dev/null && strings -n 8 "$T/row" | grep -oE '127\.0\.0\.1:0/[0-9]+' | head -1)
[ -n "$addr" ] || fail "no address in $row: $(strings "$T/row")"
ceph osd blocklist add "$addr" 3600
gone() { ! _runs "$DAEMON_PID"; }
wait_for 30 gone
wait "$_daemon_job" 2>/dev/null
rc=$?
assert_eq $rc 1 "exit status"
assert_eq "$(grep -c "^RestartPreventExitStatus=.*\b$rc\b" "$ROOT/systemd/gantryd.service")" 0 "systemd starts it anew"
wait_for 60 grep -q 'another gateway has taken over' "$T/daemon.log"
daemon_run
assert_status GET /bkt/mon1 200
assert_status PUT /bkt/again 200 -T "$T/body"
cleaned() { [ "$(number_of gateways_cleaned_up)" = 1 ] && [ "$(number_of gateways)" = 1 ]; }
wait_for 60 cleaned
stop_daemon
fsck || fail "at the end: $(cat "$T/fsck")"

# ---- pools that are not there: no start, and at run time 503
refused_for() { # the reason
	NO_NIC=1 nic "$BUILD/gantryd" -c "$T/gantryd.yaml" -o rdma.devices=none >"$T/out" 2>&1
	assert_eq $? 78 "$1: $(cat "$T/out")"
	grep -q "$1" "$T/out" || fail "$1: $(cat "$T/out")"
}
daemon_run
ceph osd pool delete gantry.data gantry.data --yes-i-really-really-mean-it
is_gone() { reasons | grep -q '^pool gantry.data: it was removed from the cluster$'; }
wait_for 30 is_gone
assert_status GET /bkt/mon1 503
assert_status PUT /bkt/mon1 503 -T "$T/body"
assert_status DELETE /bkt/nothing 204
ceph osd pool delete gantry.meta gantry.meta --yes-i-really-really-mean-it
wait_for 30 gone
wait "$_daemon_job" 2>/dev/null
assert_eq $? 1 "exit status without a table of gateways"
refused_for 'pool gantry.meta: there is no such pool'
