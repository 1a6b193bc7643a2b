#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a newcomer types at gantry and gets wrong: each mistake is answered by a sentence with the cure, and by the right exit status.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
NO_NIC=1
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
cd "$T" || exit 1
echo content >f

# says RC WORDS...: standard output goes to out, errors to err
says() {
	local rc=$1 have
	shift
	gantry "$@" >out 2>err
	have=$?
	[ $have = "$rc" ] || fail "gantry $*: exit $have, want $rc: $(cat out err)"
}
error_has() { grep -qF -- "$1" err || fail "no \"$1\" in: $(<err)"; }
out_has() { grep -qF -- "$1" out || fail "no \"$1\" in: $(<out)"; }
silent_out() { [ ! -s out ] || fail "on standard output: $(<out)"; }

# ---- words that are missing, too many, unknown
says 2 put
error_has "put: FILE and URL are missing"
error_has "usage: gantry [options] put FILE URL"
silent_out
says 2 put f
error_has "put: URL is missing"
says 2 get http://h/b/k f more
error_has "get: one word too many: more"
says 2 ports now
error_has "ports: one word too many: now"
says 2
error_has "no command"
for pair in putt:put gte:get sttaus:status mbb:mb docter:doctor delete:rm upload:put; do
	says 2 "${pair%:*}"
	error_has "no such command: ${pair%:*} (did you mean ${pair#*:}?)"
done
says 2 xylophone
error_has "no such command: xylophone"
! grep -q "did you mean" err || fail "a guess from nothing: $(<err)"
says 2 --frobnicate put f http://h/b/k
error_has "frobnicate"
error_has "gantry --help"
says 2 -j many mget list http://h/b
error_has "--jobs wants a number from 1 to 64: many"

# ---- help, on standard output, for each command and for all of them
says 0 --help
cp out whole
says 0 -h
assert_same out whole
for command in $(sed -nE 's/^  ([a-z]+) .*/\1/p' whole); do
	says 0 "$command" --help
	[ ! -s err ] || fail "$command --help on standard error: $(<err)"
	out_has "usage: gantry [options] $command"
done
says 0 doctor --help
cp out long
says 0 doctor -h
assert_same out long
says 0 -h doctor
assert_same out long
says 0 help doctor
assert_same out long
says 0 help
assert_same out whole
says 0 top --help
out_has "--interval SECONDS"
! grep -q -- "--acks" out || fail "top --help shows an option of mput"
says 2 putt --help
error_has "did you mean put?"

# ---- URLs that name something else
says 2 put f http://127.0.0.1:1/bucket
error_has "put: the URL names a bucket and no key: http://127.0.0.1:1/bucket"
error_has "with a '/' at its end the file's name is taken"
says 2 put f http://127.0.0.1:1
error_has "the URL names no bucket"
says 2 put - http://127.0.0.1:1/bucket/
error_has "standard input has no name"
for command in "get URL f" "head URL" "rm URL"; do
	for end in "" /; do
		# shellcheck disable=SC2086
		says 2 ${command/URL/http://127.0.0.1:1/bucket$end}
		error_has "the URL names a bucket and no key"
	done
done
says 2 mput list http://127.0.0.1:1/
error_has "the URL names no bucket"
says 2 cp - http://127.0.0.1:1/bucket/key
error_has "cp: standard input and output are what put and get take; a file of that name is ./-: -"
says 2 cp http://127.0.0.1:1/bucket/key -
error_has "./-"
says 1 put f http://127.0.0.1:99999/bucket/key
error_has "a port from 1 to 65535"
says 1 ls http://127.0.0.1:99999/bucket
error_has "a port from 1 to 65535"
error_has "gantry: ls "
says 2 mb http://127.0.0.1:1/bucket/key
error_has "the URL names a key, and a bucket is wanted"
says 2 --scality mb http://127.0.0.1:1/bucket
error_has "a scality listener has no buckets"
says 2 --scality get http://127.0.0.1:1/ f
error_has "the URL names no key"
says 2 put f bucket/key
error_has "not a URL (http://HOST:PORT/BUCKET/KEY): bucket/key"

# ---- addresses where nobody is
for command in "put f URL/b/k" "head URL/b/k" "mb URL/b"; do
	# shellcheck disable=SC2086
	says 1 ${command/URL/http://127.0.0.1:1}
	error_has "no answer at 127.0.0.1:1: does gantryd run there"
	# shellcheck disable=SC2086
	says 1 ${command/URL/http://no-such-host.invalid:9000}
	error_has "the name no-such-host.invalid does not resolve"
done
echo f >list
# Whoever of its threads comes to the end of the list first, it is told.
for i in 1 2 3 4 5 6 7 8 9 10; do
	says 1 mput list http://127.0.0.1:1/b
	error_has "no answer at 127.0.0.1:1"
done
says 1 --json head http://127.0.0.1:1/b/k
out_has "no answer at 127.0.0.1:1"
for command in status "top --count 1"; do
	# shellcheck disable=SC2086
	says 1 --admin 127.0.0.1:1 $command
	error_has "does gantryd run there, and is this its admin.address"
done

# ---- a listener, but another than the one that was meant
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
	-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out crt.pem 2>openssl.log || fail "openssl: $(<openssl.log)"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/crt.pem\", tls_key: \"$T/key.pem\" }"
start_daemon
TLS=$(tr ' ' '\n' <ready | sed -n 's/^s3=//p' | tail -n 1)
[ "$TLS" != "$S3" ] || fail "no second s3 listener in: $(<ready)"
for command in "put f URL/bkt/k" "get URL/bkt/k -" "head URL/bkt/k"; do
	# shellcheck disable=SC2086
	says 1 ${command/URL/https://$S3}
	error_has "that port speaks plain HTTP: write http://$S3"
	# shellcheck disable=SC2086
	says 1 ${command/URL/http://$TLS}
	error_has "that port speaks TLS: write https://$TLS"
	# shellcheck disable=SC2086
	says 1 ${command/URL/$URL_ADMIN}
	error_has "this is gantryd's admin port, which is for operators; its s3 listener is $S3"
done
# Operators' commands at the other port.
for command in "status" "top --count 1"; do
	# shellcheck disable=SC2086
	says 1 $command --admin "$URL_S3"
	error_has "answers 404"
	error_has "is it gantryd's admin listener?"
done
# What is S3's own answer stays as it is.
says 3 head "$URL_S3/bkt/gone"
error_has "the server answered 404 (HTTP 404)"
says 3 get "$URL_S3/bkt/gone" -
error_has "NoSuchKey"

says 0 put f "$URL_S3/bkt/"
assert_eq "$(curl_s3 /bkt/f)" content
says 0 put ./f "$URL_S3/bkt/dir/"
assert_eq "$(curl_s3 /bkt/dir/f)" content
says 0 --scality put f "$URL_SCAL/"
for query in acl lifecycle ''; do
	for c in mb rb; do
		says 1 $c "$URL_S3/bkt?$query"
		error_has "the URL has a query, and a bucket is wanted"
	done
done
says 0 mb "$URL_S3/other/"
