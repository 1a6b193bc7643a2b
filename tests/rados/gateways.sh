#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two gateways on one store: what one has acknowledged the other has; of writers that race through both, one wins each time; one that is
# killed in the middle of PUTs is cleaned up after by the other, nothing that was acknowledged is lost, and nothing is left over.
MORE=''
. "$(dirname "$0")/../system/lib.sh"
# What does not answer is a failure, and not a test that waits for ever.
curl() { command curl --max-time 60 "$@"; }
write_config
# Each has two connections to the cluster, as one of more than four cores would.
sed -i 's/index_shards: 4/index_shards: 4, dead_after: 5s, clients: 2/' "$T/gantryd.yaml"
format_store
sed "s|admin.sock|admin2.sock|" "$T/gantryd.yaml" >"$T/second.yaml"
daemon_run
make_buckets
first=$DAEMON_PID first_job=$_daemon_job one=$URL_S3
mv "$T/gantryd.yaml" "$T/first.yaml"
mv "$T/second.yaml" "$T/gantryd.yaml"
daemon_run
two=$URL_S3

head -c 9000000 /dev/urandom >"$T/big"
head -c 300000 /dev/urandom >"$T/middle"

# ---- what one has acknowledged, the other has ----
for f in big middle; do
	curl -sS -T "$T/$f" "$one/bkt/$f" || fail "put $f"
	curl -sS "$two/bkt/$f" | cmp - "$T/$f" || fail "$f is not at the other gateway"
	curl -sS "$two/bkt?list-type=2" | grep -q "<Key>$f</Key>" || fail "$f is not in the other gateway's list"
done
curl -sS -X DELETE "$two/bkt/middle"
assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' "$one/bkt/middle")" 404 "deleted by the other"
# A bucket that one removes, and makes anew, is the other's, too.
curl -sS -X PUT "$one/again"
curl -sS -T "$T/middle" "$two/again/x" || fail "put into a new bucket"
assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' -X DELETE "$one/again")" 409 "a bucket with the other's object"
curl -sS -X DELETE "$one/again/x"
assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' -X DELETE "$one/again")" 204 "an empty bucket"
assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' -T "$T/middle" "$two/again/x")" 404 "a bucket that the other removed"
curl -sS -X PUT "$two/again"
curl -sS -T "$T/middle" "$one/again/y" || fail "put into a bucket made anew"

# ---- GETs that found something again and again ask for less: what the other one removes is seen all the same ----
answer() { curl -sS -o "$T/answer" -w '%{http_code} ' "$1"; sed -n 's:.*<Code>\(.*\)</Code>.*:\1:p' "$T/answer"; }
for r in 1 2; do
	curl -sS -X PUT "$two/often"
	for k in a b; do echo "$k$r" | curl -sS -T - "$two/often/$k" || fail "put into often"; done
	for n in $(seq 20); do assert_eq "$(curl -sS "$one/often/a")" "a$r" "GET $n"; done
	curl -sS -X DELETE "$two/often/b"
	assert_eq "$(answer "$one/often/b")" "404 NoSuchKey" "removed by the other"
	for n in $(seq 20); do curl -sS "$one/often/a" >"$T/answer"; done
	curl -sS -X DELETE "$two/often/a"
	assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' -X DELETE "$two/often")" 204 "an empty bucket"
	assert_eq "$(answer "$one/often/a")" "404 NoSuchBucket" "a bucket that the other removed"
done

# ---- races: of PUTs that ask for absence, through both, one wins ----
for r in 1 2 3 4 5; do
	pids=()
	for w in 1 2 3 4 5 6; do
		url=$one
		[ $((w % 2)) = 0 ] || url=$two
		{ echo "$r.$w" | curl -sS -o /dev/null -w '%{http_code}\n' -H 'If-None-Match: *' -T - "$url/bkt/race$r" >"$T/race.$w"; } &
		pids+=($!)
	done
	wait "${pids[@]}"
	assert_eq "$(cat "$T"/race.[1-6] | grep -c '^200$')" 1 "one of six wins, round $r"
	assert_eq "$(cat "$T"/race.[1-6] | grep -c '^412$')" 5 "and five do not, round $r"
	won=$(grep -l '^200$' "$T"/race.[1-6])
	assert_eq "$(curl -sS "$one/bkt/race$r")" "$r.${won##*.}" "whoever won has written, round $r"
done

