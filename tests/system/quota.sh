#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM71: quotas of buckets and of grants, whoever writes: writers that race for what is left, over HTTP and by RDMA, never exceed one;
# what is refused is 403 QuotaExceeded with nothing moved; they survive restarts, follow reloads, and deletes always work.
# With COPIES=2 each byte counts twice.
. "$(dirname "$0")/lib.sh"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GANTRY_ADMIN
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
BUCKETS='bkt team-a team-b'
start_daemon
bucket() { gantry --admin "$T/admin.sock" bucket "$@"; }
used() { curl_admin /quotas | jq -r ".[] | select(.kind == \"$1\" and .buckets == \"$2\") | .$3"; }
size() { awk -v n="$1" 'BEGIN { printf(n < 1048576 ? "%.1f KiB" : "%.1f MiB", n < 1048576 ? n / 1024 : n / 1048576) }'; }
bytes pattern:7 200000 >"$T/body"

# ---- a bucket's own
assert_eq "$(bucket show 2>&1)" "gantry: no bucket and no access key has a quota"
! bucket set nowhere --max-bytes 1MiB 2>"$T/err" || fail "the quota of a bucket that is not there"
assert_eq "$(<"$T/err")" "gantry: bucket: 404: there is no such bucket"
! bucket set bkt --max-bytes 1MB 2>"$T/err" || fail "no size, and taken"
bucket -q set bkt --max-objects 5 --max-bytes $((1000000 * COPIES)) || fail "gantry bucket set"
# eight writers, half of them by RDMA, for what five have room for
for i in 1 2 3 4 5 6 7 8; do
	if [ $((i % 2)) = 0 ]; then
		curl -sS -o /dev/null -w '%{http_code}\n' -T "$T/body" "$URL_S3/bkt/k$i" >"$T/race$i" 2>&1 &
	else
		(nic "$BUILD/gantry" --require-rdma put "$T/body" "$URL_S3/bkt/k$i" >"$T/race$i" 2>&1 && echo 200 >"$T/race$i") &
	fi
	runs[i]=$!
done
wait "${runs[@]}"
assert_eq "$(cat "$T"/race? | grep -c '^200$')" 5 "who raced: $(cat "$T"/race?)"
assert_eq "$(curl_s3 '/bkt?list-type=2' | grep -o '<Key>' | wc -l)" 5
assert_eq "$(used bucket bkt objects) $(used bucket bkt bytes)" "5 $((1000000 * COPIES))"
assert_eq "$(header_of x-gantry-quota-bytes /bkt --head) $(header_of x-gantry-quota-objects /bkt --head)" "$((1000000 * COPIES))/$((1000000 * COPIES)) 5/5"
# by RDMA: refused before the window is read, as any other 403
pulled=$(metric gantry_transfer_bytes_total 'direction="pull",transport="rdma"')
raw <<-END
	window w 200000 pattern:7
	request PUT /bkt/more x-amz-rdma-token:@w content-length:0
	expect status 403
END
# On RADOS what is there under the key is known only when the change is made: it judges then.
[ "${STORE:-disks}" = rados ] ||
	assert_eq "$(metric gantry_transfer_bytes_total 'direction="pull",transport="rdma"')" "$pulled" "moved for what was refused"
# A body in chunks that never ends is refused when it is larger than what is left, not at a commit that never comes.
if [ "${STORE:-disks}" != rados ]; then
	bucket -q set bkt --max-objects 9 --max-bytes $((4 * COPIES))MiB || fail "bucket set"
	curl -sS -o "$T/out" -w '%{http_code} %{size_upload}' --max-time 100 -H 'expect:' -T - "$URL_S3/bkt/endless" </dev/zero >"$T/code" 2>"$T/err"
	read -r code sent <"$T/code"
	assert_eq "$code" 403 "$(<"$T/err")"
	# Nor is it read for as long as it comes: 64 MiB behind the refusal, and what a look each quarter of a second lets through.
	[ "$sent" -lt 8589934592 ] || fail "$sent bytes of a refused body were read"
	grep -q '<Code>QuotaExceeded</Code>' "$T/out" || fail "chunks without end: $(<"$T/out")"
	bucket -q set bkt --max-objects 5 --max-bytes $((1000000 * COPIES)) || fail "bucket set"
fi
export AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none-at-all AWS_EC2_METADATA_DISABLED=true
aws() { /usr/bin/aws --no-sign-request --endpoint-url "$URL_S3" --region us-east-1 s3api "$@"; }
! aws put-object --bucket bkt --key more --body "$T/body" >"$T/out" 2>&1 || fail "beyond the quota, and taken"
grep -q 'QuotaExceeded' "$T/out" || fail "aws: $(<"$T/out")"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
kept=$(curl_s3 '/bkt?list-type=2' | grep -o '<Key>[^<]*' | head -1 | sed 's/<Key>//')
assert_status PUT /bkt/more 403 -H "x-amz-copy-source: /bkt/$kept" -H 'content-length: 0'
assert_status PUT "/bkt/$kept" 200 -T "$T/body"
bucket -q set bkt --max-uploads 1 || fail "bucket set --max-uploads"
assert_eq "$(status_of POST "/bkt/$kept?uploads") $(status_of POST "/bkt/$kept?uploads")" "200 403"
restart_daemon
assert_status PUT /bkt/more 403 -T "$T/body"
assert_eq "$(used bucket bkt objects) $(used bucket bkt uploads) $(used bucket bkt max_uploads)" "5 1 1"
assert_status DELETE "/bkt/$kept" 204
assert_status PUT /bkt/more 200 -T "$T/body"
assert_match "$(bucket set bkt --max-objects none --max-bytes none --max-uploads none)" "^bucket +bkt +5 objects, $(size $((1000000 * COPIES))), 1 uploads under way"
assert_status PUT /bkt/sixth 200 -T "$T/body"

