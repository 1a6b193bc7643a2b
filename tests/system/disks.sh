#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store of three disks: found in whatever order they are configured; one that is missing stops the start until it is accepted, costs
# its keys alone and never a 404, and has all again when it is back; one that is given up is refused from then on.
. "$(dirname "$0")/lib.sh"

NO_NIC=1 RDMA='{ devices: none }' DISKS=3 DISK_SIZE=64MiB KEYS=12
G=$BUILD/gantryd
said() { grep -q -- "$1" "$T/said" || fail "not said: $1: $(<"$T/said")"; }
# Runs gantryd with these words, which ends with code $1 and a line that has $2.
refused() {
	local rc=0
	timeout 60 "$G" -c "$T/gantryd.yaml" "${@:3}" >"$T/said" 2>&1 || rc=$?
	assert_eq "$rc" "$1" "gantryd ${*:3}: $(<"$T/said")"
	said "$2"
}
configure() { # what store: says besides, then the disks
	local i
	{
		sed '/^store:/,$d' "$T/first.yaml"
		echo "store:"
		[ -z "$1" ] || echo "  $1"
		echo "  disks:"
		for i in "${@:2}"; do echo "    - { path: \"$T/disk$i\" }"; done
	} >"$T/gantryd.yaml"
}
# How many of the objects answer each status.
statuses() { curl -sS -o "$T/body#1" -w '%{http_code}\n' "$URL_S3/bkt/key-[0-$((KEYS - 1))]" | sort | uniq -c | awk '{ printf "%s%s:%s", n++ ? " " : "", $2, $1 }'; }
uuid_of() { curl_admin /disks | json uuid "$1"; }

start_daemon
cp "$T/gantryd.yaml" "$T/first.yaml"
curl -sS --fail -X PUT -d bytes "$URL_S3/bkt/key-[0-$((KEYS - 1))]" || fail PUTs
assert_eq "$(curl_admin /disks | jq -r 'map(.objects) | [length, add, (map(select(. > 0)) | length)] | join(" ")')" "3 $KEYS 3"
U0=$(uuid_of 0) U1=$(uuid_of 1) U2=$(uuid_of 2)
stop_daemon
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || fail "--fsck: $(<"$T/said")"
for i in 0 1 2; do said "$T/disk$i: .* 0 damaged"; done

# ---- any order ----
configure '' 2 0 1
daemon_run
assert_eq "$(statuses)" "200:$KEYS"
assert_eq "$(curl_admin /disks | json path 0)" "$T/disk0"
assert_eq "$(uuid_of 2)" "$U2"
assert_eq "$(curl_s3 '/bkt?list-type=2' | grep -o '<Key>' | wc -l)" "$KEYS"
kill_daemon

# ---- one is missing ----
mv "$T/disk1" "$T/away"
refused 78 "disk ${U1::8}, of a store of 3 disks, is missing .*$T/disk1"
said "remedy: mount or attach $T/disk1, and start again"
said "remedy: start without it, with store.accept_missing: \[$U1\]"
said "About 3[34] % of the objects of buckets with one copy are lost; last resort: gantryd --forget $U1"
configure "accept_missing: [not-one]" 0 1 2
refused 78 "expected the UUID of a disk" --check-config
configure "accept_missing: [\"$U1\"]" 0 1 2
daemon_run
have=$(statuses)
[[ $have =~ ^200:([0-9]+)\ 503:([0-9]+)$ ]] || fail "GETs with a disk missing: $have"
for ((k = 0; k < KEYS; k++)); do
	[ "$(status_of GET "/bkt/key-$k")" = 200 ] && there=$k || gone=$k
done
assert_status PUT "/bkt/key-$gone" 503 -d new
assert_status DELETE "/bkt/key-$gone" 503
assert_ne "$(header_of retry-after "/bkt/key-$gone")" ''
assert_match "$(curl -sS "$URL_S3/bkt/key-$gone")" '<Code>ServiceUnavailable</Code>'
assert_status PUT "/bkt/key-$there" 200 -d bytes
assert_status GET '/bkt?list-type=2' 503
assert_status DELETE /bkt 503
assert_status PUT /new 200
assert_status GET / 200
assert_eq "$(curl_admin /healthz | jq -r '.reasons[] | select(.object == "'"$U1"'") | .code')" disk_missing
assert_match "$(curl_admin /healthz)" "disk ${U1::8} $T/disk1 is missing"
assert_eq "$(curl_admin /disks | json state)" "serving missing serving"
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200
kill_daemon

