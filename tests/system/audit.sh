#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claims TM42, TM43, TM95: the audit stream: every change and every refusal with key, client and access key, a line for each key that expires or that
# DeleteObjects names, control calls and changes of access keys; names escaped; bounded and rotated; a file that is stalled or full delays no request, is a reason of
# health, and what is lost is counted and told in the stream.
if [ "${OWN_MOUNTS:-}" != 1 ]; then
	unshare -m true 2>/dev/null || { echo "audit: FAIL: needs a mount namespace of its own (unshare -m), which takes root" >&2; exit 1; }
	OWN_MOUNTS=1 exec unshare -m "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"

mkdir "$T/logs" && mount -t tmpfs -o size=1m none "$T/logs" || fail "no tmpfs"
cat >"$T/keys.yaml" <<-END
	- { access_key: AKGOOD, secret_key: good-secret-1 }
	- { access_key: AKREAD, secret_key: read-secret-1, read_only: true }
END
echo 'a-token-of-enough-length' >"$T/token"
chmod 0600 "$T/keys.yaml" "$T/token"
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
A=$T/logs/audit.jsonl
MORE="auth: { credentials_file: \"$T/keys.yaml\" }
lifecycle: { interval: 300ms, day: 1s }
audit: { size: 512KiB, keep: 2 }"
export LOGS_DIRECTORY=$T/logs
write_config
sed -i "s|^admin: { |admin: { token_file: \"$T/token\", |" "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
printf bytes >"$T/body"
sign() { "$BUILD/tools/s3sign" -s "$SIGNED" -o "$T/reply" "$@" >>"$T/answers" || fail "no answer: $*"; }
good() { sign -k AKGOOD -p good-secret-1 "$@"; }
post() { curl -sS --fail --max-time 60 --unix-socket "$T/admin.sock" -X POST "http://x$1" "${@:2}" >"$T/out" || fail "$1: $(<"$T/out")"; }
# records FILTER: how many records of the stream pass it; has FILTER: waits for one, and fails where it is not the only one.
records() { cat "$A" | jq -c "select($1)" | wc -l; }
some() { count=$(records "$1"); [ "$count" -gt 0 ]; }
has() { wait_for 60 some "$1"; assert_eq "$count" 1 "records of $1"; }

# ---- on by default under systemd's LOGS_DIRECTORY; changes ----
assert_eq "$(stat -c %a "$A")" 600 "mode"
has '.op == "Start"'
good -m hash -b "$T/body" PUT /bkt/a
has '.op == "PutObject" and .status == 200 and .bucket == "bkt" and .key == "a" and .size == 5 and .etag == "4b3a6218bb3e3a7303e8a171a60fcf92"
	and .peer == "127.0.0.1" and .access_key == "AKGOOD" and (.secret_id | test("^[0-9a-f]{8}$")) and (.request | length) == 16 and (.time | test("^20[0-9-]+T[0-9:.]+Z$"))'
good -m empty PUT /bkt/copy x-amz-copy-source:/bkt/a
has '.op == "CopyObject" and .key == "copy" and .access_key == "AKGOOD"'
good -m hash -b "$T/body" PUT '/bkt/own/a%20%22%5C%C3%A4'
has '.key == "own/a \"\\ä"'
curl_scal '/%FFraw' -X PUT -d x
has '.op == "PutObject" and .key == null and .key_url == "%FFraw" and .access_key == null'
curl_s3 '/bkt/many?uploads' -X POST >"$T/out"
id=$(grep -o '<UploadId>[^<]*' "$T/out" | cut -d'>' -f2)
etag=$(header_of etag "/bkt/many?partNumber=1&uploadId=$id" -X PUT -d part)
curl_s3 "/bkt/many?uploadId=$id" -X POST -d "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>$etag</ETag></Part></CompleteMultipartUpload>" >"$T/out"
for op in CreateMultipartUpload UploadPart CompleteMultipartUpload; do has ".op == \"$op\" and .key == \"many\" and .status == 200"; done
curl_s3 '/bkt/a?tagging' -X PUT -d '<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>'
curl_s3 '/bkt/a?tagging' -X DELETE
for op in PutObjectTagging DeleteObjectTagging; do has ".op == \"$op\" and .key == \"a\""; done
good -m empty PUT /other
has '.op == "CreateBucket" and .bucket == "other" and .access_key == "AKGOOD"'
good -m empty DELETE /other
has '.op == "DeleteBucket" and .bucket == "other" and .status == 204'
good -m empty DELETE /bkt/copy
has '.op == "DeleteObject" and .bucket == "bkt" and .key == "copy" and .status == 204 and .access_key == "AKGOOD"'
assert_status PUT /none-such/k 404 -d x
has '.bucket == "none-such" and .status == 404 and .fault == "NoSuchBucket"'
# The page's command answers the question of its section.
answer=$(sed -nE "s|^    (jq -c 'select.*/audit\.jsonl\*)\$|\1|p" docs/operations.md | sed "s|models|bkt|; s|v1/weights|copy|; s|/var/log/gantry|$T/logs|")
eval "$answer" >"$T/out" || fail "docs/operations.md: $answer"
assert_eq "$(jq -r '"\(.op) \(.access_key) \(.peer)"' "$T/out" | tail -n 1)" "DeleteObject AKGOOD 127.0.0.1" "docs/operations.md: $answer"

