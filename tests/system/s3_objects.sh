#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What S3 can do with objects besides moving them: lists, deletion of many, tags, copies, conditions, what an answer
# can be asked to say, checksums, errors.  By curl on the real daemon.
. "$(dirname "$0")/lib.sh"
BUCKETS="bkt other"
start_daemon
# Every element of that name, a line each.
all() { awk -v RS='<' -v n="$1>" 'index($0, n) == 1 { gsub("\n", ""); print substr($0, length(n) + 1) }'; }

# ---- lists ----
for k in a a/b a/b/c a-1 b z/1 z/2 'spaced key' 'amp&<>' "caf$(printf '\303\251')"; do
	echo "$k" | curl_s3 "/bkt/$(printf %s "$k" | sed 's/ /%20/g; s/&/%26/g; s/</%3C/g; s/>/%3E/g')" -T - || fail "PUT $k"
done
curl_s3 '/bkt?list-type=2' >"$T/list"
assert_eq "$(all Key <"$T/list" | head -4 | tr '\n' ' ')" "a a-1 a/b a/b/c " "byte order"
assert_eq "$(xml KeyCount <"$T/list") $(xml IsTruncated <"$T/list")" "10 false"
grep -q '<Key>amp&amp;&lt;&gt;</Key>' "$T/list" || fail "escaping"
curl_s3 '/bkt?list-type=2&encoding-type=url' | grep -q '<Key>caf%C3%A9</Key>' || fail "encoding-type=url"
curl_s3 '/bkt?list-type=2&delimiter=/' >"$T/list"
assert_eq "$(all Prefix <"$T/list" | sort | tr '\n' ' ')" " a/ z/ " "common prefixes"
assert_eq "$(xml KeyCount <"$T/list")" 8
curl_s3 '/bkt?list-type=2&prefix=a/&delimiter=/' >"$T/list"
assert_eq "$(all Key <"$T/list")" a/b
assert_eq "$(curl_s3 '/bkt?list-type=2&start-after=b' | xml KeyCount)" 4
assert_eq "$(curl_s3 '/bkt?list-type=2&max-keys=0' | xml IsTruncated)" false
assert_eq "$(curl_s3 '/bkt?marker=z/1' | all Key)" z/2
assert_eq "$(curl_s3 '/bkt?versions&prefix=z/' | all VersionId | tr '\n' ' ')" "null null "
assert_eq "$(curl_s3 '/bkt?list-type=2&fetch-owner=true' | all ID | head -1)" gantry
# Page by page, every key once, with and without a delimiter.
for d in '' '&delimiter=/'; do
	token='' names=''
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		curl_s3 "/bkt?list-type=2&max-keys=3&encoding-type=url$d" -G --data-urlencode "continuation-token=$token" >"$T/list"
		names+=$(all Key <"$T/list"; grep -o '<CommonPrefixes>.*' "$T/list" | all Prefix)$'\n'
		[ "$(xml IsTruncated <"$T/list")" = true ] || break
		token=$(xml NextContinuationToken <"$T/list")
	done
	want=10
	[ -z "$d" ] || want=8
	assert_eq "$(grep -c . <<<"$names")" $want "pages$d"
	assert_eq "$(sort -u <<<"$names" | grep -c .)" $want "pages$d: no name twice"
	token=''
done
assert_eq "$(code_of '/none?list-type=2')" NoSuchBucket
assert_eq "$(code_of '/bkt?list-type=2&continuation-token=nonsense!')" InvalidArgument
assert_eq "$(code_of '/bkt?max-keys=-1')" InvalidArgument
# Buckets.
assert_eq "$(curl_s3 / | all Name | tr '\n' ' ')" "bkt other "
assert_eq "$(curl_s3 '/?max-buckets=1' | all Name)" bkt
assert_eq "$(curl_s3 '/' -G -d max-buckets=1 --data-urlencode "continuation-token=$(curl_s3 '/?max-buckets=1' | xml ContinuationToken)" | all Name)" other

