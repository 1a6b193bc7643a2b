#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every option with every command of gantry: those that the command's help shows are taken, every other one is refused by its name, with 2,
# before anything is done, and so is one that the command uses in another mode.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

rc_of() { "$@" >"$T/say" 2>&1; echo $?; }

/usr/bin/python3 tests/system/client_options.py "$BUILD/gantry" || fail "options of commands"

# Nothing is done: the object is still there, and the file is not made.
start_daemon
echo whatever >"$T/file"
curl_s3 /bkt/a -T "$T/file" || fail "an object"
for words in "--checksum rm" "rm --range 0-1" "-l --human rm"; do
	# shellcheck disable=SC2086
	assert_eq "$(rc_of gantry $words "$URL_S3/bkt/a")" 2 "$words"
	assert_match "$(<"$T/say")" "^gantry: rm: it does not use: --" "$words"
done
assert_eq "$(rc_of gantry get --human "$URL_S3/bkt/a" "$T/made")" 2
[ ! -e "$T/made" ] || fail "a file was made"
for words in "rm --yes" "rm -r --scality --region x" "rm --include *"; do
	# shellcheck disable=SC2086
	assert_eq "$(set -f; rc_of gantry $words "$URL_S3/bkt/a")" 2 "$words"
	assert_match "$(<"$T/say")" "^gantry: rm: --(yes|region|include) is (not used|used only) with --" "$words"
done
assert_eq "$(rc_of gantry cp --ttl 5 "$URL_S3/bkt/a" "$T/made")" 2
assert_eq "$(rc_of gantry get --json --quiet "$URL_S3/bkt/a" "$T/made")" 2
[ ! -e "$T/made" ] || fail "a file was made"
# -r of a file is a copy of one, to which no pattern applies.
assert_eq "$(rc_of gantry cp -r --exclude '*' "$T/file" "$URL_S3/bkt/b")" 2
! gantry cp -r --exclude '*' "$T/absent" "$URL_S3/bkt/b" >"$T/say" 2>&1 || fail "a copy of no file"
assert_match "$(<"$T/say")" "No such file"
assert_eq "$(rc_of gantry head "$URL_S3/bkt/b")" 3
curl_s3 /bkt/a | cmp - "$T/file" || fail "the object is gone"

# A dry run of one object changes nothing either.
assert_eq "$(rc_of gantry rm --dry-run "$URL_S3/bkt/a")" 0
assert_match "$(<"$T/say")" "^would remove $URL_S3/bkt/a\$"
for to in "$T/made" "$URL_S3/bkt/b"; do
	assert_eq "$(rc_of gantry cp -n "$URL_S3/bkt/a" "$to")" 0
	assert_match "$(<"$T/say")" "^would copy $URL_S3/bkt/a\$"
done
assert_eq "$(rc_of gantry cp -n "$T/file" "$URL_S3/bkt/b")" 0
assert_eq "$(rc_of gantry cp -n "$T/none" "$URL_S3/bkt/b")" 1
assert_eq "$(rc_of gantry cp -n "$URL_S3/bkt/none" "$T/made")" 3
[ ! -e "$T/made" ] || fail "a dry run made a file"
assert_eq "$(rc_of gantry head "$URL_S3/bkt/b")" 3
curl_s3 /bkt/a | cmp - "$T/file" || fail "a dry run removed the object"

# Commands that move no bytes of objects read no configuration of RDMA, and each request of theirs has the limit of --timeout.
for words in "head $URL_S3/bkt/a" "stat $URL_S3/bkt/a" "ls $URL_S3" "du $URL_S3/bkt" "mb $URL_S3/new" "rb $URL_S3/new" "rm $URL_S3/bkt/a"; do
	# shellcheck disable=SC2086
	assert_eq "$(CUOBJ_ENV_PATH_JSON=$T/none rc_of gantry $words)" 0 "$words: $(<"$T/say")"
done
assert_eq "$(CUOBJ_ENV_PATH_JSON=$T/none rc_of gantry put "$T/file" "$URL_S3/bkt/a")" 1
/usr/bin/python3 - >"$T/port" <<'EOF' &
import socket, time
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
time.sleep(600)
EOF
silent=$!
wait_for 10 test -s "$T/port"
for words in "ls" "mb" "rb"; do
	path=$([ $words = ls ] || echo bkt)
	assert_eq "$(rc_of timeout 20 "$BUILD/gantry" $words --timeout 0.3 "http://127.0.0.1:$(<"$T/port")/$path")" 1 "$words: $(<"$T/say")"
	assert_match "$(<"$T/say")" "time" "$words"
done
kill $silent
# Help is given whatever else is there.
assert_eq "$(rc_of gantry --checksum ls --help)" 0