# ---- refusals ----
# A target that cannot be parsed names no operation: an attempt to change something is recorded, a read is not.
assert_status GET '/bkt/read%zz' 400
assert_status PUT '/bkt/a%zz' 400 -d x
has '.op == "Unknown" and .status == 400 and .fault == "InvalidURI"'
sign -k AKREAD -p read-secret-1 -m empty DELETE /bkt/a
has '.op == "DeleteObject" and .key == "a" and .status == 403 and .fault == "AccessDenied" and .access_key == "AKREAD"'
sign -k AKREAD -p wrong-secret-1 -m empty GET /bkt/a
has '.op == "GetObject" and .status == 403 and .fault == "SignatureDoesNotMatch" and .access_key == null and .secret_id == null and .claimed_access_key == "AKREAD"'
sign -k AKNOBODY -p wrong-secret-1 -m empty GET /bkt/a
has '.fault == "InvalidAccessKeyId" and .claimed_access_key == "AKNOBODY"'
curl -sS --max-time 30 -o /dev/null "http://$SIGNED/bkt/b" -H 'authorization: AWS4-HMAC-SHA256 Credential=AKBAD'
has '.key == "b" and .status == 400 and .fault == "AuthorizationHeaderMalformed"'

# ---- a line for each key that DeleteObjects names, also where some are refused ----
echo '<Delete><Object><Key>own/gone</Key></Object><Object><Key>own/&quot;b</Key></Object></Delete>' >"$T/delete"
sum=content-md5:$(openssl md5 -binary "$T/delete" | base64)
good -m hash -b "$T/delete" POST '/bkt?delete' "$sum"
sign -k AKREAD -p read-secret-1 -m hash -b "$T/delete" POST '/bkt?delete' "$sum"
for key in own/gone 'own/\"b'; do
	has ".op == \"DeleteObjects\" and .key == \"$key\" and .status == 204 and .access_key == \"AKGOOD\" and .fault == null"
	has ".op == \"DeleteObjects\" and .key == \"$key\" and .status == 403 and .access_key == \"AKREAD\" and .fault == \"AccessDenied\""
done
has '.op == "DeleteObjects" and .key == null and .access_key == "AKGOOD" and .status == 200'

# ---- expiry, a line for each object and upload ----
curl_s3 /bkt/tmp/one -X PUT -d x
curl_s3 /bkt/tmp/two -X PUT -d x
curl_s3 '/bkt/tmp/three?uploads' -X POST >/dev/null
cat >"$T/rules" <<'END'
<LifecycleConfiguration><Rule><ID>a</ID><Status>Enabled</Status><Filter><Prefix>tmp/</Prefix></Filter><Expiration><Days>1</Days></Expiration><AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule></LifecycleConfiguration>
END
assert_status PUT '/bkt?lifecycle' 200 -T "$T/rules"
has '.op == "PutBucketLifecycleConfiguration" and .bucket == "bkt"'
for key in tmp/one tmp/two; do has ".op == \"Expire\" and .bucket == \"bkt\" and .key == \"$key\" and .access_key == null"; done
has '.op == "ExpireUpload" and .bucket == "bkt" and .key == "tmp/three"'

