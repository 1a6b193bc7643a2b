#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# POST /control/settle: it answers 200 when the background work of the daemon has ended, and nothing more changes after that; 503 with
# the name of the work after its timeout: a drain, copies that are made again, a walk of the lifecycle, small objects that are packed.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=2 DISKS=3 DISK_SIZE=256MiB BUCKETS='bkt'
mkdir "$T/fault"
DAEMON_WRAP="$BUILD/tools/diskfault $T/fault"
MORE=$'lifecycle: { interval: 86400s }'
disks() { curl_admin /disks | jq -r "$1"; }
ask() { # [QUERY]: the status; the answer in $T/answer
	curl -sS --max-time 120 -o "$T/answer" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST "http://x/control/settle${1:-}"
}
busy() { # WORK: it is in progress, and the call says so at its timeout
	[ "$(ask '?timeout=1')" = 503 ] && [ "$(jq -r .busy "$T/answer")" = "$1" ]
}
set_key() { # KEY VALUE of the section store, read by a reload or a start
	sed -i "/^  $1: /d; s|^store:|store:\n  $1: $2|" "$T/gantryd.yaml"
}
reload() { curl -sS --fail -o /dev/null --unix-socket "$T/admin.sock" -X POST "http://x/control/reload" || fail "reload"; }
put() { curl -sS --fail -Z -X PUT --data-binary @"$1" -o /dev/null "$URL_S3$2" 2>>"$T/curl" || fail "PUT $2"; }

write_config
set_key move_rate 64KiB
set_key pack_rate 1GiB
set_key heal_after 1s
format_store
daemon_run
make_buckets
settle

# ---- what it takes, and from whom ----
assert_eq "$(ask '?timeout=0') $(ask '?timeout=1m') $(ask '?seconds=1') $(ask '?timeout=1&timeout=2') $(ask '?timeout')" "400 400 400 400 400"
assert_eq "$(curl_admin '/control/settle?timeout=1' -X POST -o /dev/null -w '%{http_code}')" 401 "over TCP without a token"
assert_eq "$(curl_admin '/control/settle' -o /dev/null -w '%{http_code}')" 405 "GET"
assert_eq "$(curl -sS --unix-socket "$T/admin.sock" -o /dev/null -w '%{http_code}' -d '{"timeout":60}' http://x/control/settle)" 200 "in a body"

# ---- packing, and what deletions give back ----
free=$(disks 'map(.free_bytes) | add')
head -c 4096 /dev/urandom >"$T/small"
put "$T/small" '/bkt/small-[1-120]'
settle
loose=$(disks 'map(.loose_objects) | add')
[ "$loose" -le 24 ] || fail "$loose of 120 small objects are not packed"
curl -sS --fail -Z -X DELETE -o /dev/null "$URL_S3/bkt/small-[1-120]" 2>>"$T/curl" || fail "DELETE"
settle
assert_eq "$(disks 'map(.packed_units) | add') $(disks 'map(.loose_objects) | add')" "0 0"
now=$(disks 'map(.free_bytes) | add')
[ "$now" -ge "$free" ] || fail "free: $now bytes, before all of it $free"

# ---- a drain, which is slow until its rate is set ----
head -c 200000 /dev/urandom >"$T/large"
put "$T/large" '/bkt/large-[1-30]'
settle
gantry --admin "$T/admin.sock" disk drain "$T/disk1" >"$T/said" || fail "drain: $(<"$T/said")"
wait_for 60 busy moves || fail "a drain: $(<"$T/answer")"
set_key move_rate 1GiB
reload
settle
assert_eq "$(curl_admin /disks | json state)" "serving drained serving"
gantry --admin "$T/admin.sock" disk --size 256MiB add "$T/disk3" >"$T/said" || fail "add: $(<"$T/said")"
settle
assert_eq "$(curl_admin /disks | json state 3) $(curl_admin /disks | json objects 1)" "serving 0"
sed -i "/disk1\"/d; /disk2\"/a\\    - { path: \"$T/disk3\", size: 256MiB }" "$T/gantryd.yaml"

# ---- copies that are made again ----
gantry mb "$URL_S3/two" --copies 2 || fail "gantry mb --copies 2"
put "$T/large" '/two/large-[1-30]'
settle
set_key move_rate 64KiB
reload
echo "read write flush" >"$T/fault/disk3"
curl -sS -Z -X PUT --data-binary @"$T/small" -o /dev/null "$URL_S3/bkt/more-[1-20]" 2>>"$T/curl"
failed() { [ "$(disks '.[] | select(.path | endswith("/disk3")) | .state')" = failed ]; }
wait_for 60 failed
wait_for 60 busy resync || fail "copies: $(<"$T/answer")"
assert_ne "$(metric gantry_copies_exposed_objects)" 0 "objects with one copy"
set_key move_rate 1GiB
reload
settle
assert_eq "$(metric gantry_copies_exposed_objects)" 0 "objects with one copy"

# ---- a walk that is slowed down to ten objects a second ----
put "$T/small" '/two/old-[1-20]'
curl_s3 '/two?lifecycle' -X PUT -o /dev/null --data-binary '<LifecycleConfiguration><Rule><ID>all</ID><Status>Enabled</Status><Filter><Prefix>old-</Prefix></Filter><Expiration><Date>2001-01-01T00:00:00Z</Date></Expiration></Rule></LifecycleConfiguration>' ||
	fail "rules"
stop_daemon
rm "$T/fault/disk3"
sed -i 's/interval: 86400s/interval: 86400s, rate: 10/' "$T/gantryd.yaml"
daemon_run
walk() { curl -sS --max-time 30 -o "$T/answer" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST "http://x/control/lifecycle" "$@"; }
assert_eq "$(walk -d '{"bucket":"two"}')" 400 "a walk of one bucket"
assert_eq "$(curl_admin /control/lifecycle -X POST -o "$T/answer" -w "%{http_code}")" 401 "over TCP without a token"
assert_match "$(<"$T/answer")" "admin.token_file, which is not set; the Unix socket takes them: $T/admin.sock" "what takes them"
assert_eq "$(walk) $(<"$T/answer")" '200 {"started":true,"lifecycle":{"state":"running"}}' "a walk on request"
assert_eq "$(walk) $(<"$T/answer")" '200 {"started":false,"lifecycle":{"state":"running"}}' "one more"
busy lifecycle || fail "a walk: $(<"$T/answer")"
gone() { [ "$(curl_s3 '/two?list-type=2&prefix=old-' | grep -c '<Key>')" = 0 ]; }
wait_for 60 gone
assert_alive
