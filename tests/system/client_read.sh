#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry cat, stat and presign: objects on standard output, by RDMA and over HTTP, whole and in part; what HEAD says; URLs that others use.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
cat >"$T/keys" <<-END
	- { access_key: AKTEST, secret_key: "a/secret+1" }
	- { access_key: AKREAD, secret_key: reader-secret, read_only: true }
END
chmod 600 "$T/keys"
# shellcheck disable=SC2034
MORE="auth: { credentials_file: \"$T/keys\" }"
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
start_daemon
SIGNED=http://$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
assert_ne "$SIGNED" "$URL_S3"
cd "$T" || exit 1

# says RC WORDS...: standard output goes to out, errors to err
says() {
	local rc=$1 have
	shift
	gantry "$@" >out 2>err
	have=$?
	[ $have = "$rc" ] || fail "gantry $*: exit $have, want $rc: $(head -c 2000 out | tr -d '\0') $(<err)"
}
error_has() { grep -qF -- "$1" err || fail "no \"$1\" in: $(<err)"; }
json() { /usr/bin/python3 -c "import json,sys; o = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))" "$@"; }

# ---- cat: many pieces, which come in order although several are under way
bytes pattern:2 100000001 >big
bytes pattern:3 1000 >small
: >empty
for f in big small empty; do says 0 -q put $f "$URL_S3/bkt/$f"; done
says 0 --require-rdma cat "$URL_S3/bkt/big"
assert_same out big
[ ! -s err ] || fail "cat speaks: $(<err)"
# A reader that begins when no request is in progress any more: as many pieces as fit have come and wait for their turns.
gets() { metric gantry_requests_total 'operation="GetObject"'; }
before=$(gets)
pieces_wait() { [ "$(gets)" -gt "$before" ] && no_requests; }
gantry cat "$URL_S3/bkt/big" | (wait_for 60 pieces_wait && cmp - big) || fail "cat to a slow reader"
says 0 --no-rdma -j 1 cat "$URL_S3/bkt/big"
assert_same out big
says 0 --scality put small "$URL_SCAL/small"
says 0 --scality --require-rdma cat "$URL_SCAL/small"
assert_same out small
says 0 --json cat "$URL_S3/bkt/big"
assert_same out big
assert_eq "$(json err "o['path'], o['size'], o['rdma_bytes']")" "('rdma', 100000001, 100000001)"
says 0 cat "$URL_S3/bkt/empty"
assert_same out empty
says 4 --require-rdma --no-rdma cat "$URL_S3/bkt/small"
assert_same out small
error_has "not by RDMA: RDMA is switched off"

# range FIRST LAST of big, as HTTP has it
part() { says 0 cat --range "$1" "$URL_S3/bkt/big" "${@:4}"; tail -c +$(($2 + 1)) big | head -c "$3" | cmp - out || fail "cat --range $1"; }
part 0-0 0 1
part 5-20 5 16
part 16777215-50000000 16777215 33222786
part 99999990- 99999990 11
part 0-999999999999 0 100000001
part -11 99999990 11
part -999999999999 0 100000001
says 0 cat --range -5 "$URL_S3/bkt/empty"
assert_same out empty
says 1 cat --range 1000-1001 "$URL_S3/bkt/small"
error_has "the object ends before that range: it has 1000 bytes"
for bad in 5 a-b 5-4 - -0 1-2-3 1-2,4-5 18446744073709551616-; do
	says 2 cat --range $bad "$URL_S3/bkt/small"
	error_has "--range wants FIRST-LAST, FIRST- or -LENGTH, in bytes: $bad"
done
says 3 cat "$URL_S3/bkt/gone"
error_has "NoSuchKey"
[ ! -s out ] || fail "cat of nothing has an output"
# Whoever reads goes away: no word, and the end that a pipe is used to.
gantry cat "$URL_S3/bkt/big" 2>err | head -c 10 >out
assert_eq "${PIPESTATUS[0]}" 141 "exit status of cat into a closed pipe"
head -c 10 big | cmp - out || fail "the beginning of a pipe"
[ ! -s err ] || fail "cat into a closed pipe speaks: $(<err)"
if [ -w /dev/full ]; then
	gantry cat "$URL_S3/bkt/small" >/dev/full 2>err && fail "cat to a full disk"
	error_has "No space left on device"
fi
# An object that is replaced meanwhile is not pasted together from two.
mkfifo pipe
gantry --no-rdma -j 1 cat "$URL_S3/bkt/big" >pipe 2>err &
cat_pid=$!
exec 9<pipe
head -c 1000 <&9 >/dev/null
bytes pattern:9 100000001 | curl -sS --fail -T - "$URL_S3/bkt/big" || fail "curl"
cat <&9 >/dev/null
exec 9<&-
wait $cat_pid && fail "cat of an object that changed"
error_has "the object changed while it was read"

# ---- stat
curl -sS --fail -T small "$URL_S3/bkt/what" -H 'content-type: text/x-thing' -H 'cache-control: max-age=7' -H 'x-amz-meta-Colour: blue, a "quoted" one' \
	-H 'x-amz-meta-two: 2' -H 'x-amz-tagging: a=b&c=d' -H "x-amz-checksum-crc64nvme: $(crc64 small)" || fail "curl put"
says 0 stat "$URL_S3/bkt/what"
for line in 'size +1000 ' "etag +\"$(md5 small)\"" 'last-modified +[A-Z].* GMT' 'content-type +text/x-thing' 'cache-control +max-age=7' \
	"checksum-crc64nvme +$(crc64 small)" 'metadata +colour: blue, a "quoted" one' 'metadata +two: 2' 'tags +2$'; do
	grep -qE "^$line" out || fail "stat lacks $line: $(<out)"