# ---- a grant's: over all its buckets, whoever writes, from the reload on
assert_status PUT /team-a/one 200 -T "$T/body"
gantry --conf "$T/gantryd.yaml" -q key new --bucket 'team-*' --max-bytes $((500000 * COPIES)) --max-objects 9 >"$T/key" || fail "gantry key new --max-bytes"
assert_status PUT /team-b/two 200 -T "$T/body"
assert_status PUT /team-b/three 403 -T "$T/body"
(eval "$(<"$T/key")" && "$BUILD/tools/s3sign" -s "$S3" -k "$AWS_ACCESS_KEY_ID" -p "$AWS_SECRET_ACCESS_KEY" -b "$T/body" PUT /team-a/three) >"$T/out" 2>&1
assert_eq "$(<"$T/out")" '403 QuotaExceeded' "signed"
assert_match "$(bucket show)" "^grant +team-\\* +4 of 9 objects, $(size $((400000 * COPIES))) of $(size $((500000 * COPIES))), 0 uploads under way; 2 refused\$"
assert_eq "$(metric gantry_quota_used 'kind="grant",buckets="team-*",resource="bytes"') $(metric gantry_quota_refused_total 'kind="grant"')" "$((400000 * COPIES)) 2"
gantry --conf "$T/gantryd.yaml" key list | grep -q "at most 9 objects.*at most $(size $((500000 * COPIES)))" || fail "key list: $(gantry --conf "$T/gantryd.yaml" key list)"
sed -i "s/max_bytes: $((500000 * COPIES))/max_bytes: $((600000 * COPIES))/" "$T/keys.yaml"
assert_eq "$(curl -sS -o "$T/out" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST http://x/control/reload)" 200 "$(<"$T/out")"
assert_status PUT /team-b/three 200 -T "$T/body"

# ---- the number of buckets of a grant: refused beyond it, changed by a reload, kept by a restart
! gantry --conf "$T/gantryd.yaml" -q key new --bucket more-a --max-buckets 2 2>"$T/err" || fail "buckets of one name, and taken"
gantry --conf "$T/gantryd.yaml" -q key new --bucket 'more-*' --max-buckets 2 >"$T/key" || fail "gantry key new --max-buckets"
assert_eq "$(status_of PUT /more-a) $(status_of PUT /more-b) $(status_of PUT /more-c) $(status_of PUT /other)" "200 200 400 200"
curl -sS -X PUT "$URL_S3/more-c" >"$T/out"
grep -q '<Code>TooManyBuckets</Code>' "$T/out" || fail "too many buckets: $(<"$T/out")"
assert_match "$(bucket show)" 'grant +more-\* +2 objects, 0 B, 0 uploads under way, 2 of 2 buckets; [0-9]+ refused'
assert_eq "$(used grant 'more-*' bucket_number) $(used grant 'more-*' max_buckets) $(used grant 'team-*' max_buckets)" "2 2 null"
assert_eq "$(metric gantry_quota_used 'kind="grant",buckets="more-*",resource="buckets"')" 2
gantry --conf "$T/gantryd.yaml" key list | grep -q 'more-\* (at most 2 buckets)' || fail "key list: $(gantry --conf "$T/gantryd.yaml" key list)"
restart_daemon
assert_status PUT /more-c 400
assert_status DELETE /more-a 204
assert_status PUT /more-c 200
cp "$T/keys.yaml" "$T/keys.before"
sed -i 's/max_buckets: 2/max_buckets: two/' "$T/keys.yaml"
assert_eq "$(curl -sS -o "$T/out" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST http://x/control/reload)" 400 "$(<"$T/out")"
grep -q 'keys.yaml:[0-9]*:[0-9]*: .*max_buckets: expected a number' "$T/out" || fail "reload: $(<"$T/out")"
sed 's/max_buckets: 2/max_buckets: 3/' "$T/keys.before" >"$T/keys.yaml"
assert_eq "$(curl -sS -o "$T/out" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST http://x/control/reload)" 200 "$(<"$T/out")"
assert_eq "$(status_of PUT /more-d) $(status_of PUT /more-e)" "200 400"
! gantry --conf "$T/gantryd.yaml" -q key new --max-bytes 5 2>"$T/err" || fail "a bound of all buckets by mistake"
assert_alive
stop_daemon