# The removal of a bucket removes its expired objects, if the daemon has not removed them yet.
assert_status PUT /emptied 200
for i in $(seq 40); do curl_s3 "/emptied/e$i" -X PUT -H 'x-gantry-ttl: 1' -d x -o /dev/null; done
expired() { [ "$(curl_s3 "/emptied/e$i" -o /dev/null -w '%{http_code}')" = 404 ]; }
wait_for 20 expired
assert_status DELETE /emptied 204
assert_eq "$(metric gantry_expired_objects_total)" 40 "expired objects"
all_expired() { [ "$(records '.op == "Expire" and .bucket == "emptied"')" = 40 ]; }
wait_for 60 all_expired

# ---- control calls, and keys that come and go ----
post /control/bucket -d '{"bucket":"bkt","max_objects":"1000"}'
has '.op == "Control" and .subject == "/control/bucket" and .args.bucket == "bkt" and .args.max_objects == "1000" and .status == 200
	and (.peer | test("^unix uid=0 pid=[0-9]+$"))'
assert_eq "$(curl -sS --max-time 30 -o /dev/null -w '%{http_code}' -X POST "$URL_ADMIN/control/drain")" 401
has '.op == "Control" and .subject == "/control/drain" and .status == 401 and .peer == "127.0.0.1"'
post /control/settle
echo '- { access_key: AKNEW, secret_key: new-secret-12 }' >>"$T/keys.yaml"
sed -i 's/read_only: true/no_delete: true/' "$T/keys.yaml"
post /control/reload
has '.op == "KeyAdded" and .subject == "AKNEW" and (.secret_id | test("^[0-9a-f]{8}$"))'
has '.op == "KeyChanged" and .subject == "AKREAD"'
sed -i /AKNEW/d "$T/keys.yaml"
post /control/reload
has '.op == "KeyRemoved" and .subject == "AKNEW"'
assert_eq "$(records '.subject == "AKGOOD" or .subject == "/control/settle"')" 0 "records of what changes nothing"

# ---- reads only where they are asked for ----
assert_eq "$(records '(.op | test("^(Get|Head|List)")) and .status < 400')" 0 "reads"
# option KEY VALUE: changes a member of the section
option() {
	sed -i -E "/^audit:/{ s/ $1: [^,}]*,?//; s|\\{|{ $1: $2,| }" "$T/gantryd.yaml"
	post /control/reload
}
option reads true
curl_s3 /bkt/a >/dev/null
has '.op == "GetObject" and .key == "a" and .status == 200'
option reads false
! grep -qE 'good-secret|read-secret|new-secret|a-token|Signature=' "$A" || fail "a secret is in the stream"
written=$(metric gantry_audit_records_total)
[ "$written" -ge 40 ] || fail "$written records are counted"

# ---- bounded: full files are renamed, and only so many are kept ----
option size 64KiB
for i in $(seq 700); do echo "url = $URL_S3/bkt/r$i"; echo 'request = DELETE'; done >"$T/urls"
curl -sS --max-time 60 -K "$T/urls" || fail "deletes"
rotated() { [ -e "$A.2" ] && grep -q '"r700"' "$A"; }
wait_for 60 rotated
assert_eq "$(ls "$T/logs" | tr '\n' ' ')" "audit.jsonl audit.jsonl.1 audit.jsonl.2 "
for f in "$A" "$A.1" "$A.2"; do
	assert_eq "$(stat -c %a "$f")" 600 "mode of $f"
	[ "$(stat -c %s "$f")" -le 65536 ] || fail "$f is larger than it may be"
	jq -e . "$f" >/dev/null || fail "$f is not JSON"
done
# A folder in the place of an old file is named, and not removed; one above the number of files kept does not matter.
rm "$A.2"
mkdir "$A.2" "$A.7"
curl -sS --max-time 60 -K "$T/urls" || fail "deletes"
wait_for 60 grep -qF " audit: $A.2: Is a directory" "$T/daemon.log"
rmdir "$A.2"
wait_for 60 rotated
rmdir "$A.7"
rm "$A" "$A.1" "$A.2"
assert_status DELETE /bkt/afterwards 204
has '.key == "afterwards"'

