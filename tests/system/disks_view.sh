#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Four disks of sizes 1:2:4:8, a block device among them, are one store to whoever looks: objects, index memory and metrics by size of disk and in
# all; pages of lists in order, each name once, while others come and go; a quota that no writers on four disks exceed, counted anew after a
# kill; rules that expire what is on each; one scrub of all, of what lies beside objects too; --fsck; and a disk that is missing.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=4 DISK_SIZE=64MiB KEYS=320 BUCKETS='bkt quota old'
MORE=$'lifecycle: { interval: 300ms }'
G=$BUILD/gantryd
write_config
for i in 1 2 3; do sed -i "s|\(disk$i\", size: \)64MiB|\1$((64 << i))MiB|" "$T/gantryd.yaml"; done
sed -i 's|^store:|store:\n  scrub_rate: 1GiB|' "$T/gantryd.yaml"
truncate -s 512M "$T/image"
if LOOP=$(losetup -f --show "$T/image" 2>/dev/null); then
	trap 'rc=$?; [ -z "$DAEMON_PID" ] || kill -KILL "$DAEMON_PID"; losetup -d "$LOOP"; (exit $rc); _at_exit' EXIT
	sed -i "s|{ path: \"$T/disk3\", .*|{ path: \"$LOOP\" }|" "$T/gantryd.yaml"
else
	LOOP=$T/disk3
	echo "no loop device: the fourth disk is a directory"
fi
format_store
daemon_run
make_buckets
disks() { curl_admin /disks | jq -r "$1"; }
put_all() { curl -sS --fail -Z --parallel-max 8 -X PUT -d "${2:-bytes}" -o /dev/null "$URL_S3/$1" 2>>"$T/curl" || fail "PUTs: $1"; }

# ---- by size, and in all ----
put_all "bkt/d[0-7]/k[100-$((99 + KEYS / 8))]"
assert_eq "$(curl_admin /disks | json state)" "serving serving serving serving"
assert_eq "$(disks '[(map(.uuid) | unique | length), (map(.objects) | add), (map(select(.reason != null)) | length)] | join(" ")')" "4 $KEYS 0"
assert_eq "$(disks 'map(.path) | join(" ")')" "$T/disk0 $T/disk1 $T/disk2 $LOOP"
# Within what a hash does: 8/15 of them on the largest, 1/15 on the smallest.
assert_eq "$(disks 'map(.objects) | .[0] < .[3] / 3 and .[3] > add / 3 and .[0] > 0')" true "objects: $(curl_admin /disks | json objects)"
assert_eq "$(disks '[.[] | .index_max_bytes / .size_bytes] | (max - min) / max < 0.01')" true "index: $(disks 'map(.index_max_bytes) | join(" ")')"
assert_eq "$(disks 'map(.index_max_bytes) | add <= 67108864 and add > 66000000')" true
assert_eq "$(metric gantry_store_disks 'serving') $(metric gantry_store_disks 'missing') $(metric gantry_store_up)" "4 0 4"
assert_eq "$(metric gantry_store_objects)" $KEYS
# One name of each disk everywhere: the digits of its UUID in labels, with the path in one metric, and both in texts.
assert_eq "$(disks 'map(.disk == .uuid[:8]) | all')" true "names: $(disks 'map(.disk) | join(" ")')"
disks '.[] | "gantry_store_disk_info{disk=\"\(.disk)\",uuid=\"\(.uuid)\",path=\"\(.path)\"} 1"' >"$T/want"
assert_eq "$(curl_admin /metrics | grep '^gantry_store_disk_info{')" "$(<"$T/want")"
assert_eq "$(curl_admin /metrics | sed -n 's/^gantry_store_up{disk="\(.*\)"} 1$/\1/p')" "$(disks '.[].disk')"
for page in status doctor 'top --count 1 --interval 0.1' 'disk status'; do
	# shellcheck disable=SC2086 # words
	gantry --admin "$T/admin.sock" $page >"$T/said" 2>&1 || true
	for ((i = 0; i < 4; i++)); do
		grep -q "$(disks ".[$i].disk") .*$(disks ".[$i].path")" "$T/said" || fail "gantry $page does not name disk $i: $(<"$T/said")"
	done
