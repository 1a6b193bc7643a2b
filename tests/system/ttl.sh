#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# x-gantry-ttl: an object is absent from its expiry on, for GET, HEAD, lists, copies, conditions and the removal of its bucket; usage, quota
# and /metrics follow within ten seconds; uploads, copies and forms have the header, too; a restart in between changes nothing.
# On RADOS the removal comes a minute later, because each gateway has a clock of its own.
. "$(dirname "$0")/lib.sh"
BUCKETS='bkt small other'
late=10
if [ "${STORE:-disks}" = rados ]; then late=75 WAIT_USUAL=75; fi
start_daemon
put() { curl_s3 "$1" -X PUT --data-binary "${3:-bytes}" ${2:+-H "x-gantry-ttl: $2"} -o /dev/null "${@:4}"; }
refused() { # VALUE: 400 InvalidArgument, with the name of the header
	local body
	body=$(curl -sS -X PUT --data-binary x -H "x-gantry-ttl:$1" "$URL_S3/bkt/refused")
	assert_eq "$(xml Code <<<"$body")" InvalidArgument "x-gantry-ttl:$1"
	assert_match "$body" 'x-gantry-ttl'
}
keys() { curl_s3 "/$1?list-type=2&${2:-}" | grep -oE '<(Key|CommonPrefixes><Prefix)>[^<]*' | sed 's/.*>//' | paste -sd ' '; }
expires() { header_of x-gantry-expires "$@"; }
used() { header_of x-gantry-quota-objects "/$1" --head; }
gone() { [ "$(status_of GET "$1")" = 404 ]; }

bound() { gantry --admin "$T/admin.sock" bucket set "$1" --max-objects "$2" >/dev/null || fail "bucket set $1"; }
bound bkt 100
bound small 1

# ---- values ----
for v in ' 0' ' 315360001' ' -1' ' abc' ' 1.5' ' 99999999999999999999'; do refused "$v"; done
body=$(curl -sS -X PUT --data-binary x -H 'x-gantry-ttl;' "$URL_S3/bkt/refused")
assert_match "$body" 'x-gantry-ttl'
body=$(curl -sS -X PUT --data-binary x -H 'x-gantry-ttl: 5' -H 'x-gantry-ttl: 5' "$URL_S3/bkt/refused")
assert_match "$body" 'x-gantry-ttl'
assert_status GET /bkt/refused 404
put /bkt/long 315360000
left=$(expires /bkt/long)
[ "$left" -gt 315359900 ] && [ "$left" -le 315360000 ] || fail "x-gantry-expires: $left"
assert_eq "$(expires /bkt/long --head)" "$left"
put /bkt/never
assert_eq "$(expires /bkt/never)" ''

# ---- before and after ----
put /bkt/dir/a 4
put /bkt/dir/b 4
put /bkt/soon 4
put /bkt/replaced 4
put /small/one 4
put /bkt/replaced '' other
assert_eq "$(keys bkt delimiter=/)" 'dir/ long never replaced soon'
assert_status GET /bkt/soon 200
restart_daemon
wait_for 20 gone /bkt/soon
assert_eq "$(head_status /bkt/soon)" 404
assert_eq "$(code_of /bkt/soon)" NoSuchKey
assert_eq "$(keys bkt)" 'long never replaced'
assert_eq "$(keys bkt delimiter=/)" 'long never replaced'
assert_eq "$(keys bkt max-keys=3)" 'long never replaced'
assert_match "$(curl_s3 '/bkt?list-type=2&max-keys=3')" '<IsTruncated>false'
assert_eq "$(curl_s3 /bkt/replaced)" other
assert_eq "$(expires /bkt/replaced)" ''
assert_eq "$(curl -sS -X PUT -H 'x-amz-copy-source: /bkt/soon' "$URL_S3/bkt/copy" | xml Code)" NoSuchKey

# ---- usage within ten seconds, or a minute later ----
counted() { [ "$(used bkt)" = 3/100 ] && [ "$(used small)" = 0/1 ]; }
wait_for $late counted
assert_eq "$(metric gantry_expired_objects_total)" 4
# ---- conditions, a bucket of expired objects ----
put /bkt/cond 1
sleep 1.1
assert_status PUT /bkt/cond 404 -H 'If-Match: *' --data-binary x
assert_status PUT /bkt/cond 200 -H 'If-None-Match: *' --data-binary x
for i in 1 2 3 4 5; do put "/other/k$i" 1; done
assert_eq "$(curl -sS -X DELETE "$URL_S3/other" | xml Code)" BucketNotEmpty
sleep 1.1
assert_status DELETE /other 204
assert_status GET /other 404

