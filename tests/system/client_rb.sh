#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry rb: an empty bucket goes, a full one stays; with --force what is in it goes first, objects of any name and begun uploads, after a
# question; another bucket is not touched.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
export NO_NIC=1 RDMA='{ devices: none }'
cat >"$T/keys" <<-END
	- { access_key: AKREAD, secret_key: reader-secret, read_only: true }
	- { access_key: AKKEEP, secret_key: keeper-secret, grants: [{ bucket: one, prefix: a/ }] }
END
chmod 600 "$T/keys"
MORE="auth: { credentials_file: \"$T/keys\" }"
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
BUCKETS='one one-more'
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
start_daemon
SIGNED=http://$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
cd "$T" || exit 1

# says RC WORDS...: standard output goes to out, errors to err
says() {
	local rc=$1 have
	shift
	gantry "$@" >out 2>err </dev/null
	have=$?
	[ $have = "$rc" ] || fail "gantry $*: exit $have, want $rc: $(cat out err)"
}
error_has() { grep -qF -- "$1" err || fail "no \"$1\" in: $(<err)"; }
keys() { curl_s3 "/$1?list-type=2&max-keys=1000" | grep -o '<Key>' | wc -l; }
put() { curl -sS --fail -o /dev/null -X PUT -d x "$URL_S3$1" || fail "put $1"; }

put /one-more/stays
says 0 mb "$URL_S3/gone"
says 0 rb "$URL_S3/gone"
[ ! -s out ] || fail "rb speaks: $(<out)"
assert_eq "$(head_status /gone)" 404
says 3 rb "$URL_S3/gone"
error_has NoSuchBucket
says 3 --force --yes rb "$URL_S3/gone"
error_has NoSuchBucket

# ---- a bucket that is not empty
put /one/a
says 1 rb "$URL_S3/one"
error_has "BucketNotEmpty"
error_has "All objects and uploads in it are lost; last resort: --force"
says 2 --force rb "$URL_S3/one"
error_has "--yes"
assert_eq "$(keys one)" 1
for word in n ''; do
	printf '%s\n' "$word" | script -qec "$BUILD/gantry --force rb $URL_S3/one" /dev/null >asked
	grep -q "remove 1 objects, 1 B, .*one.*\[y/N\]" asked || fail "no question: $(<asked)"
	grep -q "nothing was removed" asked || fail "what \"$word\" came to: $(<asked)"
	assert_eq "$(keys one)" 1
done
printf 'y\n' | script -qec "$BUILD/gantry --force rb $URL_S3/one" /dev/null >asked
assert_eq "$(head_status /one)" 404 "$(<asked)"
says 0 mb "$URL_S3/one"

# ---- pages of objects, names of all kinds, uploads that nobody completed
mkdir in
for i in $(seq 1100); do echo "n$i"; done >list
(cd in && xargs -n 200 touch <../list)
gantry -q -j 16 -C in mput list "$URL_S3/one/many" || fail mput
for name in a%20b %2E%2E/x a//b %C3%A4 %2B %25 /; do put "/one/$name"; done
for i in 1 2 3; do curl -sS --fail -o /dev/null -X POST "$URL_S3/one/upload%20$i?uploads" || fail "beginning an upload"; done
says 1 --access-key AKREAD --secret reader-secret --force --yes rb "$SIGNED/one"
error_has AccessDenied
says 1 --access-key AKREAD --secret reader-secret rb "$SIGNED/one"
error_has AccessDenied
assert_eq "$(keys one)" 1000
says 0 --force --dry-run rb "$URL_S3/one"
assert_eq "$(grep -c '^would remove' out) $(grep -c '^would abort upload' out)" "1108 3" "a dry run: $(tail -n 5 out)"
assert_eq "$(keys one)" 1000
says 0 --json --force --yes -j 16 rb "$URL_S3/one"
assert_eq "$(/usr/bin/python3 -c 'import json; o = [json.loads(x) for x in open("out")][-1]; print(o["op"], o["ok"])')" "rb True"
assert_eq "$(head_status /one)" 404
# Its uploads are gone with it.
says 0 mb "$URL_S3/one"
assert_eq "$(curl_s3 '/one?uploads' | grep -c '<Upload>')" 0
assert_eq "$(keys one)" 0
# Only uploads are in it.
curl -sS --fail -o /dev/null -X POST "$URL_S3/one/upload?uploads" || fail "beginning an upload"
says 0 --force --yes rb "$URL_S3/one"
assert_eq "$(curl_s3 /one-more/stays)" x

# ---- words
says 2 rb "$URL_S3/one-more/stays"
error_has "the URL names a key, and a bucket is wanted"
says 2 rb "$URL_S3"
error_has "the URL names no bucket"
says 2 --scality rb "$URL_SCAL/one"
error_has "a scality listener has no buckets"
says 1 --force --yes rb http://127.0.0.1:1/one
error_has "no answer at 127.0.0.1:1"
assert_eq "$(curl_s3 /one-more/stays)" x