# ---- many at once: DeleteObjects ----
# With the MD5 that it has to have: deletes PATH XML [curl words]
deletes() { curl -sS "$URL_S3$1" -X POST -d "$2" -H "content-md5: $(printf %s "$2" | openssl md5 -binary | base64)" "${@:3}"; }
{
	echo '<Delete>'
	for i in $(seq 200); do echo "<Object><Key>many/$i</Key></Object>"; done
	echo '</Delete>'
} >"$T/delete"
for i in $(seq 20); do echo "$i" | curl_s3 "/bkt/many/$i" -T -; done
curl_s3 '/bkt?delete' -X POST --data-binary "@$T/delete" -H "content-md5: $(openssl md5 -binary "$T/delete" | base64)" >"$T/out"
assert_eq "$(all Key <"$T/out" | wc -l)" 200
assert_eq "$(curl_s3 '/bkt?list-type=2&prefix=many/' | xml KeyCount)" 0
echo x | curl_s3 /bkt/one -T -
assert_eq "$(deletes '/bkt?delete' '<Delete><Quiet>true</Quiet><Object><Key>one</Key></Object></Delete>' | all Key)" ''
assert_status GET /bkt/one 404
echo x | curl_s3 /bkt/one -T -
deletes '/bkt?delete' '<Delete><Object><Key>one</Key><ETag>"00000000000000000000000000000000"</ETag></Object></Delete>' >"$T/out"
assert_eq "$(xml Code <"$T/out")" PreconditionFailed
assert_status GET /bkt/one 200
assert_eq "$(deletes '/bkt?delete' '<Delete>' | xml Code)" MalformedXML
assert_eq "$(deletes '/bkt?delete' '<!DOCTYPE x [<!ENTITY e "e">]><Delete><Object><Key>&e;</Key></Object></Delete>' | xml Code)" MalformedXML
assert_eq "$(code_of '/bkt?delete' -X POST -H 'content-md5: 1B2M2Y8AsgTpgAmY7PhCfg==' -d '<Delete></Delete>')" BadDigest
assert_eq "$(deletes '/none?delete' '<Delete><Object><Key>one</Key></Object></Delete>' | xml Code)" NoSuchBucket

assert_status DELETE /bkt/one 412 -H 'if-match: "x"'
assert_status DELETE /bkt/one 412 -H 'x-amz-if-match-size: 7'
assert_status DELETE /bkt/one 204 -H 'x-amz-if-match-size: 2'
assert_status DELETE /bkt/one 204

# ---- tags ----
curl_s3 /bkt/t -X PUT -H 'x-amz-tagging: colour=blue&empty=' -d tagged
assert_eq "$(header_of x-amz-tagging-count /bkt/t -I)" 2
assert_eq "$(header_of x-amz-tagging /bkt/t -I)" '' "tags are no header"
assert_eq "$(curl_s3 '/bkt/t?tagging' | all Key | tr '\n' ' ')" "colour empty "
before=$(header_of last-modified /bkt/t -I)
curl_s3 '/bkt/t?tagging' -X PUT -d '<Tagging><TagSet><Tag><Key>x</Key><Value>1 &amp; 2</Value></Tag></TagSet></Tagging>'
assert_eq "$(curl_s3 '/bkt/t?tagging' | all Value)" '1 &amp; 2'
assert_eq "$(curl_s3 /bkt/t) $(header_of last-modified /bkt/t -I)" "tagged $before" "bytes and time stay"
assert_status DELETE '/bkt/t?tagging' 204
assert_eq "$(curl_s3 '/bkt/t?tagging' | all Key)" ''
assert_eq "$(code_of '/bkt/nix?tagging')" NoSuchKey
assert_eq "$(code_of '/bkt/t?tagging' -X PUT -d '<Tagging><TagSet><Tag><Key>x</Key><Value>1</Value></Tag><Tag><Key>x</Key><Value>2</Value></Tag></TagSet></Tagging>')" InvalidTag
assert_match "$(curl_s3 '/bkt/t?acl')" FULL_CONTROL

# ---- copies ----
bytes pattern:4 3000001 >"$T/body"
curl_s3 /bkt/src -T "$T/body" -H 'content-type: text/x-src' -H 'x-amz-meta-a: 1' -H 'x-amz-tagging: k=v'
etag=$(header_of etag /bkt/src -I)
r=$(curl_s3 /other/dst -X PUT -H 'x-amz-copy-source: /bkt/src')
assert_eq "\"$(xml ETag <<<"$r")\"" "$etag" "ETag of a copy"
assert_eq "$(curl_s3 /other/dst | md5)" "$(md5 "$T/body")"
assert_eq "$(header_of content-type /other/dst -I) $(header_of x-amz-meta-a /other/dst -I) $(header_of x-amz-tagging-count /other/dst -I)" "text/x-src 1 1"
curl_s3 /other/dst -X PUT -H 'x-amz-copy-source: bkt/src' -H 'x-amz-metadata-directive: REPLACE' -H 'x-amz-meta-b: 2' \
	-H 'x-amz-tagging-directive: REPLACE' -H 'x-amz-tagging: p=q&r=s' >/dev/null
