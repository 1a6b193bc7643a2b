#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rclone against the daemon.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
need /usr/bin/rclone
clients_daemon
export RCLONE_CONFIG=$T/rclone.conf RCLONE_RETRIES=1 RCLONE_LOW_LEVEL_RETRIES=1
: >"$RCLONE_CONFIG"
export RCLONE_CONFIG_G_TYPE=s3 RCLONE_CONFIG_G_PROVIDER=Other RCLONE_CONFIG_G_ENDPOINT=$URL_S3 \
	RCLONE_CONFIG_G_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID RCLONE_CONFIG_G_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY \
	RCLONE_CONFIG_G_REGION=us-east-1 RCLONE_CONFIG_G_FORCE_PATH_STYLE=true
rc() { /usr/bin/rclone "$@" 2>"$T/rclone.log" || { cat "$T/rclone.log" >&2; return 1; }; }

rc mkdir G:clone || fail "mkdir"
rc lsd G: | grep -q clone || fail "lsd"
odd_files "$T/tree"
rc copy "$T/tree" G:clone/tree || fail "copy up"
rc check --download "$T/tree" G:clone/tree || fail "check --download"
rc check "$T/tree" G:clone/tree || fail "check by MD5"
rc copy G:clone/tree "$T/back" || fail "copy down"
diff -r "$T/tree" "$T/back" || fail "the tree came back different"
# Its time of change is kept in metadata.
touch -d 2020-02-02T02:02:02Z "$T/tree/plain.txt"
rc sync "$T/tree" G:clone/tree || fail "sync"
rc lsl G:clone/tree/plain.txt | grep -q '2020-02-02 02:02:02' || fail "time of change: $(rc lsl G:clone/tree/plain.txt)"
rm "$T/tree/empty"
rc sync "$T/tree" G:clone/tree || fail "sync after a removal"
assert_eq "$(rc lsf -R --files-only G:clone/tree | wc -l)" "$(find "$T/tree" -type f | wc -l)" "files after the sync"
bytes pattern:8 $((BIG + 4321)) >"$T/big"
rc copyto --s3-upload-cutoff 5M --s3-chunk-size 5M --s3-upload-concurrency 4 "$T/big" G:clone/big || fail "multipart upload"
rc copyto --multi-thread-cutoff 5M --multi-thread-streams 4 G:clone/big "$T/big.back" || fail "download in streams"
assert_same "$T/big" "$T/big.back"
rc check --download "$T" G:clone --include big || fail "check of a multipart object"
assert_eq "$(rc cat --offset 1000000 --count 5000 G:clone/big | md5)" "$(tail -c +1000001 "$T/big" | head -c 5000 | md5)" "cat of a range"
rc copyto --s3-copy-cutoff 5M G:clone/big G:clone/big2 || fail "copy by parts"
rc cat G:clone/big2 | cmp - "$T/big" || fail "the copy by parts"
rc moveto G:clone/big2 G:clone/moved || fail "moveto"
echo streamed | rc rcat G:clone/stream || fail "rcat"
assert_eq "$(rc cat G:clone/stream)" streamed "what was streamed"
assert_eq "$(rc size --json G:clone/tree | sed 's/.*"count":\([0-9]*\).*/\1/')" "$(find "$T/tree" -type f | wc -l)" "size"
curl -sS --fail "$(rc link G:clone/stream)" | grep -qx streamed || fail "link"

# ---- requests that S3 servers are reported to answer wrongly
for name in STANDARD_IA STANDARD_IA STANDARD STANDARD; do
	rc settier $name G:clone/stream || fail "settier $name"
	grep -q ERROR "$T/rclone.log" && fail "settier $name: $(cat "$T/rclone.log")"
	assert_eq "$(rc lsf --format T G:clone/stream)" $name "the class"
done
assert_eq "$(rc cat G:clone/stream)" streamed "after the changes of class"
rc backend versioning G:clone Suspended >"$T/out" || fail "versioning: Suspended"
rc copyto -M --metadata-set u=Miniö "$T/tree/plain.txt" G:clone/beyond || fail "metadata beyond ASCII"
rc lsjson -M G:clone/beyond | grep -q '"u":"=?' || fail "metadata are no encoded word: $(rc lsjson -M G:clone/beyond)"
rc copyto --header-upload 'Content-Encoding: gzip' --s3-acl private --s3-requester-pays --s3-storage-class STANDARD_IA \
	"$T/tree/plain.txt" G:clone/gzip || fail "an upload with an encoding, an ACL, a payer, a class"
rc lsjson -M G:clone/gzip | grep -q '"content-encoding":"gzip"' || fail "encoding: $(rc lsjson -M G:clone/gzip)"
: >"$T/none"
rc copyto "$T/none" G:clone/none || fail "an empty object"
assert_eq "$(rc cat --tail 5 G:clone/none)$(rc cat --tail 3 G:clone/stream)" ed "cat --tail"
rc cleanup G:clone || fail "cleanup"
rc purge G:clone || fail "purge"
rc lsd G: | grep -q clone && fail "purge left the bucket"
assert_alive
