#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A bucket with two copies, over connections of RC: objects and parts that were PUT by rc: tokens are on two disks, so whichever of three disks is
# absent, the others give every byte back by rc: tokens.
DISKS=3 BUCKETS='' TRANSPORT=rc GANTRY_STORE_WAIT_FOR_DISKS=0s
export GANTRY_STORE_WAIT_FOR_DISKS
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
start_daemon
assert_status PUT /two 200 -H 'x-gantry-copies: 2'
id=$(curl_s3 "/two/parts?uploads" -X POST | sed -n 's:.*<UploadId>\(.*\)</UploadId>.*:\1:p')
[ -n "$id" ] || fail "no upload"
sizes='1 4096 65537 5M'
raw <<-END
	$(for size in $sizes; do
		echo "window w$size $size pattern:7"
		echo "request PUT /two/o$size x-amz-rdma-token:@w$size content-length:0"
		echo "expect status 200"
		echo "expect header x-amz-rdma-reply 200"
	done)
	request PUT "/two/parts?partNumber=1&uploadId=$id" x-amz-rdma-token:@w5M content-length:0
	expect status 200
	save one header etag
	request PUT "/two/parts?partNumber=2&uploadId=$id" x-amz-rdma-token:@w65537 content-length:0
	expect status 200
	save two header etag
	request POST "/two/parts?uploadId=$id" "body=text:<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>@one</ETag></Part><Part><PartNumber>2</PartNumber><ETag>@two</ETag></Part></CompleteMultipartUpload>"
	expect status 200
END
everything_is_there() {
	raw <<-END
		$(for size in $sizes; do
			echo "window g$size $size"
			echo "request GET /two/o$size x-amz-rdma-token:@g$size"
			echo "expect status 200"
			echo "expect header x-amz-rdma-reply 200"
			echo "expect window g$size pattern:7"
		done)
		window p 6M
		request GET /two/parts x-amz-rdma-token:@p
		expect status 200
		expect window p pattern:7 0 5M
		expect window p pattern:7 0 65537 5M
		request GET /two/parts range:bytes=5242000-5243000 x-amz-rdma-token:@p
		expect status 206
		expect window p pattern:7 5242000 880
		expect window p pattern:7 0 121 880
	END
	[ "$(metric gantry_rc_connects_total '"made"')" -gt 0 ] || fail "no connection of RC"
}
everything_is_there
in_sync() { [ "$(metric gantry_copies_exposed_objects) $(metric gantry_copies_disks_away)" = "0 0" ]; }
cp "$T/gantryd.yaml" "$T/first.yaml"
uuids=("$(curl_admin /disks | json uuid 0)" "$(curl_admin /disks | json uuid 1)" "$(curl_admin /disks | json uuid 2)")
for absent in 0 1 2; do
	stop_daemon
	mv "$T/disk$absent" "$T/away"
	sed "s|^store:|&\n  accept_missing: [\"${uuids[$absent]}\"]|" "$T/first.yaml" >"$T/gantryd.yaml"
	daemon_run
	everything_is_there
	stop_daemon
	mv "$T/away" "$T/disk$absent"
	cp "$T/first.yaml" "$T/gantryd.yaml"
	daemon_run
	wait_for 60 in_sync
done
everything_is_there
assert_alive
