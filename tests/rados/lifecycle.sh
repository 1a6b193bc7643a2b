#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lifecycle rules over two gateways, by days and by prefix, of objects and of uploads that nobody completed: each does its share, all together
# all that is due and nothing else; one that is alone does everything, and so it ends old uploads without any rule.  (What rules there are
# is tests/system/s3_buckets.sh's, which runs here, too.)
MORE='lifecycle: { interval: 500ms, day: 2s }'
. "$(dirname "$0")/lib.sh"
start_daemon
keep_gateway 1
another_gateway 2
both() { [ "$(number_of gateways)" = 2 ]; }
for g in 1 2; do
	gateway $g
	wait_for 20 both
done
keys() { curl_s3 "/bkt?list-type=2&prefix=$1" | grep -o '<Key>' | wc -l; }
uploads() { curl_s3 '/bkt?uploads' | grep -o '<Upload>' | wc -l; }
make_some() { # keys and uploads of each prefix
	for p in old keep; do
		for n in $(seq "$1"); do printf 'request PUT /bkt/%s/%s body=text:x\nexpect status 200\n' "$p" "$n"; done | raw
		for n in $(seq "$2"); do curl_s3 "/bkt/$p/upload$n?uploads" -o /dev/null -X POST || fail "beginning an upload"; done
	done
}
expired() { [ "$(keys old/) $(uploads)" = "0 $1" ]; }
sum() { # of both
	local n=0 g
	for g in 1 2; do
		gateway $g
		by[g]=$(metric "gantry_lifecycle_$1_total")
		n=$((n + by[g]))
	done
	assert_eq "$n" "$2" "$1, of both"
}

make_some 40 8
curl_s3 '/bkt?lifecycle' -X PUT -d '<LifecycleConfiguration><Rule><ID>old</ID><Filter><Prefix>old/</Prefix></Filter><Status>Enabled</Status>
	<Expiration><Days>1</Days></Expiration><AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>
	</Rule></LifecycleConfiguration>' || fail "PutBucketLifecycleConfiguration"
wait_for 60 expired 8
assert_eq "$(keys keep/)" 40 "keys that no rule is about"
sum aborted_uploads 8
sum expired_objects 40
[ "${by[1]}" -gt 5 ] && [ "${by[2]}" -gt 5 ] || fail "of 40 objects two gateways have removed ${by[1]} and ${by[2]}"

# ---- the one that is left has all of it
gateway 1
stop_daemon
gateway 2
make_some 40 8
wait_for 60 expired 16
assert_eq "$(keys keep/)" 40 "keys that no rule is about"
assert_status DELETE '/bkt?lifecycle' 204
stop_daemon
sed -i 's/^lifecycle: .*/lifecycle: { interval: 200ms }/; s/^limits: .*/limits: { upload_expire: 1s }/' "$T/gantryd.yaml"
another_gateway 3
wait_for 60 expired 0
assert_eq "$(keys keep/)" 40 "keys that no rule is about"
stop_daemon
fsck || fail "at the end: $(cat "$T/fsck")"