# ---- copies ----
put /bkt/src 600
curl_s3 /bkt/copy -X PUT -H 'x-amz-copy-source: /bkt/src' -o /dev/null
assert_eq "$(expires /bkt/copy)" ''
curl_s3 /bkt/copy -X PUT -H 'x-amz-copy-source: /bkt/src' -H 'x-gantry-ttl: 500' -o /dev/null
[ "$(expires /bkt/copy)" -le 500 ] || fail "copy: $(expires /bkt/copy)"
curl_s3 /bkt/src -X PUT -H 'x-amz-copy-source: /bkt/src' -H 'x-gantry-ttl: 700' -o /dev/null
[ "$(expires /bkt/src)" -gt 650 ] || fail "copy onto itself: $(expires /bkt/src)"
curl_s3 /bkt/src -X PUT -H 'x-amz-copy-source: /bkt/src' -H 'x-amz-metadata-directive: REPLACE' -o /dev/null
assert_eq "$(expires /bkt/src)" ''
put /bkt/src 600
curl_s3 '/bkt/src?tagging' -X PUT -d '<Tagging><TagSet><Tag><Key>of</Key><Value>mine</Value></Tag></TagSet></Tagging>' -o /dev/null
[ "$(expires /bkt/src)" -gt 500 ] || fail "tags: $(expires /bkt/src)"

# ---- an upload: from its completion on ----
id=$(curl_s3 '/bkt/up?uploads' -X POST -H 'x-gantry-ttl: 3' | xml UploadId)
etag=$(curl -sS -o /dev/null -w '%header{etag}' -X PUT --data-binary part "$URL_S3/bkt/up?partNumber=1&uploadId=$id")
sleep 3.1
curl_s3 "/bkt/up?uploadId=$id" -X POST -o /dev/null \
	-d "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>$etag</ETag></Part></CompleteMultipartUpload>"
left=$(expires /bkt/up)
[ "$left" -ge 1 ] && [ "$left" -le 3 ] || fail "upload: $left"
wait_for 10 gone /bkt/up
assert_eq "$(curl -sS -X POST -H 'x-gantry-ttl: 0' "$URL_S3/bkt/up?uploads" | xml Code)" InvalidArgument

# ---- a form ----
curl_s3 /bkt -F key=form -F 'x-gantry-ttl=300' -F file=@"$0" -o /dev/null
[ "$(expires /bkt/form)" -le 300 ] || fail "form: $(expires /bkt/form)"
assert_eq "$(curl -sS -F key=form -F 'x-gantry-ttl=0' -F file=@"$0" "$URL_S3/bkt" | xml Code)" InvalidArgument

# ---- the command ----
gantry --quiet put --ttl 200 "$0" "$URL_S3/bkt/cli" || fail 'gantry put --ttl'
assert_match "$(gantry stat "$URL_S3/bkt/cli")" 'x-gantry-expires +(200|19[0-9])'
gantry --quiet cp --ttl 100 "$URL_S3/bkt/cli" "$URL_S3/bkt/cli2" || fail 'gantry cp --ttl'
left=$(expires /bkt/cli2)
[ -n "$left" ] && [ "$left" -le 100 ] || fail "gantry cp --ttl: $left"
# by RDMA
bytes pattern:1 3000000 >"$T/body"
assert_match "$(gantry --json --require-rdma put --ttl 4 "$T/body" "$URL_S3/bkt/rdma")" '"path":"rdma"'
gantry --quiet --require-rdma get "$URL_S3/bkt/rdma" "$T/back" || fail 'gantry get by RDMA'
assert_same "$T/body" "$T/back"
left=$(expires /bkt/rdma)
[ -n "$left" ] && [ "$left" -le 4 ] || fail "gantry put --ttl by RDMA: $left"
wait_for 20 gone /bkt/rdma
rc=0
gantry --quiet --require-rdma get "$URL_S3/bkt/rdma" "$T/back2" 2>"$T/err" || rc=$?
[ $rc -ne 0 ] && [ ! -s "$T/back2" ] || fail "gantry get of an expired object by RDMA: $rc"

# ---- a quota has room again ----
put /small/a 1
assert_eq "$(curl -sS -X PUT --data-binary x "$URL_S3/small/b" | xml Code)" QuotaExceeded
room() { [ "$(status_of PUT /small/b --data-binary x)" = 200 ]; }
wait_for $late room
assert_alive