# ---- what a gateway remembers of a key spares it the look, and refuses nothing that the other one has made possible ----
meta_reads() { curl -sS --unix-socket "$T/$1" http://x/metrics | awk '$1 ~ /^gantry_store_operations_total.*disk="gantry.meta".*"read"/ { print $2 }'; }
before=$(meta_reads admin.sock)
for n in $(seq 30); do curl -sS -T "$T/middle" "$one/bkt/again-and-again" || fail "put again"; done
for n in $(seq 60); do echo "$n" | curl -sS -T - "$one/again/new$n" || fail "put new$n"; done
looked=$(($(meta_reads admin.sock) - before))
[ "$looked" -lt 60 ] || fail "for 90 PUTs, 30 of one key and 60 of new ones, the index was read $looked times"
put_at() { # gateway key value [condition]
	curl -sS -o /dev/null -w '%{http_code}' ${4:+-H "$4"} -d "$3" -X PUT "$1/bkt/$2"
}
for n in $(seq 12); do
	a=$one b=$two
	[ $((n % 2)) = 0 ] || a=$two b=$one
	assert_eq "$(put_at "$a" to-and-fro "a$n")" 200 "put through one"
	assert_eq "$(put_at "$b" to-and-fro "b$n" 'If-None-Match: *')" 412 "what the other made is seen"
	assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' -X DELETE "$b/bkt/to-and-fro")" 204 "removed through the other"
	assert_eq "$(put_at "$a" to-and-fro "c$n" 'If-None-Match: *')" 200 "that it is gone is seen"
	assert_eq "$(put_at "$b" to-and-fro "d$n" "If-Match: \"$(printf c$n | md5sum | cut -d' ' -f1)\"")" 200 "its ETag is seen"
	assert_eq "$(curl -sS "$a/bkt/to-and-fro")" "d$n" "the last one counts"
done
for n in $(seq 60); do curl -sS -o /dev/null -X DELETE "$two/again/new$n"; done

# ---- an object that is open at one is replaced at the other, and read to its end ----
epoch_age() { metric gantry_store_epoch_age_seconds | cut -d. -f1; }
head -c 30000000 /dev/urandom >"$T/long" # more than sockets hold
curl -sS -T "$T/long" "$one/bkt/long" || fail "put long"
curl -sS --limit-rate 1500k "$one/bkt/long" >"$T/slow" &
slow=$!
sleep 0.5
for n in 1 2 3; do curl -sS -T "$T/middle" "$two/bkt/long"; done
# It holds back the removal of what was replaced, which is told at the other gateway.
held() { [ "$(epoch_age)" -ge 7 ]; }
wait_for 15 held
wait "$slow" || fail "a slow reader of what was replaced"
cmp "$T/slow" "$T/long" || fail "a slow reader got other bytes"
goes_on() { [ "$(epoch_age)" -lt 5 ]; }
wait_for 20 goes_on

# ---- the scrub: each reads its share of the keys, all together all of them once
for n in $(seq 40); do echo "$n" | curl -sS -o /dev/null -T - "$one/bkt/share/$n" || fail "put share/$n"; done
all=$(($(curl -sS "$one/bkt?list-type=2" | grep -o '<Key>' | wc -l) + $(curl -sS "$one/again?list-type=2" | grep -o '<Key>' | wc -l)))
read_by() { curl -sS --unix-socket "$T/$1" http://x/metrics | awk '$1 == "gantry_scrub_objects_total" { print $2 }'; }
walked() { [ "$(curl -sS --unix-socket "$T/$1" http://x/metrics | awk '$1 == "gantry_scrub_walks_total" { print $2 }')" = 1 ]; }
# Who knows of the other gateway only since a moment ago shares with it after its next look.
both_known() { [ "$(curl -sS --unix-socket "$T/$1" http://x/disks | jq '.[0].gateways')" = 2 ]; }
for s in admin.sock admin2.sock; do
	wait_for 10 both_known $s
	curl -sS -o /dev/null --unix-socket "$T/$s" -X POST http://x/control/scrub
	wait_for 60 walked $s
done
a=$(read_by admin.sock) b=$(read_by admin2.sock)
[ "$a" -gt 5 ] && [ "$b" -gt 5 ] && [ $((a + b)) = "$all" ] || fail "of $all objects the scrubs of two gateways have read $a and $b"

# ---- one is killed in the middle of PUTs ----
for w in 1 2 3 4; do
	for n in $(seq 200); do
		[ "$(curl -s -o /dev/null -w '%{http_code}' -T "$T/big" "$one/bkt/k$w.$((n % 3))")" = 200 ] || break
		echo "k$w.$((n % 3))" >>"$T/acked"
	done &
done
wait_for 20 test -s "$T/acked"
sleep 1
blocked() { ceph -c "$CEPH_CONF" osd dump -f json 2>/dev/null | jq '.blocklist | length'; }
before=$(blocked)
kill -KILL "$first"
wait "$first_job" 2>/dev/null
sleep 1
sort -u "$T/acked" >"$T/keys"
while read -r k; do
	curl -sS "$two/bkt/$k" | cmp - "$T/big" || fail "$k was acknowledged, and is not whole"
done <"$T/keys"
cleaned() {
	curl -sS "$URL_ADMIN/disks" | /usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin)[0]; sys.exit(d["gateways"] != 1 or d["gateways_cleaned_up"] != 1)'
}
wait_for 60 cleaned
assert_eq "$(($(blocked) - before))" 2 "connections of the dead one on the cluster's blocklist"
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" || fail "after the kill: $(cat "$T/fsck")"
assert_eq "$(cat "$T/fsck")" "gantryd: the store is clean" "after the kill"
# The one that is left takes over, and garbage goes.
swept() { curl -sS "$URL_ADMIN/disks" | /usr/bin/python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)[0]["garbage_removed"] == 0)'; }
curl -sS -T "$T/middle" "$two/bkt/k1.1"
wait_for 60 swept
stop_daemon
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" || fail "at the end: $(cat "$T/fsck")"

