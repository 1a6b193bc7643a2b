#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The AWS CLI against the daemon.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
need /usr/bin/aws
clients_daemon
aws() { /usr/bin/aws --endpoint-url "$URL_S3" "$@"; }
api() { aws --output text s3api "$@"; }
cat >"$T/config" <<-END
	[default]
	s3 =
	  multipart_threshold = 8MB
	  multipart_chunksize = 5MB
	  addressing_style = path
END
export AWS_CONFIG_FILE=$T/config AWS_SHARED_CREDENTIALS_FILE=$T/none

aws s3 mb s3://first >"$T/out" || fail "mb"
aws s3 ls | grep -q ' first$' || fail "ls of buckets"
api head-bucket --bucket first || fail "head-bucket"
api head-bucket --bucket absent >"$T/out" 2>&1 && fail "head-bucket of an absent one"
assert_eq "$(api get-bucket-location --bucket first)" None "location of us-east-1"
assert_eq "$(api get-bucket-versioning --bucket first)" "" "versioning"
api get-bucket-acl --bucket first | grep -q FULL_CONTROL || fail "get-bucket-acl"

# ---- files, trees
odd_files "$T/tree"
aws s3 sync --only-show-errors "$T/tree" s3://first/tree || fail "sync up"
aws s3 sync --quiet s3://first/tree "$T/back" || fail "sync down"
diff -r "$T/tree" "$T/back" || fail "the tree came back different"
assert_eq "$(aws s3 sync "$T/tree" s3://first/tree | wc -l)" 0 "a second sync has nothing to do"
rm "$T/back/plain.txt"
echo changed >"$T/back/with blank"
aws s3 sync --quiet --delete "$T/back" s3://first/tree || fail "sync --delete"
assert_eq "$(aws s3 cp --quiet 's3://first/tree/with blank' - )" changed "cp to standard output"
aws s3 ls s3://first/tree/plain.txt >"$T/out" && fail "sync --delete left a file"
assert_eq "$(aws s3 ls --recursive s3://first/tree | wc -l)" "$(find "$T/back" -type f | wc -l)" "ls --recursive"
aws s3 ls s3://first/tree/ | grep -q 'PRE sub dir/' || fail "ls shows a prefix"
aws s3 mv --quiet s3://first/tree/empty s3://first/tree/moved || fail "mv"
aws s3 cp --quiet s3://first/tree/日本語 s3://first/copy/日本語 || fail "cp within"
aws s3 cp --quiet s3://first/copy/日本語 - | cmp - "$T/back/日本語" || fail "the copy"
echo piped | aws s3 cp --quiet - s3://first/piped || fail "cp from standard input"
assert_eq "$(aws s3 cp --quiet s3://first/piped -)" piped "what was piped"

# ---- large: multipart up, ranges down, a copy by parts
bytes pattern:9 $((BIG + 12345)) >"$T/big"
aws s3 cp --quiet "$T/big" s3://first/big || fail "multipart upload"
aws s3 cp --quiet s3://first/big "$T/big.back" || fail "download in ranges"
assert_same "$T/big" "$T/big.back"
case $(api head-object --bucket first --key big --query ETag) in *-[0-9]*) ;; *) fail "no multipart ETag" ;; esac
aws s3 cp --quiet s3://first/big s3://first/big2 || fail "a copy of a large object"
aws s3 cp --quiet s3://first/big2 - | cmp - "$T/big" || fail "the large copy"

# ---- the same by hand
head -c 6000000 "$T/big" >"$T/p1"
head -c 1234567 "$T/big" >"$T/p2"
id=$(api create-multipart-upload --bucket first --key hand --metadata a=b --content-type text/x-hand --query UploadId)
assert_eq "$(api list-multipart-uploads --bucket first --query 'Uploads[].Key')" hand "list-multipart-uploads"
e2=$(api upload-part --bucket first --key hand --upload-id "$id" --part-number 7 --body "$T/p2" --query ETag)
e1=$(api upload-part --bucket first --key hand --upload-id "$id" --part-number 2 --body "$T/p1" --query ETag)
assert_eq "$(api list-parts --bucket first --key hand --upload-id "$id" --query 'Parts[].[PartNumber,Size]' | tr '\t\n' ' ')" \
	"2 6000000 7 1234567 " "list-parts"
api complete-multipart-upload --bucket first --key hand --upload-id "$id" \
	--multipart-upload "{\"Parts\":[{\"PartNumber\":7,\"ETag\":$e2},{\"PartNumber\":2,\"ETag\":$e1}]}" >"$T/out" 2>&1 && fail "parts out of order"
grep -q InvalidPartOrder "$T/out" || fail "$(cat "$T/out")"
api complete-multipart-upload --bucket first --key hand --upload-id "$id" \
	--multipart-upload "{\"Parts\":[{\"PartNumber\":2,\"ETag\":$e1},{\"PartNumber\":7,\"ETag\":$e2}]}" >"$T/out" || fail "complete"
