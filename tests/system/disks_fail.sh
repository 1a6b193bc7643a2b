#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Four disks, of which one after the other fails while they are served: each costs its share and nothing else, never a 404 or a short list;
# with fewer than half all is read-only; after a restart all is back.  Then one is missing: its share is 503, to lists too, until they may be partial;
# rules stand still for it alone.  Who asks by RDMA is told the same, and no byte moves.
. "$(dirname "$0")/lib.sh"
CORES=1 DISKS=4 DISK_SIZE=64MiB BUCKETS='bkt empty old'
MORE=$'lifecycle: { interval: 300ms }'
mkdir "$T/fault"
DAEMON_WRAP="$BUILD/tools/diskfault $T/fault"
G=$BUILD/gantryd
disks() { curl_admin /disks | jq -r "$1"; }
statuses() { # METHOD PATH [curl words]: how often each status
	curl -sS -Z --parallel-max 8 -X "$1" -o /dev/null -w '%{http_code}\n' "${@:3}" "$URL_S3$2" 2>>"$T/curl" | sort | uniq -c | awk '{ printf "%s%s:%s", n++ ? " " : "", $2, $1 }'
}
reasons() { curl -sS "$URL_ADMIN$1" | jq -r '[.reasons[].text] | join("; ")'; }
ready() { curl -sS -o /dev/null -w '%{http_code}' "$URL_ADMIN/readyz"; }
unavailable() { # METHOD PATH [curl words]
	curl -sS -X "$1" -D "$T/head" -o "$T/body" "${@:3}" "$URL_S3$2"
	assert_match "$(head -1 "$T/head")" ' 503' "$1 $2: $(<"$T/body")"
	assert_match "$(<"$T/body")" '<Code>ServiceUnavailable</Code>' "$1 $2"
	grep -qi '^retry-after: 30' "$T/head" || fail "$1 $2: $(<"$T/head")"
}
# The same by RDMA: no header says that it came to a transfer or was declined, and none was begun.
unavailable_token() { # KEY METHOD...
	local m moved
	moved=$(metric gantry_rdma_bytes_total)
	for m in "${@:2}"; do
		raw <<-END
			window w 300000 pattern:5
			request $m /bkt/$1 x-amz-rdma-token:@w content-length:0
			expect status 503
			expect noheader x-amz-rdma-reply
			expect noheader x-amz-rdma-bytes-transferred
			expect noheader etag
			expect header retry-after 30
			expect body contains <Code>ServiceUnavailable</Code>
			expect untouched w
		END
	done
	assert_eq "$(metric gantry_rdma_bytes_total)" "$moved" "bytes that RDMA moved for $1"
}
failed() { [ "$(curl_admin /disks | json state "$1")" = failed ]; }
fails() { # the I-th disk, which has the key K
	echo "write flush" >"$T/fault/disk$1"
	[ "$(status_of PUT "/bkt/$2" -d x)" = 503 ] || fail "a PUT on a disk that fails"
	wait_for 60 failed "$1"
}

start_daemon
# A key of each disk: by whose objects grow.
KEY=('' '' '' '') n=0
while [ -z "${KEY[0]}" ] || [ -z "${KEY[1]}" ] || [ -z "${KEY[2]}" ] || [ -z "${KEY[3]}" ]; do
	read -ra was < <(curl_admin /disks | json objects)
	k=key-$((n++))
	assert_status PUT "/bkt/$k" 200 -d bytes
	read -ra now < <(curl_admin /disks | json objects)
	for i in 0 1 2 3; do [ "${now[i]}" = "${was[i]}" ] || KEY[i]=$k; done