# ---- a full disk: no request waits, health says it, nothing is lost while memory has room, and no half of a line stays ----
option size 512KiB
reason() { local page; page=$(curl_admin /healthz) && [ "$(json status 0 <<<"$page")" = degraded ] && [[ " $(json code <<<"$page") " = *' audit_fails '* ]]; }
well() { [ "$(curl_admin /healthz | json status 0)" = ok ]; }
dd if=/dev/zero of="$T/logs/filler" bs=1024 status=none 2>/dev/null
curl -sS --max-time 60 -K "$T/urls" || fail "deletes on a full disk"
wait_for 60 reason
assert_match "$(curl_admin /healthz | jq -r '.reasons[] | select(.code == "audit_fails") | .text')" 'No space left on device' "$(curl_admin /healthz)"
wait_for 60 grep -q ' warning .*audit: .*No space left on device' "$T/daemon.log"
jq -e . "$A" >/dev/null || fail "a half of a record: $(tail -c 300 "$A")"
rm "$T/logs/filler"
wait_for 60 well
has '.key == "r700"'
assert_eq "$(records '.key != null and (.key | test("^r[0-9]+$"))') $(metric gantry_audit_records_dropped_total)" "700 0" "records that waited"

# ---- a reader that stalls: what finds no room in memory is dropped, counted, and told ----
mkfifo "$T/pipe"
exec 7<>"$T/pipe"
option file "\"$T/pipe\""
long=$(printf '%%20%.0s' {1..1000})
for i in $(seq 1100); do echo "url = $URL_S3/bkt/$long$i"; echo 'request = DELETE'; done >"$T/long"
curl -sS --max-time 120 -K "$T/long" || fail "deletes beside a reader that stalls"
dropped() { [ "$(metric gantry_audit_records_dropped_total)" -gt 0 ]; }
dropped || curl -sS --max-time 120 -K "$T/long" || fail "more of them"
wait_for 60 dropped
wait_for 60 reason
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200
lost=$(metric gantry_audit_records_dropped_total)
cat "$T/pipe" >"$T/read" &
reader=$!
wait_for 60 well
assert_status DELETE /bkt/last 204
wait_for 60 grep -q '"key":"last"' "$T/read"
assert_eq "$(jq 'select(.op == "Dropped").dropped' "$T/read" | awk '{ n += $1 } END { print n }')" "$lost" "lost records that were told"
kill "$reader"
wait "$reader" 2>/dev/null

# ---- the end of the daemon: the queue is written, or the log says that it was not ----
option file "\"$A\""
assert_status DELETE /bkt/at-the-end 204
stop_daemon
has '.key == "at-the-end"'
assert_eq "$(tail -n 1 "$A" | jq -r .op)" Stop
daemon_run -o audit.file="$T/pipe"
! dd if=/dev/zero bs=4096 of="$T/pipe" oflag=nonblock status=none 2>/dev/null || fail "a pipe without an end"
assert_status DELETE /bkt/nowhere 204
stop_daemon
grep -qE ' error .*audit: .*takes no records: [0-9]+ bytes' "$T/daemon.log" || fail "nothing is said of the lost ones"

# ---- mistakes in the configuration ----
bad() { # TEXT KEY=VALUE
	"$BUILD/gantryd" -c "$T/gantryd.yaml" --check-config -o "$2" >"$T/out" 2>&1 && fail "$2 is taken"
	grep -qF "$1" "$T/out" || fail "$2: $(<"$T/out")"
}
bad 'expected a path from / on, auto, or none, not "audit.jsonl"' audit.file=audit.jsonl
bad 'is the file of another key' audit.file="$T/keys.yaml"
bad 'from 64KiB to' audit.size=1KiB
bad 'from 1 to 100' audit.keep=0
sed -i -E '/^audit:/s|file: "[^"]*"|file: relative|' "$T/gantryd.yaml"
"$BUILD/gantryd" -c "$T/gantryd.yaml" --check-config >"$T/out" 2>&1 && fail "a relative path is taken"
grep -qE 'gantryd.yaml:[0-9]+:[0-9]+: audit.file: expected a path from / on' "$T/out" || fail "$(<"$T/out")"
