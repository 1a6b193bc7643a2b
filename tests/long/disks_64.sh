#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The largest store there is, 64 disks: made, filled, listed, killed, started without two of them and with all again.
. "$(dirname "$0")/../system/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=64 DISK_SIZE=64MiB KEYS=2000
G=$BUILD/gantryd
write_config
sed -i 's/index: 64MiB/index: 256MiB/' "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
curl -sS --fail -Z --parallel-max 16 -X PUT -d bytes -o /dev/null "$URL_S3/bkt/k[1-$KEYS]" 2>>"$T/curl" || fail "PUTs"
assert_eq "$(curl_admin /disks | jq -r '[length, (map(.objects) | add), (map(select(.state == "serving" and .objects > 0)) | length)] | join(" ")')" "64 $KEYS 64"
names() {
	local n=0 token='' page
	while :; do
		page=$(curl_s3 "/bkt?list-type=2&max-keys=300${token:+&continuation-token=$token}") || fail "a list"
		n=$((n + $(grep -o '<Key>' <<<"$page" | wc -l)))
		token=$(sed -nE 's/.*<NextContinuationToken>([^<]*).*/\1/p' <<<"$page" | sed 's/+/%2B/g; s/=/%3D/g; s|/|%2F|g')
		[ -n "$token" ] || break
	done
	echo $n
}
assert_eq "$(names)" $KEYS
assert_status PUT /another 200
away=$(curl_admin /disks | jq -r '[.[7].uuid, .[63].uuid] | join("\", \"")')
held=$(curl_admin /disks | jq '.[7].objects + .[63].objects')
kill_daemon

mv "$T/disk7" "$T/away7"
mv "$T/disk63" "$T/away63"
rc=0
"$G" -c "$T/gantryd.yaml" --check-config >"$T/said" 2>&1 || rc=$?
assert_eq "$rc" 78 "two of them missing: $(cat "$T/said")"
cp "$T/gantryd.yaml" "$T/all.yaml"
sed -i "s|^store:|store:\n  accept_missing: [\"$away\"]|" "$T/gantryd.yaml"
daemon_run
curl -sS -o /dev/null -w '%{http_code}\n' "$URL_S3/bkt/k[1-$KEYS]" | sort | uniq -c | awk '{ print $2, $1 }' >"$T/codes"
assert_eq "$(cat "$T/codes")" "200 $((KEYS - held))"$'\n'"503 $held" "GETs without two disks"
assert_status PUT /third 200
stop_daemon

mv "$T/away7" "$T/disk7"
mv "$T/away63" "$T/disk63"
cp "$T/all.yaml" "$T/gantryd.yaml"
daemon_run
assert_eq "$(names)" $KEYS
for b in another third; do
	curl -sS --fail -Z -X PUT -d x -o /dev/null "$URL_S3/$b/k[1-$KEYS]" 2>>"$T/curl" || fail "PUTs to $b, on all disks"
done
stop_daemon
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || fail "--fsck: $(tail -3 "$T/said")"
assert_eq "$(grep -c ' 0 damaged' "$T/said")" 64
echo "64 disks, $KEYS objects, $held of them on two that were away"