done
curl -sS --fail -Z -X PUT -d x -o /dev/null "$URL_S3/old/k[1-40]" "$URL_S3/bkt/more-[1-40]" 2>>"$T/curl" || fail PUTs
all=$((n + 40))
begin_upload() { # of the key of that disk, with a part
	UP[$1]=$(curl_s3 "/bkt/${KEY[$1]}?uploads" -X POST | sed -n 's/.*<UploadId>\(.*\)<.UploadId>.*/\1/p')
	PART[$1]=$(curl -sS -D - -o /dev/null -T /dev/null "$URL_S3/bkt/${KEY[$1]}?partNumber=1&uploadId=${UP[$1]}" | tr -d '\r' | sed -n 's/^[Ee][Tt]ag: //p')
}
for i in 0 1 2; do begin_upload $i; done
complete() { echo "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${PART[$1]}</ETag></Part></CompleteMultipartUpload>"; }

# ---- one fails ----
fails 1 "${KEY[1]}"
assert_eq "$(curl_admin /disks | json state)" "serving failed serving serving"
assert_match "$(reasons /healthz)" "disk $(curl_admin /disks | json disk 1) $(curl_admin /disks | json path 1) failed, read-only until a restart: .*Input/output error"
assert_eq "$(ready)" 200
assert_eq "$(metric gantry_store_disks 'failed') $(metric gantry_store_disks 'serving') $(metric gantry_store_up "disk=\"$(curl_admin /disks | json disk 1)\"")" "1 3 0"
gantry --admin "$T/admin.sock" status >"$T/said" || true
grep -q "$T/disk1 failed, " "$T/said" || fail "gantry status: $(<"$T/said")"
gantry --admin "$T/admin.sock" doctor >"$T/said" 2>&1 || true
grep -q "^warning .*$T/disk1 failed: " "$T/said" || fail "gantry doctor: $(<"$T/said")"
unavailable PUT "/bkt/${KEY[1]}" -d new
unavailable_token "${KEY[1]}" PUT
unavailable DELETE "/bkt/${KEY[1]}"
unavailable POST "/bkt/${KEY[1]}?uploads"
unavailable POST "/bkt/${KEY[1]}?uploadId=${UP[1]}" -d "$(complete 1)"
assert_status POST "/bkt/${KEY[0]}?uploadId=${UP[0]}" 200 -d "$(complete 0)"
assert_eq "$(statuses GET "/bkt/{$(IFS=,; echo "${KEY[*]}")}") $(statuses GET "/bkt/more-[1-40]")" "200:4 200:40"
assert_eq "$(curl_s3 '/bkt?list-type=2' | grep -o '<Key>' | wc -l)" "$all"
assert_eq "$(curl_s3 '/bkt?uploads' | grep -o '<Upload>' | wc -l)" 2
assert_status GET '/bkt?list-type=2' 200
unavailable DELETE /empty
# a bucket that the disk never hears of: its share of it is empty, and not written
assert_status PUT /new 200
assert_eq "$(curl_s3 / | grep -o '<Name>new</Name>')" '<Name>new</Name>'
assert_match "$(statuses PUT '/new/k[1-40]' -d x)" '^200:[0-9]+ 503:[0-9]+$'
assert_eq "$(curl_s3 '/new?list-type=2' | grep -o '<Key>' | wc -l)" "$(statuses GET '/new/k[1-40]' | sed 's/200:\([0-9]*\) 404:.*/\1/')"
# rules go on for the others
all_expire() { # BUCKET
	curl_s3 "/$1?lifecycle" -X PUT -o /dev/null -d '<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix></Prefix></Filter><Status>Enabled</Status>
		<Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration></Rule></LifecycleConfiguration>' || fail "the rule"
}
all_expire old
left=0
walks=$(metric gantry_lifecycle_walks_total)
expired() { # two whole walks later; the rest may be what the failed disk has, and what is counted is what is gone
	[ "$(metric gantry_lifecycle_walks_total)" -ge $((walks + 2)) ] && [ "$(metric gantry_lifecycle_expired_objects_total)" -ge 20 ] || return
	left=$(curl_s3 '/old?list-type=2' | grep -o '<Key>' | wc -l)
	[ $((left + $(metric gantry_lifecycle_expired_objects_total))) = 40 ]
}
wait_for 60 expired
[ "$left" -gt 0 ] && [ "$left" -le 20 ] || fail "$left of 40 are left"

