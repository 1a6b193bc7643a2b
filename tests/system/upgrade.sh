#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store that the last version of format 2 made and was killed in: objects, one of parts, an upload in progress, tags of the bucket.
# A start refuses it with 78 and writes nothing; gantryd --upgrade makes the step, and then all of it is served and the upload goes on.
. "$(dirname "$0")/lib.sh"

G=$BUILD/gantryd NO_NIC=1 RDMA='{ devices: none }' DISK_SIZE=64MiB UPLOAD=u00000000000000020000000000000003
mkdir "$T/disk0"
tar -C "$T/disk0" -xzf "$ROOT/tests/fixtures/store-2.tar.gz" || fail "tar"
write_config
sum() { (cd "$T/disk0" && stat -c '%n %s %y' ./* && cat ./*) | md5; }
part() { yes "a part of an old store" | head -c 5242880; }
said() { grep -q "$1" "$T/said" || fail "not said: $1: $(cat "$T/said")"; }

# ---- it is not upgraded by the way ----
before=$(sum)
for act in '' --check-config --fsck; do
	rc=0
	# shellcheck disable=SC2086
	timeout 60 "$G" -c "$T/gantryd.yaml" $act >"$T/said" 2>&1 || rc=$?
	assert_eq "$rc" "$([ "$act" = --fsck ] && echo 0 || echo 78)" "gantryd $act: $(cat "$T/said")"
	[ "$act" = --fsck ] || said "$T/disk0: the store is of format 2, this version serves format 3; gantryd --upgrade makes the step"
done
assert_eq "$(sum)" "$before" "the store was changed"

# ---- the step, twice ----
"$G" -c "$T/gantryd.yaml" --upgrade >"$T/said" 2>&1 || fail "--upgrade: $(cat "$T/said")"
said "$T/disk0: was of format 2, is of format 3 now"
before=$(sum)
"$G" -c "$T/gantryd.yaml" --upgrade >"$T/said" 2>&1 || fail "--upgrade, again: $(cat "$T/said")"
said "is of format 3 already"
assert_eq "$(sum)" "$before" "the second --upgrade has changed the store"

# ---- all of it is there, after a kill too ----
there() {
	local i
	for i in 1 2 3 4 5; do assert_eq "$(curl_s3 /alpha/inline-$i)" "$(seq 1 20)"; done
	assert_eq "$(curl_s3 /alpha/small | md5)" "$(seq 1 2000 | md5)"
	assert_eq "$(header_of x-amz-meta-who /alpha/small)" old
	assert_eq "$(curl_s3 /alpha/whole | md5)" "$( (part && seq 1 2000) | md5)"
	assert_status GET /alpha/gone 404
	assert_match "$(curl_s3 '/alpha?tagging')" '<Key>a</Key><Value>old</Value>'
}
daemon_run
there
assert_match "$(curl_s3 "/alpha/begun?uploadId=$UPLOAD")" '<PartNumber>1</PartNumber>'
seq 1 3000 >"$T/second"
e1=$(part | md5)
e2=$(md5 <"$T/second")
assert_status PUT "/alpha/begun?partNumber=2&uploadId=$UPLOAD" 200 --data-binary "@$T/second"
kill_daemon
daemon_run
there
printf '<CompleteMultipartUpload>' >"$T/list"
printf '<Part><PartNumber>%s</PartNumber><ETag>"%s"</ETag></Part>' 1 "$e1" 2 "$e2" >>"$T/list"
printf '</CompleteMultipartUpload>' >>"$T/list"
assert_status POST "/alpha/begun?uploadId=$UPLOAD" 200 --data-binary "@$T/list"
assert_eq "$(curl_s3 /alpha/begun | md5)" "$( (part && seq 1 3000) | md5)"
stop_daemon
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || fail "--fsck: $(cat "$T/said")"