done
says 0 --json stat "$URL_S3/bkt/what"
assert_eq "$(json out "o['ok'], o['size'], o['etag'], o['content_type'], o['checksums'], o['metadata'], o['tags'], o['headers']['cache-control']")" \
	"(True, 1000, '\"$(md5 small)\"', 'text/x-thing', {'crc64nvme': '$(crc64 small)'}, {'colour': 'blue, a \"quoted\" one', 'two': '2'}, 2, 'max-age=7')"
says 0 --json stat "$URL_S3/bkt/empty"
assert_eq "$(json out "o['size'], o['metadata'], o['tags']")" "(0, {}, 0)"
says 0 --scality stat "$URL_SCAL/small"
grep -qE '^size +1000 ' out || fail "stat of a scality object: $(<out)"
says 3 stat "$URL_S3/bkt/gone"
error_has "the server answered 404"
says 3 --json stat "$URL_S3/bkt/gone"
assert_eq "$(json out "o['ok'], o['status']")" "(False, 404)"
says 2 stat "$URL_S3/bkt"
error_has "stat: the URL names a bucket and no key"

# ---- presign
sign() { says "$1" --access-key AKTEST --secret a/secret+1 presign "${@:2}"; }
# curl with no word of ours: it has the URL alone
use() { curl -sS --max-time 20 -o body -w '%{http_code}' "$@"; }
sign 0 "$SIGNED/bkt/what"
assert_eq "$(wc -l <out)" 1
assert_eq "$(use "$(<out)")" 200
assert_same body small
assert_eq "$(use -I "$(<out)")" 403 "HEAD with a URL for GET"
assert_eq "$(use -T small "$(<out)")" 403 "PUT with a URL for GET"
assert_eq "$(use "$(sed 's/what/small/' out)")" 403 "a URL for another object"
sign 0 --method HEAD "$SIGNED/bkt/what"
assert_eq "$(use -I "$(<out)")" 200
sign 0 --method put --expires 5m "$SIGNED/bkt/a name with + & é %25.txt"
assert_match "$(<out)" 'X-Amz-Expires=300&'
assert_eq "$(use -T small "$(<out)")" 200 "$(<out)"
assert_eq "$(curl_s3 '/bkt/a%20name%20with%20%2B%20%26%20%C3%A9%20%25.txt' | md5)" "$(md5 small)"
sign 0 --method DELETE "$SIGNED/bkt/a name with + & é %25.txt"
assert_eq "$(use -X DELETE "$(<out)")" 204
assert_eq "$(status_of GET '/bkt/a%20name%20with%20%2B%20%26%20%C3%A9%20%25.txt')" 404
# What a signature in the header says of such names, too.
says 0 -q --access-key AKTEST --secret a/secret+1 put small "$SIGNED/bkt/1+1=2 (a)%41"
assert_eq "$(curl_s3 '/bkt/1%2B1%3D2%20%28a%29A' | md5)" "$(md5 small)"
# A query of the caller's own is signed as well.
sign 0 "$SIGNED/bkt/what?response-content-type=text/other&response-cache-control=no-store"
assert_eq "$(curl -sS -o body -D - "$(<out)" | tr -d '\r' | grep -ciE '^(content-type: text/other|cache-control: no-store)$')" 2 "$(<body)"
assert_eq "$(use "$(sed 's/other/third/' out)")" 403
sign 0 --expires 1 "$SIGNED/bkt/what"
cp out short
sign 0 --expires 7d --json "$SIGNED/bkt/what"
assert_eq "$(json out "o['op'], o['method'], o['expires']")" "('presign', 'GET', 604800)"
assert_eq "$(use "$(json out "o['presigned']")")" 200
# Temporary keys bring their token along; a key that may only read cannot lend more than it has.
AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY=a/secret+1 AWS_SESSION_TOKEN='to/ken+1=' gantry presign "$SIGNED/bkt/what" >out || fail "presign with a token"
assert_match "$(<out)" 'X-Amz-Security-Token=to%2Fken%2B1%3D&'
says 0 --access-key AKREAD --secret reader-secret presign --method PUT "$SIGNED/bkt/what"
assert_eq "$(use -T small "$(<out)")" 403
is_over() { [ "$(use "$(<short)")" = 403 ]; }
wait_for 60 is_over
assert_match "$(<body)" "expired"

sign 2 --expires 0 "$SIGNED/bkt/what"
error_has "--expires wants a time from 1 second to 7 days, such as 90, 15m, 12h, 7d: 0"
for bad in 8d 604801 1w x -5 1.5h ''; do
	sign 2 --expires "$bad" "$SIGNED/bkt/what"
	error_has "--expires wants a time"
done
sign 2 --method POST "$SIGNED/bkt/what"
error_has "--method wants GET, PUT, HEAD or DELETE: POST"
sign 2 "$SIGNED/bkt"
error_has "presign: the URL names a bucket and no key"
says 1 presign "$SIGNED/bkt/what"
error_has "presign: there is no access key to sign with: --access-key and --secret, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
[ ! -s out ] || fail "a URL without keys"
says 2 --scality presign "$URL_SCAL/what"
error_has "presign: it does not use: --scality"
sign 1 "$(gantry --access-key AKTEST --secret a/secret+1 presign "$SIGNED/bkt/what")"
error_has "the URL is signed already"
sign 1 "http://me@127.0.0.1:1/bkt/what"
error_has "a user in the URL"
assert_alive