# ---- and back ----
mv "$T/away" "$T/disk1"
configure '' 0 1 2
daemon_run
assert_eq "$(statuses)" "200:$KEYS"
curl -sS --fail -X PUT -d x "$URL_S3/new/key-[0-$((KEYS - 1))]" || fail "PUTs into what was made meanwhile"
assert_eq "$(curl_s3 '/new?list-type=2' | grep -o '<Key>' | wc -l)" "$KEYS"
others=$(curl_admin /disks | jq '[.[0, 2].objects] | add')
stop_daemon

# ---- others in its place ----
cp -a "$T/disk1" "$T/disk3"
configure '' 0 1 2 3
refused 78 "$T/disk1 says to be disk ${U1::8} $T/disk3, too: one is a copy of the other"
rm -r "$T/disk3"
configure '' 0 2
refused 78 "disk ${U1::8}, .* is missing"
configure "accept_missing: [\"$U0\", \"$U1\"]" 2
refused 78 "only 1 of 3 disks are there"

# ---- given up ----
mv "$T/disk1" "$T/away"
configure '' 0 2
echo no | "$G" -c "$T/gantryd.yaml" --forget "$U1" >"$T/said" 2>&1 && fail "given up without a yes"
said 'nothing was done'
said "^About 3[34] % of the objects of buckets with one copy are lost, about [0-9]* objects ([0-9]* bytes) by what the other disks have: disk ${U1::8}, of a store of 3 disks (no path of store.disks is left for it): has [0-9]* of 4096 slots of keys with one copy, which begin empty on the others; of keys with two copies [0-9]* slots begin empty, 0 go to their second"
slots=$(sed -n 's/.* has \([0-9]*\) of 4096 .*/\1/p' "$T/said")
[ "$slots" -ge 1300 ] || fail "a third of all slots: $(<"$T/said")"
assert_eq "$(sed -n 's/.* are lost, about \([0-9]*\) objects .*/\1/p' "$T/said")" $(((2 * others * slots / (4096 - slots) + 1) / 2)) "the estimate from $others objects: $(<"$T/said")"
said '^remedy: keep the disk in the store'
# What would be refused is not asked about.
for uuid in "$U2" 1b4e28ba-2fa1-11d2-883f-0016d3cca427; do
	refused 78 "gantryd: disk $uuid \(is there, and is given up only\|does not belong to this store\)" --forget "$uuid" </dev/null
	! grep -q 'Type yes' "$T/said" || fail "asked before it was looked: $(<"$T/said")"
done
refused 2 'wants the UUID of a disk' --forget 1
refused 78 "disk $U2 is there" --force --forget "$U2"
# The line that names the disk is to be removed, wherever it is; lines of other disks are not named.
mkdir "$T/conf.d"
printf 'store:\n  disks:\n    - { path: "%s" }\n    - { path: "%s" }\n    - { path: "%s" }\n' "$T/disk0" "$T/disk1" "$T/disk2" >"$T/conf.d/disks.yaml"
echo yes | "$G" -c "$T/gantryd.yaml" --forget "$U1" >"$T/said" 2>&1 || fail "--forget: $(<"$T/said")"
said 'given up: 1 disk; the store has 2 now'
assert_eq "$(grep -c 'remove the line' "$T/said")" 1
said "^remedy: remove the line - { path: \"$T/disk1\" } from store.disks, at $T/conf.d/disks.yaml:4: a start does not accept it any more\$"
refused 74 "$T/disk1: there is no store here yet; all disks of the store, 2, are others"
sed -i 4d "$T/conf.d/disks.yaml"
daemon_run
assert_eq "$(statuses)" "${have/503/404}"
assert_status PUT "/bkt/key-$gone" 200 -d again
assert_status GET "/bkt/key-$gone" 200
assert_status GET '/bkt?list-type=2' 200
stop_daemon
rm -r "$T/conf.d"
mv "$T/away" "$T/disk1"
configure '' 0 1 2
refused 78 "disk ${U1::8} $T/disk1 does not belong to this store (any more)"
