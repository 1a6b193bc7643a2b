#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `gantry bucket set BUCKET --expire 1d`: one lifecycle rule with an ID of its own, which S3 shows and the next walk executes, among those of
# others, which stay as they are; shown by `gantry bucket show`; removed by `none`; what is no number of whole days is refused.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' BUCKETS='bkt other'
# A day is a second here.
MORE='lifecycle: { interval: 86400s, day: 1s }'
bucket() { gantry --admin "$T/admin.sock" bucket "$@" >"$T/out" 2>"$T/err"; }
ids() { curl_s3 "/$1?lifecycle" | grep -o '<ID>[^<]*' | sed 's/<ID>//' | paste -sd ' '; }
rules() { curl_s3 "/bkt?lifecycle" | sed 's/<Rule>/\n&/g' | grep '^<Rule>' | sed 's/<.LifecycleConfiguration>//' | grep -v '<ID>gantry-expire<' | sort; }
show() { bucket show bkt || fail "bucket show: $(<"$T/err")"; cat "$T/out"; }
refused() { # STATUS SENTENCE WORDS...
	local rc=0
	bucket "${@:3}" || rc=$?
	assert_eq "$rc" "$1" "gantry bucket ${*:3}: $(<"$T/err")"
	assert_match "$(<"$T/err")" "$2"
}
start_daemon

# ---- where there is no rule ----
assert_eq "$(show | grep -c 'expire\|rule')" 0
bucket set bkt --expire none || fail "none, where there is none: $(<"$T/err")"
assert_eq "$(code_of '/bkt?lifecycle')" NoSuchLifecycleConfiguration
bucket set bkt --expire 1d || fail "bucket set: $(<"$T/err")"
assert_match "$(<"$T/out")" '^bucket +bkt .*, objects expire after 1 day$'
assert_match "$(curl_s3 '/bkt?lifecycle')" '<Rule><ID>gantry-expire</ID><Filter><Prefix></Prefix></Filter><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>'
assert_eq "$(code_of '/other?lifecycle')" NoSuchLifecycleConfiguration
bucket set bkt --expire none || fail "none: $(<"$T/err")"
assert_eq "$(code_of '/bkt?lifecycle')" NoSuchLifecycleConfiguration
assert_eq "$(show | grep -c 'expire\|rule')" 0

# ---- among rules of others, and with other documents of the bucket ----
curl_s3 '/bkt?tagging' -X PUT -d '<Tagging><TagSet><Tag><Key>of</Key><Value>mine</Value></Tag></TagSet></Tagging>' -o /dev/null
curl_s3 '/bkt?lifecycle' -X PUT -o /dev/null -d '<LifecycleConfiguration>
	<Rule><ID>kept</ID><Filter><And><Prefix>kept/</Prefix><Tag><Key>a</Key><Value>b</Value></Tag></And></Filter><Status>Disabled</Status><Expiration><Days>7</Days></Expiration></Rule>
	<Rule><ID>parts</ID><Filter><Prefix>parts/</Prefix></Filter><Status>Enabled</Status><AbortIncompleteMultipartUpload><DaysAfterInitiation>36500</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule>
	</LifecycleConfiguration>'
rules >"$T/before"
assert_eq "$(wc -l <"$T/before")" 2
assert_match "$(show)" ', 2 lifecycle rules$'
bucket set bkt --expire 30d --max-objects 100 || fail "bucket set: $(<"$T/err")"
assert_match "$(<"$T/out")" ' 0 of 100 objects, .*, objects expire after 30 days, 2 other lifecycle rules$'
assert_eq "$(ids bkt)" "kept parts gantry-expire"
bucket set bkt --expire 24h || fail "a day in hours: $(<"$T/err")"
assert_eq "$(ids bkt)" "kept parts gantry-expire"
rules | diff "$T/before" - || fail "rules of others"
assert_match "$(curl_s3 '/bkt?tagging')" '<Key>of</Key><Value>mine</Value>'
restart_daemon
assert_eq "$(gantry --admin "$T/admin.sock" --json bucket show bkt | jq -r '[.expire_days, .other_rules, .max_objects] | join(" ")')" "1 2 100"

# ---- the next walk deletes what is older ----
curl_s3 /bkt/k -T "$T/before" -o /dev/null
curl_s3 /other/k -T "$T/before" -o /dev/null
walked() {
	curl -sS --fail --unix-socket "$T/admin.sock" -X POST http://x/control/lifecycle -o /dev/null && settle &&
		[ "$(status_of GET /bkt/k)" = 404 ]
}
wait_for 60 walked
assert_status GET /other/k 200

# ---- and removed again ----
bucket set bkt --expire none || fail "none: $(<"$T/err")"
assert_eq "$(ids bkt)" "kept parts"
rules | diff "$T/before" - || fail "rules of others after none"

# ---- refused ----
refused 2 'wants whole days, 1d or 30d: lifecycle rules know no shorter times' set bkt --expire 36h
refused 2 'wants whole days' set bkt --expire 90
refused 2 'wants a number of days, 1d or 30d, or none' set bkt --expire 0d
refused 2 'wants a number of days' set bkt --expire soon
refused 2 '--expire is for set' show bkt --expire 1d
refused 3 'there is no such bucket' set nowhere --expire 1d
control() { curl -sS --unix-socket "$T/admin.sock" -o "$T/out" -w '%{http_code}' -d "$1" http://x/control/bucket; }
for days in 0 1d -1 99999999999 ''; do
	assert_eq "$(control "{\"bucket\":\"bkt\",\"expire_days\":\"$days\"}")" 400 "expire_days $days: $(<"$T/out")"
done
assert_eq "$(ids bkt)" "kept parts"
assert_alive
stop_daemon
