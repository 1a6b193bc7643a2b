#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Quotas over several gateways: a bound that one sets is heeded by all, and what one writes is counted by the others within 10 s; counts
# stay through the end of a gateway, however it came; --fsck tells of a counter that is wrong, and --repair mends it.  Two that race exceed
# a bound by no more than 10 s bring (quota_race.py).
MORE=''
. "$(dirname "$0")/lib.sh"
start_daemon
keep_gateway 1
another_gateway 2
bucket() { gantry --admin "$T/admin$1.sock" bucket "${@:2}"; }
used() { curl_admin /quotas | jq -r ".[] | select(.buckets == \"bkt\") | .$1"; }
uses() { [ "$(used objects) $(used bytes)" = "$*" ]; }
head -c 100000 /dev/urandom >"$T/body"

bucket 2 -q set bkt --max-objects 10 --max-bytes 700000 || fail "gantry bucket set"
# The one that set it heeds it at once, the other one soon.
for i in 1 2 3 4; do assert_status PUT "/bkt/k$i" 200 -T "$T/body"; done
gateway 1
wait_for 12 uses 4 400000
for i in 5 6 7; do assert_status PUT "/bkt/k$i" 200 -T "$T/body"; done
assert_status PUT /bkt/k8 403 -T "$T/body"
gateway 2
wait_for 12 uses 7 700000
assert_status PUT /bkt/k8 403 -T "$T/body"
assert_status PUT /bkt/k1 200 -T "$T/body"
assert_status DELETE /bkt/k7 204
assert_status PUT /bkt/k8 200 -T "$T/body"
# Both at once go on from what they know: never beyond what 10 s bring, and never beyond the bound afterwards.
pids=()
for i in 11 12 13 14 15 16; do
	gateway $((1 + i % 2))
	status_of PUT "/bkt/k$i" -T "$T/body" >/dev/null &
	pids+=($!)
done
wait "${pids[@]}"
assert_status DELETE /bkt/k8 204

# ---- a gateway that is no more has been counted
gateway 1
wait_for 12 uses 6 600000
kill_daemon
gateway 2
stop_daemon
fsck || fail "after a kill: $(cat "$T/fsck")"
another_gateway 3
uses 6 600000 || fail "counted anew: $(used objects) $(used bytes)"
assert_status PUT /bkt/k8 200 -T "$T/body"
assert_status PUT /bkt/k9 403 -T "$T/body"
# Rows of gateways that are gone become one.
rows() { for s in $(rados -p gantry.meta ls | grep '^idx'); do rados -p gantry.meta listomapkeys "$s" | grep '^c'; done | sort -u; }
folded() { rows | grep -q '^c0000000000$' && [ "$(rows | wc -l)" -le 2 ]; }
wait_for 40 folded
uses 7 700000 || fail "summed up: $(used objects) $(used bytes)"
bucket 3 -q set bkt --max-objects none --max-bytes none || fail "gantry bucket set none"
assert_status PUT /bkt/k9 200 -T "$T/body"
assert_status POST '/bkt/up?uploads' 200

# ---- a counter that is wrong
shard=$(for s in $(rados -p gantry.meta ls | grep '^idx'); do rados -p gantry.meta listomapkeys "$s" | grep -q '^c0000000000$' && echo "$s"; done | head -1)
printf 'no counter at all' | rados -p gantry.meta setomapval "$shard" c0000000000
! fsck || fail "a damaged counter: $(cat "$T/fsck")"
grep -q "^bucket bkt: $shard counts .* one of its counters is damaged, and has " "$T/fsck" || fail "fsck: $(cat "$T/fsck")"
fsck --repair --yes || fail "--repair: $(cat "$T/fsck")"
fsck || fail "after the repair: $(cat "$T/fsck")"
# The gateway that runs goes on, and counts what is there.
for i in 1 2 3 4 5 6 9; do assert_status PUT "/bkt/k$i" 200 -T "$T/body"; done
stop_daemon
rados -p gantry.meta rmomapkey "$shard" c0000000000
! fsck || fail "a counter that is missing: $(cat "$T/fsck")"
fsck --repair --yes || fail "--repair: $(cat "$T/fsck")"
another_gateway 4
bucket 4 -q set bkt --max-objects 20 || fail "gantry bucket set"
uses 8 800000 || fail "after the repair: $(used objects) $(used bytes)"

# ---- two that race for what is left, for some seconds: beyond the bound comes only what 10 s bring
assert_status PUT /race 200
bucket 4 -q set race --max-objects 300 || fail "gantry bucket set"
another_gateway 5
knows() { [ "$(curl_admin /quotas | jq -r '.[] | select(.buckets == "race") | .max_objects')" = 300 ]; }
wait_for 30 knows
two=$S3
gateway 4
/usr/bin/python3 "$ROOT/tests/rados/quota_race.py" "$S3" "$two" race 300 || fail "quota_race.py"
stop_daemon
gateway 5
stop_daemon
fsck || fail "after the race: $(cat "$T/fsck")"