# ---- and one that is stopped for too long ends instead of going on: what it had under way changes nothing, through neither connection ----
disks_are() { curl -sS --unix-socket "$T/$1" http://x/disks | jq -e ".[0].$2" >/dev/null; }
# In the place of the one that is meant, which is number 2 from then on, whose status is that of a process that systemd starts anew.
start_second() {
	mv "$T/second.yaml" "$T/gantryd.yaml"
	daemon_run
	two=$URL_S3 second=$DAEMON_PID second_job=$_daemon_job log=$(wc -l <"$T/daemon.log")
	mv "$T/gantryd.yaml" "$T/second.yaml"
}
mv "$T/gantryd.yaml" "$T/second.yaml"
mv "$T/first.yaml" "$T/gantryd.yaml"
daemon_run
first=$DAEMON_PID first_job=$_daemon_job one=$URL_S3
mv "$T/gantryd.yaml" "$T/first.yaml"
stop_second() { # how many were cleaned up after before
	wait_for 10 disks_are admin.sock 'gateways == 2'
	kill -STOP "$second"
	wait_for 60 disks_are admin.sock "gateways_cleaned_up == $(($1 + 1))"
}
ends_by_itself() {
	over() { ! _runs "$second"; }
	wait_for 30 over
	wait "$second_job" 2>/dev/null
	assert_eq $? 1 "$1: exit status"
	tail -n "+$log" "$T/daemon.log" | grep -q "this gateway (number [0-9]*) is fenced by instance $instance on host $(hostname): " ||
		fail "$1: nothing was said of who fenced it"
}
fsck_is_clean() { nic "$BUILD/gantryd" -c "$T/first.yaml" --fsck >"$T/fsck" || fail "$1: $(cat "$T/fsck")"; }
start_second
instance=$(curl -sS --unix-socket "$T/admin.sock" http://x/disks | jq '.[0].instance')
pids=()
for w in $(seq 12); do
	curl -s -o /dev/null --limit-rate 1500k -T "$T/big" "$two/bkt/stopped$w" &
	pids+=($!)
done
sleep 2
stop_second 0
told() { curl -s -m 2 --unix-socket "$T/admin2.sock" http://x/healthz | jq -r '.reasons[].text' | grep "^pool gantry.meta: fenced by instance $instance on host $(hostname)$"; }
kill -CONT "$second"
until=$((SECONDS + 60))
until told >>"$T/told"; do
	_runs "$second" || fail "the one that was stopped has ended, and did not say who fenced it: $(grep 'fenced' "$T/daemon.log")"
	[ $SECONDS -lt $until ] || fail "the one that was stopped neither ends nor says who fenced it: $(tail -n 5 "$T/daemon.log")"
	sleep 0.05
done
ends_by_itself "on the blocklist"
wait "${pids[@]}"
curl -sS -T "$T/middle" "$one/bkt/after" || fail "put at the one that goes on"
fsck_is_clean "what was under way at the one that was stopped"

# ---- the same by the table of gateways alone, where the cluster goes on taking what it sends
blocklist() { ceph -c "$CEPH_CONF" osd dump -f json 2>/dev/null | jq -r '.blocklist | keys[]' | sort; }
start_second
curl -sS "$two/bkt/after" | cmp - "$T/middle" || fail "a GET after a new start"
blocklist >"$T/blocked"
stop_second 1
blocklist | comm -13 "$T/blocked" - >"$T/new"
assert_eq "$(wc -l <"$T/new")" 2 "connections on the blocklist"
while read -r a; do ceph -c "$CEPH_CONF" osd blocklist rm "$a" 2>/dev/null || fail "blocklist rm $a"; done <"$T/new"
kill -CONT "$second"
ends_by_itself "by its row"
start_second
curl -sS -T "$T/big" "$two/bkt/after" || fail "a PUT after a new start"
curl -sS "$one/bkt/after" | cmp - "$T/big" || fail "a GET after that"
stop_daemon
DAEMON_PID=$first _daemon_job=$first_job
stop_daemon
fsck_is_clean "at the end"
echo "$(wc -l <"$T/keys") keys were acknowledged before the kill, all of them whole"
