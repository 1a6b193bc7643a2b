#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The number of copies as a property of a bucket: given by a header that is signed where the request is, or by gantry mb --copies, or by the
# configuration; said by HEAD; changed while the bucket is empty and not after; there again after a restart; refused where there is one disk.
. "$(dirname "$0")/lib.sh"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GANTRY_ADMIN

NO_NIC=1 RDMA='{ devices: none }' DISKS=3 DISK_SIZE=64MiB BUCKETS=''
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
cat >"$T/keys.yaml" <<-END
	- { access_key: AKADMIN, secret_key: admin/secret+0 }
END
chmod 0600 "$T/keys.yaml"
mb() { "$BUILD/gantry" mb "$URL_S3/$1" "${@:2}"; }
# The copies of a bucket, as HEAD says.
copies() { header_of x-gantry-copies "/$1" --head; }
message_of() { curl -sS "${@:2}" "$URL_S3$1" | sed -n 's/.*<Message>\([^<]*\)<.*/\1/p'; }
signed() { "$BUILD/tools/s3sign" -s "$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")" -k AKADMIN -p admin/secret+0 -m empty "$@"; }
start_daemon

# ---- made: with one, with two, as it is by default
assert_status PUT /plain 200
assert_eq "$(copies plain)" 1
assert_eq "$(header_of x-gantry-copies /plain -X PUT)" "" "said to who did not ask"
assert_status PUT /two 200 -H 'x-gantry-copies: 2'
assert_eq "$(header_of x-gantry-copies /two -X PUT -H 'x-gantry-copies: 2') $(copies two)" "2 2"
mb three --copies 2 >"$T/out" 2>&1 || fail "gantry mb --copies 2: $(<"$T/out")"
mb one --copies 1 || fail "gantry mb --copies 1"
assert_eq "$(copies three) $(copies one)" "2 1"
mb three || fail "a bucket that is there, whatever it has"
assert_eq "$(copies three)" 2
rc=0; mb four --copies 3 >"$T/out" 2>&1 || rc=$?
assert_eq "$rc $(head_status /four)" "2 404"
grep -q -- '--copies wants 1 or 2' "$T/out" || fail "$(<"$T/out")"

# ---- signed where the request is
assert_eq "$(signed -u x-gantry-copies:2 PUT /signed)" "403 AccessDenied"
assert_eq "$(head_status /signed)" 404
assert_eq "$(signed PUT /signed x-gantry-copies:2)" 200
assert_eq "$(copies signed)" 2
curl -sS --fail -X PUT -H 'x-gantry-copies: 2' --aws-sigv4 aws:amz:us-east-1:s3 -u AKADMIN:admin/secret+0 "$URL_S3/curled" || fail "signed by curl"
assert_eq "$(copies curled)" 2

# ---- bad values
for value in 0 3 -1 two 2.0 '1, 2' 22 2147483649; do
	assert_eq "$(code_of /bad -X PUT -H "x-gantry-copies: $value")" InvalidArgument "$value"
done
assert_eq "$(code_of /bad -X PUT -H 'x-gantry-copies;')" InvalidArgument
assert_eq "$(message_of /bad -X PUT -H 'x-gantry-copies: 3')" 'x-gantry-copies is 1 or 2.'
assert_eq "$(code_of /bad -X PUT -H 'x-gantry-copies: 2' -H 'x-gantry-copies: 2')" InvalidRequest
assert_eq "$(code_of '/bad?x-gantry-copies=2' -X PUT)" NotImplemented
assert_eq "$(head_status /bad)" 404

# ---- changed while it is empty, and keeps what it has; not while there is something in it
made=$(curl_s3 / | grep -o '<Name>two</Name><CreationDate>[^<]*')
tags='<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>'
assert_status PUT '/two?tagging' 200 -d "$tags"
"$BUILD/gantry" --admin "$T/admin.sock" -q bucket set two --max-objects 7 || fail "gantry bucket set"
assert_status PUT /two 200 -H 'x-gantry-copies: 1'
assert_eq "$(copies two)" 1
assert_status PUT /two 200 -H 'x-gantry-copies: 2'
for i in 1 2 3 4 5 6; do
	assert_status PUT "/two/key-$i" 200 -d bytes
	assert_eq "$(code_of /two -X PUT -H 'x-gantry-copies: 1')" InvalidBucketState
	assert_status PUT /two 409 -H 'x-gantry-copies: 1'
	assert_status PUT /two 200 -H 'x-gantry-copies: 2'
	assert_status PUT /two 200
	assert_status DELETE "/two/key-$i" 204