# ---- half of them, then fewer ----
fails 3 "${KEY[3]}"
assert_eq "$(ready)" 503
assert_eq "$(reasons /readyz)" '2 of 4 disks serve, and store.min_disks wants 3'
assert_eq "$(curl_admin /readyz | jq -r '.reasons[].code')" too_few_disks
assert_status PUT "/bkt/${KEY[0]}" 200 -d bytes
assert_status PUT /half 200
fails 0 "${KEY[0]}"
read_only() { [ "$(reasons /readyz)" = '1 of 4 disks serve, fewer than half: all is read-only until a restart' ]; }
wait_for 60 read_only
unavailable PUT "/bkt/${KEY[2]}" -d bytes
unavailable DELETE "/bkt/${KEY[2]}"
unavailable PUT /never
assert_eq "$(statuses GET "/bkt/{$(IFS=,; echo "${KEY[*]}")}")" "200:4"
assert_eq "$(curl_s3 '/bkt?list-type=2' | grep -o '<Key>' | wc -l)" "$all"
assert_status GET /half 200
bytes pattern:3 100000 >"$T/large"
stop_daemon

# ---- all back ----
rm "$T"/fault/*
daemon_run
assert_eq "$(disks 'map(.state) | unique | join(" ")') $(ready)" "serving 200"
assert_eq "$(statuses GET "/bkt/{$(IFS=,; echo "${KEY[*]}")}") $(statuses PUT '/new/k[1-40]' -d x) $(statuses PUT '/half/k[1-40]' -d x)" "200:4 200:40 200:40"
assert_status DELETE /empty 204
assert_status PUT "/bkt/${KEY[1]}" 200 -T "$T/large"
# what cannot be read of a disk that failed is its affair, of another one the object's
echo read >"$T/fault/disk1"
assert_status GET "/bkt/${KEY[1]}" 500
fails 1 "${KEY[1]}"
assert_status GET "/bkt/${KEY[1]}" 200
echo read >"$T/fault/disk1"
unavailable GET "/bkt/${KEY[1]}"
assert_status HEAD "/bkt/${KEY[1]}" 200 -I
stop_daemon
rm "$T"/fault/*

# ---- one is missing ----
mv "$T/disk1" "$T/away"
U=$(sed -n "s/.*gantryd --forget \([-0-9a-f]*\),.*/\1/p" < <("$G" -c "$T/gantryd.yaml" 2>&1))
cp "$T/gantryd.yaml" "$T/whole.yaml"
sed -i "s|^store:|store:\n  accept_missing: [\"$U\"]|" "$T/gantryd.yaml"
daemon_run
assert_eq "$(ready)" 200
unavailable GET "/bkt/${KEY[1]}"
unavailable PUT "/bkt/${KEY[1]}" -d x
unavailable_token "${KEY[1]}" PUT GET
unavailable_token "${KEY[1]}?partNumber=1&uploadId=${UP[1]}" PUT
moved=$(metric gantry_rdma_bytes_total)
raw <<-END
	window w 300000 pattern:5
	window g 300000
	request PUT /bkt/${KEY[3]} x-amz-rdma-token:@w content-length:0
	expect status 200
	expect header x-amz-rdma-reply 200
	request GET /bkt/${KEY[3]} x-amz-rdma-token:@g
	expect status 200
	expect window g pattern:5
END
assert_eq "$(metric gantry_rdma_bytes_total)" $((moved + 600000)) "bytes that RDMA moved for a key of another disk"
# an upload of another disk, begun before or now, is completed
unavailable POST "/bkt/${KEY[1]}?uploadId=${UP[1]}" -d "$(complete 1)"
begin_upload 3
for i in 2 3; do
	assert_status POST "/bkt/${KEY[i]}?uploadId=${UP[i]}" 200 -d "$(complete $i)"
	assert_match "$(header_of etag "/bkt/${KEY[i]}")" '-1"$' "what was completed"