assert_eq "$(header_of x-amz-meta-a /other/dst -I)$(header_of x-amz-meta-b /other/dst -I) $(header_of x-amz-tagging-count /other/dst -I)" "2 2"
curl_s3 /bkt/src -X PUT -H 'x-amz-copy-source: bkt/src' -H 'x-amz-metadata-directive: REPLACE' -H 'x-amz-meta-c: 3' >/dev/null
assert_eq "$(header_of x-amz-meta-c /bkt/src -I) $(header_of x-amz-tagging-count /bkt/src -I) $(header_of etag /bkt/src -I)" "3 1 $etag" "onto itself"
assert_eq "$(curl_s3 /bkt/src | md5)" "$(md5 "$T/body")"
assert_eq "$(code_of /bkt/src -X PUT -H 'x-amz-copy-source: bkt/src')" InvalidRequest
assert_eq "$(code_of /bkt/dst -X PUT -H 'x-amz-copy-source: bkt/nix')" NoSuchKey
assert_eq "$(code_of /bkt/dst -X PUT -H 'x-amz-copy-source: none/src')" NoSuchBucket
assert_eq "$(code_of /none/dst -X PUT -H 'x-amz-copy-source: bkt/src')" NoSuchBucket
assert_eq "$(code_of /bkt/dst -X PUT -H 'x-amz-copy-source: bkt/src' -H 'x-amz-copy-source-if-match: "x"')" PreconditionFailed
assert_eq "$(code_of /bkt/dst -X PUT -H 'x-amz-copy-source: bkt/src' -H "x-amz-copy-source-if-none-match: $etag")" PreconditionFailed
assert_status PUT /bkt/dst 200 -H 'x-amz-copy-source: bkt/src' -H "x-amz-copy-source-if-match: $etag"
assert_status PUT /bkt/dst 412 -H 'x-amz-copy-source: bkt/src' -H 'if-none-match: *'
r=$(curl_s3 /bkt/sum -X PUT -H 'x-amz-copy-source: bkt/src' -H 'x-amz-checksum-algorithm: SHA256')
assert_eq "$(xml ChecksumSHA256 <<<"$r")" "$(openssl sha256 -binary "$T/body" | base64)"
# Of an object that came by RDMA: its ETag is none of its bytes, that of the copy is.
raw <<-END
	window w 300001 pattern:9
	request PUT /bkt/viardma x-amz-rdma-token:@w content-length:0
	expect status 200
	request PUT /bkt/copied x-amz-copy-source:/bkt/viardma content-length:0
	expect status 200
	window g 300001
	request GET /bkt/copied x-amz-rdma-token:@g
	expect window g pattern:9
	# item 71: a body's checksum would be checked against the empty one; the window has a header of its own
	request GET /bkt/copied x-amz-rdma-token:@g x-amz-checksum-mode:ENABLED
	expect status 200
	expect noheader x-amz-checksum-crc64nvme
	expect noheader x-amz-checksum-type
	expect rdmasum g
	# A copy has no payload.
	request PUT /bkt/copied x-amz-copy-source:/bkt/viardma x-amz-rdma-token:@w content-length:0
	expect status 400
	# item 77: a token beside an operation that moves nothing is ignored
	request GET /bkt?list-type=2 x-amz-rdma-token:@g
	expect status 200
	expect noheader x-amz-rdma-reply
	expect body contains <Key>copied</Key>
	request DELETE /bkt/viardma x-amz-rdma-token:@g
	expect status 204
	request POST /bkt/x?uploads x-amz-rdma-token:@g content-length:0
	expect status 200
	request GET /bkt?location x-amz-rdma-token:@g
	expect status 200
	request HEAD /bkt x-amz-rdma-token:@g
	expect status 200
END
assert_eq "$(header_of etag /bkt/copied -I)" "\"$(bytes pattern:9 300001 | md5)\""
curl_s3 /bkt/empty -X PUT -d ''
curl_s3 /bkt/empty2 -X PUT -H 'x-amz-copy-source: bkt/empty' >/dev/null
assert_eq "$(header_of content-length /bkt/empty2 -I)" 0