done
upload=$(curl_s3 '/two/key?uploads' -X POST | grep -o '<UploadId>[^<]*' | cut -d'>' -f2)
assert_eq "$(code_of /two -X PUT -H 'x-gantry-copies: 1')" InvalidBucketState "with an upload in progress"
rc=0; mb two --copies 1 >"$T/out" 2>&1 || rc=$?
assert_eq "$rc" 1
grep -q 'neither objects nor uploads' "$T/out" || fail "gantry mb: $(<"$T/out")"
assert_status DELETE "/two/key?uploadId=$upload" 204
mb two --copies 1 || fail "gantry mb changes an empty one"
assert_eq "$(copies two)" 1
assert_status PUT /two 200 -H 'x-gantry-copies: 2'

# Objects that have expired are removed first, more than one list has, also for a request with tags; another object keeps the number.
create='<CreateBucketConfiguration><Tags><Tag><Key>a</Key><Value>b</Value></Tag></Tags></CreateBucketConfiguration>'
expiring() {
	local urls
	mapfile -t urls < <(seq -f "$URL_S3/gone/key-%.0f" 40)
	curl -sS --fail -X PUT -H 'x-gantry-ttl: 1' -d bytes "${urls[@]}" >"$T/out" || fail "x-gantry-ttl: $(<"$T/out")"
	sleep 1
}
assert_status PUT /gone 200 -H 'x-gantry-copies: 2' -d "$create"
expiring
assert_status PUT /gone 200 -H 'x-gantry-copies: 1'
assert_eq "$(copies gone)" 1
expiring
assert_status PUT /gone 200 -H 'x-gantry-copies: 2' -d "$create"
assert_eq "$(copies gone)" 2
assert_status PUT /gone/kept 200 -d bytes
expiring
assert_eq "$(code_of /gone -X PUT -H 'x-gantry-copies: 1')" InvalidBucketState
assert_status DELETE /gone/kept 204
wait_for 20 curl_s3 /gone -X DELETE -o /dev/null

# ---- said to operators, and there again after a restart
show() { "$BUILD/gantry" --admin "$T/admin.sock" bucket show "$@"; }
# Bytes count once for each copy, after a restart as before.
for b in two plain; do curl_s3 "/$b/counted" -T - < <(head -c 70000 /dev/zero); done
for again in 0 1; do
	assert_eq "$(show two --json | jq -r '"\(.objects) \(.bytes)"') $(show plain --json | jq -r '"\(.objects) \(.bytes)"')" "1 140000 1 70000"
	assert_eq "$(copies two) $(copies plain) $(copies signed)" "2 1 2"
	assert_eq "$(curl_s3 / | grep -o '<Name>two</Name><CreationDate>[^<]*')" "$made" "when it was made"
	assert_match "$(curl_s3 '/two?tagging')" '<Key>a</Key><Value>b</Value>'
	assert_match "$(header_of x-gantry-quota-objects /two --head)" 1/7
	assert_match "$(show two)" ', 2 copies of each object'
	! show plain | grep -q copies || fail "one copy is worth no word"
	assert_eq "$(show two --json | jq .copies) $(show plain --json | jq .copies)" "2 1"
	[ $again = 1 ] || restart_daemon
done

# ---- what the configuration says
stop_daemon
sed -i 's/^store:/store:\n  default_copies: 2/' "$T/gantryd.yaml"
daemon_run
assert_status PUT /default 200
assert_status PUT /told 200 -H 'x-gantry-copies: 1'
assert_status PUT /plain 200
assert_eq "$(copies default) $(copies told) $(copies plain)" "2 1 1"
stop_daemon

# ---- one disk has no second one
refused() { # what gantryd --check-config says of store: $1
	local rc=0
	sed "/default_copies/d; s/^store:/store:\n  $1/" "$T/gantryd.yaml" >"$T/bad.yaml"
	"$BUILD/gantryd" -c "$T/bad.yaml" --check-config >"$T/out" 2>&1 || rc=$?
	assert_eq "$rc" 78 "$1"
	grep -q "$2" "$T/out" || fail "$1: $(<"$T/out")"
}
refused 'default_copies: 3' 'store.default_copies: '
refused 'default_copies: 0' 'store.default_copies: '
sed -i '/disk[12]"/d' "$T/gantryd.yaml"
refused 'default_copies: 2' 'store.default_copies: is 2, and there is one disk'
sed -i '/default_copies/d' "$T/gantryd.yaml"
rm -rf "$T"/disk?
DISKS=1 format_store
daemon_run
assert_eq "$(code_of /two -X PUT -H 'x-gantry-copies: 2')" InvalidArgument
assert_match "$(message_of /two -X PUT -H 'x-gantry-copies: 2')" 'want two disks'
assert_eq "$(head_status /two)" 404
rc=0; mb two --copies 2 >"$T/out" 2>&1 || rc=$?
assert_eq "$rc" 1
grep -q 'want two disks' "$T/out" || fail "gantry mb: $(<"$T/out")"
assert_status PUT /one 200 -H 'x-gantry-copies: 1'
assert_eq "$(copies one)" 1
stop_daemon