done
for i in 0 2 3; do begin_upload $i; done
for p in '/bkt?list-type=2' /bkt '/bkt?versions' '/bkt?uploads'; do unavailable GET "$p"; done
sed -i "s|^store:|store:\n  partial_listings: true\n  min_disks: 4|" "$T/gantryd.yaml"
kill -HUP "$DAEMON_PID"
partial() { [ "$(header_of x-gantry-partial '/bkt?list-type=2')" = true ]; }
wait_for 60 partial
for p in '/bkt?list-type=2' /bkt '/bkt?versions' '/bkt?uploads'; do assert_eq "$(status_of GET "$p") $(header_of x-gantry-partial "$p")" "200 true" "$p"; done
there=$(curl_s3 '/bkt?list-type=2' | grep -o '<Key>' | wc -l)
[ "$there" -gt 0 ] && [ "$there" -lt "$all" ] || fail "a partial list has $there of $all"
# each page says so, from the first to the last
pages() { # LIST ELEMENT NAME=ELEMENT...: how many pages, and elements in them; what the next page is asked with
	local nr=0 found=0 next=() w
	while :; do
		curl -sS -G -D "$T/head" -o "$T/page" "${next[@]}" "$URL_S3$1" || fail "$1: page $nr"
		head -1 "$T/head" | grep -q ' 200' && grep -qi '^x-gantry-partial: true' "$T/head" || fail "$1: page $nr: $(<"$T/head")"
		nr=$((nr + 1)) found=$((found + $(grep -o "<$2>" "$T/page" | wc -l)))
		grep -q '<IsTruncated>true<' "$T/page" || break
		next=()
		for w in "${@:3}"; do next+=(--data-urlencode "${w%=*}=$(sed -n "s/.*<${w#*=}>\([^<]*\)<.*/\1/p" "$T/page")"); done
	done
	echo "$nr pages, $found"
}
of=$(((there + 8) / 9))
assert_eq "$(pages '/bkt?list-type=2&max-keys=9' Key continuation-token=NextContinuationToken)" "$of pages, $there"
assert_eq "$(pages '/bkt?delimiter=/&max-keys=9' Key marker=NextMarker)" "$of pages, $there"
assert_eq "$(pages '/bkt?versions&max-keys=9' Version key-marker=NextKeyMarker version-id-marker=NextVersionIdMarker)" "$of pages, $there"
assert_eq "$(pages '/bkt?uploads&max-uploads=1' Upload key-marker=NextKeyMarker upload-id-marker=NextUploadIdMarker)" "3 pages, 3"
assert_eq "$(header_of x-gantry-partial /)" ''
assert_eq "$(reasons /readyz)" '3 of 4 disks serve, and store.min_disks wants 4'
unavailable DELETE /half
curl -sS --unix-socket "$T/admin.sock" -X POST http://x/control/scrub -o /dev/null || fail "scrub"
walks() { [ "$(metric gantry_scrub_walks_total)" -ge 1 ]; }
wait_for 60 walks
assert_eq "$(metric gantry_scrub_errors_total)" 0
assert_alive
# a rule that is made now goes on for the others
assert_match "$(statuses GET '/half/k[1-40]')" '^200:[0-9]+ 503:[0-9]+$'
away=${BASH_REMATCH[0]#*503:}
all_expire half
have() { [ "$(statuses GET '/half/k[1-40]')" = "$1" ]; }
wait_for 60 have "404:$((40 - away)) 503:$away"
stop_daemon

# ---- and is back ----
# What it has is all there, and goes by that rule too, of which it hears now.
mv "$T/away" "$T/disk1"
sed 's/interval: 300ms/interval: 3600s/' "$T/whole.yaml" >"$T/gantryd.yaml"
daemon_run
have "200:$away 404:$((40 - away))" || fail "objects of the disk that was missing: $(statuses GET '/half/k[1-40]')"
assert_status POST "/bkt/${KEY[1]}?uploadId=${UP[1]}" 200 -d "$(complete 1)"
stop_daemon
cp "$T/whole.yaml" "$T/gantryd.yaml"
daemon_run
wait_for 60 have "404:40"
assert_alive
