#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Multipart uploads on the real daemon: parts by RDMA and by body, mixed, out of order, at once, replaced, copied;
# completing, ending, listing; checksums of parts and of the whole.
. "$(dirname "$0")/lib.sh"
start_daemon

# What an XML answer says: xml NAME <answer (the first one)
# Begins an upload of $1, other words go to curl; prints its id.
create() { curl_s3 "$1?uploads" -X POST "${@:2}" | xml UploadId; }
# Puts file $4 as part $3 of upload $2 of $1, other words go to curl; prints its ETag.
part() { curl_s3 "$1?uploadId=$2&partNumber=$3" -o /dev/null -D - -T "$4" "${@:5}" | tr -d '\r"' | sed -n 's/^etag: *//Ip'; }
# The body of a completion: complete_body NUMBER ETAG ...
complete_body() {
	echo '<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
	while [ $# -gt 1 ]; do
		echo "<Part><PartNumber>$1</PartNumber><ETag>\"$2\"</ETag></Part>"
		shift 2
	done
	echo '</CompleteMultipartUpload>'
}
complete() { complete_body "${@:3}" | curl_s3 "$1?uploadId=$2" -X POST --data-binary @-; }
# Its status and the code of its error.
complete_error() {
	complete_body "${@:3}" | curl -sS -o "$T/error" -w '%{http_code}' -X POST --data-binary @- "$URL_S3$1?uploadId=$2"
	echo " $(xml Code <"$T/error")"
}
# The ETag of an object made of parts with these ETags.
composite() {
	local e
	for e in "$@"; do printf '%b' "$(echo "${e:0:32}" | sed 's/../\\x&/g')"; done | md5
}

bytes pattern:1 5M >"$T/p1"
bytes pattern:2 5M >"$T/p2"
bytes pattern:3 1000001 >"$T/p3"

# ---- by body, out of order ----
u=$(create /bkt/http -H 'content-type: text/x-test' -H 'x-amz-meta-who: me')
assert_match "$u" '^u[0-9a-f]{32}$' "upload id"
e3=$(part /bkt/http "$u" 3 "$T/p3")
e1=$(part /bkt/http "$u" 1 "$T/p1")
e2=$(part /bkt/http "$u" 2 "$T/p2")
assert_eq "$e1" "$(md5 "$T/p1")" "a part's ETag is its MD5"
assert_status GET /bkt/http 404
r=$(complete /bkt/http "$u" 1 "$e1" 2 "$e2" 3 "$e3")
assert_eq "$(xml ETag <<<"$r")" "$(composite "$e1" "$e2" "$e3")-3" "ETag of the whole"
assert_eq "$(xml Location <<<"$r")" "$URL_S3/bkt/http"
cat "$T/p1" "$T/p2" "$T/p3" >"$T/whole"
assert_eq "$(xml ChecksumCRC64NVME <<<"$r")" "$(crc64 "$T/whole")" "CRC64-NVME of the whole"
curl_s3 /bkt/http >"$T/back"
assert_same "$T/whole" "$T/back"
assert_eq "$(header_of content-type /bkt/http -I)" text/x-test
assert_eq "$(header_of x-amz-meta-who /bkt/http -I)" me
assert_eq "$(header_of etag /bkt/http -I)" "\"$(composite "$e1" "$e2" "$e3")-3\""
# Ranges across the odd borders of parts, by body and by token.
size=$(stat -c %s "$T/whole")
for r in 0-0 5242879-5242880 5242870-10485770 1-11485000 10485760-11485760 "70001-$((size - 1))"; do
	curl_s3 /bkt/http -r "$r" >"$T/back"
	cmp "$T/back" <(tail -c +$((${r%-*} + 1)) "$T/whole" | head -c $((${r#*-} - ${r%-*} + 1))) || fail "range $r"
done
raw <<-END
	window g 16M
	request GET /bkt/http x-amz-rdma-token:@g range:bytes=5000001-11000000
	expect status 206
	expect header content-range "bytes 5000001-11000000/$size"
	expect window g file:$T/whole 5000001 6000000
	expect untouched g 6000000 -
	# item 70: a part by its number
	fill g zero
	request GET /bkt/http?partNumber=1 x-amz-rdma-token:@g
	expect status 206
	expect header x-amz-rdma-reply 206
	expect header x-amz-mp-parts-count 3
	expect header content-range "bytes 0-5242879/$size"
	expect window g pattern:1 0 5M
	expect untouched g 5M -
	fill g zero
	request GET /bkt/http?partNumber=3 x-amz-rdma-token:@g
	expect status 206
	expect window g pattern:3 0 1000001
	request GET /bkt/http?partNumber=4 x-amz-rdma-token:@g
	expect status 416
	expect noheader x-amz-rdma-reply
END
assert_eq "$(curl_s3 '/bkt/http?partNumber=2' | md5)" "$e2" "partNumber by body"
assert_eq "$(header_of x-amz-mp-parts-count '/bkt/http?partNumber=2' -I)" 3
assert_eq "$(header_of content-length '/bkt/http?partNumber=3' -I)" 1000001
# Repeated, it says the same; with another list it does not.
assert_eq "$(complete /bkt/http "$u" 1 "$e1" 2 "$e2" 3 "$e3" | xml ETag)" "$(composite "$e1" "$e2" "$e3")-3" "again"
assert_eq "$(complete_error /bkt/http "$u" 1 "$e1" 2 "$e2")" "404 NoSuchUpload"

# ---- by RDMA: item 51, item 54 ----
u=$(create /bkt/rdma)
raw <<-END
	windows w 4 5M pattern:1%i
	connections 4
	parallel 4 PUT /bkt/rdma?uploadId=$u&partNumber=%i1 x-amz-rdma-token:@w%i content-length:0
	expect status 200
	expect header x-amz-rdma-reply 200
	expect header x-amz-rdma-bytes-transferred 5242880
	expect header etag ~^.[0-9a-f]{32}-r.$
	expect body empty
END
curl_s3 "/bkt/rdma?uploadId=$u" >"$T/list"
assert_eq "$(grep -o '<PartNumber>' "$T/list" | wc -l)" 4 "parts listed"
list=$(tr -d '\n' <"$T/list" | sed 's/<Part>/\n&/g' | sed -n 's/.*<PartNumber>\([0-9]*\)<.*<ETag>&quot;\([^&]*\)&quot;.*/\1 \2/p')
# shellcheck disable=SC2086
complete /bkt/rdma "$u" $list >/dev/null
: >"$T/whole"
for n in $(awk '{ print $1 }' <<<"$list"); do bytes "pattern:1$((n / 10))" 5M >>"$T/whole"; done
raw <<-END
	window g 20M
	request GET /bkt/rdma x-amz-rdma-token:@g
	expect status 200
	expect window g file:$T/whole
END

# What is wrong with a PUT is wrong with a part; a decline stores nothing.
raw <<-END
	window w 70000 pattern:5
	token zero w size=0
	request PUT /bkt/rdma2?uploadId=00000000000000000000000000000001&partNumber=1 x-amz-rdma-token:@w content-length:0
	expect status 404
	expect noheader x-amz-rdma-reply
END
u=$(create /bkt/rdma2)
raw <<-END
	window w 70000 pattern:5
	token zero w size=0
	request PUT /bkt/rdma2?uploadId=$u&partNumber=1 x-amz-rdma-token:@zero content-length:0
	expect status 400
	request PUT /bkt/rdma2?uploadId=$u&partNumber=1 x-amz-rdma-token:@w body=text:both
	expect status 400
	request PUT /bkt/rdma2?uploadId=$u&partNumber=1 x-amz-rdma-token:nonsense content-length:0
	expect status 400
	expect body contains InvalidRDMAToken
END
# The window is there before, as over RC its connection has to be.
raw <<-END &
	window w 70000 pattern:5
	touch $T/has_window
	waitfile $T/is_down
	request PUT /bkt/rdma2?uploadId=$u&partNumber=1 x-amz-rdma-token:@w content-length:0
	expect status 501
	expect header x-amz-rdma-reply 501
	expect noheader etag
	expect body contains RDMANotSupported
END
declined=$!
wait_for 60 test -e "$T/has_window"
softnicctl port mlx5_0 down >/dev/null || fail softnicctl
rail_up() { [ "$(metric gantry_rail_up)" = "$1" ]; }
wait_for 60 rail_up 0
touch "$T/is_down"
wait $declined || fail "a port that is down"
assert_eq "$(curl_s3 "/bkt/rdma2?uploadId=$u" | grep -c '<Part>')" 0 "nothing is stored"
softnicctl port mlx5_0 up >/dev/null || fail softnicctl
up() { raw_try <<<"window w 70000 pattern:5
	request PUT /bkt/rdma2?uploadId=$u&partNumber=1 x-amz-rdma-token:@w content-length:0
	expect header x-amz-rdma-reply 200"; }
wait_for 60 up

# ---- mixed: item 53; a replaced part; a checksum of the wrong bytes: item 51, item 44 ----
u=$(create /bkt/mixed)
e1=$(part /bkt/mixed "$u" 1 "$T/p2")
e1=$(part /bkt/mixed "$u" 1 "$T/p1")
raw <<-END >"$T/etag"
	window w 5M pattern:2
	window s 70000 pattern:5
	request PUT /bkt/mixed?uploadId=$u&partNumber=2 x-amz-rdma-token:@w content-length:0 x-amz-checksum-crc64nvme:@crc64:s
	expect status 400
	expect body contains BadDigest
	request PUT /bkt/mixed?uploadId=$u&partNumber=2 x-amz-rdma-token:@w content-length:0 x-amz-checksum-crc64nvme:@crc64:w
	expect status 200
	expect header x-amz-checksum-crc64nvme @crc64:w
	save e2 header etag
	request PUT /bkt/mixed?uploadId=$u&partNumber=3 x-amz-rdma-token:@s content-length:0
	expect status 200
	save e3 header etag
	print "@e2 @e3"
END
read -r e2 e3 < <(tail -1 "$T/etag" | tr -d '"')
complete /bkt/mixed "$u" 1 "$e1" 2 "$e2" 3 "$e3" >/dev/null
{ cat "$T/p1" "$T/p2"; bytes pattern:5 70000; } >"$T/whole"
curl_s3 /bkt/mixed >"$T/back"
assert_same "$T/whole" "$T/back" "mixed parts"
assert_eq "$(header_of x-amz-checksum-crc64nvme /bkt/mixed -I -H 'x-amz-checksum-mode: ENABLED')" "$(crc64 "$T/whole")"
restart_daemon
curl_s3 /bkt/mixed >"$T/back"
assert_same "$T/whole" "$T/back" "after a restart"

# ---- a power cut between the steps: what was answered stays ----
u=$(create /bkt/cut -H 'x-amz-meta-cut: yes' -H 'x-amz-checksum-algorithm: CRC32C')
gone=$(create /bkt/cut2)
e1=$(part /bkt/cut "$u" 1 "$T/p1")
e2=$(part /bkt/cut "$u" 2 "$T/p3")
assert_status DELETE "/bkt/cut2?uploadId=$gone" 204
kill_daemon
daemon_run
assert_status GET "/bkt/cut2?uploadId=$gone" 404
assert_eq "$(curl_s3 "/bkt/cut?uploadId=$u" | grep -o '<PartNumber>' | wc -l)" 2 "parts after a kill"
e3=$(part /bkt/cut "$u" 3 "$T/p2")
assert_ne "$(create /bkt/cut2)" "$gone" "an id is never used again"
complete /bkt/cut "$u" 1 "$e1" 3 "$e3" >/dev/null
kill_daemon
daemon_run
cat "$T/p1" "$T/p2" >"$T/whole"
curl_s3 /bkt/cut >"$T/back"
assert_same "$T/whole" "$T/back" "a completed upload after a kill"
assert_eq "$(header_of x-amz-meta-cut /bkt/cut -I)" yes
assert_eq "$(complete /bkt/cut "$u" 1 "$e1" 3 "$e3" | xml ETag)" "$(composite "$e1" "$e3")-2" "completed again after a kill"

# ---- at once: the same part, the same completion, completion against abort ----
u=$(create /bkt/race)
raw <<-END
	windows w 8 5M pattern:2%i
	connections 8
	parallel 8 PUT /bkt/race?uploadId=$u&partNumber=1 x-amz-rdma-token:@w%i content-length:0
	expect status 200
END
e1=$(curl_s3 "/bkt/race?uploadId=$u" | xml ETag)
complete_body 1 "$e1" >"$T/complete"
raw <<-END
	connections 6
	parallel 6 POST /bkt/race?uploadId=$u body=file:$T/complete
	expect status 200
END
curl_s3 /bkt/race >"$T/back"
for i in 0 1 2 3 4 5 6 7; do bytes "pattern:2$i" 5M | cmp -s - "$T/back" && break; done || fail "none of those that were sent"
for i in 1 2 3 4 5 6 7 8; do
	u=$(create /bkt/race2)
	e1=$(part /bkt/race2 "$u" 1 "$T/p3")
	complete_body 1 "$e1" >"$T/complete"
	curl -sS -o /dev/null -w '%{http_code}' -X POST --data-binary "@$T/complete" "$URL_S3/bkt/race2?uploadId=$u" >"$T/code" &
	r=$(status_of DELETE "/bkt/race2?uploadId=$u")
	wait $!
	case "$(<"$T/code") $r" in "200 404" | "404 204") ;; *) fail "completed $(<"$T/code"), aborted $r" ;; esac
	assert_status GET "/bkt/race2?uploadId=$u" 404
done

# ---- what is wrong with a completion ----
u=$(create /bkt/wrong)
e1=$(part /bkt/wrong "$u" 1 "$T/p3")
e2=$(part /bkt/wrong "$u" 2 "$T/p1")
assert_eq "$(complete_error /bkt/wrong "$u" 1 "$e1" 2 "$e2")" "400 EntityTooSmall"
assert_eq "$(complete_error /bkt/wrong "$u" 2 "$e2" 1 "$e1")" "400 InvalidPartOrder"
assert_eq "$(complete_error /bkt/wrong "$u" 2 "$e1")" "400 InvalidPart"
assert_eq "$(complete_error /bkt/wrong "$u" 2 "$e2" 3 "$e1")" "400 InvalidPart"
assert_eq "$(complete_error /bkt/wrong 00000000000000000000000000000001 1 "$e1")" "404 NoSuchUpload"
assert_eq "$(curl -sS -X POST "$URL_S3/bkt/wrong?uploadId=$u" -d '<nonsense/>' | xml Code)" MalformedXML
assert_eq "$(curl -sS -T "$T/p3" "$URL_S3/bkt/wrong?uploadId=$u&partNumber=0" | xml Code)" InvalidArgument
assert_eq "$(curl -sS -T "$T/p3" "$URL_S3/bkt/wrong?uploadId=$u&partNumber=10001" | xml Code)" InvalidArgument
echo x | curl_s3 /bkt/wrong -T -
assert_eq "$(complete_body 1 "$e1" | curl -sS -X POST --data-binary @- -H 'if-none-match: *' "$URL_S3/bkt/wrong?uploadId=$u" | xml Code)" PreconditionFailed
assert_eq "$(complete_body 1 "$e1" | curl -sS -X POST --data-binary @- -H 'if-match: "x"' "$URL_S3/bkt/wrong?uploadId=$u" | xml Code)" PreconditionFailed
assert_eq "$(complete_body 1 "$e1" | curl -sS -X POST --data-binary @- -H 'x-amz-mp-object-size: 7' "$URL_S3/bkt/wrong?uploadId=$u" | xml Code)" InvalidRequest
seq -f '<Part><PartNumber>%.0f</PartNumber><ETag>"00000000000000000000000000000000"</ETag></Part>' 10000 |
	{ echo '<CompleteMultipartUpload>'; cat; echo '</CompleteMultipartUpload>'; } >"$T/many"
assert_eq "$(curl -sS -X POST --data-binary "@$T/many" "$URL_S3/bkt/wrong?uploadId=$u" | xml Code)" InvalidPart
complete /bkt/wrong "$u" 1 "$e1" >/dev/null
assert_eq "$(curl_s3 /bkt/wrong | md5)" "$(md5 "$T/p3")" "one small part is fine"

# ---- lists ----
for k in a a b/1 b/2 c; do create "/bkt/l/$k" >/dev/null; done
curl_s3 '/bkt?uploads&prefix=l/&delimiter=/' >"$T/list"
assert_eq "$(grep -o '<Upload>' "$T/list" | wc -l)" 3 "uploads"
assert_match "$(tr -d '\n' <"$T/list")" '<CommonPrefixes><Prefix>l/b/</Prefix></CommonPrefixes>'
n=0 more='' id=''
while :; do
	curl_s3 "/bkt?uploads&prefix=l/&max-uploads=2&key-marker=$more&upload-id-marker=$id" >"$T/list"
	n=$((n + $(grep -o '<Upload>' "$T/list" | wc -l)))
	[ "$(xml IsTruncated <"$T/list")" = true ] || break
	more=$(xml NextKeyMarker <"$T/list") id=$(xml NextUploadIdMarker <"$T/list")
	[ $n -lt 20 ] || fail "the list of uploads does not end"
done
assert_eq $n 5 "uploads, page by page"
u=$(create /bkt/pages)
for i in 1 2 3 9999; do echo "$i" >"$T/x"; part /bkt/pages "$u" $i "$T/x" >/dev/null; done
curl_s3 "/bkt/pages?uploadId=$u&max-parts=3" >"$T/list"
assert_eq "$(xml IsTruncated <"$T/list") $(xml NextPartNumberMarker <"$T/list")" "true 3"
curl_s3 "/bkt/pages?uploadId=$u&part-number-marker=3" >"$T/list"
assert_eq "$(xml IsTruncated <"$T/list") $(xml PartNumber <"$T/list")" "false 9999"

# ---- abort: item 55 ----
assert_status DELETE "/bkt/pages?uploadId=$u" 204
assert_status DELETE "/bkt/pages?uploadId=$u" 404
assert_status GET "/bkt/pages?uploadId=$u" 404
# While a part comes: it must not appear afterwards, and its client hears of it.
u=$(create /bkt/aborted)
mkfifo "$T/slow"
{ curl -sS -o "$T/error" -w '%{http_code}' -T "$T/slow" -H 'content-length: 1000001' -H 'transfer-encoding:' \
	"$URL_S3/bkt/aborted?uploadId=$u&partNumber=1" >"$T/code"; } &
exec 9>"$T/slow"
head -c 500000 "$T/p3" >&9
in_flight() { [ "$(curl_admin /requests)" != "[]" ]; }
wait_for 60 in_flight
assert_status DELETE "/bkt/aborted?uploadId=$u" 204
tail -c +500001 "$T/p3" >&9
exec 9>&-
wait $!
assert_eq "$(<"$T/code") $(xml Code <"$T/error")" "404 NoSuchUpload" "a part whose upload was aborted"

# The same by RDMA, in the middle of the transfer.
u=$(create /bkt/aborted)
softnicctl rule add op=read limit=2 delay=50s >/dev/null || fail softnicctl # until the rule goes
raw <<-END &
	window w 5M pattern:1
	request PUT /bkt/aborted?uploadId=$u&partNumber=1 x-amz-rdma-token:@w content-length:0
	expect status 404
	expect body contains NoSuchUpload
	expect noheader etag
	expect noheader x-amz-rdma-reply
END
wait_for 60 in_flight
assert_status DELETE "/bkt/aborted?uploadId=$u" 204
softnicctl rule clear >/dev/null || fail softnicctl
wait $! || fail "the client of the part"
assert_status GET "/bkt/aborted?uploadId=$u" 404

# ---- parts that are copies ----
curl_s3 /bkt/source -T "$T/p1"
u=$(create /bkt/copied)
copy() {
	curl_s3 "/bkt/copied?uploadId=$u&partNumber=$1" -X PUT -H "x-amz-copy-source: $2" "${@:3}" | xml ETag
}
e1=$(copy 1 /bkt/source)
assert_eq "$e1" "$(md5 "$T/p1")" "ETag of a copied part"
e2=$(copy 2 bkt/mixed -H 'x-amz-copy-source-range: bytes=100-5242979')
e3=$(copy 3 bkt/mixed -H 'x-amz-copy-source-range: bytes=5242000-10555759')
assert_eq "$(curl -sS -X PUT "$URL_S3/bkt/copied?uploadId=$u&partNumber=4" -H 'x-amz-copy-source: /bkt/source' \
	-H 'x-amz-copy-source-range: bytes=0-5242880' | xml Code)" InvalidArgument
complete /bkt/copied "$u" 1 "$e1" 2 "$e2" 3 "$e3" >/dev/null
curl_s3 /bkt/mixed >"$T/mixed"
{ cat "$T/p1"; tail -c +101 "$T/mixed" | head -c 5242880; tail -c +5242001 "$T/mixed"; } >"$T/whole"
curl_s3 /bkt/copied >"$T/back"
assert_same "$T/whole" "$T/back" "copied parts"
# The copy of an object of odd parts.
curl_s3 /bkt/copy2 -X PUT -H 'x-amz-copy-source: bkt/copied' >/dev/null
curl_s3 /bkt/copy2 >"$T/back"
assert_same "$T/whole" "$T/back" "a copy of odd parts"
assert_eq "$(header_of etag /bkt/copy2 -I)" "\"$(md5 "$T/whole")\"" "MD5 of the copy"

# ---- checksums: item 52, item 56 ----
u=$(create /bkt/crc -H 'x-amz-checksum-algorithm: CRC64NVME')
e1=$(part /bkt/crc "$u" 1 "$T/p1")
e2=$(part /bkt/crc "$u" 2 "$T/p3")
r=$(complete /bkt/crc "$u" 1 "$e1" 2 "$e2")
cat "$T/p1" "$T/p3" >"$T/whole"
assert_eq "$(xml ChecksumCRC64NVME <<<"$r") $(xml ChecksumType <<<"$r")" "$(crc64 "$T/whole") FULL_OBJECT"
sha() { sha256sum "$@" | cut -d' ' -f1 | sed 's/../\\x&/g'; }
u=$(create /bkt/sha -H 'x-amz-checksum-algorithm: SHA256')
e1=$(part /bkt/sha "$u" 1 "$T/p1")
raw <<-END >"$T/etag"
	window w 5M pattern:2
	request PUT /bkt/sha?uploadId=$u&partNumber=2 x-amz-rdma-token:@w content-length:0
	expect status 200
	expect header x-amz-checksum-sha256 $(printf '%b' "$(sha "$T/p2")" | base64)
	save e2 header etag
	print "@e2"
END
e2=$(tail -1 "$T/etag" | tr -d '"')
assert_match "$(curl_s3 "/bkt/sha?uploadId=$u")" "<ChecksumSHA256>$(printf '%b' "$(sha "$T/p1")" | base64)<" "computed for a part"
assert_eq "$(curl -sS -T "$T/p1" "$URL_S3/bkt/sha?uploadId=$u&partNumber=3" -H "x-amz-checksum-crc64nvme: $(crc64 "$T/p1")" | xml Code)" InvalidRequest
s1=$(printf '%b' "$(sha "$T/p1")" | base64) s2=$(printf '%b' "$(sha "$T/p2")" | base64)
with_sums() {
	curl -sS -X POST "$URL_S3/bkt/sha?uploadId=$u" "${@:3}" -d "<CompleteMultipartUpload>
		<Part><PartNumber>1</PartNumber><ETag>$e1</ETag><ChecksumSHA256>$1</ChecksumSHA256></Part>
		<Part><PartNumber>2</PartNumber><ETag>$e2</ETag><ChecksumSHA256>$2</ChecksumSHA256></Part></CompleteMultipartUpload>"
}
assert_eq "$(with_sums "$s2" "$s1" | xml Code)" InvalidPart
assert_eq "$(with_sums "$s1" "$s2" -H "x-amz-checksum-sha256: $s1-2" | xml Code)" BadDigest
r=$(with_sums "$s1" "$s2")
want=$(printf '%b%b' "$(sha "$T/p1")" "$(sha "$T/p2")" | sha256sum | cut -d' ' -f1 | sed 's/../\\x&/g')
want=$(printf '%b' "$want" | base64)-2
assert_eq "$(xml ChecksumSHA256 <<<"$r") $(xml ChecksumType <<<"$r")" "$want COMPOSITE"
assert_eq "$(header_of x-amz-checksum-sha256 /bkt/sha -I -H 'x-amz-checksum-mode: ENABLED')" "$want"
r=$(curl_s3 '/bkt/sha?attributes' -H 'x-amz-object-attributes: ETag,Checksum,ObjectParts,ObjectSize')
assert_match "$r" "<ChecksumSHA256>.*<ObjectSize>10485760</ObjectSize>" "attributes"
assert_eq "$(grep -o '<PartNumber>' <<<"$r" | wc -l)" 2 "attributes: parts"
u=$(create /bkt/crc32 -H 'x-amz-checksum-algorithm: CRC32' -H 'x-amz-checksum-type: FULL_OBJECT')
e1=$(part /bkt/crc32 "$u" 1 "$T/p1")
e2=$(part /bkt/crc32 "$u" 2 "$T/p3")
r=$(curl -sS -X POST "$URL_S3/bkt/crc32?uploadId=$u" -H 'x-amz-checksum-type: COMPOSITE' -d "<CompleteMultipartUpload>
	<Part><PartNumber>1</PartNumber><ETag>$e1</ETag></Part><Part><PartNumber>2</PartNumber><ETag>$e2</ETag></Part></CompleteMultipartUpload>")
assert_eq "$(xml Code <<<"$r")" InvalidRequest "another type than was declared"
r=$(complete /bkt/crc32 "$u" 1 "$e1" 2 "$e2")
want=$(printf '%b' "$(gzip -c "$T/whole" | tail -c 8 | od -An -tx1 | awk '{ print "\\x" $4 "\\x" $3 "\\x" $2 "\\x" $1 }')" | base64)
assert_eq "$(xml ChecksumCRC32 <<<"$r") $(xml ChecksumType <<<"$r")" "$want FULL_OBJECT"
assert_alive
stop_daemon