cat "$T/p1" "$T/p2" | cmp - <(aws s3 cp --quiet s3://first/hand -) || fail "the completed object"
assert_eq "$(api head-object --bucket first --key hand --query '[Metadata.a,ContentType,ContentLength]')" $'b\ttext/x-hand\t7234567' "head of it"
assert_eq "$(api head-object --bucket first --key hand --part-number 1 --query '[PartsCount,ContentLength]')" $'2\t6000000' "its first part"
id=$(api create-multipart-upload --bucket first --key gone --query UploadId)
api abort-multipart-upload --bucket first --key gone --upload-id "$id" || fail "abort"
api list-parts --bucket first --key gone --upload-id "$id" >"$T/out" 2>&1 && fail "an aborted upload is there"
grep -q NoSuchUpload "$T/out" || fail "$(cat "$T/out")"

# ---- one object: metadata, ranges, conditions, tags, checksums
api put-object --bucket first --key 'meta data' --body "$T/p2" --metadata k1=v1,k2='two words' --content-type text/plain \
	--cache-control no-cache --content-disposition 'attachment; filename="x"' --content-encoding zstd --content-language de \
	--expires 2030-01-01T00:00:00Z --storage-class STANDARD --tagging 'a=1&b=x%20y' >"$T/out" || fail "put-object"
assert_eq "$(api head-object --bucket first --key 'meta data' --query '[Metadata.k1,Metadata.k2,ContentType,CacheControl,ContentDisposition,ContentEncoding,ContentLanguage]')" \
	$'v1\ttwo words\ttext/plain\tno-cache\tattachment; filename="x"\tzstd\tde' "metadata"
assert_eq "$(api get-object-tagging --bucket first --key 'meta data' --query 'TagSet[].[Key,Value]' | tr '\t\n' '=;')" "a=1;b=x y;" "tags"
api put-object-tagging --bucket first --key 'meta data' --tagging 'TagSet=[{Key=c,Value=3}]' || fail "put-object-tagging"
assert_eq "$(api get-object-tagging --bucket first --key 'meta data' --query 'TagSet[].[Key,Value]' | tr '\t\n' '=;')" "c=3;" "new tags"
api delete-object-tagging --bucket first --key 'meta data' || fail "delete-object-tagging"
assert_eq "$(api get-object-tagging --bucket first --key 'meta data' --query 'TagSet')" "" "no tags"
api get-object --bucket first --key 'meta data' --range bytes=100-299 "$T/out" >/dev/null || fail "a range"
cmp "$T/out" <(tail -c +101 "$T/p2" | head -c 200) || fail "the range's bytes"
etag=$(api head-object --bucket first --key 'meta data' --query ETag)
assert_eq "$etag" "\"$(md5 <"$T/p2")\"" "the ETag is the MD5"
api get-object --bucket first --key 'meta data' --if-none-match "$etag" "$T/out" >"$T/err" 2>&1 && fail "If-None-Match"
grep -q 304 "$T/err" || fail "$(cat "$T/err")"
api get-object --bucket first --key 'meta data' --if-match '"00"' "$T/out" >"$T/err" 2>&1 && fail "If-Match"
grep -q 'PreconditionFailed\|412' "$T/err" || fail "$(cat "$T/err")"
api copy-object --bucket first --key 'meta data' --copy-source 'first/meta data' --metadata-directive REPLACE --metadata n=w >"$T/out" || fail "replace metadata"
assert_eq "$(api head-object --bucket first --key 'meta data' --query '[Metadata.n,Metadata.k1,ETag]')" $'w\tNone\t'"$etag" "replaced metadata"
for a in CRC32 CRC32C SHA1 SHA256; do
	api put-object --bucket first --key "sum$a" --body "$T/p1" --checksum-algorithm $a >"$T/out" || fail "checksum $a"
	have=$(api head-object --bucket first --key "sum$a" --checksum-mode ENABLED --query "Checksum$a")
	[ "$have" != None ] && grep -qF "$have" "$T/out" || fail "stored $a: $have, said: $(cat "$T/out")"
	api get-object --bucket first --key "sum$a" --checksum-mode ENABLED "$T/back.sum" >/dev/null || fail "get with $a"
	assert_same "$T/back.sum" "$T/p1"
done
assert_eq "$(api get-object-attributes --bucket first --key sumSHA256 --object-attributes ETag ObjectSize Checksum --query ObjectSize)" 6000000 "attributes"
api delete-object --bucket first --key absent || fail "deleting what is not there"

# ---- requests that S3 servers are reported to answer wrongly
api put-object --bucket first --key typeless --body "$T/p1" >"$T/out" || fail "put-object without a type"
assert_eq "$(api head-object --bucket first --key typeless --query ContentType)" binary/octet-stream "its type"
assert_eq "$(api head-object --bucket first --key typeless --range bytes=0-1 --query ContentLength)" 2 "head-object --range"
: >"$T/none.in"
api put-object --bucket first --key none --body "$T/none.in" >"$T/out" || fail "an empty object"
assert_eq "$(api get-object --bucket first --key none --range bytes=-1 "$T/back.none" --query ContentLength)" 0 "the last byte of an empty object"
for name in STANDARD_IA STANDARD STANDARD; do
	api copy-object --bucket first --key typeless --copy-source first/typeless --storage-class $name >"$T/out" || fail "copy-object onto itself as $name"
	assert_eq "$(api list-objects-v2 --bucket first --prefix typeless --query 'Contents[0].StorageClass')" $name "its class"
done
aws s3 cp --quiet --storage-class STANDARD_IA s3://first/typeless s3://first/typeless || fail "cp onto itself"
api copy-object --bucket first --key typeless --copy-source first/typeless >"$T/out" 2>&1 && fail "a copy onto itself that changes nothing"
grep -q InvalidRequest "$T/out" || fail "$(cat "$T/out")"
id=$(api create-multipart-upload --bucket first --key marked --query UploadId)
assert_eq "$(api list-multipart-uploads --bucket first --upload-id-marker garbage --query 'Uploads[].UploadId')" "$id" "--upload-id-marker alone"
api abort-multipart-upload --bucket first --key marked --upload-id "$id" || fail "abort"
api put-bucket-versioning --bucket first --versioning-configuration Status=Suspended || fail "versioning: Suspended"
api put-bucket-versioning --bucket first --versioning-configuration Status=Enabled >"$T/out" 2>&1 && fail "versioning: Enabled"
grep -q NotImplemented "$T/out" || fail "$(cat "$T/out")"
api put-bucket-logging --bucket first --bucket-logging-status '{}' || fail "put-bucket-logging: none"

# ---- many keys: pages, delimiters
mkdir "$T/list" "$T/list"/d{0,1,2,3}
for i in $(seq 25); do echo "$i" >"$T/list/d$((i % 4))/$(printf %03d "$i")"; done
aws s3 sync --quiet "$T/list" s3://first/list || fail "many small files"
assert_eq "$(api list-objects-v2 --bucket first --prefix list/ --page-size 7 --query 'length(Contents)' | awk '{ n += $1 } END { print n }')" 25 "pages of 7"
assert_eq "$(api list-objects-v2 --bucket first --prefix list/ --delimiter / --query 'CommonPrefixes[].Prefix' | tr '\t' ' ')" \
	"list/d0/ list/d1/ list/d2/ list/d3/" "common prefixes"
assert_eq "$(api list-objects --bucket first --prefix list/d1/ --query 'Contents[0].Key')" list/d1/001 "version 1"
assert_eq "$(api list-objects-v2 --bucket first --prefix list/ --start-after list/d2/ --max-items 1 --query 'Contents[0].Key' | head -n 1)" list/d2/002 "start-after"
aws s3 rm --quiet --recursive s3://first/list || fail "rm --recursive"
assert_eq "$(api list-objects-v2 --bucket first --prefix list/ --query 'Contents')" None "nothing is left"

# ---- what a bucket may have
api put-bucket-lifecycle-configuration --bucket first --lifecycle-configuration \
	'{"Rules":[{"ID":"r","Status":"Enabled","Filter":{"Prefix":"tmp/"},"Expiration":{"Days":7}}]}' || fail "put lifecycle"
assert_eq "$(api get-bucket-lifecycle-configuration --bucket first --query 'Rules[0].[ID,Expiration.Days]')" $'r\t7' "lifecycle"
api delete-bucket-lifecycle --bucket first || fail "delete lifecycle"
api put-bucket-cors --bucket first --cors-configuration '{"CORSRules":[{"AllowedMethods":["GET"],"AllowedOrigins":["https://x.example"]}]}' || fail "put cors"
curl -sS -o /dev/null -D - -X OPTIONS -H 'Origin: https://x.example' -H 'Access-Control-Request-Method: GET' "$URL_S3/first/k" |
	grep -qi '^access-control-allow-origin: https://x.example' || fail "preflight"
api delete-bucket-cors --bucket first || fail "delete cors"
api put-bucket-tagging --bucket first --tagging 'TagSet=[{Key=team,Value=x}]' || fail "bucket tagging"
assert_eq "$(api get-bucket-tagging --bucket first --query 'TagSet[0].Value')" x "bucket's tags"
api get-bucket-policy --bucket first >"$T/out" 2>&1 && fail "a policy"
grep -q NoSuchBucketPolicy "$T/out" || fail "$(cat "$T/out")"

# ---- links
curl -sS --fail "$(aws s3 presign s3://first/big2)" | cmp - "$T/big" || fail "a presigned GET"
aws s3 rb s3://first >"$T/out" 2>&1 && fail "rb of a bucket that is not empty"
grep -q BucketNotEmpty "$T/out" || fail "$(cat "$T/out")"
aws s3 rb --force s3://first >/dev/null || fail "rb --force"
AWS_SECRET_ACCESS_KEY=wrong aws s3 ls >"$T/out" 2>&1 && fail "a wrong secret"
grep -q SignatureDoesNotMatch "$T/out" || fail "$(cat "$T/out")"
assert_alive
