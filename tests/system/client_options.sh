#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every option with every command of gantry: those that the command's help shows are taken, every other one is refused by its name, with 2,
# before anything is done.
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
curl_s3 /bkt/a | cmp - "$T/file" || fail "the object is gone"
# Help is given whatever else is there.
assert_eq "$(rc_of gantry --checksum ls --help)" 0