done
assert_eq "$(curl_admin /metrics | grep -c '^gantry_store_size_bytes{')" 4
assert_eq "$(curl_admin /status | jq -r '.store | [.disks, .disks_failed, .disks_missing, .objects] | join(" ")')" "4 0 0 $KEYS"
assert_eq "$(curl_admin /status | jq .store.size_bytes)" "$(disks 'map(.size_bytes) | add')"

# ---- lists, while others write ----
{
	while [ ! -e "$T/over" ]; do
		curl -sS -Z --parallel-max 4 -X PUT -d x -o /dev/null "$URL_S3/bkt/d[0-7]/x[100-120]" 2>>"$T/curl"
		curl -sS -Z --parallel-max 4 -X DELETE -o /dev/null "$URL_S3/bkt/d[0-7]/x[100-120]" 2>>"$T/curl"
		pause 0.05
	done
} &
writer=$!
/usr/bin/python3 - "$URL_S3/bkt" $KEYS <<'END' || fail "lists"
import re, sys, urllib.parse, urllib.request
url, keys = sys.argv[1], int(sys.argv[2])
want = ["d%d/k%d" % (d, k) for d in range(8) for k in range(100, 100 + keys // 8)]


def pages(size, **more):
    token, names = None, []
    while True:
        q = dict(more, **{"list-type": 2, "max-keys": size}, **({"continuation-token": token} if token else {}))
        xml = urllib.request.urlopen(url + "?" + urllib.parse.urlencode(q), timeout=30).read().decode()
        got = re.findall("<Prefix>([^<]+)</Prefix></CommonPrefixes>" if "delimiter" in more else "<Key>([^<]*)</Key>", xml)
        assert len(got) <= size and ("<IsTruncated>true" in xml) == ("<NextContinuationToken>" in xml), xml
        names += got
        token = re.search("<NextContinuationToken>([^<]*)", xml)
        if not token:
            return names
        token = token[1]


for size in (1000, 37, 5):
    names = pages(size)
    assert names == sorted(set(names)), "out of order, or twice"
    assert [n for n in names if "/k" in n] == want, "what stays is there once: pages of %d" % size
assert pages(3, delimiter="/") == ["d%d/" % d for d in range(8)]
assert [n for n in pages(7, prefix="d5/") if "/k" in n] == [n for n in want if n[:3] == "d5/"]
assert [n for n in pages(1000, **{"start-after": "d3/k110"}) if "/k" in n] == [n for n in want if n > "d3/k110"]
END
touch "$T/over"
wait $writer

# ---- a quota ----
gantry -q --admin "$T/admin.sock" bucket set quota --max-objects 40 || fail "gantry bucket set"
curl -sS -Z --parallel-max 16 -X PUT -d x -o /dev/null -w '%{http_code}\n' "$URL_S3/quota/k[1-96]" >"$T/codes" 2>>"$T/curl"
assert_eq "$(sort "$T/codes" | uniq -c | awk '{ printf "%s:%s ", $2, $1 }')" "200:40 403:56 " "writers on four disks"
kill_daemon
daemon_run
assert_eq "$(curl_s3 '/quota?list-type=2' | grep -o '<Key>' | wc -l)" 40
assert_eq "$(curl_admin /quotas | jq -r '.[] | select(.buckets == "quota").objects')" 40 "counted anew"
assert_status PUT /quota/more 403 -d x
assert_status DELETE "/quota/$(curl_s3 '/quota?list-type=2' | grep -o '<Key>[^<]*' | head -1 | cut -c6-)" 204
assert_status PUT /quota/more 200 -d x

# ---- rules ----
put_all 'old/k[1-64]'
curl_s3 '/old?lifecycle' -X PUT -o /dev/null -d '<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix></Prefix></Filter><Status>Enabled</Status>
	<Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration></Rule></LifecycleConfiguration>' || fail "the rule"
expired() { [ "$(metric gantry_lifecycle_expired_objects_total)" = 64 ]; }
wait_for 60 expired
assert_eq "$(curl_s3 '/old?list-type=2' | grep -c '<Key>')" 0

# ---- one scrub of all ----
for i in 0 1 2; do
	# The copy that is not the newer one, whichever it is.
	printf 'damaged' | dd of="$T/disk$i/super" bs=1 seek=20000 conv=notrunc status=none
	printf 'damaged' | dd of="$T/disk$i/super2" bs=1 seek=20000 conv=notrunc status=none
done
curl -sS --unix-socket "$T/admin.sock" -X POST http://x/control/scrub -o /dev/null || fail "scrub"
walks() { [ "$(metric gantry_scrub_walks_total)" -ge 1 ]; }
mended() { [ "$(disks 'map(.metadata_damaged) | join(" ")')" = "2 2 2 0" ]; }
wait_for 60 walks
assert_eq "$(metric gantry_scrub_objects_total) $(metric gantry_scrub_errors_total)" "$((KEYS + 40)) 0"
wait_for 60 mended
stop_daemon
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || fail "--fsck: $(<"$T/said")"
for i in "$T/disk0" "$T/disk1" "$T/disk2" "$LOOP"; do assert_eq "$(grep -c "^[0-9a-f]\{8\} $i: .* 0 damaged" "$T/said")" 1 "$i: $(<"$T/said")"; done
assert_eq "$(sed -nE 's/.*: ([0-9]+) objects, .*/\1/p' "$T/said" | paste -sd+ | bc)" $((KEYS + 40)) "$(<"$T/said")"

# ---- one is missing ----
mv "$T/disk1" "$T/away"
U=$(sed -n "s/.*gantryd --forget \([-0-9a-f]*\),.*/\1/p" < <("$G" -c "$T/gantryd.yaml" 2>&1))
"$G" -c "$T/gantryd.yaml" --check-config >"$T/said" 2>&1 && fail "--check-config with a disk missing: $(<"$T/said")"
grep -q "disk ${U::8}, of a store of 4 disks, is missing" "$T/said" || fail "--check-config: $(<"$T/said")"
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 && fail "--fsck with a disk missing: $(<"$T/said")"
grep -q "disk ${U::8}, of a store of 4 disks, is missing" "$T/said" || fail "--fsck: $(<"$T/said")"
assert_eq "$(grep -c ' 0 damaged' "$T/said")" 3 "the others are looked at: $(<"$T/said")"
sed -i "s|^store:|store:\n  accept_missing: [\"$U\"]|" "$T/gantryd.yaml"
"$G" -c "$T/gantryd.yaml" --check-config >"$T/said" 2>&1 || fail "--check-config, accepted: $(<"$T/said")"
daemon_run
"$G" -c "$T/gantryd.yaml" --check-config >"$T/said" 2>&1 || fail "--check-config beside the daemon: $(<"$T/said")"
assert_eq "$(disks '.[1] | [.path, .uuid, .state, .objects] | map(. // "-") | join(" ")')" "$T/disk1 $U missing -"
assert_eq "$(metric gantry_store_disks 'serving') $(metric gantry_store_disks 'missing') $(metric gantry_store_up "disk=\"${U::8}\"")" "3 1 0"
assert_eq "$(curl_admin /metrics | grep -c '^gantry_store_size_bytes{')" 3 "no size is told of what is not there"
assert_eq "$(curl_admin /status | jq -r '.store | [.disks, .disks_missing] | join(" ")')" "4 1"
gantry --admin "$T/admin.sock" status >"$T/said" || true
grep -q "${U::8} $T/disk1 missing: it is missing since the start" "$T/said" || fail "gantry status: $(<"$T/said")"
assert_alive
