#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The data of the status page beside the metrics: host and identity of the store, its capacity without an invented estimate, the largest buckets with
# their copies, quotas and rules, and client and bucket of each error.
DISKS=2 DISK_SIZE=1GiB
. "$(dirname "$0")/lib.sh"
start_daemon
bytes pattern:3 300000 >"$T/in"
for b in alpha gamma "beta --copies 2"; do read -ra words <<<"$b"; gantry mb "$URL_S3/${words[0]}" "${words[@]:1}" || fail "gantry mb $b"; done
for i in 1 2 3; do curl_s3 /alpha/$i -T "$T/in" -o /dev/null || fail "PUT"; done
curl_s3 /beta/1 -T "$T/in" -o /dev/null || fail "PUT"
curl_s3 '/gamma?lifecycle' -X PUT -d '<LifecycleConfiguration><Rule><ID>old</ID><Filter><Prefix></Prefix></Filter><Status>Enabled</Status>
	<Expiration><Days>7</Days></Expiration></Rule></LifecycleConfiguration>' || fail "a rule"
gantry --admin "$T/admin.sock" bucket set alpha --max-bytes 10MiB >"$T/said" || fail "bucket set: $(<"$T/said")"

# ---- host, store, capacity ----
state() { curl_admin /status | jq -r "$1"; }
assert_eq "$(state .host)" "$(hostname)"
id=$(state .store.id)
assert_match "$id" '^[0-9a-f]{8}-[0-9a-f-]{27}$' "the UUID of the store"
assert_eq "$(state '.capacity | .size_bytes - .free_bytes - .used_bytes')" 0
assert_eq "$(state .capacity.size_bytes)" "$(curl_admin /disks | jq '[.[].size_bytes] | add')"
assert_eq "$(state .capacity.reserved_bytes)" "$(curl_admin /disks | jq '[.[].reserved_bytes] | add')"
assert_eq "$(state .capacity.free_bytes)" "$(curl_admin /disks | jq '[.[].free_bytes] | add')"
# Nothing is known after minutes, and nothing is said.
assert_eq "$(state '.capacity | [.outlook, .full_in_seconds, .growth_bytes_per_day] | map(tostring) | join(" ")')" "young null null"
assert_eq "$(curl_admin /metrics | grep -c '^gantry_store_full_seconds')" 0 "no estimate without history"
gantry --admin "$T/admin.sock" status >"$T/status" || fail "gantry status: $(<"$T/status")"
assert_match "$(<"$T/status")" "host       $(hostname), store ${id%%-*}" "the host"
assert_match "$(<"$T/status")" 'capacity   [0-9.]+ GiB, [0-9.]+ MiB used \([0-9]+ % reserved, [0-9]+ % data\), [0-9.]+ GiB free; full in: not enough history yet \(0 min of 60 min\)' "the capacity"

# ---- buckets ----
bucket() { curl_admin /buckets | jq -c ".largest[] | select(.name == \"$1\") | [.objects, .bytes, .max_bytes, .copies, .lifecycle]"; }
known() { [ "$(curl_admin /buckets | jq '[.largest[] | select(.copies == null)] | length')" = 0 ]; }
wait_for 30 known
assert_eq "$(bucket alpha)" '[3,900000,10485760,1,false]'
assert_eq "$(bucket beta)" '[1,600000,null,2,false]'
assert_eq "$(bucket gamma)" '[0,0,null,1,true]'
assert_eq "$(curl_admin /buckets | jq -c '[.number, [.largest[].name]]')" '[5,["alpha","beta",".scality","bkt","gamma"]]'
# Twenty at most, and the number of all.
for i in $(seq 20); do gantry mb "$URL_S3/more-$i" || fail "gantry mb"; done
assert_eq "$(curl_admin /buckets | jq -c '[.number, (.largest | length), .largest[0].name]')" '[25,20,"alpha"]'

# ---- errors ----
assert_eq "$(curl_admin /events)" "[]"
assert_eq "$(status_of GET /alpha/1 -H 'x-rdma-info: {"type":"seaweed","addr":"0x7f0000001000"}')" 501
assert_eq "$(curl_admin /events | jq -c '[.[] | [.operation, .status, .declined, .client, .bucket]]')" '[["GetObject",501,"token-family","127.0.0.1","alpha"]]'

# ---- the same store after a restart, the runbook ----
stop_daemon
daemon_run
assert_eq "$(state .store.id)" "$id"
curl_admin /runbook >"$T/runbook"
assert_same "$T/runbook" "$ROOT/docs/runbook.md"
assert_alive