# ---- conditions: item 73 ----
later='Fri, 01 Jan 2100 00:00:00 GMT' earlier='Sat, 01 Jan 2000 00:00:00 GMT'
assert_status GET /bkt/src 200 -H "if-match: $etag"
assert_status GET /bkt/src 412 -H 'if-match: "x"'
assert_status GET /bkt/src 304 -H "if-none-match: $etag"
assert_status GET /bkt/src 200 -H "if-modified-since: $earlier"
assert_status GET /bkt/src 304 -H "if-modified-since: $(header_of last-modified /bkt/src -I)"
assert_status GET /bkt/src 412 -H "if-unmodified-since: $earlier"
assert_status GET /bkt/src 200 -H "if-unmodified-since: $later"
assert_eq "$(curl_s3 /bkt/src -r 100-199 -H "if-range: $etag" | wc -c)" 100
assert_eq "$(curl_s3 /bkt/src -r 2999999- | wc -c)" 2
assert_eq "$(curl_s3 /bkt/src -r -7 | wc -c)" 7

# ---- what an answer is asked to say: of signed requests (tests/clients/boto3_client.py), and of no others ----
assert_eq "$(code_of '/bkt/src?response-content-type=text/html')" InvalidRequest
assert_status GET '/bkt/src?response-content-disposition=attachment' 400
assert_match "$(header_of x-amz-request-id /bkt/src -I)" '^[0-9a-f]{16}$'
assert_match "$(header_of x-amz-request-id /bkt/nix -I)" '^[0-9a-f]{16}$'
assert_match "$(header_of x-amz-request-id "/bkt/$(printf '%09000d' 0)")" '^[0-9a-f]{16}$' "an answer to what is no request yet"

# ---- checksums ----
sha=$(openssl sha256 -binary "$T/body" | base64)
curl_s3 /bkt/sum -T "$T/body" -H "x-amz-checksum-sha256: $sha"
assert_eq "$(header_of x-amz-checksum-sha256 /bkt/sum -I -H 'x-amz-checksum-mode: ENABLED')" "$sha"
assert_eq "$(header_of x-amz-checksum-type /bkt/sum -I -H 'x-amz-checksum-mode: ENABLED')" FULL_OBJECT
assert_eq "$(header_of x-amz-checksum-sha256 /bkt/sum -I)" ''
assert_eq "$(code_of /bkt/sum -T "$T/list" -H "x-amz-checksum-sha256: $sha")" BadDigest
assert_eq "$(curl_s3 /bkt/sum | md5)" "$(md5 "$T/body")" "the old one is still there"
r=$(curl_s3 '/bkt/sum?attributes' -H 'x-amz-object-attributes: ETag,Checksum,ObjectSize,StorageClass')
assert_eq "$(xml ChecksumSHA256 <<<"$r") $(xml ObjectSize <<<"$r") $(xml StorageClass <<<"$r")" "$sha 3000001 STANDARD"
# In aws-chunked frames without a signature, the checksum behind them.
chunked() {
	printf '6\r\nhello\n\r\n0\r\nx-amz-checksum-sha256:%s\r\n\r\n' "$2" >"$T/chunks"
	status_of PUT "$1" -H 'content-encoding: aws-chunked' -H 'x-amz-trailer: x-amz-checksum-sha256' --data-binary "@$T/chunks" \
		-H 'x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER' -H 'x-amz-decoded-content-length: 6'
}
assert_eq "$(chunked /bkt/chunked "$sha")" 400 "a trailer with the checksum of something else"
sha=$(echo hello | openssl sha256 -binary | base64)
assert_eq "$(chunked /bkt/chunked "$sha")" 200
assert_eq "$(curl_s3 /bkt/chunked) $(header_of x-amz-checksum-sha256 /bkt/chunked -I -H 'x-amz-checksum-mode: ENABLED')" "hello $sha"
assert_status GET /bkt/src 200 -H "x-amz-checksum-mode: ENABLED"

# ---- errors keep the connection; Expect ----
raw <<-END
	request GET /bkt/nix
	expect status 404
	expect alive
	request GET /bkt?torrent
	expect status 501
	expect alive
	request PUT /bkt/t?tagging body=text:nonsense
	expect status 400
	expect body contains MalformedXML
	expect alive
	request POST /bkt?delete expect:100-continue content-md5:5mVJ83j+i39ubCh/QAsyeg== body=text:<Delete><Object><Key>q</Key></Object></Delete>
	expect status 200
	expect alive
	request GET /bkt/src
	expect status 200
END
assert_eq "$(curl -sS -o /dev/null -w '%{num_connects}' "$URL_S3/bkt/nix" -o /dev/null -w '%{num_connects}' "$URL_S3/bkt/src")" 10
assert_eq "$(code_of '/bkt/src?versionId=123')" NoSuchVersion
assert_status GET '/bkt/src?versionId=null' 200
assert_eq "$(code_of /bkt/x -X PUT -d x -H 'x-amz-storage-class: NONSENSE')" InvalidStorageClass
assert_alive
stop_daemon
